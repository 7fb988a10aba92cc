//! PHP's configuration in Debian and Ubuntu, `/etc/php`. The php command is not asked: it has settings of its
//! own.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{Fact, Php, Place, Value, entries};

/// PHP's settings that comedor has to have too.
pub const SETTINGS: [&str; 6] = [
    "session.save_handler", "session.save_path", "session.name", "session.serialize_handler",
    "session.gc_maxlifetime", "date.timezone",
];

/// What a web server's configuration says about the PHP of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Handler {
    /// Apache's module
    Module { reads_htaccess: bool },
    /// PHP-FPM at this socket or address
    Fpm(String),
}

impl Fact {
    /// A setting of PHP. `None` for another one, and for a zone that PHP ignores because it is not a name. Root
    /// reads the file of that name, and the name may come from the application.
    pub fn of_php(name: &str, text: &str, place: &Place, is_admin: bool) -> Option<Fact> {
        let is_name = |part| matches!(part, Component::Normal(_));
        let is_known = SETTINGS.contains(&name)
            && (name != "date.timezone" || Path::new(text).components().all(is_name));
        let value = Value { text: text.to_owned(), place: place.clone() };
        is_known.then(|| Fact { about: name.to_owned(), value, is_admin })
    }
}

/// The value of `name` that is in force.
pub fn in_force<'f>(facts: &'f [Fact], name: &str) -> Option<&'f Value> {
    let of_name = || facts.iter().filter(|fact| fact.about == name);
    let fact = of_name().rfind(|fact| fact.is_admin).or(of_name().next_back());
    fact.map(|fact| &fact.value).filter(|value| !value.text.is_empty())
}

/// A pool of PHP-FPM.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    pub user: String,
    pub group: String,
    pub listen: String,
    pub facts: Vec<Fact>,
}

/// The PHP behind `handler`, and its own settings in the order of their effect. `user` is that of the web server.
pub fn find(handler: &Handler, user: &str) -> Result<(Php, Vec<Fact>), String> {
    let version =
        |folder: &Path| folder.iter().nth_back(1).map(|name| name.to_string_lossy().into_owned());
    match handler {
        Handler::Module { .. } => {
            let modules = entries(Path::new("/etc/apache2/mods-enabled"));
            let name =
                |path: &PathBuf| Some(path.file_stem()?.to_str()?.strip_prefix("php")?.to_owned());
            let Some(version) = modules.iter().find_map(name) else {
                return Err("mod_php is not in /etc/apache2/mods-enabled".to_owned());
            };
            let folder = Path::new("/etc/php").join(&version).join("apache2");
            let php = Php {
                name: format!("mod_php {version}"),
                user: user.to_owned(),
                group: user.to_owned(),
            };
            Ok((php, of_all_pages(&folder)))
        }
        Handler::Fpm(address) => {
            for folder in servers() {
                let is_it =
                    |pool: &Pool| pool.listen == *address || same_file(&pool.listen, address);
                if let Some(pool) = pools(&folder).into_iter().find(is_it) {
                    let name = format!("PHP-FPM {}", version(&folder).unwrap_or_default());
                    let php = Php { name, user: pool.user, group: pool.group };
                    return Ok((php, [of_all_pages(&folder), pool.facts].concat()));
                }
            }
            Err(format!("no pool in /etc/php listens on {address}"))
        }
    }
}

/// Debian has a link for the socket of the current version.
fn same_file(one: &str, other: &str) -> bool {
    let real = |path| fs::canonicalize(path).ok();
    real(one).is_some_and(|path| Some(path) == real(other))
}

/// The folders with a configuration for pages: `/etc/php/VERSION/{apache2,cgi,fpm}`.
pub fn servers() -> Vec<PathBuf> {
    let versions = entries(Path::new("/etc/php")).into_iter();
    let servers = versions.flat_map(|path| ["apache2", "cgi", "fpm"].map(|name| path.join(name)));
    servers.filter(|server| server.join("php.ini").is_file()).collect()
}

/// The values of a setting in the folder `server`: those of FPM's pools, else the one for all pages.
pub fn values(server: &Path, name: &str) -> Vec<Value> {
    let pools = pools(server).into_iter();
    let of_pools: Vec<Value> =
        pools.filter_map(|pool| in_force(&pool.facts, name).cloned()).collect();
    if !of_pools.is_empty() {
        return of_pools;
    }
    in_force(&of_all_pages(server), name).cloned().into_iter().collect()
}

fn of_all_pages(server: &Path) -> Vec<Fact> {
    let files = [vec![server.join("php.ini")], entries(&server.join("conf.d"))].concat();
    let files =
        files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "ini"));
    files.flat_map(|file| facts(file, &read(file))).collect()
}

fn pools(server: &Path) -> Vec<Pool> {
    let files = entries(&server.join("pool.d")).into_iter();
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "conf"));
    files.flat_map(|file| parse_pools(&file, &read(&file))).collect()
}

/// A comment may have another encoding.
fn read(file: &Path) -> String {
    String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned()
}

pub fn parse_pools(file: &Path, text: &str) -> Vec<Pool> {
    let mut pools: Vec<(String, Pool)> = Vec::new();
    for (line, (name, value)) in assignments(text) {
        if name == "[" {
            pools.push((value, Pool::default()));
            continue;
        }
        let Some((pool_name, pool)) = pools.last_mut() else { continue };
        let value = value.replace("$pool", pool_name);
        match name {
            "user" => pool.user = value,
            "group" => pool.group = value,
            "listen" => pool.listen = value,
            _ => {
                let setting = name
                    .split_once('[')
                    .and_then(|(kind, setting)| Some((kind, setting.strip_suffix(']')?)));
                let place = Place { file: file.to_owned(), line };
                pool.facts.extend(setting.and_then(|(kind, setting)| {
                    Fact::of_php(setting, &value, &place, kind == "php_admin_value")
                }));
            }
        }
    }
    let pools = pools.into_iter().filter(|(name, _)| name != "global").map(|(_, mut pool)| {
        if pool.group.is_empty() {
            pool.group.clone_from(&pool.user);
        }
        pool
    });
    pools.collect()
}

/// The settings in the lines of php.ini or `.user.ini`.
pub fn facts(file: &Path, text: &str) -> Vec<Fact> {
    let facts = assignments(text).filter_map(|(line, (name, value))| {
        Fact::of_php(name, &value, &Place { file: file.to_owned(), line }, false)
    });
    facts.collect()
}

/// The lines `name = value`, with a value in quotes, or up to a comment, and the lines `[section]`, with the name `[`.
fn assignments(text: &str) -> impl Iterator<Item = (usize, (&str, String))> {
    (1..).zip(text.lines()).filter_map(|(number, line)| {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            return Some((number, ("[", section.trim_end_matches(']').to_owned())));
        }
        let (name, value) = line.split_once('=').filter(|_| !line.starts_with([';', '#']))?;
        let value = value.trim();
        let value = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split(quote).next()?,
            _ => value.split(';').next()?.trim(),
        };
        Some((number, (name.trim(), value.to_owned())))
    })
}
