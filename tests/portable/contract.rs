//! Every row of the contract: actions, fields, codes, and the order of the checks.

use crate::support::*;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

fn defaults() -> Value {
    json!([
        {"id": "basal", "label": "Menú basal", "color": "#0d6efd"},
        {"id": "vegetariano", "label": "Menú vegetariano", "color": "#198754"},
        {"id": "alergias", "label": "Menú alergias", "color": "#dc3545"},
    ])
}

fn plate(name: &str) -> Value {
    json!({"name": name, "pictogram": ""})
}

fn plates(primero: &str, segundo: &str, postre: &str) -> Value {
    json!({"primero": plate(primero), "segundo": plate(segundo), "postre": plate(postre)})
}

/// The day that it is in `zone`, else in the system's.
fn today(zone: Option<&str>) -> String {
    let mut date = std::process::Command::new("date");
    if let Some(zone) = zone {
        date.env("TZ", zone);
    } else {
        date.env_remove("TZ");
    }
    let day = output(date.arg("+%F"), "coreutils");
    String::from_utf8(day).unwrap().trim().to_owned()
}

#[test]
fn an_aulario_without_data_has_three_types_and_empty_menus_and_reading_writes_nothing() {
    let school = School::new();
    let before = school.files();
    assert_eq!(
        school.get("get_menu_types").run().ok(),
        json!({"success": true, "menu_types": defaults()})
    );
    assert_eq!(
        school.get("get_menu").query("date", DATE).run().ok(),
        json!({
            "success": true, "date": DATE, "menu_type": "basal", "menu_types": defaults(),
            "menu": {"plates": plates("", "", "")},
        })
    );
    assert_eq!(school.files(), before);
}

#[test]
fn a_menu_is_saved_and_read_back_by_day_and_type() {
    let school = School::new();
    let saved = school.save(json!({
        "date": DATE, "menu_type": "alergias",
        "plates": {"primero": {"name": " Sopa\n"}, "extra-1": {"name": "Pan", "pictogram": "x.png"}},
    }));
    let mut expected = plates("Sopa", "", "");
    expected["extra-1"] = plate("Pan");
    assert_eq!(
        saved,
        json!({
            "success": true, "date": DATE, "menu_type": "alergias", "menu": {"plates": expected},
        })
    );
    assert_eq!(school.menu("alergias")["menu"]["plates"], expected);
    assert_eq!(school.menu("basal")["menu"]["plates"], plates("", "", ""));
    let other_day = school.get("get_menu").query("date", "2026-11-19").query("menu", "alergias");
    assert_eq!(other_day.run().ok()["menu"]["plates"], plates("", "", ""));

    // A later save changes the names that it is sent and nothing else.
    school.save(json!({
        "date": DATE, "menu_type": "alergias",
        "plates": {"segundo": {"name": "Pollo"}, "primero": {}, "postre": null, "extra-1": {"name": null},
                   "never": {}, "neither": []},
    }));
    expected["segundo"] = plate("Pollo");
    assert_eq!(school.menu("alergias")["menu"]["plates"], expected);
    // An empty name is a name.
    school.save(json!({
        "date": DATE, "menu_type": "alergias", "plates": {"segundo": {"name": "  "}},
    }));
    expected["segundo"] = plate("");
    assert_eq!(school.menu("alergias")["menu"]["plates"], expected);
}

#[test]
fn without_a_date_it_is_today() {
    let school = School::new();
    let before = today(None);
    let body = json!({"menu_type": "basal", "plates": {"primero": {"name": "Hoy"}}});
    let saved = school.save(body)["date"].clone();
    let empty = json!({"date": "", "menu_type": "basal", "plates": []});
    school.save(empty);
    let null = json!({"date": null, "menu_type": "basal", "plates": {}});
    school.save(null);
    let read = school.get("get_menu").query("date", "").run().ok();
    assert!([before.clone(), today(None)].map(Value::from).contains(&saved), "{saved}");
    if before == today(None) {
        assert_eq!(read["date"], before);
        assert_eq!(read["menu"]["plates"], plates("Hoy", "", ""));
    }
}

#[test]
fn the_first_save_stores_three_plates_even_when_it_names_none() {
    let school = School::new();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": {}}));
    let file = school.read("aula1/Comedor/2026-11/20/_datos.json");
    assert_eq!(
        serde_json::from_str::<Value>(&file).unwrap(),
        json!({"date": DATE, "menus": {"basal": {"plates": plates("", "", "")}}})
    );
}

#[test]
fn types_are_added_changed_and_deleted() {
    let school = School::new();
    assert_eq!(
        school
            .post("add_menu_type")
            .json(&json!({"id": " Sin Sal/A b\u{f1}.c ", "label": " Sin sal "}))
            .run()
            .ok(),
        json!({
            "success": true, "message": "Menu type added.",
            "menu_type": {"id": "ab.c", "label": "Sin sal", "color": "#0d6efd"},
        })
    );
    assert_eq!(
        school
            .post("rename_menu_type")
            .json(&json!({"id": "ab.c", "label": null, "color": "#ABCDEF"}))
            .run()
            .ok(),
        json!({
            "success": true, "message": "Menu type changed.",
            "menu_type": {"id": "ab.c", "label": "Sin sal", "color": "#ABCDEF"},
        })
    );
    let renamed = school.post("rename_menu_type").json(&json!({"id": "basal", "label": "Normal"}));
    renamed.run().ok();
    assert_eq!(
        school.post("delete_menu_type").json(&json!({"id": "vegetariano"})).run().ok(),
        json!({"success": true, "message": "Menu type deleted."})
    );
    assert_eq!(
        school.get("get_menu_types").run().ok()["menu_types"],
        json!([
            {"id": "basal", "label": "Normal", "color": "#0d6efd"},
            {"id": "alergias", "label": "Menú alergias", "color": "#dc3545"},
            {"id": "ab.c", "label": "Sin sal", "color": "#ABCDEF"},
        ])
    );
}

#[test]
fn the_menus_of_a_deleted_type_come_back_with_it() {
    let school = School::new();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": {"primero": {"name": "A"}}}));
    school.post("delete_menu_type").json(&json!({"id": "basal"})).run().ok();
    school.get("get_menu").query("menu", "basal").run().fails("INVALID_MENU_TYPE");
    assert_eq!(school.get("get_menu").run().ok()["menu_type"], "vegetariano");
    school.post("add_menu_type").json(&json!({"id": "basal", "label": "B"})).run().ok();
    assert_eq!(school.menu("basal")["menu"]["plates"]["primero"]["name"], "A");
}

#[test]
fn an_id_is_looked_up_as_sent_and_then_cleaned() {
    let school = School::new();
    let types = r#"[{"id":"Mayor 1","label":"M"},{"id":"basal","label":"B"}]"#;
    school.write("aula1/Comedor-MenuTypes.json", types);
    for (sent, found) in [
        ("Mayor%201", "Mayor 1"),
        ("basal", "basal"),
        ("%20x/basal/%20", "basal"),
        ("bas%C3%B1al", "basal"),
    ] {
        assert_eq!(school.menu(sent)["menu_type"], found, "{sent}");
    }
    for unknown in ["BASAL", "mayor%201", "basal%00x"] {
        let read = school.get("get_menu").query("menu", unknown);
        read.run().fails("INVALID_MENU_TYPE");
    }
}

#[test]
fn reads_answer_get_head_and_post_and_writes_only_post() {
    let school = School::new();
    for action in ["get_menu_types", "get_menu"] {
        for method in ["GET", "POST"] {
            school.get(action).method(method).body(JSON, "{ignored").run().ok();
        }
        let get = school.get(action).query("date", DATE).run();
        let head = school.get(action).query("date", DATE).method("HEAD").run();
        assert_eq!((head.status, &head.headers, head.body.len()), (200, &get.headers, 0));
        for method in ["PUT", "DELETE", "OPTIONS", "get", ""] {
            let refused = school.get(action).method(method).run();
            assert_eq!(refused.fails("INVALID_ACTION").header("Allow"), Some("GET, HEAD, POST"));
        }
    }
    for action in ["save_menu", "add_menu_type", "rename_menu_type", "delete_menu_type"] {
        for method in ["GET", "PUT"] {
            let refused = school.post(action).method(method).run();
            assert_eq!(refused.fails("INVALID_ACTION").header("Allow"), Some("POST"));
        }
        let head = school.post(action).method("HEAD").run();
        assert_eq!((head.status, head.header("Allow"), head.body.len()), (400, Some("POST"), 0));
    }
    assert!(!school.path("aula1").exists(), "a refused request creates nothing");
}

#[test]
fn fields_are_checked_absent_ones_first_then_format_then_the_type() {
    let school = School::new();
    let long = |length| "ñ".repeat(length);
    let many = |count| (0..count).map(|n| (format!("p{n}"), plate("x"))).collect::<Value>();
    for (action, body, code) in [
        ("save_menu", json!({}), "MISSING_PARAM"),
        ("save_menu", json!({"menu_type": "basal"}), "MISSING_PARAM"),
        ("save_menu", json!({"plates": {}}), "MISSING_PARAM"),
        ("save_menu", json!({"menu_type": " \u{b}\0", "plates": {}}), "MISSING_PARAM"),
        ("save_menu", json!({"menu_type": null, "plates": {}, "date": "x"}), "MISSING_PARAM"),
        ("save_menu", json!({"menu_type": 5, "plates": null}), "MISSING_PARAM"),
        ("save_menu", json!({"menu_type": 5, "plates": {}}), "INVALID_FORMAT"),
        (
            "save_menu",
            json!({"menu_type": "no", "plates": {}, "date": "20-11-2026"}),
            "INVALID_FORMAT",
        ),
        ("save_menu", json!({"menu_type": "basal", "plates": {}, "date": " "}), "INVALID_FORMAT"),
        (
            "save_menu",
            json!({"menu_type": "basal", "plates": {}, "date": 20261120}),
            "INVALID_FORMAT",
        ),
        ("save_menu", json!({"menu_type": "basal", "plates": "x"}), "INVALID_FORMAT"),
        ("save_menu", json!({"menu_type": "basal", "plates": ["x"]}), "INVALID_FORMAT"),
        ("save_menu", json!({"menu_type": "basal", "plates": {"a": ["x"]}}), "INVALID_FORMAT"),
        ("save_menu", json!({"menu_type": "basal", "plates": {"a b": {}}}), "INVALID_FORMAT"),
        ("save_menu", json!({"menu_type": "basal", "plates": {"": {}}}), "INVALID_FORMAT"),
        ("save_menu", json!({"menu_type": "basal", "plates": {"é": {}}}), "INVALID_FORMAT"),
        ("save_menu", json!({"menu_type": "basal", "plates": {"a": "x"}}), "INVALID_FORMAT"),
        (
            "save_menu",
            json!({"menu_type": "basal", "plates": {"a": {"name": 5}}}),
            "INVALID_FORMAT",
        ),
        (
            "save_menu",
            json!({"menu_type": "basal", "plates": {"a": {"name": long(2001)}}}),
            "INVALID_FORMAT",
        ),
        ("save_menu", json!({"menu_type": "basal", "plates": many(65)}), "INVALID_FORMAT"),
        // Together with the three of every menu there would be 67.
        ("save_menu", json!({"menu_type": "basal", "plates": many(64)}), "INVALID_FORMAT"),
        ("save_menu", json!({"menu_type": "no", "plates": {}}), "INVALID_MENU_TYPE"),
        ("add_menu_type", json!({"label": "x"}), "MISSING_PARAM"),
        ("add_menu_type", json!({"id": "x"}), "MISSING_PARAM"),
        ("add_menu_type", json!({"id": "x", "label": " "}), "MISSING_PARAM"),
        ("add_menu_type", json!({"id": "ñ/", "label": "x"}), "MISSING_PARAM"),
        ("add_menu_type", json!({"id": ["x"], "label": "x"}), "INVALID_FORMAT"),
        ("add_menu_type", json!({"id": "a".repeat(65), "label": "x"}), "INVALID_FORMAT"),
        ("add_menu_type", json!({"id": "x", "label": long(201)}), "INVALID_FORMAT"),
        ("add_menu_type", json!({"id": "basal", "label": 1}), "INVALID_FORMAT"),
        ("add_menu_type", json!({"id": "basal", "label": "x", "color": "red"}), "INVALID_FORMAT"),
        (
            "add_menu_type",
            json!({"id": "basal", "label": "x", "color": "#12345g"}),
            "INVALID_FORMAT",
        ),
        ("add_menu_type", json!({"id": " BASAL ", "label": "x"}), "DUPLICATE"),
        ("rename_menu_type", json!({"label": "x"}), "MISSING_PARAM"),
        ("rename_menu_type", json!({"id": "no"}), "MISSING_PARAM"),
        ("rename_menu_type", json!({"id": "no", "label": " ", "color": null}), "MISSING_PARAM"),
        ("rename_menu_type", json!({"id": "no", "color": "#fff"}), "INVALID_FORMAT"),
        ("rename_menu_type", json!({"id": "no", "label": {}}), "INVALID_FORMAT"),
        ("rename_menu_type", json!({"id": "no", "label": "x"}), "NOT_FOUND"),
        ("delete_menu_type", json!({}), "MISSING_PARAM"),
        ("delete_menu_type", json!({"id": false}), "INVALID_FORMAT"),
        ("delete_menu_type", json!({"id": "no"}), "NOT_FOUND"),
    ] {
        let answer = school.post(action).json(&body).run();
        println!("{action} {body}");
        answer.fails(code);
    }
    assert!(!school.path("aula1").exists(), "a refused request creates nothing");

    // The limits themselves are within.
    school
        .post("add_menu_type")
        .json(&json!({"id": "a".repeat(64), "label": long(200)}))
        .run()
        .ok();
    let mut most = many(61);
    most["p0"]["name"] = long(2000).into();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": most}));
    let key = "k".repeat(64);
    let full = json!({"date": DATE, "menu_type": "basal", "plates": {key: {"name": "x"}}});
    school.post("save_menu").json(&full).run().fails("INVALID_FORMAT");
}

#[test]
fn dates_are_days_of_the_calendar() {
    let school = School::new();
    for date in ["2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31"] {
        assert_eq!(school.get("get_menu").query("date", date).run().ok()["date"], date);
    }
    for date in [
        "2026-02-29",
        "1900-02-29",
        "2026-13-01",
        "2026-00-01",
        "2026-01-00",
        "2026-1-1",
        "2026-01-011",
        "+026-01-01",
        "2026/01/01",
        "%202026-01-01",
        "2026-01-01%0A",
        "0000-01-01",
        "today",
        "٢٠٢٦-٠١-٠١",
    ] {
        let answer = school.get("get_menu").query("date", date).query("menu", "no").run();
        println!("{date}");
        answer.fails("INVALID_FORMAT");
    }
}

/// Each request lacks everything from its own check on; the first check that fails answers.
#[test]
fn checks_come_in_the_order_of_the_contract() {
    let school = School::new();
    school.log_in("nobody", session(ADMIN).replace("auth_ok|b:1;", "auth_ok|b:0;"));
    school.log_in("nowhere", session_of("../x", &[]));
    school.log_in("pupil", session(&[]));
    school.log_in("sysadmin", session(&["sysadmin:access"]));
    let narrow = |aulas: &str| {
        let all = session(TEACHER).replace("s:7:\"service\";a:1:", "s:7:\"service\";a:2:");
        all.replace("\"centro1\";}}", &format!("\"centro1\";s:5:\"aulas\";{aulas}}}}}"))
    };
    school.log_in("narrow", narrow("a:2:{s:1:\"x\";s:5:\"aula2\";i:0;i:7;}"));
    school.log_in("none", narrow("N;"));
    let worst = school.get("no").method("PUT").set("CONTENT_LENGTH", "100000000").session("no");
    let worst = worst.aulario("").set("HTTP_SEC_FETCH_SITE", "cross-site").body("x/y", "x");

    let cgi = worst.clone().set("CONTENT_LENGTH", "100000000");
    cgi.run().fails("TOO_LARGE");
    cgi.set("CONTENT_LENGTH", "1x").run().fails("INVALID_FORMAT");
    for session in ["no", "nobody", "nowhere"] {
        worst.clone().session(session).run().fails("INVALID_SESSION");
    }
    for session in ["pupil", "sysadmin"] {
        worst.clone().session(session).run().fails("FORBIDDEN");
    }
    let cgi = worst.session("narrow");
    cgi.run().fails("MISSING_PARAM");
    cgi.clone().aulario("a/b").run().fails("INVALID_FORMAT");
    cgi.clone().aulario("aula1").run().fails("FORBIDDEN");
    cgi.clone().session("none").aulario("aula1").run().fails("FORBIDDEN");
    let cgi = cgi.aulario("7");
    cgi.run().fails("INVALID_ACTION");
    let cgi = cgi.query("action", "save_menu");
    cgi.run().fails("NOT_FOUND");
    let cgi = cgi.session("teacher").aulario("compartida");
    assert_eq!(cgi.run().fails("INVALID_ACTION").header("Allow"), Some("POST"));
    let cgi = cgi.method("POST");
    let permission = cgi.run().value();
    let cgi = cgi.session("admin");
    let sharing = cgi.run().value();
    let cgi = cgi.aulario("aula1");
    let site = cgi.run().value();
    for forbidden in [&permission, &sharing, &site] {
        assert_eq!(forbidden["code"], "FORBIDDEN");
    }
    assert!(permission != sharing && sharing != site && site != permission);
    let cgi = cgi.set("HTTP_SEC_FETCH_SITE", "same-origin");
    cgi.run().fails("INVALID_FORMAT");
    cgi.body("x/y", "").run().fails("MISSING_PARAM");
}

#[test]
fn parameters_come_from_the_query_and_the_last_of_a_name_counts() {
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
    for id in [".x", "a%2Fb", "..", "a%00", "%ff", "a+b", &"a".repeat(65)] {
        raw(&format!("action=get_menu&aulario={id}")).fails("INVALID_FORMAT");
    }
    raw(&format!("action=get_menu&aulario={}", "a".repeat(64))).fails("NOT_FOUND");
    // Fields of a write come from its body only.
    let cgi = school.post("add_menu_type").query("id", "x").query("label", "X");
    cgi.run().fails("MISSING_PARAM");
}

#[test]
fn a_body_is_json_a_form_or_multipart() {
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
        assert_eq!(answer.ok()["menu"]["plates"], plates("Ñoquis & más", "", ""));
        assert_eq!(school.menu("basal")["menu"]["plates"], plates("Ñoquis & más", "", ""));
    }
    for (content_type, body) in [
        (JSON, "x".as_bytes()),
        (JSON, b"[]"),
        (JSON, b"null"),
        (JSON, b"{\"id\":\"x\""),
        (JSON, b"{\"id\":\"\xff\"}"),
        (JSON, b"{\"id\":\"\\ud800\"}"),
        (JSON, b"\xef\xbb\xbf{}"),
        (JSON, b" "),
        (FORM, b"id=%ff&label=x"),
        (FORM, b"id=\xff&label=x"),
        ("multipart/form-data", b"--B--"),
        ("multipart/form-data; boundary=B", b"id=x"),
        ("text/plain", b"id=x"),
        ("", b"id=x"),
    ] {
        println!("{content_type}: {}", body.escape_ascii());
        school.post("delete_menu_type").body(content_type, body).run().fails("INVALID_FORMAT");
    }
    for content_type in [JSON, FORM, "multipart/form-data", "x/y", ""] {
        school.post("delete_menu_type").body(content_type, "").run().fails("MISSING_PARAM");
    }
    for (content_type, body) in [
        (FORM, "id=basal"),
        (
            "multipart/form-data; boundary=B",
            "--B\r\nContent-Disposition: form-data; name=id\r\n\r\nalergias\r\n--B--",
        ),
    ] {
        school.post("delete_menu_type").body(content_type, body).run().ok();
    }
}

#[test]
fn a_body_is_read_to_its_length_or_without_one_to_its_end() {
    let school = School::new();
    let body = r#"{"id":"basal","label":"B"}"#;
    let post = || school.post("rename_menu_type").body(JSON, body);
    for (length, code) in [
        ("27", "INVALID_FORMAT"),
        ("25", "INVALID_FORMAT"),
        ("-1", "INVALID_FORMAT"),
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
    post().body(JSON, format!("{body} trailing")).set("CONTENT_LENGTH", "26").run().ok();
    post().set("CONTENT_LENGTH", "").run().ok();
    post().unset("CONTENT_LENGTH").set("HTTP_TRANSFER_ENCODING", "chunked").run().ok();

    let filled = |size: usize| {
        format!("{{\"id\":\"basal\",\"label\":\"B\",\"x\":\"{}\"}}", "y".repeat(size - 33))
    };
    let full = filled(1024 * 1024);
    assert_eq!(full.len(), 1024 * 1024);
    post().body(JSON, &full).run().ok();
    post().body(JSON, &full).unset("CONTENT_LENGTH").run().ok();
    let over = filled(1024 * 1024 + 1);
    post().body(JSON, &over).run().fails("TOO_LARGE");
    post().body(JSON, &over).unset("CONTENT_LENGTH").run().fails("TOO_LARGE");
}

#[test]
fn a_shared_aulario_shows_the_other_one_s_menus_and_refuses_writes() {
    let school = School::new();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": {"primero": {"name": "A1"}}}));
    let name = |aulario: &str| {
        let read = school.get("get_menu").query("date", DATE).aulario(aulario);
        read.run().ok()["menu"]["plates"]["primero"]["name"].clone()
    };
    assert_eq!(name("compartida"), "A1");
    assert_eq!(name("aula2"), "");
    let write = school.post("delete_menu_type").aulario("compartida").json(&json!({"id": "basal"}));
    write.run().fails("FORBIDDEN");
    assert!(!school.path("compartida").exists());

    // What is no other aulario of the centre is as if it were not there.
    for (index, source) in [
        r#""""#,
        r#""none""#,
        r#""missing""#,
        r#""../centro1/Aularios/aula1""#,
        "5",
        "null",
        r#"["aula1"]"#,
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("own{index}");
        school.write(&format!("{id}.json"), format!(r#"{{"shared_comedor_from":{source}}}"#));
        assert_eq!(name(&id), "", "{source}");
        let body = json!({"date": DATE, "menu_type": "basal", "plates": {"primero": {"name": id}}});
        school.post("save_menu").aulario(&id).json(&body).run().ok();
        assert_eq!(name(&id), id);
    }
    // One hop, not a chain; and not to itself.
    school.write("chain.json", r#"{"shared_comedor_from":"compartida"}"#);
    school.write("self.json", r#"{"shared_comedor_from":"self"}"#);
    assert_eq!(name("chain"), "");
    let body = json!({"id": "basal"});
    school.post("delete_menu_type").aulario("self").json(&body).run().ok();
    school.post("delete_menu_type").aulario("chain").json(&body).run().fails("FORBIDDEN");
}

#[test]
fn writes_from_another_site_are_refused() {
    let school = School::new();
    let write = || school.post("rename_menu_type").json(&json!({"id": "basal", "label": "B"}));
    write().set("HTTP_SEC_FETCH_SITE", "cross-site").run().fails("FORBIDDEN");
    write().set("HTTP_SEC_FETCH_SITE", "same-site").run().fails("FORBIDDEN");
    write().set("HTTP_ORIGIN", "http://evil.example").run().fails("FORBIDDEN");
    write().set("HTTP_ORIGIN", "null").run().fails("FORBIDDEN");
    write().set("HTTP_ORIGIN", "http://School.Example:80").run().ok();
    write().set("HTTP_ORIGIN", "http://school.example:8080").run().fails("FORBIDDEN");
    write().unset("HTTP_HOST").set("HTTP_ORIGIN", "http://school.example").run().ok();
    write().set("HTTP_SEC_FETCH_SITE", "same-origin").set("HTTP_ORIGIN", "http://x").run().ok();
    write().set("HTTP_SEC_FETCH_SITE", "none").run().ok();
    let trusting = write().set("COMEDOR_TRUSTED_ORIGINS", "https://a.example, https://B.example");
    let site = |site| trusting.clone().set("HTTP_SEC_FETCH_SITE", site);
    site("cross-site").set("HTTP_ORIGIN", "https://b.example").run().ok();
    site("cross-site").set("HTTP_ORIGIN", "http://b.example").run().fails("FORBIDDEN");
    site("cross-site").run().fails("FORBIDDEN");
    // Reads may come from anywhere: without CORS headers no other page sees the answer.
    school.get("get_menu").set("HTTP_SEC_FETCH_SITE", "cross-site").run().ok();
}

#[test]
fn a_setting_that_cannot_be_used_is_named_in_the_log_alone() {
    let school = School::new();
    for (name, value) in [
        ("COMEDOR_SERVICE", "a/b"),
        ("COMEDOR_SESSION_DIR", "x;/y"),
        ("COMEDOR_SESSION_NAME", "1"),
        ("COMEDOR_SESSION_FORMAT", "wddx"),
        ("COMEDOR_SESSION_MAX_AGE", "soon"),
        ("COMEDOR_TRUSTED_ORIGINS", "example"),
        ("COMEDOR_DATA_DIR", ""),
    ] {
        let answer = school.get("get_menu").set(name, value).run();
        answer.fails("INTERNAL_ERROR");
        assert!(answer.log.contains(name), "{}", answer.log);
        assert!(!String::from_utf8_lossy(&answer.body).contains("COMEDOR"));
    }
}

#[test]
fn settings_come_from_the_file_beside_the_program_and_the_environment_wins() {
    let school = School::new();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("comedor");
    std::fs::copy(PROGRAM, &program).unwrap();
    let file = folder.path().join("comedor.conf");
    let write = |text: String| std::fs::write(&file, text).unwrap();
    let get = school.get("get_menu").program(&program).unset("COMEDOR_DATA_DIR");
    write(format!("# school\n\nCOMEDOR_DATA_DIR = {}\nTZ=<+14>-14\n", school.data().display()));
    let far_east = || Value::from(today(Some("<+14>-14")));
    let before = far_east();
    let today = get.run().ok()["date"].clone();
    assert!([before, far_east()].contains(&today), "{today}");
    get.clone().set("COMEDOR_DATA_DIR", "/nowhere").run().fails("INTERNAL_ERROR");
    write("COMEDOR_DATA_DIR=/nowhere\n".to_owned());
    assert!(get.run().fails("INTERNAL_ERROR").log.contains("/nowhere"));
    school.get("get_menu").program(&program).run().ok();
    for (line, problem) in
        [("COMEDOR_DATADIR=/x", "unknown setting `COMEDOR_DATADIR`"), ("x", "expected NAME=value")]
    {
        write(format!("\n{line}\n"));
        let answer = get.run();
        answer.fails("INTERNAL_ERROR");
        let expected = format!("comedor.conf: line 2: {problem}");
        assert!(answer.log.contains(&expected), "{}", answer.log);
    }
}

#[test]
fn the_service_names_session_key_permission_and_data_folder() {
    let school = School::new();
    let session = session(TEACHER).replace("s:7:\"service\"", "s:7:\"kitchen\"");
    school.log_in("cook", session.replace("service:docente", "kitchen:docente"));
    let read = school.get("get_menu_types").set("COMEDOR_SERVICE", "kitchen");
    read.clone().session("cook").run().ok();
    read.run().fails("INVALID_SESSION");
    school.get("get_menu_types").session("cook").run().fails("INVALID_SESSION");
}

#[test]
fn at_a_terminal_it_helps_and_under_a_server_it_ignores_arguments() {
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(PROGRAM).args(arguments).env_clear().output();
        let output = output.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (status, help, errors) = run(&["--help"]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    assert!(help.contains("COMEDOR_DATA_DIR"));
    let version = format!("comedor {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"]), (Some(0), version, String::new()));
    for wrong in [&[][..], &["--halp"], &["--help", "x"]] {
        let (status, output, errors) = run(wrong);
        assert_eq!((status, output.as_str()), (Some(2), ""));
        assert!(errors.contains("--help"));
    }
    let school = School::new();
    for (variable, status) in [("GATEWAY_INTERFACE", 200), ("REQUEST_METHOD", 400)] {
        let mut command = school.get("get_menu").unset(variable).command();
        let answer = Answer::of(command.arg("--help").spawn().unwrap());
        assert_eq!(answer.status, status);
    }
}
