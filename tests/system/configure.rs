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

#[test]
fn the_number_that_is_shown_confirms_and_any_other_answer_does_not() {
    for (answer, status, settings) in [
        (None, 0, "TZ=UTC\nCOMEDOR_SERVICE=aulas\n"),
        (Some("y"), 1, "TZ=UTC\n"),
    ] {
        let folder = open_folder();
        let program = program_in(folder.path(), "TZ=UTC\n");
        let line = format!("{} configure", program.display());
        let mut child = start(&line, "COMEDOR_SERVICE=aulas\n\n");
        let question = shown(&mut child, " and press Enter: ");
        assert!(question.contains("COMEDOR_SERVICE=aulas (before: service, the default)"));
        let number = question.rsplit(' ').nth(4).unwrap();
        let answer = answer.unwrap_or(number);
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(format!("{answer}\n").as_bytes())
            .unwrap();
        let rest = shown(&mut child, "\0");
        assert_eq!(
            child.wait().unwrap().code(),
            Some(status),
            "{question}{rest}"
        );
        assert_eq!(
            fs::read_to_string(folder.path().join("comedor.conf")).unwrap(),
            settings
        );
    }
}

/// Nor does the shell get it, which would run it.
#[test]
fn a_paste_can_neither_answer_nor_go_on_after_the_empty_line() {
    let folder = open_folder();
    let program = program_in(folder.path(), "TZ=UTC\n").display().to_string();
    for rest in ["y\n", "1234\n", "\n\n4321\nid\n", "COMEDOR_ACCESS=listed\n"] {
        let line = format!("{program} configure; head -n 1");
        let mut child = start(&line, &format!("COMEDOR_SERVICE=aulas\n\n{rest}"));
        let refused = shown(&mut child, "; nothing was written\r\n");
        assert!(
            refused.contains("text follows the empty line; paste the settings alone"),
            "{refused}"
        );
        // What the next program at this terminal reads
        child.stdin.as_mut().unwrap().write_all(b"typed\n").unwrap();
        let read = shown(&mut child, "\0");
        assert_eq!(read.replace("typed\r\n", ""), "", "{refused}");
        child.wait().unwrap();
    }
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
        let mut child = start(&format!("exec {program} configure"), "");
        shown(&mut child, "is empty:\r\n");
        let pasted = format!("COMEDOR_SERVICE=aulas\n{key}id\n\n");
        paste(&mut child, &pasted);
        let refused = shown(&mut child, "; nothing was written\r\n");
        assert!(
            refused.contains("expected NAME=value; nothing was written"),
            "{refused}"
        );
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}

/// A paste over a network can have a pause after the empty line.
#[test]
fn what_follows_a_wrong_answer_is_discarded() {
    let folder = open_folder();
    let program = program_in(folder.path(), "TZ=UTC\n").display().to_string();
    let line = format!("{program} configure; head -n 1");
    let mut child = start(&line, "COMEDOR_SERVICE=aulas\n\n");
    shown(&mut child, " and press Enter: ");
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"y\nid\nid")
        .unwrap();
    let refused = shown(&mut child, "not confirmed; nothing was written\r\n");
    child.stdin.as_mut().unwrap().write_all(b"typed\n").unwrap();
    let read = shown(&mut child, "\0");
    assert_eq!(read.replace("typed\r\n", ""), "", "{refused}");
    child.wait().unwrap();
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
