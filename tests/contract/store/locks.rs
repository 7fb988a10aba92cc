//! Saves while another process has the lock of an aulario.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::site::wait_until;
use crate::support::*;

#[test]
fn a_lock_makes_only_its_aulario_busy() {
    let school = School::with_menu("x");
    let lock = fs::File::open(school.path(LOCK)).unwrap();
    lock.lock().unwrap();
    let blocked = school.post("save_menu").json(&save("y")).start();
    school
        .post("save_menu")
        .aulario("aula2")
        .json(&save("y"))
        .run()
        .ok();
    school.get("get_menu").run().ok();
    Answer::of(blocked).fails("BUSY");
}

#[test]
fn a_write_waits_ten_seconds_for_all_its_locks_together() {
    let school = School::with_menu("x");
    let old = fs::File::open(school.path(LOCK)).unwrap();
    old.lock().unwrap();
    let new = fs::File::create(school.path("new")).unwrap();
    new.lock().unwrap();
    let of_aula2 = school.post("save_menu").aulario("aula2").json(&save("y"));
    of_aula2.run().ok();
    let path_of_aula2 = school.path("aula2/.comedor.lock");
    let other = fs::File::open(&path_of_aula2).unwrap();
    other.lock().unwrap();
    let blocked = school.post("save_menu").json(&save("y")).start();
    wait_until("a write waits", || {
        waiting(&school.path(LOCK)) == [blocked.id()]
    });
    let started = Instant::now();
    wait_until("half of the time has passed", || {
        started.elapsed() > Duration::from_secs(5)
    });
    let mut later = of_aula2.start();
    wait_until("a later write waits", || {
        waiting(&path_of_aula2) == [later.id()]
    });
    fs::rename(school.path("new"), school.path(LOCK)).unwrap();
    old.unlock().unwrap();
    // With ten seconds for its second lock it would end after the later one, which waits for one lock.
    Answer::of(blocked).fails("BUSY");
    assert_eq!(later.try_wait().unwrap(), None);
    Answer::of(later).fails("BUSY");
}
