//! The files of set-up, which no package ships. Undoing needs nothing but these, and no space on the disk.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use super::content::{MARK, MODULES, with_lines};
use crate::site::command::run;

pub const APACHE: &str = "/etc/apache2/conf-available/comedor-setup.conf";
const LINK: &str = "/etc/apache2/conf-enabled/comedor-setup.conf";
pub const NGINX: &str = "/etc/nginx/snippets/comedor-setup.conf";
pub const SERVICE: &str = "/etc/systemd/system/comedor.service.d/comedor-setup.conf";
/// Also says that set-up has enabled the socket
pub const SOCKET: &str = "/etc/systemd/system/comedor.socket.d/comedor-setup.conf";
pub const SETTINGS: &str = "/etc/comedor/comedor.conf";
/// The settings before set-up
const BEFORE: &str = "/etc/comedor/comedor.conf.before-setup";

/// Writes everything that has no effect yet.
pub fn write(contents: &[(&str, String)]) -> Result<(), String> {
    for (path, content) in contents {
        if *path == SETTINGS {
            // With its owner, group and mode.
            remove(BEFORE)?;
            match fs::hard_link(SETTINGS, BEFORE) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(format!("{BEFORE}: {error}"));
                }
                _ => {}
            }
        }
        replace(path, content)?;
    }
    Ok(())
}

/// Replaces `path` atomically, with the attributes of the old file if there is one.
fn replace(path: &str, content: &str) -> Result<(), String> {
    let new = format!("{path}.new");
    let write = || {
        Path::new(path).parent().map_or(Ok(()), fs::create_dir_all)?;
        _ = fs::remove_file(&new);
        let mut file = File::create_new(&new)?;
        match fs::metadata(path) {
            Ok(old) => {
                fchown(&file, Some(old.uid()), Some(old.gid()))?;
                file.set_permissions(old.permissions())?;
            }
            Err(_) => file.set_permissions(Permissions::from_mode(0o644))?,
        }
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|error: io::Error| format!("{path}: {error}"))
}

/// Removes a file; returns whether it existed.
fn remove(path: &str) -> Result<bool, String> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(format!("{path}: {error}")),
    }
}

/// Puts everything back, as far as it is there, also after a set-up or an undo that was killed: the file
/// that says what remains to do goes last. Returns what was done.
pub fn undo() -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let steps = [undo_apache, undo_nginx, undo_units, undo_settings];
    let failed: Vec<String> = steps.iter().filter_map(|step| step(&mut done).err()).collect();
    for path in [APACHE, NGINX, SERVICE, SOCKET, SETTINGS] {
        _ = remove(&format!("{path}.new"));
    }
    if failed.is_empty() { Ok(done) } else { Err(failed.join("\n")) }
}

fn undo_apache(done: &mut Vec<String>) -> Result<(), String> {
    let Ok(text) = fs::read_to_string(APACHE) else { return remove(LINK).map(drop) };
    remove(LINK)?;
    remove("/var/lib/apache2/conf/enabled_by_admin/comedor-setup")?;
    let modules = text.lines().find_map(|line| line.strip_prefix(MODULES)).unwrap_or_default();
    let modules: Vec<&str> = modules.split_whitespace().rev().collect();
    if !modules.is_empty() {
        _ = run("a2dismod", &[&["--quiet", "--force"], &modules[..]].concat());
        // Another site may use them by now.
        if run("apache2ctl", &["configtest"]).is_err() {
            _ = run("a2enmod", &[&["--quiet"], &modules[..]].concat());
        }
    }
    match state("apache2").as_str() {
        "active" if modules.is_empty() => run("systemctl", &["reload", "apache2"])?,
        "inactive" | "" => String::new(),
        _ => run("systemctl", &["restart", "apache2"])?,
    };
    remove(APACHE)?;
    done.push(format!("Removed {APACHE}."));
    Ok(())
}

/// What systemd says, or nothing.
fn state(unit: &str) -> String {
    run("systemctl", &["show", "--property=ActiveState", "--value", unit])
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn undo_nginx(done: &mut Vec<String>) -> Result<(), String> {
    let Ok(snippet) = fs::metadata(NGINX) else { return Ok(()) };
    // Without the file, a site that includes it would keep nginx from starting.
    let is_included =
        run("nginx", &["-T", "-q"]).map_or(true, |all| all.contains(&format!("file {NGINX}:")));
    if !is_included {
        remove(NGINX)?;
        done.push(format!("Removed {NGINX}."));
    } else if snippet.len() > 0 {
        let emptied = File::options().write(true).open(NGINX).and_then(|file| file.set_len(0));
        emptied.map_err(|error| format!("{NGINX}: {error}"))?;
        done.push(format!("Emptied {NGINX}; remove its include line, then delete it."));
        if state("nginx") == "active" {
            run("systemctl", &["reload", "nginx"])?;
        }
    }
    Ok(())
}

fn undo_units(done: &mut Vec<String>) -> Result<(), String> {
    if !Path::new(SOCKET).exists() {
        return remove(SERVICE).map(drop);
    }
    run("systemctl", &["disable", "--now", "comedor.socket", "comedor.service"])?;
    remove(SERVICE)?;
    remove(SOCKET)?;
    for file in [SERVICE, SOCKET] {
        _ = Path::new(file).parent().map(fs::remove_dir);
    }
    done.push("Disabled comedor.socket.".to_owned());
    run("systemctl", &["daemon-reload"]).map(drop)
}

fn undo_settings(done: &mut Vec<String>) -> Result<(), String> {
    let Ok(before) = fs::read_to_string(BEFORE) else { return Ok(()) };
    let now = fs::read_to_string(SETTINGS).unwrap_or_default();
    let lines = now.split_once(&format!("{MARK}\n")).map_or("", |(_, lines)| lines).lines();
    if now != before && now != with_lines(&before, lines) {
        done.push(format!(
            "Kept {SETTINGS}, which has been edited since; the old one is {BEFORE}."
        ));
        return Ok(());
    }
    let failed = |error: io::Error| format!("{SETTINGS}: {error}");
    // Does nothing if they are the same file (rename(2)).
    fs::rename(BEFORE, SETTINGS).map_err(failed)?;
    remove(BEFORE)?;
    done.push(format!("Put the old {SETTINGS} back."));
    Ok(())
}
