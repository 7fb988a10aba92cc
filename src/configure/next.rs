//! What comes after the settings: constant commands, which the guide explains.

/// A web server and the commands that enable comedor in it.
#[derive(Debug)]
pub struct Server {
    name: &'static str,
    commands: &'static str,
}

/// As Debian and Ubuntu have them, with the files of the package
const SERVERS: [Server; 5] = [
    Server {
        name: "apache",
        commands: "sudo a2enmod cgi actions && sudo a2enconf comedor && sudo apache2ctl configtest && sudo systemctl restart apache2\n",
    },
    Server {
        name: "apache-fastcgi",
        commands: "\
sudo install -m 644 /usr/share/doc/comedor/examples/apache-fastcgi.conf.example /etc/apache2/conf-available/comedor-fastcgi.conf
sudo systemctl enable --now comedor.socket
sudo a2enmod proxy_fcgi && sudo a2enconf comedor-fastcgi && sudo apache2ctl configtest && sudo systemctl restart apache2
",
    },
    Server {
        name: "nginx",
        commands: "\
sudo install -m 644 /usr/share/doc/comedor/examples/nginx.conf.example /etc/nginx/snippets/comedor.conf
sudo install -m 644 /usr/share/doc/comedor/examples/nginx-upstream.conf.example /etc/nginx/conf.d/comedor.conf
sudo systemctl enable --now comedor.socket
(add the line  include snippets/comedor.conf;  as the first one between the braces of the site's server { })
sudo nginx -t && sudo systemctl reload nginx
",
    },
    Server {
        name: "caddy",
        commands: "\
sudo install -m 644 /usr/share/doc/comedor/examples/Caddyfile.example /etc/caddy/comedor.caddyfile
sudo usermod -aG www-data caddy
sudo systemctl enable --now comedor.socket
(add the line  import comedor.caddyfile  as the first one between the braces of the site)
sudo caddy validate --config /etc/caddy/Caddyfile && sudo systemctl restart caddy
",
    },
    Server {
        name: "lighttpd",
        commands: "\
sudo install -m 644 /usr/share/doc/comedor/examples/lighttpd.conf.example /etc/lighttpd/conf-available/90-comedor.conf
sudo lighty-enable-mod comedor
sudo lighttpd -tt -f /etc/lighttpd/lighttpd.conf && sudo systemctl restart lighttpd
",
    },
];

impl Server {
    pub fn find(name: &str) -> Option<&'static Server> {
        SERVERS.iter().find(|server| server.name == name)
    }
}

/// What to run next.
pub fn steps(server: Option<&Server>) -> String {
    let check = "\nNext, with the user that the page shows instead of USER:\n\
                 sudo -u USER comedor check\n";
    match server {
        Some(server) => format!("{check}\nThen enable comedor:\n{}", server.commands),
        None => {
            let names = SERVERS.map(|server| server.name).join(", ");
            format!(
                "{check}\nThen enable comedor in the web server. To list the commands, run this again with \
                 --server NAME, and paste nothing. NAME: {names}\n"
            )
        }
    }
}
