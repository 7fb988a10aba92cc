//! Names the file systems of the data and the sessions. Warns about file systems and mount options
//! that can lose changes; `docs/several-servers.md` says what was tested.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::gluster;
use super::report::{Level, Report};

/// What a folder is used for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    Data,
    Sessions,
}

/// Reports the file system of `folder`.
pub fn check(folder: &Path, content: Content, report: &mut Report) {
    let findings = match mount_of(folder) {
        Ok(mount) if mount.kind == "fuse.glusterfs" => {
            findings(&mount, content).into_iter().chain(gluster::check(&mount)).collect()
        }
        Ok(mount) => findings(&mount, content),
        Err(error) => vec![Finding::new(
            Level::Hint,
            format!("the file system is unknown: /proc/self/mountinfo: {error}"),
        )],
    };
    for Finding { level, text, fix } in findings {
        report.add_with_fix(level, folder.display(), text, fix);
    }
}

/// What the report gets about a folder.
#[derive(Debug)]
pub struct Finding {
    pub level: Level,
    pub text: String,
    pub fix: Option<String>,
}

impl Finding {
    pub fn new(level: Level, text: impl Into<String>) -> Finding {
        Finding { level, text: text.into(), fix: None }
    }
}

/// A mount, from a line of `/proc/self/mountinfo` (proc(5)).
#[derive(Debug, Default, PartialEq)]
pub struct Mount {
    pub point: PathBuf,
    /// The type of the file system
    pub kind: String,
    pub source: String,
    /// The options of the file system, separated by commas
    pub options: String,
}

impl Mount {
    /// The mount with this id among the lines of `mountinfo`.
    fn find(mountinfo: &[u8], id: u64) -> Option<Mount> {
        let id = id.to_string();
        let mut lines = mountinfo.split(|&byte| byte == b'\n');
        lines.find_map(|line| {
            let mut fields = line.split(|&byte| byte == b' ');
            if fields.next()? != id.as_bytes() {
                return None;
            }
            let point = PathBuf::from(OsString::from_vec(unescaped(fields.nth(3)?)));
            // The number of fields before the hyphen varies.
            fields.find(|field| *field == b"-")?;
            let mut text =
                || Some(String::from_utf8_lossy(&unescaped(fields.next()?)).into_owned());
            Some(Mount { point, kind: text()?, source: text()?, options: text()? })
        })
    }

    fn has_option(&self, wanted: &[&str]) -> bool {
        self.options.split(',').any(|option| wanted.contains(&option))
    }
}

/// A field of mountinfo without its octal escapes, such as `\040` for a space.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let escape = digits.and_then(|digits| str::from_utf8(digits).ok());
        let byte = escape.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    bytes
}

/// The mount of `folder`, found by its id: mountinfo does not list the device of a Btrfs subvolume,
/// and a mount can hide another one with the same path.
fn mount_of(folder: &Path) -> io::Result<Mount> {
    let statx = statx(CWD, folder, AtFlags::empty(), StatxFlags::MNT_ID)?;
    let mountinfo = fs::read("/proc/self/mountinfo")?;
    // 0 before Linux 5.8
    let mount = Mount::find(&mountinfo, statx.stx_mnt_id);
    mount.ok_or_else(|| io::Error::other(format!("mount {} is not listed", statx.stx_mnt_id)))
}

fn findings(mount: &Mount, content: Content) -> Vec<Finding> {
    let kind = mount.kind.as_str();
    let name = format!("the file system is {kind}");
    let is_data = content == Content::Data;
    let (level, text) = match kind {
        "nfs" | "nfs4" | "fuse.glusterfs" => (Level::Ok, format!("{name} ({})", mount.source)),
        "ext4" | "xfs" | "btrfs" if is_data => {
            (Level::Ok, format!("{name}, which was tested with simulated power cuts"))
        }
        "ext4" | "xfs" | "btrfs" => (Level::Ok, name),
        "tmpfs" | "ramfs" if is_data => (
            Level::Warning,
            format!("{name}, which is in memory: a restart deletes all data; use a disk"),
        ),
        "overlay" if is_data => (
            Level::Warning,
            format!(
                "{name}, as in a container without a volume: the data is deleted together with the \
                 container; put it on a volume"
            ),
        ),
        "vfat" | "msdos" | "exfat" | "ntfs" | "ntfs3" | "fuseblk" => (
            Level::Warning,
            format!(
                "{name}, which does not store owners and permissions as Linux does, so PHP or \
                 comedor may lose access to files; use ext4, XFS or Btrfs"
            ),
        ),
        _ if is_remote(kind) => (
            Level::Warning,
            format!(
                "{name}, which was not tested: locks may not work, and changes by other servers may \
                 be overwritten; use a local disk, NFS or GlusterFS"
            ),
        ),
        _ if is_data => (Level::Hint, format!("{name}, which was not tested with power cuts")),
        _ => (Level::Ok, name),
    };
    let mut findings = vec![Finding::new(level, text)];
    if kind.starts_with("nfs") {
        findings.extend(nfs(mount));
    }
    findings
}

/// Whether the file system is shared with other machines, or provided by a program (FUSE).
fn is_remote(kind: &str) -> bool {
    const REMOTE: &[&str] = &[
        "9p", "afs", "beegfs", "ceph", "cifs", "fuse", "gfs2", "lustre", "ocfs2", "smb3",
        "virtiofs",
    ];
    REMOTE.contains(&kind) || kind.starts_with("fuse.")
}

/// Warns about options other than the tested ones (nfs(5)). The kernel shows `lookupcache=pos` for
/// `lookupcache=positive`.
fn nfs(mount: &Mount) -> Vec<Finding> {
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
    let text = |text| format!("the NFS mount {} {text}", mount.point.display());
    differences.map(|(_, difference)| Finding::new(Level::Warning, text(difference))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of real systems, with shortened paths.
    const MOUNTINFO: &str = r"21 26 0:20 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw
26 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
68 26 0:41 / /srv/menus rw,relatime - fuse.glusterfs gluster1:/menus/school rw,user_id=0,group_id=0,default_permissions,allow_other,max_read=131072
270 26 0:60 /x /srv/two\040words\134 rw,relatime shared:2 master:3 - btrfs /dev/sd\040a rw,space_cache=v2,subvol=/x
";

    fn mount(kind: &str, options: &str) -> Mount {
        let (kind, source) = (kind.to_owned(), "gluster1:/menus/school".to_owned());
        Mount { point: "/srv".into(), kind, source, options: options.to_owned() }
    }

    #[test]
    fn mount_is_found_by_its_id() {
        let found = |id| {
            Mount::find(MOUNTINFO.as_bytes(), id).map(|mount| {
                [mount.point.display().to_string(), mount.kind, mount.source, mount.options]
            })
        };
        assert_eq!(found(26).unwrap(), ["/", "ext4", "/dev/vda", "rw,discard"]);
        assert_eq!(
            found(68).unwrap()[..3],
            ["/srv/menus", "fuse.glusterfs", "gluster1:/menus/school"]
        );
        let unescaped = ["/srv/two words\\", "btrfs", "/dev/sd a", "rw,space_cache=v2,subvol=/x"];
        assert_eq!(found(270).unwrap(), unescaped);
        for id in [0, 2, 27] {
            assert_eq!(found(id), None);
        }
        for line in ["26", "26 1 254:0 / /", "26 1 254:0 / / rw - ext4 /dev/vda", "\\", ""] {
            assert_eq!(Mount::find(line.as_bytes(), 26), None, "{line}");
        }
        for (field, text) in
            [("\\", "\\"), ("\\04", "\\04"), ("\\777", "\\777"), ("\\08x", "\\08x")]
        {
            assert_eq!(unescaped_text(field), text);
        }
    }

    fn unescaped_text(field: &str) -> String {
        String::from_utf8(unescaped(field.as_bytes())).unwrap()
    }

    /// The level and text of each finding for data, then for sessions
    fn of_kind(kind: &str) -> [(Level, String); 2] {
        [Content::Data, Content::Sessions].map(|content| {
            let [finding] = &findings(&mount(kind, "rw"), content)[..] else { panic!("{kind}") };
            assert!(finding.text.starts_with(&format!("the file system is {kind}")));
            (finding.level, finding.text.clone())
        })
    }

    #[test]
    fn each_kind_of_file_system_has_its_finding() {
        use Level::{Hint, Ok, Warning};
        for (kinds, data, text, sessions) in [
            (&["ext4", "xfs", "btrfs"][..], Ok, "simulated power cuts", Ok),
            (&["tmpfs", "ramfs"], Warning, "a restart deletes all data", Ok),
            (&["overlay"], Warning, "together with the container", Ok),
            (&["vfat", "exfat", "ntfs3", "fuseblk"], Warning, "owners and permissions", Warning),
            (&["cifs", "ceph", "9p", "fuse.sshfs"], Warning, "locks may not work", Warning),
            (&["zfs", "ext3", "f2fs"], Hint, "not tested with power cuts", Ok),
        ] {
            for kind in kinds {
                let [of_data, of_sessions] = of_kind(kind);
                assert_eq!((of_data.0, of_sessions.0), (data, sessions), "{kind}");
                assert!(of_data.1.contains(text), "{}", of_data.1);
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
            for (found, part) in found.iter().zip(warnings) {
                assert!(found.text.contains(part), "{}", found.text);
            }
        }
    }
}
