//! Rules of trees and of what streams do in them.
//!
//! Knows shapes, sizes and operations. Looks at no disk.

use super::pattern::check_pattern;
use super::{check_payload, check_rate, within, Checked};
use loadstone_base::need;
use loadstone_generation::tree::names::{
    TooMuch, TreeShape, MAX_DIRECTORIES, MAX_FILES, MAX_PATH_BYTES,
};
use loadstone_plan::{
    FileOperation, FileSelect, FileSizes, FileStop, Plan, RateAmount, Sizes, Stream, Target,
    TargetKind, Tree, TreeUse,
};
use loadstone_trees::endings;
use loadstone_trees::registry::MAX_SIZE_BYTES;
use loadstone_trees::SECTOR_BYTES;

/// Checks every tree, and that trees and targets of their kind belong together.
pub(super) fn check_trees(plan: &Plan) -> Checked {
    for (index, tree) in plan.trees.iter().enumerate() {
        let path = format!("/trees/{index}");
        let targets = plan.targets.len();
        within(tree.target, targets, &format!("{path}/target"), "targets")?;
        let target = &plan.targets[tree.target as usize];
        need!(
            target.kind == TargetKind::Tree,
            "{path}/target" => "is {}, which is not of kind tree", target.path
        );
        let before = &plan.trees[..index];
        need!(
            before.iter().all(|other| other.target != tree.target),
            "{path}/target" => "is {}, which another tree has", target.path
        );
        check_shape(tree, &path)?;
        need!(
            tree.part.index < tree.part.count,
            "{path}/part/index" => "is {}, must be below {}", tree.part.index, tree.part.count
        );
        check_sizes(tree, target, &path)?;
    }
    for (index, target) in plan.targets.iter().enumerate() {
        if target.kind == TargetKind::Tree {
            let tree = plan.trees.iter().find(|tree| tree.target as usize == index);
            check_target(target, tree, &format!("/targets/{index}"))?;
        }
    }
    for (index, stream) in plan.streams.iter().enumerate() {
        for (at, file) in stream.files.iter().enumerate() {
            let target = plan.targets.get(file.target as usize);
            need!(
                target.is_none_or(|target| target.kind != TargetKind::Tree),
                "/streams/{index}/files/{at}/target" =>
                    "is a directory: its files are used by a stream with a tree"
            );
        }
    }
    for (index, steady) in plan.steady.iter().enumerate() {
        for (at, &stream) in steady.streams.iter().enumerate() {
            let stream = plan.streams.get(stream as usize);
            need!(
                stream.is_none_or(|stream| stream.tree.is_none()),
                "/steady/{index}/streams/{at}" =>
                    "works in a tree: its rows are not of one kind of operation"
            );
        }
    }
    Ok(())
}

fn check_target(target: &Target, tree: Option<&Tree>, path: &str) -> Checked {
    need!(tree.is_some(), "{path}/kind" => "is tree, and no tree has it");
    for (set, field) in [
        (target.exclusive, "exclusive"),
        (target.advice.is_some(), "advice"),
    ] {
        need!(!set, "{path}/{field}" => "has no effect on a directory");
    }
    need!(
        !target.read_only || !(target.create || tree.is_some_and(|tree| tree.clear)),
        "{path}/read_only" => "is true for a directory that is to be made or cleared"
    );
    Ok(())
}

fn check_shape(tree: &Tree, path: &str) -> Checked {
    for (value, field) in [
        (tree.depth, "depth"),
        (tree.width, "width"),
        (tree.files, "files"),
    ] {
        need!(value > 0, "{path}/{field}" => "is 0, must be at least 1");
    }
    need!(tree.first_file <= 1, "{path}/first_file" => "is {}, must be 0 or 1", tree.first_file);
    let (field, message) = match TreeShape::new(tree) {
        Ok(_) => return Ok(()),
        Err(TooMuch::Directories) => (
            "width",
            format!(
                "is {}, which with depth {} makes more than {MAX_DIRECTORIES} directories",
                tree.width, tree.depth
            ),
        ),
        Err(TooMuch::Files) => (
            "files",
            format!("is {}, which makes more than {MAX_FILES} files", tree.files),
        ),
        Err(TooMuch::Path) => (
            "depth",
            format!(
                "is {}, which makes paths of more than {MAX_PATH_BYTES} bytes",
                tree.depth
            ),
        ),
    };
    need!(false, "{path}/{field}" => "{}", message);
    Ok(())
}

fn check_sizes(tree: &Tree, target: &Target, path: &str) -> Checked {
    let aligned = |bytes: u64| !target.direct || bytes % SECTOR_BYTES == 0;
    let unaligned =
        |bytes: u64| format!("is {bytes}: direct I/O needs multiples of the logical block size");
    match &tree.sizes {
        FileSizes::Table { table } => {
            need!(!table.is_empty(), "{path}/sizes/table" => "is empty");
            for (at, entry) in table.iter().enumerate() {
                let place = |field| format!("{path}/sizes/table/{at}/{field}");
                need!(
                    entry.weight.is_finite() && entry.weight > 0.0,
                    place("weight") => "is {}, must be above 0", entry.weight
                );
                need!(
                    entry.bytes <= MAX_SIZE_BYTES,
                    place("bytes") => "is {}, must be at most {MAX_SIZE_BYTES}", entry.bytes
                );
                need!(aligned(entry.bytes), place("bytes") => "{}", unaligned(entry.bytes));
            }
        }
        FileSizes::Around { mean_bytes } => {
            let mean = *mean_bytes;
            let place = || format!("{path}/sizes/mean_bytes");
            need!(
                (1..=MAX_SIZE_BYTES / 2).contains(&mean),
                place() => "is {mean}, must be 1 to {}", MAX_SIZE_BYTES / 2
            );
            need!(
                !target.direct || mean >= 1024,
                place() =>
                    "is {mean}: with direct I/O sizes around a mean need one of 1 KiB or more"
            );
        }
    }
    Ok(())
}

/// Checks a stream with a tree, or the absence of one.
pub(super) fn check_use(plan: &Plan, stream: &Stream, in_tree: &TreeUse, path: &str) -> Checked {
    let at = |field: &str| format!("{path}/tree/{field}");
    within(in_tree.tree, plan.trees.len(), &at("tree"), "trees")?;
    within(in_tree.cell, plan.cells.len(), &at("cell"), "cells")?;
    let backend = &plan.workers[stream.worker as usize].backend;
    need!(
        backend.capabilities().trees,
        "{path}/tree" => "is given, and worker {} has another backend than files", stream.worker
    );
    need!(
        stream.iodepth == 1,
        "{path}/iodepth" =>
            "is {}, must be 1: a stream in a tree does one operation at a time", stream.iodepth
    );
    check_unused(stream, path)?;
    check_pattern(stream, path)?;
    check_payload(stream, path)?;
    check_operation(plan, stream, in_tree, path)?;
    check_select(in_tree, path)?;
    if let Some(rate) = &in_tree.rate {
        check_rate(rate, &at("rate"))?;
        let transfers = matches!(in_tree.operation, FileOperation::Transfer { .. });
        need!(
            transfers || matches!(rate.amount, RateAmount::Ops { .. }),
            at("rate/amount") => "is in bytes, and the operation is no transfer"
        );
    }
    check_queue(plan, stream, in_tree, &at("queue"))?;
    Ok(())
}

/// Streams of one queue run at the same time, and their arrivals are alike.
fn check_queue(plan: &Plan, stream: &Stream, in_tree: &TreeUse, path: &str) -> Checked {
    if in_tree.queue.is_none() {
        return Ok(());
    }
    let kind = |of: &TreeUse| {
        let rate = of.rate.as_ref()?;
        let ops = matches!(rate.amount, RateAmount::Ops { .. });
        ops.then(|| (rate.process, rate.profile.clone(), rate.minimum.to_bits()))
    };
    let stage = |of: &Stream| plan.workers[of.worker as usize].stage;
    let mine = kind(in_tree);
    let alike = plan.streams.iter().all(|other| {
        let its = other.tree.as_ref();
        its.is_none_or(|its| {
            its.queue != in_tree.queue || (kind(its) == mine && stage(other) == stage(stream))
        })
    });
    need!(
        mine.is_some() && alike,
        path => "needs rates in operations, of one kind and in one stage"
    );
    Ok(())
}

/// What other streams have and a stream in a tree does not.
fn check_unused(stream: &Stream, path: &str) -> Checked {
    let (pace, flush, pattern) = (&stream.pace, &stream.flush, &stream.pattern);
    let paced = pace.read.is_some() || pace.write.is_some() || pace.trim.is_some();
    let flushes = flush.fsync_every > 0 || flush.fdatasync_every > 0 || flush.at_end;
    for (used, field) in [
        (!stream.files.is_empty(), "files"),
        (stream.batch.is_some(), "batch"),
        (stream.open_files.is_some(), "open_files"),
        (paced || pace.think.is_some(), "pace"),
        (flushes, "flush"),
        (stream.connection.is_some(), "connection"),
        (stream.log_ios, "log_ios"),
        (stream.serialize_overlap, "serialize_overlap"),
        (stream.search.is_some(), "search"),
        (!stream.priorities.is_empty(), "priorities"),
        (
            stream.limits.max_latency_ns != [0; 3],
            "limits/max_latency_ns",
        ),
        (pattern.trim_percent > 0, "pattern/trim_percent"),
        (pattern.trim_then_write, "pattern/trim_then_write"),
        (pattern.strided.is_some(), "pattern/strided"),
        (pattern.rows.is_some(), "pattern/rows"),
    ] {
        need!(!used, "{path}/{field}" => "has no effect on a stream in a tree");
    }
    Ok(())
}

fn check_operation(plan: &Plan, stream: &Stream, in_tree: &TreeUse, path: &str) -> Checked {
    let at = |field: &str| format!("{path}/tree/operation/{field}");
    let tree = &plan.trees[in_tree.tree as usize];
    let reads = stream.pattern.read_percent;
    let shares = || format!("{path}/pattern");
    match in_tree.operation {
        FileOperation::Transfer { .. } => check_transfer(tree, in_tree.operation, reads, path)?,
        FileOperation::Create { fill: true } => {
            need!(reads == 0, shares() => "must be writes alone: they fill the file");
        }
        FileOperation::Copy { to } | FileOperation::Move { to } => {
            within(to, plan.trees.len(), &at("to"), "trees")?;
            check_pair(plan, in_tree.tree, to, &at("to"))?;
            let copies = matches!(in_tree.operation, FileOperation::Copy { .. });
            need!(
                !copies || reads == 100,
                shares() => "must be reads alone: what is read has the sizes of what is written"
            );
        }
        _ => {}
    }
    need!(
        tree.part.count == 1 || !matches!(in_tree.operation, FileOperation::Rmdir {}),
        "{path}/tree/operation" => "removes directories, and other hosts use them"
    );
    for tree in changed_trees(in_tree, reads) {
        let target = &plan.targets[plan.trees[tree as usize].target as usize];
        need!(
            !target.read_only,
            "{path}/tree/operation" => "changes {}, which is opened read-only", target.path
        );
    }
    check_sharing(stream, in_tree, path)?;
    need!(
        !stream.flush.on_close || in_tree.operation.opens(),
        "{path}/flush/on_close" => "has no effect: the operation closes no file"
    );
    if in_tree.operation.transfers() && plan.targets[tree.target as usize].direct {
        check_direct(stream, path)?;
    }
    Ok(())
}

fn check_transfer(tree: &Tree, operation: FileOperation, reads: u32, path: &str) -> Checked {
    let FileOperation::Transfer {
        random,
        stop,
        delete_before,
    } = operation
    else {
        return Ok(());
    };
    need!(
        random || reads == 0 || reads == 100,
        "{path}/pattern" => "mixes reads and writes, which needs random addresses"
    );
    need!(
        !delete_before || (!random && reads == 0),
        "{path}/tree/operation/delete_before" => "needs sequential writes"
    );
    let zero = match stop {
        FileStop::Whole {} => false,
        FileStop::Transfers { count } => count == 0,
        FileStop::Percent { percent } => percent == 0,
    };
    need!(!zero, "{path}/tree/operation/stop" => "is 0, must be above 0");
    let empty = matches!(&tree.sizes, FileSizes::Table { table }
        if table.iter().all(|entry| entry.bytes == 0));
    need!(
        !empty,
        "{path}/tree/operation" => "transfers bytes, and the tree has only empty files"
    );
    Ok(())
}

/// Returns the trees that an operation changes.
fn changed_trees(in_tree: &TreeUse, reads: u32) -> Vec<u32> {
    match in_tree.operation {
        FileOperation::Transfer { .. } if reads == 100 => vec![],
        FileOperation::Open {} | FileOperation::Getattr {} | FileOperation::Access {} => vec![],
        FileOperation::Copy { to } => vec![to],
        FileOperation::Move { to } => vec![in_tree.tree, to],
        _ => vec![in_tree.tree],
    }
}

/// Copies and moves go to the same place of a tree that is alike.
fn check_pair(plan: &Plan, from: u32, to: u32, path: &str) -> Checked {
    need!(from != to, path => "is the tree itself");
    let [one, other] = [from, to].map(|index| {
        let tree = plan.trees[index as usize].clone();
        // What is there already, and up to when its mark vouches for it, differs between two places.
        Tree {
            target: 0,
            clear: false,
            vouched_ns: None,
            ..tree
        }
    });
    let [direct, other_direct] =
        [from, to].map(|tree| plan.targets[plan.trees[tree as usize].target as usize].direct);
    need!(
        one == other && direct == other_direct,
        path => "is {to}, which differs from tree {from} in more than its place"
    );
    Ok(())
}

/// What does not bear sharing, limits in bytes or a part of the files.
fn check_sharing(stream: &Stream, in_tree: &TreeUse, path: &str) -> Checked {
    let name = match in_tree.operation {
        FileOperation::Mkdir {} => "mkdir",
        FileOperation::Rmdir {} => "rmdir",
        FileOperation::Create { .. } => "create",
        FileOperation::Delete {} => "delete",
        FileOperation::Move { .. } => "move",
        _ => "",
    };
    need!(
        !in_tree.shared || name.is_empty(),
        "{path}/tree/shared" => "has no effect: {name} has a file for itself"
    );
    need!(
        in_tree.working_set_bytes == 0 || !name.ends_with("dir"),
        "{path}/tree/working_set_bytes" => "has no effect: {name} works on directories"
    );
    need!(
        stream.limits.bytes == 0 || matches!(in_tree.operation, FileOperation::Transfer { .. }),
        "{path}/limits/bytes" => "counts transfers only, and the operation is another"
    );
    Ok(())
}

fn check_direct(stream: &Stream, path: &str) -> Checked {
    let pattern = &stream.pattern;
    for (name, percent, order) in [
        ("read", pattern.read_percent, &pattern.read),
        ("write", pattern.write_percent, &pattern.write),
    ] {
        let aligned = match &order.sizes {
            Sizes::Fixed { bytes } => aligned(*bytes),
            Sizes::Range {
                min_bytes,
                step_bytes,
                ..
            } => aligned(*min_bytes) && aligned(*step_bytes),
            Sizes::Split { table } => table.iter().all(|entry| aligned(entry.bytes)),
        };
        need!(
            percent == 0 || aligned,
            "{path}/pattern/{name}/sizes" =>
                "are not all multiples of 512: direct I/O needs multiples of the logical block size"
        );
    }
    Ok(())
}

fn aligned(bytes: u32) -> bool {
    u64::from(bytes) % SECTOR_BYTES == 0
}

fn check_select(in_tree: &TreeUse, path: &str) -> Checked {
    let FileSelect::Skewed { midpoint_percent } = in_tree.select else {
        return Ok(());
    };
    need!(
        midpoint_percent > 0.0 && midpoint_percent < 50.0,
        "{path}/tree/select/midpoint_percent" =>
            "is {midpoint_percent}, must be above 0 and below 50, where nothing is skewed"
    );
    Ok(())
}

/// Streams in trees end by their limits, or because nothing is left.
pub(super) fn check_endings(plan: &Plan) -> Checked {
    let ends = endings(plan);
    for (index, stream) in plan.streams.iter().enumerate() {
        need!(
            stream.tree.is_none() || ends[index],
            "/streams/{index}/limits" => "the stream would never end: give runtime_ns or ops"
        );
    }
    Ok(())
}
