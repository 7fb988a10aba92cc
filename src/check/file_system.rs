//! Names the file systems of the data and the sessions. Warns about file systems and mount options
//! that can lose changes; `docs/several-servers.md` says what was tested.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::report::{Level, Report};
use super::user::quoted;
use crate::files::{self, Fault};

/// What a folder is used for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    Data,
    Sessions,
}

/// Reports the file system of `folder`.
pub fn check(folder: &Path, content: Content, report: &mut Report) {
    let findings = match mount_of(folder) {
        Ok(mount) => findings(&mount, content, || GlusterClient::at(&mount.point)),
        Err(error) => vec![Finding::new(
            Level::Hint,
            format!("the file system is unknown: /proc/self/mountinfo: {error}"),
        )],
    };
    for Finding { level, text, fix } in findings {
        report.add_with_fix(level, folder.display(), text, fix);
    }
}

#[derive(Debug)]
struct Finding {
    level: Level,
    text: String,
    fix: Option<String>,
}

impl Finding {
    fn new(level: Level, text: impl Into<String>) -> Finding {
        Finding { level, text: text.into(), fix: None }
    }
}

/// A mount, from a line of `/proc/self/mountinfo` (proc(5)).
#[derive(Debug, PartialEq)]
struct Mount {
    point: PathBuf,
    /// The type of the file system
    kind: String,
    source: String,
    /// The options of the file system, separated by commas
    options: String,
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

fn findings(
    mount: &Mount,
    content: Content,
    gluster_client: impl FnOnce() -> Result<GlusterClient, Fault>,
) -> Vec<Finding> {
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
    match kind {
        "nfs" | "nfs4" => findings.extend(nfs(mount)),
        "fuse.glusterfs" => findings.extend(gluster(mount, gluster_client())),
        _ => {}
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
             invisible here for up to 30 seconds; add this option, unless only one server mounts it",
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

/// The settings in use of the client of a Gluster mount, from `.meta` of the mount point.
#[derive(Debug)]
struct GlusterClient {
    /// Its command line, as JSON
    command: String,
    /// Its active translators: the name of the volume, a hyphen and the kind
    translators: Vec<String>,
}

impl GlusterClient {
    fn at(point: &Path) -> Result<GlusterClient, Fault> {
        let meta = point.join(".meta");
        // Another program can claim to be Gluster (FUSE), and have a FIFO or an endless file there.
        let file = files::open(OpenOptions::new().read(true), &meta.join("cmdline"))?;
        let command = String::from_utf8_lossy(&files::read(&file)?.0).into_owned();
        let entries = fs::read_dir(meta.join("graphs/active"))?;
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        Ok(GlusterClient { command, translators: entries.map(name).collect::<Result<_, _>>()? })
    }

    /// The volume options that are on and must be off: these translators cache files and attributes
    /// and do not notice changes by other servers.
    fn caches(&self) -> Vec<&'static str> {
        const CACHES: [(&str, &str); 5] = [
            ("-quick-read", "performance.quick-read"),
            ("-md-cache", "performance.stat-prefetch"),
            ("-io-cache", "performance.io-cache"),
            ("-read-ahead", "performance.read-ahead"),
            ("-nl-cache", "performance.nl-cache"),
        ];
        let is_active = |kind: &str| self.translators.iter().any(|name| name.ends_with(kind));
        CACHES.into_iter().filter(|(kind, _)| is_active(kind)).map(|(_, option)| option).collect()
    }

    /// The mount options that differ from the tested ones. The defaults are those of
    /// `glusterfs --help`.
    fn wrong_options(&self) -> Vec<String> {
        const OPTIONS: [(&str, &str, &str); 4] = [
            ("attribute-timeout", "1", "0"),
            ("entry-timeout", "1", "0"),
            ("negative-timeout", "0", "0"),
            ("auto-invalidation", "on", "on"),
        ];
        let value = |name: &str| {
            let mut words = self.command.split([' ', '"']);
            words.find_map(|word| word.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
        };
        let is_wrong = |(name, default, tested): &(&str, &str, &str)| {
            value(name).unwrap_or(default) != *tested
        };
        let wrong = OPTIONS.into_iter().filter(is_wrong);
        wrong.map(|(name, _, tested)| format!("{name}={tested}")).collect()
    }
}

/// Warns about settings other than the tested ones.
fn gluster(mount: &Mount, client: Result<GlusterClient, Fault>) -> Option<Finding> {
    const EFFECT: &str = "if several servers mount this volume, ACKNOWLEDGED CHANGES AND SAVES BY PHP \
                          ARE LOST";
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            let text = format!(
                "the settings of the Gluster mount {} cannot be read here (.meta: {error}); {EFFECT} \
                 unless performance.quick-read and performance.stat-prefetch are off and it is \
                 mounted with attribute-timeout=0,entry-timeout=0,auto-invalidation=on",
                mount.point.display()
            );
            return Some(Finding::new(Level::Warning, text));
        }
    };
    let (caches, options) = (client.caches(), client.wrong_options());
    let mut changes = Vec::new();
    if !options.is_empty() {
        changes.push(format!("mount it with {}", options.join(",")));
    }
    if !caches.is_empty() {
        changes.push(format!("turn off {} on a Gluster server", caches.join(" and ")));
    }
    if changes.is_empty() {
        return None;
    }
    let text = format!(
        "the Gluster mount {} does not have the tested settings; {EFFECT}, as in tests with Gluster's \
         defaults; {}, unless only one server mounts it",
        mount.point.display(),
        changes.join(", and ")
    );
    // The source is `SERVER:/VOLUME`, or `SERVER:/VOLUME/FOLDER`.
    let volume = mount.source.split_once(":/").and_then(|(_, path)| path.split('/').next());
    let commands = volume.map(|volume| {
        let volume = quoted(Path::new(volume));
        let command = |option| format!("sudo gluster volume set {volume} {option} off");
        caches.into_iter().map(command).collect::<Vec<_>>().join(" && ")
    });
    let fix = commands.filter(|commands| !commands.is_empty());
    Some(Finding { level: Level::Warning, text, fix })
}

#[cfg(test)]
mod tests {
    use rustix::fs::{FileType, Mode, mknodat};

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
            let unused = || -> Result<GlusterClient, Fault> { unreachable!() };
            let [finding] = &findings(&mount(kind, "rw"), content, unused)[..] else {
                panic!("{kind}")
            };
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

    /// The changes and the command in the finding about a Gluster mount
    #[track_caller]
    fn gluster_finding(options: &str, translators: &[&str]) -> Option<(String, Option<String>)> {
        let command = format!(
            "{{ \n  \"Cmdlinestr\": \"/usr/sbin/glusterfs {options} --volfile-id=/menus /srv\"\n}}"
        );
        let translators = translators.iter().map(|kind| format!("menus-{kind}")).collect();
        let finding =
            gluster(&mount("fuse.glusterfs", "rw"), Ok(GlusterClient { command, translators }))?;
        assert!(finding.text.contains("ACKNOWLEDGED CHANGES AND SAVES BY PHP ARE LOST"));
        let changes = finding.text.rsplit("; ").next().unwrap();
        Some((changes.strip_suffix(", unless only one server mounts it")?.to_owned(), finding.fix))
    }

    #[test]
    fn gluster_settings_that_were_not_tested_are_named_with_the_change() {
        const TESTED: &str = "--auto-invalidation=on --attribute-timeout=0 --entry-timeout=0";
        let others = ["client-0", "dht", "open-behind", "write-behind"];
        assert_eq!(gluster_finding(TESTED, &others), None);
        assert_eq!(gluster_finding("--attribute-timeout=0 --entry-timeout=0", &others), None);
        for (options, text) in [
            ("", "mount it with attribute-timeout=0,entry-timeout=0"),
            ("--attribute-timeout=0 --entry-timeout=5", "mount it with entry-timeout=0"),
            (&TESTED.replace("=on", "=off"), "mount it with auto-invalidation=on"),
            (&format!("--negative-timeout=9 {TESTED}"), "mount it with negative-timeout=0"),
        ] {
            assert_eq!(gluster_finding(options, &others), Some((text.to_owned(), None)));
        }
        let (text, fix) = gluster_finding(TESTED, &["dht", "quick-read", "md-cache"]).unwrap();
        let changes =
            "turn off performance.quick-read and performance.stat-prefetch on a Gluster server";
        assert_eq!(text, changes);
        assert_eq!(
            fix.unwrap(),
            "sudo gluster volume set menus performance.quick-read off && \
             sudo gluster volume set menus performance.stat-prefetch off"
        );
        let (text, _) = gluster_finding("", &["quick-read"]).unwrap();
        assert!(
            text.starts_with("mount it with attribute-timeout=0,entry-timeout=0, and turn off")
        );
        let missing = GlusterClient::at(Path::new("/nowhere"));
        let unreadable = gluster(&mount("fuse.glusterfs", "rw"), missing).unwrap();
        assert!(
            unreadable.text.contains("unless performance.quick-read and"),
            "{}",
            unreadable.text
        );
    }

    #[test]
    fn only_a_regular_file_is_read_in_meta() {
        let folder = tempfile::tempdir().unwrap();
        let graph = folder.path().join(".meta/graphs/active");
        fs::create_dir_all(graph.join("menus-md-cache")).unwrap();
        let command = folder.path().join(".meta/cmdline");
        fs::write(&command, "--entry-timeout=0").unwrap();
        let client = GlusterClient::at(folder.path()).unwrap();
        assert_eq!(client.caches(), ["performance.stat-prefetch"]);
        fs::remove_file(&command).unwrap();
        mknodat(CWD, &command, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let fault = GlusterClient::at(folder.path()).unwrap_err();
        assert_eq!(fault.to_string(), "it is not a regular file");
    }
}
