//! A worker's loop: its streams, when each I/O of them starts, and what is counted of it.
//!
//! Knows one worker, and what it and the main thread tell each other. Knows no tree, no file of
//! results but their columns, and no other worker.

pub mod control;
pub mod events;
pub mod flow;
pub mod free_slots;
pub mod histogram;
pub mod priority;
pub mod record;
pub mod rows;
pub mod samples;
pub mod search;
pub mod slots;
pub mod state;
pub mod stream;
pub mod worker;
