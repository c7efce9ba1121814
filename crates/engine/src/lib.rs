//! The load generator of Loadstone: it knows I/O, time and memory, and nothing else.
//!
//! A [`plan::Plan`] goes in, samples and events come out ([`run::run`]). It knows no
//! job-file language, no report and no other host. From the Plan downwards nothing has a
//! default.

pub mod backend;
pub mod budget;
pub mod chain;
pub mod check;
pub mod clock;
pub mod control;
pub mod directory;
pub mod events;
pub mod flow;
pub mod free_slots;
pub mod headers;
pub mod histogram;
pub mod layout;
pub mod memory;
pub mod name;
pub mod ops;
pub mod overlap;
pub mod pace;
pub mod pattern;
pub mod payload;
pub mod plan;
mod plan_rule;
pub mod priority;
pub mod probe;
pub mod rate_profile;
pub mod record;
pub mod removal;
pub mod report;
pub mod rows;
pub mod run;
pub mod run_error;
pub mod samples;
pub mod search;
pub mod setup;
pub mod signals;
pub mod slots;
pub mod state;
pub mod stdin_commands;
pub mod steady;
pub mod stream;
pub mod target;
pub mod tree;
pub mod usage;
pub mod verify;
pub mod worker;
