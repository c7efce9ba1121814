//! What this host offers the engine, as one JSON document.
//!
//! Knows how to ask the kernel. Judges nothing: `loadstone doctor` does.

use serde::Serialize;

use crate::backend::ring::{abi, Ring, RingOptions};
use loadstone_base::clock::{tsc_usable, Calibration};

/// The answers.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "plain names of plain answers")]
pub struct Probe {
    pub engine_version: &'static str,
    pub kernel: String,
    pub processors: u32,
    pub io_uring: IoUring,
    /// `RLIMIT_MEMLOCK` in bytes; none: unlimited.
    pub memlock_limit_bytes: Option<u64>,
    /// `RLIMIT_NOFILE`, soft and hard.
    pub open_files_limit: [u64; 2],
    pub tsc_usable: bool,
    pub clock: &'static str,
    pub clock_error_ppm: f64,
}

/// What io_uring can do here.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "plain names of plain answers")]
pub struct IoUring {
    pub available: bool,
    /// Error of the set-up when it is not available.
    pub error: Option<String>,
    pub features: u32,
    /// Numbers of the operations the kernel knows.
    pub operations: Vec<u8>,
    /// Set-up flags of the ring the engine would use.
    pub setup_flags: Vec<&'static str>,
    pub iopoll: bool,
    pub sqpoll: bool,
}

/// Asks.
#[must_use]
pub fn probe() -> Probe {
    let clock = Calibration::start().finish();
    let memlock = limit(libc::RLIMIT_MEMLOCK);
    let open_files = limit(libc::RLIMIT_NOFILE);
    Probe {
        engine_version: env!("CARGO_PKG_VERSION"),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        io_uring: probe_ring(),
        memlock_limit_bytes: (memlock[0] != libc::RLIM_INFINITY).then_some(memlock[0]),
        open_files_limit: open_files,
        tsc_usable: tsc_usable(),
        clock: clock.name(),
        clock_error_ppm: clock.error_ppm(),
    }
}

/// What C libraries number the limits of a process with.
#[cfg(target_env = "gnu")]
type Limit = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Limit = libc::c_int;

fn limit(which: Limit) -> [u64; 2] {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid rlimit.
    unsafe { libc::getrlimit(which, &mut limit) };
    [limit.rlim_cur, limit.rlim_max]
}

fn probe_ring() -> IoUring {
    let options = RingOptions {
        sq_entries: 4,
        cq_entries: 8,
        iopoll: false,
        sqpoll: false,
    };
    let opens = |options: RingOptions| Ring::<abi::Sqe>::new(&options).is_ok();
    match Ring::<abi::Sqe>::new(&options) {
        Ok(ring) => IoUring {
            available: true,
            error: None,
            features: ring.features(),
            operations: ring.operations(),
            setup_flags: abi::SETUP_NAMES
                .iter()
                .filter(|(flag, _)| ring.setup_flags() & flag != 0)
                .map(|(_, name)| *name)
                .collect(),
            iopoll: opens(RingOptions {
                iopoll: true,
                ..options
            }),
            sqpoll: opens(RingOptions {
                sqpoll: true,
                ..options
            }),
        },
        Err(error) => IoUring {
            available: false,
            error: Some(error.to_string()),
            features: 0,
            operations: Vec::new(),
            setup_flags: Vec::new(),
            iopoll: false,
            sqpoll: false,
        },
    }
}
