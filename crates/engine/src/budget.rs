//! How much memory a Plan needs, known before anything is allocated.
//!
//! Knows the sizes of what a run allocates. Allocates nothing.

use std::collections::BTreeMap;

use loadstone_base::run_error::RunError;
use loadstone_generation::chain::Chains;
use loadstone_generation::pattern::{map_bytes, NextIo};
use loadstone_io::memory::PAGE_BYTES;
use loadstone_plan::max_block_bytes;
use loadstone_plan::{Fill, Plan, Stream};
use loadstone_trees as tree;
use loadstone_verification::headers::readback::Readback;
use loadstone_verification::verify::tables;
use loadstone_verification::verify::verifier::Verifier;
use loadstone_worker::priority::Priorities;
use loadstone_worker::record::CounterTable;
use loadstone_worker::rows::WorkerRows;
use loadstone_worker::samples::IoRecord;
use loadstone_worker::slots::{Counters, Slot};
use loadstone_worker::state::{LOG_BLOCK, LOG_BLOCKS};
use loadstone_worker::stream::Use;

/// Program, libraries, stacks and message buffers.
const BASE_BYTES: u64 = 8 << 20;
const SPARE_IN_VIRTUAL_TIME: usize = 4;

/// How many tables a worker has beside the one it counts in. In virtual time it waits for
/// one at each cut: with several it cuts that often before it does, and they are written
/// together. What is steady is to end after the interval that shows it, not several later.
#[must_use]
pub fn spare_tables(plan: &Plan, worker: u32) -> usize {
    let backend = &plan.workers[worker as usize].backend;
    if backend.capabilities().virtual_time && plan.steady.is_empty() {
        SPARE_IN_VIRTUAL_TIME
    } else {
        1
    }
}

/// Bytes from one slot's buffer to the next.
#[must_use]
pub fn buffer_stride(stream: &Stream) -> usize {
    (max_block_bytes(stream) as usize).next_multiple_of(PAGE_BYTES)
}

/// A pattern is kept in the Plan, in the payload and in the verifier.
fn pattern_bytes(stream: &Stream) -> u64 {
    match &stream.payload.fill {
        Fill::Pattern { bytes } => 3 * bytes.len() as u64,
        Fill::Random {} | Fill::Zero {} => 0,
    }
}

/// Memory of a worker with these streams.
fn worker_bytes(plan: &Plan, worker: u32, streams: &[u32]) -> u64 {
    let rows = WorkerRows::new(plan, streams);
    let own = || streams.iter().map(|&id| &plan.streams[id as usize]);
    let ramps = |stream: &Stream| stream.limits.ramp_ns > 0 || stream.search.is_some();
    let table_bytes = if own().any(ramps) {
        CounterTable::bytes_needed(rows.len())
    } else {
        CounterTable::bytes_without_ramp(rows.len())
    };
    let mut bytes = ((1 + spare_tables(plan, worker)) * table_bytes) as u64;
    let mut depth = 0u64;
    for stream in own() {
        let iodepth = u64::from(stream.iodepth);
        depth += iodepth;
        bytes += iodepth * (buffer_stride(stream) + size_of::<Slot>() + 8 + 16) as u64;
        bytes += (size_of::<Counters>() + 1024) as u64;
        // A use, and the generator's cursors for each operation.
        bytes += stream.files.len() as u64 * (size_of::<Use>() as u64 + 3 * 192);
        bytes += Verifier::memory_bytes(stream);
        bytes += Readback::memory_bytes(stream);
        bytes += map_bytes(stream);
        bytes += pattern_bytes(stream);
        bytes += Priorities::memory_bytes(stream);
        if stream
            .verify
            .is_some_and(|verify| verify.reads_beside_writes())
        {
            bytes += Chains::memory_bytes(stream.iodepth);
        }
        if stream.serialize_overlap {
            bytes += iodepth * size_of::<(u32, NextIo)>() as u64;
        }
    }
    if own().any(|stream| stream.log_ios) {
        bytes += (LOG_BLOCK * LOG_BLOCKS * size_of::<IoRecord>()) as u64;
    }
    // Completion queue entries of 16 bytes, and as much again in completions copied.
    bytes + depth.next_power_of_two() * 32 + 256 * 1024
}

/// Memory the Plan needs at most at one time, in bytes: its largest stage.
#[must_use]
pub fn memory_bytes(plan: &Plan) -> u64 {
    let mut stages = BTreeMap::<u32, u64>::new();
    for (number, streams) in (0..).zip(plan.streams_by_worker()) {
        let stage = plan.workers[number as usize].stage;
        *stages.entry(stage).or_default() += worker_bytes(plan, number, &streams);
    }
    let largest = stages.into_values().max().unwrap_or(0);
    largest
        + tables::memory_bytes(plan)
        + tree::memory_bytes(plan)
        + BASE_BYTES
        + (plan.targets.len() + plan.streams.len()) as u64 * 512
}

/// Refuses a Plan over its own limit.
///
/// # Errors
/// [`RunError::Plan`].
pub fn check(plan: &Plan) -> Result<u64, RunError> {
    let needed = memory_bytes(plan);
    if needed <= plan.memory_limit_bytes {
        return Ok(needed);
    }
    Err(RunError::Plan {
        path: "/memory_limit_bytes".into(),
        message: format!(
            "the run needs {} MiB of memory, the limit is {} MiB",
            needed.div_ceil(1 << 20),
            plan.memory_limit_bytes >> 20
        ),
        hint: "lower iodepth, block size or the number of clones; verification keeps 4 bytes for each verify block: larger ones need less; a tree keeps 8 to 16 bytes for each file".into(),
    })
}
