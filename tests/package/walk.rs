//! The guides for administrators, followed to the letter.

use std::process::Command;

#[test]
fn every_command_of_the_installation_guide_works() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/package/walk.sh");
    let walk = Command::new(script).output().expect("bash");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&walk.stdout), text(&walk.stderr));
    assert!(walk.status.success(), "{out}\n{errors}\nIt needs root and what tests/run installs.");
}
