//! The cost of a request in instructions, system calls, page faults and memory.

mod budget;
mod growth;

use std::fs;
use std::path::Path;

use crate::support::*;

/// Adds the variables that a web server sets for a browser's request.
fn from_browser(request: Cgi) -> Cgi {
    request
        .set("HTTP_ACCEPT", "application/json, text/plain, */*")
        .set("HTTP_ACCEPT_ENCODING", "gzip, deflate, br, zstd")
        .set(
            "HTTP_ACCEPT_LANGUAGE", "es-ES,es;q=0.8,en-US;q=0.5,en;q=0.3",
        )
        .set("HTTP_CONNECTION", "keep-alive")
        .set("HTTP_SEC_FETCH_SITE", "same-origin")
        .set(
            "HTTP_USER_AGENT",
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        )
        .set(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
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

fn get_menu(school: &School) -> Cgi {
    from_browser(
        school
            .get("get_menu")
            .query("date", DATE)
            .query("menu", "basal"),
    )
}

fn save_menu(school: &School) -> Cgi {
    let plates = json!({
        "primero": {"name": "Lentejas con verduras"}, "segundo": {"name": "Merluza al horno"},
        "postre": {"name": "Fruta de temporada"},
    });
    let body = json!({"date": DATE, "menu_type": "basal", "plates": plates});
    from_browser(school.post("save_menu").json(&body))
}

/// A school with four menu types and a saved menu.
fn school_with_a_menu() -> School {
    let school = School::new();
    school
        .post("add_menu_type")
        .json(&json!({"id": "x", "label": "X"}))
        .run()
        .ok();
    save_menu(&school).run().ok();
    school
}

fn instructions(request: &Cgi) -> u64 {
    let file = tempfile::NamedTempFile::new().unwrap();
    let out = format!("--callgrind-out-file={}", file.path().display());
    request
        .clone()
        .under(&["valgrind", "-q", "--tool=callgrind", &out])
        .run()
        .ok();
    total(file.path())
}

/// The instructions in a file of callgrind.
fn total(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap();
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .expect("a total");
    total.trim().parse().unwrap()
}

/// Instructions and system calls.
fn cost(request: &Cgi) -> (u64, u64) {
    let (answer, trace) = request.trace(&[]);
    answer.ok();
    (instructions(request), calls(&trace).len() as u64)
}
