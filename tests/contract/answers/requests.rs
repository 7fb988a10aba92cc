//! Methods, query parameters and request bodies.

use super::*;

#[test]
fn reads_accept_get_head_and_post_and_writes_accept_only_post() {
    let school = School::new();
    for action in ["get_menu_types", "get_menu"] {
        for method in ["GET", "POST"] {
            school
                .get(action)
                .method(method)
                .body(JSON, "{ignored")
                .run()
                .ok();
        }
        let get = school.get(action).query("date", DATE).run();
        let head = school.get(action).query("date", DATE).method("HEAD").run();
        assert_eq!(
            (head.status, &head.headers, head.body.len()),
            (200, &get.headers, 0)
        );
        for method in ["PUT", "DELETE", "OPTIONS", "get", ""] {
            let rejected = school.get(action).method(method).run();
            assert_eq!(
                rejected.fails("INVALID_ACTION").header("Allow"),
                Some("GET, HEAD, POST")
            );
        }
    }
    for action in [
        "save_menu", "add_menu_type", "rename_menu_type", "delete_menu_type",
    ] {
        for method in ["GET", "PUT"] {
            let rejected = school.post(action).method(method).run();
            assert_eq!(
                rejected.fails("INVALID_ACTION").header("Allow"),
                Some("POST")
            );
        }
        let head = school.post(action).method("HEAD").run();
        assert_eq!(
            (head.status, head.header("Allow"), head.body.len()),
            (400, Some("POST"), 0)
        );
    }
    assert!(
        !school.path("aula1").exists(),
        "a rejected request creates nothing"
    );
}

/// Two generators take the action of an operation as a plain string, so that a client can send another one.
#[test]
fn a_path_that_ends_with_another_action_is_refused_before_anything_is_done() {
    let school = School::new();
    let another = "action is delete_menu_type, but the path ends with rename_menu_type.";
    for (variable, path, sentence) in [
        ("PATH_INFO", "/rename_menu_type", Some(another)),
        ("PATH_INFO", "/rename_menu_type/", Some(another)),
        (
            "PATH_INFO",
            "/entreaulas/api/comedor.php/rename_menu_type",
            Some(another),
        ),
        (
            "SCRIPT_NAME",
            "/api/comedor.php/rename_menu_type",
            Some(another),
        ),
        ("PATH_INFO", "/delete_menu_type", None),
        ("PATH_INFO", "/rename_menu_type/x", None),
        ("PATH_INFO", "/rename_menu_types", None),
        ("PATH_INFO", "/Rename_menu_type", None),
        ("PATH_INFO", "/entreaulas/api/comedor.php", None),
        ("PATH_INFO", "/\u{fffd}", None),
        ("PATH_INFO", "/", None),
        ("PATH_INFO", "", None),
        ("SCRIPT_NAME", "/entreaulas/api/comedor.php", None),
    ] {
        let delete = school.post("delete_menu_type").set(variable, path);
        let answer = delete.json(&json!({"id": "none"})).run();
        match sentence {
            Some(sentence) => {
                assert_eq!(
                    answer.fails("INVALID_ACTION").value()["error"],
                    sentence,
                    "{path}"
                );
            }
            None => drop(answer.fails("NOT_FOUND")),
        }
    }
    let unknown = school.get("x").set("PATH_INFO", "/get_menu").run();
    let sentence = unknown.fails("INVALID_ACTION").value()["error"].clone();
    assert!(
        sentence.as_str().unwrap().starts_with("action must be "),
        "{sentence}"
    );
    assert!(!school.path("aula1").exists());
}

#[test]
fn parameters_come_from_the_query_and_the_last_duplicate_counts() {
    let school = School::new();
    let read = |query: &str| school.get("").set("QUERY_STRING", query);
    let raw = |query: &str| read(query).run();
    raw("action=x&aulario=no&action=get_menu_types&aulario=aula1").ok();
    raw("action=get%5Fmenu_types&+aulario=aula1&aulario[]=x&action[0]=y").ok();
    raw("action=get_menu&aulario=aula1&menu=&date=").ok();
    raw("aulario=aula1&action=").fails("INVALID_ACTION");
    raw("aulario=aula1").fails("INVALID_ACTION");
    raw("aulario=aula1&action=GET_MENU").fails("INVALID_ACTION");
    raw("action=get_menu&aulario[]=aula1").fails("MISSING_PARAM");
    raw("").fails("MISSING_PARAM");
    // PHP drops the pairs after the first thousand.
    let after = |count| format!("{}action=get_menu_types&aulario=aula1", "a&&".repeat(count));
    raw(&after(998)).ok();
    raw(&after(999)).fails("MISSING_PARAM");
    for id in [
        "+aula1",
        ".x",
        "a%2Fb",
        "..",
        "a%00",
        "%ff",
        "a+b",
        &"a".repeat(251),
    ] {
        raw(&format!("action=get_menu&aulario={id}")).fails("INVALID_FORMAT");
    }
    raw(&format!("action=get_menu&aulario={}", "a".repeat(250))).fails("NOT_FOUND");
    // The fields of a write come only from its body.
    let cgi = school
        .post("add_menu_type")
        .query("id", "x")
        .query("label", "X");
    cgi.run().fails("MISSING_PARAM");
}

/// EntreAulas' pages make ids of 68 and 78 characters.
#[test]
fn ids_of_aularios_and_centres_have_up_to_250_characters() {
    let school = School::new();
    for length in [68, 78, 250] {
        let id = "a".repeat(length);
        school.write(&format!("../../{id}/Aularios/{id}.json"), "{}");
        school.log_in("long", session_of(&id, ADMIN));
        let save = school.post("save_menu").json(&save("Sopa"));
        save.session("long").aulario(&id).run().ok();
        let read = school
            .get("get_menu")
            .query("date", DATE)
            .session("long")
            .aulario(&id);
        assert_eq!(read.run().ok()["menu"]["plates"]["primero"]["name"], "Sopa");
    }
}

#[test]
fn a_body_is_json_or_a_form_or_multipart() {
    let school = School::new();
    let multipart = "--B\r\nContent-Disposition: form-data; name=\"menu_type\"\r\n\r\nbasal\r\n--B\r\n\
                     Content-Disposition: form-data; name=\"date\"\r\n\r\n2026-11-20\r\n--B\r\n\
                     Content-Disposition: form-data; name=\"f\"; filename=\"x.png\"\r\nContent-Type: image/png\r\n\r\n\u{89}\r\n--B\r\n\
                     Content-Disposition: form-data; name=\"plates[primero][name]\"\r\n\r\nÑoquis & más\r\n--B--\r\n";
    let json =
        r#"{"menu_type":"basal","date":"2026-11-20","plates":{"primero":{"name":"Ñoquis & más"}}}"#;
    let form = "menu_type=basal&date=2026-11-20&plates%5Bprimero%5D[name]=%C3%91oquis+%26+más";
    for (content_type, body) in [
        (JSON, json),
        ("Application/JSON; charset=utf-8", json),
        (JSON, &format!(" \n{json}\n")),
        (FORM, json),
        ("", json),
        ("text/plain", json),
        (FORM, form),
        ("application/x-www-form-urlencoded;charset=UTF-8", form),
        ("multipart/form-data; boundary=B", multipart),
        ("Multipart/Form-Data; Boundary=\"B\"", multipart),
    ] {
        let school = School::new();
        let answer = school.post("save_menu").body(content_type, body).run();
        println!("{content_type}: {body}");
        assert_eq!(
            answer.ok()["menu"]["plates"],
            plates("Ñoquis & más", "", "")
        );
        assert_eq!(
            school.menu("basal")["menu"]["plates"],
            plates("Ñoquis & más", "", "")
        );
    }
    for (content_type, body) in [
        (JSON, "x".as_bytes()),
        (JSON, b"[]"),
        (JSON, b"null"),
        (JSON, b" "),
        (FORM, b"id=%ff&label=x"),
        (FORM, b"id=\xff&label=x"),
        (FORM, "id=x&".repeat(1001).as_bytes()),
        (
            "multipart/form-data; boundary=B",
            b"--B\nContent-Disposition: form-data; name=id\n\nno\n--B--\n",
        ),
        ("text/plain", b"id=x"),
        ("", b"id=x"),
    ] {
        println!("{content_type}: {}", body.escape_ascii());
        school
            .post("delete_menu_type")
            .body(content_type, body)
            .run()
            .fails("INVALID_FORMAT");
    }
    let (no_map, no_json) = (
        "menu_type=basal&plates[primero][name=x", " {\"id\":\"basal\"}",
    );
    school
        .post("save_menu")
        .body(FORM, no_map)
        .run()
        .fails("INVALID_FORMAT");
    school
        .post("delete_menu_type")
        .body(FORM, no_json)
        .run()
        .fails("MISSING_PARAM");
    for content_type in [JSON, FORM, "multipart/form-data", "x/y", ""] {
        school
            .post("delete_menu_type")
            .body(content_type, "")
            .run()
            .fails("MISSING_PARAM");
    }
    school
        .post("delete_menu_type")
        .body(FORM, "id=basal&&".repeat(1000))
        .run()
        .ok();
}

#[test]
fn a_body_ends_at_its_content_length_or_else_at_end_of_file() {
    let school = School::new();
    let body = r#"{"id":"basal","label":"B"}"#;
    let post = || school.post("rename_menu_type").body(JSON, body);
    for (length, code) in [
        ("27", "INVALID_FORMAT"),
        ("25", "INVALID_FORMAT"),
        ("+26", "INVALID_FORMAT"),
        ("26 ", "INVALID_FORMAT"),
        ("0", "MISSING_PARAM"),
        ("1048577", "TOO_LARGE"),
        ("104857600", "TOO_LARGE"),
        ("99999999999999999999999999", "TOO_LARGE"),
    ] {
        println!("{length}");
        post().set("CONTENT_LENGTH", length).run().fails(code);
    }
    post()
        .body(JSON, format!("{body} trailing"))
        .set("CONTENT_LENGTH", "26")
        .run()
        .ok();
    post().set("CONTENT_LENGTH", "").run().ok();
    // Caddy's FastCGI client sends a chunked body with this length.
    let unknown = post().set("CONTENT_LENGTH", "-1").run();
    if by_fastcgi() {
        unknown.ok();
    } else {
        unknown.fails("INVALID_FORMAT");
    }
    post()
        .unset("CONTENT_LENGTH")
        .set("HTTP_TRANSFER_ENCODING", "chunked")
        .run()
        .ok();

    let filled = |size: usize| {
        format!(
            "{{\"id\":\"basal\",\"label\":\"B\",\"x\":\"{}\"}}",
            "y".repeat(size - 33)
        )
    };
    let full = filled(1024 * 1024);
    assert_eq!(full.len(), 1024 * 1024);
    post().body(JSON, &full).run().ok();
    post().body(JSON, &full).unset("CONTENT_LENGTH").run().ok();
    let over = filled(1024 * 1024 + 1);
    post().body(JSON, &over).run().fails("TOO_LARGE");
    post()
        .body(JSON, &over)
        .unset("CONTENT_LENGTH")
        .run()
        .fails("TOO_LARGE");
}
