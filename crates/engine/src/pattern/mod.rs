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

mod bitmap;
mod order;
mod permutation;
mod reuse;
mod rng;
mod rows;
mod sizes;
mod strided;

pub use permutation::{Permutation, Walk};
pub use rng::{mix, Rng};
pub(crate) use sizes::{alias_table, pick, Alias, Sizes};

use crate::backend::Op;
use crate::plan::{self, FileChoice, RandomOrder};
use bitmap::Bitmap;
use order::{Skewed, Zones};
use reuse::Reuse;
use rows::Rows;
use strided::Windows;

/// The operations a pattern chooses from, in the order of their number.
const MIXED: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// One I/O to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
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
    walks: Passes,
    trim_then_write: bool,
    follow_up: Option<Next>,
    windows: Option<Windows>,
    /// In place of everything above but the files.
    rows: Option<Rows>,
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
        let mut walks = Walks {
            seed: stream.seed,
            files: files.as_deref().unwrap_or(&stream.files),
            classes: Vec::new(),
        };
        let mut ops = [(0, &pattern.read), (1, &pattern.write), (2, &pattern.trim)]
            .map(|(op, source)| Source::new(op, source, &mut walks, mix.has(op)));
        for source in &mut ops {
            source.use_map(&walks.classes);
        }
        Self {
            rng: Rng::new(stream.seed),
            mix,
            files: Files::new(stream),
            ops,
            walks: Passes {
                places: stream
                    .files
                    .iter()
                    .map(|_| reuse::Place::default())
                    .collect(),
                classes: walks.classes.into_iter().map(Class::into_pass).collect(),
            },
            trim_then_write: pattern.trim_then_write,
            follow_up: None,
            windows,
            rows: pattern
                .rows
                .as_deref()
                .map(|rows| Rows::new(rows, &stream.files)),
        }
    }

    /// The next I/O.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless source is no iterator"
    )]
    pub fn next(&mut self) -> Next {
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
    pub fn next_op(&mut self, op: Op) -> Next {
        if self.rows.is_some() {
            return self.by_rows(Some(op as usize));
        }
        if let Some(write) = self.follow_up.take() {
            return write;
        }
        debug_assert!(
            self.mix.has(op as usize),
            "{op:?} has no share in the pattern"
        );
        let op = if self.mix.has(op as usize) {
            op as usize
        } else {
            self.mix.draw(&mut self.rng)
        };
        self.make(op)
    }

    #[inline(never)]
    fn by_rows(&mut self, op: Option<usize>) -> Next {
        let file = self.files.draw(&mut self.rng);
        match &mut self.rows {
            Some(rows) => rows.next(op, file, &mut self.rng),
            None => self.make(op.unwrap_or_default()),
        }
    }

    #[inline(always)]
    fn make(&mut self, op: usize) -> Next {
        let file = self.files.draw(&mut self.rng);
        if self.windows.is_some() {
            self.move_window(op, file);
        }
        let source = &mut self.ops[op];
        let (offset, len) = source.next(file as usize, &mut self.rng, &mut self.walks);
        let next = Next {
            op: MIXED[op],
            file,
            offset,
            len,
        };
        if let Some(windows) = &mut self.windows {
            windows.used(len);
        }
        if self.files.finishes {
            let at_the_end = self.windows.is_none() && source.at_the_end(file as usize);
            self.files.used(len, at_the_end);
        }
        if self.trim_then_write && next.op == Op::Trim {
            self.follow_up = Some(Next {
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
            source.move_to(&window, file as usize, key, &mut self.walks);
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

/// The choice of a file.
#[derive(Debug, Clone)]
struct Files {
    choice: FileChoice,
    lengths: Box<[u64]>,
    current: u32,
    /// I/Os left before the next choice.
    left: u32,
    /// One file is finished before the next: progress must be told.
    finishes: bool,
    bytes_on_file: u64,
}

impl Files {
    fn new(stream: &plan::Stream) -> Self {
        let sequential = matches!(stream.file_choice, FileChoice::Sequential {});
        Self {
            choice: stream.file_choice,
            lengths: stream.files.iter().map(|file| file.length_bytes).collect(),
            // The first round-robin step brings file 0. A stream in a tree has none.
            current: if sequential {
                0
            } else {
                (stream.files.len() as u32).saturating_sub(1)
            },
            left: 0,
            finishes: sequential && stream.files.len() > 1,
            bytes_on_file: 0,
        }
    }

    #[inline(always)]
    fn draw(&mut self, rng: &mut Rng) -> u32 {
        if self.lengths.len() == 1 {
            return 0;
        }
        self.draw_of_many(rng)
    }

    fn draw_of_many(&mut self, rng: &mut Rng) -> u32 {
        let count = self.lengths.len() as u32;
        let following = if self.current + 1 == count {
            0
        } else {
            self.current + 1
        };
        match self.choice {
            FileChoice::Sequential {} => return self.current,
            _ if self.left > 0 => {}
            FileChoice::RoundRobin { every } => {
                (self.current, self.left) = (following, every.max(1))
            }
            FileChoice::Random { every } => {
                (self.current, self.left) = (rng.below(u64::from(count)) as u32, every.max(1));
            }
        }
        self.left -= 1;
        self.current
    }

    /// Told after each I/O when files are finished one after the other.
    fn used(&mut self, len: u32, at_the_end: bool) {
        self.bytes_on_file += u64::from(len);
        if at_the_end || self.bytes_on_file >= self.lengths[self.current as usize] {
            self.bytes_on_file = 0;
            self.current = (self.current + 1) % self.lengths.len() as u32;
        }
    }
}

/// Addresses and sizes of one operation.
#[derive(Debug, Clone)]
struct Source {
    shape: Shape,
    sizes: Sizes,
    order: Order,
    align_bytes: u64,
    random_percent: u32,
    run_length: u32,
    run_identical: bool,
    stride_bytes: i64,
    cursors: Box<[Cursor]>,
}

/// The common cases, so that they cost what they need and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One after the other, without stride.
    Sequential,
    /// Each at a new random address.
    Random,
    /// Everything else.
    General,
}

/// Where random addresses come from.
#[derive(Debug, Clone)]
enum Order {
    /// Number of a class of walks.
    Walk(usize),
    /// Number of a class with maps.
    Map(usize),
    Uniform,
    Skewed(Box<[Skewed]>),
    Zoned(Zones),
    /// The law, and the number of the operation.
    Reuse(Reuse, usize),
}

/// One operation's place in one file.
#[derive(Debug, Clone)]
struct Cursor {
    /// The file's range.
    begin: u64,
    end: u64,
    /// Places for random addresses, at least 1.
    blocks: u64,
    /// End of the last I/O: where a sequential one goes.
    position: u64,
    /// Start of the last I/O.
    start: u64,
    /// I/Os left in the run.
    run_left: u32,
}

impl Source {
    fn new(op: usize, pattern: &plan::OpPattern, walks: &mut Walks, used: bool) -> Self {
        let sizes = Sizes::new(&pattern.sizes);
        let align_bytes = pattern.align_bytes.max(1);
        let cursors: Box<[Cursor]> = if used {
            let cursor = |file| Cursor::new(file, align_bytes, sizes.min(), pattern.stride_bytes);
            walks.files.iter().map(cursor).collect()
        } else {
            Box::default()
        };
        let random = pattern.random_percent > 0 && used;
        let order = match &pattern.random {
            _ if !random => Order::Uniform,
            RandomOrder::Uniform { repeat: true } => Order::Uniform,
            RandomOrder::Uniform { repeat: false } => {
                Order::Walk(walks.class(&cursors, align_bytes, needs_map(pattern)))
            }
            RandomOrder::Zoned { zones } => Order::Zoned(Zones::new(zones, align_bytes)),
            other => match Reuse::new(other, align_bytes) {
                Some(law) => Order::Reuse(law, op),
                None => Order::Skewed(
                    cursors
                        .iter()
                        .enumerate()
                        .filter_map(|(i, c)| Skewed::new(other, c.blocks, walks.key(i, 0)))
                        .collect(),
                ),
            },
        };
        let run_length = pattern.run_length.max(1);
        let shape = match pattern.random_percent {
            0 if pattern.stride_bytes == 0 && (run_length == 1 || !pattern.run_identical) => {
                Shape::Sequential
            }
            100.. if run_length == 1 => Shape::Random,
            _ => Shape::General,
        };
        Self {
            shape,
            sizes,
            order,
            align_bytes,
            random_percent: pattern.random_percent,
            run_length,
            run_identical: pattern.run_identical,
            stride_bytes: pattern.stride_bytes,
            cursors,
        }
    }

    /// Goes over to maps where an operation of the same class needs one.
    fn use_map(&mut self, classes: &[Class]) {
        if let Order::Walk(class) = self.order {
            if classes[class].mapped {
                self.order = Order::Map(class);
            }
        }
    }

    /// Starts anew in another range of a file, with a pass of its own.
    fn move_to(&mut self, window: &plan::FileUse, file: usize, key: u64, passes: &mut Passes) {
        let Some(cursor) = self.cursors.get_mut(file) else {
            return;
        };
        *cursor = Cursor::new(
            window,
            self.align_bytes,
            self.sizes.min(),
            self.stride_bytes,
        );
        match self.order {
            Order::Walk(class) => passes.classes[class].walks[file] = Walk::new(cursor.blocks, key),
            Order::Map(class) => passes.classes[class].maps[file].clear(cursor.blocks),
            _ => {}
        }
    }

    /// Offset and length of the next I/O.
    #[inline(always)]
    fn next(&mut self, file: usize, rng: &mut Rng, walks: &mut Passes) -> (u64, u32) {
        match self.shape {
            Shape::Sequential => {
                let len = self.sizes.draw(rng);
                let cursor = &mut self.cursors[file];
                let start = cursor.position;
                if start + u64::from(len) <= cursor.end {
                    cursor.position = start + u64::from(len);
                    return (start, len);
                }
                self.wrap(file, len, rng)
            }
            Shape::Random => self.random(file, rng, walks),
            Shape::General => self.general(file, rng, walks),
        }
    }

    #[inline(always)]
    fn random(&mut self, file: usize, rng: &mut Rng, walks: &mut Passes) -> (u64, u32) {
        let len = self.sizes.draw(rng);
        let cursor = &self.cursors[file];
        let block = match &self.order {
            Order::Walk(class) => walks.classes[*class].walks[file].step(),
            Order::Map(class) => {
                let most = u64::from(len).div_ceil(self.align_bytes);
                let (block, count) = walks.classes[*class].maps[file].take(rng, most);
                let free = count.saturating_mul(self.align_bytes);
                return (
                    cursor.begin + block * self.align_bytes,
                    len.min(clamp_len(free)),
                );
            }
            Order::Uniform => rng.below(cursor.blocks),
            Order::Skewed(laws) => laws[file].draw(rng),
            Order::Zoned(zones) => zones.draw(rng, cursor.blocks),
            Order::Reuse(law, op) => law.draw(&mut walks.places[file], *op, cursor.blocks, rng),
        };
        let start = cursor.begin + block * self.align_bytes;
        if start + u64::from(len) <= cursor.end {
            return (start, len);
        }
        cursor.last_place(len, self.align_bytes)
    }

    fn general(&mut self, file: usize, rng: &mut Rng, walks: &mut Passes) -> (u64, u32) {
        let in_run = self.cursors[file].run_left > 0;
        let random = !in_run
            && (self.random_percent >= 100 || rng.below(100) < u64::from(self.random_percent));
        let (start, len) = if random {
            self.random(file, rng, walks)
        } else if in_run && self.run_identical {
            self.again(file, rng)
        } else {
            self.sequential(file, !in_run, rng)
        };
        let run_length = self.run_length;
        let cursor = &mut self.cursors[file];
        cursor.run_left = if in_run {
            cursor.run_left - 1
        } else {
            run_length - 1
        };
        cursor.start = start;
        cursor.position = start + u64::from(len);
        (start, len)
    }

    /// The last address once more; a size that does not fit there is drawn again.
    fn again(&self, file: usize, rng: &mut Rng) -> (u64, u32) {
        let cursor = &self.cursors[file];
        let room = cursor.end - cursor.start;
        let len = self.sizes.draw(rng);
        if u64::from(len) <= room {
            return (cursor.start, len);
        }
        (
            cursor.start,
            self.sizes.draw_fitting(rng, room).min(clamp_len(room)),
        )
    }

    /// The place after the last I/O, moved by the stride when a run begins.
    fn sequential(&mut self, file: usize, run_begins: bool, rng: &mut Rng) -> (u64, u32) {
        let len = self.sizes.draw(rng);
        let cursor = &self.cursors[file];
        // Nothing has been done yet, or the end was reached: the stride has no I/O to follow.
        let fresh = cursor.position == cursor.begin && self.stride_bytes >= 0;
        let stride = if run_begins && !fresh {
            self.stride_bytes
        } else {
            0
        };
        let Some(start) = cursor.position.checked_add_signed(stride) else {
            return self.wrap(file, len, rng);
        };
        if start < cursor.begin || start.saturating_add(u64::from(len)) > cursor.end {
            return self.wrap(file, len, rng);
        }
        (start, len)
    }

    /// A sequential I/O that does not fit where it should go.
    #[cold]
    fn wrap(&mut self, file: usize, len: u32, rng: &mut Rng) -> (u64, u32) {
        let backwards = self.stride_bytes < 0;
        let smallest = u64::from(self.sizes.min());
        let cursor = &mut self.cursors[file];
        let room = cursor.end.saturating_sub(cursor.position);
        if self.stride_bytes == 0 && u64::from(len) > smallest && room >= smallest {
            let (start, len) = (cursor.position, self.sizes.draw_fitting(rng, room));
            cursor.position += u64::from(len);
            return (start, len);
        }
        let len = len.min(clamp_len(cursor.end - cursor.begin));
        let start = if backwards {
            let top = cursor.end - u64::from(len);
            cursor
                .end
                .saturating_add_signed(self.stride_bytes)
                .clamp(cursor.begin, top)
        } else {
            cursor.begin
        };
        cursor.position = start + u64::from(len);
        (start, len)
    }

    /// The next sequential I/O of the file would start again from the other end.
    fn at_the_end(&self, file: usize) -> bool {
        let cursor = &self.cursors[file];
        if self.random_percent > 0 || cursor.run_left > 0 {
            return false;
        }
        cursor
            .position
            .checked_add_signed(self.stride_bytes)
            .is_none_or(|start| {
                start < cursor.begin
                    || start.saturating_add(u64::from(self.sizes.min())) > cursor.end
            })
    }
}

impl Cursor {
    fn new(file: &plan::FileUse, align_bytes: u64, smallest: u32, stride_bytes: i64) -> Self {
        let begin = file.offset_bytes;
        let end = begin.saturating_add(file.length_bytes);
        Self {
            begin,
            end,
            blocks: file.length_bytes.saturating_sub(u64::from(smallest)) / align_bytes + 1,
            position: if stride_bytes < 0 { end } else { begin },
            start: begin,
            run_left: 0,
        }
    }

    /// The last aligned place where `len` bytes fit.
    #[cold]
    fn last_place(&self, len: u32, align_bytes: u64) -> (u64, u32) {
        let range = self.end - self.begin;
        let len = len.min(clamp_len(range));
        (
            self.begin + (range - u64::from(len)) / align_bytes * align_bytes,
            len,
        )
    }
}

/// A length that is at most a range's.
fn clamp_len(range_bytes: u64) -> u32 {
    u32::try_from(range_bytes).unwrap_or(u32::MAX)
}

/// The orders without repeats of one class, by file: maps, or else walks.
#[derive(Debug, Clone)]
struct Pass {
    walks: Box<[Walk]>,
    maps: Box<[Bitmap]>,
}

/// What the operations of a stream share.
#[derive(Debug, Clone)]
struct Passes {
    /// Orders without repeats, by class and file.
    classes: Vec<Pass>,
    /// Walks that come back, by file.
    places: Box<[reuse::Place]>,
}

/// Blocks of different numbers are touched by one I/O, so what is left must be known.
fn needs_map(pattern: &plan::OpPattern) -> bool {
    let sizes = Sizes::new(&pattern.sizes);
    pattern.random_percent > 0
        && matches!(pattern.random, RandomOrder::Uniform { repeat: false })
        && !matches!(sizes, Sizes::Fixed(_))
        && pattern.align_bytes == u64::from(sizes.min())
}

/// Memory of a stream's maps of touched blocks, in bytes; without maps 0.
#[must_use]
pub fn map_bytes(stream: &plan::Stream) -> u64 {
    let pattern = &stream.pattern;
    let of = |source: &plan::OpPattern| -> u64 {
        let smallest = Sizes::new(&source.sizes).min();
        stream
            .files
            .iter()
            .map(|file| Cursor::new(file, source.align_bytes, smallest, 0).blocks)
            .map(bitmap::bytes_needed)
            .sum()
    };
    // Operations may share one; this is the most they take.
    [
        (pattern.read_percent, &pattern.read),
        (pattern.write_percent, &pattern.write),
        (pattern.trim_percent, &pattern.trim),
    ]
    .into_iter()
    .filter(|(share, source)| *share > 0 && needs_map(source))
    .map(|(_, source)| of(source))
    .sum()
}

/// Builds the orders without repeats, one class for all operations with the same places.
struct Walks<'a> {
    seed: u64,
    files: &'a [plan::FileUse],
    classes: Vec<Class>,
}

struct Class {
    align_bytes: u64,
    blocks: Box<[u64]>,
    /// An operation's sizes vary.
    mapped: bool,
    keys: Box<[u64]>,
}

impl Class {
    fn into_pass(self) -> Pass {
        let (mut walks, mut maps) = (Vec::new(), Vec::new());
        for (&n, &key) in self.blocks.iter().zip(&self.keys) {
            if self.mapped {
                maps.push(Bitmap::new(n));
            } else {
                walks.push(Walk::new(n, key));
            }
        }
        Pass {
            walks: walks.into(),
            maps: maps.into(),
        }
    }
}
impl Walks<'_> {
    fn key(&self, file: usize, class: usize) -> u64 {
        mix(self.seed ^ mix(((class as u64) << 32) | file as u64))
    }

    fn class(&mut self, cursors: &[Cursor], align_bytes: u64, mapped: bool) -> usize {
        let blocks: Box<[u64]> = cursors.iter().map(|cursor| cursor.blocks).collect();
        let same = |class: &Class| class.align_bytes == align_bytes && class.blocks == blocks;
        if let Some(class) = self.classes.iter().position(same) {
            self.classes[class].mapped |= mapped;
            return class;
        }
        let number = self.classes.len();
        let keys = (0..blocks.len()).map(|file| self.key(file, number + 1));
        self.classes.push(Class {
            align_bytes,
            keys: keys.collect(),
            blocks,
            mapped,
        });
        number
    }
}

#[cfg(test)]
mod tests;
