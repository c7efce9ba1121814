//! The search for the largest depth at which a latency target is met: fio's `latency_target`.
//!
//! Knows windows of completions and the depths tried. The depth doubles while windows meet
//! the target; after the first that does not, it halves the gap between the deepest that
//! did and the shallowest that did not. Knows no stream and no clock of its own.

use loadstone_plan::DepthSearch;

/// What a completion changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchStep {
    /// Nothing.
    Stay,
    /// From now on this depth, which is above the one before.
    Deeper(u32),
    /// From now on this depth, once all that is in flight is back.
    Shallower(u32),
    /// This depth is the answer: what comes now is the result.
    Found,
    /// The result is complete.
    Over,
    /// Even one I/O at a time misses the target.
    Missed,
}

/// A search under way.
#[derive(Debug)]
pub struct DepthFinder {
    plan: DepthSearch,
    most: u32,
    depth: u32,
    /// Deepest that met the target.
    low: u32,
    /// Shallowest that did not.
    high: u32,
    /// Windows met at a depth next to `high`.
    stable: u32,
    since_ns: u64,
    done: u64,
    late: u64,
    found: bool,
}

impl DepthFinder {
    /// Begins with one I/O at a time; `most` is the largest depth tried.
    #[must_use]
    pub fn new(plan: DepthSearch, most: u32) -> Self {
        Self {
            plan,
            most,
            depth: 1,
            low: 1,
            high: most,
            stable: 0,
            since_ns: 0,
            done: 0,
            late: 0,
            found: false,
        }
    }

    /// The depth at present.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// True while what is measured is not the result yet.
    #[must_use]
    pub fn is_searching(&self) -> bool {
        !self.found && !self.plan.keep_on
    }

    /// A window begins.
    pub fn begin(&mut self, now_ns: u64) {
        (self.since_ns, self.done, self.late) = (now_ns, 0, 0);
    }

    /// Takes the latency of one completion.
    pub fn completed(&mut self, lat_ns: u64, now_ns: u64) -> SearchStep {
        let late = lat_ns > self.plan.target_ns;
        self.done += 1;
        self.late += u64::from(late);
        let window_over = now_ns.saturating_sub(self.since_ns) >= self.plan.window_ns;
        if self.found {
            return if window_over {
                SearchStep::Over
            } else {
                SearchStep::Stay
            };
        }
        // When every I/O has to be in time the first late one decides.
        if late && self.plan.percentile >= 100.0 {
            return self.missed(now_ns);
        }
        if !window_over {
            return SearchStep::Stay;
        }
        let in_time = (self.done - self.late) as f64 / self.done as f64 * 100.0;
        if in_time >= self.plan.percentile {
            self.met(now_ns)
        } else {
            self.missed(now_ns)
        }
    }

    fn met(&mut self, now_ns: u64) -> SearchStep {
        self.begin(now_ns);
        self.low = self.depth;
        if self.depth + 1 == self.high {
            // What could not be held before may be held now.
            self.stable += 1;
            if self.stable >= 3 {
                (self.high, self.stable) = (self.high + 1, 0);
            }
        }
        let next = if self.high == self.most {
            self.depth.saturating_mul(2)
        } else {
            self.depth.midpoint(self.high)
        }
        .min(self.most);
        if next > self.depth {
            self.depth = next;
            return SearchStep::Deeper(next);
        }
        if self.plan.keep_on {
            return SearchStep::Stay;
        }
        self.found = true;
        SearchStep::Found
    }

    fn missed(&mut self, now_ns: u64) -> SearchStep {
        self.begin(now_ns);
        self.stable = 0;
        if self.depth == 1 {
            return if self.plan.keep_on {
                SearchStep::Stay
            } else {
                SearchStep::Missed
            };
        }
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = self.depth.midpoint(self.low).max(1);
        SearchStep::Shallower(self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_NS: u64 = 1_000;

    fn plan(percentile: f64, keep_on: bool) -> DepthSearch {
        DepthSearch {
            target_ns: 100,
            window_ns: WINDOW_NS,
            percentile,
            keep_on,
        }
    }

    /// A device whose latency is 10 ns for each I/O outstanding: the target is met to 10.
    fn run(search: &mut DepthFinder, windows: u64) -> Vec<SearchStep> {
        let mut steps = Vec::new();
        search.begin(0);
        for window in 0..windows {
            for part in 1..=10 {
                let now_ns = window * WINDOW_NS + part * WINDOW_NS / 10;
                let step = search.completed(u64::from(search.depth()) * 10, now_ns);
                if step != SearchStep::Stay {
                    steps.push(step);
                }
                if matches!(step, SearchStep::Over | SearchStep::Missed) {
                    return steps;
                }
            }
        }
        steps
    }

    #[test]
    fn it_doubles_then_halves_the_gap_and_ends_with_a_window_of_the_answer() {
        for percentile in [100.0, 90.0] {
            let mut search = DepthFinder::new(plan(percentile, false), 64);
            let steps = run(&mut search, 100);
            let ways = [
                SearchStep::Deeper(2),
                SearchStep::Deeper(4),
                SearchStep::Deeper(8),
                SearchStep::Deeper(16),
                SearchStep::Shallower(12),
                SearchStep::Shallower(10),
                SearchStep::Deeper(11),
                SearchStep::Shallower(10),
                SearchStep::Found,
                SearchStep::Over,
            ];
            assert_eq!(steps, ways, "{percentile}");
            assert_eq!(search.depth(), 10);
        }
    }

    #[test]
    fn the_largest_depth_is_the_answer_when_it_meets_the_target() {
        let mut search = DepthFinder::new(plan(100.0, false), 8);
        let steps = run(&mut search, 100);
        let end = [SearchStep::Deeper(8), SearchStep::Found, SearchStep::Over];
        assert_eq!(steps[2..], end);
    }

    #[test]
    fn a_target_missed_at_depth_1_cannot_be_met() {
        let mut search = DepthFinder::new(plan(99.0, false), 8);
        search.begin(0);
        assert_eq!(search.completed(101, WINDOW_NS), SearchStep::Missed);
        let mut keeps_on = DepthFinder::new(plan(99.0, true), 8);
        keeps_on.begin(0);
        assert_eq!(keeps_on.completed(101, WINDOW_NS), SearchStep::Stay);
    }

    #[test]
    fn one_that_keeps_on_never_ends_and_tries_again_what_it_could_not_hold() {
        let mut search = DepthFinder::new(plan(100.0, true), 64);
        let steps = run(&mut search, 60);
        assert!(!steps.contains(&SearchStep::Found));
        assert!(
            steps
                .iter()
                .filter(|&&step| step == SearchStep::Deeper(11))
                .count()
                > 2
        );
        assert!(!search.is_searching());
    }
}
