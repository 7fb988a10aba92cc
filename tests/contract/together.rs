//! Concurrent requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::fastcgi::Held;
use crate::support::*;
use crate::waits::beside;

const WRITERS: usize = 16;
const WRITES: usize = 10;

/// Repeats a request that is BUSY, as it can be on a slow machine. Nothing has been changed then.
#[track_caller]
fn run_until_done(request: Cgi) {
    loop {
        let answer = request.run();
        if answer.status != 503 {
            answer.ok();
            return;
        }
        answer.fails("BUSY");
    }
}

/// Each writer adds its own types and plates to the same files. Meanwhile a reader reads the files as
/// the PHP application does, without a lock.
#[test]
fn concurrent_writers_lose_nothing_and_readers_see_complete_files() {
    let (school, readings) = (School::new(), AtomicUsize::new(0));
    let reader = || {
        for path in [TYPES, DAY] {
            if let Ok(bytes) = std::fs::read(school.path(path)) {
                let whole: Result<Value, _> = serde_json::from_slice(&bytes);
                assert!(whole.is_ok(), "a torn {path}: {}", bytes.escape_ascii());
                readings.fetch_add(1, Ordering::Relaxed);
            }
        }
        run_until_done(school.get("get_menu").query("date", DATE));
    };
    let write = |id: &str| {
        let add = school.post("add_menu_type");
        run_until_done(add.json(&json!({"id": id, "label": "T"})));
        let plates = json!({id: {"name": "x"}});
        let body = json!({"date": DATE, "menu_type": id, "plates": plates});
        run_until_done(school.post("save_menu").json(&body));
    };
    beside(1, reader, || {
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let write = &write;
                scope.spawn(move || (0..WRITES).for_each(|n| write(&format!("t{writer}-{n}"))));
            }
        });
    });
    assert!(readings.into_inner() > 0);
    let day: Value = serde_json::from_str(&school.read(DAY)).unwrap();
    let types = school.get("get_menu_types").run().ok();
    let types = types["menu_types"].as_array().unwrap();
    assert_eq!(types.len(), 3 + WRITERS * WRITES);
    for id in types[3..].iter().map(|kind| kind["id"].as_str().unwrap()) {
        assert_eq!(day["menus"][id]["plates"][id]["name"], "x", "{id}");
    }
    assert!(!school.files().iter().any(|path| path.ends_with(".tmp")));
}

/// A page that saves without a pause, as PHP does: it truncates a file and then writes it. A read may be BUSY.
/// `COMEDOR_READS=10000` makes it a long run.
#[test]
fn a_read_beside_a_page_that_saves_never_shows_an_empty_menu() {
    let reads = std::env::var("COMEDOR_READS")
        .ok()
        .and_then(|reads| reads.parse().ok());
    let reads: usize = reads.unwrap_or(200);
    let school = School::with_menu("whole");
    school
        .post("add_menu_type")
        .json(&json!({"id": "new", "label": "New"}))
        .run()
        .ok();
    let files = [TYPES, DAY].map(|path| (school.path(path), school.read(path)));
    let page = || {
        files
            .iter()
            .for_each(|(path, content)| std::fs::write(path, content).unwrap())
    };
    let socket = Held::new();
    let process = by_fastcgi().then(|| socket.serve(&school));
    let read = school.get("get_menu").query("date", DATE);
    let mut busy = 0;
    beside(1, page, || {
        for _ in 0..reads {
            let answer = if by_fastcgi() {
                read.ask(&socket.path)
            } else {
                read.run()
            };
            if answer.status == 503 {
                answer.fails("BUSY");
                busy += 1;
                continue;
            }
            let body = answer.ok();
            assert_eq!(body["menu"]["plates"]["primero"]["name"], "whole");
            assert_eq!(body["menu_types"][3]["id"], "new");
        }
    });
    process.map(|process| process.stop());
    println!("reads: {reads}, with an empty menu: 0, BUSY: {busy}");
    assert!(busy * 10 <= reads, "{busy} of {reads} reads were BUSY");
}
