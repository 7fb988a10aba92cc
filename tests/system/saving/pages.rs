//! Saves of PHP pages by `examples/guardar.php`, alone and beside the program. The pages are run by `php-cli`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use super::attributes::{getfacl, give};
use super::file_systems::Mounted;
use crate::support::power_cuts::{bad_states, is_of_file, states_during};
use crate::support::site::wait_until;
use crate::support::tracer::{Stop, Tracer};
use crate::support::writes::{Write, writes};
use crate::support::*;

const GUARDAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/guardar.php");

/// A page that saves: its arguments are the folder of the aulario, the path of the file, and the new content. Says that
/// it has saved, on standard output; if not, why, on standard error.
const SAVE: &str = "$lock = \\comedor\\lock($argv[1]);
    \\comedor\\save($argv[2], json_decode($argv[3], true));
    echo 'saved';";

/// PHP that runs this code after `guardar.php`, without a php.ini.
fn page(code: &str, arguments: &[&dyn AsRef<Path>]) -> Command {
    let mut php = Command::new("php");
    let arguments = arguments.iter().map(|argument| argument.as_ref());
    php.args(["-n", "-d", "display_errors=stderr", "-r"])
        .arg(format!("require '{GUARDAR}'; {code}"))
        .arg("--")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    php
}

/// The page that saves this content of the file, in `aula1`.
fn saving(school: &School, file: &str, content: &str) -> Command {
    page(SAVE, &[&school.path("aula1"), &school.path(file), &content])
}

/// What the page says, and whether it has saved.
#[track_caller]
fn said(output: &Output) -> (bool, String) {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_saved = output.stdout == b"saved";
    assert!(is_saved || output.stdout.is_empty(), "{output:?}");
    (is_saved, errors)
}

/// The page saves, and says nothing else.
#[track_caller]
fn saves(mut page: Command) {
    let output = page.output().expect("php-cli");
    assert_eq!(said(&output), (true, String::new()));
}

/// The page fails with a sentence that has this part.
#[track_caller]
fn fails(mut page: Command, part: &str) {
    let (is_saved, errors) = said(&page.output().expect("php-cli"));
    assert!(!is_saved && errors.contains(part), "{errors}");
}

fn temporary_files(school: &School) -> usize {
    let files = school.files().into_iter();
    files.filter(|path| path.ends_with(".tmp")).count()
}

/// Starts the page of a write under ptrace(2): it saves what the program would.
fn traced(write: &Write, school: &School, new: &str) -> Tracer {
    Tracer::start(&mut saving(school, write.file, new), &[])
}

#[test]
fn power_cut_after_any_system_call_of_a_page_leaves_the_old_or_the_new_and_the_new_after_the_save()
{
    let (mut count, mut without_flush) = (0, [0, 0]);
    for write in writes() {
        let new = write.old_and_new().1.unwrap();
        let states = |is_real: &dyn Fn(&Stop) -> bool| {
            let (states, output) =
                states_during(&write, |school| traced(&write, school, &new), is_real);
            assert!(said(&output).0);
            states
        };
        let all = states(&|_| true);
        if let Some(bad) = bad_states(&write, &all).next() {
            panic!("{bad}");
        }
        count += all.len();
        // So a flush that is missing would be found.
        let kinds: [&dyn Fn(&Stop) -> bool; 2] = [&|stop| !is_of_file(stop), &is_of_file];
        for (bad, is_real) in without_flush.iter_mut().zip(kinds) {
            *bad += usize::from(bad_states(&write, &states(is_real)).next().is_some());
        }
    }
    println!("power cuts while pages save: {count} states, 0 bad");
    assert_eq!(without_flush, [writes().len(); 2]);
}

/// What happens in place of a system call of a page.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Error(i32),
}

/// Runs the page with a fault in place of the call of this number. Returns the names of its calls on files, from the
/// opening of `guardar.php` to the answer, and its output.
fn run(
    write: &Write,
    school: &School,
    new: &str,
    fault: Option<(usize, Fault)>,
) -> (Vec<&'static str>, Output) {
    let mut program = traced(write, school, new);
    let (mut calls, mut has_begun, mut is_over) = (Vec::new(), false, false);
    while let Some(stop) = program.next() {
        let name = stop.call.name();
        if let Some(result) = stop.result {
            has_begun |= name.starts_with("open")
                && fs::read_link(stop.descriptor(result))
                    .is_ok_and(|path| path == Path::new(GUARDAR));
            continue;
        }
        // The page says that it has saved.
        is_over |= name == "write" && stop.call.arguments[0] == 1;
        if !has_begun || is_over || name == "another call" {
            continue;
        }
        match fault {
            Some((number, Fault::Kill)) if number == calls.len() => program.kill(),
            Some((number, Fault::Error(error))) if number == calls.len() => {
                program.skip(-i64::from(error))
            }
            _ => {}
        }
        calls.push(name);
    }
    (calls, program.output())
}

/// Whether the page has saved and what it said, after the fault. The file must be the new one if it has saved, or the
/// old or the new one after a kill, else the old one. The next write by the program must succeed and leave nothing.
fn after_fault(write: &Write, call: &str, fault: (usize, Fault)) -> bool {
    let case = format!("{}: {fault:?} of {call}", write.kind);
    let (old, new) = write.old_and_new();
    let school = write.school();
    let (_, output) = run(write, &school, new.as_ref().unwrap(), Some(fault));
    let content = write.content(&school);
    let is_new = content == new;
    assert!(is_new || content == old, "{case}: {content:?}");
    match fault.1 {
        Fault::Kill => assert!(is_new || output.stdout.is_empty(), "{case}"),
        Fault::Error(_) => {
            let (is_saved, errors) = said(&output);
            assert_eq!(is_saved, is_new, "{case}: {errors}");
            let left = temporary_files(&school);
            assert!(
                left == 0 || call.starts_with("unlink"),
                "{case}: {left} temporary files"
            );
        }
    }
    write.next(&school).run().ok();
    assert_eq!(temporary_files(&school), 0, "{case}");
    is_new
}

#[test]
fn kill_at_any_system_call_of_a_page_leaves_the_old_or_the_new_file() {
    let (mut kills, mut stored) = (0, 0);
    for write in writes() {
        let new = write.old_and_new().1.unwrap();
        let (calls, _) = run(&write, &write.school(), &new, None);
        assert!(calls.len() > 30, "{calls:?}");
        for (number, call) in calls.iter().enumerate() {
            stored += usize::from(after_fault(&write, call, (number, Fault::Kill)));
            kills += 1;
        }
    }
    assert!(stored > 0 && stored < kills);
    println!("kills of pages: {kills}, losses: 0");
}

#[test]
fn page_reports_the_truth_after_an_error_of_any_system_call() {
    const KINDS: [&str; 3] = [
        "first save of an aulario", "a day replaced", "types replaced",
    ];
    #[rustfmt::skip]
    const CALLS: [&str; 17] = [
        "openat", "open", "write", "fsync", "rename", "renameat", "renameat2", "unlink", "unlinkat", "flock", "chmod",
        "fchmodat", "chown", "fchownat", "mkdir", "access", "faccessat",
    ];
    let (mut errors, mut stored) = (0, 0);
    for write in writes().iter().filter(|write| KINDS.contains(&write.kind)) {
        let new = write.old_and_new().1.unwrap();
        let (calls, _) = run(write, &write.school(), &new, None);
        let calls = calls
            .iter()
            .enumerate()
            .filter(|(_, call)| CALLS.contains(call));
        for (number, call) in calls {
            for error in [libc::EIO, libc::ENOSPC, libc::EACCES] {
                let fault = (number, Fault::Error(error));
                stored += usize::from(after_fault(write, call, fault));
                errors += 1;
            }
        }
    }
    assert!(stored > 0 && stored < errors);
    println!("errors of system calls of pages: {errors}, losses: 0");
}

#[test]
fn page_on_a_full_disk_leaves_the_old_file_and_says_so() {
    let school = School::new();
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(school.data());
    output(&mut mount, "a run as root");
    let _mounted = Mounted(school.data());
    school.write("aula1.json", "{}");
    let old = json!({"date": DATE, "menus": {"basal": {"plates": {"primero": {"name": "old"}}}}})
        .to_string();
    school.write(DAY, &old);
    let long = json!({"menus": {"basal": {"plates": {"primero": {"name": "x".repeat(30_000)}}}}})
        .to_string();
    let filler = school.data().join("filler");
    fs::write(&filler, vec![b'x'; 40_000]).unwrap();
    fails(saving(&school, DAY, &long), "the disk must have room");
    assert_eq!(school.read(DAY), old);
    assert_eq!(temporary_files(&school), 0);
    fs::remove_file(filler).unwrap();
    saves(saving(&school, DAY, &long));
}

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

/// What remains of a file after a page of the user `nobody` has saved it.
#[test]
fn file_is_replaced_if_its_access_can_be_kept_and_else_written_in_place() {
    const NOBODY: u32 = 65534;
    const REPLACED: bool = true;
    const IN_PLACE: bool = false;
    /// Owner and mode of the folder; owner, group and mode of the file, and its list, or that of the folder
    struct Case {
        folder: (u32, u32),
        file: (u32, u32, u32),
        list: &'static str,
        is_replaced: bool,
    }
    fn case(
        folder: (u32, u32),
        file: (u32, u32, u32),
        list: &'static str,
        is_replaced: bool,
    ) -> Case {
        Case {
            folder,
            file,
            list,
            is_replaced,
        }
    }
    let cases = [
        case((NOBODY, 0o755), (NOBODY, NOBODY, 0o644), "", REPLACED),
        case((NOBODY, 0o755), (NOBODY, NOBODY, 0o600), "", REPLACED),
        case((NOBODY, 0o755), (NOBODY, NOBODY, 0o664), "", REPLACED),
        case(
            (NOBODY, 0o755),
            (NOBODY, NOBODY, 0o664),
            "u:1234:rw",
            IN_PLACE,
        ),
        case(
            (NOBODY, 0o755),
            (NOBODY, NOBODY, 0o640),
            "u:1234:r",
            IN_PLACE,
        ),
        // As after `chown -R nobody`
        case((NOBODY, 0o755), (NOBODY, 0, 0o644), "", REPLACED),
        case((NOBODY, 0o755), (NOBODY, 0, 0o664), "", IN_PLACE),
        case((0, 0o777), (0, NOBODY, 0o664), "", IN_PLACE),
        // As after `chmod -R 777`
        case((0, 0o777), (0, 0, 0o777), "", REPLACED),
        case((0, 0o1777), (0, 0, 0o777), "", IN_PLACE),
        case((0, 0o755), (NOBODY, NOBODY, 0o644), "", IN_PLACE),
        case((0, 0o777), (0, 0, 0o666), "", REPLACED),
        case((0, 0o777), (1234, 0, 0o666), "", REPLACED),
        case((0, 0o777), (1234, 0, 0o666), "u:1235:rw", IN_PLACE),
        // Someone who is denied
        case(
            (NOBODY, 0o755),
            (NOBODY, NOBODY, 0o666),
            "u:1235:-,m::rw",
            IN_PLACE,
        ),
        case(
            (NOBODY, 0o755),
            (NOBODY, NOBODY, 0o666),
            "d:g::-,d:o::rw,d:m::rw",
            IN_PLACE,
        ),
        // Members of PHP's group could write it
        case((0, 0o777), (0, 0, 0o606), "", IN_PLACE),
        case((NOBODY, 0o755), (NOBODY, 0, 0o606), "", IN_PLACE),
        // PHP as the owner could not write it
        case((NOBODY, 0o755), (0, NOBODY, 0o466), "", IN_PLACE),
    ];
    for Case {
        folder: (folder_owner, folder_mode),
        file: (owner, group, mode),
        list,
        is_replaced,
    } in cases
    {
        let case = format!("{folder_owner} {folder_mode:o}, {owner} {group} {mode:o} {list}");
        let school = School::new();
        give(&school.path(""), NOBODY, NOBODY, 0o755, "");
        school.write(DAY, "{\"a longer\": \"content\"}");
        let (path, folder) = (school.path(DAY), school.path("aula1"));
        give(&folder, NOBODY, NOBODY, 0o755, "");
        let (of_folder, of_file) = if list.starts_with("d:") {
            (list, "")
        } else {
            ("", list)
        };
        give(
            path.parent().unwrap(),
            folder_owner,
            0,
            folder_mode,
            of_folder,
        );
        give(&path, owner, group, mode, of_file);
        let (before, entries) = (fs::metadata(&path).unwrap(), getfacl(&path));
        saves(as_nobody(saving(&school, DAY, "[1]")));
        let after = fs::metadata(&path).unwrap();
        assert_eq!(school.read(DAY), "[\n    1\n]", "{case}");
        assert_eq!(after.ino() != before.ino(), is_replaced, "{case}");
        assert_eq!(after.mode(), before.mode(), "{case}");
        if !is_replaced {
            assert_eq!(getfacl(&path), entries, "{case}");
        }
        assert_eq!(temporary_files(&school), 0, "{case}");
    }
}

/// Most servers have no `acl`, whose programs make lists and show them.
#[test]
fn without_getfacl_a_file_is_replaced_if_its_group_may_do_no_more_than_others() {
    for (mode, is_replaced) in [(0o644, true), (0o666, true), (0o664, false)] {
        let school = School::new();
        school.write(DAY, "old");
        let path = school.path(DAY);
        chmod(&path, mode);
        let before = fs::metadata(&path).unwrap().ino();
        let code = format!("putenv('PATH=/none'); {SAVE}");
        saves(page(&code, &[&school.path("aula1"), &path, &"[]"]));
        let after = fs::metadata(&path).unwrap().ino();
        assert_eq!(after != before, is_replaced, "{mode:o}");
    }
}

fn as_nobody(page: Command) -> Command {
    let mut command = Command::new(AS_NOBODY[0]);
    command
        .args(&AS_NOBODY[1..])
        .arg(page.get_program())
        .args(page.get_args());
    command
}

#[test]
fn what_a_page_cannot_save_stays_and_the_exception_says_what_to_do() {
    let school = School::new();
    school.write(DAY, "old");
    let allow = "allow the user of PHP to write it";
    for (owner, mode) in [(0, 0o644), (65534, 0o444)] {
        give(&school.path(""), 65534, 65534, 0o755, "");
        give(&school.path("aula1"), 65534, 65534, 0o755, "");
        give(&school.path(DAY), owner, 0, mode, "");
        fails(as_nobody(saving(&school, DAY, "{}")), allow);
    }
    let [aulario, path] = [school.path("aula1"), school.path(DAY)];
    for (value, reason) in [
        ("[INF]", "Inf and NaN cannot be JSON encoded"),
        (
            "json_encode([])",
            "save the value itself, before json_encode",
        ),
    ] {
        fails(
            page(
                &format!("\\comedor\\save($argv[2], {value});"),
                &[&aulario, &path],
            ),
            &format!("nothing was changed: {reason}"),
        );
    }
    assert_eq!(school.read(DAY), "old");
}

/// A page may take 0 or null for a failure.
#[test]
fn save_returns_the_number_of_bytes_as_file_put_contents_does() {
    let school = School::new();
    school.write(DAY, "old");
    let code = "echo \\comedor\\save($argv[1], ['ñ' => 1]), ' ', filesize($argv[1]);";
    let output = output(&mut page(code, &[&school.path(DAY)]), "php-cli");
    let bytes = school.read(DAY).len();
    assert_eq!(
        String::from_utf8(output).unwrap(),
        format!("{bytes} {bytes}")
    );
}

/// Old versions of PHP, hosting that forbids functions, a link, a lock that is not for PHP.
#[test]
fn page_saves_also_where_it_cannot_flush_lock_or_replace() {
    let school = School::new();
    school.write(DAY, "old");
    let path = school.path(DAY);
    let with = |setting: &str| {
        let mut php = Command::new("php");
        let page = saving(&school, DAY, "[]");
        php.args(["-d", setting]).args(page.get_args());
        php
    };
    let inode = || fs::metadata(&path).unwrap().ino();
    let first = inode();
    saves(with("disable_functions=fsync,proc_open"));
    let second = inode();
    assert_ne!(first, second, "replaced");
    chmod(&path, 0o664);
    saves(with("disable_functions=proc_open"));
    assert_eq!(
        inode(),
        second,
        "in place: there may be an access control list"
    );
    let folders = format!("{}:{REPOSITORY}/examples", school.data().display());
    saves(with(&format!("open_basedir={folders}")));
    assert_ne!(inode(), second, "replaced: there is none");

    let target = school.folder().join("target");
    fs::rename(&path, &target).unwrap();
    symlink(&target, &path).unwrap();
    saves(saving(&school, DAY, "[2]"));
    assert_eq!(fs::read_to_string(target).unwrap(), "[\n    2\n]");
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());

    fs::remove_file(&path).unwrap();
    school.write(DAY, "old");
    give(&path, 65534, 65534, 0o644, "");
    give(&school.path(LOCK), 0, 0, 0o600, "");
    give(path.parent().unwrap(), 65534, 65534, 0o755, "");
    let before = inode();
    let output = as_nobody(saving(&school, DAY, "[3]"))
        .output()
        .expect("setpriv");
    let (is_saved, log) = said(&output);
    assert!(
        is_saved && log.contains("saves without it: allow the user of PHP"),
        "{log}"
    );
    assert_eq!(school.read(DAY), "[\n    3\n]");
    assert_eq!(
        inode(),
        before,
        "in place: without the lock, another page may have the temporary name"
    );
}

/// Hosting that forbids functions: the file is replaced if what is left is enough for it.
#[test]
fn page_saves_whatever_functions_are_switched_off() {
    const FUNCTIONS: &str = "chown chgrp chmod flock unlink rename stat fileperms proc_open proc_close \
        stream_get_contents usleep fsync";
    let every = FUNCTIONS.replace(' ', ",");
    for functions in FUNCTIONS.split_whitespace().chain([&*every]) {
        let school = School::new();
        school.write(DAY, "{\"a longer\": \"content\"}");
        let path = school.path(DAY);
        let before = fs::metadata(&path).unwrap().ino();
        let mut php = Command::new("php");
        php.args(["-d", &format!("disable_functions={functions}")])
            .args(saving(&school, DAY, "[]").get_args());
        let (is_saved, log) = said(&php.output().expect("php-cli"));
        assert!(is_saved, "{functions}: {log}");
        assert_eq!(school.read(DAY), "[]", "{functions}");
        let is_replaced = fs::metadata(&path).unwrap().ino() != before;
        if ["chown", "chgrp", "chmod", "usleep", "fsync", "proc_open"].contains(&functions) {
            assert!(is_replaced && log.is_empty(), "{functions}: {log}");
        } else {
            assert!(!is_replaced, "{functions}");
        }
    }
}

#[test]
fn page_saves_also_where_the_temporary_name_is_taken() {
    let school = School::new();
    school.write(DAY, "old");
    let path = school.path(DAY);
    let taken = path.with_file_name("._datos.json.tmp");
    fs::create_dir(&taken).unwrap();
    saves(saving(&school, DAY, "[1]"));
    assert_eq!(school.read(DAY), "[\n    1\n]");
    let new = path.with_file_name("Comedor-MenuTypes.json");
    fs::create_dir(new.with_file_name(".Comedor-MenuTypes.json.tmp")).unwrap();
    saves(page(SAVE, &[&school.path("aula1"), &new, &"[2]"]));
    assert_eq!(fs::read_to_string(&new).unwrap(), "[\n    2\n]");

    // A file of another user, in a folder in which only its owner can remove it
    fs::remove_dir(&taken).unwrap();
    fs::write(&taken, "").unwrap();
    give(&school.path("aula1"), 65534, 65534, 0o755, "");
    give(&school.path(LOCK), 65534, 65534, 0o660, "");
    give(path.parent().unwrap(), 0, 0, 0o1777, "");
    give(&path, 65534, 65534, 0o644, "");
    saves(as_nobody(saving(&school, DAY, "[3]")));
    assert_eq!(school.read(DAY), "[\n    3\n]");
}

/// Such as a path that was resolved, if the aulario is a link to another disk.
#[test]
fn page_saves_in_place_what_its_path_does_not_say_the_aulario_of() {
    let school = School::new();
    let linked = school.folder().join("linked");
    fs::create_dir_all(&linked).unwrap();
    for path in [
        linked.join("_datos.json"),
        school.path("aula1").join("../other/_datos.json"),
    ] {
        for folder in ["aula1", "other"] {
            fs::create_dir_all(school.path(folder)).unwrap();
        }
        fs::write(&path, "old").unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        let page = page(SAVE, &[&path.parent().unwrap(), &path, &"[]"]).output();
        let (is_saved, log) = said(&page.expect("php-cli"));
        assert!(is_saved, "{log}");
        assert!(log.contains("must have the folder Aularios"), "{log}");
        let after = fs::metadata(&path).unwrap().ino();
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), after),
            ("[]".into(), before)
        );
    }
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

/// The options of a page that writes in another way.
#[test]
fn options_replace_those_of_the_pages() {
    let school = School::new();
    let code = "\\comedor\\save($argv[1], ['á/b'], JSON_UNESCAPED_SLASHES);";
    output(&mut page(code, &[&school.path(TYPES)]), "php-cli");
    assert_eq!(school.read(TYPES), "[\"\\u00e1/b\"]");
}
