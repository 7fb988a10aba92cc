//! openapi.yaml and the program, compared by tools that know only the document.

mod documented;
mod examples;
mod limits;
mod schemathesis;
mod tools;

use std::process::Command;

use crate::support::*;

/// The folder of the tools and their files.
pub const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/openapi");
pub const OPENAPI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.yaml");

const READS: [&str; 2] = ["get_menu_types", "get_menu"];
const WRITES: [&str; 4] = [
    "save_menu", "add_menu_type", "rename_menu_type", "delete_menu_type",
];

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const MEDIA_TYPES: [&str; 3] = [JSON, FORM, "multipart/form-data"];

/// The first answer that a client of the documentation gets.
pub const BUSY: &str = r#"{"success":false,"error":"Try again.","code":"BUSY"}"#;

/// The output of a tool, run in its own folder. It must succeed.
fn run(program: &str, arguments: &[&str]) -> String {
    let mut tool = Command::new(program);
    let output = output(
        tool.args(arguments).current_dir(TOOLS),
        "what tests/run installs",
    );
    String::from_utf8(output).expect("UTF-8")
}

/// The exact document, which document.js makes from openapi.yaml and exact.yaml; a linter has found nothing in the first nor
/// in the result.
fn exact_document(arguments: &[&str]) -> String {
    run("node", &[&["document.js"], arguments].concat())
}

/// The same with every `$ref` followed.
fn document() -> Value {
    serde_json::from_str(&exact_document(&["--dereference"])).expect("JSON")
}

/// The operation of an action in the exact document.
fn operation<'d>(document: &'d Value, action: &str, method: &str) -> &'d Value {
    &document["paths"][format!("/api/comedor.php/{action}")][method]
}

/// A body of that media type.
fn encoded(media_type: &str, fields: &Value) -> String {
    let texts = || {
        let fields = fields.as_object().unwrap().iter();
        fields.map(|(name, text)| (name.as_str(), text.as_str().unwrap()))
    };
    match media_type {
        JSON => fields.to_string(),
        FORM => serde_urlencoded::to_string(texts().collect::<Vec<_>>()).unwrap(),
        _ => {
            let part = |(name, text)| {
                format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
            };
            texts().map(part).chain(["--B--\r\n".to_owned()]).collect()
        }
    }
}
