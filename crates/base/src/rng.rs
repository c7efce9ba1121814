//! The random numbers of the generators: small, fast and reproducible from a seed.
//!
//! Knows one generator (wyrand: a Weyl sequence through a folded 128-bit product, as
//! published by Wang Yi in wyhash, final version 4) and one way to derive seeds
//! (SplitMix64, Steele, Lea and Flood 2014). Not for cryptography.

/// A stream of random numbers. Eight bytes of state; one multiplication per number, and
/// successive numbers do not wait for each other.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator; equal seeds give equal numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// 64 random bits.
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x2d35_8dcc_aa6c_78a5);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0x8bb8_4b93_962e_acc9);
        (product as u64) ^ ((product >> 64) as u64)
    }

    /// Uniform in `0..n`; 0 when `n` is 0. Multiply-shift: the bias is below `n` / 2^64.
    #[inline(always)]
    pub fn below(&mut self, n: u64) -> u64 {
        scale(self.next_u64(), n)
    }

    /// Uniform in the open interval (0, 1): never 0, so its logarithm is finite.
    #[inline(always)]
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }
}

/// Maps 64 random bits onto `0..n`.
#[inline(always)]
#[must_use]
pub fn scale(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

/// SplitMix64's finalizer after one step: seeds that differ in one bit become unrelated.
#[inline]
#[must_use]
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_seed_does_not() {
        let take = |seed| {
            let mut rng = Rng::new(seed);
            (0..8).map(|_| rng.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut rng = Rng::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..7000 {
            seen[rng.below(7) as usize] += 1;
        }
        // Binomial, mean 1000, deviation 29.
        assert!(seen.iter().all(|&c| (850..1150).contains(&c)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn unit_is_inside_the_open_interval_with_the_mean_of_a_uniform() {
        let mut rng = Rng::new(2);
        let mut sum = 0.0;
        for _ in 0..100_000 {
            let u = rng.unit();
            assert!(u > 0.0 && u < 1.0);
            sum += u;
        }
        assert!((sum / 1e5 - 0.5).abs() < 0.004);
    }
}
