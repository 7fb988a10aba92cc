//! Programs that stay in memory and answer on a Unix socket, and the servers' configurations for
//! them: those of the shipped examples, with other paths.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command};

use crate::support::site::{Site, WWW_DATA};

/// A running program. Ends when this is dropped.
pub struct Responder(Child);

impl Responder {
    /// Starts `program` of the site's folder `cgi` with the socket `{program}.sock` as its standard
    /// input.
    pub fn start(site: &Site, program: &str) -> Responder {
        let socket = site.path().join(format!("{program}.sock"));
        let listener = UnixListener::bind(&socket).unwrap();
        chown(&socket, Some(WWW_DATA), Some(WWW_DATA)).unwrap();
        let log = File::create(site.path().join(format!("log/{program}.log"))).unwrap();
        let user = [format!("--reuid={WWW_DATA}"), format!("--regid={WWW_DATA}")];
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig=TERM", "--clear-groups"]).args(user);
        command.arg(site.path().join("cgi").join(program)).env_clear();
        command.stdin(OwnedFd::from(listener)).stdout(log.try_clone().unwrap()).stderr(log);
        Responder(command.spawn().expect("setpriv, of Debian's util-linux"))
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Lines for Apache that pass this path of the site to this socket.
pub fn apache_location(site: &Site, path: &str, socket: &str) -> String {
    let folder = site.path().display();
    format!(
        "<Location /{path}>
            SetHandler \"proxy:unix:{folder}/{socket}|fcgi://{path}\"
        </Location>
        "
    )
}

/// Starts nginx for the program, PHP-FPM and the floor.
pub fn start_nginx(site: &mut Site) {
    let (folder, port) = (site.path().display(), site.port);
    let temporary = ["client_body", "fastcgi", "proxy", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {folder}/tmp/{what};"))
        .join(" ");
    let parameters = "
        fastcgi_param REQUEST_METHOD $request_method;
        fastcgi_param QUERY_STRING $query_string;
        fastcgi_param CONTENT_TYPE $content_type;
        fastcgi_param CONTENT_LENGTH $content_length;
        fastcgi_param SERVER_NAME $server_name;";
    let configuration = format!(
        "daemon off;
        worker_processes auto;
        pid {folder}/nginx.pid;
        error_log {folder}/log/error.log;
        events {{ }}
        http {{
            access_log off;
            keepalive_requests 1000000;
            {temporary}
            server {{
                listen 127.0.0.1:{port};
                root {folder}/docroot;
                location ~ \\.php$ {{
                    include /etc/nginx/fastcgi_params;
                    fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
                    fastcgi_pass unix:{folder}/fpm.sock;
                }}
                location ^~ /api/comedor.php {{
                    fastcgi_pass unix:{folder}/comedor.sock;
                    {parameters}
                    client_max_body_size 2m;
                }}
                location = /floor-fastcgi {{
                    fastcgi_pass unix:{folder}/floor-fastcgi.sock;
                    {parameters}
                }}
            }}
        }}
        "
    );
    fs::write(site.path().join("nginx.conf"), configuration).unwrap();
    let (log, file) = (format!("{folder}/log/error.log"), format!("{folder}/nginx.conf"));
    site.start("nginx", "/usr/sbin/nginx", &["-e", &log, "-c", &file]);
    site.wait();
}
