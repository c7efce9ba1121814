//! What every crate of the engine shares: time, random numbers, names of operations, reasons to
//! refuse a Plan or to end a run.
//!
//! Knows no Plan, no I/O and no thread.

pub mod clock;
pub mod errno;
pub mod new_file;
pub mod ops;
pub mod plan_rule;
pub mod rng;
pub mod run_error;
