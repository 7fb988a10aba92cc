//! nginx, which runs no programs: the program is a FastCGI responder, or fcgiwrap runs it.

use super::{Settings, Site};

/// nginx and the program as a responder.
pub fn nginx_with_fastcgi() -> Site {
    let mut site = Site::new();
    let example = site.fill("nginx.conf.example", Settings::File);
    site.start_responder();
    site.start_nginx(&example);
    site
}

/// nginx and fcgiwrap.
pub fn nginx_with_fcgiwrap(settings: Settings) -> Site {
    let mut site = Site::new();
    let example = site.fill("nginx-fcgiwrap.conf.example", settings);
    let socket = format!("{}/fcgiwrap.socket", site.path().display());
    site.start(
        "fcgiwrap",
        "/usr/sbin/fcgiwrap",
        &["-f", "-c", "4", "-s", &format!("unix:{socket}")],
    );
    site.start_nginx(&example.replace("/run/fcgiwrap.socket", &socket));
    site
}

impl Site {
    #[track_caller]
    fn start_nginx(&mut self, example: &str) {
        self.write("example.conf", example);
        self.start_fpm("fpm.sock");
        let (folder, port) = (self.path().display(), self.port);
        let configuration = format!(
            "daemon off;
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
            }}
            "
        );
        self.write("nginx.conf", &configuration);
        let error_log = format!("{folder}/log/error.log");
        let configuration = format!("{folder}/nginx.conf");
        self.start("nginx", "/usr/sbin/nginx", &["-e", &error_log, "-c", &configuration]);
        self.wait();
    }
}
