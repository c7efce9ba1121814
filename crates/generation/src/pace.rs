//! When I/Os should start: arrival times that advance whatever the device does.
//!
//! Knows rates and the times they make. Knows no I/O. A due time that has passed stays
//! due, so a late I/O carries the time it waited. Arrivals are counted in units (I/Os or
//! bytes) and each turned into a time by itself, so they do not drift.

use crate::rate_profile::RateProfile;
use loadstone_base::ops::{Op, OpKind};
use loadstone_base::rng::{mix, Rng};
use loadstone_plan::{max_block_bytes, max_size};
use loadstone_plan::{Pace, Pattern, Rate, RateAmount, RateProcess, Stream};

/// Keeps the gaps independent of the addresses, which have the same seed.
const SALT: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND_NS: f64 = 1e9;

/// Arrivals of one operation.
#[derive(Debug, Clone)]
struct Arrivals {
    op: Op,
    /// Nanoseconds per operation or per byte.
    gap_ns: f64,
    per_byte: bool,
    process: RateProcess,
    profile: RateProfile,
    /// Units that arrive before the next arrival.
    due_units: f64,
    /// Next arrival, relative to `start_ns`; infinite: none.
    due_ns: f64,
    minimum: Option<Minimum>,
}

/// A lower bound on the rate, checked window by window.
#[derive(Debug, Clone, Copy)]
struct Minimum {
    per_window: f64,
    window_ns: u64,
    ends_ns: u64,
    done: u64,
}

/// The arrivals of one stream.
#[derive(Debug, Clone)]
pub struct Schedule {
    arrivals: Vec<Arrivals>,
    /// Operations without a rate, issued whenever nothing is due.
    unpaced: Vec<Op>,
    start_ns: u64,
    rng: Rng,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStart {
    /// Issue this operation; it should have started at `intended_ns`.
    Paced {
        /// The operation.
        op: Op,
        /// Its arrival.
        intended_ns: u64,
    },
    /// Issue this operation; it has no rate.
    Unpaced(Op),
    /// Nothing before this time.
    Wait(u64),
}

impl Schedule {
    /// The schedule of a stream; none when nothing is paced.
    #[must_use]
    pub fn new(pace: &Pace, pattern: &Pattern, seed: u64) -> Option<Self> {
        let mut arrivals = Vec::new();
        let mut unpaced = Vec::new();
        let shares = [
            (Op::Read, &pace.read, pattern.read_percent, &pattern.read),
            (
                Op::Write,
                &pace.write,
                pattern.write_percent,
                &pattern.write,
            ),
            (Op::Trim, &pace.trim, pattern.trim_percent, &pattern.trim),
        ];
        for (op, rate, percent, order) in shares {
            match rate {
                _ if percent == 0 => {}
                Some(rate) => arrivals.push(Arrivals::new(op, rate, max_size(&order.sizes))),
                None => unpaced.push(op),
            }
        }
        if arrivals.is_empty() {
            return None;
        }
        Some(Self {
            arrivals,
            unpaced,
            start_ns: 0,
            rng: Rng::new(mix(seed ^ SALT)),
        })
    }

    /// The schedule of a stream that is paced as a whole: its arrivals are those of
    /// [`Schedule::WHOLE`].
    #[must_use]
    pub fn single(rate: &Rate, stream: &Stream) -> Self {
        let block_bytes = max_block_bytes(stream);
        Self {
            arrivals: vec![Arrivals::new(Self::WHOLE, rate, block_bytes)],
            unpaced: Vec::new(),
            start_ns: 0,
            rng: Rng::new(mix(stream.seed ^ SALT)),
        }
    }

    /// What arrivals of a stream that is paced as a whole are told as.
    pub const WHOLE: Op = Op::Read;

    /// Starts the clock of the arrivals.
    pub fn start(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
        for index in 0..self.arrivals.len() {
            match self.arrivals[index].process {
                RateProcess::Poisson | RateProcess::Uniform => self.advance(index, 0),
                RateProcess::Linear | RateProcess::Spike => self.arrivals[index].find_time(),
            }
            if let Some(minimum) = &mut self.arrivals[index].minimum {
                minimum.ends_ns = now_ns + minimum.window_ns;
            }
        }
    }

    /// What is due now. A paced answer must be followed by [`Schedule::issued`].
    #[must_use]
    pub fn next(&self, now_ns: u64) -> NextStart {
        let mut earliest = &self.arrivals[0];
        for arrivals in &self.arrivals[1..] {
            if arrivals.due_ns < earliest.due_ns {
                earliest = arrivals;
            }
        }
        let intended_ns = self.start_ns.saturating_add(earliest.due_ns as u64);
        if intended_ns <= now_ns {
            return NextStart::Paced {
                op: earliest.op,
                intended_ns,
            };
        }
        match self.unpaced.first() {
            Some(&op) => NextStart::Unpaced(op),
            None => NextStart::Wait(intended_ns),
        }
    }

    /// Moves to the arrival after an issued I/O of `len` bytes.
    pub fn issued(&mut self, op: Op, len: u32) {
        if let Some(index) = self.arrivals.iter().position(|arrivals| arrivals.op == op) {
            self.advance(index, len);
        }
    }

    fn advance(&mut self, index: usize, len: u32) {
        let arrivals = &mut self.arrivals[index];
        let units = if arrivals.per_byte {
            f64::from(len)
        } else {
            1.0
        };
        let factor = match arrivals.process {
            RateProcess::Poisson => -self.rng.unit().ln(),
            RateProcess::Uniform => 2.0 * self.rng.unit(),
            RateProcess::Linear | RateProcess::Spike => 1.0,
        };
        arrivals.due_units += units * factor;
        arrivals.find_time();
    }

    /// Counts a completion for the minimum rate.
    #[inline]
    pub fn completed(&mut self, op: OpKind, bytes: u64) {
        for arrivals in &mut self.arrivals {
            if arrivals.op.kind() == op {
                if let Some(minimum) = &mut arrivals.minimum {
                    minimum.done += if arrivals.per_byte { bytes } else { 1 };
                }
            }
        }
    }

    /// End of the next window of a minimum rate.
    #[must_use]
    pub fn next_check_ns(&self) -> Option<u64> {
        self.arrivals
            .iter()
            .filter_map(|arrivals| arrivals.minimum.map(|minimum| minimum.ends_ns))
            .min()
    }

    /// Closes the windows that end by `now_ns`; false when one of them was too slow.
    pub fn keeps_minimum(&mut self, now_ns: u64) -> bool {
        let mut kept = true;
        for minimum in self
            .arrivals
            .iter_mut()
            .filter_map(|arrivals| arrivals.minimum.as_mut())
        {
            if minimum.ends_ns <= now_ns {
                // A check that came late judges the time that really passed.
                let late = (now_ns - minimum.ends_ns) as f64 / minimum.window_ns as f64;
                kept &= minimum.done as f64 >= minimum.per_window * (1.0 + late);
                minimum.done = 0;
                minimum.ends_ns = now_ns + minimum.window_ns;
            }
        }
        kept
    }
}

impl Arrivals {
    /// `io_bytes` is the size of an I/O, to begin a part of a gap late.
    fn new(op: Op, rate: &Rate, io_bytes: u32) -> Self {
        let (per_second, per_byte) = match rate.amount {
            RateAmount::Ops { per_second } => (per_second, false),
            RateAmount::Bytes { per_second } => (per_second, true),
        };
        let minimum = (rate.minimum > 0.0).then(|| Minimum {
            per_window: rate.minimum * rate.min_window_ns as f64 / 1e9,
            window_ns: rate.min_window_ns,
            ends_ns: 0,
            done: 0,
        });
        Self {
            op,
            gap_ns: 1e9 / per_second,
            per_byte,
            process: rate.process,
            profile: RateProfile::new(&rate.profile),
            due_units: rate.phase * if per_byte { f64::from(io_bytes) } else { 1.0 },
            due_ns: 0.0,
            minimum,
        }
    }

    fn find_time(&mut self) {
        self.due_ns = self.profile.time_of(self.due_units * self.gap_ns);
        if self.process == RateProcess::Spike {
            // What is due at the very beginning of a second may be computed a hair early.
            self.due_ns = ((self.due_ns + 0.5) / SECOND_NS).floor() * SECOND_NS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(process: RateProcess, amount: RateAmount) -> Schedule {
        let rate = Rate {
            amount,
            process,
            profile: vec![],
            phase: 0.0,
            minimum: 0.0,
            min_window_ns: 0,
        };
        Schedule {
            arrivals: vec![Arrivals::new(Op::Read, &rate, 4096)],
            unpaced: Vec::new(),
            start_ns: 0,
            rng: Rng::new(7),
        }
    }

    #[test]
    fn linear_arrivals_do_not_drift() {
        let mut schedule = schedule(RateProcess::Linear, RateAmount::Ops { per_second: 3.0 });
        schedule.start(1_000);
        for n in 0..3_000u64 {
            let due = 1_000 + n * 1_000_000_000 / 3;
            match schedule.next(u64::MAX) {
                NextStart::Paced {
                    op: Op::Read,
                    intended_ns,
                } => assert!(intended_ns.abs_diff(due) <= 1, "{n}"),
                other => panic!("{other:?}"),
            }
            schedule.issued(Op::Read, 4096);
        }
    }

    #[test]
    fn clones_with_phases_take_turns() {
        let rate = |phase| Rate {
            amount: RateAmount::Bytes { per_second: 4096e3 },
            process: RateProcess::Linear,
            profile: vec![],
            phase,
            minimum: 0.0,
            min_window_ns: 0,
        };
        for (phase, first) in [(0.0, 0), (0.25, 250_000), (0.75, 750_000)] {
            let mut schedule = Schedule {
                arrivals: vec![Arrivals::new(Op::Write, &rate(phase), 4096)],
                unpaced: Vec::new(),
                start_ns: 0,
                rng: Rng::new(1),
            };
            schedule.start(10);
            for n in 0..3 {
                let intended_ns = 10 + first + n * 1_000_000;
                let op = Op::Write;
                assert_eq!(
                    schedule.next(u64::MAX),
                    NextStart::Paced { op, intended_ns }
                );
                schedule.issued(op, 4096);
            }
        }
    }

    #[test]
    fn bytes_set_the_gap() {
        let mut schedule = schedule(
            RateProcess::Linear,
            RateAmount::Bytes { per_second: 4096e3 },
        );
        schedule.start(0);
        schedule.issued(Op::Read, 8192);
        assert_eq!(schedule.next(0), NextStart::Wait(2_000_000));
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread() {
        let mut schedule = schedule(RateProcess::Poisson, RateAmount::Ops { per_second: 1e6 });
        schedule.start(0);
        let (mut last, mut sum, mut squares) = (0.0, 0.0, 0.0);
        let count = 100_000;
        for _ in 0..count {
            schedule.issued(Op::Read, 1);
            let due = schedule.arrivals[0].due_ns;
            let gap = due - last;
            last = due;
            sum += gap;
            squares += gap * gap;
        }
        let mean = sum / f64::from(count);
        let deviation = (squares / f64::from(count) - mean * mean).sqrt();
        // Five standard errors of an exponential of mean 1000.
        assert!((mean - 1000.0).abs() < 16.0, "{mean}");
        assert!((deviation - 1000.0).abs() < 32.0, "{deviation}");
    }

    #[test]
    fn a_spike_is_a_whole_second_at_once() {
        // A gap of 3 ms: seconds have 333 or 334 arrivals.
        let mut schedule = schedule(
            RateProcess::Spike,
            RateAmount::Ops {
                per_second: 1e3 / 3.0,
            },
        );
        schedule.start(7);
        for n in 0..2_000u64 {
            let intended_ns = 7 + n * 3 / 1000 * 1_000_000_000;
            let op = Op::Read;
            assert_eq!(
                schedule.next(u64::MAX),
                NextStart::Paced { op, intended_ns },
                "{n}"
            );
            schedule.issued(op, 4096);
        }
    }

    #[test]
    fn too_slow_a_window_is_found() {
        let rate = Rate {
            amount: RateAmount::Ops { per_second: 100.0 },
            process: RateProcess::Linear,
            profile: vec![],
            phase: 0.0,
            minimum: 50.0,
            min_window_ns: 1_000_000_000,
        };
        let mut schedule = Schedule {
            arrivals: vec![Arrivals::new(Op::Write, &rate, 4096)],
            unpaced: Vec::new(),
            start_ns: 0,
            rng: Rng::new(1),
        };
        schedule.start(0);
        (0..50).for_each(|_| schedule.completed(OpKind::Write, 1));
        assert!(schedule.keeps_minimum(1_000_000_000));
        (0..49).for_each(|_| schedule.completed(OpKind::Write, 1));
        assert!(!schedule.keeps_minimum(2_000_000_000));
    }
}
