//! Anonymous memory mappings: zeroed, page-aligned, resident only where touched.
//!
//! Knows `mmap(2)`. Knows nothing of what is kept there.

use std::io;
use std::ptr;

/// Size of a page assumed for alignment.
pub const PAGE_BYTES: usize = 4096;
/// Mappings from this size on ask for huge pages.
const HUGE_BYTES: usize = 2 << 20;

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
