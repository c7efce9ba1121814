//! The verdict on a block that was read.
//!
//! Knows how sectors and an expectation make one of the kinds of damage. Knows no table
//! and no worker: an expectation and bytes go in, a verdict comes out.
//!
//! The order of the rules matters. A sector of another place proves a misdirection
//! whatever else is wrong. Flipped bits are next, then zeros, then mixtures; a block of
//! one old generation throughout is a lost write, or a stale read when the newer had been
//! read before.

use super::damage::{Damage, Found, Kind};
use super::expect::{before, Expectation};
use super::sector::{classify, named_generation, Sector};
use super::stamp::{self, Stamper, SECTOR_BYTES};

/// Generations before the newest that are tried on a sector with a wrong checksum,
/// besides those expected and those its neighbours have.
const EARLIER_TRIED: u16 = 2;

/// What is said of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds the newest generation.
    Newest,
    /// It holds a generation that may be there.
    Allowed,
    /// Nothing can be said: it was not written by this run, or is being written.
    Unverified,
    /// It is damaged.
    Damaged(Damage),
}

/// Judges one verify block, read from `offset`.
#[inline]
#[must_use]
pub fn check(stamper: &Stamper, block: &[u8], offset: u64, expected: &Expectation) -> Verdict {
    let generation = named_generation(block);
    if generation == expected.newest && generation != 0 {
        if stamper.holds(block, offset, generation) {
            return Verdict::Newest;
        }
    } else if (expected.anything || expected.allows(generation))
        && stamper.holds(block, offset, generation)
    {
        return Verdict::Allowed;
    }
    examine(stamper, block, offset, expected)
}

/// Judges a block that is not simply right.
#[cold]
fn examine(stamper: &Stamper, block: &[u8], offset: u64, expected: &Expectation) -> Verdict {
    let sectors = classify_all(stamper, block, offset, expected);
    let kind = match judge(&sectors, expected) {
        Judgement::Allowed => return Verdict::Allowed,
        Judgement::Unverified => return Verdict::Unverified,
        Judgement::Damaged(kind) => kind,
    };
    let evidence = Evidence {
        stamper,
        block,
        offset,
        sectors: &sectors,
    };
    Verdict::Damaged(evidence.damage(kind, expected))
}

fn classify_all(
    stamper: &Stamper,
    block: &[u8],
    offset: u64,
    expected: &Expectation,
) -> Vec<Sector> {
    let mut candidates: Vec<u16> = Vec::new();
    let add = |candidates: &mut Vec<u16>, generation: u16| {
        if (1..=stamp::GENERATIONS).contains(&generation) && !candidates.contains(&generation) {
            candidates.push(generation);
        }
    };
    let mut earlier = expected.newest;
    for _ in 0..=(expected.span as u16).min(16) + EARLIER_TRIED {
        add(&mut candidates, earlier);
        earlier = before(earlier.max(1), 1);
    }
    for sector in block.chunks_exact(SECTOR_BYTES) {
        add(&mut candidates, named_generation(sector));
    }
    let mut result: Vec<Sector> = block
        .chunks_exact(SECTOR_BYTES)
        .enumerate()
        .filter_map(|(i, bytes)| {
            let at = offset + (i * SECTOR_BYTES) as u64;
            let bytes = bytes.first_chunk()?;
            Some(classify(stamper, bytes, at, i == 0, &candidates))
        })
        .collect();
    // Only the header has the whole identity of the run: what follows is of its run.
    if let Some(Sector::OtherRun(first)) = result.first().copied() {
        for sector in &mut result {
            match *sector {
                Sector::Elsewhere(tag) if tag.run_byte() == first.run_byte() => {
                    *sector = Sector::OtherRun(tag);
                }
                Sector::Own(generation) if first.run_byte() == stamper.run as u8 => {
                    *sector = Sector::OtherRun(stamp::Tag {
                        generation,
                        key: first.key,
                    });
                }
                _ => {}
            }
        }
    }
    result
}

enum Judgement {
    Allowed,
    Unverified,
    Damaged(Kind),
}

fn judge(sectors: &[Sector], expected: &Expectation) -> Judgement {
    use Judgement::{Damaged, Unverified};
    let count = |test: fn(&Sector) -> bool| sectors.iter().filter(|sector| test(sector)).count();
    let all = sectors.len();
    let own = count(|sector| matches!(sector, Sector::Own(_)));
    let zero = count(|sector| matches!(sector, Sector::Zero));
    let invalid = count(|sector| {
        matches!(
            sector,
            Sector::Flipped(..) | Sector::Split { .. } | Sector::Foreign
        )
    });
    if count(|sector| matches!(sector, Sector::Elsewhere(_))) > 0 {
        return Damaged(Kind::MisdirectedWrite);
    }
    if own == all {
        return judge_generations(sectors, expected);
    }
    if invalid > 0 && expected.mixed {
        // Bytes being copied while they are read.
        return Unverified;
    }
    if count(|sector| matches!(sector, Sector::Flipped(..))) > 0 {
        return Damaged(Kind::BitFlip);
    }
    if count(|sector| matches!(sector, Sector::Split { .. })) > 0 {
        return Damaged(Kind::TornWrite);
    }
    if expected.anything {
        let partly_ours = own > 0 && !expected.mixed;
        return if partly_ours {
            Damaged(Kind::TornWrite)
        } else {
            Unverified
        };
    }
    // What was there before the first write of the run is not known: it may be the rest.
    let first_write = expected.newest == 1 && own > 0;
    let foreign = count(|sector| matches!(sector, Sector::Foreign));
    if first_write {
        Damaged(Kind::TornWrite)
    } else if foreign > 0 {
        Damaged(Kind::Foreign)
    } else if zero > 0 {
        Damaged(Kind::ZeroedBlock)
    } else if own > 0 {
        Damaged(Kind::TornWrite)
    } else {
        Damaged(outdated(expected))
    }
}

/// All sectors are valid and of this place.
fn judge_generations(sectors: &[Sector], expected: &Expectation) -> Judgement {
    let mut generations = sectors.iter().filter_map(|sector| match sector {
        Sector::Own(generation) => Some(*generation),
        _ => None,
    });
    let first = generations.clone().next().unwrap_or(0);
    let uniform = generations.clone().all(|generation| generation == first);
    // Sectors beyond the end of a lost journal were in flight when it ended.
    let in_flight = expected.newer
        && generations
            .clone()
            .any(|generation| expected.is_newer(generation));
    let allowed = expected.anything || generations.all(|generation| expected.allows(generation));
    match (uniform, allowed) {
        (true, true) => Judgement::Allowed,
        (true, false) => Judgement::Damaged(outdated(expected)),
        (false, true) if expected.mixed || in_flight => Judgement::Allowed,
        (false, _) => Judgement::Damaged(Kind::TornWrite),
    }
}

fn outdated(expected: &Expectation) -> Kind {
    if expected.seen {
        Kind::StaleRead
    } else {
        Kind::LostWrite
    }
}

/// A damaged block.
struct Evidence<'a> {
    stamper: &'a Stamper,
    block: &'a [u8],
    offset: u64,
    sectors: &'a [Sector],
}

impl Evidence<'_> {
    fn damage(&self, kind: Kind, expected: &Expectation) -> Damage {
        let wrong: Vec<usize> = (0..self.sectors.len())
            .filter(|&i| self.is_wrong(i, kind, expected))
            .collect();
        let first = wrong.first().copied().unwrap_or(0);
        let flips = match self.sectors[first] {
            Sector::Flipped(_, flips) => Some(flips),
            _ => None,
        };
        Damage {
            kind,
            target: self.stamper.target,
            offset: self.offset,
            block_bytes: self.stamper.block_bytes,
            expected: *expected,
            by_pattern: false,
            found: self.found(first),
            first_sector: first as u32,
            sectors: wrong.len() as u32,
            flips,
            strayed_to: None,
            repeated: false,
        }
    }

    fn is_wrong(&self, index: usize, kind: Kind, expected: &Expectation) -> bool {
        match self.sectors[index] {
            Sector::Elsewhere(_) => kind == Kind::MisdirectedWrite,
            // Of a mixture without a table, what differs from the first is the wrong part.
            Sector::Own(generation) if expected.newest == 0 => {
                !matches!(self.sectors[0], Sector::Own(first) if first == generation)
            }
            Sector::Own(generation) => generation != expected.newest,
            _ => kind != Kind::MisdirectedWrite,
        }
    }

    fn found(&self, index: usize) -> Option<Found> {
        let at = self.offset + (index * SECTOR_BYTES) as u64;
        let (generation, target, offset, other_run) = match self.sectors[index] {
            Sector::Own(generation) | Sector::Flipped(generation, _) => {
                (generation, self.stamper.target, at, false)
            }
            Sector::Split { back, .. } => (back, self.stamper.target, at, false),
            Sector::Elsewhere(tag) => (tag.generation, tag.target(), tag.offset(), false),
            Sector::OtherRun(tag) => (tag.generation, tag.target(), tag.offset(), true),
            Sector::Zero | Sector::Foreign => return None,
        };
        let valid = !matches!(
            self.sectors[index],
            Sector::Flipped(..) | Sector::Split { .. }
        );
        let header = if index == 0 && valid {
            stamp::header(self.block)
        } else {
            None
        };
        Some(Found {
            generation,
            target,
            // Of the verify block, not of the sector in it.
            offset: offset - offset % u64::from(self.stamper.block_bytes),
            sequence: header.map(|(_, write)| write.sequence),
            other_run,
        })
    }
}

/// Names lost what is torn: when a neighbour in the same read holds a write that covered
/// the lost block too and is newer than what the block holds, the write did happen, in
/// part. `buffer` was read from `start`.
#[cold]
pub fn join_torn(stamper: &Stamper, buffer: &[u8], start: u64, damages: &mut [Damage]) {
    let block_bytes = stamper.block_bytes as usize;
    for (i, block) in buffer.chunks_exact(block_bytes).enumerate() {
        let at = start + (i * block_bytes) as u64;
        let own = stamp::tag(&block[..SECTOR_BYTES]).is_some_and(|tag| tag.key == stamper.key(at));
        let Some((run, write)) = stamp::header(block).filter(|_| own) else {
            continue;
        };
        let Some(from) = at.checked_sub(u64::from(write.place_bytes)) else {
            continue;
        };
        let covered = from..from + u64::from(write.bytes);
        for damage in damages
            .iter_mut()
            .filter(|damage| damage.kind == Kind::LostWrite)
        {
            let older = damage.found.is_some_and(|found| {
                found.other_run
                    || found
                        .sequence
                        .is_some_and(|sequence| sequence < write.sequence)
            });
            if run == stamper.run && older && covered.contains(&damage.offset) {
                damage.kind = Kind::TornWrite;
            }
        }
    }
}
