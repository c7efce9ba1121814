//! How I/O is done: backends, targets, memory that I/O goes to and comes from.
//!
//! Knows the kernel, and one model of a device. Knows no pattern, no pace, no verification and
//! no statistics.

pub mod backend;
pub mod directory;
pub mod memory;
pub mod name;
pub mod probe;
pub mod removal;
pub mod target;
pub mod usage;
