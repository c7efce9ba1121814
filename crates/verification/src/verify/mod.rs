//! Verification: what was written comes back, or the damage is named.
//!
//! Knows how blocks are stamped ([`stamp`]), what each may hold ([`expect`]), how a block
//! that was read is judged ([`check`]) and how expectations survive a crash ([`journal`],
//! [`recover`]). Knows no backend, no worker and no Plan.
//!
//! A *verify block* is the unit of expectation: a multiple of 512 bytes, the Plan's verify
//! interval. Every write covers whole verify blocks. A *generation* counts the writes to
//! one verify block; a *sequence* counts the writes to a target.

pub mod check;
pub mod content;
pub mod damage;
pub mod expect;
pub mod handover;
pub mod journal;
pub mod pattern;
pub mod recover;
pub mod register;
pub mod rules;
pub mod sector;
pub mod stamp;
pub mod tables;
pub mod verifier;

#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod tests;

/// Unit of tearing, and of the tags.
pub const SECTOR_BYTES: usize = 512;
