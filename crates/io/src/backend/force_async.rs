//! Every so manieth entry of a ring is given to a kernel worker at once (`IOSQE_ASYNC`), as fio's
//! `force_async`.
//!
//! Knows how to count and where the flag is. What an entry is, the commands below know.

use std::os::fd::RawFd;

use super::ring::abi;
use super::uring::{Commands, Operations};
use super::{Done, Io};

/// The operations of a ring, some of them forced.
#[derive(Debug)]
pub struct Forced {
    inner: Operations,
    every: u32,
    left: u32,
}

impl Forced {
    /// One of `every` is forced, at least 1.
    #[must_use]
    pub fn new(inner: Operations, every: u32) -> Self {
        Self {
            inner,
            every,
            left: every,
        }
    }
}

impl Commands for Forced {
    type Entry = abi::Sqe;

    fn entry(&mut self, io: &Io) -> abi::Sqe {
        let mut entry = self.inner.entry(io);
        self.left -= 1;
        if self.left == 0 {
            self.left = self.every;
            entry.flags |= abi::SQE_ASYNC;
        }
        entry
    }

    fn use_file(&mut self, file: u32, fd: RawFd) {
        self.inner.use_file(file, fd);
    }

    fn done(&self, completion: abi::Cqe) -> Done {
        self.inner.done(completion)
    }
}
