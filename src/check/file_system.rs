//! Names the file systems of the data and the sessions. Warns about file systems and mount options
//! that can lose changes; `docs/several-servers.md` says what was tested.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::report::{Level, Report};

/// What a folder is used for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    Data,
    Sessions,
}

/// File systems that are shared with other machines, or provided by a program
const REMOTE: &[&str] =
    &["9p", "afs", "beegfs", "cifs", "fuse", "gfs2", "lustre", "ocfs2", "smb3", "virtiofs"];

/// Reports the file system of `folder`.
pub fn check(folder: &Path, content: Content, report: &mut Report) {
    let (level, text) = match mount_of(folder) {
        Ok([kind, source, options]) => finding(&kind, &source, &options, content),
        Err(error) => {
            let text = format!("the file system is unknown: /proc/self/mountinfo: {error}");
            (Level::Hint, text)
        }
    };
    report.add(level, folder.display(), text);
}

/// The type, the source and the options of the mount of `folder` (proc(5)), found by its id: mountinfo
/// does not list the device of a Btrfs subvolume, and a mount can hide another one with the same path.
fn mount_of(folder: &Path) -> io::Result<[String; 3]> {
    // 0 before Linux 5.8
    let id = statx(CWD, folder, AtFlags::empty(), StatxFlags::MNT_ID)?.stx_mnt_id;
    let mountinfo = fs::read("/proc/self/mountinfo")?;
    let mountinfo = String::from_utf8_lossy(&mountinfo);
    let line = mountinfo.lines().find(|line| line.starts_with(&format!("{id} ")));
    // The number of fields before the hyphen varies.
    let mount = line.and_then(|line| line.split_once(" - ")).and_then(|(_, fields)| {
        let fields: Vec<String> = fields.split(' ').map(str::to_owned).collect();
        fields.try_into().ok()
    });
    mount.ok_or_else(|| io::Error::other(format!("mount {id} is not listed")))
}

fn finding(kind: &str, source: &str, options: &str, content: Content) -> (Level, String) {
    let is_data = content == Content::Data;
    let source = format!(" ({source})");
    let (level, rest) = match kind {
        "nfs" | "nfs4" if !is_tested_nfs(options) => (
            Level::Warning,
            ", with other options than those in docs/several-servers.md#nfs: if several servers mount it, \
             changes can be missed and overwritten; with soft, a save can damage data",
        ),
        "nfs" | "nfs4" | "ceph" | "fuse.ceph-fuse" => (Level::Ok, source.as_str()),
        "ext4" | "xfs" | "btrfs" if is_data => {
            (Level::Ok, ", which was tested with simulated power cuts")
        }
        "ext4" | "xfs" | "btrfs" => (Level::Ok, ""),
        "tmpfs" | "ramfs" if is_data => {
            (Level::Warning, ", which is in memory: a restart deletes all data; use a disk")
        }
        "overlay" if is_data => (
            Level::Warning,
            ", as in a container without a volume: the data is deleted together with the container; put \
             it on a volume",
        ),
        "vfat" | "msdos" | "exfat" | "ntfs" | "ntfs3" | "fuseblk" => (
            Level::Warning,
            ", which does not store owners and permissions as Linux does, so PHP or comedor may lose \
             access to files; use ext4, XFS or Btrfs",
        ),
        _ if REMOTE.contains(&kind) || kind.starts_with("fuse.") => (
            Level::Warning,
            ", which was not tested: locks may not work, and changes by other servers may be \
             overwritten; use a local disk, NFS or CephFS",
        ),
        _ if is_data => (Level::Hint, ", which was not tested with power cuts"),
        _ => (Level::Ok, ""),
    };
    (level, format!("the file system is {kind}{rest}"))
}

/// Whether an NFS mount has options that were tested (nfs(5)). The kernel shows `lookupcache=positive`
/// as `lookupcache=pos`.
fn is_tested_nfs(options: &str) -> bool {
    let has = |wanted: &[&str]| options.split(',').any(|option| wanted.contains(&option));
    options.contains("vers=4")
        && has(&["lookupcache=pos", "lookupcache=none", "noac"])
        && !has(&["nocto", "nolock", "local_lock=flock", "local_lock=all", "soft", "softerr"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_file_system_has_its_finding() {
        use Level::{Hint, Ok, Warning};
        for (kinds, data, text, sessions) in [
            (&["ext4", "xfs", "btrfs"][..], Ok, "simulated power cuts", Ok),
            (&["tmpfs", "ramfs"], Warning, "a restart deletes all data", Ok),
            (&["overlay"], Warning, "together with the container", Ok),
            (&["vfat", "exfat", "ntfs3", "fuseblk"], Warning, "owners and permissions", Warning),
            (&["ceph", "fuse.ceph-fuse"], Ok, "(server:/menus)", Ok),
            (&["nfs", "nfs4"], Warning, "docs/several-servers.md#nfs", Warning),
            (&["cifs", "9p", "fuse.glusterfs"], Warning, "locks may not work", Warning),
            (&["zfs", "ext3", "f2fs"], Hint, "not tested with power cuts", Ok),
        ] {
            for kind in kinds {
                let of = |content| finding(kind, "server:/menus", "rw", content);
                let ((level, found), of_sessions) = (of(Content::Data), of(Content::Sessions));
                assert_eq!((level, of_sessions.0), (data, sessions), "{kind}");
                assert!(found.contains(text), "{found}");
            }
        }
    }

    #[test]
    fn nfs_is_correct_with_the_options_that_were_tested() {
        // As the kernel shows a mount with lookupcache=positive.
        const TESTED: &str = "rw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.2,lookupcache=pos,local_lock=none,addr=10.0.0.1";
        for (old, new, is_tested) in [
            ("", "", true),
            ("lookupcache=pos", "lookupcache=none", true),
            ("lookupcache=pos,", "", false),
            ("lookupcache=pos", "lookupcache=all", false),
            ("hard,lookupcache=pos", "noac,hard", true),
            ("hard", "soft", false),
            ("hard", "softerr", false),
            ("hard", "nocto,hard", false),
            ("vers=4.2", "vers=4.0", true),
            ("vers=4.2", "vers=3", false),
            ("local_lock=none", "local_lock=posix", true),
            ("local_lock=none", "local_lock=flock", false),
            ("local_lock=none", "nolock,local_lock=all", false),
        ] {
            assert_eq!(is_tested_nfs(&TESTED.replace(old, new)), is_tested, "{old} {new}");
        }
    }
}
