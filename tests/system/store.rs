//! The files that the program shares with a PHP frontend: the same bytes, nothing lost.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::support::*;

/// What PHP writes after it has read the file.
const REWRITE: &str = "echo json_encode(json_decode(file_get_contents($argv[1]), true),
                       JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE);";

/// Everything that JSON and PHP can disagree about.
const ODD: &str = r#"{
    "0": {"1": 1, "0": 0}, "list": {"0": "a", "1": "b"}, "empty": {}, "also": [],
    "float": [1.0, 0.1, 1e25, 1.5e-7, 100.0, 12345678901234567890, 9223372036854775807],
    "text": "\u00e9\u2028\u2029 </script> \"\\ \b\f\n\r\t\u0001\u007f \ud83d\ude00",
    "": null, "a b": [true, false, [[]]], "date": "2026-11-20", "note": "kept",
    "menus": {
        "gone": {"plates": [{"name": "zero"}], "by": {"who": "x/y"}},
        "null": null,
        "basal": {"kcal": 1.50, "plates": {
            "postre": {"pictogram": "p.png", "name": "Flan", "allergens": ["milk"]},
            "cena": {"name": 5}, "none": null, "list": []
        }, "seen": true}
    },
    "last": 1
}"#;

#[test]
fn written_files_are_byte_for_byte_those_of_php() {
    let school = School::new();
    let label = "Menú «ñ» / \"x\" \\ \u{2028} \u{7f} \u{1} 😀";
    let added = json!({"id": "nuevo", "label": label, "color": "#FF00aa"});
    school.post("add_menu_type").json(&added).run().ok();
    school.save(save(label));
    school.write("aula1/Comedor/2026-11/19/_datos.json", ODD);
    let mut body = save("Sopa");
    body["date"] = json!("2026-11-19");
    school.save(body);
    for path in [TYPES, DAY, "aula1/Comedor/2026-11/19/_datos.json"] {
        let written = school.read(path);
        let by_php = php(REWRITE, &[&school.path(path)]);
        assert_eq!(written, String::from_utf8(by_php).unwrap());
    }
}

#[test]
fn a_change_to_a_file_of_php_changes_nothing_else() {
    let school = School::new();
    school.write(DAY, ODD);
    school.write("before.json", php(REWRITE, &[&school.path(DAY)]));
    school.save(save("Sopa"));
    // PHP compares the order of keys too.
    let code = "
        [$before, $after] = array_map(fn($f) => json_decode(file_get_contents($f), true), array_slice($argv, 1));
        $before['menus']['basal']['plates']['primero'] = ['name' => 'Sopa', 'pictogram' => ''];
        echo $before === $after ? 'only that' : 'more';";
    let paths = [school.path("before.json"), school.path(DAY)];
    let verdict = php(code, &[&paths[0], &paths[1]]);
    assert_eq!(verdict, b"only that", "{}", school.read(DAY));

    let menu = &school.menu("basal")["menu"];
    assert_eq!(menu["kcal"], 1.5);
    assert_eq!(
        menu["plates"],
        json!({
            "primero": {"name": "Sopa", "pictogram": ""},
            "segundo": {"name": "", "pictogram": ""},
            "postre": {"name": "Flan", "pictogram": "p.png", "allergens": ["milk"]},
            "cena": {"name": "5", "pictogram": ""},
            "none": {"name": "", "pictogram": ""},
            "list": {"name": "", "pictogram": ""},
        })
    );
}

#[test]
fn lists_are_accepted_in_place_of_maps_and_stay_lists() {
    let school = School::new();
    school.write(TYPES, r#"[{"id":"0","label":"Cero"},{"id":"1","label":"Uno"}]"#);
    school.write(DAY, r#"{"date":"2026-11-20","menus":[{"plates":[{"name":"A"}]},{"plates":[]}]}"#);
    assert_eq!(school.menu("0")["menu"]["plates"]["0"]["name"], "A");
    let body = json!({"date": DATE, "menu_type": "1", "plates": [{"name": "B"}, {}]});
    school.save(body);
    assert_eq!(
        serde_json::from_str::<Value>(&school.read(DAY)).unwrap()["menus"],
        json!([{"plates": [{"name": "A"}]}, {"plates": [{"name": "B", "pictogram": ""}]}])
    );
    for empty in ["[]", "{}", r#"{"menus":[]}"#, r#"{"menus":null}"#, r#"{"menus":{"basal":[]}}"#] {
        let school = School::new();
        school.write(DAY, empty);
        assert_eq!(school.menu("basal")["menu"]["plates"]["postre"]["name"], "");
        school.save(save("Sopa"));
        assert_eq!(school.menu("basal")["menu"]["plates"]["primero"]["name"], "Sopa", "{empty}");
    }
}

#[test]
fn unusable_entries_of_a_type_file_are_hidden_but_kept() {
    let school = School::new();
    school.write(
        TYPES,
        r#"{"0":{"label":"no id"},"2":"text","5":{"id":"b","note":{"x":[]}},"7":{"id":""},"8":{"id":3},
            "9":{"id":"c","label":null,"color":5},"a":null}"#,
    );
    assert_eq!(
        school.get("get_menu_types").run().ok()["menu_types"],
        json!([
            {"id": "b", "label": "b", "color": "#0d6efd", "note": {"x": []}},
            {"id": "c", "label": "c", "color": "5"},
        ])
    );
    assert_eq!(school.get("get_menu").run().ok()["menu_type"], "b");
    let change = json!({"id": "b", "label": "B"});
    school.post("rename_menu_type").json(&change).run().ok();
    assert_eq!(
        serde_json::from_str::<Value>(&school.read(TYPES)).unwrap(),
        json!([
            {"label": "no id"}, "text", {"id": "b", "note": {"x": []}, "label": "B"}, {"id": ""}, {"id": 3},
            {"id": "c", "label": null, "color": 5}, null,
        ])
    );
    school.write(TYPES, r#"[{"label":"no id"}]"#);
    assert_eq!(school.get("get_menu_types").run().ok()["menu_types"], json!([]));
    school.get("get_menu").run().fails("INVALID_MENU_TYPE");
    school.write(TYPES, "[]");
    assert_eq!(school.get("get_menu").run().ok()["menu_type"], "basal");
    school.post("delete_menu_type").json(&json!({"id": "basal"})).run().ok();
    assert_eq!(school.get("get_menu").run().ok()["menu_type"], "vegetariano");
}

#[test]
fn an_invalid_file_is_logged_and_never_overwritten() {
    let school = School::new();
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for (path, content) in [
        (DAY, "{\"date\":"),
        (DAY, "null"),
        (DAY, "\"x\""),
        (DAY, "12"),
        (DAY, " "),
        (DAY, "{\"menus\":5}"),
        (DAY, "{\"menus\":{\"x\":\"y\"}}"),
        (DAY, "{\"menus\":{\"x\":{\"plates\":true}}}"),
        (DAY, "{\"menus\":{\"x\":{\"plates\":{\"y\":\"z\"}}}}"),
        (DAY, "\u{feff}{}"),
        (DAY, &deep),
        (TYPES, "[{]"),
        (TYPES, "null"),
        ("aula1.json", "{"),
        ("aula1.json", "true"),
    ] {
        let school = School::new();
        school.write(path, content);
        for request in
            [school.get("get_menu").query("date", DATE), school.post("save_menu").json(&save("x"))]
        {
            let answer = request.run();
            assert!(answer.fails("INTERNAL_ERROR").log.contains(path), "{path}: {}", answer.log);
            assert!(!String::from_utf8_lossy(&answer.body).contains(".json"));
        }
        assert_eq!(school.read(path), content);
    }
    for path in [DAY, TYPES, "aula1.json"] {
        let odd = [
            ("folder", (|path| fs::create_dir(path).unwrap()) as fn(&Path)),
            ("link", |path| symlink("/etc/hostname", path).unwrap()),
            ("fifo", |path| drop(output(Command::new("mkfifo").arg(path), "coreutils"))),
            ("long", |path| fs::File::create(path).unwrap().set_len(16 * 1024 * 1024 + 1).unwrap()),
            ("no UTF-8", |path| fs::write(path, b"[\"\xff\"]").unwrap()),
        ];
        for (what, make) in odd {
            school.write(path, "");
            fs::remove_file(school.path(path)).unwrap();
            make(&school.path(path));
            let before = fs::symlink_metadata(school.path(path)).unwrap();
            for request in [
                school.get("get_menu").query("date", DATE),
                school.post("save_menu").json(&save("x")),
            ] {
                let answer = request.run();
                assert!(
                    answer.fails("INTERNAL_ERROR").log.contains(path),
                    "{what}: {}",
                    answer.log
                );
            }
            let after = fs::symlink_metadata(school.path(path)).unwrap();
            assert_eq!((before.ino(), before.len()), (after.ino(), after.len()));
            _ = fs::remove_dir(school.path(path));
            _ = fs::remove_file(school.path(path));
            if path == "aula1.json" {
                school.write(path, "{}");
            }
        }
    }
}

#[test]
fn an_empty_file_counts_as_missing_for_writes_after_ten_seconds() {
    let school = School::new();
    school.write("aula1.json", "");
    for (path, write) in [
        (DAY, school.post("save_menu").json(&save("x"))),
        (TYPES, school.post("delete_menu_type").json(&json!({"id": "alergias"}))),
    ] {
        school.write(path, "");
        school.menu("basal");
        write.run().fails("BUSY");
        assert_eq!(school.read(path), "");
        let file = fs::File::options().append(true).open(school.path(path)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(11)).unwrap();
        write.run().ok();
        assert!(!school.read(path).is_empty());
    }
}

#[test]
fn a_partially_written_file_is_read_again() {
    let school = School::new();
    school.save(save("whole"));
    let whole = school.read(DAY);
    for half in ["", &whole[..whole.len() / 2]] {
        school.write(DAY, half);
        let read = school.get("get_menu").query("date", DATE);
        let answer = read.stopped("clock_nanosleep:when=1", |_| school.write(DAY, &whole));
        assert_eq!(answer.ok()["menu"]["plates"]["primero"]["name"], "whole");
    }
}

#[test]
fn a_save_by_php_between_read_and_rename_is_not_lost() {
    let school = School::new();
    let others = r#"{"date":"2026-11-20","menus":{"basal":{"plates":{"cena":{"name":"PHP"}}}}}"#;
    for before in [None, Some("{\"menus\":{}}")] {
        _ = fs::remove_file(school.path(DAY));
        if let Some(before) = before {
            school.write(DAY, before);
        }
        let save = school.post("save_menu").json(&save("CGI"));
        let answer = save.stopped("fsync:when=1", |_| school.write(DAY, others));
        let plates = answer.ok()["menu"]["plates"].clone();
        assert_eq!(
            (&plates["cena"]["name"], &plates["primero"]["name"]),
            (&json!("PHP"), &json!("CGI"))
        );
        assert_eq!(school.menu("basal")["menu"]["plates"], plates);
    }
}

#[test]
fn a_replaced_file_keeps_owner_group_and_mode() {
    let school = School::new();
    school.save(save("x"));
    let path = school.path(DAY);
    for (owner, group, mode) in [(1234, 4321, 0o640), (0, 0, 0o600), (33, 33, 0o666)] {
        chown(&path, Some(owner), Some(group)).expect("this test needs to run as root");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        school.save(save("y"));
        let now = fs::metadata(&path).unwrap();
        assert_eq!((now.uid(), now.gid(), now.mode() & 0o7777), (owner, group, mode));
    }
}

#[test]
fn a_busy_answer_creates_no_lock_file() {
    let school = School::new();
    school.write(TYPES, "");
    school.post("delete_menu_type").json(&json!({"id": "basal"})).run().fails("BUSY");
    assert!(!school.path(LOCK).exists());
}

#[test]
fn no_file_is_written_that_exceeds_the_limit_for_reading() {
    let school = School::new();
    let entries: Vec<String> = (0..600_000).map(|n| format!("{{\"id\":\"{n}\"}}")).collect();
    let compact = format!("[{}]", entries.join(","));
    school.write(TYPES, &compact);
    let change = school.post("delete_menu_type").json(&json!({"id": "1"}));
    assert!(change.run().fails("INTERNAL_ERROR").log.contains("would be over 16 MiB"));
    assert!(school.read(TYPES) == compact);
}

#[test]
fn the_parent_of_the_aulario_folder_need_not_be_readable() {
    let school = School::new();
    fs::create_dir(school.path("aula1")).unwrap();
    chown(school.path("aula1"), Some(65534), Some(65534)).expect("this test needs to run as root");
    let open = |path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open(school.data().parent().unwrap().to_owned(), 0o755);
    open(school.sessions().join("sess_admin"), 0o644);
    open(school.aularios(), 0o711);
    school.post("save_menu").json(&save("x")).under(AS_NOBODY).run().ok();
}

/// A link in the last part of a path is refused; one that an administrator made of a folder, to
/// have it on another disk, is his to make.
#[test]
fn a_folder_may_be_a_symbolic_link() {
    let school = School::new();
    let other_disk = tempfile::tempdir().unwrap();
    symlink(other_disk.path(), school.path("aula1")).unwrap();
    school.save(save("x"));
    assert!(other_disk.path().join("Comedor/2026-11/20/_datos.json").is_file());
    assert_eq!(school.menu("basal")["menu"]["plates"]["primero"]["name"], "x");
}

/// As `nobody` of group 33, in a school whose files belong to others.
#[test]
fn a_file_of_another_user_is_replaced_only_if_its_group_keeps_access() {
    let school = School::new();
    school.save(save("x"));
    let folders = output(Command::new("find").arg(school.data()).args(["-type", "d"]), "findutils");
    for folder in String::from_utf8(folders).unwrap().lines() {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    for path in [school.data().parent().unwrap(), &school.sessions()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(school.sessions().join("sess_admin"), fs::Permissions::from_mode(0o644))
        .unwrap();
    fs::set_permissions(school.path(LOCK), fs::Permissions::from_mode(0o666)).unwrap();
    let path = school.path(DAY);
    for (owner, group, mode, replaced) in [
        (1234, 33, 0o664, true),
        (1234, 33, 0o644, false),
        (1234, 4321, 0o664, false),
        (1234, 4321, 0o666, false),
        (65534, 33, 0o600, true),
        (65534, 65534, 0o600, true),
    ] {
        chown(&path, Some(owner), Some(group)).expect("this test needs to run as root");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let before = school.read(DAY);
        let before_files = school.files();
        let name = format!("{owner} {group} {mode:o}");
        let user = ["setpriv", "--reuid=65534", "--regid=65534", "--groups=33"];
        let answer = school.post("save_menu").json(&save(&name)).under(&user).run();
        if replaced {
            answer.ok();
            assert!(school.read(DAY).contains(&name));
            let now = fs::metadata(&path).unwrap();
            assert_eq!((now.uid(), now.gid(), now.mode() & 0o7777), (65534, group, mode), "{name}");
        } else {
            assert!(answer.fails("INTERNAL_ERROR").log.contains(DAY), "{}", answer.log);
            assert_eq!(school.read(DAY), before, "{name}");
        }
        assert_eq!(school.files(), before_files, "{name}");
    }
}

#[test]
fn new_files_and_folders_have_the_modes_of_php_less_the_umask() {
    for (umask, file, folder, lock) in [("022", 0o644, 0o755, 0o640), ("002", 0o664, 0o775, 0o660)]
    {
        let school = School::new();
        let save = school.post("save_menu").json(&save("x"));
        save.shell(&format!("umask {umask}; exec \"$0\"")).run().ok();
        let mode = |path| fs::metadata(school.path(path)).unwrap().mode() & 0o7777;
        assert_eq!((mode(DAY), mode(LOCK)), (file, lock));
        for path in ["aula1", "aula1/Comedor", "aula1/Comedor/2026-11", "aula1/Comedor/2026-11/20"]
        {
            assert_eq!(mode(path), folder, "{path}");
        }
    }
}

#[test]
fn the_next_writer_removes_the_temporary_file_of_a_killed_one() {
    let school = School::new();
    let temporary = "aula1/Comedor/2026-11/20/._datos.json.tmp";
    school.save(save("old"));
    let outside = tempfile::NamedTempFile::new().unwrap();
    school.write(temporary, "half");
    fs::set_permissions(school.path(temporary), fs::Permissions::from_mode(0o000)).unwrap();
    school.save(save("new"));
    symlink(outside.path(), school.path(temporary)).unwrap();
    school.save(save("newer"));
    assert_eq!(fs::metadata(outside.path()).unwrap().len(), 0, "a link is removed, not followed");
    assert_eq!(school.menu("basal")["menu"]["plates"]["primero"]["name"], "newer");
    assert_eq!(
        school.files().iter().filter(|path| path.contains("2026-11/20/")).collect::<Vec<_>>(),
        [DAY]
    );
}

#[test]
fn a_failed_write_keeps_the_old_file_and_says_so() {
    let school = School::new();
    school.save(save("old"));
    let (file, files) = (school.read(DAY), school.files());
    for call in ["fsync:error=EIO", "write:error=ENOSPC:when=1", "rename:error=EACCES"] {
        let answer = school.post("save_menu").json(&save("new")).inject(call).run();
        let sentence = answer.fails("INTERNAL_ERROR").value()["error"].to_string();
        assert!(sentence.contains("Nothing was changed"), "{sentence}");
        assert_eq!((school.read(DAY), school.files()), (file.clone(), files.clone()), "{call}");
    }
    // The last flush, of the folder, comes when the new file is in place already.
    let save = school.post("save_menu").json(&save("new"));
    let answer = save.inject("fsync:error=EIO:when=2").run();
    let sentence = answer.fails("INTERNAL_ERROR").value()["error"].to_string();
    assert!(sentence.contains("may have been"), "{sentence}");
    assert!(school.read(DAY).contains("new"));
}

#[test]
fn writers_do_not_wait_for_the_folder_flush_of_another() {
    let school = School::new();
    school.save(save("old"));
    let first = school.post("save_menu").json(&save("first"));
    first.stopped("fsync:when=2", |_| _ = school.save(save("second"))).ok();
    assert_eq!(school.menu("basal")["menu"]["plates"]["primero"]["name"], "second");
}

#[test]
fn a_success_is_on_disk_before_its_answer() {
    let school = School::new();
    let calls = |cgi: &Cgi| {
        let (answer, text) = cgi.trace(&["-y", "-e", "trace=mkdir,fsync,rename,write"]);
        answer.ok();
        let base = school.aularios();
        let calls = text
            .lines()
            .filter(|line| line.contains(base.to_str().unwrap()) || line.starts_with("write(1"));
        calls
            .map(|line| {
                let call = line.split('(').next().unwrap();
                let path = line.split(base.to_str().unwrap()).nth(1).unwrap_or("");
                let path = path.split(['"', '>']).next().unwrap();
                format!("{call} {path}")
            })
            .collect::<Vec<_>>()
    };
    let save = school.post("save_menu").json(&save("x"));
    let place = "/aula1/Comedor/2026-11/20";
    let last = [
        format!("write {place}/._datos.json.tmp"),
        format!("fsync {place}/._datos.json.tmp"),
        format!("rename {place}/._datos.json.tmp"),
        format!("fsync {place}"),
        "write ".to_owned(),
    ];
    // Every new folder is flushed in the one around it, before the file is in place.
    let mut first: Vec<String> =
        ["mkdir /aula1", "fsync ", "mkdir /aula1", "fsync "].map(str::to_owned).into();
    for folder in ["/aula1/Comedor", "/aula1/Comedor/2026-11", place] {
        let around = Path::new(folder).parent().unwrap().display();
        first.extend([format!("mkdir {folder}"), format!("fsync {around}")]);
    }
    first.extend(last.clone());
    assert_eq!(calls(&save), first);
    assert_eq!(calls(&save), last);
}

#[test]
fn a_held_lock_makes_only_its_aulario_busy() {
    let school = School::new();
    school.save(save("x"));
    let lock = fs::File::open(school.path(LOCK)).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    let blocked = school.post("save_menu").json(&save("y")).start();
    school.post("save_menu").aulario("aula2").json(&save("y")).run().ok();
    school.get("get_menu").run().ok();
    Answer::of(blocked).fails("BUSY");
    let waiting = school.post("save_menu").json(&save("z")).start();
    drop(lock);
    Answer::of(waiting).ok();
    assert_eq!(school.menu("basal")["menu"]["plates"]["primero"]["name"], "z");
}
