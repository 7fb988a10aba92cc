//! Set-up's lines in the settings file: a marked block at its end. Everything else in it is the administrator's.

use std::fs;
use std::io::ErrorKind;
use std::mem::swap;
use std::path::Path;
use std::time::Instant;

use super::TIME;
use crate::admin::settings::{Wanted, equals};
use crate::admin::site::plain;
use crate::config::{Config, Setting, Settings};

pub const FILE: &str = "/etc/comedor/comedor.conf";

/// The first and the last line of the block
const BEGIN: &str = "# Written by `comedor setup`, which replaces these lines; to remove them: sudo comedor setup --undo";
const END: &str = "# End of the lines of `comedor setup`";

const DAMAGED: &str = "/etc/comedor/comedor.conf: the marks of set-up's lines are damaged; remove these lines, and the marks, by hand";

/// The settings file with set-up's lines.
#[derive(Debug, Default)]
pub struct SettingsFile {
    /// The content of the file
    pub old: Vec<u8>,
    /// What is not set-up's
    pub outside: Vec<u8>,
    /// Set-up's lines, and the same with their sources, as they are shown
    lines: String,
    pub shown: String,
}

impl SettingsFile {
    /// The file without set-up's lines. Without a file, it is empty.
    pub fn read() -> Result<SettingsFile, String> {
        match fs::read(FILE) {
            Ok(text) => SettingsFile::parse(text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(SettingsFile::default()),
            Err(error) => Err(format!("{FILE}: {error}")),
        }
    }

    fn parse(old: Vec<u8>) -> Result<SettingsFile, String> {
        let (mut outside, [mut next, mut other]) = (Vec::new(), [BEGIN, END]);
        for line in old.split_inclusive(|&byte| byte == b'\n') {
            match line.trim_ascii() {
                mark if mark == next.as_bytes() => swap(&mut next, &mut other),
                mark if mark == other.as_bytes() => return Err(DAMAGED.to_owned()),
                _ if next == BEGIN => outside.extend(line),
                _ => {}
            }
        }
        let file = SettingsFile { old, outside, ..SettingsFile::default() };
        (next == BEGIN).then_some(file).ok_or(DAMAGED.to_owned())
    }

    /// The file with set-up's lines.
    pub fn content(&self) -> Vec<u8> {
        let mut content = self.outside.clone();
        if !self.lines.is_empty() {
            if !matches!(content.last(), None | Some(b'\n')) {
                content.push(b'\n');
            }
            content.extend(format!("{BEGIN}\n{}{END}\n", self.lines).bytes());
        }
        content
    }

    pub fn config(&self) -> Result<Config, String> {
        Config::from_settings(&read(&self.content())?)
            .map_err(|error| format!("{FILE}: {error}; fix this first"))
    }

    /// Whether the administrator has set it.
    pub fn has_outside(&self, setting: &Setting) -> bool {
        read(&self.outside).is_ok_and(|settings| settings.get(setting).is_some())
    }

    /// Adds a line, unless the setting has this meaning.
    pub fn add(&mut self, Wanted { setting, what, value }: Wanted) -> Result<(), String> {
        let name = setting.name;
        if value.is_empty() {
            return Err(format!("{what} is not known"));
        }
        if equals(&self.config()?, setting, &value, Instant::now() + TIME) {
            return Ok(());
        }
        if self.has_outside(setting) {
            return Err(format!(
                "{name} in {} differs from {what}; correct or remove that line, then run this command again",
                read(&self.outside)?.source(setting)
            ));
        }
        // It may have a password.
        plain(&value).map_err(|_| {
            format!(
                "set {name} in {FILE} to {what}, then run this command again; set-up writes only [A-Za-z0-9._/-]"
            )
        })?;
        let line = format!("{name}={value}");
        self.shown += &format!("{line:34} ({what})\n");
        self.lines += &(line + "\n");
        Ok(())
    }
}

fn read(text: &[u8]) -> Result<Settings, String> {
    let settings = Settings::default().with_file(Path::new(FILE), text);
    settings.map_err(|error| format!("{error}; fix this first"))
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, SettingsFile};
    use crate::admin::settings::Wanted;
    use crate::config::{SERVICE, SESSION_DIR, SESSION_NAME, Setting};

    fn wanted(setting: &'static Setting, value: &str) -> Wanted {
        Wanted { setting, what: "PHP's".to_owned(), value: value.to_owned() }
    }

    /// Set-up's settings added to the text of a file.
    fn added(text: &str) -> Result<String, String> {
        let mut file = SettingsFile::parse(text.into())?;
        file.add(wanted(&SERVICE, "aulas"))?;
        file.add(wanted(&SESSION_NAME, "PHPSESSID"))?;
        Ok(String::from_utf8(file.content()).unwrap())
    }

    #[test]
    fn only_the_marked_lines_are_written_and_removed() {
        let block = format!("{BEGIN}\nCOMEDOR_SERVICE=aulas\n{END}\n");
        let old = block.replace("aulas", "old\nTZ=UTC");
        for (before, after) in [
            ("", block.clone()),
            ("# Ours\nTZ=UTC\n", format!("# Ours\nTZ=UTC\n{block}")),
            ("TZ=UTC", format!("TZ=UTC\n{block}")),
            (&old, block.clone()),
            (&old.replace('\n', "\r\n"), block.clone()),
            (&format!("{old}# Added\n"), format!("# Added\n{block}")),
            ("COMEDOR_SERVICE = aulas\n", "COMEDOR_SERVICE = aulas\n".to_owned()),
        ] {
            assert_eq!(added(before).unwrap(), after, "{before}");
            assert_eq!(added(&after).unwrap(), after, "twice");
            let without = SettingsFile::parse(after.clone().into()).unwrap().outside;
            assert_eq!(after.as_bytes(), [&without, &after.as_bytes()[without.len()..]].concat());
            assert!(!String::from_utf8(without).unwrap().contains("setup"), "{before}");
        }
    }

    #[test]
    fn what_set_up_cannot_write_is_named() {
        for (text, problem) in [
            ("#\nCOMEDOR_SERVICE=other\n", "COMEDOR_SERVICE in /etc/comedor/comedor.conf line 2"),
            ("COMEDOR_SERVICE\n", "line 1: expected NAME=value"),
            (BEGIN, "marks"),
            (END, "marks"),
            (&format!("{BEGIN}\n{BEGIN}\n{END}\n"), "marks"),
        ] {
            let error = added(text).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        let redis = wanted(&SESSION_DIR, "tcp://127.0.0.1:6379?auth=secret");
        let error = SettingsFile::default().add(redis).unwrap_err();
        assert!(error.contains("COMEDOR_SESSION_DIR") && !error.contains("secret"), "{error}");
    }
}
