//! Malicious input: a clear error, no data lost, nothing leaked.

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::support::*;

#[test]
fn invalid_utf8_in_any_variable_gets_a_well_formed_answer() {
    let school = School::new();
    let garbage = OsStr::from_bytes(b"\xff\xfe=;&%\x01\x7f[");
    for name in [
        "QUERY_STRING", "HTTP_COOKIE", "CONTENT_TYPE", "CONTENT_LENGTH", "REQUEST_METHOD",
        "HTTP_ORIGIN", "HTTP_HOST", "HTTP_REFERER", "HTTP_SEC_FETCH_SITE", "PATH_INFO",
        "SCRIPT_NAME", "HTTP_X", "GATEWAY_INTERFACE", "SERVER_NAME", "COMEDOR_SERVICE",
        "COMEDOR_DATA_DIR", "COMEDOR_SESSION_DIR", "COMEDOR_SESSION_NAME",
        "COMEDOR_SESSION_FORMAT", "COMEDOR_TRUSTED_ORIGINS", "TZ",
    ] {
        let write = school.post("delete_menu_type").json(&json!({"id": "no"}));
        for cgi in [write, school.get("get_menu")] {
            let mut command = cgi.command();
            command
                .env(name, garbage)
                .env(OsStr::from_bytes(b"\xff"), garbage);
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
fn deeply_nested_input_is_rejected_without_a_crash() {
    let school = School::new();
    for levels in [5_000, 500_000] {
        let nested = format!("{{\"id\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let write = school
            .post("delete_menu_type")
            .body("application/json", &nested);
        write.run().fails("INVALID_FORMAT");
        let form = format!(
            "plates{}=x&menu_type=basal",
            "[a]".repeat(levels.min(300_000))
        );
        let form = school
            .post("save_menu")
            .body("application/x-www-form-urlencoded", form);
        form.run().fails("INVALID_FORMAT");
    }
}

#[test]
fn many_fields_or_keys_take_at_most_two_seconds_of_a_processor() {
    let school = School::new();
    let keys: Vec<String> = (0..9_998).map(|n| format!("\"k{n}\":0")).collect();
    let body = format!("{{\"id\":\"no\",{}}}", keys.join(","));
    let limited = |cgi: Cgi| cgi.cpu_seconds(2).run();
    let write = school.post("delete_menu_type");
    limited(write.clone().body("application/json", body)).fails("NOT_FOUND");
    for piece in ["k[]=1&", "a[b]=&", "%00&"] {
        let form = format!("id=no&{}", piece.repeat(1_000_000 / piece.len()));
        let form = write
            .clone()
            .body("application/x-www-form-urlencoded", form);
        limited(form).fails("INVALID_FORMAT");
    }
    let plates: Vec<String> = (0..100_000).map(|n| format!("\"p{n}\":{{}}")).collect();
    let day = format!(
        "{{\"menus\":{{\"basal\":{{\"plates\":{{{}}}}}}}}}",
        plates.join(",")
    );
    school.write(DAY, day);
    limited(school.get("get_menu").query("date", DATE)).ok();
    let parts = "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n".repeat(19_000);
    let multipart = "multipart/form-data; boundary=B";
    limited(write.body(multipart, parts + "--B--")).fails("INVALID_FORMAT");
}

/// The most expensive file that we could construct within the limits. No client can create it.
#[test]
fn the_largest_files_take_at_most_two_gibibytes_and_ten_seconds_of_a_processor() {
    let school = School::new();
    let types = "{\"id\":\"%x\"},".repeat(16 * 1024 * 1024 / 12 - 1);
    school.write(TYPES, format!("[{types}0]"));
    for action in ["get_menu_types", "get_menu"] {
        let answer = school.get(action).memory(2 << 30).cpu_seconds(10).run();
        assert_eq!((answer.status, answer.log.as_str()), (200, ""));
    }
}

/// Many requests may be in memory at the same time.
#[test]
fn a_body_has_at_most_10000_values_and_takes_little_memory() {
    let school = School::new();
    let write = |media_type, body: String| {
        school
            .post("save_menu")
            .body(media_type, body)
            .memory(16 << 20)
            .run()
    };
    // The object, the list and what it has.
    for (piece, count) in [
        ("[]", 9_998),
        ("{}", 9_998),
        ("0", 9_998),
        ("[0]", 4_999),
        ("{\"\":0}", 4_999),
    ] {
        let body = |count| format!("{{\"x\":[{}]}}", vec![piece; count].join(","));
        write("application/json", body(count)).fails("MISSING_PARAM");
        for count in [count + 1, (1 << 20) / (piece.len() + 1) - 8] {
            write("application/json", body(count)).fails("INVALID_FORMAT");
        }
    }
    for (fields, code) in [(156, "MISSING_PARAM"), (157, "INVALID_FORMAT")] {
        let form = format!("a{}=&", "[]".repeat(63)).repeat(fields);
        write("application/x-www-form-urlencoded", form).fails(code);
    }
}

#[test]
fn client_input_reaches_neither_headers_nor_log() {
    let school = School::new();
    let evil = "x%0d%0aSet-Cookie:%20a=b";
    for query in ["action", "aulario", "date", "menu"] {
        let answer = school.get("get_menu").query(query, evil).run();
        assert_eq!(answer.headers.len(), 6, "{:?}", answer.headers);
        assert_eq!(answer.log, "");
        assert!(!String::from_utf8_lossy(&answer.body).contains("Cookie"));
    }
    // A path from the settings is escaped, so that it cannot forge a log line.
    let folder = "/no\u{2028}[notice] forged\u{9b}2J";
    let answer = school
        .get("get_menu")
        .set("COMEDOR_SESSION_DIR", folder)
        .run();
    assert_eq!(
        answer
            .fails("INTERNAL_ERROR")
            .log
            .matches(char::is_control)
            .count(),
        1
    );
    assert!(
        answer.log.contains("\\u{2028}[notice] forged\\u{9b}2J"),
        "{}",
        answer.log
    );
}

/// Else one request with a long path could fill the disk that has the log.
#[test]
fn a_line_of_the_log_is_short_however_long_the_input_is() {
    let school = School::new();
    let folder = format!("/{}", "no/".repeat(1000));
    let get = school.get("get_menu").set("COMEDOR_SESSION_DIR", &folder);
    let answer = get.run();
    let log = &answer.fails("INTERNAL_ERROR").log;
    assert!(log.contains("/no/no/"), "{log}");
    assert!(log.len() < 2100, "{}", log.len());
}

#[test]
fn a_rejected_body_is_drained_and_the_answer_does_not_wait_for_its_end() {
    let school = School::new();
    let rejected = school
        .get("save_menu")
        .method("POST")
        .set("CONTENT_LENGTH", "3000000");
    let mut child = rejected.command().spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // More than a pipe holds, so the program must be reading.
    input.write_all(&vec![b' '; 2_000_000]).unwrap();
    Answer::of(child).fails("TOO_LARGE");
    drop(input);
}

#[test]
fn a_write_is_kept_if_its_answer_cannot_be_written() {
    let school = School::new();
    let is_kept = |run: &str, stdout: Stdio, stderr: Stdio| {
        let save = school.post("save_menu").json(&save(run)).shell(run);
        let mut child = save.send(save.command().stdout(stdout).stderr(stderr));
        assert!(child.wait().unwrap().success(), "{run}");
        assert_eq!(
            school.menu("basal")["menu"]["plates"]["primero"]["name"],
            run
        );
    };
    // The web server has closed the connection.
    let closed = || Stdio::from(OwnedFd::from(std::io::pipe().unwrap().1));
    is_kept("exec \"$0\"", closed(), closed());
    for run in [
        "exec \"$0\" >&-", "exec \"$0\" >/dev/full 2>/dev/full", "exec \"$0\" 2>&-",
    ] {
        is_kept(run, Stdio::null(), Stdio::null());
    }
    // An error is answered even if standard error is closed.
    let get = school.get("get_menu").set("COMEDOR_SERVICE", "/");
    assert_eq!(get.shell("exec \"$0\" 2>&-").run().status, 500);
}
