//! The script in whose place the program answers, and the one that a request is for.
//!
//! Two applications of a server can have the same path, PHP's default session name and session folder. Only the file
//! tells them apart, which the web server names: a save for one must never reach the data of the other.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Variables;
use crate::error::Error;
use crate::sys::file_id::FileId;

/// The handler of the `Action` in apache.conf.example, which Apache passes in this variable (mod_actions: "The handler
/// that was used for the particular request is passed using the `REDIRECT_HANDLER` variable").
pub const ACTION: &[u8] = b"comedor-cgi";

/// The absolute path of a script, as the web server says it: not the target of links.
#[derive(Debug)]
pub struct Script(PathBuf);

impl Script {
    /// An absolute path that ends with the name of a file. The error is what it must be.
    pub fn parse(path: &[u8]) -> Result<Script, &'static str> {
        let has_name = !matches!(name_of(path), b"" | b"." | b"..");
        if path.starts_with(b"/") && has_name {
            Ok(Script(PathBuf::from(OsStr::from_bytes(path))))
        } else {
            Err("the absolute path of a script")
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// INTERNAL_ERROR if the web server says that the request is for another file.
    ///
    /// Equal paths are equal. Others can be two names of one file; if this process cannot look at them, as in a
    /// container or with systemd's `ProtectHome=`, the paths decide.
    pub fn check(&self, variables: &Variables) -> Result<(), Error> {
        let Some(requested) = self.requested(variables) else {
            return Ok(());
        };
        if requested == self.path() || is_same_file(requested, self.path()) {
            return Ok(());
        }
        Err(Error::another_script(format!(
            "the request is for {}, and COMEDOR_SCRIPT is {}; see \"comedor answers for another application\" in \
             docs/troubleshooting.md",
            requested.display(),
            self.path().display()
        )))
    }

    /// The file that the request is for; `None` if the web server does not say it.
    ///
    /// It is in `SCRIPT_FILENAME`, as for PHP, and in `PATH_TRANSLATED` (RFC 3875 §4.1.6) with the `Action` of
    /// apache.conf.example and as nginx-fcgiwrap.conf.example sets it: there `SCRIPT_FILENAME` is the program. A path that
    /// follows the script's name is cut off. A value without that name is the path of the program (`ScriptAlias`,
    /// .htaccess).
    fn requested<'v>(&self, variables: &Variables<'v>) -> Option<&'v Path> {
        let said = if variables.meta("REDIRECT_HANDLER") == Some(ACTION) {
            variables.meta("PATH_TRANSLATED")?
        } else {
            without_proxy(variables.meta("SCRIPT_FILENAME")?)
        };
        let path = up_to_name(said, name_of(self.path().as_os_str().as_bytes()))?;
        Some(Path::new(OsStr::from_bytes(path)))
    }
}

/// What follows the last slash.
fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// `path` up to its last component `name`; `None` if it has none.
fn up_to_name<'p>(path: &'p [u8], name: &[u8]) -> Option<&'p [u8]> {
    let mut rest = path;
    while name_of(rest) != name {
        let slash = rest.iter().rposition(|&byte| byte == b'/')?;
        rest = &rest[..slash];
    }
    Some(rest)
}

/// The path without the address of the responder: mod_proxy_fcgi can put `proxy:fcgi://comedor` before it
/// (mod_proxy_fcgi.c, `proxy_fcgi_canon`).
fn without_proxy(filename: &[u8]) -> &[u8] {
    let Some(url) = filename.strip_prefix(b"proxy:") else {
        return filename;
    };
    let scheme = url.windows(3).position(|text| text == b"://");
    let address = scheme.map_or(url, |start| &url[start + 3..]);
    let path = address.iter().position(|&byte| byte == b'/');
    path.map_or(&[], |start| &address[start..])
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (FileId::at(a), FileId::at(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The script that a request with these variables is for, if the program answers in place of /srv/api/comedor.php.
    fn requested(pairs: &[(&str, &str)]) -> Option<String> {
        let script = Script::parse(b"/srv/api/comedor.php").unwrap();
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let variables = Variables::of_parameters(pairs);
        let path = script.requested(&variables)?;
        Some(path.to_str().unwrap().to_owned())
    }

    #[test]
    fn script_of_a_request_ends_with_its_name_and_the_path_of_the_program_is_none() {
        for (filename, expected) in [
            ("/www/api/comedor.php", Some("/www/api/comedor.php")),
            (
                "/www/api/comedor.php/save_menu",
                Some("/www/api/comedor.php"),
            ),
            (
                "/www/comedor.php/comedor.php/",
                Some("/www/comedor.php/comedor.php"),
            ),
            ("comedor.php", Some("comedor.php")),
            ("/www/api/comedor.phpx", None),
            ("/usr/lib/cgi-bin/comedor", None),
            ("/www/api/comedor.cgi/x", None),
            ("", None),
            ("/", None),
            (
                "proxy:fcgi://comedor/www/api/comedor.php",
                Some("/www/api/comedor.php"),
            ),
            (
                "proxy:unix:/run/comedor.sock|fcgi://comedor/www/api/comedor.php/x",
                Some("/www/api/comedor.php"),
            ),
            ("proxy:fcgi://comedor.php", None),
            ("proxy:", None),
        ] {
            let found = requested(&[("SCRIPT_FILENAME", filename)]);
            assert_eq!(found.as_deref(), expected, "{filename}");
        }
        assert_eq!(requested(&[]), None);
    }

    #[test]
    fn translated_path_counts_with_the_shipped_action_only() {
        let program = ("SCRIPT_FILENAME", "/usr/lib/cgi-bin/comedor");
        let translated = ("PATH_TRANSLATED", "/www/api/comedor.php/save_menu");
        for (handler, expected) in [
            ("comedor-cgi", Some("/www/api/comedor.php")),
            ("php-script", None),
        ] {
            let found = requested(&[program, translated, ("REDIRECT_HANDLER", handler)]);
            assert_eq!(found.as_deref(), expected, "{handler}");
        }
        assert_eq!(requested(&[program, translated]), None);
        let without = [program, ("REDIRECT_HANDLER", "comedor-cgi")];
        assert_eq!(requested(&without), None);
    }

    #[test]
    fn setting_is_an_absolute_path_of_a_file() {
        for path in ["comedor.php", "/", "/srv/", "/srv/..", "/srv/.", ""] {
            assert!(Script::parse(path.as_bytes()).is_err(), "{path}");
        }
        assert_eq!(Script::parse(b"/a/b").unwrap().path(), Path::new("/a/b"));
    }
}
