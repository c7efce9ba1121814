//! Which file the next I/O goes to.
//!
//! Knows the lengths of a stream's files, and how far the one that is to be finished is.
//! Knows no addresses.

use loadstone_base::rng::Rng;
use loadstone_plan::{self as plan, FileChoice};

/// The choice of a file.
#[derive(Debug, Clone)]
pub(super) struct Files {
    choice: FileChoice,
    lengths: Box<[u64]>,
    /// Those it is at work on; without a limit, all.
    open: Vec<CurrentFile>,
    /// Most of them.
    most: usize,
    /// Index of the last choice in `open`.
    current: u32,
    /// I/Os left before the next choice.
    left: u32,
    /// The file that is begun when one is finished.
    next: u32,
    /// A file is finished before another is begun: progress must be told.
    pub(super) finishes: bool,
}

/// Where an I/O was in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walked {
    /// The next one of its walk would begin again.
    ToTheEnd,
    /// Somewhere in a walk.
    Within,
    /// There is no walk.
    AtRandom,
}

/// A file it is at work on.
#[derive(Debug, Clone, Copy)]
struct CurrentFile {
    file: u32,
    bytes: u64,
}

impl Files {
    pub(super) fn new(stream: &plan::Stream) -> Self {
        let count = stream.files.len() as u32;
        let sequential = matches!(stream.file_choice, FileChoice::Sequential {});
        let most = if sequential { 1 } else { count };
        let most = stream.open_files.unwrap_or(most).min(count);
        Self {
            choice: stream.file_choice,
            lengths: stream.files.iter().map(|file| file.length_bytes).collect(),
            open: (0..most)
                .map(|file| CurrentFile { file, bytes: 0 })
                .collect(),
            most: most as usize,
            // The first round-robin step brings file 0. A stream in a tree has none.
            current: most.saturating_sub(1),
            left: 0,
            next: if most < count { most } else { 0 },
            finishes: most < count,
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
        let count = self.open.len() as u32;
        let following = if self.current + 1 == count {
            0
        } else {
            self.current + 1
        };
        match self.choice {
            FileChoice::Sequential {} => return self.open[0].file,
            _ if self.left > 0 => {}
            FileChoice::RoundRobin { every } => {
                (self.current, self.left) = (following, every.max(1))
            }
            FileChoice::Random { every } => {
                (self.current, self.left) = (rng.below(u64::from(count)) as u32, every.max(1));
            }
        }
        self.left -= 1;
        self.open[self.current as usize].file
    }

    /// Told after each I/O when files are finished before others are begun: a walk through a file
    /// ends at its end (reads and writes have one each, and the first to get there ends both), all
    /// else with as many bytes as it has.
    pub(super) fn used(&mut self, len: u32, walk: Walked) {
        let open = &mut self.open[self.current as usize];
        open.bytes += u64::from(len);
        let is_over = match walk {
            Walked::ToTheEnd => true,
            Walked::Within => false,
            Walked::AtRandom => open.bytes >= self.lengths[open.file as usize],
        };
        if is_over {
            self.finished();
        }
    }

    /// Begins the files whose turn it is. One that comes again while it is still at work on
    /// holds up the others, so that all have as many turns.
    fn finished(&mut self) {
        let (before, mut at) = (self.open.len(), self.current as usize);
        self.open.remove(at);
        while self.open.len() < self.most && self.open.iter().all(|open| open.file != self.next) {
            let file = self.next;
            self.open.insert(at, CurrentFile { file, bytes: 0 });
            self.next = (file + 1) % self.lengths.len() as u32;
            at += 1;
        }
        // In turn, what follows in the list comes next, not what took this one's place.
        if self.open.len() < before {
            self.current = self
                .current
                .checked_sub(1)
                .unwrap_or(self.open.len() as u32 - 1);
        }
        self.left = 0;
    }
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{file, mixed, reads, source, take};
    use loadstone_base::ops::Op;
    use loadstone_plan::{FileChoice, OpPattern};

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
    fn a_file_is_begun_when_one_of_those_it_is_at_work_on_is_finished() {
        let files = vec![
            file(0, 0, 3 * 4096),
            file(1, 0, 4096),
            file(2, 0, 2 * 4096),
            file(3, 0, 4096),
        ];
        let mut stream = reads(source(0, 4096), files);
        stream.open_files = Some(2);
        let order: Vec<_> = take(&stream, 14).iter().map(|io| io.file).collect();
        assert_eq!(order[..7], [0, 1, 0, 2, 0, 2, 3]);
        let again = |file| order.iter().filter(|&&one| one == file).count();
        assert_eq!((0..4).map(again).sum::<usize>(), 14);
        stream.file_choice = FileChoice::Random { every: 2 };
        let order: Vec<_> = take(&stream, 7000).iter().map(|io| io.file).collect();
        let counts = [0, 1, 2, 3].map(|file| order.iter().filter(|&&one| one == file).count());
        // Each is finished as often as the others, but for those at work on.
        for (count, blocks) in counts.into_iter().zip([3, 1, 2, 1]) {
            assert!(count.abs_diff(1000 * blocks) <= 3 * blocks, "{counts:?}");
        }
    }

    /// 990300-025: as fio, whose file is done where one of its directions has no place left.
    #[test]
    fn reads_and_writes_each_walk_through_a_file_before_the_next_is_begun() {
        let files = vec![file(0, 0, 50 * 4096), file(1, 0, 50 * 4096)];
        let mut stream = mixed([70, 30, 0], source(0, 4096), files);
        stream.file_choice = FileChoice::Sequential {};
        let ios = take(&stream, 200);
        let first = ios.iter().take_while(|io| io.file == 0).count();
        let reads = ios[..first].iter().filter(|io| io.op == Op::Read).count();
        // Binomial: about 21 writes beside 50 reads.
        assert_eq!(reads, 50);
        assert!((60..90).contains(&first), "{first}");
        assert_eq!(ios[first].file, 1);
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
