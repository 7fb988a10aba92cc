//! Linters, tools that open the document, and a generator of clients.

use super::*;

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
