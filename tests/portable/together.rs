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
                for path in ["aula1/Comedor-MenuTypes.json", "aula1/Comedor/2026-11/20/_datos.json"]
                {
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
                        let body = json!({"id": format!("t{writer}-{write}"), "label": "T"});
                        school.post("add_menu_type").json(&body).run().ok();
                        let plate = format!("p{}", writer * WRITES + write);
                        let menu_type = format!("t{writer}-{write}");
                        let plates = json!({plate: {"name": "x"}});
                        school
                            .save(json!({"date": DATE, "menu_type": menu_type, "plates": plates}));
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
        assert!(reader.join().unwrap() > 0);
    });
    let day: Value =
        serde_json::from_str(&school.read("aula1/Comedor/2026-11/20/_datos.json")).unwrap();
    let types = school.get("get_menu_types").run().ok();
    let types = types["menu_types"].as_array().unwrap();
    assert_eq!(types.len(), 3 + WRITERS * WRITES);
    for (writer, write) in (0..WRITERS).flat_map(|a| (0..WRITES).map(move |b| (a, b))) {
        let id = format!("t{writer}-{write}");
        assert!(types.iter().any(|kind| kind["id"] == *id), "{id}");
        let plate = format!("p{}", writer * WRITES + write);
        assert_eq!(day["menus"][&id]["plates"][plate]["name"], "x");
    }
    let leftovers = school.files().into_iter().filter(|path| path.ends_with(".tmp"));
    assert_eq!(leftovers.count(), 0);
}
