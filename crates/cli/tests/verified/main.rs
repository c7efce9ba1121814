//! Verification in whole runs: a simulated device damages data, and the engine says what
//! it did. Every injection is compared with what the engine found.

mod chains;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::path::Path;

use loadstone_plan::*;
use serde::Serialize;
use serde_json::{json, Value};
use support::{engine, finish, of_type, start, EngineRun, Scratch};

const BLOCK: u64 = 4096;

/// How a Plan ran.
fn ran(plan: &impl Serialize) -> EngineRun {
    let dir = Scratch::new();
    finish(start(engine(), plan, &dir.0), |_| ())
}

fn run(plan: &Plan) -> Vec<Value> {
    let EngineRun { code, events } = ran(plan);
    assert_eq!(code, 0, "{events:?}");
    events
}

/// The Plan with another value at a place is refused in these words.
fn refused(plan: &Plan, path: &str, value: Value, says: &str) {
    let mut bad = json!(plan);
    *bad.pointer_mut(path).unwrap() = value;
    let EngineRun { code, events } = ran(&bad);
    assert_eq!(code, 2, "{path}: {events:?}");
    let fatal = of_type(&events, "fatal").next().unwrap();
    assert!(fatal.to_string().contains(says), "{path}: {fatal}");
}

fn device(seed: u64) -> SimDevice {
    SimDevice {
        seed,
        servers: 4,
        read_ns: 50_000,
        write_ns: 80_000,
        service: ServiceTime::Exponential,
        faults: Some(plain::no_faults()),
        ..plain::device()
    }
}

/// A device that does no harm but this.
fn sim(seed: u64, but: impl FnMut(&mut SimFaults)) -> Backend {
    let mut device = device(seed);
    device.faults.iter_mut().for_each(but);
    Backend::Sim { device }
}

/// Which share of a device's faults.
type FaultShare = fn(&mut SimFaults) -> &mut u32;

fn sound(seed: u64) -> Backend {
    sim(seed, |_| ())
}

fn verify(content: VerifyContent) -> Verify {
    Verify {
        block_bytes: BLOCK as u32,
        run: 0xabcd_1234,
        content,
        expect: VerifyExpect::Table,
        only_written: false,
        fatal: false,
        read_before_write: false,
        read_after_write: false,
    }
}

/// A stream of one pass over the range; `worker` is its number.
fn pass(worker: u32, read_percent: u32, random: bool, blocks: u64, verify: Verify) -> Stream {
    let order = plain::order(if random { 100 } else { 0 }, BLOCK as u32);
    Stream {
        name: format!("pass.{worker}"),
        worker,
        files: vec![FileUse {
            length_bytes: blocks * BLOCK,
            ..plain::stream().files[0]
        }],
        seed: u64::from(7 + worker),
        iodepth: 16,
        pattern: plain::pattern([read_percent, 100 - read_percent, 0], &order),
        limits: Limits {
            runtime_ns: 0,
            time_based: false,
            bytes: blocks * BLOCK,
            ..plain::stream().limits
        },
        errors: ErrorPolicy {
            continue_read: true,
            continue_write: true,
            ..plain::stream().errors
        },
        verify: Some(verify),
        ..plain::stream()
    }
}

/// Stages of one stream each: the backend and the stream of every one.
fn plan(target: Target, stages: Vec<(Backend, Stream)>) -> Plan {
    let (backends, streams): (Vec<Backend>, Vec<Stream>) = stages.into_iter().unzip();
    let workers = (0..).zip(backends);
    Plan {
        targets: vec![target],
        workers: workers
            .map(|(stage, backend)| plain::worker(stage, backend))
            .collect(),
        ..plain::plan(Backend::Null {}, streams)
    }
}

fn simulated(blocks: u64) -> Target {
    plain::target("simulated", TargetKind::Virtual, blocks * BLOCK)
}

fn offsets<'a>(events: impl Iterator<Item = &'a Value>, field: &str) -> BTreeSet<u64> {
    events.filter_map(|event| event[field].as_u64()).collect()
}

fn found(events: &[Value], kind: &str) -> u64 {
    of_type(events, "verified").next().unwrap()["found"][kind]
        .as_u64()
        .unwrap()
}

fn total_found(events: &[Value]) -> u64 {
    let verified = of_type(events, "verified").next().unwrap();
    verified["found"]
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_u64().unwrap())
        .sum()
}

#[test]
fn what_a_simulated_device_does_to_writes_is_found_and_named() {
    let blocks = 6_000;
    for content in [VerifyContent::Generated, VerifyContent::Payload] {
        let each: [(FaultShare, &str); 5] = [
            (|faults| &mut faults.lost_ppm, "lost_write"),
            (|faults| &mut faults.torn_ppm, "torn_write"),
            (|faults| &mut faults.flip_ppm, "bit_flip"),
            (|faults| &mut faults.zero_ppm, "zeroed_block"),
            (|faults| &mut faults.foreign_ppm, "foreign"),
        ];
        for (share_ppm, kind) in each {
            let verify = verify(content);
            let events = run(&plan(
                simulated(blocks),
                vec![
                    (sound(1), pass(0, 0, false, blocks, verify)),
                    (
                        sim(2, |faults| *share_ppm(faults) = 40_000),
                        pass(1, 0, true, blocks, verify),
                    ),
                    (sound(3), pass(2, 100, true, blocks, verify)),
                ],
            ));
            let injected = offsets(of_type(&events, "injected"), "offset");
            assert!(injected.len() > 150, "{kind}: {}", injected.len());
            assert!(of_type(&events, "injected").all(|event| event["kind"] == kind));
            assert_eq!(
                found(&events, kind),
                injected.len() as u64,
                "{content:?} {kind}"
            );
            assert_eq!(
                total_found(&events),
                injected.len() as u64,
                "{content:?} {kind}"
            );
            // The first hundred are told one by one, each where one was injected.
            let told = offsets(of_type(&events, "damage"), "offset");
            assert!(told.len() == 100 && told.is_subset(&injected));
            let end = of_type(&events, "verify_end")
                .find(|event| event["stream"] == 2)
                .unwrap();
            assert_eq!(
                end["checked"].as_u64().unwrap() + injected.len() as u64,
                blocks
            );
            assert_eq!(end["unverified"], 0);
        }
    }
}

#[test]
fn both_ends_of_a_misdirected_write_are_found() {
    let (blocks, verify) = (30_000, verify(VerifyContent::Generated));
    let events = run(&plan(
        simulated(blocks),
        vec![
            (sound(1), pass(0, 0, false, blocks, verify)),
            (
                sim(2, |faults| faults.misdirected_ppm = 1_000),
                pass(1, 0, true, blocks, verify),
            ),
            (sound(3), pass(2, 100, false, blocks, verify)),
        ],
    ));
    let from = offsets(of_type(&events, "injected"), "offset");
    let to = offsets(of_type(&events, "injected"), "to");
    assert!(!from.is_empty() && from.len() < 50, "{}", from.len());
    let told = offsets(of_type(&events, "damage"), "offset");
    assert!(
        told.is_superset(&from),
        "a write that went elsewhere is missing at its place"
    );
    // Where it went may have been written again since.
    let both: BTreeSet<u64> = from.union(&to).copied().collect();
    assert!(told.is_subset(&both) && told.len() > from.len());
    for event in of_type(&events, "damage") {
        if event["kind"] == "misdirected_write" && event["found_offset"] != event["offset"] {
            assert!(
                from.contains(&event["found_offset"].as_u64().unwrap()),
                "{event}"
            );
        }
    }
}

#[test]
fn a_stale_read_is_told_from_a_lost_write_by_an_earlier_read() {
    let (blocks, verify) = (20_000, verify(VerifyContent::Generated));
    let stale = |faults: &mut SimFaults| faults.stale_ppm = 60_000;
    let events = run(&plan(
        simulated(blocks),
        vec![
            (sound(1), pass(0, 0, false, blocks, verify)),
            (sound(2), pass(1, 0, true, blocks, verify)),
            (sound(3), pass(2, 100, false, blocks, verify)),
            (sim(4, stale), pass(3, 100, true, blocks, verify)),
        ],
    ));
    let injected = of_type(&events, "injected").count() as u64;
    assert!(injected > 1000);
    assert_eq!(
        (found(&events, "stale_read"), total_found(&events)),
        (injected, injected)
    );
}

#[test]
fn a_sound_device_has_no_damage_whatever_overlaps() {
    // Few blocks, deep queue, reads and writes mixed: most I/Os overlap others; some
    // fail, some come back short and some never.
    for seed in 0..20 {
        let blocks = 64;
        let verify = verify(if seed % 2 == 0 {
            VerifyContent::Generated
        } else {
            VerifyContent::Payload
        });
        let unreliable = Backend::Sim {
            device: SimDevice {
                error_ppm: 5_000,
                short_ppm: 5_000,
                ..device(seed)
            },
        };
        let mut mixed = pass(0, 50, true, blocks, verify);
        mixed.limits.bytes = 5_000 * BLOCK;
        mixed.pattern.write.random = RandomOrder::Uniform { repeat: true };
        mixed.pattern.read.random = RandomOrder::Uniform { repeat: true };
        mixed.iodepth = 32;
        let events = run(&plan(simulated(blocks), vec![(unreliable, mixed)]));
        assert_eq!(
            total_found(&events),
            0,
            "seed {seed}: {:?}",
            of_type(&events, "damage").next()
        );
        let end = of_type(&events, "verify_end").next().unwrap();
        assert!(end["checked"].as_u64().unwrap() > 1000, "{end}");
    }
}

/// What a stream said it found damaged, at its end.
fn damaged(events: &[Value], stream: u64) -> u64 {
    let mut ends = of_type(events, "verify_end");
    let end = ends.find(|event| event["stream"] == stream).unwrap();
    end["damaged"].as_u64().unwrap()
}

fn told_by(events: &[Value], stream: u64) -> Vec<u64> {
    of_type(events, "damage")
        .filter(|event| event["stream"] == stream)
        .map(|event| event["offset"].as_u64().unwrap())
        .collect()
}

#[test]
fn every_stage_that_reads_damage_tells_it_and_the_run_counts_it_once() {
    let (blocks, verify) = (2_000, verify(VerifyContent::Generated));
    let mut fatal = verify;
    fatal.fatal = true;
    let events = run(&plan(
        simulated(blocks),
        vec![
            (
                sim(1, |faults| faults.zero_ppm = 20_000),
                pass(0, 0, false, blocks, verify),
            ),
            (sound(2), pass(1, 100, true, blocks, verify)),
            (sound(3), pass(2, 100, false, blocks, verify)),
            (sound(4), pass(3, 100, false, blocks, fatal)),
        ],
    ));
    let injected = offsets(of_type(&events, "injected"), "offset");
    let count = injected.len() as u64;
    assert!((10..100).contains(&count), "{count}");
    assert_eq!((damaged(&events, 1), damaged(&events, 2)), (count, count));
    for stream in [1, 2] {
        let told = told_by(&events, stream);
        assert_eq!(told.len() as u64, count, "stream {stream}");
        assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), injected);
    }
    let last = of_type(&events, "stream_end").find(|event| event["stream"] == 3);
    assert_eq!(last.unwrap()["reason"], "damage");
    assert_eq!(
        (found(&events, "zeroed_block"), total_found(&events)),
        (count, count)
    );
}

#[test]
fn every_stream_of_a_stage_that_reads_damage_tells_it() {
    let (blocks, verify) = (2_000, verify(VerifyContent::Generated));
    let mut plan = plan(
        simulated(blocks),
        vec![
            (
                sim(1, |faults| faults.flip_ppm = 20_000),
                pass(0, 0, false, blocks, verify),
            ),
            (sound(2), pass(1, 100, true, blocks, verify)),
            (sound(3), pass(2, 100, true, blocks, verify)),
        ],
    );
    plan.workers[2].stage = 1;
    let events = run(&plan);
    let count = of_type(&events, "injected").count() as u64;
    assert!((10..100).contains(&count), "{count}");
    assert_eq!((damaged(&events, 1), damaged(&events, 2)), (count, count));
    let both = (told_by(&events, 1).len(), told_by(&events, 2).len());
    assert_eq!(both, (count as usize, count as usize));
    assert_eq!(total_found(&events), count);
}

#[test]
fn a_stream_that_reads_damage_again_counts_each_read_and_tells_each_place_once() {
    let (blocks, verify) = (500, verify(VerifyContent::Generated));
    let mut again = pass(1, 100, true, blocks, verify);
    again.pattern.read.random = RandomOrder::Uniform { repeat: true };
    again.limits.bytes = 20 * blocks * BLOCK;
    let events = run(&plan(
        simulated(blocks),
        vec![
            (
                sim(1, |faults| faults.zero_ppm = 20_000),
                pass(0, 0, false, blocks, verify),
            ),
            (sound(2), again),
        ],
    ));
    let injected = offsets(of_type(&events, "injected"), "offset");
    let told = told_by(&events, 1);
    // Every block is read twenty times in the mean.
    assert!(damaged(&events, 1) > 5 * injected.len() as u64);
    assert!(!told.is_empty() && told.len() == injected.len());
    assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), injected);
    assert_eq!(total_found(&events), injected.len() as u64);
}

#[test]
fn a_later_stage_tells_both_places_of_a_misdirected_write_together() {
    let (blocks, verify) = (30_000, verify(VerifyContent::Generated));
    let events = run(&plan(
        simulated(blocks),
        vec![
            (sound(1), pass(0, 0, false, blocks, verify)),
            (
                sim(2, |faults| faults.misdirected_ppm = 1_000),
                pass(1, 0, true, blocks, verify),
            ),
            (sound(3), pass(2, 100, true, blocks, verify)),
            (sound(4), pass(3, 100, false, blocks, verify)),
        ],
    ));
    let kinds = |stream: u64, kind: &str| {
        of_type(&events, "damage")
            .filter(|event| event["stream"] == stream && event["kind"] == kind)
            .count() as u64
    };
    let misdirected = found(&events, "misdirected_write");
    // When a place was read before the one its write went to, nobody could know yet.
    assert!(kinds(2, "lost_write") > found(&events, "lost_write"));
    assert!(kinds(2, "misdirected_write") < misdirected);
    assert_eq!(kinds(3, "lost_write"), found(&events, "lost_write"));
    assert_eq!(kinds(3, "misdirected_write"), misdirected);
    assert_eq!(damaged(&events, 3), total_found(&events));
}

#[test]
fn only_what_was_written_is_read() {
    let (blocks, mut verify) = (10_000, verify(VerifyContent::Generated));
    let mut some = pass(0, 0, true, blocks, verify);
    some.limits.bytes = 700 * BLOCK;
    verify.only_written = true;
    let events = run(&plan(
        simulated(blocks),
        vec![
            (sound(1), some),
            (sound(2), pass(1, 100, false, blocks, verify)),
        ],
    ));
    let end = of_type(&events, "stream_end")
        .find(|event| event["stream"] == 1)
        .unwrap();
    assert_eq!(
        (&end["completed"][0], &end["reason"]),
        (&json!(700), &json!("bytes"))
    );
    let end = of_type(&events, "verify_end")
        .find(|event| event["stream"] == 1)
        .unwrap();
    assert_eq!(
        (&end["checked"], &end["unverified"]),
        (&json!(700), &json!(0))
    );
}

#[test]
fn fatal_damage_ends_the_stream() {
    let (blocks, mut verify) = (1_000, verify(VerifyContent::Generated));
    verify.fatal = true;
    let events = run(&plan(
        simulated(blocks),
        vec![
            (
                sim(1, |faults| faults.zero_ppm = 1_000_000),
                pass(0, 0, false, blocks, verify),
            ),
            (sound(2), pass(1, 100, false, blocks, verify)),
        ],
    ));
    let end = of_type(&events, "stream_end")
        .find(|event| event["stream"] == 1)
        .unwrap();
    assert_eq!(end["reason"], "damage");
    assert!(end["completed"][0].as_u64().unwrap() < 100);
}

/// Writes a file, lets `harm` change it, and checks it by what its stamps say.
fn on_a_file(backend: &Backend, harm: impl FnOnce(&Path)) -> Vec<Value> {
    let dir = Scratch::new();
    let path = dir.join("data");
    let blocks = 2_000;
    let mut verify = verify(VerifyContent::Generated);
    verify.expect = VerifyExpect::Stamps;
    let file = Target {
        create: true,
        ..plain::target(path.to_str().unwrap(), TargetKind::File, blocks * BLOCK)
    };
    let one_pass = |read_percent| {
        let mut stream = pass(0, read_percent, true, blocks, verify);
        // Plain system calls do one I/O at a time.
        if !matches!(backend, Backend::IoUring { .. }) {
            stream.iodepth = 1;
        }
        vec![(backend.clone(), stream)]
    };
    let mut laid_out = file.clone();
    laid_out.layout = Some(Layout {
        size_bytes: blocks * BLOCK,
        truncate: false,
        fallocate: Fallocate::None,
        write: true,
        fsync: false,
        seed: 1,
    });
    let events = run(&plan(laid_out, one_pass(0)));
    assert_eq!(total_found(&events), 0);
    harm(&path);
    run(&plan(file, one_pass(100)))
}

/// Flips bits of two blocks, in the data and where it says who wrote it, and puts one at another's place.
fn harm_three_blocks(path: &Path) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    for (at, bits) in [(17 * BLOCK + 1000, 4), (70 * BLOCK, 0b11)] {
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ bits], at).unwrap();
    }
    let mut block = [0; BLOCK as usize];
    file.read_exact_at(&mut block, 40 * BLOCK).unwrap();
    file.write_all_at(&block, 50 * BLOCK).unwrap();
}

#[test]
fn a_later_run_checks_a_real_file() {
    let uring = Backend::IoUring {
        registered_files: true,
        fixed_buffers: true,
        iopoll: false,
        sqpoll: false,
    };
    for backend in [Backend::Psync {}, Backend::Mmap {}, uring] {
        let clean = on_a_file(&backend, |_| ());
        assert_eq!(total_found(&clean), 0, "{backend:?}");
        let end = of_type(&clean, "verify_end").next().unwrap();
        assert_eq!(
            (&end["checked"], &end["unverified"]),
            (&json!(2000), &json!(0)),
            "{backend:?}"
        );
        let harmed = on_a_file(&backend, harm_three_blocks);
        let told: Vec<(u64, &str)> = of_type(&harmed, "damage")
            .map(|event| {
                (
                    event["offset"].as_u64().unwrap(),
                    event["kind"].as_str().unwrap(),
                )
            })
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        assert_eq!(
            told,
            [
                (17 * BLOCK, "bit_flip"),
                (50 * BLOCK, "misdirected_write"),
                (70 * BLOCK, "bit_flip")
            ]
        );
        let flip = of_type(&harmed, "damage")
            .find(|event| event["offset"] == 17 * BLOCK)
            .unwrap();
        // Byte 1000 of the block: sector 1, byte 488 of it, bit 2.
        assert_eq!(
            (&flip["first_sector"], &flip["first_bit"]),
            (&json!(1), &json!(488 * 8 + 2))
        );
    }
}

#[test]
fn plans_that_cannot_be_verified_are_refused() {
    let blocks = 100;
    let good = plan(
        simulated(blocks),
        vec![(
            sound(1),
            pass(0, 50, true, blocks, verify(VerifyContent::Payload)),
        )],
    );
    for (path, value, expected) in [
        (
            "/streams/0/verify/block_bytes",
            json!(1000),
            "multiple of 512",
        ),
        (
            "/streams/0/verify/block_bytes",
            json!(8192),
            "multiples of the verify block",
        ),
        ("/streams/0/payload/dedupe_percent", json!(10), "no effect"),
        (
            "/workers/0/backend",
            json!({"type": "null"}),
            "writes no content that could be verified",
        ),
        (
            "/workers/0/backend/device/faults",
            json!(null),
            "keeps no data",
        ),
    ] {
        refused(&good, path, value, expected);
    }
    let mut other = pass(0, 0, true, blocks, verify(VerifyContent::Payload));
    other.verify = None;
    let streams = json!([good.streams[0], other]);
    refused(&good, "/streams", streams, "same target");
}
