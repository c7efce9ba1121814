//! A keyed order of the numbers `0..n` in constant memory.
//!
//! Knows one bijection: an alternating Feistel network over a rectangle of `a × b`
//! cells with `a·b ≥ n` as nearly square as possible, additions instead of XOR, so that
//! any `n` costs the same and fewer than one in √n evaluations has to be repeated
//! ("cycle-walking", Black and Rogaway 2002, who also treat this generalised Feistel).
//! Knows nothing of blocks or files. A bitmap would need one bit per block; this needs
//! 24 bytes.

use super::rng::{mix, scale};

/// Odd multipliers of the rounds, from the fractional digits of unrelated constants;
/// they differ so that no round undoes another.
const MULTIPLIERS: [u64; 4] = [
    0x9e37_79b9_7f4a_7c15,
    0xc2b2_ae3d_27d4_eb4f,
    0xff51_afd7_ed55_8ccd,
    0xd6e8_feb8_6659_fd93,
];

/// A bijection of `0..n` onto itself, chosen by a key.
#[derive(Debug, Clone)]
pub struct Permutation {
    n: u64,
    rows: u32,
    columns: u32,
    key: u64,
}

impl Permutation {
    /// The permutation of `0..n` with this key; `n` from 1 to 2^63.
    #[must_use]
    pub fn new(n: u64, key: u64) -> Self {
        debug_assert!((1..=1 << 63).contains(&n));
        let mut rows = (n as f64).sqrt() as u64;
        // The square root of a large n is rounded: make it the ceiling again.
        while rows * rows < n {
            rows += 1;
        }
        let columns = n.div_ceil(rows);
        Self {
            n,
            rows: rows as u32,
            columns: columns as u32,
            key,
        }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Always false: there is at least one element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Another order from now on.
    pub fn rekey(&mut self) {
        self.key = mix(self.key);
    }

    /// Where `index` (below `n`) goes.
    #[inline]
    #[must_use]
    pub fn apply(&self, index: u64) -> u64 {
        let mut at = index;
        loop {
            let columns = u64::from(self.columns);
            at = self.rounds((at / columns) as u32, (at % columns) as u32);
            if at < self.n {
                return at;
            }
        }
    }

    #[inline(always)]
    fn rounds(&self, row: u32, column: u32) -> u64 {
        let (rows, columns) = (self.rows, self.columns);
        let row = add(row, self.round(0, column, rows), rows);
        let column = add(column, self.round(1, row, columns), columns);
        let row = add(row, self.round(2, column, rows), rows);
        let column = add(column, self.round(3, row, columns), columns);
        u64::from(row) * u64::from(columns) + u64::from(column)
    }

    /// A number below `modulus` from the other half, the key and the round.
    #[inline(always)]
    fn round(&self, number: usize, half: u32, modulus: u32) -> u32 {
        let multiplier = MULTIPLIERS[number];
        let mut bits = (u64::from(half) ^ self.key).wrapping_mul(multiplier);
        bits = (bits ^ (bits >> 32)).wrapping_mul(MULTIPLIERS[number ^ 1]);
        scale(bits, u64::from(modulus)) as u32
    }
}

/// Addition modulo `modulus` of two numbers below it, without a branch.
#[inline(always)]
fn add(a: u32, b: u32, modulus: u32) -> u32 {
    let sum = u64::from(a) + u64::from(b);
    let wrapped = sum.wrapping_sub(u64::from(modulus));
    (if sum < u64::from(modulus) {
        sum
    } else {
        wrapped
    }) as u32
}

/// A walk through a permutation, pass after pass, each pass in another order.
///
/// Counts rows and columns instead of dividing, which makes a step a few nanoseconds.
#[derive(Debug, Clone)]
pub struct Walk {
    order: Permutation,
    row: u32,
    column: u32,
}

impl Walk {
    /// A walk over `0..n`, reproducible from `key`.
    #[must_use]
    pub fn new(n: u64, key: u64) -> Self {
        Self {
            order: Permutation::new(n, mix(key)),
            row: 0,
            column: 0,
        }
    }

    /// The next number; each of `0..n` comes exactly once per pass.
    #[inline(always)]
    pub fn step(&mut self) -> u64 {
        loop {
            let at = self.order.rounds(self.row, self.column);
            self.column += 1;
            if self.column == self.order.columns {
                self.column = 0;
                self.row += 1;
                if self.row == self.order.rows {
                    self.row = 0;
                    self.order.rekey();
                }
            }
            // The few cells of the rectangle beyond n are skipped: exactly the images of
            // the rectangle that are below n remain, each once.
            if at < self.order.n {
                return at;
            }
        }
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
            let mut walk = Walk::new(n, n);
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
        let mut walk = Walk::new(n, 5);
        let first: Vec<_> = (0..n).map(|_| walk.step()).collect();
        let second: Vec<_> = (0..n).map(|_| walk.step()).collect();
        let mut again = Walk::new(n, 5);
        assert_eq!(first, (0..n).map(|_| again.step()).collect::<Vec<_>>());
        // Two random orders agree in one place on average.
        assert!(first.iter().zip(&second).filter(|(a, b)| a == b).count() < 10);
        let mut other = Walk::new(n, 6);
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
        // Positions, steps between neighbours and steps over two, each in 64 classes of a
        // range that is no power of two: 63 degrees of freedom, mean 63, deviation 11.
        // A permutation seen for a small part of its range behaves like independent draws.
        for n in [1_000_003u64, 1 << 20, 3_000_000, 123_456_789_012] {
            for key in 0..4 {
                let mut walk = Walk::new(n, key);
                let places: Vec<_> = (0..40_000).map(|_| walk.step()).collect();
                for lag in 0..4usize {
                    let mut counts = [0u32; 64];
                    for pair in places.windows(lag + 1) {
                        let step = if lag == 0 {
                            pair[0]
                        } else {
                            (pair[lag] + n - pair[0]) % n
                        };
                        counts[scale64(step, n)] += 1;
                    }
                    let statistic = chi_square(&counts);
                    assert!(
                        (20.0..125.0).contains(&statistic),
                        "n {n} key {key} lag {lag}: {statistic}"
                    );
                }
            }
        }
    }

    fn scale64(value: u64, n: u64) -> usize {
        ((u128::from(value) * 64) / u128::from(n)) as usize
    }
}
