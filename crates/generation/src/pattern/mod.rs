//! Which I/O comes next: operation, file, address and size.
//!
//! Knows a stream's pattern and nothing of time, buffers or completions. Makes one I/O
//! in a few nanoseconds, without allocation and without a way to fail; every choice is
//! reproducible from the stream's seed.
//!
//! Rules that the Plan leaves open:
//! * Random addresses are the places `offset + k·align` where the operation's smallest
//!   size fits. A larger I/O that would pass the end is moved down to the last place
//!   where it fits.
//! * Without repeats, each of these places comes once per pass. Operations with the same
//!   alignment and smallest size share one pass, as they share fio's random map. With
//!   sizes that vary an I/O is cut short at a block already touched, as in fio, so that
//!   no block is touched twice; this takes a bit of memory per block. (Where places are
//!   closer or further apart than the smallest size there are no such blocks, and every
//!   place comes once.)
//! * Every operation keeps its own sequential position in every file. A sequential I/O
//!   that does not fit before the end starts again at the beginning; of a range of
//!   sizes, one that fits is taken first.
//! * A negative stride starts at the end, and returns there from the beginning.
//! * Runs (`run_length`) are counted per operation and file.
//! * With rows, all of them have one position in each file (see `rows.rs`).

mod aged;
mod bitmap;
mod cursor;
mod files;
mod order;
mod passes;
mod permutation;
mod plain;
mod reuse;
mod rows;
mod sizes;
mod source;
mod strided;

pub use passes::map_bytes;
pub use permutation::{Permutation, PermutationWalk};
pub(crate) use sizes::{alias_table, pick};
pub use sizes::{Alias, SizeSource};

use files::{Files, Walked};
use loadstone_base::ops::Op;
use loadstone_base::rng::Rng;
use loadstone_plan as plan;
use passes::{Classes, Passes};
use plain::Plain;
use rows::PatternRows;
use source::Source;
use strided::Windows;

/// The operations a pattern chooses from, in the order of their number.
const MIXED: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// One I/O to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextIo {
    /// Read, write or trim.
    pub op: Op,
    /// Index into the stream's files.
    pub file: u32,
    /// Byte offset in the target.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// The source of a stream's I/Os.
#[derive(Debug, Clone)]
pub struct Generator {
    rng: Rng,
    mix: Mix,
    files: Files,
    /// By operation; those with share 0 have no cursors.
    ops: [Source; 3],
    /// What operations share of their orders.
    passes: Passes,
    trim_then_write: bool,
    follow_up: Option<NextIo>,
    windows: Option<Windows>,
    /// In place of everything above but the files.
    rows: Option<PatternRows>,
    /// In place of everything above.
    plain: Option<Plain>,
}

impl Generator {
    /// The generator of a stream's pattern. The stream must be well-formed: at least one
    /// file, shares above 0, and no size larger than a file's range; a size that is
    /// larger all the same is cut to the range.
    #[must_use]
    pub fn new(stream: &plan::Stream) -> Self {
        let pattern = &stream.pattern;
        let mix = Mix::new([
            pattern.read_percent,
            pattern.write_percent,
            pattern.trim_percent,
        ]);
        let windows = pattern
            .strided
            .map(|plan| Windows::new(plan, &stream.files));
        let files = windows.as_ref().map(Windows::files);
        let files = files.as_deref().unwrap_or(&stream.files);
        let mut classes = Classes::new(stream.seed, files);
        let mut ops = [(0, &pattern.read), (1, &pattern.write), (2, &pattern.trim)]
            .map(|(op, source)| Source::new(op, source, &mut classes, mix.has(op)));
        let passes = classes.into_passes();
        for source in &mut ops {
            source.use_map(&passes);
        }
        let plain = match (mix.only, &stream.files[..]) {
            (Some(op), [_]) if windows.is_none() && pattern.rows.is_none() => {
                ops[usize::from(op)].plain(MIXED[usize::from(op)], &passes)
            }
            _ => None,
        };
        Self {
            plain: plain.filter(|_| !pattern.trim_then_write),
            rng: Rng::new(stream.seed),
            mix,
            files: Files::new(stream),
            ops,
            passes,
            trim_then_write: pattern.trim_then_write,
            follow_up: None,
            windows,
            rows: pattern
                .rows
                .as_deref()
                .map(|rows| PatternRows::new(rows, &stream.files)),
        }
    }

    /// The next I/O.
    #[inline(always)]
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless source is no iterator"
    )]
    pub fn next(&mut self) -> NextIo {
        match &mut self.plain {
            Some(plain) => plain.next(),
            None => self.general(),
        }
    }

    #[inline(never)]
    fn general(&mut self) -> NextIo {
        if self.rows.is_some() {
            return self.by_rows(None);
        }
        if self.trim_then_write {
            if let Some(write) = self.follow_up.take() {
                return write;
            }
        }
        let op = self.mix.draw(&mut self.rng);
        self.make(op)
    }

    /// The next I/O of one operation, which must have a share in the pattern: for streams
    /// whose pace decides the operation. The write that follows a trim comes first,
    /// whatever is asked for.
    #[inline]
    pub fn next_op(&mut self, op: Op) -> NextIo {
        if let Some(plain) = &mut self.plain {
            return plain.next();
        }
        if self.rows.is_some() {
            return self.by_rows(Some(op.index()));
        }
        if let Some(write) = self.follow_up.take() {
            return write;
        }
        debug_assert!(
            self.mix.has(op.index()),
            "{op:?} has no share in the pattern"
        );
        let op = if self.mix.has(op.index()) {
            op.index()
        } else {
            self.mix.draw(&mut self.rng)
        };
        self.make(op)
    }

    #[inline(never)]
    fn by_rows(&mut self, op: Option<usize>) -> NextIo {
        let file = self.files.draw(&mut self.rng);
        match &mut self.rows {
            Some(rows) => rows.next(op, file, &mut self.rng),
            None => self.make(op.unwrap_or_default()),
        }
    }

    #[inline(always)]
    fn make(&mut self, op: usize) -> NextIo {
        let file = self.files.draw(&mut self.rng);
        if self.windows.is_some() {
            self.move_window(op, file);
        }
        let source = &mut self.ops[op];
        let (offset, len) = source.next(file as usize, &mut self.rng, &mut self.passes);
        let next = NextIo {
            op: MIXED[op],
            file,
            offset,
            len,
        };
        if let Some(windows) = &mut self.windows {
            windows.used(len);
        }
        if self.files.finishes {
            let walk = if self.windows.is_some() {
                Walked::AtRandom
            } else {
                source.walked(file as usize)
            };
            self.files.used(len, walk);
        }
        if self.trim_then_write && next.op == Op::Trim {
            self.follow_up = Some(NextIo {
                op: Op::Write,
                ..next
            });
        }
        next
    }

    /// Lets all operations go on in the next window of a file when it is time.
    #[inline(never)]
    fn move_window(&mut self, op: usize, file: u32) {
        let smallest = self.ops[op].sizes.min();
        let Some(windows) = &mut self.windows else {
            return;
        };
        let Some(window) = windows.moved(file as usize, smallest) else {
            return;
        };
        let key = self.rng.next_u64();
        for source in &mut self.ops {
            source.move_to(&window, file as usize, key, &mut self.passes);
        }
    }
}

/// Shares of the operations.
#[derive(Debug, Clone)]
struct Mix {
    /// The operation when there is only one.
    only: Option<u8>,
    /// Reads, then reads and writes, then all.
    bounds: [u32; 3],
}

impl Mix {
    fn new(shares: [u32; 3]) -> Self {
        let bounds = [
            shares[0],
            shares[0] + shares[1],
            shares[0] + shares[1] + shares[2],
        ];
        let used: Vec<u8> = (0..3).filter(|&op| shares[usize::from(op)] > 0).collect();
        let only = match used[..] {
            // A pattern without any share is not well-formed; reads are harmless.
            [] => Some(0),
            [op] => Some(op),
            _ => None,
        };
        Self { only, bounds }
    }

    fn has(&self, op: usize) -> bool {
        if op >= MIXED.len() {
            return false;
        }
        match self.only {
            Some(only) => usize::from(only) == op,
            None => self.bounds[op] > if op == 0 { 0 } else { self.bounds[op - 1] },
        }
    }

    #[inline(always)]
    fn draw(&self, rng: &mut Rng) -> usize {
        if let Some(op) = self.only {
            return usize::from(op).min(2);
        }
        let at = rng.below(u64::from(self.bounds[2])) as u32;
        usize::from(at >= self.bounds[0]) + usize::from(at >= self.bounds[1])
    }
}

#[cfg(test)]
mod tests;
