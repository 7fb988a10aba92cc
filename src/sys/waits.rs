//! The waits of a request for what is outside its process. There is one rule, so that no request is held up because
//! others wait, and none fails because of a moment:
//!
//! **What a request waits for, in all longer than [`PROMPT`], counts.** At most half of the workers wait for the same
//! thing, and at most three quarters wait or have a kept connection. Further requests do not wait: they are BUSY.
//!
//! A request that has to open a connection first takes a [`Place`]: from then on it counts among the half that waits for
//! the same thing.
//!
//! A process that has no other requests beside it, as by CGI, always may wait.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use super::scoreboard::Awaited;
use super::scoreboard::{Entry, State};

/// The time for which the waits of a request do not count, all together: a page that is about to end, a server that can
/// answer and a web server that is sending need less.
pub const PROMPT: Duration = Duration::from_millis(50);

/// The pause before another look for a place. A server that answers needs less.
const PAUSE: Duration = Duration::from_millis(1);

/// The outcome of a wait.
#[derive(Debug, PartialEq)]
pub enum Wait<T> {
    Done(T),
    TimedOut,
    /// Too many wait.
    Refused,
}

impl<T> Wait<T> {
    /// With an error of the kind `TimedOut` or `ResourceBusy`.
    pub fn into_result(self) -> io::Result<T> {
        match self {
            Wait::Done(done) => Ok(done),
            Wait::TimedOut => Err(ErrorKind::TimedOut.into()),
            Wait::Refused => Err(ErrorKind::ResourceBusy.into()),
        }
    }
}

/// Whether a request may wait.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// The worker of the request; `None` if it has no other requests beside it
    entry: Option<Entry>,
    /// Whether the request has a [`Place`], so that it counts already
    has_place: bool,
}

impl Waits {
    /// It always may.
    pub const ALWAYS: Waits = Waits {
        entry: None,
        has_place: false,
    };

    /// The request of this worker may wait by the rule of this module.
    pub fn of(entry: Entry) -> Waits {
        Waits {
            entry: Some(entry),
            has_place: false,
        }
    }

    /// Waits up to `time` by calls of `wait`, which returns `None` when the time that it gets has passed.
    pub fn wait<T, E>(
        self,
        awaited: Awaited,
        time: Duration,
        mut wait: impl FnMut(Duration) -> Result<Option<T>, E>,
    ) -> Result<Wait<T>, E> {
        let Some(entry) = self.entry else {
            return Ok(wait(time)?.map_or(Wait::TimedOut, Wait::Done));
        };
        let prompt = time.min(entry.prompt());
        if !prompt.is_zero() {
            let since = Instant::now();
            let outcome = wait(prompt)?;
            let taken = outcome.as_ref().map_or(prompt, |_| since.elapsed());
            entry.set_prompt(entry.prompt().saturating_sub(taken));
            if let Some(done) = outcome {
                return Ok(Wait::Done(done));
            }
        }
        let rest = time - prompt;
        if rest.is_zero() {
            return Ok(Wait::TimedOut);
        }
        let _waiting = (!self.has_place).then(|| Waiting::begin(entry, awaited));
        if !is_in_half(entry, awaited) || entry.held_before() >= (entry.workers() * 3 / 4).max(1) {
            return Ok(Wait::Refused);
        }
        Ok(wait(rest)?.map_or(Wait::TimedOut, Wait::Done))
    }

    /// Pauses before another look at what is awaited. Returns `false` if it may not.
    pub fn pause(self, awaited: Awaited, time: Duration) -> bool {
        let pause = |time| {
            sleep(time);
            Ok::<Option<()>, Infallible>(None)
        };
        self.wait(awaited, time, pause) != Ok(Wait::Refused)
    }

    /// Takes a place among the requests that wait for this. While all are taken, looks again until the waits of the request
    /// count; then returns `None`. The limit for waits of all kinds applies later, in [`Waits::wait`].
    pub fn place(self, awaited: Awaited) -> Option<Place> {
        let Some(entry) = self.entry else {
            return Some(Place(None));
        };
        loop {
            let waiting = Waiting::begin(entry, awaited);
            if is_in_half(entry, awaited) {
                return Some(Place(Some(waiting)));
            }
            drop(waiting);
            let pause = PAUSE.min(entry.prompt());
            if pause.is_zero() {
                return None;
            }
            let since = Instant::now();
            sleep(pause);
            entry.set_prompt(entry.prompt().saturating_sub(since.elapsed()));
        }
    }
}

/// The place of a request among those that wait for the same, until this is dropped.
#[must_use]
pub struct Place(Option<Waiting>);

impl Place {
    /// The waits of the request with it
    pub fn waits(&self) -> Waits {
        Waits {
            entry: self.0.as_ref().map(|waiting| waiting.0),
            has_place: true,
        }
    }
}

/// A request that waits, until this is dropped.
struct Waiting(Entry);

impl Waiting {
    fn begin(entry: Entry, awaited: Awaited) -> Waiting {
        entry.wait_for(awaited);
        Waiting(entry)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set(State::Busy);
    }
}

/// Whether a request that waits for this is in the half of the workers that may, behind the requests before it.
fn is_in_half(entry: Entry, awaited: Awaited) -> bool {
    entry.waiting_before(awaited) < (entry.workers() / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::file_id::FileId;
    use super::super::scoreboard::Scoreboard;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn file(inode: u64) -> Awaited {
        Awaited::File(FileId { device: 1, inode })
    }

    /// The workers of a responder with so many.
    fn workers(count: usize) -> (Scoreboard, Vec<Entry>) {
        let board = Scoreboard::new(count).unwrap();
        let entries = (0..count).map(|number| board.enter(number));
        (board, entries.collect())
    }

    /// The waits of a new request, of which `prompt` together do not count
    fn begin(entry: Entry, prompt: Duration) -> Waits {
        entry.set_prompt(prompt);
        Waits::of(entry)
    }

    /// Waits for longer than a moment, and lasts until `inside` returns.
    fn wait_and(entry: Entry, awaited: Awaited, inside: impl FnOnce()) -> Wait<()> {
        let mut inside = Some(inside);
        let wait = |time| {
            if time < PROMPT + SECOND && time > PROMPT {
                inside.take().expect("one wait that counts")();
                return Ok::<_, Infallible>(Some(()));
            }
            Ok(None)
        };
        let Ok(outcome) = Waits::of(entry).wait(awaited, PROMPT + SECOND, wait);
        outcome
    }

    /// As many of the workers as `awaited` has wait at the same time. Returns how many are refused.
    fn refused(workers: &[Entry], awaited: &[Awaited]) -> usize {
        let ([worker, workers @ ..], [first, awaited @ ..]) = (workers, awaited) else {
            return 0;
        };
        begin(*worker, PROMPT);
        let mut others = 0;
        match wait_and(*worker, *first, || others = refused(workers, awaited)) {
            Wait::Refused => 1 + refused(workers, awaited),
            _ => others,
        }
    }

    #[test]
    fn half_of_the_workers_wait_for_the_same_and_three_quarters_in_all() {
        for awaited in [file(1), Awaited::Redis, Awaited::WebServer] {
            let (_, workers) = workers(8);
            assert_eq!(refused(&workers, &[awaited; 8]), 4, "{awaited:?}");
        }
        let (_, all) = workers(8);
        let different: Vec<Awaited> = (0..8).map(file).collect();
        assert_eq!(refused(&all, &different), 2);
        for entry in &all[..4] {
            entry.set(State::Kept);
        }
        assert_eq!(refused(&all[4..], &different), 2, "beside kept connections");
    }

    #[test]
    fn one_worker_waits_although_it_is_more_than_three_quarters_of_them() {
        let (_, workers) = workers(1);
        assert_eq!(refused(&workers, &[Awaited::Redis]), 0);
    }

    #[test]
    fn workers_that_could_not_be_started_are_left_out() {
        let (board, workers) = workers(8);
        board.set_missing(6);
        assert_eq!(refused(&workers[..2], &[file(1), file(1)]), 1);
        board.set_missing(0);
        assert_eq!(refused(&workers[..2], &[file(1), file(1)]), 0);
    }

    #[test]
    fn waits_of_a_moment_do_not_count_until_they_are_more_than_one_together() {
        let (_, workers) = workers(2);
        let waits = begin(workers[0], PROMPT);
        workers[1].wait_for(Awaited::Redis);
        let mut times = Vec::new();
        let mut wait_twice = |time: Duration| {
            let mut wait = |time| {
                times.push(time);
                Ok::<Option<()>, Infallible>(None)
            };
            waits.wait(Awaited::Redis, time, &mut wait).unwrap()
        };
        assert_eq!(wait_twice(PROMPT / 2), Wait::TimedOut);
        assert_eq!(wait_twice(PROMPT), Wait::Refused);
        assert_eq!(wait_twice(PROMPT), Wait::Refused);
        assert_eq!(times, [PROMPT / 2, PROMPT / 2]);
        begin(workers[0], PROMPT);
        assert!(waits.pause(Awaited::Redis, PROMPT), "of the next request");
    }

    #[test]
    fn half_of_the_workers_have_a_place_until_one_is_free() {
        let (_, workers) = workers(8);
        let place = |entry: &Entry| begin(*entry, PAUSE).place(Awaited::Redis);
        let mut places: Vec<Option<Place>> = workers.iter().map(place).collect();
        let has_place = places.iter().map(Option::is_some);
        assert_eq!(
            has_place.collect::<Vec<_>>(),
            [[true; 4], [false; 4]].concat()
        );
        let first = places.swap_remove(0);
        std::thread::spawn(move || drop(first));
        let next = begin(workers[7], 3600 * SECOND);
        assert!(next.place(Awaited::Redis).is_some());
    }

    #[test]
    fn beside_three_quarters_that_wait_a_place_is_for_a_moment_only() {
        let (_, workers) = workers(8);
        for entry in &workers[..4] {
            entry.set(State::Kept);
        }
        for entry in &workers[4..6] {
            entry.wait_for(file(1));
        }
        let waits = begin(workers[6], PROMPT);
        let place = waits.place(Awaited::Redis).unwrap();
        let wait = |takes: Duration| {
            let wait = |time| Ok::<_, Infallible>((time >= takes).then_some(()));
            let Ok(outcome) = place.waits().wait(Awaited::Redis, SECOND, wait);
            outcome
        };
        assert_eq!(wait(PROMPT / 2), Wait::Done(()));
        assert_eq!(wait(SECOND / 2), Wait::Refused);
        workers[0].set(State::Free);
        assert_eq!(wait(SECOND / 2), Wait::Done(()));
    }

    #[test]
    fn without_other_requests_every_wait_is_allowed_at_once() {
        let waits = Waits::ALWAYS;
        let wait = |time| Ok::<_, Infallible>(Some(time));
        assert_eq!(
            waits.wait(Awaited::Redis, SECOND, wait),
            Ok(Wait::Done(SECOND))
        );
        assert!(waits.place(Awaited::Redis).is_some());
    }
}
