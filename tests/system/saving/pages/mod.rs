//! Saves of PHP pages by `examples/guardar.php`, alone and beside the program. The pages are run by `php-cli`.

mod interrupted;
mod locks;
mod replace;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::file_systems::Mounted;
use crate::support::*;

const GUARDAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/guardar.php");

/// A page that saves: its arguments are the folder of the aulario, the path of the file, and the new content. Says that
/// it has saved, on standard output; if not, why, on standard error.
const SAVE: &str = "$lock = \\comedor\\lock($argv[1]);
    \\comedor\\save($argv[2], json_decode($argv[3], true));
    echo 'saved';";

/// PHP that runs this code after `guardar.php`, without a php.ini.
fn page(code: &str, arguments: &[&dyn AsRef<Path>]) -> Command {
    page_with(GUARDAR.as_ref(), code, arguments)
}

/// The same with this copy of `guardar.php`.
fn page_with(guardar: &Path, code: &str, arguments: &[&dyn AsRef<Path>]) -> Command {
    let mut php = Command::new("php");
    let arguments = arguments.iter().map(|argument| argument.as_ref());
    php.args(["-n", "-d", "display_errors=stderr", "-r"])
        .arg(format!("require '{}'; {code}", guardar.display()))
        .arg("--")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    php
}

/// The page that saves this content of the file, in `aula1`. It has a copy of `guardar.php`: other users may not be able to
/// enter the clone.
fn saving(school: &School, file: &str, content: &str) -> Command {
    let guardar = school.folder().join("guardar.php");
    if !guardar.exists() {
        fs::copy(GUARDAR, &guardar).unwrap();
    }
    let arguments: [&dyn AsRef<Path>; 3] = [&school.path("aula1"), &school.path(file), &content];
    page_with(&guardar, SAVE, &arguments)
}

/// What the page says, and whether it has saved.
#[track_caller]
fn said(output: &Output) -> (bool, String) {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_saved = output.stdout == b"saved";
    assert!(is_saved || output.stdout.is_empty(), "{output:?}");
    (is_saved, errors)
}

/// The page saves, and says nothing else.
#[track_caller]
fn saves(mut page: Command) {
    let output = page.output().expect("php-cli");
    assert_eq!(said(&output), (true, String::new()));
}

/// The page fails with a sentence that has this part.
#[track_caller]
fn fails(mut page: Command, part: &str) {
    let (is_saved, errors) = said(&page.output().expect("php-cli"));
    assert!(!is_saved && errors.contains(part), "{errors}");
}

fn temporary_files(school: &School) -> usize {
    let files = school.files().into_iter();
    files.filter(|path| path.ends_with(".tmp")).count()
}
