//! The mount of a folder, from `/proc/self/mountinfo` (proc(5)).

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// A mount, from a line.
#[derive(Debug)]
pub struct Mount {
    pub point: String,
    /// The type of the file system
    pub kind: String,
    pub source: String,
    /// The options of the file system, separated by commas
    pub options: String,
}

impl Mount {
    /// The mount with this id among the lines of `mountinfo`.
    fn find(mountinfo: &str, id: u64) -> Option<Mount> {
        let id = id.to_string();
        let line = mountinfo.lines().find(|line| line.split(' ').next() == Some(&id))?;
        // The number of fields before the hyphen varies.
        let (before, after) = line.split_once(" - ")?;
        let point = unescaped(before.split(' ').nth(4)?);
        let mut after = after.split(' ').map(unescaped);
        Some(Mount { point, kind: after.next()?, source: after.next()?, options: after.next()? })
    }

    pub fn has_option(&self, wanted: &[&str]) -> bool {
        self.options.split(',').any(|option| wanted.contains(&option))
    }
}

/// A field without the escapes that the kernel writes (fs/proc_namespace.c, `mangle`).
fn unescaped(field: &str) -> String {
    let escapes =
        [(r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\043", "#"), (r"\134", r"\")];
    escapes.iter().fold(field.to_owned(), |text, (escape, own)| text.replace(escape, own))
}

/// The mount of `folder`, found by its id: mountinfo does not list the device of a Btrfs subvolume,
/// and a mount can hide another one with the same path.
pub fn mount_of(folder: &Path) -> io::Result<Mount> {
    let statx = statx(CWD, folder, AtFlags::empty(), StatxFlags::MNT_ID)?;
    let mountinfo = fs::read("/proc/self/mountinfo")?;
    // 0 before Linux 5.8
    let mount = Mount::find(&String::from_utf8_lossy(&mountinfo), statx.stx_mnt_id);
    mount.ok_or_else(|| io::Error::other(format!("mount {} is not listed", statx.stx_mnt_id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of real systems, with shortened paths.
    const MOUNTINFO: &str = r"26 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
68 26 0:41 / /srv/menus rw,relatime - fuse.glusterfs gluster1:/menus/school rw,user_id=0,group_id=0
270 26 0:60 /x /srv/two\040words\134 rw,relatime shared:2 master:3 - btrfs /dev/sd\040a rw,subvol=/x
2 1 254:0 / / rw - ext4 /dev/vda";

    #[test]
    fn mount_is_found_by_its_id() {
        for (id, expected) in [
            (26, Some(["/", "ext4", "/dev/vda", "rw,discard"])),
            (
                68,
                Some([
                    "/srv/menus", "fuse.glusterfs", "gluster1:/menus/school",
                    "rw,user_id=0,group_id=0",
                ]),
            ),
            (270, Some(["/srv/two words\\", "btrfs", "/dev/sd a", "rw,subvol=/x"])),
            (2, None),
            (27, None),
        ] {
            let found = Mount::find(MOUNTINFO, id);
            let found = found.map(|mount| [mount.point, mount.kind, mount.source, mount.options]);
            assert_eq!(found, expected.map(|fields| fields.map(str::to_owned)), "{id}");
        }
    }
}
