//! The program answers in the place of one script (`COMEDOR_SCRIPT`): a request that the web server says is for another
//! file reads and writes nothing. `tests/servers/place.rs` has what each web server says.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use crate::support::*;

const SCRIPT: &str = "/srv/www/school/api/comedor.php";
const OTHER: &str = "/srv/www/other/api/comedor.php";

/// The setting, and the variables of a request.
struct Case<'c> {
    script: &'c str,
    variables: &'c [(&'c str, &'c str)],
}

impl Case<'_> {
    fn of(&self, request: Cgi) -> Cgi {
        let request = request.set("COMEDOR_SCRIPT", self.script);
        self.variables
            .iter()
            .fold(request, |request, (name, value)| request.set(name, value))
    }
}

/// With a path after the name of the script, as the program's addresses may have one, and without.
fn with_paths(path: &str) -> [String; 3] {
    ["", "/", "/save_menu"].map(|rest| format!("{path}{rest}"))
}

#[test]
fn requests_for_the_own_script_or_of_a_server_that_does_not_say_the_script_are_answered() {
    let school = School::new();
    for [own, other] in with_paths(SCRIPT)
        .iter()
        .zip(&with_paths(OTHER))
        .map(|(a, b)| [a, b])
    {
        let proxy = format!("proxy:fcgi://comedor{own}");
        let translated = [
            ("SCRIPT_FILENAME", program()),
            ("REDIRECT_HANDLER", "comedor-cgi"),
            ("PATH_TRANSLATED", own),
        ];
        // Apache sets it for a path after the program's address too: without the Action it is not the script's.
        let unrelated = [("SCRIPT_FILENAME", program()), ("PATH_TRANSLATED", other)];
        for (script, variables) in [
            (SCRIPT, &[][..]),
            (SCRIPT, &[("SCRIPT_FILENAME", "")]),
            (SCRIPT, &[("SCRIPT_FILENAME", own)]),
            (SCRIPT, &[("SCRIPT_FILENAME", &proxy)]),
            (SCRIPT, &[("SCRIPT_FILENAME", program())]),
            (SCRIPT, &translated),
            (SCRIPT, &unrelated),
            // Not set: as before there was the setting.
            ("", &[("SCRIPT_FILENAME", other)]),
        ] {
            let case = Case { script, variables };
            case.of(school.get("get_menu_types")).run().ok();
            case.of(school.post("save_menu").json(&save("Sopa")))
                .run()
                .ok();
        }
    }
}

#[test]
fn requests_for_another_script_read_and_write_nothing_and_are_named_in_the_log() {
    let school = School::new();
    let session = school.sessions().join("sess_admin");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let file = fs::File::options().write(true).open(&session).unwrap();
    file.set_modified(long_ago).unwrap();
    let files = school.files();
    for path in with_paths(OTHER) {
        let proxy = format!("proxy:unix:/run/comedor/comedor.sock|fcgi://comedor{path}");
        let translated = [
            ("SCRIPT_FILENAME", program()),
            ("REDIRECT_HANDLER", "comedor-cgi"),
            ("PATH_TRANSLATED", &path),
        ];
        for variables in [
            &[("SCRIPT_FILENAME", &*path)][..],
            &[("SCRIPT_FILENAME", &proxy)],
            &translated,
        ] {
            let case = Case {
                script: SCRIPT,
                variables,
            };
            for request in [
                school.get("get_menu_types"),
                school.get("get_menu_types").unset("HTTP_COOKIE"),
                school.post("save_menu").json(&save("Sopa")),
            ] {
                let answer = case.of(request).run();
                answer.fails("INTERNAL_ERROR");
                let expected = format!(
                    "comedor: the request is for {OTHER}, and COMEDOR_SCRIPT is {SCRIPT}; see \"comedor answers for \
                     another application\" in docs/troubleshooting.md\n"
                );
                assert_eq!(answer.log, expected);
                assert!(!String::from_utf8_lossy(&answer.body).contains("/srv"));
            }
        }
    }
    assert_eq!(school.files(), files);
    assert_eq!(session.metadata().unwrap().modified().unwrap(), long_ago);
}

/// The web server names the file by the path of its configuration, and another one can lead there too.
#[test]
fn two_names_of_one_file_are_the_same_script_and_two_files_are_not() {
    let school = School::new();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["a", "b"] {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name) + "/comedor.php", "").unwrap();
    }
    symlink(path("a"), path("link")).unwrap();
    fs::hard_link(path("a/comedor.php"), path("comedor.php")).unwrap();
    let answer = |script: &str, requested: &str| {
        let variables = [("SCRIPT_FILENAME", &*path(requested))];
        let case = Case {
            script: &path(script),
            variables: &variables,
        };
        case.of(school.get("get_menu_types")).run()
    };
    for (script, requested) in [
        ("a/comedor.php", "link/comedor.php"),
        ("link/comedor.php", "a/comedor.php"),
        ("a/comedor.php", "comedor.php"),
        ("a/comedor.php", "b/../a//comedor.php"),
        // Without a file the paths decide.
        ("gone/comedor.php", "gone/comedor.php"),
    ] {
        answer(script, requested).ok();
    }
    for (script, requested) in [
        ("a/comedor.php", "b/comedor.php"),
        ("a/comedor.php", "gone/comedor.php"),
        ("gone/comedor.php", "a/comedor.php"),
        ("gone/comedor.php", "none/comedor.php"),
    ] {
        answer(script, requested).fails("INTERNAL_ERROR");
    }
}
