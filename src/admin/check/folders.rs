//! Checks the folders of the settings, and the Redis server of the sessions: whether the user of this process can
//! reach them, and whether their file systems are suitable; `docs/network-storage.md` says what was tested.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags, StatxFlags, access, statvfs, statx};
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};

use super::report::{Level, Report};
use crate::admin::accounts::{owner_of, user_name};
use crate::admin::guide::{self, SERVICE};
use crate::admin::limited::limited;
use crate::config::{Config, SESSION_DIR, Setting, Settings, Source};
use crate::session::redis::probe;
use crate::session::{Address, RedisServer, SavePath};
use crate::store::data_file::parent;

/// The time for the folder of sessions, and for that of the data, to answer.
const TIME: Duration = Duration::from_secs(4);

/// File systems that are shared with other machines, provided by a program, or made for other systems
const OTHERS: &[&str] = &[
    "9p", "afs", "beegfs", "cifs", "exfat", "gfs2", "lustre", "msdos", "ntfs", "ntfs3", "ocfs2",
    "smb3", "vfat", "virtiofs",
];

/// A look at the sessions and the data
pub struct Survey<'r> {
    pub config: &'r Config,
    pub settings: &'r Settings,
    /// The name of the user of this process
    pub user: String,
    pub report: &'r mut Report,
    /// When the look at the data must end
    pub end: Instant,
    pub aularios: usize,
    pub days: usize,
    /// What a save in the current aulario needs and the user may not use: the first path, why, and the number
    pub closed: Option<(PathBuf, io::Error, usize)>,
}

impl Survey<'_> {
    /// Checks the folder or the server of the sessions.
    pub fn sessions(&mut self) {
        match &self.config.session.save_path {
            SavePath::Files(sessions) => {
                if self.reaches(&sessions.folder, "the session folder", &SESSION_DIR) {
                    self.file_system(&sessions.folder, false);
                }
            }
            SavePath::Redis(server) => {
                self.redis(server);
                self.password(server);
            }
        }
    }

    /// Whether this user can enter `folder`, which is `what` of the `setting`, and every folder above it.
    pub fn reaches(&mut self, folder: &Path, what: &str, setting: &Setting) -> bool {
        let end = Instant::now() + TIME;
        let mut parts: Vec<&Path> = folder.ancestors().collect();
        parts.reverse();
        for path in parts {
            let inside = path.join(".");
            let entered = limited(end, move || Ok(access(&inside, Access::EXEC_OK)?));
            let Err(error) = entered else { continue };
            let is_hidden = || fs::metadata(path).is_ok_and(|folder| folder.mode() & 0o777 == 0);
            let help = match guide::help(&error) {
                // Its file system may not answer.
                "" => String::new(),
                // systemd.exec(5): ProtectHome= shows another folder instead.
                _ if is_hidden() => {
                    format!("; if systemd hides it, set ProtectHome=no ({SERVICE})")
                }
                help => owner_of(path) + help,
            };
            let (user, setting) = (&self.user, setting.name);
            let text = format!("{user} cannot reach {what} ({setting}): {error}{help}");
            self.add(Level::Error, path, text);
            return false;
        }
        true
    }

    /// Names the file system of `folder`, with the data or the sessions. Reports if it is read-only here.
    pub fn file_system(&mut self, folder: &Path, is_data: bool) {
        let (level, rest) = finding(kind_of(folder).as_deref().unwrap_or("unknown"), is_data);
        self.add(level, folder, format!("the file system is {rest}"));
        // access(2) would name a missing permission first.
        if statvfs(folder).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY)) {
            let text = format!("is read-only for this process, so requests fail{}", guide::DISK);
            self.add(Level::Error, folder, text);
        }
    }

    /// Checks that the server answers and accepts the commands of a request.
    fn redis(&mut self, server: &RedisServer) {
        if let Address::Unix(path) = &server.address
            && !self.reaches(parent(path), "the socket of Redis", &SESSION_DIR)
        {
            return;
        }
        let (level, text) = match probe(server, self.config.session.lifetime) {
            Ok(()) => (Level::Ok, "Redis answers and accepts the commands of a request".to_owned()),
            Err(fault) => {
                let effect = "every request fails with INTERNAL_ERROR";
                let until = "until this is fixed (docs/redis.md#set-up)";
                (Level::Error, format!("{fault}; {until}, {effect}"))
            }
        };
        self.report.add(level, server, text);
    }

    /// Warns about a file of settings with a password that every user can read.
    fn password(&mut self, server: &RedisServer) {
        let Source::Line { path, .. } = self.settings.source(&SESSION_DIR) else { return };
        if server.login.is_some() && fs::metadata(path).is_ok_and(|file| file.mode() & 0o004 != 0) {
            let text = "every user of this machine can read the password of Redis in this file; give it mode 640 \
                        and PHP's group (docs/redis.md#set-up)";
            self.add(Level::Warning, path, text);
        }
    }

    /// Reports a root that cannot save the files of other users, as in a container.
    pub fn capabilities(&mut self, centros: &Path) {
        let owner = fs::metadata(centros).map_or(0, |folder| folder.uid());
        // It sets their owner, reaches them, sets their mode, and takes a lease (capabilities(7)).
        let needed = CapabilitySet::CHOWN
            | CapabilitySet::DAC_OVERRIDE
            | CapabilitySet::FOWNER
            | CapabilitySet::LEASE;
        let lacks_some = || capabilities(None).is_ok_and(|own| !own.effective.contains(needed));
        if owner != 0 && geteuid().is_root() && lacks_some() {
            let needed = "capabilities CHOWN, DAC_OVERRIDE, FOWNER and LEASE (cap_add)";
            let owner = user_name(owner);
            let text =
                format!("root lacks some of the {needed}, so it cannot save files of {owner}");
            self.add(Level::Error, centros, text);
        }
    }
}

/// The type of the mount of `folder` (proc(5)), found by its id: mountinfo does not list the device of a Btrfs
/// subvolume, and a mount can hide another one with the same path.
fn kind_of(folder: &Path) -> Option<String> {
    // 0 before Linux 5.8
    let id = statx(CWD, folder, AtFlags::empty(), StatxFlags::MNT_ID).ok()?.stx_mnt_id;
    let mountinfo = fs::read("/proc/self/mountinfo").ok()?;
    let mountinfo = String::from_utf8_lossy(&mountinfo);
    let line = mountinfo.lines().find(|line| line.starts_with(&format!("{id} ")))?;
    // The number of fields before the hyphen varies.
    line.split_once(" - ")?.1.split(' ').next().map(str::to_owned)
}

fn finding(kind: &str, is_data: bool) -> (Level, String) {
    let (level, rest) = match kind {
        "nfs" | "nfs4" => {
            (Level::Hint, ": if several servers mount it, see docs/network-storage.md#nfs")
        }
        "unknown" => (Level::Hint, ": /proc/self/mountinfo does not tell it"),
        "ceph" | "fuse.ceph-fuse" => (Level::Ok, ""),
        "ext4" | "xfs" | "btrfs" if is_data => {
            (Level::Ok, ", which was tested with simulated power cuts")
        }
        "tmpfs" | "ramfs" | "overlay" if is_data => (
            Level::Warning,
            ", so a restart, or the end of its container, deletes the data: use a disk or a volume",
        ),
        _ if OTHERS.contains(&kind) || kind.starts_with("fuse") => (
            Level::Warning,
            ", which was not tested: changes, or access to files, may be lost; use a local ext4, XFS or Btrfs, \
             or NFS or CephFS",
        ),
        _ if is_data => (Level::Hint, ", which was not tested with power cuts"),
        _ => (Level::Ok, ""),
    };
    (level, format!("{kind}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_file_system_has_its_finding() {
        use Level::{Hint, Ok, Warning};
        for (kinds, data, text, sessions) in [
            (&["ext4", "xfs", "btrfs"][..], Ok, "simulated power cuts", Ok),
            (&["tmpfs", "ramfs", "overlay"], Warning, "deletes the data", Ok),
            (&["ceph", "fuse.ceph-fuse"], Ok, "ceph", Ok),
            (&["unknown"], Hint, "does not tell it", Hint),
            (&["nfs", "nfs4"], Hint, "docs/network-storage.md#nfs", Hint),
            (&["cifs", "fuse.glusterfs", "fuseblk", "vfat"], Warning, "may be lost", Warning),
            (&["zfs", "ext3", "f2fs"], Hint, "not tested with power cuts", Ok),
        ] {
            for kind in kinds {
                let ((level, found), (of_sessions, _)) =
                    (finding(kind, true), finding(kind, false));
                assert_eq!((level, of_sessions), (data, sessions), "{kind}");
                assert!(found.contains(text), "{found}");
            }
        }
    }
}
