//! Reading a journal after the run, or after a crash in the middle of it.
//!
//! Knows how records become the table a verifying read is judged by. Knows no device.
//! The format is in [`super::journal`].

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::expect::{before, distance, BlockState, BlockTable};
use super::journal::{
    frame_crc, BlockGeneration, Durability, Record, Settings, FILE_HEADER_BYTES, FILE_MAGIC,
    FRAME_HEADER_BYTES, FRAME_MAGIC, FRAME_RECORDS, RECORD_BYTES, VERSION,
};

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("not a verification journal: {0}")]
    Foreign(String),
}

/// What a journal tells.
#[derive(Debug)]
pub struct Recovered {
    /// Run and block size.
    pub settings: Settings,
    /// The run ended in order: the journal is complete.
    pub clean: bool,
    /// Records read.
    pub records: u64,
    /// Bytes after the last whole frame.
    pub torn_tail_bytes: u64,
    blocks: HashMap<(u16, u64), Block>,
    sequences: HashMap<u16, u64>,
}

/// What is known of one block.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Newest generation issued.
    issued: u16,
    /// It holds this one or a later one; 0: it may hold anything.
    durable: u16,
    /// Writes issued and not ended.
    open: u32,
    /// First generation of those in flight together: any of them may land last, so no
    /// more than this can be demanded when all have ended.
    first: u16,
    /// One of them was acknowledged.
    success: bool,
    /// One of them was a trim.
    discarded: bool,
}

impl Block {
    fn begin(&mut self, generation: u16) {
        if self.open == 0 {
            (self.first, self.success, self.discarded) = (generation, false, false);
        } else if later(self.first, generation) == self.first {
            self.first = generation;
        }
        self.open += 1;
        self.issued = later(self.issued, generation);
    }

    /// Notes an end. When it was the last in flight and something is certain now, the
    /// generation that is there at least.
    fn end(&mut self) -> Option<u16> {
        // Without an intent: it was issued before the journal was compacted.
        self.open = self.open.checked_sub(1)?;
        if self.open == 0 && self.discarded {
            self.durable = 0;
        }
        (self.open == 0 && self.success && !self.discarded).then_some(self.first)
    }
}

impl Recovered {
    /// Reads a journal up to its end or its torn tail.
    ///
    /// # Errors
    /// When the file cannot be read, or does not begin as a journal.
    pub fn read(path: &Path) -> Result<Self, Unusable> {
        Self::read_from(&mut BufReader::new(File::open(path)?))
    }

    /// Reads what a journal's file holds.
    ///
    /// # Errors
    /// As [`Recovered::read`].
    pub fn read_from(file: &mut impl Read) -> Result<Self, Unusable> {
        let settings = read_settings(file)?;
        let mut replay = Replay::new(settings.durability);
        let mut frame = Vec::new();
        let mut number = 0;
        let mut torn_bytes = 0;
        while read_frame(file, number, &mut frame, &mut torn_bytes)? {
            for bytes in frame[FRAME_HEADER_BYTES..].chunks_exact(RECORD_BYTES) {
                match bytes.first_chunk().and_then(Record::decode) {
                    Some(record) => replay.take(record),
                    None => {
                        return Err(Unusable::Foreign(format!(
                        "frame {number} has a record of a kind or a generation that there is not"
                    )))
                    }
                }
            }
            number += 1;
        }
        torn_bytes += io::copy(file, &mut io::sink())?;
        Ok(Self {
            settings,
            clean: !replay.sequences.is_empty() && replay.complete,
            records: replay.records,
            torn_tail_bytes: torn_bytes,
            blocks: replay.blocks,
            sequences: replay.sequences,
        })
    }

    /// The table of a target for a range of it.
    #[must_use]
    pub fn table(&self, target: u16, start_bytes: u64, length_bytes: u64) -> BlockTable {
        let block_bytes = self.settings.block_bytes;
        let mut table = BlockTable::new(start_bytes, length_bytes, block_bytes);
        let end = start_bytes + length_bytes;
        for (&(of, offset), block) in &self.blocks {
            if of == target && (start_bytes..end).contains(&offset) {
                let entry = match block.durable {
                    0 => BlockState::quiet(block.issued, u16::MAX),
                    durable => BlockState::quiet(block.issued, distance(durable, block.issued)),
                };
                table.set(table.index(offset), entry);
            }
        }
        if !self.clean {
            table.allow_newer();
        }
        table.set_sequence(self.sequences.get(&target).copied().unwrap_or(0));
        table
    }

    /// What it tells, in a sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        let end = if self.clean {
            "it ends in order"
        } else {
            "it ends in the middle of the run"
        };
        format!(
            "the journal has {} records: {} blocks must hold what was acknowledged, {} had writes in \
             flight, and {end}",
            self.records,
            self.known(),
            self.in_flight(),
        )
    }

    /// Blocks of which a write was in flight when the journal ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.blocks.values().filter(|block| block.open > 0).count()
    }

    /// Blocks that must hold a certain generation or a later one.
    #[must_use]
    pub fn known(&self) -> usize {
        self.blocks
            .values()
            .filter(|block| block.durable > 0)
            .count()
    }
}

fn read_settings(file: &mut impl Read) -> Result<Settings, Unusable> {
    let mut bytes = Vec::with_capacity(FILE_HEADER_BYTES);
    if !read_more(file, FILE_HEADER_BYTES, &mut bytes)? {
        return Err(Unusable::Foreign(
            "shorter than its header of 64 bytes".to_owned(),
        ));
    }
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if bytes[..8] != FILE_MAGIC {
        return Err(Unusable::Foreign(
            "it does not begin with LOADSTNJ".to_owned(),
        ));
    }
    if word(8) != VERSION {
        return Err(Unusable::Foreign(format!(
            "version {}, expected {VERSION}",
            word(8)
        )));
    }
    if word(60) != crc32c::crc32c(&bytes[..60]) {
        return Err(Unusable::Foreign(
            "the checksum of its header is wrong".to_owned(),
        ));
    }
    let durability = match word(24) {
        0 => Durability::Acknowledged,
        1 => Durability::Flushed,
        other => {
            return Err(Unusable::Foreign(format!(
                "durability {other}, expected 0 or 1"
            )))
        }
    };
    let run = u64::from(word(16)) | (u64::from(word(20)) << 32);
    Ok(Settings {
        run,
        block_bytes: word(12),
        durability,
    })
}

/// Reads frame `number` as a whole; false when there is no such frame: then so many bytes were read
/// that are of none.
fn read_frame(
    file: &mut impl Read,
    number: u64,
    frame: &mut Vec<u8>,
    torn_bytes: &mut u64,
) -> io::Result<bool> {
    frame.clear();
    let whole = read_more(file, FRAME_HEADER_BYTES, frame)?
        && frame[..4] == FRAME_MAGIC
        && frame[8..16] == number.to_le_bytes()
        && {
            let count = u32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]]) as usize;
            count <= FRAME_RECORDS && read_more(file, count * RECORD_BYTES, frame)?
        }
        && frame[16..20] == frame_crc(frame).to_le_bytes();
    if !whole {
        *torn_bytes = frame.len() as u64;
    }
    Ok(whole)
}

/// Reads so many bytes more; false when the file ends before.
fn read_more(file: &mut impl Read, bytes: usize, into: &mut Vec<u8>) -> io::Result<bool> {
    let read = file.take(bytes as u64).read_to_end(into)?;
    Ok(read == bytes)
}

/// The state of all blocks while records come.
#[derive(Debug)]
struct Replay {
    durability: Durability,
    records: u64,
    blocks: HashMap<(u16, u64), Block>,
    sequences: HashMap<u16, u64>,
    /// Acknowledged and not flushed, with the number of the record.
    unflushed: HashMap<u16, Vec<(u64, BlockGeneration)>>,
    /// Number of the record that began a flush.
    flushes: HashMap<(u16, u64), u64>,
    /// The last record was a clean end.
    complete: bool,
}

impl Replay {
    fn new(durability: Durability) -> Self {
        Self {
            durability,
            records: 0,
            blocks: HashMap::new(),
            sequences: HashMap::new(),
            unflushed: HashMap::new(),
            flushes: HashMap::new(),
            complete: false,
        }
    }

    fn block(&mut self, place: BlockGeneration) -> &mut Block {
        self.blocks.entry((place.target, place.offset)).or_default()
    }

    fn take(&mut self, record: Record) {
        self.records += 1;
        self.complete = matches!(record, Record::CleanEnd { .. });
        match record {
            Record::Intent(place) => self.block(place).begin(place.generation),
            Record::Acknowledged(place) => {
                self.block(place).success = true;
                self.ended(place);
            }
            Record::Failed(place) => self.ended(place),
            Record::Discarded(place) => {
                let block = self.block(place);
                (block.discarded, block.durable) = (true, 0);
                self.ended(place);
            }
            Record::Known { place, span } => {
                let durable = before(place.generation, u16::from(span));
                *self.block(place) = Block {
                    issued: place.generation,
                    durable,
                    ..Block::default()
                };
            }
            Record::FlushBegun { target, flush } => {
                self.flushes.insert((target, flush), self.records);
            }
            Record::FlushDone { target, flush } => {
                if let Some(begun) = self.flushes.remove(&(target, flush)) {
                    self.flushed(target, begun);
                }
            }
            Record::CleanEnd { target, sequence } => {
                self.sequences.insert(target, sequence);
            }
        }
    }

    /// A write has ended.
    fn ended(&mut self, place: BlockGeneration) {
        let Some(generation) = self.block(place).end() else {
            return;
        };
        match self.durability {
            Durability::Acknowledged => self.block(place).durable = generation,
            Durability::Flushed => {
                let waiting = (
                    self.records,
                    BlockGeneration {
                        generation,
                        ..place
                    },
                );
                self.unflushed
                    .entry(place.target)
                    .or_default()
                    .push(waiting);
            }
        }
    }

    fn flushed(&mut self, target: u16, begun: u64) {
        let Some(waiting) = self.unflushed.get_mut(&target) else {
            return;
        };
        let split = waiting.partition_point(|&(number, _)| number < begun);
        let durable: Vec<_> = waiting.drain(..split).collect();
        for (_, place) in durable {
            self.block(place).durable = place.generation;
        }
    }
}

fn later(a: u16, b: u16) -> u16 {
    if a == 0 || distance(a, b) < super::stamp::GENERATIONS / 2 {
        b
    } else {
        a
    }
}
