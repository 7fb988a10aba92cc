//! The content of the files that set-up writes.

use std::path::Path;

use super::files::APACHE;
use crate::admin::accounts::{group_name, user_name};
use crate::admin::site::plain;
use crate::config::Config;
use crate::session::{Address, RedisServer, SavePath};
use crate::store::layout;
use crate::sys::process::Credentials;

/// A file to write, its content (of the settings, what is shown of it), and what is run after that
pub type Part = (&'static str, String, Vec<&'static str>);

/// Starts what set-up writes.
pub const MARK: &str = "# Written by `comedor setup`; to undo it: sudo comedor setup --undo\n";

const APACHE_CGI: &str = include_str!("../../../apache.conf.example");
const APACHE_FASTCGI: &str = include_str!("../../../examples/apache-fastcgi.conf.example");
pub const NGINX: &str = include_str!("../../../examples/nginx.conf.example");
pub const UPSTREAM: &str = include_str!("../../../examples/nginx-upstream.conf.example");
const CADDY: &str = include_str!("../../../examples/Caddyfile.example");
const LIGHTTPD: &str = include_str!("../../../examples/lighttpd-fastcgi.conf.example");

/// A shipped example for this path, without its comments.
pub fn example(text: &str, path: &str) -> String {
    let is_kept = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let lines: String = text.split_inclusive('\n').filter(is_kept).collect();
    // In an expression of lighttpd, too
    lines.replace("/api/comedor.php", path).replace("/api/comedor\\.php", &path.replace('.', "\\."))
}

/// What an administrator adds to the configuration of Caddy, and where. The comments between the lines stay:
/// they have what another version of Caddy needs.
pub fn caddy(path: &str) -> (String, &'static str) {
    let is_kept = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let lines: String = CADDY.split_inclusive('\n').filter(is_kept).collect();
    (lines.replace("/api/comedor.php", path), "at the top of the site in /etc/caddy/Caddyfile")
}

/// The same for lighttpd, which does not start the program: the service runs already.
pub fn lighttpd(path: &str) -> (String, &'static str) {
    let text = example(LIGHTTPD, path).replace("/run/lighttpd/", "/run/comedor/");
    let is_kept = |line: &&str| !line.contains("bin-path") && !line.contains("max-procs");
    let lines = text.split_inclusive('\n').filter(is_kept).collect();
    (lines, "to /etc/lighttpd/conf-enabled/90-comedor.conf")
}

/// Apache's file: the example, the modules that are not enabled, loaded as `a2enmod` does, and the limit to a host.
pub fn apache(is_cgi: bool, path: &str, host: Option<&str>) -> Part {
    let folder = Path::new("/etc/apache2/mods-enabled");
    let is_enabled = |name: &str| folder.join(name).with_extension("load").exists();
    let (text, needed): (_, &[&str]) = match is_cgi {
        true if is_enabled("mpm_prefork") => (APACHE_CGI, &["cgi"]),
        true => (APACHE_CGI, &["cgid"]),
        false => (APACHE_FASTCGI, &["proxy", "proxy_fcgi"]),
    };
    let modules = needed.iter().filter(|name| !is_enabled(name)).map(|name| {
        format!("Include mods-available/{name}.load\nIncludeOptional mods-available/{name}.conf\n")
    });
    let modules: String = modules.collect();
    let [reload, restart] = ["systemctl reload apache2", "systemctl restart apache2"];
    let last = if modules.is_empty() { reload } else { restart };
    let mut all = format!("{MARK}{modules}");
    for line in example(text, path).lines() {
        all += &match host.filter(|_| line.trim_start().starts_with("SetHandler")) {
            // Clients may add a port and a final dot. From \Q to \E, no character is special (pcre2pattern(3)).
            Some(host) => {
                let name = host.trim_end_matches('.');
                let limit = format!(r"%{{HTTP_HOST}} =~ /^\Q{name}\E\.?(:[0-9]*)?$/i");
                format!("    <If \"{limit}\">\n    {line}\n    </If>\n")
            }
            None => format!("{line}\n"),
        };
    }
    // It precedes a site's ProxyPassMatch (mod_proxy), on every site: another school's script would come out as text.
    if host.is_none() {
        all += &format!("<IfModule proxy_module>\n    ProxyPass \"{path}\" \"!\"\n</IfModule>\n");
    }
    (APACHE, all, vec!["a2enconf --quiet zz-comedor-setup", "apache2ctl configtest", last])
}

/// For `comedor.service`: PHP's user, and access to what the sandbox of the shipped unit hides.
pub fn service(user: &Credentials, config: &Config) -> Result<String, String> {
    let [user, group] = [user_name(user.uid), group_name(user.gid)];
    let mut text = format!("{MARK}[Service]\nUser={}\nGroup={}\n", plain(&user)?, plain(&group)?);
    let mut folders = vec![layout::centres(&config.data_dir)];
    match &config.session.save_path {
        SavePath::Files(sessions) => folders.push(sessions.folder.clone()),
        SavePath::Redis(RedisServer { address: Address::Tcp { host, .. }, .. }) => {
            let is_local = ["localhost", "127.0.0.1", "::1"].contains(&host.as_str());
            text += "PrivateNetwork=no\nRestrictAddressFamilies=AF_INET AF_INET6\n";
            text += if is_local { "IPAddressAllow=localhost\n" } else { "IPAddressDeny=\n" };
        }
        SavePath::Redis(_) => {}
    }
    for folder in folders {
        let real = folder.canonicalize().map_err(|error| format!("{folder:?}: {error}"))?;
        text += &format!("ReadWritePaths=-{}\n", plain(&real.to_string_lossy())?);
        let is_in = |places: &[&str]| places.iter().any(|place| real.starts_with(place));
        text += if is_in(&["/home", "/root", "/run/user"]) { "ProtectHome=no\n" } else { "" };
        text += if is_in(&["/tmp", "/var/tmp"]) { "PrivateTmp=no\n" } else { "" };
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::{caddy, lighttpd, service};
    use crate::config::{Config, Settings};
    use crate::sys::process::Credentials;

    #[test]
    fn the_service_may_use_what_php_uses_and_no_more() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let [data, sessions] = ["data", "sessions"].map(|name| folder.path().join(name));
        std::fs::create_dir_all(data.join("Centros")).unwrap();
        symlink("/var", &sessions).unwrap();
        let user = Credentials { uid: 0, gid: 0, groups: vec![] };
        let [data, sessions] = [data, sessions].map(|folder| folder.display().to_string());
        for (save_path, lines) in [
            (&*sessions, "ReadWritePaths=-/var\n"),
            (
                "tcp://127.0.0.1:6379?auth=x",
                "PrivateNetwork=no\nRestrictAddressFamilies=AF_INET AF_INET6\nIPAddressAllow=localhost\n",
            ),
            ("unix:///run/redis.sock", ""),
        ] {
            let text = format!("COMEDOR_DATA_DIR={data}\nCOMEDOR_SESSION_DIR={save_path}\n");
            let settings = Settings::default().with_file(Path::new("x"), text.as_bytes()).unwrap();
            let text = service(&user, &Config::from_settings(&settings).unwrap()).unwrap();
            let data = format!("ReadWritePaths=-{data}/Centros\nPrivateTmp=no\n");
            let (_, unit) = text.split_once("[Service]\nUser=root\nGroup=root\n").unwrap();
            assert_eq!(unit.replace(&data, ""), lines, "{text}");
            assert!(unit.contains(&data), "{text}");
        }
    }

    #[test]
    fn the_lines_for_other_servers_have_the_path_and_no_program_to_start() {
        let (lines, _) = lighttpd("/a.b/api/comedor.php");
        assert!(lines.contains(r#""^/a\.b/api/comedor\.php(/|$)""#), "{lines}");
        assert!(lines.contains(r#"( "/a.b/api/comedor.php" => (("#), "{lines}");
        assert!(lines.contains("/run/comedor/comedor.sock") && !lines.contains("bin-"), "{lines}");
        let (lines, _) = caddy("/a/api/comedor.php");
        assert!(lines.contains("path /a/api/comedor.php /a/api/comedor.php/*\n"), "{lines}");
        assert!(lines.starts_with("@comedor") && lines.contains("# Caddy 2.11 instead"), "{lines}");
    }
}
