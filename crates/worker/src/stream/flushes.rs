//! A stream's flushes: those between its writes and those after its last I/O.
//!
//! Knows how many writes come before the next, and which files are still to be flushed at the end.
//! Knows no I/O.

use loadstone_base::ops::SyncKind;
use loadstone_plan::Flush;

/// Flushes of one kind: after so many writes, and how many of them are still to come.
#[derive(Debug, Clone, Copy)]
struct Every {
    kind: SyncKind,
    writes: u32,
    left: u32,
}

/// The flushes of one stream.
#[derive(Debug, Clone, Copy)]
pub struct Flushes {
    every: [Every; 2],
    /// One that comes before anything else, and of which file.
    due: Option<(u32, SyncKind)>,
    /// Files still to be flushed at the end, the last first.
    at_end: u32,
}

impl Flushes {
    /// Those of a stream with so many files.
    #[must_use]
    pub fn new(plan: &Flush, files: u32) -> Self {
        let every = |kind, writes| Every {
            kind,
            writes,
            left: writes,
        };
        Self {
            every: [
                every(SyncKind::File, plan.fsync_every),
                every(SyncKind::Data, plan.fdatasync_every),
            ],
            due: None,
            at_end: if plan.at_end { files } else { 0 },
        }
    }

    /// There are some between its writes.
    #[must_use]
    pub fn come_between(&self) -> bool {
        self.every.iter().any(|every| every.writes > 0)
    }

    /// Counts a write of a file towards the next.
    #[inline]
    pub fn note_write(&mut self, file: u32) {
        for every in &mut self.every {
            if every.writes > 0 {
                every.left -= 1;
                if every.left == 0 {
                    every.left = every.writes;
                    self.due = Some((file, every.kind));
                }
            }
        }
    }

    /// The one that comes before anything else.
    pub fn take_due(&mut self) -> Option<(u32, SyncKind)> {
        self.due.take()
    }

    /// Some are still to be made at the end.
    #[inline]
    #[must_use]
    pub fn are_left(&self) -> bool {
        self.at_end > 0
    }

    /// The next file to be flushed at the end.
    pub fn take_last(&mut self) -> Option<u32> {
        self.at_end = self.at_end.checked_sub(1)?;
        Some(self.at_end)
    }

    /// None is made at the end.
    pub fn leave_out(&mut self) {
        self.at_end = 0;
    }

    /// The file that is open in a tree has its part at the end: it is closed.
    pub fn close_at_end(&mut self) {
        self.at_end = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(fsync_every: u32, fdatasync_every: u32, at_end: bool) -> Flush {
        Flush {
            fsync_every,
            fdatasync_every,
            at_end,
            on_close: false,
        }
    }

    #[test]
    fn they_come_after_so_many_writes_and_once_for_each_file_at_the_end() {
        let mut flushes = Flushes::new(&plan(2, 3, true), 2);
        let due = [5, 6, 7, 8].map(|file| {
            flushes.note_write(file);
            flushes.take_due()
        });
        let (all, data) = (SyncKind::File, SyncKind::Data);
        assert_eq!(due, [None, Some((6, all)), Some((7, data)), Some((8, all))]);
        assert!(flushes.come_between() && flushes.are_left());
        assert_eq!(
            [(); 3].map(|()| flushes.take_last()),
            [Some(1), Some(0), None]
        );
    }

    #[test]
    fn none_is_made_that_was_not_asked_for() {
        let mut flushes = Flushes::new(&plan(0, 0, false), 2);
        flushes.note_write(0);
        assert_eq!((flushes.take_due(), flushes.take_last()), (None, None));
        assert!(!flushes.come_between());
    }
}
