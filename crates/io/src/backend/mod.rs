//! How I/O is done: the seam between the worker's loop and the kernel (or a model of it).
//!
//! Knows what an I/O is and how it is handed over. Knows no pattern, no pace and no
//! statistics. Every backend is one file; the worker is compiled once for each, so no
//! call through this seam is dynamic.

use std::os::fd::RawFd;

pub use loadstone_base::ops::{Op, SyncKind};
use loadstone_plan::TargetKind;
pub use outcome::{Failure, MediumStatus, Outcome};

pub mod discard;
pub mod extents;
pub mod force_async;
mod groups;
pub mod libaio;
pub mod mmap;
pub mod names;
pub mod null;
pub mod nvme;
mod outcome;
mod own_cpus;
pub mod psync;
mod queue;
mod raw;
pub mod ring;
pub mod sim;
pub mod sim_behaviour;
pub mod sim_medium;
pub mod special_engines;
pub mod splice;
pub mod syscall;
pub mod uring;
mod waiting;

/// A target as a worker's backend sees it. The order in the worker's table is what
/// [`Io::file`] counts.
#[derive(Debug, Clone, Copy)]
pub struct OpenFile {
    /// Open file descriptor; −1 for a virtual target.
    pub fd: RawFd,
    /// Opened with `O_DIRECT`.
    pub direct: bool,
    /// What it is.
    pub kind: TargetKind,
    /// Addressable bytes.
    pub size_bytes: u64,
}

/// One I/O to do. `Copy` and small: it lives on the stack of the worker's loop.
#[derive(Debug, Clone, Copy)]
pub struct Io {
    /// The worker's slot, given back in [`Done`].
    pub slot: u32,
    /// What to do.
    pub op: Op,
    /// Index into the worker's table of open targets (not into the Plan's).
    pub file: u32,
    /// Byte offset in the target.
    pub offset: u64,
    /// Bytes; 0 for a sync.
    pub len: u32,
    /// Start of the slot's buffer.
    pub buffer: *mut u8,
    /// Its priority, where the backend can say one with the I/O; 0: the thread's.
    pub priority: u16,
}

/// One completed I/O.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// Slot of the I/O.
    pub slot: u32,
    /// What came of it.
    pub outcome: Outcome,
    /// What the medium itself answered, where it failed there.
    pub status: Option<MediumStatus>,
}

impl Done {
    /// One of which the kernel alone tells.
    #[inline(always)]
    #[must_use]
    pub const fn new(slot: u32, outcome: Outcome) -> Self {
        Self {
            slot,
            outcome,
            status: None,
        }
    }

    /// Why it failed; none when it did not.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        let status = self.status;
        self.outcome.errno().map(|errno| Failure { errno, status })
    }
}

/// A way to do I/O.
///
/// The worker pushes I/Os, then calls [`IoBackend::flush`], then [`IoBackend::reap`]. It never
/// has more in flight than the depth the backend was made for.
pub trait IoBackend {
    /// [`IoBackend::push`] does the I/O before it returns: the worker pushes one, stamps
    /// before it and reaps after it.
    const SYNCHRONOUS: bool = false;

    /// Time is modelled: it advances by being waited for, and a worker waits for its
    /// reporter instead of lengthening an interval, so that runs repeat exactly.
    const VIRTUAL: bool = false;

    /// Time in nanoseconds since an origin shared by all workers of the run:
    /// `CLOCK_MONOTONIC` for real backends, virtual for the simulation.
    fn now_ns(&mut self) -> u64;

    /// Accepts one I/O. It may start at once (synchronous backends) or at the next
    /// [`IoBackend::flush`].
    fn push(&mut self, io: Io);

    /// I/Os to hand over at a time, while the rest of the batch is made; none: all of it in
    /// the next [`IoBackend::flush`].
    #[inline(always)]
    fn group(&self) -> Option<u32> {
        None
    }

    /// Hands over what was pushed: more of the batch follows. An error is the next
    /// [`IoBackend::flush`]'s.
    fn hand_over(&mut self) {}

    /// What is pushed for `file` from now on goes to this descriptor; none is in flight for it. Only of
    /// backends whose row says that they reopen.
    fn use_file(&mut self, file: u32, fd: RawFd) {
        unreachable!("file {file} cannot become descriptor {fd} here")
    }

    /// Does one I/O and says what came of it. Only for synchronous backends with nothing to be
    /// reaped.
    #[inline(always)]
    fn perform(&mut self, io: Io) -> Outcome {
        self.push(io);
        let mut outcome = Outcome::moved(0);
        self.reap(1, &mut |done| outcome = done.outcome);
        outcome
    }

    /// Hands over everything pushed, then waits until at least `wait_for` completions
    /// can be reaped or the clock reaches `until_ns`, whichever is first. With
    /// `wait_for` 0 and nothing in flight it sleeps until `until_ns` when that is in the
    /// future.
    ///
    /// # Errors
    /// The error of the system call when the backend itself is broken; errors of single
    /// I/Os come back in [`Done::outcome`].
    fn flush(&mut self, wait_for: u32, until_ns: u64) -> std::io::Result<()>;

    /// Gives up to `max` completions to `take`, oldest first; returns how many.
    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32;
}

/// Sleeps until the run's clock reaches `until_ns`.
pub fn sleep_until(clock: &loadstone_base::clock::Clock, until_ns: u64) {
    let now = clock.now_ns();
    if until_ns > now {
        std::thread::sleep(std::time::Duration::from_nanos(until_ns - now));
    }
}

#[cfg(test)]
mod tests;
