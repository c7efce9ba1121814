//! The load generator of Loadstone: it knows I/O, time and memory, and nothing else.
//!
//! A [`loadstone_plan::Plan`] goes in, samples and events come out ([`run::run`]). It knows no
//! job-file language, no report and no other host. From the Plan downwards nothing has a
//! default.

pub mod budget;
pub mod check;
pub mod layout;
pub mod report;
pub mod run;
pub mod setup;
pub mod signals;
pub mod stdin_commands;
pub mod steady;
