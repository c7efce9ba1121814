//! Is a Plan well-formed, and how much memory does it need?
//!
//! Knows the rules between a Plan's fields and the sizes of what a run allocates.
//! Opens nothing and allocates nothing but messages.

use crate::fault::Fault;
use crate::memory::PAGE_BYTES;
use crate::plan::{
    Backend, OpPattern, Plan, RandomOrder, Rate, RateAmount, Sizes, Stream, TargetKind,
    PLAN_VERSION,
};
use crate::record::Table;
use crate::rows::Rows;
use crate::slots::{Counters, Slot};
use crate::state::LOG_BLOCK;
use crate::stream::{max_block_bytes, max_size, Use};

/// Program, libraries, stacks and message buffers.
const BASE_BYTES: u64 = 8 << 20;
/// Streams a worker's records of single I/Os may have under way, in blocks.
pub const LOG_BLOCKS: usize = 16;
/// Most I/Os a stream may have in flight.
const MAX_DEPTH: u32 = 1 << 20;

/// Parses a Plan.
///
/// # Errors
/// [`Fault::Plan`] with the place in the text.
pub fn parse(text: &str) -> Result<Plan, Fault> {
    serde_json::from_str(text).map_err(|error| Fault::Plan {
        path: format!("line {}, column {}", error.line(), error.column()),
        message: error.to_string(),
        hint: "the Plan's schema: loadstone-engine schema".into(),
    })
}

type Checked = Result<(), Fault>;

fn need(holds: bool, path: impl FnOnce() -> String, message: impl FnOnce() -> String) -> Checked {
    if holds {
        Ok(())
    } else {
        Err(Fault::plan(path(), message()))
    }
}

/// Checks every rule; the first one broken is told.
///
/// # Errors
/// [`Fault::Plan`] with the JSON path of the field.
pub fn check(plan: &Plan) -> Checked {
    need(
        plan.version == PLAN_VERSION,
        || "/version".into(),
        || format!("is {}, this engine reads {PLAN_VERSION}", plan.version),
    )?;
    need(
        plan.interval_ns >= 1_000_000,
        || "/interval_ns".into(),
        || format!("is {}, must be at least 1000000 (1 ms)", plan.interval_ns),
    )?;
    need(
        !plan.streams.is_empty(),
        || "/streams".into(),
        || "is empty: nothing to do".into(),
    )?;
    for (index, cell) in plan.cells.iter().enumerate() {
        within(
            cell.unit,
            plan.units.len(),
            &format!("/cells/{index}/unit"),
            "units",
        )?;
        if let Some(target) = cell.target {
            within(
                target,
                plan.targets.len(),
                &format!("/cells/{index}/target"),
                "targets",
            )?;
        }
    }
    for (index, target) in plan.targets.iter().enumerate() {
        let path = |field: &str| format!("/targets/{index}/{field}");
        need(
            !target.path.is_empty() || target.kind == TargetKind::Virtual,
            || path("path"),
            || "is empty".into(),
        )?;
        need(
            !target.path.contains('\0'),
            || path("path"),
            || "contains a zero byte".into(),
        )?;
        need(
            target.layout.is_none() || target.kind == TargetKind::File,
            || path("layout"),
            || "only a regular file can be laid out".into(),
        )?;
        need(
            !target.unlink || target.kind == TargetKind::File,
            || path("unlink"),
            || "only a regular file can be removed".into(),
        )?;
    }
    for (index, stream) in plan.streams.iter().enumerate() {
        let path = format!("/streams/{index}/worker");
        within(stream.worker, plan.workers.len(), &path, "workers")?;
    }
    for (index, worker) in plan.workers.iter().enumerate() {
        let path = |field: &str| format!("/workers/{index}/{field}");
        need(
            (-20..=19).contains(&worker.nice),
            || path("nice"),
            || format!("is {}, must be -20 to 19", worker.nice),
        )?;
        need(
            worker
                .cpus
                .iter()
                .all(|&cpu| cpu < libc::CPU_SETSIZE as u32),
            || path("cpus"),
            || "no such processor".into(),
        )?;
        need(
            plan.streams
                .iter()
                .any(|stream| stream.worker as usize == index),
            || format!("/workers/{index}"),
            || "has no stream".into(),
        )?;
    }
    let stages = plan
        .workers
        .iter()
        .map(|worker| worker.stage)
        .max()
        .unwrap_or(0);
    for stage in 0..=stages.min(plan.workers.len() as u32) {
        need(
            plan.workers.iter().any(|worker| worker.stage == stage),
            || "/workers".into(),
            || format!("stage {stage} has no worker; stages count from 0 without gaps"),
        )?;
    }
    for (index, stream) in plan.streams.iter().enumerate() {
        check_stream(plan, stream, &format!("/streams/{index}"))?;
    }
    Ok(())
}

fn within(index: u32, count: usize, path: &str, what: &str) -> Checked {
    need(
        (index as usize) < count,
        || path.into(),
        || format!("is {index}, there are {count} {what}"),
    )
}

fn check_stream(plan: &Plan, stream: &Stream, path: &str) -> Checked {
    let backend = &plan.workers[stream.worker as usize].backend;
    need(
        (1..=MAX_DEPTH).contains(&stream.iodepth),
        || format!("{path}/iodepth"),
        || format!("is {}, must be 1 to {MAX_DEPTH}", stream.iodepth),
    )?;
    need(
        !stream.files.is_empty(),
        || format!("{path}/files"),
        || "is empty: a stream needs a file".into(),
    )?;
    check_pattern(stream, path)?;
    check_files(plan, stream, backend, path)?;
    if let Some(batch) = stream.batch {
        let at = |field: &str| format!("{path}/batch/{field}");
        need(
            (1..=stream.iodepth).contains(&batch.submit),
            || at("submit"),
            || {
                format!(
                    "is {}, must be 1 to iodepth {}",
                    batch.submit, stream.iodepth
                )
            },
        )?;
        need(
            (1..=stream.iodepth).contains(&batch.low),
            || at("low"),
            || format!("is {}, must be 1 to iodepth {}", batch.low, stream.iodepth),
        )?;
        need(
            batch.complete_max >= batch.complete_min.max(1),
            || at("complete_max"),
            || {
                format!(
                    "is {}, below complete_min {} or 1",
                    batch.complete_max, batch.complete_min
                )
            },
        )?;
    }
    for (name, rate) in [
        ("read", &stream.pace.read),
        ("write", &stream.pace.write),
        ("trim", &stream.pace.trim),
    ] {
        if let Some(rate) = rate {
            check_rate(rate, &format!("{path}/pace/{name}"))?;
        }
    }
    if let Some(think) = &stream.pace.think {
        need(
            think.every_ios > 0,
            || format!("{path}/pace/think/every_ios"),
            || "is 0, must be at least 1".into(),
        )?;
    }
    need(
        stream.payload.compress_percent <= 100,
        || format!("{path}/payload/compress_percent"),
        || "is above 100".into(),
    )?;
    need(
        stream.payload.dedupe_percent <= 100,
        || format!("{path}/payload/dedupe_percent"),
        || "is above 100".into(),
    )?;
    if let crate::plan::Fill::Pattern { bytes } = &stream.payload.fill {
        need(
            (1..=512).contains(&bytes.len()),
            || format!("{path}/payload/fill/bytes"),
            || format!("has {} bytes, must have 1 to 512", bytes.len()),
        )?;
    }
    let limits = &stream.limits;
    let ends =
        limits.runtime_ns > 0 || (!limits.time_based && (limits.bytes > 0 || limits.ops > 0));
    need(
        ends,
        || format!("{path}/limits"),
        || "the stream would never end: give runtime_ns, bytes or ops".into(),
    )?;
    Ok(())
}

fn check_files(plan: &Plan, stream: &Stream, backend: &Backend, path: &str) -> Checked {
    let is_virtual = matches!(backend, Backend::Null {} | Backend::Sim { .. });
    let writes = stream.pattern.write_percent > 0 || stream.pattern.trim_percent > 0;
    let block = u64::from(largest_size(stream));
    for (index, file) in stream.files.iter().enumerate() {
        let at = |field: &str| format!("{path}/files/{index}/{field}");
        within(file.target, plan.targets.len(), &at("target"), "targets")?;
        within(file.cell, plan.cells.len(), &at("cell"), "cells")?;
        let target = &plan.targets[file.target as usize];
        need(
            file.length_bytes >= block,
            || at("length_bytes"),
            || {
                format!(
                    "is {}, smaller than the largest block of {block} bytes",
                    file.length_bytes
                )
            },
        )?;
        let end = file.offset_bytes.checked_add(file.length_bytes);
        need(
            end.is_some_and(|end| end <= i64::MAX as u64),
            || at("offset_bytes"),
            || "ends beyond 2^63".into(),
        )?;
        let bounded = matches!(target.kind, TargetKind::File | TargetKind::Block);
        need(
            !bounded || end.is_some_and(|end| end <= target.size_bytes),
            || at("length_bytes"),
            || {
                format!(
                    "ends at {}, the target has {} bytes",
                    end.unwrap_or(u64::MAX),
                    target.size_bytes
                )
            },
        )?;
        need(
            is_virtual || target.kind != TargetKind::Virtual,
            || at("target"),
            || "is virtual: only the null and sim backends can use it".into(),
        )?;
        need(
            is_virtual || !writes || !target.read_only,
            || at("target"),
            || {
                format!(
                    "{} is opened read-only and the stream writes or trims",
                    target.path
                )
            },
        )?;
        if matches!(backend, Backend::IoUring { iopoll: true, .. }) {
            need(
                target.direct,
                || at("target"),
                || format!("{}: iopoll needs direct I/O", target.path),
            )?;
        }
        if target.direct {
            need(
                file.offset_bytes % 512 == 0,
                || at("offset_bytes"),
                || {
                    format!(
                        "is {}: direct I/O needs multiples of the logical block size",
                        file.offset_bytes
                    )
                },
            )?;
        }
    }
    Ok(())
}

fn largest_size(stream: &Stream) -> u32 {
    let pattern = &stream.pattern;
    [
        (pattern.read_percent, &pattern.read),
        (pattern.write_percent, &pattern.write),
        (pattern.trim_percent, &pattern.trim),
    ]
    .into_iter()
    .filter(|(percent, _)| *percent > 0)
    .map(|(_, order)| max_size(&order.sizes))
    .max()
    .unwrap_or(0)
}

fn check_pattern(stream: &Stream, path: &str) -> Checked {
    let pattern = &stream.pattern;
    let sum = u64::from(pattern.read_percent)
        + u64::from(pattern.write_percent)
        + u64::from(pattern.trim_percent);
    need(
        sum == 100,
        || format!("{path}/pattern"),
        || format!("read, write and trim add up to {sum}, must be 100"),
    )?;
    let orders = [
        ("read", pattern.read_percent, &pattern.read),
        ("write", pattern.write_percent, &pattern.write),
        ("trim", pattern.trim_percent, &pattern.trim),
    ];
    for (name, _, order) in orders.into_iter().filter(|(_, percent, _)| *percent > 0) {
        check_order(order, &format!("{path}/pattern/{name}"))?;
    }
    if let crate::plan::FileChoice::RoundRobin { every }
    | crate::plan::FileChoice::Random { every } = stream.file_choice
    {
        need(
            every > 0,
            || format!("{path}/file_choice/every"),
            || "is 0, must be at least 1".into(),
        )?;
    }
    Ok(())
}

fn check_order(order: &OpPattern, path: &str) -> Checked {
    need(
        order.random_percent <= 100,
        || format!("{path}/random_percent"),
        || "is above 100".into(),
    )?;
    need(
        order.run_length > 0,
        || format!("{path}/run_length"),
        || "is 0, must be at least 1".into(),
    )?;
    need(
        order.align_bytes > 0,
        || format!("{path}/align_bytes"),
        || "is 0, must be at least 1".into(),
    )?;
    let sizes = format!("{path}/sizes");
    match &order.sizes {
        Sizes::Fixed { bytes } => need(*bytes > 0, || sizes, || "0 bytes".into())?,
        Sizes::Range {
            min_bytes,
            max_bytes,
            step_bytes,
        } => {
            need(
                *min_bytes > 0 && min_bytes <= max_bytes && *step_bytes > 0,
                || sizes,
                || format!("range {min_bytes} to {max_bytes} in steps of {step_bytes} is empty"),
            )?;
        }
        Sizes::Split { table } => {
            need(
                !table.is_empty(),
                || sizes.clone(),
                || "the table is empty".into(),
            )?;
            let good = table
                .iter()
                .all(|entry| entry.bytes > 0 && entry.weight > 0.0 && entry.weight.is_finite());
            need(
                good,
                || sizes,
                || "every entry needs bytes and weight above 0".into(),
            )?;
        }
    }
    need(
        max_size(&order.sizes) <= i32::MAX as u32,
        || format!("{path}/sizes"),
        || "a block is above 2 GiB".into(),
    )?;
    let random = format!("{path}/random");
    match &order.random {
        RandomOrder::Uniform { .. } => Ok(()),
        RandomOrder::Zipf { theta, .. } => need(
            theta.is_finite() && *theta > 0.0 && (theta - 1.0).abs() > 1e-9,
            || random,
            || format!("theta is {theta}, must be above 0 and not 1"),
        ),
        RandomOrder::Pareto { h, .. } => need(
            *h > 0.0 && *h < 1.0,
            || random,
            || format!("h is {h}, must be between 0 and 1"),
        ),
        RandomOrder::Normal {
            deviation_percent, ..
        } => need(
            deviation_percent.is_finite() && *deviation_percent > 0.0,
            || random,
            || format!("deviation_percent is {deviation_percent}, must be above 0"),
        ),
        RandomOrder::Zoned { zones } => {
            let sum: f64 = zones.iter().map(|zone| zone.access_percent).sum();
            let shares = zones
                .iter()
                .all(|zone| zone.access_percent >= 0.0 && zone.length_bytes > 0);
            need(
                shares && (sum - 100.0).abs() < 0.01,
                || random,
                || {
                    format!(
                        "access shares add up to {sum}, must be 100, and every zone needs a length"
                    )
                },
            )
        }
    }
}

fn check_rate(rate: &Rate, path: &str) -> Checked {
    let (RateAmount::Ops { per_second } | RateAmount::Bytes { per_second }) = rate.amount;
    need(
        per_second.is_finite() && per_second > 0.0,
        || format!("{path}/amount"),
        || format!("is {per_second}, must be above 0"),
    )?;
    need(
        rate.minimum.is_finite() && rate.minimum >= 0.0,
        || format!("{path}/minimum"),
        || "is negative".into(),
    )?;
    need(
        rate.minimum == 0.0 || rate.min_window_ns > 0,
        || format!("{path}/min_window_ns"),
        || "is 0, a minimum needs a window".into(),
    )
}

/// Bytes from one slot's buffer to the next.
#[must_use]
pub fn buffer_stride(stream: &Stream) -> usize {
    (max_block_bytes(stream) as usize).next_multiple_of(PAGE_BYTES)
}

/// Memory of one worker.
fn worker_bytes(plan: &Plan, worker: u32) -> u64 {
    let rows = Rows::new(plan, worker);
    let mut bytes = 2 * Table::bytes_needed(rows.len()) as u64;
    let mut depth = 0u64;
    for stream in plan.streams.iter().filter(|stream| stream.worker == worker) {
        let own = u64::from(stream.iodepth);
        depth += own;
        bytes += own * (buffer_stride(stream) + size_of::<Slot>() + 8 + 16) as u64;
        bytes += (size_of::<Counters>() + 1024) as u64;
        // A use, and the generator's cursors for each operation.
        bytes += stream.files.len() as u64 * (size_of::<Use>() as u64 + 3 * 192);
        if stream.log_ios {
            bytes += (LOG_BLOCK * (LOG_BLOCKS + 1) * size_of::<crate::samples::IoRecord>()) as u64;
        }
    }
    // Completion queue entries of 16 bytes, and as much again in completions copied.
    bytes + depth.next_power_of_two() * 32 + 256 * 1024
}

/// Memory the Plan needs at most at one time, in bytes: its largest stage.
#[must_use]
pub fn memory_bytes(plan: &Plan) -> u64 {
    let stages = plan
        .workers
        .iter()
        .map(|worker| worker.stage)
        .max()
        .unwrap_or(0);
    let mut largest = 0;
    for stage in 0..=stages {
        let workers = plan
            .workers
            .iter()
            .enumerate()
            .filter(|(_, worker)| worker.stage == stage);
        largest = largest.max(
            workers
                .map(|(index, _)| worker_bytes(plan, index as u32))
                .sum(),
        );
    }
    largest + BASE_BYTES + (plan.targets.len() + plan.streams.len()) as u64 * 512
}

/// Refuses a Plan over its own limit.
///
/// # Errors
/// [`Fault::Plan`].
pub fn check_memory(plan: &Plan) -> Result<u64, Fault> {
    let needed = memory_bytes(plan);
    if needed <= plan.memory_limit_bytes {
        return Ok(needed);
    }
    Err(Fault::Plan {
        path: "/memory_limit_bytes".into(),
        message: format!(
            "the Plan needs {needed} bytes, the limit is {}",
            plan.memory_limit_bytes
        ),
        hint: "lower iodepth, block size or the number of clones, or raise the limit".into(),
    })
}
