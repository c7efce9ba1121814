//! What is done with foreign bytes, one function for each reader.
//!
//! Knows what each reader promises, and panics where it does not keep that. Where a checksum would
//! turn away nearly all bytes a first byte chooses whether it is made right. Knows no fuzzer.

use loadstone_engine::stdin_commands::StdinCommand;
use loadstone_engine::{budget, check};
use loadstone_io::backend::nvme::namespace::Namespace;
use loadstone_plan::plain;
use loadstone_plan::{
    Backend, HeaderLayout, HeaderPattern, HeaderSum, Headers, Plan, SimDevice, Sizes, Stream,
};
use loadstone_verification::headers::check::{check as check_headers, HeaderRead};
use loadstone_verification::headers::content::{fill, HeaderWrite};
use loadstone_verification::headers::rules as header_rules;
use loadstone_verification::verify::check::{check as check_stamps, Verdict};
use loadstone_verification::verify::expect::{BlockTable, Expectation};
use loadstone_verification::verify::handover::Handover;
use loadstone_verification::verify::journal::{
    frame_crc, Durability, Record, Settings, FRAME_HEADER_BYTES, FRAME_MAGIC, RECORD_BYTES,
};
use loadstone_verification::verify::recover::Recovered;
use loadstone_verification::verify::stamp::{PayloadSource, StampWrite, Stamper, GENERATIONS};
use serde_json::Value;

#[path = "../../cli/tests/seeds/witness.rs"]
#[allow(
    dead_code,
    missing_docs,
    reason = "the tests of the loop use more of it"
)]
mod witness;

/// Does something with foreign bytes.
pub type Tried = fn(&[u8]);

/// Every target by its name.
pub const ALL: [(&str, Tried); 8] = [
    ("plan", plan),
    ("simulated", simulated),
    ("journal", journal),
    ("known", known),
    ("stamped", stamped),
    ("headers", headers),
    ("orders", orders),
    ("namespace", namespace),
];

/// Plans to begin with: those of the Python side's fuzzer.
const PLANS: [&str; 7] = [
    include_str!("../../../tests/fuzz/plans/sim.json"),
    include_str!("../../../tests/fuzz/plans/null.json"),
    include_str!("../../../tests/fuzz/plans/psync.json"),
    include_str!("../../../tests/fuzz/plans/ring.json"),
    include_str!("../../../tests/fuzz/plans/rich.json"),
    include_str!("../../../tests/fuzz/plans/four-corners.json"),
    include_str!("../../../tests/fuzz/plans/tree.json"),
];

/// Bytes to be used up; zeros follow them.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn some<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let have = self.0.len().min(N);
        out[..have].copy_from_slice(&self.0[..have]);
        self.0 = &self.0[have..];
        out
    }

    fn byte(&mut self) -> u8 {
        u8::from_le_bytes(self.some())
    }

    fn below(&mut self, end: usize) -> usize {
        usize::from(u16::from_le_bytes(self.some())) % end.max(1)
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.some())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A number where ends of ranges are likely.
fn extreme(bytes: &mut Bytes) -> Value {
    const ENDS: [u64; 16] = [
        0,
        1,
        2,
        511,
        512,
        4096,
        65_536,
        u32::MAX as u64 - 1,
        u32::MAX as u64,
        1 << 32,
        1 << 40,
        1 << 53,
        i64::MAX as u64,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    match bytes.byte() {
        which @ 0..16 => ENDS[usize::from(which)].into(),
        16 => Value::Null,
        17 => true.into(),
        18 => false.into(),
        19 => (-1).into(),
        20 => 0.5.into(),
        21 => 1e308.into(),
        22 => 1e-308.into(),
        23 => "".into(),
        24 => Value::Array(Vec::new()),
        25 => Value::Object(serde_json::Map::new()),
        26..=100 => u64::from(bytes.byte()).into(),
        101..=200 => (bytes.number() & 0xffff_ffff).into(),
        _ => bytes.number().into(),
    }
}

/// The value with this number, counted through the tree.
fn node<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| node(item, left)),
        Value::Object(fields) => fields.values_mut().find_map(|field| node(field, left)),
        _ => None,
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// A Plan with some of its values changed.
fn edited(bytes: &mut Bytes, base: &str) -> Value {
    let mut plan: Value = serde_json::from_str(base).expect("a Plan to begin with is JSON");
    while !bytes.is_empty() {
        let all = count(&plan);
        let (mut at, mut from) = (bytes.below(all), bytes.below(all));
        let other = node(&mut plan, &mut from).cloned();
        let how = bytes.byte() % 8;
        let Some(place) = node(&mut plan, &mut at) else {
            continue;
        };
        match (how, place) {
            (0, Value::Array(items)) => {
                // One more of what is there.
                items.extend(items.first().cloned());
            }
            (1, Value::Array(items)) => drop(items.pop()),
            (2, place) => *place = other.unwrap_or(Value::Null),
            // Whole parts are mostly kept: without them nothing else is looked at.
            (_, place @ (Value::Array(_) | Value::Object(_))) if how != 7 => {
                let _ = place;
            }
            (_, place) => *place = extreme(bytes),
        }
    }
    plan
}

/// A Plan: it is refused with a reason, or what it needs is known.
pub fn plan(data: &[u8]) {
    let mut bytes = Bytes(data);
    let text = match bytes.byte() {
        which if usize::from(which) < PLANS.len() => {
            edited(&mut bytes, PLANS[usize::from(which)]).to_string()
        }
        _ => String::from_utf8_lossy(data).into_owned(),
    };
    let Ok(plan) = check::parse(&text) else {
        return;
    };
    let again = serde_json::to_string(&plan).expect("a Plan is JSON");
    assert!(
        check::parse(&again).is_ok(),
        "what was read is not read again"
    );
    if check::check(&plan).is_ok() {
        // Only a sum: nothing is allocated.
        let _ = budget::check(&plan);
    }
}

/// Most that a simulated run of the fuzzer may take.
const RUN_BYTES: u64 = 64 << 20;
const RUN_NS: u64 = 20_000_000;
const RUN_OPS: u64 = 500;

/// A Plan of one simulated worker that is accepted runs to its end.
pub fn simulated(data: &[u8]) {
    let mut bytes = Bytes(data);
    let value = edited(&mut bytes, PLANS[0]);
    let Ok(mut plan) = serde_json::from_value::<Plan>(value) else {
        return;
    };
    if plan.workers.len() != 1 || !runs_here(&plan) {
        return;
    }
    plan.memory_limit_bytes = RUN_BYTES;
    for stream in &mut plan.streams {
        let limits = &mut stream.limits;
        limits.runtime_ns = limits.runtime_ns.clamp(1, RUN_NS);
        limits.ramp_ns = limits.ramp_ns.min(RUN_NS);
        limits.start_delay_ns = limits.start_delay_ns.min(RUN_NS);
        limits.ops = limits.ops.clamp(1, RUN_OPS);
        limits.time_based = false;
        stream.log_ios = false;
    }
    if check::check(&plan).is_err() || budget::check(&plan).is_err() {
        return;
    }
    let outcome = witness::run(&plan);
    assert_eq!(
        outcome.ends.len(),
        plan.streams.len(),
        "a stream never ended"
    );
    for (index, stream) in plan.streams.iter().enumerate() {
        let end = (outcome.ends.iter())
            .find(|end| end.stream == index as u32)
            .expect("each stream ends once");
        let own = || outcome.seen.iter().filter(|io| io.stream == index as u32);
        assert_eq!(end.issued.iter().sum::<u64>(), own().count() as u64);
        for io in own() {
            let file = &stream.files;
            let inside = file.iter().any(|file| {
                io.len == 0
                    || (io.file == file.target
                        && io.offset >= file.offset_bytes
                        && io.offset + u64::from(io.len) <= file.offset_bytes + file.length_bytes)
            });
            assert!(inside, "{io:?} is outside of its file");
        }
    }
}

/// The harness has one worker, a modelled device, and nothing that is kept in files.
fn runs_here(plan: &Plan) -> bool {
    let small = |device: &SimDevice| {
        device.behaviour.is_none()
            && device.servers <= 1024
            && device.read_ns.max(device.write_ns) > 0
    };
    let modelled = matches!(&plan.workers[0].backend, Backend::Sim { device } if small(device));
    let alone = |stream: &Stream| {
        stream.verify.is_none()
            && stream.headers.is_none()
            && stream.tree.is_none()
            && stream.wait_for.is_empty()
            && stream.flow.is_none()
    };
    modelled
        && plan.streams.iter().all(alone)
        && plan.journal.is_none()
        && plan.recover.is_none()
        && plan.earlier.is_empty()
        && !plan.hand_over
}

/// A journal: it is refused, or its tables demand nothing impossible.
pub fn journal(data: &[u8]) {
    let mut bytes = Bytes(data);
    let file = if bytes.byte() & 1 == 0 {
        bytes.0.to_vec()
    } else {
        let head = bytes.byte();
        let settings = Settings {
            run: 7,
            block_bytes: [512, 4096, 0, 65_536][usize::from(head & 3)],
            durability: if head & 4 == 0 {
                Durability::Acknowledged
            } else {
                Durability::Flushed
            },
        };
        let records = usize::from(bytes.byte() % 16) + 1;
        framed(settings, bytes.0, records)
    };
    let Ok(told) = Recovered::read_from(&mut &file[..]) else {
        return;
    };
    assert!(told.torn_tail_bytes <= file.len() as u64);
    assert!(told.known() as u64 <= told.records && told.in_flight() as u64 <= told.records);
    assert!(!told.describe().is_empty());
    if told.settings.block_bytes != 4096 {
        return;
    }
    for target in [0, 1, u16::MAX] {
        let table = told.table(target, 8192, 64 * 4096);
        hold(&table);
    }
}

/// Frames of so many records each, from bytes that are records.
fn framed(settings: Settings, bytes: &[u8], records: usize) -> Vec<u8> {
    let mut file = settings.encode().to_vec();
    let all: Vec<u8> = bytes
        .chunks_exact(RECORD_BYTES)
        .flat_map(|record| {
            let mut record: [u8; RECORD_BYTES] = record.try_into().unwrap_or_default();
            // Mostly kinds there are, of few targets and blocks.
            record[0] %= 10;
            record[2] &= 1;
            record[3] = 0;
            if record[15] & 1 == 0 {
                let offset = u64::from(record[8] % 70) * 4096;
                record[8..].copy_from_slice(&offset.to_le_bytes());
            }
            assert!(Record::decode(&record).is_none_or(|one| one.encode()[0] == record[0]));
            record
        })
        .collect();
    for (number, part) in all.chunks(records * RECORD_BYTES).enumerate() {
        let mut frame = vec![0; FRAME_HEADER_BYTES];
        frame[..4].copy_from_slice(&FRAME_MAGIC);
        frame[4..8].copy_from_slice(&((part.len() / RECORD_BYTES) as u32).to_le_bytes());
        frame[8..16].copy_from_slice(&(number as u64).to_le_bytes());
        frame.extend_from_slice(part);
        let crc = frame_crc(&frame);
        frame[16..20].copy_from_slice(&crc.to_le_bytes());
        file.extend_from_slice(&frame);
    }
    file
}

/// A table of quiet blocks: the generation last given out may be there, and no other than there is.
fn hold(table: &BlockTable) {
    for index in 0..table.len() {
        let entry = table.entry(index);
        assert_eq!(entry.in_flight(), 0);
        assert!(entry.generation() <= GENERATIONS);
        let expected = Expectation::between(entry, entry);
        assert!(entry.generation() == 0 || expected.allows(entry.generation()));
        assert!(entry.generation() != 0 || !entry.is_known());
        assert!(!expected.allows(GENERATIONS + 1) || expected.newest == 0);
        // A write after it goes on from there.
        let next = entry.begin();
        assert!((1..=GENERATIONS).contains(&next.generation()));
    }
}

/// The table of written blocks that a run left: it is refused, or demands nothing impossible.
pub fn known(data: &[u8]) {
    let mut bytes = Bytes(data);
    let file = if bytes.byte() & 1 == 0 {
        bytes.0.to_vec()
    } else {
        let mut file = b"LOADSTNK\x01\0\0\0".to_vec();
        file.extend_from_slice(bytes.0);
        let crc = crc32c::crc32c(&file);
        file.extend_from_slice(&crc.to_le_bytes());
        file
    };
    let Ok(known) = Handover::parse(&file) else {
        return;
    };
    for (target, start_bytes) in [(0, 0), (1, 8 * 4096), (u32::MAX - 1, 1 << 40)] {
        if start_bytes % u64::from(known.block_bytes) != 0 || known.block_bytes > 1 << 20 {
            continue;
        }
        let length_bytes = 64 * u64::from(known.block_bytes);
        let mut table = BlockTable::new(start_bytes, length_bytes, known.block_bytes);
        known.enter(target, &mut table);
        hold(&table);
    }
}

/// Who stamps blocks of so many sectors.
fn drawn_stamper(bytes: &mut Bytes, kind: u8, sectors: usize) -> Stamper {
    Stamper {
        run: bytes.number(),
        target: u32::from(bytes.byte()),
        block_bytes: (sectors * 512) as u32,
        content: if kind & 8 == 0 {
            PayloadSource::Payload
        } else {
            PayloadSource::Generated
        },
    }
}

/// A block that was read: one that is as it was written is never damaged, one that is not is never
/// the newest.
pub fn stamped(data: &[u8]) {
    let mut bytes = Bytes(data);
    let kind = bytes.byte();
    let sectors = usize::from(kind & 7) + 1;
    let stamper = drawn_stamper(&mut bytes, kind, sectors);
    let offset = u64::from(bytes.byte()) * u64::from(stamper.block_bytes);
    let generation = 1 + bytes.below(usize::from(GENERATIONS)) as u16;
    let newest = bytes.below(usize::from(GENERATIONS) + 1) as u16;
    let flags = bytes.byte();
    let expected = Expectation {
        newest,
        span: u32::from(bytes.byte()),
        anything: flags & 1 != 0,
        mixed: flags & 2 != 0,
        seen: flags & 4 != 0,
        newer: flags & 8 != 0,
    };
    let block = |generation, offset| {
        let mut block = vec![kind; sectors * 512];
        let write = StampWrite {
            sequence: 3,
            bytes: stamper.block_bytes,
            place_bytes: 0,
        };
        stamper.stamp(&mut block, offset, generation, write);
        block
    };
    let whole = block(generation, offset);
    let mut read = whole.clone();
    while !bytes.is_empty() {
        let elsewhere = || block(generation, offset + 8 * u64::from(stamper.block_bytes));
        damage(
            &mut bytes,
            &mut read,
            &|other| block(other, offset),
            &elsewhere,
        );
    }
    match check_stamps(&stamper, &read, offset, &expected) {
        Verdict::Newest => assert!(stamper.holds(&read, offset, newest)),
        Verdict::Damaged(damage) => {
            assert!(!damage.describe().is_empty());
            assert!(u64::from(damage.first_sector) + u64::from(damage.sectors) <= sectors as u64);
            assert!(read != whole || !expected.allows(generation));
        }
        Verdict::Allowed | Verdict::Unverified => {
            assert!(read != whole || expected.anything || expected.allows(generation));
        }
    }
}

/// Damages what was read in one of the ways of storage: bits, zeros, blocks of another time or place.
fn damage(
    bytes: &mut Bytes,
    read: &mut [u8],
    of_generation: &dyn Fn(u16) -> Vec<u8>,
    elsewhere: &dyn Fn() -> Vec<u8>,
) {
    let (how, at) = (bytes.byte(), bytes.below(read.len()));
    match how % 5 {
        0 => read[at] ^= bytes.byte(),
        1 => read[at..].fill(0),
        2 => read[at..].copy_from_slice(&of_generation(1 + u16::from(bytes.byte()))[at..]),
        3 => read[at..].copy_from_slice(&elsewhere()[at..]),
        _ => {
            let have = bytes.0.len().min(read.len() - at);
            read[at..at + have].copy_from_slice(&bytes.0[..have]);
            bytes.0 = &[];
        }
    }
}

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

/// Blocks with fio's headers: what was written is right, and whatever is there can be looked at.
pub fn headers(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (plan, len) = drawn_headers(&mut bytes);
    if !may_be_planned(&plan, len) {
        return;
    }
    let write = HeaderWrite {
        seed: 1 + u64::from(bytes.byte()),
        offset: u64::from(bytes.byte()) * 4096,
        number: u64::from(bytes.byte()),
        time: (1, 2),
    };
    let mut buffer = vec![0; len as usize];
    fill(&plan, &write, &mut buffer);
    let reading = HeaderRead {
        file: 0,
        offset: write.offset,
        len,
        seed: Some(write.seed),
        number: Some(write.number),
        zeros: false,
    };
    let sound = buffer.clone();
    let wrongs = check_headers(&plan, &reading, "file", &mut sound.clone());
    assert!(wrongs.is_empty(), "{plan:?} {wrongs:?}");
    while !bytes.is_empty() {
        let at = bytes.below(buffer.len());
        buffer[at] ^= bytes.byte();
    }
    for wrong in check_headers(&plan, &reading, "file", &mut buffer) {
        assert!(!wrong.message.is_empty() && !wrong.lines.is_empty());
        assert!(wrong.offset >= reading.offset);
        assert!(wrong.offset + u64::from(wrong.bytes) <= reading.offset + u64::from(len));
    }
    let zeros = HeaderRead {
        zeros: true,
        ..reading
    };
    let _ = check_headers(&plan, &zeros, "file", &mut buffer);
}

/// Headers as they may be asked for, and the size of the blocks.
fn drawn_headers(bytes: &mut Bytes) -> (Headers, u32) {
    let flags = bytes.byte();
    let length = 1 + usize::from(bytes.byte() % 64);
    let pattern = (flags & 1 != 0).then(|| HeaderPattern {
        bytes: (0..length).map(|_| bytes.byte()).collect(),
        offsets_at: (0..usize::from(flags >> 6))
            .map(|_| u32::from(bytes.byte()))
            .collect(),
        interval_bytes: if flags & 2 == 0 {
            0
        } else {
            u32::from(u16::from_le_bytes(bytes.some()))
        },
    });
    let len = 1 + bytes.below(16_384) as u32;
    let headers = Headers {
        sum: SUMS[usize::from(bytes.byte()) % SUMS.len()],
        layout: if flags & 4 == 0 {
            HeaderLayout::Earlier
        } else {
            HeaderLayout::Later
        },
        interval_bytes: bytes.below(8192) as u32,
        offset_bytes: bytes.below(8192) as u32,
        pattern,
        compress_percent: u32::from(bytes.byte() % 101),
        read_back: true,
        only: false,
        by_address: false,
        passes: 1,
        enough_bytes: 0,
        backlog: None,
        trim: None,
        fatal: flags & 8 != 0,
        go_on: true,
        dump_dir: None,
        check_seed: true,
        check_number: true,
        thread: 1,
        until: None,
        tell_state: false,
        flushed_only: false,
    };
    (headers, len)
}

/// Tells whether a Plan may have these headers in blocks of this size.
fn may_be_planned(headers: &Headers, len: u32) -> bool {
    let mut stream = plain::stream();
    stream.limits.ops = 1;
    stream.pattern.write.sizes = Sizes::Fixed { bytes: len };
    stream.headers = Some(headers.clone());
    let whole = plain::plan(
        Backend::Sim {
            device: SimDevice {
                faults: Some(plain::no_faults()),
                ..plain::device()
            },
        },
        vec![stream],
    );
    header_rules::check(&whole, &whole.streams[0], "").is_ok()
}

/// Lines of the standard input.
pub fn orders(data: &[u8]) {
    for line in String::from_utf8_lossy(data).lines() {
        let order = StdinCommand::parse(line);
        assert!(
            order.is_none() || line.trim().starts_with(['s', 'e']),
            "{line:?}"
        );
    }
}

/// What an NVMe controller answers: it is refused, or commands can be made for it.
pub fn namespace(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (mut of_namespace, mut of_controller) = ([0; 4096], [0; 4096]);
    of_namespace[..8].copy_from_slice(&bytes.some::<8>());
    of_namespace[24..32].copy_from_slice(&bytes.some::<8>());
    of_controller[77] = bytes.byte();
    let format = bytes.below(64);
    of_namespace[128 + 4 * format..][..4].copy_from_slice(&bytes.some::<4>());
    let Ok(found) = Namespace::parse(1, &of_namespace, &of_controller) else {
        return;
    };
    let block = 1u32 << found.block_shift;
    assert!(
        found.size_bytes > 0 && found.transfer_bytes >= block.min(4096),
        "{found:?}"
    );
    assert_eq!(found.blocks(u64::from(block), block), Some((1, 1)));
    assert_eq!(found.blocks(u64::from(block) + 1, block), None);
}
