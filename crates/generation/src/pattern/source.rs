//! Addresses and sizes of one operation.
//!
//! Knows the order of its addresses and its place in every file. Knows no other operation,
//! and not which file is next.

use super::aged::Aged;
use super::cursor::{clamp_len, FileCursor};
use super::files::Walked;
use super::order::{Listed, Skewed, Zones};
use super::passes::{needs_map, Classes, Passes};
use super::permutation::PermutationWalk;
use super::plain::Plain;
use super::reuse::Reuse;
use super::sizes::SizeSource;
use loadstone_base::ops::Op;
use loadstone_base::rng::Rng;
use loadstone_plan::{self as plan, RandomOrder};

/// Addresses and sizes of one operation.
#[derive(Debug, Clone)]
pub(super) struct Source {
    shape: PatternCase,
    pub(super) sizes: SizeSource,
    order: AddressSource,
    align_bytes: u64,
    random_percent: u32,
    run_length: u32,
    run_identical: bool,
    stride_bytes: i64,
    stride_spread_bytes: u64,
    cursors: Box<[FileCursor]>,
}

/// The common cases, so that they cost what they need and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternCase {
    /// One after the other, without stride.
    Sequential,
    /// Each at a new random address.
    Random,
    /// Everything else.
    General,
}

impl PatternCase {
    fn of(pattern: &plan::OpPattern) -> Self {
        let single = pattern.run_length <= 1;
        match pattern.random_percent {
            0 if pattern.stride_bytes == 0
                && pattern.stride_spread_bytes == 0
                && (single || !pattern.run_identical) =>
            {
                Self::Sequential
            }
            100.. if single => Self::Random,
            _ => Self::General,
        }
    }
}

/// Where random addresses come from.
#[derive(Debug, Clone)]
enum AddressSource {
    /// Number of a class of walks.
    Walk(usize),
    /// Number of a class with maps.
    Map(usize),
    Uniform,
    Skewed(Box<[Skewed]>),
    Zoned(Zones),
    Listed(Listed),
    Aged(Box<[Aged]>),
    /// The law, and the number of the operation.
    Reuse(Reuse, usize),
}

impl AddressSource {
    /// Of the operation `op` whose addresses are random.
    fn new(
        op: usize,
        pattern: &plan::OpPattern,
        classes: &mut Classes,
        cursors: &[FileCursor],
    ) -> Self {
        let align_bytes = pattern.align_bytes.max(1);
        let files = cursors.iter().enumerate();
        match &pattern.random {
            RandomOrder::Uniform { repeat: true } => Self::Uniform,
            RandomOrder::Uniform { repeat: false } => {
                Self::Walk(classes.class(cursors, align_bytes, needs_map(pattern)))
            }
            RandomOrder::Listed { blocks, advance } => Self::Listed(Listed::new(blocks, *advance)),
            RandomOrder::Zoned { zones } => Self::Zoned(Zones::new(zones, align_bytes)),
            RandomOrder::Aged { .. } => Self::Aged(
                files
                    .filter_map(|(i, c)| Aged::new(&pattern.random, c.blocks, classes.key(i, 0)))
                    .collect(),
            ),
            other => match Reuse::new(other, align_bytes) {
                Some(law) => Self::Reuse(law, op),
                None => Self::Skewed(
                    files
                        .filter_map(|(i, c)| Skewed::new(other, c.blocks, classes.key(i, 0)))
                        .collect(),
                ),
            },
        }
    }
}

impl Source {
    pub(super) fn new(
        op: usize,
        pattern: &plan::OpPattern,
        classes: &mut Classes,
        used: bool,
    ) -> Self {
        let sizes = SizeSource::new(&pattern.sizes);
        let align_bytes = pattern.align_bytes.max(1);
        let cursors: Box<[FileCursor]> = if used {
            let cursor =
                |file| FileCursor::new(file, align_bytes, sizes.min(), pattern.stride_bytes);
            classes.files.iter().map(cursor).collect()
        } else {
            Box::default()
        };
        let order = if pattern.random_percent > 0 && used {
            AddressSource::new(op, pattern, classes, &cursors)
        } else {
            AddressSource::Uniform
        };
        Self {
            shape: PatternCase::of(pattern),
            sizes,
            order,
            align_bytes,
            random_percent: pattern.random_percent,
            run_length: pattern.run_length.max(1),
            run_identical: pattern.run_identical,
            stride_bytes: pattern.stride_bytes,
            stride_spread_bytes: pattern.stride_spread_bytes,
            cursors,
        }
    }

    /// The short way to the same I/Os, where there is one.
    pub(super) fn plain(&self, op: Op, passes: &Passes) -> Option<Plain> {
        let (PatternCase::Random, SizeSource::Fixed(len), AddressSource::Walk(class)) =
            (self.shape, &self.sizes, &self.order)
        else {
            return None;
        };
        let walk = &passes.classes[*class].walks[0];
        Plain::new(op, *len, &self.cursors[0], self.align_bytes, walk)
    }

    /// Goes over to maps where an operation of the same class needs one.
    pub(super) fn use_map(&mut self, passes: &Passes) {
        if let AddressSource::Walk(class) = self.order {
            if passes.classes[class].mapped {
                self.order = AddressSource::Map(class);
            }
        }
    }

    /// Starts anew in another range of a file, with a pass of its own.
    pub(super) fn move_to(
        &mut self,
        window: &plan::FileUse,
        file: usize,
        key: u64,
        passes: &mut Passes,
    ) {
        let Some(cursor) = self.cursors.get_mut(file) else {
            return;
        };
        *cursor = FileCursor::new(
            window,
            self.align_bytes,
            self.sizes.min(),
            self.stride_bytes,
        );
        match self.order {
            AddressSource::Walk(class) => {
                passes.classes[class].walks[file] = PermutationWalk::new(cursor.blocks, key)
            }
            AddressSource::Map(class) => passes.classes[class].maps[file].clear(cursor.blocks),
            _ => {}
        }
    }

    /// Offset and length of the next I/O.
    #[inline(always)]
    pub(super) fn next(&mut self, file: usize, rng: &mut Rng, passes: &mut Passes) -> (u64, u32) {
        match self.shape {
            PatternCase::Sequential => {
                let len = self.sizes.draw(rng);
                let cursor = &mut self.cursors[file];
                let start = cursor.position;
                if start + u64::from(len) <= cursor.end {
                    cursor.position = start + u64::from(len);
                    return (start, len);
                }
                self.wrap(file, len, rng)
            }
            PatternCase::Random => self.random(file, rng, passes),
            PatternCase::General => self.general(file, rng, passes),
        }
    }

    #[inline(always)]
    fn random(&mut self, file: usize, rng: &mut Rng, passes: &mut Passes) -> (u64, u32) {
        let len = self.sizes.draw(rng);
        let cursor = &self.cursors[file];
        let block = match &mut self.order {
            AddressSource::Walk(class) => passes.classes[*class].walks[file].step(),
            AddressSource::Map(class) => {
                let most = u64::from(len).div_ceil(self.align_bytes);
                let (block, count) = passes.classes[*class].maps[file].take(rng, most);
                let free = count.saturating_mul(self.align_bytes);
                return (
                    cursor.begin + block * self.align_bytes,
                    len.min(clamp_len(free)),
                );
            }
            AddressSource::Uniform => rng.below(cursor.blocks),
            AddressSource::Skewed(laws) => laws[file].draw(rng),
            AddressSource::Zoned(zones) => zones.draw(rng, cursor.blocks),
            AddressSource::Listed(list) => list.draw(cursor.blocks),
            AddressSource::Aged(files) => files[file].draw(rng),
            AddressSource::Reuse(law, op) => {
                law.draw(&mut passes.places[file], *op, cursor.blocks, rng)
            }
        };
        let start = cursor.begin + block * self.align_bytes;
        if start + u64::from(len) <= cursor.end {
            return (start, len);
        }
        cursor.last_place(len, self.align_bytes)
    }

    fn general(&mut self, file: usize, rng: &mut Rng, passes: &mut Passes) -> (u64, u32) {
        let in_run = self.cursors[file].run_left > 0;
        let random = !in_run
            && (self.random_percent >= 100 || rng.below(100) < u64::from(self.random_percent));
        let (start, len) = if random {
            self.random(file, rng, passes)
        } else if in_run && self.run_identical {
            self.same_address(file, rng)
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
    fn same_address(&self, file: usize, rng: &mut Rng) -> (u64, u32) {
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
                .saturating_add_unsigned(self.spread(len, rng))
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

    /// What a stride is longer by: whole I/Os.
    fn spread(&self, len: u32, rng: &mut Rng) -> u64 {
        match self.stride_spread_bytes / u64::from(len.max(1)) {
            0 => 0,
            blocks => rng.below(blocks) * u64::from(len),
        }
    }

    /// A sequential I/O that does not fit where it should go.
    #[cold]
    fn wrap(&mut self, file: usize, len: u32, rng: &mut Rng) -> (u64, u32) {
        let backwards = self.stride_bytes < 0;
        let smallest = u64::from(self.sizes.min());
        let cursor = &mut self.cursors[file];
        let room = cursor.end.saturating_sub(cursor.position);
        let strided = self.stride_bytes != 0 || self.stride_spread_bytes > 0;
        if !strided && u64::from(len) > smallest && room >= smallest {
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

    /// Whether the next sequential I/O of the file would start again from the other end.
    pub(super) fn walked(&self, file: usize) -> Walked {
        let cursor = &self.cursors[file];
        if self.random_percent > 0 {
            return Walked::AtRandom;
        }
        let in_run = cursor.run_left > 0;
        let stride_bytes = if in_run { 0 } else { self.stride_bytes };
        let next = cursor.position.checked_add_signed(stride_bytes);
        let has_room = next.is_some_and(|start| {
            start >= cursor.begin && start.saturating_add(u64::from(self.sizes.min())) <= cursor.end
        });
        if has_room || (in_run && self.run_identical) {
            Walked::Within
        } else {
            Walked::ToTheEnd
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{file, offsets_kib, reads, source, take, uniform, KIB};
    use crate::pattern::NextIo;
    use loadstone_plan::{self as plan, OpPattern};

    #[test]
    fn sequential_reads_walk_the_range_and_start_again() {
        let stream = reads(source(0, 4096), vec![file(0, 8 * KIB, 14 * KIB)]);
        assert_eq!(offsets_kib(&stream, 7), [8, 12, 16, 8, 12, 16, 8]);
    }

    #[test]
    fn a_stride_leaves_holes_and_wraps() {
        let with_stride = |stride_bytes| OpPattern {
            stride_bytes,
            ..source(0, 4096)
        };
        let stream = reads(with_stride(4096), vec![file(0, 0, 20 * KIB)]);
        assert_eq!(offsets_kib(&stream, 7), [0, 8, 16, 0, 8, 16, 0]);
        let stream = reads(with_stride(-8192), vec![file(0, 4 * KIB, 16 * KIB)]);
        assert_eq!(
            offsets_kib(&stream, 7),
            [12, 8, 4, 12, 8, 4, 12],
            "backwards"
        );
    }

    #[test]
    fn a_stride_is_longer_by_whole_blocks_below_its_spread() {
        let pattern = OpPattern {
            stride_bytes: 4096,
            stride_spread_bytes: 16384,
            ..source(0, 4096)
        };
        let stream = reads(pattern, vec![file(0, 0, 4096 * KIB)]);
        let places = offsets_kib(&stream, 300);
        let steps: std::collections::BTreeSet<_> = places
            .windows(2)
            .filter(|pair| pair[1] > pair[0])
            .map(|pair| pair[1] - pair[0])
            .collect();
        assert_eq!(Vec::from_iter(steps), [8, 12, 16, 20]);
    }

    #[test]
    fn a_stride_follows_each_run() {
        let source = OpPattern {
            stride_bytes: 8192,
            run_length: 2,
            ..source(0, 4096)
        };
        let stream = reads(source, vec![file(0, 0, 64 * KIB)]);
        assert_eq!(offsets_kib(&stream, 7), [0, 4, 16, 20, 32, 36, 48]);
    }

    #[test]
    fn identical_runs_repeat_the_address() {
        let source = OpPattern {
            run_length: 3,
            run_identical: true,
            ..source(0, 4096)
        };
        let stream = reads(source.clone(), vec![file(0, 0, 64 * KIB)]);
        assert_eq!(offsets_kib(&stream, 7), [0, 0, 0, 4, 4, 4, 8]);
        let stream = reads(
            OpPattern {
                random_percent: 100,
                ..source
            },
            vec![file(0, 0, 64 * KIB)],
        );
        let ios = offsets_kib(&stream, 16 * 3);
        assert!(
            ios.chunks(3)
                .all(|run| run[0] == run[1] && run[1] == run[2]),
            "{ios:?}"
        );
        let mut places: Vec<_> = ios.iter().step_by(3).copied().collect();
        places.sort_unstable();
        assert_eq!(
            places,
            (0..16).map(|i| i * 4).collect::<Vec<_>>(),
            "and cover the range"
        );
    }

    #[test]
    fn random_runs_are_sequential_inside() {
        let source = OpPattern {
            run_length: 8,
            ..source(100, 4096)
        };
        let stream = reads(source, vec![file(0, 0, 4096 * KIB)]);
        let ios = offsets_kib(&stream, 8 * 200);
        let mut jumps = 0;
        for run in ios.chunks(8) {
            // A run may go round the end once.
            assert!(run.windows(2).all(|w| w[1] == (w[0] + 4) % 4096), "{run:?}");
        }
        for ends in ios[7..].windows(2).step_by(8) {
            jumps += usize::from(ends[1] != ends[0] + 4);
        }
        assert!(jumps > 190, "{jumps} of 199 runs begin elsewhere");
    }

    #[test]
    fn a_share_of_random_addresses_lets_sequential_ones_go_on_from_there() {
        let stream = reads(source(30, 4096), vec![file(0, 0, 1 << 30)]);
        let ios = take(&stream, 20_000);
        let follows = |w: &&[NextIo]| w[1].offset == w[0].offset + 4096;
        let sequential = ios.windows(2).filter(follows).count();
        // Binomial, mean 14,000, deviation 65.
        assert!((13_700..14_300).contains(&sequential), "{sequential}");
    }

    #[test]
    fn a_sequential_range_of_sizes_reaches_the_end_before_it_starts_again() {
        let sizes = plan::Sizes::Range {
            min_bytes: 512,
            max_bytes: 16384,
            step_bytes: 512,
        };
        let stream = reads(
            OpPattern {
                sizes,
                ..source(0, 512)
            },
            vec![file(0, 0, 100 * KIB)],
        );
        let ios = take(&stream, 2000);
        let mut expected = 0;
        let mut passes = 0;
        for io in ios {
            assert_eq!(io.offset, expected, "no gaps and no overlap");
            expected = io.offset + u64::from(io.len);
            if expected == 100 * KIB {
                (expected, passes) = (0, passes + 1);
            }
        }
        assert!(passes > 100);
    }

    #[test]
    fn repeats_are_uniform() {
        let source = OpPattern {
            random: uniform(true),
            ..source(100, 4096)
        };
        let stream = reads(source, vec![file(0, 0, 100 * 4096)]);
        let mut counts = [0u32; 100];
        for io in take(&stream, 100_000) {
            counts[(io.offset / 4096) as usize] += 1;
        }
        let statistic: f64 = counts
            .iter()
            .map(|&c| (f64::from(c) - 1e3).powi(2) / 1e3)
            .sum();
        // 99 degrees of freedom: mean 99, deviation 14.
        assert!((50.0..155.0).contains(&statistic), "{statistic}");
    }
}
