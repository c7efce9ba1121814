//! The largest blocks of a Plan's streams.
//!
//! Knows which operations a stream does. Knows nothing of how sizes are drawn.

use super::{Sizes, Stream, TreeUse};

/// Largest block of any operation of a stream.
#[must_use]
pub fn max_block_bytes(stream: &Stream) -> u32 {
    let by_name_only = |its: &TreeUse| !its.operation.transfers();
    if stream.tree.as_ref().is_some_and(by_name_only) {
        return 0;
    }
    let pattern = &stream.pattern;
    let mut largest = 0;
    for (percent, order) in [
        (pattern.read_percent, &pattern.read),
        (pattern.write_percent, &pattern.write),
        (
            pattern.trim_percent,
            if pattern.trim_then_write {
                &pattern.trim
            } else {
                &pattern.read
            },
        ),
    ] {
        if percent > 0 {
            largest = largest.max(max_size(&order.sizes));
        }
    }
    largest
}

/// Largest size of a table of sizes.
#[must_use]
pub fn max_size(sizes: &Sizes) -> u32 {
    match sizes {
        Sizes::Fixed { bytes } => *bytes,
        Sizes::Range { max_bytes, .. } => *max_bytes,
        Sizes::Split { table } => table.iter().map(|entry| entry.bytes).max().unwrap_or(0),
    }
}
