//! A keyed order of the numbers `0..n` in constant memory.
//!
//! Knows one bijection: the numbers of the smallest power of two that is at least `n`,
//! mixed by odd multiplications and shifts (each undone by its inverse, so nothing meets),
//! without those that are not below `n` ("cycle-walking", Black and Rogaway 2002). Knows
//! nothing of blocks or files. A bitmap would need one bit per block; this needs some
//! ten words.

use loadstone_base::rng::{mix, Rng};

/// Numbers made at a time by [`PermutationWalk`]: enough to keep the processor's multipliers busy and
/// to skip numbers that are too large without a branch that cannot be foreseen.
const BLOCK: usize = 8;

/// A bijection of `0..n` onto itself, chosen by a key.
#[derive(Debug, Clone)]
pub struct Permutation {
    n: u64,
    /// The power of two, less one.
    mask: u64,
    /// Half the bits, rounded up.
    shift: u32,
    key: u64,
    added: u64,
    multipliers: [u64; 4],
}

impl Permutation {
    /// The permutation of `0..n` with this key; `n` from 1 to 2^63.
    #[must_use]
    pub fn new(n: u64, key: u64) -> Self {
        debug_assert!((1..=1 << 63).contains(&n));
        let mask = n.next_power_of_two() - 1;
        let shift = mask.count_ones().div_ceil(2).max(1);
        let mut order = Self {
            n,
            mask,
            shift,
            key,
            added: 0,
            multipliers: [0; 4],
        };
        order.derive();
        order
    }

    /// Another order from now on.
    fn rekey(&mut self) {
        self.key = mix(self.key);
        self.derive();
    }

    fn derive(&mut self) {
        let mut rng = Rng::new(self.key);
        self.added = rng.next_u64();
        // Odd, so that they have inverses.
        self.multipliers = [0; 4].map(|_: u64| rng.next_u64() | 1);
    }

    /// Number of elements.
    pub(crate) fn count(&self) -> u64 {
        self.n
    }

    /// Where `index` (below `n`) goes.
    #[inline]
    #[must_use]
    pub fn apply(&self, index: u64) -> u64 {
        let mut at = index;
        loop {
            at = self.mixed(at);
            if at < self.n {
                return at;
            }
        }
    }

    /// The bijection of the power of two.
    #[inline(always)]
    fn mixed(&self, index: u64) -> u64 {
        let mut at = index.wrapping_add(self.added) & self.mask;
        for multiplier in self.multipliers {
            at = at.wrapping_mul(multiplier) & self.mask;
            at ^= at >> self.shift;
        }
        at
    }
}

/// A walk through a permutation, pass after pass, each pass in another order.
#[derive(Debug, Clone)]
pub struct PermutationWalk {
    order: Permutation,
    /// The next index of the power of two.
    index: u64,
    /// Numbers made ahead, those from `taken` to `made`.
    ahead: [u64; BLOCK],
    taken: u32,
    made: u32,
}

impl PermutationWalk {
    /// A walk over `0..n`, reproducible from `key`.
    #[must_use]
    pub fn new(n: u64, key: u64) -> Self {
        Self {
            order: Permutation::new(n, mix(key)),
            index: 0,
            ahead: [0; BLOCK],
            taken: 0,
            made: 0,
        }
    }

    /// The next number; each of `0..n` comes exactly once per pass.
    #[inline(always)]
    pub fn step(&mut self) -> u64 {
        if self.taken == self.made {
            self.make();
        }
        let at = self.ahead[self.taken as usize % BLOCK];
        self.taken += 1;
        at
    }

    #[inline(never)]
    fn make(&mut self) {
        let mut made = 0;
        while made == 0 {
            let left = self.order.mask - self.index;
            if left < BLOCK as u64 {
                made = self.make_ahead(left + 1);
                self.index = 0;
                self.order.rekey();
            } else {
                made = self.make_ahead(BLOCK as u64);
                self.index += BLOCK as u64;
            }
        }
        (self.taken, self.made) = (0, made as u32);
    }

    /// Makes the numbers of the next `count` (at most a block) indices; returns how many
    /// are below `n`.
    #[inline(always)]
    fn make_ahead(&mut self, count: u64) -> usize {
        let mut made = 0;
        for step in 0..count {
            let at = self.order.mixed(self.index + step);
            // One that is too large is written over by the next.
            self.ahead[made % BLOCK] = at;
            made += usize::from(at < self.order.n);
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_each_once(numbers: impl Iterator<Item = u64>, n: u64) {
        let mut seen = vec![false; n as usize];
        let mut count = 0;
        for at in numbers {
            assert!(at < n);
            assert!(
                !std::mem::replace(&mut seen[at as usize], true),
                "{at} came twice of {n}"
            );
            count += 1;
        }
        assert_eq!(count, n);
    }

    #[test]
    fn every_small_size_is_covered_exactly_once_per_pass() {
        for n in 1..=600u64 {
            let mut walk = PermutationWalk::new(n, n);
            for _ in 0..3 {
                assert_each_once((0..n).map(|_| walk.step()), n);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_size_and_key_is_a_bijection(n in 1u64..200_000, key: u64) {
            let order = Permutation::new(n, key);
            assert_each_once((0..n).map(|i| order.apply(i)), n);
        }

        #[test]
        fn huge_sizes_stay_in_range(n in (1u64 << 40)..=(1u64 << 63), key: u64, start: u64) {
            let order = Permutation::new(n, key);
            let mut images: Vec<_> = (0..64).map(|i| order.apply((start % n + i) % n)).collect();
            assert!(images.iter().all(|&at| at < n));
            images.sort_unstable();
            images.dedup();
            assert_eq!(images.len(), 64);
        }
    }

    #[test]
    fn passes_and_keys_differ() {
        let n = 1000;
        let mut walk = PermutationWalk::new(n, 5);
        let first: Vec<_> = (0..n).map(|_| walk.step()).collect();
        let second: Vec<_> = (0..n).map(|_| walk.step()).collect();
        let mut again = PermutationWalk::new(n, 5);
        assert_eq!(first, (0..n).map(|_| again.step()).collect::<Vec<_>>());
        // Two random orders agree in one place on average.
        assert!(first.iter().zip(&second).filter(|(a, b)| a == b).count() < 10);
        let mut other = PermutationWalk::new(n, 6);
        assert!(first.iter().filter(|&&a| a == other.step()).count() < 10);
    }

    /// Pearson's statistic of counts that should be equal.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected = counts.iter().map(|&c| f64::from(c)).sum::<f64>() / counts.len() as f64;
        counts
            .iter()
            .map(|&c| (f64::from(c) - expected).powi(2) / expected)
            .sum()
    }

    #[test]
    fn successive_places_are_unrelated() {
        // Places, and steps over 1, 2, … I/Os and over a row, each in 64 classes of ranges
        // that are no powers of two: 63 degrees of freedom, mean 63, deviation 11.2. A
        // permutation seen for a small part of its range behaves like independent draws.
        for n in [1_000_003u64, 1 << 20, 3_000_000, 123_456_789_012] {
            for key in 0..4 {
                let mut walk = PermutationWalk::new(n, key);
                let places: Vec<_> = (0..40_000).map(|_| walk.step()).collect();
                for lag in [0, 1, 2, 3, 4, 5, 8, 16, 1024] {
                    let mut counts = [0u32; 64];
                    for pair in places.windows(lag + 1) {
                        let step = if lag == 0 {
                            pair[0]
                        } else {
                            (pair[lag] + n - pair[0]) % n
                        };
                        counts[class_of(step, n, 64)] += 1;
                    }
                    let statistic = chi_square(&counts);
                    assert!(
                        (18.0..118.0).contains(&statistic),
                        "n {n} key {key} lag {lag}: {statistic}"
                    );
                }
            }
        }
    }

    #[test]
    fn pairs_and_triples_fill_their_space_evenly() {
        for n in [1_000_003u64, 1 << 20, 123_456_789_012] {
            for key in 0..4 {
                let mut walk = PermutationWalk::new(n, key);
                let places: Vec<_> = (0..60_000).map(|_| walk.step()).collect();
                let mut counts = [0u32; 512];
                for w in places.windows(3) {
                    let class = |i: usize| class_of(w[i], n, 8);
                    counts[class(0) * 64 + class(1) * 8 + class(2)] += 1;
                }
                // Windows overlap, which adds to the deviation of 32 around 511.
                let statistic = chi_square(&counts);
                assert!(
                    (350.0..700.0).contains(&statistic),
                    "n {n} key {key}: {statistic}"
                );
            }
        }
    }

    #[test]
    fn neighbours_in_order_are_seldom_neighbours_in_place() {
        // Each I/O follows the one before it with probability 1/n.
        let n = 1000;
        let mut walk = PermutationWalk::new(n, 1);
        let places: Vec<_> = (0..200 * n).map(|_| walk.step()).collect();
        let near = places
            .windows(2)
            .filter(|w| w[0].abs_diff(w[1]) == 1)
            .count();
        // Poisson, mean 400.
        assert!((320..480).contains(&near), "{near}");
    }

    fn class_of(value: u64, n: u64, classes: u64) -> usize {
        ((u128::from(value) * u128::from(classes)) / u128::from(n)) as usize
    }
}
