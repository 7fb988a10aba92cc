//! The commands of an administrator.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::admin::check;
use crate::admin::setup;
use crate::config::SETTINGS;
use crate::sys::log::log;

const USAGE: &str = "\
comedor: the dining-hall menu API of a PHP school application, for CGI and FastCGI

A web server runs it at api/comedor.php, once per request, with the variables of CGI/1.1.
If its standard input is a listening Unix socket, it serves FastCGI until SIGTERM.

usage:
  comedor check [ADDRESS]   as root: check settings, folders, data, web server and PHP script
                --no-page   do not ask PHP for its settings by a page beside the script
                --json      print the findings as one JSON document
                --session   check a session; reads the value of its cookie from standard input
                --socket SOCKET
                            check this FastCGI socket instead of /run/comedor/comedor.sock
  comedor setup [ADDRESS]   put comedor in place of the PHP script, and try it; as root
                --dry-run   only show what it would do
                --yes       ask nothing
                --cgi, --fastcgi
                            how the web server runs comedor
                --script FILE, --server NAME, --service NAME, --data FOLDER
                            what is not found, or not clear
  comedor setup --undo      put everything back
  comedor fastcgi SOCKET    create the Unix socket SOCKET and serve FastCGI on it
  comedor --help            print this text
  comedor --version         print the version

Exit status of a check: 0 no problem, 1 warnings, 2 errors. Of set-up: 0 done, 1 failed and put back,
3 lines must be added to the web server's configuration, or removed from it.
";

const SETTINGS_INTRO: &str = "
Settings are lines NAME=value in comedor.conf in the folder of the program, else in
/etc/comedor/comedor.conf. An environment variable of the same name takes precedence:

";

/// What the process does after a command.
#[derive(Debug)]
pub enum Next {
    /// Exit with this status
    Exit(u8),
    /// Serve FastCGI on a new socket at this path
    Serve(PathBuf),
}

/// Runs the command that the arguments name.
#[cold]
pub fn run(arguments: impl Iterator<Item = &'static [u8]>) -> Next {
    let arguments: Vec<_> = arguments.skip(1).map(OsStr::from_bytes).collect();
    let words: Vec<_> = arguments.iter().map(|word| word.to_str().unwrap_or("?")).collect();
    Next::Exit(match words.as_slice() {
        ["--help"] | ["check" | "setup", "--help"] => print(&help()),
        ["--version"] => print(concat!("comedor ", env!("CARGO_PKG_VERSION"), "\n")),
        ["check", options @ ..] => check(options),
        ["setup", "--undo"] => setup::run(&setup::Options { undo: true, ..Default::default() }),
        ["setup", options @ ..] => set_up(options),
        ["fastcgi", _] => return Next::Serve(PathBuf::from(arguments[1])),
        ["fastcgi", ..] => misused("`fastcgi` needs one argument: SOCKET"),
        [option, ..] if option.starts_with('-') => misused(&format!("unknown option `{option}`")),
        [command, ..] => misused(&format!("unknown command `{command}`")),
        [] => misused("missing command"),
    })
}

fn check(words: &[&str]) -> u8 {
    let mut options = check::Options::default();
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--json" => options.as_json = true,
            "--no-page" => options.no_page = true,
            "--session" => options.is_session = true,
            "--socket" => match words.next() {
                Some(path) => options.socket = Some(PathBuf::from(path)),
                None => return misused("`--socket` needs an argument: SOCKET"),
            },
            address if !address.starts_with('-') && options.address.is_none() => {
                options.address = Some(address.to_owned());
            }
            _ => return misused(&format!("unknown option `{word}` of `check`")),
        }
    }
    let (findings, status) = check::run(&options);
    print(&findings);
    status
}

fn set_up(words: &[&str]) -> u8 {
    let mut options = setup::Options::default();
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--dry-run" => options.dry_run = true,
            "--yes" => options.yes = true,
            "--cgi" => options.cgi = true,
            "--fastcgi" => options.fastcgi = true,
            "--script" | "--server" | "--service" | "--data" => {
                let Some(&value) = words.next() else {
                    return misused(&format!("`{word}` needs an argument"));
                };
                let value = Some(value.to_owned());
                match word {
                    "--script" => options.script = value.map(PathBuf::from),
                    "--server" => options.server = value,
                    "--service" => options.service = value,
                    _ => options.data = value,
                }
            }
            address if !address.starts_with('-') && options.address.is_none() => {
                options.address = Some(address.to_owned());
            }
            _ => return misused(&format!("unknown option `{word}` of `setup`")),
        }
    }
    setup::run(&options)
}

fn misused(problem: &str) -> u8 {
    log(problem);
    _ = io::stderr().write_all(USAGE.as_bytes());
    2
}

fn help() -> String {
    let mut text = [USAGE, SETTINGS_INTRO].concat();
    for setting in SETTINGS {
        let default = if setting.default.is_empty() { "none" } else { setting.default };
        text += &format!("  {:24} {} (default: {default})\n", setting.name, setting.summary);
    }
    text
}

/// Ignores that standard output is closed.
fn print(text: &str) -> u8 {
    _ = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
    0
}
