//! Reports the settings and where each was set, compared with those of PHP's pages.

use std::fs;
use std::path::{Path, PathBuf};

use super::reach::{TIMEOUT, limited};
use super::report::{Level, Report};
use crate::admin::inferred::{Script, Value, php};
use crate::api::today;
use crate::config::{
    self, Config, DATA_DIR, SERVICE, SESSION_DIR, SESSION_FORMAT, SESSION_LIFETIME, SESSION_NAME,
    SETTINGS, Setting, Settings, TZ,
};
use crate::session::SavePath;

const ABOUT: &str = "settings";

/// Reports why the settings cannot be used. `settings` are those that could be read.
pub fn refused(error: &config::Error, settings: Option<&Settings>, report: &mut Report) {
    let place = match (error, settings) {
        (config::Error::Setting { setting, .. }, Some(settings)) => {
            format!("{}: ", shown(settings, setting))
        }
        _ => String::new(),
    };
    let text =
        format!("{place}{error}; until this is fixed, every request fails with INTERNAL_ERROR");
    report.add(Level::Error, ABOUT, text);
}

/// Reports the settings that are set, and what differs from PHP.
pub fn check(config: &Config, settings: &Settings, report: &mut Report) {
    for setting in SETTINGS.iter().filter(|setting| settings.get(setting).is_some()) {
        report.add(Level::Ok, ABOUT, shown(settings, setting));
    }
    report.add(Level::Ok, ABOUT, "the other settings have their defaults");
    match today::today(config.zone.as_deref()) {
        Ok(today) => report.add(Level::Ok, ABOUT, format!("today is {}", today.as_str())),
        Err(error) => {
            let text = format!("{}: {error}; requests without a date fail", shown(settings, &TZ));
            report.add(Level::Error, ABOUT, text);
        }
    }
}

/// `NAME=value` without a password, and where it was set.
pub fn shown(settings: &Settings, setting: &'static Setting) -> String {
    let value = String::from_utf8_lossy(settings.value(setting));
    let name = setting.name;
    let value = if *setting == SESSION_DIR { without_password(&value) } else { value.into() };
    format!("{name}={value} ({})", settings.source(setting))
}

/// The settings that must equal one of PHP, and PHP's defaults, that of save_path in Debian.
const OF_PHP: [(Setting, &str, &str); 5] = [
    (SESSION_DIR, "session.save_path", "/var/lib/php/sessions"),
    (SESSION_NAME, "session.name", "PHPSESSID"),
    (SESSION_FORMAT, "session.serialize_handler", "php"),
    (SESSION_LIFETIME, "session.gc_maxlifetime", "1440"),
    (TZ, "date.timezone", "UTC"),
];

/// A setting that must equal `value`, which is `what`, from `source`.
pub struct Wanted<'s> {
    pub setting: &'static Setting,
    pub what: String,
    pub value: &'s str,
    pub source: String,
}

/// What the script and its PHP have, as far as it is understood.
pub fn wanted(script: &Script) -> Vec<Wanted<'_>> {
    let of_script = [
        (&SERVICE, "the script's service", &script.service),
        (&DATA_DIR, "the script's data folder", &script.data_dir),
    ];
    let of_script = of_script.into_iter().filter_map(|(setting, what, value)| {
        let Value { text, place } = value.as_ref()?;
        Some(Wanted { setting, what: what.to_owned(), value: text, source: place.to_string() })
    });
    let is_clear =
        |name: &str| script.php.is_some() && script.unclear.iter().all(|known| known.text != name);
    let of_php = OF_PHP.iter().filter(|(_, name, _)| is_clear(name));
    let of_php = of_php.map(|(setting, name, default)| {
        let value = script.setting(name);
        Wanted {
            setting,
            what: format!("the {name} of PHP's pages"),
            value: value.map_or(default, |value| &value.text),
            source: value.map_or("its default".to_owned(), |value| value.place.to_string()),
        }
    });
    of_script.chain(of_php).collect()
}

/// Whether `setting` has the meaning of `value`, of the script or of PHP.
pub fn equals(config: &Config, setting: &Setting, value: &str) -> bool {
    let session = &config.session;
    match *setting {
        SERVICE => value == config.service.as_str(),
        DATA_DIR => {
            // PHP's user chooses the path.
            let real = |path: PathBuf| limited(TIMEOUT, move || path.canonicalize());
            let (one, other) = (PathBuf::from(value), &config.data_dir);
            one == *other
                || real(one).ok().is_some_and(|path| real(other.clone()).ok() == Some(path))
        }
        SESSION_DIR => {
            SavePath::parse(value.as_bytes()).is_some_and(|path| path == session.save_path)
        }
        SESSION_NAME => value == session.name,
        SESSION_FORMAT => value == session.format.name(),
        SESSION_LIFETIME => {
            let in_redis = matches!(session.save_path, SavePath::Redis(_));
            !in_redis || value == session.lifetime.to_string()
        }
        _ => rules(Some(value)) == rules(config.zone.as_deref()),
    }
}

/// Warns about settings that none of PHP's configurations has: for a check that does not know which of
/// them is the script's.
pub fn compare(config: &Config, report: &mut Report) {
    let servers = php::servers();
    if servers.is_empty() {
        let text = "PHP's settings are not in /etc/php; compare with those that a page of the \
                    application has (docs/install-special.md#shared-hosting-with-htaccess)";
        return report.add(Level::Hint, ABOUT, text);
    }
    for (setting, of_php, default) in &OF_PHP {
        let values = servers.iter().flat_map(|server| {
            let values = php::values(server, of_php).into_iter();
            let mut values: Vec<_> =
                values.map(|value| (value.text, value.place.to_string())).collect();
            // An application that does not set the zone here usually sets it in its code.
            if values.is_empty() && *setting != TZ {
                values.push((default.to_string(), "the default".to_owned()));
            }
            values
        });
        let values: Vec<_> = values.collect();
        let Some((value, place)) = values.first() else { continue };
        if values.iter().any(|(value, _)| equals(config, setting, value)) {
            continue;
        }
        let (name, value) = (setting.name, without_password(value));
        let advice =
            format!("set {name} to this value, unless the application's code sets another");
        report.add(Level::Warning, name, format!("PHP's {of_php} is {value} ({place}); {advice}"));
    }
}

/// The rules of a time zone, else its name; of the system's without a name.
fn rules(zone: Option<&str>) -> Vec<u8> {
    let file = match zone {
        Some(zone) => Path::new("/usr/share/zoneinfo").join(zone),
        None => PathBuf::from("/etc/localtime"),
    };
    fs::read(file).unwrap_or_else(|_| zone.unwrap_or("UTC").into())
}

/// A value of PHP without a password: an address of a server may have one in any place.
pub fn without_password(value: &str) -> String {
    match SavePath::parse(value.as_bytes()) {
        Some(SavePath::Redis(server)) => return server.to_string(),
        Some(SavePath::Files(_)) if !value.contains('?') => return value.to_owned(),
        _ => {}
    }
    // `tcp://a?auth=…, tcp://b` and `seed[]=…` of phpredis, `host=…` of other handlers
    match value.find("://").map(|at| at + 3).or_else(|| value.find('=').map(|at| at + 1)) {
        Some(end) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}
