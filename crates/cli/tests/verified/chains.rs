//! Reads beside writes: what a device did to a write is found before another hides it.

use super::*;

const BLOCKS: u64 = 256;
const WRITES: u64 = 5_000;

/// Writes to few blocks, many times each, with or without reads before and after.
fn writes(before: bool, after: bool) -> Stream {
    let mut verify = verify(VerifyContent::Generated);
    (verify.read_before_write, verify.read_after_write) = (before, after);
    let mut stream = pass(0, 0, true, BLOCKS, verify);
    stream.limits.bytes = WRITES * BLOCK;
    stream.pattern.write.random = RandomOrder::Uniform { repeat: true };
    stream.serialize_overlap = true;
    stream
}

/// After the writes everything that was written is read once, by a device that is sound.
fn with_a_pass(backend: Backend, stream: Stream) -> Vec<Value> {
    let mut verify = verify(VerifyContent::Generated);
    verify.only_written = true;
    let pass = pass(1, 100, false, BLOCKS, verify);
    run(&plan(
        simulated(BLOCKS),
        vec![(backend, stream), (sound(9), pass)],
    ))
}

/// The same on blocks that were all written once before: what is lost then leaves old data.
fn on_written(backend: Backend, stream: Stream) -> Vec<Value> {
    let verify = verify(VerifyContent::Generated);
    let read = Verify {
        only_written: true,
        ..verify
    };
    run(&plan(
        simulated(BLOCKS),
        vec![
            (sound(8), pass(0, 0, false, BLOCKS, verify)),
            (
                backend,
                Stream {
                    worker: 1,
                    ..stream
                },
            ),
            (sound(9), pass(2, 100, false, BLOCKS, read)),
        ],
    ))
}

fn end(events: &[Value]) -> &Value {
    of_type(events, "stream_end").next().unwrap()
}

/// Completed reads and writes of the first stream.
fn done(events: &[Value]) -> (u64, u64) {
    let completed = &end(events)["completed"];
    (
        completed[0].as_u64().unwrap(),
        completed[1].as_u64().unwrap(),
    )
}

fn lossy() -> Backend {
    sim(2, |faults| faults.lost_ppm = 10_000)
}

#[test]
fn a_read_before_each_write_finds_what_the_write_would_hide() {
    let alone = on_written(lossy(), writes(false, false));
    let injected = of_type(&alone, "injected").count() as u64;
    assert!(injected > 20 && found(&alone, "lost_write") < injected / 2);
    let events = on_written(lossy(), writes(true, false));
    // A damaged block is never written again, so none of them was hidden.
    let injected = of_type(&events, "injected").count() as u64;
    assert!(injected > 20, "{injected}");
    assert_eq!(found(&events, "lost_write"), injected);
    assert_eq!(total_found(&events), injected);
}

#[test]
fn only_what_is_known_is_read_before_it_is_written() {
    let events = with_a_pass(sound(2), writes(true, false));
    assert_eq!(total_found(&events), 0);
    let (reads, made) = done(&events);
    // Every write is made, the last ones too; only the first of a block has no read.
    let touched = of_type(&events, "verify_end")
        .find(|event| event["stream"] == 1)
        .unwrap()["checked"]
        .as_u64()
        .unwrap();
    assert_eq!((made, reads), (WRITES, WRITES - touched));
    assert!(touched > BLOCKS / 2);
    let of_writes = of_type(&events, "verify_end").next().unwrap();
    assert_eq!(of_writes["checked"], reads);
    assert_eq!(end(&events)["reason"], "bytes");
}

#[test]
fn each_write_is_read_back_at_once() {
    let events = with_a_pass(sound(2), writes(false, true));
    assert_eq!(done(&events), (WRITES, WRITES));
    let both = with_a_pass(sound(2), writes(true, true));
    let (reads, made) = done(&both);
    assert!(made == WRITES && reads > 2 * WRITES - BLOCKS - 1);
    assert_eq!((total_found(&events), total_found(&both)), (0, 0));
    // What is lost is met at once, though others write there later.
    let events = on_written(lossy(), writes(false, true));
    let injected = of_type(&events, "injected").count() as u64;
    assert!(injected > 20, "{injected}");
    assert_eq!(found(&events, "lost_write"), injected);
}

#[test]
fn limits_and_rates_count_the_writes_only() {
    let mut stream = writes(true, true);
    stream.limits.bytes = 0;
    stream.limits.ops = 500;
    let events = with_a_pass(sound(2), stream);
    assert_eq!(
        (done(&events).1, end(&events)["reason"].as_str()),
        (500, Some("ops"))
    );
    let mut stream = writes(true, false);
    stream.limits.bytes = 0;
    stream.limits.runtime_ns = 2_000_000_000;
    stream.pace.write = Some(Rate {
        amount: RateAmount::Ops {
            per_second: 1_000.0,
        },
        process: RateProcess::Linear,
        profile: vec![],
        phase: 0.0,
        minimum: 0.0,
        min_window_ns: 1_000_000_000,
    });
    let events = with_a_pass(sound(2), stream);
    let (reads, made) = done(&events);
    assert!((1_990..=2_000).contains(&made), "{made}");
    assert!(reads > made - BLOCKS - 1, "{reads}");
    assert_eq!(total_found(&events), 0);
}

#[test]
fn chains_of_several_streams_on_one_place_find_nothing_where_nothing_is_wrong() {
    let unreliable = |seed| Backend::Sim {
        device: SimDevice {
            error_ppm: 5_000,
            short_ppm: 5_000,
            ..device(seed)
        },
    };
    for seed in 0..10 {
        let mut stream = writes(true, true);
        stream.pattern = plain::pattern([30, 70, 0], &stream.pattern.write);
        stream.iodepth = 32;
        let events = with_a_pass(unreliable(seed), stream);
        assert_eq!(
            total_found(&events),
            0,
            "{:?}",
            of_type(&events, "damage").next()
        );
    }
}

#[test]
fn chains_need_writes_a_table_and_that_overlaps_wait() {
    let good = plan(simulated(BLOCKS), vec![(sound(1), writes(true, true))]);
    let reads = plain::pattern([100, 0, 0], &good.streams[0].pattern.write);
    for (path, value, expected) in [
        ("/streams/0/serialize_overlap", json!(false), "must be true"),
        ("/streams/0/verify/expect", json!("stamps"), "a table"),
        ("/streams/0/pattern", json!(reads), "need writes"),
    ] {
        refused(&good, path, value, expected);
    }
}
