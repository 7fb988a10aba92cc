//! The extended attributes of a file (xattr(7)) that its replacement keeps.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;

use xattr::FileExt;

use super::acl::Acl;

/// The access control list
pub const ACL: &str = "system.posix_acl_access";

/// Names and values of the access control list, of SELinux's label and of user attributes. Of the others some
/// belong to one content (`security.ima`), and some only root can see.
#[derive(Debug)]
pub struct Attributes(BTreeMap<OsString, Vec<u8>>);

impl Attributes {
    pub fn of(file: &File) -> io::Result<Attributes> {
        let mut kept = BTreeMap::new();
        for name in names(file)?.filter(|name| is_kept(name)) {
            match file.get_xattr(&name) {
                Ok(value) => kept.extend(value.map(|value| (name, value))),
                Err(error) if name == ACL => return Err(error),
                Err(_) => {}
            }
        }
        Ok(Attributes(kept))
    }

    /// What the access control list grants, or the `mode` of the file if it has no list. `None` if the list is
    /// malformed.
    pub fn acl(&self, mode: u32) -> Option<Acl> {
        self.0
            .get(OsStr::new(ACL))
            .map_or(Some(Acl::of_mode(mode)), |value| Acl::parse(value))
    }

    /// Sets these attributes on a new file. If they have no access control list, the file ends without a list,
    /// even if its folder has a default list. Other attributes that cannot be set are left out.
    pub fn set(&self, file: &File) -> io::Result<()> {
        if !self.0.contains_key(OsStr::new(ACL)) && names(file)?.any(|name| name == ACL) {
            file.remove_xattr(ACL)?;
        }
        for (name, kept) in &self.0 {
            // SELinux may forbid even setting the label that the file has.
            if file
                .get_xattr(name)
                .is_ok_and(|current| current.as_ref() == Some(kept))
            {
                continue;
            }
            let outcome = file.set_xattr(name, kept);
            if name == ACL {
                outcome?;
            }
        }
        Ok(())
    }
}

/// Whether a replacement keeps the attribute `name`.
fn is_kept(name: &OsStr) -> bool {
    name == ACL || name == "security.selinux" || name.as_bytes().starts_with(b"user.")
}

/// The names of the attributes; none if the file system has no attributes.
fn names(file: &File) -> io::Result<impl Iterator<Item = OsString>> {
    let names = match file.list_xattr() {
        Err(error) if error.kind() == ErrorKind::Unsupported => None,
        names => Some(names?),
    };
    Ok(names.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacement_keeps_list_label_and_user_attributes_alone() {
        for (name, expected) in [
            (ACL, true),
            ("security.selinux", true),
            ("user.note", true),
            ("security.ima", false),
            ("security.capability", false),
            ("trusted.note", false),
            ("system.posix_acl_default", false),
        ] {
            assert_eq!(is_kept(OsStr::new(name)), expected, "{name}");
        }
    }
}
