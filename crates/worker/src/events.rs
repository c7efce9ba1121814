//! What the engine says on standard output: one JSON object per line.
//!
//! Knows the shapes of the tables of events in contract/README.md. Knows nothing of when they are said.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::slots::Tally;
use loadstone_base::ops::OPS;

/// Events of one target after which its errors are only counted.
pub const MAX_ERRORS_PER_TARGET: u32 = 100;

/// One line of standard output.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "contract/README.md has the tables of these fields"
)]
pub enum Event {
    Hello {
        engine_version: &'static str,
        pid: u32,
        memory_bytes: u64,
        clock: &'static str,
        clock_error_ppm: f64,
    },
    Layout {
        target: u32,
        done_bytes: u64,
        total_bytes: u64,
    },
    Note {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        worker: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<u32>,
    },
    TooLate {
        t_ns: u64,
        stream: u32,
        target: u32,
        op: &'static str,
        offset: u64,
        bytes: u32,
        lat_ns: u64,
        max_ns: u64,
    },
    Signal {
        #[serde(skip_serializing_if = "Option::is_none")]
        t_ns: Option<u64>,
        signal: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        sender_pid: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sender_uid: Option<u32>,
        #[serde(skip_serializing_if = "String::is_empty")]
        sender: String,
    },
    Armed {
        monotonic_ns: u64,
    },
    Start {
        unix_ns: u64,
        startup_ns: u64,
        monotonic_ns: u64,
        first_ns: u64,
    },
    Stage {
        t_ns: u64,
        stage: u32,
    },
    Tick {
        t_ns: u64,
        interval: u32,
        cpu_user_ns: u64,
        cpu_system_ns: u64,
        spun_ns: u64,
        rss_bytes: u64,
        rows: Vec<TickRow>,
    },
    IoError(IoFailure),
    Hung {
        t_ns: u64,
        stream: u32,
        target: u32,
        op: &'static str,
        offset: u64,
        bytes: u32,
        age_ns: u64,
    },
    Stopped {
        t_ns: u64,
        stopped_ns: u64,
        ops: u64,
    },
    FineSamples {
        t_ns: u64,
        stage: u32,
        start_ns: u64,
        lengths_us: Vec<u64>,
        ops: Vec<u64>,
    },
    Damage(Box<DamageFound>),
    Depth {
        t_ns: u64,
        stream: u32,
        depth: u32,
        found: bool,
    },
    Steady(Box<SteadyState>),
    StreamEnd(Box<StreamEnd>),
    VerifyEnd {
        t_ns: u64,
        stream: u32,
        checked: u64,
        unverified: u64,
        damaged: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        rehearsed: Option<[u64; 2]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reading_ns: Option<u64>,
    },
    WriteState(Box<WriteState>),
    Verified {
        found: BTreeMap<&'static str, u64>,
    },
    Tree {
        target: u32,
        files: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        foreign: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        first: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        newest_ns: Option<u64>,
    },
    Injected {
        target: u32,
        kind: &'static str,
        offset: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<u64>,
    },
    End {
        t_ns: u64,
        reason: &'static str,
        cpu_user_ns: u64,
        cpu_system_ns: u64,
        spun_ns: u64,
        voluntary_switches: u64,
        involuntary_switches: u64,
        major_faults: u64,
        minor_faults: u64,
        rss_peak_bytes: u64,
        ops: u64,
    },
    Fatal {
        code: i32,
        message: String,
        hint: String,
    },
}

/// A row of a tick.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the columns of samples.arrows, merged")]
pub struct TickRow {
    pub cell: u32,
    pub op: &'static str,
    pub ramp: bool,
    pub ops: u64,
    pub bytes: u64,
    pub errors: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
    pub inflight: u32,
}

/// What came of a rule for a steady state.
#[derive(Debug, Clone, Serialize)]
#[allow(
    missing_docs,
    reason = "contract/README.md has the tables of these fields"
)]
pub struct SteadyState {
    pub t_ns: u64,
    pub rule: u32,
    pub attained: bool,
    pub criterion: Option<f64>,
    pub deviation: f64,
    pub slope: f64,
    pub ops_per_second: Vec<u64>,
    pub bytes_per_second: Vec<u64>,
    pub lat_mean_ns: Vec<u64>,
}

/// An I/O that failed or came back short.
#[derive(Debug, Clone, Serialize)]
#[allow(
    missing_docs,
    reason = "contract/README.md has the tables of these fields"
)]
pub struct IoFailure {
    pub t_ns: u64,
    pub stream: u32,
    pub target: u32,
    pub op: &'static str,
    pub offset: u64,
    pub bytes: u32,
    pub errno: i32,
    pub moved: u32,
    pub message: String,
}

/// A block that does not hold what was written.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(
    missing_docs,
    reason = "contract/README.md has the tables of these fields"
)]
pub struct DamageFound {
    pub t_ns: u64,
    pub stream: u32,
    pub target: u32,
    pub offset: u64,
    pub bytes: u32,
    pub kind: &'static str,
    pub expected_generation: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_generation: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_target: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_offset: Option<u64>,
    pub first_sector: u32,
    pub sectors: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flipped_bits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_bit: Option<u32>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<String>,
}

/// How far the writes of a stream came.
#[derive(Debug, Clone, Serialize)]
#[allow(
    missing_docs,
    reason = "contract/README.md has the tables of these fields"
)]
pub struct WriteState {
    pub t_ns: u64,
    pub stream: u32,
    pub number: u64,
    pub open: Vec<u64>,
    pub completed: Vec<[u64; 2]>,
}

/// What a stream did, said once when it ends.
#[derive(Debug, Clone, Serialize)]
#[allow(
    missing_docs,
    reason = "contract/README.md has the tables of these fields"
)]
pub struct StreamEnd {
    pub t_ns: u64,
    pub stream: u32,
    pub reason: &'static str,
    pub started_ns: u64,
    pub ramp_end_ns: u64,
    pub ended_ns: u64,
    pub issued: [u64; OPS],
    pub completed: [u64; OPS],
    pub failed: [u64; OPS],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_ops: Option<BTreeMap<&'static str, Tally>>,
    pub depth: [u64; 7],
    pub submit_batches: [u64; 7],
    pub complete_batches: [u64; 7],
    pub backend: &'static str,
}

/// Writes events; after the reader is gone it keeps quiet and remembers.
#[derive(Debug, Default)]
pub struct Speaker {
    gone: bool,
}

impl Speaker {
    /// Says one event.
    pub fn say(&mut self, event: &Event) {
        if self.gone {
            return;
        }
        let mut line = match serde_json::to_vec(event) {
            Ok(line) => line,
            Err(error) => {
                format!("{{\"type\":\"note\",\"text\":\"an event could not be written: {error}\"}}")
                    .into_bytes()
            }
        };
        line.push(b'\n');
        let mut out = io::stdout().lock();
        self.gone = out.write_all(&line).and_then(|()| out.flush()).is_err();
    }

    /// True when nobody reads any more.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.gone
    }
}
