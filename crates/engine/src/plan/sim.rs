//! Simulated devices in the Plan.
//!
//! Knows the shape only, as `plan.rs` does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A seeded model of a device on a virtual clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimDevice {
    /// Seed of every random choice below.
    pub seed: u64,
    /// I/Os in service at the same time; the rest wait in order.
    pub servers: u32,
    /// Mean service time of a read.
    pub read_ns: u64,
    /// Mean service time of a write, trim or sync.
    pub write_ns: u64,
    /// Distribution of service times around the mean.
    pub service: ServiceTime,
    /// The device stands still for `stall_ns` every `stall_every_ns` (0: never).
    pub stall_every_ns: u64,
    /// Length of a stall.
    pub stall_ns: u64,
    /// Share of I/Os that fail with `EIO`, in parts per million.
    pub error_ppm: u32,
    /// Share of I/Os that complete short (half the bytes), in parts per million.
    pub short_ppm: u32,
    /// Share of I/Os that never complete, in parts per million.
    pub hang_ppm: u32,
    /// The device keeps what is written, and damages it; none: it touches no data.
    pub faults: Option<SimFaults>,
}

/// How a simulated device damages data: shares of its writes or reads in parts per
/// million, at most one fault for each. Every injection is an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimFaults {
    /// Acknowledged writes that have no effect.
    pub lost_ppm: u32,
    /// Writes of which only the first sectors arrive.
    pub torn_ppm: u32,
    /// Writes that go to another place.
    pub misdirected_ppm: u32,
    /// Reads that return what was there before the last write.
    pub stale_ppm: u32,
    /// Writes of which one to four bits are flipped.
    pub flip_ppm: u32,
    /// Writes that leave zeros.
    pub zero_ppm: u32,
    /// Writes that leave noise.
    pub foreign_ppm: u32,
}

/// Distribution of simulated service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceTime {
    /// Always the mean.
    Constant,
    /// Exponential.
    Exponential,
    /// Uniform from 0 to twice the mean.
    Uniform,
}
