//! The settings that must agree with the PHP script and its PHP: set-up writes them, the check compares them.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use super::limited::limited;
use super::site::Php;
use crate::config::{
    ACCESS, Access, Config, DATA_DIR, SERVICE, SESSION_DIR, SESSION_FORMAT, SESSION_LIFETIME,
    SESSION_NAME, Setting, TZ,
};
use crate::session::{Format, SavePath};

/// The settings that must equal one of PHP.
const OF_PHP: [(Setting, &str); 5] = [
    (SESSION_DIR, "session.save_path"),
    (SESSION_NAME, "session.name"),
    (SESSION_FORMAT, "session.serialize_handler"),
    (SESSION_LIFETIME, "session.gc_maxlifetime"),
    (TZ, "date.timezone"),
];

/// A setting that must equal `value`, which is `what`.
pub struct Wanted {
    pub setting: &'static Setting,
    pub what: String,
    pub value: String,
}

/// What the script and its PHP have, as far as it is known.
pub fn wanted(php: &Php, service: Option<&str>, data_dir: Option<&str>) -> Vec<Wanted> {
    let of_script = [(&SERVICE, "service", service), (&DATA_DIR, "data folder", data_dir)];
    let of_script = of_script.into_iter().filter_map(|(setting, what, value)| {
        Some(Wanted { setting, what: format!("the script's {what}"), value: value?.to_owned() })
    });
    let of_php = OF_PHP.iter().map(|(setting, name)| Wanted {
        setting,
        what: format!("PHP's {name}"),
        value: of_php(php.says(name), setting).to_owned(),
    });
    of_script.chain(of_php).collect()
}

/// What PHP says, or nothing if it is a time zone outside the folder of zones: root would read that file.
fn of_php<'v>(value: &'v str, setting: &Setting) -> &'v str {
    let is_below = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    if *setting != TZ || is_below(Path::new(value)) { value } else { "" }
}

/// Whether `setting` has the meaning of `value`. A folder that does not answer until `end` equals none.
pub fn equals(config: &Config, setting: &Setting, value: &str, end: Instant) -> bool {
    let session = &config.session;
    match *setting {
        SERVICE => value == config.service.as_str(),
        DATA_DIR => {
            // PHP's user chooses the path.
            let (one, other) = (PathBuf::from(value), config.data_dir.clone());
            let is_same = move || Ok(one.canonicalize()? == other.canonicalize()?);
            Path::new(value) == config.data_dir || limited(end, is_same).unwrap_or(false)
        }
        SESSION_DIR => {
            SavePath::parse(value.as_bytes()).is_ok_and(|path| path == session.save_path)
        }
        SESSION_NAME => value == session.name,
        ACCESS => (value == "listed") == (config.access == Access::Listed),
        SESSION_FORMAT => Format::parse(value) == Ok(session.format),
        SESSION_LIFETIME => {
            let in_redis = matches!(session.save_path, SavePath::Redis(_));
            !in_redis || value == session.lifetime.to_string()
        }
        _ => rules(Some(value)) == rules(config.zone.as_deref()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_zone_of_php_is_a_file_outside_the_zones() {
        for zone in ["/dev/zero", "../../../tmp/fifo", "Europe/../../x", "./UTC"] {
            assert_eq!(of_php(zone, &TZ), "", "{zone}");
        }
        assert_eq!(of_php("Europe/Madrid", &TZ), "Europe/Madrid");
        assert_eq!(of_php("/srv/sessions", &SESSION_DIR), "/srv/sessions");
    }
}
