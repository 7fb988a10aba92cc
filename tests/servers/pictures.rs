//! The pictures in README and guides, which tests take of pages. `COMEDOR_PICTURES=1` writes them.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use crate::chromium::Browser;
use crate::support::*;

/// For each picture a line of sha256sum: not of the file, but of text and style of the page in it.
const SHOWN: &str = "tests/servers/pictures.sha256";

/// Tests take their pictures at the same time.
static WRITING: Mutex<()> = Mutex::new(());

/// The picture `file`, of the page from its top to the end of the element `last`, shows the page as it is, which has this
/// text and style.
#[track_caller]
pub fn shows(browser: &mut Browser, file: &str, (width, last): (u32, &str), shown: &str) {
    let text = tempfile::NamedTempFile::new().unwrap();
    fs::write(text.path(), shown).unwrap();
    let mut sum = std::process::Command::new("sha256sum");
    let sum = String::from_utf8(output(sum.arg(text.path()), "coreutils")).unwrap();
    let line = format!("{}  {file}", &sum[..64]);
    let path = Path::new(REPOSITORY).join(file);
    if std::env::var_os("COMEDOR_PICTURES").is_some() {
        let _writing = WRITING.lock();
        fs::write(&path, browser.picture(width, last)).unwrap();
        let others = text_of(SHOWN);
        let others = others.lines().filter(|line| !line.ends_with(file));
        let mut lines: Vec<&str> = others.chain([&*line]).collect();
        lines.sort_by_key(|line| line.rsplit(' ').next());
        fs::write(Path::new(REPOSITORY).join(SHOWN), lines.join("\n") + "\n").unwrap();
    }
    assert!(
        fs::metadata(path).unwrap().len() <= 180_000,
        "{file} is large"
    );
    assert!(
        text_of(SHOWN).lines().any(|shown| shown == line),
        "take new pictures: COMEDOR_PICTURES=1 cargo test --test servers -- pictures"
    );
}
