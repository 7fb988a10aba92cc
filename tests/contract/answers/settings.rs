//! Settings and the command line.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionread;
use rustix::process::{Signal, kill_process};

use super::*;
use crate::support::fastcgi::{Client, Held, begin};
use crate::support::site::wait_until;
use crate::waits::beside;

#[test]
fn an_invalid_setting_is_named_only_in_the_log() {
    let school = School::new();
    for (name, value) in [
        ("COMEDOR_SERVICE", "../x"),
        ("COMEDOR_DATA_DIR", ""),
        ("COMEDOR_DATA_DIR", "/a\nb"),
        ("COMEDOR_SESSION_DIR", "/a\tb"),
        ("COMEDOR_SESSION_DIR", "tcp://a?auth=s3cret,tcp://b"),
        ("COMEDOR_SESSION_NAME", "12"),
        ("COMEDOR_SESSION_NAME", "a.b"),
        ("COMEDOR_SESSION_FORMAT", "PHP"),
        ("COMEDOR_SESSION_LIFETIME", "0"),
        ("COMEDOR_SESSION_LIFETIME", "+5"),
        ("COMEDOR_SESSION_LIFETIME", "2147483648"),
        (
            "COMEDOR_TRUSTED_ORIGINS",
            "https://menus.example, https://*.school.example",
        ),
        ("COMEDOR_ACCESS", "all"),
        ("COMEDOR_SCRIPT", "api/comedor.php"),
        ("COMEDOR_SCRIPT", "/srv/api/"),
        ("TZ", "Europe Madrid"),
    ] {
        let answer = school.get("get_menu").set(name, value).run();
        answer.fails("INTERNAL_ERROR");
        assert!(
            answer.log.contains(&format!("comedor: {name} must ")),
            "{}",
            answer.log
        );
        assert!(!answer.log.contains("s3cret"), "{}", answer.log);
        assert!(!String::from_utf8_lossy(&answer.body).contains("COMEDOR"));
    }
    for depth in ["256", "99999999999999999999"] {
        let read = school.get("get_menu");
        let answer = read.set("COMEDOR_SESSION_DIR", format!("{depth};/p")).run();
        let expected = "COMEDOR_SESSION_DIR must be a session.save_path of at most 255 levels";
        assert!(
            answer.fails("INTERNAL_ERROR").log.contains(expected),
            "{}",
            answer.log
        );
    }
}

#[test]
fn the_environment_overrides_the_settings_file_beside_the_program() {
    let school = School::new();
    let folder = tempfile::tempdir().unwrap();
    let program = program_in(folder.path(), NO_SETTINGS);
    let file = folder.path().join("comedor.conf");
    let write = |text: String| fs::write(&file, text).unwrap();
    let get = school
        .get("get_menu")
        .program(&program)
        .unset("COMEDOR_DATA_DIR");
    write(format!(
        "# school\n\nCOMEDOR_DATA_DIR = {}\nTZ=<+14>-14\n",
        school.data().display()
    ));
    let far_east = || Value::from(today(Some("<+14>-14")));
    let before = far_east();
    let today = get.run().ok()["date"].clone();
    assert!([before, far_east()].contains(&today), "{today}");
    get.clone()
        .set("COMEDOR_DATA_DIR", "/nowhere")
        .run()
        .fails("INTERNAL_ERROR");
    write("COMEDOR_DATA_DIR=/nowhere\n".to_owned());
    assert!(get.run().fails("INTERNAL_ERROR").log.contains("/nowhere"));
    school.get("get_menu").program(&program).run().ok();
    for (line, problem) in [
        ("COMEDOR_SERVICE", "line 2: expected NAME=value"),
        (
            "COMEDOR_DATADIR=/x",
            "line 2: unknown setting `COMEDOR_DATADIR`",
        ),
        (
            "COMEDOR_SESSION_MAX_AGE=900",
            "line 2: unknown setting `COMEDOR_SESSION_MAX_AGE`",
        ),
        (
            "COMEDOR_LEAVE_EARLY=on",
            "line 2: unknown setting `COMEDOR_LEAVE_EARLY`",
        ),
        ("PATH=/bin", "line 2: unknown setting `PATH`"),
        ("export TZ=UTC", "line 2: unknown setting `export TZ`"),
        (
            "TZ=\"UTC\"",
            "line 2: the value of TZ is in quotes; remove them",
        ),
        (
            "TZ=UTC\nTZ=UTC",
            "line 3: duplicate setting `TZ` (first set in line 2)",
        ),
        (
            "# CR\rTZ=UTC\r",
            "line 2: a line ends with a carriage return alone",
        ),
        (
            "COMEDOR_SERVICE=x\rTZ=UTC",
            "line 2: a line ends with a carriage return alone",
        ),
        (
            "\u{feff}TZ=UTC",
            "line 2: the file starts with a byte order mark",
        ),
    ] {
        write(format!("\n{line}\n"));
        let answer = get.run();
        answer.fails("INTERNAL_ERROR");
        let expected = format!("comedor.conf: {problem}");
        assert!(answer.log.contains(&expected), "{}", answer.log);
    }
}

/// An editor that saves in place empties the file first.
#[test]
fn a_settings_file_that_is_empty_at_the_first_look_is_read_again() {
    let (school, folder) = (School::new(), tempfile::tempdir().unwrap());
    let program = program_in(folder.path(), "");
    let file = folder.path().join("comedor.conf");
    let request = school.get("get_menu_types").program(&program);
    let mut run = request.trace_calls();
    while let Some(stop) = run.next() {
        let read = stop.result.is_some() && stop.call.name() == "read";
        if read && fs::read_link(stop.descriptor(stop.call.arguments[0])).is_ok_and(|it| it == file)
        {
            fs::write(&file, NO_SETTINGS).unwrap();
        }
    }
    Answer::of_output(run.output()).ok();
}

/// Defaults in place of the settings that a file had could lead to another data folder.
#[test]
fn settings_stay_in_force_while_their_file_is_empty_unreadable_or_gone_and_other_changes_need_no_restart()
 {
    let (school, socket) = (School::new(), Held::new());
    let folder = tempfile::tempdir().unwrap();
    let settings = format!("COMEDOR_DATA_DIR={}\n", school.data().display());
    let program = program_in(folder.path(), &settings);
    let file = folder.path().join("comedor.conf");
    let get = school
        .get("get_menu")
        .program(&program)
        .unset("COMEDOR_DATA_DIR");
    let serve = || socket.spawn(get.responder());
    let process = serve();
    get.ask(&socket.path).ok();
    fs::write(&file, "").unwrap();
    assert!(
        get.run()
            .fails("INTERNAL_ERROR")
            .log
            .contains("comedor.conf: is empty")
    );
    let is_empty = || {};
    let is_unreadable = || {
        fs::remove_file(&file).unwrap();
        // Its first bytes cannot be read: EIO.
        symlink("/proc/self/mem", &file).unwrap();
    };
    let is_gone = || fs::remove_file(&file).unwrap();
    // The parent of the workers has seen it.
    let log = process.0.stderr.as_ref().unwrap();
    wait_until("a line in the log", || ioctl_fionread(log).unwrap() > 0);
    for change in [&is_empty as &dyn Fn(), &is_unreadable, &is_gone] {
        change();
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(1100) {
            get.ask(&socket.path).ok();
        }
    }
    for (line, error) in [
        ("COMEDOR_DATA_DIR=/nowhere\n", "/nowhere"),
        (&settings, ""),
        (
            "COMEDOR_DATA=/nowhere\n", "comedor.conf: line 1: unknown setting",
        ),
    ] {
        let before = process.workers();
        fs::write(&file, line).unwrap();
        wait_until("the successors", || {
            process.has_started(64) && !process.workers().iter().any(|it| before.contains(it))
        });
        for _ in 0..20 {
            let answer = get.ask(&socket.path);
            assert!(answer.log.contains(error), "{}", answer.log);
            assert_eq!(answer.status == 200, error.is_empty());
        }
    }
    // It leaves what cannot be used in force too.
    fs::write(&file, "").unwrap();
    for _ in 0..20 {
        let answer = get.ask(&socket.path);
        let log = &answer.fails("INTERNAL_ERROR").log;
        assert!(log.contains("unknown setting"), "{log}");
    }
    fs::write(&file, &settings).unwrap();
    wait_until("the settings", || get.ask(&socket.path).status == 200);
    let log = process.stop();
    let kept = log
        .matches("(until it can be read, the settings of before stay in force)\n")
        .count();
    assert!((1..=2).contains(&kept), "{log}");
    // A process that starts does not know what was in force.
    fs::write(&file, "").unwrap();
    let process = serve();
    assert!(
        get.ask(&socket.path)
            .fails("INTERNAL_ERROR")
            .log
            .contains("is empty")
    );
    process.stop();
}

#[test]
fn a_request_that_runs_during_a_change_of_the_settings_has_those_of_before() {
    let (school, other, socket) = (School::new(), School::new(), Held::new());
    other.log_in("admin", session(ADMIN));
    let folder = tempfile::tempdir().unwrap();
    let settings = |school: &School| {
        let (data, sessions) = (school.data(), school.sessions());
        let (data, sessions) = (data.display(), sessions.display());
        format!("COMEDOR_DATA_DIR={data}\nCOMEDOR_SESSION_DIR={sessions}\n")
    };
    let program = program_in(folder.path(), &settings(&school));
    let file = folder.path().join("comedor.conf");
    let get = school.get("get_menu_types").program(&program);
    let get = get.unset("COMEDOR_DATA_DIR").unset("COMEDOR_SESSION_DIR");
    let process = socket.spawn(get.clone().set("COMEDOR_WORKERS", "2").responder());
    wait_until("the workers", || process.has_started(2));
    let before = process.workers();
    let page = fs::File::open(school.sessions().join("sess_teacher")).unwrap();
    page.lock().unwrap();
    let mut busy = Client::connect(&socket.path);
    busy.send(get.records());
    wait_until("it waits", || {
        waiting(&school.sessions().join("sess_teacher")).len() == 1
    });
    other.write("other.json", "{}");
    fs::write(&file, settings(&other)).unwrap();
    let of_other = get.session("admin").aulario("other");
    wait_until("the new settings", || {
        of_other.ask(&socket.path).status == 200
    });
    page.unlock().unwrap();
    assert!(busy.reply().stdout.starts_with("Status: 200 "));
    wait_until("the successors of both workers", || {
        process.has_started(2)
            && process
                .workers()
                .iter()
                .all(|worker| !before.contains(worker))
    });
    for _ in 0..20 {
        of_other.ask(&socket.path).ok();
    }
    assert_eq!(process.stop(), "");
}

/// Clients of a web server that keeps connections, and of one that does not, which read and save.
#[test]
fn no_request_fails_in_a_hundred_changes_of_the_settings() {
    let (school, socket) = (School::with_menu("first"), Held::new());
    let folder = tempfile::tempdir().unwrap();
    let settings = |change: usize| {
        format!(
            "COMEDOR_DATA_DIR={}\nCOMEDOR_TRUSTED_ORIGINS=http://a{change}.example\n",
            school.data().display()
        )
    };
    let program = program_in(folder.path(), &settings(0));
    let file = folder.path().join("comedor.conf");
    let request = |request: Cgi| request.program(&program).unset("COMEDOR_DATA_DIR");
    let get = request(school.get("get_menu_types"));
    let save = request(school.post("save_menu").json(&save("next")));
    let process = socket.spawn(get.clone().set("COMEDOR_WORKERS", "8").responder());
    // As nginx sends them: it repeats one that the end of a connection has not answered.
    let kept = [&begin(true), &get.records()[begin(true).len()..]].concat();
    let send_on_a_kept_connection = || {
        let mut client = Client::connect(&socket.path);
        for _ in 0..5 {
            if client.0.write_all(&kept).is_ok() && !client.is_ended() {
                let reply = client.reply();
                assert!(reply.stdout.starts_with("Status: 200 "), "{reply:?}");
            }
        }
    };
    let client = || {
        get.ask(&socket.path).ok();
        save.ask(&socket.path).ok();
        send_on_a_kept_connection();
    };
    beside(4, client, || {
        for change in 1..=100 {
            fs::write(&file, settings(change)).unwrap();
            let origin = format!("http://a{change}.example");
            let preflight = get.clone().method("OPTIONS").set("HTTP_ORIGIN", &origin);
            let preflight = preflight.set("HTTP_ACCESS_CONTROL_REQUEST_METHOD", "POST");
            wait_until("the change", || preflight.ask(&socket.path).status == 204);
        }
    });
    let log = process.stop();
    let is_expected = |line: &str| line.contains("comedor.conf: is empty");
    assert!(log.lines().all(is_expected), "{log}");
}

#[test]
fn a_log_that_is_not_read_holds_no_worker() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.spawn(school.get("").set("COMEDOR_WORKERS", "2").responder());
    let get = school.get("get_menu_types");
    get.ask(&socket.path).ok();
    let log = format!("/proc/{}/fd/2", process.0.id());
    let mut log = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(log)
        .unwrap();
    while log.write(&[b'x'; 4096]).is_ok() {}
    while log.write(b"x").is_ok() {}
    school.log_in("broken", "auth_ok|b:2;");
    for _ in 0..20 {
        let mut client = Client::connect(&socket.path);
        let reply = client.send(get.clone().session("broken").records()).reply();
        assert_eq!(reply.stderr.len(), 1, "{reply:?}");
        let worker = process.workers()[0];
        kill_process(worker, Signal::KILL).unwrap();
        // Until then it is among the workers, but can vanish before the next kill.
        wait_until("its end", || !process.workers().contains(&worker));
        get.ask(&socket.path).ok();
    }
    wait_until("the workers", || process.workers().len() == 2);
}

#[test]
fn the_service_setting_determines_session_key_and_permission() {
    let school = School::new();
    let session = session(TEACHER).replace("s:7:\"service\"", "s:7:\"kitchen\"");
    school.log_in(
        "cook",
        session.replace("service:docente", "kitchen:docente"),
    );
    let read = school
        .get("get_menu_types")
        .set("COMEDOR_SERVICE", "kitchen");
    read.clone().session("cook").run().ok();
    read.run().fails("INVALID_SESSION");
    school
        .get("get_menu_types")
        .session("cook")
        .run()
        .fails("INVALID_SESSION");
}

/// The exit status, the output and the errors of the program with these arguments.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(program())
        .args(arguments)
        .env_clear()
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn arguments_are_options_in_a_terminal_and_ignored_under_a_web_server() {
    let (status, help, errors) = run(&["--help"]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    assert!(help.contains("COMEDOR_DATA_DIR"));
    for command in ["check", "configure"] {
        assert_eq!(run(&[command, "--help"]), run(&["--help"]));
    }
    let version = format!("comedor {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"]), (Some(0), version, String::new()));
    let school = School::new();
    for (variable, status) in [("GATEWAY_INTERFACE", 200), ("REQUEST_METHOD", 400)] {
        let mut command = school.get("get_menu").unset(variable).command();
        let answer = Answer::of(command.arg("--help").spawn().unwrap());
        assert_eq!(answer.status, status);
    }
}

#[test]
fn wrong_command_line_prints_the_problem_and_the_usage() {
    for (arguments, problem) in [
        (
            &["check", "--x"][..],
            "comedor: unknown option `--x` of `check`",
        ),
        (
            &["check", "--json", "x"],
            "comedor: unknown option `x` of `check`",
        ),
        (
            &["configure", "--x"],
            "comedor: unknown option `--x` of `configure`",
        ),
        (
            &["configure", "--yes", "--server"],
            "comedor: `--server` needs one argument: NAME",
        ),
        (
            &["configure", "--server", "iis"],
            "comedor: unknown web server `iis`",
        ),
        (&["--x"], "comedor: unknown option `--x`"),
        (&["chek"], "comedor: unknown command `chek`"),
        (
            &["setup", "--undo"],
            "comedor: `setup` was removed after version 0.4.0; \"When you upgrade\" in /usr/share/doc/comedor/CHANGELOG.md has the commands that remove what it wrote",
        ),
        (
            &["fastcgi"],
            "comedor: `fastcgi` needs one argument: SOCKET",
        ),
        (
            &["fastcgi", "--sokcet"],
            "comedor: unknown option `--sokcet` of `fastcgi`",
        ),
        (&[], "comedor: missing command"),
    ] {
        let (status, shown, errors) = run(arguments);
        assert_eq!((status, shown.as_str()), (Some(2), ""), "{arguments:?}");
        assert_eq!(errors.lines().next(), Some(problem));
        assert!(errors.contains("usage:"));
    }
}
