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

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

use crate::admin::command::property;
use crate::sys::process::Credentials;

pub use files::{Literals, named, read_as, scripts};
pub use pages::{answer_of_script, ask_php, refusing};
pub use php::{Php, WebServer};
pub use url::{Answer, AppUrl};

/// What set-up remembers for the check: the address, and the script.
pub const KNOWN: &str = "/etc/comedor/site";

const MAX_KNOWN: u64 = 10_000;

/// The program whose answer is asked for, with what set-up and the check know about its PHP
#[derive(Debug)]
pub struct Site {
    /// After all redirections, at the address of this machine that leads to the script
    pub address: AppUrl,
    /// The script that comedor replaces
    pub script: PathBuf,
    pub php: Php,
    pub server: WebServer,
}

impl Site {
    /// The user of the web server's processes that ask PHP.
    pub fn web_user(&self) -> Result<Credentials, String> {
        // A module is in the web server, which may have a user for each site.
        if self.php.is_module() { Ok(self.php.user.clone()) } else { self.server.user() }
    }

    /// What the script's text says, read until `end` with the rights of PHP's user.
    pub fn literals(&self, end: Instant) -> io::Result<Literals> {
        Literals::read(&self.script, &self.php, end)
    }

    /// The address and the script of [`KNOWN`], if root has written them.
    pub fn known() -> Option<(AppUrl, PathBuf)> {
        let file = File::open(KNOWN).ok()?;
        let seen = file.metadata().ok()?;
        if seen.uid() != 0 || seen.mode() & 0o022 != 0 || !seen.is_file() {
            return None;
        }
        let text = io::read_to_string(file.take(MAX_KNOWN)).ok()?;
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        Some((AppUrl::parse(lines.next()?).ok()?, lines.next()?.into()))
    }

    /// The content of [`KNOWN`]
    pub fn remembered(&self) -> String {
        format!("{}\n{}\n", self.address, self.script.display())
    }
}

/// The user of the unit `comedor.service`.
pub fn unit_user() -> Option<String> {
    property("comedor.service", "User").ok().filter(|user| !user.is_empty())
}

/// The text, if it needs no quotes in any configuration, and has only characters of a URL.
pub fn plain(text: &str) -> Result<&str, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    let refused = || format!("{text:?} has characters other than [A-Za-z0-9._/-]");
    text.bytes().all(is_plain).then_some(text).ok_or_else(refused)
}

/// 128 bits as 32 digits.
pub fn random() -> Result<String, String> {
    let mut random = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    read.map(|()| format!("{:032x}", u128::from_ne_bytes(random)))
        .map_err(|error| format!("/dev/urandom: {error}"))
}
