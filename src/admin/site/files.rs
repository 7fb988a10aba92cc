//! The application's files, which children read with the rights of their owners.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{self, Write};
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::php::Php;
use super::plain;
use super::url::SCRIPT;
use crate::admin::accounts;
use crate::admin::child::Child;
use crate::sys::log::printable;
use crate::sys::process::Credentials;
use crate::sys::shared_file;

/// Where applications are
const ROOTS: [&str; 6] = ["/var/www", "/srv", "/home", "/opt", "/usr/local", "/usr/share"];
/// How many entries of folders each child looks at, how deep below the first folder, and how many children
/// there are.
const MAX_ENTRIES: usize = 300_000;
const MAX_DEPTH: usize = 8;
const MAX_CHILDREN: usize = 300;
const MAX_SCRIPTS: usize = 10;

/// The files that are searched for a database: a script includes a few.
const MAX_INCLUDED: usize = 100;

/// The time for what is read of an application.
const TIME: Duration = Duration::from_secs(10);

/// What [`walk`] says if there is more.
const MORE: &str = "more\n";

/// What a child says at most.
const MAX_SIZE: usize = 1024 * 1024;

/// The paths of `…/api/comedor.php`, and whether these are all: the walk is bounded. It needs no right of root:
/// what is closed to other users is looked at by its owner or group.
pub fn scripts(end: Instant) -> (Vec<PathBuf>, bool) {
    let (mut found, mut is_complete) = (Vec::new(), true);
    let Ok(nobody) = accounts::unused() else { return (found, false) };
    let roots = ROOTS.iter().filter_map(|root| fs::canonicalize(root).ok());
    let mut closed: VecDeque<_> = roots.map(|root| (root, nobody.clone())).collect();
    for _ in 0..MAX_CHILDREN {
        let Some((folder, user)) = closed.pop_front() else { break };
        let said = read_within(end, &user, || Ok(walk(&folder)));
        for line in said.as_deref().unwrap_or(MORE).lines() {
            match line.split_once(' ') {
                Some(("script", path)) => found.push(path.into()),
                Some(("closed", line)) => closed.extend(owner(line, &nobody)),
                _ => is_complete = false,
            }
        }
    }
    is_complete &= closed.is_empty() && found.len() <= MAX_SCRIPTS;
    found.truncate(MAX_SCRIPTS);
    (found, is_complete)
}

/// The script that the administrator names.
pub fn named(path: &Path) -> Result<PathBuf, String> {
    let real = std::path::absolute(path).ok().and_then(|path| {
        // The page is placed beside the name that the web server uses, which may be a link.
        Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
    });
    let is_script = |path: &PathBuf| path.ends_with(&SCRIPT[1..]) && path.is_file();
    real.filter(is_script).ok_or_else(|| format!("{path:?} is not an existing …{SCRIPT}"))
}

/// A line for each script below `folder`, one with owner and group for each folder that is closed to this user,
/// and one if there are more. Links are not followed.
fn walk(folder: &Path) -> String {
    let (mut lines, mut count) = (String::new(), 0);
    let mut folders = VecDeque::from([(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        let Ok(entries) = fs::read_dir(&folder) else {
            if let Ok(closed) = fs::symlink_metadata(&folder)
                && depth > 0
            {
                let (uid, gid) = (closed.uid(), closed.gid());
                lines += &format!("closed {uid} {gid} {}\n", folder.display());
            }
            // A folder may be closed for listing only.
            let script = folder.join(&SCRIPT[1..]);
            if script.is_file() {
                lines += &format!("script {}\n", script.display());
            }
            continue;
        };
        for entry in entries.flatten() {
            count += 1;
            if count > MAX_ENTRIES {
                return lines + MORE;
            }
            let (path, kind) = (entry.path(), entry.file_type());
            // It could imitate another line.
            if path.as_os_str().as_bytes().contains(&b'\n') {
                continue;
            }
            if kind.is_ok_and(|kind| kind.is_dir()) {
                folders.extend((depth < MAX_DEPTH).then_some((path, depth + 1)));
            } else if path.ends_with(&SCRIPT[1..]) {
                lines += &format!("script {}\n", path.display());
            }
        }
    }
    lines
}

/// A closed folder, and a user that is its owner or has its group. What only root may enter, PHP may not.
fn owner(line: &str, nobody: &Credentials) -> Option<(PathBuf, Credentials)> {
    let mut words = line.splitn(3, ' ');
    let (uid, gid): (u32, u32) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let user = Credentials { uid: if uid == 0 { nobody.uid } else { uid }, gid, groups: vec![] };
    Some((words.next()?.into(), user)).filter(|_| (uid, gid) != (0, 0))
}

/// What a child with the rights of `user`, not root, says.
pub fn read_as(user: &Credentials, say: impl FnOnce() -> io::Result<String>) -> io::Result<String> {
    read_within(Instant::now() + TIME, user, say)
}

fn read_within(
    end: Instant,
    user: &Credentials,
    say: impl FnOnce() -> io::Result<String>,
) -> io::Result<String> {
    let time = end.saturating_duration_since(Instant::now());
    let child = Child { user: Some(user), time, size: MAX_SIZE };
    let said = child.output(|out| out.write_all(say()?.as_bytes()))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// What the text of the script says. Nothing of it is evaluated: what is unclear, the administrator is asked.
#[derive(Debug, Default, PartialEq)]
pub struct Literals {
    /// `<service>` of strings `'<service>:docente'`
    pub services: BTreeSet<String>,
    /// The text before `/Centros` in strings that start with a slash
    pub data_dirs: BTreeSet<String>,
    /// A word of a database, and the file with it: the menus are not in files
    pub database: Option<String>,
}

impl Literals {
    /// Reads the script and what it includes with the rights of PHP's user. PHP names what a request
    /// without a login includes, the script's text what others do.
    pub(super) fn read(script: &Path, php: &Php, end: Instant) -> io::Result<Literals> {
        let read = |path: &Path| {
            read_within(end, &php.user, || {
                let (bytes, _) = shared_file::read_followed(path).map_err(io::Error::other)?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            })
        };
        let (text, folder) = (read(script)?, script.parent().unwrap_or(script));
        let named = strings_before(&text, ".php").flat_map(|name| {
            let below = format!("{}.php", name.trim_start_matches('/'));
            [format!("{name}.php").into(), folder.join(&below), folder.join("..").join(below)]
        });
        let files: BTreeSet<PathBuf> =
            php.all("file").map(PathBuf::from).chain(named).take(MAX_INCLUDED).collect();
        let others = files.iter().filter_map(|path| Some((&**path, read(path).ok()?)));
        let database = iter::once((script, text.clone())).chain(others).find_map(|(path, text)| {
            let path = path.display().to_string();
            Some(format!("{} in {}", database(&text)?, printable(&path)))
        });
        Ok(Literals { database, ..Literals::of(&text) })
    }

    fn of(text: &str) -> Literals {
        let is_plain = |text: &&str| !text.is_empty() && plain(text).is_ok();
        let services = strings_before(text, ":docente").filter(|name| !name.contains('/'));
        let data_dirs = strings_before(text, "/Centros").filter(|path| path.starts_with('/'));
        Literals {
            services: services.filter(is_plain).map(str::to_owned).collect(),
            data_dirs: data_dirs.filter(is_plain).map(str::to_owned).collect(),
            database: None,
        }
    }
}

/// The text in quotes before each `end`.
fn strings_before<'t>(text: &'t str, end: &'static str) -> impl Iterator<Item = &'t str> {
    text.match_indices(end).filter_map(move |(at, _)| {
        let line = text[..at].rsplit('\n').next()?;
        Some(line.rsplit_once(['"', '\''])?.1)
    })
}

/// The first word of a database in PHP code, whose names ignore case.
fn database(text: &str) -> Option<&'static str> {
    const WORDS: [&str; 9] = [
        "pdo(", "sqlite3(", "sqlite:", "mysqli", "mysql_", "pg_connect", "odbc_connect",
        "sqlsrv_connect", "oci_connect",
    ];
    let text = text.to_ascii_lowercase();
    WORDS.into_iter().find(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_the_service_and_the_data_folder() {
        for (text, services, data_dirs) in [
            ("in_array('comedor:docente', $x)", vec!["comedor"], vec![]),
            ("\"a:docente\" . 'b:docente'", vec!["a", "b"], vec![]),
            ("\"/DATA/x/Centros/$c\" . '/DATA/x/Centros'", vec![], vec!["/DATA/x"]),
            ("DATA . '/Centros/' . \"$d/Centros\" . 'x/Centros'", vec![], vec![]),
            ("':docente' . \"$s:docente\" . '/x:docente' . 'it\n:docente'", vec![], vec![]),
            ("docente: /Centros", vec![], vec![]),
        ] {
            let literals = Literals::of(text);
            assert!(literals.services.iter().eq(&services), "{text}");
            assert!(literals.data_dirs.iter().eq(&data_dirs), "{text}");
        }
    }

    #[test]
    fn a_database_is_known_by_its_functions() {
        for text in [
            "new PDO('x')", "new \\PDO(", "SQLite3(", "'sqlite:x'", "mysqli_query", "mysql_query",
            "pg_connect(",
        ] {
            assert!(database(text).is_some(), "{text}");
        }
        for text in [
            "catch (PDOException $e)", "json_decode(file_get_contents($x))", "session_start();", "",
        ] {
            assert_eq!(database(text), None, "{text}");
        }
    }

    #[test]
    fn what_only_root_may_enter_is_not_looked_at() {
        let nobody = Credentials { uid: 70, gid: 71, groups: vec![] };
        let known = |line| owner(line, &nobody).map(|(path, user)| (path, user.uid, user.gid));
        assert_eq!(known("1000 33 /home/a b"), Some(("/home/a b".into(), 1000, 33)));
        assert_eq!(known("0 33 /home/a"), Some(("/home/a".into(), 70, 33)));
        for line in ["0 0 /root", "1000", "x 1 /", "1 4294967296 /"] {
            assert_eq!(known(line), None, "{line}");
        }
    }
}
