//! What the self-check finds out about the machine: the web server, and the process behind the socket.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::thread;

use crate::check::{check, count, found};
use crate::check_limits::LIMITED;
use crate::support::fastcgi::{END, Held, STDOUT, record, stream};
use crate::support::*;

/// The findings of `check` with these options after the shell commands `before`, on a machine where set-up
/// remembers this address, if any. Mounts end with the check.
pub fn check_after(school: &School, before: &str, known: &str, options: &[&str]) -> Vec<Value> {
    let script = format!(
        "export PATH=/usr/sbin:/usr/bin; mkdir -p /etc/comedor; mount -t tmpfs none /etc/comedor; \
         mount -t tmpfs none /run; if [ '{known}' ]; then echo '{known}' > /etc/comedor/site; fi; {before}; \
         exec \"$@\""
    );
    check(school, &["sh", "-c", &script, "sh"], options, "")
}

/// Answers one connection after the other with `answer`. Returns the port.
fn answers(answer: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            _ = stream.read(&mut [0; 4096]);
            _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn each_answer_of_the_web_server_has_its_sentence() {
    let school = School::new();
    let elsewhere = answers("HTTP/1.0 200 OK\r\n\r\nlogin".to_owned());
    let redirect = format!("302 Found\r\nLocation: http://127.0.0.1:{elsewhere}/login.php");
    let heading = "; see \"403 or 404 with an HTML page or plain text\" in docs/troubleshooting.md";
    let comedor = "200 OK\r\n\r\n{\"success\":false,\"error\":\"Not logged in: the request has no valid session.\"}";
    for (answer, level, text) in [
        ("401 x", "warning", "the web server asks for a login of its own (HTTP 401"),
        ("403 x", "error", "the web server denies access (HTTP 403"),
        ("404 x", "error", "does not find it (HTTP 404 "),
        ("404 x", "error", heading),
        ("500 x", "error", "cannot run it (HTTP 500"),
        ("502 x", "error", "cannot reach it (HTTP 502"),
        (&redirect, "error", "the request is redirected elsewhere (HTTP 200"),
        ("200 OK\r\n\r\n{\"menus\":1}", "error", "another program answers (HTTP 200"),
        ("200 OK\r\n\r\n{}", "error", "; see \"The old PHP script still answers\" in docs/"),
    ] {
        let port = answers(format!("HTTP/1.0 {answer}\r\n\r\n"));
        let address = format!("http://127.0.0.1:{port}");
        let known = format!("{address}\n/nowhere/api/comedor.php");
        let findings = check_after(&school, "true", &known, &[]);
        let about = format!("{port}/api/comedor.php");
        found(&findings, level, &about, "comedor does not answer, although it is enabled: ");
        found(&findings, level, &about, text);
        found(&findings, "warning", &about, "not compared with PHP: ");
        // Nothing is known of a comedor there: no set-up, or undone.
        let findings = check_after(&school, "true", "", &[&address]);
        let not_enabled = found(&findings, level, &about, "comedor is not enabled: ");
        assert!(not_enabled["text"].as_str().unwrap().ends_with("sudo comedor setup"));
        assert_eq!(count(&findings, "error"), usize::from(level == "error"));
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let known = format!("http://127.0.0.1:{port}\n/nowhere/api/comedor.php");
    found(&check_after(&school, "true", &known, &["--no-page"]), "error", "", "nothing answers (");
    let port = answers(format!("HTTP/1.0 {comedor}"));
    let address = format!("http://127.0.0.1:{port}/index.php");
    let findings = check_after(&school, "true", "", &[&address, "--no-page"]);
    let about = format!("http://127.0.0.1:{port}/api/comedor.php");
    found(&findings, "ok", &about, "comedor answers");
    found(&findings, "hint", &about, "not compared with PHP, because of --no-page");
    found(&findings, "warning", "user", "the user of the requests is not known");
    found(&check(&school, &[], &["x"], ""), "error", "ADDRESS", "is not an address");
}

#[test]
fn after_an_undo_check_says_not_enabled_and_nothing_is_an_error() {
    let none = ["env", "-u", "COMEDOR_DATA_DIR", "-u", "COMEDOR_SESSION_DIR"];
    let findings = check(&School::new(), &none, &[], "");
    // The default folders exist on some machines.
    let problems = ["error", "warning"].map(|level| count(&findings, level));
    assert_eq!(problems, [0, 0], "{findings:#?}");
    found(
        &findings,
        "hint",
        "web server",
        "as far as set-up knows; give the application's address",
    );
}

#[test]
fn a_process_behind_the_socket_looks_itself_for_root_if_only_its_group_can_connect() {
    let (school, socket, folder) = (School::new(), Held::new(), open_folder());
    let program =
        program_in(folder.path(), &format!("COMEDOR_DATA_DIR={}\n", school.data().display()));
    let by_file = school.get("").program(&program).unset("COMEDOR_DATA_DIR").under(AS_NOBODY);
    let process = socket.spawn(by_file.set("COMEDOR_SESSION_DIR", "/nowhere").responder());
    let path = &*socket.path.display().to_string();
    let look = |wrapper| check(&school, wrapper, &["--socket", path], "");
    // Its user, its environment.
    let findings = look(&[]);
    found(&findings, "ok", path, "a FastCGI process answers");
    found(&findings, "ok", "user", "nobody");
    found(&findings, "ok", "settings", "COMEDOR_SESSION_DIR=/nowhere (the environment)");
    let missing = "cannot reach the session folder (COMEDOR_SESSION_DIR): No such file";
    found(&findings, "error", "/nowhere", missing);
    found(&findings, "error", "/Aularios", "nobody cannot write here");
    assert!(!format!("{findings:?}").contains("was replaced"), "{findings:#?}");
    // As after an upgrade.
    fs::remove_file(&program).unwrap();
    found(&look(&[]), "warning", "program", "the program of this process was replaced or removed");

    // Another user gets what every unknown role gets.
    let ask = |wrapper: &[&str]| {
        let code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                    s.send(bytes([1, 1, 0, 1, 0, 8, 0, 0, 0xc0, 0xed, 0, 0, 0, 0, 0, 0])); \
                    s.shutdown(1); sys.stdout.buffer.write(b''.join(iter(lambda: s.recv(4096), b'')))";
        let words = [wrapper, &["/usr/bin/python3", "-c", code, path]].concat();
        output(Command::new(words[0]).args(&words[1..]), "python3")
    };
    chmod(socket.path.parent().unwrap(), 0o755);
    chmod(path, 0o666);
    assert_eq!(ask(AS_NOBODY), [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
    assert!(ask(&[]).len() > 1000);
    found(&look(&[]), "error", path, "every user of this machine can connect");
    chmod(path, 0o660);
    found(&look(&[]), "ok", path, "the web server must be root or in the group root (mode 0660)");
    chown(path, Some(65534), Some(65534)).unwrap();
    found(&look(AS_NOBODY), "ok", path, "a FastCGI process answers");
    process.stop();
    drop(socket);
    found(&look(&[]), "error", path, "no FastCGI process answers (No such file");
}

/// Another program may listen on the socket, or one that was taken over.
#[test]
fn an_answer_from_the_socket_is_data() {
    let school = School::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let finding = |level: &str| {
        json!({"level": level, "about": "x\u{1b}[2J", "text": "two\nlines"}).to_string()
    };
    let document = |version: &str, findings: &str| {
        let document = format!(r#"{{"version":"{version}","findings":[{findings}]}}"#);
        [stream(STDOUT, document.as_bytes()), record(END, &[0; 8])].concat()
    };
    let current = env!("CARGO_PKG_VERSION");
    let many = [vec![finding("hint"); 5000], vec![finding("error")]].concat().join(",");
    let endless = record(STDOUT, &[b'['; 60_000]).repeat(400);
    for (records, level, about, text) in [
        (document(current, &finding("error")), "error", "x\\u{1b}[2J", "two\\nlines"),
        (document("9.9", ""), "error", "/socket", "another version answers (this is version "),
        (document(current, &["{\"\":0}"; 280_000].join(",")), "error", "/socket", "is incomplete"),
        (document(current, &many), "warning", "findings", " more of the level hint"),
        (document(current, &many), "error", "x\\u{1b}[2J", "two\\nlines"),
        (record(END, &[0, 0, 0, 0, 3, 0, 0, 0]), "error", "/socket", "restart it"),
        (b"HTTP/1.1 200 OK".to_vec(), "error", "/socket", "the answer is not FastCGI"),
        (Vec::new(), "error", "/socket", "no FastCGI process answers"),
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
        let findings = check(&school, LIMITED, &["--socket", path.to_str().unwrap()], "");
        found(&findings, level, about, text);
        // Root does not look instead, at files that PHP's user controls.
        assert!(findings.iter().all(|finding| finding["about"] != "user"), "{findings:#?}");
        server.join().unwrap();
    }
}
