//! The whole engine on a simulated device: what a run reports is what the model did.
//!
//! Time is virtual, so nothing here depends on how busy the machine is.

mod support;

use std::fs::File;
use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type, UInt8Type};
use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use loadstone_plan::plain::{self, device, SECOND_NS};
use loadstone_plan::*;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest, ProptestConfig};
use serde_json::Value;
use support::{engine, finish, of_type, start, EngineRun, Scratch};

/// One I/O of `ios.arrows`.
#[derive(Debug, Clone, PartialEq)]
struct IoRow {
    t_ns: u64,
    stream: u32,
    op: u8,
    offset: u64,
    bytes: u32,
    wait_ns: u64,
    clat_ns: u64,
    lat_ns: u64,
    error: i32,
}

/// Everything a run left behind.
struct SimulatedRun {
    events: Vec<Value>,
    ios: Vec<IoRow>,
    /// Operations, bytes and errors of all samples.
    sums: [u64; 3],
    samples: Vec<u8>,
}

impl SimulatedRun {
    fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        of_type(&self.events, kind)
    }
}

fn total(event: &Value, field: &str) -> u64 {
    event[field]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap())
        .sum()
}

fn batches(path: PathBuf) -> Vec<RecordBatch> {
    let reader = StreamReader::try_new(File::open(path).unwrap(), None).unwrap();
    reader.map(|batch| batch.unwrap()).collect()
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a [u64] {
    batch
        .column_by_name(name)
        .unwrap()
        .as_primitive::<UInt64Type>()
        .values()
}

fn column32<'a>(batch: &'a RecordBatch, name: &str) -> &'a [u32] {
    batch
        .column_by_name(name)
        .unwrap()
        .as_primitive::<UInt32Type>()
        .values()
}

fn logged(batch: &RecordBatch) -> Vec<IoRow> {
    let op = batch
        .column_by_name("op")
        .unwrap()
        .as_primitive::<UInt8Type>()
        .values();
    let error = batch
        .column_by_name("error")
        .unwrap()
        .as_primitive::<Int32Type>()
        .values();
    let row = |i: usize| IoRow {
        t_ns: column(batch, "t_ns")[i],
        stream: column32(batch, "stream")[i],
        op: op[i],
        offset: column(batch, "offset")[i],
        bytes: column32(batch, "bytes")[i],
        wait_ns: column(batch, "wait_ns")[i],
        clat_ns: column(batch, "clat_ns")[i],
        lat_ns: column(batch, "lat_ns")[i],
        error: error[i],
    };
    (0..batch.num_rows()).map(row).collect()
}

fn run(plan: &Plan) -> SimulatedRun {
    let dir = Scratch::new();
    let EngineRun { code, events } = finish(start(engine(), plan, &dir.0), |_| ());
    assert_eq!(code, 0, "{events:?}");
    let mut sums = [0; 3];
    for batch in batches(dir.join("samples.arrows")) {
        for (sum, name) in sums.iter_mut().zip(["ops", "bytes", "errors"]) {
            *sum += column(&batch, name).iter().sum::<u64>();
        }
    }
    let logs = plan.streams.iter().any(|stream| stream.log_ios);
    let ios = logs.then(|| batches(dir.join("ios.arrows")));
    let ios = ios.iter().flatten().flat_map(logged).collect();
    let samples = std::fs::read(dir.join("samples.arrows")).unwrap();
    SimulatedRun {
        events,
        ios,
        sums,
        samples,
    }
}

fn stream(iodepth: u32) -> Stream {
    Stream {
        iodepth,
        // One at a time, so that no completion waits for another.
        batch: Some(Batch {
            submit: 1,
            complete_min: 1,
            complete_max: 1,
            low: iodepth,
        }),
        errors: ErrorPolicy {
            continue_read: true,
            continue_write: true,
            ..plain::stream().errors
        },
        log_ios: true,
        ..plain::stream()
    }
}

fn plan(device: SimDevice, streams: Vec<Stream>) -> Plan {
    let mut plan = plain::plan(Backend::Sim { device }, streams);
    plan.targets[0].size_bytes = 1 << 40;
    plan
}

/// A stream that waited for its next arrival, or in a pause, when its time was over slept on: its
/// flushes came after its time of grace, and so never.
#[test]
fn what_comes_after_the_last_io_waits_for_no_pause_and_no_arrival() {
    let flushed = Stream {
        flush: Flush {
            at_end: true,
            ..plain::stream().flush
        },
        ..stream(1)
    };
    let mut paced = flushed.clone();
    paced.pace.read = Some(plain::rate(0.001));
    let mut paused = flushed;
    paused.pace.think = Some(Think {
        pause_ns: 1000 * SECOND_NS,
        spin_ns: 0,
        every_ios: 1,
        count_issued: false,
        every_ns: 0,
    });
    for stream in [paced, paused] {
        let outcome = run(&plan(device(), vec![stream]));
        let end = outcome.of_type("stream_end").next().unwrap();
        assert_eq!(end["completed"], serde_json::json!([1, 0, 0, 1]), "{end}");
        assert_eq!(end["reason"], "runtime");
        let ended_ns = end["ended_ns"].as_u64().unwrap();
        assert!(ended_ns < 2 * SECOND_NS, "{end}");
    }
}

/// What the share of a flow holds back is asked for, and no latency.
#[test]
fn waiting_for_ones_share_of_a_flow_is_no_latency() {
    let with = |weight, depth| Stream {
        flow: Some(Flow {
            id: 1,
            weight,
            sleep_ns: 0,
            ahead: 0,
        }),
        ..stream(depth)
    };
    // The slow one does one I/O at a time, the fast one could do eight.
    let servers = 9;
    let outcome = run(&plan(
        SimDevice {
            servers,
            ..device()
        },
        vec![with(3, 1), with(1, 8)],
    ));
    let of = |stream| outcome.ios.iter().filter(move |io| io.stream == stream);
    let (slow, fast) = (of(0).count(), of(1).count());
    assert!((3 * fast).abs_diff(slow) <= 40, "{slow} and {fast}");
    for io in &outcome.ios {
        assert_eq!((io.clat_ns, io.lat_ns - io.wait_ns), (100_000, 100_000));
    }
    // Both look for their turn every 10 microseconds at least.
    let waits = of(1).map(|io| io.wait_ns).max().unwrap();
    assert!(waits <= 10_000, "{waits}");
}

#[test]
fn a_closed_loop_of_constant_service_has_the_analytic_rate_and_latency() {
    for (servers, depth) in [(1u32, 1u32), (1, 8), (4, 4), (4, 16), (8, 2)] {
        let outcome = run(&plan(
            SimDevice {
                servers,
                ..device()
            },
            vec![stream(depth)],
        ));
        let busy = u64::from(servers.min(depth));
        // 10,000 services of 0.1 ms fit into a second, and those in flight at the end are
        // drained: at most a queue's worth more.
        let ops = outcome.sums[0];
        let most = 10_000 * busy + u64::from(depth);
        assert!(
            (10_000 * busy..=most).contains(&ops),
            "{servers} servers, depth {depth}: {ops}"
        );
        let expected = 100_000 * u64::from(depth) / busy;
        let settled = &outcome.ios[depth as usize..];
        assert!(settled
            .iter()
            .all(|io| io.lat_ns == expected && io.wait_ns == 0));
        assert!(settled.iter().all(|io| io.clat_ns == expected));
    }
}

#[test]
fn little_s_law_holds_for_random_service() {
    let model = SimDevice {
        service: ServiceTime::Exponential,
        servers: 3,
        ..device()
    };
    let outcome = run(&plan(model, vec![stream(8)]));
    let sum: u64 = outcome.ios.iter().map(|io| io.lat_ns).sum();
    let end = outcome.ios.iter().map(|io| io.t_ns).max().unwrap();
    let in_flight = sum as f64 / end as f64;
    assert!((in_flight - 8.0).abs() < 0.05, "{in_flight}");
    // Three busy servers of 0.1 ms: 30,000 a second, deviation 173.
    assert!(
        (29_000..31_000).contains(&outcome.sums[0]),
        "{}",
        outcome.sums[0]
    );
}

/// The engine used to wait for a sixteenth of the depth whatever the device, which kept
/// four of 64 disks idle half the time.
#[test]
fn a_slow_device_is_given_its_next_io_at_once() {
    let depth = 64;
    let model = SimDevice {
        service: ServiceTime::Exponential,
        read_ns: 5_000_000,
        servers: depth,
        ..device()
    };
    let seconds = 40;
    let left_to_the_engine = Stream {
        batch: None,
        limits: Limits {
            runtime_ns: seconds * SECOND_NS,
            ..stream(depth).limits
        },
        log_ios: false,
        ..stream(depth)
    };
    let outcome = run(&plan(model, vec![left_to_the_engine]));
    let expected = u64::from(depth) * 200 * seconds;
    let share = outcome.sums[0] as f64 / expected as f64;
    // 512,000 I/Os: a deviation of 0.14 %.
    assert!((share - 1.0).abs() < 0.006, "{share}");
}

/// Latencies from the intended starts of evenly spaced arrivals at one server that
/// stands still for a while: the recursion of Lindley, written without the model's code.
fn expected_latencies(gap: u64, service: u64, stall: (u64, u64), end: u64) -> Vec<u64> {
    let (every, length) = stall;
    let mut free = 0;
    let mut latencies = Vec::new();
    for arrival in (0..end).step_by(gap as usize) {
        let mut begin = arrival.max(free);
        if begin >= every && begin % every < length {
            begin += length - begin % every;
        }
        free = begin + service;
        let edge = begin / every * every + every;
        if free > edge {
            free += length;
        }
        latencies.push(free - arrival);
    }
    latencies
}

#[test]
fn a_stall_is_seen_by_every_io_that_should_have_started_in_it() {
    // 1,000 reads a second, each served in 0.1 ms; one second of standstill in six.
    let stall = (4 * SECOND_NS, SECOND_NS);
    let model = SimDevice {
        stall_every_ns: stall.0,
        stall_ns: stall.1,
        ..device()
    };
    for depth in [1, 16] {
        let mut paced = stream(depth);
        paced.limits.runtime_ns = 6 * SECOND_NS;
        paced.pace.read = Some(plain::rate(1000.0));
        let outcome = run(&plan(model.clone(), vec![paced]));
        let mut got: Vec<u64> = outcome.ios.iter().map(|io| io.lat_ns).collect();
        let mut expected = expected_latencies(SECOND_NS / 1000, 100_000, stall, 6 * SECOND_NS);
        assert!(
            got.len().abs_diff(expected.len()) <= 1,
            "{} {}",
            got.len(),
            expected.len()
        );
        got.sort_unstable();
        expected.sort_unstable();
        for percentile in [10, 50, 80, 90, 95, 99] {
            let at = |sorted: &[u64]| sorted[sorted.len() * percentile / 100];
            let (got, expected) = (at(&got), at(&expected));
            assert!(
                got.abs_diff(expected) <= 1_100_000,
                "depth {depth}, p{percentile}: {got}, expected {expected}"
            );
        }
        // One arrival in six meets the standstill: p90 is far above the service time.
        assert!(got[got.len() * 9 / 10] > 300_000_000);
        assert_eq!(got[got.len() / 2], 100_000);
    }
}

#[test]
fn the_same_plan_gives_the_same_bytes() {
    let model = SimDevice {
        service: ServiceTime::Exponential,
        error_ppm: 1000,
        ..device()
    };
    let mut second = stream(5);
    second.seed = 9;
    let plan = plan(model, vec![stream(3), second]);
    let (one, two) = (run(&plan), run(&plan));
    assert!(one.ios.len() > 5_000);
    assert_eq!(one.ios, two.ios);
    assert!(one.samples == two.samples, "samples.arrows differ");
}

/// What the engine held at most, with so many workers that have nothing in common.
fn rss_peak_bytes(workers: u32) -> f64 {
    let apart = |worker| {
        let mut stream = stream(1);
        stream.worker = worker;
        (stream.files[0].target, stream.files[0].cell) = (worker, worker);
        (stream.limits.runtime_ns, stream.log_ios) = (SECOND_NS / 100, false);
        stream
    };
    let mut plan = plan(device(), (0..workers).map(apart).collect());
    plan.targets = vec![plan.targets[0].clone(); workers as usize];
    plan.workers = vec![plan.workers[0].clone(); workers as usize];
    let cell = |target| Cell {
        unit: 0,
        target: Some(target),
    };
    plan.cells = (0..workers).map(cell).collect();
    let outcome = run(&plan);
    assert_eq!(outcome.sums[0], u64::from(workers) * 100);
    let end = outcome.of_type("end").next().unwrap();
    end["rss_peak_bytes"].as_f64().unwrap()
}

#[test]
fn twice_the_workers_take_twice_the_memory_and_no_more() {
    let (some, twice) = (rss_peak_bytes(512), rss_peak_bytes(1024));
    // Something for every worker and every other would be four times as much.
    assert!(twice < 2.2 * some, "{some} bytes, then {twice}");
}

/// The most I/Os of one stream between hand-over and reaping at any time.
fn deepest(ios: &[IoRow], stream: u32) -> i64 {
    let mut edges: Vec<(u64, i64)> = Vec::new();
    for io in ios.iter().filter(|io| io.stream == stream) {
        edges.push((io.t_ns - io.clat_ns, 1));
        edges.push((io.t_ns, -1));
    }
    edges.sort_unstable();
    let mut depth = 0;
    edges
        .iter()
        .map(|&(_, step)| {
            depth += step;
            depth
        })
        .max()
        .unwrap_or(0)
}

/// A stream of shares of reads, and of writes among the rest, in a range: offset and length in bytes.
fn mixed_stream(depth: u32, shares: (u32, u32), random_percent: u32, range: (u64, u64)) -> Stream {
    let mut stream = stream(depth);
    let read = shares.0;
    let write = (100 - read) * shares.1 / 100;
    stream.pattern.read_percent = read;
    stream.pattern.write_percent = write;
    stream.pattern.trim_percent = 100 - read - write;
    stream.pattern.read = plain::order(random_percent, 4096);
    stream.pattern.write.sizes = Sizes::Range {
        min_bytes: 512,
        max_bytes: 65536,
        step_bytes: 512,
    };
    stream.files[0].offset_bytes = range.0;
    stream.files[0].length_bytes = range.1;
    stream.limits.runtime_ns = SECOND_NS / 20;
    stream
}

/// An I/O lies in its range, and its latencies go together.
fn assert_is_possible(io: &IoRow, range: (u64, u64)) {
    assert!(io.offset >= range.0, "{io:?}");
    assert!(
        io.offset + u64::from(io.bytes) <= range.0 + range.1,
        "{io:?}"
    );
    assert!(io.op <= 2 && io.clat_ns <= io.lat_ns, "{io:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_io_is_accounted_for_whatever_the_device_does(
        seed in any::<u64>(),
        servers in 1u32..6,
        depths in proptest::collection::vec(1u32..40, 1..4),
        shares in (0u32..=100, 0u32..=100),
        random_percent in 0u32..=100,
        faults in (0u32..50_000, 0u32..50_000, 0u32..2_000),
        engine_chooses in any::<bool>(),
        range in (0u64..1 << 30, 70_000u64..1 << 22),
    ) {
        let model = SimDevice {
            seed, servers, service: ServiceTime::Exponential,
            error_ppm: faults.0, short_ppm: faults.1, hang_ppm: faults.2, ..device()
        };
        let streams: Vec<Stream> = depths.iter().map(|&depth| {
            let mut stream = mixed_stream(depth, shares, random_percent, range);
            stream.seed = seed ^ u64::from(depth);
            stream.batch = stream.batch.filter(|_| !engine_chooses);
            stream
        }).collect();
        let outcome = run(&plan(model, streams));

        let (mut completed, mut hung_all) = (0, 0);
        for (index, end) in outcome.of_type("stream_end").enumerate() {
            let stream = end["stream"].as_u64().unwrap();
            let hung = outcome.of_type("hung").filter(|e| e["stream"] == stream).count() as u64;
            let (issued, done, failed) =
                (total(end, "issued"), total(end, "completed"), total(end, "failed"));
            prop_assert_eq!(issued, done + failed + hung, "stream {} of {}", stream, index);
            prop_assert_eq!(issued, end["depth"].as_array().unwrap().iter()
                .map(|n| n.as_u64().unwrap()).sum::<u64>());
            completed += done;
            hung_all += hung;
        }
        prop_assert_eq!(outcome.of_type("stream_end").count(), depths.len());
        prop_assert_eq!(outcome.sums[0], completed, "samples and counters agree");
        let good = outcome.ios.iter().filter(|io| io.error == 0);
        prop_assert_eq!(good.clone().count() as u64, completed);
        prop_assert_eq!(outcome.sums[1], good.map(|io| u64::from(io.bytes)).sum::<u64>());
        prop_assert_eq!(outcome.sums[2],
            outcome.ios.iter().filter(|io| io.error != 0).count() as u64);
        for (stream, &depth) in depths.iter().enumerate() {
            let deepest = deepest(&outcome.ios, stream as u32);
            prop_assert!(deepest <= i64::from(depth), "{} of {}", deepest, depth);
            prop_assert!(hung_all > 0 || deepest == i64::from(depth), "the loop is kept full");
        }
        for io in &outcome.ios {
            assert_is_possible(io, range);
        }
    }
}
