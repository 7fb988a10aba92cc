//! Whether a file can be replaced without taking access away from other users.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use super::acl::Acl;
use crate::sys::process::Credentials;

/// The owner, group and mode of a file or folder.
#[derive(Clone, Copy, Debug)]
pub struct Ownership {
    pub uid: u32,
    pub gid: u32,
    pub mode: u32,
}

impl From<&Metadata> for Ownership {
    fn from(metadata: &Metadata) -> Ownership {
        let mode = metadata.mode() & 0o7777;
        Ownership { uid: metadata.uid(), gid: metadata.gid(), mode }
    }
}

/// The access of a file that `user` creates in `folder` to replace `old`, whose access control list or
/// mode grants `acl`, or `None` if other users would lose access.
///
/// List and mode are always kept. Owner and group are kept if possible. chown(2): only root can change
/// the owner, and others can set only a group that they are members of, or that a new file in `folder`
/// gets (a setgid folder, inode(7)). Otherwise a named entry of the list must grant them what they had;
/// an owner without an entry, usually PHP, must be able to write as a member of the group.
pub fn of_replacement(
    old: Ownership,
    acl: &Acl,
    folder: Ownership,
    user: &Credentials,
) -> Option<Ownership> {
    const SETGID: u32 = 0o2000;
    const READ_AND_WRITE: u32 = 6;
    const WRITE: u32 = 2;
    if user.is_root() {
        return Some(old);
    }
    let grants = |granted: u32, had: u32| had & READ_AND_WRITE & !granted == 0;
    let (owner_had, group_had) = (old.mode >> 6, acl.own_group);

    let created_gid = if folder.mode & SETGID != 0 { folder.gid } else { user.gid };
    let keeps_group = old.gid == created_gid || user.is_member(old.gid);
    let group_keeps_access =
        keeps_group || acl.groups.get(&old.gid).is_some_and(|&granted| grants(granted, group_had));
    let owner_keeps_access = match acl.users.get(&old.uid) {
        _ if old.uid == user.uid => true,
        // As the new owner, `user` has what the old one had.
        _ if owner_had & WRITE == 0 => false,
        Some(&granted) => grants(granted, owner_had),
        None => group_had & WRITE != 0,
    };
    let gid = if keeps_group { old.gid } else { created_gid };
    (group_keeps_access && owner_keeps_access).then_some(Ownership { uid: user.uid, gid, ..old })
}
