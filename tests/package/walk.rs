//! The guides for administrators, followed to the letter.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{REPOSITORY, output};

#[test]
fn every_command_of_the_installation_guide_works() {
    let repository = Path::new(REPOSITORY);
    // On a disk, as `comedor check` expects.
    let data = tempfile::tempdir_in(repository.join("target")).unwrap();
    fs::set_permissions(data.path(), Permissions::from_mode(0o755)).unwrap();
    let mut walk = Command::new("tests/boot");
    walk.current_dir(repository).args(["/", "sysinit.target", "tests/package/walk.sh"]);
    // Rust may be on another file system than the root folder.
    let rust = output(Command::new("rustc").args(["--print", "sysroot"]), "cargo-web");
    let home = env::var("HOME").expect("HOME");
    for folder in [String::from_utf8(rust).unwrap().trim(), &home, REPOSITORY] {
        walk.arg(format!("{folder}:{folder}"));
    }
    walk.arg(format!("{}:/DATA", data.path().display()));
    let walk = walk.output().expect("bash");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&walk.stdout), text(&walk.stderr));
    assert!(walk.status.success(), "{out}\n{errors}\nIt needs root and what .ci/run installs.");
}
