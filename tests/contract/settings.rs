//! The settings, as `comedor --help` lists them, in everything else that lists them.

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

/// Apache renames what is set for the folder of the script when it runs the program by the `Action` of
/// apache.conf.example. Another redirect does not make a setting of a variable.
#[test]
fn settings_of_the_folder_of_the_script_override_those_of_the_program_with_the_shipped_action_only()
{
    let school = School::new();
    let request = school
        .get("get_menu_types")
        .set("REDIRECT_COMEDOR_DATA_DIR", school.data())
        .set("COMEDOR_DATA_DIR", "/nowhere");
    let action = request.clone().set("REDIRECT_HANDLER", "comedor-cgi");
    action.run().ok();
    request
        .clone()
        .set("REDIRECT_HANDLER", "php-script")
        .run()
        .fails("INTERNAL_ERROR");
    request.run().fails("INTERNAL_ERROR");
}
