//! The content of the files that set-up writes.

use std::path::Path;

use super::Choice;
use crate::session::Address;

pub const PROGRAM: &str = "/usr/lib/cgi-bin/comedor";
/// Starts what set-up writes.
pub const MARK: &str = "# Written by `comedor setup`; to undo it: sudo comedor setup --undo";
/// Starts the line with the modules that set-up has enabled.
pub const MODULES: &str = "# It has enabled the modules:";

const CGI: &str = include_str!("../../apache.conf.example");
const FASTCGI: &str = include_str!("../../examples/apache-fastcgi.conf.example");
const NGINX: &str = include_str!("../../examples/nginx.conf.example");

/// For Apache: applies to every site.
pub fn apache(path: &str, choice: Choice, modules: &[&str]) -> String {
    let example = match choice {
        Choice::Cgi => CGI,
        Choice::FastCgi => FASTCGI,
    };
    format!("{MARK}\n{MODULES} {}\n{}", modules.join(" "), with_path(example, path))
}

/// For a site of nginx.
pub fn nginx(path: &str) -> String {
    // Without the upstream, which would need a file of its own: a connection for each request.
    let socket = "fastcgi_pass unix:/run/comedor/comedor.sock;";
    let example = NGINX.replace("fastcgi_pass comedor;", socket);
    format!("{MARK}\n{}", with_path(&example, path))
}

/// A shipped example for this path, without its comments.
fn with_path(example: &str, path: &str) -> String {
    let is_kept = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let lines = example.lines().filter(is_kept).flat_map(|line| [line, "\n"]);
    lines.collect::<String>().replace("/api/comedor.php", path)
}

/// A settings file with these lines instead of others for the same settings.
pub fn with_lines<'l>(old: &'l str, lines: impl Iterator<Item = &'l str> + Clone) -> String {
    let name = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let names: Vec<String> = lines.clone().map(name).collect();
    let kept = old.lines().filter(|line| !names.contains(&name(line)) && !line.starts_with(MARK));
    kept.chain([MARK]).chain(lines).flat_map(|line| [line, "\n"]).collect()
}

/// The lines for `comedor.service` that let it write to a folder; none for those of the shipped unit.
pub fn access(folder: &str) -> Vec<String> {
    let is_below =
        |folders: &[&str]| folders.iter().any(|outer| Path::new(folder).starts_with(outer));
    if is_below(&["/DATA", "/var/lib/php/sessions"]) {
        return Vec::new();
    }
    let mut lines = vec![format!("ReadWritePaths={folder}")];
    lines.extend(is_below(&["/home", "/root", "/run/user"]).then(|| "ProtectHome=no".to_owned()));
    lines.extend(is_below(&["/tmp", "/var/tmp"]).then(|| "PrivateTmp=no".to_owned()));
    lines
}

/// The lines for `comedor.service` that let it connect to a Redis server.
pub fn network(address: &Address) -> Vec<String> {
    let Address::Tcp { host, .. } = address else { return Vec::new() };
    let is_local = ["localhost", "127.0.0.1", "::1"].contains(&host.as_str());
    let allowed = if is_local { "IPAddressAllow=localhost" } else { "IPAddressDeny=" };
    ["PrivateNetwork=no", "RestrictAddressFamilies=AF_INET AF_INET6", allowed]
        .map(str::to_owned)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_lines_of_the_settings_stay() {
        for (old, new) in [
            ("", "{MARK}A=1B=2"),
            ("# A=x\n A =2\nC=3", "# A=x\nC=3\n{MARK}A=1B=2"),
            ("C=3\n{MARK}A=0\n", "C=3\n{MARK}A=1B=2"),
        ] {
            let [old, new] = [old, new].map(|text| text.replace("{MARK}", &format!("{MARK}\n")));
            let new = new.replace("A=1B=2", "A=1\nB=2\n");
            assert_eq!(with_lines(&old, ["A=1", "B=2"].into_iter()), new);
        }
    }

    #[test]
    fn the_unit_gets_access_to_what_its_sandbox_hides() {
        for (folder, lines) in [
            ("/DATA/x", &[][..]),
            ("/srv/x", &["ReadWritePaths=/srv/x"]),
            ("/home/x", &["ReadWritePaths=/home/x", "ProtectHome=no"]),
            ("/var/tmp", &["ReadWritePaths=/var/tmp", "PrivateTmp=no"]),
        ] {
            assert_eq!(access(folder), lines);
        }
    }
}
