//! Whether a file can be replaced: unless someone could do something before that they cannot do after, as far as owner,
//! group, mode and access control list tell. Who is a member of a group is not known here.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use super::acl::Acl;
use super::attributes::Attributes;
use crate::sys::accounts;
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

    /// The owners of a file that the user of this process creates in `folder` (inode(7)).
    pub fn of_new_file(folder: &Metadata) -> Owners {
        const SETGID: u32 = 0o2000;
        let user = Credentials::of_process();
        let gid = if folder.mode() & SETGID != 0 {
            folder.gid()
        } else {
            user.gid
        };
        Owners { uid: user.uid, gid }
    }
}

/// Why this user does not replace a file that they can write.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("user {} cannot replace it: {loser} could then no longer {} it", accounts::user(*.user), name_of(*.rights))]
    TakesAccess {
        user: u32,
        loser: Loser,
        rights: u32,
    },
    #[error(
        "user {} cannot replace it: its folder has the sticky bit, and neither belongs to this user",
        accounts::user(*.user)
    )]
    Sticky { user: u32 },
    #[error("its access control list cannot be parsed")]
    UnknownList,
}

/// The heading for an owner, a group or a mode that prevents a replacement
pub const WRONG_OWNER: &str = "Wrong owner, group or mode";

impl Refusal {
    /// The heading of `docs/troubleshooting.md` that has the command.
    pub fn heading(&self) -> &'static str {
        match self {
            Refusal::TakesAccess { .. } => WRONG_OWNER,
            Refusal::Sticky { .. } => "Sticky bit",
            Refusal::UnknownList => "Access control list",
        }
    }
}

/// Who would lose access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loser {
    /// The old owner
    Owner(u32),
    /// The old group
    Group(u32),
    /// The new owner, who has the rights of the owner then
    NewOwner,
    /// The new group, which has the rights of the group then
    NewGroup(u32),
}

impl fmt::Display for Loser {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Loser::Owner(uid) => write!(f, "its owner {}", accounts::user(*uid)),
            Loser::Group(gid) => write!(f, "its group {}", accounts::group(*gid)),
            Loser::NewOwner => write!(f, "this user, as its new owner,"),
            Loser::NewGroup(gid) => write!(f, "its new group {}", accounts::group(*gid)),
        }
    }
}

const READ_AND_WRITE: u32 = 6;

fn name_of(rights: u32) -> &'static str {
    match rights & READ_AND_WRITE {
        4 => "read",
        2 => "write",
        _ => "read or write",
    }
}

/// A file that is to be replaced, in its folder
pub struct Old<'a> {
    pub file: &'a Metadata,
    pub attributes: &'a Attributes,
    pub folder: &'a Metadata,
}

impl Old<'_> {
    /// Chooses the owners of the new file, which belongs to `created`. `give` sets other owners, and returns whether it
    /// could: not even root can on NFS with `root_squash`, or if the owner has no number in a container.
    pub fn choose_owners(
        &self,
        created: Owners,
        mut give: impl FnMut(Owners) -> bool,
    ) -> Result<(), Refusal> {
        if Owners::of(self.file) == created {
            return Ok(());
        }
        let user = Credentials::of_process();
        let acl = self.attributes.acl(self.file.mode());
        let access = Access {
            owners: Owners::of(self.file),
            mode: self.file.mode(),
            acl: acl.ok_or(Refusal::UnknownList)?,
        };
        if self.is_stuck(&user) {
            return Err(Refusal::Sticky { user: user.uid });
        }
        let are_given = access
            .better_owners(created, &user)
            .any(|owners| access.lost_by(owners).is_none() && give(owners));
        match access.lost_by(created) {
            Some(Loss { loser, rights }) if !are_given => Err(Refusal::TakesAccess {
                user: user.uid,
                loser,
                rights,
            }),
            _ => Ok(()),
        }
    }

    /// Whether only the owner of the file or of the folder can rename the file (EPERM of rename(2)).
    fn is_stuck(&self, user: &Credentials) -> bool {
        const STICKY: u32 = 0o1000;
        self.folder.mode() & STICKY != 0
            && !user.is_root()
            && ![self.file.uid(), self.folder.uid()].contains(&user.uid)
    }
}

/// Who can do what with a file.
struct Access {
    owners: Owners,
    mode: u32,
    acl: Acl,
}

/// What someone would lose.
#[derive(Debug, PartialEq)]
struct Loss {
    loser: Loser,
    rights: u32,
}

impl Access {
    /// The owners that `user` may give to the new file instead of `created`, the best first. chown(2): only root can
    /// change the owner, if it has the capability, and others can set only a group that they are members of.
    fn better_owners(&self, created: Owners, user: &Credentials) -> impl Iterator<Item = Owners> {
        let both = user.may_give_away.then_some(self.owners);
        let may_set_group = user.may_give_away || user.is_member(self.owners.gid);
        let same_group = may_set_group.then_some(Owners {
            gid: self.owners.gid,
            ..created
        });
        let better = both.into_iter().chain(same_group);
        better.filter(move |owners| *owners != created)
    }

    /// Who loses what if the owners become `new`. Mode and list stay.
    ///
    /// It is assumed, not checked, that the old owner is a member of the old group: version 1.0 replaced such files, and a
    /// school whose files belong to another user goes on saving.
    fn lost_by(&self, new: Owners) -> Option<Loss> {
        let of_owner = self.mode >> 6;
        let of_group = self.acl.own_group;
        let named_group = |gid| self.acl.groups.get(&gid).copied();
        // What every user can do who is not named, whichever groups they are in
        let granted_to_all = self
            .acl
            .groups
            .values()
            .fold(of_group & self.acl.others, |all, named| all & named);
        let left_to_group = if new.gid == self.owners.gid {
            of_group
        } else {
            named_group(self.owners.gid).unwrap_or(granted_to_all)
        };
        let named_owner = self.acl.users.get(&self.owners.uid).copied();
        let left_to_owner = named_owner.unwrap_or(left_to_group);

        let owner_changes = new.uid != self.owners.uid;
        let group_changes = new.gid != self.owners.gid;
        // The members of the new group were among the others, unless the list names it.
        let was_other = group_changes && named_group(new.gid).is_none();
        let old_owner = Loser::Owner(self.owners.uid);
        let old_group = Loser::Group(self.owners.gid);
        let losses = [
            (owner_changes, Loser::NewOwner, READ_AND_WRITE & !of_owner),
            (owner_changes, old_owner, of_owner & !left_to_owner),
            (group_changes, old_group, of_group & !left_to_group),
            (
                was_other,
                Loser::NewGroup(new.gid),
                self.acl.others & !of_group,
            ),
        ];
        losses
            .into_iter()
            .find(|(changes, _, rights)| *changes && rights & READ_AND_WRITE != 0)
            .map(|(_, loser, rights)| Loss { loser, rights })
    }
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

    fn user() -> Credentials {
        Credentials {
            uid: USER,
            gid: USER,
            groups: vec![SECOND],
            may_give_away: false,
        }
    }

    /// The group that a new file, created with the group `created`, gets in place of an old file with this owner, group
    /// and mode, and these named users and groups in its access control list.
    #[track_caller]
    fn new_group(
        created: u32,
        (uid, gid, mode): (u32, u32, u32),
        users: &[(u32, u32)],
        groups: &[(u32, u32)],
    ) -> Option<u32> {
        let acl = Acl {
            users: BTreeMap::from_iter(users.iter().copied()),
            groups: BTreeMap::from_iter(groups.iter().copied()),
            ..Acl::of_mode(mode)
        };
        let owners = Owners { uid, gid };
        let access = Access { owners, mode, acl };
        let created = Owners {
            uid: USER,
            gid: created,
        };
        let root = Credentials {
            uid: 0,
            may_give_away: true,
            ..user()
        };
        let best = access.better_owners(created, &root).next();
        assert_eq!(best.unwrap_or(created), owners);
        assert_eq!(access.lost_by(owners), None);
        access
            .better_owners(created, &user())
            .chain([created])
            .find(|new| access.lost_by(*new).is_none())
            .map(|new| new.gid)
    }

    #[test]
    fn owner_keeps_access_by_the_group_or_by_the_list() {
        let named: &[_] = &[(PHP, 6)];
        for (file, users, is_replaced) in [
            ((PHP, USER, 0o664), NONE, true),
            ((PHP, USER, 0o624), NONE, false),
            ((PHP, USER, 0o224), NONE, false),
            ((PHP, USER, 0o644), NONE, false),
            ((PHP, USER, 0o464), NONE, false),
            ((PHP, USER, 0o644), named, true),
            ((PHP, USER, 0o764), named, true),
            ((PHP, USER, 0o444), named, false),
            ((PHP, USER, 0o664), &[(PHP, 4)], false),
            ((PHP, USER, 0o664), &[(PHP, 2)], false),
            ((PHP, USER, 0o264), &[(PHP, 2)], false),
            ((PHP, USER, 0o644), &[(SECOND, 6)], false),
            ((USER, USER, 0o600), NONE, true),
            ((USER, USER, 0o400), NONE, true),
        ] {
            let expected = is_replaced.then_some(USER);
            let new = new_group(USER, file, users, NONE);
            assert_eq!(new, expected, "{file:?} {users:?}");
        }
    }

    #[test]
    fn group_is_kept_or_keeps_access_by_the_list() {
        let named: &[_] = &[(SCHOOL, 6)];
        for (created, file, groups, expected) in [
            (USER, (PHP, USER, 0o664), NONE, Some(USER)),
            (USER, (PHP, SECOND, 0o664), NONE, Some(SECOND)),
            (9, (PHP, USER, 0o664), NONE, Some(USER)),
            (USER, (PHP, SCHOOL, 0o664), NONE, None),
            (USER, (USER, SCHOOL, 0o664), NONE, None),
            (USER, (PHP, SCHOOL, 0o664), named, Some(USER)),
            (USER, (PHP, SCHOOL, 0o664), &[(SCHOOL, 4)], None),
            (USER, (PHP, SCHOOL, 0o664), &[(9, 6)], None),
            (SCHOOL, (PHP, SCHOOL, 0o664), NONE, Some(SCHOOL)),
            (SCHOOL, (PHP, SCHOOL, 0o644), NONE, None),
            (9, (PHP, SCHOOL, 0o664), NONE, None),
            (9, (PHP, SCHOOL, 0o664), named, Some(9)),
            (USER, (USER, SCHOOL, 0o644), &[(SCHOOL, 4)], Some(USER)),
            // A group that has no right that the others lack
            (USER, (USER, SCHOOL, 0o644), NONE, Some(USER)),
            (USER, (USER, SCHOOL, 0o600), NONE, Some(USER)),
            (USER, (USER, SCHOOL, 0o640), NONE, None),
            (USER, (PHP, SCHOOL, 0o666), NONE, Some(USER)),
            (USER, (PHP, SCHOOL, 0o777), NONE, Some(USER)),
            // A member of a named group is none of the others.
            (USER, (PHP, SCHOOL, 0o666), &[(9, 4)], None),
            (USER, (PHP, SCHOOL, 0o666), &[(9, 6)], Some(USER)),
            // The members of the new group could do more as others.
            (USER, (USER, SCHOOL, 0o606), NONE, None),
            (USER, (USER, SCHOOL, 0o606), &[(USER, 6)], Some(USER)),
            (USER, (PHP, SCHOOL, 0o646), NONE, None),
        ] {
            let new = new_group(created, file, NONE, groups);
            assert_eq!(new, expected, "{file:?} {groups:?}");
        }
    }

    #[test]
    fn a_refusal_names_who_would_lose_what() {
        for ((uid, gid, mode), loser, rights) in [
            ((PHP, SCHOOL, 0o660), Loser::Owner(PHP), "read or write"),
            ((PHP, USER, 0o640), Loser::Owner(PHP), "write"),
            ((USER, SCHOOL, 0o660), Loser::Group(SCHOOL), "read or write"),
            ((USER, SCHOOL, 0o664), Loser::Group(SCHOOL), "write"),
            ((USER, SCHOOL, 0o640), Loser::Group(SCHOOL), "read"),
            ((USER, SCHOOL, 0o646), Loser::NewGroup(USER), "write"),
            ((PHP, USER, 0o466), Loser::NewOwner, "write"),
        ] {
            let owners = Owners { uid, gid };
            let access = Access {
                owners,
                mode,
                acl: Acl::of_mode(mode),
            };
            let created = Owners {
                uid: USER,
                gid: USER,
            };
            let loss = access.lost_by(created).expect("a loss");
            assert_eq!(
                (loss.loser, name_of(loss.rights)),
                (loser, rights),
                "{mode:o}"
            );
        }
    }
}
