//! What a request costs, as far as that can be counted: for `get_menu` with saved data. Another
//! toolchain or processor may take five per cent more.

use std::fs;
use std::process::Command;

use crate::support::*;

const INSTRUCTIONS: u64 = 230_000;
const SYSTEM_CALLS: u64 = 75;
const RESIDENT_KIB: u64 = 1638;

fn with_slack(budget: u64) -> u64 {
    budget + budget / 20
}

/// The variables that a web server sets for a browser's request, with a saved menu behind it.
fn request(school: &School) -> Cgi {
    school.post("add_menu_type").json(&json!({"id": "x", "label": "X"})).run().ok();
    let plates = json!({
        "primero": {"name": "Lentejas con verduras"}, "segundo": {"name": "Merluza al horno"},
        "postre": {"name": "Fruta de temporada"},
    });
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": plates}));
    school
        .get("get_menu")
        .query("date", DATE)
        .query("menu", "basal")
        .set("HTTP_ACCEPT", "application/json, text/plain, */*")
        .set("HTTP_ACCEPT_ENCODING", "gzip, deflate, br, zstd")
        .set("HTTP_ACCEPT_LANGUAGE", "es-ES,es;q=0.8,en-US;q=0.5,en;q=0.3")
        .set("HTTP_CONNECTION", "keep-alive")
        .set("HTTP_SEC_FETCH_SITE", "same-origin")
        .set(
            "HTTP_USER_AGENT",
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        )
        .set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .set("REMOTE_ADDR", "127.0.0.1")
        .set("REMOTE_PORT", "40000")
        .set("REQUEST_SCHEME", "http")
        .set("REQUEST_URI", "/api/comedor.php?action=get_menu")
        .set("SCRIPT_FILENAME", "/usr/lib/cgi-bin/comedor")
        .set("SERVER_ADDR", "127.0.0.1")
        .set("SERVER_ADMIN", "admin@school.example")
        .set("SERVER_PORT", "80")
        .set("SERVER_SIGNATURE", "")
        .set("SERVER_SOFTWARE", "lighttpd/1.4.69")
}

fn run(mut command: Command, package: &str) {
    command.stdin(std::process::Stdio::null());
    let output = output(&mut command, package);
    assert!(output.starts_with(b"Status: 200 OK\r\n"));
}

#[test]
fn a_read_stays_within_its_instructions() {
    let school = School::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    let out = format!("--callgrind-out-file={}", file.path().display());
    run(request(&school).command(&["valgrind", "-q", "--tool=callgrind", &out]), "valgrind");
    let text = fs::read_to_string(file.path()).unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("a total");
    let total: u64 = total.trim().parse().unwrap();
    println!("{total} instructions of {INSTRUCTIONS}");
    assert!(total <= with_slack(INSTRUCTIONS), "{total} instructions");
}

#[test]
fn a_read_stays_within_its_system_calls() {
    let school = School::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    run(request(&school).command(&["strace", "-o", path]), "strace");
    let text = fs::read_to_string(path).unwrap();
    let calls = text.lines().filter(|line| line.contains('(')).count() as u64;
    println!("{calls} system calls of {SYSTEM_CALLS}");
    assert!(calls <= with_slack(SYSTEM_CALLS), "{text}");
}

#[test]
fn a_read_stays_within_its_memory() {
    let school = School::new();
    let mut peak = 0;
    // Stopped when it has all but ended, it is asked for the most it had.
    let answer = request(&school).stopped("write:when=1", |pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak = line.trim().trim_end_matches(" kB").parse().unwrap();
    });
    answer.ok();
    println!("{peak} KiB of {RESIDENT_KIB}");
    assert!(peak <= with_slack(RESIDENT_KIB), "{peak} KiB");
}
