//! The files of set-up, which no package ships. Undoing needs nothing but these, and no space on the disk.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::say;
use super::settings::{FILE as SETTINGS, SettingsFile};
use crate::admin::command::{property, run};
use crate::admin::site::{AppUrl, KNOWN};
use crate::store::attributes::Attributes;
use crate::sys::shared_file;

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
/// The same three of version 0.3.0
const OLD: [&str; 3] = [
    "/etc/apache2/conf-available/comedor-setup.conf",
    "/var/lib/apache2/conf/enabled_by_admin/comedor-setup",
    "/etc/apache2/conf-enabled/comedor-setup.conf",
];
/// The settings before the set-up of version 0.3.0. It may have a password, and anyone may read it.
const OLD_SETTINGS: &str = "/etc/comedor/comedor.conf.before-setup";
/// Ends the name of a file that is being written; no administrator's file ends like that.
const NEW: &str = ".comedor-setup";

/// The time for the web server to answer, at all addresses.
const PATIENCE: Duration = Duration::from_secs(30);

/// Files that are in force together, and what ends their effect after they were removed
type Group = (&'static [&'static str], fn() -> Result<(), String>);

const SERVERS: [Group; 2] = [
    (&[APACHE, OLD[0], NOTE, OLD[1], LINK, OLD[2]], || reload("apache2")),
    (&[NGINX, UPSTREAM], || reload("nginx")),
];
const UNITS: Group = (&[SERVICE, SOCKET], || {
    let units = ["disable", "--quiet", "--now", "comedor.socket", "comedor.service"];
    run("systemctl", &units).map(drop)
});

fn exists(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn is_there((files, _): &Group) -> bool {
    files.iter().any(|file| exists(file))
}

/// Whether anything of set-up is there.
pub fn exist() -> bool {
    exists(KNOWN) || SERVERS.iter().chain([&UNITS]).any(is_there)
}

/// Removes what an earlier set-up has enabled, and not this one, which wrote the `planned` files.
pub fn take_over(planned: &[&str]) -> Result<(), String> {
    let is_left = |group: &&Group| !planned.contains(&group.0[0]);
    SERVERS.iter().chain([&UNITS]).filter(is_left).try_for_each(take_back)?;
    remove(OLD_SETTINGS)
}

/// Whether nginx reads [`NGINX`].
pub fn is_included() -> bool {
    exists(NGINX)
        && run("nginx", &["-T", "-q"])
            .is_ok_and(|dump| dump.contains(&format!("# configuration file {NGINX}:")))
}

/// The settings file; empty if there is none.
pub fn read_settings() -> Result<Vec<u8>, String> {
    let read = |file: File| shared_file::read(&file).map(|(bytes, _)| bytes);
    match shared_file::open_and(OFlags::RDONLY, Path::new(SETTINGS), read) {
        Err(fault) if fault.is_absent() => Ok(Vec::new()),
        read => read.map_err(|fault| format!("{SETTINGS}: {fault}")),
    }
}

/// Replaces `path` atomically, with owner, group, mode and access control list of the old file if there is one. A
/// file without content would count as one that is being saved: removes it.
pub fn write(path: &str, content: &[u8]) -> Result<(), String> {
    if content.is_empty() {
        return remove(path);
    }
    let new = format!("{path}{NEW}");
    let write = || {
        Path::new(path).parent().map_or(Ok(()), fs::create_dir_all)?;
        _ = fs::remove_file(&new);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(content)?;
        match File::open(path) {
            Ok(old) => {
                let (metadata, attributes) = (old.metadata()?, Attributes::of(&old)?);
                fchown(&file, Some(metadata.uid()), Some(metadata.gid()))?;
                attributes.set(&file)?;
                file.set_permissions(metadata.permissions())?;
            }
            Err(_) => file.set_permissions(Permissions::from_mode(0o644))?,
        }
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|error: io::Error| format!("{path}: {error}"))?;
    say(&format!("… wrote {path}"));
    // From here on, this says what undoing has to do.
    let replaced = if path == APACHE { OLD.as_slice() } else { &[] };
    replaced.iter().try_for_each(|old| remove(old))
}

/// Puts everything back, as far as it is there, also after a set-up or an undo that was killed. Returns whether
/// nothing remains: while lines that an administrator has added lead to the service, it stays.
pub fn undo(known: Option<&AppUrl>) -> Result<bool, String> {
    let is_by_hand = !SERVERS.iter().any(is_there) && is_there(&UNITS);
    let remaining = known.filter(|_| is_by_hand).and_then(leads_to_service);
    let mut done: Vec<_> = SERVERS.iter().map(take_back).collect();
    if let Some(sentence) = &remaining {
        say(sentence);
    } else {
        done.extend([take_back(&UNITS), restore_settings(), remove(OLD_SETTINGS), remove(KNOWN)]);
    }
    for path in [APACHE, NGINX, UPSTREAM, SERVICE, SOCKET, SETTINGS, KNOWN] {
        _ = fs::remove_file(format!("{path}{NEW}"));
    }
    for file in [SERVICE, SOCKET, SETTINGS] {
        _ = Path::new(file).parent().map(fs::remove_dir);
    }
    let failed: Vec<String> = done.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(remaining.is_none()) } else { Err(failed.join("\n")) }
}

/// Whether the web server would have no answer without the service, as a sentence.
fn leads_to_service(address: &AppUrl) -> Option<String> {
    let why = match address.who_answers(Instant::now() + PATIENCE) {
        Ok(answer) if answer.is_comedors() || answer.status == "502" => format!(
            "{address} still leads to comedor ({answer}): remove the lines that were added to the web server's configuration, and reload it"
        ),
        Ok(_) => return None,
        Err(error) => format!(
            "the web server does not answer, so its configuration may still lead to comedor ({error}): start it, or delete {KNOWN} if it is gone"
        ),
    };
    Some(format!("The service of comedor stays. {why}; then run: sudo comedor setup --undo"))
}

/// Removes the files of the group. Until its effect has ended, one remains, without content: it says what remains
/// to do.
fn take_back((files, end): &Group) -> Result<(), String> {
    let mut there = files.iter().filter(|file| exists(file));
    let Some(&first) = there.next() else { return Ok(()) };
    _ = File::options().write(true).truncate(true).open(first);
    there.try_for_each(|other| remove(other))?;
    end()?;
    remove(first)?;
    // A line that includes it may still be in the site: without the file, nginx would not start.
    if first == NGINX && run("nginx", &["-t", "-q"]).is_err() {
        fs::write(NGINX, "").map_err(|error| format!("{NGINX}: {error}"))?;
        say(&format!("Emptied {NGINX}; remove its include line, then delete it."));
    }
    Ok(())
}

/// Removes a file, if it exists.
fn remove(path: &str) -> Result<(), String> {
    match fs::remove_file(path) {
        Ok(()) => say(&format!("Removed {path}")),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("{path}: {error}")),
    }
    Ok(())
}

/// Lets a server read its configuration again, if it runs, or did not start with it.
fn reload(unit: &str) -> Result<(), String> {
    match property(unit, "ActiveState").as_deref() {
        Ok("inactive") | Err(_) => Ok(()),
        Ok(_) => run("systemctl", &["reload-or-restart", unit]).map(drop),
    }
}

/// Removes set-up's lines from the settings.
fn restore_settings() -> Result<(), String> {
    let text = read_settings()?;
    let SettingsFile { outside, .. } = SettingsFile::parse(&text)?;
    if outside == text {
        return Ok(());
    }
    if text.starts_with(&outside) && !outside.is_empty() {
        let file = File::options().write(true).open(SETTINGS);
        let cut = file.and_then(|file| file.set_len(outside.len() as u64));
        cut.map_err(|error| format!("{SETTINGS}: {error}"))?;
        say(&format!("Removed set-up's lines from {SETTINGS}"));
        return Ok(());
    }
    write(SETTINGS, &outside)
}
