//! What the self-check says about file systems, on real mounts.

use std::fs;
use std::process::Command;

use crate::check::{check, found};
use crate::support::*;

/// Runs a command in mounts of its own, with a private copy of the root folder as root. `unshare`
/// alone fails in a chroot to a folder that is not a mount.
const OWN_MOUNTS: [&str; 7] = [
    "unshare",
    "--mount",
    "--propagation=unchanged",
    "sh",
    "-c",
    "mount --make-private /proc && mount --rbind / /proc && mount --make-rprivate /proc && exec chroot /proc \"$@\"",
    "sh",
];

/// The findings of the check if `mount`, a shell command, has changed the mounts. `$DATA` is the data
/// folder, `$SESSIONS` the session folder and `$FOLDER` an empty one. The mounts end with the check.
#[track_caller]
fn check_on(school: &School, mount: &str) -> (i32, Vec<Value>) {
    let variable = |name: &str, path: &std::path::Path| format!("{name}={}", path.display());
    let folder = school.data().with_file_name("folder");
    fs::create_dir_all(&folder).unwrap();
    let variables = [
        variable("DATA", &school.data()),
        variable("SESSIONS", &school.sessions()),
        variable("FOLDER", &folder),
    ];
    let mut wrapper = vec!["env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"];
    wrapper.extend(variables.iter().map(String::as_str));
    wrapper.extend(OWN_MOUNTS);
    let script = format!("{mount} && exec \"$@\"");
    wrapper.extend(["sh", "-c", &script, "sh"]);
    check(school, &wrapper, &[], "")
}

#[test]
fn file_system_in_memory_is_a_warning_for_data_and_fine_for_sessions() {
    let school = School::new();
    let mount = |folder: &str| format!("mount -t tmpfs none {folder} && mkdir -p $DATA/Centros");
    let (_, findings) = check_on(&school, &mount("$SESSIONS"));
    found(&findings, "ok", "/sessions", "the file system is tmpfs");
    let (_, findings) = check_on(&school, &mount("$DATA"));
    let text = "the file system is tmpfs, which is in memory: a restart deletes all data";
    found(&findings, "warning", "/data/Centros", text);
}

#[test]
fn data_in_a_container_without_a_volume_is_found() {
    let school = School::new();
    let mount = "mount -t tmpfs none $FOLDER && mkdir $FOLDER/upper $FOLDER/work && mount -t overlay \
                 -o lowerdir=$DATA,upperdir=$FOLDER/upper,workdir=$FOLDER/work none $DATA";
    let (_, findings) = check_on(&school, mount);
    let text = "the file system is overlay, as in a container without a volume";
    found(&findings, "warning", "/data/Centros", text);
    found(&findings, "ok", "/data/Centros", "3 aularios and 0 saved days checked");
}

#[test]
fn file_system_is_named_as_findmnt_names_it() {
    let school = School::new();
    let mut findmnt = Command::new(OWN_MOUNTS[0]);
    findmnt.args(&OWN_MOUNTS[1..]).args(["findmnt", "-no", "FSTYPE", "-T"]);
    let findmnt = output(findmnt.arg(school.data()), "util-linux");
    let (_, findings) = check_on(&school, ":");
    let findmnt = String::from_utf8(findmnt).unwrap();
    // The last of several mounts on the same folder.
    let text = format!("the file system is {}", findmnt.lines().next_back().unwrap());
    let is_named = |finding: &&Value| finding["text"].as_str().unwrap().starts_with(&text);
    assert_eq!(findings.iter().filter(is_named).count(), 2, "data and sessions: {findings:?}");
}

/// As systemd's ProtectSystem=strict does.
#[test]
fn folders_that_are_read_only_for_the_process_are_errors() {
    let school = School::new();
    let only =
        |folder| format!("mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}");
    let mount = format!("{} && {}", only("$DATA"), only("$SESSIONS"));
    let (status, findings) = check_on(&school, &mount);
    assert_eq!(status, 2);
    for folder in [school.data().join("Centros"), school.sessions()] {
        let path = fs::canonicalize(&folder).unwrap();
        let text = format!("the service needs ReadWritePaths={} (", path.display());
        found(&findings, "error", folder.to_str().unwrap(), &text);
    }
    found(&findings, "error", "/Aularios", "root cannot write here (Read-only file system");
}

#[test]
fn hidden_mount_is_not_taken_for_the_one_in_use() {
    let school = School::new();
    let mount =
        "mount -t tmpfs none $DATA/Centros && mount -t ramfs none $DATA && mkdir $DATA/Centros";
    let (_, findings) = check_on(&school, mount);
    found(&findings, "warning", "/data/Centros", "the file system is ramfs");
}

#[test]
fn unknown_mounts_are_a_hint() {
    let school = School::new();
    let (_, findings) = check_on(&school, "mount -t tmpfs none /proc");
    found(&findings, "hint", "/data/Centros", "the file system is unknown: /proc/self/mountinfo:");
}

#[test]
fn file_system_that_does_not_answer_is_an_error_after_five_seconds() {
    let school = School::new();
    let data = school.data();
    let strace = ["strace", "-f", "-o", "/dev/null", "-P", data.to_str().unwrap(), "-e"];
    let wrapper = [&OWN_MOUNTS[..], &strace, &["inject=%%stat:delay_enter=8s"]].concat();
    let (_, findings) = check(&school, &wrapper, &[], "");
    found(
        &findings,
        "error",
        "/data",
        "the file system does not answer; COMEDOR_DATA_DIR must name",
    );
}
