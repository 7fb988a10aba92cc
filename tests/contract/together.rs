//! Concurrent requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::*;

const WRITERS: usize = 16;
const WRITES: usize = 10;

/// Each writer adds its own types and plates to the same files. Meanwhile a reader reads the files as
/// the PHP application does, without a lock.
#[test]
fn concurrent_writers_lose_nothing_and_readers_see_complete_files() {
    let school = School::new();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut readings = 0;
            while !done.load(Ordering::Relaxed) {
                for path in [TYPES, DAY] {
                    if let Ok(bytes) = std::fs::read(school.path(path)) {
                        let whole: Result<Value, _> = serde_json::from_slice(&bytes);
                        assert!(whole.is_ok(), "a torn {path}: {}", bytes.escape_ascii());
                        readings += 1;
                    }
                }
                school.get("get_menu").query("date", DATE).run().ok();
            }
            readings
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let school = &school;
                scope.spawn(move || {
                    for write in 0..WRITES {
                        let id = format!("t{writer}-{write}");
                        let body = json!({"id": id, "label": "T"});
                        school.post("add_menu_type").json(&body).run().ok();
                        let plates = json!({&id: {"name": "x"}});
                        school.save(json!({"date": DATE, "menu_type": id, "plates": plates}));
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
        assert!(reader.join().unwrap() > 0);
    });
    let day: Value = serde_json::from_str(&school.read(DAY)).unwrap();
    let types = school.get("get_menu_types").run().ok();
    let types = types["menu_types"].as_array().unwrap();
    assert_eq!(types.len(), 3 + WRITERS * WRITES);
    for id in types[3..].iter().map(|kind| kind["id"].as_str().unwrap()) {
        assert_eq!(day["menus"][id]["plates"][id]["name"], "x", "{id}");
    }
    assert!(!school.files().iter().any(|path| path.ends_with(".tmp")));
}
