//! The verdict on a block that was read.
//!
//! Knows how sectors and an expectation make one of the kinds of damage. Knows no table
//! and no worker: an expectation and bytes go in, a verdict comes out.
//!
//! The order of the rules matters. A sector of another place proves a misdirection
//! whatever else is wrong. Flipped bits are next, then zeros, then mixtures; a block of
//! one old generation throughout is a lost write, or a stale read when the newer had been
//! read before.

use super::damage::{Damage, DamageKind, FoundStamp};
use super::expect::{before, Expectation};
use super::sector::{classify, named_generation, SectorContent};
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
) -> Vec<SectorContent> {
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
    let mut result: Vec<SectorContent> = block
        .chunks_exact(SECTOR_BYTES)
        .enumerate()
        .filter_map(|(i, bytes)| {
            let at = offset + (i * SECTOR_BYTES) as u64;
            let bytes = bytes.first_chunk()?;
            Some(classify(stamper, bytes, at, i == 0, &candidates))
        })
        .collect();
    // Only the header has the whole identity of the run: what follows is of its run.
    if let Some(SectorContent::OtherRun(first)) = result.first().copied() {
        for sector in &mut result {
            match *sector {
                SectorContent::Elsewhere(tag) if tag.run_byte() == first.run_byte() => {
                    *sector = SectorContent::OtherRun(tag);
                }
                SectorContent::Own(generation) if first.run_byte() == stamper.run as u8 => {
                    *sector = SectorContent::OtherRun(stamp::StampTag {
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
    Damaged(DamageKind),
}

fn judge(sectors: &[SectorContent], expected: &Expectation) -> Judgement {
    use Judgement::{Damaged, Unverified};
    let any = |test: fn(&SectorContent) -> bool| sectors.iter().any(test);
    let is_own = |sector: &SectorContent| matches!(sector, SectorContent::Own(_));
    let own = any(is_own);
    let flipped = any(|sector| matches!(sector, SectorContent::Flipped(..)));
    let split = any(|sector| matches!(sector, SectorContent::Split { .. }));
    let foreign = any(|sector| matches!(sector, SectorContent::Foreign));
    if any(|sector| matches!(sector, SectorContent::Elsewhere(_))) {
        return Damaged(DamageKind::MisdirectedWrite);
    }
    if sectors.iter().all(is_own) {
        return judge_generations(sectors, expected);
    }
    if (flipped || split || foreign) && expected.mixed {
        // Bytes being copied while they are read.
        return Unverified;
    }
    if flipped {
        return Damaged(DamageKind::BitFlip);
    }
    if split {
        return Damaged(DamageKind::TornWrite);
    }
    if expected.anything {
        let partly_ours = own && !expected.mixed;
        return if partly_ours {
            Damaged(DamageKind::TornWrite)
        } else {
            Unverified
        };
    }
    // What was there before the first write of the run is not known: it may be the rest.
    let first_write = expected.newest == 1 && own;
    if first_write {
        Damaged(DamageKind::TornWrite)
    } else if foreign {
        Damaged(DamageKind::Foreign)
    } else if any(|sector| matches!(sector, SectorContent::Zero)) {
        Damaged(DamageKind::ZeroedBlock)
    } else if own {
        Damaged(DamageKind::TornWrite)
    } else {
        Damaged(outdated(expected))
    }
}

/// All sectors are valid and of this place.
fn judge_generations(sectors: &[SectorContent], expected: &Expectation) -> Judgement {
    let mut generations = sectors.iter().filter_map(|sector| match sector {
        SectorContent::Own(generation) => Some(*generation),
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
        (false, _) => Judgement::Damaged(DamageKind::TornWrite),
    }
}

fn outdated(expected: &Expectation) -> DamageKind {
    if expected.seen {
        DamageKind::StaleRead
    } else {
        DamageKind::LostWrite
    }
}

/// A damaged block.
struct Evidence<'a> {
    stamper: &'a Stamper,
    block: &'a [u8],
    offset: u64,
    sectors: &'a [SectorContent],
}

impl Evidence<'_> {
    fn damage(&self, kind: DamageKind, expected: &Expectation) -> Damage {
        let wrong: Vec<usize> = (0..self.sectors.len())
            .filter(|&i| self.is_wrong(i, kind, expected))
            .collect();
        let first = wrong.first().copied().unwrap_or(0);
        let flips = match self.sectors[first] {
            SectorContent::Flipped(_, flips) => Some(flips),
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

    fn is_wrong(&self, index: usize, kind: DamageKind, expected: &Expectation) -> bool {
        match self.sectors[index] {
            SectorContent::Elsewhere(_) => kind == DamageKind::MisdirectedWrite,
            // Of a mixture without a table, what differs from the first is the wrong part.
            SectorContent::Own(generation) if expected.newest == 0 => {
                !matches!(self.sectors[0], SectorContent::Own(first) if first == generation)
            }
            SectorContent::Own(generation) => generation != expected.newest,
            _ => kind != DamageKind::MisdirectedWrite,
        }
    }

    fn found(&self, index: usize) -> Option<FoundStamp> {
        let at = self.offset + (index * SECTOR_BYTES) as u64;
        let (generation, target, offset, other_run) = match self.sectors[index] {
            SectorContent::Own(generation) | SectorContent::Flipped(generation, _) => {
                (generation, self.stamper.target, at, false)
            }
            SectorContent::Split { back, .. } => (back, self.stamper.target, at, false),
            SectorContent::Elsewhere(tag) => (tag.generation, tag.target(), tag.offset(), false),
            SectorContent::OtherRun(tag) => (tag.generation, tag.target(), tag.offset(), true),
            SectorContent::Zero | SectorContent::Foreign => return None,
        };
        let valid = !matches!(
            self.sectors[index],
            SectorContent::Flipped(..) | SectorContent::Split { .. }
        );
        let header = if index == 0 && valid {
            stamp::header(self.block)
        } else {
            None
        };
        Some(FoundStamp {
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
            .filter(|damage| damage.kind == DamageKind::LostWrite)
        {
            let older = damage.found.is_some_and(|found| {
                found.other_run
                    || found
                        .sequence
                        .is_some_and(|sequence| sequence < write.sequence)
            });
            if run == stamper.run && older && covered.contains(&damage.offset) {
                damage.kind = DamageKind::TornWrite;
            }
        }
    }
}
