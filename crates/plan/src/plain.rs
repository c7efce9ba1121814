//! The plainest Plans, for tests to begin with and change.
//!
//! Knows one value for every field: reads of 4 KiB at random addresses, one at a time, for
//! a second. Knows no rule. It is in builds with debug assertions alone, which tests and fuzzers
//! are: nothing below a Plan has a default. No feature switches it on, so that the engine and its
//! tests are compiled from the same crates.

use super::*;

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// One worker and one target of 1 GiB that is not opened, in one cell.
#[must_use]
pub fn plan(backend: Backend, streams: Vec<Stream>) -> Plan {
    Plan {
        version: PLAN_VERSION,
        interval_ns: SECOND_NS / 10,
        grace_ns: SECOND_NS,
        memory_limit_bytes: 1 << 30,
        targets: vec![target("plain", TargetKind::Virtual, 1 << 30)],
        units: vec![Unit {
            name: "plain".into(),
            group: 0,
            clone: None,
        }],
        cells: vec![Cell {
            unit: 0,
            target: Some(0),
        }],
        workers: vec![worker(0, backend)],
        streams,
        journal: None,
        recover: None,
        earlier: vec![],
        hand_over: false,
        steady: vec![],
        trees: vec![],
    }
}

/// Opened as it is: nothing is created, and nothing goes past the cache.
#[must_use]
pub fn target(path: &str, kind: TargetKind, size_bytes: u64) -> Target {
    Target {
        path: path.into(),
        kind,
        size_bytes,
        direct: false,
        read_only: false,
        create: false,
        sync: OpenSync::None,
        exclusive: false,
        identity: None,
        layout: None,
        invalidate: false,
        advice: None,
        unlink: false,
        namesake: None,
        named: None,
    }
}

/// A thread wherever the scheduler puts it.
#[must_use]
pub fn worker(stage: u32, backend: Backend) -> Worker {
    Worker {
        stage,
        backend,
        cpus: vec![],
        nice: 0,
        io_priority: 0,
        force_async: 0,
    }
}

/// One server that takes 0.1 ms for everything and does no harm.
#[must_use]
pub fn device() -> SimDevice {
    SimDevice {
        seed: 1,
        servers: 1,
        read_ns: 100_000,
        write_ns: 100_000,
        service: ServiceTime::Constant,
        stall_every_ns: 0,
        stall_ns: 0,
        error_ppm: 0,
        short_ppm: 0,
        hang_ppm: 0,
        faults: None,
        behaviour: None,
    }
}

/// A device that keeps what is written, and damages none of it.
#[must_use]
pub fn no_faults() -> SimFaults {
    SimFaults {
        lost_ppm: 0,
        torn_ppm: 0,
        misdirected_ppm: 0,
        stale_ppm: 0,
        flip_ppm: 0,
        zero_ppm: 0,
        foreign_ppm: 0,
    }
}

fn payload() -> Payload {
    Payload {
        fill: Fill::Random {},
        refill: false,
        stamp: true,
        compress_percent: 0,
        compress_chunk_bytes: 0,
        dedupe_percent: 0,
        dedupe_set: None,
        dedupe_unit_bytes: 0,
    }
}

/// A second and nothing else.
fn limits() -> Limits {
    Limits {
        start_delay_ns: 0,
        ramp_ns: 0,
        runtime_ns: SECOND_NS,
        time_based: true,
        bytes: 0,
        ops: 0,
        ends_stage: false,
        ends_stage_on_error: false,
        max_latency_ns: [0; 3],
        prepare_only: false,
    }
}

/// Of worker 0, on all of a [`plan`]'s target; the first error ends it.
#[must_use]
pub fn stream() -> Stream {
    Stream {
        name: "plain.0".into(),
        worker: 0,
        files: vec![FileUse {
            target: 0,
            cell: 0,
            offset_bytes: 0,
            length_bytes: 1 << 30,
        }],
        file_choice: FileChoice::RoundRobin { every: 1 },
        open_files: None,
        seed: 1,
        iodepth: 1,
        batch: None,
        pattern: pattern([100, 0, 0], &order(100, 4096)),
        pace: Pace {
            read: None,
            write: None,
            trim: None,
            think: None,
        },
        flush: Flush {
            fsync_every: 0,
            fdatasync_every: 0,
            at_end: false,
            on_close: false,
        },
        payload: payload(),
        limits: limits(),
        errors: ErrorPolicy {
            continue_read: false,
            continue_write: false,
            ignore_read: vec![],
            ignore_write: vec![],
            continue_after: vec![],
        },
        log_ios: false,
        verify: None,
        headers: None,
        connection: None,
        flow: None,
        serialize_overlap: false,
        wait_for: vec![],
        search: None,
        priorities: Vec::new(),
        tree: None,
    }
}

/// Shares of reads, writes and trims that all go by one order.
#[must_use]
pub fn pattern(shares: [u32; 3], order: &OpPattern) -> Pattern {
    let [read_percent, write_percent, trim_percent] = shares;
    Pattern {
        read_percent,
        write_percent,
        trim_percent,
        trim_then_write: false,
        read: order.clone(),
        write: order.clone(),
        trim: order.clone(),
        strided: None,
        rows: None,
    }
}

/// Blocks of one size: so many of a hundred at random, each of the range once before any
/// comes again, and the others one after the other.
#[must_use]
pub fn order(random_percent: u32, bytes: u32) -> OpPattern {
    OpPattern {
        random_percent,
        random: RandomOrder::Uniform { repeat: false },
        stride_bytes: 0,
        stride_spread_bytes: 0,
        run_length: 1,
        run_identical: false,
        sizes: Sizes::Fixed { bytes },
        align_bytes: u64::from(bytes),
    }
}

/// Evenly spaced arrivals.
#[must_use]
pub fn rate(ops_per_second: f64) -> Rate {
    Rate {
        amount: RateAmount::Ops {
            per_second: ops_per_second,
        },
        process: RateProcess::Linear,
        profile: vec![],
        phase: 0.0,
        minimum: 0.0,
        min_window_ns: SECOND_NS,
    }
}
