//! Which blocks of a file were touched in this pass: fio's random map.
//!
//! Knows one bit per block, and a second row of bits for words that are full, so that the
//! next free block is found fast however full the map is. Knows no bytes. Needed only
//! where I/Os differ in size: an I/O is then cut to the free blocks it finds, so that no
//! block is touched twice in a pass. Equal sizes use a permutation, which needs no memory.

use loadstone_base::rng::Rng;

const WORD_BITS: u64 = 64;

/// Touched blocks of `0..blocks`.
#[derive(Debug, Clone)]
pub(crate) struct Bitmap {
    /// A set bit is a touched block; bits past the end are set.
    touched: Box<[u64]>,
    /// A set bit is a full word of `touched`.
    full: Box<[u64]>,
    blocks: u64,
    free: u64,
}

fn words(bits: u64) -> u64 {
    bits.div_ceil(WORD_BITS)
}

/// Memory of a map of so many blocks.
pub(crate) fn bytes_needed(blocks: u64) -> u64 {
    let first = words(blocks);
    8 * (first + words(first))
}

impl Bitmap {
    /// An empty map of `blocks`, at least 1.
    pub(crate) fn new(blocks: u64) -> Self {
        let first = words(blocks);
        let zeros = |count: u64| vec![0; count as usize].into_boxed_slice();
        let mut map = Self {
            touched: zeros(first),
            full: zeros(words(first)),
            blocks,
            free: 0,
        };
        map.clear(blocks);
        map
    }

    /// Forgets everything and goes on with `blocks`, at most as many as at first.
    pub(crate) fn clear(&mut self, blocks: u64) {
        let most = self.touched.len() as u64 * WORD_BITS;
        (self.blocks, self.free) = (blocks.min(most), blocks.min(most));
        for (row, used) in [
            (&mut self.touched, self.blocks),
            (&mut self.full, words(self.blocks)),
        ] {
            for (index, word) in row.iter_mut().enumerate() {
                let first = index as u64 * WORD_BITS;
                *word = match used.saturating_sub(first) {
                    0 => u64::MAX,
                    left if left < WORD_BITS => u64::MAX << left,
                    _ => 0,
                };
            }
        }
    }

    /// Takes up to `most` blocks in a row, all free, from a random free place: the first
    /// and how many. When none is free a new pass begins.
    pub(crate) fn take(&mut self, rng: &mut Rng, most: u64) -> (u64, u64) {
        if self.free == 0 {
            self.clear(self.blocks);
        }
        let first = self.place(rng);
        let mut count = 0;
        while count < most.max(1) && first + count < self.blocks && self.is_free(first + count) {
            self.touch(first + count);
            count += 1;
        }
        (first, count)
    }

    /// A free block: a random one, or the next free after it. As fio does: I/Os that fill a
    /// gap from its start leave the rest of it whole, so fewer are cut short than if every
    /// free block were equally likely.
    fn place(&self, rng: &mut Rng) -> u64 {
        let block = rng.below(self.blocks);
        self.free_from(block)
            .or_else(|| self.free_from(0))
            .unwrap_or(0)
    }

    #[inline]
    fn is_free(&self, block: u64) -> bool {
        self.touched[(block / WORD_BITS) as usize] >> (block % WORD_BITS) & 1 == 0
    }

    fn touch(&mut self, block: u64) {
        let index = block / WORD_BITS;
        let word = &mut self.touched[index as usize];
        *word |= 1 << (block % WORD_BITS);
        if *word == u64::MAX {
            self.full[(index / WORD_BITS) as usize] |= 1 << (index % WORD_BITS);
        }
        self.free -= 1;
    }

    /// The first free block at or after `block`.
    fn free_from(&self, block: u64) -> Option<u64> {
        let index = block / WORD_BITS;
        let here = zero_from(self.touched[index as usize], block % WORD_BITS);
        if let Some(bit) = here {
            return Some(index * WORD_BITS + bit);
        }
        let word = self.open_word(index + 1)?;
        zero_from(self.touched[word as usize], 0).map(|bit| word * WORD_BITS + bit)
    }

    /// The first word at or after `index` that is not full.
    fn open_word(&self, index: u64) -> Option<u64> {
        let mut row = index / WORD_BITS;
        let mut from = index % WORD_BITS;
        while let Some(&word) = self.full.get(row as usize) {
            if let Some(bit) = zero_from(word, from) {
                return Some(row * WORD_BITS + bit);
            }
            (row, from) = (row + 1, 0);
        }
        None
    }
}

/// The lowest clear bit of `word` at or after `from`.
fn zero_from(word: u64, from: u64) -> Option<u64> {
    let clear = !word & (u64::MAX << from);
    (clear != 0).then(|| u64::from(clear.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use super::Bitmap;
    use loadstone_base::rng::Rng;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest, ProptestConfig};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn a_pass_touches_every_block_once(blocks in 1u64..20_000, most in 1u64..40, seed: u64) {
            let (mut map, mut rng) = (Bitmap::new(blocks), Rng::new(seed));
            for _ in 0..2 {
                let mut seen = vec![false; blocks as usize];
                let mut left = blocks;
                while left > 0 {
                    let (first, count) = map.take(&mut rng, most);
                    prop_assert!((1..=most).contains(&count));
                    for block in first..first + count {
                        prop_assert!(!std::mem::replace(&mut seen[block as usize], true));
                    }
                    left -= count;
                }
            }
        }

        #[test]
        fn the_next_free_block_is_the_next_free_block(
            blocks in 1u64..20_000,
            taken in proptest::collection::vec(any::<u64>(), 0..200),
            run in 1u64..9000,
            from: u64,
        ) {
            let mut map = Bitmap::new(blocks);
            for start in taken {
                for block in start % blocks..(start % blocks + run).min(blocks) {
                    if map.is_free(block) {
                        map.touch(block);
                    }
                }
            }
            let from = from % blocks;
            prop_assert_eq!(map.free_from(from), (from..blocks).find(|&b| map.is_free(b)));
            prop_assert_eq!(map.free, (0..blocks).filter(|&b| map.is_free(b)).count() as u64);
        }
    }

    #[test]
    fn a_cleared_map_may_be_shorter() {
        let (mut map, mut rng) = (Bitmap::new(1000), Rng::new(3));
        map.clear(70);
        let mut touched: Vec<u64> = (0..70).map(|_| map.take(&mut rng, 1).0).collect();
        touched.sort_unstable();
        assert_eq!(touched, (0..70).collect::<Vec<_>>());
    }

    #[test]
    fn first_places_are_spread_evenly() {
        let mut counts = [0u32; 16];
        for seed in 0..8000 {
            let (first, _) = Bitmap::new(1600).take(&mut Rng::new(seed), 4);
            counts[first as usize / 100] += 1;
        }
        // Binomial, mean 500, deviation 21.7.
        assert!(counts.iter().all(|c| (400..600).contains(c)), "{counts:?}");
    }
}
