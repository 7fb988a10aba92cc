//! Programs of the machine: found in root's folders only, without the caller's environment, and with a time
//! limit.

use std::io::{self, Error, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::admin::child::Child;
use crate::store::access::Credentials;

/// The longest restart of a web server.
const TIME: Duration = Duration::from_secs(90);
const SIZE: usize = 16 * 1024 * 1024;

/// What `program` says, on both streams, or why it failed, as a sentence.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    run_as(None, program, arguments, "")
}

/// The same with the rights of `user` and this standard input, which must fit into a pipe.
pub fn run_as(
    user: Option<&Credentials>,
    program: &str,
    arguments: &[&str],
    input: &str,
) -> Result<String, String> {
    let start = |out: &mut std::fs::File| -> io::Result<()> {
        let (reader, mut writer) = io::pipe()?;
        writer.write_all(input.as_bytes())?;
        drop(writer);
        let mut command = Command::new(program);
        command.args(arguments).current_dir("/").stdin(reader).stderr(out.try_clone()?);
        // sudo may keep the PATH of its caller.
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
        Err(command.exec())
    };
    let said = Child { user, time: TIME, size: SIZE }.output(start);
    let said =
        said.map_err(|error: Error| format!("{program} {}: {error}", arguments.join(" ")))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// A property of a unit of systemd.
pub fn property(unit: &str, name: &str) -> Result<String, String> {
    let said = run("systemctl", &["show", "--value", "--property", name, unit])?;
    Ok(said.trim().to_owned())
}
