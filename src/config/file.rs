//! The settings file: `comedor.conf` beside the executable, else `/etc/comedor/comedor.conf`.
//!
//! It reaches the program where variables of the web server don't: suEXEC drops those that are
//! not on its list (Apache's support/suexec.c), rewrite rules rename them to `REDIRECT_…`, and a
//! shell never sees them.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{Error, SETTINGS};
use crate::cgi::Variables;
use crate::system;

/// The settings of a file, each with its line.
#[derive(Debug)]
pub struct SettingsFile {
    /// Where it is
    pub path: PathBuf,
    settings: Vec<(usize, &'static str, Vec<u8>)>,
}

impl SettingsFile {
    /// Reads the first of the two files that is there. Refuses one that can't be read or has a
    /// line that is no setting.
    pub fn find() -> Result<Option<SettingsFile>, Error> {
        let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name("comedor.conf"));
        for path in beside.into_iter().chain([PathBuf::from("/etc/comedor/comedor.conf")]) {
            match read(&path) {
                Ok(bytes) => return SettingsFile::parse(path, &bytes).map(Some),
                // A part of the path that is no folder holds no file either.
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(source) => return Err(Error::Unreadable { path, source }),
            }
        }
        Ok(None)
    }

    /// Takes `NAME=value` lines; blank ones and those that start with `#` are passed over.
    pub(crate) fn parse(path: PathBuf, bytes: &[u8]) -> Result<SettingsFile, Error> {
        let mut settings: Vec<(usize, &'static str, Vec<u8>)> = Vec::new();
        for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            match setting(line, &settings) {
                Ok((name, value)) => settings.push((index + 1, name, value.to_vec())),
                Err(problem) => return Err(Error::Line { path, line: index + 1, problem }),
            }
        }
        Ok(SettingsFile { path, settings })
    }

    /// The line that sets `name`.
    pub fn line(&self, name: &str) -> Option<usize> {
        self.settings.iter().find(|(_, known, _)| *known == name).map(|(line, ..)| *line)
    }

    /// Adds its settings to `variables`; those that are there win.
    pub fn add_to(self, variables: &mut Variables) {
        for (_, name, value) in self.settings {
            variables.add(name, value);
        }
    }
}

fn setting<'l>(
    line: &'l [u8],
    before: &[(usize, &'static str, Vec<u8>)],
) -> Result<(&'static str, &'l [u8]), &'static str> {
    let equals = line.iter().position(|&byte| byte == b'=').ok_or("is no NAME=value")?;
    let (name, value) = (line[..equals].trim_ascii(), line[equals + 1..].trim_ascii());
    let mut known = SETTINGS.iter().map(|(name, _)| *name);
    let name = known
        .find(|known| known.as_bytes() == name)
        .ok_or("names a setting that there is none of")?;
    if before.iter().any(|(_, known, _)| *known == name) {
        return Err("sets a second time what is set above");
    }
    if value.starts_with(b"\"") || value.starts_with(b"'") {
        return Err("has quotes around its value; leave them out");
    }
    Ok((name, value))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // The administrator's own, which may be a link to where he keeps it.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > system::MAX_SIZE {
        return Err(io::Error::other("is no regular file of at most 16 MiB"));
    }
    system::read(&file, metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SettingsFile, Error> {
        SettingsFile::parse(PathBuf::from("/x/comedor.conf"), text.as_bytes())
    }

    #[test]
    fn settings_are_taken_line_by_line_and_the_environment_wins() {
        let text = "\n# the school\r\n COMEDOR_SERVICE = kitchen \r\nTZ=Europe/Madrid\nCOMEDOR_DATA_DIR=/a b=c";
        let file = parse(text).unwrap();
        assert_eq!((file.line("TZ"), file.line("COMEDOR_SESSION_NAME")), (Some(4), None));
        let mut variables = Variables::from_pairs([("TZ", "UTC")]);
        file.add_to(&mut variables);
        let get = |name| variables.get(name);
        assert_eq!(get("COMEDOR_SERVICE"), Some(b"kitchen".as_slice()));
        assert_eq!(get("COMEDOR_DATA_DIR"), Some(b"/a b=c".as_slice()));
        assert_eq!(get("TZ"), Some(b"UTC".as_slice()));
    }

    #[test]
    fn a_line_that_is_no_setting_is_named() {
        for line in [
            "COMEDOR_SERVICE",
            "COMEDOR_SERVISE=x",
            "PATH=/bin",
            "export TZ=UTC",
            "\u{feff}TZ=UTC",
            "TZ=\"UTC\"",
            "TZ=UTC\nTZ=UTC",
        ] {
            let error = parse(&format!("# first\n{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with("/x/comedor.conf:"), "{error}");
        }
        let error = parse("# first\nTZ UTC\n").unwrap_err();
        assert_eq!(error.to_string(), "/x/comedor.conf:2: the line is no NAME=value");
    }
}
