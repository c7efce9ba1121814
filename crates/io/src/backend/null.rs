//! The null backend: every I/O is done the moment it is handed over.
//!
//! Knows nothing of files. It shows what the engine itself costs.

use std::io;

use super::{sleep_until, Done, Io, IoBackend, Outcome};
use loadstone_base::clock::Clock;

/// Completes everything at once.
#[derive(Debug)]
pub struct Null {
    clock: Clock,
    /// Slot and bytes.
    done: Vec<(u32, u32)>,
    taken: usize,
}

impl Null {
    /// A backend for up to `depth` I/Os in flight.
    #[must_use]
    pub fn new(clock: Clock, depth: u32) -> Self {
        Self {
            clock,
            done: Vec::with_capacity(depth as usize),
            taken: 0,
        }
    }
}

impl IoBackend for Null {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    #[inline]
    fn push(&mut self, io: Io) {
        debug_assert!(self.done.len() < self.done.capacity());
        self.done.push((io.slot, io.len));
    }

    #[inline]
    fn flush(&mut self, wait_for: u32, until_ns: u64) -> io::Result<()> {
        if wait_for == 0 && self.done.is_empty() {
            sleep_until(&self.clock, until_ns);
        }
        Ok(())
    }

    #[inline]
    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        let end = self.done.len().min(self.taken + max as usize);
        let count = end - self.taken;
        for &(slot, bytes) in &self.done[self.taken..end] {
            take(Done::new(slot, Outcome::moved(bytes)));
        }
        self.taken = end;
        if end == self.done.len() {
            self.done.clear();
            self.taken = 0;
        }
        count as u32
    }
}
