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
                --yes       do not ask, if standard input is not a terminal
  comedor fastcgi SOCKET    create the Unix socket SOCKET and serve FastCGI on it
  comedor --help            print this text
  comedor --version         print the version

Exit status of check: 0 no problem, 1 warnings, 2 errors. Of configure: 0 the file has the settings, 1 nothing
was written; 0 too if nothing is pasted with --server, which then prints only the commands.
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

/// Why the arguments are not a command.
#[derive(Debug, thiserror::Error)]
enum Misuse<'w> {
    #[error("missing command")]
    NoCommand,
    #[error("unknown command `{0}`")]
    UnknownCommand(&'w str),
    /// The files that it wrote name it as the command that removes them.
    #[error(
        "`setup` was removed after version 0.4.0; \"When you upgrade\" in /usr/share/doc/comedor/CHANGELOG.md has the commands that remove what it wrote"
    )]
    RemovedSetup,
    #[error("unknown option `{0}`")]
    UnknownOption(&'w str),
    #[error("unknown option `{option}` of `{command}`")]
    UnknownOptionOf {
        command: &'static str,
        option: &'w str,
    },
    #[error("`{word}` needs one argument: {argument}")]
    NoArgument {
        word: &'w str,
        argument: &'static str,
    },
    #[error("unknown web server `{0}`")]
    UnknownServer(&'w str),
}

/// Runs the command that the arguments after the program's name are.
#[cold]
pub fn run(arguments: &[&[u8]]) -> Next {
    command(arguments).unwrap_or_else(|misuse| {
        log(&misuse.to_string());
        _ = io::stderr().write_all(USAGE.as_bytes());
        Next::Exit(2)
    })
}

fn command<'w>(arguments: &[&'w [u8]]) -> Result<Next, Misuse<'w>> {
    let words: Vec<&str> = arguments
        .iter()
        .map(|word| str::from_utf8(word).unwrap_or("?"))
        .collect();
    match *words.as_slice() {
        ["--help"] | ["check" | "configure" | "fastcgi", "--help"] => Ok(print(&help(), 0)),
        ["--version"] => Ok(print(
            concat!("comedor ", env!("CARGO_PKG_VERSION"), "\n"),
            0,
        )),
        ["check", ref options @ ..] => check(options),
        ["configure", ref options @ ..] => configure(options),
        ["fastcgi", option] if option.starts_with('-') => Err(Misuse::UnknownOptionOf {
            command: "fastcgi",
            option,
        }),
        ["fastcgi", _] => Ok(Next::Serve(OsStr::from_bytes(arguments[1]).into())),
        ["fastcgi", ..] => Err(Misuse::NoArgument {
            word: "fastcgi",
            argument: "SOCKET",
        }),
        [option, ..] if option.starts_with('-') => Err(Misuse::UnknownOption(option)),
        ["setup", ..] => Err(Misuse::RemovedSetup),
        [command, ..] => Err(Misuse::UnknownCommand(command)),
        [] => Err(Misuse::NoCommand),
    }
}

fn check<'w>(words: &[&'w str]) -> Result<Next, Misuse<'w>> {
    let mut options = check::Options::default();
    for &word in words {
        match word {
            "--json" => options.as_json = true,
            "--session" => options.is_session = true,
            option => {
                return Err(Misuse::UnknownOptionOf {
                    command: "check",
                    option,
                });
            }
        }
    }
    let outcome = check::run(options);
    Ok(print(&outcome.text, outcome.status))
}

fn configure<'w>(words: &[&'w str]) -> Result<Next, Misuse<'w>> {
    let mut options = configure::Options::default();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "--yes" => options.yes = true,
            "--server" => options.server = Some(server(name_after(word, words.next())?)?),
            "--group" => options.group = Some(name_after(word, words.next())?.to_owned()),
            option => {
                return Err(Misuse::UnknownOptionOf {
                    command: "configure",
                    option,
                });
            }
        }
    }
    Ok(Next::Exit(configure::run(&options)))
}

fn name_after<'w>(word: &'w str, name: Option<&'w str>) -> Result<&'w str, Misuse<'w>> {
    name.ok_or(Misuse::NoArgument {
        word,
        argument: "NAME",
    })
}

fn server(name: &str) -> Result<&'static configure::Server, Misuse<'_>> {
    configure::Server::find(name).ok_or(Misuse::UnknownServer(name))
}

fn help() -> String {
    let mut text = [USAGE, SETTINGS_INTRO].concat();
    for setting in SETTINGS {
        let default = match setting.default {
            "" => "none",
            default => default,
        };
        text += &format!(
            "  {:24} {} (default: {default})\n",
            setting.name, setting.summary
        );
    }
    text
}

/// Prints the result of a command, and exits with `status`. Ignores that standard output is closed.
fn print(text: &str, status: u8) -> Next {
    _ = io::stdout()
        .write_all(text.as_bytes())
        .and_then(|()| io::stdout().flush());
    Next::Exit(status)
}
