//! Which I/O comes next, when, and with which data: patterns, paces, payloads, the files of trees.
//!
//! Knows the Plan's streams and seeds. Knows no device, no file that exists and no thread.

pub mod chain;
pub mod overlap;
pub mod pace;
pub mod pattern;
pub mod payload;
pub mod rate_profile;
pub mod tree;
