//! Anonymous memory mappings: zeroed, page-aligned, resident only where touched.
//!
//! Knows `mmap(2)`. Knows nothing of what is kept there.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::ptr;

/// Size of a page assumed for alignment.
pub const PAGE_BYTES: usize = 4096;
/// Mappings from this size on ask for huge pages.
const HUGE_BYTES: usize = 2 << 20;

/// A value in memory that another thread may be writing, as a debugger sees it: the kernel reads
/// it. So the writer's plain memory stays plain, and there is no access here that could race with it.
///
/// # Safety
/// The memory is mapped for as long as the call lasts, and any mix of old and new bytes is a `T`.
pub unsafe fn look_at<T: Copy>(place: *const T) -> T {
    let mut seen = MaybeUninit::<T>::uninit();
    let bytes = size_of::<T>();
    let local = libc::iovec {
        iov_base: seen.as_mut_ptr().cast(),
        iov_len: bytes,
    };
    let remote = libc::iovec {
        iov_base: place.cast_mut().cast(),
        iov_len: bytes,
    };
    // SAFETY: `seen` is as long as said; what is read is only described to the kernel.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    if copied != bytes as isize {
        look_at_file(place as u64, seen.as_mut_ptr().cast(), bytes);
    }
    // SAFETY: all of it was filled, by the caller's promise with a value.
    unsafe { seen.assume_init() }
}

/// The same where a filter of system calls forbids the call.
#[cold]
fn look_at_file(address: u64, to: *mut u8, bytes: usize) {
    // SAFETY: the caller owns so many bytes there.
    let to = unsafe {
        to.write_bytes(0, bytes);
        std::slice::from_raw_parts_mut(to, bytes)
    };
    let read =
        std::fs::File::open("/proc/self/mem").and_then(|memory| memory.read_exact_at(to, address));
    assert!(
        read.is_ok(),
        "this process's own memory cannot be read: {read:?}"
    );
}

/// An owned anonymous mapping.
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping is plain memory owned by this value; whoever hands out pointers
// into it is responsible for their use.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` (rounded up to pages) of zeros. `huge` advises huge pages.
    ///
    /// # Errors
    /// The error of `mmap(2)`.
    pub fn new(bytes: usize, huge: bool) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(PAGE_BYTES);
        // SAFETY: a fresh anonymous private mapping touches no existing memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let advice = if huge && bytes >= HUGE_BYTES {
            libc::MADV_HUGEPAGE
        } else {
            libc::MADV_NOHUGEPAGE
        };
        // SAFETY: the range was mapped above; failing advice changes nothing.
        unsafe { libc::madvise(start, bytes, advice) };
        Ok(Self {
            start: start.cast(),
            bytes,
        })
    }

    /// A mapping of nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            start: ptr::NonNull::dangling().as_ptr(),
            bytes: 0,
        }
    }

    /// First byte.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True when nothing is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        // SAFETY: start and length come from our own mmap.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_see_what_is_there() {
        let value = [7u64, u64::MAX, 0];
        // SAFETY: it lives, and any bytes are numbers.
        assert_eq!(unsafe { look_at(&value) }, value);
        let mut seen = [1u8; 24];
        look_at_file((&raw const value) as u64, seen.as_mut_ptr(), 24);
        assert_eq!(seen, value.map(u64::to_ne_bytes).concat()[..]);
    }
}
