//! What the self-check says about file systems, on real mounts.

use crate::check::{check, found};
use crate::support::*;

/// The findings of the check if `mount`, a shell command, has changed the mounts. `$DATA` is the data
/// folder and `$SESSIONS` the session folder.
#[track_caller]
fn check_on(school: &School, mount: &str) -> Vec<Value> {
    let names = "DATA=$COMEDOR_DATA_DIR SESSIONS=$COMEDOR_SESSION_DIR";
    let script = format!("PATH=/usr/sbin:/usr/bin:/sbin:/bin {names}; {mount} && exec \"$@\"");
    check(school, &["sh", "-c", &script, "sh"], &[], "")
}

#[test]
fn file_system_is_that_of_the_mount_in_use() {
    let school = School::new();
    let overlay = "mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work && mount -t overlay \
                   -o lowerdir=$DATA,upperdir=/mnt/upper,workdir=/mnt/work none $DATA";
    let hidden =
        "mount -t tmpfs none $DATA/Centros && mount -t ramfs none $DATA && mkdir $DATA/Centros";
    let in_memory = "mount -t tmpfs none $DATA && mkdir $DATA/Centros && mount -t ramfs none /mnt";
    for (mount, level, about, file_system) in [
        ("mount -t tmpfs none $SESSIONS", "ok", "/sessions", "is tmpfs"),
        (in_memory, "warning", "/data/Centros", "is tmpfs, so a restart"),
        (overlay, "warning", "/data/Centros", "is overlay, so a restart"),
        (hidden, "warning", "/data/Centros", "is ramfs, so a restart"),
        ("mount -t tmpfs none /proc", "hint", "/data/Centros", "is unknown: /proc"),
    ] {
        let findings = check_on(&school, mount);
        found(&findings, level, about, &format!("the file system {file_system}"));
    }
}

/// As systemd's ProtectSystem=strict does.
#[test]
fn folders_that_are_read_only_for_the_process_are_errors() {
    let school = School::new();
    let only =
        |folder| format!("mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}");
    let mount = format!("{} && {}", only("$DATA"), only("$SESSIONS"));
    let text =
        "is read-only for this process, so requests fail; see \"Disk full or read-only\" in docs/";
    // To nobody the folders are closed for writing too.
    let as_nobody = format!("{mount} && set -- {} \"$@\"", AS_NOBODY.join(" "));
    let [findings, of_nobody] = [&mount, &as_nobody].map(|mount| check_on(&school, mount));
    for folder in [school.data().join("Centros"), school.sessions()] {
        for findings in [&findings, &of_nobody] {
            found(findings, "error", folder.to_str().unwrap(), text);
        }
    }
    found(&findings, "error", "/Aularios", "root cannot write here (Read-only file system");
}

#[test]
fn file_system_that_does_not_answer_is_an_error_after_four_seconds() {
    let school = School::new();
    let data = format!("{}/.", school.data().display());
    let fault = "inject=%file:delay_enter=8s";
    let strace = ["strace", "-f", "-o", "/dev/null", "-P", &data, "-e", fault];
    let findings = check(&school, &strace, &[], "");
    let text = "which contains Centros (COMEDOR_DATA_DIR): no answer in time";
    found(&findings, "error", "/data", text);
}
