//! File systems, on real mounts: what the self-check says about them, and saves where owner and mode are fixed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

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
        (
            "mount -t tmpfs none $SESSIONS", "ok", "/sessions", "is tmpfs",
        ),
        (
            in_memory, "warning", "/data/Centros", "is tmpfs, so a restart",
        ),
        (
            overlay, "warning", "/data/Centros", "is overlay, so a restart",
        ),
        (hidden, "warning", "/data/Centros", "is ramfs, so a restart"),
        (
            "mount -t tmpfs none /proc", "hint", "/data/Centros", "is unknown: /proc",
        ),
    ] {
        let findings = check_on(&school, mount);
        found(
            &findings,
            level,
            about,
            &format!("the file system {file_system}"),
        );
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
    found(
        &findings,
        "error",
        "/Aularios",
        "root cannot write here (Read-only file system",
    );
}

/// Unmounts the folder when dropped.
pub struct Mounted(pub PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        _ = Command::new("umount").arg(&self.0).status();
    }
}

/// All files belong to user and group 1234, and all users may write them, but not set their mode.
#[test]
fn writes_work_on_ntfs_with_a_fixed_owner_and_mode() {
    let school = School::new();
    chmod(school.sessions().join("sess_admin"), 0o666);
    fs::remove_dir_all(school.data()).unwrap();
    fs::create_dir(school.data()).unwrap();
    let image = school.folder().join("image");
    fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
    let mount = "mkntfs -qF \"$0\" && ntfs-3g -o uid=1234,gid=1234,umask=000 \"$0\" \"$1\"";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", mount])
        .arg(image)
        .arg(school.data())
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    output(&mut shell, "ntfs-3g");
    let _mounted = Mounted(school.data());
    school.write("aula1.json", "{}");
    for name in ["first", "second"] {
        school
            .post("save_menu")
            .json(&save(name))
            .under(AS_NOBODY)
            .run()
            .ok();
        assert_eq!(
            school.menu("basal")["menu"]["plates"]["primero"]["name"],
            name
        );
    }
    let files = school.files();
    assert!(
        !files.iter().any(|path| path.ends_with(".tmp")),
        "{files:?}"
    );
}
