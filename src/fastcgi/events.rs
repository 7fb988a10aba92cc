//! What the threads of the server wait for: epoll(7), and a timer for the next deadline.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// The tokens of events. Those of connections are larger.
pub const LISTENER: u64 = 0;
pub const STOP: u64 = 1;
pub const TIMER: u64 = 2;
/// The last connection was closed after the stop: all threads end
pub const DONE: u64 = 3;

/// A source that is readable wakes one thread, and must then be armed again.
pub const ONCE: EventFlags = EventFlags::IN.union(EventFlags::ONESHOT);

/// The events of a server.
pub struct Events {
    epoll: OwnedFd,
    timer: OwnedFd,
}

impl Events {
    pub fn new() -> io::Result<Events> {
        let events = Events {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            timer: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?,
        };
        // Edge-triggered: one thread gets the event, and the timer need not be read.
        events.watch(&events.timer, TIMER, EventFlags::IN | EventFlags::ET)?;
        Ok(events)
    }

    /// Waits for the next event; its token, or `None` after `timeout`. One event at a time: a second would
    /// have to wait for the first request.
    pub fn next(&self, timeout: Option<&Timespec>) -> io::Result<Option<u64>> {
        let mut event = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }];
        let count = retry_on_intr(|| epoll::wait(&self.epoll, &mut event, timeout))?;
        Ok((count > 0).then(|| event[0].data.u64()))
    }

    pub fn watch(&self, source: impl AsFd, token: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll, source, EventData::new_u64(token), flags)
    }

    pub fn arm(&self, source: impl AsFd, token: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.epoll, source, EventData::new_u64(token), flags)
    }

    pub fn set_timer(&self, at: Instant) {
        // Zero would disarm the timer.
        let rest = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value = Timespec::try_from(rest).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let time = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time);
    }
}
