//! Session files that PHP wrote, and malformed ones.

use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink};
use std::process::{Command, Stdio};

use crate::support::*;

#[test]
fn the_session_file_is_found_by_save_path_and_name() {
    let school = School::new();
    let path = school.log_in("abcdef", session(TEACHER));
    let folder = school.sessions().join("a/b");
    fs::create_dir_all(&folder).unwrap();
    fs::rename(path, folder.join("sess_abcdef")).unwrap();
    let sessions = school.sessions().display().to_string();
    let read = |save_path: String, id: &str| {
        school
            .get("get_menu")
            .set("COMEDOR_SESSION_DIR", save_path)
            .session(id)
            .run()
    };
    read(format!("2;{sessions}"), "abcdef").ok();
    read(format!("1;{sessions}"), "abcdef").fails("INVALID_SESSION");
    read(format!("2;{sessions}"), "xyz").fails("INVALID_SESSION");
    read(format!("2;{sessions}"), "ab").fails("INVALID_SESSION");
    read(sessions.clone(), "abcdef").fails("INVALID_SESSION");
    let answer = read(format!("{sessions}/missing"), "abcdef");
    assert!(
        answer.fails("INTERNAL_ERROR").log.contains("missing"),
        "{}",
        answer.log
    );
    let named = school.get("get_menu").set("COMEDOR_SESSION_NAME", "SCHOOL");
    named.clone().run().fails("INVALID_SESSION");
    named
        .set("HTTP_COOKIE", "PHPSESSID=x; SCHOOL=teacher")
        .run()
        .ok();
}

#[test]
fn only_a_regular_file_of_at_most_16_mib_is_a_session() {
    let school = School::new();
    let folder = school.sessions();
    symlink(folder.join("sess_teacher"), folder.join("sess_link")).unwrap();
    fs::create_dir(folder.join("sess_folder")).unwrap();
    output(
        Command::new("mkfifo").arg(folder.join("sess_fifo")),
        "coreutils",
    );
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("sess_socket")).unwrap();
    File::create(folder.join("sess_huge"))
        .unwrap()
        .set_len(16 * 1024 * 1024 + 1)
        .unwrap();
    for id in ["link", "folder", "fifo", "socket", "huge"] {
        let answer = school.get("get_menu").session(id).run();
        answer.fails("INVALID_SESSION");
        assert!(
            answer.log.contains(&format!("sess_{}…: ", &id[..4])),
            "{id}: {}",
            answer.log
        );
    }
    for id in [
        "",
        "no",
        "..",
        "../sess_teacher",
        "a/b",
        &"x".repeat(256),
        &"x".repeat(5000),
    ] {
        let answer = school.get("get_menu").session(id).run();
        assert_eq!(answer.fails("INVALID_SESSION").log, "", "{id}");
    }
    school
        .get("get_menu")
        .unset("HTTP_COOKIE")
        .run()
        .fails("INVALID_SESSION");
}

#[test]
fn missing_access_is_a_server_fault_and_another_owner_an_invalid_session() {
    let school = School::new();
    let file = school.sessions().join("sess_teacher");
    const FOLDER: u32 = 0o1733;
    let needed = "sess_teac…: user nobody (65534) needs read and write permission";
    let for_folder = format!("{needed} for the file, as PHP does, and execute");
    for (folder_mode, file_mode, owner, code, log) in [
        (FOLDER, 0o600, 65534, "OK", ""),
        (FOLDER, 0o400, 65534, "INTERNAL_ERROR", needed),
        (FOLDER, 0o200, 65534, "INTERNAL_ERROR", needed),
        (FOLDER, 0o644, 0, "INTERNAL_ERROR", needed),
        (FOLDER, 0o600, 65533, "INTERNAL_ERROR", needed),
        (FOLDER, 0o666, 0, "OK", ""),
        (
            FOLDER,
            0o666,
            65533,
            "INVALID_SESSION",
            "sess_teac…: it belongs to another user, 65533",
        ),
        (0o700, 0o666, 65534, "INTERNAL_ERROR", &for_folder),
    ] {
        chmod(school.sessions(), folder_mode);
        chown(&file, Some(owner), None).unwrap();
        chmod(&file, file_mode);
        let answer = school.get("get_menu").under(AS_NOBODY).run();
        match code {
            "OK" => drop(answer.ok()),
            code => assert!(answer.fails(code).log.contains(log), "{}", answer.log),
        }
        // Root is allowed everything, in PHP too.
        school.get("get_menu").run().ok();
    }
}

/// The user can hold its lock for ever.
#[test]
fn a_session_file_of_another_user_is_not_waited_for() {
    let school = School::new();
    let file = school.sessions().join("sess_teacher");
    chown(&file, Some(65533), None).unwrap();
    chmod(&file, 0o666);
    let page = std::fs::File::open(&file).unwrap();
    page.lock().unwrap();
    let answer = school.get("get_menu").under(AS_NOBODY).run();
    let log = &answer.fails("INVALID_SESSION").log;
    assert!(log.contains("it belongs to another user, 65533"), "{log}");
}

/// A PHP process that holds the session until its standard input ends.
fn php_page(school: &School, at_the_end: &str) -> std::process::Child {
    let code = format!(
        "ini_set('session.save_path', $argv[1]); ini_set('session.use_cookies', 0);
         session_cache_limiter(''); session_id('teacher'); session_start(); echo 'held'; flush();
         fgets(STDIN); {at_the_end}"
    );
    let mut command = Command::new("php");
    command.args(["-r", &code, "--"]).arg(school.sessions());
    let mut page = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("php-cli");
    let mut held = [0; 4];
    std::io::Read::read_exact(page.stdout.as_mut().unwrap(), &mut held).unwrap();
    page
}

#[test]
fn a_request_waits_for_the_php_page_that_has_locked_its_session() {
    let school = School::new();
    let mut page = php_page(&school, "$_SESSION['auth_ok'] = 1;");
    let request = school.get("get_menu").start();
    drop(page.stdin.take());
    // The content after the page's last write counts.
    Answer::of(request).fails("INVALID_SESSION");
    page.wait().unwrap();
}

/// A large session takes much longer to parse than to read.
#[test]
fn the_session_is_unlocked_before_it_is_parsed() {
    let school = School::new();
    let values: String = (0..20_000)
        .map(|n| format!("v{n}|a:1:{{i:0;i:{n};}}"))
        .collect();
    school.log_in("teacher", values + &session(TEACHER));
    let request = school.get("get_menu").set("COMEDOR_WORKERS", "1");
    let (answer, trace) = request.trace(&["-f", "-e", "trace=flock,read,mmap,utimensat"]);
    answer.ok();
    let (_, locked) = trace.split_once("LOCK_SH").unwrap();
    let (before, after) = locked.split_once("LOCK_UN").expect(locked);
    // The memory that parsing needs is taken later.
    // Before the name is the number of the process.
    let calls = calls(before)
        .into_iter()
        .filter_map(|(call, ..)| call.split(' ').next_back());
    let calls: Vec<_> = calls.skip_while(|call| *call == "mmap").collect();
    assert_eq!(calls, ["read", "flock"], "{trace}");
    assert!(
        after.contains("mmap(") && after.contains("utimensat("),
        "{trace}"
    );
}

#[test]
fn a_session_lock_timeout_is_busy_only_for_its_user() {
    let school = School::new();
    let page = php_page(&school, "");
    let blocked = school.get("get_menu").start();
    // The parent of the program may have blocked or ignored signals.
    let no_signals = school
        .get("get_menu")
        .under(&["env", "--ignore-signal", "--block-signal"]);
    let no_signals = no_signals.start();
    school.get("get_menu").session("admin").run().ok();
    Answer::of(blocked).fails("BUSY");
    Answer::of(no_signals).fails("BUSY");
    drop(page);
}

/// PHP unlocks the file before it deletes it (mod_files.c, `PS_DESTROY_FUNC`). A request that waits may
/// read it in between, as a waiting page may.
#[test]
fn a_logout_ends_the_session_for_all_requests_after_it() {
    let school = School::new();
    let mut page = php_page(&school, "session_destroy();");
    let request = school.get("get_menu").start();
    drop(page.stdin.take());
    page.wait().unwrap();
    let waiting = Answer::of(request);
    match waiting.status {
        200 => drop(waiting.ok()),
        _ => _ = waiting.fails("INVALID_SESSION"),
    }
    school.get("get_menu").run().fails("INVALID_SESSION");
    assert!(
        !school.sessions().join("sess_teacher").exists(),
        "reading creates no session"
    );
}

/// Or deleted, as by a logout
#[test]
fn a_session_file_that_is_replaced_while_it_is_opened_is_not_read() {
    let school = School::new();
    let file = school.sessions().join("sess_teacher");
    let answer = school
        .get("get_menu")
        .session("teacher")
        .stopped("flock:when=1", |_| {
            fs::remove_file(&file).unwrap();
            school.log_in("teacher", session(ADMIN).replace("centro1", "centro2"));
        });
    answer.fails("INVALID_SESSION");
}

/// A session can refer to a string of megabytes thousands of times.
#[test]
fn references_do_not_multiply_memory_or_time() {
    let school = School::new();
    let references: String = (1..200_000).map(|n| format!("i:{n};R:1;")).collect();
    let list = format!("a:200000:{{i:0;s:15:\"service:docente\";{references}}}");
    let aulas = format!("s:7:\"service\";a:2:{{s:5:\"aulas\";{list}");
    let content = session(TEACHER)
        .replace("a:1:{i:0;s:15:\"service:docente\";}", &list)
        .replace("s:7:\"service\";a:1:{", &aulas);
    let big = "service:docent".repeat(300_000);
    school.log_in("many", format!("x|s:{}:\"{big}\";{content}", big.len()));
    let read = |id| {
        school
            .get("get_menu")
            .session(id)
            .memory(128 << 20)
            .cpu_seconds(2)
            .run()
    };
    read("many").fails("FORBIDDEN");

    // An integer has no length to skip it by, so it is read only if it is needed.
    let references: String = (0..200_000).map(|n| format!("i:{n};R:1;")).collect();
    let content = session(TEACHER).replace("auth_data|a:2:{", "auth_data|a:200002:{");
    let content = content.replace("s:11:\"perm", &format!("{references}s:11:\"perm"));
    school.log_in("integer", format!("x|i:{};{content}", "0".repeat(100_000)));
    read("integer").ok();
}

/// The worst content of a session file of 16 MiB, in 128 MiB of memory.
#[test]
fn memory_is_a_small_multiple_of_the_session_size() {
    let school = School::new();
    let filled = |piece: &str| piece.repeat(16 * 1024 * 1024 / piece.len());
    let pairs = |n: usize, piece: &str| format!("x|a:{n}:{{{}}}", piece.repeat(n));
    for content in [
        filled("|N;"),
        filled("a"),
        pairs(16 * 1024 * 1024 / 7, "i:0;N;"),
        format!("x|{}", "a:1:{i:0;".repeat(1_800_000)),
        "x|a:9999999999:{".to_owned(),
        "x|s:99999999999999999:\"".to_owned(),
    ] {
        school.log_in("big", &content);
        let read = school.get("get_menu").session("big");
        read.memory(128 << 20).run().fails("INVALID_SESSION");
    }
}
