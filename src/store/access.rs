//! Whether a file can be replaced without taking access away from other users, as far as its owners, mode and access
//! control list tell: who is a member of its group is not known here.

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

/// Owners and mode of a file or folder.
#[derive(Clone, Copy)]
struct Permissions {
    owners: Owners,
    mode: u32,
}

impl Permissions {
    const SETGID: u32 = 0o2000;

    fn of(file: &Metadata) -> Permissions {
        Permissions {
            owners: Owners::of(file),
            mode: file.mode(),
        }
    }

    /// The group of a file that `user` creates in this folder (inode(7)).
    fn created_gid(self, user: &Credentials) -> u32 {
        if self.mode & Permissions::SETGID != 0 {
            self.owners.gid
        } else {
            user.gid
        }
    }
}

/// The owner and group of the new file at `path`. Fails if it cannot replace the file that has the metadata
/// `old` and these attributes.
pub fn of_replacement(
    old: &Metadata,
    attributes: &Attributes,
    path: &Path,
) -> Result<Owners, Error> {
    let folder =
        fs::metadata(folder_of(path)).map_err(Error::displaced_or("stat the folder of", path))?;
    let user = Credentials::of_process();
    attributes
        .acl(old.mode())
        .and_then(|acl| new_owners(Permissions::of(old), &acl, Permissions::of(&folder), &user))
        .ok_or_else(|| Error::unusable(path, Defect::WouldLockOutOwner { user: user.uid }))
}

/// The owners of a file by which `user` replaces the file `old` in `folder`. `None` if the owner or group of `old`
/// would lose access.
///
/// List and mode are always kept. Owner and group are kept if possible. chown(2): only root can change
/// the owner, and others can set only a group that they are members of, or that a new file in the folder
/// gets.
fn new_owners(
    old: Permissions,
    acl: &Acl,
    folder: Permissions,
    user: &Credentials,
) -> Option<Owners> {
    if user.is_root() {
        return Some(old.owners);
    }
    let gid = if user.is_member(old.owners.gid) {
        old.owners.gid
    } else {
        folder.created_gid(user)
    };
    let new = Owners { uid: user.uid, gid };
    keeps_access(old, acl, new).then_some(new)
}

/// Whether the old owner and group keep their access to the file if it has the owners `new`: a named entry of the list
/// must grant them what they had. For an owner without an entry, usually PHP, the group must: it is assumed, not checked,
/// that the owner is a member of it.
fn keeps_access(old: Permissions, acl: &Acl, new: Owners) -> bool {
    const READ_AND_WRITE: u32 = 6;
    const WRITE: u32 = 2;
    let grants = |granted: u32, had: u32| had & READ_AND_WRITE & !granted == 0;
    let owner_had = old.mode >> 6;
    let group_had = acl.own_group;
    let group_keeps_access = old.owners.gid == new.gid
        || acl
            .groups
            .get(&old.owners.gid)
            .is_some_and(|&granted| grants(granted, group_had));
    if old.owners.uid == new.uid {
        return group_keeps_access;
    }
    let granted = acl.users.get(&old.owners.uid).copied();
    let owner_keeps_access = grants(granted.unwrap_or(group_had), owner_had);
    // The mode stays: if the old owner could not write the file, this user, as the new one, could not either.
    group_keeps_access && owner_keeps_access && owner_had & WRITE != 0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The user of the program, and their group
    const USER: u32 = 33;
    /// Another group of the user
    const SECOND: u32 = 44;
    /// The owner of the file
    const PHP: u32 = 1234;
    /// A group that the user is not a member of
    const SCHOOL: u32 = 4321;
    const NONE: &[(u32, u32)] = &[];

    /// The new group of a file with this owner, group and mode, and these named users and groups in its list.
    #[track_caller]
    fn new_group(
        folder: Permissions,
        (uid, gid, mode): (u32, u32, u32),
        users: &[(u32, u32)],
        groups: &[(u32, u32)],
    ) -> Option<u32> {
        let user = Credentials {
            uid: USER,
            gid: USER,
            groups: vec![SECOND],
        };
        let acl = Acl {
            users: BTreeMap::from_iter(users.iter().copied()),
            groups: BTreeMap::from_iter(groups.iter().copied()),
            ..Acl::of_mode(mode)
        };
        let owners = Owners { uid, gid };
        let old = Permissions { owners, mode };
        let new = new_owners(old, &acl, folder, &user);
        assert!(new.is_none_or(|new| new.uid == USER));
        let root = Credentials { uid: 0, ..user };
        assert_eq!(new_owners(old, &acl, folder, &root), Some(owners));
        new.map(|new| new.gid)
    }

    fn folder(gid: u32, mode: u32) -> Permissions {
        let owners = Owners { uid: 0, gid };
        Permissions { owners, mode }
    }

    #[test]
    fn owner_keeps_access_by_the_group_or_by_the_list() {
        let named: &[_] = &[(PHP, 6)];
        for (file, users, is_replaced) in [
            ((PHP, USER, 0o664), NONE, true),
            ((PHP, USER, 0o624), NONE, false),
            ((PHP, USER, 0o224), NONE, true),
            ((PHP, USER, 0o644), NONE, false),
            ((PHP, USER, 0o464), NONE, false),
            ((PHP, USER, 0o644), named, true),
            ((PHP, USER, 0o764), named, true),
            ((PHP, USER, 0o444), named, false),
            ((PHP, USER, 0o664), &[(PHP, 4)], false),
            ((PHP, USER, 0o664), &[(PHP, 2)], false),
            ((PHP, USER, 0o264), &[(PHP, 2)], true),
            ((PHP, USER, 0o644), &[(SECOND, 6)], false),
            ((USER, USER, 0o600), NONE, true),
            ((USER, USER, 0o400), NONE, true),
        ] {
            let expected = is_replaced.then_some(USER);
            let new = new_group(folder(0, 0o777), file, users, NONE);
            assert_eq!(new, expected, "{file:?} {users:?}");
        }
    }

    #[test]
    fn group_is_kept_or_keeps_access_by_the_list() {
        let named: &[_] = &[(SCHOOL, 6)];
        let plain = folder(SCHOOL, 0o777);
        for (folder, file, groups, expected) in [
            (plain, (PHP, USER, 0o664), NONE, Some(USER)),
            (plain, (PHP, SECOND, 0o664), NONE, Some(SECOND)),
            (folder(9, 0o2777), (PHP, USER, 0o664), NONE, Some(USER)),
            (plain, (PHP, SCHOOL, 0o664), NONE, None),
            (plain, (USER, SCHOOL, 0o664), NONE, None),
            (plain, (PHP, SCHOOL, 0o664), named, Some(USER)),
            (plain, (PHP, SCHOOL, 0o664), &[(SCHOOL, 4)], None),
            (plain, (PHP, SCHOOL, 0o664), &[(9, 6)], None),
            (
                folder(SCHOOL, 0o2777),
                (PHP, SCHOOL, 0o664),
                NONE,
                Some(SCHOOL),
            ),
            (folder(SCHOOL, 0o2777), (PHP, SCHOOL, 0o644), NONE, None),
            (folder(9, 0o2777), (PHP, SCHOOL, 0o664), NONE, None),
            (folder(9, 0o2777), (PHP, SCHOOL, 0o664), named, Some(9)),
            (plain, (USER, SCHOOL, 0o644), &[(SCHOOL, 4)], Some(USER)),
        ] {
            let new = new_group(folder, file, NONE, groups);
            assert_eq!(new, expected, "{file:?} {groups:?}");
        }
    }
}
