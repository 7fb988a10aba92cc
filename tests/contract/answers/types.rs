//! Menu types.

use super::*;

/// `tests/servers/openapi` compares whole answers.
#[test]
fn types_are_added_changed_and_deleted() {
    let school = School::new();
    let post = |action, body: Value| school.post(action).json(&body).run().ok();
    let added = post(
        "add_menu_type",
        json!({"id": " Sin Sal/A b\u{f1}.c ", "label": " Sin sal "}),
    );
    assert_eq!(
        added["menu_type"],
        json!({"id": "ab.c", "label": "Sin sal", "color": "#0d6efd"})
    );
    post(
        "rename_menu_type",
        json!({"id": "ab.c", "label": null, "color": "#ABCDEF"}),
    );
    post(
        "rename_menu_type",
        json!({"id": "basal", "label": "Normal"}),
    );
    post("delete_menu_type", json!({"id": "vegetariano"}));
    assert_eq!(
        school.get("get_menu_types").run().ok()["menu_types"],
        json!([
            {"id": "basal", "label": "Normal", "color": "#0d6efd"},
            {"id": "alergias", "label": "Menú alergias", "color": "#dc3545"},
            {"id": "ab.c", "label": "Sin sal", "color": "#ABCDEF"},
        ])
    );
}

/// Clients send an id, a label or a name that is a number as one; `tests/php` compares the texts with PHP's.
#[test]
fn a_number_in_place_of_a_string_is_its_text_in_php() {
    let school = School::new();
    let post = |action, body: &str| school.post(action).body(JSON, body).run();
    let added = post("add_menu_type", r#"{"id":5,"label":12.50}"#).ok();
    assert_eq!(
        added["menu_type"],
        json!({"id": "5", "label": "12.5", "color": "#0d6efd"})
    );
    school.write(TYPES, r#"[{"id":5,"label":"A"},{"id":12.50,"label":"B"}]"#);
    post("add_menu_type", r#"{"id":5.0,"label":"x"}"#).fails("DUPLICATE");
    let body = r#"{"date":"2026-11-20","menu_type":12.5,"plates":{"primero":{"name":-0.0}}}"#;
    let saved = post("save_menu", body).ok();
    assert_eq!(saved["menu_type"], "12.5");
    assert_eq!(saved["menu"]["plates"], plates("-0", "", ""));
    assert_eq!(school.menu("12.5")["menu"]["plates"], plates("-0", "", ""));
    let body = r#"{"date":"2026-11-20","menu_type":12.5,"plates":[{"name":7}]}"#;
    let saved = post("save_menu", body).ok();
    assert_eq!(saved["menu"]["plates"]["0"]["name"], "7");
    post("rename_menu_type", r#"{"id":5,"label":"C"}"#).ok();
    let types = school.read(TYPES);
    assert!(
        types.contains("\"id\": 5,") && types.contains("\"id\": 12.5,"),
        "{types}"
    );
    post("delete_menu_type", r#"{"id":"5"}"#).ok();
    assert_eq!(school.get("get_menu").run().ok()["menu_type"], "12.5");
}

#[test]
fn adding_a_deleted_type_again_restores_its_menus() {
    let school = School::with_menu("A");
    school
        .post("delete_menu_type")
        .json(&json!({"id": "basal"}))
        .run()
        .ok();
    school
        .get("get_menu")
        .query("menu", "basal")
        .run()
        .fails("INVALID_MENU_TYPE");
    assert_eq!(
        school.get("get_menu").run().ok()["menu_type"],
        "vegetariano"
    );
    school
        .post("add_menu_type")
        .json(&json!({"id": "basal", "label": "B"}))
        .run()
        .ok();
    assert_eq!(
        school.menu("basal")["menu"]["plates"]["primero"]["name"],
        "A"
    );
}

#[test]
fn an_id_is_looked_up_as_sent_and_then_normalized() {
    let school = School::new();
    let types = r#"[{"id":"Mayor 1","label":"M"},{"id":"basal","label":"B"}]"#;
    school.write(TYPES, types);
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

/// In the files as by PHP; an answer is the shorter form of the same JSON.
#[test]
fn a_slash_is_escaped_in_files_and_not_in_answers() {
    let school = School::new();
    let added = school.post("add_menu_type");
    let added = added
        .json(&json!({"id": "new", "label": "Sopa/Crema"}))
        .run();
    added.ok();
    let body = String::from_utf8(added.body.clone()).unwrap();
    assert!(body.contains("Sopa/Crema"), "{body}");
    let file = school.read(TYPES);
    assert!(file.contains(r"Sopa\/Crema"), "{file}");
}
