//! Backends that do each I/O by calls of their own before they return.
//!
//! Knows how such a backend takes part in the worker's loop. Knows no system call: that is
//! what a [`Call`] is for.

use std::io;

use super::queue::CompletionQueue;
use super::{sleep_until, Done, Io, IoBackend, Outcome};
use loadstone_base::clock::Clock;

/// One way to do an I/O.
pub trait Call {
    /// Does it; says what came of it.
    fn call(&mut self, io: &Io) -> Outcome;
}

/// A backend that does its I/Os by a [`Call`].
#[derive(Debug)]
pub struct Called<C> {
    clock: Clock,
    call: C,
    done: CompletionQueue,
}

impl<C: Call> Called<C> {
    /// A backend of which up to `depth` completions wait to be reaped.
    #[must_use]
    pub fn new(clock: Clock, call: C, depth: u32) -> Self {
        Self {
            clock,
            call,
            done: CompletionQueue::new(depth),
        }
    }
}

impl<C: Call> IoBackend for Called<C> {
    const SYNCHRONOUS: bool = true;

    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    fn push(&mut self, io: Io) {
        let outcome = self.call.call(&io);
        self.done.push(io.slot, outcome);
    }

    fn perform(&mut self, io: Io) -> Outcome {
        self.call.call(&io)
    }

    fn flush(&mut self, wait_for: u32, until_ns: u64) -> io::Result<()> {
        if wait_for == 0 && self.done.len() == 0 {
            sleep_until(&self.clock, until_ns);
        }
        Ok(())
    }

    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        self.done.reap(max, take)
    }
}

/// Makes a call until no signal interrupts it; gives what it returned, or its error number.
pub(super) fn retried(mut call: impl FnMut() -> isize) -> Result<u32, i32> {
    loop {
        if let Ok(value) = u32::try_from(call()) {
            return Ok(value);
        }
        let error = io::Error::last_os_error().raw_os_error();
        match error.unwrap_or(libc::EIO) {
            libc::EINTR => {}
            errno => return Err(errno),
        }
    }
}
