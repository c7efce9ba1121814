//! Every block once, and some of them once more a region later: what is valid then lies as after long
//! random writing, though the flash was written only once.
//!
//! Knows counts of blocks by region, as the Plan has them, and nothing of what a device does with them.

use std::collections::VecDeque;

use super::permutation::PermutationWalk;
use loadstone_base::rng::Rng;
use loadstone_plan as plan;

/// The order of one file's blocks.
#[derive(Debug, Clone)]
pub(super) struct Aged {
    walk: PermutationWalk,
    /// Of each region, the blocks that are written again in the next.
    again_blocks: Box<[u64]>,
    region_blocks: u64,
    at_the_end: bool,
    /// The region that comes next.
    region: usize,
    /// I/Os left of the current one; of them those written again, and those that are it.
    left: u64,
    picks_left: u64,
    repeats_left: u64,
    /// Blocks that are written again: in the current region, then those picked in it.
    due: VecDeque<u64>,
}

/// Most blocks that are remembered at a time.
fn most_due(again_blocks: &[u64]) -> u64 {
    let pairs = again_blocks.iter().zip(again_blocks.iter().cycle().skip(1));
    pairs.map(|(one, next)| one + next).max().unwrap_or(0)
}

/// Memory of one operation's order in one file, in bytes.
pub(super) fn memory_bytes(order: &plan::RandomOrder) -> u64 {
    match order {
        plan::RandomOrder::Aged { again_blocks, .. } => {
            (again_blocks.len() as u64 + most_due(again_blocks)) * size_of::<u64>() as u64
        }
        _ => 0,
    }
}

impl Aged {
    /// The order over `blocks`; none for the other orders.
    pub(super) fn new(order: &plan::RandomOrder, blocks: u64, key: u64) -> Option<Self> {
        let plan::RandomOrder::Aged {
            again_blocks,
            region_blocks,
            at_the_end,
        } = order
        else {
            return None;
        };
        Some(Self {
            walk: PermutationWalk::new(blocks, key),
            again_blocks: again_blocks.as_slice().into(),
            region_blocks: *region_blocks,
            at_the_end: *at_the_end,
            region: 0,
            left: 0,
            picks_left: 0,
            repeats_left: 0,
            due: VecDeque::with_capacity(most_due(again_blocks) as usize),
        })
    }

    /// The next block. After the last region the first begins again, in another order.
    pub(super) fn draw(&mut self, rng: &mut Rng) -> u64 {
        if self.left == 0 {
            self.begin_region();
        }
        let repeats_now =
            self.repeats_left > 0 && (!self.at_the_end || self.left == self.repeats_left);
        let block = match repeats_now.then(|| self.due.pop_front()).flatten() {
            Some(block) => {
                self.repeats_left -= 1;
                block
            }
            None => self.walk.step(),
        };
        // Each choice of so many among those left is as probable as any other.
        if rng.below(self.left) < self.picks_left {
            self.picks_left -= 1;
            self.due.push_back(block);
        }
        self.left -= 1;
        block
    }

    fn begin_region(&mut self) {
        self.left = self.region_blocks;
        self.repeats_left = self.due.len() as u64;
        self.picks_left = self.again_blocks[self.region];
        self.region = (self.region + 1) % self.again_blocks.len();
    }
}

#[cfg(test)]
mod tests {
    use super::{Aged, Rng};
    use loadstone_plan::RandomOrder;
    use std::collections::HashMap;

    const REGION: u64 = 100;
    const AGAIN: [u64; 4] = [40, 25, 15, 0];
    const LOGICAL: u64 = 4 * REGION - 80;

    fn drawn(at_the_end: bool, passes: u64) -> Vec<u64> {
        let order = RandomOrder::Aged {
            again_blocks: AGAIN.into(),
            region_blocks: REGION,
            at_the_end,
        };
        let mut aged = Aged::new(&order, LOGICAL, 7).unwrap();
        let mut rng = Rng::new(3);
        (0..passes * 4 * REGION)
            .map(|_| aged.draw(&mut rng))
            .collect()
    }

    #[test]
    fn each_pass_writes_every_block_and_each_region_is_overwritten_as_asked_by_the_next() {
        for at_the_end in [false, true] {
            let blocks = drawn(at_the_end, 2);
            let passes: Vec<_> = blocks.chunks(4 * REGION as usize).collect();
            assert_ne!(passes[0], passes[1]);
            for pass in passes {
                let regions: Vec<_> = pass.chunks(REGION as usize).collect();
                let mut last = HashMap::new();
                for (number, region) in regions.iter().enumerate() {
                    let from_before = |block: &&u64| last.get(*block) == Some(&(number - 1));
                    let repeats = match number {
                        0 => 0,
                        _ => region.iter().filter(from_before).count() as u64,
                    };
                    let before = if number == 0 { 0 } else { AGAIN[number - 1] };
                    assert_eq!(repeats, before, "region {number}");
                    let at = if at_the_end { REGION - before } else { 0 } as usize;
                    for block in &region[at..at + before as usize] {
                        assert_eq!(last.get(block), Some(&(number - 1)));
                    }
                    last.extend(region.iter().map(|&block| (block, number)));
                }
                assert_eq!(last.len() as u64, LOGICAL);
                for (number, again) in AGAIN.iter().enumerate() {
                    let valid = last.values().filter(|&&at| at == number).count() as u64;
                    assert_eq!(valid, REGION - again, "region {number}");
                }
            }
        }
    }

    #[test]
    fn what_is_remembered_never_grows_beyond_what_was_reserved() {
        let order = RandomOrder::Aged {
            again_blocks: AGAIN.into(),
            region_blocks: REGION,
            at_the_end: true,
        };
        let mut aged = Aged::new(&order, LOGICAL, 7).unwrap();
        let (reserved, mut rng) = (aged.due.capacity(), Rng::new(5));
        assert!(super::memory_bytes(&order) >= 8 * (40 + 25));
        for _ in 0..12 * REGION {
            aged.draw(&mut rng);
            assert!(aged.due.len() <= 65);
        }
        assert_eq!(aged.due.capacity(), reserved);
    }
}
