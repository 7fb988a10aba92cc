//! Generated requests, valid and invalid.

use std::env;
use std::fs;
use std::path::Path;
use std::thread;

use super::*;
use crate::support::site::{Settings, lighttpd};
use crate::{LIGHTTPD, LIGHTTPD_FASTCGI};

const SCHEMATHESIS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/venv/bin/schemathesis");

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
