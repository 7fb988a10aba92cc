//! Whether a file can be replaced without taking access away from other users.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use rustix::process::{getegid, geteuid, getgroups};

use super::acl::Acl;

/// The user and groups of a process (credentials(7)).
#[derive(Debug)]
pub struct Credentials {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups
    pub groups: Vec<u32>,
}

impl Credentials {
    /// The effective user of this process.
    pub fn of_process() -> Credentials {
        let groups = getgroups().unwrap_or_default();
        Credentials {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            groups: groups.into_iter().map(|gid| gid.as_raw()).collect(),
        }
    }

    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Whether the group `gid` is one of the user's.
    pub fn is_member(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

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
    let (owner_had, group_had) = (old.mode >> 6, acl.own_group());

    let created_gid = if folder.mode & SETGID != 0 { folder.gid } else { user.gid };
    let keeps_group = old.gid == created_gid || user.is_member(old.gid);
    let group_keeps_access =
        keeps_group || acl.group(old.gid).is_some_and(|granted| grants(granted, group_had));
    let owner_keeps_access = match acl.user(old.uid) {
        _ if old.uid == user.uid => true,
        // As the new owner, `user` has what the old one had.
        _ if owner_had & WRITE == 0 => false,
        Some(granted) => grants(granted, owner_had),
        None => group_had & WRITE != 0,
    };
    let gid = if keeps_group { old.gid } else { created_gid };
    (group_keeps_access && owner_keeps_access).then_some(Ownership { uid: user.uid, gid, ..old })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_only_if_its_owner_keeps_access() {
        const PHP: u32 = 33;
        const US: u32 = 1000;
        const SHARED: u32 = 50;
        let user = |uid, groups: &[u32]| Credentials { uid, gid: uid, groups: groups.to_vec() };
        let plain = Ownership { uid: PHP, gid: PHP, mode: 0o755 };
        let setgid = |gid| Ownership { uid: PHP, gid, mode: 0o2775 };
        let file = |uid, gid, mode| Ownership { uid, gid, mode };
        let (us, member) = (user(US, &[]), user(US, &[SHARED]));
        for (case, old, folder, user, owner) in [
            ("root", file(PHP, PHP, 0o600), plain, &user(0, &[]), Some(PHP)),
            ("own file", file(US, US, 0o600), plain, &us, Some(US)),
            ("own file, foreign group", file(US, SHARED, 0o664), plain, &us, None),
            ("own file, other group", file(US, SHARED, 0o600), plain, &member, Some(US)),
            ("shared group", file(PHP, SHARED, 0o664), plain, &member, Some(US)),
            ("group cannot write", file(PHP, SHARED, 0o644), plain, &member, None),
            ("not a member", file(PHP, SHARED, 0o664), plain, &us, None),
            ("setgid", file(PHP, SHARED, 0o664), setgid(SHARED), &us, Some(US)),
            ("setgid, it cannot write", file(PHP, SHARED, 0o644), setgid(SHARED), &us, None),
            ("setgid to another group", file(PHP, SHARED, 0o664), setgid(PHP), &us, None),
        ] {
            let access = of_replacement(old, &Acl::of_mode(old.mode), folder, user);
            assert_eq!(access.map(|access| access.uid), owner, "{case}");
            assert!(access.is_none_or(|a| (a.gid, a.mode) == (old.gid, old.mode)), "{case}");
        }
    }

    /// A file of the owner 33 and the group 33, replaced by the user 1000, who is a member of group 50.
    #[test]
    fn named_entries_give_owner_and_group_the_access_that_they_had() {
        let user = Credentials { uid: 1000, gid: 1000, groups: vec![50] };
        let folder = Ownership { uid: 33, gid: 33, mode: 0o755 };
        for (case, mode, gid, users, groups, group, mask, replaced) in [
            ("no entries", 0o660, 33, &[][..], &[][..], 6, 6, None),
            ("both named", 0o660, 33, &[(33, 6)], &[(33, 6)], 6, 6, Some(1000)),
            ("execute does not count", 0o770, 33, &[(33, 6)], &[(33, 6)], 7, 7, Some(1000)),
            ("another user", 0o660, 33, &[(34, 6)], &[(33, 4)], 4, 6, None),
            ("only the owner", 0o660, 33, &[(33, 6)], &[], 6, 6, None),
            ("group without access", 0o660, 33, &[(33, 6)], &[], 0, 6, None),
            ("only the group, which can write", 0o660, 33, &[], &[(33, 6)], 6, 6, Some(1000)),
            ("only the group, which cannot", 0o640, 33, &[], &[(33, 4)], 4, 6, None),
            ("group kept", 0o660, 50, &[(33, 6)], &[], 0, 6, Some(1000)),
            ("group kept, it can write", 0o660, 50, &[(34, 6)], &[], 6, 6, Some(1000)),
            ("group kept, it cannot write", 0o660, 50, &[(34, 6)], &[], 4, 6, None),
            ("group kept, it cannot under the mask", 0o640, 50, &[(34, 6)], &[], 6, 4, None),
            ("owner cannot under the mask", 0o640, 50, &[(33, 6)], &[], 4, 4, None),
            ("an entry counts before the group", 0o660, 50, &[(33, 4)], &[], 6, 6, None),
            ("owner had less", 0o460, 50, &[(33, 4)], &[], 6, 6, None),
            ("group gets less", 0o660, 33, &[(33, 6)], &[(33, 4)], 6, 6, None),
        ] {
            let old = Ownership { uid: 33, gid, mode };
            let acl = Acl { users: users.to_vec(), groups: groups.to_vec(), group, mask };
            let access = of_replacement(old, &acl, folder, &user);
            assert_eq!(access.map(|access| access.uid), replaced, "{case}");
            let kept = if gid == 50 { 50 } else { 1000 };
            assert!(access.is_none_or(|a| (a.gid, a.mode) == (kept, mode)), "{case}");
        }
    }
}
