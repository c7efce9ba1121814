//! Slots: the I/Os a worker can have in flight, and the counters of its streams.
//!
//! Knows one thread writes them and that another may look at them when the first is
//! stuck in a system call. Knows nothing of what is done with them.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;

use crate::rows::ops_of;
use loadstone_base::ops::{AnyOp, FileOp, OpKind, FILE_OPS, OPS};
use loadstone_io::memory::look_at;
use loadstone_plan::Stream;
use loadstone_verification::verify::verifier::Transfer;

/// `handed_ns` of a free slot. Not 0: a virtual clock starts there.
pub const NOT_HANDED: u64 = u64::MAX;

/// One I/O that is free to be issued or in flight. One cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Slot {
    /// When the I/O should have started.
    pub intended_ns: u64,
    /// When the worker picked it up.
    pub picked_ns: u64,
    /// When it was handed to the kernel; [`NOT_HANDED`] while the slot is free.
    pub handed_ns: u64,
    /// Byte offset in the target.
    pub offset: u64,
    /// Bytes asked for.
    pub len: u32,
    /// Even row of its cell and operation.
    pub row: u32,
    /// Index into the worker's streams.
    pub stream: u32,
    /// Index into the Plan's targets.
    pub target: u32,
    /// Address of its buffer.
    pub buffer: usize,
    /// Operation.
    pub op: OpKind,
    /// Its priority, where it is not its worker's.
    pub priority: Option<u16>,
    /// The buffer has its base content: nothing was read into it since.
    pub filled: bool,
    /// Operation on a file by name, in place of `op`.
    pub file_op: Option<FileOp>,
}

impl Slot {
    /// A free slot of a stream.
    #[must_use]
    pub fn free(stream: u32, buffer: usize) -> Self {
        Self {
            intended_ns: 0,
            picked_ns: 0,
            handed_ns: NOT_HANDED,
            offset: 0,
            len: 0,
            row: 0,
            stream,
            target: 0,
            buffer,
            op: OpKind::Read,
            priority: None,
            filled: false,
            file_op: None,
        }
    }

    /// The I/O for its stream's verifier; `number` counts the stream's slots.
    #[inline]
    #[must_use]
    pub fn transfer(&self, number: u32) -> Transfer {
        Transfer {
            slot: number,
            op: self.op,
            target: self.target,
            offset: self.offset,
            len: self.len,
        }
    }

    /// Name of the operation.
    #[must_use]
    pub fn op_name(&self) -> &'static str {
        self.file_op.map_or(self.op.name(), FileOp::name)
    }
}

/// How often one operation on files was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Begun.
    pub issued: u64,
    /// Ended without error.
    pub completed: u64,
    /// Ended with an error.
    pub failed: u64,
}

/// What a stream counted. In this order: what every I/O counts lies together.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Counters {
    /// I/Os issued, by operation.
    pub issued: [u64; OPS],
    /// Completed without error.
    pub completed: [u64; OPS],
    /// Completed with an error.
    pub failed: [u64; OPS],
    /// Issued at depth 1, 2, 4, 8, 16, 32, 64 and more.
    pub depth: [u64; 7],
    /// Start, end of the ramp and end since the run's origin; 0 while unknown.
    pub started_ns: u64,
    /// See `started_ns`.
    pub ramp_end_ns: u64,
    /// Operations on files by name.
    pub file_ops: [Tally; FILE_OPS],
}

impl Counters {
    /// Operations that have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        let ios = self.completed.iter().chain(&self.failed).sum::<u64>();
        let of_files = self.file_ops.iter();
        ios + of_files
            .map(|tally| tally.completed + tally.failed)
            .sum::<u64>()
    }

    /// Operations on files, by name; none for a stream that does none.
    #[must_use]
    pub fn file_ops(&self, stream: &Stream) -> Option<BTreeMap<&'static str, Tally>> {
        if stream.tree.is_none() && stream.connection.is_none() {
            return None;
        }
        let files = ops_of(stream).into_iter().filter_map(|op| match op {
            AnyOp::File(op) => Some((op.name(), self.file_ops[op.index()])),
            AnyOp::Io(_) => None,
        });
        Some(files.collect())
    }
}

/// Memory of one worker that the main thread may read when the worker is lost.
#[derive(Debug)]
pub struct Shared<T>(UnsafeCell<Box<[T]>>);

// SAFETY: `slice_mut` is used by the owning worker only; `copy` has the kernel read.
unsafe impl<T: Copy + Send> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// Takes the elements.
    #[must_use]
    pub fn new(items: Vec<T>) -> Self {
        Self(UnsafeCell::new(items.into_boxed_slice()))
    }

    /// The elements, for the owner.
    ///
    /// # Safety
    /// Only one thread may ever call this, and it may hold one such slice at a time.
    #[allow(clippy::mut_from_ref, reason = "single writer by contract")]
    #[must_use]
    pub unsafe fn slice_mut(&self) -> &mut [T] {
        // SAFETY: by the caller's promise there is no other mutable reference.
        unsafe { &mut *self.0.get() }
    }

    /// A copy of element `index`, for a thread that looks at a worker it has given up.
    #[must_use]
    pub fn copy(&self, index: usize) -> T {
        assert!(index < self.len());
        // SAFETY: the box is never replaced; the index was checked; elements are Copy and
        // valid for any mix of their writes.
        unsafe { look_at((*self.0.get()).as_ptr().add(index)) }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        // SAFETY: the length never changes.
        unsafe { (&*self.0.get()).len() }
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Column of a depth or of a batch counter: floor of the binary logarithm, at most 6.
#[inline]
#[must_use]
pub fn depth_column(depth: u32) -> usize {
    (31 - depth.max(1).leading_zeros()).min(6) as usize
}

/// Adds I/Os issued at depths `from + 1 ..= to` to their columns.
#[inline]
pub fn count_depths(columns: &mut [u64; 7], from: u32, to: u32) {
    let mut depth = from;
    while depth < to {
        let column = depth_column(depth + 1);
        let last = if column == 6 {
            to
        } else {
            to.min((2 << column) - 1)
        };
        columns[column] += u64::from(last - depth);
        depth = last;
    }
}

/// Column of a batch size: 0, up to 4, 8, 16, 32, 64, more.
#[inline]
#[must_use]
pub fn batch_column(size: u32) -> usize {
    match size {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_counted_in_runs_equal_depths_counted_one_by_one() {
        for from in 0..140 {
            for to in from..150 {
                let (mut runs, mut single) = ([0; 7], [0; 7]);
                count_depths(&mut runs, from, to);
                (from + 1..=to).for_each(|depth| single[depth_column(depth)] += 1);
                assert_eq!(runs, single, "{from}..{to}");
            }
        }
    }
}
