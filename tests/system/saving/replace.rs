//! Replacing a file while others change it without a lock: PHP pages, and a user who deletes the lock
//! file.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::support::site::wait_until;
use crate::support::*;

/// A day that PHP saves while the program replaces it.
const BY_PHP: &str =
    r#"{"date":"2026-11-20","menus":{"basal":{"plates":{"cena":{"name":"PHP"}}}}}"#;

/// The temporary name of the file of the day. After the exchange, the old file has it.
const TEMPORARY: &str = "aula1/Comedor/2026-11/20/._datos.json.tmp";

/// Starts a PHP page that saves [`BY_PHP`] to `path`; returns once it waits in open(2) or has ended.
fn php_saves(path: &Path) -> Child {
    let code = "file_put_contents($argv[1], $argv[2]);";
    let mut php = Command::new("php");
    php.args(["-r", code, "--"])
        .arg(path)
        .arg(BY_PHP)
        .stdout(Stdio::null());
    let mut page = php
        .spawn()
        .expect("this test needs php: apt-get install php-cli");
    let wchan = format!("/proc/{}/wchan", page.id());
    let waits = || fs::read_to_string(&wchan).is_ok_and(|at| at.contains("lease"));
    wait_until("the page", || waits() || page.try_wait().unwrap().is_some());
    page
}

/// The steps of a request at which it can be stopped: after each of its calls named in `names`. The names of
/// some calls depend on the C library.
#[track_caller]
fn steps(request: &Cgi, names: &[&str]) -> Vec<String> {
    let of_library = ["statx", "fstat", "lstat", "open", "openat"];
    let (answer, trace) = request.trace(&[]);
    answer.ok();
    let mut calls = calls(&trace);
    calls.retain(|(call, ..)| names.contains(call));
    for name in names.iter().filter(|name| !of_library.contains(name)) {
        assert!(
            calls.iter().any(|(call, ..)| call == name),
            "{name}: {trace}"
        );
    }
    calls
        .iter()
        .map(|(call, time, _)| format!("{call}:when={time}"))
        .collect()
}

#[test]
fn save_by_php_at_any_step_of_a_replacement_is_kept() {
    let school = School::new();
    let request = school.post("save_menu").json(&save("CGI"));
    let make_new = || drop(fs::remove_file(school.path(DAY)));
    let make_old = || school.write(DAY, "{}");
    let old = &["fcntl", "renameat2", "fsync", "unlink", "pread64", "fchmod"][..];
    for (make, calls) in [
        (&make_new as &dyn Fn(), &["fsync", "renameat2"][..]),
        (&make_old, old),
    ] {
        make();
        for at in steps(&request, calls) {
            make();
            let mut page = None;
            let answer = request.stopped(&at, |_| page = Some(php_saves(&school.path(DAY))));
            assert!(page.unwrap().wait().unwrap().success());
            answer.ok();
            // PHP saves either before the program, which then keeps its plate, or after it.
            assert_eq!(
                school.menu("basal")["menu"]["plates"]["cena"]["name"],
                "PHP",
                "{at}"
            );
        }
    }
}

#[test]
fn a_save_succeeds_if_another_program_replaces_or_deletes_the_file_or_its_folder_at_any_step() {
    let school = School::with_menu("old");
    let request = school.post("save_menu").json(&save("CGI"));
    let calls = [
        "statx", "fstat", "lstat", "fcntl", "renameat2", "fsync", "unlink",
    ];
    for at in steps(&request, &calls) {
        school.write(DAY, "{}");
        let replace = |_: &str| {
            school.write("new", BY_PHP);
            fs::rename(school.path("new"), school.path(DAY)).unwrap();
        };
        request.stopped(&at, replace).ok();
        let plates = &school.menu("basal")["menu"]["plates"];
        assert_eq!(plates["cena"]["name"], "PHP", "replaced after {at}");
        request
            .stopped(&at, |_| fs::remove_file(school.path(DAY)).unwrap())
            .ok();
    }
    for folder in ["aula1/Comedor/2026-11", "aula1"].map(|folder| school.path(folder)) {
        fs::remove_dir_all(&folder).unwrap();
        for at in steps(
            &request,
            &["mkdir", "open", "openat", "flock", "fsync", "renameat2"],
        ) {
            _ = fs::remove_dir_all(&folder);
            request
                .stopped(&at, |_| _ = fs::remove_dir_all(&folder))
                .ok();
        }
    }
}

/// Also one after the last look at the file, directly before the exchange.
#[test]
fn change_of_owner_mode_or_access_control_list_during_a_save_is_kept() {
    let school = School::with_menu("old");
    let path = school.path(DAY);
    let access = || output(Command::new("getfacl").arg("-np").arg(&path), "acl");
    for (at, change) in [
        ("fsync:when=1", "chmod 660"),
        ("fsync:when=1", "chgrp 1234"),
        ("fsync:when=1", "chown 1234"),
        ("fsync:when=1", "setfacl -m u:1234:rw"),
        ("pread64:when=1", "chmod 600"),
        ("pread64:when=1", "chgrp 4321"),
        ("pread64:when=1", "chown 4321"),
    ] {
        let before = access();
        let request = school.post("save_menu").json(&save(change));
        let mut changed = Vec::new();
        let answer = request.stopped(at, |_| {
            let shell = format!("{change} \"$0\"");
            output(Command::new("sh").args(["-c", &shell]).arg(&path), "acl");
            changed = access();
        });
        answer.ok();
        assert!(before != changed && changed == access(), "{change} at {at}");
    }
}

/// A page that saves by a rename does not wait for the lease.
#[test]
fn path_is_opened_directly_before_the_file_is_read_again_and_before_the_exchange() {
    let school = School::with_menu("old");
    let (answer, trace) = school.post("save_menu").json(&save("new")).trace(&[]);
    answer.ok();
    let (before, _) = trace.split_once("\nrenameat2(").unwrap();
    let (first, second) = before.rsplit_once("\npread64(").unwrap();
    let looks = ["/Aularios/", "F_GETLEASE"];
    for part in [first, second] {
        let last = part
            .lines()
            .rfind(|call| looks.iter().any(|look| call.contains(look)));
        assert!(last.unwrap().contains("/_datos.json"), "{last:?}");
    }
}

#[test]
fn file_that_php_keeps_open_for_writing_is_answered_with_busy() {
    let school = School::with_menu("old");
    let page = File::options().append(true).open(school.path(DAY)).unwrap();
    let write = school.post("save_menu").json(&save("new"));
    let log = write.run().fails("BUSY").log.clone();
    assert!(
        log.contains("/_datos.json: another program has it open for writing"),
        "{log}"
    );
    // On CIFS the error means that there is no lease. The type of the file system is that of CIFS.
    let (refused, cifs) = (
        "inject=fcntl:error=EAGAIN",
        "inject=fstatfs:poke_exit=@arg2=424d53fe00000000",
    );
    write.trace(&["-e", refused, "-e", cifs]).0.ok();
    drop(page);
    write.run().ok();
}

#[test]
fn cause_of_a_save_that_stays_busy_is_logged() {
    let school = School::with_menu("old");
    let write = school.post("save_menu").json(&save("new"));
    let answer = write.clone().inject("renameat2:error=ENOENT").run();
    let log = &answer.fails("BUSY").log;
    let cause = "/_datos.json: exchange with the new file: No such file or directory";
    assert!(log.contains(cause), "{log}");
}

/// As a file system without them.
#[test]
fn writes_work_without_leases_exchange_links_or_a_change_of_mode() {
    let school = School::new();
    let no_exchange = "renameat2:error=EINVAL";
    for faults in [
        &["fcntl:error=EINVAL"][..],
        &["fcntl:error=ENOLCK"],
        &[no_exchange],
        &["renameat2:error=ENOSYS"],
        &[no_exchange, "?link,linkat:error=EPERM"],
        &[no_exchange, "?link,linkat:error=EOPNOTSUPP"],
        &[no_exchange, "?link,linkat:error=EROFS"],
        // The new file has the mode from the start.
        &["fchmod:error=EPERM"],
    ] {
        _ = fs::remove_file(school.path(DAY));
        let options: Vec<String> = faults
            .iter()
            .map(|fault| format!("-einject={fault}"))
            .collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        for name in ["first", "second"] {
            school
                .post("save_menu")
                .json(&save(name))
                .trace(&options)
                .0
                .ok();
            chmod(school.path(DAY), 0o600);
            assert_eq!(
                school.menu("basal")["menu"]["plates"]["primero"]["name"],
                name,
                "{faults:?}"
            );
        }
        let files = school.files();
        assert!(
            !files.iter().any(|path| path.ends_with(".tmp")),
            "{faults:?}: {files:?}"
        );
    }
}

#[test]
fn file_that_appears_where_a_rename_would_replace_it_is_kept() {
    let school = School::new();
    let options = [
        "-e",
        "inject=renameat2:error=EINVAL",
        "-e",
        "inject=?link,linkat:error=EPERM:signal=STOP:when=1",
    ];
    let save = school.post("save_menu").json(&save("CGI"));
    let (answer, _) = save.traced(&options, &["stopped by SIGSTOP"], |_| {
        school.write(DAY, BY_PHP)
    });
    answer.ok();
    let plates = &school.menu("basal")["menu"]["plates"];
    assert_eq!(
        (&plates["cena"]["name"], &plates["primero"]["name"]),
        (&json!("PHP"), &json!("CGI"))
    );
}

/// PHP pages that save as fast as possible, each based on the result of the last one, and at the same
/// time three writers. `COMEDOR_PHP_SAVES=100000` makes it a long run.
#[test]
fn no_save_of_a_php_page_is_lost_while_others_write() {
    let saves = std::env::var("COMEDOR_PHP_SAVES")
        .ok()
        .and_then(|saves| saves.parse().ok());
    let saves: usize = saves.unwrap_or(1000);
    let school = School::with_menu("old");
    let code = "
        $lost = 0;
        for ($n = 1; $n <= $argv[2]; $n++) {
            // A frontend without a lock may see a file that another writer of its own truncated.
            $day = json_decode(file_get_contents($argv[1]), true);
            $lost += ($day['counter'] ?? 0) !== $n - 1;
            $day['counter'] = $n;
            file_put_contents($argv[1], json_encode($day, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE));
            // In between the writers get their turn; every second save follows at once.
            if ($n % 2) usleep(mt_rand(0, 1000));
        }
        echo $lost;";
    let (done, acknowledged) = (AtomicBool::new(false), AtomicUsize::new(0));
    let write = || {
        while !done.load(Ordering::Relaxed) {
            let name = acknowledged.load(Ordering::Relaxed).to_string();
            let answer = school.post("save_menu").json(&save(&name)).run();
            if answer.status == 503 {
                answer.fails("BUSY");
            } else {
                answer.ok();
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let lost = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(write);
        }
        let lost = php(code, &[&school.path(DAY), Path::new(&saves.to_string())]);
        done.store(true, Ordering::Relaxed);
        lost
    });
    assert_eq!(lost, b"0", "saves by PHP lost");
    let day: Value = serde_json::from_str(&school.read(DAY)).unwrap();
    assert_eq!(day["counter"], saves);
    println!("saves by PHP: {saves}, lost: 0; beside them acknowledged: {acknowledged:?}");
}

#[test]
fn writer_starts_over_if_its_lock_file_is_deleted() {
    let school = School::with_menu("old");
    let second = school.post("save_menu").json(&json!({
        "date": DATE, "menu_type": "basal", "plates": {"segundo": {"name": "second"}},
    }));
    let first = school.post("save_menu").json(&save("first"));
    let answer = first.stopped("fsync:when=1", |_| {
        fs::remove_file(school.path(LOCK)).unwrap();
        second.run().ok();
    });
    answer.ok();
    let plates = &school.menu("basal")["menu"]["plates"];
    assert_eq!(plates["primero"]["name"], "first");
    assert_eq!(plates["segundo"]["name"], "second");
}

/// As any user can who may read them. One that is waited for would make the save BUSY, after its timeout.
#[test]
fn lock_on_a_file_or_its_folder_stops_no_writer() {
    let school = School::with_menu("old");
    school.write(TEMPORARY, "half");
    let folder = Path::new(DAY).parent().unwrap().to_str().unwrap();
    let locked =
        [DAY, TEMPORARY, folder, "aula1"].map(|path| File::open(school.path(path)).unwrap());
    locked.iter().for_each(|file| file.lock_shared().unwrap());
    school.save(save("new"));
}

#[test]
fn writer_that_waited_for_a_moved_lock_file_disturbs_no_other() {
    let school = School::with_menu("old");
    let lock = File::open(school.path(LOCK)).unwrap();
    lock.lock().unwrap();
    let waiter = school.post("save_menu").json(&save("waiting")).start();
    let is_waiting = || waiting(&school.path(LOCK)).contains(&waiter.id());
    wait_until("the lock", is_waiting);
    fs::rename(school.path(LOCK), school.path("moved")).unwrap();
    let answer = school
        .post("save_menu")
        .json(&save("new"))
        .stopped("renameat2:when=1", |_| {
            lock.unlock().unwrap();
            wait_until("the new lock", is_waiting);
        });
    answer.ok();
    Answer::of(waiter).ok();
}

#[test]
fn temporary_file_may_be_removed_or_created_by_another_program() {
    let school = School::with_menu("old");
    let write = school.post("save_menu").json(&save("new"));
    school.write(TEMPORARY, "half");
    let (answer, trace) = write.trace(&[]);
    answer.ok();
    let calls = calls(&trace);
    let (open, found, _) = calls
        .iter()
        .find(|(.., line)| line.contains("EEXIST"))
        .unwrap();
    school.write(TEMPORARY, "half");
    let remove = |_: &str| fs::remove_file(school.path(TEMPORARY)).unwrap();
    write.stopped(&format!("{open}:when={found}"), remove).ok();
    school.write(TEMPORARY, "half");
    let create = |_: &str| school.write(TEMPORARY, "other");
    write.stopped("unlink:when=1", create).ok();
}

#[test]
fn malformed_file_does_not_delay_other_writers_of_the_aulario() {
    let school = School::with_menu("old");
    let broken = "aula1/Comedor/2026-11/19/_datos.json";
    school.write(broken, "{");
    let body = json!({"date": "2026-11-19", "menu_type": "basal", "plates": {}});
    let writer = school.post("save_menu").json(&body);
    // While it waits to read the file again, the lock is free.
    let answer = writer.stopped("clock_nanosleep:when=1", |_| {
        school.save(save("new"));
    });
    assert_eq!(answer.value()["code"], "INTERNAL_ERROR");
}

/// The other program holds it as Samba does. It releases it when a file is opened, or ignores that.
#[test]
fn lease_of_another_program_is_waited_for() {
    let code = "
import fcntl, os, signal, sys
path, kind, is_released = sys.argv[1:]
file = os.open(path, os.O_RDONLY)
release = lambda *_: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
signal.signal(signal.SIGIO, release if is_released == 'true' else signal.SIG_IGN)
fcntl.fcntl(file, fcntl.F_SETLEASE, getattr(fcntl, kind))
print('held', flush=True)
sys.stdin.read()";
    let school = School::with_menu("old");
    let write = school.post("save_menu").json(&save("new"));
    let session = school.sessions().join("sess_admin");
    for (path, kind) in [
        (school.path(DAY), "F_WRLCK"),
        (school.path("aula1.json"), "F_WRLCK"),
        (session, "F_RDLCK"),
        (school.path(LOCK), "F_RDLCK"),
    ] {
        for is_released in ["true", "false"] {
            let mut holder = Command::new("python3");
            holder
                .args(["-c", code])
                .arg(&path)
                .args([kind, is_released]);
            let holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let mut holder = holder.expect("python3");
            holder
                .stdout
                .as_mut()
                .unwrap()
                .read_exact(&mut [0; 5])
                .unwrap();
            let answer = write.run();
            assert!(holder.wait_with_output().unwrap().status.success());
            if is_released == "true" {
                answer.ok();
                continue;
            }
            assert_eq!(answer.value()["code"], "BUSY", "{}", path.display());
            assert!(
                answer.log.contains("another program holds a lease on it"),
                "{}",
                answer.log
            );
        }
    }
}
