//! How a stream ends: it drains, flushes, is told, or is given up.
//!
//! Knows phases and reasons. Knows no clock of its own.

use super::{flush_grace_ns, WorkerState, LEAVE_NS};
use crate::control::{Message, Stop};
use crate::events::{Event, StreamEnd, MAX_ERRORS_PER_TARGET};
use crate::slots::NOT_HANDED;
use crate::stream::Reason;

impl WorkerState {
    /// Issues nothing more for a stream.
    #[cold]
    pub fn stop_issuing(&mut self, index: u32, reason: Reason, now: u64) {
        if !self.streams[index as usize].stop(reason) {
            return;
        }
        self.set_grace(index, now + self.grace_ns());
        if self.streams[index as usize].room.in_flight() == 0 {
            self.drained(index, now);
        }
    }

    /// Ends a stream for this reason, also one that was ending for another.
    #[cold]
    pub(super) fn end_because(&mut self, index: u32, reason: Reason, now: u64) {
        self.stop_issuing(index, reason, now);
        self.streams[index as usize].life.blame(reason);
    }

    /// How long what is in flight may take after the last I/O was issued.
    pub(super) fn grace_ns(&self) -> u64 {
        match self.stop_seen {
            Stop::Now => LEAVE_NS,
            Stop::No | Stop::Drain => self.plan.grace_ns,
        }
    }

    /// Nothing is in flight any more.
    pub(super) fn drained(&mut self, index: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        if stream.flushes.are_left() {
            if stream.life.flush() {
                let grace = flush_grace_ns(&self.plan, stream.id, self.stop_seen);
                self.set_grace(index, now.saturating_add(grace));
            }
            self.enqueue(index);
        } else {
            self.end_stream(index, now);
        }
    }

    pub(super) fn end_stream(&mut self, index: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        let Some(ending) = stream.life.end() else {
            return;
        };
        let (id, reason) = (stream.id, ending.reason);
        // A stream that ran its time ended with it, not with its last completion.
        let due = if reason == Reason::Runtime {
            ending.end_ns
        } else {
            0
        };
        let ended = stream.last_done_ns().max(due);
        let ended = if ended == 0 { now } else { ended };
        let counters = self.counters[index as usize];
        let ended_ns = self.run_time(ended).max(counters.started_ns);
        self.alive -= 1;
        self.say(Message::Event(Event::StreamEnd(Box::new(StreamEnd {
            t_ns: self.run_time(now),
            stream: id,
            reason: reason.name(),
            started_ns: counters.started_ns,
            ramp_end_ns: counters.ramp_end_ns.min(ended_ns),
            ended_ns,
            issued: counters.issued,
            completed: counters.completed,
            failed: counters.failed,
            file_ops: counters.file_ops(&self.plan.streams[id as usize]),
            depth: counters.depth,
            submit_batches: self.batches.submit,
            complete_batches: self.batches.complete,
            backend: self.backend_name(),
        }))));
        self.say_verified(index, now);
        self.lines.control.has_ended(id, ended_ns);
        let limits = &self.plan.streams[id as usize].limits;
        if limits.ends_stage || (limits.ends_stage_on_error && reason.is_failure()) {
            self.lines.control.end_stage(self.stage);
        }
        self.wait.is_stale = true;
    }

    /// Says when a closed loop never had as many I/Os outstanding as it was asked for.
    pub fn note_depth(&self) {
        let (mut deepest, mut asked) = (0, 0);
        for (stream, counters) in self.streams.iter().zip(&*self.counters) {
            let issued: u64 = counters.issued.iter().sum();
            let closed =
                stream.schedule.is_none() && stream.thinking.is_none() && stream.search.is_none();
            if closed && issued >= u64::from(stream.room.depth()) {
                deepest += stream.room.deepest();
                asked += stream.room.depth();
            }
        }
        if deepest < asked {
            self.say(Message::Event(Event::Note {
                text: format!(
                    "{deepest} of iodepth {asked} were outstanding at most: the target completes I/O inside the submitting call"
                ),
                worker: Some(self.worker),
                target: None,
            }));
        }
    }

    /// The time of grace is over: what is in flight is reported and abandoned.
    pub(super) fn give_up(&mut self, index: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        if stream.room.in_flight() > 0 {
            self.lost = true;
            if stream.life.is_flushing() {
                // What it wrote counts over the time in which it should have become durable, too.
                stream.note_done(now);
            }
            if self.stop_seen != Stop::Now {
                stream.life.blame(Reason::Hung);
            }
            let (first, depth, id) = (stream.first_slot, stream.room.depth(), stream.id);
            let mut said = 0;
            for slot_index in first..first + depth {
                let slot = self.slots[slot_index as usize];
                if slot.handed_ns == NOT_HANDED {
                    continue;
                }
                self.in_flight -= 1;
                self.slots[slot_index as usize].handed_ns = NOT_HANDED;
                if let Some(verifier) = self.streams[index as usize].checks.verifier_mut() {
                    verifier.abandon(&slot.transfer(slot_index - first));
                }
                if said < MAX_ERRORS_PER_TARGET {
                    said += 1;
                    self.say(Message::Event(Event::Hung {
                        t_ns: self.run_time(now),
                        stream: id,
                        target: slot.target,
                        op: slot.op_name(),
                        offset: slot.offset,
                        bytes: slot.len,
                        age_ns: now.saturating_sub(slot.handed_ns),
                    }));
                }
            }
        }
        self.end_stream(index, now);
    }
}
