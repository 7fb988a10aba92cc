//! `lab/prove --due`: which figures of tests/results.md are of an older program.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{REPOSITORY, output};

/// A repository with `lab/prove` and one file of each kind that a step depends on.
struct Repository(TempDir);

impl Repository {
    fn new() -> Repository {
        let repository = Repository(TempDir::new().unwrap());
        for (path, text) in [
            ("Cargo.toml", "[package]\nversion = \"1.1.0\"\n"),
            ("Cargo.lock", "name = \"comedor\"\nversion = \"1.1.0\"\n"),
            ("benches/comedor.php", "<?php\n"),
            ("examples/guardar.php", "<?php\n"),
            ("src/lib.rs", "\n"),
            ("src/store/mod.rs", "\n"),
            ("tests/results.md", ""),
        ] {
            repository.write(path, text);
        }
        let script = Path::new(REPOSITORY).join("lab/prove");
        repository.write("lab/prove", &fs::read_to_string(script).unwrap());
        repository.git(&["init", "--quiet"]);
        repository.commit();
        repository
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        let identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
        git.args(identity).args(words).current_dir(&self.0);
        String::from_utf8(output(&mut git, "git")).unwrap()
    }

    /// Commits everything; the commit.
    fn commit(&self) -> String {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=x"]);
        self.git(&["rev-parse", "--short", "HEAD"])
            .trim()
            .to_owned()
    }

    /// Writes a block for each step, with the commit that its figures are of.
    fn measure<'c>(&self, steps: &[String], commit: impl Fn(&str) -> &'c str) {
        let block = |step: &String| {
            let commit = commit(step);
            format!("<!-- prove {step} -->\n`command` at `{commit}`, 7 min:\n<!-- end -->\n")
        };
        self.write(
            "tests/results.md",
            &steps.iter().map(block).collect::<String>(),
        );
    }

    /// The lines of `lab/prove --due`, and whether a release may be made.
    fn due(&self) -> (Vec<String>, bool) {
        let mut due = Command::new("python3");
        due.args(["lab/prove", "--due"]).current_dir(&self.0);
        let said = due.output().expect("this test needs python3");
        let lines = String::from_utf8([said.stdout, said.stderr].concat()).unwrap();
        let lines = lines.lines().map(str::to_owned).collect();
        (lines, said.status.success())
    }
}

#[test]
fn figures_expire_when_what_they_depend_on_changes() {
    let repository = Repository::new();
    let (steps, may_release) = repository.due();
    assert!(steps.len() > 20 && !may_release, "nothing was measured");
    let name = |line: &String| {
        line.strip_prefix("due: ")
            .unwrap()
            .split([',', ' '])
            .next()
            .unwrap()
            .to_owned()
    };
    let steps: Vec<String> = steps.iter().map(name).collect();
    let commit = repository.commit();
    repository.measure(&steps, |_| &commit);
    assert_eq!(repository.due(), (vec![], true));

    // Neither tests nor the number of the version are the program.
    repository.write("tests/x.rs", "\n");
    repository.write("Cargo.toml", "[package]\nversion = \"1.1.0-dev\"\n");
    repository.write(
        "Cargo.lock",
        "name = \"comedor\"\nversion = \"1.1.0-dev\"\n",
    );
    repository.commit();
    assert_eq!(repository.due(), (vec![], true));

    repository.write("benches/comedor.php", "<?php echo 1;\n");
    let of_script = ["script", "guardar"].map(|name| format!("due: power-cuts-{name} (7 min)"));
    assert_eq!(
        repository.due(),
        (of_script.to_vec(), true),
        "a version with -dev"
    );
    repository.write("Cargo.toml", "[package]\nversion = \"1.1.0\"\n");
    assert_eq!(repository.due(), (of_script.to_vec(), false), "a release");

    // Of another folder than the one whose changes were tried
    repository.write("src/lib.rs", "// changed\n");
    let (due, may_release) = repository.due();
    assert!(
        !may_release && due.contains(&"due: faults (7 min)".to_owned()),
        "{due:?}"
    );
    assert!(
        !due.contains(&"due: mutants-store (7 min)".to_owned()),
        "{due:?}"
    );

    let now = repository.commit();
    repository.measure(&steps, |step| if step == "cephfs" { &commit } else { &now });
    let cephfs = "due: cephfs, which may be old (7 min)".to_owned();
    assert_eq!(repository.due(), (vec![cephfs], true));
}

#[test]
fn a_clone_without_the_commit_of_a_figure_says_how_to_get_it() {
    let repository = Repository::new();
    repository.measure(&["faults".to_owned()], |_| "0123456");
    let (said, may_release) = repository.due();
    assert!(
        !may_release
            && said[0].ends_with(
                "faults: this clone has no commit 0123456; if it is shallow: git fetch --unshallow"
            ),
        "{said:?}"
    );
}
