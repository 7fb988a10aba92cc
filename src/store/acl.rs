//! Access control lists (acl(5)), in the form of Linux's attribute (`linux/posix_acl_xattr.h`).

use std::collections::BTreeMap;

/// What an access control list grants to all but the owner of a file, under its mask. Permissions
/// are numbers as in a digit of a mode: 4 read, 2 write, 1 execute.
#[derive(Debug)]
pub struct Acl {
    /// Permissions of the named users, for whom the entries of groups do not count
    pub users: BTreeMap<u32, u32>,
    /// Permissions of the named groups
    pub groups: BTreeMap<u32, u32>,
    /// Permissions of the file's own group
    pub own_group: u32,
    /// Permissions of all other users, which the mask does not limit
    pub others: u32,
}

impl Acl {
    /// The list that is equivalent to the mode of a file without a list.
    pub fn of_mode(mode: u32) -> Acl {
        Acl {
            users: BTreeMap::new(),
            groups: BTreeMap::new(),
            own_group: mode >> 3 & 7,
            others: mode & 7,
        }
    }

    /// Parses the value of the attribute. `None` if it is malformed, or of another version.
    pub fn parse(value: &[u8]) -> Option<Acl> {
        const VERSION: [u8; 4] = [2, 0, 0, 0];
        const OWNER: u16 = 0x01;
        const USER: u16 = 0x02;
        const OWN_GROUP: u16 = 0x04;
        const GROUP: u16 = 0x08;
        const MASK: u16 = 0x10;
        const OTHER: u16 = 0x20;
        let (entries, []) = value.strip_prefix(&VERSION)?.as_chunks::<8>() else {
            return None;
        };
        let mut users = BTreeMap::new();
        let mut groups = BTreeMap::new();
        let mut own_group = None;
        let mut others = None;
        let mut mask = 7;
        for &[tag0, tag1, low, high, ref id @ ..] in entries {
            let id = u32::from_le_bytes(*id);
            let permissions = u16::from_le_bytes([low, high]).into();
            match u16::from_le_bytes([tag0, tag1]) {
                USER => _ = users.insert(id, permissions),
                GROUP => _ = groups.insert(id, permissions),
                OWN_GROUP => own_group = Some(permissions),
                MASK => mask = permissions,
                OTHER => others = Some(permissions),
                OWNER => {}
                _ => return None,
            }
        }
        users
            .values_mut()
            .chain(groups.values_mut())
            .for_each(|permissions| *permissions &= mask);
        Some(Acl {
            users,
            groups,
            own_group: own_group? & mask,
            others: others?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: [u8; 8] = [1, 0, 6, 0, 255, 255, 255, 255];
    const USER_7: [u8; 8] = [2, 0, 6, 0, 7, 0, 0, 0];
    const OWN_GROUP: [u8; 8] = [4, 0, 6, 0, 255, 255, 255, 255];
    const GROUP_300: [u8; 8] = [8, 0, 5, 0, 44, 1, 0, 0];
    const MASK: [u8; 8] = [16, 0, 4, 0, 255, 255, 255, 255];
    const OTHER: [u8; 8] = [32, 0, 7, 0, 255, 255, 255, 255];

    fn parse(version: u8, entries: &[[u8; 8]]) -> Option<Acl> {
        Acl::parse(&[&[version, 0, 0, 0], entries.as_flattened()].concat())
    }

    #[test]
    fn list_grants_users_and_groups_what_its_mask_leaves() {
        let entries = [OWNER, USER_7, OWN_GROUP, GROUP_300, OTHER];
        let acl = parse(2, &entries).expect("a list");
        assert_eq!(acl.users, BTreeMap::from([(7, 6)]));
        assert_eq!(acl.groups, BTreeMap::from([(300, 5)]));
        assert_eq!((acl.own_group, acl.others), (6, 7));

        let acl = parse(2, &[&entries[..], &[MASK]].concat()).expect("a list");
        assert_eq!(acl.users, BTreeMap::from([(7, 4)]));
        assert_eq!(acl.groups, BTreeMap::from([(300, 4)]));
        assert_eq!((acl.own_group, acl.others), (4, 7));
    }

    #[test]
    fn list_that_is_not_understood_is_none() {
        let unknown = [64, 0, 6, 0, 255, 255, 255, 255];
        assert!(parse(1, &[OWNER, OWN_GROUP, OTHER]).is_none());
        assert!(parse(2, &[OWNER, OTHER]).is_none());
        assert!(parse(2, &[OWNER, OWN_GROUP]).is_none());
        assert!(parse(2, &[OWNER, OWN_GROUP, OTHER, unknown]).is_none());
        assert!(Acl::parse(&[2, 0, 0, 0, 4, 0, 6]).is_none());
        assert!(Acl::parse(b"").is_none());
    }
}
