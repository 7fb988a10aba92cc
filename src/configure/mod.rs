//! `comedor configure`: writes pasted settings to the settings file, the only command for root.
//!
//! What is pasted is data, read by the parser of requests. The command shows what it changes, and asks; it
//! looks at nothing that a value names, and starts nothing.

mod input;
mod next;
mod settings_file;
mod unusual;

use std::io::{self, Write};
use std::path::Path;

use crate::config::{self, Config, SETTINGS, Setting, Settings};
use crate::session::SavePath;
use crate::sys::log::{self, printable};
use input::Terminal;
pub use next::Server;
use settings_file::SettingsFile;

/// The options of the command.
#[derive(Debug, Default)]
pub struct Options {
    /// The web server whose commands are shown at the end
    pub server: Option<&'static Server>,
    /// The group that may read a file with a password
    pub group: Option<String>,
    /// Ask nothing, unless the settings are pasted at a terminal
    pub yes: bool,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Paste(#[from] input::PasteError),
    #[error("no settings were pasted")]
    NoSettings,
    #[error(transparent)]
    Settings(#[from] config::Error),
    #[error(transparent)]
    Unusual(#[from] unusual::Error),
    #[error(transparent)]
    Answer(#[from] input::AnswerError),
    #[error(transparent)]
    Open(settings_file::Error),
    #[error(transparent)]
    Write(settings_file::Error),
}

impl Error {
    /// Whether more of a paste may come: this happened before an answer. The command and the settings can be pasted
    /// together.
    fn is_unanswered(&self) -> bool {
        !matches!(self, Error::Answer(_) | Error::Write(_))
    }
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
            if error.is_unanswered() {
                wait_for_end_of_paste();
            }
            1
        }
    }
}

fn configure(options: &Options) -> Result<(), Error> {
    let file = SettingsFile::open().map_err(Error::Open)?;
    let text = input::read()?;
    let pasted = Settings::default().with_file(Path::new("standard input"), &text)?;
    if SETTINGS.iter().all(|setting| pasted.get(setting).is_none()) {
        options.server.ok_or(Error::NoSettings)?;
        print("No settings: nothing was written.\n");
        wait_for_end_of_paste();
        return Ok(());
    }
    let content = file.with(&pasted);
    let settings = Settings::default().with_file(&file.path, &content)?;
    let config = Config::from_settings(&settings)?;
    let of_paste = Config::from_settings(&pasted)?;
    unusual::refuse(&of_paste)?;
    let (old, text) = changes(&file, &pasted);
    print(&text);
    confirm(options, &unusual::effects(&old, &pasted, &of_paste))?;
    let readers = if has_password(&config) {
        let readers = file.only_group(options.group.as_deref());
        readers.map_err(Error::Write)?
    } else {
        file.as_before()
    };
    // Also without a change: for `check`, the time of the file is the time of the last look at the set-up page.
    file.replace(&content, &readers).map_err(Error::Write)?;
    print(&format!("Wrote {}\n", file.path.display()));
    Ok(())
}

/// Asks whether to write the settings, and first about each effect of an unusual one. A script is told the effects.
fn confirm(options: &Options, effects: &[String]) -> Result<(), Error> {
    if options.yes && !input::is_terminal() {
        for effect in effects {
            print(&format!("{effect}\n"));
        }
        return Ok(());
    }
    let terminal = Terminal::open()?;
    for effect in effects {
        print(&format!("{effect}\n"));
        terminal.ask("If this is right")?;
    }
    print("To write nothing, press Ctrl-C.\n");
    Ok(terminal.ask("To write this")?)
}

/// At a terminal waits until an answer says that no more of a paste comes, which the shell would run.
fn wait_for_end_of_paste() {
    if input::is_terminal() {
        _ = Terminal::open().and_then(|terminal| terminal.ask("To end"));
    }
}

fn has_password(config: &Config) -> bool {
    match &config.session.save_path {
        SavePath::Files(_) => false,
        SavePath::Redis(server) => server.login.is_some(),
    }
}

/// The old settings, and the text of each pasted one, old and new.
fn changes(file: &SettingsFile, pasted: &Settings) -> (Settings, String) {
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
    (old, text)
}

fn shown(setting: &Setting, value: &[u8]) -> String {
    printable(&setting.without_password(value))
}

/// Ignores that standard output is closed.
fn print(text: &str) {
    _ = io::stdout().write_all(text.as_bytes());
}
