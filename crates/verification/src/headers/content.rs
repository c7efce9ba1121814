//! What a write holds: random bytes or a pattern, and headers over them.
//!
//! Knows where headers stand and how both are made from a seed. Knows no file and no clock.

use super::block::{number_of, own_bytes, Header, MAGIC};
use super::sums;
use loadstone_plan::{HeaderPattern, HeaderSum, Headers};

/// Chains of random words side by side.
const CHAINS: usize = 4;
/// What a word is multiplied by for the next of its chain.
const STEP: u64 = 0x61c8_8646_80b5_83eb;
/// What the seed is multiplied by for each chain.
const FIRST: [u64; CHAINS] = [1, 2, 3, 5];

/// One write.
#[derive(Debug, Clone, Copy)]
pub struct HeaderWrite {
    /// Seed of its content.
    pub seed: u64,
    /// Place.
    pub offset: u64,
    /// Number in its stream.
    pub number: u64,
    /// Wall clock: seconds and nanoseconds.
    pub time: (u32, u32),
}

/// True when blocks have headers.
#[must_use]
pub fn has_headers(sum: HeaderSum) -> bool {
    !matches!(sum, HeaderSum::Pattern | HeaderSum::Null)
}

/// Bytes of the header that is written and the sum behind it.
#[must_use]
pub fn head_bytes(plan: &Headers) -> usize {
    if has_headers(plan.sum) {
        own_bytes(plan.layout) + sums::bytes(plan.sum)
    } else {
        0
    }
}

/// Bytes from one header to the next in an I/O.
#[must_use]
pub fn step_bytes(plan: &Headers, len: usize) -> usize {
    let interval = plan.interval_bytes as usize;
    if interval > 0 && interval <= len {
        interval
    } else {
        len
    }
}

/// Fills a write.
pub fn fill(plan: &Headers, write: &HeaderWrite, buffer: &mut [u8]) {
    match &plan.pattern {
        Some(pattern) => lay(pattern, write.offset, buffer),
        None => fill_random(plan.compress_percent, write.seed, buffer),
    }
    if !has_headers(plan.sum) {
        return;
    }
    let step = step_bytes(plan, buffer.len());
    let head = head_bytes(plan);
    let mut offset = write.offset;
    for block in buffer.chunks_mut(step) {
        if block.len() > head {
            put_header(plan, write, offset, head, block);
        }
        offset += step as u64;
    }
}

fn put_header(plan: &Headers, write: &HeaderWrite, offset: u64, head: usize, block: &mut [u8]) {
    let header = Header {
        magic: MAGIC,
        sum: number_of(plan.sum),
        bytes: block.len() as u32,
        seed: write.seed,
        offset,
        time: write.time,
        thread: plan.thread,
        number: write.number,
        crc: 0,
        good_crc: 0,
        own_bytes: own_bytes(plan.layout),
    };
    header.write(block);
    let (front, data) = block.split_at_mut(head);
    sums::compute(plan.sum, plan.layout, data, &mut front[header.own_bytes..]);
    move_head(plan, head, block);
}

/// Changes the place of the head of a block with that of the bytes at the header's offset: there
/// and back is the same, because the Plan's check lets them not overlap.
pub fn move_head(plan: &Headers, head: usize, block: &mut [u8]) {
    let at = plan.offset_bytes as usize;
    if at > 0 && at + head <= block.len() {
        for i in 0..head {
            block.swap(i, at + i);
        }
    }
}

/// Random bytes of a seed.
pub fn random(seed: u64, buffer: &mut [u8]) {
    let mut words = FIRST.map(|first| seed.wrapping_mul(first));
    let mut groups = buffer.chunks_exact_mut(8 * CHAINS);
    for group in &mut groups {
        for (bytes, word) in group.chunks_exact_mut(8).zip(&mut words) {
            bytes.copy_from_slice(&word.to_le_bytes());
            *word = word.wrapping_mul(STEP);
        }
    }
    let mut word = words[0];
    for bytes in groups.into_remainder().chunks_mut(8) {
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        word = word.wrapping_mul(STEP);
    }
}

fn fill_random(compress_percent: u32, seed: u64, buffer: &mut [u8]) {
    let len = buffer.len();
    let drawn = (len as u64 * u64::from(100 - compress_percent.min(100)) / 100) as usize;
    let (front, rest) = buffer.split_at_mut(drawn);
    random(seed, front);
    rest.fill(0);
}

/// Lays a pattern over an I/O at `offset`.
fn lay(pattern: &HeaderPattern, offset: u64, buffer: &mut [u8]) {
    let interval = match pattern.interval_bytes as usize {
        0 => buffer.len(),
        interval => interval,
    };
    for (at, part) in (offset..)
        .step_by(interval)
        .zip(buffer.chunks_mut(interval))
    {
        for bytes in part.chunks_mut(pattern.bytes.len()) {
            bytes.copy_from_slice(&pattern.bytes[..bytes.len()]);
            for &place in &pattern.offsets_at {
                let place = place as usize;
                if place < bytes.len() {
                    let count = (bytes.len() - place).min(8);
                    bytes[place..place + count].copy_from_slice(&at.to_le_bytes()[..count]);
                }
            }
        }
    }
}

/// The byte that the pattern has at `at` of an I/O at `offset`.
#[must_use]
pub fn pattern_byte(pattern: &HeaderPattern, offset: u64, at: usize) -> u8 {
    let interval = pattern.interval_bytes as usize;
    let begin = at.checked_div(interval).map_or(0, |whole| whole * interval);
    let place = (at - begin) % pattern.bytes.len();
    let value = (offset + begin as u64).to_le_bytes();
    let mut byte = pattern.bytes[place];
    for &first in &pattern.offsets_at {
        let first = first as usize;
        if (first..first + 8).contains(&place) {
            byte = value[place - first];
        }
    }
    byte
}
