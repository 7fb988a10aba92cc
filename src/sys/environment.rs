//! The arguments and the environment of the process, without copies.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

/// The arguments or the environment of the process: strings that end with a null byte, in a list that
/// ends with a null pointer (execve(2)). Nothing changes them.
#[derive(Debug)]
pub struct Strings(pub(super) *const *const c_char);

impl Iterator for Strings {
    type Item = &'static [u8];

    fn next(&mut self) -> Option<&'static [u8]> {
        // SAFETY: the pointer is to an entry of the list. It moves past strings only, so not past the null at the end.
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
