//! How a page replaces a file, and when it writes in place.

use std::os::unix::fs::{MetadataExt, symlink};

use super::*;
use crate::saving::attributes::{getfacl, give};

/// What remains of a file after a page of the user `nobody` has saved it.
#[test]
fn file_is_replaced_if_its_access_can_be_kept_and_else_written_in_place() {
    const NOBODY: u32 = 65534;
    /// A folder of the page's user
    const OWN: (u32, u32) = (NOBODY, 0o755);
    const REPLACED: bool = true;
    const IN_PLACE: bool = false;
    /// Owner and mode of the folder; owner, group and mode of the file, and its list, or that of the folder
    struct Case {
        folder: (u32, u32),
        file: (u32, u32, u32),
        list: &'static str,
        is_replaced: bool,
    }
    fn case(
        folder: (u32, u32),
        file: (u32, u32, u32),
        list: &'static str,
        is_replaced: bool,
    ) -> Case {
        Case {
            folder,
            file,
            list,
            is_replaced,
        }
    }
    let cases = [
        case(OWN, (NOBODY, NOBODY, 0o644), "", REPLACED),
        case(OWN, (NOBODY, NOBODY, 0o600), "", REPLACED),
        case(OWN, (NOBODY, NOBODY, 0o664), "", REPLACED),
        case(OWN, (NOBODY, NOBODY, 0o664), "u:1234:rw", IN_PLACE),
        case(OWN, (NOBODY, NOBODY, 0o640), "u:1234:r", IN_PLACE),
        // As after `chown -R nobody`
        case(OWN, (NOBODY, 0, 0o644), "", REPLACED),
        case(OWN, (NOBODY, 0, 0o664), "", IN_PLACE),
        case((0, 0o777), (0, NOBODY, 0o664), "", IN_PLACE),
        // As after `chmod -R 777`
        case((0, 0o777), (0, 0, 0o777), "", REPLACED),
        case((0, 0o1777), (0, 0, 0o777), "", IN_PLACE),
        case((0, 0o755), (NOBODY, NOBODY, 0o644), "", IN_PLACE),
        case((0, 0o777), (0, 0, 0o666), "", REPLACED),
        case((0, 0o777), (1234, 0, 0o666), "", REPLACED),
        case((0, 0o777), (1234, 0, 0o666), "u:1235:rw", IN_PLACE),
        // Someone who is denied
        case(OWN, (NOBODY, NOBODY, 0o666), "u:1235:-,m::rw", IN_PLACE),
        case(
            OWN,
            (NOBODY, NOBODY, 0o666),
            "d:g::-,d:o::rw,d:m::rw",
            IN_PLACE,
        ),
        // Members of PHP's group could write it
        case((0, 0o777), (0, 0, 0o606), "", IN_PLACE),
        case(OWN, (NOBODY, 0, 0o606), "", IN_PLACE),
        // PHP as the owner could not write it
        case(OWN, (0, NOBODY, 0o466), "", IN_PLACE),
    ];
    for Case {
        folder: (folder_owner, folder_mode),
        file: (owner, group, mode),
        list,
        is_replaced,
    } in cases
    {
        let case = format!("{folder_owner} {folder_mode:o}, {owner} {group} {mode:o} {list}");
        let school = School::new();
        give(&school.path(""), NOBODY, NOBODY, 0o755, "");
        school.write(DAY, "{\"a longer\": \"content\"}");
        let (path, folder) = (school.path(DAY), school.path("aula1"));
        give(&folder, NOBODY, NOBODY, 0o755, "");
        let (of_folder, of_file) = if list.starts_with("d:") {
            (list, "")
        } else {
            ("", list)
        };
        give(
            path.parent().unwrap(),
            folder_owner,
            0,
            folder_mode,
            of_folder,
        );
        give(&path, owner, group, mode, of_file);
        let (before, entries) = (fs::metadata(&path).unwrap(), getfacl(&path));
        saves(as_nobody(saving(&school, DAY, "[1]")));
        let after = fs::metadata(&path).unwrap();
        assert_eq!(school.read(DAY), "[\n    1\n]", "{case}");
        assert_eq!(after.ino() != before.ino(), is_replaced, "{case}");
        assert_eq!(after.mode(), before.mode(), "{case}");
        if !is_replaced {
            assert_eq!(getfacl(&path), entries, "{case}");
        }
        assert_eq!(temporary_files(&school), 0, "{case}");
    }
}

/// Most servers have no `acl`, whose programs make lists and show them.
#[test]
fn without_getfacl_a_file_is_replaced_if_its_group_may_do_no_more_than_others() {
    for (mode, is_replaced) in [(0o644, true), (0o666, true), (0o664, false)] {
        let school = School::new();
        school.write(DAY, "old");
        let path = school.path(DAY);
        chmod(&path, mode);
        let before = fs::metadata(&path).unwrap().ino();
        let code = format!("putenv('PATH=/none'); {SAVE}");
        saves(page(&code, &[&school.path("aula1"), &path, &"[]"]));
        let after = fs::metadata(&path).unwrap().ino();
        assert_eq!(after != before, is_replaced, "{mode:o}");
    }
}

fn as_nobody(page: Command) -> Command {
    let mut command = Command::new(AS_NOBODY[0]);
    command
        .args(&AS_NOBODY[1..])
        .arg(page.get_program())
        .args(page.get_args());
    command
}

#[test]
fn what_a_page_cannot_save_stays_and_the_exception_says_what_to_do() {
    let school = School::new();
    school.write(DAY, "old");
    let allow = "allow the user of PHP to write it";
    for (owner, mode) in [(0, 0o644), (65534, 0o444)] {
        give(&school.path(""), 65534, 65534, 0o755, "");
        give(&school.path("aula1"), 65534, 65534, 0o755, "");
        give(&school.path(DAY), owner, 0, mode, "");
        fails(as_nobody(saving(&school, DAY, "{}")), allow);
    }
    let [aulario, path] = [school.path("aula1"), school.path(DAY)];
    for (value, reason) in [
        ("[INF]", "Inf and NaN cannot be JSON encoded"),
        (
            "json_encode([])",
            "save the value itself, before json_encode",
        ),
    ] {
        fails(
            page(
                &format!("\\comedor\\save($argv[2], {value});"),
                &[&aulario, &path],
            ),
            &format!("nothing was changed: {reason}"),
        );
    }
    assert_eq!(school.read(DAY), "old");
}

/// A page may take 0 or null for a failure.
#[test]
fn save_returns_the_number_of_bytes_as_file_put_contents_does() {
    let school = School::new();
    school.write(DAY, "old");
    let code = "echo \\comedor\\save($argv[1], ['ñ' => 1]), ' ', filesize($argv[1]);";
    let output = output(&mut page(code, &[&school.path(DAY)]), "php-cli");
    let bytes = school.read(DAY).len();
    assert_eq!(
        String::from_utf8(output).unwrap(),
        format!("{bytes} {bytes}")
    );
}

/// Old versions of PHP, hosting that forbids functions, a link, a lock that is not for PHP.
#[test]
fn page_saves_also_where_it_cannot_flush_lock_or_replace() {
    let school = School::new();
    school.write(DAY, "old");
    let path = school.path(DAY);
    let with = |setting: &str| {
        let mut php = Command::new("php");
        let page = saving(&school, DAY, "[]");
        php.args(["-d", setting]).args(page.get_args());
        php
    };
    let inode = || fs::metadata(&path).unwrap().ino();
    let first = inode();
    saves(with("disable_functions=fsync,proc_open"));
    let second = inode();
    assert_ne!(first, second, "replaced");
    chmod(&path, 0o664);
    saves(with("disable_functions=proc_open"));
    assert_eq!(
        inode(),
        second,
        "in place: there may be an access control list"
    );
    let guardar = school.folder().join("guardar.php");
    let folders = format!("{}:{}", school.data().display(), guardar.display());
    saves(with(&format!("open_basedir={folders}")));
    assert_ne!(inode(), second, "replaced: there is none");

    let target = school.folder().join("target");
    fs::rename(&path, &target).unwrap();
    symlink(&target, &path).unwrap();
    saves(saving(&school, DAY, "[2]"));
    assert_eq!(fs::read_to_string(target).unwrap(), "[\n    2\n]");
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());

    fs::remove_file(&path).unwrap();
    school.write(DAY, "old");
    give(&path, 65534, 65534, 0o644, "");
    give(&school.path(LOCK), 0, 0, 0o600, "");
    give(path.parent().unwrap(), 65534, 65534, 0o755, "");
    let before = inode();
    let output = as_nobody(saving(&school, DAY, "[3]"))
        .output()
        .expect("setpriv");
    let (is_saved, log) = said(&output);
    assert!(
        is_saved && log.contains("saves without it: allow the user of PHP"),
        "{log}"
    );
    assert_eq!(school.read(DAY), "[\n    3\n]");
    assert_eq!(
        inode(),
        before,
        "in place: without the lock, another page may have the temporary name"
    );
}

/// Hosting that forbids functions: the file is replaced if what is left is enough for it.
#[test]
fn page_saves_whatever_functions_are_switched_off() {
    const FUNCTIONS: &str = "chown chgrp chmod flock unlink rename stat fileperms proc_open proc_close \
        stream_get_contents usleep fsync";
    let every = FUNCTIONS.replace(' ', ",");
    for functions in FUNCTIONS.split_whitespace().chain([&*every]) {
        let school = School::new();
        school.write(DAY, "{\"a longer\": \"content\"}");
        let path = school.path(DAY);
        let before = fs::metadata(&path).unwrap().ino();
        let mut php = Command::new("php");
        php.args(["-d", &format!("disable_functions={functions}")])
            .args(saving(&school, DAY, "[]").get_args());
        let (is_saved, log) = said(&php.output().expect("php-cli"));
        assert!(is_saved, "{functions}: {log}");
        assert_eq!(school.read(DAY), "[]", "{functions}");
        let is_replaced = fs::metadata(&path).unwrap().ino() != before;
        if ["chown", "chgrp", "chmod", "usleep", "fsync", "proc_open"].contains(&functions) {
            assert!(is_replaced && log.is_empty(), "{functions}: {log}");
        } else {
            assert!(!is_replaced, "{functions}");
        }
    }
}

#[test]
fn page_saves_also_where_the_temporary_name_is_taken() {
    let school = School::new();
    school.write(DAY, "old");
    let path = school.path(DAY);
    let taken = path.with_file_name("._datos.json.tmp");
    fs::create_dir(&taken).unwrap();
    saves(saving(&school, DAY, "[1]"));
    assert_eq!(school.read(DAY), "[\n    1\n]");
    let new = path.with_file_name("Comedor-MenuTypes.json");
    fs::create_dir(new.with_file_name(".Comedor-MenuTypes.json.tmp")).unwrap();
    saves(page(SAVE, &[&school.path("aula1"), &new, &"[2]"]));
    assert_eq!(fs::read_to_string(&new).unwrap(), "[\n    2\n]");

    // A file of another user, in a folder in which only its owner can remove it
    fs::remove_dir(&taken).unwrap();
    fs::write(&taken, "").unwrap();
    give(&school.path("aula1"), 65534, 65534, 0o755, "");
    give(&school.path(LOCK), 65534, 65534, 0o660, "");
    give(path.parent().unwrap(), 0, 0, 0o1777, "");
    give(&path, 65534, 65534, 0o644, "");
    saves(as_nobody(saving(&school, DAY, "[3]")));
    assert_eq!(school.read(DAY), "[\n    3\n]");
}

/// Such as a path that was resolved, if the aulario is a link to another disk.
#[test]
fn page_saves_in_place_what_its_path_does_not_say_the_aulario_of() {
    let school = School::new();
    let linked = school.folder().join("linked");
    fs::create_dir_all(&linked).unwrap();
    for path in [
        linked.join("_datos.json"),
        school.path("aula1").join("../other/_datos.json"),
    ] {
        for folder in ["aula1", "other"] {
            fs::create_dir_all(school.path(folder)).unwrap();
        }
        fs::write(&path, "old").unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        let page = page(SAVE, &[&path.parent().unwrap(), &path, &"[]"]).output();
        let (is_saved, log) = said(&page.expect("php-cli"));
        assert!(is_saved, "{log}");
        assert!(log.contains("must have the folder Aularios"), "{log}");
        let after = fs::metadata(&path).unwrap().ino();
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), after),
            ("[]".into(), before)
        );
    }
}

/// The options of a page that writes in another way.
#[test]
fn options_replace_those_of_the_pages() {
    let school = School::new();
    let code = "\\comedor\\save($argv[1], ['á/b'], JSON_UNESCAPED_SLASHES);";
    output(&mut page(code, &[&school.path(TYPES)]), "php-cli");
    assert_eq!(school.read(TYPES), "[\"\\u00e1/b\"]");
}
