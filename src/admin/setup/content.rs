//! The content of the files that set-up writes.

use crate::admin::inferred::{Php, plain};
use crate::config::Config;
use crate::session::{Address, RedisServer, SavePath};
use crate::store::layout;

/// Starts what set-up writes.
pub const MARK: &str = "# Written by `comedor setup`; to undo it: sudo comedor setup --undo\n";

pub const APACHE_CGI: &str = include_str!("../../../apache.conf.example");
pub const APACHE_FASTCGI: &str = include_str!("../../../examples/apache-fastcgi.conf.example");
pub const NGINX: &str = include_str!("../../../examples/nginx.conf.example");
pub const UPSTREAM: &str = include_str!("../../../examples/nginx-upstream.conf.example");

/// A shipped example for this path, without its comments. It loads these modules of Apache as `a2enmod` does.
pub fn example(text: &str, path: &str, modules: &[&str]) -> String {
    let is_kept = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let lines = text.lines().filter(is_kept).flat_map(|line| [line, "\n"]);
    let lines = lines.collect::<String>().replace("/api/comedor.php", path);
    let modules = modules.iter().map(|name| {
        format!("Include mods-available/{name}.load\nIncludeOptional mods-available/{name}.conf\n")
    });
    format!("{MARK}{}{lines}", modules.collect::<String>())
}

/// For `comedor.service`: PHP's user, and access to what the sandbox of the shipped unit hides.
pub fn service(php: &Php, config: &Config) -> Result<String, String> {
    let mut text = format!("{MARK}[Service]\nUser={}\nGroup={}\n", php.user, php.group);
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
