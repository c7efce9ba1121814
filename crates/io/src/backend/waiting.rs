//! How a worker waits for completions: it sleeps, sleeps and stays on one CPU, or spins.
//!
//! Sleeping costs whoever wakes the worker, and the time until it runs: 10 and 20 us where an idle
//! virtual CPU has to be woken. On a device that answers sooner the worker and the threads that
//! serve it then sleep by turns, and the device sees half of the depth. Where the worker stays on
//! its CPU, those threads come to it, and nobody has to be woken; where it is free to move, any
//! program that runs for a moment parts them again. Spinning costs CPU time. So each is tried by
//! turns, and the dearer one is kept only while it completes clearly more I/Os a second: where
//! waiting would be the limit, not the storage. Knows no ring, no clock and no CPU.

/// Longest spin before a sleep.
pub const SPIN_NS: u64 = 50_000;
/// Where I/Os take longer than so many spins each, it does not matter where the worker wakes.
const STAY_SPINS: u64 = 4;
/// A window lasts so long at least: the scheduler's ticks make shorter ones differ by chance.
const WINDOW_NS: u64 = 3_000_000;
/// I/Os after which a window may end, and a few times the depth at least.
const STEP: u32 = 128;
const DEPTHS: u32 = 4;
/// Windows are held against each other by the time of so many I/Os.
const PER: u64 = 1024;
/// The dearer of two ways is kept where it completes an eighth more I/Os a second.
const GAIN: (u64, u64) = (9, 8);
/// Of a window's I/Os, one in so many may have been waited for in vain.
const MISSES: u64 = 8;
/// Windows of two ways that are held against each other: the last of the one that was chosen, and
/// these of the other after a first one, in which the host finds its way with it.
const COMPARED: u32 = 3;
/// A choice holds so many times as long as the try that led to it: twice as many each time that
/// nothing has changed.
const HOLD: (u64, u64) = (16, 64);

/// What a worker does until completions come; the later the dearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// It sleeps, and the scheduler puts it where it likes.
    Sleep,
    /// It sleeps, and wakes on the CPU it was on.
    Stay,
    /// It looks for them, and sleeps when none came for a while.
    Spin,
}

impl Way {
    /// Where an I/O takes so long, a wait in this way may be a part of it that counts.
    fn may_help(self, each_ns: u64) -> bool {
        match self {
            Way::Sleep => true,
            Way::Stay => each_ns <= STAY_SPINS * SPIN_NS,
            Way::Spin => each_ns <= SPIN_NS,
        }
    }
}

/// What a window is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowPurpose {
    /// The choice holds. So many windows were before this.
    Chosen(u32),
    /// Another way is tried.
    Other(u32),
}

/// The choice of one ring.
#[derive(Debug)]
pub struct WaitChoice {
    /// All that may be chosen, in the order in which they are tried.
    ways: Vec<Way>,
    /// Place in `ways` of the one to be tried next.
    next: usize,
    /// How many were never tried.
    untried: usize,
    step: u32,
    depth: u32,
    stage: WindowPurpose,
    chosen: Way,
    /// What it does now: the one that is chosen, or that is tried.
    now: Way,
    /// I/Os until the window may end, or, before it has begun, until it begins.
    left: u32,
    /// I/Os of the window.
    ios: u64,
    begun_ns: Option<u64>,
    /// Of the last windows of what is chosen, the last one first: the time of [`PER`] I/Os.
    chosen_ns: [u64; COMPARED as usize],
    /// The same of the windows of the other way that count, added up.
    other_ns: u64,
    other_begun_ns: u64,
    hold: u64,
    hold_until_ns: u64,
    /// Shortest such windows since the choice.
    best_ns: u64,
    /// The dearer way that what is chosen took the place of, and the length of its last windows.
    before: Option<(Way, u64)>,
    misses: u32,
    spun_ns: u64,
}

impl WaitChoice {
    /// Of a ring for up to `depth` I/Os in flight. With one I/O there is nothing that spinning
    /// would overlap. It stays on a CPU only where it `may_stay`; none: there is nothing to choose.
    pub fn of_depth(depth: u32, may_stay: bool) -> Option<Self> {
        let ways: Vec<Way> = [
            (Way::Spin, depth > 1),
            (Way::Stay, may_stay),
            (Way::Sleep, true),
        ]
        .into_iter()
        .filter_map(|(way, may)| may.then_some(way))
        .collect();
        (ways.len() > 1).then(|| Self {
            next: 0,
            untried: ways.len() - 1,
            ways,
            step: STEP.max(depth.saturating_mul(DEPTHS)),
            depth,
            stage: WindowPurpose::Chosen(0),
            chosen: Way::Sleep,
            now: Way::Sleep,
            left: depth,
            ios: 0,
            begun_ns: None,
            chosen_ns: [0; COMPARED as usize],
            other_ns: 0,
            other_begun_ns: 0,
            hold: HOLD.0,
            hold_until_ns: 0,
            best_ns: u64::MAX,
            before: None,
            misses: 0,
            spun_ns: 0,
        })
    }

    /// What to do now.
    #[inline(always)]
    pub fn way(&self) -> Way {
        self.now
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

    /// So many I/Os are back; true when that may end a window, of which [`WaitChoice::turn`] is to be told.
    #[inline(always)]
    pub fn completed(&mut self, count: u32) -> bool {
        self.left = self.left.saturating_sub(count);
        self.left == 0
    }

    /// A window begins, goes on or ends.
    pub fn turn(&mut self, now_ns: u64) {
        let Some(begun_ns) = self.begun_ns else {
            // What was in flight when the way to wait changed is back.
            self.begun_ns = Some(now_ns);
            self.left = self.step;
            return;
        };
        self.ios += u64::from(self.step);
        let length_ns = now_ns.saturating_sub(begun_ns).max(1);
        if length_ns < WINDOW_NS {
            self.left = self.step;
            return;
        }
        let in_vain = self.now == Way::Spin && u64::from(self.misses) > self.ios / MISSES;
        let each_ns = length_ns / self.ios;
        let useless = in_vain || !self.now.may_help(each_ns);
        let length_ns = length_ns.saturating_mul(PER) / self.ios;
        match self.stage {
            WindowPurpose::Chosen(_) if useless => {
                self.other_begun_ns = begun_ns;
                self.before = None;
                self.choose(Way::Sleep, false, now_ns);
            }
            WindowPurpose::Other(_) if useless => self.choose(self.chosen, true, now_ns),
            WindowPurpose::Chosen(windows) => {
                self.chosen_ns.rotate_right(1);
                self.chosen_ns[0] = length_ns;
                let windows = windows.saturating_add(1);
                if let Some(other) = self.other_due(windows, each_ns, now_ns) {
                    (self.other_ns, self.other_begun_ns) = (0, now_ns);
                    self.begin(WindowPurpose::Other(0), other, now_ns);
                } else {
                    self.begin(WindowPurpose::Chosen(windows), self.now, now_ns);
                }
            }
            WindowPurpose::Other(0) => self.begin(WindowPurpose::Other(1), self.now, now_ns),
            WindowPurpose::Other(windows) => {
                self.other_ns += length_ns;
                if windows < COMPARED {
                    self.begin(WindowPurpose::Other(windows + 1), self.now, now_ns);
                } else {
                    self.compare(now_ns);
                }
            }
        }
    }

    /// Another way to wait, when it is time to try one after so many windows of the chosen one.
    fn other_due(&mut self, windows: u32, each_ns: u64, now_ns: u64) -> Option<Way> {
        if windows < COMPARED {
            return None;
        }
        let due = self.has_halved() || self.untried > 0 || now_ns >= self.hold_until_ns;
        match self.has_become_slow() {
            None if due => self.next_other(each_ns),
            left_too_early => left_too_early,
        }
    }

    /// The windows of the way that was tried are complete.
    fn compare(&mut self, now_ns: u64) {
        let chosen = (self.chosen, self.chosen_ns.iter().sum());
        let other = (self.now, self.other_ns);
        let (cheap, dear) = if chosen.0 < other.0 {
            (chosen, other)
        } else {
            (other, chosen)
        };
        let better = if is_clearly_less(dear.1, cheap.1) {
            dear
        } else {
            cheap
        };
        let returns = self.before.is_some_and(|(way, _)| way == better.0);
        let longer = returns || better.0 == self.chosen;
        if better.0 != self.chosen {
            self.before = (self.chosen == dear.0).then_some(dear);
        }
        self.choose(better.0, longer, now_ns);
    }

    /// The dearer way that was left because this was as fast at first, and is not any more: the
    /// host had kept its CPUs awake for a while, or its threads together.
    fn has_become_slow(&self) -> Option<Way> {
        let chosen_ns = self.chosen_ns.iter().sum();
        let (way, dear_ns) = self.before?;
        is_clearly_less(dear_ns, chosen_ns).then_some(way)
    }

    /// What is chosen does half of the I/Os a second that it did, for the first time since: another
    /// program may have come to its CPU.
    fn has_halved(&mut self) -> bool {
        let chosen_ns: u64 = self.chosen_ns.iter().sum();
        let halved = chosen_ns / 2 > self.best_ns;
        self.best_ns = if halved {
            chosen_ns
        } else {
            chosen_ns.min(self.best_ns)
        };
        halved
    }

    /// The next in turn that is not chosen and may help where each I/O takes so long.
    fn next_other(&mut self, each_ns: u64) -> Option<Way> {
        for _ in 0..self.ways.len() {
            let way = self.ways[self.next];
            self.next = (self.next + 1) % self.ways.len();
            if way != self.chosen && way.may_help(each_ns) {
                return Some(way);
            }
        }
        None
    }

    /// From now on it waits so, until another way is tried again: later each time when this `longer`
    /// proves to be the one.
    fn choose(&mut self, way: Way, longer: bool, now_ns: u64) {
        self.hold = if longer {
            (self.hold * 2).min(HOLD.1)
        } else {
            HOLD.0
        };
        let tried_ns = now_ns.saturating_sub(self.other_begun_ns);
        self.hold_until_ns = now_ns.saturating_add(tried_ns.saturating_mul(self.hold));
        self.untried = self.untried.saturating_sub(1);
        self.chosen = way;
        self.best_ns = u64::MAX;
        self.begin(WindowPurpose::Chosen(0), way, now_ns);
    }

    fn begin(&mut self, stage: WindowPurpose, way: Way, now_ns: u64) {
        let changes = self.now != way;
        (self.stage, self.now, self.misses, self.ios) = (stage, way, 0, 0);
        self.begun_ns = (!changes).then_some(now_ns);
        self.left = if changes { self.depth } else { self.step };
    }
}

/// An eighth more I/Os a second.
fn is_clearly_less(dear_ns: u64, cheap_ns: u64) -> bool {
    dear_ns * GAIN.0 <= cheap_ns * GAIN.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spins_or_sleeps(depth: u32) -> WaitChoice {
        WaitChoice::of_depth(depth, false).expect("two ways")
    }

    /// The share of `ios` that come while it spins, one after the other: `slept_ns` apart where it
    /// sleeps and `spun_ns` where it spins; in vain where that is longer than a spin.
    fn spun_share(ios: u32, depth: u32, apart_ns: impl Fn(u32) -> (u64, u64)) -> f64 {
        let mut waiting = spins_or_sleeps(depth);
        let (mut now_ns, mut spun) = (0, 0);
        for number in 0..ios {
            let (slept_ns, spun_ns) = apart_ns(number);
            if waiting.way() == Way::Spin {
                spun += 1;
                now_ns += spun_ns;
                waiting.note(spun_ns.min(SPIN_NS), spun_ns < SPIN_NS);
            } else {
                now_ns += slept_ns;
            }
            if waiting.completed(1) {
                waiting.turn(now_ns);
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
        assert_eq!(spun_share(1_000_000, 2, |_| (80_000, 70_000)), 0.0);
    }

    #[test]
    fn one_fast_window_is_not_enough() {
        // Each time the first of the windows in which it spins is faster by chance.
        let mut waiting = spins_or_sleeps(4);
        let mut now_ns = 0;
        let mut fast = 0;
        for _ in 0..100_000 {
            let first = waiting.stage == WindowPurpose::Other(1);
            now_ns += if first { 4_000 } else { 5_000 };
            if waiting.completed(1) {
                fast += u32::from(first && waiting.begun_ns.is_some());
                waiting.turn(now_ns);
            }
            assert!(
                !matches!(waiting.stage, WindowPurpose::Chosen(_)) || waiting.way() != Way::Spin
            );
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
        let mut waiting = spins_or_sleeps(8);
        let (mut now_ns, mut slept, mut most) = (0, 0, 0);
        for number in 0..1_000_000 {
            slept = if waiting.way() == Way::Spin {
                0
            } else {
                slept + 1
            };
            let warm = slept < 4_000 && number > 10_000;
            now_ns += if waiting.way() == Way::Spin || warm {
                2_500
            } else {
                8_000
            };
            if number > 100_000 {
                most = most.max(slept);
            }
            if waiting.completed(1) {
                waiting.turn(now_ns);
            }
        }
        assert!(most < 4_000 + 5 * 1_300, "{most}");
    }

    /// The share of `ios` that come while it waits in this way, `apart_ns` apart.
    fn share_of(way: Way, ios: u32, depth: u32, mut apart_ns: impl FnMut(Way) -> u64) -> f64 {
        let mut waiting = WaitChoice::of_depth(depth, true).expect("several ways");
        let (mut now_ns, mut so) = (0, 0);
        for _ in 0..ios {
            so += u32::from(waiting.way() == way);
            now_ns += apart_ns(waiting.way());
            if waiting.completed(1) {
                waiting.turn(now_ns);
            }
        }
        f64::from(so) / f64::from(ios)
    }

    #[test]
    fn of_three_ways_the_best_is_kept() {
        for best in [Way::Sleep, Way::Stay, Way::Spin] {
            let apart_ns = |way| if way == best { 3_000 } else { 9_000 };
            let share = share_of(best, 1_000_000, 16, apart_ns);
            assert!(share > 0.9, "{best:?}: {share}");
        }
    }

    #[test]
    fn one_io_at_a_time_stays_where_moving_costs_and_never_spins() {
        let apart_ns = |way| if way == Way::Stay { 12_000 } else { 30_000 };
        assert!(share_of(Way::Stay, 1_000_000, 1, apart_ns) > 0.9);
        assert_eq!(share_of(Way::Spin, 1_000_000, 1, apart_ns), 0.0);
        assert!(WaitChoice::of_depth(1, false).is_none());
    }

    #[test]
    fn a_program_that_parts_the_threads_costs_little_each_time() {
        // Once together they stay so while the worker moves freely, until something comes between:
        // every 80,000 I/Os. From then on only staying brings them together again.
        let (mut together, mut since, mut total_ns) = (false, 0_u32, 0_u64);
        let ios = 2_000_000;
        share_of(Way::Stay, ios, 1, |way| {
            since += 1;
            if since % 80_000 == 0 {
                together = false;
            }
            together |= way == Way::Stay;
            let apart_ns = if together { 12_000 } else { 30_000 };
            total_ns += apart_ns;
            apart_ns
        });
        let mean_ns = total_ns / u64::from(ios);
        assert!(mean_ns < 12_800, "{mean_ns}");
    }

    #[test]
    fn a_cpu_that_another_program_comes_to_is_left_soon() {
        // Staying was best, until its CPU has to be shared: from then on moving is.
        let (mut number, mut stays, mut most) = (0, 0, 0);
        share_of(Way::Sleep, 1_000_000, 1, |way| {
            number += 1;
            let shared = number > 500_000;
            stays = if shared && way == Way::Stay {
                stays + 1
            } else {
                0
            };
            most = most.max(stays);
            match (way == Way::Stay, shared) {
                (true, false) => 12_000,
                (true, true) => 40_000,
                (false, _) => 20_000,
            }
        });
        assert!(most < 8 * 300, "{most}");
    }

    #[test]
    fn a_rate_that_goes_with_the_ticks_of_the_scheduler_is_no_reason_to_spin() {
        let mut now_ns = 0;
        let apart_ns = |_| {
            let slow = (now_ns / 4_000_000) % 2 == 1;
            let apart_ns = if slow { 4_000 } else { 2_000 };
            now_ns += apart_ns;
            apart_ns
        };
        let share = share_of(Way::Spin, 4_000_000, 128, apart_ns);
        assert!(share < 0.1, "{share}");
    }

    #[test]
    fn what_was_spun_is_told_once() {
        let mut waiting = spins_or_sleeps(2);
        waiting.note(30, true);
        waiting.note(12, false);
        assert_eq!((waiting.take_spun_ns(), waiting.take_spun_ns()), (42, 0));
    }
}
