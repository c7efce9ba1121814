//! Payload that can be made again from who wrote what where.
//!
//! Knows one function from (run, place, generation) to the 512 bytes of a sector. Knows no
//! stamp: the stamp is written over the start of it.
//!
//! Each 32-bit word is a hash of its number and of a 64-bit seed (the two-multiplication
//! integer hash "lowbias32" by Chris Wellons, its rounds keyed by the seed's halves), so
//! that all words are independent and the compiler can compute eight at a time.

use super::SECTOR_BYTES;
use loadstone_base::rng::mix;

/// Seed of a sector's payload. `key` is the stamp's place, `run` the run's identity.
#[inline(always)]
#[must_use]
pub fn seed(run: u64, key: u64, generation: u16) -> u64 {
    mix(run ^ mix(key) ^ (u64::from(generation) << 48))
}

/// Fills a sector with the payload of `seed`.
#[inline(always)]
pub fn fill(sector: &mut [u8; SECTOR_BYTES], seed: u64) {
    let (low, high) = (seed as u32, (seed >> 32) as u32);
    for (word, bytes) in (0u32..).zip(sector.chunks_exact_mut(4)) {
        bytes.copy_from_slice(&hash(word, low, high).to_le_bytes());
    }
}

#[inline(always)]
fn hash(word: u32, low: u32, high: u32) -> u32 {
    let mut x = word.wrapping_mul(0x9e37_79b9).wrapping_add(low);
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d) ^ high;
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn neighbours_in_place_and_generation_share_no_words() {
        let mut words = HashSet::new();
        let mut total = 0;
        for key in 0..40 {
            for generation in 1..40 {
                let mut sector = [0; SECTOR_BYTES];
                fill(&mut sector, seed(1, key, generation));
                for pair in sector.chunks(8) {
                    words.insert(pair.to_vec());
                    total += 1;
                }
            }
        }
        assert_eq!(words.len(), total);
    }

    #[test]
    fn half_of_the_bits_are_set() {
        let mut ones = 0;
        for generation in 1..=4000 {
            let mut sector = [0; SECTOR_BYTES];
            fill(&mut sector, seed(9, 77, generation));
            ones += sector.iter().map(|byte| byte.count_ones()).sum::<u32>();
        }
        let share = f64::from(ones) / (4000.0 * 4096.0);
        // Standard deviation of the share: 0.5 / sqrt(16.4 million) = 0.00012.
        assert!((share - 0.5).abs() < 0.0007, "{share}");
    }
}
