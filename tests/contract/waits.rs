//! Requests that wait for PHP's pages: for a lock, or for the content of a file.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::fastcgi::{Client, Held};
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

/// The time that a page holds the lock.
const PAGE: Duration = Duration::from_millis(300);

/// Makes five requests while two pages hold the lock on `path` in turn. Each releases it only when
/// the other waits for it, and asks for it again when the other has it. On average a request may have
/// to wait for four pages: a program that polls waits for more.
fn beside_pages(path: &Path, request: impl Fn()) {
    const DONE: usize = 1 << 32;
    // The page with an even number is the first thread's.
    let pages = AtomicUsize::new(0);
    let is_next = || waiting(path).contains(&process::id());
    let is_done = || pages.load(Ordering::SeqCst) >= DONE;
    thread::scope(|scope| {
        for page in 0..2 {
            let (pages, is_done, is_next) = (&pages, &is_done, &is_next);
            scope.spawn(move || {
                let file = File::open(path).unwrap();
                while !is_done() {
                    if pages.load(Ordering::SeqCst) % 2 != page {
                        thread::yield_now();
                        continue;
                    }
                    file.lock().unwrap();
                    pages.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(PAGE);
                    while !is_next() && !is_done() {
                        thread::yield_now();
                    }
                    file.unlock().unwrap();
                }
            });
        }
        while !is_next() {
            thread::yield_now();
        }
        let before = pages.load(Ordering::SeqCst);
        // The pages end even if a request fails.
        let requests = catch_unwind(AssertUnwindSafe(|| (0..5).for_each(|_| request())));
        let pages = pages.fetch_add(DONE, Ordering::SeqCst) - before;
        assert!(requests.is_ok());
        assert!(pages <= 20, "{pages} pages came first");
    });
}

#[test]
fn a_read_waits_for_its_session_in_the_queue_of_the_pages() {
    let school = School::new();
    beside_pages(&school.sessions().join("sess_teacher"), || {
        school.get("get_menu_types").run().ok();
    });
}

#[test]
fn a_write_waits_for_its_aulario_in_the_queue_of_the_others() {
    let school = School::with_menu("first");
    beside_pages(&school.path(LOCK), || drop(school.save(save("second"))));
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
            school.get("get_menu_types").session("admin").ask(&socket.path).ok();
        }
    });
    process.stop();
}
