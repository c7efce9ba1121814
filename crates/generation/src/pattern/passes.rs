//! Orders without repeats, and what else the operations of a stream share.
//!
//! Knows which operations go over the same places, and so share one pass. Knows nothing of
//! how an I/O is made of a place.

use super::aged;
use super::bitmap::{self, Bitmap};
use super::cursor::FileCursor;
use super::permutation::PermutationWalk;
use super::reuse;
use super::sizes::SizeSource;
use loadstone_base::rng::mix;
use loadstone_plan::{self as plan, RandomOrder};

/// What the operations of a stream share.
#[derive(Debug, Clone)]
pub(super) struct Passes {
    /// Orders without repeats, by class and file.
    pub(super) classes: Vec<Pass>,
    /// Walks that come back, by file.
    pub(super) places: Box<[reuse::WalkPosition]>,
}

/// The orders without repeats of one class, by file: maps, or else walks.
#[derive(Debug, Clone)]
pub(super) struct Pass {
    /// Sizes of one of its operations vary.
    pub(super) mapped: bool,
    pub(super) walks: Box<[PermutationWalk]>,
    pub(super) maps: Box<[Bitmap]>,
}

/// Blocks of different numbers are touched by one I/O, so what is left must be known.
pub(super) fn needs_map(pattern: &plan::OpPattern) -> bool {
    let sizes = SizeSource::new(&pattern.sizes);
    pattern.random_percent > 0
        && matches!(pattern.random, RandomOrder::Uniform { repeat: false })
        && !matches!(sizes, SizeSource::Fixed(_))
        && pattern.align_bytes == u64::from(sizes.min())
}

/// Memory of a stream's maps of touched blocks and of blocks that come again, in bytes; without either 0.
#[must_use]
pub fn map_bytes(stream: &plan::Stream) -> u64 {
    let pattern = &stream.pattern;
    let files = stream.files.len() as u64;
    let of = |source: &plan::OpPattern| -> u64 {
        if !needs_map(source) {
            return files * aged::memory_bytes(&source.random);
        }
        let smallest = SizeSource::new(&source.sizes).min();
        stream
            .files
            .iter()
            .map(|file| FileCursor::new(file, source.align_bytes, smallest, 0).blocks)
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
    .filter(|(share, _)| *share > 0)
    .map(|(_, source)| of(source))
    .sum()
}

/// Finds out which operations share a pass: one class for all with the same places.
pub(super) struct Classes<'a> {
    seed: u64,
    pub(super) files: &'a [plan::FileUse],
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
                walks.push(PermutationWalk::new(n, key));
            }
        }
        Pass {
            mapped: self.mapped,
            walks: walks.into(),
            maps: maps.into(),
        }
    }
}

impl<'a> Classes<'a> {
    pub(super) fn new(seed: u64, files: &'a [plan::FileUse]) -> Self {
        Self {
            seed,
            files,
            classes: Vec::new(),
        }
    }

    pub(super) fn key(&self, file: usize, class: usize) -> u64 {
        mix(self.seed ^ mix(((class as u64) << 32) | file as u64))
    }

    pub(super) fn class(
        &mut self,
        cursors: &[FileCursor],
        align_bytes: u64,
        mapped: bool,
    ) -> usize {
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

    pub(super) fn into_passes(self) -> Passes {
        Passes {
            places: self
                .files
                .iter()
                .map(|_| reuse::WalkPosition::default())
                .collect(),
            classes: self.classes.into_iter().map(Class::into_pass).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::map_bytes;
    use crate::pattern::tests::{file, four_or_sixteen, mixed, reads, source, take, uniform};
    use crate::pattern::Generator;
    use loadstone_plan::Stream;

    #[test]
    fn random_reads_touch_every_block_once_per_pass_for_any_length() {
        for blocks in [1u64, 2, 3, 7, 64, 1000, 4097] {
            let length = blocks * 4096 + 100;
            let stream = reads(source(100, 4096), vec![file(0, 512, length)]);
            let ios = take(&stream, blocks as usize * 3);
            for pass in ios.chunks(blocks as usize) {
                let mut places: Vec<_> = pass.iter().map(|io| io.offset).collect();
                places.sort_unstable();
                let expected: Vec<_> = (0..blocks).map(|i| 512 + i * 4096).collect();
                assert_eq!(places, expected, "{blocks} blocks");
            }
        }
    }

    #[test]
    fn reads_and_writes_share_one_pass() {
        let stream = mixed(
            [50, 50, 0],
            source(100, 4096),
            vec![file(0, 0, 1000 * 4096)],
        );
        let mut places: Vec<_> = take(&stream, 1000)
            .iter()
            .map(|io| io.offset / 4096)
            .collect();
        places.sort_unstable();
        assert_eq!(places, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn mixed_sizes_touch_every_block_once_per_pass() {
        let blocks = 1000;
        let stream = reads(four_or_sixteen(), vec![file(0, 0, blocks * 4096)]);
        assert_eq!(touched(&stream, blocks), vec![1; 1000]);
        assert_eq!(touched(&stream, 3 * blocks), {
            let mut counts = vec![3; 1000];
            counts.resize(3000, 0);
            counts
        });
    }

    #[test]
    fn an_io_of_one_size_shares_the_map_with_one_whose_sizes_vary() {
        let mut stream = mixed([50, 50, 0], four_or_sixteen(), vec![file(0, 0, 800 * 4096)]);
        stream.pattern.read = source(100, 4096);
        assert_eq!(touched(&stream, 800), vec![1; 800]);
    }

    #[test]
    fn maps_are_counted_and_only_where_sizes_vary() {
        let files = || vec![file(0, 0, 1 << 30), file(1, 0, 4096 * 64)];
        assert_eq!(map_bytes(&reads(source(100, 4096), files())), 0);
        let mut varied = reads(four_or_sixteen(), files());
        // 2^18 blocks in 4,096 words and 64 above them; 64 blocks in 1 and 1.
        assert_eq!(map_bytes(&varied), 8 * (4096 + 64 + 1 + 1));
        varied.pattern.read.random = uniform(true);
        assert_eq!(map_bytes(&varied), 0);
    }

    /// Counts the 4 KiB blocks of each file that the I/Os of one pass touch.
    fn touched(stream: &Stream, blocks: u64) -> Vec<u32> {
        let mut generator = Generator::new(stream);
        let (mut counts, mut left) = (vec![0; blocks as usize], blocks);
        while left > 0 {
            let io = generator.next();
            let count = u64::from(io.len) / 4096;
            assert!((1..=4).contains(&count), "{io:?}");
            for block in io.offset / 4096..io.offset / 4096 + count {
                counts[block as usize] += 1;
            }
            left = left.saturating_sub(count);
        }
        counts
    }
}
