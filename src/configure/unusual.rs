//! Pasted values that the settings allow, and that hardly any school has. Who can change the set-up page can choose what
//! is pasted, and the guide has root write the folders into commands.

use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use crate::cgi::Origin;
use crate::config::{
    ACCESS, Config, DATA_DIR, SCRIPT, SESSION_DIR, Setting, Settings, TRUSTED_ORIGINS, Zone,
};
use crate::session::{Address, SavePath};
use crate::sys::log::printable;

/// Why a value cannot be pasted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{0}: a pasted path can have only A-Z a-z 0-9 . _ - and /, and not `..`; write this line into the file by hand"
    )]
    Path(&'static str),
    #[error(
        "{0}: a folder of the system, such as / or /etc, cannot be pasted; write this line into the file by hand"
    )]
    SystemFolder(&'static str),
    #[error(
        "TZ: only the name of a time zone, such as Europe/Madrid, can be pasted; write this line into the file by hand"
    )]
    Zone,
}

/// The top-level folders of the system (Filesystem Hierarchy Standard 3.0): neither they nor what is below them is a
/// school's.
const SYSTEM_FOLDERS: &[&str] = &[
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin",
    "sys", "usr",
];

/// Those that schools have folders in
const SHARED_FOLDERS: &[&str] = &["home", "opt", "srv", "var"];

/// Refuses what only an editor can write.
pub fn refuse(pasted: &Config) -> Result<(), Error> {
    let data_dir = Some(pasted.data_dir.as_path());
    let (session_dir, socket) = match &pasted.session.save_path {
        SavePath::Files(files) => (Some(files.folder.as_path()), None),
        SavePath::Redis(server) => match &server.address {
            Address::Unix(socket) => (None, Some(socket.as_path())),
            Address::Tcp { .. } => (None, None),
        },
    };
    let script = pasted.script.as_ref().map(|script| script.path());
    for (setting, path) in [
        (DATA_DIR, data_dir),
        (SESSION_DIR, session_dir),
        (SESSION_DIR, socket),
        (SCRIPT, script),
    ] {
        if path.is_some_and(|path| !is_usual_path(path)) {
            return Err(Error::Path(setting.name));
        }
    }
    for (setting, folder) in [(DATA_DIR, data_dir), (SESSION_DIR, session_dir)] {
        if folder.is_some_and(is_system_folder) {
            return Err(Error::SystemFolder(setting.name));
        }
    }
    if is_usual_zone(&pasted.zone) {
        Ok(())
    } else {
        Err(Error::Zone)
    }
}

fn is_usual_path(path: &Path) -> bool {
    let is_usual_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"._/-".contains(byte);
    let leads_up = path.components().any(|part| part == Component::ParentDir);
    path.as_os_str().as_bytes().iter().all(is_usual_byte) && !leads_up
}

/// Whether this is `/`, a folder of the system, or one that schools only have folders in.
fn is_system_folder(folder: &Path) -> bool {
    let names = folder.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    match names.collect::<Vec<_>>()[..] {
        [] => true,
        [top] => SYSTEM_FOLDERS.contains(&top) || SHARED_FOLDERS.contains(&top),
        [top, ..] => SYSTEM_FOLDERS.contains(&top),
    }
}

/// Whether this is the system's zone or a name of tzdata (its file `theory.html`), which leads to no file elsewhere.
fn is_usual_zone(zone: &Zone) -> bool {
    let Zone::Named(name) = zone else {
        return true;
    };
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    let mut parts = name.split('/');
    name.chars().all(is_name_char) && parts.all(|part| !matches!(part, "" | ".."))
}

/// What the new values do that an administrator may not expect: a sentence for each.
pub fn effects(old: &Settings, pasted: &Settings, config: &Config) -> Vec<String> {
    let is_new = |setting: &Setting| {
        let new = pasted.get(setting);
        new.is_some() && new != old.get(setting)
    };
    let effects = [
        (SESSION_DIR, of_sessions(&config.session.save_path)),
        (TRUSTED_ORIGINS, of_origins(&config.trusted_origins)),
        (ACCESS, of_access(old.get(&ACCESS))),
        (SCRIPT, of_another_script(old.get(&SCRIPT), config)),
    ];
    effects
        .into_iter()
        .filter(|(setting, _)| is_new(setting))
        .filter_map(|(setting, effect)| Some(format!("{}: {}.", setting.name, effect?)))
        .collect()
}

fn of_sessions(save_path: &SavePath) -> Option<String> {
    let SavePath::Redis(server) = save_path else {
        return None;
    };
    match &server.address {
        Address::Tcp { host, .. } if !is_this_machine(host) => Some(format!(
            "sessions will come from another machine, {}, and who controls it can be any user, also an administrator",
            printable(host)
        )),
        _ => None,
    }
}

fn of_origins(origins: &[Origin]) -> Option<String> {
    let origins: Vec<_> = origins.iter().map(Origin::as_str).collect();
    (!origins.is_empty()).then(|| {
        format!(
            "pages of {} will be able to read and change menus, as the user who has them open",
            origins.join(", ")
        )
    })
}

/// Of a value that replaces `listed`.
fn of_access(old: Option<&[u8]>) -> Option<String> {
    let is_listed = old == Some(b"listed");
    let effect = "a session without a list of aularios will open all aularios of its centre";
    is_listed.then(|| effect.to_owned())
}

fn of_another_script(old: Option<&[u8]>, config: &Config) -> Option<String> {
    let old = old.filter(|old| !old.is_empty())?;
    let old = printable(&String::from_utf8_lossy(old));
    Some(match config.script {
        Some(_) => {
            format!("comedor will answer for another application, and no longer for that of {old}")
        }
        None => format!("comedor will answer for every application, not only for that of {old}"),
    })
}

fn is_this_machine(host: &str) -> bool {
    let is_loopback = host
        .parse()
        .is_ok_and(|address: IpAddr| address.is_loopback());
    is_loopback || host == "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_paths_and_zones_cannot_lead_a_command_elsewhere() {
        for (path, is_usual) in [
            ("/DATA/entreaulas", true),
            ("/srv/my-school_2.x/..data", true),
            ("/DATA/../etc", false),
            ("/DATA/..", false),
            ("/DATA/x;id", false),
            ("/DATA/$(id)", false),
            ("/a /etc", false),
            ("/srv/menús", false),
        ] {
            assert_eq!(is_usual_path(Path::new(path)), is_usual, "{path}");
        }
        for (zone, is_usual) in [
            ("", true),
            ("UTC", true),
            ("Europe/Madrid", true),
            ("Etc/GMT+10", true),
            ("America/Port-au-Prince", true),
            ("/dev/zero", false),
            (":/dev/zero", false),
            (":Europe/Madrid", false),
            ("../../../dev/zero", false),
            ("Europe/../../x", false),
            ("CET-1CEST,M3.5.0,M10.5.0/3", false),
            ("<-03>3", false),
        ] {
            assert_eq!(
                is_usual_zone(&Zone::parse(zone).unwrap()),
                is_usual,
                "{zone}"
            );
        }
    }

    #[test]
    fn folders_of_the_system_are_top_level_ones_with_all_below_them_but_for_places_of_schools() {
        for (folder, is_of_system) in [
            ("/", true),
            ("//./", true),
            ("/etc", true),
            ("/etc/", true),
            ("/./etc/entreaulas", true),
            ("/usr/share/entreaulas", true),
            ("/run/sessions", true),
            ("/lib64", true),
            ("/var", true),
            ("/srv/", true),
            ("/home", true),
            ("/opt", true),
            ("/DATA", false),
            ("/DATA/etc", false),
            ("/etcetera", false),
            ("/var/www/data", false),
            ("/var/lib/php/sessions", false),
            ("/srv/school", false),
            ("/home/school/data", false),
            ("/opt/school", false),
            ("/mnt/disk/data", false),
            ("/media/disk", false),
            ("/tmp", false),
        ] {
            assert_eq!(
                is_system_folder(Path::new(folder)),
                is_of_system,
                "{folder}"
            );
        }
    }

    /// The settings of a text of lines.
    fn settings(lines: &str) -> Settings {
        let settings = Settings::default().with_file(Path::new("lines"), lines.as_bytes());
        settings.unwrap()
    }

    #[test]
    fn effects_are_of_values_that_differ_from_the_old_ones() {
        for (old, pasted, effect) in [
            (
                "COMEDOR_ACCESS=listed", "COMEDOR_ACCESS=centre", "open all aularios",
            ),
            ("COMEDOR_ACCESS=listed", "COMEDOR_ACCESS=listed", ""),
            ("", "COMEDOR_ACCESS=centre", ""),
            ("COMEDOR_ACCESS=centre", "COMEDOR_ACCESS=listed", ""),
            (
                "COMEDOR_SCRIPT=/a/b", "COMEDOR_SCRIPT=/c/b", "another application",
            ),
            (
                "COMEDOR_SCRIPT=/a/b", "COMEDOR_SCRIPT=", "every application",
            ),
            ("COMEDOR_SCRIPT=/a/b", "COMEDOR_SCRIPT=/a/b", ""),
            ("", "COMEDOR_SCRIPT=/a/b", ""),
            ("", "COMEDOR_SESSION_DIR=tcp://192.0.2.1", "192.0.2.1"),
            ("", "COMEDOR_SESSION_DIR=tcp://127.0.0.1", ""),
        ] {
            let new = settings(pasted);
            let config = Config::from_settings(&new).unwrap();
            let effects = effects(&settings(old), &new, &config);
            let is_expected = match effect {
                "" => effects.is_empty(),
                _ => effects.len() == 1 && effects[0].contains(effect),
            };
            assert!(is_expected, "{old} {pasted}: {effects:?}");
        }
    }

    #[test]
    fn sockets_and_scripts_can_be_below_folders_of_the_system() {
        for (line, is_refused) in [
            ("COMEDOR_SESSION_DIR=unix:///run/redis.sock", false),
            ("COMEDOR_SESSION_DIR=unix:///tmp/$(id)", true),
            ("COMEDOR_SCRIPT=/usr/share/school/api/comedor.php", false),
        ] {
            let config = Config::from_settings(&settings(line)).unwrap();
            assert_eq!(refuse(&config).is_err(), is_refused, "{line}");
        }
    }
}
