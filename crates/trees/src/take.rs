//! What an operation takes of its tree before it begins: all of it, or nothing.
//!
//! Knows what each operation needs to find. Knows no disk.

use super::registry::{KnownFile, Refused, Registry};
use super::SharedTree;
use loadstone_plan::{FileOperation, TreeUse};

/// A file that is not there.
pub(super) const GONE: KnownFile = KnownFile {
    exists: false,
    size_bytes: 0,
};

/// A file or directory that was taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    /// Number of the file, or of the directory.
    pub number: u32,
    /// As it was.
    pub known: KnownFile,
    /// For oneself.
    pub alone: bool,
    /// The same in the tree that is copied or moved to.
    pub other: KnownFile,
}

impl Taken {
    fn alone(number: u32, known: KnownFile) -> Self {
        let (alone, other) = (true, GONE);
        Self {
            number,
            known,
            alone,
            other,
        }
    }
}

/// Takes what the operation of a stream needs of the directory or file with this number.
/// `reads`: some of its transfers are reads.
pub(super) fn take(
    trees: &[SharedTree],
    in_tree: &TreeUse,
    reads: bool,
    number: u32,
) -> Result<Taken, Refused> {
    let tree = &trees[in_tree.tree as usize];
    let registry = &tree.registry;
    let existing_alone = || {
        let known = registry.take(number, true, |file| file.exists)?;
        Ok(Taken::alone(number, known))
    };
    let has_units = |file: KnownFile| file.exists && tree.usable(file.size_bytes) > 0;
    let take = |wanted: &dyn Fn(KnownFile) -> bool| take_known(tree, in_tree, number, wanted);
    match in_tree.operation {
        FileOperation::Mkdir {} => take_missing_directory(tree, number + 1),
        FileOperation::Rmdir {} => {
            registry.take_empty(number + 1)?;
            Ok(Taken::alone(number + 1, GONE))
        }
        FileOperation::Create { fill } => {
            let full = tree.sizes.of(number);
            let wanted = |file: KnownFile| !file.exists || (fill && file.size_bytes < full);
            Ok(Taken::alone(number, take_place(tree, number, wanted)?))
        }
        FileOperation::Delete {} => existing_alone(),
        FileOperation::Open {}
        | FileOperation::Close {}
        | FileOperation::Getattr {}
        | FileOperation::Setattr {}
        | FileOperation::Access {} => take(&|file| file.exists),
        FileOperation::Copy { to } => with_place(tree, &trees[to as usize], take(&has_units)?),
        FileOperation::Move { to } => with_place(tree, &trees[to as usize], existing_alone()?),
        FileOperation::Transfer { .. } if reads => take(&has_units),
        FileOperation::Transfer { .. } if tree.sizes.of(number) == 0 => Err(Refused::Unfit),
        FileOperation::Transfer { random: true, .. } => take(&|file| file.exists),
        FileOperation::Transfer { delete_before, .. } if delete_before || !in_tree.shared => {
            Ok(Taken::alone(number, take_place(tree, number, |_| true)?))
        }
        FileOperation::Transfer { .. } => match take(&|file| file.exists) {
            Err(Refused::Unfit) => {
                let known = take_place(tree, number, |file| !file.exists)?;
                Ok(Taken::alone(number, known))
            }
            taken => taken,
        },
    }
}

/// Takes a file that is there: alone, unless the stream shares.
fn take_known(
    tree: &SharedTree,
    in_tree: &TreeUse,
    number: u32,
    wanted: &dyn Fn(KnownFile) -> bool,
) -> Result<Taken, Refused> {
    let known = tree.registry.take(number, !in_tree.shared, wanted)?;
    Ok(Taken {
        alone: !in_tree.shared,
        ..Taken::alone(number, known)
    })
}

/// Takes a directory that is not there, and its place in its parent.
fn take_missing_directory(tree: &SharedTree, directory: u32) -> Result<Taken, Refused> {
    tree.registry.take_missing(directory)?;
    if let Err(refused) = tree.registry.enter(tree.shape.parent(directory)) {
        tree.registry.give_directory(directory, false);
        return Err(refused);
    }
    Ok(Taken::alone(directory, GONE))
}

/// Takes the same place in another tree, too.
fn with_place(tree: &SharedTree, other: &SharedTree, taken: Taken) -> Result<Taken, Refused> {
    match take_place(other, taken.number, |_| true) {
        Ok(other) => Ok(Taken { other, ..taken }),
        Err(refused) => {
            give(&tree.registry, &taken, taken.known);
            Err(refused)
        }
    }
}

/// Takes a file for oneself; where it is not there, also its place in its directory.
fn take_place(
    tree: &SharedTree,
    number: u32,
    wanted: impl Fn(KnownFile) -> bool,
) -> Result<KnownFile, Refused> {
    let known = tree.registry.take(number, true, wanted)?;
    if !known.exists {
        if let Err(refused) = tree.registry.enter(tree.shape.directory_of(number)) {
            tree.registry.give(number, known);
            return Err(refused);
        }
    }
    Ok(known)
}

/// Gives a file back as it is now. True when something changed.
pub(super) fn give(registry: &Registry, taken: &Taken, left: KnownFile) -> bool {
    if taken.alone {
        registry.give(taken.number, left)
    } else {
        registry.give_shared(taken.number, left.size_bytes)
    }
}
