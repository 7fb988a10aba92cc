//! `comedor setup`: puts comedor in place of the PHP script, tries it, and puts everything back if it does
//! not work.
//!
//! [`Plan`] decides everything from what [`crate::admin::site`] learns from PHP, and shows it. [`files`] writes,
//! in files that no package ships and in marked lines of the [`settings`], and removes them again. Nothing is in
//! force until the last step, a link in Apache's configuration. Only `[A-Za-z0-9._/-]` is written; for anything
//! else the plan names the guide to follow.

mod content;
mod files;
mod login;
mod plan;
mod settings;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::process::{geteuid, umask};

use crate::admin::check;
use crate::admin::command;
use crate::admin::site::{self, Answer, AppUrl, Site};
use crate::sys::log::{log, printable};
use crate::sys::signals::ignore_interruptions;
use plan::Plan;

/// After a reload, a process with the old configuration may answer once more.
const RELOAD: Duration = Duration::from_secs(5);
/// The time to look at one thing or ask for it (a million files take a second), and to ask PHP at all addresses.
const TIME: Duration = Duration::from_secs(10);
const ASK: Duration = Duration::from_secs(60);

/// Why a path that is limited to a host may not be comedor's, and why one is not whose line nginx reads
const NOT_LIMITED: &str = "; does the site have a ProxyPassMatch (replace it by SetHandler), or a proxy not pass the header Host?";
const MISPLACED: &str =
    "The line is there, but not in the server { … } that answers this address: move it";

/// The options of the command.
#[derive(Debug, Default)]
pub struct Options {
    /// Puts everything back
    pub undo: bool,
    pub dry_run: bool,
    /// Asks nothing
    pub yes: bool,
    /// How the web server runs comedor. Without: by CGI, if it can work
    pub cgi: bool,
    pub fastcgi: bool,
    /// Of the application, in the browser
    pub address: Option<String>,
    /// What is not asked for, or not found
    pub script: Option<PathBuf>,
    pub server: Option<String>,
    pub service: Option<String>,
    pub data: Option<String>,
}

/// Runs `comedor setup`; returns the exit status: 0 done, 1 put back or refused, 3 lines must be added to the
/// web server's configuration, or removed from it.
pub fn run(options: &Options) -> u8 {
    // Other users must be able to read the files.
    umask(Mode::from(0o022));
    let done = match geteuid().is_root() {
        true if options.undo => undo(),
        true => set_up(options),
        false => Err("set-up needs root: sudo comedor setup".to_owned()),
    };
    done.unwrap_or_else(|problem| {
        problem.lines().for_each(log);
        1
    })
}

fn undo() -> Result<u8, String> {
    ignore_interruptions();
    let is_done = files::undo()?;
    if is_done {
        say("Nothing of comedor setup is in force.");
    }
    Ok(if is_done { 0 } else { 3 })
}

fn set_up(options: &Options) -> Result<u8, String> {
    if std::env::current_exe().is_ok_and(|exe| exe != Path::new("/usr/lib/cgi-bin/comedor")) {
        return Err("set-up needs the Debian package; follow docs/install.md".to_owned());
    }
    let known = Site::known();
    let address = match (&options.address, &known) {
        (Some(text), _) => AppUrl::parse(text)?,
        (None, Some((address, _))) => address.clone(),
        (None, None) => loop {
            match AppUrl::parse(&asked("ADDRESS of the application in the browser")?) {
                Ok(address) => break address,
                Err(problem) => say(&problem),
            }
        },
    };
    let (found, is_complete) = site::scripts(Instant::now() + TIME);
    let scripts = match &options.script {
        None => found.clone(),
        Some(script) => vec![site::named(script)?],
    };
    if scripts.is_empty() {
        return Err("found no …/api/comedor.php; name it by --script".to_owned());
    }
    let mut site = site::ask_php(&address, &scripts, Instant::now() + ASK)?;
    site.server = options.server.clone();
    if let Some((address, script)) = known
        && script != site.script
    {
        return Err(format!(
            "comedor serves one application, and is set up for {}, at {address}; first run: sudo comedor setup --undo",
            script.display()
        ));
    }
    if !files::exist() && site.address.read_types("x", "")?.is_comedors() {
        return Err(format!(
            "comedor answers {} already, by lines that set-up has not written: sudo comedor check",
            site.address
        ));
    }
    let others: Vec<_> = found.iter().filter(|script| **script != site.script).collect();
    for script in &others {
        say(&format!("There is also {}", site::shown(script)));
    }
    let plan = Plan::new(site, options, others.is_empty() && is_complete)?;
    plan.show();
    if options.dry_run {
        return Ok(0);
    }
    if !options.yes && !["y", "Y", "yes"].contains(&&*asked("Continue? [y/N]")?) {
        return Err("nothing was changed".to_owned());
    }
    // A half of it would be worse than the wait.
    ignore_interruptions();
    apply(&plan).map_err(|problem| {
        say("\nFailed:");
        problem.lines().for_each(|line| say(&printable(line)));
        match files::undo() {
            Ok(true) => "everything was put back; the PHP script answers".to_owned(),
            Ok(false) => "comedor does not work yet".to_owned(),
            Err(error) => format!("{error}\nthen run: sudo comedor setup --undo"),
        }
    })
}

fn apply(plan: &Plan) -> Result<u8, String> {
    let address = &plan.site.address;
    for (path, content, steps) in &plan.parts {
        let settings = (*path == settings::FILE).then(|| plan.settings.content());
        files::write(path, settings.as_deref().unwrap_or(content.as_bytes()))?;
        for step in steps {
            say(&format!("… {step}"));
            let words: Vec<&str> = step.split(' ').collect();
            command::run(words[0], &words[1..])?;
        }
    }
    files::take_over(&plan.parts.iter().map(|(path, ..)| *path).collect::<Vec<_>>())?;
    if let Err(answer) = comedor_answers(address) {
        let Some((lines, place)) = &plan.by_hand else {
            let why = if plan.is_limited { NOT_LIMITED } else { "" };
            return Err(format!("comedor does not answer {address}, but: {answer}{why}"));
        };
        let text = match files::is_included() {
            true => MISPLACED.to_owned(),
            false => format!("Add this {place}:\n\n{lines}"),
        };
        say(&format!(
            "\n{text}\nthen reload the web server, and run sudo comedor setup again, to try it."
        ));
        return Ok(3);
    }
    for address in &plan.refusing {
        if address.read_types("x", "")?.is_comedors() {
            let host = address.host;
            return Err(format!(
                "by {host}, the web server has refused {address}, and comedor is open there"
            ));
        }
    }
    let other = address.at_another_host()?;
    let is_others =
        |answer: Answer| answer.is_comedors() && answer.url.starts_with(&other.origin());
    if plan.is_limited && other.read_types("x", "").is_ok_and(is_others) {
        return Err(format!("comedor also answers {other}, so perhaps other schools"));
    }
    for sentence in plan.judgement.compare(&plan.site, &plan.config)? {
        say(&format!("… {}", printable(&sentence)));
    }
    // What PHP's user cannot use has nothing to do with comedor.
    let of_php = check::errors_of(&plan.site.php.user);
    let (known, new): (Vec<_>, Vec<_>) =
        check::errors().into_iter().partition(|error| of_php.contains(error));
    if !new.is_empty() {
        return Err(format!("comedor check finds errors:\n{}", new.concat()));
    }
    if !known.is_empty() {
        say("… there are errors that PHP has too; to see them: sudo comedor check");
    }
    say(&format!("comedor answers {address}. To undo: sudo comedor setup --undo"));
    Ok(0)
}

/// Whether comedor answers, soon after a reload; else what does.
fn comedor_answers(address: &AppUrl) -> Result<(), String> {
    let end = Instant::now() + RELOAD;
    loop {
        match address.read_types("x", "") {
            Ok(answer) if answer.is_comedors() => return Ok(()),
            other if Instant::now() > end => {
                return Err(other.map_or_else(|error| error, |answer| answer.to_string()));
            }
            _ => sleep(Duration::from_millis(200)),
        }
    }
}

fn asked(question: &str) -> Result<String, String> {
    if !io::stdin().is_terminal() {
        return Err(format!("{question}: no terminal to ask; see comedor --help"));
    }
    let mut line = String::new();
    _ = write!(io::stdout(), "{question}: ").and_then(|()| io::stdout().flush());
    match io::stdin().read_line(&mut line) {
        Ok(0) => Err(format!("{question}: no answer")),
        Ok(_) => Ok(line.trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What comes from the application or from PHP must be [`printable`].
fn say(text: &str) {
    _ = writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush());
}
