//! The user of this process, and commands that a finding may suggest.
//!
//! A suggested command never runs with more rights than everybody has who can write a folder on its path:
//! between the check and the command, they could put something else in its place.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::getxattr;
use rustix::process::geteuid;

use crate::admin::accounts::{members, user_name};
use crate::store::access::Credentials;

/// The user of this process.
#[derive(Debug)]
pub struct User {
    pub credentials: Credentials,
    /// The name in `/etc/passwd`, else the number
    pub name: String,
}

impl User {
    pub fn of_process() -> User {
        let credentials = Credentials::of_process();
        User { name: user_name(credentials.uid), credentials }
    }
}

/// Whether this is a container of the released image, which contains only the program. The check runs as
/// the user of the container there, and its commands are for PHP's container.
pub fn is_in_container() -> bool {
    !Path::new("/bin/sh").exists()
}

/// The capabilities (capabilities(7)) that this process lacks of those with which root saves the files
/// of other users: it sets their owner, reaches them, sets their mode, and takes a lease on them.
pub fn missing_capabilities() -> Vec<&'static str> {
    const NEEDED: [(u32, &str); 4] =
        [(0, "CHOWN"), (1, "DAC_OVERRIDE"), (3, "FOWNER"), (28, "LEASE")];
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    let is_missing = |bit: u32| effective.is_some_and(|bits| bits & 1 << bit == 0);
    NEEDED.into_iter().filter(|(bit, _)| is_missing(*bit)).map(|(_, name)| name).collect()
}

/// A shell command, and the user that it must run as.
#[derive(Debug)]
pub struct Command {
    pub user: u32,
    pub line: String,
}

impl Command {
    /// A command that depends on no path that another user can change.
    pub fn of_root(line: String) -> Command {
        Command { user: 0, line }
    }

    /// The command that `line` makes of a path. `None` if its name has characters with which it could be
    /// another command in some shell, or if several users can change what is there.
    pub fn on(path: &Path, line: impl FnOnce(&str) -> String) -> Option<Command> {
        let parent = path.parent()?;
        let real = fs::canonicalize(parent).ok()?.join(path.file_name()?);
        let mut users: BTreeSet<_> = writers(parent, path)?.into_iter().collect();
        // Who can change a folder of the path could have put a link there. The system follows 40 of them.
        let mut paths = vec![parent.to_owned()];
        for _ in 0..40 {
            let Some(path) = paths.pop() else { break };
            for (entry, folder) in path.ancestors().zip(path.ancestors().skip(1)) {
                users.extend(writers(folder, entry)?);
                paths.extend(fs::read_link(entry).map(|target| folder.join(target)));
            }
        }
        users.remove(&0);
        let user = users.pop_first().unwrap_or(0);
        let is_known = users.is_empty() && paths.is_empty();
        let path = real.to_str().filter(|path| is_known && is_plain(path))?;
        let line = line(&if path.contains(' ') { format!("'{path}'") } else { path.to_owned() });
        Some(Command { user, line })
    }

    /// A command that gives this user permissions for `path`, if it is the owner.
    pub fn permit(path: &Path, permissions: &str) -> Option<Command> {
        let (user, file) = (geteuid().as_raw(), fs::symlink_metadata(path).ok()?);
        let command = Command::on(path, |path| format!("chmod u+{permissions} {path}"))?;
        let is_safe = !file.is_symlink() && file.uid() == user && [0, user].contains(&command.user);
        is_safe.then_some(Command { user, ..command })
    }

    /// The command of another process, which `user` runs, if it does nothing but what [`on`](Self::on) makes.
    pub fn of_other(user: u32, line: &str) -> Option<Command> {
        let known = ["rm ", "mv -T --backup=numbered ", "chmod u+"];
        let rest = known.iter().find_map(|start| line.strip_prefix(start));
        let is_known = rest.is_some_and(|rest| !rest.starts_with('-') && !rest.contains(" -"));
        let is_plain = is_plain(&line.replace(['\'', '=', '+'], ""));
        let is_whole = line.matches('\'').count().is_multiple_of(2);
        (is_known && is_plain && is_whole).then(|| Command { user, line: line.to_owned() })
    }

    /// With what runs it as its user, if the user of this process does not.
    pub fn shown(&self) -> String {
        let Command { user, line } = self;
        match user_name(*user) {
            _ if is_in_container() => line.clone(),
            _ if *user == 0 => format!("sudo {line}"),
            _ if *user == geteuid().as_raw() => line.clone(),
            // The user has no name.
            number if number.parse::<u32>().is_ok() => format!("sudo -u '#{number}' {line}"),
            name => format!("sudo -u {name} {line}"),
        }
    }
}

/// Whether no shell takes a character of `text` for more than itself. Several spaces could push the rest out of
/// sight.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" ._/-".contains(&byte);
    text.bytes().all(is_plain) && !text.contains("  ")
}

/// The users that can put something else in the place of `entry` in `folder`; `None` if that is not known.
fn writers(folder: &Path, entry: &Path) -> Option<Vec<u32>> {
    const STICKY: u32 = 0o1000;
    let metadata = fs::metadata(folder).ok()?;
    // The owner can change the mode.
    let mut users = vec![metadata.uid()];
    if metadata.mode() & STICKY != 0 {
        users.push(fs::symlink_metadata(entry).ok()?.uid());
        return Some(users);
    }
    if metadata.mode() & 0o020 != 0 {
        // With an access control list, these bits may be those of other users.
        if getxattr(folder, "system.posix_acl_access", &mut [0_u8; 0]).is_ok() {
            return None;
        }
        users.extend(members(metadata.gid()));
    }
    (metadata.mode() & 0o002 == 0).then_some(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_another_process_do_what_this_program_suggests() {
        for line in [
            "rm /DATA/a/.x.tmp",
            "mv -T --backup=numbered '/DATA/a b' '/DATA/a b'.broken",
            "chmod u+rwX /DATA/a",
        ] {
            assert!(Command::of_other(33, line).is_some(), "{line}");
        }
        for line in [
            "", "rm", "-u root rm /x", "A=b rm /x", "sudo rm /x", "bash -c x", "rm /x; id",
            "rm /x && id", "rm $(id)", "rm `id`", "rm /x > /y", "rm /x\nid", "rm '/x", "rm \"/x\"",
            "rm /x\u{202e}", "rm '/x  y'", "rm ~root", "rm /*", "rm -rf /x", "rm /x -r",
            "chmod o+w /x", "chmod u+r -R /x", "mv /x /y",
        ] {
            assert!(Command::of_other(33, line).is_none(), "{line}");
        }
    }
}
