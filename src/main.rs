//! The process: environment, standard input, standard output, standard error.
//!
//! `comedor::main!` defines C's `main` in place of Rust's, hence `no_main`: `sys/start.rs` says why.

#![no_main]

use comedor::cgi::Variables;
use comedor::cgi::input::{Body, StandardInput};
use comedor::command_line::{self, Next};
use comedor::config::Config;
use comedor::fastcgi::{self, Limits, Socket};
use comedor::responder::Responder;
use comedor::sys::allocator::Allocator;
use comedor::sys::environment::Strings;
use comedor::sys::kept_output;
use comedor::sys::log;
use comedor::sys::process::is_set_user_id;
use comedor::sys::streams::{self, Output};
use comedor::sys::waits::Waits;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

comedor::main!(run);

fn run(arguments: Strings) -> u8 {
    if is_set_user_id() {
        return fail(
            "the program has a set-user-ID or set-group-ID bit, so its caller could choose its settings",
        );
    }
    let variables = Variables::of_process();
    if variables.is_cgi() {
        return answer_cgi(&variables);
    }
    let words: Vec<_> = arguments.skip(1).collect();
    // Not for a command: systemd gives the socket to ExecStartPre= too.
    if words.is_empty() {
        match Socket::inherited() {
            Ok(Some(socket)) => return serve_fastcgi(socket),
            Ok(None) => {}
            Err(error) => return fail(&format!("standard input: {error}")),
        }
    }
    match command_line::run(&words) {
        Next::Exit(status) => status,
        Next::Serve(path) => match Socket::bind(&path) {
            Ok(socket) => serve_fastcgi(socket),
            Err(error) => fail(&format!("{}: {error}", path.display())),
        },
    }
}

/// Serves FastCGI until a signal stops it.
#[cold]
fn serve_fastcgi(socket: Socket) -> u8 {
    let serve = || {
        let responder = Responder::load()?;
        let default = Limits::default();
        let workers = responder.workers().unwrap_or(default.workers);
        fastcgi::serve(socket, responder, &Limits { workers, ..default })
    };
    match serve() {
        Ok(()) => 0,
        Err(error) => fail(&format!("FastCGI: {error}")),
    }
}

#[cold]
fn fail(cause: &str) -> u8 {
    log::log(cause);
    1
}

fn answer_cgi(variables: &Variables) -> u8 {
    let mut body = Body::new(variables, StandardInput);
    let config = Config::load();
    write(&comedor::answer(
        config.as_ref(),
        variables,
        &mut body,
        Waits::ALWAYS,
    ));
    body.drain();
    // Under other servers the fork would only cost time.
    if variables.is_from_apache() {
        kept_output::until_exit();
    }
    0
}

/// Ignores that the server has closed the pipe: a change that was stored stays stored.
fn write(output: &Output) {
    log::write(&output.stderr);
    streams::write(&output.stdout);
}
