//! `comedor configure`, on a settings file beside the program. With a terminal: tests/system/configure.rs.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::*;

const HIDDEN: &str = "tcp://127.0.0.1:6379?auth=…";

/// The program with a settings file beside it.
struct Installed {
    folder: TempDir,
    program: PathBuf,
}

impl Installed {
    fn with(settings: &str) -> Installed {
        let folder = open_folder();
        let program = program_in(folder.path(), settings);
        Installed { folder, program }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("comedor.conf")
    }

    fn settings(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    /// `comedor configure` with this input, without a terminal.
    fn run(&self, options: &[&str], input: &[u8]) -> Output {
        let mut child = Command::new("setsid")
            .args(["--wait".as_ref(), self.program.as_os_str()])
            .arg("configure")
            .args(options)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("setsid; apt-get install util-linux");
        // The program may exit without reading it.
        _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    fn writes(&self, input: &str) -> String {
        let output = self.run(&["--yes"], input.as_bytes());
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(files_below(self.folder.path(), &["-name", ".*"]), [""; 0]);
        said
    }

    #[track_caller]
    fn refuses(&self, input: &[u8], reason: &str) {
        let before = fs::metadata(self.file()).unwrap().ino();
        let output = self.run(&["--yes"], input);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(reason), "{reason}: {said}");
        assert!(said.ends_with("; nothing was written\n"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(fs::metadata(self.file()).unwrap().ino(), before);
    }
}

#[test]
fn pasted_settings_replace_their_lines_and_everything_else_stays() {
    for (before, pasted, after) in [
        (
            "# none\n", "COMEDOR_SERVICE=aulas\n", "# none\nCOMEDOR_SERVICE=aulas\n",
        ),
        (
            "TZ=UTC", "COMEDOR_SERVICE=aulas", "TZ=UTC\nCOMEDOR_SERVICE=aulas\n",
        ),
        (
            "# a\n COMEDOR_SERVICE = old\n\n# b\r\nTZ=UTC\r\n#TZ=x\n",
            "TZ=Europe/Madrid\r\nCOMEDOR_SERVICE=aulas\r\n",
            "# a\nCOMEDOR_SERVICE=aulas\n\n# b\r\nTZ=Europe/Madrid\n#TZ=x\n",
        ),
        // What follows an empty line, and comments
        (
            "COMEDOR_SERVICE=a\n",
            "# menús\nCOMEDOR_DATA_DIR=/srv/my-school_2.x\n \t\nTZ=UTC\n",
            "COMEDOR_SERVICE=a\nCOMEDOR_DATA_DIR=/srv/my-school_2.x\n",
        ),
        // A value that cannot be used is replaced.
        (
            "COMEDOR_ACCESS=x\n", "COMEDOR_ACCESS=listed\n", "COMEDOR_ACCESS=listed\n",
        ),
        // So is a line that cannot be read.
        ("TZ=\"UTC\"\n", "TZ=UTC\n", "TZ=UTC\n"),
        ("TZ\n", "TZ=UTC\n", "TZ=UTC\n"),
        // The lines of set-up in version 0.4.0
        (
            "# Written by `comedor setup`\nCOMEDOR_SERVICE=old\n# End\n",
            "COMEDOR_SERVICE=aulas\nCOMEDOR_ACCESS=listed\n",
            "# Written by `comedor setup`\nCOMEDOR_SERVICE=aulas\n# End\nCOMEDOR_ACCESS=listed\n",
        ),
        ("", "TZ=UTC\n", "TZ=UTC\n"),
        // Nothing looks for the zone, nor for the folder.
        ("", "TZ=Mars/Phobos\n", "TZ=Mars/Phobos\n"),
    ] {
        let installed = Installed::with(before);
        installed.writes(pasted);
        assert_eq!(installed.settings(), after);
        assert_eq!(
            fs::metadata(installed.file()).unwrap().mode() & 0o7777,
            0o644
        );
    }
}

#[test]
fn each_setting_is_shown_with_its_old_value() {
    let installed = Installed::with("TZ=UTC\nCOMEDOR_SESSION_NAME=SID\n");
    let said = installed
        .writes("TZ=Europe/Madrid\nCOMEDOR_SERVICE=aulas\nCOMEDOR_SESSION_NAME=SID\nCOMEDOR_TRUSTED_ORIGINS=http://a\n");
    for line in [
        "COMEDOR_SERVICE=aulas (before: service, the default)",
        "COMEDOR_SESSION_NAME=SID (unchanged)",
        "COMEDOR_TRUSTED_ORIGINS=http://a (before: none)",
        "TZ=Europe/Madrid (before: UTC)",
    ] {
        assert!(said.contains(&format!("\n  {line}\n")), "{line}: {said}");
    }
    assert!(
        said.contains(&format!("Wrote {}\n", installed.file().display())),
        "{said}"
    );
    // The time of the change says that the settings were looked at.
    let before = (
        fs::metadata(installed.file()).unwrap(),
        installed.settings(),
    );
    let said = installed.writes("TZ=Europe/Madrid\n");
    assert!(said.contains("TZ=Europe/Madrid (unchanged)"), "{said}");
    assert_ne!(
        fs::metadata(installed.file()).unwrap().ino(),
        before.0.ino()
    );
    assert_eq!(installed.settings(), before.1);
}

/// Without a terminal, where nobody is asked. With one: tests/system/configure.rs
#[test]
fn a_script_is_told_what_an_unusual_value_does() {
    let other = "comedor will answer for another application, and no longer for that of /srv/a/comedor.php.";
    for (before, pasted, effect) in [
        (
            "",
            "COMEDOR_SESSION_DIR=tcp://redis.example?auth=s3cret",
            "sessions will come from another machine, redis.example, and who controls it can be any user, also an \
             administrator.",
        ),
        (
            "",
            "COMEDOR_SESSION_DIR=tcp://10.0.0.1:6379",
            "from another machine, 10.0.0.1, ",
        ),
        ("", "COMEDOR_SESSION_DIR=tcp://127.0.0.1:6379", ""),
        ("", "COMEDOR_SESSION_DIR=tcp://[::1]", ""),
        ("", "COMEDOR_SESSION_DIR=tcp://localhost", ""),
        ("", "COMEDOR_SESSION_DIR=unix:///run/redis.sock", ""),
        (
            "COMEDOR_SESSION_DIR=tcp://redis.example\n",
            "COMEDOR_SESSION_DIR=tcp://redis.example",
            "",
        ),
        (
            "",
            "COMEDOR_TRUSTED_ORIGINS=https://A.example, https://b.example",
            "pages of https://a.example, https://b.example will be able to read and change menus, as the user who has \
             them open.",
        ),
        (
            "COMEDOR_TRUSTED_ORIGINS=https://a.example\n",
            "COMEDOR_TRUSTED_ORIGINS=https://a.example",
            "",
        ),
        (
            "COMEDOR_TRUSTED_ORIGINS=https://a.example\n",
            "COMEDOR_TRUSTED_ORIGINS=",
            "",
        ),
        (
            "COMEDOR_SCRIPT=/srv/a/comedor.php\n", "COMEDOR_SCRIPT=/srv/b/comedor.php", other,
        ),
        (
            "COMEDOR_SCRIPT=/srv/a/comedor.php\n", "COMEDOR_SCRIPT=/srv/a/comedor.php", "",
        ),
        ("", "COMEDOR_SCRIPT=/srv/b/comedor.php", ""),
    ] {
        let installed = Installed::with(before);
        let group = String::from_utf8(output(Command::new("id").arg("-gn"), "coreutils")).unwrap();
        let output = installed.run(&["--yes", "--group", group.trim()], pasted.as_bytes());
        let said = String::from_utf8(output.stdout).unwrap();
        let name = pasted.split('=').next().unwrap();
        let told = said
            .lines()
            .find(|line| line.starts_with(&format!("{name}: ")));
        match told {
            Some(told) => assert!(
                !effect.is_empty() && told.contains(effect),
                "{pasted}: {told}"
            ),
            None => assert_eq!(effect, "", "{pasted}: {said}"),
        }
        assert!(!said.contains("s3cret"), "{said}");
        assert_eq!(installed.settings(), format!("{pasted}\n"));
    }
}

#[test]
fn a_paste_that_cannot_be_used_is_refused_and_nothing_is_written() {
    let installed = Installed::with("COMEDOR_SERVICE=aulas\n");
    // What is shown of a value ends before the last origin.
    let origins = "https://menus.example,".repeat(100);
    let hidden = format!("TZ=UTC\nCOMEDOR_TRUSTED_ORIGINS={origins}https://other.example\n");
    for (input, reason) in [
        (
            "TZ=UTC\nCOMEDOR_X=1\n",
            "standard input: line 2: unknown setting `COMEDOR_X`",
        ),
        ("TZ\n", "line 1: expected NAME=value"),
        ("TZ=UTC\nTZ=UTC\n", "line 2: duplicate setting `TZ`"),
        ("COMEDOR_SERVICE='x'\n", "is in quotes"),
        ("COMEDOR_SERVICE=../x\n", "COMEDOR_SERVICE must be"),
        (
            "COMEDOR_DATA_DIR=DATA\n", "COMEDOR_DATA_DIR must start with a /",
        ),
        (
            "COMEDOR_SESSION_DIR=memcached:1\n", "COMEDOR_SESSION_DIR must be",
        ),
        (
            "COMEDOR_ACCESS=all\n",
            "COMEDOR_ACCESS must be centre or listed",
        ),
        ("TZ=Europe Madrid\n", "TZ must be a time zone"),
        (
            "TZ=/dev/zero\n",
            "TZ: only the name of a time zone, such as Europe/Madrid, can be pasted; write this line into the file by hand",
        ),
        ("TZ=../../../../dev/zero\n", "TZ: only the name"),
        ("TZ=CET-1CEST,M3.5.0,M10.5.0/3\n", "TZ: only the name"),
        (
            "COMEDOR_DATA_DIR=/DATA/x;chmod 4755 /bin/dash\n",
            "COMEDOR_DATA_DIR: a pasted path can have only A-Z a-z 0-9 . _ - and /, and not `..`; write this line into \
             the file by hand",
        ),
        (
            "COMEDOR_DATA_DIR=/DATA/$(id)\n", "COMEDOR_DATA_DIR: a pasted path",
        ),
        (
            "COMEDOR_DATA_DIR=/DATA/../etc\n", "COMEDOR_DATA_DIR: a pasted path",
        ),
        (
            "COMEDOR_DATA_DIR=/srv/menús\n", "COMEDOR_DATA_DIR: a pasted path",
        ),
        (
            "COMEDOR_SESSION_DIR=1;/a /etc\n", "COMEDOR_SESSION_DIR: a pasted path",
        ),
        (
            "COMEDOR_SESSION_DIR=/tmp/../s\n", "COMEDOR_SESSION_DIR: a pasted path",
        ),
        (
            "COMEDOR_DATA_DIR=/etc\n",
            "COMEDOR_DATA_DIR: a folder of the system, such as / or /etc, cannot be pasted; write this line into the file \
             by hand",
        ),
        (
            "COMEDOR_DATA_DIR=/\n",
            "COMEDOR_DATA_DIR: a folder of the system",
        ),
        (
            "COMEDOR_SESSION_DIR=2;/usr/lib\n",
            "COMEDOR_SESSION_DIR: a folder of the system",
        ),
        (
            "COMEDOR_SCRIPT=/srv/a`id`.php\n", "COMEDOR_SCRIPT: a pasted path",
        ),
        (
            "COMEDOR_SCRIPT=/srv/../comedor.php\n", "COMEDOR_SCRIPT: a pasted path",
        ),
        (
            "COMEDOR_DATA_DIR=/a\u{202e}b\n",
            "line 1, column 20: an invisible or combining character (U+202E) cannot be pasted",
        ),
        (
            "TZ=UTC\nCOMEDOR_DATA_DIR=/a\u{1b}[2J\n",
            "line 2, column 20: a control character (U+001B) ",
        ),
        ("COMEDOR_DATA_DIR=/a\tb\n", "line 1, column 20: a tab "),
        (
            "COMEDOR_DATA_DIR=/a\u{0}b\n", "a control character (U+0000) ",
        ),
        (
            " COMEDOR_DATA_DIR=/«a\n",
            "line 1, column 20: the character « (U+00AB) cannot be pasted: remove it, or, if it belongs there, write \
             this line into the file by hand",
        ),
        ("COMEDOR_DATA_DIR=/а\n", "the character а (U+0430) "),
        (
            "COMEDOR_DATA_DIR=/e\u{301}\n",
            "invisible or combining character (U+0301) ",
        ),
        (
            "COMEDOR_DATA_DIR=/a\u{a0}b\n",
            "invisible or combining character (U+00A0) ",
        ),
        (
            "# \u{2028}\nTZ=UTC\n",
            "invisible or combining character (U+2028) ",
        ),
        (
            "\u{feff}TZ=UTC\n",
            "line 1, column 1: an invisible or combining character (U+FEFF) ",
        ),
        (&"#\n".repeat(40_000), "more than 65536 bytes"),
        (&hidden, "line 2: longer than 1100 characters"),
    ] {
        installed.refuses(input.as_bytes(), reason);
    }
    installed.refuses(b"COMEDOR_DATA_DIR=/\xff\n", "not valid UTF-8");
    assert_eq!(installed.settings(), "COMEDOR_SERVICE=aulas\n");
    Installed::with("COMEDOR_X=1\n").refuses(b"TZ=UTC\n", "line 1: unknown setting `COMEDOR_X`");
    let link = Installed::with("");
    fs::rename(link.file(), link.folder.path().join("target")).unwrap();
    symlink("target", link.file()).unwrap();
    link.refuses(b"TZ=UTC\n", "is not a regular file");
}

#[test]
fn a_password_is_never_shown_and_only_the_group_can_read_it() {
    let group = output(Command::new("id").arg("-gn"), "coreutils");
    let group = String::from_utf8(group).unwrap();
    let installed = Installed::with("TZ=UTC\n");
    let secret = |secret| format!("COMEDOR_SESSION_DIR=tcp://127.0.0.1:6379?auth={secret}\n");
    let options = ["--yes", "--group", group.trim()];
    let default =
        format!("\n  COMEDOR_SESSION_DIR={HIDDEN} (before: /var/lib/php/sessions, the default)\n");
    for (password, shown) in [
        ("s3cret", &*default),
        (
            "s3cret2",
            &format!("\n  COMEDOR_SESSION_DIR={HIDDEN} (another password)\n"),
        ),
        (
            "s3cret2",
            &format!("\n  COMEDOR_SESSION_DIR={HIDDEN} (unchanged)\n"),
        ),
    ] {
        let output = installed.run(&options, secret(password).as_bytes());
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(shown), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
        assert_eq!(output.stderr, b"");
        assert_eq!(
            installed.settings(),
            format!("TZ=UTC\n{}", secret(password))
        );
        assert_eq!(
            fs::metadata(installed.file()).unwrap().mode() & 0o7777,
            0o640
        );
    }
    let output = installed.run(
        &["--yes", "--group", "no-such-group"],
        secret("x").as_bytes(),
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("unknown group `no-such-group`"), "{said}");
    // It stays closed: a comment may have the password.
    installed.writes("COMEDOR_SESSION_DIR=/srv/sessions\n");
    assert_eq!(
        fs::metadata(installed.file()).unwrap().mode() & 0o7777,
        0o640
    );
}

#[test]
fn a_file_that_is_closed_to_others_stays_closed() {
    for (before, after) in [(0o600, 0o640), (0o640, 0o640), (0o644, 0o644)] {
        let installed = Installed::with("# a password\n");
        chmod(installed.file(), before);
        installed.writes("TZ=UTC\n");
        let mode = fs::metadata(installed.file()).unwrap().mode() & 0o7777;
        assert_eq!(mode, after, "{before:o}");
    }
}

#[test]
fn an_empty_paste_is_refused() {
    let installed = Installed::with("TZ=UTC\n");
    for input in ["", "\n", "# nothing\n\nTZ=Europe/Madrid\n"] {
        installed.refuses(input.as_bytes(), "no settings were pasted");
    }
}

#[test]
fn two_commands_never_run_at_the_same_time() {
    let installed = Installed::with("TZ=UTC\n");
    let folder = fs::File::open(installed.folder.path()).unwrap();
    folder.lock().unwrap();
    let pasted = "COMEDOR_SERVICE=aulas\n";
    installed.refuses(
        pasted.as_bytes(),
        &format!(
            "another `comedor configure` is running; `sudo lslocks` shows which process locks {}; ",
            installed.folder.path().display()
        ),
    );
    folder.unlock().unwrap();
    installed.writes(pasted);
    assert_eq!(installed.settings(), "TZ=UTC\nCOMEDOR_SERVICE=aulas\n");
}

#[test]
fn what_a_killed_command_has_left_is_removed_and_who_has_opened_it_does_not_see_the_new_file() {
    let installed = Installed::with("TZ=UTC\n");
    let temporary = installed.folder.path().join(".comedor.conf.tmp");
    let left = "COMEDOR_SERVICE=of_a_killed_command\n";
    fs::write(&temporary, left).unwrap();
    let opened = fs::File::open(&temporary).unwrap();
    installed.writes("COMEDOR_SERVICE=aulas\n");
    assert_eq!(installed.settings(), "TZ=UTC\nCOMEDOR_SERVICE=aulas\n");
    assert_eq!(std::io::read_to_string(opened).unwrap(), left);
    // A link is removed, and not its target.
    let target = installed.folder.path().join("target");
    fs::write(&target, left).unwrap();
    symlink(&target, &temporary).unwrap();
    installed.writes("COMEDOR_SERVICE=aulas\n");
    assert_eq!(fs::read_to_string(target).unwrap(), left);
}

#[test]
fn without_a_terminal_only_yes_writes() {
    let installed = Installed::with("# none\n");
    let output = installed.run(&[], b"TZ=UTC\n\n1234\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("cannot ask, without a terminal") && said.contains("--yes"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(installed.settings(), "# none\n");
}

#[test]
fn the_next_commands_are_constant_for_each_web_server() {
    let installed = Installed::with("TZ=UTC\n");
    let check =
        "\nNext, with the user that the page shows instead of USER:\nsudo -u USER comedor check\n";
    for (server, command) in [
        ("apache", "a2enconf comedor && "),
        ("apache-fastcgi", "a2enconf comedor-fastcgi && "),
        ("nginx", "include snippets/comedor.conf;"),
        ("caddy", "import comedor.caddyfile"),
        ("lighttpd", "sudo lighty-enable-mod comedor\n"),
    ] {
        let output = installed.run(&["--server", server], b"");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            said.starts_with("No settings: nothing was written.\n"),
            "{said}"
        );
        assert!(said.contains(check) && said.contains(command), "{said}");
        // Each copies an example of this repository.
        for name in said
            .split("/examples/")
            .skip(1)
            .map(|rest| rest.split(' ').next().unwrap())
        {
            assert!(
                Path::new(REPOSITORY).join("examples").join(name).exists(),
                "{name}"
            );
        }
        assert_eq!(output.status.code(), Some(0));
    }
}
