//! Verification by headers in the blocks, in the Plan.
//!
//! Knows the shape only, as `lib.rs` does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Verification by headers in the format of fio: either side checks what the other wrote. What a
/// stream wrote is read back by the stream itself, in the sizes in which it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Headers {
    /// What a block is checked by.
    pub sum: HeaderSum,
    /// Layout of the headers that are written; either is read.
    pub layout: HeaderLayout,
    /// Bytes from one header to the next; an I/O that is shorter, or 0, has one.
    pub interval_bytes: u32,
    /// Where the header is in its block.
    pub offset_bytes: u32,
    /// What lies between the headers; none: random bytes.
    #[serde(deserialize_with = "super::stated")]
    pub pattern: Option<HeaderPattern>,
    /// Part of the random bytes that compresses away, percent.
    pub compress_percent: u32,
    /// Read back what was written when a pass is over.
    pub read_back: bool,
    /// Write nothing: read back what a stream like this wrote before.
    pub only: bool,
    /// Read back in the order of addresses, and of writes that overlap only the last (false: in
    /// the order in which they were written).
    pub by_address: bool,
    /// Passes of [`super::Limits::bytes`] and [`super::Limits::ops`]; 0: until its time is over.
    pub passes: u64,
    /// After the passes go on until so many bytes were read and written; 0: no.
    pub enough_bytes: u64,
    /// Reads of what was written between the writes.
    #[serde(deserialize_with = "super::stated")]
    pub backlog: Option<HeaderBacklog>,
    /// Trims of what was written.
    #[serde(deserialize_with = "super::stated")]
    pub trim: Option<HeaderTrim>,
    /// End all streams of the run at the first damage.
    pub fatal: bool,
    /// Go on after damage.
    pub go_on: bool,
    /// Directory for the content of damaged blocks; none: it is not kept.
    #[serde(deserialize_with = "super::stated")]
    pub dump_dir: Option<String>,
    /// A header must have the seed with which the stream wrote it.
    pub check_seed: bool,
    /// A header must have the number of the write.
    pub check_number: bool,
    /// Number of the stream in headers.
    pub thread: u16,
    /// Read back only what had been written when another run ended.
    #[serde(deserialize_with = "super::stated")]
    pub until: Option<HeaderUntil>,
    /// Tell at the end what was written, for another run's `until`.
    pub tell_state: bool,
    /// Read back, and tell of, only what was written before the last flush.
    pub flushed_only: bool,
}

/// Which fios take a header for their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeaderLayout {
    /// Those up to 3.40.
    Earlier,
    /// Those from 3.41 on.
    Later,
}

/// What a block is checked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeaderSum {
    /// The header alone.
    Meta,
    /// MD5.
    Md5,
    /// CRC-64.
    Crc64,
    /// CRC-32.
    Crc32,
    /// CRC-32C.
    Crc32c,
    /// CRC-32C.
    Crc32cIntel,
    /// CRC-16.
    Crc16,
    /// CRC-7.
    Crc7,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// SHA3-224.
    Sha3224,
    /// SHA3-256.
    Sha3256,
    /// SHA3-384.
    Sha3384,
    /// SHA3-512.
    Sha3512,
    /// xxHash of 32 bits.
    Xxhash,
    /// SHA-1.
    Sha1,
    /// The pattern, behind a header.
    PatternHdr,
    /// The pattern, and there is no header.
    Pattern,
    /// Nothing: it is read back and not looked at.
    Null,
}

/// What lies between the headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderPattern {
    /// Bytes that are repeated.
    pub bytes: Vec<u8>,
    /// Where in them the offset of the I/O stands, 8 bytes, lowest first.
    pub offsets_at: Vec<u32>,
    /// The pattern, and the offset in it, begin anew so often; 0: with each I/O.
    pub interval_bytes: u32,
}

/// Reads of what was written between the writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderBacklog {
    /// Writes after which some are read back.
    pub writes: u32,
    /// How many are read back then.
    pub batch: u32,
}

/// Trims of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderTrim {
    /// Share of the writes that are trimmed later.
    pub percent: u32,
    /// Writes after which some are trimmed.
    pub writes: u32,
    /// How many are trimmed then.
    pub batch: u32,
    /// What was trimmed is read back too, and must be zeros.
    pub zeros: bool,
}

/// What had been written when another run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderUntil {
    /// Writes that were issued.
    pub number: u64,
    /// Numbers of those that were not done, or failed.
    pub open: Vec<u64>,
    /// Of so many of the last ones only those to the places in `done` were done.
    pub in_doubt: u32,
    /// File, as index of the stream's, and offset.
    pub done: Vec<[u64; 2]>,
}
