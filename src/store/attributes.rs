//! The extended attributes of a file (xattr(7)) that its replacement keeps.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, flistxattr_query, fremovexattr, fsetxattr};
use rustix::io::Errno;

use super::acl::Acl;

/// The access control list
const ACL: &[u8] = b"system.posix_acl_access";

/// The maximum size of a value, and of all names together (limits.h)
const MAX_SIZE: usize = 64 * 1024;

/// Names and values of the access control list, of SELinux's label and of user attributes. Of the others some
/// belong to one content (`security.ima`), and some only root can see.
#[derive(Debug)]
pub struct Attributes(BTreeMap<Vec<u8>, Vec<u8>>);

impl Attributes {
    pub fn of(file: &File) -> io::Result<Attributes> {
        let is_kept = |name: &Vec<u8>| {
            name == ACL || name == b"security.selinux" || name.starts_with(b"user.")
        };
        let mut kept = BTreeMap::new();
        for name in names(file)?.into_iter().filter(is_kept) {
            match value(file, &name) {
                Ok(value) => _ = kept.insert(name, value),
                Err(error) if name == ACL && error != Errno::NODATA => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(Attributes(kept))
    }

    /// What the access control list grants, or without one the `mode` of the file. `None` if the list
    /// is malformed.
    pub fn acl(&self, mode: u32) -> Option<Acl> {
        self.0.get(ACL).map_or(Some(Acl::of_mode(mode)), |value| Acl::parse(value))
    }

    /// Sets these attributes on a new file. Without an access control list among them the file ends without one,
    /// even if its folder has a default list. Other attributes that cannot be set are left out.
    pub fn set(&self, file: &File) -> io::Result<()> {
        if !self.0.contains_key(ACL) && names(file)?.iter().any(|name| name == ACL) {
            fremovexattr(file, ACL)?;
        }
        for (name, kept) in &self.0 {
            // SELinux may forbid even setting the label that the file has.
            if value(file, name).is_ok_and(|set| set == *kept) {
                continue;
            }
            let set = fsetxattr(file, name, kept, XattrFlags::empty());
            if name == ACL {
                set?;
            }
        }
        Ok(())
    }
}

/// The names of the attributes; none if the file system has no attributes.
fn names(file: &File) -> io::Result<Vec<Vec<u8>>> {
    match flistxattr_query(file) {
        Ok(0) | Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut names = Vec::with_capacity(MAX_SIZE);
    flistxattr(file, spare_capacity(&mut names))?;
    let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(<[u8]>::to_vec).collect())
}

fn value(file: &File, name: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut value = Vec::with_capacity(MAX_SIZE);
    fgetxattr(file, name, spare_capacity(&mut value))?;
    value.shrink_to_fit();
    Ok(value)
}
