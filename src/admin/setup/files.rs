//! The files of set-up, which no package ships. Undoing needs nothing but these, and no space on the disk.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::Instant;

use super::settings::{FILE as SETTINGS, SettingsFile};
use super::{TIME, say};
use crate::admin::command::{properties, run};
use crate::admin::site::{AppUrl, KNOWN, Site};

/// Debian's `serve-cgi-bin.conf` opens /cgi-bin/ of every site if a module for CGI was loaded before it.
pub const APACHE: &str = "/etc/apache2/conf-available/zz-comedor-setup.conf";
pub const NGINX: &str = "/etc/nginx/snippets/comedor-setup.conf";
/// In force with the next start of nginx; without [`NGINX`] no request uses it
pub const UPSTREAM: &str = "/etc/nginx/conf.d/comedor-setup.conf";
pub const SERVICE: &str = "/etc/systemd/system/comedor.service.d/comedor-setup.conf";
pub const SOCKET: &str = "/etc/systemd/system/comedor.socket.d/comedor-setup.conf";
/// What `a2enconf` creates: a note that an administrator did it, and a link
const NOTE: &str = "/var/lib/apache2/conf/enabled_by_admin/zz-comedor-setup";
const LINK: &str = "/etc/apache2/conf-enabled/zz-comedor-setup.conf";
/// The same three of version 0.3.0, which may answer at other hosts
const OLD: [&str; 3] = [
    "/etc/apache2/conf-available/comedor-setup.conf",
    "/var/lib/apache2/conf/enabled_by_admin/comedor-setup",
    "/etc/apache2/conf-enabled/comedor-setup.conf",
];
/// The settings before the set-up of version 0.3.0. It may have a password, and anyone may read it.
const OLD_SETTINGS: &str = "/etc/comedor/comedor.conf.before-setup";
/// Ends the name of a file that is being written; no administrator's file ends like that.
const NEW: &str = ".comedor-setup";

/// Files that are in force together, and what ends their effect after they were removed
type Group = (&'static [&'static str], fn() -> Result<(), String>);

const GROUPS: [Group; 4] = [
    (&[APACHE, NOTE, LINK], || reload("apache2")),
    (&OLD, || reload("apache2")),
    (&[NGINX, UPSTREAM], || reload("nginx")),
    (&[SERVICE, SOCKET], || {
        let units = ["disable", "--quiet", "--now", "comedor.socket", "comedor.service"];
        run("systemctl", &units).map(drop)
    }),
];

fn exists(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn is_there((files, _): &Group) -> bool {
    files.iter().any(|file| exists(file))
}

/// Whether anything of set-up is there.
pub fn exist() -> bool {
    exists(KNOWN) || GROUPS.iter().any(is_there)
}

/// Removes what an earlier set-up has enabled, and not this one, which wrote the `planned` files.
pub fn take_over(planned: &[&str]) -> Result<(), String> {
    let is_left = |group: &&Group| !planned.contains(&group.0[0]);
    GROUPS.iter().filter(is_left).try_for_each(take_back)?;
    remove(OLD_SETTINGS)
}

/// Whether nginx reads [`NGINX`].
pub fn is_included() -> bool {
    exists(NGINX)
        && run("nginx", &["-T", "-q"])
            .is_ok_and(|dump| dump.contains(&format!("# configuration file {NGINX}:")))
}

/// Replaces `path` atomically, with owner, group, mode and access control list of the old file if there is one. A
/// file without content would count as one that is being saved: removes it.
pub fn write(path: &str, content: &[u8]) -> Result<(), String> {
    if content.is_empty() {
        return remove(path);
    }
    let new = format!("{path}{NEW}");
    _ = fs::remove_file(&new);
    if exists(path) {
        run("cp", &["--attributes-only", "--preserve=all", path, &new])?;
    }
    let write = || {
        Path::new(path).parent().map_or(Ok(()), fs::create_dir_all)?;
        let mut file = File::options().write(true).create(true).truncate(true).open(&new)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|error: io::Error| format!("{path}: {error}"))?;
    say(&format!("… wrote {path}"));
    Ok(())
}

/// Puts everything back, as far as it is there, also after a set-up or an undo that was killed. Returns whether
/// nothing remains: while lines that an administrator has added lead to the service, it stays.
pub fn undo() -> Result<bool, String> {
    let [servers @ .., units] = &GROUPS;
    let is_by_hand = !servers.iter().any(is_there) && is_there(units);
    let remains =
        is_by_hand && Site::known().is_some_and(|(address, _)| leads_to_service(&address));
    let mut done: Vec<_> = servers.iter().map(take_back).collect();
    if !remains {
        done.extend([take_back(units), restore_settings(), remove(OLD_SETTINGS), remove(KNOWN)]);
    }
    for path in [APACHE, NGINX, UPSTREAM, SERVICE, SOCKET, SETTINGS, KNOWN] {
        _ = fs::remove_file(format!("{path}{NEW}"));
    }
    for file in [SERVICE, SOCKET, SETTINGS] {
        _ = Path::new(file).parent().map(fs::remove_dir);
    }
    let failed: Vec<String> = done.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(!remains) } else { Err(failed.join("\n")) }
}

/// Whether the web server may have no answer without the service, and says so.
fn leads_to_service(address: &AppUrl) -> bool {
    let why = match address.who_answers(Instant::now() + TIME) {
        Ok(answer) if answer.is_comedors() || answer.status == "502" => answer.to_string(),
        Ok(_) => return false,
        Err(error) => error,
    };
    say(&format!(
        "The service of comedor stays, since {address} may lead to it ({why}). Remove the lines that were added to the web server's configuration, and reload it, or delete {KNOWN} if it is gone; then run: sudo comedor setup --undo"
    ));
    true
}

/// Removes the files of the group. Until its effect has ended, one remains, empty, as a note of what is to be done.
fn take_back((files, end): &Group) -> Result<(), String> {
    let mut there = files.iter().filter(|file| exists(file));
    let Some(&first) = there.next() else { return Ok(()) };
    _ = File::options().write(true).truncate(true).open(first);
    there.try_for_each(|other| remove(other))?;
    end()?;
    // Without the file, nginx would not start.
    if first == NGINX && is_included() {
        say(&format!("Emptied {NGINX}; remove its include line, then delete it."));
        return Ok(());
    }
    remove(first)
}

fn remove(path: &str) -> Result<(), String> {
    match fs::remove_file(path) {
        Ok(()) => say(&format!("Removed {path}")),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("{path}: {error}")),
    }
    Ok(())
}

/// Lets a server read its configuration again, unless it is stopped. Without systemd, no service runs.
fn reload(unit: &str) -> Result<(), String> {
    if !exists("/run/systemd/system") {
        return Ok(());
    }
    match &*properties(unit, "ActiveState", Instant::now() + TIME)? {
        "inactive" => Ok(()),
        _ => run("systemctl", &["reload-or-restart", unit]).map(drop),
    }
}

fn restore_settings() -> Result<(), String> {
    let SettingsFile { old, outside, .. } = SettingsFile::read()?;
    if outside == old {
        return Ok(());
    }
    if old.starts_with(&outside) && !outside.is_empty() {
        let file = File::options().write(true).open(SETTINGS);
        let cut = file.and_then(|file| file.set_len(outside.len() as u64));
        cut.map_err(|error| format!("{SETTINGS}: {error}"))?;
        say(&format!("Removed set-up's lines from {SETTINGS}"));
        return Ok(());
    }
    write(SETTINGS, &outside)
}
