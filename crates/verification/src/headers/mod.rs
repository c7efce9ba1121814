//! Verification by headers in the blocks, compatible with fio's.
//!
//! Knows what a header and the sum behind it look like ([`block`], [`sums`]), what lies between
//! headers ([`content`]), which writes are still to be read back ([`history`]), how a block is
//! judged ([`check`]) and what a stream does next ([`readback`]). Knows no backend and no worker.

pub mod block;
pub mod check;
pub mod content;
pub mod dump;
pub mod history;
pub mod readback;
pub mod rules;
pub mod sums;

#[cfg(test)]
mod tests;
