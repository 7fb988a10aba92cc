//! The edges of the process: environment, standard input, standard output, standard error.

use std::io::{self, Write};
use std::panic;
use std::path::Path;
use std::process::{ExitCode, exit};

use comedor::cgi::{Output, Variables, input};
use comedor::check::{self, Report, Subject};
use comedor::config::{Config, SETTINGS};
use comedor::error::Error;
use comedor::fastcgi::{self, Limits, Socket};
use comedor::leave;
use comedor::log::log;
use comedor::responder::Responder;
use rustix::io::{retry_on_intr, write};
use rustix::stdio::stdout;

const USAGE: &str = "\
comedor: the dining-hall menu API of a PHP school application, for CGI and FastCGI

A web server runs it at api/comedor.php, once per request, with the variables of CGI/1.1.
If its standard input is a listening Unix socket, it serves FastCGI until SIGTERM.

usage:
  comedor check             check settings, folders and data; run it as the web server's user
  comedor check --session   check the session whose id is on standard input
                --json      print the findings as one JSON document
  comedor fastcgi SOCKET    create the Unix socket SOCKET and serve FastCGI on it
  comedor --help            print this text
  comedor --version         print the version

Exit status of a check: 0 no problem, 1 warnings, 2 errors.
";

const SETTINGS_INTRO: &str = "
Settings are lines NAME=value in comedor.conf beside the program, else in
/etc/comedor/comedor.conf; an environment variable of the same name wins:

";

fn main() -> ExitCode {
    let variables = Variables::of_process();
    if variables.is_cgi() {
        return answer_cgi(&variables);
    }
    match Socket::inherited() {
        Ok(Some(socket)) => serve_fastcgi(socket),
        Ok(None) => run_command(),
        Err(error) => fail(&format!("standard input: {error}")),
    }
}

/// Serves FastCGI until SIGTERM or SIGUSR1.
fn serve_fastcgi(socket: Socket) -> ExitCode {
    comedor::ignore_file_size_signal();
    let served = comedor::block_stop_signals()
        .and_then(|stop| fastcgi::serve(socket, &Responder::default(), &Limits::default(), stop));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("FastCGI: {error}")),
    }
}

fn fail(cause: &str) -> ExitCode {
    log(cause);
    ExitCode::FAILURE
}

fn answer_cgi(variables: &Variables) -> ExitCode {
    let method = variables.method();
    // The server gets a well-formed response in any case. After a panic it is unknown whether a
    // change was stored.
    panic::set_hook(Box::new(move |panic| {
        respond(&Output::new(Err(Error::perhaps_stored(panic.to_string())), method));
        exit(0);
    }));
    comedor::ignore_file_size_signal();
    let mut body = input::limited(variables, io::stdin());
    let config = Config::load();
    respond(&comedor::answer(&config, variables, &mut body));
    input::drain(&mut body);
    if config.is_ok_and(|config| leave::is_wanted(&config, variables)) {
        leave::hold_end_of_file();
    }
    ExitCode::SUCCESS
}

/// A server that has gone away is not an error: what was stored stays stored.
fn respond(output: &Output) {
    if !output.stderr.is_empty() {
        _ = io::stderr().write_all(&output.stderr);
    }
    let mut rest = output.stdout.as_slice();
    // The standard library's stdout would split this into two writes.
    while !rest.is_empty()
        && let Ok(written @ 1..) = retry_on_intr(|| write(stdout(), rest))
    {
        rest = &rest[written..];
    }
}

fn run_command() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(|word| word.to_str().unwrap_or("?")).collect();
    match arguments.as_slice() {
        ["check", options @ ..] if options.iter().all(|o| ["--json", "--session"].contains(o)) => {
            let is_session = options.contains(&"--session");
            let subject = if is_session { Subject::Session } else { Subject::Everything };
            let mut report = Report::new(options.contains(&"--json"));
            check::run(subject, &mut report);
            ExitCode::from(report.finish())
        }
        ["fastcgi", path] => match Socket::bind(Path::new(path)) {
            Ok(socket) => serve_fastcgi(socket),
            Err(error) => fail(&format!("{path}: {error}")),
        },
        ["--help"] => print(&help()),
        ["--version"] => print(concat!("comedor ", env!("CARGO_PKG_VERSION"), "\n")),
        words => {
            match words.first() {
                Some(word) => log(&format!("unknown command `{word}`")),
                None => log("missing command"),
            }
            _ = io::stderr().write_all(USAGE.as_bytes());
            ExitCode::from(2)
        }
    }
}

fn help() -> String {
    let mut text = [USAGE, SETTINGS_INTRO].concat();
    for setting in &SETTINGS {
        let default = if setting.default.is_empty() { "none" } else { setting.default };
        text += &format!("  {:24} {} (default: {default})\n", setting.name, setting.summary);
    }
    text
}

/// A closed standard output is not an error.
fn print(text: &str) -> ExitCode {
    _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
