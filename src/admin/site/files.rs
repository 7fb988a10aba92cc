//! The application's files, which children read with the rights of their owners.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::url::SCRIPT;
use super::{Site, plain, shown};
use crate::admin::accounts;
use crate::admin::child;
use crate::sys::process::Credentials;
use crate::sys::shared_file;

/// Where applications are
const ROOTS: [&str; 6] = ["/var/www", "/srv", "/home", "/opt", "/usr/local", "/usr/share"];
/// The bounds of the walk: entries and depth of each child, children, scripts, and the bytes that a child says.
pub(super) const MAX_ENTRIES: usize = 300_000;
const MAX_DEPTH: usize = 8;
const MAX_CHILDREN: usize = 300;
const MAX_SCRIPTS: usize = 10;
const MAX_SIZE: usize = 1024 * 1024;

/// The files that are searched for a database: a script includes a few.
const MAX_INCLUDED: usize = 100;

/// What [`walk`] says if there is more.
const MORE: &str = "more";

/// The paths of `…/api/comedor.php`, and whether these are all: the walk is bounded. It needs no right of root
/// but to list homes: what is closed to other users is looked at by its owner or group.
pub fn scripts(end: Instant) -> (Vec<PathBuf>, bool) {
    let (mut found, mut is_complete) = (Vec::new(), true);
    let Ok(unused) = accounts::unused() else { return (found, false) };
    let mut closed = VecDeque::new();
    for root in ROOTS.iter().filter_map(|root| fs::canonicalize(root).ok()) {
        // Only root may list it, and others may enter it, as some servers have /home.
        let is_closed = |root: Metadata| root.uid() == 0 && root.mode() & 0o005 == 0o001;
        let entries = fs::metadata(&root).is_ok_and(is_closed).then(|| fs::read_dir(&root));
        closed.extend(entries.into_iter().flatten().flatten().flatten().filter_map(|home| {
            let found = home.metadata().ok().filter(Metadata::is_dir)?;
            Some((home.path(), found.uid(), found.gid()))
        }));
        closed.push_front((root, 0, 0));
    }
    for _ in 0..MAX_CHILDREN {
        let Some((folder, uid, gid)) = closed.pop_front() else { break };
        let [uid, gid] = [(uid, unused.uid), (gid, unused.gid)]
            .map(|(id, unused)| if id == 0 { unused } else { id });
        let said = read_as(&Credentials { uid, gid, groups: vec![] }, end, || Ok(walk(&folder)));
        for line in said.as_deref().unwrap_or(MORE).lines() {
            let mut words = line.splitn(3, ' ');
            let mut id = || words.next()?.parse::<u32>().ok();
            match (id(), id(), words.next()) {
                (Some(0), Some(0), Some(script)) => found.push(script.into()),
                (Some(uid), Some(gid), Some(path)) => closed.push_back((path.into(), uid, gid)),
                _ => is_complete = false,
            }
        }
    }
    is_complete &= closed.is_empty() && found.len() <= MAX_SCRIPTS;
    found.truncate(MAX_SCRIPTS);
    (found, is_complete)
}

/// The script that the administrator names, which may be a link: the page is placed beside it.
pub fn named(path: &Path) -> Result<PathBuf, String> {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let script = folder.map(|folder| folder.join(path.file_name().unwrap_or_default()));
    let is_script = |path: &PathBuf| path.ends_with(&SCRIPT[1..]) && path.is_file();
    script.filter(is_script).ok_or_else(|| format!("{path:?} is not an existing …{SCRIPT}"))
}

/// Lines `UID GID PATH`: for each folder below `folder` that is closed to this user, with its owner and group, and
/// for each script, with zeros. Folders that are links are not entered.
fn walk(folder: &Path) -> String {
    let (mut lines, mut count) = (String::new(), 0);
    let mut folders = VecDeque::from([(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        // The folder may be closed for listing only.
        let script = folder.join(&SCRIPT[1..]);
        if script.is_file() {
            lines += &format!("0 0 {}\n", script.display());
        }
        let Ok(entries) = fs::read_dir(&folder) else {
            let closed = fs::symlink_metadata(&folder);
            let (uid, gid) = closed.map_or((0, 0), |closed| (closed.uid(), closed.gid()));
            // What only root may enter, PHP may not.
            if depth > 0 && (uid, gid) != (0, 0) {
                lines += &format!("{uid} {gid} {}\n", folder.display());
            }
            continue;
        };
        for entry in entries.flatten() {
            count += 1;
            if count > MAX_ENTRIES {
                return lines + MORE;
            }
            let path = entry.path();
            // With a line break, it could imitate another line.
            let is_entered = depth < MAX_DEPTH
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
                && !path.as_os_str().as_encoded_bytes().contains(&b'\n');
            folders.extend(is_entered.then_some((path, depth + 1)));
        }
    }
    lines
}

/// What a child with the rights of `user`, not root, says until `end`.
pub fn read_as(
    user: &Credentials,
    end: Instant,
    say: impl FnOnce() -> io::Result<String>,
) -> io::Result<String> {
    let said = child::output(Some(user), end, MAX_SIZE, |out| out.write_all(say()?.as_bytes()))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// What the text of the script says. Nothing of it is evaluated: what is unclear, the administrator is asked.
#[derive(Debug, Default, PartialEq)]
pub struct Literals {
    /// `<service>` of strings `'<service>:docente'`, if it is the same in all
    pub service: Option<String>,
    /// The text before `/Centros` in strings that start with a slash, if it is the same in all
    pub data_dir: Option<String>,
    /// A word of a database, and the file with it: the menus are not in files
    pub database: Option<String>,
}

impl Literals {
    /// Reads the script and what it includes, until `end`, with the rights of PHP's user. PHP names what a request
    /// without a login includes, the script's text what others do.
    pub fn read(Site { script, php, .. }: &Site, end: Instant) -> io::Result<Literals> {
        let read = |path: &Path| {
            read_as(&php.user, end, || {
                let (bytes, _) = shared_file::read_followed(path).map_err(io::Error::other)?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            })
        };
        let (text, folder) = (read(script)?, script.parent().unwrap_or(script));
        let named = strings_before(&text, ".php").flat_map(|name| {
            let below = format!("{}.php", name.trim_start_matches('/'));
            [folder.join(format!("{name}.php")), folder.join(&below), folder.join("..").join(below)]
        });
        let included = php.all("file").map(PathBuf::from).chain(named).take(MAX_INCLUDED);
        let database = iter::once(script.to_owned()).chain(included).find_map(|path| {
            let word = database(&read(&path).ok()?)?;
            Some(format!("{word} in {}", shown(&path)))
        });
        Ok(Literals { database, ..Literals::of(&text) })
    }

    fn of(text: &str) -> Literals {
        let services = strings_before(text, ":docente").filter(|name| !name.contains('/'));
        let data_dirs = strings_before(text, "/Centros").filter(|path| path.starts_with('/'));
        Literals { service: only(services), data_dir: only(data_dirs), database: None }
    }
}

/// The text that is the only plain one.
fn only<'t>(texts: impl Iterator<Item = &'t str>) -> Option<String> {
    let texts: BTreeSet<_> = texts.filter(|text| !text.is_empty() && plain(text).is_ok()).collect();
    texts.first().filter(|_| texts.len() == 1).map(|text| (*text).to_owned())
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
        for (text, service, data_dir) in [
            ("in_array('comedor:docente', $x)", Some("comedor"), None),
            ("\"a:docente\" . 'a:docente'", Some("a"), None),
            ("\"a:docente\" . 'b:docente'", None, None),
            ("\"/DATA/x/Centros/$c\" . '/DATA/x/Centros'", None, Some("/DATA/x")),
            ("'/DATA/x/Centros' . '/DATA/y/Centros'", None, None),
            ("DATA . '/Centros/' . \"$d/Centros\" . 'x/Centros'", None, None),
            ("':docente' . \"$s:docente\" . '/x:docente' . 'it\n:docente'", None, None),
            ("docente: /Centros", None, None),
        ] {
            let literals = Literals::of(text);
            assert_eq!(literals.service.as_deref(), service, "{text}");
            assert_eq!(literals.data_dir.as_deref(), data_dir, "{text}");
        }
    }

    #[test]
    fn a_database_is_known_by_its_functions() {
        for (text, word) in [
            ("new \\PDO('x')", Some("pdo(")),
            ("new SQLite3(", Some("sqlite3(")),
            ("catch (PDOException $e)", None),
            ("json_decode(file_get_contents($x)); session_start();", None),
        ] {
            assert_eq!(database(text), word, "{text}");
        }
    }
}
