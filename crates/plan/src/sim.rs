//! Simulated devices in the Plan.
//!
//! Knows the shape only, as `lib.rs` does.

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
    #[serde(deserialize_with = "super::stated")]
    pub faults: Option<SimFaults>,
    /// What the device is made of beside its servers; none: servers and nothing else.
    #[serde(deserialize_with = "super::stated")]
    pub behaviour: Option<Box<SimBehaviour>>,
}

/// The parts of a storage system that change what a number means. 0 turns a part off.
///
/// An I/O passes them in this order: limits, caches, queue slots (`servers`), dies. The state
/// (credits, what is cached, what was written or touched) is kept per target over the stages
/// of a run, and over runs in the file `state`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimBehaviour {
    /// File in which the state is kept from run to run; none: each run begins anew.
    #[serde(deserialize_with = "super::stated")]
    pub state: Option<String>,
    /// Dies, each of which does one I/O at a time; an address belongs to one of them.
    /// 0: any server can do any I/O.
    pub dies: u32,
    /// Service time of a die for each KiB, beside `read_ns` and `write_ns`.
    pub kib_ns: u64,
    /// Limits on the rate, one after the other.
    pub limits: Vec<SimLimit>,
    /// All targets of the run share the limits of the first.
    pub shared_limits: bool,
    /// A cache with the blocks that were used last: its size.
    pub cache_bytes: u64,
    /// Latency of a hit.
    pub cache_hit_ns: u64,
    /// Writes acknowledged from a cache as long as there is room in it: its size.
    pub write_cache_bytes: u64,
    /// Latency of a write that finds room.
    pub write_cache_ns: u64,
    /// Rate at which it is emptied.
    pub drain_bytes_per_second: u64,
    /// Length of the target, for places on it.
    pub size_bytes: u64,
    /// Service time at its end, in percent of that at its beginning.
    pub end_percent: u32,
    /// Service time of a write of zeros, in percent.
    pub zero_percent: u32,
    /// Service time of a write of content that was written before, in percent.
    pub repeat_percent: u32,
    /// Latency of a read of what was never written; all below `written_bytes` was.
    pub unwritten_ns: u64,
    /// What was written before the first run.
    pub written_bytes: u64,
    /// Added to the first I/O of each 64 KiB; all below `touched_bytes` was touched.
    pub first_touch_ns: u64,
    /// What was touched before the first run.
    pub touched_bytes: u64,
    /// Grid of the medium.
    pub grid_bytes: u64,
    /// Service time of I/O off the grid, in percent.
    pub misaligned_percent: u32,
    /// Service time of a flush; 0: that of a write.
    pub flush_ns: u64,
    /// Other work in the storage comes and goes in slots of this length.
    pub neighbour_ns: u64,
    /// Share of the slots in which there is some, in parts per million.
    pub neighbour_ppm: u32,
    /// Service time in such a slot, in percent.
    pub neighbour_percent: u32,
}

/// A token bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimLimit {
    /// Tokens per second.
    pub per_second: u64,
    /// Tokens the bucket holds, and begins with.
    pub burst: u64,
    /// A byte costs a token; false: an I/O.
    pub of_bytes: bool,
}

/// How a simulated device damages data: shares of its writes or reads in parts per
/// million, at most one fault for each. Every injection is an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
