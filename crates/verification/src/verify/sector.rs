//! What one sector holds, seen by itself.
//!
//! Knows how to recognise a sector that is right, of another place, of another run, zero,
//! made of two writes, or right but for some bits. Knows no neighbours and no verdict.
//! Runs only when something is unusual: it may be slow.

use super::stamp::{self, PayloadSource, StampTag, Stamper, SECTOR_BYTES};

/// A sector with at most this share of its known bits wrong (one in ...) is one with
/// flipped bits and not something else: of random bits half would be wrong.
const FLIPPED_SHARE: u32 = 8;

/// Bytes of a payload that prove which generation it is of.
const PROOF_BYTES: usize = 4;

/// Bytes that follow from place and generation, but for the payload: tag without CRC.
const TAG_KNOWN: std::ops::Range<usize> = 4..16;
/// Known bytes of the header: letters and run, and the block's size.
const HEADER_KNOWN: [std::ops::Range<usize>; 2] = [16..32, 48..52];
/// Bytes of the header that depend on the write.
const HEADER_UNKNOWN: std::ops::Range<usize> = 32..48;

/// Content of a sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectorContent {
    /// Valid and of this place, with its generation.
    Own(u16),
    /// Valid and of this run, but written for another place.
    Elsewhere(StampTag),
    /// Valid, of another run.
    OtherRun(StampTag),
    /// Zeros.
    Zero,
    /// Of this place but for some bits.
    Flipped(u16, Flips),
    /// The first bytes are of one generation, the rest is of another.
    Split {
        /// Generation at its start.
        front: u16,
        /// Generation at its end.
        back: u16,
        /// First byte of the second.
        at: u32,
    },
    /// Nothing known.
    Foreign,
}

/// Bits that are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flips {
    /// How many; none when the payload cannot be made again and it is more than one.
    pub count: Option<u32>,
    /// The first, counted from the start of the sector, lowest bit of a byte first.
    pub first: Option<u32>,
}

impl Flips {
    /// In words.
    #[must_use]
    pub fn describe(self) -> String {
        match (self.count, self.first) {
            (Some(1), Some(first)) => format!("bit {first} flipped"),
            (Some(count), Some(first)) => format!("{count} bits flipped, the first is bit {first}"),
            _ => "a wrong checksum".to_owned(),
        }
    }
}

/// Classifies the sector that was read from `offset`. `first` says that it begins a
/// verify block; `candidates` are the generations it might be of.
#[must_use]
pub fn classify(
    stamper: &Stamper,
    sector: &[u8; SECTOR_BYTES],
    offset: u64,
    first: bool,
    candidates: &[u16],
) -> SectorContent {
    let key = stamper.key(offset);
    if let Some(tag) = stamp::tag(sector) {
        let header = if first { stamp::header(sector) } else { None };
        let other = header.is_some_and(|(run, _)| run != stamper.run);
        return match tag {
            _ if other || tag.run_byte() != stamper.run as u8 => SectorContent::OtherRun(tag),
            _ if tag.key == key => SectorContent::Own(tag.generation),
            _ => SectorContent::Elsewhere(tag),
        };
    }
    if sector.iter().all(|&byte| byte == 0) {
        return SectorContent::Zero;
    }
    if let Some((generation, bit)) = single_flip(sector, key) {
        let flips = Flips {
            count: Some(1),
            first: Some(bit),
        };
        return SectorContent::Flipped(generation, flips);
    }
    let images: Vec<(u16, [u8; SECTOR_BYTES])> = candidates
        .iter()
        .map(|&generation| (generation, image(stamper, sector, key, first, generation)))
        .collect();
    // A front of few bytes looks like an older sector with flipped bits; not the reverse.
    split(stamper, sector, first, &images)
        .or_else(|| flipped(stamper, sector, first, &images))
        .unwrap_or(SectorContent::Foreign)
}

/// Generation that the sector's tag names, valid or not.
#[must_use]
pub fn named_generation(sector: &[u8]) -> u16 {
    u16::from_le_bytes([sector[4], sector[5]])
}

/// What the sector would be as `generation`; bytes that cannot be known are taken from it.
fn image(
    stamper: &Stamper,
    sector: &[u8; SECTOR_BYTES],
    key: u64,
    first: bool,
    generation: u16,
) -> [u8; SECTOR_BYTES] {
    let mut image = *sector;
    let write = stamp::StampWrite {
        sequence: 0,
        bytes: 0,
        place_bytes: 0,
    };
    stamper.image(&mut image, key, generation, first.then_some(write));
    image[..4].copy_from_slice(&sector[..4]);
    if first {
        image[HEADER_UNKNOWN].copy_from_slice(&sector[HEADER_UNKNOWN]);
    }
    image
}

/// One flipped bit anywhere is found from the checksum alone: CRC is linear, so flipping
/// bit `i` changes it by a value that depends on `i` only.
fn single_flip(sector: &[u8; SECTOR_BYTES], key: u64) -> Option<(u16, u32)> {
    /// Castagnoli's polynomial, bits reversed, as in RFC 3720.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut stored = [0; 4];
    stored.copy_from_slice(&sector[..4]);
    let syndrome = u32::from_le_bytes(stored) ^ crc32c::crc32c(&sector[4..]);
    let bit = if syndrome.is_power_of_two() {
        syndrome.trailing_zeros()
    } else {
        // The change made by the last bit of the sector, then by the one before it, ...
        let mut change = POLYNOMIAL;
        let mut bit = SECTOR_BYTES as u32 * 8 - 1;
        while change != syndrome {
            if bit == 32 {
                return None;
            }
            change = (change >> 1) ^ (if change & 1 == 1 { POLYNOMIAL } else { 0 });
            bit -= 1;
        }
        bit
    };
    let mut repaired = *sector;
    repaired[bit as usize / 8] ^= 1 << (bit % 8);
    let tag = stamp::tag(&repaired)?;
    (tag.key == key).then_some((tag.generation, bit))
}

fn flipped(
    stamper: &Stamper,
    sector: &[u8; SECTOR_BYTES],
    first: bool,
    images: &[(u16, [u8; SECTOR_BYTES])],
) -> Option<SectorContent> {
    let mut known: Vec<usize> = TAG_KNOWN.collect();
    if first {
        known.extend(HEADER_KNOWN.into_iter().flatten());
    }
    let generated = stamper.content == PayloadSource::Generated;
    if generated {
        let from = if first {
            stamp::HEADER_BYTES
        } else {
            stamp::TAG_BYTES
        };
        known.extend(from..SECTOR_BYTES);
    }
    let wrong = |image: &[u8; SECTOR_BYTES]| -> u32 {
        known
            .iter()
            .map(|&at| (image[at] ^ sector[at]).count_ones())
            .sum()
    };
    let (generation, image) = images.iter().min_by_key(|(_, image)| wrong(image))?;
    let count = wrong(image);
    if count > known.len() as u32 * 8 / FLIPPED_SHARE {
        return None;
    }
    let first_bit = known
        .iter()
        .copied()
        .filter(|&at| image[at] != sector[at])
        .min()
        .map(|at| at as u32 * 8 + (image[at] ^ sector[at]).trailing_zeros());
    let count = (generated && count > 0).then_some(count);
    Some(SectorContent::Flipped(
        *generation,
        Flips {
            count,
            first: first_bit,
        },
    ))
}

/// Only a payload that can be made again shows where one write ends and another begins.
fn split(
    stamper: &Stamper,
    sector: &[u8; SECTOR_BYTES],
    first: bool,
    images: &[(u16, [u8; SECTOR_BYTES])],
) -> Option<SectorContent> {
    let payload = if first {
        stamp::HEADER_BYTES
    } else {
        stamp::TAG_BYTES
    };
    if stamper.content != PayloadSource::Generated {
        return None;
    }
    for (front, image) in images {
        let at = image.iter().zip(sector).position(|(a, b)| a != b)?;
        if !(payload + PROOF_BYTES..=SECTOR_BYTES - PROOF_BYTES).contains(&at) {
            continue;
        }
        for (back, other) in images {
            if back != front && other[at..] == sector[at..] {
                return Some(SectorContent::Split {
                    front: *front,
                    back: *back,
                    at: at as u32,
                });
            }
        }
    }
    None
}
