//! Whether a worker spins for completions or sleeps until they come.
//!
//! Sleeping costs whoever wakes the worker, and the time until it runs: 10 and 20 us where an idle
//! virtual CPU has to be woken. On a device that answers sooner the worker and the threads that
//! serve it then sleep by turns, and the device sees half of the depth. Spinning costs CPU time.
//! So both are tried by turns, and the worker spins only while that completes clearly more I/Os a
//! second: where sleeping would be the limit, not the storage. Knows no ring and no clock.

/// Longest spin before a sleep.
pub const SPIN_NS: u64 = 50_000;
/// I/Os in a window, and a few times the depth at least.
const WINDOW: u32 = 512;
const DEPTHS: u32 = 4;
/// Spinning stays where it completes an eighth more I/Os a second.
const GAIN: (u64, u64) = (9, 8);
/// Of a window's I/Os, one in so many may have been waited for in vain.
const MISSES: u32 = 8;
/// Windows of both ways that are held against each other: the last of the one that was chosen, and
/// these of the other after a first one, in which the host finds its way with it.
const COMPARED: u32 = 3;
/// A choice holds so many times as long as the try that led to it: twice as many each time that
/// nothing has changed.
const HOLD: (u64, u64) = (16, 64);

/// What a window is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The choice holds. So many windows were before this.
    Chosen(u32),
    /// The other way is tried.
    Other(u32),
}

/// The choice of one ring.
#[derive(Debug)]
pub struct Spin {
    window: u32,
    depth: u32,
    stage: Stage,
    on: bool,
    /// I/Os until the window ends, or, before it has begun, until it begins.
    left: u32,
    begun_ns: Option<u64>,
    /// Lengths of the last windows of what is chosen, the last one first.
    chosen_ns: [u64; COMPARED as usize],
    /// Length of the windows of the other way that count.
    other_ns: u64,
    other_begun_ns: u64,
    hold: u64,
    hold_until_ns: u64,
    /// Length of its last windows when it spun before it came to sleep; none: it slept before, too.
    spun_before_ns: Option<u64>,
    misses: u32,
    spun_ns: u64,
}

impl Spin {
    /// Of a ring for up to `depth` I/Os in flight.
    pub fn of_depth(depth: u32) -> Self {
        Self {
            window: WINDOW.max(depth.saturating_mul(DEPTHS)),
            depth,
            stage: Stage::Chosen(0),
            on: false,
            left: depth,
            begun_ns: None,
            chosen_ns: [0; COMPARED as usize],
            other_ns: 0,
            other_begun_ns: 0,
            hold: HOLD.0,
            hold_until_ns: 0,
            spun_before_ns: None,
            misses: 0,
            spun_ns: 0,
        }
    }

    /// Spin before sleeping.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// So long was spun, for all that was waited for or in vain.
    #[inline]
    pub fn note(&mut self, spun_ns: u64, came: bool) {
        self.spun_ns += spun_ns;
        self.misses += u32::from(!came);
    }

    /// What was spun since the last call.
    pub fn take_spun_ns(&mut self) -> u64 {
        std::mem::take(&mut self.spun_ns)
    }

    /// So many I/Os are back; true when that ends a window, of which [`Spin::turn`] is to be told.
    #[inline(always)]
    pub fn completed(&mut self, count: u32) -> bool {
        self.left = self.left.saturating_sub(count);
        self.left == 0
    }

    /// A window begins or ends.
    pub fn turn(&mut self, now_ns: u64) {
        let Some(begun_ns) = self.begun_ns else {
            // What was in flight when the way to wait changed is back.
            self.begun_ns = Some(now_ns);
            self.left = self.window;
            return;
        };
        let length_ns = now_ns.saturating_sub(begun_ns).max(1);
        let in_vain = self.on && self.misses > self.window / MISSES;
        // So far apart, a sleep is little of the time.
        let rare = length_ns / u64::from(self.window) > SPIN_NS;
        match self.stage {
            Stage::Chosen(_) if self.on && (in_vain || rare) => {
                self.other_begun_ns = begun_ns;
                self.choose(false, now_ns);
            }
            Stage::Other(_) if self.on && (in_vain || rare) => self.choose(false, now_ns),
            Stage::Chosen(before) => {
                self.chosen_ns.rotate_right(1);
                self.chosen_ns[0] = length_ns;
                let few = before + 1 < COMPARED || rare;
                if few || (now_ns < self.hold_until_ns && !self.has_become_slow()) {
                    self.begin(Stage::Chosen(before.saturating_add(1)), self.on, now_ns);
                } else {
                    (self.other_ns, self.other_begun_ns) = (0, now_ns);
                    self.spun_before_ns = None;
                    self.begin(Stage::Other(0), !self.on, now_ns);
                }
            }
            Stage::Other(0) => self.begin(Stage::Other(1), self.on, now_ns),
            Stage::Other(before) => {
                self.other_ns += length_ns;
                if before < COMPARED {
                    self.begin(Stage::Other(before + 1), self.on, now_ns);
                } else {
                    let chosen_ns = self.chosen_ns.iter().sum();
                    self.spun_before_ns = (!self.on).then_some(chosen_ns);
                    let [slept_ns, spun_ns] = if self.on {
                        [chosen_ns, self.other_ns]
                    } else {
                        [self.other_ns, chosen_ns]
                    };
                    self.choose(spun_ns * GAIN.0 <= slept_ns * GAIN.1, now_ns);
                }
            }
        }
    }

    /// It came to sleep because that was as fast at first, and is not any more: the host had kept
    /// its CPUs awake for a while.
    fn has_become_slow(&self) -> bool {
        let chosen_ns: u64 = self.chosen_ns.iter().sum();
        let slow = |spun_ns| spun_ns * GAIN.0 <= chosen_ns * GAIN.1;
        !self.on && self.spun_before_ns.is_some_and(slow)
    }

    /// From now on it spins or sleeps, until the other is tried again.
    fn choose(&mut self, on: bool, now_ns: u64) {
        // While the other way is tried, what was chosen is not what is on.
        let before = self.on == matches!(self.stage, Stage::Chosen(_));
        self.hold = if on == before {
            (self.hold * 2).min(HOLD.1)
        } else {
            HOLD.0
        };
        let tried_ns = now_ns.saturating_sub(self.other_begun_ns);
        self.hold_until_ns = now_ns.saturating_add(tried_ns.saturating_mul(self.hold));
        self.begin(Stage::Chosen(0), on, now_ns);
    }

    fn begin(&mut self, stage: Stage, on: bool, now_ns: u64) {
        let changes = self.on != on;
        (self.stage, self.on, self.misses) = (stage, on, 0);
        self.begun_ns = (!changes).then_some(now_ns);
        self.left = if changes { self.depth } else { self.window };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of `ios` that come while it spins, one after the other: `slept_ns` apart where it
    /// sleeps and `spun_ns` where it spins; in vain where that is longer than a spin.
    fn spun_share(ios: u32, depth: u32, apart_ns: impl Fn(u32) -> (u64, u64)) -> f64 {
        let mut spin = Spin::of_depth(depth);
        let (mut now_ns, mut spun) = (0, 0);
        for number in 0..ios {
            let (slept_ns, spun_ns) = apart_ns(number);
            if spin.is_on() {
                spun += 1;
                now_ns += spun_ns;
                spin.note(spun_ns.min(SPIN_NS), spun_ns < SPIN_NS);
            } else {
                now_ns += slept_ns;
            }
            if spin.completed(1) {
                spin.turn(now_ns);
            }
        }
        f64::from(spun) / f64::from(ios)
    }

    #[test]
    fn it_spins_where_sleeping_is_the_limit() {
        let share = spun_share(1_000_000, 8, |_| (7_000, 2_500));
        assert!(share > 0.95, "{share}");
    }

    #[test]
    fn it_sleeps_where_spinning_gains_little() {
        let share = spun_share(2_000_000, 8, |_| (7_000, 6_500));
        assert!(share < 0.03, "{share}");
    }

    #[test]
    fn on_a_slow_device_it_never_spins() {
        assert_eq!(spun_share(1_000_000, 1, |_| (80_000, 70_000)), 0.0);
    }

    #[test]
    fn one_fast_window_is_not_enough() {
        // Each time the first of the windows in which it spins is faster by chance.
        let mut spin = Spin::of_depth(4);
        let mut now_ns = 0;
        let mut fast = 0;
        for _ in 0..100_000 {
            let first = spin.stage == Stage::Other(1);
            now_ns += if first { 4_000 } else { 5_000 };
            if spin.completed(1) {
                fast += u32::from(first && spin.begun_ns.is_some());
                spin.turn(now_ns);
            }
            assert!(!matches!(spin.stage, Stage::Chosen(_)) || !spin.is_on());
        }
        assert!(fast > 0);
    }

    #[test]
    fn it_stops_when_the_device_becomes_slow() {
        let slow_from = 200_000;
        let share = |ios| {
            spun_share(ios, 16, |number| {
                if number < slow_from {
                    (6_000, 2_000)
                } else {
                    (300_000, 300_000)
                }
            })
        };
        let before = share(slow_from) * f64::from(slow_from);
        let after = share(slow_from + 100_000) * f64::from(slow_from + 100_000) - before;
        assert!(before > 170_000.0, "{before}");
        assert!(after < 1_500.0, "{after}");
    }

    #[test]
    fn sleeping_that_is_fast_for_a_moment_is_left_soon() {
        // After it spun, sleeping is as fast for 4,000 I/Os.
        let mut spin = Spin::of_depth(8);
        let (mut now_ns, mut slept, mut most) = (0, 0, 0);
        for number in 0..1_000_000 {
            slept = if spin.is_on() { 0 } else { slept + 1 };
            let warm = slept < 4_000 && number > 10_000;
            now_ns += if spin.is_on() || warm { 2_500 } else { 8_000 };
            if number > 100_000 {
                most = most.max(slept);
            }
            if spin.completed(1) {
                spin.turn(now_ns);
            }
        }
        assert!(most < 4_000 + 5 * WINDOW, "{most}");
    }

    #[test]
    fn what_was_spun_is_told_once() {
        let mut spin = Spin::of_depth(1);
        spin.note(30, true);
        spin.note(12, false);
        assert_eq!((spin.take_spun_ns(), spin.take_spun_ns()), (42, 0));
    }
}
