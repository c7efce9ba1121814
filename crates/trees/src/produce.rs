//! Who can help whom: what a stream's operation makes and removes, and what another's
//! needs when it finds nothing.
//!
//! Knows operations. Knows no file and no time.

use loadstone_plan::{FileOperation, FileSelect, Plan, Stream, TreeUse};

/// Something that comes to be in a tree, by the Plan's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeChange {
    DirectoryMade(u32),
    DirectoryGone(u32),
    FileMade(u32),
    FileGone(u32),
}

/// By stream: all others of its stage that can, by whatever they do, bring about something
/// it needs, also by helping each other.
pub(super) fn helpers(plan: &Plan) -> Vec<Vec<u32>> {
    let stage = |stream: &Stream| plan.workers[stream.worker as usize].stage;
    let of = |index: usize| -> Vec<u32> {
        let this = &plan.streams[index];
        let Some(in_tree) = &this.tree else {
            return Vec::new();
        };
        let mut needed = needs(this, in_tree);
        let mut helpers: Vec<u32> = Vec::new();
        loop {
            let before = helpers.len();
            for (other, stream) in (0u32..).zip(&plan.streams) {
                let Some(its) = &stream.tree else { continue };
                let apart = other as usize == index
                    || helpers.contains(&other)
                    || stage(stream) != stage(this)
                    || stream.wait_for.contains(&(index as u32));
                if !apart && makes(stream, its).iter().any(|made| needed.contains(made)) {
                    helpers.push(other);
                    needed.extend(needs(stream, its));
                }
            }
            if helpers.len() == before {
                return helpers;
            }
        }
    };
    (0..plan.streams.len()).map(of).collect()
}

/// By stream: true when its limits end it, or what its operation uses up comes to an end,
/// because nothing that brings it about again goes on for ever.
#[must_use]
pub fn endings(plan: &Plan) -> Vec<bool> {
    let stage = |stream: &Stream| plan.workers[stream.worker as usize].stage;
    let mut ends: Vec<bool> = plan.streams.iter().map(ends_plainly).collect();
    loop {
        let before = ends.clone();
        for (index, stream) in plan.streams.iter().enumerate() {
            let Some(in_tree) = stream.tree.as_ref().filter(|its| uses_up(its)) else {
                continue;
            };
            let needed = needs(stream, in_tree);
            let goes_on = |(other, maker): (usize, &Stream)| {
                let its = maker.tree.as_ref();
                let makes = |its| makes(maker, its).iter().any(|made| needed.contains(made));
                other != index
                    && stage(maker) == stage(stream)
                    && !before[other]
                    && its.is_some_and(makes)
            };
            ends[index] |= !plan.streams.iter().enumerate().any(goes_on);
        }
        if ends == before {
            return ends;
        }
    }
}

fn ends_plainly(stream: &Stream) -> bool {
    let limits = &stream.limits;
    let once = stream
        .tree
        .as_ref()
        .is_some_and(|its| matches!(its.select, FileSelect::Sequential { once: true, .. }));
    once || limits.runtime_ns > 0 || (!limits.time_based && (limits.bytes > 0 || limits.ops > 0))
}

/// True when each operation leaves one thing less to do it on.
fn uses_up(in_tree: &TreeUse) -> bool {
    matches!(
        in_tree.operation,
        FileOperation::Mkdir {}
            | FileOperation::Rmdir {}
            | FileOperation::Create { .. }
            | FileOperation::Delete {}
            | FileOperation::Move { .. }
    )
}

fn makes(stream: &Stream, in_tree: &TreeUse) -> Vec<TreeChange> {
    let tree = in_tree.tree;
    match in_tree.operation {
        FileOperation::Mkdir {} => vec![TreeChange::DirectoryMade(tree)],
        FileOperation::Rmdir {} => vec![TreeChange::DirectoryGone(tree)],
        FileOperation::Create { .. } => vec![TreeChange::FileMade(tree)],
        FileOperation::Delete {} => vec![TreeChange::FileGone(tree)],
        FileOperation::Copy { to } => vec![TreeChange::FileMade(to)],
        FileOperation::Move { to } => vec![TreeChange::FileGone(tree), TreeChange::FileMade(to)],
        // A file without bytes becomes one that can be read.
        FileOperation::Transfer { .. } if stream.pattern.write_percent > 0 => {
            vec![TreeChange::FileMade(tree)]
        }
        _ => Vec::new(),
    }
}

fn needs(stream: &Stream, in_tree: &TreeUse) -> Vec<TreeChange> {
    let tree = in_tree.tree;
    match in_tree.operation {
        FileOperation::Mkdir {} => vec![TreeChange::DirectoryGone(tree)],
        FileOperation::Rmdir {} => {
            vec![TreeChange::DirectoryMade(tree), TreeChange::FileGone(tree)]
        }
        FileOperation::Create { .. } => {
            vec![TreeChange::FileGone(tree), TreeChange::DirectoryMade(tree)]
        }
        FileOperation::Transfer { random: false, .. } if stream.pattern.write_percent > 0 => {
            vec![TreeChange::DirectoryMade(tree)]
        }
        FileOperation::Copy { to } | FileOperation::Move { to } => {
            vec![TreeChange::FileMade(tree), TreeChange::DirectoryMade(to)]
        }
        _ => vec![TreeChange::FileMade(tree)],
    }
}
