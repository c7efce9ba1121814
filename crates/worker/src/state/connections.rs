//! Opens and closes of streams that do so again and again: begun, timed, recorded.
//!
//! Knows one call at a time, of a stream with nothing in flight. Its first slot says what is under
//! way, so that a stuck worker can be told from outside what it waits for. Knows no file.

use super::WorkerState;
use crate::control::Message;
use crate::events::{Event, IoFailure};
use crate::record::RepeatedLatency;
use crate::slots::NOT_HANDED;
use crate::stream::Reason;
use loadstone_base::ops::{AnyOp, FileOp};
use loadstone_base::run_error::RunError;

impl WorkerState {
    /// A stream waits for its file to be opened, and nothing of it is in flight.
    #[must_use]
    pub fn are_to_be_opened(&self) -> bool {
        !self.to_be_opened.is_empty()
    }

    /// The next of them; none when there is no more.
    pub fn next_to_be_opened(&mut self) -> Option<u32> {
        let due = self.to_be_opened.pop();
        self.plan_event();
        let running = |&index: &u32| self.streams[index as usize].life.is_running();
        match due.filter(|index| !running(index)) {
            // Over meanwhile.
            Some(_) => self.next_to_be_opened(),
            None => due,
        }
    }

    /// A stream with a connection has nothing in flight and waits: its turn is the next event.
    pub(super) fn note_to_be_opened(&mut self, index: u32) {
        self.to_be_opened.push(index);
        self.next_event_ns = 0;
    }

    /// A call begins.
    pub fn begin_call(&mut self, index: u32, op: FileOp, now: u64) {
        let stream = &self.streams[index as usize];
        let target = stream.uses[0].target;
        let slot = &mut self.slots[stream.first_slot as usize];
        (slot.intended_ns, slot.picked_ns, slot.handed_ns) = (now, now, now);
        (slot.offset, slot.len, slot.target) = (0, 0, target);
        slot.file_op = Some(op);
        self.counters[index as usize].file_ops[op.index()].issued += 1;
    }

    /// A call, or a whole connection, ends well.
    pub fn end_call(&mut self, index: u32, op: FileOp, begun_ns: u64, now: u64) {
        self.leave_call(index);
        let took_ns = now.saturating_sub(begun_ns);
        let row = self.row_of(index, op);
        self.table.add(&RepeatedLatency {
            row,
            count: 1,
            bytes: 0,
            values_ns: [took_ns, 0, took_ns, 0],
        });
        let tally = &mut self.counters[index as usize].file_ops[op.index()];
        tally.completed += 1;
        // A connection is begun by its open, and told when it is over.
        tally.issued = tally.issued.max(tally.completed);
    }

    /// Its file is open: it goes on.
    pub fn opened(&mut self, index: u32, now: u64) {
        self.streams[index as usize].room.is_opened(now);
        self.enqueue(index);
    }

    /// Its file cannot be opened, or is another one now: the stream ends.
    pub fn fail_to_open(&mut self, index: u32, why: &RunError, now: u64) {
        self.leave_call(index);
        let row = self.row_of(index, FileOp::Open);
        self.table.totals_mut(row).errors += 1;
        self.counters[index as usize].file_ops[FileOp::Open.index()].failed += 1;
        let stream = &self.streams[index as usize];
        let hint = match why {
            RunError::Target { hint, .. } if !hint.is_empty() => format!(": {hint}"),
            _ => String::new(),
        };
        self.say(Message::Event(Event::IoError(IoFailure {
            t_ns: self.run_time(now),
            stream: stream.id,
            target: stream.uses[0].target,
            op: FileOp::Open.name(),
            offset: 0,
            bytes: 0,
            errno: 0,
            moved: 0,
            message: format!("{}: opened again: {why}{hint}", FileOp::Open.name()),
        })));
        self.end_because(index, Reason::Error, now);
    }

    fn leave_call(&mut self, index: u32) {
        let first_slot = self.streams[index as usize].first_slot;
        let slot = &mut self.slots[first_slot as usize];
        (slot.handed_ns, slot.file_op) = (NOT_HANDED, None);
    }

    fn row_of(&self, index: u32, op: FileOp) -> u32 {
        let stream = &self.streams[index as usize];
        let cell = self.plan.streams[stream.id as usize].files[0].cell;
        self.rows.row(cell, AnyOp::File(op)) + stream.ramp()
    }
}
