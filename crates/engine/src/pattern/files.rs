//! Which file the next I/O goes to.
//!
//! Knows the lengths of a stream's files, and how far the one that is to be finished is.
//! Knows no addresses.

use super::rng::Rng;
use crate::plan::{self, FileChoice};

/// The choice of a file.
#[derive(Debug, Clone)]
pub(super) struct Files {
    choice: FileChoice,
    lengths: Box<[u64]>,
    current: u32,
    /// I/Os left before the next choice.
    left: u32,
    /// One file is finished before the next: progress must be told.
    pub(super) finishes: bool,
    bytes_on_file: u64,
}

impl Files {
    pub(super) fn new(stream: &plan::Stream) -> Self {
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
    pub(super) fn draw(&mut self, rng: &mut Rng) -> u32 {
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
    pub(super) fn used(&mut self, len: u32, at_the_end: bool) {
        self.bytes_on_file += u64::from(len);
        if at_the_end || self.bytes_on_file >= self.lengths[self.current as usize] {
            self.bytes_on_file = 0;
            self.current = (self.current + 1) % self.lengths.len() as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{file, reads, source, take};
    use crate::plan::{FileChoice, OpPattern};

    #[test]
    fn files_are_chosen_in_turn() {
        let files = vec![
            file(0, 0, 1 << 20),
            file(1, 0, 1 << 20),
            file(2, 0, 1 << 20),
        ];
        let mut stream = reads(source(0, 4096), files);
        stream.file_choice = FileChoice::RoundRobin { every: 2 };
        let ios = take(&stream, 8);
        assert_eq!(
            ios.iter().map(|io| io.file).collect::<Vec<_>>(),
            [0, 0, 1, 1, 2, 2, 0, 0]
        );
        assert_eq!(ios[6].offset, 8192, "each file keeps its position");
    }

    #[test]
    fn files_are_chosen_at_random_and_kept() {
        let files = (0..4).map(|i| file(i, 0, 1 << 20)).collect();
        let mut stream = reads(source(0, 4096), files);
        stream.file_choice = FileChoice::Random { every: 5 };
        let ios = take(&stream, 20_000);
        let mut counts = [0u32; 4];
        for run in ios.chunks(5) {
            assert!(run.iter().all(|io| io.file == run[0].file));
            counts[run[0].file as usize] += 1;
        }
        // Binomial, mean 1000, deviation 27.
        assert!(counts.iter().all(|c| (880..1120).contains(c)), "{counts:?}");
    }

    #[test]
    fn files_are_finished_one_after_the_other() {
        for random_percent in [0, 100] {
            let files = vec![
                file(0, 0, 4 * 4096),
                file(1, 4096, 2 * 4096),
                file(2, 0, 3 * 4096),
            ];
            let mut stream = reads(source(random_percent, 4096), files);
            stream.file_choice = FileChoice::Sequential {};
            let mut ios = take(&stream, 18);
            let order: Vec<_> = ios.iter().map(|io| io.file).collect();
            assert_eq!(
                order,
                [0, 0, 0, 0, 1, 1, 2, 2, 2, 0, 0, 0, 0, 1, 1, 2, 2, 2]
            );
            ios[..4].sort_by_key(|io| io.offset);
            assert_eq!(
                ios[..4]
                    .iter()
                    .map(|io| io.offset / 4096)
                    .collect::<Vec<_>>(),
                [0, 1, 2, 3]
            );
        }
    }

    #[test]
    fn a_file_with_holes_is_finished_at_its_end() {
        let mut stream = reads(
            OpPattern {
                stride_bytes: 4096,
                ..source(0, 4096)
            },
            vec![file(0, 0, 5 * 4096), file(1, 0, 5 * 4096)],
        );
        stream.file_choice = FileChoice::Sequential {};
        let order: Vec<_> = take(&stream, 9).iter().map(|io| io.file).collect();
        assert_eq!(order, [0, 0, 0, 1, 1, 1, 0, 0, 0]);
    }
}
