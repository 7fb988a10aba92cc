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
        let requested = match self.requested(variables) {
            Requested::NotSaid => return Ok(()),
            Requested::Script(path) => path,
        };
        if requested == self.path() || is_same_file(&requested, self.path()) {
            return Ok(());
        }
        Err(Error::another_script(format!(
            "the request is for {}, and COMEDOR_SCRIPT is {}; see \"comedor answers for another application\" in \
             docs/troubleshooting.md",
            requested.display(),
            self.path().display()
        )))
    }

    /// The file that the request is for, as the web server says it.
    ///
    /// It is in `SCRIPT_FILENAME`, as for PHP, and in `PATH_TRANSLATED` (RFC 3875 §4.1.6) with the `Action` of
    /// apache.conf.example and as nginx-fcgiwrap.conf.example sets it: there `SCRIPT_FILENAME` is the program. If the path
    /// ends before the script's name, `PATH_INFO` has the rest (Caddy, and lighttpd with FastCGI, by the configurations of
    /// version 1.0.0). A path that follows the name is cut off.
    ///
    /// A path without the script's name belongs to another file: some servers compare names in another way than this
    /// program, without case or with a newline after the name. Only the path of the program itself (`ScriptAlias`,
    /// .htaccess) says nothing.
    fn requested(&self, variables: &Variables) -> Requested {
        let is_action = variables.meta("REDIRECT_HANDLER") == Some(ACTION);
        let said = if is_action {
            variables.meta("PATH_TRANSLATED").unwrap_or_default()
        } else {
            match variables.meta("SCRIPT_FILENAME") {
                Some(filename) => without_proxy(filename),
                None => return Requested::NotSaid,
            }
        };
        let name = name_of(self.path().as_os_str().as_bytes());
        if let Some(path) = up_to_name(said, name) {
            return Requested::script(path);
        }
        if !is_action && is_program(Path::new(OsStr::from_bytes(said))) {
            return Requested::NotSaid;
        }
        let whole = [said, variables.meta("PATH_INFO").unwrap_or_default()].concat();
        Requested::script(up_to_name(&whole, name).unwrap_or(&whole))
    }
}

/// What a web server says of the script of a request.
#[derive(Debug, PartialEq)]
enum Requested {
    NotSaid,
    Script(PathBuf),
}

impl Requested {
    fn script(path: &[u8]) -> Requested {
        Requested::Script(PathBuf::from(OsStr::from_bytes(path)))
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

/// Whether this is the path of the program, which Linux names (proc(5)).
fn is_program(path: &Path) -> bool {
    is_same_file(path, Path::new("/proc/self/exe"))
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

    /// What a request with these variables says, if the program answers in place of /srv/api/comedor.php.
    fn requested(pairs: &[(&str, &str)]) -> Requested {
        let script = Script::parse(b"/srv/api/comedor.php").unwrap();
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        script.requested(&Variables::of_parameters(pairs))
    }

    #[test]
    fn script_of_a_request_ends_with_its_name_or_is_another_file() {
        let proxy = "proxy:unix:/run/comedor.sock|fcgi://comedor/www/api/comedor.php/x";
        for (filename, info, expected) in [
            ("/www/api/comedor.php", "", "/www/api/comedor.php"),
            ("/www/api/comedor.php/save_menu", "", "/www/api/comedor.php"),
            ("/www/api/comedor.php", "/save_menu", "/www/api/comedor.php"),
            (
                "/www/comedor.php/comedor.php/", "", "/www/comedor.php/comedor.php",
            ),
            ("comedor.php", "", "comedor.php"),
            (
                "proxy:fcgi://comedor/www/api/comedor.php",
                "",
                "/www/api/comedor.php",
            ),
            (proxy, "", "/www/api/comedor.php"),
            // The first component only, or the folder of the site
            (
                "/www/school", "/api/comedor.php/x", "/www/school/api/comedor.php",
            ),
            (
                "/www", "/school/api/comedor.php", "/www/school/api/comedor.php",
            ),
            // Other files
            (
                "/www/login.php", "/api/comedor.php", "/www/login.php/api/comedor.php",
            ),
            ("/www/api/COMEDOR.php", "", "/www/api/COMEDOR.php"),
            ("/www/api/comedor.php\n", "", "/www/api/comedor.php\n"),
            ("/www/api/comedor.phpx", "", "/www/api/comedor.phpx"),
            ("/", "", "/"),
            ("proxy:fcgi://comedor.php", "", ""),
            ("proxy:", "", ""),
        ] {
            let found = requested(&[("SCRIPT_FILENAME", filename), ("PATH_INFO", info)]);
            assert_eq!(found, Requested::Script(expected.into()), "{filename}");
        }
    }

    #[test]
    fn path_of_the_program_or_none_says_nothing() {
        let program = std::env::current_exe().unwrap();
        let program = ("SCRIPT_FILENAME", program.to_str().unwrap());
        let info = ("PATH_INFO", "/www/api/comedor.php");
        for variables in [
            &[][..],
            &[program],
            &[program, info],
            &[("SCRIPT_FILENAME", "")],
        ] {
            assert_eq!(requested(variables), Requested::NotSaid, "{variables:?}");
        }
    }

    #[test]
    fn translated_path_counts_with_the_shipped_action_only() {
        let program = std::env::current_exe().unwrap();
        let program = ("SCRIPT_FILENAME", program.to_str().unwrap());
        let translated = ("PATH_TRANSLATED", "/www/api/comedor.php/save_menu");
        let script = Requested::Script("/www/api/comedor.php".into());
        for (handler, expected) in [("comedor-cgi", script), ("php-script", Requested::NotSaid)] {
            let found = requested(&[program, translated, ("REDIRECT_HANDLER", handler)]);
            assert_eq!(found, expected, "{handler}");
        }
        // A rewrite to another file, and a rewrite that a subrequest of Apache meets (mod_rewrite.c)
        let action = [
            program,
            ("REDIRECT_HANDLER", "comedor-cgi"),
            ("PATH_INFO", "/api/comedor.php"),
        ];
        for (translated, expected) in [
            ("/www/index.php", "/www/index.php/api/comedor.php"),
            ("redirect:/page.html", "redirect:/page.html/api/comedor.php"),
            ("", "/api/comedor.php"),
        ] {
            let found = requested(&[&action[..], &[("PATH_TRANSLATED", translated)]].concat());
            assert_eq!(found, Requested::Script(expected.into()), "{translated}");
        }
    }

    #[test]
    fn setting_is_an_absolute_path_of_a_file() {
        for path in ["comedor.php", "/", "/srv/", "/srv/..", "/srv/.", ""] {
            assert!(Script::parse(path.as_bytes()).is_err(), "{path}");
        }
        assert_eq!(Script::parse(b"/a/b").unwrap().path(), Path::new("/a/b"));
    }
}
