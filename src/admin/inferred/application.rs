//! The application's files, which a child reads with the rights of PHP's user. The limits are for files that
//! were made to keep a reader busy.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::code::Code;
use super::php::{self, HTACCESS};
use super::{Fact, apache, entries};
use crate::sys::shared_file;

/// How many entries of folders are looked at, and how deep below the first folder.
const MAX_ENTRIES: usize = 50_000;
const MAX_DEPTH: usize = 6;
/// The number of scripts, each of which a child of its own reads
pub const MAX_SCRIPTS: usize = 10;
/// The size of a file: its tokens take forty times as much memory
const MAX_SIZE: usize = 1024 * 1024;
/// The size of all files together
const MAX_TOTAL: usize = 16 * 1024 * 1024;

/// The paths of `…/api/comedor.php` below `root`, those near to it first; one more than [`MAX_SCRIPTS`] if
/// there are more.
pub fn scripts(root: &Path) -> Vec<PathBuf> {
    let scripts = walk(root).into_iter().filter(|path| path.ends_with("api/comedor.php"));
    scripts.take(MAX_SCRIPTS + 1).collect()
}

/// What the files say that can set something for `script`: itself, the files `folder_file` and the pages from
/// `root` to it, the application's code, and the code that these include.
pub fn facts(script: &Path, root: &Path, folder_file: Option<&str>) -> Vec<Fact> {
    let mut folders: Vec<_> =
        script.ancestors().skip(1).take_while(|folder| folder.starts_with(root)).collect();
    folders.reverse();
    let mut paths: Vec<_> = folders.iter().flat_map(|folder| entries(folder)).collect();
    paths.extend(script.ancestors().nth(2).into_iter().flat_map(walk));
    let (mut facts, mut known, mut total, mut next) = (Vec::new(), HashSet::new(), 0, 0);
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        let is_code =
            path.extension().is_some_and(|extension| extension == "php" || extension == "inc");
        let is_for_folder = folder_file.is_some_and(|name| path.ends_with(name))
            && path.parent().is_some_and(|folder| script.starts_with(folder));
        if !(is_code || is_for_folder) || !known.insert(path.clone()) {
            continue;
        }
        let Some(text) = read(&path) else { continue };
        total += text.len();
        if total > MAX_TOTAL || next > MAX_ENTRIES {
            break;
        }
        if is_for_folder {
            let parse = if folder_file == Some(HTACCESS) { apache::htaccess } else { php::facts };
            facts.extend(parse(&path, &text));
        } else {
            let code = Code::parse(&path, &text);
            facts.extend(code.settings());
            if path == script {
                facts.extend(code.of_script());
            }
            let folders = || path.ancestors().skip(1).take(MAX_DEPTH);
            for name in code.included() {
                let paths_of = folders().map(|folder| folder.join(name.trim_start_matches('/')));
                paths.extend(paths_of.filter_map(|path| path.canonicalize().ok()));
            }
        }
    }
    facts
}

/// The files below `folder`, its own first. A folder is entered once, even if several links lead to it.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut known, mut count) = (Vec::new(), HashSet::new(), 0);
    let mut folders = VecDeque::from([(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        let id = fs::metadata(&folder).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        if depth > MAX_DEPTH || count > MAX_ENTRIES || !id.is_some_and(|id| known.insert(id)) {
            continue;
        }
        for path in entries(&folder) {
            count += 1;
            if path.is_dir() { folders.push_back((path, depth + 1)) } else { files.push(path) }
        }
    }
    files
}

/// The text of a regular file that is not too large.
fn read(path: &Path) -> Option<String> {
    let (bytes, _) = shared_file::read_followed(path).ok()?;
    (bytes.len() <= MAX_SIZE).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
