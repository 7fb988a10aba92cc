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
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        (
            name.replace('/', "::"),
            lines.collect::<Vec<_>>().join("\n"),
        )
    });
    modules.collect()
}

/// Each module, and a name that follows `crate::` or `super::` in its code, or `use` in lib.rs. Nested braces are not
/// supported.
fn imports() -> Vec<(String, String)> {
    let mut imports = Vec::new();
    for (from, code) in modules() {
        let parent = &from[..from.rfind("::").map_or(0, |end| end + 2)];
        let code = match &*from {
            "lib" => code.replace("\nuse ", "\nuse crate::"),
            "main" => code.replace("comedor::", "crate::"),
            _ => code.replace("super::", &format!("crate::{parent}")),
        };
        for rest in code.split("crate::").skip(1) {
            let end = rest.find(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
            let (path, rest) = rest.split_at(end.unwrap_or(rest.len()));
            let list = rest
                .strip_prefix('{')
                .map_or("", |list| list.split('}').next().unwrap());
            assert!(!list.contains('{'), "{from}: {list}");
            let name = |item: &str| (from.clone(), format!("{path}{}", item.trim()));
            imports.extend(list.split(',').map(name));
        }
    }
    imports
}

/// They could be libraries of their own.
#[test]
fn fastcgi_imports_only_the_system_and_json_nothing() {
    for (module, import) in imports() {
        let [folder, imported] = [&module, &import].map(|name| name.split("::").next().unwrap());
        if folder == "fastcgi" || module.starts_with("php::json") {
            let is_allowed = imported == folder || (folder, imported) == ("fastcgi", "sys");
            assert!(is_allowed, "{module} imports {import}");
        }
    }
}

/// Between modules of one folder. A folder and what it contains may import each other.
#[test]
fn no_modules_import_each_other_in_a_circle() {
    let modules = modules();
    let mut edges = BTreeSet::new();
    for (from, to) in imports() {
        let [from, to] = [&from, &to].map(|name| name.split("::").collect::<Vec<_>>());
        let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        if let (Some(from), Some(to)) = (from.get(..=shared), to.get(..=shared))
            && modules.iter().any(|(name, _)| *name == to.join("::"))
        {
            edges.insert((from.join("::"), to.join("::")));
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

/// The first part of the name of a module.
fn top(name: &str) -> String {
    name.split("::").next().unwrap().to_owned()
}

/// The modules in each row of the table of layers in CONTRIBUTING.md.
fn layers() -> Vec<Vec<String>> {
    let contributing = text_of("CONTRIBUTING.md");
    let (_, layers) = contributing
        .split_once("\nThe layers of `src/`.")
        .expect("the layers");
    let rows = layers.split("\n\n").nth(1).unwrap().lines().skip(2);
    let module = |file: &str| {
        let name = file.trim_start_matches("src/").trim_end_matches('/');
        name.trim_end_matches(".rs").to_owned()
    };
    rows.map(|row| {
        let cell = row.split('|').nth(1).unwrap();
        cell.split('`').skip(1).step_by(2).map(module).collect()
    })
    .collect()
}

#[test]
fn contributing_md_shows_every_module_above_those_that_it_imports() {
    let layers = layers();
    let all: BTreeSet<String> = modules().iter().map(|(name, _)| top(name)).collect();
    let shown: BTreeSet<String> = layers.iter().flatten().cloned().collect();
    assert_eq!(shown, all);
    let layer_of = |name: &String| layers.iter().position(|layer| layer.contains(name));
    let mut count = 0;
    for (module, import) in imports() {
        let (from, mut to) = (top(&module), top(&import));
        // What is in no module is in lib.rs.
        if !all.contains(&to) {
            to = "lib".to_owned();
        }
        if from != to {
            assert!(
                layer_of(&from) < layer_of(&to),
                "{module} imports {import}, and is not above it"
            );
            count += 1;
        }
    }
    assert!(count > 100, "{count} imports");
}
