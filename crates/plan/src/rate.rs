//! Time in the Plan: when I/Os and file operations should start.
//!
//! Knows the shape only, as `lib.rs` does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When I/Os should start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Arrival rate of reads, writes, trims; none: closed loop.
    #[serde(deserialize_with = "super::stated")]
    pub read: Option<Rate>,
    /// See `read`.
    #[serde(deserialize_with = "super::stated")]
    pub write: Option<Rate>,
    /// See `read`.
    #[serde(deserialize_with = "super::stated")]
    pub trim: Option<Rate>,
    /// Pause after so many I/Os.
    #[serde(deserialize_with = "super::stated")]
    pub think: Option<Think>,
}

/// An arrival rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How much.
    pub amount: RateAmount,
    /// Spacing of arrivals.
    pub process: RateProcess,
    /// The rate over the stream's time, ramp included: `amount` times the share that
    /// these points give, straight lines between them, the first and the last share
    /// before and after. Two points at one time are a step. Empty: always `amount`.
    pub profile: Vec<RatePoint>,
    /// Evenly spaced arrivals begin this part of a gap late, from 0 to below 1, so that
    /// clones do not all start an I/O at the same moment. 0 for all other arrivals.
    pub phase: f64,
    /// Fail the stream when over a `min_window_ns` it achieves less than this share
    /// of a unit per second (0: never); same unit as `amount`.
    pub minimum: f64,
    /// Window of `minimum`.
    pub min_window_ns: u64,
}

/// One point of [`Rate::profile`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatePoint {
    /// Time since the stream's start; not below that of the point before.
    pub at_ns: u64,
    /// Share of the rate's amount, at least 0.
    pub share: f64,
}

/// Rate in operations or in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "unit", rename_all = "snake_case", deny_unknown_fields)]
pub enum RateAmount {
    /// Operations per second.
    Ops {
        /// Above 0.
        per_second: f64,
    },
    /// Bytes per second.
    Bytes {
        /// Above 0.
        per_second: f64,
    },
}

/// Spacing of arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateProcess {
    /// Evenly spaced.
    Linear,
    /// Poisson: exponential gaps.
    Poisson,
    /// Gaps drawn evenly between nothing and twice their mean.
    Uniform,
    /// All arrivals of a second at its beginning, counted from the start of the stream.
    Spike,
}

/// Think time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Think {
    /// Length of the pause.
    pub pause_ns: u64,
    /// The first part of the pause is spent spinning, not sleeping.
    pub spin_ns: u64,
    /// Pause after this many I/Os, at least 1.
    pub every_ios: u32,
    /// Count I/Os when they are issued (false: when they complete).
    pub count_issued: bool,
    /// Pause after so long since the last pause, however many I/Os these were; 0: by their
    /// number.
    pub every_ns: u64,
}
