//! New files and folders, what a replaced file keeps, and the temporary name.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};

use crate::support::*;

#[test]
fn new_files_and_folders_have_the_modes_of_php_less_the_umask() {
    for (umask, file, folder, lock) in [("022", 0o644, 0o755, 0o640), ("002", 0o664, 0o775, 0o660)]
    {
        let school = School::new();
        let save = school.post("save_menu").json(&save("x"));
        save.shell(&format!("umask {umask}; exec \"$0\""))
            .run()
            .ok();
        let mode = |path| fs::metadata(school.path(path)).unwrap().mode() & 0o7777;
        assert_eq!((mode(DAY), mode(LOCK)), (file, lock));
        for path in [
            "aula1", "aula1/Comedor", "aula1/Comedor/2026-11", "aula1/Comedor/2026-11/20",
        ] {
            assert_eq!(mode(path), folder, "{path}");
        }
    }
}

pub const ACCESS_LIST: &str = "system.posix_acl_access";

/// The value of an access control list (`linux/posix_acl_xattr.h`): owner, user 1234, group, mask and others.
const ACL: [(u16, u16, u32); 5] = [
    (1, 6, u32::MAX),
    (2, 6, 1234),
    (4, 4, u32::MAX),
    (16, 6, u32::MAX),
    (32, 0, u32::MAX),
];

pub fn acl() -> Vec<u8> {
    let entries = ACL.iter().flat_map(|(tag, permissions, id)| {
        [
            &tag.to_le_bytes()[..],
            &permissions.to_le_bytes(),
            &id.to_le_bytes(),
        ]
        .concat()
    });
    [2, 0, 0, 0].into_iter().chain(entries).collect()
}

/// An ordinary user cannot give a file to another user, and only to the groups that they belong to.
#[test]
fn a_replaced_file_keeps_its_owner_group_mode_and_access_control_list() {
    let school = School::with_menu("old");
    let path = school.path(DAY);
    let access = || {
        let metadata = fs::metadata(&path).unwrap();
        let list = xattr::get(&path, ACCESS_LIST).expect("access control lists");
        (metadata.uid(), metadata.gid(), metadata.mode(), list)
    };
    let is_kept = |change: &str| {
        let before = access();
        school.save(save(change));
        assert_eq!(before, access(), "{change}");
        before
    };
    let is_root = rustix::process::geteuid().is_root();
    let own = rustix::process::getegid().as_raw();
    let groups = rustix::process::getgroups()
        .unwrap()
        .into_iter()
        .map(|group| group.as_raw());
    let other = if is_root {
        Some(1234)
    } else {
        groups.into_iter().find(|group| *group != own)
    };
    let owner = is_root.then_some(4321);
    chown(&path, owner, other).unwrap();
    for mode in [0o600, 0o640, 0o664, 0o666, 0o660] {
        chmod(&path, mode);
        assert_eq!(is_kept(&format!("mode {mode:o}")).2 & 0o7777, mode);
    }
    xattr::set(&path, ACCESS_LIST, &acl()).unwrap();
    assert_eq!(is_kept("list").3, Some(acl()));
    xattr::remove(&path, ACCESS_LIST).unwrap();
    xattr::set(path.parent().unwrap(), "system.posix_acl_default", &acl()).unwrap();
    assert_eq!(is_kept("without a list").3, None);
}

#[test]
fn what_has_the_temporary_name_is_removed_and_a_link_not_followed_but_a_full_folder_logged() {
    let school = School::new();
    let name = "aula1/Comedor/2026-11/20/._datos.json.tmp";
    let (path, outside) = (school.path(name), tempfile::NamedTempFile::new().unwrap());
    school.write(name, "half");
    chmod(&path, 0o000);
    school.save(save("over a file"));
    symlink(outside.path(), &path).unwrap();
    school.save(save("over a link"));
    assert_eq!(fs::metadata(outside.path()).unwrap().len(), 0);
    fs::create_dir(&path).unwrap();
    school.save(save("over a folder"));
    assert!(!path.exists());
    school.write(&format!("{name}/kept"), "x");
    let answer = school.post("save_menu").json(&save("never")).run();
    assert!(
        answer.fails("INTERNAL_ERROR").log.contains(name),
        "{}",
        answer.log
    );
    assert_eq!(school.read(&format!("{name}/kept")), "x");
    assert_eq!(
        school.menu("basal")["menu"]["plates"]["primero"]["name"],
        "over a folder"
    );
}
