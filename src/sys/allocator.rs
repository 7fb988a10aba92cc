//! The allocator of the process.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{copy_nonoverlapping, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::Dlmalloc;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

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
