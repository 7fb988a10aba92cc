//! The structure of the source.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{REPOSITORY, files_below, text_of};

/// The modules of the library, such as `store::replace`, and the code of each without comments and tests.
pub fn modules() -> Vec<(String, String)> {
    let tests = ["-name", "*.rs", "!", "-name", "tests.rs"];
    let files = files_below(&Path::new(REPOSITORY).join("src"), &tests);
    let modules = files.iter().map(|file| {
        let name = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let text = text_of(format!("src/{file}"));
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        (name.replace('/', "::"), lines.collect::<Vec<_>>().join("\n"))
    });
    modules.collect()
}

/// The names after `crate::` and `super::` in the code of the module `from`. Nested braces are not supported.
fn imports(from: &str, code: &str) -> Vec<String> {
    let parent = &from[..from.rfind("::").map_or(0, |end| end + 2)];
    let code = code.replace("super::", &format!("crate::{parent}"));
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let end = rest.find(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
        let (path, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let list = rest.strip_prefix('{').map_or("", |list| list.split('}').next().unwrap());
        assert!(!list.contains('{'), "{from}: {list}");
        names.extend(list.split(',').map(|item| format!("{path}{}", item.trim())));
    }
    names
}

/// They could be libraries of their own.
#[test]
fn fastcgi_imports_only_the_system_and_json_nothing() {
    for (module, code) in modules() {
        let folder = module.split("::").next().unwrap();
        if folder == "fastcgi" || module.starts_with("php::json") {
            for import in imports(&module, &code) {
                let imported = import.split("::").next().unwrap();
                let is_allowed = imported == folder || (folder, imported) == ("fastcgi", "sys");
                assert!(is_allowed, "{module} imports {import}");
            }
        }
    }
}

/// Between modules of one folder. A folder and what it contains may import each other.
#[test]
fn no_modules_import_each_other_in_a_circle() {
    let modules = modules();
    let mut edges = BTreeSet::new();
    for (from, code) in &modules {
        for to in imports(from, code) {
            let [from, to] = [from, &to].map(|name| name.split("::").collect::<Vec<_>>());
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (from.get(..=shared), to.get(..=shared))
                && modules.iter().any(|(name, _)| *name == to.join("::"))
            {
                edges.insert((from.join("::"), to.join("::")));
            }
        }
    }
    assert!(edges.len() > 50, "{edges:?}");
    // A module that imports nothing, or is not imported, is not in a circle.
    let mut left = BTreeSet::new();
    while left.len() != edges.len() {
        left = edges.clone();
        edges.retain(|(from, to)| {
            left.iter().any(|(a, _)| a == to) && left.iter().any(|(_, b)| b == from)
        });
    }
    assert_eq!(edges, BTreeSet::new());
}
