//! The content of a file: what is accepted, and what is never overwritten.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

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
