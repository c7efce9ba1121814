//! Intervals: when they are cut and how a worker hands one in.
//!
//! Knows the grid, the ends of ramps and the tables that go back and forth. Knows no
//! I/O but how many are in flight.

use super::{WorkerState, LOG_BLOCK, LOG_BLOCKS};
use crate::control::Message;
use crate::record::CounterTable;
use crate::rows::{cells_of, ops_of};
use crate::samples::IoRecord;
use crate::slots::NOT_HANDED;

impl WorkerState {
    /// Sets the next cut after `time_ns`: the next multiple of the interval, or an end
    /// of a ramp before it.
    pub(super) fn plan_cut(&mut self, time_ns: u64) {
        let interval = self.plan.interval_ns;
        let grid = (self.run_time(time_ns) / interval + 1) * interval;
        self.next_cut_ns = grid.wrapping_add(self.shift_ns);
        while self
            .ramp_ends
            .last()
            .is_some_and(|&ramp_end| ramp_end <= time_ns)
        {
            self.ramp_ends.pop();
        }
        if let Some(&ramp_end) = self.ramp_ends.last() {
            self.next_cut_ns = self.next_cut_ns.min(ramp_end);
        }
    }

    /// Marks the rows a stream feeds, so that an interval without completions is told.
    pub(super) fn mark_live(&mut self, index: u32) {
        let stream = &self.streams[index as usize];
        let ramp = stream.ramp();
        let plan = &self.plan.streams[stream.id as usize];
        for op in ops_of(plan) {
            for cell in cells_of(plan) {
                let row = self.rows.row(cell, op);
                self.table.totals_mut(row + ramp).live = 1;
            }
        }
        for row in stream.priorities.iter().flat_map(|own| own.rows()) {
            self.table.totals_mut(row + ramp).live = 1;
        }
    }

    /// Closes the interval at `time_ns` and gives its table away. When the main thread
    /// still has the other one, the interval goes on to the next cut instead.
    pub(super) fn cut(&mut self, time_ns: u64, is_virtual: bool) {
        self.watch_ends(time_ns);
        let fresh = if is_virtual {
            self.lines.spare.recv().ok()
        } else {
            self.lines.spare.try_recv().ok()
        };
        let Some(fresh) = fresh else { return };
        self.hand_in(time_ns, Some(fresh));
        for index in 0..self.streams.len() as u32 {
            // A ramp that ends with this interval is over for the next one.
            let ramp_over = self.counters[index as usize].ramp_end_ns <= self.run_time(time_ns);
            let stream = &mut self.streams[index as usize];
            if stream.life.is_waiting() {
                continue;
            }
            if ramp_over {
                stream.end_ramp();
            }
            if !stream.life.has_ended() {
                self.mark_live(index);
            }
        }
        self.send_log();
    }

    pub(super) fn hand_in(&mut self, time_ns: u64, fresh: Option<Box<CounterTable>>) {
        self.count_in_flight();
        self.table.end_ns = self.run_time(time_ns);
        let last = fresh.is_none();
        let mut next = match fresh {
            Some(table) => table,
            None => Box::new(CounterTable::empty()),
        };
        next.start_ns = self.table.end_ns;
        self.lines.use_table(&next);
        let table = std::mem::replace(&mut self.table, next);
        self.say(Message::Cut {
            worker: self.worker,
            table,
            last,
        });
    }

    /// Looks at every slot, once per interval, rather than counting at every I/O.
    pub(super) fn count_in_flight(&mut self) {
        if self.in_flight == 0 {
            return;
        }
        for slot in self
            .slots
            .iter()
            .filter(|slot| slot.handed_ns != NOT_HANDED)
        {
            let ramp = self.streams[slot.stream as usize].ramp();
            self.table.totals_mut(slot.row + ramp).in_flight += 1;
        }
    }

    /// Hands in the last interval.
    pub fn finish(&mut self, now: u64) {
        // The log first: after the last interval nobody listens any more.
        self.send_log();
        self.hand_in(now, None);
    }

    /// An empty block for records of single I/Os. When all the Plan's memory allows are on
    /// their way to the file the worker waits for one: nothing is lost, and the load is
    /// held back visibly (`wait_*`) instead of memory growing without bound.
    fn log_block(&mut self) -> Vec<IoRecord> {
        match self.lines.log_spare.try_recv() {
            Ok(block) => block,
            Err(_) if self.log_blocks < LOG_BLOCKS => {
                self.log_blocks += 1;
                Vec::with_capacity(LOG_BLOCK)
            }
            Err(_) => self
                .lines
                .log_spare
                .recv()
                .unwrap_or_else(|_| Vec::with_capacity(LOG_BLOCK)),
        }
    }

    pub(super) fn send_log(&mut self) {
        if !self.log.is_empty() {
            let next = self.log_block();
            let records = std::mem::replace(&mut self.log, next);
            self.say(Message::Ios {
                worker: self.worker,
                records,
            });
        }
    }
}
