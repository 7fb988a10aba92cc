//! A PHP page that saves beside the program: it takes no lock, and truncates the file before it writes.
//!
//! The program is under ptrace(2). At chosen stops the page makes its steps: it reads the file, looks its path up,
//! opens it with truncation, and writes and closes it. The lookup is a step of its own, because a page that looked the path
//! up before an exchange of names opens the old file after it. If a lease blocks the open, the page tries
//! again at each later stop (with `O_NONBLOCK`, which breaks the lease too), so all happens in one thread, and in the
//! same order each time. If the program sleeps, the page makes its next step, and the sleep is skipped.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::support::tracer::{Stop, Tracer};
use crate::support::writes::Write;
use crate::support::*;

/// The numbers of the stops at which the page makes its steps: it reads, looks up, opens, saves.
pub type Moments = [usize; 4];
pub const READ: usize = 0;
pub const LOOK_UP: usize = 1;
pub const OPEN: usize = 2;
const SAVED: usize = 4;
/// The page comes after the answer.
pub const AFTER: Moments = [usize::MAX; 4];

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
pub struct Run<'w> {
    pub write: &'w Write,
    pub school: School,
    /// Whether the file system has leases
    pub has_leases: bool,
    /// What else it lacks: the names of calls, and the errors with which they fail
    pub missing: &'w [(&'static str, i32)],
}

/// Of renames, those with flags: an exchange, and a rename that does not replace
pub const EXCHANGE: (&str, i32) = ("renameat2", libc::EINVAL);
pub const LINK: (&str, i32) = ("linkat", libc::EPERM);
pub const ATTRIBUTES: (&str, i32) = ("flistxattr", libc::EOPNOTSUPP);

/// What was seen during a run.
#[derive(Default)]
pub struct Stops {
    pub number: usize,
    /// The one after which the new file is in place
    pub in_place: usize,
    /// The last after a flush
    pub flushed: usize,
    /// Whether the page has waited for the lease
    pub has_waited: bool,
    /// Whether the page had saved when the new file was put in place
    pub is_after_page: bool,
    /// Whether a flush began while the page waited
    pub is_page_delayed: bool,
}

impl Stops {
    /// A page that looked the path up before the exchange opens the old file before the flush of the folder has ended,
    /// some milliseconds later. docs/files.md has what remains: PHP is suspended inside `fopen`.
    pub fn may_be(&self, moments: &Moments) -> bool {
        moments[LOOK_UP] >= self.in_place || moments[OPEN] <= self.flushed
    }
}

impl Run<'_> {
    pub fn new(write: &Write) -> Run<'_> {
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
    pub fn check(&self, moments: Moments) -> Stops {
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
