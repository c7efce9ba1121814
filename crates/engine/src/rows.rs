//! Which row of a worker's tables belongs to which cell, operation and ramp state.
//!
//! Knows numbering. Each (cell, operation) pair has two rows: the even one counts for
//! the result, the odd one after it is the ramp's.

use crate::backend::Op;
use crate::ops::{AnyOp, FileOp, CODES};
use crate::plan::{FileOperation, Plan, Stream, TreeUse};

/// Meaning of one pair of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Index into the Plan's cells.
    pub cell: u32,
    /// Operation.
    pub op: AnyOp,
}

/// The pairs of one worker, in the order of its rows.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    pairs: Vec<Pair>,
    /// Per (cell, op): its pair; `u32::MAX` where there is none.
    index: Vec<[u32; CODES]>,
}

/// Operations a stream may do.
#[must_use]
pub fn ops_of(stream: &Stream) -> Vec<AnyOp> {
    if let Some(in_tree) = &stream.tree {
        return ops_in_tree(stream, in_tree);
    }
    let pattern = &stream.pattern;
    let mut ops = Vec::with_capacity(4);
    if pattern.read_percent > 0 {
        ops.push(AnyOp::Io(Op::Read));
    }
    if pattern.write_percent > 0 || (pattern.trim_then_write && pattern.trim_percent > 0) {
        ops.push(AnyOp::Io(Op::Write));
    }
    if pattern.trim_percent > 0 {
        ops.push(AnyOp::Io(Op::Trim));
    }
    let flush = &stream.flush;
    if flush.fsync_every > 0 || flush.fdatasync_every > 0 || flush.at_end {
        ops.push(AnyOp::Io(Op::Sync));
    }
    ops
}

/// What is asked for in a tree, and what has to be done for it.
fn ops_in_tree(stream: &Stream, in_tree: &TreeUse) -> Vec<AnyOp> {
    let mut ops = ops_of_operation(stream, in_tree);
    ops.extend(stream.flush.on_close.then_some(AnyOp::Io(Op::Sync)));
    ops
}

fn ops_of_operation(stream: &Stream, in_tree: &TreeUse) -> Vec<AnyOp> {
    let (reads, writes) = (AnyOp::Io(Op::Read), AnyOp::Io(Op::Write));
    let files: &[FileOp] = match in_tree.operation {
        FileOperation::Transfer {
            random,
            delete_before,
            ..
        } => {
            let pattern = &stream.pattern;
            let mut ops = Vec::with_capacity(6);
            ops.extend((pattern.read_percent > 0).then_some(reads));
            ops.extend((pattern.write_percent > 0).then_some(writes));
            let makes = pattern.write_percent > 0 && !random;
            ops.extend(makes.then_some(AnyOp::File(FileOp::Create)));
            ops.extend([FileOp::Open, FileOp::Close].map(AnyOp::File));
            ops.extend(delete_before.then_some(AnyOp::File(FileOp::Delete)));
            return ops;
        }
        FileOperation::Create { fill: true } => {
            return vec![
                writes,
                AnyOp::File(FileOp::Create),
                AnyOp::File(FileOp::Open),
                AnyOp::File(FileOp::Close),
            ];
        }
        FileOperation::Copy { .. } => {
            let files = [
                FileOp::Create,
                FileOp::Open,
                FileOp::Close,
                FileOp::Delete,
                FileOp::Copy,
            ];
            let ios = [reads, writes];
            return ios.into_iter().chain(files.map(AnyOp::File)).collect();
        }
        FileOperation::Mkdir {} => &[FileOp::Mkdir],
        FileOperation::Rmdir {} => &[FileOp::Rmdir],
        FileOperation::Create { fill: false } => &[FileOp::Create, FileOp::Open, FileOp::Close],
        FileOperation::Delete {} => &[FileOp::Delete],
        FileOperation::Open {} => &[FileOp::Open, FileOp::Close],
        FileOperation::Getattr {} => &[FileOp::Getattr],
        FileOperation::Setattr {} => &[FileOp::Setattr],
        FileOperation::Access {} => &[FileOp::Access],
        FileOperation::Move { .. } => &[FileOp::Move],
    };
    files.iter().copied().map(AnyOp::File).collect()
}

/// Cells a stream's operations count for.
pub fn cells_of(stream: &Stream) -> impl Iterator<Item = u32> + '_ {
    let of_files = stream.files.iter().map(|file| file.cell);
    of_files.chain(stream.tree.iter().map(|in_tree| in_tree.cell))
}

impl Rows {
    /// The rows the streams of `worker` need.
    #[must_use]
    pub fn new(plan: &Plan, worker: u32) -> Self {
        let mut rows = Self {
            pairs: Vec::new(),
            index: vec![[u32::MAX; CODES]; plan.cells.len()],
        };
        for stream in plan.streams.iter().filter(|stream| stream.worker == worker) {
            for op in ops_of(stream) {
                for cell in cells_of(stream) {
                    let entry = &mut rows.index[cell as usize][usize::from(op.code())];
                    if *entry == u32::MAX {
                        *entry = rows.pairs.len() as u32;
                        rows.pairs.push(Pair { cell, op });
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
    pub fn row(&self, cell: u32, op: AnyOp) -> u32 {
        let pair = self.index[cell as usize][usize::from(op.code())];
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
