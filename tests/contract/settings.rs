//! The settings, as `comedor --help` lists them, in everything else that lists them.

use std::net::TcpListener;
use std::process::Command;

use crate::support::*;

/// A setting's name and its default, `none` if it has none.
type Setting = (String, String);

/// A line is two spaces, the name, an explanation, and `(default: VALUE)`.
#[track_caller]
fn settings_in_help() -> Vec<Setting> {
    let help = output(Command::new(program()).arg("--help").env_clear(), "comedor");
    let help = String::from_utf8(help).unwrap();
    let settings = help.lines().filter_map(|line| {
        let (name, text) = line.strip_prefix("  ")?.split_once(' ')?;
        is_setting(name).then_some(())?;
        let (_, default) = text.rsplit_once("(default").expect(line);
        let default = default
            .trim_start_matches([':', ' '])
            .strip_suffix(')')
            .expect(line);
        Some((name.to_owned(), default.to_owned()))
    });
    let settings: Vec<Setting> = settings.collect();
    assert!(!settings.is_empty(), "{help}");
    settings
}

fn is_setting(word: &str) -> bool {
    word == "TZ" || word.starts_with("COMEDOR_")
}

/// `#NAME=default`, or `#NAME=` without a default.
#[test]
fn the_settings_file_lists_every_setting_with_its_default_and_is_valid_if_all_are_uncommented() {
    let settings = settings_in_help();
    let service = &settings[0].1;
    let expected = settings.iter().map(|(name, default)| {
        let value = if default == "none" { "" } else { default };
        format!("{name}={}", value.replace("<service>", service))
    });
    let file = text_of("examples/comedor.conf.example");
    // A comment has a space after the #.
    let lines = file
        .lines()
        .filter(|line| !["", "#"].contains(line) && !line.starts_with("# "));
    let lines: Vec<&str> = lines
        .map(|line| line.strip_prefix('#').expect(line))
        .collect();
    assert_eq!(lines, expected.collect::<Vec<_>>());
    let folder = tempfile::tempdir().unwrap();
    let program = program_in(folder.path(), &lines.join("\n"));
    School::new().get("get_menu").program(&program).run().ok();
}

/// A line is `.It Ev NAME Pq default VALUE`, or `| NAME | DEFAULT | explanation |`.
#[test]
fn the_manual_page_and_install_md_list_every_setting_with_its_default() {
    for (file, before, between) in [
        ("packaging/man/comedor.8", ".It Ev ", " Pq default "),
        ("docs/install.md", "| `", "` | "),
    ] {
        let text = text_of(file);
        let rows = text
            .lines()
            .filter_map(|line| line.strip_prefix(before)?.split_once(between));
        let rows = rows.filter(|(name, _)| is_setting(name));
        let default = |row: &str| {
            row.split(" | ")
                .next()
                .unwrap()
                .trim_matches('`')
                .to_owned()
        };
        let listed: Vec<Setting> = rows
            .map(|(name, row)| (name.into(), default(row)))
            .collect();
        assert_eq!(listed, settings_in_help(), "{file}");
    }
}

/// A request with this value of a setting for the script, as Apache passes it when it runs the program by the `Action` of
/// apache.conf.example
fn for_script(request: Cgi, name: &str, value: &str) -> Cgi {
    request
        .set(&format!("REDIRECT_{name}"), value)
        .set("REDIRECT_HANDLER", "comedor-cgi")
}

#[test]
fn a_setting_for_the_script_that_is_not_in_force_is_refused_and_nothing_is_read_or_written() {
    let school = School::new();
    let files = school.files();
    let redis = TcpListener::bind("127.0.0.1:0").unwrap();
    redis.set_nonblocking(true).unwrap();
    let address = format!("tcp://{}?auth=s3cret", redis.local_addr().unwrap());
    for (name, value) in [
        ("COMEDOR_DATA_DIR", "/other"),
        ("COMEDOR_DATA_DIR", ""),
        // After another internal redirect, such as that of a RewriteRule
        ("REDIRECT_COMEDOR_DATA_DIR", "/other"),
        ("COMEDOR_SESSION_DIR", &address),
        ("COMEDOR_SCRIPT", "/other/api/comedor.php"),
    ] {
        let save = school.post("save_menu").json(&save("Sopa"));
        let refused = for_script(save, name, value).run();
        let log = &refused.fails("INTERNAL_ERROR").log;
        let name = name.trim_start_matches("REDIRECT_");
        let expected = format!("comedor: {name} is set for the script");
        assert!(log.starts_with(&expected), "{log}");
        assert!(log.contains("see \"Two applications on one server\" in docs/install.md"));
        assert!(!log.contains("s3cret"), "{log}");
        assert_eq!(school.files(), files, "{name}");
    }
    assert!(redis.accept().is_err());
}

#[test]
fn a_setting_for_the_script_is_accepted_if_it_is_in_force_and_ignored_with_another_action() {
    let school = School::new();
    let get = || school.get("get_menu_types");
    const NAME: &str = "COMEDOR_TRUSTED_ORIGINS";
    const ORIGIN: &str = "https://a.example";
    let with_origin = || for_script(get(), NAME, ORIGIN);
    for_script(get(), NAME, "").run().ok();
    with_origin().set(NAME, ORIGIN).run().ok();
    let folder = tempfile::tempdir().unwrap();
    let program = program_in(folder.path(), &format!("{NAME}={ORIGIN}"));
    with_origin().program(&program).run().ok();
    with_origin()
        .program(&program)
        .set(NAME, "https://b.example")
        .run()
        .fails("INTERNAL_ERROR");
    // An application's own, for PHP
    for_script(get(), "TZ", "Etc/GMT-14").run().ok();
    for_script(get(), "COMEDOR_DATA_DIR", "/other")
        .set("REDIRECT_HANDLER", "php-script")
        .run()
        .ok();
}
