//! Memory that a process shares with its children.
#![allow(unsafe_code)]

use std::io;
use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// A type of which a part of shared memory can be.
///
/// # Safety
///
/// Zeros must be a valid value.
pub unsafe trait Shared: Sync {}

// SAFETY: it is `false`.
unsafe impl Shared for AtomicBool {}

/// A value of zeros, which this process and its children share for as long as they exist.
pub fn zeroed<T: Shared>() -> io::Result<&'static T> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the mapping is new, aligned to a page and never unmapped, and zeros are a valid value.
    Ok(unsafe { &*mmap_anonymous(null_mut(), size_of::<T>(), access, MapFlags::SHARED)?.cast() })
}
