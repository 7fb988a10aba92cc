//! The data files: what the program accepts, what it creates and what it never changes.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use crate::support::site::wait_until;
use crate::support::*;

#[test]
fn lists_are_accepted_in_place_of_maps_and_stay_lists() {
    let school = School::new();
    school.write(
        TYPES,
        r#"[{"id":"0","label":"Cero"},{"id":"1","label":"Uno"}]"#,
    );
    school.write(
        DAY,
        r#"{"date":"2026-11-20","menus":[{"plates":[{"name":"A"}]},{"plates":[]}]}"#,
    );
    assert_eq!(school.menu("0")["menu"]["plates"]["0"]["name"], "A");
    let body = json!({"date": DATE, "menu_type": "1", "plates": [{"name": "B"}, {}]});
    school.save(body);
    assert_eq!(
        serde_json::from_str::<Value>(&school.read(DAY)).unwrap()["menus"],
        json!([{"plates": [{"name": "A"}]}, {"plates": [{"name": "B", "pictogram": ""}]}])
    );
    for empty in [
        "[]", "{}", r#"{"menus":[]}"#, r#"{"menus":null}"#, r#"{"menus":{"basal":[]}}"#,
    ] {
        let school = School::new();
        school.write(DAY, empty);
        assert_eq!(school.menu("basal")["menu"]["plates"]["postre"]["name"], "");
        school.save(save("Sopa"));
        assert_eq!(
            school.menu("basal")["menu"]["plates"]["primero"]["name"],
            "Sopa",
            "{empty}"
        );
    }
}

#[test]
fn unusable_entries_of_a_type_file_are_hidden_but_kept() {
    let school = School::new();
    school.write(
        TYPES,
        r#"{"0":{"label":"no id"},"2":"text","5":{"id":"b","note":{"x":[]}},"7":{"id":""},"8":{"id":3},"9b":{"id":true},
            "9":{"id":"c","label":null,"color":5},"a":null,"d":{"id":"d","label":[]}}"#,
    );
    assert_eq!(
        school.get("get_menu_types").run().ok()["menu_types"],
        json!([
            {"id": "b", "label": "b", "color": "#0d6efd", "note": {"x": []}},
            {"id": "3", "label": "3", "color": "#0d6efd"},
            {"id": "c", "label": "c", "color": "5"},
            {"id": "d", "label": "d", "color": "#0d6efd"},
        ])
    );
    assert_eq!(school.get("get_menu").run().ok()["menu_type"], "b");
    let change = json!({"id": "b", "label": "B"});
    school.post("rename_menu_type").json(&change).run().ok();
    assert_eq!(
        serde_json::from_str::<Value>(&school.read(TYPES)).unwrap(),
        json!([
            {"label": "no id"}, "text", {"id": "b", "note": {"x": []}, "label": "B"}, {"id": ""}, {"id": 3}, {"id": true},
            {"id": "c", "label": null, "color": 5}, null, {"id": "d", "label": []},
        ])
    );
    school.write(TYPES, r#"[{"label":"no id"}]"#);
    assert_eq!(
        school.get("get_menu_types").run().ok()["menu_types"],
        json!([])
    );
    school.get("get_menu").run().fails("INVALID_MENU_TYPE");
    school.write(TYPES, "[]");
    assert_eq!(school.get("get_menu").run().ok()["menu_type"], "basal");
    school
        .post("delete_menu_type")
        .json(&json!({"id": "basal"}))
        .run()
        .ok();
    assert_eq!(
        school.get("get_menu").run().ok()["menu_type"],
        "vegetariano"
    );
}

#[test]
fn a_menu_or_plate_of_the_wrong_kind_fails_alone_and_survives_every_write() {
    let school = School::new();
    for wrong in [
        json!("x"),
        json!(true),
        json!(5),
        json!({"plates": "x"}),
        json!({"plates": {"primero": {"name": "A"}, "postre": "x"}}),
    ] {
        let mut day = json!({
            "date": DATE,
            "menus": {"basal": wrong, "alergias": {"plates": {"primero": {"name": "B"}}}},
        });
        school.write(DAY, day.to_string());
        assert_eq!(
            school.menu("alergias")["menu"]["plates"]["primero"]["name"],
            "B"
        );
        let menu = school.save(json!({"date": DATE, "menu_type": "vegetariano", "plates": {}}));
        day["menus"]["vegetariano"] = menu["menu"].clone();
        assert_eq!(
            serde_json::from_str::<Value>(&school.read(DAY)).unwrap(),
            day
        );
        let get = school
            .get("get_menu")
            .query("date", DATE)
            .query("menu", "basal");
        for request in [get, school.post("save_menu").json(&save("C"))] {
            let answer = request.run();
            let log = &answer.fails("INTERNAL_ERROR").log;
            assert!(log.contains(&format!("{DAY}: menus.basal")), "{log}");
            assert!(log.contains("is not a map"), "{log}");
        }
        assert_eq!(
            serde_json::from_str::<Value>(&school.read(DAY)).unwrap(),
            day
        );
    }
}

#[test]
fn an_invalid_file_is_logged_and_never_overwritten() {
    let refused = |school: &School, path: &str| {
        let file = || fs::symlink_metadata(school.path(path)).unwrap();
        let before = file();
        for request in [
            school.get("get_menu").query("date", DATE),
            school.post("save_menu").json(&save("x")),
        ] {
            let answer = request.run();
            assert!(
                answer.fails("INTERNAL_ERROR").log.contains(path),
                "{path}: {}",
                answer.log
            );
            assert!(!String::from_utf8_lossy(&answer.body).contains(".json"));
        }
        assert_eq!((before.ino(), before.len()), (file().ino(), file().len()));
    };
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for (path, content) in [
        (DAY, "{\"date\":"),
        (DAY, "null"),
        (DAY, "\"x\""),
        (DAY, "12"),
        (DAY, " "),
        (DAY, "{\"menus\":5}"),
        // PHP reads this number, but cannot write it.
        (DAY, "{\"menus\":{\"basal\":{\"kcal\":1e999}}}"),
        (DAY, "\u{feff}{}"),
        (DAY, &deep),
        (TYPES, "[{]"),
        (TYPES, "null"),
        ("aula1.json", "{"),
        ("aula1.json", "true"),
    ] {
        let school = School::new();
        school.write(path, content);
        refused(&school, path);
        assert_eq!(school.read(path), content);
    }
    let odd: [fn(&Path); 5] = [
        |path| fs::create_dir(path).unwrap(),
        |path| symlink("/etc/hostname", path).unwrap(),
        |path| drop(output(Command::new("mkfifo").arg(path), "coreutils")),
        |path| {
            fs::File::create(path)
                .unwrap()
                .set_len(16 * 1024 * 1024 + 1)
                .unwrap()
        },
        |path| fs::write(path, b"[\"\xff\"]").unwrap(),
    ];
    for (path, make) in [DAY, TYPES, "aula1.json"]
        .into_iter()
        .flat_map(|path| odd.map(|make| (path, make)))
    {
        let school = School::new();
        school.write(path, "");
        fs::remove_file(school.path(path)).unwrap();
        make(&school.path(path));
        refused(&school, path);
    }
}

/// An empty configuration may become one that shows the menus of another aulario, so that a save would not
/// be seen. For a read it is one without settings.
#[test]
fn an_empty_file_is_busy_for_ten_seconds_and_then_counts_as_missing() {
    for (path, aulario, action, body) in [
        (DAY, "aula1", "save_menu", save("x")),
        (
            TYPES,
            "aula1",
            "delete_menu_type",
            json!({"id": "alergias"}),
        ),
        ("compartida.json", "compartida", "save_menu", save("x")),
    ] {
        let school = School::new();
        school.write(path, "");
        let files = school.files();
        let is_configuration = aulario == "compartida";
        let read = school.get("get_menu").query("date", DATE).aulario(aulario);
        let write = school.post(action).aulario(aulario).json(&body);
        let is_busy = |request: &Cgi| {
            let log = request.run().fails("BUSY").log.clone();
            assert!(log.contains(&format!("{path}: it is empty")), "{log}");
        };
        if is_configuration {
            _ = read.run().ok()
        } else {
            is_busy(&read)
        }
        is_busy(&write);
        assert_eq!(school.files(), files, "not even a lock");
        let now = SystemTime::now();
        let make = |time| {
            school.write(path, "");
            fs::File::open(school.path(path))
                .unwrap()
                .set_modified(time)
                .unwrap();
        };
        make(now + Duration::from_secs(5));
        is_busy(&write);
        // A time far in the future is from a wrong clock.
        for old in [
            now - Duration::from_secs(11),
            now + Duration::from_secs(3600),
        ] {
            make(old);
            read.run().ok();
            write.run().ok();
            assert_eq!(school.read(path).is_empty(), is_configuration);
        }
    }
}

#[test]
fn a_file_over_the_limit_for_reading_is_never_written() {
    let school = School::new();
    let save_beside = |note: usize| {
        school.write(DAY, json!({"note": "x".repeat(note)}).to_string());
        school.post("save_menu").json(&save("Sopa")).run()
    };
    save_beside(0).ok();
    let limit = 16 * 1024 * 1024;
    let rest = limit - school.read(DAY).len();
    save_beside(rest).ok();
    assert_eq!(school.read(DAY).len(), limit);
    let answer = save_beside(rest + 1);
    let log = &answer.fails("INTERNAL_ERROR").log;
    assert!(log.contains("would become larger than 16 MiB"), "{log}");
    assert!(!school.read(DAY).contains("Sopa"));
}

/// A symbolic link in the last part of a path is rejected. A folder may be a symbolic link, for
/// example to another disk.
#[test]
fn a_folder_may_be_a_symbolic_link() {
    let school = School::new();
    let other_disk = tempfile::tempdir().unwrap();
    symlink(other_disk.path(), school.path("aula1")).unwrap();
    school.save(save("x"));
    assert!(
        other_disk
            .path()
            .join("Comedor/2026-11/20/_datos.json")
            .is_file()
    );
    assert_eq!(
        school.menu("basal")["menu"]["plates"]["primero"]["name"],
        "x"
    );
}

/// To a disk that is not mounted, for example.
#[test]
fn a_folder_that_is_a_link_to_nothing_is_an_error_for_reads_and_writes() {
    let month = "aula1/Comedor/2026-11";
    for folder in ["", "aula1", "aula1/Comedor", month, &format!("{month}/20")] {
        let school = School::with_menu("x");
        let path = school.path(folder);
        fs::remove_dir_all(&path).unwrap();
        let path = path.to_str().unwrap().trim_end_matches('/');
        symlink("/nonexistent/disk", path).unwrap();
        for request in [
            school.get("get_menu").query("date", DATE),
            school.post("save_menu").json(&save("y")),
        ] {
            let log = request.run().fails("INTERNAL_ERROR").log.clone();
            let cause = format!("{path}: follow the symbolic link: No such file or directory");
            assert!(log.contains(&cause), "{log}");
        }
    }
}

#[test]
fn read_that_fails_at_a_system_call_shows_no_menu_but_that_of_the_source() {
    let school = School::in_memory();
    school.save(save("of the source"));
    let own = school.read(DAY).replace("of the source", "of its own");
    school.write(&DAY.replace("aula1", "compartida"), own);
    let request = school.get("get_menu").aulario("compartida");
    let request = request.query("date", DATE);
    let mut call = 0;
    loop {
        let (mut program, mut made) = (request.trace_calls(), 0);
        while let Some(stop) = program.next() {
            if stop.result.is_none() {
                if made == call {
                    program.skip(-i64::from(libc::EIO));
                }
                made += 1;
            }
        }
        let stdout = program.output().stdout;
        let answer = String::from_utf8_lossy(&stdout);
        assert!(!answer.contains("of its own"), "call {call}: {answer}");
        let is_read = answer.contains(r#""success":true"#);
        assert!(!is_read || answer.contains("of the source"), "{answer}");
        if call >= made {
            assert!(is_read, "{answer}");
            break;
        }
        call += 1;
    }
}

/// The pages show the menus of the source, so those of the aulario itself must not be shown or changed.
#[test]
fn a_source_that_exists_and_cannot_be_used_is_an_error_for_reads_and_writes() {
    let school = School::new();
    school.write(".oculta.json", "{}");
    school.write("Aula de Música.json", "{}");
    symlink("aula1.json", school.path("enlace.json")).unwrap();
    symlink("nothing", school.path("roto.json")).unwrap();
    fs::create_dir(school.path("carpeta.json")).unwrap();
    fs::write(school.data().join("Centros/centro1/fuera.json"), "{}").unwrap();
    let requests = |source: &str| {
        school.write(
            "aula2.json",
            json!({"shared_comedor_from": source}).to_string(),
        );
        [
            school.get("get_menu_types").aulario("aula2"),
            school.get("get_menu").aulario("aula2"),
            school.post("save_menu").aulario("aula2").json(&save("x")),
        ]
    };
    for source in [".oculta", "Aula de Música", "enlace", "roto", "carpeta"] {
        for request in requests(source) {
            let log = request.run().fails("INTERNAL_ERROR").log.clone();
            assert!(
                log.contains("/Aularios/aula2.json: shared_comedor_from names"),
                "{log}"
            );
            assert!(
                log.contains(&format!("/Aularios/{source}.json, wh")),
                "{log}"
            );
        }
        assert!(!school.path("aula2").exists(), "{source}");
    }
    // Nothing outside of the folder is looked up.
    let outside = school.data().join("Centros/centro1/fuera");
    let long = "x".repeat(300);
    for source in [
        "../fuera",
        "aula1/../../fuera",
        outside.to_str().unwrap(),
        "aula1\0",
        "otra",
        &long,
    ] {
        for request in requests(source) {
            request.run().ok();
        }
    }
}

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

#[test]
fn a_lock_makes_only_its_aulario_busy() {
    let school = School::with_menu("x");
    let lock = fs::File::open(school.path(LOCK)).unwrap();
    lock.lock().unwrap();
    let blocked = school.post("save_menu").json(&save("y")).start();
    school
        .post("save_menu")
        .aulario("aula2")
        .json(&save("y"))
        .run()
        .ok();
    school.get("get_menu").run().ok();
    Answer::of(blocked).fails("BUSY");
}

#[test]
fn a_write_waits_ten_seconds_for_all_its_locks_together() {
    let school = School::with_menu("x");
    let old = fs::File::open(school.path(LOCK)).unwrap();
    old.lock().unwrap();
    let new = fs::File::create(school.path("new")).unwrap();
    new.lock().unwrap();
    let of_aula2 = school.post("save_menu").aulario("aula2").json(&save("y"));
    of_aula2.run().ok();
    let path_of_aula2 = school.path("aula2/.comedor.lock");
    let other = fs::File::open(&path_of_aula2).unwrap();
    other.lock().unwrap();
    let blocked = school.post("save_menu").json(&save("y")).start();
    wait_until("a write waits", || {
        waiting(&school.path(LOCK)) == [blocked.id()]
    });
    let started = Instant::now();
    wait_until("half of the time has passed", || {
        started.elapsed() > Duration::from_secs(5)
    });
    let mut later = of_aula2.start();
    wait_until("a later write waits", || {
        waiting(&path_of_aula2) == [later.id()]
    });
    fs::rename(school.path("new"), school.path(LOCK)).unwrap();
    old.unlock().unwrap();
    // With ten seconds for its second lock it would end after the later one, which waits for one lock.
    Answer::of(blocked).fails("BUSY");
    assert_eq!(later.try_wait().unwrap(), None);
    Answer::of(later).fails("BUSY");
}
