//! The commands of an administrator.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::check;
use crate::config::SETTINGS;
use crate::configure;
use crate::sys::log::log;

const USAGE: &str = "\
comedor: the dining-hall menu API of a PHP school application, for CGI and FastCGI

A web server runs it at api/comedor.php, once per request, with the variables of CGI/1.1.
Without arguments, if its standard input is a listening Unix socket, it serves FastCGI until SIGTERM.

usage:
  comedor check             check settings, folders and data, as the user who runs it; changes nothing
                --json      print the findings as one JSON document
                --session   check a session; reads the value of its cookie from standard input
  comedor configure         as root: read NAME=value lines from standard input up to an empty line, show
                            what changes, ask, and write comedor.conf
                --server NAME
                            then print the commands for this web server: apache, apache-fastcgi,
                            nginx, caddy or lighttpd
                --group NAME
                            PHP's group, which may read a file with a password of Redis
                --yes       do not ask
  comedor fastcgi SOCKET    create the Unix socket SOCKET and serve FastCGI on it
  comedor --help            print this text
  comedor --version         print the version

Exit status of check: 0 no problem, 1 warnings, 2 errors. Of configure: 0 done, 1 nothing was written.
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

/// Runs the command that the arguments after the program's name are.
#[cold]
pub fn run(arguments: &[&[u8]]) -> Next {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| str::from_utf8(word).unwrap_or("?"))
        .collect();
    Next::Exit(match words.as_slice() {
        ["--help"] | ["check" | "configure", "--help"] => print(&help()),
        ["--version"] => print(concat!("comedor ", env!("CARGO_PKG_VERSION"), "\n")),
        ["check", options @ ..] => check(options),
        ["configure", options @ ..] => configure(options),
        ["fastcgi", _] => return Next::Serve(PathBuf::from(OsStr::from_bytes(arguments[1]))),
        ["fastcgi", ..] => misused("`fastcgi` needs one argument: SOCKET"),
        [option, ..] if option.starts_with('-') => misused(&format!("unknown option `{option}`")),
        [command, ..] => misused(&format!("unknown command `{command}`")),
        [] => misused("missing command"),
    })
}

fn check(words: &[&str]) -> u8 {
    let mut options = check::Options::default();
    for word in words {
        match *word {
            "--json" => options.as_json = true,
            "--session" => options.is_session = true,
            _ => return misused(&format!("unknown option `{word}` of `check`")),
        }
    }
    let outcome = check::run(options);
    print(&outcome.text);
    outcome.status
}

fn configure(words: &[&str]) -> u8 {
    let mut options = configure::Options::default();
    let mut rest = words;
    loop {
        rest = match rest {
            [] => return configure::run(&options),
            ["--yes", rest @ ..] => {
                options.yes = true;
                rest
            }
            ["--server", name, rest @ ..] => {
                options.server = configure::Server::find(name);
                if options.server.is_none() {
                    return misused(&format!("unknown web server `{name}`"));
                }
                rest
            }
            ["--group", name, rest @ ..] => {
                options.group = Some((*name).to_owned());
                rest
            }
            [option, ..] => {
                return misused(&format!(
                    "unknown or incomplete option `{option}` of `configure`"
                ));
            }
        }
    }
}

fn misused(problem: &str) -> u8 {
    log(problem);
    _ = io::stderr().write_all(USAGE.as_bytes());
    2
}

fn help() -> String {
    let mut text = [USAGE, SETTINGS_INTRO].concat();
    for setting in SETTINGS {
        let default = if setting.default.is_empty() {
            "none"
        } else {
            setting.default
        };
        text += &format!(
            "  {:24} {} (default: {default})\n",
            setting.name, setting.summary
        );
    }
    text
}

/// Ignores that standard output is closed.
fn print(text: &str) -> u8 {
    _ = io::stdout()
        .write_all(text.as_bytes())
        .and_then(|()| io::stdout().flush());
    0
}
