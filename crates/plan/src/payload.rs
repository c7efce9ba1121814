//! What is written, in the Plan.
//!
//! Knows the shape only, as `lib.rs` does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// Base content of the buffers.
    pub fill: Fill,
    /// Make all of the content new for every write (false: only the stamps change).
    pub refill: bool,
    /// Change a few bytes of every 512 for each write, so that no two blocks are equal.
    pub stamp: bool,
    /// Percent of each chunk that compresses away, 0 to 100.
    pub compress_percent: u32,
    /// Chunk of `compress_percent`; 0: the block.
    pub compress_chunk_bytes: u32,
    /// Percent of writes, or of their units, that repeat earlier content.
    pub dedupe_percent: u32,
    /// What those repeat from; none: the last contents of the stream.
    #[serde(deserialize_with = "super::stated")]
    pub dedupe_set: Option<DedupeSet>,
    /// Bytes of a write that are drawn together, new or repeated; 0: the whole write.
    pub dedupe_unit_bytes: u32,
}

/// Contents that writes repeat from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DedupeSet {
    /// How many there are, above 0.
    pub contents: u64,
    /// Where they come from: streams with the same number repeat from the same set.
    pub seed: u64,
}

/// Base content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fill {
    /// Pseudo-random bytes.
    Random {},
    /// Zeros.
    Zero {},
    /// A repeated pattern of 1 to 65,536 bytes.
    Pattern {
        /// The bytes.
        bytes: Vec<u8>,
    },
}
