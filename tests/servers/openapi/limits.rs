//! The limits of the fields.

use std::fs;

use super::*;

const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/venv/bin/python");

/// Fields of an action, in this media type, that the document and the program accept, and that both refuse.
struct Limits {
    action: &'static str,
    media_type: &'static str,
    accepted: Vec<Value>,
    refused: Vec<Value>,
}

/// Which of these values are valid for the schema.
fn validity(schema: &Value, values: &[Value]) -> Vec<bool> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), json!([schema, values]).to_string()).unwrap();
    let code = "import json, sys, jsonschema_rs; schema, values = json.load(open(sys.argv[1]))
validator = jsonschema_rs.validator_for(schema)
print(json.dumps([validator.is_valid(value) for value in values]))";
    let said = run(PYTHON, &["-c", code, file.path().to_str().unwrap()]);
    serde_json::from_str(&said).expect("JSON")
}

fn long(length: usize) -> String {
    "ñ".repeat(length)
}

/// So many plates, with those that every menu has.
fn plates(count: usize) -> Value {
    let others = (3..count).map(|n| format!("p{n}"));
    let keys = ["primero", "segundo", "postre"]
        .map(str::to_owned)
        .into_iter()
        .chain(others);
    keys.map(|key| (key, json!({"name": "x"}))).collect()
}

/// Values at each limit and one over it, for the exact document and the program.
#[test]
fn the_limits_of_the_document_are_those_of_the_program() {
    let id = |length| "x".repeat(length);
    let save = |plates: Value| json!({"menu_type": "basal", "plates": plates});
    let form = |key: &str, name: String| json!({"menu_type": "basal", format!("plates[{key}][name]"): name});
    let limits = [
        Limits {
            action: "add_menu_type",
            media_type: JSON,
            accepted: vec![
                json!({"id": id(64), "label": long(200)}),
                json!({"id": 5, "label": 12.5}),
            ],
            refused: vec![
                json!({"id": id(65), "label": "x"}),
                json!({"id": "x", "label": long(201)}),
                json!({"id": "x", "label": "x", "color": "#00000"}),
                json!({"id": "x", "label": true}),
            ],
        },
        Limits {
            action: "add_menu_type",
            media_type: FORM,
            accepted: vec![json!({"id": id(64), "label": long(200)})],
            refused: vec![
                json!({"id": id(65), "label": "x"}),
                json!({"id": "x", "label": long(201)}),
            ],
        },
        Limits {
            action: "rename_menu_type",
            media_type: JSON,
            accepted: vec![json!({"id": "basal", "label": long(200)})],
            refused: vec![json!({"id": "basal", "label": long(201)})],
        },
        Limits {
            action: "rename_menu_type",
            media_type: FORM,
            accepted: vec![],
            refused: vec![json!({"id": "basal", "label": long(201)})],
        },
        Limits {
            action: "save_menu",
            media_type: JSON,
            accepted: vec![
                save(json!({"x": {"name": -0.5}})),
                save(json!({id(64): {"name": long(2000)}})),
                save(plates(64)),
                save(vec![json!({}); 64].into()),
            ],
            refused: vec![
                json!({"date": "", "menu_type": "basal", "plates": {}}),
                save(json!({id(65): {"name": "x"}})),
                save(json!({"x": {"name": long(2001)}})),
                save(plates(65)),
                save(vec![json!({}); 65].into()),
            ],
        },
        Limits {
            action: "save_menu",
            media_type: FORM,
            accepted: vec![form(&id(64), long(2000))],
            refused: vec![form("x", long(2001))],
        },
    ];
    let document = document();
    for limits in limits {
        let (action, media_type) = (limits.action, limits.media_type);
        let body = &operation(&document, action, "post")["requestBody"];
        let schema = &body["content"][media_type]["schema"];
        for (values, is_accepted) in [(limits.accepted, true), (limits.refused, false)] {
            let found = validity(schema, &values);
            let expected = vec![is_accepted; values.len()];
            assert_eq!(found, expected, "{action} {media_type}");
            for fields in &values {
                let school = School::new();
                let request = school.post(action);
                let answer = request.body(media_type, encoded(media_type, fields)).run();
                if is_accepted {
                    answer.ok();
                } else {
                    answer.fails("INVALID_FORMAT");
                }
            }
        }
    }
}

/// openapi.yaml itself. For the exact document, exact.yaml writes these limits in another way.
#[test]
fn openapi_yaml_has_the_same_limits_of_labels_names_and_plates() {
    let code = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let published = run(PYTHON, &["-c", code, OPENAPI]);
    let published: Value = serde_json::from_str(&published).expect("JSON");
    for (schema, longest, too_long) in [
        ("Label", json!(long(200)), json!(long(201))),
        ("PlateName", json!(long(2000)), json!(long(2001))),
        ("SaveMenuBody/properties/plates", plates(64), plates(65)),
    ] {
        let reference = format!("#/components/schemas/{schema}");
        let referring = json!({"$ref": reference, "components": published["components"]});
        let found = validity(&referring, &[longest, too_long]);
        assert_eq!(found, [true, false], "{schema}");
    }
}
