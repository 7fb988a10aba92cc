//! Names the file systems of the data and the sessions. Warns about file systems and mount options
//! that can lose changes; `docs/several-servers.md` says what was tested.

use std::path::Path;

use super::mount::{Mount, mount_of};
use super::report::{Level, Report};

/// What a folder is used for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    Data,
    Sessions,
}

/// Reports the file system of `folder`.
pub fn check(folder: &Path, content: Content, report: &mut Report) {
    let findings = mount_of(folder).map_or_else(
        |error| {
            let text = format!("the file system is unknown: /proc/self/mountinfo: {error}");
            vec![(Level::Hint, text)]
        },
        |mount| findings(&mount, content),
    );
    for (level, text) in findings {
        report.add(level, folder.display(), text);
    }
}

fn findings(mount: &Mount, content: Content) -> Vec<(Level, String)> {
    let kind = mount.kind.as_str();
    let is_data = content == Content::Data;
    let source = format!(" ({})", mount.source);
    let (level, rest) = match kind {
        "nfs" | "nfs4" | "ceph" | "fuse.ceph-fuse" => (Level::Ok, source.as_str()),
        "fuse.glusterfs" => (
            Level::Warning,
            ": if several servers mount it, ACKNOWLEDGED CHANGES AND SAVES BY PHP ARE LOST unless the \
             volume and each mount have the options in docs/several-servers.md#glusterfs",
        ),
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
        _ if is_remote(kind) => (
            Level::Warning,
            ", which was not tested: locks may not work, and changes by other servers may be \
             overwritten; use a local disk, NFS or CephFS",
        ),
        _ if is_data => (Level::Hint, ", which was not tested with power cuts"),
        _ => (Level::Ok, ""),
    };
    let mut findings = vec![(level, format!("the file system is {kind}{rest}"))];
    if kind.starts_with("nfs") {
        findings.extend(nfs(mount));
    }
    findings
}

/// Whether the file system is shared with other machines, or provided by a program (FUSE).
fn is_remote(kind: &str) -> bool {
    const REMOTE: &[&str] =
        &["9p", "afs", "beegfs", "cifs", "fuse", "gfs2", "lustre", "ocfs2", "smb3", "virtiofs"];
    REMOTE.contains(&kind) || kind.starts_with("fuse.")
}

/// Warns about options other than the tested ones (nfs(5)). The kernel shows `lookupcache=pos` for
/// `lookupcache=positive`.
fn nfs(mount: &Mount) -> Vec<(Level, String)> {
    let version = mount.options.split(',').find_map(|option| option.strip_prefix("vers="));
    let has = |options: &[&str]| mount.has_option(options);
    let differences = [
        (
            !version.is_some_and(|version| version.starts_with('4')),
            "has a version that was not tested; mount it with vers=4.2",
        ),
        (
            !has(&["lookupcache=pos", "lookupcache=none", "noac"]),
            "does not have lookupcache=positive, so a file that another server creates can stay \
             invisible here for up to a minute; add this option, unless only one server mounts it",
        ),
        (
            has(&["nocto"]),
            "has nocto, so changes by other servers may be missed and overwritten; remove this option, \
             unless only one server mounts it",
        ),
        (
            has(&["nolock", "local_lock=flock", "local_lock=all"]),
            "has local locks, which do not exclude writers on other servers, so their changes can be \
             overwritten; remove nolock and local_lock, unless only one server mounts it",
        ),
        (
            has(&["soft", "softerr"]),
            "is soft, so writes fail and can damage data when the NFS server is slow or restarts; \
             mount it with hard",
        ),
    ];
    let differences = differences.into_iter().filter(|(is_present, _)| *is_present);
    let text = |text| format!("the NFS mount {} {text}", mount.point);
    differences.map(|(_, difference)| (Level::Warning, text(difference))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(kind: &str, options: &str) -> Mount {
        let (kind, source) = (kind.to_owned(), "server:/menus".to_owned());
        Mount { point: "/srv".to_owned(), kind, source, options: options.to_owned() }
    }

    #[test]
    fn each_kind_of_file_system_has_its_finding() {
        use Level::{Hint, Ok, Warning};
        for (kinds, data, text, sessions) in [
            (&["ext4", "xfs", "btrfs"][..], Ok, "simulated power cuts", Ok),
            (&["tmpfs", "ramfs"], Warning, "a restart deletes all data", Ok),
            (&["overlay"], Warning, "together with the container", Ok),
            (&["vfat", "exfat", "ntfs3", "fuseblk"], Warning, "owners and permissions", Warning),
            (&["ceph", "fuse.ceph-fuse"], Ok, "(server:/menus)", Ok),
            (&["cifs", "9p", "fuse.sshfs"], Warning, "locks may not work", Warning),
            (&["fuse.glusterfs"], Warning, "docs/several-servers.md#glusterfs", Warning),
            (&["zfs", "ext3", "f2fs"], Hint, "not tested with power cuts", Ok),
        ] {
            for kind in kinds {
                let of = |content| findings(&mount(kind, "rw"), content).remove(0);
                let ((level, found), of_sessions) = (of(Content::Data), of(Content::Sessions));
                assert_eq!((level, of_sessions.0), (data, sessions), "{kind}");
                assert!(found.contains(text), "{found}");
            }
        }
    }

    #[test]
    fn nfs_options_that_were_not_tested_are_named() {
        // As the kernel shows a mount with lookupcache=positive.
        const TESTED: &str = "rw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.2,lookupcache=pos,local_lock=none,addr=10.0.0.1";
        for (old, new, warnings) in [
            ("", "", &[][..]),
            ("lookupcache=pos", "lookupcache=none", &[]),
            ("lookupcache=pos,", "", &["lookupcache=positive"]),
            ("hard,lookupcache=pos", "noac,hard", &[]),
            ("hard", "noac,hard", &[]),
            ("hard", "soft", &["is soft"]),
            ("hard", "softerr", &["is soft"]),
            ("hard", "nocto,hard", &["nocto"]),
            ("vers=4.2", "vers=4.0", &[]),
            ("vers=4.2", "vers=3", &["vers=4.2"]),
            ("vers=4.2,", "", &["vers=4.2"]),
            ("local_lock=none", "local_lock=posix", &[]),
            ("local_lock=none", "local_lock=flock", &["local locks"]),
            (
                "pos,local_lock=none",
                "all,nolock,local_lock=all",
                &["lookupcache=positive", "local locks"],
            ),
        ] {
            let options = TESTED.replace(old, new);
            let found = nfs(&mount("nfs4", &options));
            assert_eq!(found.len(), warnings.len(), "{options}: {found:#?}");
            for ((_, text), part) in found.iter().zip(warnings) {
                assert!(text.contains(part), "{text}");
            }
        }
    }
}
