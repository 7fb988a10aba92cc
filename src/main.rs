//! The edges of the process: environment, standard input, standard output, standard error.

use std::io::{self, Write};
use std::panic;
use std::process::{ExitCode, exit};

use comedor::api::Error;
use comedor::cgi::{Response, Variables};
use rustix::io::{retry_on_intr, write};
use rustix::stdio::stdout;

const HELP: &str = "\
comedor: the dining-hall menu API of a PHP school application, as a CGI program

A web server runs it at api/comedor.php, once for each request, with the variables of CGI/1.1.

  comedor --help      print this
  comedor --version   print the version

Settings are variables of the environment: COMEDOR_SERVICE, COMEDOR_DATA_DIR, COMEDOR_SESSION_DIR,
COMEDOR_SESSION_NAME, COMEDOR_SESSION_FORMAT, COMEDOR_SESSION_ENUMS, COMEDOR_SESSION_MAX_AGE,
COMEDOR_TRUSTED_ORIGINS, TZ. The README says what each means.
";

fn main() -> ExitCode {
    let variables = Variables::of_process();
    if !variables.is_cgi() {
        return at_terminal();
    }
    let is_head = variables.get("REQUEST_METHOD") == Some(b"HEAD");
    // Whatever happens, the server gets one well-formed answer.
    panic::set_hook(Box::new(move |panic| {
        respond(Err(Error::internal(panic.to_string())), is_head);
        exit(0);
    }));
    respond(comedor::answer(variables, io::stdin()), is_head);
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
    // Standard output of the library would split this into two writes. A server that has gone
    // away is no error: what was stored stays stored.
    while !rest.is_empty()
        && let Ok(written @ 1..) = retry_on_intr(|| write(stdout(), rest))
    {
        rest = &rest[written..];
    }
}

/// One line, without control characters: nothing that a client or a file supplied can look like
/// another line. A missing standard error is no error.
fn log(cause: &str) {
    let mut line = String::from("comedor: ");
    for c in cause.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    _ = io::stderr().write_all(line.as_bytes());
}

fn at_terminal() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let text = match (arguments.next(), arguments.next()) {
        (Some(help), None) if help == "--help" => HELP,
        (Some(version), None) if version == "--version" => {
            concat!("comedor ", env!("CARGO_PKG_VERSION"), "\n")
        }
        _ => {
            _ = io::stderr().write_all(HELP.as_bytes());
            return ExitCode::from(2);
        }
    };
    _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
