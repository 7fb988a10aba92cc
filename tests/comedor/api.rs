//! The API as machines see it: openapi.yaml, held to the program by tools that know nothing else of it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use crate::site::{Settings, lighttpd};
use crate::support::*;

/// Where the tools and what belongs to them lie.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api");
const SCHEMATHESIS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/venv/bin/schemathesis");

const READS: [&str; 2] = ["get_menu_types", "get_menu"];
const WRITES: [&str; 4] = ["save_menu", "add_menu_type", "rename_menu_type", "delete_menu_type"];
const MEDIA_TYPES: [&str; 3] =
    ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"];

/// What a tool prints, which must succeed; `tests/run` installs it.
fn run(tool: &mut Command) -> String {
    let name = tool.get_program().to_string_lossy().into_owned();
    let ran = tool.current_dir(TOOLS).output();
    let ran = ran.unwrap_or_else(|error| panic!("{name}: {error}; tests/run installs it"));
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let (out, errors) = (text(ran.stdout), text(ran.stderr));
    assert!(
        ran.status.success(),
        "{tool:?}\n{out}\n{errors}\nIf something is missing, tests/run installs it."
    );
    out
}

/// openapi.yaml with every `$ref` followed; a linter has found nothing in it.
fn document() -> Value {
    let json = run(Command::new("node").arg("document.js"));
    serde_json::from_str(&json).expect("JSON")
}

#[test]
fn a_linter_finds_nothing_and_the_document_has_the_program_s_version() {
    assert_eq!(document()["info"]["version"], env!("CARGO_PKG_VERSION"));
}

/// How often each kind of request got each kind of answer.
type Seen = BTreeMap<String, usize>;

/// Runs schemathesis with all its checks against the program under lighttpd; it must find nothing.
fn attack(user: &str, action: &str, media_type: &str) -> Seen {
    let site = lighttpd("enable", Settings::File);
    site.log_in("teacher", &session(TEACHER));
    site.log_in("admin", &session(ADMIN));
    let seen = tempfile::NamedTempFile::new().unwrap();
    let mut tool = Command::new(SCHEMATHESIS);
    tool.args(["--config-file", "schemathesis.toml", "run", "../../openapi.yaml", "--url"])
        .arg(site.url("").trim_end_matches('/'))
        .args(["--no-color", "--output-sanitize", "false"])
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("COMEDOR_USER", user)
        .env("COMEDOR_ACTION", action)
        .env("COMEDOR_BODY", media_type)
        .env("COMEDOR_SEEN", seen.path());
    run(&mut tool);
    serde_json::from_slice(&fs::read(seen.path()).unwrap()).expect("JSON")
}

/// The document as it is, and narrowed to each action: then each answer must be that action's. A
/// teacher's writes are refused before their body is looked at.
#[test]
fn schemathesis_finds_nothing() {
    let mut runs = vec![("teacher", "", ""), ("admin", "", "")];
    runs.extend(READS.map(|action| ("admin", action, "")));
    for action in WRITES {
        runs.extend(MEDIA_TYPES.map(|media_type| ("admin", action, media_type)));
    }
    runs.extend(READS.into_iter().chain(WRITES).map(|action| ("teacher", action, "")));
    let (runs, all) = (Mutex::new(runs), Mutex::new(Seen::new()));
    let next = || runs.lock().unwrap().pop();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while let Some((user, action, media_type)) = next() {
                    let seen = attack(user, action, media_type);
                    let expected = match user == "teacher" && WRITES.contains(&action) {
                        true => "POST positive 403 FORBIDDEN",
                        false => "POST positive 200",
                    };
                    assert!(seen.contains_key(expected), "{user} {action} {media_type} {seen:?}");
                    for (kind, count) in seen {
                        *all.lock().unwrap().entry(kind).or_default() += count;
                    }
                }
            });
        }
    });
    let all = all.into_inner().unwrap();
    println!("{} requests: {all:#?}", all.values().sum::<usize>());
    let of = |mode: &str| -> usize {
        all.iter().filter(|(kind, _)| kind.contains(mode)).map(|(_, count)| count).sum()
    };
    assert!(of(" positive 200") > 400 && of(" negative 4") > 1500, "enough to matter");
}
