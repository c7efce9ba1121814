//! File operations of the whole engine in real directories: what is on the disk afterwards
//! is what the samples say was done.

mod formats;
mod mounts;
mod operations;
mod plans;
mod refusals;
#[path = "../support/mod.rs"]
mod support;
mod together;
mod trouble;
