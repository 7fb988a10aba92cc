//! Session files that PHP wrote, malformed ones, and the times of session files.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::support::*;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/sessions");

/// Files that PHP reads and never writes, and comedor refuses: duplicate keys, and a sign of a count.
const REFUSED: [&str; 4] = [
    "-dup_keys.", "-neg_zero_key", "-obj_dup_prop", "-object_extra_plus",
];

/// Files that PHP wrote, and odd ones written by hand, each with what PHP reads from it.
#[test]
fn session_files_are_decoded_as_php_decodes_them() {
    let expectations = fs::read(Path::new(FIXTURES).join("expect.json")).unwrap();
    let expectations: Vec<Value> = serde_json::from_slice(&expectations).unwrap();
    assert_eq!(
        expectations.len(),
        fs::read_dir(FIXTURES).unwrap().count() - 1
    );
    let school = School::new();
    for case in expectations {
        let text = |key: &str| case[key].as_str().unwrap_or("any").to_owned();
        let (file, centro, aulario) = (text("file"), text("centro"), text("aulario"));
        school.write(&format!("../../{centro}/Aularios/{aulario}.json"), "{}");
        let content = fs::read(Path::new(FIXTURES).join(&file)).unwrap();
        let path = school.log_in("fixture", &content);

        let read = school
            .get("get_menu_types")
            .session("fixture")
            .aulario(&aulario);
        let answer = read.set("COMEDOR_SESSION_FORMAT", text("handler")).run();
        let code = match answer.status {
            200 => "OK".to_owned(),
            _ => answer.value()["code"].as_str().unwrap().to_owned(),
        };
        let (expected, accepted) = (text("answer"), case["php_decodes"] == true);
        let is_refused = REFUSED.iter().any(|name| file.contains(name));
        let expected = if is_refused {
            "INVALID_SESSION"
        } else {
            &expected
        };
        assert_eq!(code, expected, "{file} {}", answer.log);
        if code == "INVALID_SESSION" {
            let is_unreadable = answer.value()["reason"] == "format";
            assert!(is_unreadable || accepted && !is_refused, "{file}");
            assert!(!is_unreadable || !answer.log.is_empty(), "{file}");
        }
        assert!(
            accepted || !answer.log.is_empty(),
            "{file} is refused without a log line"
        );
        assert_eq!(fs::read(path).unwrap(), content, "{file} is unchanged");
    }
}

#[test]
fn a_request_keeps_its_session_alive_however_old_the_file_is() {
    let school = School::new();
    let path = school.sessions().join("sess_teacher");
    let age = |seconds| {
        let time = SystemTime::now() - Duration::from_secs(seconds);
        File::open(&path).unwrap().set_modified(time).unwrap();
    };
    let seconds_old = || {
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        modified.elapsed().unwrap_or_default().as_secs()
    };
    age(90_000);
    school.get("get_menu").run().ok();
    assert!(seconds_old() < 60);
    age(1100);
    fs::write(&path, "not a session").unwrap();
    age(1100);
    school.get("get_menu").run().invalid_session("format");
    assert!(seconds_old() >= 1100, "a refused session is not kept alive");
}

#[test]
fn a_folder_in_the_place_of_a_session_is_no_session() {
    let school = School::new();
    fs::create_dir(school.sessions().join("sess_folder")).unwrap();
    let answer = school.get("get_menu").session("folder").run();
    let log = &answer.invalid_session("format").log;
    assert!(log.contains("not a regular file"), "{log}");
}

/// PHP accepts such an id, and finds no file.
#[test]
fn an_id_that_is_too_long_for_the_name_of_a_file_is_no_session() {
    let school = School::new();
    let answer = school.get("get_menu").session(&"a".repeat(256)).run();
    assert_eq!(answer.invalid_session("session").log, "");
}

/// With the whole id, a reader of the log could act as the user.
#[test]
fn the_log_names_an_unusable_session_by_the_start_of_its_id() {
    let school = School::new();
    school.log_in("abcdefghij", "auth_ok|x");
    let answer = school.get("get_menu").session("abcdefghij").run();
    let log = &answer.fails("INVALID_SESSION").log;
    assert!(log.contains("/sess_abcd…"), "{log}");
    assert!(!log.contains("abcde"), "{log}");
}
