//! One operation of one size at random places of one file, each place once per pass: most
//! load tests are nothing else.
//!
//! Knows the same order as the general way, and asks none of its questions: between two
//! system calls each of them shows (docs/performance.md, "The floor").

use super::cursor::FileCursor;
use super::permutation::PermutationWalk;
use super::NextIo;
use loadstone_base::ops::Op;

/// The source of such I/Os.
#[derive(Debug, Clone)]
pub(super) struct Plain {
    op: Op,
    len: u32,
    begin: u64,
    align_bytes: u64,
    walk: PermutationWalk,
}

impl Plain {
    /// None when the I/O is larger than the range.
    pub(super) fn new(
        op: Op,
        len: u32,
        cursor: &FileCursor,
        align_bytes: u64,
        walk: &PermutationWalk,
    ) -> Option<Self> {
        (cursor.begin + u64::from(len) <= cursor.end).then(|| Self {
            op,
            len,
            begin: cursor.begin,
            align_bytes,
            walk: walk.clone(),
        })
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> NextIo {
        NextIo {
            op: self.op,
            file: 0,
            offset: self.begin + self.walk.step() * self.align_bytes,
            len: self.len,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::pattern::tests::{file, mixed, reads, source, take, uniform};
    use crate::pattern::Generator;
    use loadstone_plan::FileUse;

    fn files() -> Vec<FileUse> {
        vec![file(0, 512, 777 * 4096 + 100)]
    }

    #[test]
    fn it_makes_the_same_ios_as_the_general_way() {
        let mut stream = mixed([0, 100, 0], source(100, 4096), files());
        stream.pattern.write.align_bytes = 512;
        for stream in [reads(source(100, 4096), files()), stream] {
            let mut general = Generator::new(&stream);
            assert!(general.plain.take().is_some());
            // Twice through all places, so that the second pass is compared as well.
            for next in take(&stream, 2 * 777 * 8) {
                assert_eq!(general.next(), next);
            }
        }
    }

    #[test]
    fn nothing_else_is_plain() {
        let of = |stream| Generator::new(&stream).plain.is_some();
        assert!(of(reads(source(100, 4096), files())));
        assert!(!of(reads(source(0, 4096), files())));
        assert!(!of(reads(source(50, 4096), files())));
        assert!(!of(reads(source(100, 4096), [files(), files()].concat())));
        assert!(!of(mixed([50, 50, 0], source(100, 4096), files())));
        let mut repeating = reads(source(100, 4096), files());
        repeating.pattern.read.random = uniform(true);
        assert!(!of(repeating));
        let mut trimming = mixed([0, 0, 100], source(100, 4096), files());
        assert!(of(trimming.clone()));
        trimming.pattern.trim_then_write = true;
        assert!(!of(trimming));
        // Larger than its range: the general way cuts it.
        assert!(!of(reads(source(100, 4096), vec![file(0, 0, 512)])));
    }
}
