//! Web servers that run no programs, or need not: the program as a FastCGI responder, and nginx with
//! fcgiwrap too.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::Command;

use rustix::process::Pid;

use super::{Php, Settings, Site, wait_until};
use crate::support::fastcgi::Process;
use crate::support::{chmod, output, text_of};

/// Whether nginx keeps its connections to the program, as the shipped configuration says.
#[derive(Clone, Copy)]
pub enum Connections {
    AsShipped,
    New,
}

/// Apache with mod_proxy_fcgi.
pub fn apache_with_fastcgi(mpm: &str, php: Php) -> Site {
    apache_with_proxy(mpm, php, "retry=0")
}

/// The same with the configuration of 1.0.0, which a school may have edited.
pub fn apache_with_kept_connections(mpm: &str, php: Php) -> Site {
    apache_with_proxy(mpm, php, "enablereuse=on ttl=30 retry=0")
}

fn apache_with_proxy(mpm: &str, php: Php, parameters: &str) -> Site {
    let mut site = Site::new();
    let example = site.fill("examples/apache-fastcgi.conf.example", Settings::File);
    // The program reads its settings when it starts, and a change after a second.
    site.start_responder();
    let example = example.replace(" retry=0>", &format!(" {parameters}>"));
    assert!(example.contains(parameters));
    site.start_apache(mpm, php, "cgid", &example);
    site
}

/// nginx and the program as a responder.
pub fn nginx_with_fastcgi() -> Site {
    nginx_with(Connections::AsShipped)
}

pub fn nginx_with(connections: Connections) -> Site {
    let mut site = Site::new();
    let mut example = site.fill("examples/nginx.conf.example", Settings::File);
    if matches!(connections, Connections::New) {
        example = example.replace("fastcgi_keep_conn on;", "");
    }
    site.start_responder();
    site.start_nginx("", &example);
    site
}

/// lighttpd with the example, but for the program, which is started as systemd does.
pub fn lighttpd_with_a_socket() -> Site {
    let mut site = Site::new();
    let socket = format!("\"socket\" => \"{}/comedor.sock\",", site.path().display());
    let example = site.fill("examples/lighttpd-fastcgi.conf.example", Settings::File);
    let lines = example.lines().filter(|line| !line.contains("bin-path"));
    let lines = lines.map(|line| {
        if line.contains("\"socket\"") {
            &socket
        } else {
            line
        }
    });
    let lines: Vec<&str> = lines.collect();
    site.start_responder();
    site.start_lighttpd("enable", &lines.join("\n"));
    site
}

/// nginx and fcgiwrap.
pub fn nginx_with_fcgiwrap(settings: Settings) -> Site {
    let mut site = Site::new();
    site.start_nginx_with_fcgiwrap(settings, "");
    site
}

/// Debian's Caddy and the current one.
pub const CADDIES: [&str; 2] = [
    "/usr/bin/caddy",
    concat!(env!("CARGO_MANIFEST_DIR"), "/target/venv/bin/caddy"),
];

impl Site {
    /// This Caddy with these lines in the site at this address, and the sites `more`. The program has a
    /// socket that it creates itself, as in a container.
    pub fn start_caddy(&mut self, program: &str, address: &str, lines: &str, more: &str) {
        // Its own folder may be closed to the user of the web server.
        let copy = self.path().join("caddy");
        output(
            Command::new("install").arg(program).arg(&copy),
            "what tests/run installs",
        );
        let mut example = self.fill("examples/Caddyfile.example", Settings::File);
        if program != CADDIES[0] {
            example = example
                .replace("buffer_requests", "")
                .replace("max_buffer_size 2MB", "");
            example = example.replace("#request_buffers", "request_buffers");
        }
        self.write("comedor.caddyfile", &example);
        self.start_fpm();
        self.start_responder_with_a_path();
        let folder = self.path().display();
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
                {lines}
            }}
            {more}
            "
        );
        self.write("Caddyfile", &configuration);
        let arguments = ["run", "--config", "Caddyfile", "--adapter", "caddyfile"];
        self.start(copy.to_str().unwrap(), &arguments);
        wait_until("Caddy", || {
            self.curl(&[&format!("{address}/login.php")]).0 == 200
        });
    }

    /// Starts the program as comedor.socket and comedor.service do.
    pub fn start_responder(&self) {
        let listener = self.listener.get_or_init(|| self.listen("comedor"));
        let mut command = self.program("comedor", &[]);
        command.stdin(OwnedFd::from(listener.try_clone().unwrap()));
        *self.responder.lock().unwrap() = Some(Process(command.spawn().unwrap()));
    }

    /// Starts another program of the folder `cgi` in the same way, on a socket of its name.
    pub fn start_with_socket(&mut self, program: &str) {
        let mut command = self.program(program, &[]);
        command.stdin(OwnedFd::from(self.listen(program)));
        self.processes.push(command.spawn().unwrap());
    }

    fn listen(&self, program: &str) -> UnixListener {
        let path = self.path().join(format!("{program}.sock"));
        let listener = UnixListener::bind(&path).unwrap();
        chmod(path, 0o660);
        self.set_owners();
        listener
    }

    /// Starts `comedor fastcgi` with the path of the socket.
    pub fn start_responder_with_a_path(&self) {
        self.set_owners();
        let socket = self.path().join("comedor.sock");
        let mut command = self.program("comedor", &["fastcgi", socket.to_str().unwrap()]);
        *self.responder.lock().unwrap() = Some(Process(command.spawn().unwrap()));
        wait_until("the socket", || socket.exists());
    }

    /// A program of the folder `cgi`.
    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let path = self.path().join("cgi").join(name);
        self.command(self.user, path.to_str().unwrap(), arguments)
    }

    /// The workers of the program.
    pub fn workers(&self) -> Vec<Pid> {
        self.responder
            .lock()
            .unwrap()
            .as_ref()
            .expect("a responder")
            .workers()
    }

    /// Whether all of them have started.
    pub fn has_started(&self) -> bool {
        self.responder
            .lock()
            .unwrap()
            .as_ref()
            .expect("a responder")
            .has_started(64)
    }

    /// The open file descriptors of its workers.
    pub fn descriptors(&self) -> usize {
        self.responder
            .lock()
            .unwrap()
            .as_ref()
            .expect("a responder")
            .descriptors()
    }

    /// Stops the program. It exits with status 0.
    #[track_caller]
    pub fn stop_responder(&self) {
        self.responder
            .lock()
            .unwrap()
            .take()
            .expect("a responder")
            .stop();
    }

    /// nginx and PHP-FPM, with these lines in `http` and in the site's `server`.
    pub fn start_nginx(&mut self, http: &str, lines: &str) {
        self.start_fpm();
        let (folder, port) = (self.path().display().to_string(), self.port);
        let upstream = text_of("examples/nginx-upstream.conf.example");
        let upstream = upstream.replace("/run/comedor/", &format!("{folder}/"));
        let server = format!(
            "{upstream}
            {http}
            server {{
                listen 127.0.0.1:{port};
                root {folder}/docroot;
                {lines}
                location ~ \\.php$ {{
                    include /etc/nginx/fastcgi_params;
                    fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
                    fastcgi_pass unix:{folder}/fpm.sock;
                }}
            }}
            "
        );
        self.start_nginx_only(&server);
        self.wait();
    }

    /// nginx and fcgiwrap, with these lines in `http`.
    pub fn start_nginx_with_fcgiwrap(&mut self, settings: Settings, http: &str) {
        let example = self.fill("examples/nginx-fcgiwrap.conf.example", settings);
        let socket = format!("{}/fcgiwrap.socket", self.path().display());
        self.start(
            "/usr/sbin/fcgiwrap",
            &["-f", "-c", "4", "-s", &format!("unix:{socket}")],
        );
        self.start_nginx(http, &example.replace("/run/fcgiwrap.socket", &socket));
    }

    /// nginx with these lines in `http`.
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
        self.start(
            "/usr/sbin/nginx",
            &["-p", ".", "-e", "log/error.log", "-c", "nginx.conf"],
        );
    }
}
