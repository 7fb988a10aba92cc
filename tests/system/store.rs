//! The data files: the same bytes as PHP writes, the owner that they had, on disk before the answer.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use crate::attributes::open_school;
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
fn written_files_are_byte_for_byte_as_by_php() {
    let school = School::new();
    let label = "Menú «ñ» / \"x\" \\ \u{2028} \u{7f} \u{1} 😀";
    let added = json!({"id": "nuevo", "label": label, "color": "#FF00aa"});
    school.post("add_menu_type").json(&added).run().ok();
    school.save(save(label));
    school.write("aula1/Comedor/2026-11/19/_datos.json", ODD);
    let mut body = save("Sopa");
    body["date"] = json!("2026-11-19");
    school.save(body);
    for path in [TYPES, DAY, "aula1/Comedor/2026-11/19/_datos.json"] {
        let written = school.read(path);
        let by_php = php(REWRITE, &[&school.path(path)]);
        assert_eq!(written, String::from_utf8(by_php).unwrap());
    }
}

#[test]
fn number_that_php_reads_but_cannot_write_makes_a_file_malformed() {
    let school = School::new();
    let file = r#"{"date":"2026-11-20","menus":{"basal":{"kcal":1e999}}}"#;
    school.write(DAY, file);
    let by_php = php(REWRITE, &[&school.path(DAY)]);
    assert_eq!(by_php, b"");
    let answer = school.post("save_menu").json(&save("x")).run();
    assert!(answer.fails("INTERNAL_ERROR").log.contains("out of range"), "{}", answer.log);
    assert_eq!(school.read(DAY), file);
}

#[test]
fn a_change_to_a_file_of_php_changes_nothing_else() {
    let school = School::new();
    school.write(DAY, ODD);
    school.write("before.json", php(REWRITE, &[&school.path(DAY)]));
    school.save(save("Sopa"));
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
    let school = School::new();
    school.save(save("whole"));
    let whole = school.read(DAY);
    for half in ["", &whole[..whole.len() / 2]] {
        school.write(DAY, half);
        let read = school.get("get_menu").query("date", DATE);
        let answer = read.stopped("clock_nanosleep:when=1", |_| school.write(DAY, &whole));
        assert_eq!(answer.ok()["menu"]["plates"]["primero"]["name"], "whole");
    }
}

#[test]
fn a_settings_file_that_is_being_saved_is_read_again() {
    let school = School::new();
    let folder = tempfile::tempdir().unwrap();
    let program = program_in(folder.path(), "");
    let data = format!("COMEDOR_DATA_DIR={}\n", school.data().display());
    let read = school.get("get_menu").program(&program).unset("COMEDOR_DATA_DIR");
    let save = |_: &str| fs::write(folder.path().join("comedor.conf"), data).unwrap();
    read.stopped("clock_nanosleep:when=1", save).ok();
}

#[test]
fn a_replaced_file_keeps_owner_group_and_mode() {
    let school = School::new();
    school.save(save("x"));
    let path = school.path(DAY);
    for (owner, group, mode) in [(1234, 4321, 0o640), (0, 0, 0o600), (1234, 1234, 0o666)] {
        chown(&path, Some(owner), Some(group)).expect("this test needs to run as root");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        school.save(save("y"));
        let now = fs::metadata(&path).unwrap();
        assert_eq!((now.uid(), now.gid(), now.mode() & 0o7777), (owner, group, mode));
    }
}

#[test]
fn the_parent_of_the_aulario_folder_need_not_be_readable() {
    let school = School::new();
    fs::create_dir(school.path("aula1")).unwrap();
    chown(school.path("aula1"), Some(65534), Some(65534)).expect("this test needs to run as root");
    let open = |path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open(school.data().parent().unwrap().to_owned(), 0o755);
    open(school.sessions().join("sess_admin"), 0o666);
    open(school.aularios(), 0o711);
    school.post("save_menu").json(&save("x")).under(AS_NOBODY).run().ok();
}

/// As `nobody`, also of group 4567, in a school whose files belong to others.
#[test]
fn a_file_is_replaced_only_if_this_user_may_write_it_and_its_group_keeps_access() {
    const PLAIN: (u32, u32) = (0, 0o777);
    let school = open_school();
    let path = school.path(DAY);
    let folder = path.parent().unwrap();
    for (owner, group, mode, (folder_group, folder_mode), replaced) in [
        (1234, 4567, 0o664, PLAIN, true),
        (1234, 4567, 0o644, PLAIN, false),
        (1234, 4321, 0o664, PLAIN, false),
        (1234, 4321, 0o666, PLAIN, false),
        (1234, 4321, 0o664, (4321, 0o2777), false),
        (1234, 4321, 0o644, (4321, 0o2777), false),
        (1234, 4321, 0o664, (4567, 0o2777), false),
        (65534, 4567, 0o600, PLAIN, true),
        (65534, 65534, 0o600, PLAIN, true),
        (65534, 65534, 0o444, PLAIN, false),
        (65534, 4321, 0o664, PLAIN, false),
    ] {
        chown(folder, None, Some(folder_group)).expect("this test needs to run as root");
        fs::set_permissions(folder, fs::Permissions::from_mode(folder_mode)).unwrap();
        chown(&path, Some(owner), Some(group)).expect("this test needs to run as root");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let before = school.read(DAY);
        let before_files = school.files();
        let name = format!("{owner} {group} {mode:o} {folder_group} {folder_mode:o}");
        let user = ["setpriv", "--reuid=65534", "--regid=65534", "--groups=4567"];
        let answer = school.post("save_menu").json(&save(&name)).under(&user).run();
        if replaced {
            answer.ok();
            assert!(school.read(DAY).contains(&name));
            let now = fs::metadata(&path).unwrap();
            assert_eq!((now.uid(), now.gid(), now.mode() & 0o7777), (65534, group, mode), "{name}");
        } else {
            assert!(answer.fails("INTERNAL_ERROR").log.contains(DAY), "{}", answer.log);
            assert_eq!(school.read(DAY), before, "{name}");
        }
        assert_eq!(school.files(), before_files, "{name}");
    }
}

#[test]
fn a_success_is_on_disk_before_its_answer() {
    let school = School::new();
    let calls = |cgi: &Cgi| {
        let (answer, text) = cgi.trace(&["-y", "-e", "trace=mkdir,fsync,renameat2,write"]);
        answer.ok();
        let base = school.aularios();
        let calls = text
            .lines()
            .filter(|line| line.contains(base.to_str().unwrap()) || line.starts_with("write(1"));
        calls
            .map(|line| {
                let call = line.split('(').next().unwrap();
                let path = line.split(base.to_str().unwrap()).nth(1).unwrap_or("");
                let path = path.split(['"', '>']).next().unwrap();
                format!("{call} {path}")
            })
            .collect::<Vec<_>>()
    };
    let save = school.post("save_menu").json(&save("x"));
    let place = "/aula1/Comedor/2026-11/20";
    let last = [
        format!("write {place}/._datos.json.tmp"),
        format!("fsync {place}/._datos.json.tmp"),
        format!("renameat2 {place}/._datos.json.tmp"),
        format!("fsync {place}"),
        "write ".to_owned(),
    ];
    // Every new folder is flushed in the one around it, before the file is in place.
    let mut first: Vec<String> =
        ["mkdir /aula1", "mkdir /aula1", "fsync "].map(str::to_owned).into();
    for folder in ["/aula1/Comedor", "/aula1/Comedor/2026-11", place] {
        let around = Path::new(folder).parent().unwrap().display();
        first.extend([format!("mkdir {folder}"), format!("fsync {around}")]);
    }
    first.extend(last.clone());
    assert_eq!(calls(&save), first);
    assert_eq!(calls(&save), last);
}

/// The lock can be open, and no file beside it.
#[test]
fn too_few_file_descriptors_are_an_internal_error() {
    let school = School::new();
    let save = school.post("save_menu").json(&save("x")).under(&["prlimit", "--nofile=4"]);
    let answer = save.run();
    let log = &answer.fails("INTERNAL_ERROR").log;
    assert!(log.contains(LOCK) && log.contains("os error 24"), "{log}");
}

/// It can create no timer then (RLIMIT_SIGPENDING).
#[test]
fn a_lock_is_waited_for_even_if_its_user_has_too_many_signals() {
    let school = School::new();
    school.save(save("old"));
    let lock = fs::File::open(school.path(LOCK)).unwrap();
    lock.lock().unwrap();
    let save = school.post("save_menu").json(&save("new")).under(&["prlimit", "--sigpending=0"]);
    let mut waiting = save.traced(&["-e", "trace=timer_create,flock"]);
    waiting.wait_for("timer_create");
    waiting.wait_for("flock");
    lock.unlock().unwrap();
    waiting.answer().0.ok();
}
