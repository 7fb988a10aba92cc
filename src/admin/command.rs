//! Programs of the machine: from root's folders only, without the caller's environment, with a time limit.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::admin::child;

/// The longest restart of a web server.
const TIME: Duration = Duration::from_secs(90);
/// A question to systemd, or to a web server about its configuration.
const SHORT: Duration = Duration::from_secs(5);
const SIZE: usize = 16 * 1024 * 1024;

/// What `program` says, on both streams, or why it failed, as a sentence.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    run_until(Instant::now() + TIME, program, arguments)
}

/// The same for a short command, at most until `end`.
pub fn ask(program: &str, arguments: &[&str], end: Instant) -> Result<String, String> {
    run_until(end.min(Instant::now() + SHORT), program, arguments)
}

fn run_until(end: Instant, program: &str, arguments: &[&str]) -> Result<String, String> {
    let said = child::output(None, end, SIZE, |out| exec(program, arguments, "", out));
    let said = said.map_err(|error| format!("{program} {}: {error}", arguments.join(" ")))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Becomes the program, in a child, with this standard input, which must fit into a pipe.
pub fn exec(
    program: &str,
    arguments: &[&str],
    input: &str,
    out: &mut std::fs::File,
) -> io::Result<()> {
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(input.as_bytes())?;
    drop(writer);
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").stdin(reader).stderr(out.try_clone()?);
    // sudo may keep the PATH of its caller.
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
    Err(command.exec())
}

/// Properties of a unit of systemd, as in "active enabled", at most until `end`.
pub fn properties(unit: &str, names: &str, end: Instant) -> Result<String, String> {
    let said = ask("systemctl", &["show", "--value", "--property", names, unit], end)?;
    Ok(said.split_whitespace().collect::<Vec<_>>().join(" "))
}
