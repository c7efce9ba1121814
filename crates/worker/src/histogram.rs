//! A log-linear latency histogram: 64 buckets per power of two, so a value is known
//! to within 0.79 % of itself, from 1 ns to 2^44 ns (4.9 hours).
//!
//! Knows buckets and counts; knows no clock, no percentile and no file. The index
//! formula is the public one of fio's `io_u_plat` (FIO_IO_U_PLAT_BITS 6), so bins can be
//! exchanged without loss; here the range ends later.

/// Bits of precision below the leading one.
pub const SUB_BITS: u32 = 6;
/// Values of this many bits and more are counted in the last bucket.
pub const MAX_BITS: u32 = 44;
/// Number of buckets.
pub const BUCKETS: usize = (((MAX_BITS - SUB_BITS) as usize) + 1) << SUB_BITS;

/// Bucket of a value in nanoseconds.
#[inline]
#[must_use]
pub fn bucket_of(value_ns: u64) -> usize {
    // With the two lowest-octave bits forced on, values below 128 keep shift 0.
    let msb = 63 - (value_ns | (1 << SUB_BITS)).leading_zeros();
    let shift = msb - SUB_BITS;
    let index = ((shift as usize) << SUB_BITS) + (value_ns >> shift) as usize;
    if index < BUCKETS {
        index
    } else {
        BUCKETS - 1
    }
}

/// Middle of a bucket in nanoseconds: the value reported for everything in it.
#[must_use]
pub fn value_of(bucket: usize) -> u64 {
    if bucket < (2 << SUB_BITS) {
        return bucket as u64;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    let base = ((bucket & ((1 << SUB_BITS) - 1)) as u64 + (1 << SUB_BITS)) << shift;
    base + (1u64 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_exact() {
        for v in 0..128 {
            assert_eq!(value_of(bucket_of(v)), v);
        }
    }

    #[test]
    fn the_error_is_under_one_percent_to_the_end_of_the_range() {
        let mut v = 100u64;
        while v < 1 << MAX_BITS {
            for probe in [v, v + v / 3, v + v / 2, 2 * v - 1] {
                if probe >= 1 << MAX_BITS {
                    continue;
                }
                let got = value_of(bucket_of(probe)) as f64;
                assert!(
                    ((got - probe as f64) / probe as f64).abs() < 0.0079,
                    "{probe}"
                );
            }
            v *= 2;
        }
    }

    #[test]
    fn buckets_are_in_order_and_the_last_one_takes_the_rest() {
        for b in 1..BUCKETS {
            assert!(value_of(b) > value_of(b - 1));
            assert_eq!(bucket_of(value_of(b)), b);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }
}
