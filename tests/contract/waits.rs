//! Requests that wait for PHP's pages: for a lock, or for the content of a file.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::fastcgi::{Client, Held};
use crate::support::site::wait_until;
use crate::support::*;

/// Calls `test`. Meanwhile this number of threads repeat `background`, and end even if the test fails.
pub fn beside(threads: usize, background: impl Fn() + Sync, test: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    background();
                }
            });
        }
        let tested = catch_unwind(AssertUnwindSafe(test));
        done.store(true, Ordering::SeqCst);
        assert!(tested.is_ok());
    });
}

/// A program that polls would get the lock after all pages in the kernel's queue.
#[test]
fn a_request_waits_for_its_session_or_its_aulario_in_the_queue_of_the_pages() {
    let school = School::with_menu("first");
    for (path, request) in [
        (
            school.sessions().join("sess_teacher"),
            school.get("get_menu_types"),
        ),
        (
            school.path(LOCK),
            school.post("save_menu").json(&save("second")),
        ),
    ] {
        let page = File::open(&path).unwrap();
        page.lock().unwrap();
        let request = request.start();
        wait_until("the request is in the queue", || {
            waiting(&path) == [request.id()]
        });
        page.unlock().unwrap();
        Answer::of(request).ok();
    }
    assert_eq!(
        school.menu("basal")["menu"]["plates"]["primero"]["name"],
        "second"
    );
}

#[test]
fn readers_of_an_empty_file_do_not_delay_other_users() {
    let (school, socket) = (School::new(), Held::new());
    school.write(DAY, "");
    let process = socket.serve(&school);
    let reads = school.get("get_menu").query("date", DATE).records();
    let reader = || drop(Client::connect(&socket.path).send(&reads).reply());
    beside(64, reader, || {
        for _ in 0..200 {
            school
                .get("get_menu_types")
                .session("admin")
                .ask(&socket.path)
                .ok();
        }
    });
    process.stop();
}
