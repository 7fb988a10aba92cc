//! `comedor configure` at a terminal.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use crate::support::*;

/// A line of the shell at a terminal, with this text pasted.
fn start(line: &str, pasted: &str) -> Child {
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", line, "/dev/null"])
        .env_clear()
        .envs([("SHELL", "/bin/sh"), ("PATH", "/usr/bin:/bin")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script; apt-get install bsdutils");
    paste(&mut child, pasted);
    child
}

fn paste(child: &mut Child, text: &str) {
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

/// Reads from the terminal until `end`, else all.
fn shown(child: &mut Child, end: &str) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(end.as_bytes())
        && child.stdout.as_mut().unwrap().read(&mut byte).unwrap() > 0
    {
        text.extend(byte);
    }
    String::from_utf8(text).unwrap()
}

/// Reads up to a question. Returns what was shown, and the number that answers it.
fn question(child: &mut Child) -> (String, String) {
    let shown = shown(child, " and press Enter: ");
    let number = shown.rsplit(' ').nth(4).unwrap().to_owned();
    (shown, number)
}

/// Answers the last question. The next program at this terminal reads what is typed then, and nothing else.
#[track_caller]
fn assert_only_what_is_typed_is_left(mut child: Child, number: &str) {
    paste(&mut child, &format!("{number}\n"));
    shown(&mut child, &format!("{number}\r\n"));
    paste(&mut child, "typed\n");
    let left = shown(&mut child, "\0");
    // The terminal echoes it.
    assert_eq!(left.matches("typed\r\n").count(), 2, "{left}");
    assert!(!left.contains("id\r\n"), "{left}");
    child.wait().unwrap();
}

#[test]
fn only_the_number_that_is_shown_confirms_and_ctrl_c_cancels() {
    let folder = open_folder();
    let program = program_in(folder.path(), "TZ=UTC\n");
    let line = format!("exec {} configure", program.display());
    let settings = || fs::read_to_string(folder.path().join("comedor.conf")).unwrap();
    for key in ["\x03", "\x1c"] {
        let mut child = start(&line, "COMEDOR_SERVICE=aulas\n\n");
        let (said, number) = question(&mut child);
        assert!(
            said.contains("COMEDOR_SERVICE=aulas (before: service, the default)"),
            "{said}"
        );
        assert!(
            said.contains("\nTo write nothing, press Ctrl-C.\r\nTo write this, type "),
            "{said}"
        );
        // It asks again.
        for answer in ["", "y", "\x04", "12345"] {
            paste(&mut child, &format!("{answer}\n"));
            assert_eq!(question(&mut child).1, number, "{answer}");
        }
        paste(&mut child, key);
        let refused = shown(&mut child, "\0");
        assert!(
            refused.contains("not confirmed; nothing was written"),
            "{refused}"
        );
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert_eq!(settings(), "TZ=UTC\n");
    }
    let mut child = start(&line, "COMEDOR_SERVICE=aulas\n\n");
    let (_, number) = question(&mut child);
    paste(&mut child, &format!("{number}\n"));
    let said = shown(&mut child, "\0");
    assert!(
        said.contains("Wrote ") && said.contains("sudo -u USER comedor check"),
        "{said}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(settings(), "TZ=UTC\nCOMEDOR_SERVICE=aulas\n");
}

/// Otherwise the shell would run the rest of a paste.
#[test]
fn what_follows_the_empty_line_at_once_or_after_a_pause_is_discarded_until_an_answer() {
    let folder = open_folder();
    let program = program_in(folder.path(), "TZ=UTC\n").display().to_string();
    let follows = "text follows the empty line; paste the settings alone; nothing was written";
    for (options, pasted, problem) in [
        ("", "COMEDOR_SERVICE=aulas\n\ny\n", follows),
        ("", "COMEDOR_SERVICE=aulas\n\n1234\n", follows),
        ("", "COMEDOR_SERVICE=aulas\n\n\n\n4321\nid\n", follows),
        (
            "",
            "COMEDOR_SERVICE=aulas\n\nCOMEDOR_ACCESS=listed\n",
            follows,
        ),
        (
            "",
            "COMEDOR_X=1\n\n",
            "unknown setting `COMEDOR_X`; nothing was written",
        ),
        ("", "\n", "no settings were pasted; nothing was written"),
        ("--server apache", "\n", "No settings: nothing was written."),
        (
            "--yes", "TZ=/dev/zero\n\n", "TZ: only the name of a time zone",
        ),
    ] {
        let line = format!("{program} configure {options}; head -n 1");
        let mut child = start(&line, pasted);
        let (said, number) = question(&mut child);
        assert!(said.contains(problem), "{pasted}: {said}");
        assert!(said.contains("\nTo end, type "), "{pasted}: {said}");
        for rest in ["id\n", "\n\n", "id\nid"] {
            paste(&mut child, rest);
            assert_eq!(question(&mut child).1, number, "{pasted}");
        }
        assert_only_what_is_typed_is_left(child, &number);
    }
    // A shell at a terminal does not end by the key either.
    let line = format!("trap : INT; {program} configure; head -n 1");
    let mut child = start(&line, "COMEDOR_SERVICE=aulas\n\n");
    let (_, number) = question(&mut child);
    paste(&mut child, "id\n");
    assert_eq!(question(&mut child).1, number);
    // It ends the question, and what comes with it is discarded too.
    paste(&mut child, "\x03id\nid");
    shown(&mut child, "not confirmed; nothing was written\r\n");
    paste(&mut child, "typed\n");
    // The terminal echoes it.
    assert_eq!(shown(&mut child, "\0"), "typed\r\ntyped\r\n");
    child.wait().unwrap();
    assert_eq!(
        fs::read_to_string(folder.path().join("comedor.conf")).unwrap(),
        "TZ=UTC\n"
    );
}

#[test]
fn a_paste_cannot_end_the_program_by_the_characters_of_keys() {
    let folder = open_folder();
    let program = program_in(folder.path(), "TZ=UTC\n").display().to_string();
    for key in ["\x03", "\x1c", "\x1a"] {
        // A shell at a terminal does not end by the key either.
        let line = format!("trap : INT QUIT TSTP; {program} configure; head -n 1");
        let mut child = start(&line, "");
        shown(&mut child, "is empty:\r\n");
        paste(&mut child, &format!("COMEDOR_SERVICE=aulas\n{key}id\n\n"));
        let refused = shown(&mut child, "; nothing was written\r\n");
        assert!(
            refused.contains("expected NAME=value; nothing was written"),
            "{refused}"
        );
        let (_, number) = question(&mut child);
        assert_only_what_is_typed_is_left(child, &number);
    }
}

/// Also with --yes, which is for scripts.
#[test]
fn each_unusual_value_has_a_question_of_its_own() {
    let before = "COMEDOR_SCRIPT=/srv/a/comedor.php\n";
    let pasted = "COMEDOR_SCRIPT=/srv/b/comedor.php\nCOMEDOR_TRUSTED_ORIGINS=https://menus.example\n\
                  COMEDOR_SESSION_DIR=tcp://10.0.0.1\n";
    let folder = open_folder();
    let program = program_in(folder.path(), before);
    let line = format!("{} configure --yes", program.display());
    let mut child = start(&line, &format!("{pasted}\n"));
    for (name, aim) in [
        (
            "COMEDOR_SESSION_DIR: sessions will come",
            "If this is right",
        ),
        (
            "COMEDOR_TRUSTED_ORIGINS: pages of https://menus.example",
            "If this is right",
        ),
        (
            "COMEDOR_SCRIPT: comedor will answer for another",
            "If this is right",
        ),
        ("To write nothing", "To write this"),
    ] {
        let settings = fs::read_to_string(folder.path().join("comedor.conf"));
        assert_eq!(settings.unwrap(), before);
        let (said, number) = question(&mut child);
        assert!(said.contains(&format!("\n{name}")), "{name}: {said}");
        assert!(
            said.contains(&format!("\n{aim}, type {number} ")),
            "{aim}: {said}"
        );
        paste(&mut child, &format!("{number}\n"));
    }
    shown(&mut child, "\0");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let settings = fs::read_to_string(folder.path().join("comedor.conf"));
    assert_eq!(settings.unwrap().lines().count(), 3);
}

#[test]
fn an_edit_during_the_question_is_kept() {
    let folder = open_folder();
    let program = program_in(folder.path(), "TZ=UTC\n");
    let mut child = start(
        &format!("{} configure", program.display()),
        "COMEDOR_SERVICE=aulas\n\n",
    );
    let question = shown(&mut child, " and press Enter: ");
    let file = folder.path().join("comedor.conf");
    fs::write(&file, "TZ=Europe/Madrid\n").unwrap();
    let number = question.rsplit(' ').nth(4).unwrap();
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(format!("{number}\n").as_bytes())
        .unwrap();
    let refused = shown(&mut child, "\0");
    assert!(
        refused.contains("has changed in the meantime; nothing was written"),
        "{refused}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(fs::read_to_string(file).unwrap(), "TZ=Europe/Madrid\n");
}

#[test]
fn a_second_command_says_before_it_asks_that_one_is_running() {
    let folder = open_folder();
    let program = program_in(folder.path(), "TZ=UTC\n");
    let line = format!("{} configure", program.display());
    let prompt = "Paste the settings, NAME=value, and press Enter until a line is empty:\r\n";
    let mut first = start(&line, "");
    assert_eq!(shown(&mut first, prompt), prompt);
    let assert_that_a_second_is_refused = || {
        let mut second = start(&format!("{line} || head -n 1"), "");
        let (said, number) = question(&mut second);
        let problem = "comedor: another `comedor configure` is running; `sudo lslocks` ";
        assert!(said.starts_with(problem), "{said}");
        assert!(
            said.contains("; nothing was written\r\nTo end, type "),
            "{said}"
        );
        // The settings can be pasted together with the command.
        paste(&mut second, "COMEDOR_SERVICE=aulas\n\nid\n");
        assert_eq!(question(&mut second).1, number);
        assert_only_what_is_typed_is_left(second, &number);
    };
    assert_that_a_second_is_refused();
    paste(&mut first, "COMEDOR_SERVICE=aulas\n\n");
    question(&mut first);
    assert_that_a_second_is_refused();
    // The command of the sentence finds the first one. If that is killed, the next one runs.
    let locks = output(&mut Command::new("lslocks"), "util-linux");
    let locks = String::from_utf8_lossy(&locks).into_owned();
    let place = folder.path().to_str().unwrap();
    let lock = locks.lines().find(|line| line.ends_with(place));
    let mut words = lock.expect(&locks).split_whitespace();
    assert_eq!(words.next(), Some("comedor"));
    output(
        Command::new("kill").args(["-KILL", words.next().unwrap()]),
        "procps",
    );
    shown(&mut first, "\0");
    first.wait().unwrap();
    let mut next = start(&line, "");
    assert_eq!(shown(&mut next, prompt), prompt);
    paste(&mut next, "\n");
    let (_, number) = question(&mut next);
    paste(&mut next, &format!("{number}\n"));
    shown(&mut next, "\0");
    next.wait().unwrap();
}

#[test]
fn a_new_file_is_readable_for_the_web_server_whatever_the_umask_is() {
    let folder = open_folder();
    let program = program_in(folder.path(), "");
    fs::remove_file(folder.path().join("comedor.conf")).unwrap();
    for (settings, mode) in [
        (
            "TZ=UTC",
            "/etc/comedor root 755\n/etc/comedor/comedor.conf root 644\n",
        ),
        (
            "COMEDOR_SESSION_DIR=tcp://127.0.0.1?auth=s3cret",
            "/etc/comedor root 755\n/etc/comedor/comedor.conf www-data 640\n",
        ),
    ] {
        let script = format!(
            "cp /etc/group /etc/passwd /run; mount -t tmpfs none /etc; cp /run/group /run/passwd /etc; umask 077; \
             echo '{settings}' | {} configure --yes > /dev/null; stat -c '%n %G %a' /etc/comedor /etc/comedor/*; \
             grep -q '{settings}' /etc/comedor/comedor.conf",
            program.display()
        );
        let mut alone = Command::new("unshare");
        alone.args([
            "--mount",
            "sh",
            "-ec",
            &format!("mount -t tmpfs none /run; {script}"),
        ]);
        assert_eq!(
            String::from_utf8(output(&mut alone, "a run as root")).unwrap(),
            mode
        );
    }
    // Another user is told before the paste.
    let mut other = Command::new(AS_NOBODY[0]);
    let other = other
        .args(&AS_NOBODY[1..])
        .arg(&program)
        .arg("configure")
        .env_clear();
    let refused = other.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("Permission denied (os error 13); use sudo; nothing was written"),
        "{said}"
    );
}

#[test]
fn a_full_disk_leaves_the_old_file_and_no_other() {
    let folder = open_folder();
    let program = program_in(folder.path(), "");
    fs::remove_file(folder.path().join("comedor.conf")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k none /etc; mkdir /etc/comedor; echo '# ours' > /etc/comedor/comedor.conf; \
         head -c 1M /dev/zero > /etc/fill || true; echo TZ=UTC | {} configure --yes 2>&1 | tail -n 1; \
         ls -A /etc/comedor; cat /etc/comedor/comedor.conf",
        program.display()
    );
    let mut alone = Command::new("unshare");
    let said = output(
        alone.args(["--mount", "sh", "-ec", &script]),
        "a run as root",
    );
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.starts_with("comedor: /etc/comedor/comedor.conf: No space left on device"),
        "{said}"
    );
    assert!(
        said.ends_with("nothing was written\ncomedor.conf\n# ours\n"),
        "{said}"
    );
}
