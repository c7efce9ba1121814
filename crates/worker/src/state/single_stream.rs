//! The state of a stream that is alone and does one I/O at a time.
//!
//! Knows what such I/Os touch and looks it up once for all of them. Knows no backend.

use super::completion::start_run;
use super::WorkerState;
use crate::control::Control;
use crate::record::CounterTable;
use crate::slots::{batch_column, Counters, Slot};
use crate::stream::StreamState;

/// What the I/Os of a streak touch.
#[derive(Debug)]
pub struct SingleStream<'a> {
    /// The stream.
    pub stream: &'a mut StreamState,
    /// Its only slot.
    pub slot: &'a mut Slot,
    /// Its counters.
    pub counters: &'a mut Counters,
    table: &'a mut CounterTable,
    control: &'a Control,
    /// 1 in the ramp.
    ramp: u32,
    orders_seen: u32,
    next_event_ns: u64,
}

impl SingleStream<'_> {
    /// Something else has to be done first.
    #[inline(always)]
    pub fn is_over(&self, now: u64) -> bool {
        now >= self.next_event_ns || self.control.orders() != self.orders_seen
    }

    /// Records the end of the I/O. The slot stays taken.
    #[inline(always)]
    pub fn complete(&mut self, now: u64) {
        let slot = &*self.slot;
        let row = slot.row + self.ramp;
        if slot.handed_ns == slot.intended_ns {
            let lat_ns = now.saturating_sub(slot.intended_ns);
            self.table.receive(row, slot.len, lat_ns);
        } else {
            self.table
                .add(&start_run(row, slot, u64::from(slot.len), now));
        }
        self.counters.completed[slot.op as usize] += 1;
    }
}

impl WorkerState {
    /// The only stream that can issue, when its I/Os need nothing but one after the other.
    #[inline]
    #[must_use]
    pub fn alone(&self) -> Option<u32> {
        let &index = self.ready.front()?;
        let stream = &self.streams[index as usize];
        let alone = self.ready.len() == 1
            && !self.first
            && stream.life.is_simple()
            && stream.room.depth() == 1
            && !stream.left.counts_ops();
        alone.then_some(index)
    }

    /// Takes the stream out of the queue and gives its slot, and since when it is free.
    pub fn begin_streak(&mut self, index: u32) -> Option<(u32, u64)> {
        let stream = &mut self.streams[index as usize];
        let taken = stream.room.take()?;
        stream.room.note_depth(1);
        stream.turn.take();
        self.ready.clear();
        self.in_flight += 1;
        Some(taken)
    }

    /// The state of the streak.
    pub fn lane(&mut self, index: u32, slot: u32) -> SingleStream<'_> {
        let stream = &mut self.streams[index as usize];
        SingleStream {
            ramp: stream.ramp(),
            stream,
            slot: &mut self.slots[slot as usize],
            counters: &mut self.counters[index as usize],
            table: &mut self.table,
            control: &self.lines.control,
            orders_seen: self.orders_seen,
            next_event_ns: self.next_event_ns,
        }
    }

    /// Sorts in what a streak left, and counts its hand-overs.
    pub fn end_streak(&mut self, index: u32, count: u64) {
        self.table.settle();
        self.counters[index as usize].depth[0] += count;
        self.batches.submit[batch_column(1)] += count;
        self.batches.complete[batch_column(1)] += count;
    }
}
