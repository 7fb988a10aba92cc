//! The command of the guides by which root changes the owner of the data, while PHP's user puts links in place of what is
//! there.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;

use crate::support::*;

const PHP: u32 = 33;
const FILES: [&str; 2] = ["1", "2"];

/// In place of the real `chown`: PHP's user acts after `find` has found the files, and before they are changed.
const SWAP: &str = r#"#!/bin/sh
sudo -u www-data sh -e <<'end'
cd "$ROOT/Centros"
for folder in c1 c2; do
    test ! -L $folder || exit 0
    for file in 1 2; do
        mv $folder/$file $folder/$file.away
        ln -s "$ROOT/of-root/$file" $folder/$file
    done
    mv $folder $folder.away
    ln -s "$ROOT/of-root" $folder
done
end
exec /usr/bin/chown "$@"
"#;

/// Files of root in folders of PHP's user and in one of root, and the program above.
fn machine() -> tempfile::TempDir {
    let machine = open_folder();
    let root = machine.path();
    for folder in ["Centros", "Centros/c1", "Centros/c2", "of-root", "bin"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    for folder in ["Centros", "Centros/c1", "Centros/c2"] {
        chown(root.join(folder), Some(PHP), Some(PHP)).expect("this test needs to run as root");
    }
    for folder in ["Centros/c1", "Centros/c2", "of-root"] {
        for file in FILES {
            fs::write(root.join(folder).join(file), "").unwrap();
        }
    }
    let program = root.join("bin/chown");
    fs::write(&program, SWAP.replace("$ROOT", &root.display().to_string())).unwrap();
    chmod(program, 0o755);
    machine
}

/// Runs the command of root. Returns which files of root it changes.
fn changed_by(command: &str) -> Vec<&'static str> {
    let machine = machine();
    let root = machine.path();
    let centres = root.join("Centros").display().to_string();
    let line = command.replace("/DATA/entreaulas/Centros", &centres);
    let status = Command::new("sh")
        .args(["-c", &line])
        .env("PATH", format!("{}/bin:/usr/bin:/bin", root.display()))
        .status();
    status.unwrap();
    let is_swapped = root.join("Centros/c1").is_symlink();
    assert!(is_swapped, "this test needs sudo: {command}");
    let of_root = root.join("of-root");
    let uid = |path: &Path| fs::symlink_metadata(path).unwrap().uid();
    assert_eq!(uid(&of_root), 0);
    FILES
        .into_iter()
        .filter(|file| uid(&of_root.join(file)) != 0)
        .collect()
}

#[test]
fn root_changes_no_owner_where_the_user_of_php_leads_it_by_a_link() {
    for guide in ["docs/troubleshooting.md", "docs/es/instalar.md"] {
        let text = text_of(guide);
        let mut commands = text
            .lines()
            .filter_map(|line| line.strip_prefix("sudo find "))
            .filter(|arguments| arguments.contains("chown"));
        let arguments = commands.next().unwrap();
        assert_eq!(commands.next(), None, "{guide}");
        let command = format!("find {arguments}");
        assert_eq!(changed_by(&command), [""; 0], "{guide}");
        // Without either of the two it does.
        for other in [
            command.replace("-execdir", "-exec"),
            command.replace("chown -h", "chown"),
        ] {
            assert_eq!(changed_by(&other), FILES, "{other}");
        }
    }
}
