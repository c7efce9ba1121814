//! The hierarchical reuse random walk: addresses that come back to where they were.
//!
//! Knows a binary tree over the leaves of a range and one place in it per file, which all
//! operations move. Knows no bytes but through blocks: a leaf is so many of them.
//!
//! From the leaf of the last I/O the walk climbs: the subtree of `least_leaves` around it,
//! twice that with the chance given, again twice that, up to the whole tree. The next leaf
//! is any of that subtree. A tree has a power of two of leaves: where a range has more, it
//! lies somewhere in it, and the trees of many streams cover it together. (McNutt, The Fractal Structure of Data Reference, 2000, chapter
//! 2; as in SPC-1's public workload generators.) Which block of a leaf comes is drawn.

use loadstone_base::rng::Rng;
use loadstone_plan as plan;

/// The law of one operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reuse {
    leaf_blocks: u64,
    least_leaves: u64,
    climb_percent: u32,
    step_leaves: u64,
    again_percent: u32,
}

/// Where the walk of one file is, and what is to be done once more.
#[derive(Debug, Clone, Default)]
pub(super) struct WalkPosition {
    /// First leaf of the tree in the range, and the last one drawn; none before the first.
    at: Option<(u64, u64)>,
    again: [Option<u64>; 3],
}

impl Reuse {
    /// The law over blocks of `align_bytes`; none for the other orders.
    pub(super) fn new(order: &plan::RandomOrder, align_bytes: u64) -> Option<Self> {
        let plan::RandomOrder::Reuse {
            leaf_bytes,
            least_leaves,
            climb_percent,
            step_leaves,
            again_percent,
        } = order
        else {
            return None;
        };
        Some(Self {
            leaf_blocks: (leaf_bytes / align_bytes.max(1)).max(1),
            least_leaves: (*least_leaves).max(1),
            climb_percent: *climb_percent,
            step_leaves: (*step_leaves).max(1),
            again_percent: *again_percent,
        })
    }

    /// The next of `blocks`, for an operation by its number.
    pub(super) fn draw(
        &self,
        place: &mut WalkPosition,
        op: usize,
        blocks: u64,
        rng: &mut Rng,
    ) -> u64 {
        if let Some(block) = place.again[op].take() {
            return block.min(blocks - 1);
        }
        let leaves = (blocks / self.leaf_blocks).max(1);
        let tree = 1 << leaves.ilog2();
        let (base, last) = place
            .at
            .unwrap_or_else(|| (rng.below(leaves - tree + 1), rng.below(tree)));
        let mut size = self.least_leaves.min(tree);
        while size < tree && rng.below(100) < u64::from(self.climb_percent) {
            size *= 2;
        }
        let size = size.min(tree);
        let drawn = last / size * size + rng.below(size);
        let leaf = drawn - drawn % self.step_leaves;
        place.at = Some((base, leaf));
        let block = (base + leaf) * self.leaf_blocks + rng.below(self.leaf_blocks);
        let block = block.min(blocks - 1);
        if rng.below(100) < u64::from(self.again_percent) {
            place.again[op] = Some(block);
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(climb_percent: u32, step_leaves: u64, again_percent: u32) -> Reuse {
        Reuse {
            leaf_blocks: 8,
            least_leaves: 64,
            climb_percent,
            step_leaves,
            again_percent,
        }
    }

    fn blocks(law: &Reuse, count: usize, of: u64) -> Vec<u64> {
        let (mut place, mut rng) = (WalkPosition::default(), Rng::new(3));
        (0..count)
            .map(|_| law.draw(&mut place, 1, of, &mut rng))
            .collect()
    }

    /// The smallest subtree, of 64 leaves or more, that holds this leaf and the one before
    /// it says at least how far the walk climbed.
    #[test]
    fn the_walk_climbs_as_often_as_it_should() {
        let found = blocks(&law(44, 1, 0), 200_000, 8 << 20);
        let leaves: Vec<u64> = found.iter().map(|block| block / 8).collect();
        let mut beyond = [0u32; 8];
        for pair in leaves.windows(2) {
            for (height, count) in beyond.iter_mut().enumerate() {
                *count += u32::from(pair[0] >> (6 + height) != pair[1] >> (6 + height));
            }
        }
        // Beyond a subtree lies half of each climb past it, three quarters of the next ...
        for (height, &count) in beyond.iter().enumerate() {
            let expected: f64 = (1..=14 - height as i32)
                .map(|past| {
                    let climbed = 0.44f64.powi(height as i32 + past);
                    let stopped = if past == 14 - height as i32 {
                        1.0
                    } else {
                        0.56
                    };
                    climbed * stopped * (1.0 - 0.5f64.powi(past))
                })
                .sum();
            let share = f64::from(count) / 200_000.0;
            assert!(
                (share - expected).abs() < 0.005,
                "{height}: {share} {expected}"
            );
        }
    }

    #[test]
    fn without_climbing_it_stays_in_its_subtree() {
        let found = blocks(&law(0, 1, 0), 10_000, 8 << 20);
        assert!(found.iter().all(|block| block / 512 == found[0] / 512));
    }

    #[test]
    fn all_of_the_tree_is_reached_and_nothing_beyond_it() {
        // 100 leaves: the tree has 64, somewhere among them.
        let found = blocks(&law(100, 1, 0), 100_000, 100 * 8);
        let (least, most) = (found.iter().min().unwrap(), found.iter().max().unwrap());
        assert_eq!(most - least, 64 * 8 - 1);
        assert!(*most < 100 * 8);
    }

    #[test]
    fn a_range_of_a_few_blocks_is_no_trouble() {
        for of in 1..20 {
            assert!(blocks(&law(44, 8, 15), 1000, of).iter().all(|&b| b < of));
        }
    }

    #[test]
    fn steps_keep_to_their_leaves() {
        let found = blocks(&law(44, 8, 0), 10_000, 8 << 20);
        assert!(found.iter().all(|block| block / 8 % 8 == 0));
    }

    #[test]
    fn some_come_twice() {
        let found = blocks(&law(44, 1, 15), 100_000, 8 << 20);
        let twice = found.windows(2).filter(|pair| pair[0] == pair[1]).count();
        // 15 of 115 I/Os are the second of a pair, and 1 of 512 of the rest by chance.
        let share = twice as f64 / found.len() as f64;
        assert!((share - 15.0 / 115.0).abs() < 0.006, "{share}");
    }

    #[test]
    fn operations_move_the_same_place() {
        let (reads, writes) = (law(0, 1, 0), law(100, 1, 0));
        let (mut place, mut rng) = (WalkPosition::default(), Rng::new(3));
        for _ in 0..1000 {
            let write = writes.draw(&mut place, 1, 8 << 20, &mut rng);
            let read = reads.draw(&mut place, 0, 8 << 20, &mut rng);
            assert_eq!(write / 512, read / 512);
        }
    }
}
