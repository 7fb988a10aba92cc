//! A PHP page that saves beside the program loses nothing, and the program neither, whenever the page makes its steps.

mod meeting;

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::support::writes::{Write, writes};

use meeting::{AFTER, Moments, Run};
pub use meeting::{ATTRIBUTES, EXCHANGE, LINK, has, is_lease, opened_in, whole};

fn first_save_of_a_day() -> Write {
    let mut writes = writes().into_iter();
    writes
        .find(|write| write.kind == "first save of a day")
        .unwrap()
}

/// Checks a write with a page at each of these moments. Fails with the moments and the kind of write.
fn check_each(write: &Write, all: impl IntoIterator<Item = Moments>) -> usize {
    let (run, mut count) = (Run::new(write), 0);
    for moments in all {
        let checked = catch_unwind(AssertUnwindSafe(|| run.check(moments)));
        assert!(
            checked.is_ok(),
            "{}: the page reads, looks up, opens, saves at {moments:?}",
            write.kind
        );
        count += 1;
    }
    count
}

pub fn day_replaced() -> Write {
    writes()
        .into_iter()
        .find(|write| write.kind == "a day replaced")
        .unwrap()
}

#[test]
fn page_that_saves_at_any_call_of_a_write_loses_nothing_and_the_program_neither() {
    let mut count = 0;
    for write in writes()
        .iter()
        .filter(|write| write.action != "delete_menu_type")
    {
        let stops = Run::new(write).check(AFTER);
        assert!(stops.number > 20 && stops.in_place > 10, "{}", stops.number);
        count += check_each(write, (0..stops.number).map(|moment| [moment; 4]));
    }
    println!("pages that save at one call of a write: {count}, losses: 0");
}

/// The page reads and looks up, then opens, then saves, each at any call: around the exchange, or with
/// `COMEDOR_INTERLEAVINGS=all`, as in tests/run, from the first call on a data file to the last.
#[test]
fn page_whose_steps_are_at_any_calls_of_a_replacement_loses_nothing_and_the_program_neither() {
    let write = day_replaced();
    let stops = Run::new(&write).check(AFTER);
    let are_all = std::env::var("COMEDOR_INTERLEAVINGS").is_ok();
    let window = if are_all {
        0..stops.number
    } else {
        stops.in_place - 4..stops.flushed + 3
    };
    let mut all = interleavings(window.clone(), |i, j, k| [i, i, j, k]);
    if are_all {
        // It has read long before, as a page with a form does.
        all.extend(interleavings(window, |i, j, _| [i, j, j, j]));
    }
    all.retain(|moments| stops.may_be(moments));
    let all: Vec<Moments> = all.into_iter().collect();
    let threads = thread::available_parallelism().unwrap().get();
    thread::scope(|scope| {
        for part in all.chunks(all.len().div_ceil(threads)) {
            let write = &write;
            scope.spawn(move || {
                // A school has a time limit.
                for part in part.chunks(1000) {
                    check_each(write, part.to_vec());
                }
            });
        }
    });
    println!(
        "interleavings of a page and a replacement: {}, losses: 0",
        all.len()
    );
}

/// A page that adds to the day saves as many bytes as before; to the types, more.
#[test]
fn page_that_saves_at_one_call_of_a_replacement_loses_nothing_on_a_file_system_without_leases() {
    let is_replacement =
        |write: &&Write| ["a day replaced", "types replaced"].contains(&write.kind);
    for write in writes().iter().filter(is_replacement) {
        let run = Run {
            has_leases: false,
            ..Run::new(write)
        };
        let stops = run.check(AFTER).number;
        for moment in 0..stops {
            run.check([moment; 4]);
        }
    }
}

/// NFS does not support the exchange of names. Some FUSE file systems do not support hard links.
#[test]
fn save_succeeds_on_a_file_system_without_attributes_exchanges_or_links() {
    for write in writes()
        .iter()
        .filter(|write| write.action != "delete_menu_type")
    {
        for missing in [&[ATTRIBUTES][..], &[EXCHANGE], &[EXCHANGE, LINK]] {
            let run = Run {
                missing,
                ..Run::new(write)
            };
            run.check(AFTER);
            let files = run.school.files();
            assert!(
                !files.iter().any(|file| file.ends_with(".tmp")),
                "{files:?}"
            );
        }
    }
}

/// A link never replaces.
#[test]
fn page_that_saves_at_one_call_of_a_first_save_loses_nothing_on_a_file_system_without_exchanges() {
    let write = first_save_of_a_day();
    let run = Run {
        missing: &[EXCHANGE],
        ..Run::new(&write)
    };
    let stops = run.check(AFTER).number;
    for moment in 0..stops {
        run.check([moment; 4]);
    }
}

/// In the meantime other pages save to the new file, and each of their saves would be lost.
#[test]
fn names_are_exchanged_back_before_the_flush_if_a_page_waits() {
    let write = day_replaced();
    let run = Run::new(&write);
    let in_place = run.check(AFTER).in_place;
    let before = in_place - 1;
    assert!(
        !run.check([before, before, in_place, in_place])
            .is_page_delayed
    );
}

/// So a kill of the program in between would not hide the save of the page.
#[test]
fn names_are_not_exchanged_if_a_page_waits_since_the_lease_was_taken() {
    let write = day_replaced();
    let run = Run::new(&write);
    let in_place = run.check(AFTER).in_place;
    let first = (0..in_place)
        .map(|moment| run.check([moment; 4]))
        .find(|stops| stops.has_waited);
    assert!(first.expect("a lease").is_after_page);
}

/// Those of three moments in this order.
fn interleavings(
    stops: Range<usize>,
    moments: impl Fn(usize, usize, usize) -> Moments,
) -> BTreeSet<Moments> {
    let mut all = BTreeSet::new();
    for first in stops.clone() {
        for second in first..stops.end {
            for third in second..stops.end {
                all.insert(moments(first, second, third));
            }
        }
    }
    all
}
