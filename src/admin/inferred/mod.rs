//! What root finds out about the machine: where the PHP script is, at which URL path, which PHP runs
//! it with which settings, and which of these paths reach comedor.
//!
//! It asks the web server for its effective configuration (`apache2ctl -t -D DUMP_CONFIG`, `nginx -T`),
//! and reads PHP's files in `/etc/php`: root's files, which `apache`, `nginx` and `php` parse. The
//! application's files belong to others: a child without rights reads them (`application`, `code`), and
//! what it says is data. Only `command` starts programs: with a fixed `PATH`, an empty environment and a
//! time limit.
//!
//! What is not understood becomes a sentence in [`Machine::notes`]; nothing is guessed.

mod apache;
mod application;
mod ask;
mod code;
mod directive;
mod find;
mod nginx;
pub mod php;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::admin::command;
use crate::store::access::Credentials;
use crate::sys::log::printable;

pub use ask::{Answer, ask, plain, request};
pub use find::{find, read_as};

/// The time that this process waits for a process of another user: it may stop or take long on purpose.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// What was found
#[derive(Debug, Default)]
pub struct Machine {
    /// Whether a known web server runs, as a unit of systemd
    pub runs: bool,
    /// Each path of each site at which the script `…/api/comedor.php` is
    pub scripts: Vec<Script>,
    /// Each path at which comedor is enabled
    pub enabled: Vec<Enabled>,
    /// The web servers that run and whose configuration is not understood, with the user of each
    pub others: Vec<(String, Credentials)>,
    /// Sentences about what was not understood
    pub notes: Vec<String>,
}

/// A line of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    pub file: PathBuf,
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} line {}", printable(&self.file.display().to_string()), self.line)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Server {
    /// In Debian's layout
    Apache,
    Nginx,
}

/// A virtual host of Apache, a `server` of nginx.
#[derive(Clone, Debug)]
pub struct Site {
    pub server: Server,
    /// The user that the web server runs as
    pub user: String,
    /// `ServerName`, `server_name`; `localhost` without one
    pub name: String,
    /// An address to connect to from this machine
    pub address: String,
    pub port: u16,
    pub is_tls: bool,
    pub place: Place,
}

/// How the web server passes requests to comedor.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// As the web server's user
    Cgi,
    /// By this socket
    FastCgi(PathBuf),
}

/// A path that a site passes to comedor.
#[derive(Clone, Debug)]
pub struct Enabled {
    pub site: Site,
    pub path: String,
    pub way: Way,
    pub place: Place,
}

/// The PHP script that comedor replaces, at a path of a site.
#[derive(Clone, Debug)]
pub struct Script {
    pub site: Site,
    pub file: PathBuf,
    /// Of the URL, such as `/entreaulas/api/comedor.php`
    pub path: String,
    /// What answers this path, if it is comedor
    pub comedor: Option<Way>,
    /// `None` if it was not understood; a note says so
    pub php: Option<Php>,
    /// `<service>:docente` in the script
    pub service: Option<Value>,
    /// The folder before `/Centros` in the script
    pub data_dir: Option<Value>,
    /// A use of PDO or SQLite3 in the script: its data is not in files
    pub database: Option<Place>,
    /// What sets those settings of PHP's pages that comedor needs, in the order of effect
    pub settings: Vec<Fact>,
    /// The names of those that the code sets to values that are not understood
    pub unclear: Vec<Value>,
}

/// A value and where it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    pub text: String,
    pub place: Place,
}

/// The PHP that runs a script, or a pool of PHP-FPM.
#[derive(Clone, Debug, Default)]
pub struct Php {
    /// `mod_php 8.2` or `PHP-FPM 8.2`; of a pool its own
    pub name: String,
    pub user: String,
    pub group: String,
    /// The socket or address of a pool
    listen: String,
    /// Its own settings, in the order of effect
    facts: Vec<Fact>,
}

impl Server {
    /// The unit of systemd
    pub fn unit(self) -> &'static str {
        match self {
            Server::Apache => "apache2",
            Server::Nginx => "nginx",
        }
    }
}

impl Site {
    /// `listen` is an address, a port or both.
    fn new(
        server: Server,
        user: &str,
        name: Option<&str>,
        listen: &str,
        is_tls: bool,
        place: &Place,
    ) -> Site {
        let (address, port) = match listen.rsplit_once(':') {
            Some(parts) if !listen.ends_with(']') => parts,
            _ if listen.parse::<u16>().is_ok() => ("*", listen),
            _ => (listen, "80"),
        };
        let is_any = matches!(address, "*" | "_default_" | "0.0.0.0" | "[::]");
        Site {
            server,
            user: user.to_owned(),
            name: name.filter(|name| !name.is_empty()).unwrap_or("localhost").to_owned(),
            address: if is_any { "127.0.0.1" } else { address }.to_owned(),
            port: port.parse().unwrap_or(80),
            is_tls,
            place: place.clone(),
        }
    }
}

impl Script {
    pub fn url(&self) -> String {
        let Site { name, port, is_tls, .. } = &self.site;
        let (scheme, default) = if *is_tls { ("https", 443) } else { ("http", 80) };
        let port = if *port == default { String::new() } else { format!(":{port}") };
        format!("{scheme}://{name}{port}{}", self.path)
    }

    /// What comedor has to know and is not understood.
    pub fn not_understood(&self) -> Vec<String> {
        let known = [
            ("folder before /Centros", &self.data_dir),
            ("permission <service>:docente", &self.service),
        ];
        let unknown = known.into_iter().filter(|(_, value)| value.is_none());
        let unknown = unknown.map(|(what, _)| format!("it names no {what}"));
        let unclear = self.unclear.iter().map(|Value { text, place }| {
            format!("cannot determine the value to which the code sets {text} ({place})")
        });
        unknown.chain(unclear).collect()
    }

    /// The value that is in force of a setting of PHP, if it is set.
    pub fn setting(&self, name: &str) -> Option<&Value> {
        php::in_force(&self.settings, name)
    }
}

/// What the configuration of the web server says about a site.
struct Host<'c> {
    site: Site,
    /// The folders whose files it serves
    roots: Vec<Root>,
    enabled: Vec<Enabled>,
    handlers: HandlersOf<'c>,
}

/// What answers the path of a file
type HandlersOf<'c> = Box<dyn Fn(&str, &Path) -> Handlers + 'c>;

/// A folder of a site, and the path of the folder, without a slash at its end.
struct Root {
    path: String,
    folder: PathBuf,
}

/// What a line says about a setting of PHP, or one of the subjects that `code` names.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    about: String,
    value: Value,
    /// `php_admin_value`: later places have no effect
    is_admin: bool,
}

/// What answers a path: comedor, or PHP, with the settings that the web server passes to it.
struct Handlers {
    comedor: Option<Way>,
    php: Option<php::Handler>,
    settings: Vec<Fact>,
}

/// The user of the unit `comedor.service`.
pub fn unit_user() -> Option<String> {
    command::property("comedor.service", "User").ok().filter(|user| !user.is_empty())
}

/// The entries of `folder`, sorted; none if it cannot be listed.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Whether `path`, of a program or a socket, is comedor's: of its name, or in a folder of its name.
fn is_comedor(path: &str) -> bool {
    let mut names = Path::new(path).iter().rev().take(2);
    names.any(|name| name == "comedor")
}
