//! The settings file: `comedor.conf` in the folder of the executable, else
//! `/etc/comedor/comedor.conf`.
//!
//! The file also works if the program does not get the variables of the web server: suEXEC drops
//! those that are not on its list (Apache's support/suexec.c), rewrite rules rename them to
//! `REDIRECT_…`, and a shell does not have them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Error, Setting};
use crate::shared_file::{self, Fault};

/// The settings of a file, each with its line number.
pub struct SettingsFile {
    pub path: PathBuf,
    settings: Vec<(usize, &'static str, Vec<u8>)>,
}

impl SettingsFile {
    /// Reads the first of the two files that exists. Fails if it is unreadable or has an invalid
    /// line.
    pub fn find() -> Result<Option<SettingsFile>, Error> {
        let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name("comedor.conf"));
        for path in beside.into_iter().chain([PathBuf::from("/etc/comedor/comedor.conf")]) {
            match read(&path) {
                Ok(bytes) => return SettingsFile::parse(path, &bytes).map(Some),
                Err(fault) if fault.is_absent() => {}
                Err(fault) if fault.kind() == Some(ErrorKind::NotADirectory) => {}
                Err(source) => return Err(Error::Unreadable { path, source }),
            }
        }
        Ok(None)
    }

    /// Parses `NAME=value` lines. Blank lines and lines that start with `#` are skipped.
    pub fn parse(path: PathBuf, bytes: &[u8]) -> Result<SettingsFile, Error> {
        let mut settings: Vec<(usize, &'static str, Vec<u8>)> = Vec::new();
        for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            match parse_line(line, &settings) {
                Ok((name, value)) => settings.push((index + 1, name, value.to_vec())),
                Err(problem) => return Err(Error::Line { path, line: index + 1, problem }),
            }
        }
        Ok(SettingsFile { path, settings })
    }

    /// The value of `name` and its line number.
    pub fn get(&self, name: &str) -> Option<(usize, &[u8])> {
        let found = self.settings.iter().find(|(_, known, _)| *known == name);
        found.map(|(line, _, value)| (*line, value.as_slice()))
    }
}

fn parse_line<'l>(
    line: &'l [u8],
    earlier: &[(usize, &'static str, Vec<u8>)],
) -> Result<(&'static str, &'l [u8]), String> {
    if line.starts_with(b"\xef\xbb\xbf") {
        return Err("the file starts with a byte order mark; save it as UTF-8 without one".into());
    }
    let equals = line.iter().position(|&byte| byte == b'=').ok_or("expected NAME=value")?;
    let (name, value) = (line[..equals].trim_ascii(), line[equals + 1..].trim_ascii());
    let Some(known) = Setting::find(name) else {
        return Err(format!("unknown setting `{}`", String::from_utf8_lossy(name)));
    };
    if let Some((first, ..)) = earlier.iter().find(|(_, earlier, _)| *earlier == known.name) {
        return Err(format!("duplicate setting `{}` (first set in line {first})", known.name));
    }
    if value.starts_with(b"\"") || value.starts_with(b"'") {
        return Err(format!("the value of {} is in quotes; remove them", known.name));
    }
    Ok((known.name, value))
}

/// Symbolic links are followed: only the administrator can create the settings file.
fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    Ok(shared_file::read(&shared_file::open_followed(path)?)?.0)
}
