//! JSON, numbers and forms as PHP writes and reads them, without PHP: `tests/fixtures/golden.json` is what
//! PHP 8.2 printed, and `tests/php` compares it with the installed PHP.

use comedor::differential::{Form, Json};

use crate::support::*;

/// Pairs of an input and what PHP makes of it.
fn golden(kind: &str) -> Vec<[String; 2]> {
    let all: Value = serde_json::from_str(&text_of("tests/fixtures/golden.json")).unwrap();
    let pairs: Vec<[String; 2]> = serde_json::from_value(all[kind].clone()).unwrap();
    assert!(pairs.len() > 15);
    pairs
}

#[test]
fn save_writes_everything_else_in_the_file_byte_for_byte_as_php_does() {
    let (school, pairs) = (School::new(), golden("json"));
    let read: Vec<&str> = pairs.iter().map(|[text, _]| text.as_str()).collect();
    school.write(
        DAY,
        format!(
            r#"{{"date":"{DATE}","menus":{{}},"kept":[{}]}}"#,
            read.join(" ,\n")
        ),
    );
    school.save(save("Sopa"));
    let file = school.read(DAY);
    let mut rest = file.split_once("\"kept\": [\n        ").unwrap().1;
    for [text, written] in &pairs {
        let written = written.replace('\n', "\n        ");
        let after = rest.strip_prefix(written.as_str());
        rest = after.unwrap_or_else(|| panic!("{text} is not written as {written}: {rest}"));
        rest = rest.strip_prefix(",\n        ").unwrap_or(rest);
    }
    assert_eq!(rest, "\n    ]\n}");
}

#[test]
fn number_in_the_place_of_a_name_is_stored_as_the_text_that_php_makes_of_it() {
    let school = School::new();
    for [number, text] in golden("numbers") {
        let plates = format!(r#"{{"primero":{{"name":{number}}}}}"#);
        let body = format!(r#"{{"date":"{DATE}","menu_type":"basal","plates":{plates}}}"#);
        let answer = school
            .post("save_menu")
            .body("application/json", body)
            .run()
            .ok();
        assert_eq!(
            answer["menu"]["plates"]["primero"]["name"], text,
            "{number}"
        );
    }
}

#[test]
fn form_has_the_fields_that_php_reads_from_it() {
    for [form, fields] in golden("forms") {
        let own = Form::from_body(form.as_bytes())
            .unwrap()
            .nested(10_000)
            .unwrap();
        assert_eq!(
            String::from_utf8(Json::Map(own).to_php()).unwrap(),
            fields,
            "{form}"
        );
    }
}
