//! Windows that move over a file: fio's `zonemode=strided`.
//!
//! Knows where the window of each file is and when it moves on. Knows no order of
//! addresses: inside its window an operation does what it would do on a whole file.

use crate::plan::{self, FileUse};

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
