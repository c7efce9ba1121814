//! Addresses, sizes and operations in the Plan: which I/O comes next.
//!
//! Knows the shape only, as `lib.rs` does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an I/O is and where it goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// Shares of the operations; they add up to 100.
    pub read_percent: u32,
    /// See `read_percent`.
    pub write_percent: u32,
    /// See `read_percent`.
    pub trim_percent: u32,
    /// A trim of a block is followed by a write of it.
    pub trim_then_write: bool,
    /// Order of addresses for reads, writes and trims.
    pub read: OpPattern,
    /// See `read`.
    pub write: OpPattern,
    /// See `read`.
    pub trim: OpPattern,
    /// I/O stays in a window that moves over each file; none: the whole range.
    #[serde(deserialize_with = "super::stated")]
    pub strided: Option<Strided>,
    /// I/Os by rows: each has its own size, operation and address. The shares and sizes
    /// above then say what the rows come to together, and the orders of addresses are not
    /// used. None: shares, sizes and addresses do not depend on each other.
    #[serde(deserialize_with = "super::stated")]
    pub rows: Option<Vec<Row>>,
}

impl Pattern {
    /// Whether anything is written.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.write_percent > 0 || self.trim_then_write
    }

    /// Order and sizes of what is written: a write that follows a trim is where that was.
    #[must_use]
    pub fn written(&self) -> &OpPattern {
        if self.trim_then_write {
            &self.trim
        } else {
            &self.write
        }
    }
}

/// One kind of I/O among several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its part of the I/Os; any unit.
    pub weight: f64,
    /// Size.
    pub bytes: u32,
    /// Share of reads; the others are writes.
    pub read_percent: u32,
    /// Share of random addresses; the others begin where the last I/O on the file ended,
    /// of whichever row it was.
    pub random_percent: u32,
    /// Addresses are multiples of this.
    pub align_bytes: u64,
    /// I/Os that follow each other when it is this row's turn.
    pub burst: u32,
}

/// A window that moves over a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Strided {
    /// Bytes to move before the window goes on.
    pub zone_bytes: u64,
    /// Length of the window.
    pub range_bytes: u64,
    /// Bytes left out between two windows.
    pub skip_bytes: u64,
}

/// Addresses and sizes of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpPattern {
    /// Share of I/Os at random addresses, 0 (sequential) to 100.
    pub random_percent: u32,
    /// Random addresses.
    pub random: RandomOrder,
    /// Sequential addresses: bytes added after each I/O besides its own size;
    /// negative walks backwards.
    pub stride_bytes: i64,
    /// As many bytes more at most, drawn for each I/O: whole sizes of it, from none to below this.
    pub stride_spread_bytes: u64,
    /// Sequential I/Os in a row before a jump to a new random address, or before the stride is
    /// added; at least 1.
    pub run_length: u32,
    /// Repeat the same address `run_length` times.
    pub run_identical: bool,
    /// Sizes.
    pub sizes: Sizes,
    /// Random addresses are multiples of this.
    pub align_bytes: u64,
}

/// Order of random addresses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum RandomOrder {
    /// Uniform; with `repeat` false every block is touched once before any is
    /// touched again, in bounded memory.
    Uniform {
        /// Addresses may come again before all were touched.
        repeat: bool,
    },
    /// Zipf with exponent `theta` over the blocks; ranks scattered over the range.
    Zipf {
        /// Exponent, above 0 and not 1.
        theta: f64,
        /// Where the hottest block is, as a share of the range; none: scattered.
        #[serde(deserialize_with = "super::stated")]
        center: Option<f64>,
    },
    /// Pareto with parameter `h`, 0 to 1.
    Pareto {
        /// Shape.
        h: f64,
        /// As for Zipf.
        #[serde(deserialize_with = "super::stated")]
        center: Option<f64>,
    },
    /// Normal around the middle.
    Normal {
        /// Standard deviation in percent of the range.
        deviation_percent: f64,
        /// As for Zipf.
        #[serde(deserialize_with = "super::stated")]
        center: Option<f64>,
    },
    /// Zones with their own share of the accesses.
    Zoned {
        /// Zones in address order; access shares add up to 100.
        zones: Vec<Zone>,
    },
    /// A walk over the leaves of a binary tree that mostly stays near, one for each file
    /// and for all operations of the stream that have this order.
    Reuse {
        /// Size of a leaf.
        leaf_bytes: u64,
        /// Leaves of the smallest subtree the next one is drawn from.
        least_leaves: u64,
        /// Chance of drawing from twice as many, each time again.
        climb_percent: u32,
        /// Only leaves whose number is a multiple of this.
        step_leaves: u64,
        /// Share of I/Os whose address the next I/O of the operation has again.
        again_percent: u32,
    },
    /// Blocks by number in a fixed order, over and over.
    Listed {
        /// Numbers of the blocks, from 0; at least one.
        blocks: Vec<u64>,
        /// Each time the list begins again it lies as many blocks further on as it has
        /// entries (false: the same blocks again).
        advance: bool,
    },
    /// Every block of a file once per pass, and some of them once more in the next region of the
    /// pass: flash that is written once is left as valid as long random writing would leave it.
    Aged {
        /// Of each region in order, how many of its I/Os are done once more in the next; of the
        /// last none.
        again_blocks: Vec<u64>,
        /// I/Os of a region.
        region_blocks: u64,
        /// They end the next region (false: they begin it).
        at_the_end: bool,
    },
}

/// One zone of [`RandomOrder::Zoned`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Share of the accesses, percent.
    pub access_percent: f64,
    /// Length of the zone in bytes.
    pub length_bytes: u64,
}

/// Sizes of I/Os.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Sizes {
    /// Always the same.
    Fixed {
        /// Bytes, above 0.
        bytes: u32,
    },
    /// Uniform between two sizes, in multiples of `step_bytes`.
    Range {
        /// Smallest.
        min_bytes: u32,
        /// Largest.
        max_bytes: u32,
        /// Granularity, above 0.
        step_bytes: u32,
    },
    /// A table of sizes with weights.
    Split {
        /// Entries; weights need not add up to anything.
        table: Vec<SizeWeight>,
    },
}

/// Entry of a [`Sizes::Split`] table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeWeight {
    /// Bytes, above 0.
    pub bytes: u32,
    /// Relative frequency, above 0.
    pub weight: f64,
}
