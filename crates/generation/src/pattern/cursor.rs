//! One operation's place in one file.
//!
//! Knows a range and how far an operation has come in it. Knows no order of addresses and
//! no sizes.

use loadstone_plan as plan;

/// One operation's place in one file.
#[derive(Debug, Clone)]
pub(super) struct FileCursor {
    /// The file's range.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Places for random addresses, at least 1.
    pub(super) blocks: u64,
    /// End of the last I/O: where a sequential one goes.
    pub(super) position: u64,
    /// Start of the last I/O.
    pub(super) start: u64,
    /// I/Os left in the run.
    pub(super) run_left: u32,
}

impl FileCursor {
    pub(super) fn new(
        file: &plan::FileUse,
        align_bytes: u64,
        smallest: u32,
        stride_bytes: i64,
    ) -> Self {
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
    pub(super) fn last_place(&self, len: u32, align_bytes: u64) -> (u64, u32) {
        let range = self.end - self.begin;
        let len = len.min(clamp_len(range));
        (
            self.begin + (range - u64::from(len)) / align_bytes * align_bytes,
            len,
        )
    }
}

/// A length that is at most a range's.
pub(super) fn clamp_len(range_bytes: u64) -> u32 {
    u32::try_from(range_bytes).unwrap_or(u32::MAX)
}
