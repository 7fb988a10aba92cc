//! The documentation: links, settings and quoted sentences. The examples in it are run by
//! tests that need other tools.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::source::modules;
use crate::support::*;

/// The files of the repository with this name, by their paths in it.
fn files_named(name: &str) -> Vec<String> {
    let built = [
        "-name", "target", "-prune", "-o", "-name", "node_modules", "-prune", "-o",
    ];
    files_below(
        Path::new(REPOSITORY),
        &[&built[..], &["-name", name]].concat(),
    )
}

/// Every Markdown file of the repository, by its path in it.
pub fn documents() -> BTreeMap<PathBuf, String> {
    let files = files_named("*.md").into_iter();
    files
        .map(|file| (PathBuf::from(&file), text_of(&file)))
        .collect()
}

/// The anchors that GitHub gives to the headings.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let text = prose(text);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = heading
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.collect::<String>().replace(' ', "-")
        })
        .collect()
}

#[test]
fn every_relative_link_and_anchor_of_the_documentation_resolves() {
    let mut count = 0;
    for (path, text) in documents() {
        for link in relative_links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = Path::new(REPOSITORY).join(path.parent().unwrap());
            let own = Path::new(path.file_name().unwrap());
            let file = if file.is_empty() {
                own
            } else {
                Path::new(file)
            };
            assert!(
                folder.join(file).exists(),
                "{}: the file of {link}",
                path.display()
            );
            if !anchor.is_empty() {
                let anchors = anchors(&text_of(folder.join(file)));
                assert!(
                    anchors.contains(anchor),
                    "{}: the anchor of {link}",
                    path.display()
                );
            }
            count += 1;
        }
    }
    assert!(count > 50, "{count} links");
}

/// The text with single spaces between its words.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The blocks of shell commands in a Markdown document.
fn shell_blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
}

/// The lines of a block without comments. The answers below a command of curl start with `{`, or with more spaces.
fn commands_in(block: &str) -> impl Iterator<Item = &str> {
    let is_comment = |line: &str| {
        let comment = line.strip_prefix("# ");
        comment.is_some_and(|text| text.starts_with(char::is_alphabetic))
    };
    let lines = block.lines().filter(move |line| !is_comment(line));
    lines.map(|line| line.split("  # ").next().unwrap())
}

/// The code of all modules of the program.
fn code() -> String {
    modules().into_iter().map(|(_, code)| code).collect()
}

#[test]
fn commands_and_names_in_spanish_documents_are_those_of_the_program_and_of_english_ones() {
    let (spanish, english): (Vec<_>, Vec<_>) = documents()
        .into_iter()
        .partition(|(path, _)| path.starts_with("docs/es") || path.ends_with("README.es.md"));
    let english: String = english.into_iter().map(|(_, text)| text).collect();
    let english = one_line(&(english + &code()));
    let mut count = 0;
    for (path, text) in spanish {
        let commands = shell_blocks(&text).flat_map(commands_in).map(one_line);
        for name in commands.chain(code_spans(&text)) {
            assert!(english.contains(&name), "{}: {name}", path.display());
            count += 1;
        }
    }
    assert!(count > 100, "{count} commands and names");
}

/// The headings that the page names, in English and Spanish.
fn headings_of_the_set_up_page() -> Vec<[String; 2]> {
    let page = text_of("setup/comedor-setup.php");
    let (_, rows) = page.split_once("\nconst HEADINGS = [\n").unwrap();
    let rows = rows.split("\n];").next().unwrap().lines();
    let heading = |row: &str, place: usize| row.split('\'').nth(place).unwrap().to_owned();
    rows.map(|row| [heading(row, 3), heading(row, 5)]).collect()
}

#[test]
fn both_guides_have_the_headings_of_the_set_up_page() {
    let english =
        ["install", "troubleshooting", "files"].map(|name| text_of(format!("docs/{name}.md")));
    let english = english.concat();
    let guides = [english, text_of("docs/es/instalar.md")];
    let headings = headings_of_the_set_up_page();
    for pair in &headings {
        for (guide, heading) in guides.iter().zip(pair) {
            assert!(
                guide
                    .lines()
                    .any(|line| line.trim_start_matches('#') == format!(" {heading}")),
                "{heading}"
            );
        }
    }
    assert_eq!(headings.len(), 13);
}

/// What `comedor configure` prints is in the part of each guide for this web server, and nothing else is.
#[test]
fn both_guides_have_the_commands_of_configure_for_each_web_server() {
    let guides = ["docs/install.md", "docs/es/instalar.md"].map(text_of);
    let servers = ["apache", "apache-fastcgi", "nginx", "caddy", "lighttpd"];
    for (server, headings) in servers.iter().zip(headings_of_the_set_up_page()) {
        let mut configure = Command::new(program());
        configure
            .args(["configure", "--server", server])
            .stdin(Stdio::null());
        let said = String::from_utf8(output(&mut configure, "the program")).unwrap();
        let (_, enable) = said.split_once("\nThen enable comedor:\n").unwrap();
        let commands: Vec<&str> = enable
            .lines()
            .filter(|line| !line.starts_with('('))
            .collect();
        for (guide, heading) in guides.iter().zip(headings) {
            let (_, part) = guide.split_once(&format!("\n### {heading}\n")).unwrap();
            let part = part.split("\n#").next().unwrap();
            let listed: Vec<&str> = shell_blocks(part).flat_map(str::lines).collect();
            assert_eq!(listed, commands, "{heading}");
        }
    }
}

/// `lab/machines` runs those of the guide.
#[test]
fn commands_of_the_readmes_are_those_of_the_guide() {
    let guide = text_of("docs/install.md");
    let guide: Vec<&str> = shell_blocks(&guide)
        .flat_map(str::lines)
        .map(str::trim)
        .collect();
    for name in ["README.md", "README.es.md"] {
        let readme = text_of(name);
        let commands: Vec<&str> = commands_in(shell_blocks(&readme).next().unwrap()).collect();
        for command in &commands {
            assert!(guide.contains(command), "{name}: {command}");
        }
        assert_eq!(commands.len(), 6, "{name}");
    }
}

/// PHP's user can put a link in place of a folder or file there while the command runs.
#[test]
fn no_command_of_the_documents_changes_as_root_what_the_user_of_php_names() {
    // `find` and `chown -h` follow no link.
    const CHOWN: &str = "-execdir chown -h www-data: {} +";
    // semanage changes the policy of SELinux.
    const READING: [&str; 8] = [
        "cat", "find", "ls", "namei", "readlink", "semanage", "tar", "test",
    ];
    let mut count = 0;
    for (path, text) in documents() {
        let lines = shell_blocks(&text).flat_map(str::lines).map(one_line);
        let commands: Vec<String> = lines.chain(code_spans(&text)).collect();
        let of_root = commands
            .iter()
            .flat_map(|command| command.split("sudo ").skip(1));
        for command in of_root.filter(|command| !command.starts_with("-u ")) {
            let is_below_data = [
                "DATA/", "/DATA", "PATH", "FOLDER", "/var/www/html/entreaulas",
            ]
            .iter()
            .any(|folder| command.contains(folder));
            let name = command.split(' ').next().unwrap();
            let writes = !READING.contains(&name)
                || command.contains(" -delete")
                || command.contains(" -exec") && !command.contains(CHOWN)
                || name == "tar" && command.contains(" -x");
            let is_harmless = [
                // The folder of a new machine, which has no data yet
                "mkdir -p /DATA",
                "mkdir /DATA/entreaulas",
                "chown -h www-data: /DATA/entreaulas",
                // A new file of the set-up page. `install -m` would change the mode of what has its name then.
                "cp --remove-destination /usr/share/comedor/comedor-setup.php ",
                "cp --remove-destination /usr/share/doc/comedor/examples/guardar.php ",
                "cp --remove-destination /usr/share/doc/comedor/examples/pantalla.html ",
                "rm /var/www/html/entreaulas/api/comedor-setup.php",
                // The copy of a page that is changed by hand, and back
                "cp -p /var/www/html/entreaulas/comedor.php /root/",
                "cp -p --remove-destination /root/comedor.php.before ",
                "cp --remove-destination ~/pantalla.html /var/www/html/entreaulas/",
            ]
            .iter()
            .any(|start| command.starts_with(start));
            let path = path.display();
            assert!(
                !is_below_data || !writes || is_harmless,
                "{path}: {command}"
            );
            count += usize::from(is_below_data);
        }
    }
    assert!(count > 10, "{count} commands of root");
}

#[test]
fn troubleshooting_md_shows_log_lines_of_the_program() {
    let troubleshooting = text_of("docs/troubleshooting.md");
    let school = School::new();
    school.write(TYPES, "[{\"id\":");
    let read = school.get("get_menu_types");
    let program = program_in(&school.data(), "TZ=UTC\nCOMEDOR_SERVISE=x\n");
    let data = school.data().display().to_string();
    let none = format!("{data}/none");
    for (request, folder, documented) in [
        (read.clone(), &data, "/DATA/entreaulas"),
        (
            read.clone().set("COMEDOR_DATA_DIR", &none),
            &none,
            "/DATA/entreaulas",
        ),
        (read.clone().program(&program), &data, "/etc/comedor"),
        (read.clone().set("COMEDOR_SESSION_FORMAT", "x"), &data, ""),
        (
            read.clone()
                .set("REDIRECT_HANDLER", "comedor-cgi")
                .set("REDIRECT_COMEDOR_ACCESS", "listed"),
            &data,
            "",
        ),
        (
            read.set("COMEDOR_SCRIPT", "/var/www/html/entreaulas/api/comedor.php")
                .set("SCRIPT_FILENAME", "/var/www/other/api/comedor.php"),
            &data,
            "",
        ),
    ] {
        let log = request
            .run()
            .fails("INTERNAL_ERROR")
            .log
            .replace(folder, documented);
        let documented = log.replace("centro1", "colegio");
        assert!(
            troubleshooting.contains(&format!("\n{documented}")),
            "{documented}"
        );
    }
}

/// The code in the text, such as `src/lib.rs`.
fn code_spans(text: &str) -> Vec<String> {
    let text = prose(text);
    text.split('`').skip(1).step_by(2).map(one_line).collect()
}

/// Another test compares the sentences in openapi.yaml with the program's.
#[test]
fn error_sentences_and_files_in_the_documentation_exist() {
    let (openapi, mut quoted) = (text_of("openapi.yaml"), 0);
    for (document, text) in documents() {
        for span in code_spans(&text) {
            if span.starts_with(char::is_uppercase) && span.contains(' ') && span.ends_with('.') {
                assert!(openapi.contains(&span), "{}: {span}", document.display());
                quoted += 1;
            }
            if ["src/", "tests/", "lab/", "packaging/", "benches/"]
                .iter()
                .any(|folder| span.starts_with(folder))
            {
                // A command has arguments.
                let file = Path::new(REPOSITORY).join(span.split(' ').next().unwrap());
                assert!(file.exists(), "{}: {span}", document.display());
            }
        }
    }
    assert!(quoted > 4, "{quoted} sentences");
}

/// A build of any other commit must not claim to be a release.
#[test]
fn only_a_release_has_a_version_without_dev_and_its_changes_in_a_section_of_the_changelog() {
    let changelog = text_of("CHANGELOG.md");
    let (_, sections) = changelog
        .split_once("\n## [Unreleased]\n")
        .expect("the section");
    let unreleased = sections.split("\n## [").next().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let number = version.trim_end_matches("-dev");
    let is_release = number == version;
    let has_section = changelog.contains(&format!("\n## [{number}] - "));
    assert_eq!(
        (has_section, unreleased.trim().is_empty()),
        (is_release, is_release),
        "{version}: CONTRIBUTING.md, \"Propose a change\", says when the version ends with -dev"
    );
    for (name, sentence) in [
        ("README.md", "which is not released yet"),
        ("README.es.md", "que aún no se ha publicado"),
    ] {
        assert_ne!(
            one_line(&text_of(name)).contains(sentence),
            is_release,
            "{name} says \"{sentence}\" until the release"
        );
    }
}

#[test]
fn every_action_is_documented() {
    let answer = School::new().get("unknown").run();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let sentence = body["error"].as_str().unwrap();
    let names = sentence
        .strip_prefix("action must be ")
        .and_then(|it| it.strip_suffix('.'))
        .unwrap();
    let (openapi, api) = (text_of("openapi.yaml"), text_of("docs/api.md"));
    for name in names.replace(" or ", ", ").split(", ") {
        assert!(
            openapi.contains(&format!("\n  /api/comedor.php/{name}:\n")),
            "{name} in openapi.yaml"
        );
        assert!(
            api.contains(&format!("\n| `{name}` | ")),
            "{name} in docs/api.md"
        );
    }
}

#[test]
fn every_error_code_and_reason_is_documented() {
    let [openapi, api, source] = ["openapi.yaml", "docs/api.md", "src/error.rs"].map(text_of);
    // The word in quotes that follows each of these places in the source.
    let quoted_after = |place: &str| -> BTreeSet<&str> {
        let rest = source.split(place).skip(1);
        rest.filter_map(|text| text.strip_prefix('"')?.split('"').next())
            .collect()
    };
    let codes = openapi
        .lines()
        .map(|line| line.strip_prefix("            - "))
        .skip_while(|line| *line != Some("INVALID_SESSION"));
    let codes: BTreeSet<&str> = codes.map_while(|line| line).collect();
    assert_eq!(codes, quoted_after("Error::new("));
    let (_, reasons) = openapi.split_once("x-extensible-enum: [").unwrap();
    let reasons: BTreeSet<&str> = reasons.split(']').next().unwrap().split(", ").collect();
    let is_word = |word: &&str| word.chars().all(char::is_lowercase);
    let mut words = quoted_after(" => ");
    words.retain(is_word);
    words.append(&mut quoted_after("Error::invalid_session("));
    assert_eq!(reasons, words);
    for word in codes.into_iter().chain(reasons) {
        assert!(
            api.contains(&format!("\n| `{word}` | ")),
            "{word} in docs/api.md"
        );
    }
}

#[test]
fn both_readmes_have_the_same_figures() {
    let [readme, spanish] = ["README.md", "README.es.md"].map(|name| one_line(&text_of(name)));
    // Each number without the separators of its language, in any order
    let numbers = |text: &str, separators: &[char]| {
        let joined = text.replace(separators, "");
        let digits = joined
            .split(|c: char| !c.is_ascii_digit())
            .filter(|part| !part.is_empty());
        let mut digits: Vec<_> = digits.map(str::to_owned).collect();
        digits.sort();
        digits
    };
    assert_eq!(
        numbers(&readme, &[',', '.']),
        numbers(&spanish, &[',', '.', ' '])
    );
    assert!(readme.contains(&format!(
        " {} session files",
        files_named("*.session").len()
    )));
    assert!(readme.contains(concat!(" ", env!("CARGO_PKG_RUST_VERSION"), " or later")));
}
