//! What root learns about the application: by asking PHP itself, through the web server, at the address that
//! the administrator gives. No configuration of another program is read.
//!
//! `Scripts` are the candidates for the script. A file of a random name beside each (`Pages`) runs the
//! script as anyone can request it, without a login, and tells by a Unix socket which settings PHP has then;
//! the kernel tells which user that is. [`AppUrl`] sends the requests, to this machine only. [`Literals`] are
//! what the text of the script adds: the service, the data folder, and whether it has a database.
//!
//! Files of the application are read and written by children with the rights of their owners. What they, PHP
//! and the web server say is data of parties that root does not trust: it is compared, checked against
//! `[A-Za-z0-9._/-]` before it is written, and escaped before it is shown.

mod files;
mod pages;
mod url;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fs, iter};

use crate::admin::accounts;
use crate::admin::command::properties;
use crate::sys::log::printable;
use crate::sys::process::{Credentials, peer};

pub use files::{Literals, named, read_as, scripts};
pub use pages::{answer_of_script, ask_php, refusing};
pub use url::{Answer, AppUrl};

/// What set-up remembers for the check, in two lines: the address, and the script.
pub const KNOWN: &str = "/etc/comedor/site";

/// The web servers that set-up knows, by their units of systemd
const SERVERS: [&str; 4] = ["apache2", "nginx", "caddy", "lighttpd"];

/// The program whose answer is asked for, with what set-up and the check know about its PHP
#[derive(Debug)]
pub struct Site {
    /// After all redirections, at the address of this machine that leads to the script
    pub address: AppUrl,
    /// The script that comedor replaces
    pub script: PathBuf,
    pub php: Php,
    /// The web server, if the administrator names it
    pub server: Option<String>,
}

impl Site {
    /// The unit of the web server, which the administrator names, or PHP.
    pub fn unit(&self) -> Result<&'static str, String> {
        let software = if self.php.is_module() { "apache2" } else { self.php.says("server") };
        let name = self.server.as_deref().unwrap_or(software).to_lowercase();
        SERVERS.into_iter().find(|unit| name.starts_with(&unit[..5])).ok_or_else(|| {
            format!("the web server calls itself {software:?}: name one of {SERVERS:?} by --server")
        })
    }

    /// The user of the web server's processes that ask PHP. systemd must answer before `end`.
    pub fn web_user(&self, end: Instant) -> Result<Credentials, String> {
        // A module is in the web server, which may have a user for each site.
        if self.php.is_module() {
            return Ok(self.php.user.clone());
        }
        let unit = self.unit()?;
        let first = properties(unit, "MainPID", end)?;
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
        let children = children.unwrap_or_default();
        // The first one is often root.
        let processes = iter::once(first.as_str()).chain(children.split_whitespace());
        let mut users = processes.filter_map(accounts::of_process).filter(|user| !user.is_root());
        users.next().ok_or_else(|| format!("{unit} does not run as a service"))
    }

    /// The address and the script of [`KNOWN`].
    pub fn known() -> Option<(AppUrl, PathBuf)> {
        let text = fs::read_to_string(KNOWN).ok()?;
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        Some((AppUrl::parse(lines.next()?).ok()?, lines.next()?.into()))
    }
}

/// The process of PHP that answered.
#[derive(Debug)]
pub struct Php {
    pub user: Credentials,
    /// What it says: PHP's settings in the script, in lines `name=value`
    said: String,
    /// Its mounts, as in `/proc/self/mountinfo`
    mounts: String,
}

impl Php {
    /// The process at the other end of `stream`, which has said this and waits. The error is what it could not tell.
    fn of(mut stream: UnixStream, said: &[u8]) -> Result<Php, String> {
        let peer = peer(&stream).map_err(|error| error.to_string())?;
        let user = accounts::of_process(&peer.pid.to_string());
        // After connecting, it may have executed a program with the rights of another group (setgid).
        let user = user.filter(|user| (user.uid, user.gid) == (peer.uid, peer.gid));
        let user = user.unwrap_or(Credentials { uid: peer.uid, gid: peer.gid, groups: vec![] });
        let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", peer.pid));
        let said = String::from_utf8_lossy(said).into_owned();
        let php = Php { user, said, mounts: mounts.unwrap_or_default() };
        // It has waited for this.
        _ = stream.write_all(b"\n");
        // In a chroot without time zones, it fails at the last one.
        if php.said.ends_with("\n\n") || php.is_elsewhere() {
            return Ok(php);
        }
        Err("PHP fails while it tells its settings: has its disable_functions session_module_name, \
             session_save_path, session_name or ini_get?"
            .to_owned())
    }

    /// Whether this path is the same folder for other processes: its service may have a `/tmp` of its own.
    pub fn shares(&self, folder: &Path) -> bool {
        let own = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        mounted(&self.mounts, folder) == mounted(&own, folder)
    }

    /// Whether `/` is another folder for it: in a chroot no mount has it.
    pub fn is_elsewhere(&self) -> bool {
        !self.shares(Path::new("/"))
    }

    /// A setting of PHP, or a fact about it, by the names of `page.php`.
    pub fn says(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.said.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether it is a module of Apache.
    pub fn is_module(&self) -> bool {
        self.says("php").starts_with("apache2handler")
    }
}

/// The device of `path`, and the path on it (proc_pid_mountinfo(5)). Of several mounts, the last one is on top.
fn mounted(mountinfo: &str, path: &Path) -> Option<(String, PathBuf)> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(2);
        let [device, root, point] = [fields.next()?, fields.next()?, fields.next()?];
        let below = path.strip_prefix(point).ok()?;
        Some((point.len(), (device.to_owned(), Path::new(root).join(below))))
    });
    mounts.max_by_key(|(length, _)| *length).map(|(_, mounted)| mounted)
}

/// A path that another user chooses
pub fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// The text, if it needs no quotes in any configuration, and has only characters of a URL.
pub fn plain(text: &str) -> Result<&str, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    let refused = || format!("{text:?} has characters other than [A-Za-z0-9._/-]");
    text.bytes().all(is_plain).then_some(text).ok_or_else(refused)
}

/// A random number of 32 hexadecimal digits.
pub fn random() -> Result<String, String> {
    const UUID: &str = "/proc/sys/kernel/random/uuid";
    let uuid = fs::read_to_string(UUID).map_err(|error| format!("{UUID}: {error}"))?;
    Ok(uuid.trim().replace('-', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_known_by_its_device_and_its_path_there() {
        let all = "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n26 25 8:2 / /DATA rw - ext4 /dev/sdb1 rw\n";
        let private = "90 80 8:1 / / rw master:1 - ext4 /dev/sda1 rw\n91 90 8:2 / /DATA ro - ext4 /dev/sdb1 rw\n\
                       92 90 8:1 /tmp/systemd-private-1-php.service-2/tmp /tmp rw - ext4 /dev/sda1 rw\n\
                       93 90 8:1 /var/lib /var/lib ro - ext4 /dev/sda1 rw\n\
                       94 90 0:30 / /home ro - tmpfs tmpfs ro\n95 90 0:31 / /DATA/x rw - tmpfs x rw\n\
                       96 90 8:2 /x /DATA/x rw - ext4 /dev/sdb1 rw\n";
        for (folder, is_same) in [
            ("/var/lib/php/sessions", true),
            ("/srv/x", true),
            ("/DATA/x/Centros", true),
            ("/tmp/sessions", false),
            ("/tmpx", true),
            ("/home/a", false),
        ] {
            let [one, other] = [all, private].map(|mounts| mounted(mounts, Path::new(folder)));
            assert_eq!(one == other, is_same, "{folder}: {one:?} {other:?}");
        }
        assert_eq!(mounted("", Path::new("/")), None);
    }
}
