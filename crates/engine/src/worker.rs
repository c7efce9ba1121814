//! One thread's loop: pick, hand over, reap, record.
//!
//! Knows the order of things within one batch and where the clock is read: once before
//! the kernel is entered and once after. Knows no backend by name and no file format.
//! In this loop nothing is allocated, locked or logged for an I/O, and no system call is
//! made but the backend's.

use std::io;

use crate::backend::{Backend, Op, SyncKind};
use crate::chain::Chains;
use crate::control::Message;
use crate::pace::Next as Due;
use crate::pattern::Next;
use crate::state::State;
use crate::stream::{Phase, Reason};
use crate::verify::verifier::Transfer;

/// Reads left out before other streams get their turn.
const SKIPS: u32 = 16_384;

/// Longest sleep: how late a stop may be noticed.
pub(crate) const NAP_NS: u64 = 20_000_000;

/// Before an arrival this long is spun away, not slept: a sleep ends this much late.
pub(crate) const SPIN_NS: u64 = 50_000;

/// A worker and its backend.
#[derive(Debug)]
pub struct Worker<B: Backend> {
    /// Way to do I/O.
    pub backend: B,
    /// Everything else.
    pub state: State,
}

impl<B: Backend> Worker<B> {
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
            }
            if B::SYNCHRONOUS {
                if let Some(index) = self.state.alone() {
                    now = self.streak(index, now);
                    continue;
                }
            }
            let issued = self.fill(now);
            if issued > 0 {
                self.state.count_submit(issued);
                if !B::SYNCHRONOUS {
                    let handed = self.backend.now_ns();
                    self.state.stamp_handed(handed);
                }
                if self.state.first {
                    self.state.first = false;
                    let handed_ns = self.state.first_handed_ns();
                    self.state.say(Message::First { handed_ns });
                }
            }
            let (wait_for, until_ns) = self.patience(now);
            self.backend.flush(wait_for, until_ns)?;
            now = self.backend.now_ns();
            if now >= self.state.next_event_ns {
                self.state.events(now, B::VIRTUAL);
            }
            let state = &mut self.state;
            let reaped = self
                .backend
                .reap(state.reap_max, &mut |done| state.complete(done, now));
            if reaped > 0 {
                state.settle(reaped, now);
            }
        }
        Ok(())
    }

    /// How many completions to wait for, and until when.
    #[inline]
    fn patience(&self, now: u64) -> (u32, u64) {
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
        (state.wait_target.min(state.in_flight), until_ns)
    }

    /// Issues up to a batch; returns how many.
    #[inline]
    fn fill(&mut self, now: u64) -> u32 {
        let budget = if B::SYNCHRONOUS {
            1
        } else {
            self.state.batch_max
        };
        let mut issued = 0;
        while issued < budget {
            let Some(index) = self.state.ready.pop_front() else {
                break;
            };
            let stream = &mut self.state.streams[index as usize];
            let most = (budget - issued).min(stream.submit);
            let before = stream.in_flight();
            let refills = stream.deepest == stream.depth;
            let (count, again) = if stream.simple {
                self.issue_simple(index, most, now)
            } else {
                self.issue_slow(index, most, now)
            };
            issued += count;
            let stream = &mut self.state.streams[index as usize];
            // One that stopped while nothing was in flight has only its last flushes to make: no
            // completion will call for it again.
            let again = again || (stream.phase == Phase::Flushing && stream.can_issue());
            stream.queued = again;
            stream.deepest = stream.deepest.max(before + count);
            let (submit, simple) = (stream.submit, stream.simple);
            let full = before > 0 && before + count == stream.depth;
            if again {
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
            .min(stream.free.len() as u32)
            .min(u32::try_from(stream.ops_left).unwrap_or(u32::MAX));
        let mut count = 0;
        while count < most {
            let stream = &mut self.state.streams[index as usize];
            let next = stream.generator.next();
            if u64::from(next.len) > stream.bytes_left {
                self.state.stop_issuing(index, Reason::Bytes, now);
                break;
            }
            let Some(slot) = stream.free.pop() else { break };
            stream.bytes_left = stream.bytes_left.wrapping_sub(u64::from(next.len));
            let intended_ns = stream.vacancies.take();
            self.issue::<true>(index, slot, &next, intended_ns, now);
            count += 1;
        }
        let stream = &mut self.state.streams[index as usize];
        if stream.ops_left != u64::MAX {
            stream.ops_left -= u64::from(count);
            if stream.ops_left == 0 && stream.phase == Phase::Running {
                self.state.stop_issuing(index, Reason::Ops, now);
            }
        }
        let stream = &self.state.streams[index as usize];
        (
            count,
            stream.phase == Phase::Running && !stream.free.is_empty(),
        )
    }

    /// Everything else: arrivals, pauses, flushes and the end.
    fn issue_slow(&mut self, index: u32, most: u32, now: u64) -> (u32, bool) {
        let mut count = 0;
        while count < most {
            let stream = &mut self.state.streams[index as usize];
            if !stream.can_issue() {
                return (count, false);
            }
            if stream.phase == Phase::Flushing {
                self.issue_final_flush(index, now);
                count += 1;
                continue;
            }
            if stream.not_before_ns > now {
                let time_ns = stream.not_before_ns;
                self.state.wake_at(index, time_ns);
                return (count, false);
            }
            // After its last write a stream has nothing to flush before: as in fio, what is to
            // be there at the end is asked for by a flush at the end.
            let is_through = stream.ops_left == 0 || stream.bytes_left == 0;
            let due = stream.flushing.due.take().filter(|_| !is_through);
            if let Some((file, kind)) = due {
                let floor_ns = stream.floor_ns();
                self.issue_flush(index, file, kind, floor_ns, now);
                count += 1;
                continue;
            }
            let issued = if stream.readback.is_some() {
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
    fn next_io(&mut self, index: u32, now: u64) -> Option<(Next, Option<u64>)> {
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
        let chained = stream.chains.as_ref().is_some_and(Chains::is_open);
        if stream.ops_left == 0 {
            if !chained {
                self.state.stop_issuing(index, Reason::Ops, now);
            }
            return false;
        }
        if let Some(next_look_ns) = stream.held_by_flow(now) {
            self.state.wake_at(index, next_look_ns);
            return false;
        }
        let held = stream.overlaps.as_mut().and_then(|own| own.held.take());
        let Some((next, arrival_ns)) = held.or_else(|| self.next_io(index, now)) else {
            return false;
        };
        let stream = &mut self.state.streams[index as usize];
        if let Some(overlaps) = &mut stream.overlaps {
            if overlaps.hits(&next) {
                overlaps.held = Some((next, arrival_ns));
                return false;
            }
        }
        if u64::from(next.len) > stream.bytes_left {
            match &mut stream.overlaps {
                // Its last writes have to be made before it is over.
                Some(overlaps) if chained => overlaps.held = Some((next, arrival_ns)),
                _ => self.state.stop_issuing(index, Reason::Bytes, now),
            }
            return false;
        }
        let Some(slot) = stream.free.pop() else {
            return false;
        };
        stream.bytes_left = stream.bytes_left.wrapping_sub(u64::from(next.len));
        stream.ops_left = if stream.ops_left == u64::MAX {
            u64::MAX
        } else {
            stream.ops_left - 1
        };
        let free_ns = stream.vacancies.take().max(stream.floor_ns());
        // Of a paced I/O its arrival counts, not when there happened to be room.
        let intended_ns = arrival_ns.unwrap_or(free_ns);
        if let Some(flow) = &mut stream.flow {
            flow.took();
        }
        let first = match (&stream.chains, &stream.verifier) {
            (Some(chains), Some(verifier)) => {
                let target = stream.uses[next.file as usize].target;
                chains.first(next, verifier.knows(target, next.offset, next.len))
            }
            _ => next,
        };
        self.issue_for(index, slot, (&first, &next), intended_ns, now);
        true
    }

    /// Issues what is due in one of the stream's chains; false when nothing is.
    fn issue_due(&mut self, index: u32, now: u64) -> bool {
        let stream = &mut self.state.streams[index as usize];
        let Some(chains) = &mut stream.chains else {
            return false;
        };
        let Some((next, due_ns)) = chains.take_due() else {
            return false;
        };
        let Some(slot) = stream.free.pop() else {
            unreachable!("a stream that can issue has a free slot")
        };
        let free_ns = stream.vacancies.take().max(stream.floor_ns());
        self.issue_for(index, slot, (&next, &next), due_ns.unwrap_or(free_ns), now);
        true
    }

    /// Issues an I/O for one that was asked for: itself, or what comes before it.
    fn issue_for(
        &mut self,
        index: u32,
        slot: u32,
        (next, asked): (&Next, &Next),
        intended_ns: u64,
        now: u64,
    ) {
        let stream = &mut self.state.streams[index as usize];
        if next.op == Op::Write {
            stream.note_write(next.file);
        }
        stream.emptying = stream.free.is_empty() && stream.low < stream.depth;
        if let Some(overlaps) = &mut stream.overlaps {
            overlaps.started(slot, *next);
        }
        if let Some(chains) = &mut stream.chains {
            chains.started(slot - stream.first_slot, *next, *asked);
        }
        if !stream.is_reading_back() && stream.note_thought(true, now) {
            self.state.start_pause(index);
        }
        self.issue::<false>(index, slot, next, intended_ns, now);
    }

    /// The next I/O of a stream without arrivals. Reads a verifier does not want are left
    /// out, so many at a time that other streams need not wait for long.
    fn next_unpaced(&mut self, index: u32, now: u64) -> Option<Next> {
        let stream = &mut self.state.streams[index as usize];
        for _ in 0..SKIPS {
            let next = stream.generator.next();
            let target = stream.uses[next.file as usize].target;
            let unwanted = stream
                .verifier
                .as_ref()
                .is_some_and(|verifier| verifier.skips(next.op, target, next.offset, next.len));
            if !unwanted || u64::from(next.len) > stream.bytes_left {
                return Some(next);
            }
            stream.bytes_left = stream.bytes_left.wrapping_sub(u64::from(next.len));
            if stream.ops_left != u64::MAX {
                stream.ops_left -= 1;
                if stream.ops_left == 0 {
                    self.state.stop_issuing(index, Reason::Ops, now);
                    return None;
                }
            }
        }
        self.state.wake_at(index, now + 1);
        None
    }

    fn issue_flush(&mut self, index: u32, file: u32, kind: SyncKind, floor_ns: u64, now: u64) {
        let stream = &mut self.state.streams[index as usize];
        let Some(slot) = stream.free.pop() else {
            return;
        };
        let next = Next {
            op: Op::Sync(kind),
            file,
            offset: 0,
            len: 0,
        };
        let intended_ns = stream.vacancies.take().max(floor_ns);
        self.issue::<false>(index, slot, &next, intended_ns, now);
    }

    fn issue_final_flush(&mut self, index: u32, now: u64) {
        let stream = &mut self.state.streams[index as usize];
        stream.flushing.at_end -= 1;
        let file = stream.flushing.at_end;
        self.issue_flush(index, file, SyncKind::File, now, now);
    }

    /// Puts one I/O into its slot and gives it to the backend. A simple stream verifies
    /// nothing.
    #[inline(always)]
    fn issue<const SIMPLE: bool>(
        &mut self,
        index: u32,
        slot_index: u32,
        next: &Next,
        intended_ns: u64,
        now: u64,
    ) {
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
            if let Some(verifier) = &mut stream.verifier {
                let io = Transfer::of(slot_index - stream.first_slot, slot);
                let len = if next.op == Op::Write {
                    next.len as usize
                } else {
                    0
                };
                // SAFETY: the slot's buffer is at least the stream's largest block and is
                // not in use by the kernel while the slot is free.
                let bytes = unsafe { std::slice::from_raw_parts_mut(slot.buffer as *mut u8, len) };
                verifier.issue(&io, bytes);
            }
            if let Some(readback) = &mut stream.readback {
                let len = if next.op == Op::Write {
                    next.len as usize
                } else {
                    0
                };
                // SAFETY: as above.
                let bytes = unsafe { std::slice::from_raw_parts_mut(slot.buffer as *mut u8, len) };
                readback.issue(slot_index - stream.first_slot, next, now, bytes);
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
}

/// True when the Plan set the batch, so each one is handed over by itself.
#[inline]
fn stream_has_batch(submit: u32) -> bool {
    submit != u32::MAX
}

mod fill_slot;
mod header_passes;
mod single_io;
#[cfg(test)]
mod tests;
