//! The allocator of the process: dlmalloc, with a lock of the standard library. The one of its own feature `global`, a
//! pthread mutex, takes a tenth of the instructions of a request with musl.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::Dlmalloc;

pub struct Allocator;

fn dlmalloc() -> MutexGuard<'static, Dlmalloc> {
    static DLMALLOC: Mutex<Dlmalloc> = Mutex::new(Dlmalloc::new());
    DLMALLOC.lock().unwrap_or_else(PoisonError::into_inner)
}

// SAFETY: Dlmalloc has the same contract. Neither the lock nor Dlmalloc panics or allocates with this allocator.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { dlmalloc().malloc(layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe { dlmalloc().realloc(pointer, layout.size(), layout.align(), size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { dlmalloc().free(pointer, layout.size(), layout.align()) }
    }
}
