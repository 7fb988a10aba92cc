//! `comedor configure`: writes pasted settings to the settings file, the only command for root.
//!
//! What is pasted is data, read by the parser of requests. The command shows what it changes, and asks; it
//! looks at nothing else, and starts nothing.

mod input;
mod next;
mod settings_file;

use std::io::{self, Write};
use std::path::Path;

use crate::api::today;
use crate::config::{self, Config, SETTINGS, Setting, Settings};
use crate::session::SavePath;
use crate::sys::log::{self, printable};
pub use next::Server;
use settings_file::SettingsFile;

/// The options of the command.
#[derive(Debug, Default)]
pub struct Options {
    /// The web server whose commands are shown at the end
    pub server: Option<&'static Server>,
    /// The group that may read a file with a password
    pub group: Option<String>,
    /// Ask nothing
    pub yes: bool,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Input(#[from] input::Error),
    #[error("no settings were pasted")]
    NoSettings,
    #[error(transparent)]
    Settings(#[from] config::Error),
    #[error(transparent)]
    Zone(#[from] today::Error),
    #[error(transparent)]
    File(#[from] settings_file::Error),
}

/// Runs the command. The exit status is 0 if the settings are in the file, or if there are none and the commands for a
/// web server are wanted.
pub fn run(options: &Options) -> u8 {
    match configure(options) {
        Ok(()) => {
            print(&next::steps(options.server));
            0
        }
        Err(error) => {
            log::log(&format!("{error}; nothing was written"));
            1
        }
    }
}

fn configure(options: &Options) -> Result<(), Error> {
    let file = SettingsFile::open()?;
    let pasted = input::read()?;
    let pasted = Settings::default().with_file(Path::new("standard input"), &pasted)?;
    if SETTINGS.iter().all(|setting| pasted.get(setting).is_none()) {
        options.server.ok_or(Error::NoSettings)?;
        print("No settings: nothing was written.\n");
        return Ok(());
    }
    let content = file.with(&pasted);
    let settings = Settings::default().with_file(&file.path, &content)?;
    let config = Config::from_settings(&settings)?;
    // Requests read the zone's file only if they need it.
    today::today(&config.zone)?;
    print(&changes(&file, &pasted));
    if content == file.content {
        print("The file has these settings already.\n");
        return Ok(());
    }
    if !options.yes {
        input::confirm()?;
    }
    let readers = if has_password(&config) {
        file.only_group(options.group.as_deref())?
    } else {
        file.as_before()
    };
    file.replace(&content, &readers)?;
    print(&format!("Wrote {}\n", file.path.display()));
    Ok(())
}

fn has_password(config: &Config) -> bool {
    match &config.session.save_path {
        SavePath::Files(_) => false,
        SavePath::Redis(server) => server.login.is_some(),
    }
}

/// Each pasted setting, old and new.
fn changes(file: &SettingsFile, pasted: &Settings) -> String {
    let mut text = format!("{}:\n", file.path.display());
    // A line that cannot be used may be one that is replaced.
    let old = Settings::default()
        .with_file(&file.path, &file.content)
        .unwrap_or_else(|error| {
            text += &format!("  before: {error}\n");
            Settings::default()
        });
    for setting in SETTINGS {
        let Some(new) = pasted.get(setting) else {
            continue;
        };
        let shown_new = shown(setting, new);
        let line = match old.get(setting) {
            Some(old) if old == new => format!("{shown_new} (unchanged)"),
            Some(old) if shown(setting, old) == shown_new => {
                format!("{shown_new} (another password)")
            }
            Some(old) => format!("{shown_new} (before: {})", shown(setting, old)),
            None if setting.default.is_empty() => format!("{shown_new} (before: none)"),
            None => format!("{shown_new} (before: {}, the default)", setting.default),
        };
        text += &format!("  {}={line}\n", setting.name);
    }
    text
}

fn shown(setting: &Setting, value: &[u8]) -> String {
    printable(&setting.without_password(value))
}

/// Ignores that standard output is closed.
fn print(text: &str) {
    _ = io::stdout().write_all(text.as_bytes());
}
