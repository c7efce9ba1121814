//! The verdict on a block that holds a repeated pattern and no stamp.
//!
//! Knows that a pattern says nothing of place, time or run: what is right says that the
//! bytes are, and nothing of a write that was lost. Knows no table.

use super::check::Verdict;
use super::damage::{Damage, DamageKind};
use super::expect::Expectation;
use super::sector::Flips;
use super::stamp::SECTOR_BYTES;

/// Up to so many wrong bits in a block are flips; more are other content.
const MOST_FLIPS: u32 = 64;

/// Judges one verify block, `place` bytes into the I/O at whose start the pattern begins.
#[must_use]
pub fn check(pattern: &[u8], place: usize, block: &[u8], expected: &Expectation) -> Verdict {
    let wanted = pattern.iter().cycle().skip(place % pattern.len());
    if block.iter().eq(wanted.clone().take(block.len())) {
        return Verdict::Newest;
    }
    // Written while it was read, or never written by a run that knows what it wrote.
    if expected.mixed {
        return Verdict::Unverified;
    }
    Verdict::Damaged(damage(block, wanted, expected))
}

#[cold]
fn damage<'a>(
    block: &[u8],
    wanted: impl Iterator<Item = &'a u8>,
    expected: &Expectation,
) -> Damage {
    let (mut bits, mut first_bit, mut wrong) = (0, None, Vec::new());
    for (at, (found, wanted)) in block.iter().zip(wanted).enumerate() {
        let differing = found ^ wanted;
        if differing == 0 {
            continue;
        }
        bits += differing.count_ones();
        let sector = at / SECTOR_BYTES;
        if wrong.last() != Some(&sector) {
            wrong.push(sector);
        }
        let bit = (at % SECTOR_BYTES) as u32 * 8 + differing.trailing_zeros();
        first_bit.get_or_insert(bit);
    }
    let zeros = block.iter().all(|&byte| byte == 0);
    let kind = match bits {
        _ if zeros => DamageKind::ZeroedBlock,
        ..=MOST_FLIPS => DamageKind::BitFlip,
        _ => DamageKind::Foreign,
    };
    Damage {
        kind,
        target: 0,
        offset: 0,
        block_bytes: block.len() as u32,
        expected: *expected,
        by_pattern: true,
        found: None,
        first_sector: wrong.first().map_or(0, |&sector| sector as u32),
        sectors: wrong.len() as u32,
        flips: (kind == DamageKind::BitFlip).then_some(Flips {
            count: Some(bits),
            first: first_bit,
        }),
        strayed_to: None,
        repeated: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERN: &[u8] = b"loadstone";

    fn block(place: usize) -> Vec<u8> {
        let bytes = PATTERN.iter().copied().cycle();
        bytes.skip(place).take(1024).collect()
    }

    fn judge(place: usize, bytes: &[u8]) -> Verdict {
        check(PATTERN, place, bytes, &Expectation::NONE)
    }

    fn found(verdict: Verdict) -> Damage {
        match verdict {
            Verdict::Damaged(damage) => damage,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_pattern_goes_on_over_the_blocks_of_an_io() {
        assert_eq!(judge(0, &block(0)), Verdict::Newest);
        assert_eq!(judge(1024, &block(1024)), Verdict::Newest);
        assert!(matches!(judge(1024, &block(0)), Verdict::Damaged(_)));
    }

    #[test]
    fn flips_zeros_and_other_content_are_told_apart() {
        let mut bytes = block(0);
        bytes[700] ^= 0b0001_0100;
        let damage = found(judge(0, &bytes));
        assert_eq!((damage.kind, damage.first_sector), (DamageKind::BitFlip, 1));
        let flips = damage.flips.map(|flips| (flips.count, flips.first));
        assert_eq!(flips, Some((Some(2), Some((700 - 512) * 8 + 2))));
        assert_eq!(found(judge(0, &[0; 1024])).kind, DamageKind::ZeroedBlock);
        let damage = found(judge(0, &[0x5a; 1024]));
        assert_eq!((damage.kind, damage.sectors), (DamageKind::Foreign, 2));
        assert_eq!(
            damage.describe(),
            "expected the pattern, found other content"
        );
    }

    #[test]
    fn nothing_is_said_of_what_is_being_written() {
        let expected = Expectation {
            mixed: true,
            ..Expectation::NONE
        };
        let verdict = check(PATTERN, 0, &[1; 512], &expected);
        assert_eq!(verdict, Verdict::Unverified);
    }
}
