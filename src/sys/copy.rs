//! `memcpy` and `memmove` for x86-64 with musl, whose own took a fifth of the user time of a read by FastCGI: they
//! copy single bytes up to an aligned address, and the rest by `rep movsq`, which starts slowly.
//!
//! Of up to 64 bytes all are read before the first is written, so that source and target may overlap.
#![allow(unsafe_code)]

use std::arch::naked_asm;

/// `memcpy`. The tests do not replace the functions of the C library.
#[unsafe(naked)]
#[unsafe(link_section = ".text.comedor..copy")]
#[cfg_attr(not(test), unsafe(export_name = "memcpy"))]
unsafe extern "C" fn copy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!(
        "
            mov rax, rdi
            cmp rdx, 16
            jb 3f
            cmp rdx, 32
            ja 2f
            # 16 to 32 bytes: the first and the last 16
            movups xmm0, [rsi]
            movups xmm1, [rsi + rdx - 16]
            movups [rdi], xmm0
            movups [rdi + rdx - 16], xmm1
            ret
        2:
            cmp rdx, 64
            ja 6f
            movups xmm0, [rsi]
            movups xmm1, [rsi + 16]
            movups xmm2, [rsi + rdx - 32]
            movups xmm3, [rsi + rdx - 16]
            movups [rdi], xmm0
            movups [rdi + 16], xmm1
            movups [rdi + rdx - 32], xmm2
            movups [rdi + rdx - 16], xmm3
            ret
        3:
            cmp edx, 8
            jb 4f
            mov rcx, [rsi]
            mov r8, [rsi + rdx - 8]
            mov [rdi], rcx
            mov [rdi + rdx - 8], r8
            ret
        4:
            cmp edx, 4
            jb 5f
            mov ecx, [rsi]
            mov r8d, [rsi + rdx - 4]
            mov [rdi], ecx
            mov [rdi + rdx - 4], r8d
            ret
            # Up to 3 bytes: the first, the one in the middle and the last
        5:
            test edx, edx
            jz 7f
            mov r9, rdx
            shr r9, 1
            movzx ecx, byte ptr [rsi]
            movzx r8d, byte ptr [rsi + r9]
            movzx r10d, byte ptr [rsi + rdx - 1]
            mov [rdi], cl
            mov [rdi + r9], r8b
            mov [rdi + rdx - 1], r10b
        7:
            ret
        6:
            mov r8, [rsi + rdx - 8]
            lea r9, [rdi + rdx - 8]
            mov rcx, rdx
            shr rcx, 3
            rep movsq
            mov [r9], r8
            ret
        ",
    )
}

/// `memmove`
#[unsafe(naked)]
#[unsafe(link_section = ".text.comedor..copy")]
#[cfg_attr(not(test), unsafe(export_name = "memmove"))]
unsafe extern "C" fn copy_over(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    naked_asm!(
        "
            # Only backwards if the target is in the source
            mov rax, rdi
            sub rax, rsi
            cmp rax, rdx
            jae {copy}
            cmp rdx, 64
            jbe {copy}
            mov rax, rdi
            mov r8, [rsi]
            mov rcx, rdx
            shr rcx, 3
            lea rdi, [rdi + rdx - 8]
            lea rsi, [rsi + rdx - 8]
            std
            rep movsq
            cld
            mov [rax], r8
            ret
        ",
        copy = sym copy,
    )
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
