//! The PHP that runs the script.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::admin::accounts;
use crate::sys::process::{Credentials, peer};

/// The process of PHP that answered.
#[derive(Debug)]
pub struct Php {
    pub user: Credentials,
    /// What it says: PHP's settings in the script, in lines `name=value`
    said: String,
    /// Whether `/` is another folder for it
    pub is_elsewhere: bool,
    /// Its mounts, as in `/proc/self/mountinfo`
    mounts: String,
}

impl Php {
    /// The process at the other end of `stream`, which has said this and waits for an answer. The error says what
    /// it could not tell.
    pub(super) fn of(mut stream: UnixStream, said: &[u8]) -> Result<Php, String> {
        let peer = peer(&stream).map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(said).into_owned();
        let user = accounts::of_process(&peer.pid.to_string());
        // After connecting, it may have executed a program with the rights of another group (setgid).
        let user = user.filter(|user| (user.uid, user.gid) == (peer.uid, peer.gid));
        let user = user.unwrap_or(Credentials { uid: peer.uid, gid: peer.gid, groups: vec![] });
        let root = PathBuf::from(format!("/proc/{}/root/", peer.pid));
        let is_elsewhere = id(&root).is_none_or(|seen| Some(seen) != id(Path::new("/")));
        let mounts =
            fs::read_to_string(format!("/proc/{}/mountinfo", peer.pid)).unwrap_or_default();
        // It has waited for this.
        _ = stream.write_all(b"\n");
        match said.ends_with("\n\n") || is_elsewhere {
            true => Ok(Php { user, said, is_elsewhere, mounts }),
            false => Err("PHP fails while it tells its settings: has its disable_functions \
                          session_module_name, session_save_path, session_name or ini_get?"
                .to_owned()),
        }
    }

    /// Whether this path is the same folder for other processes: its service may have a `/tmp` of its own.
    pub fn shares(&self, folder: &Path) -> bool {
        let own = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let seen = mounted(&self.mounts, folder);
        seen.is_none() || seen == mounted(&own, folder)
    }

    /// A setting of PHP, or a fact about it, by the names of `page.php`.
    pub fn says(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
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

fn id(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).map(|folder| (folder.dev(), folder.ino())).ok()
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
