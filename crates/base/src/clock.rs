//! The run's clock: `CLOCK_MONOTONIC` nanoseconds, read through the time-stamp counter
//! where that is safe.
//!
//! Knows how to read time cheaply and how wrong it may be. Knows no schedule. The counter
//! is used only when the CPU says it is invariant and the kernel keeps its own time
//! by it (clock source `tsc`); then one read costs a few nanoseconds instead of about
//! twenty-five.

use std::time::Duration;

/// Shortest calibration: long enough for an error of a few parts per million.
const CALIBRATION_NS: u64 = 4_000_000;
/// Readings bracketed by the counter, of which the tightest is kept.
const BRACKETS: u32 = 16;

/// A copyable reader of the run's clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Counter value that stands for `base_ns`.
    base_ticks: u64,
    base_ns: u64,
    /// Nanoseconds per tick, as a 32.32 fixed-point number; 0: no usable counter.
    scale: u64,
    error_ppm: f64,
}

/// A first reading; [`Calibration::finish`] makes the clock some milliseconds later, so
/// that the time in between can be used for something else.
#[derive(Debug, Clone, Copy)]
pub struct Calibration {
    usable: bool,
    first: ClockReading,
}

#[derive(Debug, Clone, Copy)]
struct ClockReading {
    ticks: u64,
    ns: u64,
    /// Width of the bracket around `ns`, in ticks.
    width_ticks: u64,
}

impl Calibration {
    /// Takes the first reading.
    #[must_use]
    pub fn start() -> Self {
        let usable = tsc_usable();
        let first = if usable {
            ClockReading::take()
        } else {
            ClockReading {
                ticks: 0,
                ns: 0,
                width_ticks: 0,
            }
        };
        Self { usable, first }
    }

    /// Waits until the calibration has lasted long enough and gives the clock.
    #[must_use]
    pub fn finish(self) -> Clock {
        if !self.usable {
            return Clock::monotonic();
        }
        let elapsed = monotonic_ns().saturating_sub(self.first.ns);
        if elapsed < CALIBRATION_NS {
            std::thread::sleep(Duration::from_nanos(CALIBRATION_NS - elapsed));
        }
        let last = ClockReading::take();
        let ticks = last.ticks.wrapping_sub(self.first.ticks);
        let ns = last.ns.saturating_sub(self.first.ns);
        if ticks == 0 || ns == 0 {
            return Clock::monotonic();
        }
        let scale = ((u128::from(ns) << 32) / u128::from(ticks)) as u64;
        let uncertain = (self.first.width_ticks + last.width_ticks) as f64 / 2.0;
        Clock {
            base_ticks: last.ticks,
            base_ns: last.ns,
            scale,
            error_ppm: uncertain / ticks as f64 * 1e6,
        }
    }
}

impl ClockReading {
    fn take() -> Self {
        let mut best = Self {
            ticks: 0,
            ns: 0,
            width_ticks: u64::MAX,
        };
        for _ in 0..BRACKETS {
            let before = ticks();
            let ns = monotonic_ns();
            let after = ticks();
            let width_ticks = after.wrapping_sub(before);
            if width_ticks < best.width_ticks {
                best = Self {
                    ticks: before.wrapping_add(width_ticks / 2),
                    ns,
                    width_ticks,
                };
            }
        }
        best
    }
}

impl Clock {
    /// The plain kernel clock.
    #[must_use]
    pub fn monotonic() -> Self {
        Self {
            base_ticks: 0,
            base_ns: 0,
            scale: 0,
            error_ppm: 0.0,
        }
    }

    /// Nanoseconds on `CLOCK_MONOTONIC`.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        if self.scale == 0 {
            return monotonic_ns();
        }
        let since = ticks().wrapping_sub(self.base_ticks);
        self.base_ns + ((u128::from(since) * u128::from(self.scale)) >> 32) as u64
    }

    /// `tsc` or `monotonic`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.scale == 0 {
            "monotonic"
        } else {
            "tsc"
        }
    }

    /// How far the rate may be from `CLOCK_MONOTONIC`'s, in parts per million.
    #[must_use]
    pub fn error_ppm(&self) -> f64 {
        self.error_ppm
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_BOOTTIME` in nanoseconds: it goes on while the machine sleeps.
#[must_use]
pub fn boot_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// Wall clock in nanoseconds since 1970.
#[must_use]
pub fn unix_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec; these clocks always exist.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// True when the counter runs at one rate on all CPUs and the kernel trusts it.
#[must_use]
pub fn tsc_usable() -> bool {
    let source =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.is_ok_and(|text| text.trim() == "tsc") && tsc_invariant()
}

#[cfg(target_arch = "x86_64")]
fn tsc_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_invariant() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn ticks() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_kernel_clock() {
        let clock = Calibration::start().finish();
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(2));
            let before = monotonic_ns();
            let ours = clock.now_ns();
            let after = monotonic_ns();
            // 500 ppm of the few milliseconds since calibration, and a microsecond.
            assert!(
                ours + 6_000 >= before && ours <= after + 6_000,
                "{before} {ours} {after}"
            );
        }
        assert!(clock.error_ppm() < 500.0);
    }

    #[test]
    fn it_does_not_go_back() {
        let clock = Calibration::start().finish();
        let mut last = clock.now_ns();
        for _ in 0..100_000 {
            let now = clock.now_ns();
            assert!(now >= last);
            last = now;
        }
    }
}
