//! What holds in every run, and how it is checked.
//!
//! Knows a Plan and what was seen of it. Each law says whether it had anything to judge.

use std::collections::BTreeMap;

use loadstone_base::ops::OpKind;
use loadstone_plan::{
    Backend, Plan, Rate, RateAmount, RateProcess, ServiceTime, SimDevice, Stream,
};
use loadstone_worker::histogram::bucket_of;
use loadstone_worker::record::LatencyKind;

use crate::witness::{IntervalRow, SeenIo, WitnessedRun};

type Law = fn(&Plan, &WitnessedRun) -> bool;

const LAWS: [(&str, Law); 13] = [
    ("conservation", conservation),
    ("range", range),
    ("depth", depth),
    ("limits", limits),
    ("intervals", intervals),
    ("totals", totals),
    ("histograms", histograms),
    ("parts", parts),
    ("log", log),
    ("no start before its arrival", no_early_start),
    ("rate held", rate_held),
    ("as many arrivals as asked for", arrivals),
    ("Little", little),
];

/// The names of all laws.
pub const NAMES: [&str; LAWS.len()] = {
    let mut names = [""; LAWS.len()];
    let mut i = 0;
    while i < LAWS.len() {
        names[i] = LAWS[i].0;
        i += 1;
    }
    names
};

/// Panics when a law is broken; else the names of those that applied.
pub fn hold(plan: &Plan, outcome: &WitnessedRun) -> Vec<&'static str> {
    let applied = LAWS.iter().filter(|(_, law)| law(plan, outcome));
    applied.map(|(name, _)| *name).collect()
}

fn device(plan: &Plan) -> &SimDevice {
    match &plan.workers[0].backend {
        Backend::Sim { device } => device,
        _ => panic!("not a simulation"),
    }
}

fn of_stream(outcome: &WitnessedRun, stream: u32) -> impl Iterator<Item = &SeenIo> {
    outcome.seen.iter().filter(move |io| io.stream == stream)
}

/// True when the witness would call it failed: an error, or nothing moved of something.
fn failed(io: &SeenIo) -> bool {
    match (io.back, io.op) {
        (Some((_, result)), OpKind::Read | OpKind::Write) => {
            result.is_err() || (result == Ok(0) && io.len > 0)
        }
        (Some((_, result)), _) => result.is_err(),
        (None, _) => false,
    }
}

fn moved(io: &SeenIo) -> u64 {
    match (io.back, io.op) {
        (Some(_), OpKind::Trim) => u64::from(io.len),
        (Some((_, result)), OpKind::Read | OpKind::Write) => u64::from(result.unwrap_or(0)),
        _ => 0,
    }
}

fn good(outcome: &WitnessedRun) -> impl Iterator<Item = (&SeenIo, u64)> {
    let good = outcome.seen.iter().filter(|io| !failed(io));
    good.filter_map(|io| io.back.map(|(back_ns, _)| (io, back_ns)))
}

/// Issued = completed + failed + outstanding, by each stream's account and the witness's.
fn conservation(plan: &Plan, outcome: &WitnessedRun) -> bool {
    assert_eq!(
        outcome.ends.len(),
        plan.streams.len(),
        "every stream ends once"
    );
    for end in &outcome.ends {
        let sum = |counts: [u64; 4]| counts.iter().sum::<u64>();
        assert_eq!(
            sum(end.issued),
            sum(end.completed) + sum(end.failed) + end.hung,
            "{end:?}"
        );
        for op in OpKind::ALL {
            let mine = || of_stream(outcome, end.stream).filter(|io| io.op == op);
            let count = |test: &dyn Fn(&&SeenIo) -> bool| mine().filter(test).count() as u64;
            assert_eq!(end.issued[op as usize], count(&|_| true), "{op:?} {end:?}");
            let done = count(&|io| io.back.is_some() && !failed(io));
            assert_eq!(end.completed[op as usize], done, "{op:?} {end:?}");
            assert_eq!(
                end.failed[op as usize],
                count(&|io| failed(io)),
                "{op:?} {end:?}"
            );
        }
        let lost = of_stream(outcome, end.stream)
            .filter(|io| io.back.is_none())
            .count();
        assert_eq!(end.hung, lost as u64, "{end:?}");
        assert_eq!(end.reason == "hung", lost > 0, "{end:?}");
        assert!(
            end.hung == 0
                || device(plan).hang_ppm > 0
                || device(plan).stall_ns > 0
                || plan.grace_ns < 10_000_000,
            "{end:?}"
        );
    }
    true
}

/// No I/O outside the range of the file it belongs to.
fn range(plan: &Plan, outcome: &WitnessedRun) -> bool {
    for io in outcome.seen.iter().filter(|io| io.op != OpKind::Sync) {
        let files = &plan.streams[io.stream as usize].files;
        let file = files
            .iter()
            .find(|file| file.target == io.file)
            .expect("a file of its stream");
        let end = file.offset_bytes + file.length_bytes;
        assert!(
            io.len > 0 && io.offset >= file.offset_bytes && io.offset + u64::from(io.len) <= end,
            "{io:?} outside {file:?}"
        );
    }
    true
}

/// Never more in flight than asked for. The counts of depths have every I/O once, at the depth
/// its refill made: never below its own, and never above the deepest that was.
fn depth(plan: &Plan, outcome: &WitnessedRun) -> bool {
    for end in &outcome.ends {
        let most = plan.streams[end.stream as usize].iodepth;
        let mut columns = [0u64; 7];
        for io in of_stream(outcome, end.stream) {
            assert!(io.depth <= most, "{io:?} above depth {most}");
            columns[(io.depth.ilog2() as usize).min(6)] += 1;
        }
        let at_least = |counts: &[u64; 7], first: usize| counts[first..].iter().sum::<u64>();
        assert_eq!(at_least(&columns, 0), at_least(&end.depth, 0), "{end:?}");
        for first in 1..7 {
            let (own, counted) = (at_least(&columns, first), at_least(&end.depth, first));
            assert!(own <= counted, "{columns:?} {end:?}");
            assert!(own > 0 || counted == 0, "{columns:?} {end:?}");
        }
    }
    true
}

/// Nothing is issued after the stream's time, before its start or beyond its limits.
fn limits(plan: &Plan, outcome: &WitnessedRun) -> bool {
    for (stream, id) in plan.streams.iter().zip(0..) {
        let limits = stream.limits;
        let end_ns = limits.start_delay_ns + limits.ramp_ns + limits.runtime_ns;
        let data = || of_stream(outcome, id).filter(|io| io.op != OpKind::Sync);
        for io in data() {
            assert!(
                (limits.start_delay_ns..=end_ns).contains(&io.pushed_ns),
                "{io:?} outside {limits:?}"
            );
        }
        if !limits.time_based && limits.ops > 0 {
            assert!(data().count() as u64 <= limits.ops, "{limits:?}");
        }
        if !limits.time_based && limits.bytes > 0 {
            let bytes: u64 = data().map(|io| u64::from(io.len)).sum();
            assert!(bytes <= limits.bytes, "{bytes} of {limits:?}");
        }
    }
    true
}

/// The intervals follow each other without gaps, the I/Os of each within it.
fn intervals(_: &Plan, outcome: &WitnessedRun) -> bool {
    let mut last = 0;
    for interval in &outcome.intervals {
        assert_eq!(interval.start_ns, last);
        assert!(interval.end_ns >= last);
        last = interval.end_ns;
    }
    // An I/O that came back in an interval is in that one: counts by interval.
    let mut told: Vec<u64> = Vec::new();
    for interval in &outcome.intervals {
        told.push(interval.rows.iter().map(|row| row.ops).sum());
    }
    let mut seen = vec![0; told.len()];
    for (_, back_ns) in good(outcome) {
        // A cut comes before the completions of its moment.
        let at = outcome.intervals.iter().position(|i| back_ns < i.end_ns);
        seen[at.unwrap_or(told.len() - 1)] += 1;
    }
    assert_eq!(seen, told);
    true
}

fn rows(outcome: &WitnessedRun) -> impl Iterator<Item = &IntervalRow> {
    outcome.intervals.iter().flat_map(|interval| &interval.rows)
}

/// The interval rows of a cell and operation add up to what the witness saw.
fn totals(_: &Plan, outcome: &WitnessedRun) -> bool {
    let mut told = BTreeMap::<(u32, u8), [u64; 3]>::new();
    for row in rows(outcome) {
        let sums = told.entry((row.cell, row.op as u8)).or_default();
        *sums = [sums[0] + row.ops, sums[1] + row.bytes, sums[2] + row.errors];
    }
    let mut seen = BTreeMap::<(u32, u8), [u64; 3]>::new();
    for io in outcome.seen.iter().filter(|io| io.back.is_some()) {
        let sums = seen.entry((io.file, io.op as u8)).or_default();
        if failed(io) {
            sums[2] += 1;
        } else {
            sums[0] += 1;
            sums[1] += moved(io);
        }
    }
    told.retain(|_, sums| *sums != [0; 3]);
    assert_eq!(told, seen);
    true
}

/// The merged histograms of the intervals are the histogram of the whole.
fn histograms(_: &Plan, outcome: &WitnessedRun) -> bool {
    let mut told = BTreeMap::<(u32, u8), BTreeMap<usize, u64>>::new();
    for row in rows(outcome) {
        for (kind, histogram) in row.histograms.iter().enumerate() {
            let count: u64 = histogram.iter().map(|&(_, n)| u64::from(n)).sum();
            assert_eq!(count, row.ops, "kind {kind} of {row:?}");
            let (_, low, high) = row.sums[kind];
            if let (Some(&(first, _)), Some(&(last, _))) = (histogram.first(), histogram.last()) {
                let ends = (usize::from(first), usize::from(last));
                assert_eq!(ends, (bucket_of(low), bucket_of(high)), "{row:?}");
            }
        }
        for &(bucket, count) in &row.histograms[LatencyKind::Clat as usize] {
            let whole = told.entry((row.cell, row.op as u8)).or_default();
            *whole.entry(usize::from(bucket)).or_default() += u64::from(count);
        }
    }
    let mut seen = BTreeMap::<(u32, u8), BTreeMap<usize, u64>>::new();
    for (io, back_ns) in good(outcome) {
        let whole = seen.entry((io.file, io.op as u8)).or_default();
        *whole.entry(bucket_of(back_ns - io.pushed_ns)).or_default() += 1;
    }
    assert_eq!(told, seen);
    true
}

/// lat = wait + slat + clat, and the sum of clat is the witness's.
fn parts(_: &Plan, outcome: &WitnessedRun) -> bool {
    let mut sums = [0.0; 4];
    for row in rows(outcome) {
        for (sum, part) in sums.iter_mut().zip(row.sums) {
            *sum += part.0;
        }
    }
    let seen: u64 = good(outcome)
        .map(|(io, back_ns)| back_ns - io.pushed_ns)
        .sum();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (a + b) + 1e-3;
    assert!(
        close(sums[LatencyKind::Clat as usize], seen as f64),
        "{sums:?}, {seen}"
    );
    assert!(close(sums[0], sums[1] + sums[2] + sums[3]), "{sums:?}");
    true
}

/// The log has every I/O that came back of the streams that keep one, as it was.
fn log(plan: &Plan, outcome: &WitnessedRun) -> bool {
    let mut told: Vec<_> = outcome.log.iter().map(|io| io.identity).collect();
    let logged = outcome
        .seen
        .iter()
        .filter(|io| plan.streams[io.stream as usize].log_ios);
    let mut seen: Vec<_> = logged
        .filter_map(|io| io.back.map(|back| (io, back)))
        .map(|(io, (back_ns, result))| {
            (
                io.stream,
                back_ns,
                io.pushed_ns,
                io.op as u8,
                io.offset,
                result.err().unwrap_or(0),
            )
        })
        .collect();
    told.sort_unstable();
    seen.sort_unstable();
    assert_eq!(told, seen);
    for io in &outcome.log {
        let [lat_ns, parts @ ..] = io.latencies_ns;
        assert!(lat_ns == parts.iter().sum::<u64>(), "{io:?}");
    }
    !told.is_empty()
}

fn rate_of(stream: &Stream, op: OpKind) -> Option<&Rate> {
    match op {
        OpKind::Read => stream.pace.read.as_ref(),
        OpKind::Write => stream.pace.write.as_ref(),
        OpKind::Trim => stream.pace.trim.as_ref(),
        OpKind::Sync => None,
    }
}

/// Share of a profile that came together between the start and `time_ns`, in nanoseconds
/// at full rate: trapezoids, without the engine's code.
fn integral_ns(rate: &Rate, time_ns: f64) -> f64 {
    let points = &rate.profile;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return time_ns;
    };
    let mut sum = (first.at_ns as f64).min(time_ns) * first.share;
    for pair in points.windows(2) {
        let (a, b) = (pair[0].at_ns as f64, pair[1].at_ns as f64);
        if time_ns <= a || b <= a {
            continue;
        }
        let end = time_ns.min(b);
        let share = pair[0].share + (pair[1].share - pair[0].share) * (end - a) / (b - a);
        sum += (end - a) * (pair[0].share + share) / 2.0;
    }
    sum + (time_ns - last.at_ns as f64).max(0.0) * last.share
}

/// The evenly paced operations of all streams: stream, operation, its rate and its units
/// each per second and I/O.
fn linear(plan: &Plan) -> impl Iterator<Item = (u32, &Stream, OpKind, &Rate)> {
    plan.streams.iter().zip(0u32..).flat_map(|(stream, id)| {
        OpKind::ALL.into_iter().filter_map(move |op| {
            let rate = rate_of(stream, op)?;
            (rate.process == RateProcess::Linear).then_some((id, stream, op, rate))
        })
    })
}

/// Units that arrived by a time after the stream's start, and those of one I/O.
fn arrived(rate: &Rate, time_ns: f64) -> f64 {
    let (RateAmount::Ops { per_second } | RateAmount::Bytes { per_second }) = rate.amount;
    integral_ns(rate, time_ns) * per_second / 1e9
}

/// Evenly spaced I/Os never start ahead of their schedule: so there are no bursts but of
/// what is already late.
fn no_early_start(plan: &Plan, outcome: &WitnessedRun) -> bool {
    let mut applied = false;
    for (id, stream, op, rate) in linear(plan) {
        let by_bytes = matches!(rate.amount, RateAmount::Bytes { .. });
        let mut before = 0.0;
        for io in of_stream(outcome, id).filter(|io| io.op == op) {
            let time_ns = (io.pushed_ns - stream.limits.start_delay_ns) as f64;
            // A nanosecond late at most: times are whole.
            let have = arrived(rate, time_ns + 1.0);
            assert!(
                have + 1e-6 * (1.0 + before) >= before,
                "{io:?}: {before} before, {have} arrived"
            );
            before += if by_bytes { f64::from(io.len) } else { 1.0 };
            applied = true;
        }
    }
    applied
}

/// A lone stream whose device is idle most of the time starts every I/O when it is due.
fn rate_held(plan: &Plan, outcome: &WitnessedRun) -> bool {
    let device = device(plan);
    let [stream] = &plan.streams[..] else {
        return false;
    };
    let faultless = device.stall_ns == 0 && device.hang_ppm == 0 && device.error_ppm == 0;
    let plain = stream.batch.is_none()
        && stream.pace.think.is_none()
        && stream.flush.fsync_every == 0
        && stream.flush.fdatasync_every == 0;
    let ops = OpKind::ALL.map(|op| rate_of(stream, op));
    let paced = ops.iter().flatten().collect::<Vec<_>>();
    let reads = rate_of(stream, OpKind::Read).is_some();
    let service_ns = [device.write_ns, device.read_ns][usize::from(reads)];
    let [rate] = paced[..] else { return false };
    let RateAmount::Ops { per_second } = rate.amount else {
        return false;
    };
    let alone = [
        stream.pattern.read_percent,
        stream.pattern.write_percent,
        stream.pattern.trim_percent,
    ]
    .contains(&100);
    // Constant service, and arrivals at least two services apart: nothing ever queues.
    let idle = device.service == ServiceTime::Constant && per_second * (service_ns as f64) < 0.5e9;
    let simple = rate.process == RateProcess::Linear && rate.profile.is_empty();
    if !(faultless && plain && alone && idle && simple) {
        return false;
    }
    let mut count = 0.0;
    for io in &outcome.seen {
        if io.op == OpKind::Sync {
            continue;
        }
        let due = stream.limits.start_delay_ns as f64 + (count + rate.phase) / per_second * 1e9;
        assert!(
            (io.pushed_ns as f64 - due).abs() <= 1.0,
            "{io:?} was due at {due}"
        );
        count += 1.0;
    }
    let limits = stream.limits;
    if limits.time_based {
        let asked = (limits.ramp_ns + limits.runtime_ns) as f64 * per_second / 1e9;
        assert!((count - asked).abs() <= 1.0, "{count} of {asked}");
    }
    count > 0.0
}

/// A stream that kept up issued what its schedule asked for, profile and all.
fn arrivals(plan: &Plan, outcome: &WitnessedRun) -> bool {
    let mut applied = false;
    for (id, stream, op, rate) in linear(plan) {
        let end = outcome.ends.iter().find(|end| end.stream == id).unwrap();
        if !stream.limits.time_based || end.reason != "runtime" {
            continue;
        }
        let by_bytes = matches!(rate.amount, RateAmount::Bytes { .. });
        let mine = || of_stream(outcome, id).filter(|io| io.op == op);
        let unit = |io: &SeenIo| if by_bytes { f64::from(io.len) } else { 1.0 };
        let units: f64 = mine().map(unit).sum();
        let largest = if by_bytes {
            mine().map(unit).fold(0.0, f64::max)
        } else {
            1.0
        };
        let time_ns = (stream.limits.ramp_ns + stream.limits.runtime_ns) as f64;
        let asked = arrived(rate, time_ns);
        assert!(
            units <= asked + largest * 1.000_001,
            "{units} units, {asked} asked for"
        );
        applied |= units + 2.0 * largest >= asked;
    }
    applied
}

/// In a closed loop there is always an I/O for every part of the depth, waiting or in
/// flight: latencies add up to depth times time.
fn little(plan: &Plan, outcome: &WitnessedRun) -> bool {
    let (mut least, mut most) = (0.0, 0.0);
    for (stream, id) in plan.streams.iter().zip(0..) {
        let end = outcome.ends.iter().find(|end| end.stream == id).unwrap();
        let (pace, flush) = (&stream.pace, &stream.flush);
        let open = pace.read.is_some() || pace.write.is_some() || pace.trim.is_some();
        let drains = stream.batch.is_some_and(|batch| batch.low < stream.iodepth);
        let fails = end.failed != [0; 4] || end.hung > 0 || end.reason != "runtime";
        if open || pace.think.is_some() || drains || flush.at_end || fails {
            return false;
        }
        let back = of_stream(outcome, id).filter_map(|io| io.back);
        let last = back.map(|(back_ns, _)| back_ns).max().unwrap_or(0);
        let start = stream.limits.start_delay_ns;
        let stop = start + stream.limits.ramp_ns + stream.limits.runtime_ns;
        let depth = f64::from(stream.iodepth);
        least += depth * (stop - start) as f64;
        most += depth * (last.max(stop) - start) as f64;
    }
    let lat: f64 = rows(outcome)
        .map(|row| row.sums[LatencyKind::Lat as usize].0)
        .sum();
    assert!(
        lat >= least * 0.999_999_999 && lat <= most * 1.000_000_001,
        "{least} <= {lat} <= {most}"
    );
    true
}
