//! One thread's loop: pick, hand over, reap, record.
//!
//! Knows the order of things within one batch and where the clock is read: once before
//! the kernel is entered and once after. Knows no backend by name and no file format.
//! In this loop nothing is allocated, locked or logged for an I/O, and no system call is
//! made but the backend's.

use std::io;

use crate::control::Message;
use crate::slots::Slot;
use crate::state::WorkerState;
use crate::stream::{Checks, Reason};
use loadstone_generation::chain::Chains;
use loadstone_generation::pace::NextStart as Due;
use loadstone_generation::pattern::NextIo;
use loadstone_io::backend::{IoBackend, Op, SyncKind};

/// Reads left out before other streams get their turn.
const SKIPS: u32 = 16_384;

/// Longest sleep: how late a stop may be noticed.
pub const NAP_NS: u64 = 20_000_000;

/// Before an arrival this long is spun away, not slept: a sleep ends this much late.
pub const SPIN_NS: u64 = 50_000;

/// A worker and its backend.
#[derive(Debug)]
pub struct WorkerLoop<B: IoBackend> {
    /// Way to do I/O.
    pub backend: B,
    /// Everything else.
    pub state: WorkerState,
}

impl<B: IoBackend> WorkerLoop<B> {
    /// Runs the worker's streams to their ends.
    ///
    /// # Errors
    /// When the backend breaks; I/O errors are events.
    pub fn run(&mut self) -> io::Result<()> {
        let now = self.backend.now_ns();
        self.state.begin(now, B::VIRTUAL);
        let outcome = self.work(now);
        if !B::VIRTUAL && !B::SYNCHRONOUS {
            self.state.note_depth();
        }
        let now = self.backend.now_ns();
        self.state.finish(now);
        outcome
    }

    fn work(&mut self, mut now: u64) -> io::Result<()> {
        while self.state.alive > 0 {
            if now >= self.state.next_event_ns || self.state.has_orders() {
                self.state.events(now, B::VIRTUAL);
                if self.state.alive == 0 {
                    break;
                }
                if self.state.are_to_be_opened() {
                    now = self.reconnect();
                    continue;
                }
            }
            if B::SYNCHRONOUS {
                if let Some(index) = self.state.alone() {
                    now = self.streak(index, now);
                    continue;
                }
            }
            let issued = self.fill(now);
            if issued > 0 {
                if B::SYNCHRONOUS {
                    self.state.count_submit(issued);
                } else {
                    let handed = self.backend.now_ns();
                    self.state.hand_over(handed);
                }
                if self.state.first {
                    self.state.first = false;
                    let handed_ns = self.state.first_handed_ns();
                    self.state.say(Message::First { handed_ns });
                }
            }
            let (wait_for, until_ns) = self.wait_limits(now);
            self.backend.flush(wait_for, until_ns)?;
            now = self.backend.now_ns();
            if now >= self.state.next_event_ns {
                self.state.events(now, B::VIRTUAL);
            }
            let state = &mut self.state;
            let reaped = self
                .backend
                .reap(state.wait.reap_max, &mut |done| state.complete(done, now));
            if reaped > 0 {
                state.settle(reaped, now);
            }
        }
        Ok(())
    }

    /// How many completions to wait for, and until when.
    #[inline]
    fn wait_limits(&self, now: u64) -> (u32, u64) {
        let state = &self.state;
        if !state.ready.is_empty() || state.spin_until_ns > now {
            return (0, 0);
        }
        let mut until_ns = state.next_event_ns.min(now + NAP_NS);
        if !B::VIRTUAL && state.spins {
            if until_ns <= now + SPIN_NS {
                return (0, 0);
            }
            until_ns -= SPIN_NS;
        }
        (state.wait.target.min(state.in_flight), until_ns)
    }

    /// Issues up to a batch; returns how many.
    #[inline]
    fn fill(&mut self, now: u64) -> u32 {
        let budget = if B::SYNCHRONOUS {
            1
        } else {
            self.state.wait.batch_max
        };
        let mut issued = 0;
        while issued < budget {
            let Some(index) = self.state.ready.pop_front() else {
                break;
            };
            let stream = &mut self.state.streams[index as usize];
            let most = (budget - issued).min(stream.submit);
            stream.turn.take();
            let before = stream.room.in_flight();
            let refills = stream.room.deepest() == stream.room.depth();
            let (count, again) = if stream.life.is_simple() {
                self.issue_simple(index, most, now)
            } else {
                self.issue_slow(index, most, now)
            };
            issued += count;
            let stream = &mut self.state.streams[index as usize];
            stream.room.note_depth(before + count);
            let (submit, simple) = (stream.submit, stream.life.is_simple());
            let full = before > 0 && before + count == stream.room.depth();
            if again && stream.turn.queue() {
                self.state.ready.push_back(index);
            }
            if stream_has_batch(submit) || (refills && (simple || full)) {
                self.state.count_together(index, before + count, count);
            } else {
                self.state.count_one_by_one(index, before, count);
            }
            if stream_has_batch(submit) && count > 0 {
                break;
            }
        }
        issued
    }

    /// The closed loop: nothing but free slots and limits decides.
    #[inline]
    fn issue_simple(&mut self, index: u32, most: u32, now: u64) -> (u32, bool) {
        let stream = &mut self.state.streams[index as usize];
        let most = most
            .min(stream.room.free())
            .min(u32::try_from(stream.left.ops()).unwrap_or(u32::MAX));
        let mut count = 0;
        while count < most {
            let stream = &mut self.state.streams[index as usize];
            let next = stream.generator.next();
            if !stream.left.fits(next.len) {
                self.state.stop_issuing(index, Reason::Bytes, now);
                break;
            }
            let Some((slot, intended_ns)) = stream.room.take() else {
                break;
            };
            stream.left.spend_bytes(next.len);
            self.issue::<true>(index, slot, &next, intended_ns, now);
            count += 1;
        }
        let stream = &mut self.state.streams[index as usize];
        if stream.left.counts_ops() {
            stream.left.spend_ops(count);
            if stream.left.is_out_of_ops() {
                self.state.stop_issuing(index, Reason::Ops, now);
            }
        }
        let stream = &self.state.streams[index as usize];
        (count, stream.life.is_simple() && stream.room.free() > 0)
    }

    /// Everything else: arrivals, pauses, flushes and the end.
    fn issue_slow(&mut self, index: u32, most: u32, now: u64) -> (u32, bool) {
        let mut count = 0;
        while count < most {
            let stream = &mut self.state.streams[index as usize];
            if !stream.can_issue() {
                return (count, false);
            }
            if stream.life.is_flushing() {
                count += u32::from(self.issue_final_flush(index, now));
                continue;
            }
            let paused_until_ns = stream.paused_until_ns();
            if paused_until_ns > now {
                self.state.wake_at(index, paused_until_ns);
                return (count, false);
            }
            // After its last write a stream has nothing to flush before: as in fio, what is to
            // be there at the end is asked for by a flush at the end.
            let is_through = stream.left.is_through();
            let due = stream.flushes.take_due().filter(|_| !is_through);
            if let Some((file, kind)) = due {
                count += u32::from(self.issue_flush(index, file, kind, None, now));
                continue;
            }
            let issued = if matches!(stream.checks, Checks::Headers(_)) {
                self.issue_kept(index, now)
            } else {
                self.issue_one(index, now)
            };
            if !issued {
                return (count, false);
            }
            count += 1;
        }
        (count, self.state.streams[index as usize].can_issue())
    }

    /// The next transfer, with the time of its arrival when it is paced; none when there
    /// is nothing to issue now.
    fn next_io(&mut self, index: u32, now: u64) -> Option<(NextIo, Option<u64>)> {
        let stream = &mut self.state.streams[index as usize];
        let made = match stream.schedule.as_ref().map(|schedule| schedule.next(now)) {
            None => match self.next_unpaced(index, now) {
                Some(next) => (next, None),
                None => return None,
            },
            Some(Due::Unpaced(op)) => (stream.generator.next_op(op), None),
            Some(Due::Paced { op, intended_ns }) => {
                let next = stream.generator.next_op(op);
                if let Some(schedule) = stream.schedule.as_mut() {
                    schedule.issued(op, next.len);
                }
                (next, Some(intended_ns))
            }
            Some(Due::Wait(time_ns)) => {
                self.state.wake_at(index, time_ns);
                return None;
            }
        };
        Some(made)
    }

    /// Issues one transfer; false when there is nothing to issue now.
    fn issue_one(&mut self, index: u32, now: u64) -> bool {
        if self.issue_due(index, now) {
            return true;
        }
        let stream = &mut self.state.streams[index as usize];
        let chained = stream.checks.chains().is_some_and(Chains::is_open);
        if stream.left.is_out_of_ops() {
            if !chained {
                self.state.stop_issuing(index, Reason::Ops, now);
            }
            return false;
        }
        if let Some(next_look_ns) = stream.held_by_flow(now) {
            self.state.wake_at(index, next_look_ns);
            return false;
        }
        let Some((next, arrival_ns)) = self.next_apart(index, now) else {
            return false;
        };
        let stream = &mut self.state.streams[index as usize];
        if !stream.left.fits(next.len) {
            match &mut stream.overlaps {
                // Its last writes have to be made before it is over.
                Some(overlaps) if chained => overlaps.held = Some((next, arrival_ns)),
                _ => self.state.stop_issuing(index, Reason::Bytes, now),
            }
            return false;
        }
        let Some((slot, free_ns)) = stream.take_slot_for(&next) else {
            return false;
        };
        // Of a paced I/O its arrival counts, not when there happened to be room.
        let intended_ns = arrival_ns.unwrap_or(free_ns);
        let first = match &stream.checks {
            Checks::Stamps {
                verifier,
                chains: Some(chains),
            } => {
                let target = stream.uses[next.file as usize].target;
                chains.first(next, verifier.knows(target, next.offset, next.len))
            }
            _ => next,
        };
        self.issue_for(index, slot, (&first, &next), intended_ns, now);
        true
    }

    /// The next I/O and its arrival; none while one in flight has part of its range.
    #[inline(always)]
    fn next_apart(&mut self, index: u32, now: u64) -> Option<(NextIo, Option<u64>)> {
        let stream = &mut self.state.streams[index as usize];
        let held = stream.overlaps.as_mut().and_then(|own| own.held.take());
        let (next, arrival_ns) = held.or_else(|| self.next_io(index, now))?;
        if let Some(overlaps) = &mut self.state.streams[index as usize].overlaps {
            if overlaps.hits(&next) {
                overlaps.held = Some((next, arrival_ns));
                return None;
            }
        }
        Some((next, arrival_ns))
    }

    /// Issues what is due in one of the stream's chains; false when nothing is.
    fn issue_due(&mut self, index: u32, now: u64) -> bool {
        let stream = &mut self.state.streams[index as usize];
        let due = stream.checks.chains_mut().and_then(Chains::take_due);
        let Some((next, due_ns)) = due else {
            return false;
        };
        let Some((slot, free_ns)) = stream.take_slot() else {
            unreachable!("a stream that can issue has a free slot")
        };
        self.issue_for(index, slot, (&next, &next), due_ns.unwrap_or(free_ns), now);
        true
    }

    /// Issues an I/O for one that was asked for: itself, or what comes before it.
    fn issue_for(
        &mut self,
        index: u32,
        slot: u32,
        (next, asked): (&NextIo, &NextIo),
        intended_ns: u64,
        now: u64,
    ) {
        let stream = &mut self.state.streams[index as usize];
        if next.op == Op::Write {
            stream.flushes.note_write(next.file);
        }
        stream.room.note_issued();
        stream.note_connected();
        if let Some(overlaps) = &mut stream.overlaps {
            overlaps.started(slot, *next);
        }
        if let Some(chains) = stream.checks.chains_mut() {
            chains.started(slot - stream.first_slot, *next, *asked);
        }
        let pause = stream.note_thought(true, now);
        self.state.spin_through(pause);
        self.issue::<false>(index, slot, next, intended_ns, now);
    }

    /// The next I/O of a stream without arrivals. Reads a verifier does not want are left
    /// out, so many at a time that other streams need not wait for long.
    fn next_unpaced(&mut self, index: u32, now: u64) -> Option<NextIo> {
        let stream = &mut self.state.streams[index as usize];
        for _ in 0..SKIPS {
            let next = stream.generator.next();
            let target = stream.uses[next.file as usize].target;
            let unwanted = stream
                .checks
                .verifier()
                .is_some_and(|verifier| verifier.skips(next.op, target, next.offset, next.len));
            if !unwanted || !stream.left.fits(next.len) {
                return Some(next);
            }
            stream.left.spend_bytes(next.len);
            stream.left.spend_ops(1);
            if stream.left.is_out_of_ops() {
                self.state.stop_issuing(index, Reason::Ops, now);
                return None;
            }
        }
        self.state.wake_at(index, now + 1);
        None
    }

    /// Issues a flush that should start as soon as there is room, or then; false when there is
    /// none.
    fn issue_flush(
        &mut self,
        index: u32,
        file: u32,
        kind: SyncKind,
        start_ns: Option<u64>,
        now: u64,
    ) -> bool {
        let stream = &mut self.state.streams[index as usize];
        let Some((slot, free_ns)) = stream.take_slot() else {
            return false;
        };
        let next = NextIo {
            op: Op::Sync(kind),
            file,
            offset: 0,
            len: 0,
        };
        let intended_ns = start_ns.unwrap_or(free_ns);
        self.issue::<false>(index, slot, &next, intended_ns, now);
        true
    }

    fn issue_final_flush(&mut self, index: u32, now: u64) -> bool {
        let stream = &mut self.state.streams[index as usize];
        let Some(file) = stream.flushes.take_last() else {
            return false;
        };
        self.issue_flush(index, file, SyncKind::File, Some(now), now)
    }

    /// Puts one I/O into its slot and gives it to the backend. A simple stream verifies
    /// nothing.
    #[inline(always)]
    fn issue<const SIMPLE: bool>(
        &mut self,
        index: u32,
        slot_index: u32,
        next: &NextIo,
        intended_ns: u64,
        now: u64,
    ) {
        let made = self.state.pending.len() as u32;
        if self.backend.group().is_some_and(|group| made >= group) {
            self.hand_over_group();
        }
        let state = &mut self.state;
        let stream = &mut state.streams[index as usize];
        let slot = &mut state.slots[slot_index as usize];
        let mut io = fill_slot::io(stream, slot_index, slot, next, intended_ns, now);
        fill_slot::fill(stream, slot);
        if !SIMPLE {
            let chosen = (stream.priorities.as_mut())
                .and_then(|own| own.choose(next.op, next.len, next.file));
            slot.priority = chosen.map(|(priority, _)| priority);
            if let Some((priority, row)) = chosen {
                (io.priority, slot.row) = (priority, row);
            }
            let own_number = slot_index - stream.first_slot;
            match &mut stream.checks {
                Checks::Nothing => {}
                Checks::Stamps { verifier, .. } => {
                    let io = slot.transfer(own_number);
                    // SAFETY: nothing else uses the buffer while the slot is free.
                    verifier.issue(&io, unsafe { written(slot, next) });
                }
                Checks::Headers(readback) => {
                    // SAFETY: as above.
                    let bytes = unsafe { written(slot, next) };
                    readback.issue(own_number, next, now, bytes);
                }
            }
        }
        state.counters[index as usize].issued[slot.op as usize] += 1;
        if B::SYNCHRONOUS {
            slot.handed_ns = self.backend.now_ns();
        } else {
            state.pending.push(slot_index);
        }
        self.backend.push(io);
    }

    /// Hands over what was made of a batch so far.
    #[inline(never)]
    fn hand_over_group(&mut self) {
        let handed = self.backend.now_ns();
        self.state.hand_over(handed);
        self.backend.hand_over();
    }
}

/// The bytes of a slot's buffer that are written; none of an I/O that writes nothing.
///
/// # Safety
/// Nobody else uses the buffer for as long as the slice lives: the kernel does not while the slot
/// is free. It is at least as long as the stream's largest block.
unsafe fn written<'a>(slot: &Slot, next: &NextIo) -> &'a mut [u8] {
    if next.op != Op::Write {
        return &mut [];
    }
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(slot.buffer as *mut u8, next.len as usize) }
}

/// True when the Plan set the batch, so each one is handed over by itself.
#[inline]
fn stream_has_batch(submit: u32) -> bool {
    submit != u32::MAX
}

mod connections;
mod fill_slot;
mod header_passes;
mod single_io;
#[cfg(test)]
mod tests;
