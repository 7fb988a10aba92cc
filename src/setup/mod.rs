//! `comedor setup`: puts comedor in place of the PHP script, tries it, and puts everything back if it does
//! not work.
//!
//! [`Plan`] decides everything from what [`crate::site`] found, and shows it. [`files`] writes, in files that
//! no package ships, and removes them again. Nothing is in force until the last step, a link in Apache's
//! configuration. Only `[A-Za-z0-9._/-]` is written; for anything else the plan names the guide to follow.

mod content;
mod files;
mod login;
mod plan;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use crate::check::{self, Subject};
use crate::ffi;
use crate::log::log;
use crate::site::command::run as command;
use crate::site::{self, Answer, Script, ask};
use plan::Plan;

/// The options of the command.
#[derive(Debug, Default)]
pub struct Options {
    pub dry_run: bool,
    /// Asks nothing
    pub yes: bool,
    /// Else CGI, if it can work
    pub choice: Option<Choice>,
    /// The URL path of the script, if there are several
    pub path: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    Cgi,
    FastCgi,
}

/// Nothing was changed, or everything was put back.
const FAILED: u8 = 1;
/// The administrator has to add a line to nginx's configuration.
const BY_HAND: u8 = 3;

/// Runs `comedor setup`; returns the exit status.
pub fn run(options: &Options) -> u8 {
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !geteuid().is_root() {
        return refused("only root can set it up: sudo comedor setup");
    }
    if !(terminal || options.yes || options.dry_run) {
        return refused("without a terminal it needs --yes or --dry-run");
    }
    let machine = site::find();
    let plan = match Plan::new(&machine, options) {
        Ok(plan) => plan,
        Err(problem) => {
            machine.notes.iter().for_each(|note| log(&format!("not understood: {note}")));
            return refused(&problem);
        }
    };
    say(&plan.shown());
    if options.dry_run || plan.is_done() {
        return 0;
    }
    if !options.yes && !confirmed() {
        return refused("nothing was changed");
    }
    // A half of it would be worse than the wait.
    ffi::ignore_interruptions();
    if let Err(problem) = apply(&plan) {
        say(&format!("\nFailed: {problem}"));
        return match files::undo() {
            Ok(_) => refused("everything was put back; the PHP script answers"),
            Err(error) => refused(&format!("{error}; then run: sudo comedor setup --undo")),
        };
    }
    if plan.needs_include() {
        say(&plan.include());
        return BY_HAND;
    }
    say(&format!("comedor answers {}. To undo: sudo comedor setup --undo", plan.script.url()));
    0
}

/// Runs `comedor setup --undo`; returns the exit status.
pub fn undo() -> u8 {
    if !geteuid().is_root() {
        return refused("only root can undo it: sudo comedor setup --undo");
    }
    ffi::ignore_interruptions();
    match files::undo() {
        Ok(done) if done.is_empty() => say("Nothing to undo."),
        Ok(done) => say(&done.join("\n")),
        Err(error) => return refused(&error),
    }
    0
}

fn apply(plan: &Plan) -> Result<(), String> {
    files::write(&plan.contents())?;
    for step in plan.commands() {
        say(&format!("… {}", step.join(" ")));
        command(step[0], &step[1..])?;
    }
    if plan.needs_include() { Ok(()) } else { try_it(plan) }
}

/// Tries what was enabled: a request without a login, one with a login, the check.
fn try_it(plan: &Plan) -> Result<(), String> {
    if Path::new("/usr/bin/curl").exists() {
        let script = answering(plan)?;
        let not_tried = match plan.aularios.first() {
            Some(aulario) => login::read_types(script, &plan.config, &plan.php.user, aulario)?,
            None => Some("no aulario was found".to_owned()),
        };
        say(&match not_tried {
            Some(why) => format!("… a login was not tried: {why}"),
            None => "… a login reads the menu types".to_owned(),
        });
    } else {
        say("… not tried through the web server: curl is not installed");
    }
    match check::run(Subject::Everything { socket: None }, false) {
        (findings, 2) => Err(format!("comedor check finds errors:\n{findings}")),
        _ => Ok(()),
    }
}

/// The script in the site in which comedor answers. The others may redirect to it.
fn answering(plan: &Plan) -> Result<&Script, String> {
    let mut answers = Vec::new();
    let end = Instant::now() + TIMEOUT;
    // After a reload, a process with the old configuration may answer once more.
    while answers.is_empty() || Instant::now() < end {
        sleep(if answers.is_empty() { Duration::ZERO } else { Duration::from_millis(200) });
        answers = plan.scripts().map(|script| (script, ask(script, "x", None))).collect();
        let is_comedor = |(_, answer): &&(&Script, Answer)| matches!(answer, Answer::Comedor(_));
        if let Some((script, _)) = answers.iter().find(is_comedor) {
            return Ok(script);
        }
    }
    let answers = answers.iter().map(|(script, answer)| format!("{}: {answer}", script.url()));
    Err(format!("comedor does not answer: {}", answers.collect::<Vec<_>>().join("; ")))
}

const TIMEOUT: Duration = Duration::from_secs(5);

fn confirmed() -> bool {
    let mut line = String::new();
    _ = write!(io::stdout(), "Continue? [y/N] ").and_then(|()| io::stdout().flush());
    _ = io::stdin().read_line(&mut line);
    matches!(line.trim(), "y" | "Y" | "yes")
}

/// What comes from the application or from PHP must be [`printable`](crate::log::printable).
fn say(text: &str) {
    _ = writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush());
}

/// Says why nothing was changed, or that everything was put back.
fn refused(problem: &str) -> u8 {
    problem.lines().for_each(log);
    FAILED
}
