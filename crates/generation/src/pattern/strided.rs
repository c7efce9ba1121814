//! Windows that move over a file: fio's `zonemode=strided`.
//!
//! Knows where the window of each file is and when it moves on. Knows no order of
//! addresses: inside its window an operation does what it would do on a whole file.

use loadstone_plan::{self as plan, FileUse};

/// The windows of a stream's files.
#[derive(Debug, Clone)]
pub(crate) struct Windows {
    plan: plan::Strided,
    /// Whole ranges.
    files: Box<[FileUse]>,
    /// Where the windows begin.
    begins: Box<[u64]>,
    /// Bytes since a window moved.
    used: u64,
}

impl Windows {
    pub(crate) fn new(plan: plan::Strided, files: &[FileUse]) -> Self {
        Self {
            plan,
            files: files.into(),
            begins: files.iter().map(|file| file.offset_bytes).collect(),
            used: 0,
        }
    }

    /// The files cut down to their windows.
    pub(crate) fn files(&self) -> Vec<FileUse> {
        (0..self.files.len())
            .map(|file| self.window(file))
            .collect()
    }

    fn window(&self, file: usize) -> FileUse {
        let whole = self.files[file];
        let end = whole.offset_bytes + whole.length_bytes;
        FileUse {
            offset_bytes: self.begins[file],
            length_bytes: self.plan.range_bytes.min(end - self.begins[file]),
            ..whole
        }
    }

    pub(crate) fn used(&mut self, len: u32) {
        self.used += u64::from(len);
    }

    /// The window of `file`, when it has to move before the next I/O. One in which not
    /// even `smallest` fits is left out.
    #[inline]
    pub(crate) fn moved(&mut self, file: usize, smallest: u32) -> Option<FileUse> {
        if self.used < self.plan.zone_bytes {
            return None;
        }
        self.used = 0;
        let whole = self.files[file];
        let end = whole.offset_bytes + whole.length_bytes;
        let step = self.plan.range_bytes.saturating_add(self.plan.skip_bytes);
        let begin = self.begins[file].saturating_add(step);
        let fits = begin.saturating_add(u64::from(smallest)) <= end;
        self.begins[file] = if fits { begin } else { whole.offset_bytes };
        Some(self.window(file))
    }
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{file, four_or_sixteen, offsets_kib, reads, source, KIB};
    use crate::pattern::Generator;
    use loadstone_plan::{self as plan, FileUse, OpPattern, Stream};

    fn strided(source: OpPattern, plan: [u64; 3], file: FileUse) -> Stream {
        let [zone_bytes, range_bytes, skip_bytes] = plan.map(|kib| kib * KIB);
        let mut stream = reads(source, vec![file]);
        stream.pattern.strided = Some(plan::Strided {
            zone_bytes,
            range_bytes,
            skip_bytes,
        });
        stream
    }

    #[test]
    fn windows_move_over_the_file_and_start_again() {
        let sequential = || source(0, 4096);
        let stream = strided(sequential(), [8, 16, 4], file(0, 4 * KIB, 56 * KIB));
        // Windows at 4, 24 and 44 KiB, two reads in each.
        assert_eq!(offsets_kib(&stream, 7), [4, 8, 24, 28, 44, 48, 4]);
        let stream = strided(sequential(), [16, 8, 0], file(0, 0, 16 * KIB));
        assert_eq!(
            offsets_kib(&stream, 9),
            [0, 4, 0, 4, 8, 12, 8, 12, 0],
            "more I/O than there are bytes in a window"
        );
        // The last window is 4 KiB long, the one after it would have 2.
        let stream = strided(sequential(), [8, 8, 0], file(0, 0, 14 * KIB));
        assert_eq!(offsets_kib(&stream, 5), [0, 4, 8, 8, 0]);
    }

    #[test]
    fn random_reads_touch_all_of_each_window() {
        for source in [source(100, 4096), four_or_sixteen()] {
            let (blocks, windows) = (64, 4);
            let stream = strided(
                source,
                [blocks * 4, blocks * 4, 0],
                file(0, 0, windows * blocks * 4 * KIB),
            );
            let mut generator = Generator::new(&stream);
            for window in [0, 1, 2, 3, 0] {
                let (mut counts, mut left) = (vec![0; blocks as usize], blocks);
                while left > 0 {
                    let io = generator.next();
                    let first = io.offset / 4096 - window * blocks;
                    for block in first..first + u64::from(io.len) / 4096 {
                        counts[block as usize] += 1;
                        left -= 1;
                    }
                }
                assert_eq!(counts, vec![1; blocks as usize], "window {window}");
            }
        }
    }
}
