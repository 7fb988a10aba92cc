//! Web servers that run no programs, or need not: the program as a FastCGI responder, and nginx with
//! fcgiwrap too.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};

use super::{Php, Settings, Site, WWW_DATA, apache_on, lighttpd_on, proxy_modules, wait_until};
use crate::support::{chmod, output, text_of};

/// Apache with mod_proxy_fcgi.
pub fn apache_with_fastcgi(mpm: &str, php: Php) -> Site {
    let modules = if php == Php::Module { proxy_modules() } else { String::new() };
    let example = "examples/apache-fastcgi.conf.example";
    let site = Site::new();
    // The program reads its settings when it starts, and a change after a second.
    site.fill(example, Settings::File);
    site.start_responder();
    apache_on(example, site, mpm, php, "cgid", Settings::File, &modules)
}

/// lighttpd, which starts the program itself.
pub fn lighttpd_with_fastcgi(check_local: &str, settings: Settings) -> Site {
    lighttpd_on("examples/lighttpd-fastcgi.conf.example", Site::new(), check_local, settings, "")
}

/// nginx and the program as a responder.
pub fn nginx_with_fastcgi() -> Site {
    let mut site = Site::new();
    let example = site.fill("examples/nginx.conf.example", Settings::File);
    site.start_responder();
    site.start_nginx(&example);
    site
}

/// nginx and fcgiwrap.
pub fn nginx_with_fcgiwrap(settings: Settings) -> Site {
    let mut site = Site::new();
    let example = site.fill("examples/nginx-fcgiwrap.conf.example", settings);
    let socket = format!("{}/fcgiwrap.socket", site.path().display());
    site.start(
        "fcgiwrap",
        "/usr/sbin/fcgiwrap",
        &["-f", "-c", "4", "-s", &format!("unix:{socket}")],
    );
    site.start_nginx(&example.replace("/run/fcgiwrap.socket", &socket));
    site
}

/// Debian's Caddy and the current one.
pub const CADDIES: [&str; 2] =
    ["/usr/bin/caddy", concat!(env!("CARGO_MANIFEST_DIR"), "/target/venv/bin/caddy")];

/// This Caddy with these lines in its site, in which `FPM` is the socket of PHP-FPM, and the program
/// with a socket that it creates itself, as in a container.
#[track_caller]
pub fn caddy(program: &str, lines: &str) -> Site {
    let site = Site::new();
    let address = format!("http://127.0.0.1:{}", site.port);
    let site = caddy_on(program, site, &address, lines, "");
    site.wait();
    site
}

/// The same for an existing site at this address, with the sites `more`.
#[track_caller]
pub fn caddy_on(program: &str, mut site: Site, address: &str, lines: &str, more: &str) -> Site {
    assert!(Path::new(program).exists(), "{program} is missing; tests/run installs it");
    // Its own folder may be closed to the user of the web server.
    let copy = site.path().join("caddy");
    output(Command::new("install").arg(program).arg(&copy), "coreutils");
    let mut example = site.fill("examples/Caddyfile.example", Settings::File);
    if program != CADDIES[0] {
        example = example.replace("buffer_requests", "").replace("max_buffer_size 2MB", "");
        example = example.replace("#request_buffers", "request_buffers");
    }
    site.write("comedor.caddyfile", &example);
    site.start_fpm("fpm.sock");
    site.start_responder_with_a_path();
    let folder = site.path().display();
    let configuration = format!(
        "{{
            admin off
            storage file_system {folder}/tmp
            auto_https disable_redirects
            local_certs
            skip_install_trust
        }}
        {address} {{
            root * {folder}/docroot
            {}
        }}
        {more}
        ",
        lines.replace("FPM", &format!("unix/{folder}/fpm.sock"))
    );
    site.write("Caddyfile", &configuration);
    site.start(
        "caddy",
        copy.to_str().unwrap(),
        &["run", "--config", "Caddyfile", "--adapter", "caddyfile"],
    );
    site
}

impl Site {
    /// Starts the program as comedor.socket and comedor.service do.
    #[track_caller]
    pub fn start_responder(&self) {
        let listener = self.listener.get_or_init(|| self.listen("comedor"));
        *self.responder.lock().unwrap() = Some(self.start_on(listener, "comedor"));
    }

    /// Starts another program of the folder `cgi` in the same way, on a socket of its name.
    #[track_caller]
    pub fn start_with_socket(&mut self, program: &str) {
        let process = self.start_on(&self.listen(program), program);
        self.processes.push(process);
    }

    fn listen(&self, program: &str) -> UnixListener {
        let path = self.path().join(format!("{program}.sock"));
        let listener = UnixListener::bind(&path).unwrap();
        chmod(path, 0o660);
        self.set_owners();
        listener
    }

    #[track_caller]
    fn start_on(&self, listener: &UnixListener, program: &str) -> Child {
        let mut command = self.program(program, &[]);
        command.stdin(OwnedFd::from(listener.try_clone().unwrap())).spawn().unwrap()
    }

    /// Starts `comedor fastcgi` with the path of the socket.
    #[track_caller]
    pub fn start_responder_with_a_path(&self) {
        self.set_owners();
        let socket = self.path().join("comedor.sock");
        let mut command = self.program("comedor", &["fastcgi", socket.to_str().unwrap()]);
        *self.responder.lock().unwrap() = Some(command.spawn().unwrap());
        wait_until("the socket", || socket.exists());
    }

    /// A program of the folder `cgi`.
    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let path = self.path().join("cgi").join(name);
        self.command(WWW_DATA, name, path.to_str().unwrap(), arguments)
    }

    /// The open file descriptors of the program.
    pub fn descriptors(&self) -> usize {
        let responder = self.responder.lock().unwrap();
        let process = responder.as_ref().expect("a responder").id();
        fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
    }

    /// Stops the program. It exits with status 0.
    #[track_caller]
    pub fn stop_responder(&self) {
        let mut responder = self.responder.lock().unwrap().take().expect("a responder");
        kill_process(Pid::from_child(&responder), Signal::TERM).unwrap();
        let status = responder.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// nginx and PHP-FPM, with these lines in the site's `server`.
    #[track_caller]
    pub fn start_nginx(&mut self, example: &str) {
        self.write("example.conf", example);
        self.start_fpm("fpm.sock");
        let (folder, port) = (self.path().display().to_string(), self.port);
        let upstream = text_of("examples/nginx-upstream.conf.example");
        let upstream = upstream.replace("/run/comedor/", &format!("{folder}/"));
        let server = format!(
            "{upstream}
            {}
            upstream php {{
                server unix:{folder}/fpm.sock;
                keepalive 16;
            }}
            server {{
                listen 127.0.0.1:{port};
                root {folder}/docroot;
                location ~ \\.php$ {{
                    include /etc/nginx/fastcgi_params;
                    fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
                    fastcgi_pass unix:{folder}/fpm.sock;
                }}
                include {folder}/example.conf;
            }}
            ",
            self.upstreams
        );
        self.start_nginx_only(&server);
        self.wait();
    }

    /// nginx with these lines in `http`.
    #[track_caller]
    pub fn start_nginx_only(&mut self, http: &str) {
        let folder = self.path().display();
        let configuration = format!(
            "daemon off;
            worker_processes auto;
            pid {folder}/nginx.pid;
            error_log {folder}/log/error.log;
            events {{ }}
            http {{
                access_log off;
                client_body_temp_path {folder}/tmp/body;
                fastcgi_temp_path {folder}/tmp/fastcgi;
                proxy_temp_path {folder}/tmp/proxy;
                uwsgi_temp_path {folder}/tmp/uwsgi;
                scgi_temp_path {folder}/tmp/scgi;
                {http}
            }}
            "
        );
        self.write("nginx.conf", &configuration);
        let error_log = format!("{folder}/log/error.log");
        let configuration = format!("{folder}/nginx.conf");
        self.start("nginx", "/usr/sbin/nginx", &["-e", &error_log, "-c", &configuration]);
    }
}
