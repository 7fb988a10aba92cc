//! Names the file systems of the data and the sessions. Warns about those that can lose changes;
//! `docs/network-storage.md` says what was tested.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatVfsMountFlags, StatxFlags, statvfs, statx};

use super::report::{Level, Report};
use crate::admin::guide;

/// File systems that are shared with other machines, provided by a program, or made for other systems
const OTHERS: &[&str] = &[
    "9p", "afs", "beegfs", "cifs", "exfat", "gfs2", "lustre", "msdos", "ntfs", "ntfs3", "ocfs2",
    "smb3", "vfat", "virtiofs",
];

/// Names the file system of `folder`, which has the data or the sessions. Reports if it is read-only for this process.
pub fn check(folder: &Path, is_data: bool, report: &mut Report) {
    let (level, rest) = match &kind_of(folder) {
        Ok(kind) => finding(kind, is_data),
        Err(error) => (Level::Hint, format!("unknown: /proc/self/mountinfo: {error}")),
    };
    report.add(level, folder.display(), format!("the file system is {rest}"));
    // access(2) would name a missing permission first.
    if statvfs(folder).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY)) {
        let text = format!("is read-only for this process, so requests fail{}", guide::DISK);
        report.add(Level::Error, folder.display(), text);
    }
}

/// The type of the mount of `folder` (proc(5)), found by its id: mountinfo does not list the device of a Btrfs
/// subvolume, and a mount can hide another one with the same path.
fn kind_of(folder: &Path) -> io::Result<String> {
    // 0 before Linux 5.8
    let id = statx(CWD, folder, AtFlags::empty(), StatxFlags::MNT_ID)?.stx_mnt_id;
    let mountinfo = fs::read("/proc/self/mountinfo")?;
    let mountinfo = String::from_utf8_lossy(&mountinfo);
    let line = mountinfo.lines().find(|line| line.starts_with(&format!("{id} ")));
    // The number of fields before the hyphen varies.
    let kind = line.and_then(|line| line.split_once(" - ")?.1.split(' ').next());
    kind.map(str::to_owned).ok_or_else(|| io::Error::other(format!("mount {id} is not listed")))
}

fn finding(kind: &str, is_data: bool) -> (Level, String) {
    let (level, rest) = match kind {
        "nfs" | "nfs4" => {
            (Level::Hint, ": if several servers mount it, see docs/network-storage.md#nfs")
        }
        "ceph" | "fuse.ceph-fuse" => (Level::Ok, ""),
        "ext4" | "xfs" | "btrfs" if is_data => {
            (Level::Ok, ", which was tested with simulated power cuts")
        }
        "tmpfs" | "ramfs" | "overlay" if is_data => (
            Level::Warning,
            ", which is in memory or in a container: the data is deleted together with it; use a disk or a volume",
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
            (&["tmpfs", "ramfs", "overlay"], Warning, "in memory or in a container", Ok),
            (&["ceph", "fuse.ceph-fuse"], Ok, "ceph", Ok),
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
