//! What the process used: CPU time, memory, faults and switches.
//!
//! Knows `getrusage(2)` of the whole process, so the kernel's workers for this process
//! are included, and `/proc/self/statm` and `status`. Knows no interval.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time that workers spun for completions: of this the kernel cannot tell.
static SPUN_NS: AtomicU64 = AtomicU64::new(0);

/// A worker spun for so long.
pub fn note_spun(spun_ns: u64) {
    if spun_ns > 0 {
        SPUN_NS.fetch_add(spun_ns, Ordering::Relaxed);
    }
}

/// Use of the whole process so far.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs, reason = "as in the `end` event")]
pub struct Usage {
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub major_faults: u64,
    pub minor_faults: u64,
    pub spun_ns: u64,
}

impl Usage {
    /// Use so far.
    #[must_use]
    pub fn now() -> Self {
        // SAFETY: a zeroed rusage is valid and is filled by the call.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Self {
            cpu_user_ns: ns(usage.ru_utime),
            cpu_system_ns: ns(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            major_faults: usage.ru_majflt as u64,
            minor_faults: usage.ru_minflt as u64,
            spun_ns: SPUN_NS.load(Ordering::Relaxed),
        }
    }

    /// Use since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu_user_ns: self.cpu_user_ns.saturating_sub(earlier.cpu_user_ns),
            cpu_system_ns: self.cpu_system_ns.saturating_sub(earlier.cpu_system_ns),
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
            major_faults: self.major_faults - earlier.major_faults,
            minor_faults: self.minor_faults - earlier.minor_faults,
            spun_ns: self.spun_ns.saturating_sub(earlier.spun_ns),
        }
    }
}

/// Resident memory, read once for each interval: its file stays open.
#[derive(Debug)]
pub struct Resident(Option<File>);

impl Resident {
    /// Opens `/proc/self/statm`.
    #[must_use]
    pub fn open() -> Self {
        Self(File::open("/proc/self/statm").ok())
    }

    /// Resident memory now; 0 when `/proc` cannot be read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let mut text = [0; 128];
        let read = self.0.as_ref().map(|file| file.read_at(&mut text, 0));
        let text = &text[..read.and_then(Result::ok).unwrap_or(0)];
        let pages = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
        pages.unwrap_or(0) * crate::memory::PAGE_BYTES as u64
    }
}

/// Most memory resident at one time. `ru_maxrss` would not do: it is inherited over
/// `exec`, so it may be the parent's.
#[must_use]
pub fn peak_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
