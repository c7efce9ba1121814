//! The stamp: what a verify block says about itself.
//!
//! Knows the bytes of a stamp, how they are written and what makes them valid. Knows no
//! expectation: whether a valid stamp is the right one is judged in [`super::check`].
//!
//! # Layout, version 1 (numbers are little-endian)
//!
//! Every 512-byte sector of a verify block begins with a *tag*, so that a write that tore
//! between sectors, or went elsewhere in part, is seen sector by sector:
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | CRC-32C (Castagnoli, as in RFC 3720) of bytes 4–511 of the sector |
//! | 4–5 | generation of the verify block, 1 to 4095, then 1 again |
//! | 6 | version: 1 |
//! | 7 | content: 0 the stream's payload, 1 generated ([`super::content`]) |
//! | 8–15 | key: bits 0–39 the sector's number in the target (offset / 512), bits 40–55 the target's number, bits 56–63 the lowest byte of the run's identity |
//!
//! The first sector of a verify block continues with a *header*:
//!
//! | bytes | what |
//! |---|---|
//! | 16–23 | the ASCII letters `LOADSTNV` |
//! | 24–31 | identity of the run |
//! | 32–39 | sequence: number of the write on this target, from 1 |
//! | 40–43 | bytes of the whole write |
//! | 44–47 | place of this verify block in the write, in bytes |
//! | 48–51 | bytes of a verify block |
//! | 52–55 | zero |
//!
//! All other bytes are payload. A sector of zeros is not valid: its CRC is not zero.

use super::content;

pub use super::SECTOR_BYTES;
/// Bytes of the tag of each sector.
pub const TAG_BYTES: usize = 16;
/// Bytes of tag and header at the start of a verify block.
pub const HEADER_BYTES: usize = 56;
/// Version of this layout.
pub const VERSION: u8 = 1;
/// Highest generation; the one after it is 1.
pub const GENERATIONS: u16 = 4095;
/// Highest number of a target.
pub const MAX_TARGET: u32 = 0xffff;
/// Targets end below this offset.
pub const MAX_OFFSET_BYTES: u64 = 512 << 40;

const MAGIC: u64 = u64::from_le_bytes(*b"LOADSTNV");
const SECTOR_BITS: u32 = 40;

/// Where the payload comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PayloadSource {
    /// The stream's own; only the stamp is written.
    Payload = 0,
    /// Generated with the stamp, so that it can be made again and damage be located.
    Generated = 1,
}

/// Who stamps: the same for all blocks of a target in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamper {
    /// Identity of the run.
    pub run: u64,
    /// Number of the target, at most [`MAX_TARGET`].
    pub target: u32,
    /// Bytes of a verify block, a multiple of 512.
    pub block_bytes: u32,
    /// Where the payload comes from.
    pub content: PayloadSource,
}

/// The write a verify block belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampWrite {
    /// Number of the write on its target, from 1.
    pub sequence: u64,
    /// Its bytes.
    pub bytes: u32,
    /// Place of the verify block in it, in bytes.
    pub place_bytes: u32,
}

/// What a valid tag says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampTag {
    /// Generation of the verify block.
    pub generation: u16,
    /// Place: see the module's table.
    pub key: u64,
}

impl StampTag {
    /// Byte offset of the sector that was meant.
    #[must_use]
    pub fn offset(self) -> u64 {
        (self.key & ((1 << SECTOR_BITS) - 1)) * SECTOR_BYTES as u64
    }

    /// Number of the target that was meant.
    #[must_use]
    pub fn target(self) -> u32 {
        (self.key >> SECTOR_BITS) as u32 & MAX_TARGET
    }

    /// Lowest byte of the identity of the run.
    #[must_use]
    pub fn run_byte(self) -> u8 {
        (self.key >> 56) as u8
    }
}

impl Stamper {
    /// The author that a block names, whatever its run and target; none when its first
    /// sector is not whole.
    #[must_use]
    pub fn named_by(self, block: &[u8]) -> Option<Self> {
        match (tag(&block[..SECTOR_BYTES]), header(block)) {
            (Some(tag), Some((run, _))) => Some(Self {
                run,
                target: tag.target(),
                content: if block[7] == PayloadSource::Generated as u8 {
                    PayloadSource::Generated
                } else {
                    PayloadSource::Payload
                },
                ..self
            }),
            _ => None,
        }
    }

    /// Key of the sector at `offset`.
    #[inline(always)]
    #[must_use]
    pub fn key(&self, offset: u64) -> u64 {
        debug_assert!(offset < MAX_OFFSET_BYTES && self.target <= MAX_TARGET);
        (offset / SECTOR_BYTES as u64) | (u64::from(self.target) << SECTOR_BITS) | (self.run << 56)
    }

    /// Generation, version and content, as in bytes 4 to 7.
    #[inline(always)]
    fn head(&self, generation: u16) -> u32 {
        u32::from(generation) | (u32::from(VERSION) << 16) | ((self.content as u32) << 24)
    }

    /// Stamps one verify block that will be written at `offset`.
    #[inline]
    pub fn stamp(&self, block: &mut [u8], offset: u64, generation: u16, write: StampWrite) {
        debug_assert_eq!(block.len(), self.block_bytes as usize);
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2, as asked just now.
            return unsafe { self.stamp_avx2(block, offset, generation, write) };
        }
        self.stamp_portable(block, offset, generation, write);
    }

    /// For the payload: four times as many words at a time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn stamp_avx2(&self, block: &mut [u8], offset: u64, generation: u16, write: StampWrite) {
        self.stamp_portable(block, offset, generation, write);
    }

    #[inline(always)]
    fn stamp_portable(&self, block: &mut [u8], offset: u64, generation: u16, write: StampWrite) {
        let mut first = Some(write);
        for (key, sector) in (self.key(offset)..).zip(block.chunks_exact_mut(SECTOR_BYTES)) {
            if let Some(sector) = sector.first_chunk_mut::<SECTOR_BYTES>() {
                self.image(sector, key, generation, first.take());
            }
        }
        // In a second pass: a checksum right behind the stores would wait for them.
        for sector in block.chunks_exact_mut(SECTOR_BYTES) {
            let crc = crc32c::crc32c(&sector[4..]);
            sector[..4].copy_from_slice(&crc.to_le_bytes());
        }
    }

    /// Writes everything of a sector but its CRC. `write` is given for the first sector.
    #[inline(always)]
    pub(super) fn image(
        &self,
        sector: &mut [u8; SECTOR_BYTES],
        key: u64,
        generation: u16,
        write: Option<StampWrite>,
    ) {
        if self.content == PayloadSource::Generated {
            content::fill(sector, content::seed(self.run, key, generation));
        }
        let head = self.head(generation);
        sector[4..8].copy_from_slice(&head.to_le_bytes());
        put(sector, 8, key);
        if let Some(write) = write {
            put(sector, 16, MAGIC);
            put(sector, 24, self.run);
            put(sector, 32, write.sequence);
            let extent = u64::from(write.bytes) | (u64::from(write.place_bytes) << 32);
            put(sector, 40, extent);
            put(sector, 48, u64::from(self.block_bytes));
        }
    }

    /// True when the block holds, in every sector, exactly what was written at `offset`
    /// as `generation`. The answer in all cases but damage and expectations that allow
    /// more than one generation.
    #[inline]
    #[must_use]
    pub fn holds(&self, block: &[u8], offset: u64, generation: u16) -> bool {
        let mut key = self.key(offset);
        let head = self.head(generation);
        if get(block, 24) != self.run || get(block, 16) != MAGIC {
            return false;
        }
        block.chunks_exact(SECTOR_BYTES).all(|sector| {
            let right = get32(sector, 4) == head && get(sector, 8) == key && crc_holds(sector);
            key += 1;
            right
        })
    }
}

/// The tag of a sector, when its CRC holds and it is of this layout.
#[must_use]
pub fn tag(sector: &[u8]) -> Option<StampTag> {
    let valid = sector[6] == VERSION && sector[7] <= 1 && crc_holds(sector);
    valid.then(|| StampTag {
        generation: u16::from_le_bytes([sector[4], sector[5]]),
        key: get(sector, 8),
    })
}

/// Run and write named in the first sector of a verify block, whose tag is valid.
#[must_use]
pub fn header(sector: &[u8]) -> Option<(u64, StampWrite)> {
    let write = StampWrite {
        sequence: get(sector, 32),
        bytes: get32(sector, 40),
        place_bytes: get32(sector, 44),
    };
    (get(sector, 16) == MAGIC).then(|| (get(sector, 24), write))
}

#[inline(always)]
fn crc_holds(sector: &[u8]) -> bool {
    get32(sector, 0) == crc32c::crc32c(&sector[4..])
}

#[inline(always)]
fn put(bytes: &mut [u8; SECTOR_BYTES], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[inline(always)]
fn get(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[inline(always)]
fn get32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMPER: Stamper = Stamper {
        run: 0x1122_3344_5566_7788,
        target: 3,
        block_bytes: 1024,
        content: PayloadSource::Payload,
    };
    const WRITE: StampWrite = StampWrite {
        sequence: 0x0102_0304_0506_0708,
        bytes: 8192,
        place_bytes: 1024,
    };

    #[test]
    fn the_bytes_are_those_of_the_documented_layout() {
        let mut block = vec![0xaa; 1024];
        STAMPER.stamp(&mut block, 0x2_0000, 0x0abc, WRITE);
        assert_eq!(block[..4], crc32c::crc32c(&block[4..512]).to_le_bytes());
        assert_eq!(block[4..8], [0xbc, 0x0a, 1, 0]);
        assert_eq!(block[8..16], [0, 1, 0, 0, 0, 3, 0, 0x88]);
        assert_eq!(&block[16..24], b"LOADSTNV");
        assert_eq!(block[24..32], STAMPER.run.to_le_bytes());
        assert_eq!(block[32..40], WRITE.sequence.to_le_bytes());
        assert_eq!(block[40..44], 8192u32.to_le_bytes());
        assert_eq!(block[44..48], 1024u32.to_le_bytes());
        assert_eq!(block[48..52], 1024u32.to_le_bytes());
        assert_eq!(block[52..56], [0; 4]);
        assert!(block[56..512].iter().all(|&byte| byte == 0xaa));
        assert_eq!(block[512 + 4..512 + 8], [0xbc, 0x0a, 1, 0]);
        assert_eq!(block[512 + 8..512 + 16], [1, 1, 0, 0, 0, 3, 0, 0x88]);
        assert!(block[512 + 16..].iter().all(|&byte| byte == 0xaa));
    }

    #[test]
    fn a_stamp_says_what_was_stamped_and_holds_only_that() {
        for content in [PayloadSource::Payload, PayloadSource::Generated] {
            let stamper = Stamper { content, ..STAMPER };
            let mut block = vec![7; 1024];
            stamper.stamp(&mut block, 4096, 9, WRITE);
            let second = tag(&block[512..]).unwrap();
            assert_eq!(
                (
                    second.generation,
                    second.offset(),
                    second.target(),
                    second.run_byte()
                ),
                (9, 4608, 3, 0x88)
            );
            assert_eq!(header(&block[..512]), Some((STAMPER.run, WRITE)));
            assert!(stamper.holds(&block, 4096, 9));
            assert!(!stamper.holds(&block, 4096, 10));
            assert!(!stamper.holds(&block, 5120, 9));
            assert!(!Stamper {
                target: 4,
                ..stamper
            }
            .holds(&block, 4096, 9));
            assert!(!Stamper {
                run: 0x88,
                ..stamper
            }
            .holds(&block, 4096, 9));
            for bit in [0, 40, 130, 500, 511 * 8 + 7, 512 * 8, 1023 * 8] {
                block[bit / 8] ^= 1 << (bit % 8);
                assert!(!stamper.holds(&block, 4096, 9), "bit {bit}");
                block[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn nothing_unstamped_is_a_tag() {
        assert_eq!(tag(&[0; 512]), None);
        assert_eq!(tag(&[0xff; 512]), None);
    }

    /// Cost per 4 KiB block: `cargo test --release -p loadstone-verification cost_of -- --ignored --nocapture`.
    #[test]
    #[ignore = "prints timings"]
    fn cost_of_stamping_and_checking() {
        for content in [PayloadSource::Payload, PayloadSource::Generated] {
            let stamper = Stamper {
                content,
                block_bytes: 4096,
                ..STAMPER
            };
            let mut block = vec![7; 4096];
            let count = 500_000;
            let time = |work: &mut dyn FnMut(u32)| {
                let start = std::time::Instant::now();
                (0..count).for_each(work);
                start.elapsed().as_nanos() as f64 / f64::from(count)
            };
            let stamp_ns = time(&mut |i| stamper.stamp(&mut block, u64::from(i) * 4096, 1, WRITE));
            stamper.stamp(&mut block, 0, 1, WRITE);
            let check_ns =
                time(&mut |_| assert!(stamper.holds(std::hint::black_box(&block), 0, 1)));
            let crc_ns = time(&mut |_| {
                for sector in std::hint::black_box(&block).chunks(512) {
                    std::hint::black_box(crc32c::crc32c(&sector[4..]));
                }
            });
            println!("{content:?}: stamp {stamp_ns:.0} ns, check {check_ns:.0} ns, CRC alone {crc_ns:.0} ns");
        }
    }
}
