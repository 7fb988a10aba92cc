//! The data files: the same bytes as PHP writes, on disk before the answer, unchanged after a failed write.

use std::fs;
use std::os::unix::fs::chown;

use crate::support::*;

/// What PHP writes after it has read the file.
const REWRITE: &str = "echo json_encode(json_decode(file_get_contents($argv[1]), true),
                       JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE);";

/// Everything in which PHP's JSON differs from that of other encoders.
const ODD: &str = r#"{
    "0": {"1": 1, "0": 0}, "list": {"0": "a", "1": "b"}, "empty": {}, "also": [],
    "float": [1.0, 0.1, 1e25, 1.5e-7, 100.0, 12345678901234567890, 9223372036854775807],
    "text": "\u00e9\u2028\u2029 </script> \"\\ \b\f\n\r\t\u0001\u007f \ud83d\ude00",
    "": null, "a b": [true, false, [[]]], "date": "2026-11-20", "note": "kept",
    "menus": {
        "gone": {"plates": [{"name": "zero"}], "by": {"who": "x/y"}},
        "null": null,
        "basal": {"kcal": 1.50, "plates": {
            "postre": {"pictogram": "p.png", "name": "Flan", "allergens": ["milk"]},
            "cena": {"name": 5}, "none": null, "list": []
        }, "seen": true}
    },
    "last": 1
}"#;

#[test]
fn a_changed_file_is_byte_for_byte_as_by_php_and_nothing_else_changes() {
    let school = School::new();
    school.write(DAY, ODD);
    school.write("before.json", php(REWRITE, &[&school.path(DAY)]));
    school.save(save("Sopa"));
    let label = "Menú «ñ» / \"x\" \\ \u{2028} \u{7f} \u{1} 😀";
    let added = json!({"id": "nuevo", "label": label, "color": "#FF00aa"});
    school.post("add_menu_type").json(&added).run().ok();
    for path in [TYPES, DAY] {
        let by_php = php(REWRITE, &[&school.path(path)]);
        assert_eq!(school.read(path), String::from_utf8(by_php).unwrap());
    }
    // PHP compares the order of keys too.
    let code = "
        [$before, $after] = array_map(fn($f) => json_decode(file_get_contents($f), true), array_slice($argv, 1));
        $before['menus']['basal']['plates']['primero'] = ['name' => 'Sopa', 'pictogram' => ''];
        echo $before === $after ? 'only that' : 'more';";
    let paths = [school.path("before.json"), school.path(DAY)];
    let verdict = php(code, &[&paths[0], &paths[1]]);
    assert_eq!(verdict, b"only that", "{}", school.read(DAY));

    let menu = &school.menu("basal")["menu"];
    assert_eq!(menu["kcal"], 1.5);
    assert_eq!(
        menu["plates"],
        json!({
            "primero": {"name": "Sopa", "pictogram": ""},
            "segundo": {"name": "", "pictogram": ""},
            "postre": {"name": "Flan", "pictogram": "p.png", "allergens": ["milk"]},
            "cena": {"name": "5", "pictogram": ""},
            "none": {"name": "", "pictogram": ""},
            "list": {"name": "", "pictogram": ""},
        })
    );
}

#[test]
fn a_partially_written_file_is_read_again() {
    let school = School::with_menu("whole");
    let whole = school.read(DAY);
    let read = school.get("get_menu").query("date", DATE);
    let plates = json!({"segundo": {"name": "CGI"}});
    let body = json!({"date": DATE, "menu_type": "basal", "plates": plates});
    let write = school.post("save_menu").json(&body);
    for half in ["", &whole[..whole.len() / 2]] {
        for request in [&read, &write] {
            school.write(DAY, half);
            let answer = request.stopped("clock_nanosleep:when=1", |_| school.write(DAY, &whole));
            assert_eq!(answer.ok()["menu"]["plates"]["primero"]["name"], "whole");
        }
    }
}

#[test]
fn a_settings_file_that_is_being_saved_is_read_again() {
    let school = School::new();
    let folder = tempfile::tempdir().unwrap();
    let program = program_in(folder.path(), "");
    let data = format!("COMEDOR_DATA_DIR={}\n", school.data().display());
    let read = school
        .get("get_menu")
        .program(&program)
        .unset("COMEDOR_DATA_DIR");
    let save = |_: &str| fs::write(folder.path().join("comedor.conf"), data).unwrap();
    read.stopped("clock_nanosleep:when=1", save).ok();
}

#[test]
fn the_parent_of_the_aulario_folder_need_not_be_readable() {
    let school = School::new();
    fs::create_dir(school.path("aula1")).unwrap();
    chown(school.path("aula1"), Some(65534), Some(65534)).expect("this test needs to run as root");
    chmod(school.sessions().join("sess_admin"), 0o666);
    chmod(school.aularios(), 0o711);
    school
        .post("save_menu")
        .json(&save("x"))
        .under(AS_NOBODY)
        .run()
        .ok();
}

/// As VirtualBox's shared folders, older CIFS and some drivers of FUSE answer; PHP saves there.
#[test]
fn a_folder_that_cannot_be_flushed_prevents_no_save() {
    for (error, is_saved) in [
        ("EINVAL", true),
        ("EOPNOTSUPP", true),
        ("EBADF", true),
        ("EIO", false),
    ] {
        let school = School::new();
        let day = school.path(DAY).parent().unwrap().to_owned();
        let folders: Vec<_> = day
            .ancestors()
            .take(5)
            .map(|it| it.to_str().unwrap())
            .collect();
        let mut strace = vec!["strace", "-f", "-o", "/dev/null"];
        strace.extend(folders.iter().flat_map(|folder| ["-P", folder]));
        let fault = format!("inject=fsync:error={error}");
        strace.extend(["-e", &fault]);
        for name in ["first", "second"] {
            let answer = school
                .post("save_menu")
                .json(&save(name))
                .under(&strace)
                .run();
            assert_eq!(answer.status == 200, is_saved, "{error}: {}", answer.log);
        }
        let (centros, warning) = (school.data().join("Centros"), "a power cut can undo saves");
        let checked = [
            "strace",
            "-f",
            "-o",
            "/dev/null",
            "-P",
            centros.to_str().unwrap(),
            "-e",
            &fault,
        ];
        let findings = crate::check::check(&school, &checked, &[], "");
        assert_eq!(
            format!("{findings:?}").contains(warning),
            is_saved,
            "{findings:#?}"
        );
    }
}

#[test]
fn a_folder_that_its_user_may_not_list_prevents_no_save() {
    let school = School::with_menu("old");
    chmod(school.sessions().join("sess_admin"), 0o666);
    let day = school.path(DAY).parent().unwrap().to_owned();
    for path in [school.path("aula1"), school.path("aula1/Comedor")] {
        chmod(path, 0o777);
    }
    [DAY, LOCK]
        .iter()
        .for_each(|file| chmod(school.path(file), 0o666));
    chmod(day.parent().unwrap(), 0o733);
    chmod(&day, 0o733);
    for date in [DATE, "2026-11-21"] {
        let body = json!({"date": date, "menu_type": "basal", "plates": {}});
        school
            .post("save_menu")
            .json(&body)
            .under(AS_NOBODY)
            .run()
            .ok();
    }
    let findings = crate::check::check(&school, AS_NOBODY, &[], "");
    let text = "this user may not list it: a power cut can undo saves";
    crate::check::found(&findings, "warning", "2026-11", text);
    chmod(day.parent().unwrap(), 0o777);
    let findings = crate::check::check(&school, AS_NOBODY, &[], "");
    crate::check::found(&findings, "warning", "2026-11/20", text);
}

#[test]
fn a_success_is_on_disk_before_its_answer() {
    let school = School::new();
    let base = school.aularios().display().to_string();
    let save = school.post("save_menu").json(&save("x"));
    let calls = || {
        let (answer, trace) = save.trace(&["-y", "-e", "trace=mkdir,fsync,renameat2,write"]);
        answer.ok();
        let call = |(call, _, line): (&str, usize, &str)| match line.split_once(&base) {
            Some((_, path)) => Some(format!("{call} {}", path.split(['"', '>']).next()?)),
            None => line.starts_with("write(1").then(|| "answer".to_owned()),
        };
        calls(&trace)
            .into_iter()
            .filter_map(call)
            .collect::<Vec<_>>()
    };
    // Every new folder is flushed in the one around it, before the file is in place.
    let folders = [
        "mkdir /aula1", "mkdir /aula1", "fsync ", "mkdir /aula1/Comedor", "fsync /aula1",
        "mkdir /aula1/Comedor/2026-11", "fsync /aula1/Comedor", "mkdir /aula1/Comedor/2026-11/20",
        "fsync /aula1/Comedor/2026-11",
    ];
    let file = [
        "write /aula1/Comedor/2026-11/20/._datos.json.tmp",
        "fsync /aula1/Comedor/2026-11/20/._datos.json.tmp",
        "renameat2 /aula1/Comedor/2026-11/20/._datos.json.tmp",
        "fsync /aula1/Comedor/2026-11/20",
        "answer",
    ];
    assert_eq!(calls(), [&folders[..], &file].concat());
    assert_eq!(calls(), file);
}

#[test]
fn files_are_unchanged_if_the_disk_or_a_limit_prevents_a_write() {
    let school = School::with_menu("old");
    let old = school.read(DAY);
    let folder = school.path("aula1");
    let in_mounts = |script| {
        vec![
            "unshare",
            "--mount",
            "sh",
            "-c",
            script,
            folder.to_str().unwrap(),
        ]
    };
    let full = "cd $0 && mount -t tmpfs -o size=64k none $0 && cp -r . $0 &&
        ! head -c 64K /dev/zero > $0/filler 2> /dev/null &&
        \"$@\" && diff -r Comedor $0/Comedor >&2";
    let read_only = "mount --bind $0 $0 && mount -o remount,bind,ro $0 && exec \"$@\"";
    let without_locks = |fault| vec!["strace", "-o", "/dev/null", "-e", fault];
    for (wrapper, file, error) in [
        (in_mounts(full), "._datos.json.tmp", 28),
        (in_mounts(read_only), "", 30),
        (vec!["prlimit", "--fsize=16"], "._datos.json.tmp", 27),
        // The lock can be open, and no file beside it.
        (vec!["prlimit", "--nofile=4"], LOCK, 24),
        // The session is locked first, and unlocked by the second call.
        (
            without_locks("inject=flock:error=ENOLCK:when=1"),
            "sess_admi",
            37,
        ),
        (without_locks("inject=flock:error=ENOLCK:when=3"), LOCK, 37),
    ] {
        let answer = school
            .post("save_menu")
            .json(&save("new"))
            .under(&wrapper)
            .run();
        let log = &answer.fails("INTERNAL_ERROR").log;
        assert!(
            log.contains(file) && log.contains(&format!("os error {error}")),
            "{log}"
        );
        assert_eq!(school.read(DAY), old, "{wrapper:?}");
    }
}

/// A timer of timer_create(2) would need one of them (RLIMIT_SIGPENDING).
#[test]
fn a_lock_is_waited_for_even_if_its_user_has_too_many_signals() {
    let school = School::with_menu("old");
    let lock = fs::File::open(school.path(LOCK)).unwrap();
    lock.lock().unwrap();
    let save = school
        .post("save_menu")
        .json(&save("new"))
        .under(&["prlimit", "--sigpending=0"]);
    let (options, parts) = (["-e", "trace=setitimer"], ["setitimer"]);
    let (answer, _) = save.traced(&options, &parts, |_| lock.unlock().unwrap());
    answer.ok();
}
