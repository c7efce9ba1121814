//! Which row of a worker's tables belongs to which cell, operation and ramp state.
//!
//! Knows numbering. Each kind of I/O (cell, operation, priority) has two rows: the even one
//! counts for the result, the odd one after it is the ramp's.

use std::collections::BTreeMap;

use loadstone_base::ops::{AnyOp, FileOp, OpKind};
use loadstone_plan::{FileOperation, Plan, Stream, TreeUse};

/// Meaning of one pair of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Index into the Plan's cells.
    pub cell: u32,
    /// Operation.
    pub op: AnyOp,
    /// Priority of the I/Os; 0: the one the engine was started with.
    pub priority: u16,
}

/// The pairs of one worker, in the order of its rows.
#[derive(Debug, Clone, Default)]
pub struct WorkerRows {
    pairs: Vec<Pair>,
    /// The pair of a cell, the code of an operation and a priority. Only those of these
    /// streams: of thousands of workers none may need memory for the cells of all.
    index: BTreeMap<(u32, u8, u16), u32>,
    /// The worker's priority.
    usual: u16,
}

/// Operations a stream may do.
#[must_use]
pub fn ops_of(stream: &Stream) -> Vec<AnyOp> {
    if let Some(in_tree) = &stream.tree {
        return ops_in_tree(stream, in_tree);
    }
    let pattern = &stream.pattern;
    let mut ops = Vec::with_capacity(4);
    let beside = stream.verify.is_some_and(|its| its.reads_beside_writes());
    let headers = stream.headers.as_ref();
    let back = headers.is_some_and(|its| its.read_back);
    if pattern.read_percent > 0 || beside || back {
        ops.push(AnyOp::Io(OpKind::Read));
    }
    if pattern.write_percent > 0 || (pattern.trim_then_write && pattern.trim_percent > 0) {
        ops.push(AnyOp::Io(OpKind::Write));
    }
    if pattern.trim_percent > 0 || headers.is_some_and(|its| its.trim.is_some()) {
        ops.push(AnyOp::Io(OpKind::Trim));
    }
    let flush = &stream.flush;
    if flush.fsync_every > 0 || flush.fdatasync_every > 0 || flush.at_end {
        ops.push(AnyOp::Io(OpKind::Sync));
    }
    if stream.connection.is_some() {
        ops.extend([FileOp::Open, FileOp::Close, FileOp::Connection].map(AnyOp::File));
    }
    ops
}

/// What is asked for in a tree, and what has to be done for it.
fn ops_in_tree(stream: &Stream, in_tree: &TreeUse) -> Vec<AnyOp> {
    let mut ops = ops_of_operation(stream, in_tree);
    let beside = stream.verify.is_some_and(|its| its.reads_beside_writes());
    let reads = AnyOp::Io(OpKind::Read);
    ops.extend((beside && !ops.contains(&reads)).then_some(reads));
    ops.extend(stream.flush.on_close.then_some(AnyOp::Io(OpKind::Sync)));
    ops
}

fn ops_of_operation(stream: &Stream, in_tree: &TreeUse) -> Vec<AnyOp> {
    let (reads, writes) = (AnyOp::Io(OpKind::Read), AnyOp::Io(OpKind::Write));
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
        FileOperation::Open {} | FileOperation::Close {} => &[FileOp::Open, FileOp::Close],
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

impl WorkerRows {
    /// The rows that these streams of the Plan need.
    #[must_use]
    pub fn new(plan: &Plan, streams: &[u32]) -> Self {
        let mut rows = Self::default();
        for stream in streams.iter().map(|&id| &plan.streams[id as usize]) {
            rows.usual = plan.workers[stream.worker as usize].io_priority;
            for op in ops_of(stream) {
                for cell in cells_of(stream) {
                    rows.add(cell, op, rows.usual);
                }
            }
            for share in &stream.priorities {
                for cell in cells_of(stream) {
                    rows.add(cell, AnyOp::Io(share.op.op().kind()), share.priority);
                }
            }
        }
        rows
    }

    fn add(&mut self, cell: u32, op: AnyOp, priority: u16) {
        let kind = (cell, op.code(), priority);
        self.index.entry(kind).or_insert_with(|| {
            self.pairs.push(Pair { cell, op, priority });
            self.pairs.len() as u32 - 1
        });
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

    /// The even row of a cell and operation with the worker's priority; `u32::MAX` when no
    /// stream uses it.
    #[must_use]
    pub fn row(&self, cell: u32, op: AnyOp) -> u32 {
        self.row_at(cell, op, self.usual)
    }

    /// The even row of a cell, an operation and a priority; `u32::MAX` when no stream uses it.
    #[must_use]
    pub fn row_at(&self, cell: u32, op: AnyOp, priority: u16) -> u32 {
        let pair = self.index.get(&(cell, op.code(), priority));
        pair.map_or(u32::MAX, |pair| pair * 2)
    }

    /// What a row stands for, and whether it is the ramp's.
    #[must_use]
    pub fn meaning(&self, row: u32) -> (Pair, bool) {
        (self.pairs[row as usize / 2], row % 2 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::{plain, Backend, Cell, FileUse, Worker};

    /// So many workers, each with a stream and a cell of its own.
    fn apart(workers: u32) -> Plan {
        let stream = |worker| Stream {
            worker,
            files: vec![FileUse {
                cell: worker,
                ..plain::stream().files[0]
            }],
            ..plain::stream()
        };
        let plan = plain::plan(Backend::Psync {}, (0..workers).map(stream).collect());
        let cell = |_| plan.cells[0];
        let worker = |_| plan.workers[0].clone();
        Plan {
            cells: (0..workers).map(cell).collect::<Vec<Cell>>(),
            workers: (0..workers).map(worker).collect::<Vec<Worker>>(),
            ..plan
        }
    }

    #[test]
    fn thousands_of_workers_have_the_rows_of_their_own_streams_and_no_others() {
        let plan = apart(4096);
        let all = plan.streams_by_worker();
        let rows: Vec<WorkerRows> = all.iter().map(|own| WorkerRows::new(&plan, own)).collect();
        assert_eq!(
            rows.iter().map(|rows| rows.index.len()).sum::<usize>(),
            4096
        );
        let read = AnyOp::Io(OpKind::Read);
        for (worker, rows) in (0..).zip(&rows) {
            assert_eq!(all[worker as usize], [worker]);
            assert_eq!((rows.len(), rows.row(worker, read)), (2, 0));
            assert_eq!(
                rows.meaning(1),
                (
                    Pair {
                        cell: worker,
                        op: read,
                        priority: 0
                    },
                    true
                )
            );
            assert_eq!(rows.row(worker ^ 1, read), u32::MAX);
        }
    }

    #[test]
    fn rows_are_in_the_order_of_streams_and_operations() {
        let stream = |shares, cells: [u32; 2]| Stream {
            files: cells
                .map(|cell| FileUse {
                    cell,
                    ..plain::stream().files[0]
                })
                .into(),
            pattern: plain::pattern(shares, &plain::order(100, 4096)),
            ..plain::stream()
        };
        let streams = vec![stream([50, 50, 0], [7, 3]), stream([0, 90, 10], [3, 5])];
        let plan = plain::plan(Backend::Null {}, streams);
        let rows = WorkerRows::new(&plan, &[0, 1]);
        let meanings: Vec<(u32, &str)> = (0..rows.len() as u32)
            .step_by(2)
            .map(|row| (rows.meaning(row).0.cell, rows.meaning(row).0.op.name()))
            .collect();
        let expected = [
            (7, "read"),
            (3, "read"),
            (7, "write"),
            (3, "write"),
            (5, "write"),
            (3, "trim"),
            (5, "trim"),
        ];
        assert_eq!(meanings, expected);
        assert_eq!(rows.row(5, AnyOp::Io(OpKind::Write)), 8);
        assert_eq!(rows.row(7, AnyOp::Io(OpKind::Trim)), u32::MAX);
    }
}
