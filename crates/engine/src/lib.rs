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
pub mod events;
pub mod fault;
pub mod flow;
pub mod headers;
pub mod histogram;
pub mod layout;
pub mod memory;
pub mod ops;
pub mod orders;
pub mod overlap;
pub mod pace;
pub mod pattern;
pub mod payload;
pub mod plan;
pub mod priority;
pub mod probe;
pub mod profile;
pub mod record;
pub mod report;
pub mod rows;
pub mod run;
pub mod samples;
pub mod search;
pub mod setup;
pub mod signals;
pub mod slots;
pub mod state;
pub mod steady;
pub mod stream;
pub mod target;
pub mod tree;
pub mod usage;
pub mod vacancy;
pub mod verify;
pub mod worker;
