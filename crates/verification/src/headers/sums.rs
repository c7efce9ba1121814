//! The sums behind a header, byte for byte as fio computes them.
//!
//! Knows bytes only. Three are not what their names say: fio's SHA-256 keeps the lowest byte of
//! each word of the state before the last block of the message, its SHA-512 kept
//! no state at all once, but the message's first block under its last bytes, and its CRCs start and end
//! in their own ways.

use crc::{Algorithm, Crc, CRC_16_ARC, CRC_64_REDIS, CRC_7_MMC};
use md5::Md5;
use sha1::Sha1;
use sha2::digest::generic_array::GenericArray;
use sha3::digest::Digest;
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use xxhash_rust::xxh32::xxh32;

use loadstone_plan::{HeaderLayout, HeaderSum};

/// Longest sum.
pub const MAX_BYTES: usize = 128;

const CRC_32_PLAIN: Algorithm<u32> = Algorithm {
    width: 32,
    poly: 0x04c1_1db7,
    init: 0,
    refin: false,
    refout: false,
    xorout: 0,
    check: 0,
    residue: 0,
};
static CRC7: Crc<u8> = Crc::<u8>::new(&CRC_7_MMC);
static CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_ARC);
static CRC32: Crc<u32> = Crc::<u32>::new(&CRC_32_PLAIN);
static CRC64: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);

/// CRC-32C without its last inversion.
#[must_use]
pub fn crc32c_open(data: &[u8]) -> u32 {
    !crc32c::crc32c(data)
}

/// Bytes of a sum.
#[must_use]
pub fn bytes(sum: HeaderSum) -> usize {
    use HeaderSum as S;
    match sum {
        S::Meta | S::PatternHdr | S::Pattern | S::Null => 0,
        S::Crc7 => 1,
        S::Crc16 => 2,
        S::Crc32 | S::Crc32c | S::Crc32cIntel | S::Xxhash => 4,
        S::Crc64 => 8,
        S::Md5 => 16,
        S::Sha1 => 20,
        S::Sha3224 => 28,
        S::Sha3256 => 32,
        S::Sha3384 => 48,
        S::Sha256 | S::Sha3512 => 64,
        S::Sha512 => 128,
    }
}

/// The sum of `data` into `into`, which has [`bytes`] of it. What a sum leaves alone there stays.
///
/// SHA-512 came with a layout of the header: that of earlier fios sees but the ends of the data.
pub fn compute(sum: HeaderSum, layout: HeaderLayout, data: &[u8], into: &mut [u8]) {
    use HeaderSum as S;
    match sum {
        S::Meta | S::PatternHdr | S::Pattern | S::Null => {}
        S::Crc7 => into[0] = CRC7.checksum(data),
        S::Crc16 => into.copy_from_slice(&CRC16.checksum(data).to_le_bytes()),
        S::Crc32 => into.copy_from_slice(&CRC32.checksum(data).to_le_bytes()),
        S::Crc32c | S::Crc32cIntel => into.copy_from_slice(&crc32c_open(data).to_le_bytes()),
        S::Xxhash => into.copy_from_slice(&xxh32(data, 1).to_le_bytes()),
        S::Crc64 => into.copy_from_slice(&CRC64.checksum(data).to_le_bytes()),
        S::Md5 => into.copy_from_slice(&Md5::digest(data)),
        S::Sha1 => sha1_words(data, into),
        S::Sha3224 => into.copy_from_slice(&Sha3_224::digest(data)),
        S::Sha3256 => into.copy_from_slice(&Sha3_256::digest(data)),
        S::Sha3384 => into.copy_from_slice(&Sha3_384::digest(data)),
        S::Sha3512 => into.copy_from_slice(&Sha3_512::digest(data)),
        S::Sha256 => sha256_tail(data, into),
        S::Sha512 if layout == HeaderLayout::Later => into.copy_from_slice(&later_sha512(data)),
        S::Sha512 => ends(data, into),
    }
}

/// SHA-1 with each of its words turned round.
fn sha1_words(data: &[u8], into: &mut [u8]) {
    into.copy_from_slice(&Sha1::digest(data));
    into.chunks_exact_mut(4).for_each(<[u8]>::reverse);
}

/// The last block of the padded message, its first bytes replaced by the lowest of each word of
/// the state. The length in the padding has its lowest byte first.
fn sha256_tail(data: &[u8], into: &mut [u8]) {
    let mut state: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let whole = data.len() / 64 * 64;
    let (front, rest) = data.split_at(whole);
    for block in front.chunks_exact(64) {
        sha2::compress256(&mut state, &[*GenericArray::from_slice(block)]);
    }
    let mut tail = [0u8; 128];
    tail[..rest.len()].copy_from_slice(rest);
    tail[rest.len()] = 0x80;
    let end = if rest.len() < 56 { 64 } else { 128 };
    tail[end - 8..end].copy_from_slice(&((data.len() as u64) << 3).to_le_bytes());
    for block in tail[..end].chunks_exact(64) {
        sha2::compress256(&mut state, &[*GenericArray::from_slice(block)]);
    }
    into.copy_from_slice(&tail[end - 64..end]);
    for (byte, word) in into.iter_mut().zip(state) {
        *byte = word as u8;
    }
}

/// The first 128 bytes, and over them what is left behind the last 128.
fn ends(data: &[u8], into: &mut [u8]) {
    if data.len() >= into.len() {
        into.copy_from_slice(&data[..into.len()]);
    }
    let rest = &data[data.len() / into.len() * into.len()..];
    into[..rest.len()].copy_from_slice(rest);
}

/// The SHA-512 of later fios: the digest, and behind it the second half of the padded message's
/// last block.
#[must_use]
pub fn later_sha512(data: &[u8]) -> [u8; MAX_BYTES] {
    let rest = &data[data.len() / 128 * 128..];
    let mut tail = [0u8; 256];
    tail[..rest.len()].copy_from_slice(rest);
    tail[rest.len()] = 0x80;
    let end = if rest.len() < 112 { 128 } else { 256 };
    tail[end - 16..end].copy_from_slice(&((data.len() as u128) << 3).to_be_bytes());
    let mut sum = [0u8; MAX_BYTES];
    sum[..64].copy_from_slice(&sha2::Sha512::digest(data));
    sum[64..].copy_from_slice(&tail[end - 64..end]);
    sum
}

/// The name fio has for a sum when it does not match.
#[must_use]
pub fn name(sum: HeaderSum) -> &'static str {
    use HeaderSum as S;
    match sum {
        S::Meta => "meta",
        S::Md5 => "md5",
        S::Crc64 => "crc64",
        S::Crc32 => "crc32",
        S::Crc32c | S::Crc32cIntel => "crc32c",
        S::Crc16 => "crc16",
        S::Crc7 => "crc7",
        S::Sha256 => "sha256",
        S::Sha512 => "sha512",
        S::Sha3224 => "sha3-224",
        S::Sha3256 => "sha3-256",
        S::Sha3384 => "sha3-384",
        S::Sha3512 => "sha3-512",
        S::Xxhash => "xxhash",
        S::Sha1 => "sha1",
        S::PatternHdr | S::Pattern => "pattern",
        S::Null => "null",
    }
}
