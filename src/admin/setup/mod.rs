//! `comedor setup`: puts comedor in place of the PHP script, tries it, and puts everything back if it does
//! not work.
//!
//! [`Plan`] decides everything from what [`crate::admin::inferred`] found, and shows it. [`files`] writes, in files that
//! no package ships, and removes them again. Nothing is in force until the last step, a link in Apache's
//! configuration. Only `[A-Za-z0-9._/-]` is written; for anything else the plan names the guide to follow.

mod content;
mod files;
mod login;
mod plan;

use std::io::{self, IsTerminal, Write};

use rustix::process::geteuid;

use crate::admin::check;
use crate::admin::{command, inferred};
use crate::sys::log::log;
use crate::sys::signals::ignore_interruptions;
use files::NGINX;
use plan::Plan;

/// The options of the command.
#[derive(Debug, Default)]
pub struct Options {
    pub dry_run: bool,
    /// Asks nothing
    pub yes: bool,
    /// Without both: CGI, if it can work
    pub cgi: bool,
    pub fastcgi: bool,
    /// The URL path of the script, if there are several
    pub path: Option<String>,
}

/// Runs `comedor setup`; returns the exit status: 0 done, 1 put back or refused, 3 a line must be added to
/// nginx's configuration.
pub fn run(options: &Options) -> u8 {
    as_root(|| set_up(options))
}

/// Runs `comedor setup --undo`; returns the exit status.
pub fn undo() -> u8 {
    as_root(|| {
        ignore_interruptions();
        files::undo()?;
        say("Nothing of comedor setup is in force.");
        Ok(0)
    })
}

fn as_root(run: impl FnOnce() -> Result<u8, String>) -> u8 {
    let refused = || Err("set-up needs root: sudo comedor setup".to_owned());
    let done = if geteuid().is_root() { run() } else { refused() };
    done.unwrap_or_else(|problem| {
        problem.lines().for_each(log);
        1
    })
}

fn set_up(options: &Options) -> Result<u8, String> {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !(is_terminal || options.yes || options.dry_run) {
        return Err("no terminal to ask: use --yes or --dry-run".to_owned());
    }
    let machine = inferred::find();
    let plan = Plan::new(&machine, options).inspect_err(|_| {
        machine.notes.iter().for_each(|note| log(&format!("not checked: {note}")));
    })?;
    say(&plan.shown());
    if options.dry_run || plan.is_done {
        return Ok(0);
    }
    if !options.yes && !is_confirmed() {
        return Err("nothing was changed".to_owned());
    }
    // A half of it would be worse than the wait.
    ignore_interruptions();
    apply(&plan).or_else(|problem| {
        say(&format!("\nFailed: {problem}"));
        files::undo().map_err(|error| format!("{error}\nthen run: sudo comedor setup --undo"))?;
        Err("everything was put back; the PHP script answers".to_owned())
    })
}

fn apply(plan: &Plan) -> Result<u8, String> {
    for (path, content, steps) in &plan.parts {
        files::write(path, content)?;
        for step in steps {
            say(&format!("… {step}"));
            let words: Vec<&str> = step.split(' ').collect();
            command::run(words[0], &words[1..])?;
        }
    }
    if plan.needs_include {
        let place = &plan.script.site.place;
        say(&format!(
            "\nAdd this line to the server {{ … }} at {place}:\n\n    include {NGINX};\n"
        ));
        say("Then run sudo comedor setup again, to try it.");
        return Ok(3);
    }
    say(&format!("… {}", login::try_it(plan)?));
    // What PHP's user cannot use has nothing to do with comedor.
    let of_php = check::errors_of(&plan.php.user);
    let (known, new): (Vec<_>, Vec<_>) =
        check::errors().into_iter().partition(|error| of_php.contains(error));
    if !new.is_empty() {
        return Err(format!("comedor check finds errors:\n{}", new.concat()));
    }
    if !known.is_empty() {
        say("… there are errors that PHP has too; to see them: sudo comedor check");
    }
    say(&format!("comedor answers {}. To undo: sudo comedor setup --undo", plan.script.url()));
    Ok(0)
}

fn is_confirmed() -> bool {
    let mut line = String::new();
    _ = write!(io::stdout(), "Continue? [y/N] ").and_then(|()| io::stdout().flush());
    _ = io::stdin().read_line(&mut line);
    matches!(line.trim(), "y" | "Y" | "yes")
}

/// What comes from the application or from PHP must be [`printable`](crate::sys::log::printable).
fn say(text: &str) {
    _ = writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush());
}
