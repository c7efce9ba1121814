//! I/O priorities in the Plan.
//!
//! Knows the shape only, as `lib.rs` does. A priority is the number the kernel takes
//! (`ioprio_set(2)`): 13 bits below the class (1 real time, 2 best effort, 3 idle), of them
//! three for the level.

use loadstone_base::ops::Op;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reads or writes of a stream that have another priority than its thread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorityShare {
    /// Which I/Os.
    pub op: PriorityOp,
    /// Only those of this size; none: of any.
    #[serde(deserialize_with = "super::stated")]
    pub block_bytes: Option<u32>,
    /// How many of them, chosen at random.
    pub percent: f64,
    /// Their priority.
    pub priority: u16,
}

/// Operations that can have a priority of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PriorityOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl PriorityOp {
    /// The operation.
    #[must_use]
    pub fn op(self) -> Op {
        match self {
            Self::Read => Op::Read,
            Self::Write => Op::Write,
        }
    }
}
