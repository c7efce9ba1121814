//! Every kind of damage, injected into a model of a disk under random reads and writes
//! that overlap: all is found and rightly named, and nothing is found where nothing is
//! wrong.

use std::collections::HashMap;

use super::check::{check, join_torn, Verdict};
use super::damage::{Damage, DamageKind};
use super::expect::{BlockState, BlockTable, WriteOutcome};
use super::register::Register;
use super::stamp::{PayloadSource, StampWrite, Stamper, SECTOR_BYTES};
use loadstone_base::rng::Rng;

const BLOCKS: usize = 64;

/// A disk with two targets on it, and the part of a worker that verifies.
struct Lab {
    stampers: [Stamper; 2],
    tables: [BlockTable; 2],
    disks: [Vec<u8>; 2],
    /// Content before the last write, for stale reads.
    before: HashMap<(usize, usize), Vec<u8>>,
    rng: Rng,
    checked: u64,
    unverified: u64,
}

/// A write between issue and end.
#[derive(Clone)]
struct PendingWrite {
    target: usize,
    first: usize,
    data: Vec<u8>,
    landed: bool,
}

impl Lab {
    fn new(seed: u64, block_bytes: u32, content: PayloadSource) -> Self {
        let stamper = |target| Stamper {
            run: 0xfeed_0000_0000_0042 + seed,
            target,
            block_bytes,
            content,
        };
        let bytes = BLOCKS as u64 * u64::from(block_bytes);
        Self {
            stampers: [stamper(0), stamper(1)],
            tables: [0, 1].map(|_| BlockTable::new(0, bytes, block_bytes)),
            disks: [0, 1].map(|_| vec![0; bytes as usize]),
            before: HashMap::new(),
            rng: Rng::new(seed),
            checked: 0,
            unverified: 0,
        }
    }

    fn block_bytes(&self) -> usize {
        self.stampers[0].block_bytes as usize
    }

    fn pick(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn issue(&mut self, target: usize, first: usize, blocks: usize) -> PendingWrite {
        let block_bytes = self.block_bytes();
        let mut data = vec![0; blocks * block_bytes];
        for word in data.chunks_mut(8) {
            word.copy_from_slice(&self.rng.next_u64().to_le_bytes());
        }
        let sequence = self.tables[target].next_sequence();
        for (i, block) in data.chunks_mut(block_bytes).enumerate() {
            let generation = self.tables[target].begin(first + i);
            let write = StampWrite {
                sequence,
                bytes: (blocks * block_bytes) as u32,
                place_bytes: (i * block_bytes) as u32,
            };
            let offset = ((first + i) * block_bytes) as u64;
            self.stampers[target].stamp(block, offset, generation, write);
        }
        PendingWrite {
            target,
            first,
            data,
            landed: false,
        }
    }

    /// The write takes effect, or part of it from its start.
    fn land(&mut self, flight: &PendingWrite, bytes: usize) {
        let block_bytes = self.block_bytes();
        let start = flight.first * block_bytes;
        for i in 0..flight.data.len() / block_bytes {
            let at = start + i * block_bytes;
            let old = self.disks[flight.target][at..at + block_bytes].to_vec();
            self.before.insert((flight.target, flight.first + i), old);
        }
        self.disks[flight.target][start..start + bytes].copy_from_slice(&flight.data[..bytes]);
    }

    fn end(&mut self, flight: &PendingWrite, outcome: WriteOutcome) {
        for i in 0..flight.data.len() / self.block_bytes() {
            self.tables[flight.target].end(flight.first + i, outcome);
        }
    }

    fn write(&mut self, target: usize, first: usize, blocks: usize) {
        let flight = self.issue(target, first, blocks);
        self.land(&flight, flight.data.len());
        self.end(&flight, WriteOutcome::Acknowledged);
    }

    fn states(&self, target: usize, first: usize, blocks: usize) -> Vec<BlockState> {
        (first..first + blocks)
            .map(|index| self.tables[target].entry(index))
            .collect()
    }

    /// Judges what a read returned, as the worker does.
    fn judge(
        &mut self,
        target: usize,
        first: usize,
        data: &[u8],
        before: &[BlockState],
    ) -> Vec<Damage> {
        let block_bytes = self.block_bytes();
        let mut damages = Vec::new();
        for (i, block) in data.chunks(block_bytes).enumerate() {
            let (expected, after) = self.tables[target].expectation(first + i, before[i]);
            let offset = ((first + i) * block_bytes) as u64;
            self.checked += 1;
            match check(&self.stampers[target], block, offset, &expected) {
                Verdict::Newest => self.tables[target].mark_seen(first + i, after),
                Verdict::Allowed => {}
                Verdict::Unverified => self.unverified += 1,
                Verdict::Damaged(damage) => {
                    if self.tables[target].mark_reported(first + i, after) {
                        damages.push(damage);
                    }
                }
            }
        }
        let start = (first * block_bytes) as u64;
        join_torn(&self.stampers[target], data, start, &mut damages);
        damages
    }

    fn read(&mut self, target: usize, first: usize, blocks: usize) -> Vec<Damage> {
        let block_bytes = self.block_bytes();
        let before = self.states(target, first, blocks);
        let data = self.disks[target][first * block_bytes..(first + blocks) * block_bytes].to_vec();
        self.judge(target, first, &data, &before)
    }

    /// Every block is written a few times, so that nothing is unknown.
    fn fill(&mut self) {
        for target in 0..2 {
            for block in 0..BLOCKS {
                for _ in 0..1 + self.pick(3) {
                    self.write(target, block, 1);
                }
            }
        }
    }

    /// Nothing on the disks is wrong.
    fn assert_clean(&mut self) {
        for target in 0..2 {
            assert_eq!(self.read(target, 0, BLOCKS), []);
        }
    }
}

fn shapes() -> [(u32, PayloadSource); 4] {
    [
        (512, PayloadSource::Payload),
        (4096, PayloadSource::Payload),
        (512, PayloadSource::Generated),
        (4096, PayloadSource::Generated),
    ]
}

/// One of the writes in flight ends, fails, or gets to the disk, in part or whole.
fn advance(lab: &mut Lab, flights: &mut Vec<PendingWrite>) {
    let i = lab.pick(flights.len());
    if flights[i].landed {
        let flight = flights.swap_remove(i);
        lab.end(&flight, WriteOutcome::Acknowledged);
    } else if lab.pick(40) == 0 {
        // Fails; a part of it may be there.
        let flight = flights.swap_remove(i);
        let sectors = lab.pick(flight.data.len() / SECTOR_BYTES + 1);
        lab.land(&flight, sectors * SECTOR_BYTES);
        lab.end(&flight, WriteOutcome::Uncertain);
    } else {
        let flight = flights[i].clone();
        // A write that is still to land leaves a mixture for a read now.
        if lab.pick(3) == 0 {
            let sectors = lab.pick(flight.data.len() / SECTOR_BYTES + 1);
            lab.land(&flight, sectors * SECTOR_BYTES);
        } else {
            lab.land(&flight, flight.data.len());
            flights[i].landed = true;
        }
    }
}

/// Reads and writes in flight at the same time, ending in any order; some fail.
fn random_load(lab: &mut Lab, steps: usize) -> Vec<Damage> {
    let mut flights: Vec<PendingWrite> = Vec::new();
    let mut reads: Vec<(usize, usize, Vec<u8>, Vec<BlockState>)> = Vec::new();
    let mut damages = Vec::new();
    for _ in 0..steps {
        let target = lab.pick(2);
        let blocks = 1 + lab.pick(4);
        let first = lab.pick(BLOCKS + 1 - blocks);
        match lab.pick(10) {
            0..=2 if flights.len() < 16 => flights.push(lab.issue(target, first, blocks)),
            3..=5 if !flights.is_empty() => advance(lab, &mut flights),
            6 | 7 => {
                let before = lab.states(target, first, blocks);
                let block_bytes = lab.block_bytes();
                let data =
                    lab.disks[target][first * block_bytes..(first + blocks) * block_bytes].to_vec();
                reads.push((target, first, data, before));
            }
            _ if !reads.is_empty() => {
                let i = lab.pick(reads.len());
                let (target, first, data, before) = reads.swap_remove(i);
                damages.extend(lab.judge(target, first, &data, &before));
            }
            _ => {}
        }
    }
    for flight in flights {
        lab.land(&flight, flight.data.len());
        lab.end(&flight, WriteOutcome::Acknowledged);
    }
    damages
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let mut checked = 0;
    for seed in 0..50 {
        for (block_bytes, content) in shapes() {
            let mut lab = Lab::new(seed, block_bytes, content);
            if seed % 2 == 0 {
                lab.fill();
            }
            assert_eq!(
                random_load(&mut lab, 1500),
                [],
                "seed {seed}, {block_bytes} {content:?}"
            );
            lab.assert_clean();
            checked += lab.checked - lab.unverified;
        }
    }
    assert!(checked > 100_000, "{checked} blocks were verified");
}

/// Lands a write elsewhere: both places are damaged, and found to be of one fault.
fn misdirect(lab: &mut Lab, target: usize, block: usize) -> Vec<Damage> {
    let block_bytes = lab.block_bytes();
    let at = block * block_bytes;
    let flight = lab.issue(target, block, 1);
    let other = loop {
        let other = (lab.pick(2), lab.pick(BLOCKS));
        if other != (target, block) {
            break other;
        }
    };
    let stray = PendingWrite {
        target: other.0,
        first: other.1,
        ..flight.clone()
    };
    lab.land(&stray, block_bytes);
    lab.end(&flight, WriteOutcome::Acknowledged);
    let (origin, stray) = (lab.read(target, block, 1), lab.read(other.0, other.1, 1));
    assert_eq!(
        (origin.len(), stray.len()),
        (1, 1),
        "both places are damaged"
    );
    let found = stray[0].found.unwrap();
    assert_eq!((found.target as usize, found.offset), (target, at as u64));
    let mut register = Register::default();
    let order = if lab.pick(2) == 0 {
        [origin[0], stray[0]]
    } else {
        [stray[0], origin[0]]
    };
    for damage in order {
        register.add(damage);
    }
    assert_eq!(
        (
            register.count(DamageKind::MisdirectedWrite),
            register.total()
        ),
        (2, 2)
    );
    register.findings().to_vec()
}

/// Tears a write between its blocks.
fn tear_between_blocks(lab: &mut Lab, target: usize, block: usize) -> Vec<Damage> {
    let flight = lab.issue(target, block, 4);
    let whole = 1 + lab.pick(3);
    lab.land(&flight, whole * lab.block_bytes());
    lab.end(&flight, WriteOutcome::Acknowledged);
    let found = lab.read(target, block, 4);
    assert_eq!(found.len(), 4 - whole);
    found
}

/// Injects one fault into a lab under load, and gives what reading the place finds.
fn inject(lab: &mut Lab, kind: DamageKind) -> Vec<Damage> {
    let block_bytes = lab.block_bytes();
    let sectors = block_bytes / SECTOR_BYTES;
    let (target, block) = (lab.pick(2), lab.pick(BLOCKS));
    let at = block * block_bytes;
    match kind {
        DamageKind::LostWrite => {
            let flight = lab.issue(target, block, 1);
            lab.end(&flight, WriteOutcome::Acknowledged);
            lab.read(target, block, 1)
        }
        DamageKind::TornWrite if sectors > 1 => {
            let flight = lab.issue(target, block, 1);
            let whole = 1 + lab.pick(sectors - 1);
            lab.land(&flight, whole * SECTOR_BYTES);
            lab.end(&flight, WriteOutcome::Acknowledged);
            lab.read(target, block, 1)
        }
        DamageKind::TornWrite => tear_between_blocks(lab, target, block.min(BLOCKS - 4)),
        DamageKind::MisdirectedWrite => misdirect(lab, target, block),
        DamageKind::StaleRead => {
            lab.write(target, block, 1);
            // Told from a lost write by an earlier read.
            assert_eq!(lab.read(target, block, 1), []);
            let stale = lab.before[&(target, block)].clone();
            let before = lab.states(target, block, 1);
            lab.judge(target, block, &stale, &before)
        }
        DamageKind::BitFlip => {
            let sector = lab.pick(sectors);
            for _ in 0..1 + lab.pick(8) {
                let bit = lab.pick(SECTOR_BYTES * 8);
                lab.disks[target][at + sector * SECTOR_BYTES + bit / 8] ^= 1 << (bit % 8);
            }
            lab.read(target, block, 1)
        }
        DamageKind::ZeroedBlock => {
            lab.disks[target][at..at + block_bytes].fill(0);
            lab.read(target, block, 1)
        }
        DamageKind::Foreign => {
            for byte in 0..block_bytes {
                lab.disks[target][at + byte] = lab.rng.next_u64() as u8;
            }
            lab.read(target, block, 1)
        }
    }
}

#[test]
fn every_kind_is_found_and_rightly_named() {
    // What `make test` leaves out, `make nightly` tries.
    let each = std::env::var("LOADSTONE_DAMAGES").map_or(250, |text| text.parse().unwrap());
    for (block_bytes, content) in shapes() {
        for kind in DamageKind::ALL {
            let mut lab = Lab::new(kind as u64 + 100, block_bytes, content);
            lab.fill();
            for i in 0..each {
                let context = format!("{kind:?} number {i}, {block_bytes} {content:?}");
                let found = inject(&mut lab, kind);
                assert!(!found.is_empty(), "{context} was not found");
                for damage in &found {
                    assert_eq!(damage.kind, kind, "{context}: {}", damage.describe());
                }
                // Whole again, with some load, and nothing else was found.
                for target in 0..2 {
                    for first in (0..BLOCKS).step_by(4) {
                        lab.write(target, first, 4);
                    }
                }
                assert_eq!(random_load(&mut lab, 30), [], "after {context}");
                let random_blocks = lab.pick(BLOCKS);
                assert_eq!(lab.read(0, random_blocks, 1), [], "after {context}");
                for target in 0..2 {
                    for first in 0..BLOCKS {
                        lab.write(target, first, 1);
                    }
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_located_wherever_it_is() {
    for (block_bytes, content) in shapes() {
        let mut lab = Lab::new(5, block_bytes, content);
        lab.fill();
        for bit in (0..block_bytes as usize * 8).step_by(1 + block_bytes as usize / 4096) {
            let block = bit % BLOCKS;
            let at = block * lab.block_bytes() + bit / 8;
            lab.write(0, block, 1);
            lab.disks[0][at] ^= 1 << (bit % 8);
            let found = lab.read(0, block, 1);
            let [damage] = found[..] else {
                panic!("bit {bit}: {found:?}")
            };
            let flips = damage.flips.unwrap();
            let position =
                damage.first_sector as usize * SECTOR_BYTES * 8 + flips.first.unwrap() as usize;
            assert_eq!(
                (damage.kind, flips.count, position),
                (DamageKind::BitFlip, Some(1), bit)
            );
        }
    }
}

#[test]
fn several_flipped_bits_are_counted_where_the_payload_is_generated() {
    let mut lab = Lab::new(6, 512, PayloadSource::Generated);
    lab.fill();
    for byte in [70, 300] {
        lab.disks[0][byte] ^= 0b11;
    }
    let flips = lab.read(0, 0, 1)[0].flips.unwrap();
    assert_eq!((flips.count, flips.first), (Some(4), Some(560)));
}

#[test]
fn a_write_torn_inside_a_sector_is_torn_and_not_foreign() {
    let mut lab = Lab::new(7, 512, PayloadSource::Generated);
    lab.fill();
    for cut in (64..512).step_by(8) {
        let flight = lab.issue(0, 3, 1);
        lab.land(&flight, cut);
        lab.end(&flight, WriteOutcome::Acknowledged);
        let found = lab.read(0, 3, 1);
        assert!(
            matches!(
                found[..],
                [Damage {
                    kind: DamageKind::TornWrite,
                    ..
                }]
            ),
            "cut at {cut}: {found:?}"
        );
        lab.write(0, 3, 1);
    }
}

#[test]
fn damage_is_told_once_until_the_block_is_written_again() {
    let mut lab = Lab::new(8, 4096, PayloadSource::Payload);
    lab.fill();
    lab.disks[0][..4096].fill(0);
    assert_eq!(lab.read(0, 0, 1).len(), 1);
    assert_eq!(lab.read(0, 0, 1), []);
    lab.write(0, 0, 1);
    lab.disks[0][..4096].fill(0);
    assert_eq!(lab.read(0, 0, 1).len(), 1);
}

#[test]
fn what_another_run_wrote_is_old_content() {
    let mut lab = Lab::new(9, 4096, PayloadSource::Generated);
    lab.fill();
    let other = Stamper {
        run: lab.stampers[0].run + 1,
        ..lab.stampers[0]
    };
    let write = StampWrite {
        sequence: 1,
        bytes: 4096,
        place_bytes: 0,
    };
    other.stamp(
        &mut lab.disks[0][4096..8192],
        4096,
        lab.tables[0].entry(1).generation(),
        write,
    );
    let [damage] = lab.read(0, 1, 1)[..] else {
        panic!()
    };
    assert_eq!(damage.kind, DamageKind::LostWrite);
    assert!(damage.found.unwrap().other_run);
    // Before the first write it may be there.
    let mut fresh = Lab::new(9, 4096, PayloadSource::Generated);
    fresh.disks[0][4096..8192].copy_from_slice(&lab.disks[0][4096..8192]);
    assert_eq!(fresh.read(0, 1, 1), []);
    assert_eq!(fresh.unverified, 1);
}
