//! The lock of the aulario, which pages and the program share.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::process::Child;
use std::thread;

use super::*;
use crate::support::site::wait_until;

/// Adds plates to a day, one in each round, each time with the lock.
const ADD: &str = "[, $aulario, $path, $name, $rounds] = $argv;
    for ($round = 0; $round < $rounds; $round++) {
        $lock = \\comedor\\lock($aulario);
        $day = json_decode(file_get_contents($path), true, 512, JSON_THROW_ON_ERROR);
        $day['menus']['alergias']['plates'][\"$name-$round\"] = ['name' => 'page', 'pictogram' => ''];
        \\comedor\\save($path, $day);
        unset($lock);
    }
    echo 'saved';";

#[test]
fn pages_and_the_program_that_save_at_once_lose_nothing_and_reads_are_whole() {
    const WRITERS: usize = 4;
    // A menu has at most 64 plates for the program.
    const ROUNDS: usize = 15;
    let school = School::with_menu("first");
    let path = school.path(DAY);
    let run_pages = || {
        let start = |writer: usize| {
            let arguments: [&dyn AsRef<Path>; 4] = [
                &school.path("aula1"),
                &path,
                &format!("p{writer}"),
                &ROUNDS.to_string(),
            ];
            page(ADD, &arguments).spawn().expect("php-cli")
        };
        let pages: Vec<Child> = (0..WRITERS).map(start).collect();
        for page in pages {
            let output = page.wait_with_output().unwrap();
            assert_eq!(said(&output), (true, String::new()));
        }
    };
    let save = |writer| {
        for round in 0..ROUNDS {
            let plates = json!({format!("p{writer}-{round}"): {"name": "API"}});
            school.save(json!({"date": DATE, "menu_type": "basal", "plates": plates}));
        }
    };
    let reads = thread::scope(|scope| {
        let mut writers = vec![scope.spawn(run_pages)];
        writers.extend((0..WRITERS).map(|writer| scope.spawn(move || save(writer))));
        let mut reads = 0;
        while !writers.iter().all(|writer| writer.is_finished()) {
            school.menu("basal");
            serde_json::from_slice::<Value>(&fs::read(&path).unwrap()).expect("a whole file");
            reads += 1;
        }
        reads
    });
    let day: Value = serde_json::from_str(&school.read(DAY)).unwrap();
    for menu in ["alergias", "basal"] {
        let plates = day["menus"][menu]["plates"].as_object().unwrap();
        let saved = plates
            .keys()
            .filter(|key| key.starts_with("p") && key.contains('-'));
        assert_eq!(saved.count(), WRITERS * ROUNDS, "{menu}");
    }
    let saves = 2 * WRITERS * ROUNDS;
    println!("saves by pages and by the program: {saves}, reads: {reads}, losses: 0");
}

/// A page that waits for a line between its reading and its save.
const SLOW: &str = "$lock = \\comedor\\lock($argv[1]);
    $day = json_decode(file_get_contents($argv[2]), true);
    fwrite(STDERR, \"read\\n\");
    fgets(STDIN);
    $day['menus']['basal']['plates']['postre'] = ['name' => 'page', 'pictogram' => ''];
    \\comedor\\save($argv[2], $day);
    echo 'saved';";

/// Starts that page.
fn slow_page(school: &School) -> Child {
    let mut page = page(SLOW, &[&school.path("aula1"), &school.path(DAY)]);
    page.spawn().expect("php-cli")
}

/// Waits until the page has read.
#[track_caller]
fn has_read(page: &mut Child) {
    let mut line = String::new();
    let mut errors = BufReader::new(page.stderr.as_mut().unwrap());
    errors.read_line(&mut line).unwrap();
    assert_eq!(line, "read\n");
}

/// Lets the page save.
fn go_on(page: &mut Child) {
    let mut input = page.stdin.take().unwrap();
    input.write_all(b"\n").unwrap();
}

#[test]
fn save_by_the_program_waits_for_a_page_that_has_read_and_neither_change_is_lost() {
    let school = School::with_menu("old");
    let mut page = slow_page(&school);
    has_read(&mut page);
    let save = school.post("save_menu").json(&save("new")).start();
    wait_until("the program waits", || {
        waiting(&school.path(LOCK)) == [save.id()]
    });
    let name = |plate: &str| school.menu("basal")["menu"]["plates"][plate]["name"].clone();
    assert_eq!(name("primero"), "old", "reads need no lock");
    go_on(&mut page);
    assert_eq!(page.wait_with_output().unwrap().stdout, b"saved");
    Answer::of(save).ok();
    assert_eq!([name("primero"), name("postre")], ["new", "page"]);
}

#[test]
fn page_waits_for_the_lock_and_again_if_its_file_was_replaced_meanwhile() {
    let school = School::with_menu("old");
    let path = school.path(LOCK);
    let replaced = || {
        fs::remove_file(&path).unwrap();
        let file = File::create(&path).unwrap();
        file.lock().unwrap();
        file
    };
    let first = replaced();
    let mut page = slow_page(&school);
    let waits = |page: &Child| {
        wait_until("the page waits", || waiting(&path) == [page.id()]);
    };
    waits(&page);
    let second = replaced();
    drop(first);
    waits(&page);
    drop(second);
    has_read(&mut page);
    let third = replaced();
    go_on(&mut page);
    waits(&page);
    drop(third);
    assert_eq!(page.wait_with_output().unwrap().stdout, b"saved");
}

/// Two calls in one request must not wait for each other; the lock holds until the last value has gone, also if a program
/// goes on that the page has started.
#[test]
fn lock_is_one_in_a_request_and_is_held_until_its_value_goes() {
    let school = School::new();
    let code = "$is_free = function () use ($argv) {
            return flock(fopen($argv[1] . '/.comedor.lock', 'r'), LOCK_EX | LOCK_NB);
        };
        $first = \\comedor\\lock($argv[1]);
        $second = \\comedor\\lock($argv[1] . '/');
        $program = proc_open(['sh', '-c', 'echo started; cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        fgets($pipes[1]);
        unset($first);
        $before = $is_free();
        unset($second);
        $after = $is_free();
        echo json_encode([$before, $after]);
        if (!$after) exit;
        $lock = \\comedor\\lock($argv[1]);
        echo json_encode($is_free());";
    let output = output(&mut page(code, &[&school.path("aula1")]), "php-cli");
    assert_eq!(String::from_utf8_lossy(&output), "[false,true]false");
    let mode = fs::metadata(school.path(LOCK)).unwrap().mode();
    assert_eq!(mode & 0o007, 0, "the lock file is not for other users");
}

/// A page calls it for each request that may save, with an id that a user has sent.
#[test]
fn lock_creates_nothing_for_an_unknown_aulario_and_never_ends_the_page() {
    let school = School::new();
    school.write("new.json", "{}");
    school.write("file.json", "{}");
    school.write("file", "");
    let code = "echo json_encode(\\comedor\\lock($argv[1]));";
    let said = |aulario: &str, disabled: &str| {
        let mut php = Command::new("php");
        php.args(["-d", &format!("disable_functions={disabled}")]);
        php.args(page(code, &[&school.path(aulario)]).get_args());
        let output = php.output().expect("php-cli");
        let [stdout, log] =
            [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
        assert_eq!(stdout, "null", "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
        log
    };
    let before = files_below(&school.aularios(), &[]);
    for (aulario, advice) in [
        (
            "unknown",
            "there must be the file unknown.json beside the folder",
        ),
        (
            "unknown/Comedor/2026-11/20", "there must be the file unknown.json",
        ),
        ("a\nforged", "there must be the file a?forged.json"),
        ("file", "allow the user of PHP to create, read and write it"),
    ] {
        let log = said(aulario, "");
        assert!(
            log.contains("comedor: cannot lock ") && log.contains(advice),
            "{log}"
        );
    }
    let log = said("new", "mkdir");
    assert!(log.contains("allow the user of PHP to create"), "{log}");
    assert_eq!(files_below(&school.aularios(), &[]), before);
    let output = output(&mut page(code, &[&school.path("new")]), "php-cli");
    assert_eq!(output, b"{}", "the first save in an aulario");
}

/// A page can name the folder of the day in place of that of the aulario.
#[test]
fn lock_is_that_of_the_aulario_for_each_path_below_it() {
    let school = School::with_menu("old");
    let day = school.path(DAY);
    let folder = day.parent().unwrap();
    for path in [&day, folder, &school.path("aula1"), &folder.join("")] {
        let held = File::create(school.path(LOCK)).unwrap();
        held.lock().unwrap();
        let mut page = page(SLOW, &[&path, &day]).spawn().expect("php-cli");
        wait_until("the page waits", || {
            waiting(&school.path(LOCK)) == [page.id()]
        });
        drop(held);
        has_read(&mut page);
        go_on(&mut page);
        assert_eq!(page.wait_with_output().unwrap().stdout, b"saved");
        assert!(!folder.join(".comedor.lock").exists());
    }
}

/// Each locks an aulario, and saves in that of the other.
#[test]
fn pages_that_wait_for_each_other_both_save() {
    const CROSSED: &str = "$lock = \\comedor\\lock($argv[1]);
        fwrite(STDERR, \"read\\n\");
        fgets(STDIN);
        \\comedor\\save($argv[2], [$argv[3]], 0);
        fwrite(STDERR, \"went on\\n\");
        fgets(STDIN);
        echo 'saved';";
    let school = School::new();
    let file = |aulario: &str| school.path(aulario).join("Comedor-MenuTypes.json");
    let start = |own: &str, other: &str| {
        let mut page = page(CROSSED, &[&school.path(own), &file(other), &own]);
        let mut page = page.spawn().expect("php-cli");
        has_read(&mut page);
        page
    };
    let mut pages = [start("aula1", "aula2"), start("aula2", "aula1")];
    // Each has its lock until both have saved.
    for page in &mut pages {
        page.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
    for page in &mut pages {
        let errors = BufReader::new(page.stderr.as_mut().unwrap());
        let log: Vec<String> = errors.lines().take(2).map(Result::unwrap).collect();
        assert!(log[0].contains("lock one aulario at a time"), "{log:?}");
        assert_eq!(log[1], "went on");
    }
    for mut page in pages {
        go_on(&mut page);
        assert_eq!(page.wait_with_output().unwrap().stdout, b"saved");
    }
    assert_eq!(fs::read_to_string(file("aula1")).unwrap(), "[\"aula2\"]");
    assert_eq!(fs::read_to_string(file("aula2")).unwrap(), "[\"aula1\"]");
}

/// The data folder has two paths, of which neither is a link.
#[test]
fn lock_is_one_by_each_path_of_an_aulario() {
    let school = School::new();
    school.write(DAY, "old");
    let other = school.folder().join("other");
    fs::create_dir(&other).unwrap();
    let mut mount = Command::new("mount");
    mount.arg("--bind").args([&school.data(), &other]);
    output(&mut mount, "a run as root");
    let _mounted = Mounted(other.clone());
    let aulario = school.path("aula1");
    let aulario = other.join(aulario.strip_prefix(school.data()).unwrap());
    saves(page(SAVE, &[&aulario, &school.path(DAY), &"[]"]));
}
