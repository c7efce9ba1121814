//! What a stream may still issue.
//!
//! Knows I/Os and bytes, either without limit. Knows no I/O.

/// No limit.
pub const ANY: u64 = u64::MAX;

/// I/Os and bytes a stream may still issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    ops: u64,
    bytes: u64,
}

impl Left {
    /// So many; [`ANY`]: without limit.
    #[must_use]
    pub fn new(ops: u64, bytes: u64) -> Self {
        Self { ops, bytes }
    }

    /// I/Os; [`ANY`]: without limit.
    #[inline(always)]
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.ops
    }

    /// Its I/Os are counted.
    #[inline(always)]
    #[must_use]
    pub fn counts_ops(&self) -> bool {
        self.ops != ANY
    }

    /// All its I/Os were issued.
    #[inline(always)]
    #[must_use]
    pub fn is_out_of_ops(&self) -> bool {
        self.ops == 0
    }

    /// Nothing is left.
    #[inline]
    #[must_use]
    pub fn is_through(&self) -> bool {
        self.ops == 0 || self.bytes == 0
    }

    /// An I/O of so many bytes may be issued.
    #[inline(always)]
    #[must_use]
    pub fn fits(&self, bytes: u32) -> bool {
        u64::from(bytes) <= self.bytes
    }

    /// An I/O that fits is issued. Not even bytes without limit come to an end: they
    /// last for centuries.
    #[inline(always)]
    pub fn spend_bytes(&mut self, bytes: u32) {
        self.bytes = self.bytes.wrapping_sub(u64::from(bytes));
    }

    /// As many of the bytes as are left.
    #[inline]
    pub fn spend_bytes_up_to(&mut self, bytes: u32) {
        self.bytes = self.bytes.saturating_sub(u64::from(bytes));
    }

    /// I/Os are issued.
    #[inline(always)]
    pub fn spend_ops(&mut self, count: u32) {
        if self.counts_ops() {
            self.ops = self.ops.saturating_sub(u64::from(count));
        }
    }

    /// Another pass begins, of so many bytes.
    pub fn begin_pass(&mut self, bytes: u64) {
        self.bytes = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_without_limit_does_not_end() {
        let mut left = Left::new(ANY, ANY);
        left.spend_ops(7);
        left.spend_bytes(u32::MAX);
        assert!(!left.counts_ops() && !left.is_through() && left.fits(u32::MAX));
        assert_eq!(left.ops(), ANY);
    }

    #[test]
    fn the_last_io_has_to_fit() {
        let mut left = Left::new(2, 10);
        assert!(left.fits(10) && !left.fits(11));
        left.spend_bytes(4);
        left.spend_ops(1);
        assert!(left.fits(6) && !left.fits(7) && !left.is_through());
        left.spend_bytes_up_to(100);
        assert!(left.is_through() && !left.is_out_of_ops());
        left.begin_pass(3);
        left.spend_ops(2);
        assert!(left.is_out_of_ops() && left.fits(3));
    }
}
