//! A PHP page that saves beside the program: it takes no lock, and truncates the file before it writes.
//!
//! The program is under ptrace(2). At chosen stops the page makes its steps: it reads the file, looks its path up,
//! opens it with truncation, and writes and closes it. The lookup is a step of its own, because a page that looked the path
//! up before an exchange of names opens the old file after it. If a lease blocks the open, the page tries
//! again at each later stop (with `O_NONBLOCK`, which breaks the lease too), so all happens in one thread, and in the
//! same order each time. If the program sleeps, the page makes its next step, and the sleep is skipped.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;

use crate::support::tracer::{Stop, Tracer};
use crate::support::writes::{Write, writes};
use crate::support::*;

/// The numbers of the stops at which the page makes its steps: it reads, looks up, opens, saves.
type Moments = [usize; 4];
const READ: usize = 0;
const LOOK_UP: usize = 1;
const OPEN: usize = 2;
const SAVED: usize = 4;
/// The page comes after the answer.
const AFTER: Moments = [usize::MAX; 4];

struct Page {
    path: PathBuf,
    /// The number of steps that it has made
    made: usize,
    read: Option<Value>,
    /// That of the file that it has read: it saves as many bytes if it can, so that the length does not show it
    length: usize,
    looked_up: Option<File>,
    opened: Option<File>,
    /// Whether a lease has blocked its open, which it tries again
    is_waiting: bool,
}

impl Page {
    fn new(path: PathBuf) -> Page {
        Page {
            path,
            made: 0,
            read: None,
            length: 0,
            looked_up: None,
            opened: None,
            is_waiting: false,
        }
    }

    /// Makes the next step. Returns `false` if a lease blocks it.
    fn step(&mut self) -> bool {
        match self.made {
            READ => {
                self.length = fs::read(&self.path).map_or(0, |bytes| bytes.len());
                self.read = whole(&self.path);
            }
            LOOK_UP => {
                self.looked_up = OpenOptions::new()
                    .read(true)
                    .custom_flags(libc::O_PATH)
                    .open(&self.path)
                    .ok();
            }
            OPEN => match self.open() {
                Ok(file) => (self.opened, self.is_waiting) = (Some(file), false),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_waiting = true;
                    return false;
                }
                Err(error) => panic!("{}: {error}", self.path.display()),
            },
            _ => {
                let (content, length) = (self.content().to_string(), self.length);
                let padded = format!("{content:length$}");
                self.opened
                    .take()
                    .unwrap()
                    .write_all(padded.as_bytes())
                    .unwrap();
            }
        }
        self.made += 1;
        true
    }

    fn open(&self) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .truncate(true)
            .custom_flags(libc::O_NONBLOCK);
        match &self.looked_up {
            Some(file) => options.open(format!("/proc/self/fd/{}", file.as_raw_fd())),
            None => {
                fs::create_dir_all(self.path.parent().unwrap())?;
                options.create(true).open(&self.path)
            }
        }
    }

    /// What it saves: what it has read, and a plate or a menu type of its own.
    fn content(&self) -> Value {
        let mut content = self
            .read
            .clone()
            .unwrap_or(match self.path.ends_with(TYPES) {
                true => json!([]),
                false => json!({"date": DATE, "menus": {"basal": {"plates": {}}}}),
            });
        match &mut content {
            Value::Array(types) => types.push(json!({"id": "page", "label": "P"})),
            day => day["menus"]["basal"]["plates"]["cena"] = json!({"name": "page"}),
        }
        content
    }
}

/// The content of a file, which must be whole; `None` without a file.
#[track_caller]
pub fn whole(path: &Path) -> Option<Value> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        bytes => Some(serde_json::from_slice(&bytes.unwrap()).expect("a whole file")),
    }
}

/// Whether one of the names in the file is this.
pub fn has(value: &Option<Value>, name: &str) -> bool {
    value
        .as_ref()
        .is_some_and(|value| value.to_string().contains(&format!("\"{name}\"")))
}

/// A write and a page, both in this school.
struct Run<'w> {
    write: &'w Write,
    school: School,
    /// Whether the file system has leases
    has_leases: bool,
    /// What else it lacks: the names of calls, and the errors with which they fail
    missing: &'w [(&'static str, i32)],
}

/// Of renames, those with flags: an exchange, and a rename that does not replace
pub const EXCHANGE: (&str, i32) = ("renameat2", libc::EINVAL);
pub const LINK: (&str, i32) = ("linkat", libc::EPERM);
pub const ATTRIBUTES: (&str, i32) = ("flistxattr", libc::EOPNOTSUPP);

/// What was seen during a run.
#[derive(Default)]
struct Stops {
    number: usize,
    /// The one after which the new file is in place
    in_place: usize,
    /// The last after a flush
    flushed: usize,
    /// Whether the page has waited for the lease
    has_waited: bool,
    /// Whether the page had saved when the new file was put in place
    is_after_page: bool,
    /// Whether a flush began while the page waited
    is_page_delayed: bool,
}

impl Stops {
    /// A page that looked the path up before the exchange opens the old file before the flush of the folder has ended,
    /// some milliseconds later. docs/files.md has what remains: PHP is suspended inside `fopen`.
    fn may_be(&self, moments: &Moments) -> bool {
        moments[LOOK_UP] >= self.in_place || moments[OPEN] <= self.flushed
    }
}

impl Run<'_> {
    fn new(write: &Write) -> Run<'_> {
        Run {
            write,
            school: School::in_memory(),
            has_leases: true,
            missing: &[],
        }
    }

    /// The error of a call that the file system lacks.
    fn error(&self, stop: &Stop) -> Option<i32> {
        if is_lease(stop) {
            return (!self.has_leases).then_some(libc::EINVAL);
        }
        let is_plain_rename = stop.call.name() == "renameat2" && stop.call.arguments[4] == 0;
        let mut missing = self.missing.iter().filter(|_| !is_plain_rename);
        let found = missing.find(|(name, _)| *name == stop.call.name());
        found.map(|&(_, error)| error)
    }

    /// Runs the program, and the page at these moments, and checks that neither loses anything. The stops are those after
    /// calls on files; the first is that after the program has opened one of the data.
    fn check(&self, moments: Moments) -> Stops {
        self.write.reset(&self.school);
        let path = self.school.path(self.write.file);
        let before = whole(&path);
        let mut meeting = Meeting::new(path.clone(), moments);
        // Without a lease a save of the page is hidden until the names are exchanged back.
        meeting.may_hide = !self.has_leases;
        let mut program = self.write.request(&self.school).trace_calls();
        let mut has_begun = false;
        while let Some(stop) = program.next() {
            if stop.result.is_none() {
                if let Some(error) = self.error(&stop) {
                    program.skip(-i64::from(error));
                }
                meeting.before_call(&stop, &mut program);
                continue;
            }
            has_begun |= opened_in(&stop, &self.school.aularios());
            if has_begun && stop.call.name() != "another call" {
                meeting.after_call(&stop);
            }
        }
        let answer = Answer::of_output(program.output());
        let Meeting {
            mut page, stops, ..
        } = meeting;
        while page.made < SAVED {
            assert!(page.step(), "a lease of a process that has ended");
        }
        let after = whole(&path);
        assert!(has(&after, "page"), "the save of the page is lost");
        assert!(
            !has(&before, "other") || has(&after, "other"),
            "an older menu is lost"
        );
        if answer.status == 503 {
            answer.fails("BUSY");
            assert!(!has(&after, "new"), "BUSY, but stored");
        } else {
            answer.ok();
            assert!(stops.in_place > 0, "a success, but never in place");
            let is_kept = has(&after, "new") || !has(&page.read, "new");
            assert!(is_kept, "the save of the program is lost");
        }
        stops
    }
}

/// The page beside the program.
struct Meeting {
    moments: Moments,
    page: Page,
    stops: Stops,
    /// The content of the file at the last stop
    seen: Option<Vec<u8>>,
    /// Whether a save of the page may be hidden for a moment
    may_hide: bool,
}

impl Meeting {
    fn new(path: PathBuf, moments: Moments) -> Meeting {
        let seen = fs::read(&path).ok();
        Meeting {
            moments,
            page: Page::new(path),
            stops: Stops::default(),
            seen,
            may_hide: false,
        }
    }

    fn before_call(&mut self, stop: &Stop, program: &mut Tracer) {
        self.stops.is_page_delayed |= stop.call.is_flush() && self.page.is_waiting;
        if stop.call.name().ends_with("nanosleep") {
            _ = self.page.made == SAVED || self.page.step();
            program.skip(0);
        }
    }

    fn after_call(&mut self, stop: &Stop) {
        if stop.call.is_flush() {
            self.stops.flushed = self.stops.number;
        }
        // Between its open and its save, the file is not whole.
        if self.page.opened.is_none() {
            self.look();
        }
        let page = &mut self.page;
        while page.made < SAVED && self.moments[page.made] <= self.stops.number && page.step() {}
        self.stops.has_waited |= page.is_waiting;
        self.stops.number += 1;
    }

    /// Looks at the file, which must be whole, and have the save of the page once it is made.
    fn look(&mut self) {
        let bytes = fs::read(&self.page.path).ok();
        if bytes == self.seen {
            return;
        }
        assert!(bytes.is_some(), "the file is missing");
        self.seen = bytes;
        let now = whole(&self.page.path);
        let is_visible = self.page.made < SAVED || has(&now, "page") || self.may_hide;
        assert!(is_visible, "the save of the page is hidden");
        if self.stops.in_place == 0 && has(&now, "new") {
            self.stops.in_place = self.stops.number;
            self.stops.is_after_page = has(&now, "page");
        }
    }
}

fn first_save_of_a_day() -> Write {
    let mut writes = writes().into_iter();
    writes
        .find(|write| write.kind == "first save of a day")
        .unwrap()
}

pub fn is_lease(stop: &Stop) -> bool {
    stop.call.name() == "fcntl" && stop.call.arguments[1] == libc::F_SETLEASE as u64
}

/// Whether the call has opened a file or folder below `folder`.
pub fn opened_in(stop: &Stop, folder: &Path) -> bool {
    let is_open = stop.call.name().starts_with("open");
    is_open
        && fs::read_link(stop.descriptor(stop.result.unwrap()))
            .is_ok_and(|path| path.starts_with(folder))
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
