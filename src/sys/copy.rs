//! `memcpy` and `memmove` for x86-64 with musl, whose own took a fifth of the user time of a read by FastCGI: they
//! copy single bytes up to an aligned address, and the rest by `rep movsq`, which starts slowly.
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::{__m128i, __m256i};

/// `memcpy`. The tests do not replace the functions of the C library.
#[unsafe(link_section = ".text.comedor..copy")]
#[cfg_attr(not(test), unsafe(export_name = "memcpy"))]
unsafe extern "C" fn copy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: both have `count` bytes.
    unsafe {
        if count < 16 {
            match count {
                8.. => copy_ends::<u64>(to, from, count),
                4.. => copy_ends::<u32>(to, from, count),
                2.. => copy_ends::<u16>(to, from, count),
                1 => copy_ends::<u8>(to, from, count),
                0 => {}
            }
        } else if count <= 32 {
            copy_ends::<__m128i>(to, from, count);
        } else if count <= SHORT {
            copy_ends::<__m256i>(to, from, count);
        } else {
            let end = count - size_of::<u64>();
            let last = from.add(end).cast::<u64>().read_unaligned();
            asm!("rep movsq", inout("rcx") count / 8 => _, inout("rdi") to => _, inout("rsi") from => _);
            to.add(end).cast::<u64>().write_unaligned(last);
        }
    }
    to
}

/// The longest block that is read before it is written, so that source and target may overlap
const SHORT: usize = 64;

/// Copies the first and the last bytes of a block, which are all of them. A loop could become a call of `memcpy`.
#[inline(always)]
unsafe fn copy_ends<T>(to: *mut u8, from: *const u8, count: usize) {
    let end = count - size_of::<T>();
    // SAFETY: the block has from one to two times the size of the type, whose values are any bytes.
    unsafe {
        let first = from.cast::<T>().read_unaligned();
        let last = from.add(end).cast::<T>().read_unaligned();
        to.cast::<T>().write_unaligned(first);
        to.add(end).cast::<T>().write_unaligned(last);
    }
}

/// `memmove`
#[unsafe(link_section = ".text.comedor..copy")]
#[cfg_attr(not(test), unsafe(export_name = "memmove"))]
unsafe extern "C" fn copy_over(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: both have `count` bytes.
    unsafe {
        if count <= SHORT || to.addr().wrapping_sub(from.addr()) >= count {
            return copy(to, from, count);
        }
        // The target is in the source: backwards
        let (end, first) = (count - size_of::<u64>(), from.cast::<u64>().read_unaligned());
        asm!(
            "std", "rep movsq", "cld",
            inout("rcx") count / 8 => _, inout("rdi") to.add(end) => _, inout("rsi") from.add(end) => _,
        );
        to.cast::<u64>().write_unaligned(first);
    }
    to
}

#[cfg(test)]
mod tests {
    use super::{copy, copy_over};

    #[test]
    fn bytes_are_copied_and_no_others() {
        let source: Vec<u8> = (0..600).map(|number| (number * 7 % 251) as u8).collect();
        for count in 0..150 {
            let near = (300 - count..300 + count + 1).map(|from| (300, from));
            for (to, from) in near.chain([(3, 300), (300, 3)]) {
                let (mut expected, mut copied) = (source.clone(), source.clone());
                expected.copy_within(from..from + count, to);
                let start = copied.as_mut_ptr();
                let is_apart = from.abs_diff(to) >= count;
                let copy = if is_apart && from % 2 == 0 { copy } else { copy_over };
                // SAFETY: both are in the vector.
                let returned = unsafe { copy(start.add(to), start.add(from), count) };
                assert_eq!(returned, unsafe { start.add(to) });
                assert!(copied == expected, "{count} from {from} to {to}");
            }
        }
    }
}
