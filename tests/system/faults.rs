//! Injected faults: kills and errors at every system call, full and read-only disks, a PHP
//! application that truncates files, many concurrent writers. After each fault the old or the new
//! file must be complete, and the next write must succeed immediately.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::*;

/// A write and the file that it changes.
struct Write {
    action: &'static str,
    body: Value,
    file: &'static str,
    /// Whether the file exists before the write
    replaces: bool,
}

fn writes() -> [Write; 5] {
    let write = |action, body, file, replaces| Write { action, body, file, replaces };
    [
        write("save_menu", save("new"), DAY, false),
        write("save_menu", save("new"), DAY, true),
        write("add_menu_type", json!({"id": "new", "label": "N"}), TYPES, true),
        write("rename_menu_type", json!({"id": "basal", "label": "N"}), TYPES, true),
        write("delete_menu_type", json!({"id": "basal"}), TYPES, true),
    ]
}

impl Write {
    /// A school before this write.
    fn school(&self) -> School {
        let school = School::new();
        if self.replaces {
            school.save(save("old"));
            let old = json!({"id": "alergias", "label": "A"});
            school.post("rename_menu_type").json(&old).run().ok();
        }
        school
    }

    fn request(&self, school: &School) -> Cgi {
        school.post(self.action).json(&self.body)
    }

    fn content(&self, school: &School) -> Option<String> {
        fs::read_to_string(school.path(self.file)).ok()
    }

    /// The content of the file before and after.
    fn old_and_new(&self) -> (Option<String>, Option<String>) {
        let school = self.school();
        let old = self.content(&school);
        self.request(&school).run().ok();
        (old, self.content(&school))
    }

    /// The system calls of this write: how often each is made.
    fn calls(&self) -> BTreeMap<String, usize> {
        let school = self.school();
        let (answer, trace) = self.request(&school).trace(&[]);
        answer.ok();
        let mut calls = BTreeMap::new();
        for line in trace.lines() {
            if let Some((call, _)) = line.split_once('(') {
                *calls.entry(call.to_owned()).or_default() += 1;
            }
        }
        assert!(calls.len() > 15, "{calls:?}");
        calls
    }

    /// Runs it in a new school with a fault injected by strace.
    fn run_with(&self, inject: &str) -> (School, Output) {
        let school = self.school();
        let output = self.request(&school).inject(inject).start().wait_with_output().unwrap();
        (school, output)
    }

    /// The next write succeeds and leaves no temporary file.
    fn next_writer_succeeds(&self, school: &School, fault: &str) {
        let leftovers = || school.files().into_iter().filter(|path| path.ends_with(".tmp")).count();
        assert!(leftovers() <= 1, "{fault}");
        let started = Instant::now();
        let next = match self.file {
            DAY => school.post("save_menu").json(&save("next")),
            _ => {
                let next = json!({"id": "vegetariano", "label": "next"});
                school.post("rename_menu_type").json(&next)
            }
        };
        next.run().ok();
        assert!(started.elapsed() < Duration::from_secs(5), "{fault}: no deadline is waited out");
        assert_eq!(leftovers(), 0, "{fault}");
    }
}

#[test]
fn a_kill_at_any_system_call_leaves_the_old_or_the_new_file() {
    let (mut kills, mut stored) = (0, 0);
    for write in writes() {
        let (old, new) = write.old_and_new();
        for (call, times) in write.calls() {
            for time in 1..=times {
                let fault = format!("{call}:signal=KILL:when={time}");
                let (school, _) = write.run_with(&fault);
                let content = write.content(&school);
                assert!(content == old || content == new, "{} {fault}: {content:?}", write.action);
                kills += 1;
                stored += usize::from(content == new);
                write.next_writer_succeeds(&school, &fault);
            }
        }
    }
    assert!(stored > 0 && stored < kills);
    println!("kills: {kills}, requests: {}, losses: 0", 2 * kills);
}

#[test]
fn the_answer_is_correct_after_an_error_of_any_system_call() {
    const CALLS: [&str; 17] = [
        "openat",
        "open",
        "read",
        "write",
        "fsync",
        "fdatasync",
        "rename",
        "renameat",
        "renameat2",
        "flock",
        "mkdir",
        "fstat",
        "newfstatat",
        "statx",
        "ftruncate",
        "fchmod",
        "fchown",
    ];
    let (mut errors, mut answers) = (0, BTreeMap::<String, usize>::new());
    for write in writes() {
        let (old, new) = write.old_and_new();
        let calls = write.calls();
        for (call, times) in calls.iter().filter(|(call, _)| CALLS.contains(&call.as_str())) {
            for time in 1..=*times {
                for error in ["EIO", "ENOSPC", "EACCES", "EINTR"] {
                    let fault = format!("{call}:error={error}:when={time}");
                    let (school, output) = write.run_with(&fault);
                    errors += 1;
                    let content = write.content(&school);
                    let text = String::from_utf8_lossy(&output.stdout);
                    let case = format!("{} {fault}: {text} {content:?}", write.action);
                    assert!(content == old || content == new, "{case}");
                    let code =
                        ["INTERNAL_ERROR", "BUSY", "INVALID_SESSION", "MISSING_PARAM", "NOT_FOUND"];
                    let code = code.into_iter().find(|code| text.contains(code));
                    if text.contains("\"success\":true") {
                        assert!(content == new, "{case}");
                    } else if code.is_some() && !text.contains("may have been stored") {
                        assert!(content == old, "{case}");
                    } else if text.is_empty() {
                        // Only an error of the write to standard output can lose the answer.
                        assert_eq!(call, "write", "{case}");
                    } else {
                        assert!(text.contains("may have been stored"), "{case}");
                    }
                    *answers
                        .entry(code.unwrap_or("success or no answer").to_owned())
                        .or_default() += 1;
                    write.next_writer_succeeds(&school, &fault);
                }
            }
        }
    }
    println!("errors: {errors}, requests: {}, losses: 0, answers: {answers:?}", 2 * errors);
}

/// A small file system of its own for the data of a school, unmounted in the end.
struct SmallDisk<'s>(&'s School);

impl SmallDisk<'_> {
    fn mount<'s>(school: &'s School, options: &str) -> SmallDisk<'s> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(school.path("aula1"));
        output(&mut mount, "mount, as root");
        SmallDisk(school)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        _ = Command::new("umount").arg(self.0.path("aula1")).status();
    }
}

#[test]
fn files_are_unchanged_on_a_full_or_read_only_disk() {
    let school = School::new();
    fs::create_dir(school.path("aula1")).unwrap();
    let disk = SmallDisk::mount(&school, "size=64k");
    school.save(save("old"));
    let old = school.read(DAY);
    // Almost no space is left.
    let filler = school.path("aula1/filler");
    _ = fs::write(&filler, vec![0; 64 * 1024]);
    let full = school.post("save_menu").json(&save("new")).run();
    assert!(full.fails("INTERNAL_ERROR").log.contains("os error 28"), "{}", full.log);
    let new_day = json!({"date": "2026-12-24", "menu_type": "basal", "plates": {}});
    school.post("save_menu").json(&new_day).run().fails("INTERNAL_ERROR");
    assert_eq!(school.read(DAY), old);
    fs::remove_file(filler).unwrap();
    school.save(save("old"));

    let remount = |mode: &str| {
        let mut mount = Command::new("mount");
        output(mount.args(["-o", &format!("remount,{mode}")]).arg(school.path("aula1")), "mount");
    };
    remount("ro");
    let read_only = school.post("save_menu").json(&save("new")).run();
    assert!(read_only.fails("INTERNAL_ERROR").log.contains("os error 30"), "{}", read_only.log);
    assert_eq!(school.menu("basal")["menu"]["plates"]["primero"]["name"], "old");
    remount("rw");
    school.save(save("new"));
    drop(disk);
}

#[test]
fn a_file_that_php_has_truncated_is_never_shown_partially() {
    let school = School::new();
    school.save(save("whole"));
    const ROUNDS: usize = 12;
    let code = format!(
        "$content = file_get_contents($argv[1]);
        for ($round = 0; $round < {ROUNDS}; $round++) {{
            $file = fopen($argv[1], 'w');
            usleep(50000);
            fwrite($file, $content);
            fclose($file);
            usleep(250000);
        }}"
    );
    let done = AtomicBool::new(false);
    let readings = AtomicUsize::new(0);
    thread::scope(|scope| {
        for reader in 0..3 {
            let (school, done, readings) = (&school, &done, &readings);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    if reader == 0 {
                        let plates = json!({"postre": {"name": "CGI"}});
                        let body = json!({"date": DATE, "menu_type": "basal", "plates": plates});
                        school.post("save_menu").json(&body).run().ok();
                    } else {
                        let menu = school.menu("basal");
                        assert_eq!(menu["menu"]["plates"]["primero"]["name"], "whole");
                    }
                    readings.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        php(&code, &[&school.path(DAY)]);
        done.store(true, Ordering::Relaxed);
    });
    println!("saves of the page: {ROUNDS}, requests: {readings:?}, losses: 0");
    let file: Value = serde_json::from_str(&school.read(DAY)).unwrap();
    assert_eq!(file["menus"]["basal"]["plates"]["primero"]["name"], "whole");
}

/// 32 writers with 40 writes each. Every eighth write is killed at some point.
fn crowd(aulario_of: impl Fn(usize) -> String + Sync) {
    const WRITERS: usize = 32;
    const WRITES: usize = 40;
    let school = School::new();
    for writer in 0..WRITERS {
        school.write(&format!("{}.json", aulario_of(writer)), "{}");
    }
    let acknowledged = Mutex::new(Vec::new());
    let killed = AtomicUsize::new(0);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (school, acknowledged, killed) = (&school, &acknowledged, &killed);
            let aulario = aulario_of(writer);
            scope.spawn(move || {
                for write in 0..WRITES {
                    let (date, plate) =
                        (format!("2026-10-{:02}", 1 + writer % 8), format!("p{write}"));
                    let menu_type = ["basal", "vegetariano", "alergias"][writer / 8 % 3];
                    let name = format!("{writer}-{write}");
                    let plates = json!({&plate: {"name": name}});
                    let body = json!({"date": date, "menu_type": menu_type, "plates": plates});
                    let mut child = school.post("save_menu").aulario(&aulario).json(&body).start();
                    if (writer + write) % 8 == 0 {
                        thread::sleep(Duration::from_micros(300 * (write as u64 % 9)));
                        _ = child.kill();
                        _ = child.wait();
                        killed.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    Answer::of(child).ok();
                    let path = format!("{aulario}/Comedor/2026-10/{}/_datos.json", &date[8..]);
                    acknowledged.lock().unwrap().push((path, menu_type, plate, writer));
                }
            });
        }
    });
    let acknowledged = acknowledged.into_inner().unwrap();
    for (path, menu_type, plate, writer) in &acknowledged {
        let day: Value = serde_json::from_str(&school.read(path)).expect("a whole file");
        let name = day["menus"][menu_type]["plates"][plate]["name"].as_str();
        // Writers 0 and 24, 1 and 25 … write the same plates; the last of them counts.
        let of_writer = |writer: usize| format!("{writer}-{}", &plate[1..]);
        let other = if *writer < 8 { writer + 24 } else { writer.saturating_sub(24) };
        assert!(
            name == Some(&of_writer(*writer)) || name == Some(&of_writer(other)),
            "{path} {plate} {name:?}"
        );
    }
    println!("writers: {WRITERS}, writes: {}, kills: {killed:?}, losses: 0", WRITERS * WRITES);
}

#[test]
fn writers_of_one_aulario_lose_no_acknowledged_write_when_some_are_killed() {
    crowd(|_| "aula1".to_owned());
}

#[test]
fn writers_of_many_aularios_lose_no_acknowledged_write_when_some_are_killed() {
    crowd(|writer| format!("crowd{}", writer / 4));
}

#[test]
fn no_input_leads_to_a_path_outside_of_the_data_and_session_folders() {
    let school = School::new();
    school.log_in("evil", session_of("../../../../etc", ADMIN));
    school.log_in("dots", session_of("..", ADMIN));
    let dots = "..%2f..%2f..%2fetc%2fpasswd";
    let plates = json!({"../../x": {"name": "/etc/passwd"}});
    for request in [
        school.get("get_menu").session("evil"),
        school.get("get_menu").session("dots"),
        school.get("get_menu").session("../../etc/passwd"),
        school.get("get_menu").session("%2e%2e%2fsess_admin"),
        school.get("get_menu").aulario(dots),
        school.get("get_menu").query("date", dots).query("menu", dots),
        school.get(dots),
        school.get("get_menu").set("PATH_INFO", "/../../etc").set("SCRIPT_FILENAME", "/etc/passwd"),
        school.get("get_menu").set("HTTP_COMEDOR_DATA_DIR", "/etc"),
        school.post("save_menu").json(&json!({"date": "../x", "menu_type": "basal", "plates": {}})),
        school
            .post("save_menu")
            .json(&json!({"date": DATE, "menu_type": "../x", "plates": plates})),
        school.post("add_menu_type").json(&json!({"id": "../../x", "label": "/etc/passwd"})),
    ] {
        let (_, calls) = request.trace(&["-e", "trace=%file"]);
        for line in calls.lines() {
            let named = line.split('"').nth(1).filter(|path| !path.is_empty());
            let Some(named) = named.map(Path::new) else { continue };
            let own = [
                "/proc/self/exe",
                "/proc/self/maps",
                "/etc/comedor/comedor.conf",
                "/etc/localtime",
                PROGRAM,
            ];
            let beside = Path::new(PROGRAM).with_file_name("comedor.conf");
            let folders = [school.data(), school.sessions()];
            let is_inside = folders.iter().any(|folder| named.starts_with(folder))
                && !named.to_string_lossy().contains("..");
            assert!(
                is_inside || named == beside || own.iter().any(|own| named == Path::new(own)),
                "{line}"
            );
        }
    }
}

#[test]
fn a_closed_or_full_standard_output_loses_no_write() {
    let school = School::new();
    let request = school.post("save_menu").json(&save("stored"));
    for shell in ["exec \"$0\" >&-", "exec \"$0\" >/dev/full 2>/dev/full", "exec \"$0\" 2>&-"] {
        fs::remove_file(school.path(DAY)).ok();
        let request = request.clone().shell(shell);
        let child = request.send(request.command().stdout(Stdio::null()));
        assert!(child.wait_with_output().unwrap().status.success(), "{shell}");
        assert_eq!(school.menu("basal")["menu"]["plates"]["primero"]["name"], "stored", "{shell}");
    }
}
