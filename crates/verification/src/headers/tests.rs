//! The bytes of headers and sums, the order of reading back, and what is found wrong.

use proptest::prelude::*;

use super::block::{number_of, Header, BYTES, LATER_BYTES};
use super::check::{check, HeaderRead};
use super::content::{fill, head_bytes, pattern_byte, HeaderWrite};
use super::history::{Fate, History, Piece};
use super::readback::Readback;
use super::rules;
use super::sums;
use loadstone_base::run_error::RunError;
use loadstone_plan::{
    plain, Backend, HeaderLayout, HeaderPattern, HeaderSum, Headers, SimDevice, Sizes,
};

const SUMS: [HeaderSum; 19] = [
    HeaderSum::Meta,
    HeaderSum::Md5,
    HeaderSum::Crc64,
    HeaderSum::Crc32,
    HeaderSum::Crc32c,
    HeaderSum::Crc32cIntel,
    HeaderSum::Crc16,
    HeaderSum::Crc7,
    HeaderSum::Sha256,
    HeaderSum::Sha512,
    HeaderSum::Sha3224,
    HeaderSum::Sha3256,
    HeaderSum::Sha3384,
    HeaderSum::Sha3512,
    HeaderSum::Xxhash,
    HeaderSum::Sha1,
    HeaderSum::PatternHdr,
    HeaderSum::Pattern,
    HeaderSum::Null,
];

fn plan(sum: HeaderSum) -> Headers {
    Headers {
        sum,
        layout: HeaderLayout::Later,
        interval_bytes: 1024,
        offset_bytes: 0,
        pattern: None,
        compress_percent: 0,
        read_back: true,
        only: false,
        by_address: true,
        passes: 1,
        enough_bytes: 0,
        backlog: None,
        trim: None,
        fatal: false,
        go_on: false,
        dump_dir: None,
        check_seed: true,
        check_number: true,
        thread: 1,
        until: None,
        tell_state: false,
        flushed_only: false,
    }
}

fn with_pattern(sum: HeaderSum, interval_bytes: u32) -> Headers {
    let pattern = HeaderPattern {
        bytes: b"ab\0\0\0\0\0\0\0\0c".to_vec(),
        offsets_at: vec![2],
        interval_bytes,
    };
    Headers {
        pattern: Some(pattern),
        ..plan(sum)
    }
}

fn write() -> HeaderWrite {
    HeaderWrite {
        seed: 0x1234_5678_9abc_def1,
        offset: 8192,
        number: 70_000,
        time: (5, 6),
    }
}

fn reading() -> HeaderRead {
    HeaderRead {
        file: 0,
        offset: 8192,
        len: 4096,
        seed: Some(write().seed),
        number: Some(write().number),
        zeros: false,
    }
}

/// What was written by this Plan, damaged and read back.
fn found(plan: &Headers, damage: impl FnOnce(&mut [u8])) -> Vec<super::check::Wrong> {
    let mut buffer = vec![0u8; 4096];
    fill(plan, &write(), &mut buffer);
    damage(&mut buffer);
    check(plan, &reading(), "/x/file", &mut buffer)
}

/// What was written in one layout, read by a Plan that writes the other.
fn read_by_the_other(plan: &Headers) -> Vec<super::check::Wrong> {
    let mut buffer = vec![0u8; 4096];
    fill(plan, &write(), &mut buffer);
    let layout = match plan.layout {
        HeaderLayout::Earlier => HeaderLayout::Later,
        HeaderLayout::Later => HeaderLayout::Earlier,
    };
    let other = Headers {
        layout,
        ..plan.clone()
    };
    check(&other, &reading(), "/x/file", &mut buffer)
}

#[test]
fn sums_of_a_known_text_are_those_that_fio_has() {
    let of = |sum: HeaderSum, layout: HeaderLayout| {
        let mut into = vec![0u8; sums::bytes(sum)];
        sums::compute(sum, layout, b"123456789", &mut into);
        into.iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    };
    let sum = |sum: HeaderSum| of(sum, HeaderLayout::Later);
    assert_eq!(sum(HeaderSum::Md5), "25f9e794323b453885f5181f1b624d0b");
    // The usual checks: E3069283 inverted, 89A1897F before its inversion, BB3D, 75.
    assert_eq!(sum(HeaderSum::Crc32c), "7c6df91c");
    assert_eq!(sum(HeaderSum::Crc32), "7f89a189");
    assert_eq!(sum(HeaderSum::Crc16), "3dbb");
    assert_eq!(sum(HeaderSum::Crc7), "75");
    assert_eq!(sum(HeaderSum::Crc64), "cad9b8c414d9c6e9");
    // f7c3bc1d 808e0473 2adf6799 65ccc34c a7ae3441, each word turned round.
    let sha1 = sum(HeaderSum::Sha1);
    assert_eq!(sha1, "1dbcc3f773048e809967df2a4cc3cc654134aea7");
    // No state, only the text; of later fios the digest.
    let earlier = of(HeaderSum::Sha512, HeaderLayout::Earlier);
    assert!(earlier.starts_with("313233343536373839"));
    assert!(sum(HeaderSum::Sha512).starts_with("d9e6762dd1c8eaf6d61b3c6192fc408d"));
}

#[test]
fn the_header_of_fio_up_to_3_40_has_40_bytes_and_that_of_later_ones_48() {
    let mut header = Header {
        magic: 0xacca,
        sum: number_of(HeaderSum::Crc7),
        bytes: 4096,
        seed: 77,
        offset: 1 << 40,
        time: (1, 2),
        thread: 3,
        number: 65_537,
        crc: 0,
        good_crc: 0,
        own_bytes: BYTES,
    };
    let mut block = [0u8; 64];
    header.write(&mut block);
    assert_eq!(block[..8], [0xca, 0xac, 8, 0, 0, 16, 0, 0]);
    let read = Header::read(&block);
    assert_eq!(read.crc, read.good_crc);
    assert_eq!((read.number, read.thread, read.sum), (1, 3, 8));
    assert_eq!(read.shorten(65_537), 1);
    // The layout with a version: type, then a number of 8 bytes.
    header.own_bytes = LATER_BYTES;
    header.write(&mut block);
    assert_eq!(block[..8], [0xca, 0xac, 0x81, 8, 0, 16, 0, 0]);
    assert_eq!(block[24..32], [1, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(block[32..44], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    let later = Header::read(&block);
    assert_eq!(later.crc, later.good_crc);
    assert_eq!((later.number, later.own_bytes), (65_537, LATER_BYTES));
    assert_eq!((later.sum, later.shorten(65_537)), (8, 65_537));
}

#[test]
fn what_is_written_is_read_back_as_right_by_every_sum() {
    for sum in SUMS {
        let plans = [plan(sum), with_pattern(sum, 0), with_pattern(sum, 700)];
        for plan in plans {
            for offset_bytes in [0, 300] {
                for layout in [HeaderLayout::Earlier, HeaderLayout::Later] {
                    let plan = Headers {
                        offset_bytes,
                        layout,
                        ..plan.clone()
                    };
                    assert_eq!(found(&plan, |_| {}), [], "{plan:?}");
                    assert_eq!(read_by_the_other(&plan), [], "{plan:?}");
                }
            }
        }
    }
}

#[test]
fn every_changed_byte_of_a_block_is_found_by_its_sum() {
    for sum in SUMS {
        let blind = matches!(
            sum,
            HeaderSum::Meta | HeaderSum::Null | HeaderSum::PatternHdr | HeaderSum::Pattern
        );
        if blind {
            continue;
        }
        let at = 1024 + head_bytes(&plan(sum)) + 300;
        let wrongs = found(&plan(sum), |buffer| buffer[at] ^= 4);
        assert_eq!(wrongs.len(), 1, "{sum:?}");
        assert_eq!(
            (wrongs[0].kind, wrongs[0].offset),
            ("checksum", 8192 + 1024)
        );
        assert_eq!(wrongs[0].bytes, 1024);
    }
}

#[test]
fn messages_are_those_of_fio() {
    let wrongs = found(&plan(HeaderSum::Crc16), |buffer| buffer[2000] ^= 1);
    let lines = &wrongs[0].lines;
    assert!(lines.starts_with("crc16: verify failed at file /x/file offset 9216, length 1024 (requested block: offset=8192, length=4096, flags=8)\n       Expected CRC: "), "{lines}");
    assert!(lines.contains("\n       Received CRC: "), "{lines}");
    let wrongs = found(&plan(HeaderSum::Md5), |buffer| buffer[0] = 0);
    assert_eq!(
        wrongs[0].lines,
        "verify: bad magic header ac00, wanted acca at file /x/file offset 8192, length 1024 (requested block: offset=8192, length=4096)\n"
    );
    let wrongs = found(&with_pattern(HeaderSum::Pattern, 0), |buffer| buffer[1] = 0);
    assert!(
        wrongs[0].lines.starts_with(
            "fio: got pattern '00', wanted '62'. Bad bits 3\nfio: bad pattern block offset 1\npattern: verify failed at file /x/file offset 8192, "
        ),
        "{}",
        wrongs[0].lines
    );
}

#[test]
fn a_header_of_another_write_is_damage() {
    let changed = |change: fn(&mut HeaderRead)| {
        let plan = plan(HeaderSum::Md5);
        let mut buffer = vec![0u8; 4096];
        fill(&plan, &write(), &mut buffer);
        let mut reading = reading();
        change(&mut reading);
        check(&plan, &reading, "f", &mut buffer)[0].message.clone()
    };
    assert_eq!(
        changed(|its| its.number = Some(7)),
        "bad header numberio 70000, wanted 7"
    );
    assert_eq!(
        changed(|its| its.seed = Some(9)),
        format!("bad header rand_seed {}, wanted 9", write().seed)
    );
    assert_eq!(
        changed(|its| its.offset = 0),
        "bad header offset 8192, wanted 0"
    );
}

#[test]
fn a_trimmed_block_must_be_zeros() {
    let reading = HeaderRead {
        zeros: true,
        ..reading()
    };
    let mut buffer = vec![0u8; 4096];
    assert_eq!(check(&plan(HeaderSum::Md5), &reading, "f", &mut buffer), []);
    buffer[4000] = 1;
    let wrongs = check(&plan(HeaderSum::Md5), &reading, "f", &mut buffer);
    assert_eq!(wrongs[0].kind, "not_zero");
    assert_eq!(
        wrongs[0].lines,
        "trim: verify failed at file f offset 8192, length 4096, block offset 4000\n"
    );
}

fn piece(number: u64, offset: u64, len: u32) -> Piece {
    Piece {
        file: 0,
        len,
        offset,
        number,
        fate: Fate::Written,
    }
}

fn drained(mut history: History) -> Vec<u64> {
    std::iter::from_fn(|| history.take().map(|piece| piece.number)).collect()
}

#[test]
fn a_later_write_takes_the_place_of_all_it_overlaps_or_all_come_in_their_turn() {
    let writes = [
        piece(0, 0, 4096),
        piece(1, 8192, 4096),
        piece(2, 4096, 1024),
        piece(3, 3072, 6144),
        piece(4, 20_000, 10),
    ];
    let fill = |by_address| {
        let mut history = History::new(by_address);
        for piece in writes {
            history.add(piece);
        }
        history
    };
    assert_eq!(fill(true).len(), 2);
    assert_eq!(drained(fill(true)), [3, 4]);
    assert_eq!(drained(fill(false)), [0, 1, 2, 3, 4]);
}

#[test]
fn what_is_in_flight_waits_and_what_failed_is_left_out() {
    for by_address in [true, false] {
        let mut history = History::new(by_address);
        let first = history.add(Piece {
            fate: Fate::InFlight,
            ..piece(0, 0, 512)
        });
        history.add(piece(1, 512, 512));
        assert_eq!(history.take(), None);
        history.settle(first, 0, Fate::Gone, None);
        assert_eq!(history.len(), 1);
        assert_eq!(drained(history), [1]);
    }
}

proptest! {
    /// The pieces left are those that no later write overlaps.
    #[test]
    fn the_history_by_address_keeps_what_a_scan_would(
        writes in prop::collection::vec((0u64..64, 1u32..16), 1..60)
    ) {
        let mut history = History::new(true);
        for (number, &(offset, len)) in (0..).zip(&writes) {
            history.add(piece(number, offset, len));
        }
        let meets = |a: &(u64, u32), b: &(u64, u32)| {
            a.0 < b.0 + u64::from(b.1) && b.0 < a.0 + u64::from(a.1)
        };
        let mut left: Vec<usize> = (0..writes.len())
            .filter(|&i| !writes[i + 1..].iter().any(|later| meets(&writes[i], later)))
            .collect();
        left.sort_by_key(|&i| writes[i].0);
        let left: Vec<u64> = left.into_iter().map(|i| i as u64).collect();
        prop_assert_eq!(drained(history), left);
    }

    /// Each byte of a pattern by itself is what laying it writes.
    #[test]
    fn a_pattern_is_the_same_byte_by_byte(
        bytes in prop::collection::vec(any::<u8>(), 8..40), at in 0u32..30, interval in 0u32..90, offset in any::<u32>()
    ) {
        let offsets_at = if at as usize + 8 <= bytes.len() { vec![at] } else { vec![] };
        let pattern = HeaderPattern { bytes, offsets_at, interval_bytes: interval };
        let plan = Headers { pattern: Some(pattern.clone()), ..plan(HeaderSum::Pattern) };
        let mut buffer = vec![0u8; 300];
        let write = HeaderWrite { offset: u64::from(offset), ..write() };
        fill(&plan, &write, &mut buffer);
        for (i, &byte) in buffer.iter().enumerate() {
            prop_assert_eq!(byte, pattern_byte(&pattern, write.offset, i));
        }
    }
}

/// fio 3.33 calls its own writes damaged with such an offset.
#[test]
fn a_header_that_would_overlap_what_it_changes_places_with_is_refused() {
    let with = |offset_bytes| {
        let mut stream = plain::stream();
        stream.limits.ops = 1;
        stream.headers = Some(Headers {
            offset_bytes,
            layout: HeaderLayout::Earlier,
            ..plan(HeaderSum::Md5)
        });
        let device = SimDevice {
            faults: Some(plain::no_faults()),
            ..plain::device()
        };
        plain::plan(Backend::Sim { device }, vec![stream])
    };
    for sound in [0, 56, 300] {
        let plan = with(sound);
        assert_eq!(rules::check(&plan, &plan.streams[0], "/streams/0"), Ok(()));
    }
    for overlapping in [1, 40, 55] {
        let plan = with(overlapping);
        let Err(RunError::Plan { path, message, .. }) =
            rules::check(&plan, &plan.streams[0], "/streams/0")
        else {
            panic!("{overlapping} is not refused");
        };
        assert_eq!(path, "/streams/0/headers/offset_bytes");
        assert!(message.contains("at least 56"), "{message}");
    }
}

/// 63 bytes have no room for the later header of SHA-1, but for the earlier one.
#[test]
fn the_rest_of_an_io_that_is_too_short_for_a_header_is_not_taken_for_the_other_layout() {
    let plan = Headers {
        interval_bytes: 521,
        ..plan(HeaderSum::Sha1)
    };
    let mut buffer = vec![0; 31 * 521 + 63];
    let write = HeaderWrite {
        seed: 7,
        offset: 466_944,
        number: 1,
        time: (1, 2),
    };
    fill(&plan, &write, &mut buffer);
    let reading = HeaderRead {
        file: 0,
        offset: write.offset,
        len: buffer.len() as u32,
        seed: Some(7),
        number: Some(1),
        zeros: false,
    };
    assert_eq!(check(&plan, &reading, "file", &mut buffer), []);
}

#[test]
fn the_history_of_writes_after_trims_has_room_for_the_sizes_of_trims() {
    let mut stream = plain::stream();
    stream.headers = Some(plan(HeaderSum::Md5));
    stream.pattern = plain::pattern([0, 0, 100], &plain::order(0, 65536));
    stream.pattern.trim_then_write = true;
    stream.files[0].length_bytes = 64 << 20;
    let large = Readback::memory_bytes(&stream);
    stream.pattern.trim.sizes = Sizes::Fixed { bytes: 512 };
    assert!(Readback::memory_bytes(&stream) > 16 * large);
}
