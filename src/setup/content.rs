//! The content of the files that set-up writes.

use crate::config::Config;
use crate::session::{Address, RedisServer, SavePath};
use crate::site::{Php, is_plain};
use crate::store::layout;

/// Starts what set-up writes.
pub const MARK: &str = "# Written by `comedor setup`; to undo it: sudo comedor setup --undo\n";

pub const APACHE_CGI: &str = include_str!("../../apache.conf.example");
pub const APACHE_FASTCGI: &str = include_str!("../../examples/apache-fastcgi.conf.example");
pub const NGINX: &str = include_str!("../../examples/nginx.conf.example");
pub const UPSTREAM: &str = include_str!("../../examples/nginx-upstream.conf.example");

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

/// A settings file with these lines beside those that were [`added`] before, and without others for the same
/// settings.
pub fn settings(old: &str, lines: &[String]) -> String {
    let name = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let names: Vec<String> = lines.iter().map(|line| name(line)).collect();
    let is_other = |line: &&str| !names.contains(&name(line));
    let earlier = added(old);
    let rest = old.strip_prefix(MARK).map(|old| old.split_once("\n\n").unwrap_or_default().1);
    let kept = rest.unwrap_or(old).lines().filter(is_other);
    let kept: String = kept.flat_map(|line| [line, "\n"]).collect();
    let earlier = earlier.iter().map(String::as_str).filter(is_other);
    let lines: Vec<&str> = earlier.chain(lines.iter().map(String::as_str)).collect();
    format!("{MARK}{}\n\n{kept}", lines.join("\n"))
}

/// The lines that [`settings`] has added.
pub fn added(settings: &str) -> Vec<String> {
    let added = settings.strip_prefix(MARK).unwrap_or_default().lines();
    added.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
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
        let Some(path) = real.to_str().filter(|path| is_plain(path)) else {
            return Err(format!("{real:?} has characters other than [A-Za-z0-9._/-]"));
        };
        text += &format!("ReadWritePaths=-{path}\n");
        let is_in = |places: &[&str]| places.iter().any(|place| real.starts_with(place));
        text += if is_in(&["/home", "/root", "/run/user"]) { "ProtectHome=no\n" } else { "" };
        text += if is_in(&["/tmp", "/var/tmp"]) { "PrivateTmp=no\n" } else { "" };
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_two_set_ups_are_those_of_one() {
        let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let old = "# Ours\nA=0\n\nB=0\nC=0\n";
        let twice = settings(&settings(old, &lines("A=1 B=1")), &lines("B=2 C=2"));
        assert_eq!(twice, settings(old, &lines("A=1 B=2 C=2")));
        assert_eq!(added(&twice), lines("A=1 B=2 C=2"));
        assert_eq!(twice, format!("{MARK}A=1\nB=2\nC=2\n\n# Ours\n\n"));
    }
}
