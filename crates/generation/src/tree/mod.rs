//! The files of a tree before any is made: their names and their sizes.
//!
//! Knows arithmetic. Knows no disk.

pub mod names;
pub mod sizes;

use loadstone_plan::Tree;
use names::TreeShape;
use sizes::TreeFileSizes;

/// Bytes of all files of a tree that are ever used, at their full sizes.
#[must_use]
pub fn span_bytes(tree: &Tree) -> u64 {
    let Ok(shape) = TreeShape::new(tree) else {
        return 0;
    };
    let sizes = TreeFileSizes::new(tree);
    sizes.total_bytes(sizes.first_files(tree.total_bytes, shape.file_count()))
}
