//! What the threads of a run tell each other.
//!
//! Knows the orders to stop and the messages of the workers. Knows no thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::events::Event;
use crate::flow::Flows;
use crate::record::CounterTable;
use crate::samples::IoRecord;
use loadstone_plan::Plan;

/// How urgently to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Stop {
    /// Keep going.
    No = 0,
    /// Issue nothing more, wait for what is in flight.
    Drain = 1,
    /// The parent is gone: leave.
    Now = 2,
}

/// Orders, read by every worker once per batch.
#[derive(Debug, Default)]
pub struct Control {
    /// Counts the orders, so that a worker sees with one look that there is a new one.
    given: AtomicU32,
    stop: AtomicU32,
    /// Stages below this number are to end.
    stages_ended: AtomicU32,
    /// Streams that are to end.
    streams_ended: Mutex<BTreeSet<u32>>,
    /// Streams that others wait for.
    awaited: BTreeSet<u32>,
    /// Those of them that have ended, and when, since the run's origin.
    gone: Mutex<BTreeMap<u32, u64>>,
    /// When the monotonic clock shall start an armed run, and who waits to be told.
    started_at_ns: Mutex<Option<u64>>,
    told: Condvar,
    /// Shares of I/Os between streams of any worker.
    pub flows: Flows,
}

/// When a stage started.
#[derive(Debug, Clone, Copy)]
pub struct StageStart {
    /// On the run's clock.
    pub clock_ns: u64,
    /// Since the run's origin.
    pub offset_ns: u64,
}

/// Holds the workers of a stage until all of them are ready.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<Option<Option<StageStart>>>,
    opened: Condvar,
}

impl Gate {
    /// Waits for the start; none when there will be none.
    #[must_use]
    pub fn wait(&self) -> Option<StageStart> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(start) = *state {
                return start;
            }
            state = self
                .opened
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Starts the workers, or sends them home.
    pub fn open(&self, start: Option<StageStart>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(start);
        self.opened.notify_all();
    }
}

impl Control {
    /// Nothing is ordered yet.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let waits = plan.streams.iter().flat_map(|stream| &stream.wait_for);
        Self {
            awaited: waits.copied().collect(),
            ..Self::default()
        }
    }

    /// Asks for a stop; a weaker order never replaces a stronger one.
    pub fn stop(&self, how: Stop) {
        self.stop.fetch_max(how as u32, Ordering::Relaxed);
        self.given.fetch_add(1, Ordering::Release);
    }

    /// Lets an armed run start at this time; the first order stands.
    pub fn start_at(&self, monotonic_ns: u64) {
        let mut at = self
            .started_at_ns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        at.get_or_insert(monotonic_ns);
        self.told.notify_all();
    }

    /// When an armed run shall start, once that is told; waits at most so long for it.
    #[must_use]
    pub fn await_start(&self, most: Duration) -> Option<u64> {
        let at = self
            .started_at_ns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (at, _) = self
            .told
            .wait_timeout_while(at, most, |at| at.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        *at
    }

    /// How many orders there were.
    #[inline]
    #[must_use]
    pub fn orders(&self) -> u32 {
        self.given.load(Ordering::Acquire)
    }

    /// The strongest order so far.
    #[inline]
    #[must_use]
    pub fn stopping(&self) -> Stop {
        match self.stop.load(Ordering::Relaxed) {
            0 => Stop::No,
            1 => Stop::Drain,
            _ => Stop::Now,
        }
    }

    /// Ends a stage and those before it; one that is over already stays so.
    pub fn end_stage(&self, stage: u32) {
        self.stages_ended
            .fetch_max(stage.saturating_add(1), Ordering::Relaxed);
        self.given.fetch_add(1, Ordering::Release);
    }

    /// Says that a stream has ended, to those that wait for it.
    pub fn has_ended(&self, stream: u32, ended_ns: u64) {
        if !self.awaited.contains(&stream) {
            return;
        }
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.insert(stream, ended_ns);
        self.given.fetch_add(1, Ordering::Release);
    }

    /// When the last of these ended; none while one has not, and of no streams.
    #[must_use]
    pub fn ended_ns(&self, streams: &[u32]) -> Option<u64> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = streams.iter().map(|stream| gone.get(stream).copied());
        ends.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }

    /// Ends one stream.
    pub fn end_stream(&self, stream: u32) {
        let mut ended = self
            .streams_ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        ended.insert(stream);
        self.given.fetch_add(1, Ordering::Release);
    }

    /// True when `stream` is to end before its time.
    #[must_use]
    pub fn stream_is_over(&self, stream: u32) -> bool {
        let ended = self
            .streams_ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        ended.contains(&stream)
    }

    /// True when `stage` is to end before its time.
    #[inline]
    #[must_use]
    pub fn stage_is_over(&self, stage: u32) -> bool {
        self.stages_ended.load(Ordering::Relaxed) > stage
    }
}

/// From a worker to the main thread.
#[derive(Debug)]
pub enum Message {
    /// It is set up and waits for the start.
    Ready {
        /// Worker.
        worker: u32,
    },
    /// It could not be set up.
    Failed {
        /// Worker.
        worker: u32,
        /// What happened.
        message: String,
        /// The remedy.
        hint: String,
    },
    /// The first I/O was handed over at this time.
    First {
        /// On the run's clock.
        handed_ns: u64,
    },
    /// An interval is over.
    Cut {
        /// Worker.
        worker: u32,
        /// Its counters.
        table: Box<CounterTable>,
        /// The worker has ended: there will be no more.
        last: bool,
    },
    /// Something to say.
    Event(Event),
    /// Records of single I/Os.
    Ios {
        /// Worker.
        worker: u32,
        /// The records.
        records: Vec<IoRecord>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::plain;
    use loadstone_plan::Backend;

    #[test]
    fn only_ends_that_somebody_waits_for_are_kept_and_told() {
        let mut plan = plain::plan(Backend::Null {}, vec![plain::stream(); 3]);
        plan.streams[2].wait_for = vec![1];
        let control = Control::new(&plan);
        control.has_ended(0, 7);
        assert_eq!((control.orders(), control.ended_ns(&[0])), (0, None));
        control.has_ended(1, 9);
        assert_eq!((control.orders(), control.ended_ns(&[1])), (1, Some(9)));
    }
}
