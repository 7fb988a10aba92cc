//! Checks the folders of the settings, and the Redis server of the sessions: whether the user of this process can
//! reach them, and whether their file systems are suitable; `docs/several-servers.md` says what was tested.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags, StatxFlags, access, statvfs, statx};
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};

use super::guide::{Heading, SERVICE};
use super::kinds::Kind;
use super::report::Report;
use super::umask::Modes;
use crate::config::{Config, SESSION_DIR, Setting, Settings, Source};
use crate::session::redis::probe;
use crate::session::{Address, RedisServer, SavePath};
use crate::store::folder::Folder;
use crate::store::layout::folder_of;
use crate::sys::accounts::{self, owner_of, user_name};

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
    pub report: &'r Report,
    /// When the look at the data must end
    pub end: Instant,
    pub aularios: usize,
    pub days: usize,
    /// The modes of their files
    pub modes: Modes,
    /// What a save in the current aulario needs and the user may not use
    pub closed: Counted<Closed>,
}

/// A path that the user may not use as a save needs
pub struct Closed {
    pub path: PathBuf,
    pub why: String,
    pub heading: Option<Heading>,
}

/// How many there are, of which only the first is kept.
pub struct Counted<T> {
    pub first: Option<T>,
    pub count: usize,
}

impl<T> Default for Counted<T> {
    fn default() -> Counted<T> {
        Counted {
            first: None,
            count: 0,
        }
    }
}

impl<T> Counted<T> {
    pub fn add(&mut self, item: T) {
        self.first.get_or_insert(item);
        self.count += 1;
    }
}

/// What a folder is for
#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    Data,
    Sessions,
}

impl<'r> Survey<'r> {
    pub fn new(
        config: &'r Config,
        settings: &'r Settings,
        user: String,
        report: &'r Report,
        end: Instant,
    ) -> Survey<'r> {
        Survey {
            config,
            settings,
            user,
            report,
            end,
            aularios: 0,
            days: 0,
            modes: Modes::default(),
            closed: Counted::default(),
        }
    }

    /// Checks the folder or the server of the sessions.
    pub fn sessions(&self) {
        match &self.config.session.save_path {
            SavePath::Files(sessions) => {
                if self.reaches(&sessions.folder, "the session folder", &SESSION_DIR) {
                    self.file_system(&sessions.folder, Purpose::Sessions);
                    self.exposure(&sessions.folder);
                }
            }
            SavePath::Redis(server) => {
                self.redis(server);
                self.password(server);
            }
        }
    }

    /// Warns about a session folder that gives every user of this machine the sessions of others. In Debian's folder
    /// (mode 1733) everyone may create files, but neither list nor replace the files of others. The folder of the
    /// released image is open, for PHP of any user, and the container has no other users.
    fn exposure(&self, folder: &Path) {
        const STICKY: u32 = 0o1000;
        const WRITE: u32 = 0o002;
        const LIST: u32 = 0o004;
        let mode = fs::metadata(folder).map_or(0, |folder| folder.mode());
        let what = if mode & WRITE == 0 || !accounts::exist() {
            return;
        } else if mode & STICKY == 0 {
            "replace session files here, so they can act as any user of the application"
        } else if mode & LIST != 0 {
            "list the session ids here, which work like passwords"
        } else {
            return;
        };
        let heading = Heading::SessionFolder;
        let text = format!(
            "all users of this machine can {what}{}{heading}",
            owner_of(folder)
        );
        self.add(Kind::SessionsExposed, folder, text);
    }

    /// Whether this user can enter `folder`, which is `what` of the `setting`, and every folder above it.
    pub fn reaches(&self, folder: &Path, what: &str, setting: &Setting) -> bool {
        let mut parts: Vec<&Path> = folder.ancestors().collect();
        parts.reverse();
        for path in parts {
            self.report.looks_at(path);
            let Err(error) = access(path.join("."), Access::EXEC_OK) else {
                continue;
            };
            let error = io::Error::from(error);
            let help = help(path, &error);
            let user = &self.user;
            let setting = setting.name;
            let text = format!("{user} cannot reach {what} ({setting}): {error}{help}");
            self.add(Kind::FolderUnreachable, path, text);
            return false;
        }
        true
    }

    /// Names the file system of `folder`, with the data or the sessions, and why it cannot be changed.
    pub fn file_system(&self, folder: &Path, purpose: Purpose) {
        let found = file_system(kind_of(folder).as_deref().unwrap_or("unknown"), purpose);
        self.add(found.kind, folder, found.text);
        if purpose == Purpose::Data {
            self.flushes(folder);
        }
        let Ok(mount) = statvfs(folder) else { return };
        // access(2) would name a missing permission first.
        if mount.f_flag.contains(StatVfsMountFlags::RDONLY) {
            let heading = Heading::Disk;
            let text = format!("is read-only for this process, so requests fail{heading}");
            self.add(Kind::ReadOnly, folder, text);
        }
        // Some file systems have no limit of files, or do not know their size, and give 0 for all numbers.
        let has_no_space = mount.f_blocks > 0 && mount.f_bavail == 0;
        let has_no_files = mount.f_files > 0 && mount.f_favail == 0;
        if purpose == Purpose::Data && (has_no_space || has_no_files) {
            let heading = Heading::Disk;
            let text = format!("the disk is full, so no menu can be saved{heading}");
            self.add(Kind::DiskFull, folder, text);
        }
    }

    /// Warns about a folder that cannot be flushed.
    pub fn flushes(&self, folder: &Path) {
        let flushed = Folder::open(folder).and_then(|folder| folder.flush());
        if matches!(flushed, Ok(false)) {
            let text = "cannot be flushed, by its file system or because this user may not list it: a power cut can \
                        undo saves in it that were answered as successful";
            self.add(Kind::FolderNotFlushed, folder, text);
        }
    }

    /// Checks that the server answers and accepts the commands of a request.
    fn redis(&self, server: &RedisServer) {
        if let Address::Unix(path) = &server.address
            && !self.reaches(folder_of(path), "the socket of Redis", &SESSION_DIR)
        {
            return;
        }
        match probe(server, self.config.session.lifetime) {
            Ok(()) => {
                let text = "Redis answers and accepts the commands of a request";
                self.report.add(Kind::Redis, server, text);
            }
            Err(fault) => {
                let effect = "every request fails with INTERNAL_ERROR";
                let until = "until this is fixed (docs/several-servers.md#set-up-redis)";
                let text = format!("{fault}; {until}, {effect}");
                self.report.add(Kind::RedisFails, server, text);
            }
        }
    }

    /// Warns about a file of settings with a password that every user can read.
    fn password(&self, server: &RedisServer) {
        let Source::Line { path, .. } = self.settings.source(&SESSION_DIR) else {
            return;
        };
        if server.login.is_some() && fs::metadata(path).is_ok_and(|file| file.mode() & 0o004 != 0) {
            let text = "every user of this machine can read the password of Redis in this file; give it mode 640 \
                        and PHP's group (docs/several-servers.md#set-up-redis)";
            self.add(Kind::PasswordReadable, path, text);
        }
    }

    /// Reports a root that cannot save the files of other users, as in a container.
    pub fn capabilities(&self, centros: &Path) {
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
            let text = format!(
                "root lacks some of the {needed}, so it cannot save files of {owner}, unless all users may write them"
            );
            self.add(Kind::CapabilitiesMissing, centros, text);
        }
    }

    pub fn add(&self, kind: Kind, path: &Path, text: impl ToString) {
        self.report.add(kind, path.display(), text);
    }
}

/// Where to read on if the user cannot enter `folder`.
fn help(folder: &Path, error: &io::Error) -> String {
    let is_hidden = || fs::metadata(folder).is_ok_and(|folder| folder.mode() & 0o777 == 0);
    match Heading::for_error(error) {
        None => String::new(),
        // systemd.exec(5): ProtectHome= shows another folder instead.
        Some(_) if is_hidden() => format!("; if systemd hides it, set ProtectHome=no ({SERVICE})"),
        Some(heading) => format!("{}{heading}", owner_of(folder)),
    }
}

/// The type of the mount of `folder` (proc(5)), found by its id: mountinfo does not list the device of a Btrfs
/// subvolume, and a mount can hide another one with the same path.
fn kind_of(folder: &Path) -> Option<String> {
    // 0 before Linux 5.8
    let id = statx(CWD, folder, AtFlags::empty(), StatxFlags::MNT_ID)
        .ok()?
        .stx_mnt_id;
    let mountinfo = fs::read("/proc/self/mountinfo").ok()?;
    let mountinfo = String::from_utf8_lossy(&mountinfo);
    let line = mountinfo
        .lines()
        .find(|line| line.starts_with(&format!("{id} ")))?;
    // The number of fields before the hyphen varies.
    line.split_once(" - ")?
        .1
        .split(' ')
        .next()
        .map(str::to_owned)
}

/// What is said of a file system
struct Suitability {
    kind: Kind,
    text: String,
}

/// What is said of a file system of the type `name`, with the data or the sessions.
fn file_system(name: &str, purpose: Purpose) -> Suitability {
    let is_data = purpose == Purpose::Data;
    let (kind, rest) = match name {
        "nfs" | "nfs4" => (
            Kind::FileSystemUnproven,
            ": if several servers mount it, see docs/several-servers.md#nfs",
        ),
        "unknown" => (
            Kind::FileSystemUnproven,
            ": /proc/self/mountinfo does not tell it",
        ),
        "ceph" | "fuse.ceph-fuse" => (Kind::FileSystem, ""),
        "ext4" | "xfs" | "btrfs" if is_data => (
            Kind::FileSystem,
            ", which was tested with simulated power cuts",
        ),
        "tmpfs" | "ramfs" | "overlay" if is_data => (
            Kind::FileSystemVolatile,
            ", so a restart, or the end of its container, deletes the data: use a disk or a volume",
        ),
        _ if OTHERS.contains(&name) || name.starts_with("fuse") => (
            Kind::FileSystemUntested,
            ", which was not tested: changes, or access to files, may be lost; use a local ext4, XFS or Btrfs, \
             or NFS or CephFS",
        ),
        _ if is_data => (
            Kind::FileSystemUnproven,
            ", which was not tested with power cuts",
        ),
        _ => (Kind::FileSystem, ""),
    };
    Suitability {
        kind,
        text: format!("the file system is {name}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// File systems, and what is found about one of them.
    struct Expected {
        names: &'static [&'static str],
        with_data: Kind,
        text: &'static str,
        with_sessions: Kind,
    }

    const EXPECTED: [Expected; 7] = [
        Expected {
            names: &["ext4", "xfs", "btrfs"],
            with_data: Kind::FileSystem,
            text: "simulated power cuts",
            with_sessions: Kind::FileSystem,
        },
        Expected {
            names: &["tmpfs", "ramfs", "overlay"],
            with_data: Kind::FileSystemVolatile,
            text: "deletes the data",
            with_sessions: Kind::FileSystem,
        },
        Expected {
            names: &["ceph", "fuse.ceph-fuse"],
            with_data: Kind::FileSystem,
            text: "ceph",
            with_sessions: Kind::FileSystem,
        },
        Expected {
            names: &["unknown"],
            with_data: Kind::FileSystemUnproven,
            text: "does not tell it",
            with_sessions: Kind::FileSystemUnproven,
        },
        Expected {
            names: &["nfs", "nfs4"],
            with_data: Kind::FileSystemUnproven,
            text: "several-servers.md#nfs",
            with_sessions: Kind::FileSystemUnproven,
        },
        Expected {
            names: &["cifs", "fuse.glusterfs", "fuseblk", "vfat"],
            with_data: Kind::FileSystemUntested,
            text: "may be lost",
            with_sessions: Kind::FileSystemUntested,
        },
        Expected {
            names: &["zfs", "ext3", "f2fs"],
            with_data: Kind::FileSystemUnproven,
            text: "not tested with power cuts",
            with_sessions: Kind::FileSystem,
        },
    ];

    #[test]
    fn each_kind_of_file_system_has_its_finding() {
        for expected in EXPECTED {
            for name in expected.names {
                let data = file_system(name, Purpose::Data);
                assert_eq!(data.kind, expected.with_data, "{name}");
                assert!(data.text.contains(expected.text), "{}", data.text);
                let sessions = file_system(name, Purpose::Sessions);
                assert_eq!(sessions.kind, expected.with_sessions, "{name}");
            }
        }
    }
}
