//! Concurrent requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::*;
use crate::waits::beside;

const WRITERS: usize = 16;
const WRITES: usize = 10;

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
        school.get("get_menu").query("date", DATE).run().ok();
    };
    let write = |id: &str| {
        school.post("add_menu_type").json(&json!({"id": id, "label": "T"})).run().ok();
        let plates = json!({id: {"name": "x"}});
        school.save(json!({"date": DATE, "menu_type": id, "plates": plates}));
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
