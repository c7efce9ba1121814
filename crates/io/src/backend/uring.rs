//! I/O through io_uring, one ring per worker.
//!
//! Knows which ring operation does which I/O, and when a registered buffer pays: where the
//! kernel would otherwise pin pages for each I/O (`O_DIRECT` on block devices and files),
//! and for reads that it copies through its own mapping of the buffer (6 % less CPU per
//! read of `/dev/zero`, 2 to 3 % of a page-cached file; writes to `/dev/null` get 1 %
//! dearer). Knows no pattern and no time but its clock. What a ring of another kind of entry
//! is given for an I/O is in its own file ([`Commands`]).

use std::io;
use std::os::fd::RawFd;

use super::groups::Groups;
use super::own_cpus::OwnCpus;
use super::ring::{abi, user_data, Ring, RingOptions, SubmissionEntry, NO_TIMEOUT};
use super::waiting::{WaitChoice, Way, SPIN_NS};
use super::{sleep_until, Done, Io, IoBackend, Op, OpenFile, Outcome, SyncKind};
use crate::memory::Mapping;
use crate::usage;
use loadstone_base::clock::Clock;
use loadstone_plan::TargetKind;

/// Entries that can be written between two system calls.
const MAX_SQ_ENTRIES: u32 = 1024;
/// Largest registered buffer the kernel takes.
pub(super) const MAX_FIXED_BYTES: usize = 1 << 30;

/// Hand-overs without waiting between two trials, once trials have failed too often.
const TRIAL_EVERY: u32 = 256;
/// Trials in a row that may fail after one that succeeded: a sleep saved is worth that many
/// calls in vain (10 us and more against 0.2 us).
const VAIN_TRIALS: u32 = 32;

/// Waits that long or longer are ended by an alarm in the ring: it is set once and serves
/// all waits until it goes off, where a timeout of their own has to be set and taken back
/// each time (5 % of the latency at depth 1 of a loop device, in a virtual machine).
const ALARM_NS: u64 = 1_000_000;
/// `user_data` of the alarm; slots are fewer.
const ALARM: u64 = u64::MAX;

/// What the Plan asks of the ring.
#[derive(Debug, Clone, Copy)]
pub struct UringOptions {
    /// Register files.
    pub registered_files: bool,
    /// Register buffers.
    pub fixed_buffers: bool,
    /// Poll for completions.
    pub iopoll: bool,
    /// Kernel submission thread.
    pub sqpoll: bool,
    /// The job sets the size of its batches: each is handed over by one call.
    pub whole_batches: bool,
    /// More CPUs than workers: one that spins, or stays on its CPU, takes no time from the others
    /// and from the threads that serve the device.
    pub has_room: bool,
}

/// What a ring is given for an I/O, and what it says of it.
pub trait Commands {
    /// Its entries.
    type Entry: SubmissionEntry;

    /// The entry for an I/O.
    fn entry(&mut self, io: &Io) -> Self::Entry;

    /// As [`IoBackend::use_file`].
    fn use_file(&mut self, file: u32, fd: RawFd) {
        unreachable!("file {file} cannot become descriptor {fd} here")
    }

    /// What a completion says.
    fn done(&self, completion: <Self::Entry as SubmissionEntry>::Completion) -> Done;
}

/// Per file: what never changes from one I/O to the next.
#[derive(Debug, Clone, Copy)]
struct FileCommand {
    fd: i32,
    flags: u8,
    read: u8,
    write: u8,
    block: bool,
}

/// The operations of the ring itself.
#[derive(Debug)]
pub struct Operations {
    files: Vec<FileCommand>,
    buffers_start: usize,
}

/// The io_uring backend.
#[derive(Debug)]
pub struct Uring<C: Commands = Operations> {
    clock: Clock,
    ring: Ring<C::Entry>,
    commands: C,
    in_flight: u32,
    iopoll: bool,
    sqpoll: bool,
    trials: Trials,
    groups: Groups,
    waiting: Option<WaitChoice>,
    cpus: Option<OwnCpus>,
    /// When the alarm goes off; none: it is not set.
    alarm_ns: Option<u64>,
    /// What the kernel reads when it takes the alarm's entry, maybe not in the first call.
    alarm_time: Box<abi::Timespec>,
    /// An error of a submission inside `push`, reported by the next `flush`.
    broken: Option<io::Error>,
}

impl Uring<Operations> {
    /// A ring for up to `depth` I/Os in flight on `files`, with buffers in `buffers`.
    /// Gives what could not be had in `notes`.
    ///
    /// # Errors
    /// The error of the set-up.
    pub fn new(
        clock: Clock,
        options: UringOptions,
        files: &[OpenFile],
        depth: u32,
        buffers: &Mapping,
        notes: &mut Vec<String>,
    ) -> io::Result<Self> {
        let (ring, registered) = open_ring(options, files, depth, notes)?;
        let pins = files.iter().any(pins_pages);
        let copies = files.iter().any(is_copied_to);
        let fixed = options.fixed_buffers && (pins || copies) && {
            let outcome = register_buffers(&ring, buffers);
            // Of copies it is a little dearer without, which is nothing to tell.
            if let (Err(error), true) = (&outcome, pins) {
                notes.push(unregistered(error));
            }
            outcome.is_ok()
        };
        let files = files
            .iter()
            .enumerate()
            .map(|(index, file)| command(file, index, registered, fixed))
            .collect();
        let buffers_start = buffers.start() as usize;
        let commands = Operations {
            files,
            buffers_start,
        };
        Ok(Self::of(clock, options, depth, ring, commands))
    }
}

impl<C: Commands> Uring<C> {
    /// The backend of a ring.
    pub(super) fn of(
        clock: Clock,
        options: UringOptions,
        depth: u32,
        ring: Ring<C::Entry>,
        commands: C,
    ) -> Self {
        let groups = if options.whole_batches || options.iopoll || options.sqpoll {
            Groups::none()
        } else {
            Groups::of_depth(depth)
        };
        let chooses = options.has_room && !options.iopoll && !options.sqpoll;
        let cpus = chooses.then(OwnCpus::of_thread).flatten();
        Self {
            clock,
            ring,
            commands,
            in_flight: 0,
            iopoll: options.iopoll,
            sqpoll: options.sqpoll,
            trials: Trials::new(),
            groups,
            waiting: chooses
                .then(|| WaitChoice::of_depth(depth, cpus.is_some()))
                .flatten(),
            cpus,
            alarm_ns: None,
            alarm_time: Box::new(abi::Timespec::of(0)),
            broken: None,
        }
    }

    /// The same ring with other commands.
    #[must_use]
    pub fn with<D: Commands<Entry = C::Entry>>(self, other: impl FnOnce(C) -> D) -> Uring<D> {
        Uring {
            clock: self.clock,
            ring: self.ring,
            commands: other(self.commands),
            in_flight: self.in_flight,
            iopoll: self.iopoll,
            sqpoll: self.sqpoll,
            trials: self.trials,
            groups: self.groups,
            waiting: self.waiting,
            cpus: self.cpus,
            alarm_ns: self.alarm_ns,
            alarm_time: self.alarm_time,
            broken: self.broken,
        }
    }

    /// Hands over what was pushed, and sees what comes of it if that is due.
    fn enter_group(&mut self) -> io::Result<()> {
        let group = self.ring.pending();
        if group == 0 {
            // All of it was done without the ring.
            return Ok(());
        }
        self.ring.enter(0, 0, false)?;
        if self.groups.is_trial() {
            if self.ring.has_work() {
                self.ring.enter(0, 0, true)?;
            }
            self.groups.note(self.ring.ready() >= group);
        }
        Ok(())
    }

    /// Hands over what was pushed, and looks for `wait_for` completions until then; true when they
    /// are there.
    fn look(&mut self, wait_for: u32, until_ns: u64) -> io::Result<bool> {
        if self.ring.pending() > 0 {
            self.ring.enter(0, 0, false)?;
        }
        let begun_ns = self.clock.now_ns();
        let until_ns = until_ns.min(begun_ns + SPIN_NS);
        let (came, now_ns) = loop {
            if self.ring.has_work() {
                self.ring.enter(0, 0, true)?;
            }
            let came = self.ring.ready() >= wait_for;
            let now_ns = self.clock.now_ns();
            if came || now_ns >= until_ns {
                break (came, now_ns);
            }
            std::hint::spin_loop();
        };
        if let Some(waiting) = &mut self.waiting {
            waiting.note(now_ns.saturating_sub(begun_ns), came);
        }
        Ok(came)
    }

    /// A window of the choice of how to wait is over.
    #[cold]
    fn choose_how_to_wait(&mut self) {
        let now_ns = self.clock.now_ns();
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        let before = waiting.way();
        waiting.turn(now_ns);
        usage::note_spun(waiting.take_spun_ns());
        if let Some(cpus) = &self.cpus {
            match (before == Way::Stay, waiting.way() == Way::Stay) {
                (false, true) => cpus.stay(),
                (true, false) => cpus.leave(),
                _ => {}
            }
        }
    }

    /// Sets the alarm and waits. It wakes whoever waits, for however many completions.
    #[cold]
    fn wait_with_new_alarm(
        &mut self,
        wait_for: u32,
        until_ns: u64,
        timeout_ns: u64,
    ) -> io::Result<()> {
        *self.alarm_time = abi::Timespec::of(timeout_ns);
        self.ring.write_timeout(&self.alarm_time, ALARM);
        self.alarm_ns = Some(until_ns);
        self.ring.enter(wait_for, NO_TIMEOUT, true)
    }
}

/// When to hand over without waiting first.
///
/// I/Os may be complete when the call that hands them over returns: the page cache has them, or
/// the kernel thread that serves a loop device ran in place of the caller. Sleeping would then
/// cost time for nothing. Where that never happens, a trial is made every [`TRIAL_EVERY`] times.
#[derive(Debug)]
struct Trials {
    /// Failures that are left until trials become rare.
    left: u32,
    /// Hand-overs until the next trial.
    due_in: u32,
}

impl Trials {
    fn new() -> Self {
        Self { left: 1, due_in: 0 }
    }

    #[inline]
    fn is_due(&mut self) -> bool {
        if self.due_in == 0 {
            return true;
        }
        self.due_in -= 1;
        false
    }

    #[inline]
    fn note(&mut self, came: bool) {
        if came {
            self.left = VAIN_TRIALS;
        } else if self.left > 1 {
            self.left -= 1;
        } else {
            self.due_in = TRIAL_EVERY - 1;
        }
    }
}

impl Commands for Operations {
    type Entry = abi::Sqe;

    #[inline(always)]
    fn entry(&mut self, io: &Io) -> abi::Sqe {
        let file = &self.files[io.file as usize];
        let mut entry = abi::Sqe {
            flags: file.flags,
            ioprio: io.priority,
            fd: file.fd,
            user_data: u64::from(io.slot),
            off: io.offset,
            addr: io.buffer as u64,
            len: io.len,
            ..abi::Sqe::default()
        };
        match io.op {
            Op::Read => self.transfer(&mut entry, file.read, abi::OP_READ),
            Op::Write => self.transfer(&mut entry, file.write, abi::OP_WRITE),
            Op::Trim => trim(&mut entry, io, file.block),
            Op::Sync(kind) => {
                entry.opcode = abi::OP_FSYNC;
                entry.off = 0;
                entry.addr = 0;
                entry.op_flags = match kind {
                    SyncKind::Data => abi::FSYNC_DATASYNC,
                    SyncKind::File => 0,
                };
                entry.len = 0;
            }
        }
        entry
    }

    /// None of them is registered.
    fn use_file(&mut self, file: u32, fd: RawFd) {
        self.files[file as usize].fd = fd;
    }

    #[inline(always)]
    fn done(&self, completion: abi::Cqe) -> Done {
        Done::new(completion.user_data as u32, Outcome::of(completion.result))
    }
}

impl Operations {
    /// Chooses the operation; a buffer across two registered ones goes without.
    #[inline]
    fn transfer(&self, entry: &mut abi::Sqe, opcode: u8, plain: u8) {
        entry.opcode = opcode;
        if opcode != plain {
            let start = entry.addr as usize - self.buffers_start;
            let index = start / MAX_FIXED_BYTES;
            entry.buf_index = index as u16;
            if (start + entry.len as usize - 1) / MAX_FIXED_BYTES != index {
                entry.opcode = plain;
            }
        }
    }
}

fn pins_pages(file: &OpenFile) -> bool {
    file.direct && matches!(file.kind, TargetKind::File | TargetKind::Block)
}

fn is_copied_to(file: &OpenFile) -> bool {
    file.kind == TargetKind::Char || !file.direct
}

/// Opens a ring for up to `depth` I/Os on `files`; says whether they are registered.
pub(super) fn open_ring<E: SubmissionEntry>(
    options: UringOptions,
    files: &[OpenFile],
    depth: u32,
    notes: &mut Vec<String>,
) -> io::Result<(Ring<E>, bool)> {
    let sq_entries = depth.clamp(1, MAX_SQ_ENTRIES).next_power_of_two();
    // One for the alarm.
    let cq_entries = (depth + 1).max(2 * sq_entries).next_power_of_two();
    let mut ring = Ring::new(&RingOptions {
        sq_entries,
        cq_entries,
        iopoll: options.iopoll,
        sqpoll: options.sqpoll,
    })?;
    if !options.sqpoll && ring.setup_flags() & abi::SETUP_DEFER_TASKRUN == 0 {
        notes.push(
            "io_uring without DEFER_TASKRUN (kernel before 6.1): completions cost more CPU".into(),
        );
    }
    ring.register_self();
    let registered = options.registered_files && !files.is_empty() && {
        let fds: Vec<i32> = files.iter().map(|file| file.fd).collect();
        let outcome = ring.register_files(&fds);
        if let Err(error) = &outcome {
            notes.push(format!("files are not registered: {error}"));
        }
        outcome.is_ok()
    };
    Ok((ring, registered))
}

/// What is told where buffers could not be registered.
pub(super) fn unregistered(error: &io::Error) -> String {
    format!("buffers are not registered: {error} (raise RLIMIT_MEMLOCK to have them fixed)")
}

pub(super) fn register_buffers<E: SubmissionEntry>(
    ring: &Ring<E>,
    buffers: &Mapping,
) -> io::Result<()> {
    let mut parts = Vec::new();
    let mut start = 0;
    while start < buffers.len() {
        let bytes = MAX_FIXED_BYTES.min(buffers.len() - start);
        parts.push(libc::iovec {
            iov_base: buffers.start().wrapping_add(start).cast(),
            iov_len: bytes,
        });
        start += bytes;
    }
    ring.register_buffers(&parts)
}

fn command(file: &OpenFile, index: usize, registered: bool, fixed: bool) -> FileCommand {
    let pins = fixed && pins_pages(file);
    FileCommand {
        fd: if registered { index as i32 } else { file.fd },
        flags: if registered { abi::SQE_FIXED_FILE } else { 0 },
        read: if pins || (fixed && is_copied_to(file)) {
            abi::OP_READ_FIXED
        } else {
            abi::OP_READ
        },
        write: if pins {
            abi::OP_WRITE_FIXED
        } else {
            abi::OP_WRITE
        },
        block: file.kind == TargetKind::Block,
    }
}

/// Discards on block devices, punches a hole in files.
fn trim(entry: &mut abi::Sqe, io: &Io, block: bool) {
    if block {
        entry.opcode = abi::OP_URING_CMD;
        entry.off = abi::BLOCK_CMD_DISCARD;
        entry.addr = io.offset;
        entry.addr3 = u64::from(io.len);
        entry.len = 0;
    } else {
        entry.opcode = abi::OP_FALLOCATE;
        entry.addr = u64::from(io.len);
        entry.len = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as u32;
    }
}

impl<C: Commands> IoBackend for Uring<C> {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    #[inline]
    fn push(&mut self, io: Io) {
        while self.ring.is_full() {
            if let Err(error) = self.ring.enter(0, 0, true) {
                self.broken = Some(error);
                return;
            }
        }
        let entry = self.commands.entry(&io);
        self.ring.write(entry);
        self.in_flight += 1;
    }

    #[inline(always)]
    fn group(&self) -> Option<u32> {
        Some(self.groups.now())
    }

    #[inline(never)]
    fn hand_over(&mut self) {
        if let Err(error) = self.enter_group() {
            self.broken = Some(error);
        }
    }

    fn use_file(&mut self, file: u32, fd: RawFd) {
        self.commands.use_file(file, fd);
    }

    #[inline(always)]
    fn flush(&mut self, wait_for: u32, until_ns: u64) -> io::Result<()> {
        self.groups.next_batch();
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        if self.in_flight == 0 {
            if wait_for == 0 {
                sleep_until(&self.clock, until_ns);
            }
            return Ok(());
        }
        let wait_for = if wait_for > self.ring.ready() {
            wait_for.min(self.in_flight)
        } else {
            0
        };
        if wait_for == 0 {
            return self.ring.enter(0, 0, self.iopoll);
        }
        if self
            .waiting
            .as_ref()
            .is_some_and(|waiting| waiting.way() == Way::Spin)
        {
            if self.look(wait_for, until_ns)? {
                return Ok(());
            }
        } else if !self.iopoll && !self.sqpoll && self.ring.pending() > 0 && self.trials.is_due() {
            self.ring.enter(0, 0, false)?;
            if self.ring.has_work() {
                self.ring.enter(0, 0, true)?;
            }
            let came = self.ring.ready() >= wait_for;
            self.trials.note(came);
            if came {
                return Ok(());
            }
        }
        let timeout_ns = until_ns.saturating_sub(self.clock.now_ns());
        if self.iopoll || self.sqpoll {
            return self.ring.enter(wait_for, timeout_ns, true);
        }
        if self.alarm_ns.is_none() && timeout_ns >= ALARM_NS && !self.ring.is_full() {
            return self.wait_with_new_alarm(wait_for, until_ns, timeout_ns);
        }
        let is_set = self.alarm_ns.is_some_and(|time_ns| time_ns <= until_ns);
        let timeout_ns = if is_set { NO_TIMEOUT } else { timeout_ns };
        self.ring.enter(wait_for, timeout_ns, true)
    }

    #[inline]
    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        let mut alarms = 0;
        let commands = &self.commands;
        let count = self.ring.reap(max, |cqe| {
            if user_data::<C::Entry>(&cqe) == ALARM {
                alarms += 1;
                return;
            }
            take(commands.done(cqe));
        });
        if alarms > 0 {
            self.alarm_ns = None;
        }
        self.in_flight -= count - alarms;
        let waiting = self.waiting.as_mut();
        if waiting.is_some_and(|waiting| waiting.completed(count - alarms)) {
            self.choose_how_to_wait();
        }
        count - alarms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hand-overs, counted from 0, at which a trial is made.
    fn made(trials: &mut Trials, hand_overs: u32, came: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut at = Vec::new();
        for number in 0..hand_overs {
            if trials.is_due() {
                at.push(number);
                trials.note(came(number));
            }
        }
        at
    }

    #[test]
    fn trials_that_never_succeed_are_rare() {
        let at = made(&mut Trials::new(), 1000, |_| false);
        assert_eq!(at, [0, 256, 512, 768]);
    }

    #[test]
    fn one_success_allows_as_many_failures_as_a_sleep_is_worth() {
        let at = made(&mut Trials::new(), 600, |number| number == 256);
        let expected: Vec<u32> = [0].into_iter().chain(256..=256 + VAIN_TRIALS).collect();
        assert_eq!(at[..expected.len()], expected);
        assert_eq!(at[expected.len()..], [256 + VAIN_TRIALS + TRIAL_EVERY]);
    }

    #[test]
    fn one_success_in_five_keeps_every_hand_over_a_trial() {
        assert_eq!(
            made(&mut Trials::new(), 1000, |number| number % 5 == 0).len(),
            1000
        );
    }
}
