//! What the self-check finds out about the machine: PHP's user and settings, and the web server.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::thread;

use crate::check::{check, fix, found};
use crate::support::fastcgi::{END, Held, STDOUT, record, stream};
use crate::support::*;

/// The findings of the check on a system with these files in `/etc`, without web servers.
pub fn check_with(
    school: &School,
    wrapper: &[&str],
    files: &[(&str, &str)],
    more: &str,
) -> Vec<Value> {
    let etc = open_folder();
    for (path, text) in
        [("passwd", "caddy:x:65534:65534::/:/\n"), ("group", "web:x:33:\n")].iter().chain(files)
    {
        let path = etc.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let script = format!(
        "export PATH=/usr/sbin:/usr/bin; mount --bind {} /etc; {more}; \"$@\"",
        etc.path().display()
    );
    check(school, &[&["sh", "-c", &script, "sh"], wrapper].concat(), &[], "")
}

#[test]
fn settings_that_differ_from_those_of_phps_pages_are_found() {
    let school = School::new();
    let sessions = school.sessions().display().to_string();
    let ini = |lines: &str| {
        format!("; PHP\n[Session]\nsession.save_path = \"{sessions}\" ; here\n{lines}\n")
    };
    let same = ini("session.name = PHPSESSID\nsession.serialize_handler = php");
    let other = ini(
        "session.name = SID ; theirs\nsession.serialize_handler=php_serialize\ndate.timezone = \"Europe/Madrid\"",
    );
    let about = |findings: &[Value]| -> Vec<String> {
        let names = findings.iter().map(|finding| finding["about"].as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with("COMEDOR_") || name == "TZ").collect()
    };
    let in_latin1 = r"printf '; \361\n' >> /etc/php/8.2/fpm/php.ini";
    let findings = check_with(&school, &[], &[("php/8.2/fpm/php.ini", &same)], in_latin1);
    assert!(about(&findings).is_empty(), "{findings:#?}");
    // A pool, or another server's PHP, may be the one of the application.
    let pool = "; pool\n[global]\npid = x\n[www]\nphp_admin_value[session.name] = PHPSESSID\n\
                php_value[session.serialize_handler] = php\nphp_value[date.timezone] = UTC\n;php_value[session.name] = no\n\
                [other]\nphp_value[session.name] = X\n";
    for files in [
        [("php/8.2/fpm/php.ini", other.as_str()), ("php/8.2/fpm/pool.d/www.conf", pool)],
        [("php/8.2/fpm/php.ini", other.as_str()), ("php/8.1/apache2/php.ini", &same)],
    ] {
        let findings = check_with(&school, &["env", "-u", "TZ"], &files, "true");
        let names = about(&findings);
        assert!(names.is_empty() || names == ["TZ"], "{findings:#?}");
    }
    let files = [("php/8.2/fpm/php.ini", other.as_str()), ("php/8.2/cli/php.ini", &same)];
    let findings = check_with(&school, &[], &files, "true");
    let text = "PHP's session.name is SID (/etc/php/8.2/fpm/php.ini line 4); set COMEDOR_SESSION_NAME to this value, unless";
    found(&findings, "warning", "COMEDOR_SESSION_NAME", text);
    found(&findings, "warning", "COMEDOR_SESSION_FORMAT", "is php_serialize (");
    found(&findings, "warning", "TZ", "PHP's date.timezone is Europe/Madrid (");
    let set = ["env", "COMEDOR_SESSION_NAME=X", "COMEDOR_SESSION_DIR=/tmp"];
    let findings = check_with(&school, &set, &[("php/8.2/apache2/php.ini", &same)], "true");
    found(&findings, "warning", "COMEDOR_SESSION_NAME", "PHP's session.name is PHPSESSID (");
    found(&findings, "warning", "COMEDOR_SESSION_DIR", "PHP's session.save_path is ");
    // Later files take precedence.
    let files = [
        ("php/8.2/fpm/php.ini", same.as_str()),
        ("php/8.2/fpm/conf.d/20-b.ini", "session.name = 'B'"),
        ("php/8.2/fpm/conf.d/10-a.ini", "session.name = A"),
        ("php/8.2/fpm/conf.d/30-c.ini.bak", "session.name = PHPSESSID"),
    ];
    let text = "PHP's session.name is B (/etc/php/8.2/fpm/conf.d/20-b.ini line 1)";
    found(&check_with(&school, &[], &files, "true"), "warning", "COMEDOR_SESSION_NAME", text);
    // The default of Debian.
    let findings = check_with(&school, &[], &[("php/8.2/apache2/php.ini", "")], "true");
    found(&findings, "warning", "COMEDOR_SESSION_DIR", "save_path is /var/lib/php/sessions (");
    let findings = check_with(&school, &[], &[], "true");
    found(&findings, "hint", "settings", "PHP's settings are not in /etc/php");
}

#[test]
fn zone_of_the_system_is_compared_by_its_rules() {
    let school = School::new();
    let ini = "date.timezone = Europe/Madrid\n";
    let zone = |name: &str| {
        let link = format!("ln -s /usr/share/zoneinfo/{name} /etc/localtime");
        check_with(&school, &["env", "-u", "TZ"], &[("php/8.2/fpm/php.ini", ini)], &link)
    };
    let text = "is Europe/Madrid (/etc/php/8.2/fpm/php.ini line 1); set TZ";
    found(&zone("Atlantic/Canary"), "warning", "TZ", text);
    let findings = zone("Europe/Madrid");
    assert!(!findings.iter().any(|finding| finding["about"] == "TZ"), "{findings:#?}");
}

#[test]
fn socket_that_a_configuration_names_and_that_does_not_exist_is_an_error() {
    let school = School::new();
    let configuration = "reverse_proxy unix//run/comedor/comedor.sock";
    let files = [("caddy/comedor.caddyfile", configuration)];
    let no_socket = "mount -t tmpfs none /run";
    let findings = check_with(&school, &[], &files, no_socket);
    let text = "does not exist, and a web server is configured for it";
    let finding = found(&findings, "error", "/run/comedor/comedor.sock", text);
    assert_eq!(finding["fix"], "sudo systemctl enable --now comedor.socket");
    let findings = check_with(&school, &[], &[], no_socket);
    assert!(!format!("{findings:?}").contains("comedor.sock"), "CGI needs no socket");
}

/// systemd says which process is that of the unit. A process of any user can have its name.
#[test]
fn web_server_that_cannot_connect_is_an_error() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let path = socket.path.to_str().unwrap();
    chmod(path, 0o660);
    chown(path, Some(1), Some(33)).unwrap();
    let folder = open_folder();
    let (server, systemctl) = (folder.path().join("caddy"), folder.path().join("systemctl"));
    fs::copy("/usr/bin/sleep", &server).unwrap();
    let (server, systemctl) = (server.display(), systemctl.display());
    let text = "caddy runs as caddy without the group web and cannot connect";
    // In a folder of another user, which can put another socket there, of a group such as docker, there is no
    // command.
    for (groups, process_of_unit, owner, is_found) in [
        ("--clear-groups", "$!", 0, true),
        ("--clear-groups", "$!", 33, true),
        ("--groups=33", "$!", 0, false),
        ("--clear-groups", "0", 0, false),
    ] {
        let script = format!(
            "mount -t tmpfs none /run; mkdir /run/comedor; touch /run/comedor/comedor.sock; \
             chown {owner} /run/comedor; mount --bind {path} /run/comedor/comedor.sock; \
             setpriv --reuid=65534 --regid=65534 {groups} {server} 60 & \
             until grep -q caddy /proc/$!/comm; do :; done; \
             printf '#!/bin/sh\necho 0 0 '{process_of_unit}' 0 0' > {systemctl}; \
             chmod 755 {systemctl}; mount --bind {systemctl} /usr/bin/systemctl"
        );
        let findings = check_with(&school, &[], &[], &script);
        assert_eq!(format!("{findings:?}").contains(text), is_found, "{findings:#?}");
        if is_found {
            let finding = found(&findings, "error", "/run/comedor/comedor.sock", text);
            let command = "sudo usermod -aG web caddy && sudo systemctl restart caddy";
            let command = serde_json::Value::from((owner == 0).then_some(command));
            assert_eq!(finding["fix"], command);
        }
    }
    process.stop();
}

#[test]
fn a_process_behind_the_socket_looks_itself_for_root() {
    let (school, socket, folder) = (School::new(), Held::new(), open_folder());
    let program =
        program_in(folder.path(), &format!("COMEDOR_DATA_DIR={}\n", school.data().display()));
    let by_file = school.get("").program(&program).unset("COMEDOR_DATA_DIR").under(AS_NOBODY);
    let process = socket.spawn(by_file.set("COMEDOR_SESSION_DIR", "/nowhere").responder());
    let path = socket.path.to_str().unwrap();
    let look = |wrapper| check(&school, wrapper, &["--socket", path], "");
    // Its user, its environment.
    let findings = look(&[]);
    found(&findings, "ok", path, "a FastCGI process answers");
    found(&findings, "ok", "user", "nobody");
    found(&findings, "ok", "settings", "COMEDOR_SESSION_DIR=/nowhere (the environment)");
    found(&findings, "error", "/nowhere", "COMEDOR_SESSION_DIR must name the session folder");
    found(&findings, "error", "/Aularios", "nobody cannot write here");
    assert!(!format!("{findings:?}").contains("was replaced"), "{findings:#?}");
    // As after an upgrade.
    fs::remove_file(&program).unwrap();
    found(&look(&[]), "warning", "program", "the program of this process was replaced or removed");

    // Another user gets what every unknown role gets.
    let ask = |role: u8, wrapper: &[&str]| {
        let code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                    s.send(bytes([1, 1, 0, 1, 0, 8, 0, 0, 0xc0, int(sys.argv[2]), 0, 0, 0, 0, 0, 0])); \
                    s.shutdown(1); sys.stdout.buffer.write(b''.join(iter(lambda: s.recv(4096), b'')))";
        let role = role.to_string();
        let words = [wrapper, &["/usr/bin/python3", "-c", code, path, &role]].concat();
        output(Command::new(words[0]).args(&words[1..]), "python3")
    };
    chmod(socket.path.parent().unwrap(), 0o755);
    chmod(path, 0o666);
    let unknown = ask(0xee, &[]);
    assert_eq!(unknown, [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!(ask(0xed, AS_NOBODY), unknown);
    assert!(ask(0xed, &[]).len() > 1000);
    chmod(path, 0o660);
    chown(path, Some(65534), Some(65534)).unwrap();
    found(&look(AS_NOBODY), "ok", path, "a FastCGI process answers");
    process.stop();
}

/// Another program may listen on the socket, or one that was taken over.
#[test]
fn an_answer_from_the_socket_is_data() {
    let school = School::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let finding = |fix: &str| {
        json!({"level": "error", "about": "x\u{1b}[2J", "text": "two\nlines", "fix": fix})
            .to_string()
    };
    let document = |version: &str, findings: &str| {
        let document = format!(r#"{{"version":"{version}","findings":[{findings}]}}"#);
        [stream(STDOUT, document.as_bytes()), record(END, &[0; 8])].concat()
    };
    let current = env!("CARGO_PKG_VERSION");
    let many = vec![finding(""); 1001].join(",");
    let endless = record(STDOUT, &[b'['; 60_000]).repeat(400);
    for (records, level, about, text) in [
        (document(current, &finding("rm -r /DATA")), "error", "x\\u{1b}[2J", "two\\nlines"),
        (document("9.9", ""), "error", "/socket", "another version answers (this is version "),
        (document(current, "{}"), "error", "/socket", "a finding is incomplete"),
        (
            document(current, &many),
            "warning",
            "findings",
            "has more than 1000 findings; the rest is not shown",
        ),
        (document(current, "["), "error", "/socket", "restart it"),
        (record(END, &[0, 0, 0, 0, 3, 0, 0, 0]), "error", "/socket", "restart it"),
        (b"HTTP/1.1 200 OK".to_vec(), "error", "/socket", "the answer is not FastCGI"),
        (Vec::new(), "error", "/socket", "no FastCGI process answers"),
        (vec![b'x'; 100], "error", "/socket", "the answer is not FastCGI"),
        (endless, "error", "/socket", "no FastCGI process answers"),
    ] {
        _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        chmod(&path, 0o660);
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            client.read_exact(&mut [0; 16]).unwrap();
            // The check may have closed it.
            _ = client.write_all(&records);
        });
        let findings = check(&school, &[], &["--socket", path.to_str().unwrap()], "");
        assert_eq!(found(&findings, level, about, text)["fix"], Value::Null);
        // Root does not look instead, at files that PHP's user controls.
        assert!(findings.iter().all(|finding| finding["about"] != "user"), "{findings:#?}");
        server.join().unwrap();
    }
}

/// This is how a process looks that has stopped accepting.
#[test]
fn full_queue_of_the_socket_is_an_error() {
    let school = School::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _waiting = UnixStream::connect(&path).unwrap();
    let findings = check(&school, &[], &["--socket", path.to_str().unwrap()], "");
    let text = "no FastCGI process answers (its queue of connections is full)";
    found(&findings, "error", "/socket", text);
}

#[test]
fn the_container_image_says_who_can_connect() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let path = socket.path.to_str().unwrap();
    let in_container =
        ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /usr/bin; exec \"$@\"", "sh"];
    school.write(TYPES, "{");
    for (mode, who) in [
        (0o660, "the user daemon and the group www-data"),
        (0o600, "the user daemon"),
        (0o060, "the group www-data"),
        (0o000, "only root"),
    ] {
        chmod(path, mode);
        chown(path, Some(1), Some(33)).unwrap();
        let findings = check(&school, &in_container, &["--socket", path], "");
        let text = format!("{who} can connect, no other: the web server must run as one of them");
        found(&findings, "hint", path, &text);
        let finding = found(&findings, "error", TYPES, "run as the user 0 in PHP's container:");
        assert!(finding["fix"].as_str().unwrap().starts_with("mv -T "), "{finding}");
    }
    process.stop();
}

#[test]
fn fastcgi_socket_is_checked_for_its_mode_and_an_answer() {
    let (school, socket) = (School::new(), Held::new());
    let path = socket.path.to_str().unwrap().to_owned();
    let findings = || check(&school, &[], &["--socket", &path], "");
    let process = socket.serve(&school);
    chmod(&path, 0o666);
    fix(&[], found(&findings(), "error", &path, "every user of this machine can connect"));
    found(&findings(), "ok", &path, "the user root and the group root can connect");
    process.stop();
    drop(socket);
    found(&findings(), "error", &path, "cannot be used");
}
