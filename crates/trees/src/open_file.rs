//! A file of a tree that is open for transfers.
//!
//! Knows how much of it was done, and when it is left. Knows no system call.

use super::registry::KnownFile;
use super::take::Taken;
use loadstone_base::ops::Op;
use loadstone_base::rng::Rng;

/// A file that is open for transfers.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenTreeFile {
    pub fd: i32,
    pub taken: Taken,
    /// As it is now.
    pub left: KnownFile,
    /// Full size.
    pub full_bytes: u64,
    /// Where a sequential transfer goes on.
    pub position: u64,
    pub done_bytes: u64,
    pub done_transfers: u64,
    /// Bytes and transfers after which it is left.
    pub most_bytes: u64,
    pub most_transfers: u64,
}

impl OpenTreeFile {
    pub fn is_done(&self) -> bool {
        self.done_bytes >= self.most_bytes || self.done_transfers >= self.most_transfers
    }

    /// Place and length of a transfer of up to `bytes` within `limit`; none at the end.
    pub fn next(&self, bytes: u32, limit: u64, random: bool, rng: &mut Rng) -> Option<(u64, u32)> {
        let wanted = u64::from(bytes);
        let offset = match random {
            false => self.position,
            true if wanted > limit => 0,
            true => rng.below(limit / wanted) * wanted,
        };
        let bytes = wanted.min(limit.saturating_sub(offset));
        (bytes > 0).then_some((offset, bytes as u32))
    }

    pub fn moved(&mut self, op: Op, offset: u64, bytes: u32, moved: u32) {
        self.position = offset + u64::from(if moved > 0 { moved } else { bytes });
        self.done_bytes += u64::from(bytes);
        self.done_transfers += 1;
        if op == Op::Write {
            let end = offset + u64::from(moved);
            self.left.size_bytes = self.left.size_bytes.max(end);
        }
    }
}
