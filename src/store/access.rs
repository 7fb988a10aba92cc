//! Whether a file can be replaced without taking access away from other users.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use rustix::process::{getegid, geteuid, getgroups};

/// The user that a process runs as.
#[derive(Debug)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups
    pub groups: Vec<u32>,
}

impl User {
    /// The effective user of this process.
    pub fn of_process() -> User {
        let groups = getgroups().unwrap_or_default();
        User {
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
pub struct Access {
    pub uid: u32,
    pub gid: u32,
    pub mode: u32,
}

impl From<&Metadata> for Access {
    fn from(metadata: &Metadata) -> Access {
        let mode = metadata.mode() & 0o7777;
        Access { uid: metadata.uid(), gid: metadata.gid(), mode }
    }
}

/// The access of a file that `user` creates in `folder` to replace `old`, or `None` if other users
/// would lose access.
///
/// Group and mode are always kept. The owner is kept if possible (chown(2): only root can change
/// the owner); otherwise the group must be able to write, because the old owner, usually PHP, could
/// no longer save. The group can be kept if `user` is a member of it, or if a new file in `folder`
/// gets this group (a setgid folder, inode(7)).
pub fn of_replacement(old: Access, folder: Access, user: &User) -> Option<Access> {
    const SETGID: u32 = 0o2000;
    const GROUP_WRITE: u32 = 0o020;
    if user.is_root() {
        return Some(old);
    }
    let created_gid = if folder.mode & SETGID != 0 { folder.gid } else { user.gid };
    let keeps_group = old.gid == created_gid || user.is_member(old.gid);
    let keeps_owner = old.uid == user.uid;
    (keeps_group && (keeps_owner || old.mode & GROUP_WRITE != 0))
        .then_some(Access { uid: user.uid, ..old })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_only_if_its_owner_keeps_access() {
        const PHP: u32 = 33;
        const US: u32 = 1000;
        const SHARED: u32 = 50;
        let user = |uid, groups: &[u32]| User { uid, gid: uid, groups: groups.to_vec() };
        let plain = Access { uid: PHP, gid: PHP, mode: 0o755 };
        let setgid = |gid| Access { uid: PHP, gid, mode: 0o2775 };
        let file = |uid, gid, mode| Access { uid, gid, mode };
        for (case, old, folder, user, owner) in [
            ("root", file(PHP, PHP, 0o600), plain, user(0, &[]), Some(PHP)),
            ("own file", file(US, US, 0o600), plain, user(US, &[]), Some(US)),
            ("own file, foreign group", file(US, SHARED, 0o664), plain, user(US, &[]), None),
            (
                "own file, other group",
                file(US, SHARED, 0o600),
                plain,
                user(US, &[SHARED]),
                Some(US),
            ),
            ("shared group", file(PHP, SHARED, 0o664), plain, user(US, &[SHARED]), Some(US)),
            ("group cannot write", file(PHP, SHARED, 0o644), plain, user(US, &[SHARED]), None),
            ("not a member", file(PHP, SHARED, 0o664), plain, user(US, &[]), None),
            ("setgid", file(PHP, SHARED, 0o664), setgid(SHARED), user(US, &[]), Some(US)),
            (
                "setgid, group cannot write",
                file(PHP, SHARED, 0o644),
                setgid(SHARED),
                user(US, &[]),
                None,
            ),
            ("setgid to another group", file(PHP, SHARED, 0o664), setgid(PHP), user(US, &[]), None),
        ] {
            let access = of_replacement(old, folder, &user);
            assert_eq!(access.map(|access| access.uid), owner, "{case}");
            assert!(access.is_none_or(|a| (a.gid, a.mode) == (old.gid, old.mode)), "{case}");
        }
    }
}
