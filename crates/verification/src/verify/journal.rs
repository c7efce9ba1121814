//! The journal: which writes were issued and which were acknowledged, kept in a file.
//!
//! Knows the file's format, how it is appended to and how it is kept short. How it is
//! read after a crash is in [`super::recover`].
//!
//! # Format, version 1 (numbers are little-endian)
//!
//! The file begins with 64 bytes:
//!
//! | bytes | what |
//! |---|---|
//! | 0–7 | the ASCII letters `LOADSTNJ` |
//! | 8–11 | version: 1 |
//! | 12–15 | bytes of a verify block |
//! | 16–23 | identity of the run |
//! | 24–27 | durability: 0 an acknowledged write is durable, 1 only after a flush |
//! | 28–59 | zero |
//! | 60–63 | CRC-32C of bytes 0–59 |
//!
//! *Frames* follow, each written with one system call:
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | the ASCII letters `FRAM` |
//! | 4–7 | number of records |
//! | 8–15 | number of the frame, from 0 |
//! | 16–19 | CRC-32C of bytes 0–15 and of all records |
//! | 20–23 | zero |
//! | 24– | records of 16 bytes |
//!
//! A record:
//!
//! | bytes | what |
//! |---|---|
//! | 0 | kind: 1 intent, 2 acknowledged, 3 flush begun, 4 flush done, 5 known, 6 clean end, 7 failed, 8 discarded |
//! | 1 | kind 5: span (how many earlier generations may be there as well) |
//! | 2–3 | target |
//! | 4–5 | generation; 0 for kinds 2, 7 and 8: which of several in flight has ended makes no difference |
//! | 6–7 | zero |
//! | 8–15 | offset of the verify block; kinds 3 and 4: number of the flush; kind 6: sequence of the target's last write |
//!
//! The first frame that is short, misnumbered or has a wrong CRC ends the journal: a tail
//! torn by a crash is not an error.
//!
//! # What may be lost
//!
//! Records reach the disk some time after the events (see [`JournalWriter::commit`]). Losing
//! the last of them never makes sound data look damaged: stamps name their own
//! generation, so after a crash a newer generation than any in the journal is allowed; and
//! an acknowledgement that was lost only weakens what is demanded. A *clean end* takes
//! that allowance back.
//!
//! # Size
//!
//! When the file is longer than its limit it is replaced by one that says what is known
//! now: one record for each known block. The limit must leave room for that.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::expect::{before, BlockTable};
use super::stamp::GENERATIONS;
use loadstone_base::new_file::new_file;

/// Bytes of the file's header.
pub const FILE_HEADER_BYTES: usize = 64;
/// Bytes of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 24;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 16;
/// Records in a frame, at most.
pub const FRAME_RECORDS: usize = 65_536;
/// Letters at the start of the file.
pub const FILE_MAGIC: [u8; 8] = *b"LOADSTNJ";
/// Letters at the start of a frame.
pub const FRAME_MAGIC: [u8; 4] = *b"FRAM";
/// Version of the format.
pub const VERSION: u32 = 1;

/// When an acknowledged write must survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Durability {
    /// At once: no volatile cache, or writes with `O_DSYNC`.
    Acknowledged = 0,
    /// When a flush issued after the acknowledgement is done.
    Flushed = 1,
}

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// A write of a block is about to be issued.
    Intent(BlockGeneration),
    /// It was acknowledged.
    Acknowledged(BlockGeneration),
    /// It failed: old or new may be there.
    Failed(BlockGeneration),
    /// The block was trimmed: anything may be there.
    Discarded(BlockGeneration),
    /// A flush of a target is about to be issued.
    FlushBegun {
        /// Target.
        target: u16,
        /// Number of the flush.
        flush: u64,
    },
    /// It is done.
    FlushDone {
        /// Target.
        target: u16,
        /// Number of the flush.
        flush: u64,
    },
    /// State of a quiet block.
    Known {
        /// Block and newest generation.
        place: BlockGeneration,
        /// Earlier generations that may be there as well.
        span: u8,
    },
    /// The run ended in order, with nothing in flight on this target.
    CleanEnd {
        /// Target.
        target: u16,
        /// Number of its last write.
        sequence: u64,
    },
}

/// A generation of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockGeneration {
    /// Target.
    pub target: u16,
    /// Generation.
    pub generation: u16,
    /// Offset of the verify block.
    pub offset: u64,
}

impl Record {
    /// The 16 bytes of the record.
    #[must_use]
    pub fn encode(self) -> [u8; RECORD_BYTES] {
        let block =
            |kind, place: BlockGeneration| (kind, 0, place.target, place.generation, place.offset);
        let (kind, span, target, generation, value) = match self {
            Self::Intent(place) => block(1, place),
            Self::Acknowledged(place) => block(2, place),
            Self::FlushBegun { target, flush } => (3, 0, target, 0, flush),
            Self::FlushDone { target, flush } => (4, 0, target, 0, flush),
            Self::Known { place, span } => (5, span, place.target, place.generation, place.offset),
            Self::CleanEnd { target, sequence } => (6, 0, target, 0, sequence),
            Self::Failed(place) => block(7, place),
            Self::Discarded(place) => block(8, place),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = kind;
        bytes[1] = span;
        bytes[2..4].copy_from_slice(&target.to_le_bytes());
        bytes[4..6].copy_from_slice(&generation.to_le_bytes());
        bytes[8..16].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    /// The record of 16 bytes; none when it is of no known kind, or of a generation there is not.
    #[must_use]
    pub fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let target = u16::from_le_bytes([bytes[2], bytes[3]]);
        let generation = u16::from_le_bytes([bytes[4], bytes[5]]);
        let value = u64::from_le_bytes(*bytes.last_chunk()?);
        if generation > GENERATIONS {
            return None;
        }
        let place = BlockGeneration {
            target,
            generation,
            offset: value,
        };
        Some(match bytes[0] {
            1 => Self::Intent(place),
            2 => Self::Acknowledged(place),
            3 => Self::FlushBegun {
                target,
                flush: value,
            },
            4 => Self::FlushDone {
                target,
                flush: value,
            },
            5 => Self::Known {
                place,
                span: bytes[1],
            },
            6 => Self::CleanEnd {
                target,
                sequence: value,
            },
            7 => Self::Failed(place),
            8 => Self::Discarded(place),
            _ => return None,
        })
    }
}

/// What the header of a journal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Identity of the run.
    pub run: u64,
    /// Bytes of a verify block.
    pub block_bytes: u32,
    /// When acknowledged writes are durable.
    pub durability: Durability,
}

impl Settings {
    /// The file's header.
    #[must_use]
    pub fn encode(self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..8].copy_from_slice(&FILE_MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.block_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.run.to_le_bytes());
        bytes[24..28].copy_from_slice(&(self.durability as u32).to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// A journal being written.
#[derive(Debug)]
pub struct JournalWriter {
    path: PathBuf,
    file: File,
    settings: Settings,
    /// The frame being filled: its header's place, then records.
    frame: Vec<u8>,
    next_frame: u64,
    file_bytes: u64,
    limit_bytes: u64,
}

impl JournalWriter {
    /// Starts a journal, for nobody else to read.
    ///
    /// # Errors
    /// Those of creating and writing the file, whatever it is that stands there already.
    pub fn create(path: &Path, settings: Settings, limit_bytes: u64) -> io::Result<Self> {
        let mut file = new_file(path)?;
        file.write_all(&settings.encode())?;
        file.sync_all()?;
        let mut frame = Vec::with_capacity(FRAME_HEADER_BYTES + FRAME_RECORDS * RECORD_BYTES);
        frame.resize(FRAME_HEADER_BYTES, 0);
        Ok(Self {
            path: path.to_owned(),
            file,
            settings,
            frame,
            next_frame: 0,
            file_bytes: FILE_HEADER_BYTES as u64,
            limit_bytes,
        })
    }

    /// Adds a record to the frame being filled. Allocates nothing; when the frame is
    /// full it is written.
    ///
    /// # Errors
    /// Those of writing a full frame.
    #[inline]
    pub fn record(&mut self, record: Record) -> io::Result<()> {
        self.frame.extend_from_slice(&record.encode());
        if self.frame.len() == FRAME_HEADER_BYTES + FRAME_RECORDS * RECORD_BYTES {
            return self.write_frame();
        }
        Ok(())
    }

    /// Writes what was recorded and, when `durable`, makes it survive a power cut of
    /// this host.
    ///
    /// # Errors
    /// Those of `write(2)` and `fdatasync(2)`.
    pub fn commit(&mut self, durable: bool) -> io::Result<()> {
        if self.frame.len() > FRAME_HEADER_BYTES {
            self.write_frame()?;
        }
        if durable {
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// A handle to make what was written survive a power cut of this host, without holding
    /// up those who record. It is of the present file: after [`JournalWriter::compact`] another.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// When acknowledged writes are durable.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.settings.durability
    }

    /// True when the file has outgrown its limit and [`JournalWriter::compact`] is due.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.file_bytes > self.limit_bytes
    }

    /// Bytes of the file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn write_frame(&mut self) -> io::Result<()> {
        let count = ((self.frame.len() - FRAME_HEADER_BYTES) / RECORD_BYTES) as u32;
        self.frame[..4].copy_from_slice(&FRAME_MAGIC);
        self.frame[4..8].copy_from_slice(&count.to_le_bytes());
        self.frame[8..16].copy_from_slice(&self.next_frame.to_le_bytes());
        self.frame[16..FRAME_HEADER_BYTES].fill(0);
        let crc = frame_crc(&self.frame);
        self.frame[16..20].copy_from_slice(&crc.to_le_bytes());
        self.file.write_all(&self.frame)?;
        self.file_bytes += self.frame.len() as u64;
        self.next_frame += 1;
        self.frame.truncate(FRAME_HEADER_BYTES);
        Ok(())
    }

    /// Replaces the file by one that says what the tables know now, atomically: a crash
    /// leaves the old or the new. What was recorded and not written yet is in the tables.
    /// A write whose begin or end is noted in a table but recorded only later does no
    /// harm: less is demanded of its block until it is quiet in a later compaction.
    ///
    /// With [`Durability::Flushed`] acknowledged writes that were not flushed yet would
    /// be taken for durable: call it right after a flush of all targets.
    ///
    /// # Errors
    /// Those of writing, `fsync(2)` and `rename(2)`.
    pub fn compact(&mut self, tables: &[(u16, &BlockTable)]) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        // A compaction that failed left one behind.
        let _ = std::fs::remove_file(&beside);
        let mut fresh = Self::create(&beside, self.settings, self.limit_bytes)?;
        for &(target, table) in tables {
            for index in 0..table.len() {
                let entry = table.entry(index);
                let offset = table.offset(index);
                let generation = entry.generation();
                let place = BlockGeneration {
                    target,
                    generation,
                    offset,
                };
                if entry.is_known() {
                    fresh.record(Record::Known {
                        place,
                        span: entry.span() as u8,
                    })?;
                }
                // Which generations are in flight is not known, only how many: the
                // oldest possible demands least.
                let generation = before(generation, entry.span() as u16);
                for _ in 0..entry.in_flight() {
                    fresh.record(Record::Intent(BlockGeneration {
                        generation,
                        ..place
                    }))?;
                }
            }
        }
        fresh.commit(true)?;
        std::fs::rename(&beside, &self.path)?;
        if let Some(directory) = self
            .path
            .parent()
            .filter(|path| !path.as_os_str().is_empty())
        {
            File::open(directory)?.sync_all()?;
        }
        fresh.path.clone_from(&self.path);
        *self = fresh;
        Ok(())
    }

    /// Ends the journal in order: nothing is in flight any more.
    ///
    /// # Errors
    /// As [`JournalWriter::commit`].
    pub fn finish(mut self, tables: &[(u16, &BlockTable)]) -> io::Result<()> {
        for &(target, table) in tables {
            let sequence = table.sequence();
            self.record(Record::CleanEnd { target, sequence })?;
        }
        self.commit(true)
    }
}

/// CRC of a frame: of its header up to the CRC, and of its records.
#[must_use]
pub fn frame_crc(frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame[..16]), &frame[FRAME_HEADER_BYTES..])
}
