//! Random bytes for payloads.
//!
//! Knows one generator. Knows nothing of what its bytes are for.

use super::STAMP_STEP;
use loadstone_base::rng::mix;

/// Random bytes faster than memory: xorshift128+ (Vigna 2014) in lanes side by side, so
/// that the compiler uses vector instructions.
#[derive(Debug)]
pub(super) struct Noise {
    a: [u64; LANES],
    b: [u64; LANES],
}

const LANES: usize = 8;
const LINE_BYTES: usize = LANES * 8;

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut lanes = || {
            [0; LANES].map(|_: u64| {
                state = state.wrapping_add(STAMP_STEP);
                mix(state)
            })
        };
        Self {
            a: lanes(),
            b: lanes(),
        }
    }

    pub(super) fn fill(&mut self, buffer: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2, as asked just now.
            return unsafe { self.fill_avx2(buffer) };
        }
        self.fill_portable(buffer);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    pub(super) fn fill_avx2(&mut self, buffer: &mut [u8]) {
        self.fill_portable(buffer);
    }

    #[inline(always)]
    pub(super) fn fill_portable(&mut self, buffer: &mut [u8]) {
        let (mut a, mut b) = (self.a, self.b);
        let mut lines = buffer.chunks_exact_mut(LINE_BYTES);
        for line in &mut lines {
            let words = step(&mut a, &mut b);
            for (bytes, word) in line.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
        let rest = lines.into_remainder();
        if !rest.is_empty() {
            let words = step(&mut a, &mut b);
            for (bytes, word) in rest.chunks_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
            }
        }
        (self.a, self.b) = (a, b);
    }
}

#[inline(always)]
fn step(a: &mut [u64; LANES], b: &mut [u64; LANES]) -> [u64; LANES] {
    let mut words = [0; LANES];
    for lane in 0..LANES {
        let (mut x, y) = (a[lane], b[lane]);
        words[lane] = x.wrapping_add(y);
        x ^= x << 23;
        a[lane] = y;
        b[lane] = x ^ y ^ (x >> 18) ^ (y >> 5);
    }
    words
}
