//! Owner, mode, access control list (acl(5)) and extended attributes of a file that is replaced.

use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use rustix::fs::{XattrFlags, getxattr, setxattr};

use crate::support::*;

/// A user who runs the program in these tests, of the groups 65534 and 33.
const US: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--groups=33"];

/// Owner, group, bits of the mode and entries, as getfacl prints them with numbers.
#[track_caller]
pub fn getfacl(path: &Path) -> String {
    String::from_utf8(output(Command::new("getfacl").arg("-np").arg(path), "acl")).unwrap()
}

/// A school whose files and folders are open to all users, with a saved day.
fn open_school() -> School {
    let school = School::with_menu("old");
    let mut chmod = Command::new("chmod");
    output(
        chmod
            .args(["-R", "a+rwX"])
            .args([school.data(), school.sessions()]),
        "coreutils",
    );
    school
}

/// Gives a file or folder this owner, group and mode, and these entries alone.
#[track_caller]
pub fn give(path: &Path, owner: u32, group: u32, mode: u32, entries: &str) {
    output(Command::new("setfacl").arg("-b").arg(path), "acl");
    chown(path, Some(owner), Some(group)).expect("this test needs to run as root");
    chmod(path, mode);
    if !entries.is_empty() {
        output(
            Command::new("setfacl").args(["-m", entries]).arg(path),
            "acl",
        );
    }
}

#[test]
fn owner_mode_and_access_control_list_of_a_replaced_file_are_kept() {
    let school = open_school();
    let path = school.path(DAY);
    for (folder_mode, default) in [(0o777, ""), (0o2777, ""), (0o777, "d:u:7:rwx,d:m:rwx")] {
        give(path.parent().unwrap(), 0, 33, folder_mode, default);
        for (group, mode, entries) in [
            (4321, 0o664, ""),
            (4321, 0o600, ""),
            (4321, 0o640, "u:33:rw"),
            (4321, 0o640, "u:33:rw,g:44:r,m:r"),
            (33, 0o660, "u:33:rw,u:1234:rw,g:33:rw,g::-"),
            (33, 0o2664, "u:1234:rw"),
        ] {
            give(&path, 1234, group, mode, entries);
            let before = getfacl(&path);
            school.save(save("as root"));
            assert_eq!(
                getfacl(&path),
                before,
                "{folder_mode:o} {default} {mode:o} {entries}"
            );
        }
    }
}

/// A named entry of a list replaces an owner or a group that cannot be kept.
#[test]
fn a_file_is_replaced_only_if_this_user_may_write_it_and_others_keep_their_access() {
    let school = open_school();
    let path = school.path(DAY);
    for ((folder_group, folder_mode, default), files) in [
        (
            (0, 0o777, ""),
            &[
                (1234, 33, 0o664, "", true),
                (1234, 33, 0o644, "", false),
                (1234, 4321, 0o664, "", false),
                (1234, 4321, 0o666, "", true),
                (65534, 33, 0o600, "", true),
                (65534, 65534, 0o600, "", true),
                (65534, 65534, 0o444, "", false),
                (65534, 4321, 0o664, "", false),
            ][..],
        ),
        (
            (4321, 0o2777, ""),
            &[
                (1234, 4321, 0o664, "", false),
                (1234, 4321, 0o644, "", false),
            ],
        ),
        ((33, 0o2777, ""), &[(1234, 4321, 0o664, "", false)]),
        (
            (0, 0o777, "d:u:7:rwx,d:m:rwx"),
            &[
                (1234, 4321, 0o664, "u:65534:rw,u:1234:rw,g:4321:rw", true),
                (1234, 4321, 0o644, "u:65534:rw,u:1234:rw,g:4321:r", true),
                (1234, 4321, 0o664, "u:1234:rw", false),
                (1234, 4321, 0o664, "u:65534:rw", false),
                (1234, 4321, 0o664, "u:1234:rw,g:4321:r", false),
                (1234, 4321, 0o664, "u:1234:rw,g:4321:rw,m:r", false),
                (1234, 4321, 0o774, "u:65534:rw,u:1234:rw,g:4321:rw", true),
                (1234, 4321, 0o604, "u:1234:rw", false),
                (1234, 4321, 0o664, "u:65534:rw,g:4321:rw", true),
                (1234, 4321, 0o644, "g:4321:r", false),
                (1234, 33, 0o644, "u:65534:rw,u:1234:rw", true),
                (1234, 33, 0o644, "u:1234:rw", false),
                (1234, 33, 0o644, "u:65534:rw", false),
                (1234, 33, 0o664, "u:65534:rw", true),
                (1234, 33, 0o664, "u:65534:rw,m:r", false),
                (1234, 33, 0o664, "u:1234:r", false),
                (1234, 33, 0o664, "u:1234:rw,m:r", false),
                (1234, 33, 0o464, "u:1234:r", false),
            ],
        ),
    ] {
        give(
            path.parent().unwrap(),
            0,
            folder_group,
            folder_mode,
            default,
        );
        for &(owner, group, mode, entries, replaced) in files {
            school.write(DAY, "{}");
            give(&path, owner, group, mode, entries);
            let case = format!("{folder_group} {folder_mode:o} {owner} {group} {mode:o} {entries}");
            let before = getfacl(&path);
            let answer = school.post("save_menu").json(&save("new")).under(US).run();
            if replaced {
                answer.ok();
                let owners = |owner, group| format!("# owner: {owner}\n# group: {group}\n");
                let kept = if group == 33 { 33 } else { 65534 };
                let expected = before.replace(&owners(owner, group), &owners(65534, kept));
                assert_eq!(getfacl(&path), expected, "{case}");
                assert!(school.read(DAY).contains("new"));
            } else {
                let log = &answer.fails("INTERNAL_ERROR").log;
                let why = ["could then no longer", "write: Permission"];
                assert!(
                    log.contains(DAY) && why.iter().any(|why| log.contains(why)),
                    "{log}"
                );
                assert_eq!(
                    (getfacl(&path), school.read(DAY)),
                    (before, "{}".to_owned()),
                    "{case}"
                );
            }
            let files = school.files();
            assert!(
                !files.iter().any(|path| path.ends_with(".tmp")),
                "{case}: {files:?}"
            );
            let findings = crate::check::check(&school, US, &[], "");
            let closed = format!("{findings:?}").contains(&format!("{}", path.display()));
            assert_eq!(closed, !replaced, "{case}: {findings:#?}");
        }
    }
}

#[test]
fn attributes_of_users_are_kept_and_others_are_not() {
    let school = School::with_menu("old");
    let path = school.path(DAY);
    let set = |name, value: &[u8]| {
        setxattr(&path, name, value, XattrFlags::empty())
            .expect("this test needs TMPDIR on a file system with attributes of users");
    };
    let get = |name| {
        let mut value = vec![0; 4096];
        getxattr(&path, name, &mut value[..]).map(|length| value[..length].to_vec())
    };
    set("user.origin", b"kitchen\0");
    set("user.empty", b"");
    set("trusted.checksum", b"of the old content");
    school.save(save("new"));
    assert_eq!(get("user.origin").unwrap(), b"kitchen\0");
    assert_eq!(get("user.empty").unwrap(), b"");
    assert!(get("trusted.checksum").is_err());
}

#[test]
fn file_system_without_attributes_has_none_and_other_errors_change_nothing() {
    let school = School::with_menu("old");
    give(&school.path(DAY), 0, 0, 0o2664, "u:33:rw");
    let request = |name| school.post("save_menu").json(&save(name));
    let state = || (school.read(DAY), school.files(), getfacl(&school.path(DAY)));
    for call in ["flistxattr", "fgetxattr", "fsetxattr", "fchmod"] {
        let before = state();
        let answer = request("failed")
            .inject(&format!("{call}:error=EIO:when=1"))
            .run();
        assert!(
            answer.fails("INTERNAL_ERROR").log.contains("_datos.json: "),
            "{}",
            answer.log
        );
        assert_eq!(state(), before, "{call}");
    }
    request("new")
        .inject("flistxattr:error=EOPNOTSUPP")
        .run()
        .ok();
    assert!(school.read(DAY).contains("new"));
}
