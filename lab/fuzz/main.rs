//! A coverage-guided fuzzer of the parser that the variable `PARSER` names. `lab/fuzz/parsers` builds and
//! starts it.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::exit;
use std::sync::LazyLock;

use comedor::invariants::{Check, PARSERS};
use libfuzzer_sys::fuzz_target;

static PARSER: LazyLock<Check> = LazyLock::new(|| {
    let wanted = std::env::var("PARSER").unwrap_or_default();
    let Some(parser) = PARSERS.iter().find(|parser| parser.name == wanted) else {
        // `lab/fuzz/parsers all` asks for the names.
        PARSERS
            .iter()
            .for_each(|parser| println!("{}", parser.name));
        exit(i32::from(!wanted.is_empty()));
    };
    parser.check
});

fuzz_target!(init: { LazyLock::force(&PARSER); }, |input: &[u8]| PARSER(input));

/// A length in the input must not determine how much memory is requested.
const MAX_ALLOCATION: usize = 16 * 1024 * 1024;

struct Limited;

#[global_allocator]
static ALLOCATOR: Limited = Limited;

// SAFETY: the system's allocator does everything, or nothing is allocated.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MAX_ALLOCATION {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller's
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller's
        unsafe { System.dealloc(pointer, layout) }
    }
}
