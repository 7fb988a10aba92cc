//! The allocator of the process: dlmalloc with a lock, mappings for large blocks, and in the threads of a
//! FastCGI process a cache of small ones.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::ptr::{copy_nonoverlapping, null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::Dlmalloc;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// dlmalloc, with a lock of the standard library. The one of its own feature `global`, a pthread mutex,
/// takes a tenth of the instructions of a request with musl.
///
/// A large block is a mapping of its own, as with glibc and musl: dlmalloc keeps what it has freed below
/// a used block, so that a process stayed at 600 MiB after 500 large uploads.
pub struct Allocator;

static DLMALLOC: Mutex<Dlmalloc<System>> = Mutex::new(Dlmalloc::new_with_allocator(System));

fn dlmalloc() -> MutexGuard<'static, Dlmalloc<System>> {
    DLMALLOC.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where dlmalloc gets its memory.
struct System;

/// The size of the memory that dlmalloc has
static SIZE: AtomicUsize = AtomicUsize::new(0);
/// Whether dlmalloc gets no more memory
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: it returns new mappings, and unmaps what dlmalloc does not use any more.
unsafe impl dlmalloc::Allocator for System {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let start = if IS_CLOSED.load(Ordering::Relaxed) { null_mut() } else { map(size) };
        if !start.is_null() {
            SIZE.fetch_add(size, Ordering::Relaxed);
        }
        (start, size, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, start: *mut u8, old_size: usize, size: usize) -> bool {
        self.free(start.wrapping_add(size), old_size - size)
    }

    fn free(&self, start: *mut u8, size: usize) -> bool {
        let is_unmapped = unsafe { munmap(start.cast(), size) }.is_ok();
        if is_unmapped {
            SIZE.fetch_sub(size, Ordering::Relaxed);
        }
        is_unmapped
    }

    fn can_release_part(&self, _: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}

/// A size of memory that is more than a process needs to serve one request after the other
const USUAL_SIZE: usize = 16 * 1024 * 1024;

/// The sizes of the blocks in [`release_pages`], in powers of two
const RELEASED: RangeInclusive<u32> = 15..=26;

/// A multiple of the pages of Linux, but for some kernels for arm64
const PAGES: usize = 16 * 1024;

/// A free block in [`release_pages`]
struct Free {
    size: usize,
    before: *mut Free,
}

/// Gives the pages of free blocks back to the system. dlmalloc itself unmaps only the end of its memory, and blocks
/// that stay in use are spread over all of it.
#[cold]
fn release_pages() {
    let mut dlmalloc = dlmalloc();
    let mut last: *mut Free = null_mut();
    // All free blocks are taken, so that their pages are unused.
    IS_CLOSED.store(true, Ordering::Relaxed);
    for size in RELEASED.rev().map(|power| 1 << power) {
        loop {
            // SAFETY: size and alignment are valid.
            let block: *mut Free = unsafe { dlmalloc.malloc(size, ALIGN) }.cast();
            if block.is_null() {
                break;
            }
            let pages = block.wrapping_add(1).map_addr(|end| end.next_multiple_of(PAGES));
            let length = (block.addr() + size - pages.addr()) / PAGES * PAGES;
            // SAFETY: the block has room for it, and then for the pages. If this fails, they stay.
            unsafe {
                block.write(Free { size, before: last });
                _ = madvise(pages.cast(), length, Advice::LinuxDontNeed);
            }
            last = block;
        }
    }
    IS_CLOSED.store(false, Ordering::Relaxed);
    while !last.is_null() {
        // SAFETY: it was allocated and written above.
        unsafe {
            let Free { size, before } = last.read();
            dlmalloc.free(last.cast(), size, ALIGN);
            last = before;
        }
    }
}

/// The size of a large block.
const LARGE: usize = 128 * 1024;

/// The smallest page of Linux
const PAGE: usize = 4096;

/// Whether a block of this layout is a mapping.
fn is_mapping(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

#[cold]
fn map(size: usize) -> *mut u8 {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: it is placed where the process has no memory.
    let mapping = unsafe { mmap_anonymous(null_mut(), size, access, MapFlags::PRIVATE) };
    mapping.map_or(null_mut(), <*mut _>::cast)
}

/// The alignment of every block of dlmalloc. Its header has half that size, so the sizes of blocks are
/// multiples of this and a half.
const ALIGN: usize = 2 * size_of::<usize>();
const CLASSES: usize = 64;

/// The class of a small block of this layout. Its blocks have at least [`size_of_class`].
fn class_of(layout: Layout) -> Option<usize> {
    let class = (layout.size() + ALIGN / 2 - 1) / ALIGN;
    let class = class.saturating_sub(1);
    (class < CLASSES && layout.align() <= ALIGN).then_some(class)
}

fn size_of_class(class: usize) -> usize {
    (class + 1) * ALIGN + ALIGN / 2
}

/// The size of the small blocks that a thread keeps for itself.
const KEPT: usize = 64 * 1024;

/// Small blocks that a thread has freed, for its next ones. With dlmalloc's lock for each, eight clients
/// of a FastCGI process made 1.2 futex calls for a request, and half as much user time again. By CGI a cache
/// saves a tenth of the instructions, but costs four page faults, which take longer. mimalloc instead of both
/// is as fast by FastCGI, but takes 243,540 instructions and 4,860 KiB for a read by CGI.
struct Cache {
    /// The last freed block of each class. It has the address of the one before
    last: [Cell<*mut *mut u8>; CLASSES],
    /// The size of all cached blocks
    size: Cell<usize>,
}

std::thread_local! {
    /// The cache of a thread in [`with_cache`]. Only a pointer, as all of these variables together may have
    /// 112 bytes (`places.rs`).
    static CACHE: Cell<*const Cache> = const { Cell::new(null()) };
}

/// Runs `run` with a cache for this thread.
pub fn with_cache<T>(run: impl FnOnce() -> T) -> T {
    let last = [const { Cell::new(null_mut()) }; CLASSES];
    let cache = Cache { last, size: Cell::new(0) };
    CACHE.set(&cache);
    run()
}

impl Drop for Cache {
    fn drop(&mut self) {
        CACHE.set(null());
        self.give_back();
    }
}

/// Gives back what an idle thread has cached, and the pages that a load has left.
pub fn rest() {
    if let Some(cache) = cache() {
        cache.give_back();
    }
    if SIZE.load(Ordering::Relaxed) > USUAL_SIZE {
        release_pages();
    }
}

fn cache<'c>() -> Option<&'c Cache> {
    // SAFETY: the pointer is reset when the cache is dropped. No caller keeps the reference.
    unsafe { CACHE.get().as_ref() }
}

impl Cache {
    fn take(&self, class: usize) -> *mut u8 {
        let last = self.last[class].get();
        if last.is_null() {
            // SAFETY: sizes and alignments of classes are valid.
            return unsafe { dlmalloc().malloc(size_of_class(class), ALIGN) };
        }
        // SAFETY: `put` has written it.
        self.last[class].set(unsafe { *last }.cast());
        self.size.set(self.size.get() - size_of_class(class));
        last.cast()
    }

    /// # Safety
    ///
    /// The block must have this class, and not be used any more.
    unsafe fn put(&self, block: *mut u8, class: usize) {
        if self.size.get() + size_of_class(class) > KEPT {
            self.give_back();
        }
        let block: *mut *mut u8 = block.cast();
        // SAFETY: every block has room for a pointer, and its alignment.
        unsafe { *block = self.last[class].replace(block).cast() };
        self.size.set(self.size.get() + size_of_class(class));
    }

    #[cold]
    fn give_back(&self) {
        let mut dlmalloc = dlmalloc();
        for (class, last) in self.last.iter().enumerate() {
            let mut block = last.replace(null_mut());
            while !block.is_null() {
                // SAFETY: `put` has written it, and no one uses the block.
                unsafe {
                    let before = *block;
                    dlmalloc.free(block.cast(), size_of_class(class), ALIGN);
                    block = before.cast();
                }
            }
        }
        self.size.set(0);
    }
}

// SAFETY: Dlmalloc has the same contract; the lock gives it to one thread at a time. Neither the lock
// nor Dlmalloc panics or allocates with this allocator. The layout of a block tells whether it is a mapping,
// which has the size of its layout and is not passed to Dlmalloc. A block of a class has room for every layout
// of that class, and is in one cache at most.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(cache) = cache()
            && let Some(class) = class_of(layout)
        {
            return cache.take(class);
        }
        if is_mapping(layout) {
            return map(layout.size());
        }
        unsafe { dlmalloc().malloc(layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that this is a valid layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let class = cache().and_then(|_| class_of(layout));
        if class.is_some() && class == class_of(new) {
            return pointer;
        }
        if class.is_none() && !is_mapping(layout) && !is_mapping(new) {
            return unsafe { dlmalloc().realloc(pointer, layout.size(), layout.align(), size) };
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
        if let Some(cache) = cache()
            && let Some(class) = class_of(layout)
        {
            return unsafe { cache.put(pointer, class) };
        }
        if is_mapping(layout) {
            // Fails only if the process has too many mappings; then the memory stays.
            _ = unsafe { munmap(pointer.cast(), layout.size()) };
            return;
        }
        unsafe { dlmalloc().free(pointer, layout.size(), layout.align()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    /// All unit tests use it, most without a cache.
    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    /// Three with a cache and one without, which all resize and free what another one has allocated. dlmalloc compares
    /// the size of each block with its own.
    #[test]
    fn threads_that_free_blocks_of_each_other_never_share_one() {
        let (blocks, start) = (Mutex::new(Vec::<Vec<u8>>::new()), Barrier::new(4));
        let run = |thread: u64| {
            let mut state = thread + 1;
            let mut random = |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as usize % below
            };
            start.wait();
            for step in 0..100_000 {
                let below = [64, 2000, 2 * LARGE]
                    [usize::from(step % 16 > 13) + usize::from(step % 100 == 0)];
                let new = vec![random(256) as u8; 1 + random(below)];
                let mut other = {
                    let mut blocks = blocks.lock().unwrap();
                    blocks.push(new);
                    let other = random(blocks.len());
                    blocks.swap_remove(other)
                };
                let pattern = other[0];
                other.resize(1 + random(below), pattern);
                other.shrink_to_fit();
                assert!(other.iter().all(|&byte| byte == pattern), "{other:?}");
                let mut blocks = blocks.lock().unwrap();
                if blocks.len() < 500 {
                    blocks.push(other);
                }
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| run(0));
            for thread in 1..4 {
                let run = &run;
                scope.spawn(move || with_cache(|| run(thread)));
            }
        });
    }

    #[test]
    fn cache_of_a_thread_is_bounded_and_given_back() {
        let kept = || cache().map(|cache| cache.size.get());
        with_cache(|| {
            let blocks: Vec<_> = (1..1000).map(|size| vec![1_u8; size]).collect();
            for block in blocks {
                drop(block);
                assert!(kept() <= Some(KEPT));
            }
            assert!(kept() > Some(0));
            rest();
            assert_eq!(kept(), Some(0));
            let address = Box::into_raw(Box::new([1_u8; 40]));
            // SAFETY: it was a box.
            drop(unsafe { Box::from_raw(address) });
            assert!(kept() > Some(0));
            assert_eq!(&raw const *Box::new([2_u8; 40]), address);
        });
        assert_eq!(kept(), None);
    }
}
