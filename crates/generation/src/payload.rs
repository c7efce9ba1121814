//! The bytes written.
//!
//! Knows how a buffer is filled and kept from repeating itself, how compressible and how
//! duplicate the data are. Knows no device and no address. Content depends on the seed
//! and on the number of writes before.
//!
//! With the default (random base, stamps) a write costs one cache line per 512 bytes: one
//! word of each is replaced by the next of a sequence that does not repeat.

mod dedupe;
mod noise;

use dedupe::Dedupe;
use loadstone_base::rng::mix;
use loadstone_plan::{Fill, Payload};
use noise::Noise;

/// Distance of the stamps.
const STAMP_EVERY_BYTES: usize = 512;
/// Golden ratio: successive stamps differ in all bytes and come back after 2^64.
const STAMP_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Fills the buffers of one stream.
#[derive(Debug)]
pub struct Filler {
    renewal: Renewal,
    layout: PayloadLayout,
    noise: Noise,
    stamp: u64,
}

/// What changes from write to write.
#[derive(Debug)]
enum Renewal {
    /// Nothing.
    Nothing,
    /// The stamps.
    Stamps,
    /// Everything.
    All,
    /// Everything, or a repetition.
    Dedupe(Box<Dedupe>),
}

impl Filler {
    /// The filler of a stream with this payload; equal seeds give equal bytes.
    #[must_use]
    pub fn new(payload: &Payload, seed: u64) -> Self {
        let layout = PayloadLayout::new(payload);
        let renewal = match payload {
            _ if layout.base == Base::Constant && !payload.stamp => Renewal::Nothing,
            _ if layout.base == Base::Constant => Renewal::Stamps,
            Payload {
                dedupe_percent: 1..,
                ..
            } => Renewal::Dedupe(Box::new(Dedupe::new(payload, seed))),
            Payload { refill: true, .. } => Renewal::All,
            // Which bytes are random depends on the length of each write.
            _ if layout.base == Base::Parts && layout.chunk_bytes == 0 => Renewal::All,
            Payload { stamp: true, .. } => Renewal::Stamps,
            _ => Renewal::Nothing,
        };
        Self {
            renewal,
            layout,
            noise: Noise::new(seed),
            stamp: mix(seed),
        }
    }

    /// Fills a buffer. Needed once for each buffer of the stream, over its whole length,
    /// and again when a read has overwritten it: otherwise a mixed stream would write
    /// back what it read, zeros perhaps.
    pub fn prime(&mut self, buffer: &mut [u8]) {
        match self.renewal {
            // These fill every time.
            Renewal::All | Renewal::Dedupe(_) => {}
            Renewal::Nothing | Renewal::Stamps => self.layout.fill(buffer, &mut self.noise),
        }
    }

    /// True when the next write changes a few bytes of its buffer at most.
    #[inline]
    #[must_use]
    pub fn is_quick(&self) -> bool {
        matches!(self.renewal, Renewal::Nothing | Renewal::Stamps)
    }

    /// Prepares a primed buffer, cut to the length of the write, for the next write.
    #[inline(always)]
    pub fn next(&mut self, buffer: &mut [u8]) {
        if let Renewal::Stamps = self.renewal {
            let mut stamp = self.stamp;
            self.layout.each_stamp(buffer, |place| {
                stamp = stamp.wrapping_add(STAMP_STEP);
                *place = stamp.to_le_bytes();
            });
            self.stamp = stamp;
        } else {
            self.renew(buffer);
        }
    }

    #[inline(never)]
    fn renew(&mut self, buffer: &mut [u8]) {
        match &mut self.renewal {
            Renewal::Nothing | Renewal::Stamps => {}
            Renewal::All => self.layout.fill(buffer, &mut self.noise),
            Renewal::Dedupe(dedupe) => {
                let unit_bytes = dedupe.unit_bytes.unwrap_or(buffer.len().max(1));
                for unit in buffer.chunks_mut(unit_bytes) {
                    let mut noise = Noise::new(dedupe.next_seed());
                    self.layout.fill(unit, &mut noise);
                }
            }
        }
    }
}

/// Which parts of a buffer are random and which are constant.
#[derive(Debug)]
struct PayloadLayout {
    base: Base,
    /// Unit of `Base::Parts`; 0: the whole buffer.
    chunk_bytes: usize,
    constant_percent: usize,
    /// What constant parts hold, repeated from the start of the buffer; empty: zeros.
    pattern: Box<[u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Random,
    Constant,
    /// Each chunk begins random and ends constant.
    Parts,
}

impl PayloadLayout {
    fn new(payload: &Payload) -> Self {
        let constant_percent = payload.compress_percent.min(100) as usize;
        let pattern: Box<[u8]> = match &payload.fill {
            Fill::Pattern { bytes } if bytes.iter().any(|&byte| byte != 0) => bytes[..].into(),
            _ => Box::default(),
        };
        let base = match (&payload.fill, constant_percent) {
            (Fill::Zero {}, _) | (Fill::Pattern { .. }, 0) => Base::Constant,
            (Fill::Random {}, 0) => Base::Random,
            _ => Base::Parts,
        };
        let chunk_bytes = payload.compress_chunk_bytes as usize;
        Self {
            base,
            chunk_bytes,
            constant_percent,
            pattern,
        }
    }

    fn fill(&self, buffer: &mut [u8], noise: &mut Noise) {
        match self.base {
            Base::Random => noise.fill(buffer),
            Base::Constant => self.fill_constant(buffer, 0),
            Base::Parts => {
                let chunk_bytes = self.chunk_of(buffer.len());
                for (i, chunk) in buffer.chunks_mut(chunk_bytes).enumerate() {
                    let (random, constant) = chunk.split_at_mut(self.random_bytes(chunk.len()));
                    noise.fill(random);
                    self.fill_constant(constant, i * chunk_bytes + random.len());
                }
            }
        }
    }

    /// Writes the constant content of a part that begins `at` bytes into the buffer.
    fn fill_constant(&self, part: &mut [u8], at: usize) {
        if self.pattern.is_empty() {
            part.fill(0);
            return;
        }
        let mut phase = at % self.pattern.len();
        let mut rest = part;
        while !rest.is_empty() {
            let take = (self.pattern.len() - phase).min(rest.len());
            let (now, later) = rest.split_at_mut(take);
            now.copy_from_slice(&self.pattern[phase..phase + take]);
            (rest, phase) = (later, 0);
        }
    }

    /// Calls `visit` for the place of every stamp.
    #[inline(always)]
    fn each_stamp(&self, buffer: &mut [u8], mut visit: impl FnMut(&mut [u8; 8])) {
        if self.base != Base::Parts {
            return each_stamp_of(buffer, &mut visit);
        }
        let chunk_bytes = self.chunk_of(buffer.len());
        for chunk in buffer.chunks_mut(chunk_bytes) {
            let random = self.random_bytes(chunk.len());
            each_stamp_of(&mut chunk[..random], &mut visit);
        }
    }

    fn chunk_of(&self, buffer_bytes: usize) -> usize {
        if self.chunk_bytes == 0 {
            buffer_bytes.max(1)
        } else {
            self.chunk_bytes
        }
    }

    fn random_bytes(&self, chunk_bytes: usize) -> usize {
        chunk_bytes * (100 - self.constant_percent) / 100
    }
}

#[inline(always)]
fn each_stamp_of(part: &mut [u8], visit: &mut impl FnMut(&mut [u8; 8])) {
    let mut sectors = part.chunks_exact_mut(STAMP_EVERY_BYTES);
    for sector in &mut sectors {
        if let Some(place) = sector.first_chunk_mut() {
            visit(place);
        }
    }
    if let Some(place) = sectors.into_remainder().first_chunk_mut() {
        visit(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::{plain, DedupeSet};
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn payload(fill: Fill) -> Payload {
        Payload {
            fill,
            ..plain::stream().payload
        }
    }

    /// The contents of successive writes through `slots` buffers.
    fn writes(payload: &Payload, slots: usize, count: usize, len: usize) -> Vec<Vec<u8>> {
        writes_of(payload, 7, slots, count, len)
    }

    fn writes_of(
        payload: &Payload,
        seed: u64,
        slots: usize,
        count: usize,
        len: usize,
    ) -> Vec<Vec<u8>> {
        let mut filler = Filler::new(payload, seed);
        let mut buffers = vec![vec![0xee; len]; slots];
        for buffer in &mut buffers {
            filler.prime(buffer);
        }
        let mut written = Vec::new();
        for i in 0..count {
            let buffer = &mut buffers[i % slots];
            filler.next(buffer);
            written.push(buffer.clone());
        }
        written
    }

    fn zero_share(bytes: &[u8]) -> f64 {
        bytes.iter().filter(|&&byte| byte == 0).count() as f64 / bytes.len() as f64
    }

    /// Runs of at least 8 zero bytes do not happen by chance.
    fn long_zero_share(bytes: &[u8]) -> f64 {
        let zeros: usize = bytes
            .chunk_by(|a, b| (*a == 0) == (*b == 0))
            .filter(|run| run[0] == 0 && run.len() >= 8)
            .map(<[u8]>::len)
            .sum();
        zeros as f64 / bytes.len() as f64
    }

    #[test]
    fn no_two_sectors_are_ever_equal() {
        for fill in [
            Fill::Random {},
            Fill::Zero {},
            Fill::Pattern {
                bytes: b"abc".to_vec(),
            },
        ] {
            let mut seen = HashSet::new();
            for block in writes(&payload(fill), 4, 500, 4096) {
                for sector in block.chunks(512) {
                    assert!(seen.insert(sector.to_vec()));
                }
            }
        }
    }

    #[test]
    fn a_stamp_changes_only_the_start_of_each_sector() {
        let blocks = writes(&payload(Fill::Random {}), 1, 2, 4096);
        for (old, new) in blocks[0].chunks(512).zip(blocks[1].chunks(512)) {
            assert_ne!(old[..8], new[..8]);
            assert_eq!(old[8..], new[8..]);
        }
    }

    #[test]
    fn random_content_has_no_zeros_to_compress() {
        for refill in [false, true] {
            let payload = Payload {
                refill,
                ..payload(Fill::Random {})
            };
            let bytes = writes(&payload, 8, 64, 4096).concat();
            assert!((zero_share(&bytes) - 1.0 / 256.0).abs() < 0.001);
            assert_eq!(long_zero_share(&bytes), 0.0);
        }
    }

    #[test]
    fn refilled_content_is_new_throughout() {
        let payload = Payload {
            refill: true,
            ..payload(Fill::Random {})
        };
        let mut words = HashSet::new();
        for block in writes(&payload, 1, 100, 4096) {
            assert!(block.chunks(8).all(|word| words.insert(word.to_vec())));
        }
    }

    #[test]
    fn a_buffer_that_was_read_into_is_good_again_after_priming() {
        for (stamp, refill) in [(true, false), (false, false), (false, true)] {
            let payload = Payload {
                stamp,
                refill,
                ..payload(Fill::Random {})
            };
            let mut filler = Filler::new(&payload, 1);
            let mut buffer = vec![0; 65536];
            for read_bytes in [65536, 4096, 512] {
                buffer[..read_bytes].fill(0);
                filler.prime(&mut buffer);
                filler.next(&mut buffer);
                assert_eq!(
                    long_zero_share(&buffer),
                    0.0,
                    "stamp {stamp} refill {refill}"
                );
            }
        }
        for fill in [
            Fill::Zero {},
            Fill::Pattern {
                bytes: vec![0, 0, 0],
            },
        ] {
            let mut filler = Filler::new(
                &Payload {
                    stamp: false,
                    ..payload(fill)
                },
                1,
            );
            let mut buffer = vec![1; 4096];
            filler.prime(&mut buffer);
            filler.next(&mut buffer);
            assert_eq!(buffer, [0; 4096]);
        }
    }

    #[test]
    fn without_stamps_and_refill_nothing_changes() {
        let payload = Payload {
            stamp: false,
            ..payload(Fill::Random {})
        };
        let blocks = writes(&payload, 2, 6, 8192);
        assert_eq!(blocks[0], blocks[2]);
        assert_eq!(blocks[1], blocks[5]);
        assert_ne!(blocks[0], blocks[1]);
    }

    #[test]
    fn a_pattern_is_repeated_from_the_start_of_the_block() {
        let payload = Payload {
            stamp: false,
            ..payload(Fill::Pattern {
                bytes: b"loadstone".to_vec(),
            })
        };
        let block = writes(&payload, 1, 1, 1000).remove(0);
        let expected: Vec<u8> = b"loadstone".iter().copied().cycle().take(1000).collect();
        assert_eq!(block, expected);
    }

    #[test]
    fn a_pattern_takes_the_compressible_part() {
        let payload = Payload {
            compress_percent: 50,
            compress_chunk_bytes: 1024,
            ..payload(Fill::Pattern { bytes: vec![0xab] })
        };
        for block in writes(&payload, 1, 3, 4096) {
            for chunk in block.chunks(1024) {
                assert_eq!(chunk[512..], [0xab; 512]);
                assert!(chunk[..512].iter().filter(|&&byte| byte == 0xab).count() < 30);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn the_compressible_share_is_the_one_asked_for(
            percent in 0u32..=100,
            chunk in prop_oneof![Just(0u32), Just(512), Just(4096), 600u32..20_000],
            refill: bool,
            sectors in prop_oneof![Just(8usize), 1usize..64],
        ) {
            let payload = Payload {
                refill, compress_percent: percent, compress_chunk_bytes: chunk,
                ..payload(Fill::Random {})
            };
            let len = sectors * 512;
            for block in writes(&payload, 3, 7, len) {
                let chunk = if chunk == 0 { len } else { chunk as usize };
                for part in block.chunks(chunk) {
                    let random = part.len() * (100 - percent as usize) / 100;
                    prop_assert!(part[random..].iter().all(|&byte| byte == 0));
                    // The chance of 30 % zeros in 64 random bytes is below 1e-20.
                    prop_assert!(random < 64 || zero_share(&part[..random]) < 0.3);
                }
            }
        }

        #[test]
        fn blocks_of_changing_length_are_compressible_each_for_itself(
            lens in proptest::collection::vec(1usize..128, 1..20),
        ) {
            let payload = Payload { compress_percent: 50, ..payload(Fill::Random {}) };
            let mut filler = Filler::new(&payload, 3);
            let mut buffer = vec![0; 65536];
            filler.prime(&mut buffer);
            for len in lens {
                let block = &mut buffer[..len * 512];
                filler.next(block);
                prop_assert!((zero_share(block) - 0.5).abs() < 0.05);
            }
        }

        #[test]
        fn the_share_of_repeated_blocks_is_the_one_asked_for(percent in 0u32..=100) {
            let payload = Payload { dedupe_percent: percent, ..payload(Fill::Random {}) };
            let count = 2000;
            let blocks = writes(&payload, 5, count, 512);
            let unique = blocks.iter().collect::<HashSet<_>>().len();
            let expected = 1.0 - f64::from(percent) / 100.0;
            let deviation = (expected * (1.0 - expected) / count as f64).sqrt();
            let share = unique as f64 / count as f64;
            prop_assert!((share - expected).abs() <= 5.0 * deviation + 0.001, "{}", share);
        }

        #[test]
        fn repeats_are_drawn_for_each_unit_of_writes_of_any_length(percent in 0u32..=100, seed: u64) {
            let unit_bytes = 512;
            let payload = Payload {
                dedupe_percent: percent,
                dedupe_unit_bytes: unit_bytes as u32,
                ..payload(Fill::Random {})
            };
            let mut filler = Filler::new(&payload, seed);
            let mut units = Vec::new();
            for write in 0..600 {
                let mut buffer = vec![0; unit_bytes * (1 + write % 7)];
                filler.next(&mut buffer);
                units.extend(buffer.chunks(unit_bytes).map(<[u8]>::to_vec));
            }
            let unique = units.iter().collect::<HashSet<_>>().len();
            let expected = 1.0 - f64::from(percent) / 100.0;
            let deviation = (expected * (1.0 - expected) / units.len() as f64).sqrt();
            let share = unique as f64 / units.len() as f64;
            prop_assert!((share - expected).abs() <= 5.0 * deviation + 0.001, "{}", share);
        }

        #[test]
        fn repeated_blocks_of_a_set_are_of_that_set(percent in 1u32..=100, contents in 1u64..50) {
            let set = DedupeSet { contents, seed: 11 };
            let payload = Payload {
                dedupe_percent: percent,
                dedupe_set: Some(set),
                ..payload(Fill::Random {})
            };
            let count = 4000;
            // Streams of different seeds repeat from one set.
            let all: Vec<_> = (1..=2).flat_map(|seed| writes_of(&payload, seed, 5, count, 64)).collect();
            let mut times = HashMap::new();
            all.iter().for_each(|block| *times.entry(block).or_insert(0) += 1);
            let repeated = times.values().filter(|&&times| times > 1).count() as u64;
            prop_assert!(repeated <= contents);
            let share = all.iter().filter(|block| times[block] > 1).count() as f64 / all.len() as f64;
            let expected = f64::from(percent) / 100.0;
            let deviation = (expected * (1.0 - expected) / all.len() as f64).sqrt();
            prop_assert!((share - expected).abs() <= 5.0 * deviation + 0.01, "{}", share);
        }

        #[test]
        fn any_length_is_filled_to_its_last_byte(len in 1usize..700, refill: bool) {
            let payload = Payload { refill, ..payload(Fill::Random {}) };
            let mut filler = Filler::new(&payload, 9);
            // A byte that stays zero in 20 fillings was not filled.
            let mut touched = vec![0u8; len];
            for _ in 0..20 {
                let mut buffer = vec![0; len];
                filler.prime(&mut buffer);
                filler.next(&mut buffer);
                touched.iter_mut().zip(&buffer).for_each(|(t, b)| *t |= b);
            }
            prop_assert!(touched.iter().all(|&byte| byte != 0));
        }
    }

    #[test]
    fn lanes_and_tails_do_not_depend_on_the_instructions_used() {
        let (mut fast, mut portable) = (vec![0; 1000], vec![0; 1000]);
        Noise::new(5).fill(&mut fast);
        Noise::new(5).fill_portable(&mut portable);
        assert_eq!(fast, portable);
    }

    /// Prints the cost: `cargo test --release -- --ignored --nocapture cost_of`.
    #[test]
    #[ignore = "a measurement, not a test"]
    fn cost_of_a_write() {
        let random = payload(Fill::Random {});
        let cases = [
            ("stamps", random.clone()),
            (
                "refill",
                Payload {
                    refill: true,
                    ..random.clone()
                },
            ),
            (
                "dedupe 30",
                Payload {
                    dedupe_percent: 30,
                    ..random.clone()
                },
            ),
            (
                "compress 50, refill",
                Payload {
                    compress_percent: 50,
                    refill: true,
                    ..random
                },
            ),
            (
                "zeros",
                Payload {
                    stamp: false,
                    ..payload(Fill::Zero {})
                },
            ),
        ];
        for (name, payload) in cases {
            let mut filler = Filler::new(&payload, 1);
            let mut buffers = vec![vec![0u8; 4096]; 4];
            buffers.iter_mut().for_each(|buffer| filler.prime(buffer));
            let count = 1_000_000usize;
            let start = std::time::Instant::now();
            for i in 0..count {
                filler.next(&mut buffers[i % 4]);
            }
            let cost = start.elapsed().as_nanos() as f64 / count as f64;
            println!(
                "{name:20} {cost:7.2} ns per 4 KiB, {:6.2} GB/s",
                4096.0 / cost
            );
        }
    }
}
