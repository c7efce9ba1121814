//! Arrivals that several streams serve: whoever is free takes the next one.
//!
//! Knows one schedule and a lock. Who takes an arrival that is still to come waits for it
//! alone, so that all are served by the stream that was free first.

use std::sync::{Mutex, PoisonError};

use loadstone_generation::pace::{NextStart, Schedule};
use loadstone_plan::{Plan, RateAmount};

/// The arrivals of one queue.
#[derive(Debug)]
pub struct ArrivalQueue {
    state: Mutex<ArrivalState>,
}

#[derive(Debug)]
struct ArrivalState {
    schedule: Schedule,
    started: bool,
}

impl ArrivalQueue {
    /// The queue with this number: its rate is that of all its streams together. None when
    /// no stream has it.
    #[must_use]
    pub fn new(plan: &Plan, number: u32) -> Option<Self> {
        let mut streams = plan.streams.iter().filter(|stream| {
            let its = stream.tree.as_ref();
            its.is_some_and(|its| its.queue == Some(number))
        });
        let first = streams.next()?;
        let mut rate = first.tree.as_ref()?.rate.clone()?;
        for other in streams {
            let more = other.tree.as_ref().and_then(|its| its.rate.as_ref());
            if let (RateAmount::Ops { per_second }, Some(RateAmount::Ops { per_second: one })) =
                (&mut rate.amount, more.map(|rate| rate.amount))
            {
                *per_second += one;
            }
        }
        rate.phase = 0.0;
        Some(Self {
            state: Mutex::new(ArrivalState {
                schedule: Schedule::single(&rate, first),
                started: false,
            }),
        })
    }

    /// Takes the next arrival, which may be still to come; `now`: the start of all, for who
    /// comes first.
    pub fn claim(&self, now: u64) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut state.started, true) {
            state.schedule.start(now);
        }
        let next = state.schedule.next(u64::MAX);
        state.schedule.issued(Schedule::WHOLE, 1);
        match next {
            NextStart::Paced { intended_ns, .. } => intended_ns,
            NextStart::Unpaced(_) | NextStart::Wait(_) => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::{plain, Backend, FileOperation, FileSelect, Stream, TreeUse};

    #[test]
    fn every_arrival_is_taken_once_by_whoever_comes() {
        let one = |_| Stream {
            tree: Some(TreeUse {
                tree: 0,
                cell: 0,
                operation: FileOperation::Getattr {},
                select: FileSelect::Random {},
                working_set_bytes: 0,
                shared: false,
                rate: Some(plain::rate(100.0)),
                queue: Some(4),
            }),
            ..plain::stream()
        };
        let plan = plain::plan(Backend::Files {}, (0..3).map(one).collect());
        let queue = ArrivalQueue::new(&plan, 4).unwrap();
        let taken: Vec<u64> = (0..6).map(|_| queue.claim(7)).collect();
        let gap = 1_000_000_000 / 300;
        for (number, at) in taken.iter().enumerate() {
            assert!(at.abs_diff(7 + number as u64 * gap) <= 2, "{taken:?}");
        }
        assert!(ArrivalQueue::new(&plan, 5).is_none());
    }
}
