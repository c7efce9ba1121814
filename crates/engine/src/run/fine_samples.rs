//! How many operations ended in each hundredth of a second, and when the engine stood still.
//!
//! Reads what the workers count anyway, from outside: no I/O pays for it. A wake-up that comes
//! much too late is a stop of the whole process (a signal, a host that runs something else), or
//! of this thread alone; the operations that ended meanwhile tell which.

use std::time::Duration;

use crate::setup::WorkerHandle;
use loadstone_worker::events::Event;

/// Length of a sample.
const PERIOD_NS: u64 = 10_000_000;
/// Samples of one event.
const SAMPLES: usize = 100;
/// With more streams than this, reading all their counters is too much work for each sample.
const MAX_STREAMS: usize = 256;
/// A wake-up this much too late was none of the scheduler's usual delays.
const STOPPED_NS: u64 = 100_000_000;

/// Samples of one stage that were not told yet. Times are on the clock of the run.
#[derive(Debug)]
pub(super) struct FineSamples {
    stage: u32,
    period_ns: u64,
    since_ns: u64,
    last_ns: u64,
    last_done: u64,
    counts: Vec<u64>,
    lengths_us: Vec<u64>,
    /// Moving average of operations in a period, from before the last sample.
    usual: f64,
}

impl FineSamples {
    /// Of a stage whose workers are these, from `now_ns` on.
    pub(super) fn new(stage: u32, hands: &[WorkerHandle], now_ns: u64) -> Self {
        let streams: usize = hands.iter().map(|hand| hand.counters.len()).sum();
        let coarser = streams.div_ceil(MAX_STREAMS).max(1) as u64;
        Self {
            stage,
            period_ns: PERIOD_NS * coarser,
            since_ns: now_ns,
            last_ns: now_ns,
            last_done: 0,
            counts: Vec::with_capacity(SAMPLES),
            lengths_us: Vec::with_capacity(SAMPLES),
            usual: 0.0,
        }
    }

    /// How long to sleep until the next sample.
    pub(super) fn wait(&self, now_ns: u64) -> Duration {
        let due_ns = self.last_ns + self.period_ns;
        Duration::from_nanos(due_ns.saturating_sub(now_ns))
    }

    /// True when a sample is due.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.last_ns + self.period_ns
    }

    /// Takes a sample; returns what is to be said of a stop. `late_ns`: how much later than asked
    /// for the thread woke up.
    pub(super) fn take(
        &mut self,
        hands: &[WorkerHandle],
        now_ns: u64,
        late_ns: u64,
    ) -> Option<Event> {
        let done: u64 = hands
            .iter()
            .flat_map(|hand| (0..hand.counters.len()).map(|index| hand.counters.copy(index)))
            .map(|counters| counters.ended())
            .sum();
        self.count(done, now_ns, late_ns)
    }

    /// Takes note of how many operations had ended by now.
    fn count(&mut self, done: u64, now_ns: u64, late_ns: u64) -> Option<Event> {
        let ended = done.saturating_sub(self.last_done);
        let length_ns = now_ns - self.last_ns;
        let expected = self.usual * length_ns as f64 / self.period_ns as f64;
        let stopped = late_ns > STOPPED_NS && (ended as f64) < 0.5 * expected.max(2.0);
        self.counts.push(ended);
        self.lengths_us.push(length_ns / 1_000);
        if !stopped {
            let of_one = ended as f64 * self.period_ns as f64 / length_ns.max(1) as f64;
            self.usual += (of_one - self.usual) / 16.0;
        }
        self.last_ns = now_ns;
        self.last_done = done;
        stopped.then_some(Event::Stopped {
            t_ns: now_ns,
            stopped_ns: late_ns,
            ops: ended,
        })
    }

    /// The samples so far, when there are enough of them, or any at the end.
    pub(super) fn told(&mut self, at_end: bool) -> Option<Event> {
        let is_full = self.counts.len() >= SAMPLES;
        if !is_full && (!at_end || self.counts.is_empty()) {
            return None;
        }
        let since_ns = std::mem::replace(&mut self.since_ns, self.last_ns);
        Some(Event::FineSamples {
            t_ns: self.last_ns,
            stage: self.stage,
            start_ns: since_ns,
            lengths_us: std::mem::replace(&mut self.lengths_us, Vec::with_capacity(SAMPLES)),
            ops: std::mem::replace(&mut self.counts, Vec::with_capacity(SAMPLES)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_waking_is_a_stop_only_when_hardly_anything_ended_meanwhile() {
        let at = |ended: u64, late_ns: u64| {
            let mut fine = FineSamples::new(0, &[], 0);
            fine.usual = 10.0;
            let now_ns = PERIOD_NS + late_ns;
            fine.count(ended, now_ns, late_ns).is_some()
        };
        assert!(!at(10, 0));
        assert!(at(3, 1_000_000_000));
        assert!(!at(900, 1_000_000_000));
        assert!(!at(0, STOPPED_NS));
    }

    #[test]
    fn samples_are_told_together_and_none_is_lost() {
        let mut fine = FineSamples::new(0, &[], 0);
        for index in 1..=SAMPLES as u64 {
            assert!(fine.told(false).is_none());
            fine.count(2 * index, index * PERIOD_NS, 0);
        }
        let Some(Event::FineSamples {
            start_ns,
            ops,
            lengths_us,
            ..
        }) = fine.told(false)
        else {
            panic!("a full event is told");
        };
        assert_eq!(start_ns, 0);
        assert_eq!(ops, vec![2; SAMPLES]);
        assert_eq!(lengths_us, vec![10_000; SAMPLES]);
        assert!(fine.told(true).is_none());
    }
}
