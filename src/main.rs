//! The edges of the process: environment, standard input, standard output, standard error.

use std::io::{self, Write};
use std::panic;
use std::process::{ExitCode, exit};

use comedor::cgi::{Response, Variables, body};
use comedor::check::{self, Report, Subject};
use comedor::config::SETTINGS;
use comedor::error::Error;
use comedor::leave;
use comedor::log::log;
use rustix::io::{retry_on_intr, write};
use rustix::stdio::stdout;

const HELP: &str = "\
comedor: the dining-hall menu API of a PHP school application, as a CGI program

A web server runs it at api/comedor.php, once for each request, with the variables of CGI/1.1.

  comedor check             look at settings, folders and data; run it as the web server's user
  comedor check --session   look at the session whose id comes on standard input
                --json      the same findings as one JSON document
  comedor --help            print this
  comedor --version         print the version

Exit status of a check: 0 all well, 1 warnings, 2 something will not work.

Settings are variables of the environment, else lines NAME=value of comedor.conf beside the program, else of
/etc/comedor/comedor.conf: COMEDOR_SERVICE, COMEDOR_DATA_DIR, COMEDOR_SESSION_DIR, COMEDOR_SESSION_NAME,
COMEDOR_SESSION_FORMAT, COMEDOR_SESSION_MAX_AGE, COMEDOR_TRUSTED_ORIGINS, COMEDOR_LEAVE_EARLY, TZ.
The README says what each means.
";

fn main() -> ExitCode {
    let mut variables = Variables::of_process(SETTINGS.map(|(name, _)| name));
    if !variables.is_cgi() {
        return at_terminal(variables);
    }
    let is_head = variables.get("REQUEST_METHOD") == Some(b"HEAD");
    // Whatever happens, the server gets one well-formed answer; where it happened is not known.
    panic::set_hook(Box::new(move |panic| {
        respond(Err(Error::perhaps_stored(panic.to_string())), is_head);
        exit(0);
    }));
    let mut input = body::input(&variables, io::stdin());
    respond(comedor::answer(&mut variables, &mut input), is_head);
    body::drain(&mut input);
    if leave::is_wanted(&variables) {
        leave::hold_end_of_file();
    }
    ExitCode::SUCCESS
}

/// Writes the response, and a line to standard error where an error has a cause.
fn respond(answer: Result<Response, Error>, is_head: bool) {
    let response = answer.unwrap_or_else(|error| {
        if let Some(cause) = &error.cause {
            log(cause);
        }
        error.into()
    });
    let bytes = response.to_bytes(is_head);
    let mut rest = bytes.as_slice();
    // The library's own standard output would split this into two writes. A server that has gone
    // away is no error: what was stored stays stored.
    while !rest.is_empty()
        && let Ok(written @ 1..) = retry_on_intr(|| write(stdout(), rest))
    {
        rest = &rest[written..];
    }
}

fn at_terminal(variables: Variables) -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(|word| word.to_str().unwrap_or("")).collect();
    let text = match arguments.as_slice() {
        ["check", options @ ..] if options.iter().all(|o| ["--json", "--session"].contains(o)) => {
            let is_session = options.contains(&"--session");
            let subject = if is_session { Subject::Session } else { Subject::Everything };
            let mut report = Report::new(options.contains(&"--json"));
            check::run(subject, variables, &mut report);
            return ExitCode::from(report.finish());
        }
        ["--help"] => HELP,
        ["--version"] => concat!("comedor ", env!("CARGO_PKG_VERSION"), "\n"),
        _ => {
            log("there is no such command; these there are:");
            _ = io::stderr().write_all(HELP.as_bytes());
            return ExitCode::from(2);
        }
    };
    _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
