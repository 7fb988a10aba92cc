//! The start of the process, its allocator, and system calls that neither the standard library nor
//! rustix has. The only `unsafe` code.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, c_char};
use std::fs::File;
use std::io;
use std::mem::{MaybeUninit, forget};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::panic::catch_unwind;
use std::process::{abort, exit};
use std::ptr::{copy_nonoverlapping, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dlmalloc::Dlmalloc;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{Pid, getegid, geteuid, getgid, getuid};
use rustix::stdio::{stderr, stdin, stdout};

/// Defines the C function `main`, which exits with the status that `$run` returns.
///
/// Before a Rust `main`, the standard library prepares a message for a stack overflow: a fifth of the
/// system calls of a request and of its instructions. [`start`] does the rest of what it does. Only
/// `std::process::exit` flushes standard output.
#[macro_export]
macro_rules! main {
    ($run:path) => {
        // SAFETY: the C library calls this function, which has the name and the type of the C standard.
        #[unsafe(no_mangle)]
        extern "C" fn main(_: i32, argv: *const *const std::ffi::c_char) -> i32 {
            // SAFETY: this is the second argument of `main`.
            unsafe { $crate::start(argv, $run) }
        }
    };
}

/// dlmalloc, with a lock of the standard library. The one of its own feature `global`, a pthread mutex,
/// takes a tenth of the instructions of a request with musl.
///
/// A large block is a mapping of its own, as with glibc and musl: dlmalloc keeps what it has freed below
/// a used block, so that a process stayed at 600 MiB after 500 large uploads.
pub struct Allocator(Mutex<Dlmalloc>);

/// The size of a large block.
const LARGE: usize = 128 * 1024;

impl Allocator {
    #[allow(clippy::new_without_default, reason = "a static value needs a constant function")]
    pub const fn new() -> Allocator {
        Allocator(Mutex::new(Dlmalloc::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Dlmalloc> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a block of this layout is a mapping. The smallest page of Linux has 4 KiB.
fn is_mapping(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= 4096
}

#[cold]
fn map(size: usize) -> *mut u8 {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: it is placed where the process has no memory.
    let mapping = unsafe { mmap_anonymous(null_mut(), size, access, MapFlags::PRIVATE) };
    mapping.map_or(null_mut(), <*mut _>::cast)
}

// SAFETY: Dlmalloc has the same contract; the lock gives it to one thread at a time. Neither the lock
// nor Dlmalloc panics or allocates with this allocator. A mapping has the size of its layout, and the
// layout of a block tells whether it is one, so none is passed to Dlmalloc.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_mapping(layout) {
            return map(layout.size());
        }
        unsafe { self.lock().malloc(layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that this is a valid layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if !is_mapping(layout) && !is_mapping(new) {
            return unsafe { self.lock().realloc(pointer, layout.size(), layout.align(), size) };
        }
        unsafe {
            let moved = self.alloc(new);
            if !moved.is_null() {
                copy_nonoverlapping(pointer, moved, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if is_mapping(layout) {
            // Fails only if the process has too many mappings; then the memory stays.
            _ = unsafe { munmap(pointer.cast(), layout.size()) };
            return;
        }
        unsafe { self.lock().free(pointer, layout.size(), layout.align()) }
    }
}

/// The arguments or the environment of the process: strings that end with a null byte, in a list that
/// ends with a null pointer (execve(2)). Nothing changes them.
#[derive(Debug)]
pub struct Strings(*const *const c_char);

impl Iterator for Strings {
    type Item = &'static [u8];

    fn next(&mut self) -> Option<&'static [u8]> {
        // SAFETY: the pointer is to an entry of the list, and passes only those that are strings.
        unsafe {
            let string = *self.0;
            if string.is_null() {
                return None;
            }
            self.0 = self.0.add(1);
            Some(CStr::from_ptr(string).to_bytes())
        }
    }
}

/// The names and values of the environment. The standard library would search it for each name.
pub fn environment() -> impl Iterator<Item = (&'static [u8], &'static [u8])> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library sets it before `main`.
    Strings(unsafe { environ }).filter_map(|variable| {
        let equals = variable.iter().position(|&byte| byte == b'=')?;
        Some((&variable[..equals], &variable[equals + 1..]))
    })
}

/// Passes the arguments to `run`; the status that it returns, or 101 if it panics.
///
/// # Safety
///
/// `argv` must be the second argument of `main`.
#[doc(hidden)]
pub unsafe fn start(argv: *const *const c_char, run: fn(Strings) -> u8) -> i32 {
    // A write to a closed pipe fails with EPIPE, and one beyond the file size limit (RLIMIT_FSIZE) with
    // EFBIG; the default ends the process (signal(7)).
    ignore(&[libc::SIGPIPE, libc::SIGXFSZ]);
    open_standard_streams();
    catch_unwind(|| run(Strings(argv))).unwrap_or(101).into()
}

fn ignore(signals: &[libc::c_int]) {
    for &signal in signals {
        // SAFETY: SIG_IGN runs no code in a signal handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Ignores that an administrator interrupts the process or closes its terminal.
pub fn ignore_interruptions() {
    ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]);
}

/// Keeps the exit statuses of children until they are read: the parent of this process may have ignored
/// SIGCHLD, which is inherited (wait(2)).
pub fn keep_exit_statuses() {
    // SAFETY: SIG_DFL runs no code in a signal handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Opens /dev/null in place of each closed standard stream, so that no other file gets its number.
fn open_standard_streams() {
    let mut streams = [stdin(), stdout(), stderr()]
        .map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::empty()));
    while let Err(Errno::INTR) = poll(&mut streams, Some(&Timespec::default())) {}
    for stream in &streams {
        if stream.revents().contains(PollFlags::NVAL) {
            // It gets the lowest free number.
            match File::options().read(true).write(true).open("/dev/null") {
                Ok(null) => forget(null),
                Err(_) => abort(),
            }
        }
    }
}

/// Runs `run` in a child process (fork(2)), which exits with the status that it returns. The caller must be
/// the only thread of the process.
pub fn run_in_child(run: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: with a single thread, the child is a complete copy.
    match Pid::from_raw(check(unsafe { libc::fork() })?) {
        Some(child) => Ok(child),
        None => exit(run()),
    }
}

/// In such a child: closes all files but the standard streams (close_range(2), Linux 5.9).
pub fn close_others() -> io::Result<()> {
    // SAFETY: the values of the parent that own these files are not dropped in the child, which exits.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } as _).map(drop)
}

/// Raises the limit of open files to `needed`, as far as this process may (getrlimit(2)). Returns the limit.
pub fn raise_open_files(needed: usize) -> io::Result<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the calls read or write the structure, and keep no pointer to it.
    unsafe {
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit))?;
        if limit.rlim_cur < needed as u64 {
            let raised = libc::rlimit { rlim_cur: limit.rlim_max.min(needed as u64), ..limit };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
                limit = raised;
            }
        }
    }
    Ok(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

/// The user of the process at the other end of a Unix socket (unix(7), SO_PEERCRED). The type of rustix cannot
/// hold the id 0 of a process in another namespace.
pub fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut size = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the call writes at most `size` bytes of `peer`, which any bytes are valid for.
    check(unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        let socket = socket.as_fd().as_raw_fd();
        libc::getsockopt(socket, level, option, (&raw mut peer).cast(), &mut size)
    })?;
    Ok(peer.uid)
}

/// Whether the file of the program gives this process another user or group than that of its caller
/// (execve(2)). AT_SECURE alone is not enough: SELinux sets it for the CGI programs of Apache.
pub fn is_set_user_id() -> bool {
    // SAFETY: it reads a value that the kernel has put on the stack.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    is_secure && (getuid() != geteuid() || getgid() != getegid())
}

/// Blocks SIGTERM, which stops a service, and SIGUSR1, which web servers send to restart one. Returns
/// a file descriptor that is readable after one of them has arrived (signalfd(2)). Threads inherit
/// the mask, so this must be called before the first thread is started.
pub fn block_stop_signals() -> io::Result<OwnedFd> {
    let signals = mask(libc::SIG_BLOCK, &[libc::SIGTERM, libc::SIGUSR1])?;
    // SAFETY: signalfd keeps no pointer, and returns a new descriptor, which nothing else owns.
    unsafe {
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        Ok(OwnedFd::from_raw_fd(check(libc::signalfd(-1, &signals, flags))?))
    }
}

/// Blocks or unblocks `signals` in this thread (pthread_sigmask(3)). Returns their set.
fn mask(how: libc::c_int, signals: &[libc::c_int]) -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set before it is used, and no call keeps a pointer to it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        match libc::pthread_sigmask(how, set.as_ptr(), null_mut()) {
            0 => Ok(set.assume_init()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Interrupts the blocking system calls of this thread (EINTR), again and again: one interruption
/// could come between two calls. Dropping it ends them.
#[derive(Debug)]
pub struct Interruptions(libc::timer_t);

/// The time between two interruptions.
const INTERVAL: Duration = Duration::from_millis(10);

impl Interruptions {
    /// Starts them after `time`.
    ///
    /// The signal is the first real-time signal that the C library leaves to programs. Its handler
    /// stays and does nothing. The timer sends it to this thread only.
    pub fn after(time: Duration) -> io::Result<Interruptions> {
        extern "C" fn nothing(_: libc::c_int) {}
        let timespec = |time: Duration| libc::timespec {
            tv_sec: time.as_secs() as _,
            tv_nsec: time.subsec_nanos().into(),
        };
        let times = libc::itimerspec {
            it_interval: timespec(INTERVAL),
            it_value: timespec(time.max(INTERVAL)),
        };
        let signal = libc::SIGRTMIN();
        // SAFETY: the structures may be zero, and no call keeps a pointer to one. The handler runs no
        // code. The timer is used before it is deleted, and deleted once.
        unsafe {
            let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            // Without SA_RESTART, so that a call is not started again. A time of zero would disarm the timer.
            action.sa_sigaction = nothing as *const () as usize;
            check(libc::sigaction(signal, &action, null_mut()))?;
            // The parent of this process may have blocked it.
            mask(libc::SIG_UNBLOCK, &[signal])?;
            let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = null_mut();
            check(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer))?;
            let interruptions = Interruptions(timer);
            check(libc::timer_settime(timer, 0, &times, null_mut()))?;
            Ok(interruptions)
        }
    }
}

impl Drop for Interruptions {
    fn drop(&mut self) {
        // SAFETY: the timer was created and not deleted.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Places a read lease on `file`, which must be open for reading only (fcntl(2), F_SETLEASE).
pub fn set_read_lease(file: &File) -> io::Result<()> {
    // A process that opens the file for writing makes the kernel send SIGIO, whose default ends the
    // process. SIGURG is ignored by default.
    fcntl(file, F_SETSIG, libc::SIGURG)?;
    fcntl(file, libc::F_SETLEASE, libc::F_RDLCK).map(drop)
}

/// Whether the lease on `file` holds and no other process waits for its release (F_GETLEASE).
pub fn has_read_lease(file: &File) -> bool {
    fcntl(file, libc::F_GETLEASE, 0).is_ok_and(|lease| lease == libc::F_RDLCK)
}

/// Releases the lease on `file`.
pub fn release_lease(file: &File) {
    _ = fcntl(file, libc::F_SETLEASE, libc::F_UNLCK);
}

/// From Linux's `asm-generic/fcntl.h`; libc does not have it.
const F_SETSIG: libc::c_int = 10;

fn fcntl(file: &File, command: libc::c_int, argument: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: the descriptor is open, and these commands take and return integers.
    check(unsafe { libc::fcntl(file.as_raw_fd(), command, argument) })
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
