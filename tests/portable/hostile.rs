//! Input that nobody sends by accident: a clear error, nothing lost, nothing leaked.

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::support::*;

#[test]
fn bytes_that_are_no_utf8_are_answered_in_every_variable() {
    let school = School::new();
    let garbage = OsStr::from_bytes(b"\xff\xfe=;&%\x01\x7f[");
    for name in [
        "QUERY_STRING",
        "HTTP_COOKIE",
        "CONTENT_TYPE",
        "CONTENT_LENGTH",
        "REQUEST_METHOD",
        "HTTP_ORIGIN",
        "HTTP_HOST",
        "HTTP_SEC_FETCH_SITE",
        "PATH_INFO",
        "HTTP_X",
        "GATEWAY_INTERFACE",
        "SERVER_NAME",
        "COMEDOR_SERVICE",
        "COMEDOR_DATA_DIR",
        "COMEDOR_SESSION_DIR",
        "COMEDOR_SESSION_NAME",
        "COMEDOR_SESSION_FORMAT",
        "COMEDOR_SESSION_MAX_AGE",
        "COMEDOR_TRUSTED_ORIGINS",
        "TZ",
    ] {
        let write = school.post("delete_menu_type").json(&json!({"id": "no"}));
        for cgi in [write, school.get("get_menu")] {
            let mut command = cgi.command();
            command.env(name, garbage).env(OsStr::from_bytes(b"\xff"), garbage);
            let answer = Answer::of(command.stdin(Stdio::null()).spawn().unwrap());
            if answer.status != 200 {
                let body = answer.value();
                let log = &answer.fails(body["code"].as_str().unwrap()).log;
                assert!(log.matches(char::is_control).count() <= 1, "{log}");
            }
        }
    }
}

#[test]
fn nested_arrays_are_refused_without_a_crash() {
    let school = School::new();
    for levels in [5_000, 500_000] {
        let nested = format!("{{\"id\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let write = school.post("delete_menu_type").body("application/json", &nested);
        write.run().fails("INVALID_FORMAT");
        let form = format!("plates{}=x&menu_type=basal", "[a]".repeat(levels.min(300_000)));
        let form = school.post("save_menu").body("application/x-www-form-urlencoded", form);
        form.run().fails("MISSING_PARAM");
    }
    school.log_in("deep", format!("x|{}", "a:1:{i:0;".repeat(5_000)));
    school.get("get_menu").session("deep").run().fails("INVALID_SESSION");
}

#[test]
fn many_fields_or_keys_take_no_time_to_speak_of() {
    let school = School::new();
    let keys: Vec<String> = (0..80_000).map(|n| format!("\"k{n}\":0")).collect();
    let body = format!("{{\"id\":\"no\",{}}}", keys.join(","));
    let limited = |cgi: Cgi| cgi.under(&["prlimit", "--cpu=2"]).run();
    let write = school.post("delete_menu_type");
    limited(write.clone().body("application/json", body)).fails("NOT_FOUND");
    for piece in ["k[]=1&", "a[b]=&", "%00&"] {
        let form = format!("id=no&{}", piece.repeat(1_000_000 / piece.len()));
        let form = write.clone().body("application/x-www-form-urlencoded", form);
        limited(form).fails("INVALID_FORMAT");
    }
    let plates: Vec<String> = (0..100_000).map(|n| format!("\"p{n}\":{{}}")).collect();
    let day = format!("{{\"menus\":{{\"basal\":{{\"plates\":{{{}}}}}}}}}", plates.join(","));
    school.write("aula1/Comedor/2026-11/20/_datos.json", day);
    limited(school.get("get_menu").query("date", DATE)).ok();
    let parts = "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n".repeat(19_000);
    let multipart = "multipart/form-data; boundary=B";
    limited(write.body(multipart, parts + "--B--")).fails("INVALID_FORMAT");
}

/// The worst that we could build within the limits; no client can make such a file.
#[test]
fn the_largest_files_stay_within_two_gibibytes_and_ten_seconds() {
    let school = School::new();
    let types = "{\"id\":\"%x\"},".repeat(16 * 1024 * 1024 / 12 - 1);
    school.write("aula1/Comedor-MenuTypes.json", format!("[{types}0]"));
    let bounded = ["prlimit", "--as=2147483648", "--cpu=10"];
    school.get("get_menu_types").under(&bounded).run().ok();
    school.get("get_menu").under(&bounded).run().ok();
}

#[test]
fn what_a_client_sends_reaches_no_header_and_no_log() {
    let school = School::new();
    let evil = "x%0d%0aSet-Cookie:%20a=b";
    for query in ["action", "aulario", "date", "menu"] {
        let answer = school.get("get_menu").query(query, evil).run();
        assert_eq!(answer.headers.len(), 5, "{:?}", answer.headers);
        assert_eq!(answer.log, "");
        assert!(!String::from_utf8_lossy(&answer.body).contains("Cookie"));
    }
    // A path of the administrator's is escaped, so that it can't look like a line of its own.
    let answer =
        school.get("get_menu").set("COMEDOR_SESSION_DIR", "/no\n[notice] forged\u{1b}[2J").run();
    assert_eq!(answer.fails("INTERNAL_ERROR").log.matches(char::is_control).count(), 1);
    assert!(answer.log.contains("\\n[notice]"));
}

#[test]
fn a_body_that_is_refused_is_read_to_its_end_and_a_client_that_stops_is_left() {
    let school = School::new();
    let refused = school.get("save_menu").method("POST").set("CONTENT_LENGTH", "3000000");
    let mut child = refused.command().spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // More than fits into a pipe: somebody reads it.
    input.write_all(&vec![b' '; 2_000_000]).unwrap();
    Answer::of(child).fails("TOO_LARGE");
    drop(input);
}

#[test]
fn a_server_that_has_gone_away_loses_no_write() {
    let school = School::new();
    let save = school.post("save_menu").json(&save("stored"));
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(OwnedFd::from(writer))
    };
    let mut child = save.send(save.command().stdout(closed()).stderr(closed()));
    assert!(child.wait().unwrap().success());
    assert_eq!(school.menu("basal")["menu"]["plates"]["primero"]["name"], "stored");
    // With no standard error at all, an error is still answered.
    let get = school.get("get_menu").set("COMEDOR_SERVICE", "/");
    assert_eq!(get.shell("exec \"$0\" 2>&-").run().status, 500);
}
