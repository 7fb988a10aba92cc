//! The files of set-up, which no package ships. Undoing needs nothing but these, and no space on the disk.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use super::say;
use crate::admin::command::{property, run};

pub const APACHE: &str = "/etc/apache2/conf-available/comedor-setup.conf";
/// What `a2enconf` creates: a link, and a note that an administrator did it
const LINK: &str = "/etc/apache2/conf-enabled/comedor-setup.conf";
const NOTE: &str = "/var/lib/apache2/conf/enabled_by_admin/comedor-setup";
pub const NGINX: &str = "/etc/nginx/snippets/comedor-setup.conf";
/// In force with the next start of nginx; without [`NGINX`] no request uses it
pub const UPSTREAM: &str = "/etc/nginx/conf.d/comedor-setup.conf";
pub const SERVICE: &str = "/etc/systemd/system/comedor.service.d/comedor-setup.conf";
pub const SOCKET: &str = "/etc/systemd/system/comedor.socket.d/comedor-setup.conf";
pub const SETTINGS: &str = "/etc/comedor/comedor.conf";
/// The settings before the first set-up. Unless they were edited since, [`SETTINGS`] has the same time.
const BEFORE: &str = "/etc/comedor/comedor.conf.before-setup";
/// Ends the name of a file that is being written; no administrator's file ends like that.
const NEW: &str = ".comedor-setup";

/// Replaces `path` atomically, with the owner, group, mode and time of the old file if there is one.
pub fn write(path: &str, content: &str) -> Result<(), String> {
    let new = format!("{path}{NEW}");
    let write = || {
        Path::new(path).parent().map_or(Ok(()), fs::create_dir_all)?;
        _ = fs::remove_file(&new);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(content.as_bytes())?;
        match fs::metadata(path) {
            Ok(old) => {
                fchown(&file, Some(old.uid()), Some(old.gid()))?;
                file.set_permissions(old.permissions())?;
                file.set_modified(old.modified()?)?;
            }
            Err(_) => file.set_permissions(Permissions::from_mode(0o644))?,
        }
        file.sync_all()?;
        if path == SETTINGS && fs::exists(path)? && !fs::exists(BEFORE)? {
            fs::hard_link(path, BEFORE)?;
        }
        fs::rename(&new, path)
    };
    write().map_err(|error: io::Error| format!("{path}: {error}"))
}

/// Puts everything back, as far as it is there, also after a set-up or an undo that was killed.
pub fn undo() -> Result<(), String> {
    const DISABLE: [&str; 4] = ["disable", "--now", "comedor.socket", "comedor.service"];
    let done = [
        take_back(APACHE, &[LINK, NOTE], || reload("apache2")),
        take_back(NGINX, &[UPSTREAM], || reload("nginx")),
        take_back(SERVICE, &[SOCKET], || run("systemctl", &DISABLE).map(drop)),
        restore_settings(),
    ];
    for path in [APACHE, NGINX, UPSTREAM, SERVICE, SOCKET, SETTINGS] {
        _ = remove(&format!("{path}{NEW}"));
    }
    for file in [SERVICE, SOCKET] {
        _ = Path::new(file).parent().map(fs::remove_dir);
    }
    let failed: Vec<String> = done.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Removes `file` and the `others`. Until `stop` has succeeded, `file` remains, without content and effect: it
/// says what remains to do.
fn take_back(file: &str, others: &[&str], stop: fn() -> Result<(), String>) -> Result<(), String> {
    let emptied = File::options().write(true).truncate(true).open(file);
    others.iter().try_for_each(|other| remove(other))?;
    emptied.map_or(Ok(()), |_| stop())?;
    if file == NGINX && is_included() {
        // Without the file, nginx would not start.
        say(&format!("Emptied {NGINX}; remove its include line, then delete it."));
        return Ok(());
    }
    remove(file)
}

/// Removes a file, if it exists.
fn remove(path: &str) -> Result<(), String> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("{path}: {error}")),
        _ => Ok(()),
    }
}

/// Lets a server read its configuration again, if it runs, or did not start with it.
fn reload(unit: &str) -> Result<(), String> {
    match property(unit, "ActiveState").as_deref() {
        Ok("inactive") | Err(_) => Ok(()),
        Ok(_) => run("systemctl", &["reload-or-restart", unit]).map(drop),
    }
}

/// Whether nginx reads the snippet. If its configuration is broken, it may.
pub fn is_included() -> bool {
    let all = || run("nginx", &["-T", "-q"]);
    Path::new(NGINX).exists() && all().map_or(true, |all| all.contains(&format!("file {NGINX}:")))
}

fn restore_settings() -> Result<(), String> {
    let time = |path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let Some(before) = time(BEFORE) else { return Ok(()) };
    if time(SETTINGS) != Some(before) {
        say(&format!("Kept {SETTINGS}, which has been edited since; the old one is {BEFORE}."));
        return Ok(());
    }
    // Does nothing if they are the same file (rename(2)).
    fs::rename(BEFORE, SETTINGS).map_err(|error| format!("{SETTINGS}: {error}"))?;
    say(&format!("Restored the old {SETTINGS}."));
    remove(BEFORE)
}
