//! Rejected requests: the code of each error and the order of the checks.

use super::*;

/// `tests/servers/openapi` compares the limits of single values with those of the document.
#[test]
fn missing_fields_are_reported_before_invalid_ones_and_those_before_an_unknown_type() {
    let school = School::new();
    let save = |plates: Value| json!({"date": DATE, "menu_type": "basal", "plates": plates});
    let many = |count| {
        (0..count)
            .map(|n| (format!("p{n}"), plate("x")))
            .collect::<Value>()
    };
    for (action, body, code) in [
        ("save_menu", json!({}), "MISSING_PARAM"),
        ("save_menu", json!({"menu_type": "basal"}), "MISSING_PARAM"),
        ("save_menu", json!({"plates": {}}), "MISSING_PARAM"),
        (
            "save_menu",
            json!({"menu_type": " \u{b}\0", "plates": {}}),
            "MISSING_PARAM",
        ),
        (
            "save_menu",
            json!({"menu_type": null, "plates": {}, "date": "x"}),
            "MISSING_PARAM",
        ),
        (
            "save_menu",
            json!({"menu_type": 5, "plates": null}),
            "MISSING_PARAM",
        ),
        (
            "save_menu",
            json!({"menu_type": 5, "plates": {}}),
            "INVALID_MENU_TYPE",
        ),
        (
            "save_menu",
            json!({"menu_type": true, "plates": {}}),
            "INVALID_FORMAT",
        ),
        (
            "save_menu",
            json!({"menu_type": "no", "plates": {}, "date": "26-1-1"}),
            "INVALID_FORMAT",
        ),
        (
            "save_menu",
            json!({"menu_type": "basal", "plates": {}, "date": " "}),
            "INVALID_FORMAT",
        ),
        (
            "save_menu",
            json!({"menu_type": "no", "plates": {}, "date": 20261120}),
            "INVALID_FORMAT",
        ),
        ("save_menu", save(json!("x")), "INVALID_FORMAT"),
        ("save_menu", save(json!(["x"])), "INVALID_FORMAT"),
        ("save_menu", save(json!({"a": ["x"]})), "INVALID_FORMAT"),
        ("save_menu", save(json!({"a b": {}})), "INVALID_FORMAT"),
        ("save_menu", save(json!({"": {}})), "INVALID_FORMAT"),
        ("save_menu", save(json!({"é": {}})), "INVALID_FORMAT"),
        ("save_menu", save(json!({"a": "x"})), "INVALID_FORMAT"),
        (
            "save_menu",
            save(json!({"a": {"name": false}})),
            "INVALID_FORMAT",
        ),
        (
            "save_menu",
            save(json!({"a": {"name": [5]}})),
            "INVALID_FORMAT",
        ),
        // The three plates that every menu has make it 67.
        ("save_menu", save(many(64)), "INVALID_FORMAT"),
        (
            "save_menu",
            json!({"menu_type": "no", "plates": {}}),
            "INVALID_MENU_TYPE",
        ),
        ("add_menu_type", json!({"label": "x"}), "MISSING_PARAM"),
        ("add_menu_type", json!({"id": "x"}), "MISSING_PARAM"),
        (
            "add_menu_type",
            json!({"id": "x", "label": " "}),
            "MISSING_PARAM",
        ),
        (
            "add_menu_type",
            json!({"id": "ñ/", "label": "x"}),
            "MISSING_PARAM",
        ),
        (
            "add_menu_type",
            json!({"id": ["x"], "label": "x"}),
            "INVALID_FORMAT",
        ),
        (
            "add_menu_type",
            json!({"id": "basal", "label": {}}),
            "INVALID_FORMAT",
        ),
        (
            "add_menu_type",
            json!({"id": true, "label": 1}),
            "INVALID_FORMAT",
        ),
        (
            "add_menu_type",
            json!({"id": "basal", "label": "x", "color": "red"}),
            "INVALID_FORMAT",
        ),
        (
            "add_menu_type",
            json!({"id": "x", "label": "x", "color": "#12345g"}),
            "INVALID_FORMAT",
        ),
        (
            "add_menu_type",
            json!({"id": " BASAL ", "label": "x"}),
            "DUPLICATE",
        ),
        ("rename_menu_type", json!({"label": "x"}), "MISSING_PARAM"),
        ("rename_menu_type", json!({"id": "no"}), "MISSING_PARAM"),
        (
            "rename_menu_type",
            json!({"id": "no", "label": " ", "color": null}),
            "MISSING_PARAM",
        ),
        (
            "rename_menu_type",
            json!({"id": "no", "color": "#fff"}),
            "INVALID_FORMAT",
        ),
        (
            "rename_menu_type",
            json!({"id": "no", "label": {}}),
            "INVALID_FORMAT",
        ),
        (
            "rename_menu_type",
            json!({"id": "no", "label": "x"}),
            "NOT_FOUND",
        ),
        ("delete_menu_type", json!({}), "MISSING_PARAM"),
        ("delete_menu_type", json!({"id": false}), "INVALID_FORMAT"),
        ("delete_menu_type", json!({"id": "no"}), "NOT_FOUND"),
    ] {
        let answer = school.post(action).json(&body).run();
        println!("{action} {body}");
        answer.fails(code);
    }
    assert!(
        !school.path("aula1").exists(),
        "a rejected request creates nothing"
    );
    school.save(save(many(61)));
    let one_more = save(json!({"more": {"name": "x"}}));
    school
        .post("save_menu")
        .json(&one_more)
        .run()
        .fails("INVALID_FORMAT");
}

#[test]
fn a_centre_that_is_there_and_cannot_be_used_is_named_in_the_log() {
    let school = School::new();
    let read = |centre: &str| {
        school.log_in("x", session_of(centre, ADMIN));
        let answer = school.get("get_menu").session("x").run();
        let sentence = answer.invalid_session("centre").value()["error"].clone();
        (sentence, answer.log)
    };
    let none = ("The session has no centre.".into(), String::new());
    assert_eq!(read(""), none);
    for (centre, named) in [
        ("Colegio San José", "\"Colegio San José\""),
        ("x\ny", "\"x\\ny\""),
        (".centro1", "\".centro1\""),
        (&"a".repeat(251), "aaa\""),
    ] {
        let (sentence, log) = read(centre);
        assert_eq!(sentence, "The centre in the session cannot be used.");
        let cause = "comedor: get_menu aula1: the session's centre must be 1 to 250 characters ";
        assert!(
            log.starts_with(cause) && log.ends_with(&format!("{named}\n")),
            "{log}"
        );
    }
    for other in ["N;", "b:1;", "d:1.5;", "a:0:{}"] {
        school.log_in("x", session(ADMIN).replace("s:7:\"centro1\";", other));
        let answer = school.get("get_menu").session("x").run();
        assert_eq!(
            answer.invalid_session("centre").value()["error"],
            none.0,
            "{other}"
        );
    }
}

/// Each request also fails every later check; the first one that fails determines the answer.
#[test]
fn checks_run_in_the_documented_order() {
    let school = School::new();
    school.log_in(
        "logged-out",
        session(ADMIN).replace("auth_ok|b:1;", "auth_ok|b:0;"),
    );
    school.log_in("nowhere", session_of("../x", &[]));
    school.log_in("pupil", session(&[]));
    school.log_in("sysadmin", session(&["sysadmin:access"]));
    let narrow = |aulas: &str| {
        let all = session(TEACHER).replace("s:7:\"service\";a:1:", "s:7:\"service\";a:2:");
        all.replace(
            "\"centro1\";}}",
            &format!("\"centro1\";s:5:\"aulas\";{aulas}}}}}"),
        )
    };
    school.log_in("narrow", narrow("a:2:{s:1:\"x\";s:5:\"aula2\";i:0;i:7;}"));
    school.log_in("none", narrow("N;"));
    let worst = school
        .get("no")
        .method("PUT")
        .set("CONTENT_LENGTH", "100000000")
        .session("no");
    let worst = worst
        .aulario("")
        .set("HTTP_SEC_FETCH_SITE", "cross-site")
        .body("x/y", "x");

    let cgi = worst.clone().set("CONTENT_LENGTH", "100000000");
    cgi.run().fails("TOO_LARGE");
    cgi.set("CONTENT_LENGTH", "1x")
        .run()
        .fails("INVALID_FORMAT");
    for (session, reason) in [
        ("no", "session"),
        ("logged-out", "session"),
        ("nowhere", "centre"),
    ] {
        let answer = worst.clone().session(session).run();
        answer.invalid_session(reason);
    }
    for session in ["pupil", "sysadmin"] {
        worst.clone().session(session).run().forbidden("docente");
    }
    let cgi = worst.session("narrow");
    cgi.run().fails("MISSING_PARAM");
    cgi.clone().aulario("a/b").run().fails("INVALID_FORMAT");
    cgi.clone().aulario("aula1").run().forbidden("aulario");
    cgi.clone()
        .session("none")
        .aulario("aula1")
        .run()
        .forbidden("aulario");
    let cgi = cgi.aulario("7");
    cgi.run().fails("INVALID_ACTION");
    let cgi = cgi.query("action", "save_menu");
    cgi.run().fails("NOT_FOUND");
    let cgi = cgi.session("teacher").aulario("compartida");
    assert_eq!(
        cgi.run().fails("INVALID_ACTION").header("Allow"),
        Some("POST")
    );
    let cgi = cgi.method("POST");
    cgi.run().forbidden("sysadmin");
    let cgi = cgi.session("admin");
    cgi.run().forbidden("shared");
    let cgi = cgi.aulario("aula1");
    cgi.run().forbidden("origin");
    let cgi = cgi.set("HTTP_SEC_FETCH_SITE", "same-origin");
    cgi.run().fails("INVALID_FORMAT");
    cgi.body("x/y", "").run().fails("MISSING_PARAM");
}

/// `tests/servers/openapi` has the sentences.
#[test]
fn listed_access_also_requires_the_permission_to_enter_and_a_list_of_aularios() {
    let school = School::new();
    let enter = &["service:docente", "service:access"];
    let of_aula1 = "s:7:\"service\";a:2:{s:5:\"aulas\";a:1:{i:0;s:5:\"aula1\";}";
    let listed = |permissions| session(permissions).replace("s:7:\"service\";a:1:{", of_aula1);
    school.log_in("teacher-of-aula1", listed(TEACHER));
    school.log_in("without-list", session(enter));
    school.log_in("both", listed(enter));
    for (session, aulario, centre, listed) in [
        ("teacher-of-aula1", "aula1", None, Some("access")),
        ("without-list", "aula1", None, Some("aulas")),
        ("both", "aula1", None, None),
        ("both", "aula2", Some("aulario"), Some("aulario")),
    ] {
        let get = school.get("get_menu").session(session).aulario(aulario);
        for (access, reason) in [("centre", centre), ("listed", listed)] {
            let answer = get.clone().set("COMEDOR_ACCESS", access).run();
            println!("{session} {aulario} {access}");
            match reason {
                None => _ = answer.ok(),
                Some(reason) => answer.forbidden(reason),
            }
        }
    }
    // Before the parameters, as the permission to read.
    let get = school.get("no").set("COMEDOR_ACCESS", "listed").aulario("");
    get.run().forbidden("access");
}

#[test]
fn writes_from_another_site_are_rejected() {
    let school = School::new();
    let write = || {
        school
            .post("rename_menu_type")
            .json(&json!({"id": "basal", "label": "B"}))
    };
    let (own, foreign) = ("http://school.example", "https://evil.example");
    let trusted = "https://trusted.example";
    // `Sec-Fetch-Site`, `Origin`, `Referer`, and whether the write is accepted
    for (site, origin, referer, is_accepted) in [
        ("", "", "", true),
        ("same-origin", "", "", true),
        // A proxy has changed `Host`.
        ("same-origin", foreign, foreign, true),
        ("none", "", "", true),
        ("none", own, "", true),
        ("none", "", "https://evil.example/", true),
        ("none", foreign, "", false),
        ("none", "null", "", false),
        ("none", trusted, "", true),
        ("cross-site", "", "", false),
        ("same-site", "", "", false),
        ("cross-site", own, "", false),
        ("cross-site", trusted, "", true),
        ("cross-site", "", "https://trusted.example/", false),
        ("cross-site, cross-site", "", "", false),
        ("same-origin, same-origin", own, "", false),
        ("Cross-Site", "", "", false),
        ("Same-Origin", own, "", false),
        ("unknown", own, "", false),
        ("unknown", trusted, "", true),
        ("", own, "https://evil.example/", true),
        ("", foreign, "http://school.example/", false),
        (
            "",
            "",
            "http://school.example/menu?a=https://evil.example/",
            true,
        ),
        ("", "", "https://School.Example:443#x", true),
        ("", "", "http://school.example", true),
        ("", "", "https://trusted.example/page", true),
        ("", "", "https://a.es/page", true),
        ("", "", "https://evil.example/", false),
        ("", "", "https://evil.example", false),
        ("", "", "http://evil.example?http://school.example/", false),
        ("", "", "http://school.example:8080/", false),
        ("", "", "http://school.example@evil.example/", false),
        ("", "", "http://trusted.example/page", false),
        ("", "", "/menu", false),
        ("", "", "about:blank", false),
        ("", "", "null", false),
    ] {
        println!("{site:?} {origin:?} {referer:?}");
        let answer = write()
            .set("COMEDOR_TRUSTED_ORIGINS", format!("{trusted},https://a.es"))
            .set("HTTP_HOST", "school.example")
            .set("HTTP_SEC_FETCH_SITE", site)
            .set("HTTP_ORIGIN", origin)
            .set("HTTP_REFERER", referer)
            .run();
        if is_accepted {
            answer.ok();
        } else {
            answer.forbidden("origin");
        }
    }
    let from = |origin, host| write().set("HTTP_ORIGIN", origin).set("HTTP_HOST", host);
    for (origin, host) in [
        ("http://School.Example:80", "school.example"),
        ("http://school.example", "School.example"),
        ("https://school.example", "school.example:443"),
        ("https://school.example", "school.example:80"),
        ("http://school.example:443", "school.example:443"),
        ("http://school.example:8080", "school.example:8080"),
        ("http://[::1]:8080", "[::1]:8080"),
        ("http://[::1]", "[::1]:80"),
    ] {
        println!("{origin} {host}");
        from(origin, host).run().ok();
    }
    for (origin, host) in [
        ("http://evil.example", "school.example"),
        ("http://school.example.evil.example", "school.example"),
        ("null", "school.example"),
        ("null", "null"),
        ("http://", ""),
        ("http://school.example:8080", "school.example"),
        ("http://school.example:443", "school.example"),
        ("http://school.example:", "school.example"),
        ("http://school.example:8080:80", "school.example:8080"),
        ("http://school.example:8080:80", "school.example"),
        ("http://school.example:80:80", "school.example:80"),
        ("http://school.example", "school.example:x:80"),
        ("http://[::1]", "[::2]"),
        ("http://[::1", "[::1"),
        ("http://a:b]", "a:b]"),
    ] {
        println!("{origin} {host}");
        from(origin, host).run().fails("FORBIDDEN");
        from(origin, host)
            .set("HTTP_SEC_FETCH_SITE", "unknown")
            .run()
            .fails("FORBIDDEN");
    }
    write()
        .unset("HTTP_HOST")
        .set("HTTP_ORIGIN", "http://school.example")
        .run()
        .ok();
    let trusting = write().set(
        "COMEDOR_TRUSTED_ORIGINS", "https://a.example, https://B.example",
    );
    let site = |site| trusting.clone().set("HTTP_SEC_FETCH_SITE", site);
    for origin in ["https://b.example", "https://B.example:443"] {
        site("cross-site").set("HTTP_ORIGIN", origin).run().ok();
    }
    for origin in [
        "http://b.example", "http://b.example:443", "https://b.example:80",
    ] {
        site("cross-site")
            .set("HTTP_ORIGIN", origin)
            .run()
            .fails("FORBIDDEN");
        trusting
            .clone()
            .set("HTTP_ORIGIN", origin)
            .run()
            .fails("FORBIDDEN");
    }
    site("cross-site").run().fails("FORBIDDEN");
    // Cross-site reads are allowed: without CORS headers, the other page cannot see the answer.
    school
        .get("get_menu")
        .set("HTTP_SEC_FETCH_SITE", "cross-site")
        .run()
        .ok();
}
