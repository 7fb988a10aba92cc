//! Whether this process gives new files the mode that the saved days have.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::guide::SERVICE;
use super::report::counted;
use crate::store::attributes::ACL;
use crate::sys::process::umask;

/// The modes of the files of days, and how many have each
#[derive(Default)]
pub struct Modes(BTreeMap<u32, usize>);

impl Modes {
    /// Notes the mode of the file at `path`, unless an access control list has determined it.
    pub fn note(&mut self, path: &Path) {
        let has_list = xattr::get(path, ACL).is_ok_and(|list| list.is_some());
        if let Ok(file) = fs::symlink_metadata(path)
            && !has_list
        {
            *self.0.entry(file.mode() & 0o777).or_default() += 1;
        }
    }

    /// Says that the umask may not be PHP's, if most days have another mode than a new one would get: PHP has made most
    /// of them, at least if comedor is new.
    pub fn problem(&self) -> Option<String> {
        let days = self.0.values().sum();
        let (mode, count) = self.0.iter().max_by_key(|(_, count)| **count)?;
        let umask = umask()?;
        let new = 0o666 & !umask;
        if *mode == new || count * 2 <= days {
            return None;
        }
        let days = counted(days, "saved day");
        Some(format!(
            "with the umask {umask:04o} of this process a new day has the mode {new:04o}, but {count} of {days} have \
             {mode:04o}: if PHP has another umask, give comedor the same ({SERVICE})"
        ))
    }
}
