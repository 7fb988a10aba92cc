//! The structure of the source.

use std::fs;
use std::path::Path;

use crate::support::REPOSITORY;

/// They could be libraries of their own.
#[test]
fn the_fastcgi_protocol_and_json_import_nothing_of_the_rest() {
    for folder in ["src/fastcgi", "src/json"] {
        let files = fs::read_dir(Path::new(REPOSITORY).join(folder)).unwrap();
        let files = files.map(|file| file.unwrap().path()).filter(|file| file.is_file());
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            let outside = if file.ends_with("mod.rs") { "super::" } else { "super::super::" };
            for import in ["crate::", outside] {
                assert!(!text.contains(import), "{} has {import}", file.display());
            }
        }
    }
}
