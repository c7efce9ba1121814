//! `pread(2)` and `pwrite(2)`, one I/O at a time.
//!
//! Knows no queue depth: an I/O is done before `push` returns. The right way where a
//! target cannot do I/O without blocking, and for depth 1.

use std::io;
use std::os::fd::RawFd;

use super::queue::CompletionQueue;
use super::{sleep_until, syscall, Done, Io, IoBackend, OpenFile, Outcome};
use loadstone_base::clock::Clock;

/// The synchronous backend.
#[derive(Debug)]
pub struct Psync {
    clock: Clock,
    files: Vec<OpenFile>,
    done: CompletionQueue,
}

impl Psync {
    /// A backend for `files`, of which up to `depth` completions wait to be reaped. The
    /// calling thread gets a table of descriptors of its own: of one that threads share
    /// the kernel takes and drops a reference to the file at every call.
    #[must_use]
    pub fn new(clock: Clock, files: &[OpenFile], depth: u32) -> Self {
        // SAFETY: the copy has the same descriptors; failure changes nothing.
        unsafe { libc::unshare(libc::CLONE_FILES) };
        Self {
            clock,
            files: files.to_vec(),
            done: CompletionQueue::new(depth),
        }
    }
}

impl IoBackend for Psync {
    const SYNCHRONOUS: bool = true;

    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    #[inline(always)]
    fn push(&mut self, io: Io) {
        let outcome = self.perform(io);
        self.done.push(io.slot, outcome);
    }

    #[inline(always)]
    fn perform(&mut self, io: Io) -> Outcome {
        syscall::perform(&self.files[io.file as usize], &io)
    }

    fn use_file(&mut self, file: u32, fd: RawFd) {
        self.files[file as usize].fd = fd;
    }

    #[inline]
    fn flush(&mut self, wait_for: u32, until_ns: u64) -> io::Result<()> {
        if wait_for == 0 && self.done.len() == 0 {
            sleep_until(&self.clock, until_ns);
        }
        Ok(())
    }

    #[inline]
    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        self.done.reap(max, take)
    }
}
