//! A header: who wrote a block, when and where.
//!
//! Knows the bytes of both layouts, that of fio up to 3.40 and that of later ones: either is
//! written as the Plan says, and read as it is found.

use super::sums::crc32c_open;
use loadstone_plan::{HeaderLayout, HeaderSum};

/// Bytes of a header of fio up to 3.40.
pub const BYTES: usize = 40;
/// Bytes of a header of fio 3.41 and later.
pub const LATER_BYTES: usize = 48;
/// Its first two bytes.
pub const MAGIC: u16 = 0xacca;
/// Where later layouts have their version, and the version.
const VERSION_AT: usize = 2;
const VERSION: u8 = 0x81;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// See [`MAGIC`].
    pub magic: u16,
    /// Number of the sum.
    pub sum: u16,
    /// Bytes of the block.
    pub bytes: u32,
    /// Seed of its content.
    pub seed: u64,
    /// Place of the block.
    pub offset: u64,
    /// Wall clock of the write: seconds and nanoseconds.
    pub time: (u32, u32),
    /// Who wrote it.
    pub thread: u16,
    /// Number of the write.
    pub number: u64,
    /// Check sum of the header itself, as it stands there.
    pub crc: u32,
    /// The check sum as it should be.
    pub good_crc: u32,
    /// Its own bytes.
    pub own_bytes: usize,
}

/// Bytes of a header of this layout.
#[must_use]
pub fn own_bytes(layout: HeaderLayout) -> usize {
    match layout {
        HeaderLayout::Earlier => BYTES,
        HeaderLayout::Later => LATER_BYTES,
    }
}

/// Bytes of the header that begins here.
#[must_use]
pub fn found_bytes(block: &[u8]) -> usize {
    if block.get(VERSION_AT) == Some(&VERSION) {
        LATER_BYTES
    } else {
        BYTES
    }
}

/// Number of a sum in headers.
#[must_use]
pub fn number_of(sum: HeaderSum) -> u16 {
    sum as u16 + 1
}

impl Header {
    /// Reads a header; there are at least [`BYTES`], and zeros are taken for what is missing.
    #[must_use]
    pub fn read(block: &[u8]) -> Self {
        let mut all = [0u8; LATER_BYTES];
        let have = block.len().min(LATER_BYTES);
        all[..have].copy_from_slice(&block[..have]);
        let u16_at = |at: usize| u16::from_le_bytes([all[at], all[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes(all[at..at + 4].try_into().unwrap_or_default());
        let u64_at = |at: usize| u64::from_le_bytes(all[at..at + 8].try_into().unwrap_or_default());
        let own_bytes = found_bytes(&all);
        let later = own_bytes == LATER_BYTES;
        let time_at = if later { 32 } else { 24 };
        let crc_at = if later { 44 } else { 36 };
        Self {
            magic: u16_at(0),
            sum: if later { u16::from(all[3]) } else { u16_at(2) },
            bytes: u32_at(4),
            seed: u64_at(8),
            offset: u64_at(16),
            time: (u32_at(time_at), u32_at(time_at + 4)),
            thread: u16_at(time_at + 8),
            number: if later {
                u64_at(24)
            } else {
                u64::from(u16_at(34))
            },
            crc: u32_at(crc_at),
            good_crc: crc32c_open(&all[..crc_at]),
            own_bytes,
        }
    }

    /// The number of a write as a header of this layout has it.
    #[must_use]
    pub fn shorten(&self, number: u64) -> u64 {
        if self.own_bytes == BYTES {
            number & 0xffff
        } else {
            number
        }
    }

    /// Writes the header over the first of its own bytes of a block.
    pub fn write(&self, block: &mut [u8]) {
        block[..2].copy_from_slice(&self.magic.to_le_bytes());
        block[4..8].copy_from_slice(&self.bytes.to_le_bytes());
        block[8..16].copy_from_slice(&self.seed.to_le_bytes());
        block[16..24].copy_from_slice(&self.offset.to_le_bytes());
        let crc_at = if self.own_bytes == LATER_BYTES {
            block[2] = VERSION;
            block[3] = self.sum as u8;
            block[24..32].copy_from_slice(&self.number.to_le_bytes());
            block[32..36].copy_from_slice(&self.time.0.to_le_bytes());
            block[36..40].copy_from_slice(&self.time.1.to_le_bytes());
            block[40..42].copy_from_slice(&self.thread.to_le_bytes());
            block[42..44].fill(0);
            44
        } else {
            block[2..4].copy_from_slice(&self.sum.to_le_bytes());
            block[24..28].copy_from_slice(&self.time.0.to_le_bytes());
            block[28..32].copy_from_slice(&self.time.1.to_le_bytes());
            block[32..34].copy_from_slice(&self.thread.to_le_bytes());
            block[34..36].copy_from_slice(&(self.number as u16).to_le_bytes());
            36
        };
        let crc = crc32c_open(&block[..crc_at]);
        block[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
    }
}
