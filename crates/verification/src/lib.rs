//! What is written so that it can be verified, and what is said of what is read.
//!
//! Knows two ways: stamps ([`verify`]) and fio's headers ([`headers`]). Knows buffers and no
//! device: it is given what was read.

pub mod headers;
pub mod verify;
