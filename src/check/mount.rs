//! The mount of a folder, from `/proc/self/mountinfo` (proc(5)).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// A mount, from a line.
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

    pub fn has_option(&self, wanted: &[&str]) -> bool {
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
pub fn mount_of(folder: &Path) -> io::Result<Mount> {
    let statx = statx(CWD, folder, AtFlags::empty(), StatxFlags::MNT_ID)?;
    let mountinfo = fs::read("/proc/self/mountinfo")?;
    // 0 before Linux 5.8
    let mount = Mount::find(&mountinfo, statx.stx_mnt_id);
    mount.ok_or_else(|| io::Error::other(format!("mount {} is not listed", statx.stx_mnt_id)))
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
}
