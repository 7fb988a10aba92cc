//! Whether a file can be replaced without taking access away from other users.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::acl::Acl;
use super::attributes::Attributes;
use super::layout::folder_of;
use super::{Defect, Error};
use crate::sys::process::Credentials;

/// The user and group that a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Owners {
    pub uid: u32,
    pub gid: u32,
}

impl Owners {
    pub fn of(file: &Metadata) -> Owners {
        Owners {
            uid: file.uid(),
            gid: file.gid(),
        }
    }
}

/// The owner and group of the new file at `path`. Fails if it cannot replace the file that has the metadata
/// `old` and these attributes.
///
/// List and mode are always kept. Owner and group are kept if possible. chown(2): only root can change
/// the owner, and others can set only a group that they are members of, or that a new file in the folder
/// gets (a setgid folder, inode(7)).
pub fn of_replacement(
    old: &Metadata,
    attributes: &Attributes,
    path: &Path,
) -> Result<Owners, Error> {
    const SETGID: u32 = 0o2000;
    let folder =
        fs::metadata(folder_of(path)).map_err(Error::displaced_or("stat the folder of", path))?;
    let user = Credentials::of_process();
    let created_gid = if folder.mode() & SETGID != 0 {
        folder.gid()
    } else {
        user.gid
    };
    let gid = if user.is_member(old.gid()) {
        old.gid()
    } else {
        created_gid
    };
    let new = Owners { uid: user.uid, gid };
    match attributes.acl(old.mode()) {
        Some(_) if user.is_root() => Ok(Owners::of(old)),
        Some(acl) if keeps_access(old, &acl, new) => Ok(new),
        _ => Err(Error::unusable(
            path,
            Defect::WouldLockOutOwner { user: user.uid },
        )),
    }
}

/// Whether the old owner and group keep their access to the file if it has the owners `new`. A named entry of
/// the list must grant them what they had; an owner without an entry, usually PHP, must be able to write as a
/// member of the group.
fn keeps_access(old: &Metadata, acl: &Acl, new: Owners) -> bool {
    const READ_AND_WRITE: u32 = 6;
    const WRITE: u32 = 2;
    let grants = |granted: u32, had: u32| had & READ_AND_WRITE & !granted == 0;
    let owner_had = old.mode() >> 6;
    let group_had = acl.own_group;
    let group_keeps_access = old.gid() == new.gid
        || acl
            .groups
            .get(&old.gid())
            .is_some_and(|&granted| grants(granted, group_had));
    if old.uid() == new.uid {
        return group_keeps_access;
    }
    let owner_keeps_access = match acl.users.get(&old.uid()) {
        Some(&granted) => grants(granted, owner_had),
        None => group_had & WRITE != 0,
    };
    // The mode stays: if the old owner could not write the file, this user, as the new one, could not either.
    group_keeps_access && owner_keeps_access && owner_had & WRITE != 0
}
