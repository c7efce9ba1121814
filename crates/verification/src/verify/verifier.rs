//! The verification of one stream: stamps its writes, judges its reads.
//!
//! Knows when in the life of an I/O the tables are told and asked. Knows no backend and
//! no statistics. Allocates only when something is damaged.

use std::sync::Arc;

use super::check::{check, join_torn, Verdict};
use super::damage::{Damage, DamageKind};
use super::expect::{BlockState, Expectation, WriteOutcome};
use super::journal::{BlockGeneration, Record};
use super::pattern;
use super::stamp::{PayloadSource, StampWrite, Stamper, GENERATIONS};
use super::tables::VerifyTables;
use loadstone_base::ops::{Op, OpKind};
use loadstone_plan::max_block_bytes;
use loadstone_plan::{Fill, Stream, Verify, VerifyContent};

/// What a stream verifies by, and what it counted.
#[derive(Debug)]
pub struct Verifier {
    plan: Verify,
    verify_tables: Arc<VerifyTables>,
    /// State of every block of every read in flight when it was issued.
    before: Vec<BlockState>,
    blocks_per_slot: usize,
    /// Number of the flush in flight of every slot.
    flushes: Vec<u64>,
    /// Who wrote the last block that said so, for those that do not say it any more.
    author: Option<Stamper>,
    /// What blocks hold that are not stamped; empty: they are.
    pattern: Box<[u8]>,
    /// Blocks that were right.
    pub checked: u64,
    /// Blocks of which nothing could be said.
    pub unverified: u64,
    /// Blocks found damaged, as often as they were read.
    pub damaged: u64,
}

/// One I/O of the stream, by its slot.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// Number of the slot among the stream's.
    pub slot: u32,
    /// Operation.
    pub op: OpKind,
    /// Index into the Plan's targets.
    pub target: u32,
    /// Place in the target.
    pub offset: u64,
    /// Bytes asked for.
    pub len: u32,
}

impl Verifier {
    /// The verifier of a stream; none when it does not verify.
    #[must_use]
    pub fn new(stream: &Stream, verify_tables: &Arc<VerifyTables>) -> Option<Self> {
        let plan = stream.verify?;
        let blocks_per_slot = blocks_per_slot(stream);
        Some(Self {
            plan,
            verify_tables: verify_tables.clone(),
            before: vec![BlockState::default(); blocks_per_slot * stream.iodepth as usize],
            blocks_per_slot,
            flushes: vec![0; stream.iodepth as usize],
            author: None,
            pattern: match (&stream.payload.fill, plan.content) {
                (Fill::Pattern { bytes }, VerifyContent::Pattern) => bytes[..].into(),
                _ => Box::default(),
            },
            checked: 0,
            unverified: 0,
            damaged: 0,
        })
    }

    /// Bytes a stream's verifier needs.
    #[must_use]
    pub fn memory_bytes(stream: &Stream) -> u64 {
        let slots = blocks_per_slot(stream) as u64 * u64::from(stream.iodepth);
        slots * size_of::<BlockState>() as u64 + u64::from(stream.iodepth) * size_of::<u64>() as u64
    }

    /// The first damage ends the stream.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.plan.fatal
    }

    /// The whole payload is generated: no other needs to be filled in.
    #[must_use]
    pub fn generates(plan: Option<Verify>) -> bool {
        plan.is_some_and(|plan| plan.content == VerifyContent::Generated)
    }

    fn stamper(&self, target: u32) -> Stamper {
        Stamper {
            run: self.verify_tables.run(self.plan.run),
            target: self.verify_tables.first(target),
            block_bytes: self.plan.block_bytes,
            content: match self.plan.content {
                // Of a pattern nothing is stamped.
                VerifyContent::Payload | VerifyContent::Pattern => PayloadSource::Payload,
                VerifyContent::Generated => PayloadSource::Generated,
            },
        }
    }

    /// True when a read need not be made: nothing is known of any of its blocks.
    #[must_use]
    pub fn skips(&self, op: Op, target: u32, offset: u64, len: u32) -> bool {
        op == Op::Read && self.plan.only_written && !self.knows(target, offset, len)
    }

    /// True unless it is certain that nothing is known of any of these blocks.
    #[must_use]
    pub fn knows(&self, target: u32, offset: u64, len: u32) -> bool {
        self.verify_tables.table(target).is_none_or(|table| {
            let first = table.index(offset);
            (first..first + self.blocks(len)).any(|index| table.entry(index).generation() != 0)
        })
    }

    /// True when something certain must be in one of these blocks.
    #[must_use]
    pub fn demands(&self, target: u32, offset: u64, len: u32) -> bool {
        self.verify_tables.table(target).is_some_and(|table| {
            let first = table.index(offset);
            (first..first + self.blocks(len)).any(|index| table.entry(index).is_known())
        })
    }

    /// Of what was in these bytes nothing is known any more: the file is gone.
    pub fn forget(&self, target: u32, offset: u64, bytes: u64) {
        let Some(table) = self.verify_tables.table(target) else {
            return;
        };
        let first = table.index(offset);
        let blocks = (bytes / u64::from(self.plan.block_bytes)) as usize;
        for index in first..first + blocks {
            if table.entry(index).generation() == 0 {
                continue;
            }
            let generation = table.begin(index);
            let place = table.offset(index);
            self.intend(target, place, generation);
            table.end(index, WriteOutcome::Discarded);
            self.verify_tables.note(target, |target| {
                ended(target, place, WriteOutcome::Discarded)
            });
        }
    }

    fn blocks(&self, len: u32) -> usize {
        (len / self.plan.block_bytes) as usize
    }

    /// Before an I/O is handed over. The bytes of a write are stamped.
    pub fn issue(&mut self, io: &Transfer, buffer: &mut [u8]) {
        let blocks = self.blocks(io.len);
        match io.op {
            OpKind::Write => self.stamp(io, &mut buffer[..io.len as usize]),
            OpKind::Read => {
                if let Some(table) = self.verify_tables.table(io.target) {
                    let first = table.index(io.offset);
                    let at = io.slot as usize * self.blocks_per_slot;
                    for (i, before) in self.before[at..at + blocks].iter_mut().enumerate() {
                        *before = table.entry(first + i);
                    }
                }
            }
            OpKind::Trim => {
                if let Some(table) = self.verify_tables.table(io.target) {
                    let first = table.index(io.offset);
                    for index in first..first + blocks {
                        let generation = table.begin(index);
                        self.intend(io.target, table.offset(index), generation);
                    }
                }
            }
            OpKind::Sync => {
                self.flushes[io.slot as usize] = self.verify_tables.begin_flush(io.target);
            }
        }
    }

    /// Notes in the journal, when there is one, that a write of a block is issued.
    fn intend(&self, target: u32, offset: u64, generation: u16) {
        self.verify_tables.note(target, |target| {
            Record::Intent(BlockGeneration {
                target,
                generation,
                offset,
            })
        });
    }

    fn stamp(&self, io: &Transfer, buffer: &mut [u8]) {
        let stamper = self.stamper(io.target);
        let table = self.verify_tables.table(io.target);
        let sequence = self.verify_tables.next_sequence(io.target);
        let block_bytes = self.plan.block_bytes;
        let mut place_bytes = 0;
        for block in buffer.chunks_exact_mut(block_bytes as usize) {
            let offset = io.offset + u64::from(place_bytes);
            // Without a table any number will do that tells one write from the next.
            let any = (sequence % u64::from(GENERATIONS)) as u16 + 1;
            let generation = table.map_or(any, |table| table.begin(table.index(offset)));
            if table.is_some() {
                self.intend(io.target, offset, generation);
            }
            let write = StampWrite {
                sequence,
                bytes: io.len,
                place_bytes,
            };
            if self.pattern.is_empty() {
                stamper.stamp(block, offset, generation, write);
            }
            place_bytes += block_bytes;
        }
    }

    /// After an I/O came back with `moved` bytes. The damage it shows.
    pub fn complete(
        &mut self,
        io: &Transfer,
        moved: u32,
        failed: bool,
        buffer: &[u8],
    ) -> Vec<Damage> {
        let whole = if failed { 0 } else { self.blocks(moved) };
        match io.op {
            OpKind::Write => self.end(io, whole, WriteOutcome::Acknowledged),
            OpKind::Trim => self.end(io, whole, WriteOutcome::Discarded),
            OpKind::Sync if !failed => {
                let flush = self.flushes[io.slot as usize];
                self.verify_tables.end_flush(io.target, flush);
            }
            OpKind::Sync => {}
            OpKind::Read if whole > 0 => {
                let damages = self.judge(io, whole, buffer);
                self.damaged += damages.len() as u64;
                let added = damages
                    .into_iter()
                    .map(|damage| self.verify_tables.add(damage));
                return added.collect();
            }
            OpKind::Read => {}
        }
        Vec::new()
    }

    /// An I/O that never came back: what it may have done stays possible.
    pub fn abandon(&mut self, io: &Transfer) {
        if io.op == OpKind::Write || io.op == OpKind::Trim {
            self.end(io, 0, WriteOutcome::Uncertain);
        }
    }

    fn end(&mut self, io: &Transfer, whole: usize, outcome: WriteOutcome) {
        let Some(table) = self.verify_tables.table(io.target) else {
            return;
        };
        let first = table.index(io.offset);
        for i in 0..self.blocks(io.len) {
            let rest = if io.op == OpKind::Trim {
                WriteOutcome::Discarded
            } else {
                WriteOutcome::Uncertain
            };
            let outcome = if i < whole { outcome } else { rest };
            table.end(first + i, outcome);
            let offset = table.offset(first + i);
            self.verify_tables
                .note(io.target, |target| ended(target, offset, outcome));
        }
    }

    /// Repeated damage with what was found since; see [`VerifyTables::understood`].
    #[must_use]
    pub fn understood(&self, damage: Damage) -> Damage {
        self.verify_tables.understood(damage)
    }

    fn judge(&mut self, io: &Transfer, blocks: usize, buffer: &[u8]) -> Vec<Damage> {
        let stamper = self.stamper(io.target);
        let data = &buffer[..blocks * self.plan.block_bytes as usize];
        let mut damages = self.judge_blocks(io, data, stamper);
        if damages
            .iter()
            .any(|damage| damage.kind == DamageKind::LostWrite)
        {
            join_torn(&stamper, data, io.offset, &mut damages);
        }
        damages
    }

    /// Each block by itself.
    #[inline]
    fn judge_blocks(&mut self, io: &Transfer, data: &[u8], stamper: Stamper) -> Vec<Damage> {
        let block_bytes = self.plan.block_bytes as usize;
        let table = self.verify_tables.table(io.target);
        let slot = io.slot as usize * self.blocks_per_slot;
        let mut damages = Vec::new();
        for (i, block) in data.chunks_exact(block_bytes).enumerate() {
            let offset = io.offset + (i * block_bytes) as u64;
            let known = table.map(|table| {
                let index = table.index(offset);
                let before = self.before[slot + i];
                (table, index, table.expectation(index, before))
            });
            let expected = known.map_or(Expectation::NONE, |(_, _, (expected, _))| expected);
            if !self.pattern.is_empty() && known.is_some() && expected.newest == 0 {
                self.unverified += 1; // what was there before the run
                continue;
            }
            let verdict = if !self.pattern.is_empty() {
                pattern::check(&self.pattern, i * block_bytes, block, &expected)
            } else if known.is_some() {
                check(&stamper, block, offset, &expected)
            } else {
                // Without a table a block of any run is good if it is whole and in its place.
                let named = stamper.named_by(block).or(self.author).unwrap_or(stamper);
                check(self.author.insert(named), block, offset, &expected)
            };
            match verdict {
                Verdict::Newest => {
                    self.checked += 1;
                    if let Some((table, index, (_, after))) = known {
                        table.mark_seen(index, after);
                    }
                }
                Verdict::Allowed => self.checked += 1,
                Verdict::Unverified => self.unverified += 1,
                Verdict::Damaged(damage) => {
                    let first = known
                        .is_none_or(|(table, index, (_, after))| table.mark_reported(index, after));
                    damages.push(Damage {
                        target: io.target,
                        offset,
                        repeated: !first,
                        ..damage
                    });
                }
            }
        }
        damages
    }
}

/// The record of a write's end. Which of several in flight it was makes no difference, so it
/// has no generation.
fn ended(target: u16, offset: u64, outcome: WriteOutcome) -> Record {
    let place = BlockGeneration {
        target,
        generation: 0,
        offset,
    };
    match outcome {
        WriteOutcome::Acknowledged => Record::Acknowledged(place),
        WriteOutcome::Uncertain => Record::Failed(place),
        WriteOutcome::Discarded => Record::Discarded(place),
    }
}

fn blocks_per_slot(stream: &Stream) -> usize {
    let beside = stream.verify.is_some_and(|its| its.reads_beside_writes());
    let reads = stream.pattern.read_percent > 0 || beside;
    let block_bytes = stream.verify.map_or(u32::MAX, |verify| verify.block_bytes);
    if reads {
        (max_block_bytes(stream) / block_bytes) as usize
    } else {
        0
    }
}
