//! Which file or directory is next.
//!
//! Knows orders and how to look for one that fits. Knows no file: whether one fits is the
//! caller's answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::registry::Refused;
use loadstone_base::rng::Rng;
use loadstone_plan::{FilePart, FileSelect};

/// Random choices before every one is looked at in turn.
const TRIES: u64 = 64;

/// Where streams that go through a tree together are.
#[derive(Debug)]
pub struct TreeCursor {
    start: u64,
    taken: AtomicU64,
}

/// A stream's choice among `count`.
#[derive(Debug)]
pub struct Choice {
    count: u32,
    part: FilePart,
    kind: SelectOrder,
}

#[derive(Debug)]
enum SelectOrder {
    Sequential {
        cursor: Arc<TreeCursor>,
        once: bool,
    },
    Random,
    /// Rate of an exponential distribution that is cut at 1.
    Skewed(f64),
}

/// The outcome of looking for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// This one fits, and was taken.
    This(u32),
    /// Not found yet: other things may be due.
    NotYet,
    /// None fits. `busy`: some were in use, and nobody knows what will be of them.
    None {
        /// See above.
        busy: bool,
    },
    /// Each one's turn has come.
    Through,
}

/// A search under way.
#[derive(Debug, Default)]
pub struct FileSearch {
    tries: u64,
    /// Next in turn and how many are left to look at.
    turn: Option<(u32, u32)>,
    busy: bool,
    /// Found busy, and not to be left out.
    held: Option<u32>,
}

impl Choice {
    /// The choice of a stream among `count` of `part`; a sequential one goes by `cursor`.
    #[must_use]
    pub fn new(select: FileSelect, count: u32, part: FilePart, cursor: Arc<TreeCursor>) -> Self {
        let kind = match select {
            FileSelect::Sequential { once, .. } => SelectOrder::Sequential { cursor, once },
            FileSelect::Random {} => SelectOrder::Random,
            FileSelect::Skewed { midpoint_percent } => {
                SelectOrder::Skewed(rate_for(midpoint_percent / 100.0))
            }
        };
        Self { count, part, kind }
    }

    /// How many there are to choose from.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The next, counted from 0 among those of the part; none when each one's turn has come.
    fn next(&self, rng: &mut Rng) -> Option<u32> {
        let count = u64::from(self.count);
        match &self.kind {
            SelectOrder::Sequential { cursor, once } => {
                let at = cursor.taken.fetch_add(1, Ordering::Relaxed);
                (!once || at < count).then(|| ((cursor.start + at) % count) as u32)
            }
            SelectOrder::Random => Some(rng.below(count) as u32),
            SelectOrder::Skewed(rate) => {
                let share = -(-rng.unit() * -(-rate).exp_m1()).ln_1p() / rate;
                Some(((share * count as f64) as u32).min(self.count - 1))
            }
        }
    }

    fn tries(&self) -> u64 {
        match self.kind {
            SelectOrder::Sequential { .. } => u64::from(self.count),
            _ => TRIES.min(u64::from(self.count)),
        }
    }
}

impl FileSearch {
    /// Looks at up to `patience` of them. `take` takes one that fits.
    pub fn go(
        &mut self,
        choice: &Choice,
        rng: &mut Rng,
        patience: u32,
        mut take: impl FnMut(u32) -> Result<(), Refused>,
    ) -> Selection {
        let once = matches!(choice.kind, SelectOrder::Sequential { once: true, .. });
        for _ in 0..patience {
            let next = match (self.held.take(), &mut self.turn) {
                (Some(held), _) => Some(held),
                (None, Some((_, 0))) => {
                    let busy = self.busy;
                    *self = Self::default();
                    return Selection::None { busy };
                }
                (None, Some((at, left))) => {
                    let next = *at;
                    *at = (next + 1) % choice.count;
                    *left -= 1;
                    Some(next)
                }
                (None, None) => choice.next(rng),
            };
            let Some(next) = next else {
                return Selection::Through;
            };
            let number = choice.part.number(next);
            match take(number) {
                Ok(()) => {
                    *self = Self::default();
                    return Selection::This(number);
                }
                Err(Refused::Busy) if once => {
                    self.held = Some(next);
                    return Selection::None { busy: true };
                }
                Err(refused) => self.busy |= refused == Refused::Busy,
            }
            self.tries += 1;
            if !once && self.turn.is_none() && self.tries >= choice.tries() {
                // Now all of them, so that one that fits is found.
                self.busy = false;
                self.turn = Some((rng.below(u64::from(choice.count)) as u32, choice.count));
            }
        }
        Selection::NotYet
    }
}

impl TreeCursor {
    /// Begins at `start`.
    #[must_use]
    pub fn new(start: u32) -> Arc<Self> {
        Arc::new(Self {
            start: u64::from(start),
            taken: AtomicU64::new(0),
        })
    }
}

/// The rate at which half of an exponential distribution that is cut at 1 lies below
/// `midpoint`, which is above 0 and below one half.
fn rate_for(midpoint: f64) -> f64 {
    let below = |rate: f64| (-rate * midpoint).exp_m1() / (-rate).exp_m1();
    let (mut low, mut high) = (1e-6, 2.0 / midpoint);
    for _ in 0..100 {
        let rate = f64::midpoint(low, high);
        if below(rate) < 0.5 {
            low = rate;
        } else {
            high = rate;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEQUENTIAL: FileSelect = FileSelect::Sequential {
        random_start: false,
        once: false,
    };
    const ONCE: FileSelect = FileSelect::Sequential {
        random_start: false,
        once: true,
    };

    const EVERY: FilePart = FilePart { index: 0, count: 1 };

    fn all(choice: &Choice, search: &mut FileSearch, count: usize) -> Vec<Selection> {
        let mut rng = Rng::new(1);
        (0..count)
            .map(|_| search.go(choice, &mut rng, 100, |_| Ok(())))
            .collect()
    }

    #[test]
    fn streams_that_share_a_cursor_take_turns() {
        let shared = TreeCursor::new(2);
        let [a, b] = [(); 2].map(|()| Choice::new(SEQUENTIAL, 4, EVERY, shared.clone()));
        let (mut first, mut second) = (FileSearch::default(), FileSearch::default());
        assert_eq!(
            all(&a, &mut first, 3),
            [Selection::This(2), Selection::This(3), Selection::This(0)]
        );
        assert_eq!(
            all(&b, &mut second, 2),
            [Selection::This(1), Selection::This(2)]
        );
    }

    #[test]
    fn every_file_is_one_hosts_whatever_their_number() {
        for (files, count) in [(1, 1), (2, 3), (7, 3), (20, 7), (64, 64)] {
            let mut taken: Vec<u32> = Vec::new();
            for part in (0..count).map(|index| FilePart { index, count }) {
                let own = part.of(files);
                let choice = Choice::new(ONCE, own, part, TreeCursor::new(0));
                for found in all(&choice, &mut FileSearch::default(), own as usize) {
                    let Selection::This(number) = found else {
                        panic!("{files} of {count}: {found:?}")
                    };
                    taken.push(number);
                }
            }
            taken.sort_unstable();
            assert_eq!(taken, (0..files).collect::<Vec<_>>(), "{files} of {count}");
        }
    }

    #[test]
    fn once_is_once_also_for_what_is_busy() {
        let (choice, mut search, mut rng) = (
            Choice::new(ONCE, 3, EVERY, TreeCursor::new(1)),
            FileSearch::default(),
            Rng::new(1),
        );
        assert_eq!(all(&choice, &mut search, 1), [Selection::This(1)]);
        for _ in 0..3 {
            let found = search.go(&choice, &mut rng, 100, |_| Err(Refused::Busy));
            assert_eq!(found, Selection::None { busy: true });
        }
        assert_eq!(
            all(&choice, &mut search, 4),
            [
                Selection::This(2),
                Selection::This(0),
                Selection::Through,
                Selection::Through
            ]
        );
    }

    #[test]
    fn the_only_one_that_fits_is_found_and_that_none_does() {
        let mut rng = Rng::new(3);
        let skewed = FileSelect::Skewed {
            midpoint_percent: 1.0,
        };
        for select in [SEQUENTIAL, FileSelect::Random {}, skewed] {
            let choice = Choice::new(select, 10_000, EVERY, TreeCursor::new(0));
            let mut look = |only: u32, refused| {
                let mut search = FileSearch::default();
                loop {
                    let take = |at| if at == only { Ok(()) } else { Err(refused) };
                    match search.go(&choice, &mut rng, 1000, take) {
                        Selection::NotYet => {}
                        found => return found,
                    }
                }
            };
            assert_eq!(look(7_777, Refused::Unfit), Selection::This(7_777));
            assert_eq!(
                look(u32::MAX, Refused::Unfit),
                Selection::None { busy: false }
            );
            assert_eq!(
                look(u32::MAX, Refused::Busy),
                Selection::None { busy: true }
            );
        }
    }

    #[test]
    fn half_of_a_skewed_choice_lies_below_its_midpoint() {
        let mut rng = Rng::new(4);
        for midpoint_percent in [0.5, 10.0, 25.0, 45.0] {
            let choice = Choice::new(
                FileSelect::Skewed { midpoint_percent },
                1000,
                EVERY,
                TreeCursor::new(0),
            );
            let (mut below, mut first, mut last) = (0, 0, 0);
            for _ in 0..40_000 {
                let at = choice.next(&mut rng).unwrap();
                assert!(at < 1000);
                below += u32::from(f64::from(at) < midpoint_percent * 10.0);
                first += u32::from(at < 100);
                last += u32::from(at >= 900);
            }
            // Binomial, mean 20000, deviation 100.
            assert!(
                (19_500..20_500).contains(&below),
                "{midpoint_percent}: {below}"
            );
            assert!(first > last, "{midpoint_percent}");
        }
    }
}
