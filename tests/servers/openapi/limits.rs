//! The limits of the fields.

use std::fs;

use super::*;

const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/venv/bin/python");

/// Values at each limit and one over it, for the document and the program.
#[test]
fn the_limits_of_the_document_are_those_of_the_program() {
    let long = |length| "ñ".repeat(length);
    let id = |length| "x".repeat(length);
    let save = |plates: Value| json!({"menu_type": "basal", "plates": plates});
    let plates = |count: usize| -> Value {
        let others = (3..count).map(|n| format!("p{n}"));
        let keys = ["primero", "segundo", "postre"]
            .map(str::to_owned)
            .into_iter()
            .chain(others);
        save(keys.map(|key| (key, json!({"name": "x"}))).collect())
    };
    let form = |key: &str, name: String| json!({"menu_type": "basal", format!("plates[{key}][name]"): name});
    let cases = [
        (
            "add_menu_type",
            "body",
            json!({"id": id(64), "label": long(200)}),
            true,
        ),
        (
            "add_menu_type",
            "body",
            json!({"id": id(65), "label": "x"}),
            false,
        ),
        (
            "add_menu_type",
            "body",
            json!({"id": "x", "label": long(201)}),
            false,
        ),
        (
            "add_menu_type",
            "body",
            json!({"id": "x", "label": "x", "color": "#00000"}),
            false,
        ),
        (
            "add_menu_type",
            "body",
            json!({"id": 5, "label": 12.5}),
            true,
        ),
        (
            "add_menu_type",
            "body",
            json!({"id": "x", "label": true}),
            false,
        ),
        (
            "add_menu_type",
            "form",
            json!({"id": id(64), "label": long(200)}),
            true,
        ),
        (
            "add_menu_type",
            "form",
            json!({"id": id(65), "label": "x"}),
            false,
        ),
        (
            "add_menu_type",
            "form",
            json!({"id": "x", "label": long(201)}),
            false,
        ),
        (
            "rename_menu_type",
            "body",
            json!({"id": "basal", "label": long(200)}),
            true,
        ),
        (
            "rename_menu_type",
            "body",
            json!({"id": "basal", "label": long(201)}),
            false,
        ),
        (
            "rename_menu_type",
            "form",
            json!({"id": "basal", "label": long(201)}),
            false,
        ),
        (
            "save_menu",
            "body",
            save(json!({"x": {"name": -0.5}})),
            true,
        ),
        (
            "save_menu",
            "body",
            json!({"date": "", "menu_type": "basal", "plates": {}}),
            false,
        ),
        (
            "save_menu",
            "body",
            save(json!({id(64): {"name": long(2000)}})),
            true,
        ),
        (
            "save_menu",
            "body",
            save(json!({id(65): {"name": "x"}})),
            false,
        ),
        (
            "save_menu",
            "body",
            save(json!({"x": {"name": long(2001)}})),
            false,
        ),
        ("save_menu", "body", plates(64), true),
        ("save_menu", "body", plates(65), false),
        ("save_menu", "body", save(vec![json!({}); 64].into()), true),
        ("save_menu", "body", save(vec![json!({}); 65].into()), false),
        ("save_menu", "form", form(&id(64), long(2000)), true),
        ("save_menu", "form", form("x", long(2001)), false),
    ];
    let document = document();
    let media_type = |kind: &str| {
        if kind == "body" {
            MEDIA_TYPES[0]
        } else {
            MEDIA_TYPES[1]
        }
    };
    let asked = cases.iter().map(|(action, kind, fields, _)| {
        let content = &operation(&document, action, "post")["requestBody"]["content"];
        json!([content[media_type(kind)]["schema"], fields])
    });
    let asked: Value = asked.collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), asked.to_string()).unwrap();
    let code = "import json, sys, jsonschema_rs; asked = json.load(open(sys.argv[1]));
print(json.dumps([jsonschema_rs.validator_for(s).is_valid(fields) for s, fields in asked]))";
    let said = run(PYTHON, &["-c", code, file.path().to_str().unwrap()]);
    let said: Vec<bool> = serde_json::from_str(&said).expect("JSON");
    for ((action, kind, fields, is_good), said) in cases.into_iter().zip(said) {
        let media_type = media_type(kind);
        let school = School::new();
        let answer = school
            .post(action)
            .body(media_type, encoded(media_type, &fields))
            .run();
        if is_good {
            answer.ok();
        } else {
            answer.fails("INVALID_FORMAT");
        }
        assert_eq!(said, is_good, "{action} {kind} {fields}");
    }
}
