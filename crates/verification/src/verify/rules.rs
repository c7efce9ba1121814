//! Rules a Plan must keep so that verification means something.
//!
//! Knows which fields depend on each other. Opens nothing.

use super::stamp::{MAX_OFFSET_BYTES, MAX_TARGET, SECTOR_BYTES};
use super::tables::first_of;
use loadstone_base::need;
use loadstone_base::plan_rule::Checked;
use loadstone_plan::{
    FileOperation, FileSizes, FileUse, Fill, Keeps, OpPattern, Plan, Sizes, Stream, TargetKind,
    TreeUse, Verify, VerifyContent, VerifyExpect,
};

/// A shorter journal would be replaced all the time.
const MIN_JOURNAL_BYTES: u64 = 1 << 20;

/// Checks the verification of one stream; `path` is its JSON path.
///
/// # Errors
/// [`loadstone_base::run_error::RunError::Plan`] with the JSON path of the field.
pub fn check(plan: &Plan, stream: &Stream, path: &str) -> Checked {
    agree(plan, stream, path)?;
    let Some(verify) = stream.verify else {
        return Ok(());
    };
    let at = |field: &str| format!("{path}/verify/{field}");
    let block = u64::from(verify.block_bytes);
    need!(
        block > 0 && block % SECTOR_BYTES as u64 == 0,
        at("block_bytes") => "is {block}, must be a multiple of {SECTOR_BYTES}"
    );
    need!(
        !verify.only_written || verify.expect == VerifyExpect::Table,
        at("only_written") => "needs a table: without one nothing is known to have been written"
    );
    let holds_pattern =
        matches!(stream.payload.fill, Fill::Pattern { .. }) && !stream.payload.stamp;
    need!(
        verify.content != VerifyContent::Pattern || holds_pattern,
        at("content") => "needs a payload that is a pattern, without stamps of its own"
    );
    need!(
        !verify.reads_beside_writes() || (stream.pattern.write_percent > 0 && verify.expect == VerifyExpect::Table),
        at("read_before_write") =>
            "and read_after_write need writes, and a table of what they wrote"
    );
    match &stream.tree {
        Some(in_tree) => check_in_tree(plan, stream, verify, in_tree, path),
        None => check_in_blocks(plan, stream, verify, path),
    }
}

/// Checks what a stream on files and devices verifies: each I/O is whole blocks, and their places
/// are known.
fn check_in_blocks(plan: &Plan, stream: &Stream, verify: Verify, path: &str) -> Checked {
    let block = u64::from(verify.block_bytes);
    need!(
        !verify.reads_beside_writes() || stream.serialize_overlap,
        "{path}/serialize_overlap" =>
            "must be true: between a write and the reads beside it no other may come"
    );
    let pace = &stream.pace;
    let paced = pace.read.is_some() || pace.write.is_some() || pace.trim.is_some();
    need!(
        !verify.only_written || !paced,
        "{path}/verify/only_written" => "cannot be paced: reads that are left out have no arrival"
    );
    need!(
        stream.payload.dedupe_percent == 0,
        "{path}/payload/dedupe_percent" =>
            "has no effect with verification: no two stamped blocks are equal"
    );
    let pattern = &stream.pattern;
    for (name, percent, order) in [
        ("read", pattern.read_percent, &pattern.read),
        ("write", pattern.write_percent, &pattern.write),
        ("trim", pattern.trim_percent, &pattern.trim),
    ] {
        if percent > 0 || (name == "write" && pattern.trim_then_write) {
            divides(block, order, &format!("{path}/pattern/{name}"))?;
        }
    }
    places(plan, stream, block, path)
}

/// Checks what a stream in a tree verifies: whoever changes the files there knows the same of
/// them, and every file ends with a verify block.
fn check_in_tree(
    plan: &Plan,
    stream: &Stream,
    verify: Verify,
    in_tree: &TreeUse,
    path: &str,
) -> Checked {
    let block = u64::from(verify.block_bytes);
    let tree = &plan.trees[in_tree.tree as usize];
    need!(
        !verify.only_written && verify.content != VerifyContent::Pattern,
        "{path}/verify" => "can neither leave reads out nor hold a pattern in a tree"
    );
    let whole = match &tree.sizes {
        FileSizes::Table { table } => table.iter().all(|entry| entry.bytes % block == 0),
        FileSizes::Around { .. } => false,
    };
    need!(
        whole && loadstone_generation::tree::span_bytes(tree) <= MAX_OFFSET_BYTES,
        format!("/trees/{}/sizes", in_tree.tree) =>
            "must be multiples of the verify block of {block} bytes, and at most 512 TiB in all"
    );
    if in_tree.operation.transfers() {
        for (name, percent, order) in [
            ("read", stream.pattern.read_percent, &stream.pattern.read),
            ("write", stream.pattern.write_percent, &stream.pattern.write),
        ] {
            if percent > 0 {
                divides(block, order, &format!("{path}/pattern/{name}"))?;
            }
        }
    }
    check_users_of_tree(plan, stream, verify, in_tree)
}

/// Checks that no other stream changes the files of a tree without the stamps of this one.
fn check_users_of_tree(plan: &Plan, stream: &Stream, verify: Verify, in_tree: &TreeUse) -> Checked {
    for (index, other) in plan.streams.iter().enumerate() {
        let Some(its) = &other.tree else { continue };
        let goal = match its.operation {
            FileOperation::Copy { to } | FileOperation::Move { to } => Some(to),
            _ => None,
        };
        let here = its.tree == in_tree.tree;
        need!(
            !(goal.is_some() && (here || goal == Some(in_tree.tree))),
            "/streams/{index}/tree/operation" =>
                "copies or moves files of a tree that is verified: their stamps name another place"
        );
        let changes = matches!(
            its.operation,
            FileOperation::Create { .. } | FileOperation::Delete {}
        ) || (its.operation.transfers() && other.pattern.write_percent > 0);
        let same = other.verify.is_some_and(|one| {
            (one.block_bytes, one.run, one.content, one.expect)
                == (
                    verify.block_bytes,
                    verify.run,
                    verify.content,
                    verify.expect,
                )
        });
        need!(
            !here || same || (other.verify.is_none() && !changes),
            "/streams/{index}/verify" =>
                "differs from that of stream {}, which works in the same tree", stream.name
        );
    }
    Ok(())
}

/// Checks the journals of a Plan.
///
/// # Errors
/// [`loadstone_base::run_error::RunError::Plan`] with the JSON path of the field.
pub fn check_journals(plan: &Plan) -> Checked {
    let tables: Vec<Verify> = plan
        .streams
        .iter()
        .filter_map(|stream| stream.verify)
        .filter(|verify| verify.expect == VerifyExpect::Table)
        .collect();
    let alike = tables.first().is_some_and(|first| {
        let same = |one: &Verify| (one.block_bytes, one.run) == (first.block_bytes, first.run);
        tables.iter().all(same)
    });
    for (path, asked) in [
        ("/journal", plan.journal.is_some()),
        ("/recover", plan.recover.is_some()),
    ] {
        need!(
            !asked || alike,
            path => "needs streams that verify by a table, all with the same block_bytes and run"
        );
    }
    need!(
        plan.journal.is_none_or(|journal| journal.limit_bytes >= MIN_JOURNAL_BYTES),
        "/journal/limit_bytes" => "must be at least {MIN_JOURNAL_BYTES}"
    );
    Ok(())
}

/// Every address and size is a multiple of the verify block.
fn divides(block: u64, order: &OpPattern, path: &str) -> Checked {
    let whole = |bytes: u64| bytes % block == 0;
    let sizes = match &order.sizes {
        Sizes::Fixed { bytes } => whole(u64::from(*bytes)),
        Sizes::Range {
            min_bytes,
            max_bytes,
            step_bytes,
        } => [min_bytes, max_bytes, step_bytes]
            .iter()
            .all(|bytes| whole(u64::from(**bytes))),
        Sizes::Split { table } => table.iter().all(|entry| whole(u64::from(entry.bytes))),
    };
    let message =
        |what: &str| format!("{what} must be multiples of the verify block of {block} bytes");
    need!(sizes, "{path}/sizes" => "{}", message("sizes"));
    need!(
        whole(order.align_bytes) && whole(order.stride_bytes.unsigned_abs()),
        "{path}/align_bytes" => "{}", message("alignment and stride")
    );
    Ok(())
}

fn places(plan: &Plan, stream: &Stream, block: u64, path: &str) -> Checked {
    let backend = &plan.workers[stream.worker as usize].backend;
    need!(
        backend.capabilities().keeps_data != Keeps::Nothing,
        "{path}/verify" => "{} writes no content that could be verified", backend.name()
    );
    for (index, file) in stream.files.iter().enumerate() {
        let at = |field: &str| format!("{path}/files/{index}/{field}");
        let target = &plan.targets[file.target as usize];
        let keeps = match target.kind {
            TargetKind::Char => false,
            TargetKind::Virtual => backend.keeps_data(),
            _ => true,
        };
        need!(
            keeps && file.target <= MAX_TARGET,
            at("target") => "{} keeps no data that could be verified", target.path
        );
        let end = file.offset_bytes.saturating_add(file.length_bytes);
        need!(
            file.offset_bytes % block == 0 && end <= MAX_OFFSET_BYTES,
            at("offset_bytes") =>
                "is {}, must be a multiple of the verify block of {block} bytes and end below 512 TiB",
                file.offset_bytes
        );
    }
    Ok(())
}

/// Whoever writes to a verified target at the same time must do it in the same way; who
/// writes without verification may do it elsewhere in the target, or in another stage: then
/// it is what comes before one that verifies, or spoils what an earlier one wrote, and that
/// is what is found. Where there are only stamps, other
/// ranges may have other verify blocks; a pattern asks nothing of the writer but the pattern.
fn agree(plan: &Plan, stream: &Stream, path: &str) -> Checked {
    let pattern = &stream.pattern;
    let writes = pattern.write_percent > 0 || pattern.trim_percent > 0;
    if !writes && stream.verify.is_none() {
        return Ok(());
    }
    let same = |verify: Option<Verify>, overlapping: bool| {
        verify.map(|verify| {
            let apart = !overlapping && verify.expect == VerifyExpect::Stamps;
            (
                if apart { 0 } else { verify.block_bytes },
                verify.run,
                verify.content,
                verify.expect,
            )
        })
    };
    let stage = |of: &Stream| plan.workers[of.worker as usize].stage;
    let apart = |other: &Stream| {
        let together = stage(stream) == stage(other) && overlap(plan, stream, other);
        stream.verify.is_none() && !together
    };
    let others = plan.streams.iter().filter(|other| other.verify.is_some());
    let others = others.filter(|&other| !apart(other));
    for other in others.filter(|&other| !by_pattern(other) && !by_pattern(stream)) {
        let block_bytes = |of: &Stream| of.verify.map(|verify| verify.block_bytes);
        let overlapping = block_bytes(stream) == block_bytes(other) || overlap(plan, stream, other);
        need!(
            same(other.verify, overlapping) == same(stream.verify, overlapping) || !share_a_target(plan, stream, other),
            "{path}/verify" =>
                "differs from that of stream {}, which uses the same target: \
                 what one of them writes would look damaged to the other",
                other.name
        );
    }
    Ok(())
}

/// True when a stream checks what itself wrote, by a pattern.
fn by_pattern(stream: &Stream) -> bool {
    stream.verify.is_some_and(|verify| {
        verify.content == VerifyContent::Pattern && verify.expect == VerifyExpect::Stamps
    })
}

/// True when two streams use one target, under whatever names.
fn share_a_target(plan: &Plan, one: &Stream, other: &Stream) -> bool {
    let same = |a: &FileUse, b: &FileUse| first_of(plan, a.target) == first_of(plan, b.target);
    one.files
        .iter()
        .any(|a| other.files.iter().any(|b| same(a, b)))
}

/// True when the ranges of two streams on one file meet.
fn overlap(plan: &Plan, one: &Stream, other: &Stream) -> bool {
    let meets = |a: &FileUse, b: &FileUse| {
        first_of(plan, a.target) == first_of(plan, b.target)
            && a.offset_bytes < b.offset_bytes.saturating_add(b.length_bytes)
            && b.offset_bytes < a.offset_bytes.saturating_add(a.length_bytes)
    };
    one.files
        .iter()
        .any(|a| other.files.iter().any(|b| meets(a, b)))
}
