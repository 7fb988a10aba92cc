//! Which files are replaced: all that PHP can save, unless someone could do something before that they cannot do after. An
//! owner counts as a member of the file's group.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::check::check;
use crate::support::*;

/// The user of the program, and of PHP, with the groups [`OURS`] and [`SECOND`].
const US: u32 = 65534;
const OURS: u32 = 65534;
const SECOND: u32 = 33;
/// Another user, and a group that the user of the program is not a member of.
const OTHER: u32 = 1234;
const FOREIGN: u32 = 4321;

const AS_US: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--groups=33"];

/// Owner, group and mode.
type Permissions = (u32, u32, u32);

const MODES: [u32; 9] = [
    0o600, 0o606, 0o640, 0o644, 0o646, 0o660, 0o664, 0o666, 0o777,
];

/// Folders in which the user of the program can create files.
const FOLDERS: [Permissions; 7] = [
    (US, OURS, 0o755),
    (0, SECOND, 0o775),
    (0, 0, 0o777),
    (OTHER, FOREIGN, 0o777),
    (OTHER, FOREIGN, 0o2777),
    (0, 0, 0o1777),
    (US, OURS, 0o1777),
];

/// Replaces each file as well as a user can: with its mode, and its group if possible. Prints those that were.
const REPLACE: &str = "
    foreach (file('php://stdin', FILE_IGNORE_NEW_LINES) as $path) {
        touch($new = \"$path.new\");
        @chgrp($new, filegroup($path));
        chmod($new, fileperms($path) & 07777);
        if (@rename($new, $path)) echo \"$path\\n\"; else unlink($new);
    }";

/// Prints what the user can do with each file, and its path.
const ACCESS: &str = "
    foreach (file('php://stdin', FILE_IGNORE_NEW_LINES) as $path)
        echo is_readable($path) ? 'r' : '', is_writable($path) ? 'w' : '', \" $path\\n\";";

/// The lines that PHP prints for `code` under a command, with the paths on its standard input.
#[track_caller]
fn php_under(command: &[&str], code: &str, paths: &[PathBuf]) -> Vec<String> {
    let mut php = Command::new(command[0]);
    php.args(&command[1..]).args(["php", "-r", code]);
    let mut php = php
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let paths: String = paths
        .iter()
        .map(|path| format!("{}\n", path.display()))
        .collect();
    let written = php.stdin.take().unwrap().write_all(paths.as_bytes());
    written.expect("this test needs php: apt-get install php-cli");
    let output = php.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(str::to_owned).collect()
}

/// The other user as an owner who is not in the group of their file
const ALONE: &str = "the other user, in no group";

/// What everyone can do with the files.
fn access(paths: &[PathBuf]) -> BTreeMap<&'static str, Vec<String>> {
    let setpriv = |ids: &str| {
        let words: Vec<&str> = ["setpriv"].into_iter().chain(ids.split(' ')).collect();
        php_under(&words, ACCESS, paths)
    };
    let alone = "--clear-groups";
    [
        ("the user of the program", setpriv(&AS_US[1..].join(" "))),
        // Without capabilities, as any other user
        (
            "root",
            setpriv("--reuid=0 --regid=0 --groups=65534,33,4321 --bounding-set=-all"),
        ),
        (
            "the other user",
            setpriv("--reuid=1234 --regid=1234 --groups=65534,33,4321"),
        ),
        (
            ALONE,
            setpriv(&format!("--reuid=1234 --regid=5005 {alone}")),
        ),
        (
            "a member of the user's group",
            setpriv(&format!("--reuid=5001 --regid={OURS} {alone}")),
        ),
        (
            "a member of the user's second group",
            setpriv(&format!("--reuid=5002 --regid={SECOND} {alone}")),
        ),
        (
            "a member of the foreign group",
            setpriv(&format!("--reuid=5003 --regid={FOREIGN} {alone}")),
        ),
        (
            "a stranger",
            setpriv(&format!("--reuid=5004 --regid=5004 {alone}")),
        ),
    ]
    .into()
}

/// Who can do less with each file.
fn losses(
    before: &BTreeMap<&'static str, Vec<String>>,
    after: &BTreeMap<&'static str, Vec<String>>,
    file: usize,
) -> Vec<&'static str> {
    let rights = |line: &str| line.split(' ').next().unwrap().to_owned();
    before
        .iter()
        .filter(|(who, lines)| {
            let left = rights(&after[*who][file]);
            rights(&lines[file])
                .chars()
                .any(|right| !left.contains(right))
        })
        .map(|(who, _)| *who)
        .collect()
}

/// Each combination of a folder and a file, in an aulario of its own.
struct Table {
    school: School,
    cases: Vec<(Permissions, Permissions)>,
}

impl Table {
    fn new() -> Table {
        let mut cases = Vec::new();
        for folder in FOLDERS {
            for owner in [US, 0, OTHER] {
                for group in [OURS, SECOND, FOREIGN] {
                    cases.extend(MODES.map(|mode| (folder, (owner, group, mode))));
                }
            }
        }
        let school = School::in_memory();
        chmod(school.sessions().join("sess_admin"), 0o666);
        Table { school, cases }
    }

    fn name(number: usize) -> String {
        format!("case{number}")
    }

    fn paths(&self) -> Vec<PathBuf> {
        let path = |number| DAY.replace("aula1", &Table::name(number));
        (0..self.cases.len())
            .map(|number| self.school.path(&path(number)))
            .collect()
    }

    /// Creates the files, or creates them again.
    fn create(&self) {
        for (path, (folder, file)) in self.paths().iter().zip(&self.cases) {
            let day = path.parent().unwrap();
            let aulario = day.ancestors().nth(3).unwrap();
            _ = fs::remove_dir_all(aulario);
            fs::create_dir_all(day).unwrap();
            fs::write(aulario.with_extension("json"), "{}").unwrap();
            fs::write(path, "{}").unwrap();
            day.ancestors()
                .skip(1)
                .take(3)
                .for_each(|folder| chmod(folder, 0o777));
            for (path, (owner, group, mode)) in [(day, folder), (path, file)] {
                chown(path, Some(*owner), Some(*group)).expect("this test needs to run as root");
                chmod(path, *mode);
            }
        }
    }
}

#[test]
fn every_file_that_php_can_save_is_replaced_unless_someone_would_lose_access() {
    let table = Table::new();
    table.create();
    let paths = table.paths();
    let before = access(&paths);
    let replaced = php_under(AS_US, REPLACE, &paths);
    let after = access(&paths);
    table.create();
    let findings = format!("{:?}", check(&table.school, AS_US, &[], ""));

    let mut counts = [0; 2];
    let mut wrong = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        if !before["the user of the program"][number].starts_with("rw ") {
            continue;
        }
        let (folder, file) = table.cases[number];
        let case = format!("{:?} in {:?}", octal(file), octal(folder));
        let mut losers = losses(&before, &after, number);
        losers.retain(|who| *who != ALONE);
        let may_replace = replaced.contains(&path.display().to_string()) && losers.is_empty();
        let request = table.school.post("save_menu").aulario(&Table::name(number));
        let answer = request.json(&save("new")).under(AS_US).run();
        let is_saved = answer.status == 200;
        if is_saved != may_replace {
            wrong.push(format!("{case}: saved: {is_saved}, would lose: {losers:?}"));
        }
        let is_reported = findings.contains(&format!("the first is {}", path.display()));
        if is_reported == is_saved {
            wrong.push(format!(
                "{case}: saved: {is_saved}, a finding: {is_reported}"
            ));
        }
        if !is_saved {
            let log = &answer.fails("INTERNAL_ERROR").log;
            if !log.contains("cannot replace it: ") {
                wrong.push(format!("{case}: {log}"));
            }
            assert_eq!(fs::read_to_string(path).unwrap(), "{}", "{case}");
        }
        counts[usize::from(is_saved)] += 1;
    }
    let [refused, saved] = counts;
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());

    let now = access(&paths);
    let mut of_owners = BTreeSet::new();
    for (number, (folder, file)) in table.cases.iter().enumerate() {
        match losses(&before, &now, number)[..] {
            [] => {}
            [ALONE] => _ = of_owners.insert(octal(*file)),
            ref losers => panic!("{file:?} in {folder:?}: {losers:?}"),
        }
    }
    // docs/files.md names this exception. Version 1.0.0 saved these files too.
    let expected = [
        "1234:33 0660", "1234:33 0664", "1234:65534 0660", "1234:65534 0664",
    ];
    assert_eq!(Vec::from_iter(of_owners), expected);
    assert_eq!((saved, refused), (279, 78));
}

/// In a container root may lack the capability to give files away (CAP_CHOWN), and an owner may have no number
/// (user_namespaces(7)).
#[test]
fn root_that_cannot_keep_an_owner_replaces_what_everybody_can_write() {
    let school = School::with_menu("old");
    let path = school.path(DAY);
    for container in [
        &["setpriv", "--bounding-set=-chown"][..],
        &["unshare", "--user", "--map-root-user"],
    ] {
        for (mode, is_saved) in [(0o666, true), (0o664, false), (0o646, false)] {
            school.write(DAY, "{}");
            chown(&path, Some(OTHER), Some(FOREIGN)).expect("this test needs to run as root");
            chmod(&path, mode);
            let findings = format!("{:?}", check(&school, container, &[], ""));
            let closed = format!("the first is {}", path.display());
            assert_eq!(
                findings.contains(&closed),
                !is_saved,
                "{container:?} {mode:o}"
            );
            let save = school.post("save_menu").json(&save("new"));
            let answer = save.under(container).run();
            if is_saved {
                answer.ok();
            } else {
                answer.fails("INTERNAL_ERROR");
            }
            assert_eq!(school.read(DAY).contains("new"), is_saved);
        }
    }
}

#[test]
fn a_refused_save_is_logged_with_who_would_lose_what_and_where_the_command_is() {
    let school = School::with_menu("old");
    let path = school.path(DAY);
    chmod(school.sessions().join("sess_admin"), 0o666);
    chmod(school.path("aula1"), 0o777);
    chmod(school.path(LOCK), 0o666);
    for (folder_mode, file, cause) in [
        (
            0o777,
            (US, 0, 0o664),
            "its group root (0) could then no longer write it; see \"Wrong owner, group or mode\" in docs/troubleshooting.md\n",
        ),
        (
            0o777,
            (0, FOREIGN, 0o646),
            "its owner root (0) could then no longer write it; see \"Wrong owner, group or mode\" in docs/",
        ),
        (
            0o1777,
            (0, 0, 0o666),
            "its folder has the sticky bit, and neither belongs to this user; see \"Sticky bit\" in docs/troubleshooting.md\n",
        ),
    ] {
        let (owner, group, mode) = file;
        chmod(path.parent().unwrap(), folder_mode);
        chown(&path, Some(owner), Some(group)).expect("this test needs to run as root");
        chmod(&path, mode);
        let answer = school
            .post("save_menu")
            .json(&save("new"))
            .under(AS_US)
            .run();
        let cause = format!("_datos.json: user nobody (65534) cannot replace it: {cause}");
        let log = &answer.fails("INTERNAL_ERROR").log;
        assert!(log.contains(&cause), "{log}");
    }
}

fn octal((owner, group, mode): Permissions) -> String {
    format!("{owner}:{group} {mode:04o}")
}
