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

/// The files with settings of PHP for a folder
pub const HTACCESS: &str = ".htaccess";
const USER_INI: &str = ".user.ini";

/// What a web server's configuration says about the PHP of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Handler {
    /// Apache's module
    Module { reads_htaccess: bool },
    /// PHP-FPM at this socket or address
    Fpm(String),
}

impl Handler {
    /// The name of the files with settings for a folder that it reads.
    pub fn folder_file(&self) -> Option<&'static str> {
        match self {
            Handler::Module { reads_htaccess } => reads_htaccess.then_some(HTACCESS),
            Handler::Fpm(_) => Some(USER_INI),
        }
    }
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

/// The PHP behind `handler`. `user` is that of the web server.
pub fn find(handler: &Option<Handler>, user: &str) -> Result<Option<Php>, String> {
    let Some(handler) = handler else {
        return Err("cannot determine which PHP runs it".to_owned());
    };
    for folder in servers() {
        let version = folder.iter().nth_back(1).unwrap_or_default().to_string_lossy();
        let (name, php) = match handler {
            Handler::Module { .. } => {
                let module = format!("/etc/apache2/mods-enabled/php{version}.load");
                let is_it = folder.ends_with("apache2") && Path::new(&module).exists();
                let [user, group] = [user, user].map(str::to_owned);
                ("mod_php", is_it.then(|| Php { user, group, ..Php::default() }))
            }
            Handler::Fpm(address) => {
                let is_it =
                    |pool: &Php| pool.listen == *address || same_file(&pool.listen, address);
                ("PHP-FPM", pools(&folder).into_iter().find(is_it))
            }
        };
        if let Some(php) = php {
            let facts = [of_all_pages(&folder), php.facts].concat();
            return Ok(Some(Php { name: format!("{name} {version}"), facts, ..php }));
        }
    }
    Err(match handler {
        Handler::Module { .. } => "mod_php is not in /etc/apache2/mods-enabled".to_owned(),
        Handler::Fpm(address) => format!("no pool in /etc/php listens on {address}"),
    })
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
    let of_pools = pools.filter_map(|pool| in_force(&pool.facts, name).cloned());
    let mut values: Vec<Value> = of_pools.collect();
    if values.is_empty() {
        values.extend(in_force(&of_all_pages(server), name).cloned());
    }
    values
}

fn of_all_pages(server: &Path) -> Vec<Fact> {
    let files = [vec![server.join("php.ini")], entries(&server.join("conf.d"))].concat();
    let files =
        files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "ini"));
    files.flat_map(|file| facts(file, &read(file))).collect()
}

fn pools(server: &Path) -> Vec<Php> {
    let files = entries(&server.join("pool.d")).into_iter();
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "conf"));
    files.flat_map(|file| parse_pools(&file, &read(&file))).collect()
}

/// A comment may have another encoding.
fn read(file: &Path) -> String {
    String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned()
}

pub fn parse_pools(file: &Path, text: &str) -> Vec<Php> {
    let mut pools: Vec<Php> = Vec::new();
    for (line, (name, value)) in assignments(text) {
        if name == "[" {
            pools.push(Php { name: value, ..Php::default() });
            continue;
        }
        let Some(pool) = pools.last_mut() else { continue };
        let value = value.replace("$pool", &pool.name);
        match name.split_once('[') {
            Some((kind, setting)) => {
                let place = Place { file: file.to_owned(), line };
                let setting = setting.trim_end_matches(']');
                let is_admin = kind == "php_admin_value";
                pool.facts.extend(Fact::of_php(setting, &value, &place, is_admin));
            }
            None if name == "user" => pool.user = value,
            None if name == "group" => pool.group = value,
            None if name == "listen" => pool.listen = value,
            None => {}
        }
    }
    pools.retain(|pool| pool.name != "global");
    for pool in pools.iter_mut().filter(|pool| pool.group.is_empty()) {
        pool.group.clone_from(&pool.user);
    }
    pools
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
