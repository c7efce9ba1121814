"""Verification by headers in the blocks, in the Plan.

Mirrors `crates/engine/src/plan/headers.rs`, as `model.py` mirrors the rest.
"""

from __future__ import annotations

from enum import StrEnum

from loadstone.plan.base import U8, U16, U32, U64, Part


class HeaderSum(StrEnum):
    """What a block is checked by."""

    META = "meta"
    MD5 = "md5"
    CRC64 = "crc64"
    CRC32 = "crc32"
    CRC32C = "crc32c"
    CRC32C_INTEL = "crc32c_intel"
    CRC16 = "crc16"
    CRC7 = "crc7"
    SHA256 = "sha256"
    SHA512 = "sha512"
    SHA3_224 = "sha3224"
    SHA3_256 = "sha3256"
    SHA3_384 = "sha3384"
    SHA3_512 = "sha3512"
    XXHASH = "xxhash"
    SHA1 = "sha1"
    PATTERN_HDR = "pattern_hdr"
    """The pattern, behind a header."""
    PATTERN = "pattern"
    """The pattern, and there is no header."""
    NULL = "null"
    """Nothing: it is read back and not looked at."""


class HeaderLayout(StrEnum):
    """Which fios take a header for their own."""

    EARLIER = "earlier"
    """Those up to 3.40."""
    LATER = "later"
    """Those from 3.41 on."""


class HeaderPattern(Part):
    """What lies between the headers."""

    bytes: tuple[U8, ...]
    offsets_at: tuple[U32, ...]
    """Where in them the offset of the I/O stands."""
    interval_bytes: U32


class HeaderBacklog(Part):
    """Reads of what was written between the writes."""

    writes: U32
    batch: U32


class HeaderTrim(Part):
    """Trims of what was written."""

    percent: U32
    writes: U32
    batch: U32
    zeros: bool


class HeaderUntil(Part):
    """What had been written when another run ended."""

    number: U64
    open: tuple[U64, ...]
    in_doubt: U32
    """Of so many of the last ones only those to the places in `done` were done."""
    done: tuple[tuple[U64, U64], ...]
    """File, as index of the stream's, and offset."""


class Headers(Part):
    """Verification as fio does it, by headers that fio can check."""

    sum: HeaderSum
    layout: HeaderLayout = HeaderLayout.EARLIER
    """Of what is written; either is read. Absent from Plans written before there was a choice."""
    interval_bytes: U32
    """Bytes from one header to the next; 0: one for each I/O."""
    offset_bytes: U32
    pattern: HeaderPattern | None
    compress_percent: U32
    read_back: bool
    only: bool
    by_address: bool
    passes: U64
    """0: until its time is over."""
    enough_bytes: U64
    backlog: HeaderBacklog | None
    trim: HeaderTrim | None
    fatal: bool
    go_on: bool
    dump_dir: str | None
    check_seed: bool
    check_number: bool
    thread: U16
    until: HeaderUntil | None
    tell_state: bool
    flushed_only: bool
    """Read back only what was written before the last flush."""
