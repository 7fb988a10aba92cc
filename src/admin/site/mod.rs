//! What root learns about the application: by asking PHP itself, through the web server, at the address that
//! the administrator gives. No configuration of another program is read.
//!
//! `Scripts` are the candidates for the script. A file of a random name beside each (`Pages`) runs the
//! script as anyone can request it, without a login, and tells by a Unix socket which settings PHP has then;
//! the kernel tells which user that is. [`AppUrl`] sends the requests, to this machine only. [`Literals`] are
//! what the text of the script adds: the service, the data folder, and whether it has a database.
//!
//! Files of the application are read and written by children with the rights of their owners. What they, PHP
//! and the web server say is data of parties that root does not trust: it is compared, checked against
//! `[A-Za-z0-9._/-]` before it is written, and escaped before it is shown.

mod files;
mod pages;
mod php;
mod url;

use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

use crate::admin::accounts;
use crate::admin::command::property;
use crate::sys::log::printable;
use crate::sys::process::Credentials;

pub use files::{Literals, named, read_as, scripts};
pub use pages::{answer_of_script, ask_php, refusing};
pub use php::Php;
pub use url::{Answer, AppUrl};

/// What set-up remembers for the check: the address, and the script.
pub const KNOWN: &str = "/etc/comedor/site";

/// The web servers that set-up knows, by their units of systemd
const SERVERS: [&str; 4] = ["apache2", "nginx", "caddy", "lighttpd"];

/// The program whose answer is asked for, with what set-up and the check know about its PHP
#[derive(Debug)]
pub struct Site {
    /// After all redirections, at the address of this machine that leads to the script
    pub address: AppUrl,
    /// The script that comedor replaces
    pub script: PathBuf,
    pub php: Php,
    /// The unit of the web server, if it is a known one
    pub server: Option<&'static str>,
}

impl Site {
    /// What answers at `address`. The web server is known from PHP, or `named` by the administrator.
    fn new(address: AppUrl, script: PathBuf, php: Php, named: Option<&str>) -> Site {
        let software = if php.is_module() { "apache2" } else { php.says("server") };
        let named = named.unwrap_or(software).to_lowercase();
        let server = SERVERS.into_iter().find(|unit| named.starts_with(&unit[..5]));
        Site { address, script, php, server }
    }

    /// The unit of the web server.
    pub fn unit(&self) -> Result<&'static str, String> {
        let name = self.php.says("server");
        self.server.ok_or_else(|| {
            format!("the web server calls itself {name:?}: name one of {SERVERS:?} by --server")
        })
    }

    /// The user of the web server's processes that ask PHP.
    pub fn web_user(&self) -> Result<Credentials, String> {
        // A module is in the web server, which may have a user for each site.
        if self.php.is_module() {
            return Ok(self.php.user.clone());
        }
        let unit = self.unit()?;
        let first = property(unit, "MainPID")?;
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
        let children = children.unwrap_or_default();
        // The first one is often root.
        let processes = iter::once(first.as_str()).chain(children.split_whitespace());
        let mut users = processes.filter_map(accounts::of_process).filter(|user| !user.is_root());
        users.next().ok_or_else(|| format!("{unit} does not run as a service"))
    }

    /// The address and the script of [`KNOWN`].
    pub fn known() -> Option<(AppUrl, PathBuf)> {
        let text = fs::read_to_string(KNOWN).ok()?;
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        Some((AppUrl::parse(lines.next()?).ok()?, lines.next()?.into()))
    }

    /// The content of [`KNOWN`]
    pub fn remembered(&self) -> String {
        format!("{}\n{}\n", self.address, self.script.display())
    }
}

/// A path that another user chooses
pub fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// The text, if it needs no quotes in any configuration, and has only characters of a URL.
pub fn plain(text: &str) -> Result<&str, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    let refused = || format!("{text:?} has characters other than [A-Za-z0-9._/-]");
    text.bytes().all(is_plain).then_some(text).ok_or_else(refused)
}

/// A random number of 32 hexadecimal digits.
pub fn random() -> Result<String, String> {
    const UUID: &str = "/proc/sys/kernel/random/uuid";
    let uuid = fs::read_to_string(UUID).map_err(|error| format!("{UUID}: {error}"))?;
    Ok(uuid.trim().replace('-', ""))
}
