//! A stream's file, open for so many I/Os.
//!
//! Knows how many are left until it is closed, and since when it is open. Knows no I/O and no clock.

use std::fs::File;

use loadstone_io::target::ReopenedTarget;
use loadstone_plan::Connection;

/// The only file of a stream that opens it again and again.
#[derive(Debug)]
pub struct ConnectedFile {
    /// What is opened.
    pub target: ReopenedTarget,
    plan: Connection,
    /// I/Os until the close.
    left: u32,
    /// The open file, and when its open began.
    open: Option<(File, u64)>,
}

impl ConnectedFile {
    /// Before the first open.
    #[must_use]
    pub fn new(plan: Connection, target: ReopenedTarget) -> Self {
        Self {
            target,
            left: plan.ios,
            plan,
            open: None,
        }
    }

    /// Counts an I/O that was issued; true when the connection ends with it.
    #[inline]
    pub fn spend(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// It is open, since an open that began then.
    pub fn begin(&mut self, file: File, begun_ns: u64) {
        self.open = Some((file, begun_ns));
        self.left = self.plan.ios;
    }

    /// What is to be closed, and when its open began; none before the first open.
    pub fn end(&mut self) -> Option<(File, u64)> {
        self.open.take()
    }
}
