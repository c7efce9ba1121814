//! What a stream that verifies by headers does next: write, read back, trim.
//!
//! Knows the order of writes and reads: when a pass is over, what is due between writes, and
//! which reads are checked. Knows no backend and no statistics.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::check::{check, HeaderRead, Wrong};
use super::content::{fill, HeaderWrite};
use super::dump;
use super::history::{Fate, History, Piece, PieceKey};
use crate::verify::tables::VerifyTables;
use loadstone_base::ops::Op;
use loadstone_base::rng::mix;
use loadstone_generation::pattern::NextIo;
use loadstone_plan::max_block_bytes;
use loadstone_plan::{HeaderTrim, HeaderUntil, Headers, Stream, Target, TargetKind};

/// What a stream is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The I/Os it was asked for.
    Work,
    /// They are issued; it waits until they are done.
    Settling,
    /// Reading back.
    ReadBack,
    /// All reads are issued; it waits until they are done.
    Closing,
}

/// What an I/O in flight is.
#[derive(Debug, Clone, Copy)]
enum FlightKind {
    /// Nothing of it is looked at.
    Plain,
    /// A write, with its name where it is remembered.
    Write { key: Option<PieceKey>, number: u64 },
    /// A flush after so many writes.
    Flush(u64),
    /// A read that is checked.
    Read(HeaderRead),
}

/// The verification of one stream.
#[derive(Debug)]
pub struct Readback {
    plan: Headers,
    /// What it is at.
    pub part: Part,
    history: History,
    /// By slot.
    flights: Box<[FlightKind]>,
    /// Seed of the contents of its writes.
    seed: u64,
    /// Writes it was asked for so far in this pass.
    number: u64,
    passes_left: u64,
    /// Bytes of the I/Os asked for in a pass; `u64::MAX`: any.
    pub bytes_per_pass: u64,
    /// Bytes read and written.
    moved: u64,
    largest_bytes: u64,
    batch_left: u32,
    trims: Trims,
    last_was_read: bool,
    writes: bool,
    /// Blocks that were right, and that were not.
    pub checked: u64,
    /// See `checked`.
    pub damaged: u64,
    /// Writes and their bytes that would have been made.
    pub rehearsed: [u64; 2],
    clock: WallClock,
    verify_tables: Arc<VerifyTables>,
    /// By file.
    files: Vec<File>,
    /// The piece that the next I/O is for.
    pub coming: Option<Piece>,
    pass: u64,
    /// Bytes moved before this pass.
    moved_before: u64,
    /// The last writes, as many as may be in flight.
    recent: VecDeque<Recent>,
    /// Writes before the last flush.
    flushed: u64,
    /// Numbers of writes that failed.
    failed: Vec<u64>,
    /// Time spent in reading back.
    spent_ns: u64,
    /// Since when it reads back.
    since_ns: Option<u64>,
}

/// One of the last writes.
#[derive(Debug)]
struct Recent {
    number: u64,
    place: [u64; 2],
    done: bool,
}

/// A file of the stream.
#[derive(Debug)]
struct File {
    fd: RawFd,
    /// Its data may be in the page cache.
    cached: bool,
    path: String,
}

#[derive(Debug, Default)]
struct Trims {
    due: VecDeque<(PieceKey, u64)>,
    batch_left: u32,
    dice: u64,
}

/// The wall clock at some moment, and the worker's then.
#[derive(Debug, Clone, Copy)]
struct WallClock {
    unix_ns: u64,
    at_ns: u64,
}

impl Readback {
    /// The verification of a stream; none when it does not verify by headers.
    #[must_use]
    pub fn new(
        stream: &Stream,
        bytes_per_pass: u64,
        verify_tables: &Arc<VerifyTables>,
    ) -> Option<Self> {
        let plan = stream.headers.clone()?;
        Some(Self {
            part: Part::Work,
            history: History::new(plan.by_address),
            flights: vec![FlightKind::Plain; stream.iodepth as usize].into(),
            seed: stream.seed,
            number: 0,
            passes_left: if plan.passes == 0 {
                u64::MAX
            } else {
                plan.passes
            },
            bytes_per_pass,
            moved: 0,
            largest_bytes: u64::from(max_block_bytes(stream)),
            verify_tables: verify_tables.clone(),
            files: Vec::new(),
            coming: None,
            pass: 0,
            moved_before: 0,
            recent: VecDeque::new(),
            flushed: 0,
            failed: Vec::new(),
            spent_ns: 0,
            since_ns: None,
            batch_left: 0,
            trims: Trims {
                dice: stream.seed,
                ..Trims::default()
            },
            last_was_read: false,
            writes: stream.pattern.writes(),
            checked: 0,
            damaged: 0,
            rehearsed: [0; 2],
            clock: WallClock {
                unix_ns: loadstone_base::clock::unix_ns(),
                at_ns: 0,
            },
            plan,
        })
    }

    /// What it was asked for.
    #[must_use]
    pub fn plan(&self) -> &Headers {
        &self.plan
    }

    /// Bytes it needs for its history.
    #[must_use]
    pub fn memory_bytes(stream: &Stream) -> u64 {
        let Some(plan) = &stream.headers else {
            return 0;
        };
        if !plan.read_back && plan.trim.is_none() {
            return 0;
        }
        let smallest =
            loadstone_generation::pattern::SizeSource::new(&stream.pattern.written().sizes).min();
        let room: u64 = stream.files.iter().map(|file| file.length_bytes).sum();
        let pass = match stream.limits.bytes {
            0 => room,
            bytes if plan.by_address => bytes.min(room),
            bytes => bytes,
        };
        let writes = match stream.limits.ops {
            0 => pass / u64::from(smallest),
            ops => ops.min(pass / u64::from(smallest)),
        };
        History::memory_bytes(writes + u64::from(stream.iodepth))
    }

    /// Its files, opened.
    pub fn open<'a>(&mut self, files: impl Iterator<Item = (RawFd, &'a Target)>) {
        let file = |(fd, target): (RawFd, &Target)| File {
            fd,
            cached: matches!(target.kind, TargetKind::File | TargetKind::Block) && !target.direct,
            path: target.path.clone(),
        };
        self.files = files.map(file).collect();
    }

    /// Begins to read back.
    pub fn begin_reading(&mut self, now_ns: u64) {
        self.forget_pages();
        self.part = Part::ReadBack;
        self.since_ns = Some(now_ns);
    }

    /// Time spent in reading back, until now.
    #[must_use]
    pub fn reading_ns(&self, now_ns: u64) -> u64 {
        let open_ns = self
            .since_ns
            .map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        self.spent_ns + open_ns
    }

    /// Lets the reads that follow come from the device: what was written is on it, and no longer
    /// in the page cache. Where that cannot be done they come from the cache.
    fn forget_pages(&self) {
        for file in self.files.iter().filter(|file| file.cached) {
            // SAFETY: plain calls on an open file; the worker has no I/O in flight on it.
            unsafe {
                libc::fsync(file.fd);
                libc::posix_fadvise(file.fd, 0, 0, libc::POSIX_FADV_DONTNEED);
            }
        }
    }

    /// True when what is drawn is not done, only remembered.
    #[must_use]
    pub fn rehearses(&self) -> bool {
        self.plan.only && self.writes
    }

    /// An I/O that is only remembered.
    pub fn rehearse(&mut self, next: &NextIo) {
        self.moved += u64::from(next.len);
        if next.op != Op::Write {
            return;
        }
        self.rehearsed[0] += 1;
        self.rehearsed[1] += u64::from(next.len);
        let number = self.number;
        self.number += 1;
        if self.plan.read_back {
            self.remember(next, number, Fate::Written);
        }
    }

    fn remember(&mut self, next: &NextIo, number: u64, fate: Fate) -> PieceKey {
        let key = self.history.add(Piece {
            file: next.file,
            len: next.len,
            offset: next.offset,
            number,
            fate,
        });
        if let Some(trim) = self.plan.trim {
            self.trims.dice = mix(self.trims.dice ^ number);
            if self.trims.dice % 100 < u64::from(trim.percent) {
                self.trims.due.push_back((key, number));
            }
        }
        key
    }

    /// A read or trim that comes before the next write, when one is due.
    pub fn due_between(&mut self) -> Option<(NextIo, Piece)> {
        if self.part != Part::Work || self.history.is_empty() {
            return None;
        }
        let due = |every: u32, len: usize, last_was_read: bool| {
            every > 0 && len % every as usize == 0 && !last_was_read
        };
        if let Some(backlog) = self.plan.backlog {
            if self.batch_left == 0 && due(backlog.writes, self.history.len(), self.last_was_read) {
                self.batch_left = backlog.batch;
            }
            if self.batch_left > 0 {
                if let Some(piece) = self.take_wanted() {
                    self.batch_left -= 1;
                    return Some((place_of(&piece, Op::Read), piece));
                }
            }
        }
        let trim = self.plan.trim?;
        if self.trims.batch_left == 0 && due(trim.writes, self.history.len(), self.last_was_read) {
            self.trims.batch_left = trim.batch;
        }
        if self.trims.batch_left > 0 {
            let piece = self.take_trim(trim)?;
            self.trims.batch_left -= 1;
            return Some((place_of(&piece, Op::Trim), piece));
        }
        None
    }

    fn take_trim(&mut self, trim: HeaderTrim) -> Option<Piece> {
        while let Some(&(key, number)) = self.trims.due.front() {
            let piece = self.history.written(key, number);
            let Some(piece) = piece else {
                // Read back or written again since, or still in flight.
                self.trims.due.pop_front();
                continue;
            };
            self.trims.due.pop_front();
            let fate = if trim.zeros {
                Fate::Trimmed
            } else {
                Fate::Gone
            };
            self.history.settle(key, number, fate, None);
            return Some(piece);
        }
        None
    }

    /// The next write to be read back; none: there is none now.
    pub fn take_wanted(&mut self) -> Option<Piece> {
        loop {
            let piece = self.history.take()?;
            let known = self
                .plan
                .until
                .as_ref()
                .is_none_or(|until| covers(until, piece.number, piece.file, piece.offset));
            let known =
                known && (!self.plan.flushed_only || self.plan.only || piece.number < self.flushed);
            if known {
                return Some(piece);
            }
        }
    }

    /// Before an I/O is handed over: the bytes of a write are made, a read is noted.
    pub fn issue(&mut self, slot: u32, next: &NextIo, now_ns: u64, buffer: &mut [u8]) {
        self.last_was_read = next.op == Op::Read;
        let of = self.coming.take();
        if self.clock.at_ns == 0 {
            self.clock = WallClock {
                unix_ns: loadstone_base::clock::unix_ns(),
                at_ns: now_ns,
            };
        }
        self.flights[slot as usize] = match (next.op, of) {
            (Op::Write, _) => {
                let number = self.number;
                self.number += 1;
                fill(&self.plan, &self.write(next, number, now_ns), buffer);
                self.note_issued(number, next.file, next.offset);
                let kept = self.plan.read_back || self.plan.trim.is_some();
                FlightKind::Write {
                    key: kept.then(|| self.remember(next, number, Fate::InFlight)),
                    number,
                }
            }
            (Op::Sync(_), _) => FlightKind::Flush(self.number),
            (Op::Read, Some(piece)) => FlightKind::Read(self.reading(next, Some(&piece))),
            (Op::Read, None) if !self.writes => {
                let number = self.number;
                self.number += 1;
                let until = self.plan.until.as_ref();
                if until.is_some_and(|until| !covers(until, number, next.file, next.offset)) {
                    FlightKind::Plain
                } else {
                    FlightKind::Read(self.reading(next, None))
                }
            }
            _ => FlightKind::Plain,
        };
    }

    fn write(&self, next: &NextIo, number: u64, now_ns: u64) -> HeaderWrite {
        let unix_ns = self.clock.unix_ns + now_ns.saturating_sub(self.clock.at_ns);
        HeaderWrite {
            seed: self.seed_of(number),
            offset: next.offset,
            number,
            time: (
                (unix_ns / 1_000_000_000) as u32,
                (unix_ns % 1_000_000_000) as u32,
            ),
        }
    }

    /// Never 0: all of the content would be zeros.
    fn seed_of(&self, number: u64) -> u64 {
        mix(self.seed ^ mix(number + 1) ^ mix(self.pass << 40)) | 1
    }

    fn reading(&self, next: &NextIo, piece: Option<&Piece>) -> HeaderRead {
        // What another run wrote may have other seeds and numbers.
        let own = piece.filter(|_| !self.plan.only);
        HeaderRead {
            file: next.file,
            offset: next.offset,
            len: next.len,
            seed: own
                .filter(|_| self.plan.pattern.is_none())
                .map(|piece| self.seed_of(piece.number)),
            number: own.map(|piece| piece.number),
            zeros: piece.is_some_and(|piece| piece.fate == Fate::Trimmed),
        }
    }

    /// After an I/O came back. What it shows to be wrong.
    pub fn complete(
        &mut self,
        slot: u32,
        moved: u32,
        failed: bool,
        buffer: &mut [u8],
    ) -> Vec<Wrong> {
        let flight = std::mem::replace(&mut self.flights[slot as usize], FlightKind::Plain);
        self.moved += u64::from(moved);
        match flight {
            FlightKind::Write { key, number } => {
                let fate = if failed { Fate::Gone } else { Fate::Written };
                if let Some(key) = key {
                    self.history.settle(key, number, fate, Some(moved));
                }
                if failed {
                    self.failed.push(number);
                } else {
                    self.note_done(number);
                }
            }
            FlightKind::Flush(number) if !failed => self.flushed = self.flushed.max(number),
            FlightKind::Read(reading) if !failed && moved == reading.len => {
                let path = self
                    .files
                    .get(reading.file as usize)
                    .map_or("", |file| &file.path);
                let wrongs = check(&self.plan, &reading, path, buffer);
                self.checked += u64::from(wrongs.is_empty());
                self.damaged += wrongs.len() as u64;
                return wrongs;
            }
            FlightKind::Read(_) | FlightKind::Flush(_) | FlightKind::Plain => {}
        }
        Vec::new()
    }

    /// True when a stream that only reads comes to what another run did not write.
    #[must_use]
    pub fn is_at_the_end(&self) -> bool {
        let until = self.plan.until.as_ref().filter(|_| !self.writes);
        until.is_some_and(|until| self.number >= until.number)
    }

    /// The numbers of writes that are in flight.
    #[must_use]
    pub fn open_writes(&self) -> Vec<u64> {
        let number = |flight: &FlightKind| match flight {
            FlightKind::Write { number, .. } => Some(*number),
            _ => None,
        };
        let open = self.flights.iter().filter_map(number);
        open.chain(self.failed.iter().copied()).collect()
    }

    /// Keeps the place of a write that is issued, until as many as may be in flight came after.
    fn note_issued(&mut self, number: u64, file: u32, offset: u64) {
        if !self.plan.tell_state {
            return;
        }
        if self.recent.len() == self.flights.len() {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent {
            number,
            place: [u64::from(file), offset],
            done: false,
        });
    }

    fn note_done(&mut self, number: u64) {
        let first = self.recent.front().map_or(0, |recent| recent.number);
        let at = number
            .checked_sub(first)
            .and_then(|at| usize::try_from(at).ok());
        if let Some(recent) = at.and_then(|at| self.recent.get_mut(at)) {
            recent.done = true;
        }
    }

    /// Places of the last writes that are done, the last first: of as many as may be in flight.
    #[must_use]
    pub fn last_done(&self) -> Vec<[u64; 2]> {
        let done = self.recent.iter().rev().filter(|recent| recent.done);
        done.map(|recent| recent.place).collect()
    }

    /// Takes in that something is wrong.
    pub fn count_wrong(&self, kind: &'static str) {
        self.verify_tables.add_wrong(kind);
    }

    /// What was read and what should have been, in files of their own where that was asked for;
    /// what fio says of it.
    #[must_use]
    pub fn dump(&self, wrong: &Wrong, io: (u32, u64), buffer: &[u8]) -> String {
        let (Some(dir), Some(file)) = (&self.plan.dump_dir, self.files.get(io.0 as usize)) else {
            return String::new();
        };
        let at = (wrong.offset - io.1) as usize;
        let end = (at + wrong.bytes as usize).min(buffer.len());
        let received = &buffer[at..end];
        if wrong.kind == "header" {
            return dump::keep(dir, &file.path, wrong.offset, &[("hdr_fail", received)]);
        }
        let expected = self.expected(wrong, io.1, buffer.len());
        let mut parts = vec![("received", received)];
        if let Some(expected) = &expected {
            parts.push(("expected", expected));
        }
        dump::keep(dir, &file.path, wrong.offset, &parts)
    }

    /// Writes it was asked for in this pass.
    #[must_use]
    pub fn written(&self) -> u64 {
        if self.plan.flushed_only {
            self.flushed
        } else {
            self.number
        }
    }

    /// True when there is something to be read back after the work of a pass.
    #[must_use]
    pub fn reads_back(&self) -> bool {
        self.plan.read_back && self.writes
    }

    /// A pass is over. False: it was the last one.
    pub fn next_pass(&mut self, time_based: bool, now_ns: u64) -> bool {
        self.spent_ns = self.reading_ns(now_ns);
        self.since_ns = None;
        if self.passes_left > 0 && self.passes_left != u64::MAX {
            self.passes_left -= 1;
        }
        let enough = self.plan.enough_bytes;
        let idle = self.moved == self.moved_before && self.rehearsed[0] == 0;
        let more = (time_based && !idle)
            || self.passes_left > 0
            || (enough > 0 && self.moved < enough && enough - self.moved >= self.largest_bytes);
        if more {
            self.part = Part::Work;
            self.history.clear();
            self.trims.due.clear();
            self.batch_left = 0;
            self.number = 0;
            self.flushed = 0;
            self.recent.clear();
            self.failed.clear();
            self.pass += 1;
            self.moved_before = self.moved;
        }
        more
    }

    /// Content that should have been where something is wrong.
    #[must_use]
    fn expected(&self, wrong: &Wrong, reading_offset: u64, len: usize) -> Option<Vec<u8>> {
        let seed = wrong.seed?;
        let mut whole = vec![0; len];
        let write = HeaderWrite {
            seed,
            offset: reading_offset,
            number: 0,
            time: (0, 0),
        };
        fill(&self.plan, &write, &mut whole);
        let at = (wrong.offset - reading_offset) as usize;
        whole.get(at..at + wrong.bytes as usize).map(<[u8]>::to_vec)
    }
}

/// True when another run had done this write when it ended.
fn covers(until: &HeaderUntil, number: u64, file: u32, offset: u64) -> bool {
    if number >= until.number || until.open.contains(&number) {
        return false;
    }
    let in_doubt = until.number - number <= u64::from(until.in_doubt);
    !in_doubt || until.done.contains(&[u64::from(file), offset])
}

/// The I/O to the place of a piece.
#[must_use]
pub fn place_of(piece: &Piece, op: Op) -> NextIo {
    NextIo {
        op,
        file: piece.file,
        offset: piece.offset,
        len: piece.len,
    }
}
