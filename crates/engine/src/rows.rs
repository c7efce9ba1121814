//! Which row of a worker's tables belongs to which cell, operation and ramp state.
//!
//! Knows numbering. Each (cell, operation) pair has two rows: the even one counts for
//! the result, the odd one after it is the ramp's.

use crate::backend::{Op, OPS};
use crate::plan::{Plan, Stream};

/// Meaning of one pair of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Index into the Plan's cells.
    pub cell: u32,
    /// Operation.
    pub op: Op,
}

/// The pairs of one worker, in the order of its rows.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    pairs: Vec<Pair>,
    /// Per (cell, op): its pair; `u32::MAX` where there is none.
    index: Vec<[u32; OPS]>,
}

/// Operations a stream may do.
#[must_use]
pub fn ops_of(stream: &Stream) -> Vec<Op> {
    let pattern = &stream.pattern;
    let mut ops = Vec::with_capacity(OPS);
    if pattern.read_percent > 0 {
        ops.push(Op::Read);
    }
    if pattern.write_percent > 0 || (pattern.trim_then_write && pattern.trim_percent > 0) {
        ops.push(Op::Write);
    }
    if pattern.trim_percent > 0 {
        ops.push(Op::Trim);
    }
    let flush = &stream.flush;
    if flush.fsync_every > 0 || flush.fdatasync_every > 0 || flush.at_end {
        ops.push(Op::Sync);
    }
    ops
}

impl Rows {
    /// The rows the streams of `worker` need.
    #[must_use]
    pub fn new(plan: &Plan, worker: u32) -> Self {
        let mut rows = Self {
            pairs: Vec::new(),
            index: vec![[u32::MAX; OPS]; plan.cells.len()],
        };
        for stream in plan.streams.iter().filter(|stream| stream.worker == worker) {
            for op in ops_of(stream) {
                for file in &stream.files {
                    let entry = &mut rows.index[file.cell as usize][op as usize];
                    if *entry == u32::MAX {
                        *entry = rows.pairs.len() as u32;
                        rows.pairs.push(Pair {
                            cell: file.cell,
                            op,
                        });
                    }
                }
            }
        }
        rows
    }

    /// Number of rows: two for each pair.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len() * 2
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The even row of a cell and operation; `u32::MAX` when no stream uses it.
    #[must_use]
    pub fn row(&self, cell: u32, op: Op) -> u32 {
        let pair = self.index[cell as usize][op as usize];
        if pair == u32::MAX {
            u32::MAX
        } else {
            pair * 2
        }
    }

    /// What a row stands for, and whether it is the ramp's.
    #[must_use]
    pub fn meaning(&self, row: u32) -> (Pair, bool) {
        (self.pairs[row as usize / 2], row % 2 == 1)
    }
}
