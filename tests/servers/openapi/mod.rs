//! openapi.yaml and the program, compared by tools that know only the document.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::support::site::{Settings, Site, lighttpd};
use crate::support::*;
use crate::{LIGHTTPD, LIGHTTPD_FASTCGI};

/// The folder of the tools and their files.
pub const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/openapi");
pub const OPENAPI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.yaml");
const SCHEMATHESIS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/venv/bin/schemathesis");
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/venv/bin/python");

const READS: [&str; 2] = ["get_menu_types", "get_menu"];
const WRITES: [&str; 4] = [
    "save_menu", "add_menu_type", "rename_menu_type", "delete_menu_type",
];
const MEDIA_TYPES: [&str; 3] = [
    "application/json", "application/x-www-form-urlencoded", "multipart/form-data",
];

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

#[test]
fn a_linter_finds_nothing_and_the_document_has_the_program_s_version() {
    assert_eq!(document()["info"]["version"], env!("CARGO_PKG_VERSION"));
}

/// A tool of package.json.
fn run_of_node(name: &str, arguments: &[&str]) {
    run(&format!("{TOOLS}/node_modules/.bin/{name}"), arguments);
}

#[test]
fn spectral_finds_nothing_and_swagger_cli_and_swagger_ui_open_the_document() {
    let every_finding = [
        "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint", OPENAPI,
    ];
    run_of_node("spectral", &every_finding);
    run_of_node("swagger-cli", &["validate", OPENAPI]);
    run("node", &["swagger-ui.js"]);
}

#[test]
fn client_of_openapi_typescript_codegen_compiles() {
    let folder = tempfile::tempdir().unwrap();
    let client = folder.path().to_str().unwrap();
    run_of_node("openapi", &["--input", OPENAPI, "--output", client]);
    let options =
        "--noEmit --strict --target es2022 --module esnext --moduleResolution bundler --types node";
    let options = options
        .split(' ')
        .chain(["--typeRoots", "node_modules/@types"]);
    let main = format!("{client}/index.ts");
    run_of_node("tsc", &options.chain([main.as_str()]).collect::<Vec<_>>());
}

/// Runs schemathesis with all its checks against the program; it must find nothing.
fn attack(server: &str, document: &Path, examples: &str, action: &str, media_type: &str) {
    let site = lighttpd(server, "enable", Settings::File);
    let mut schemathesis = Command::new(SCHEMATHESIS);
    schemathesis
        .args(["--config-file", &format!("{TOOLS}/schemathesis.toml")])
        .arg("run")
        .arg(document)
        .args(["--url", site.url("").trim_end_matches('/')])
        .args(["--include-path-regex", &format!("{action}$")])
        .args([
            "--checks", "all", "--no-color", "--output-sanitize", "false", "-n", examples,
        ])
        // schemathesis creates files in its working directory.
        .current_dir(site.path())
        .env("PYTHONPATH", TOOLS)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("COMEDOR_ACTION", action)
        .env("COMEDOR_BODY", media_type);
    let report = output(&mut schemathesis, "what tests/run installs");
    println!(
        "{action} {media_type} {server}\n{}",
        String::from_utf8_lossy(&report)
    );
}

/// openapi.yaml as clients read it, and the exact document for each action, in which each answer must
/// be one of that action.
///
/// By default a few requests with JSON by FastCGI; with `COMEDOR_REQUESTS=all` everything.
#[test]
fn schemathesis_finds_nothing() {
    let is_all = env::var_os("COMEDOR_REQUESTS").is_some_and(|requests| requests == "all");
    let (servers, media_types, examples) = match is_all {
        true => (&[LIGHTTPD_FASTCGI, LIGHTTPD][..], &MEDIA_TYPES[..], "120"),
        false => (&[LIGHTTPD_FASTCGI][..], &MEDIA_TYPES[..1], "10"),
    };
    let exact = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    fs::write(exact.path(), exact_document(&[])).unwrap();
    let exact = exact.path();
    thread::scope(|scope| {
        for action in [""].into_iter().chain(READS).chain(WRITES) {
            let media_types = if WRITES.contains(&action) {
                media_types
            } else {
                &[""]
            };
            let document = if action.is_empty() {
                Path::new(OPENAPI)
            } else {
                exact
            };
            scope.spawn(move || {
                for server in servers {
                    for media_type in media_types {
                        attack(server, document, examples, action, media_type);
                    }
                }
            });
        }
    });
}

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

/// A body of that media type.
fn encoded(media_type: &str, fields: &Value) -> String {
    let texts = || {
        let fields = fields.as_object().unwrap().iter();
        fields.map(|(name, text)| (name.as_str(), text.as_str().unwrap()))
    };
    match media_type {
        "application/json" => fields.to_string(),
        "application/x-www-form-urlencoded" => {
            serde_urlencoded::to_string(texts().collect::<Vec<_>>()).unwrap()
        }
        _ => {
            let part = |(name, text)| {
                format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
            };
            texts().map(part).chain(["--B--\r\n".to_owned()]).collect()
        }
    }
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
            let answer = &operation["responses"]["200"]["content"]["application/json"]["example"];
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
        let examples = &response["content"]["application/json"]["examples"];
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

/// The text of a file of the repository, for the server at `url`, which has the application at its root.
fn text_for(url: &str, file: &str) -> String {
    let mut text = text_of(file);
    for application in [
        "https://school.example/entreaulas", "https://school.example",
    ] {
        text = text.replace(application, url);
    }
    text
}

/// A client, which does nothing by itself, and the use that its last comment shows.
fn client_and_use(url: &str, file: &str) -> (String, String) {
    let text = text_for(url, file);
    let (client, comment) = text.split_once("\n/* Its use").expect(file);
    let (_, used) = comment.split_once(":\n").expect(file);
    (
        client.to_owned(),
        used.split_once("*/").expect(file).0.to_owned(),
    )
}

/// The first answer that the clients get.
pub const BUSY: &str = r#"{"success":false,"error":"Try again.","code":"BUSY"}"#;

/// A site and its address.
fn site() -> (Site, String) {
    let site = lighttpd(LIGHTTPD, "enable", Settings::File);
    let url = site.url("").trim_end_matches('/').to_owned();
    (site, url)
}

/// The answers, one a line.
fn answers(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// Runs the commands of the document's blocks that show answers, and gives these.
fn run_curl_lines(document: &str) -> Vec<Value> {
    let (_site, url) = site();
    let text = text_for(&url, document);
    let blocks = text
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let blocks: String = blocks.filter(|block| block.contains("\n# {")).collect();
    // A long answer continues on lines that start with more spaces.
    let commands = blocks.replace("\n#  ", "");
    let shown: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .collect();
    let script = format!(
        "session=admin
        curl() {{ command curl \"$@\" && echo; }}
        {commands}"
    );
    let got = run("bash", &["-euc", &script]);
    assert_eq!(got.lines().collect::<Vec<_>>(), shown, "{document}");
    answers(&got)
}

#[test]
fn documented_commands_of_curl_and_clients_that_repeat_a_busy_request_get_the_documented_answers() {
    assert_eq!(run_curl_lines("README.md").len(), 2);
    let shown = run_curl_lines("docs/api.md");
    assert_eq!(shown.len(), 7);
    // They read, save, and delete a type that does not exist.
    let shown = [&shown[..3], &shown[6..]].concat();

    let (_site, url) = site();
    let (js, used) = client_and_use(&url, "examples/client.js");

    let page = format!(
        "const browser = fetch;
        let isBusy = true;
        globalThis.fetch = async (url, options) => {{
            if (isBusy) {{
                isBusy = false;
                return new Response('{BUSY}', {{ status: 503, headers: {{ 'Retry-After': '1' }} }});
            }}
            const headers = {{ ...options?.headers, Cookie: 'PHPSESSID=admin' }};
            const response = await browser('{url}' + url.replace('/entreaulas', ''), {{ ...options, headers }});
            console.log(await response.clone().text());
            return response;
        }};
        {js}
        (async () => {{ {used} }})();"
    );
    // A classic script, as `<script src>` without `type=module`.
    let js = run("node", &["--input-type=commonjs", "--eval", &page]);
    assert_eq!(answers(&js), shown);

    let (site, url) = site();
    let (php, used) = client_and_use(&url, "examples/client.php");
    let php = php.strip_prefix("<?php\n").unwrap();

    let page = format!(
        "namespace page;
        session_id('admin');
        session_start(['save_path' => '{}/sessions']);
        function file_get_contents(...$arguments) {{
            static $isBusy = true;
            if ($isBusy) {{
                $isBusy = false;
                return '{BUSY}';
            }}
            echo $answer = \\file_get_contents(...$arguments), \"\\n\";
            return $answer;
        }}
        {php}
        {used}",
        site.path().display()
    );
    let php = run("php", &["-d", "display_errors=stderr", "-r", &page]);
    assert_eq!(answers(&php), shown);
}
