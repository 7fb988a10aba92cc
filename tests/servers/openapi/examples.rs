//! The examples of the document.

use std::collections::BTreeSet;
use std::fs::File;

use super::*;

/// The school of the document's examples.
fn school_of_the_examples() -> School {
    let school = School::new();
    school.write(
        "aula1/Comedor/2026-11/23/_datos.json",
        r#"{"date":"2026-11-23","menus":{"basal":{"plates":{
            "primero":{"name":"Lentejas","pictogram":"lentejas.png"},
            "segundo":{"name":"Merluza","pictogram":""},
            "postre":{"name":"","pictogram":""}}}}}"#,
    );
    school.write("aula2/Comedor-MenuTypes.json", "[");
    school.log_in("pupil", session(&[]));
    school.log_in("entered", session(&["service:docente", "service:access"]));
    school.log_in("nowhere", session_of("", TEACHER));
    school.log_in("named", session_of("Colegio San José", TEACHER));
    school.log_in("damaged", "auth_ok|");
    school.log_in("held", session(TEACHER));
    let aulas = r#"a:2:{s:5:"aulas";a:1:{i:0;s:5:"aula1";}s:6:"centro""#;
    school.log_in(
        "aula1-only",
        session(TEACHER).replace(r#"a:1:{s:6:"centro""#, aulas),
    );
    school
}

/// The HTTP request in the description of an example.
fn request(school: &School, text: &str) -> Cgi {
    let (setting, text) = text.split_once("```http\n").expect("a request");
    let (text, _) = text.split_once("```").unwrap();
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, url) = lines.next().unwrap().split_once(' ').unwrap();
    let (path, query) = url.split_once('?').unwrap();
    assert_eq!(path, "/api/comedor.php");
    let request = school.get("").method(method).set("QUERY_STRING", query);
    let mut request = request.body("", body.trim_end());
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        let name = name.to_uppercase().replace('-', "_");
        let prefix = if name.starts_with("CONTENT_") {
            ""
        } else {
            "HTTP_"
        };
        request = request.set(&format!("{prefix}{name}"), value);
    }
    if let [_, setting, _] = setting.split('`').collect::<Vec<_>>()[..] {
        let (name, value) = setting.split_once('=').unwrap();
        request = request.set(name, value);
    }
    request
}

/// Checks that the document has every header of the answer.
fn assert_described(answer: &Answer, response: &Value) {
    for (name, _) in &answer.headers {
        let always = ["Status", "Content-Type", "Content-Length"].contains(&name.as_str());
        assert!(
            always || response["headers"][name].is_object(),
            "{name} in {answer:?}"
        );
    }
}

/// The query of an operation, with the value that it must have or the example of each parameter.
fn query_of_the_examples(operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().unwrap().iter();
    let values = parameters.map(|parameter| {
        let value = parameter
            .get("example")
            .unwrap_or(&parameter["schema"]["enum"][0]);
        format!(
            "{}={}&",
            parameter["name"].as_str().unwrap(),
            value.as_str().unwrap()
        )
    });
    values.collect()
}

#[test]
fn every_example_of_the_document_is_answered_as_documented() {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let actions: Vec<_> = READS
        .iter()
        .chain(&WRITES)
        .map(|action| format!("/api/comedor.php/{action}"))
        .collect();
    assert_eq!(
        paths.keys().collect::<BTreeSet<_>>(),
        actions.iter().collect()
    );
    for (path, operations) in paths {
        for (method, operation) in operations
            .as_object()
            .unwrap()
            .iter()
            .filter(|(method, _)| *method != "head")
        {
            let query = query_of_the_examples(operation);
            let answer = &operation["responses"]["200"]["content"][JSON]["example"];
            let without_body = json!({"": null});
            let content = operation
                .pointer("/requestBody/content")
                .unwrap_or(&without_body);
            for (media_type, content) in content.as_object().unwrap() {
                let school = school_of_the_examples();
                let mut request = school.get("").session("admin").set("QUERY_STRING", &query);
                request = request.method(&method.to_uppercase());
                if let Some(fields) = content.get("example") {
                    let content_type = format!("{media_type}; boundary=B");
                    request = request.body(&content_type, encoded(media_type, fields));
                }
                let got = request.run();
                assert_eq!(got.ok(), *answer, "{path} {query} {media_type}");
                assert_described(&got, &operation["responses"]["200"]);
            }
        }
    }
    let mut codes = BTreeSet::new();
    // Those of the other operations are the same.
    for (status, response) in operation(&document, "save_menu", "post")["responses"]
        .as_object()
        .unwrap()
    {
        let examples = &response["content"][JSON]["examples"];
        for (name, example) in examples.as_object().into_iter().flatten() {
            let school = school_of_the_examples();
            let held = File::open(school.sessions().join("sess_held")).unwrap();
            held.lock().unwrap();
            let text = example["description"].as_str().expect("a request");
            let answer = request(&school, text).run();
            assert_eq!(answer.value(), example["value"], "{name}");
            assert_eq!(answer.status.to_string(), *status, "{name}");
            assert_described(&answer, response);
            if text.contains("GET /") {
                let head = request(&school, text).method("HEAD").run();
                assert_described(&head, &document["components"]["responses"]["Head"]);
            }
            codes.insert(example["value"]["code"].clone().to_string());
        }
    }
    let all =
        document["components"]["schemas"]["ErrorAnswer"]["properties"]["code"]["enum"].as_array();
    assert_eq!(codes, all.unwrap().iter().map(Value::to_string).collect());
}
