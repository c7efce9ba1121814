//! The loop on a device and a clock that are counted out: what a worker says of its
//! latencies must be what happened.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::mpsc::channel;
use std::sync::Arc;

use super::WorkerLoop;
use crate::control::{Control, Message};
use crate::events::{Event, StreamEnd};
use crate::record::{CounterTable, LatencyKind, Totals};
use crate::rows::WorkerRows;
use crate::slots::{Counters, Slot};
use crate::state::{Lines, Memory, WorkerState};
use crate::stream::StreamState;
use loadstone_base::ops::{AnyOp, OpKind};
use loadstone_io::backend::{Done, Io, IoBackend, Outcome};
use loadstone_plan::plain::{self, SECOND_NS};
use loadstone_plan::{self as plan, Batch, Limits, Pace, Plan, Stream, Think};

const START_NS: u64 = 1_000_000;

/// A few servers of constant service, and a worker that needs time of its own: for each
/// hand-over and for each I/O in it.
struct Costly {
    now_ns: u64,
    service_ns: u64,
    enter_ns: u64,
    push_ns: u64,
    /// What an I/O of a slot with an odd number takes besides.
    slower_ns: u64,
    group: Option<u32>,
    free_ns: BinaryHeap<Reverse<u64>>,
    coming: BinaryHeap<Reverse<(u64, u32, u32)>>,
    done: VecDeque<Done>,
}

impl Costly {
    fn new(servers: u32, service_ns: u64, enter_ns: u64, push_ns: u64) -> Self {
        Self {
            now_ns: START_NS,
            service_ns,
            enter_ns,
            push_ns,
            slower_ns: 0,
            group: None,
            free_ns: (0..servers).map(|_| Reverse(0)).collect(),
            coming: BinaryHeap::new(),
            done: VecDeque::new(),
        }
    }

    /// Moves what is over by now to where it can be reaped.
    fn settle(&mut self) {
        while let Some(&Reverse((time, slot, bytes))) = self.coming.peek() {
            if time > self.now_ns {
                break;
            }
            self.coming.pop();
            self.done.push_back(Done::new(slot, Outcome::moved(bytes)));
        }
    }
}

impl IoBackend for Costly {
    const VIRTUAL: bool = true;

    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn push(&mut self, io: Io) {
        self.now_ns += self.push_ns;
        let free = self.free_ns.pop().map_or(0, |Reverse(time)| time);
        let slower_ns = self.slower_ns * u64::from(io.slot % 2);
        let end = free.max(self.now_ns) + self.service_ns + slower_ns;
        self.free_ns.push(Reverse(end));
        self.coming.push(Reverse((end, io.slot, io.len)));
    }

    fn group(&self) -> Option<u32> {
        self.group
    }

    fn hand_over(&mut self) {
        self.now_ns += self.enter_ns;
    }

    fn flush(&mut self, wait_for: u32, until_ns: u64) -> io::Result<()> {
        self.now_ns += self.enter_ns;
        self.settle();
        let idle = self.coming.is_empty() && self.done.is_empty();
        while (self.done.len() as u32) < wait_for && self.now_ns < until_ns {
            let next = self.coming.peek().map_or(until_ns, |next| next.0 .0);
            self.now_ns = next.min(until_ns);
            self.settle();
        }
        if wait_for == 0 && idle {
            self.now_ns = self.now_ns.max(until_ns);
        }
        Ok(())
    }

    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        let count = max.min(self.done.len() as u32);
        self.done.drain(..count as usize).for_each(take);
        count
    }
}

/// A Plan of equal streams in one cell, and all they did in one interval.
fn plan(streams: usize, stream: &Stream) -> Plan {
    Plan {
        interval_ns: 1000 * SECOND_NS,
        ..plain::plan(plan::Backend::Null {}, vec![stream.clone(); streams])
    }
}

/// A device that does one I/O at a time inside the call; every so manieth comes back short.
struct Caller {
    now_ns: u64,
    service_ns: u64,
    short_every: u64,
    done: Option<Done>,
    count: u64,
}

impl IoBackend for Caller {
    const SYNCHRONOUS: bool = true;
    const VIRTUAL: bool = true;

    fn now_ns(&mut self) -> u64 {
        self.now_ns += 10;
        self.now_ns
    }

    fn push(&mut self, io: Io) {
        self.now_ns += self.service_ns;
        self.count += 1;
        let short = self.count % self.short_every == 0;
        let bytes = if short { 512 } else { io.len };
        let done = Done::new(io.slot, Outcome::moved(bytes));
        let before = self.done.replace(done);
        assert!(before.is_none(), "two I/Os at a time");
    }

    fn flush(&mut self, _: u32, until_ns: u64) -> io::Result<()> {
        if self.done.is_none() {
            self.now_ns = self.now_ns.max(until_ns);
        }
        Ok(())
    }

    fn reap(&mut self, _: u32, take: &mut impl FnMut(Done)) -> u32 {
        self.done.take().map(take).is_some().into()
    }
}

/// Runs worker 0 of a Plan to its end; gives the totals of its reads.
fn run<B: IoBackend>(plan: Plan, backend: B) -> Totals {
    run_counted(plan, backend).0
}

/// The same with what its first stream counted.
fn run_counted<B: IoBackend>(plan: Plan, backend: B) -> (Totals, Counters) {
    let (totals, counted, _) = run_to_end(plan, backend);
    (totals, counted)
}

/// The same with what the last stream said at its end.
fn run_to_end<B: IoBackend>(plan: Plan, backend: B) -> (Totals, Counters, StreamEnd) {
    let plan = Arc::new(plan);
    let rows = Arc::new(WorkerRows::new(&plan, &plan.streams_by_worker()[0]));
    let (out, messages) = channel();
    let (tables, spare) = channel();
    let mut slots = Vec::new();
    let mut streams = Vec::new();
    for (index, stream) in plan.streams.iter().enumerate() {
        let first = slots.len() as u32;
        slots.extend((0..stream.iodepth).map(|_| Slot::free(index as u32, 0)));
        streams.push(StreamState::new(
            &plan,
            index as u32,
            first,
            &rows,
            &Arc::default(),
            &|_| 0,
        ));
    }
    let counters = vec![Counters::default(); streams.len()];
    let memory = Memory {
        slots: slots.leak(),
        counters: counters.leak(),
        rows: rows.clone(),
        table: Box::new(CounterTable::new(rows.len()).unwrap()),
    };
    let lines = Lines {
        control: Arc::new(Control::default()),
        out,
        spare,
        log_spare: channel().1,
        table_in_use: Arc::default(),
        fallback: Arc::default(),
    };
    let state = WorkerState::new(plan.clone(), 0, streams, memory, lines);
    let mut worker = WorkerLoop { backend, state };
    worker.run().unwrap();
    let counted = worker.state.counters[0];
    drop((tables, worker));
    let (mut cut, mut end) = (None, None);
    for message in messages {
        match message {
            Message::Cut { table, .. } if cut.is_none() => cut = Some(table),
            Message::Event(Event::StreamEnd(said)) => end = Some(*said),
            _ => {}
        }
    }
    let totals = *cut.unwrap().totals(rows.row(0, AnyOp::Io(OpKind::Read)));
    (totals, counted, end.unwrap())
}

fn sum_ns(totals: &Totals, kind: LatencyKind) -> f64 {
    totals.sums[kind as usize].sum_ns
}

#[test]
fn outstanding_is_rate_times_latency_also_when_the_worker_is_the_bottleneck() {
    let batch = |submit, complete_min, complete_max| {
        Some(Batch {
            submit,
            complete_min,
            complete_max,
            low: 16,
        })
    };
    let cases = [
        (32, 16, None),
        (32, 16, batch(1, 1, 1)),
        (32, 16, batch(4, 1, 8)),
        (16, 16, batch(16, 4, 16)),
    ];
    for (streams, iodepth, batch) in cases {
        let stream = Stream {
            iodepth,
            batch,
            ..plain::stream()
        };
        for (servers, enter_ns, push_ns) in [(4, 2_000, 300), (64, 10_000, 1_000), (64, 100, 0)] {
            let totals = run(
                plan(streams, &stream),
                Costly::new(servers, 50_000, enter_ns, push_ns),
            );
            let outstanding = sum_ns(&totals, LatencyKind::Lat) / SECOND_NS as f64;
            let slots = streams as f64 * f64::from(iodepth);
            let gap = outstanding / slots - 1.0;
            let label = format!("{streams} x {iodepth} {batch:?} on {servers}, {enter_ns}");
            assert!(gap.abs() < 0.01, "{label}: {outstanding}, asked {slots}");
            let parts: f64 = [LatencyKind::Wait, LatencyKind::Slat, LatencyKind::Clat]
                .into_iter()
                .map(|kind| sum_ns(&totals, kind))
                .sum();
            assert!((parts / sum_ns(&totals, LatencyKind::Lat) - 1.0).abs() < 1e-9);
        }
    }
}

/// Clones on one thread, one of them on a slower place: each is told its own latency, and goes at
/// its own pace. What an I/O is told too long is what the worker does between two looks: at most a
/// call for each of the other streams and one of its own.
#[test]
fn streams_of_one_worker_have_latencies_of_their_own() {
    let (service_ns, slower_ns, enter_ns) = (40_000, 460_000, 1_000);
    let device = Costly {
        slower_ns,
        ..Costly::new(2, service_ns, enter_ns, 0)
    };
    let (totals, first) = run_counted(plan(2, &plain::stream()), device);
    let quick = first.completed[OpKind::Read as usize];
    let slow = totals.ops - quick;
    assert!(quick.abs_diff(SECOND_NS / service_ns) < 300, "{quick}");
    assert!(
        slow.abs_diff(SECOND_NS / (service_ns + slower_ns)) < 30,
        "{slow}"
    );
    let all = totals.sums[LatencyKind::Lat as usize];
    assert!((40_000..=42_000).contains(&all.min_ns), "{}", all.min_ns);
    assert!((500_000..=502_000).contains(&all.max_ns), "{}", all.max_ns);
    let own_ns = quick * service_ns + slow * (service_ns + slower_ns);
    let more_ns = (all.sum_ns - own_ns as f64) / totals.ops as f64;
    assert!((0.0..=2_000.0).contains(&more_ns), "{more_ns}");
}

#[test]
fn a_pause_is_no_latency() {
    for count_issued in [false, true] {
        let think = Think {
            pause_ns: 10_000_000,
            spin_ns: 0,
            every_ios: 1,
            every_ns: 0,
            count_issued,
        };
        let stream = Stream {
            pace: Pace {
                think: Some(think),
                ..plain::stream().pace
            },
            ..plain::stream()
        };
        let totals = run(plan(1, &stream), Costly::new(1, 50_000, 1_000, 100));
        let most = totals.sums[LatencyKind::Lat as usize].max_ns;
        assert!((99..=101).contains(&totals.ops), "{}", totals.ops);
        // Service, and the worker's own microseconds around it.
        assert!((50_000..60_000).contains(&most), "{most}");
    }
}

#[test]
fn a_refill_after_iodepth_low_starts_when_the_depth_fell_to_it() {
    let stream = Stream {
        iodepth: 8,
        batch: Some(Batch {
            submit: 8,
            complete_min: 1,
            complete_max: 1,
            low: 2,
        }),
        ..plain::stream()
    };
    let totals = run(plan(1, &stream), Costly::new(1, 100_000, 100, 0));
    // Eight go out together; six come back one by one before the next six follow two
    // that are still there: none is older than eight services.
    let most = totals.sums[LatencyKind::Lat as usize].max_ns;
    assert!((790_000..=810_000).contains(&most), "{most}");
    let waited = sum_ns(&totals, LatencyKind::Wait) / totals.ops as f64;
    assert!(waited < 1_000.0, "{waited}");
}

#[test]
fn one_io_after_the_other_is_told_whole() {
    for (streams, short_every, bytes) in
        [(1, u64::MAX, 0), (1, 7, 0), (1, 7, 4096 * 1000), (3, 7, 0)]
    {
        let stream = Stream {
            limits: Limits {
                time_based: bytes == 0,
                bytes,
                ..plain::stream().limits
            },
            ..plain::stream()
        };
        let device = Caller {
            now_ns: START_NS,
            service_ns: 50_000,
            short_every,
            done: None,
            count: 0,
        };
        let totals = run(plan(streams, &stream), device);
        // The clock takes 10 ns. A stream that is alone reads it once per I/O: nothing but
        // an address is made between two.
        let (read_ns, slat_ns) = if streams == 1 { (10, 0) } else { (20, 10) };
        let each_ns = 50_000 + read_ns;
        let asked = if bytes > 0 {
            bytes / 4096
        } else {
            SECOND_NS / each_ns
        };
        assert!(totals.ops.abs_diff(asked) <= 1, "{} {asked}", totals.ops);
        let shorts = totals.ops / short_every;
        assert_eq!(totals.shorts, shorts);
        assert_eq!(totals.bytes, (totals.ops - shorts) * 4096 + shorts * 512);
        let spent = sum_ns(&totals, LatencyKind::Lat) / (totals.ops * each_ns) as f64;
        assert!((spent / streams as f64 - 1.0).abs() < 0.01, "{spent}");
        let service = sum_ns(&totals, LatencyKind::Clat) / totals.ops as f64;
        assert!((service - 50_010.0).abs() < 0.02, "{service}");
        let slat = sum_ns(&totals, LatencyKind::Slat) / totals.ops as f64;
        assert!((slat - f64::from(slat_ns)).abs() < 0.02, "{slat}");
        let parts: f64 = [LatencyKind::Wait, LatencyKind::Slat, LatencyKind::Clat]
            .map(|kind| sum_ns(&totals, kind))
            .iter()
            .sum();
        assert!((parts / sum_ns(&totals, LatencyKind::Lat) - 1.0).abs() < 1e-9);
    }
}

#[test]
fn depths_are_counted_as_fio_counts_them() {
    let batch = |submit, complete_min, low| {
        Some(Batch {
            submit,
            complete_min,
            complete_max: submit,
            low,
        })
    };
    // The first filling goes through the depths below; what follows refills to the top.
    for (iodepth, batch, first, top) in [
        (8, None, [1, 2, 4, 0, 0, 0, 0], 3),
        (5, None, [1, 2, 0, 0, 0, 0, 0], 2),
        (100, None, [1, 2, 4, 8, 16, 32, 0], 6),
        (8, batch(4, 4, 7), [0, 0, 4, 0, 0, 0, 0], 3),
    ] {
        let stream = Stream {
            iodepth,
            batch,
            ..plain::stream()
        };
        let device = Costly::new(iodepth, 50_000, 1_000, 100);
        let (totals, counted) = run_counted(plan(1, &stream), device);
        let below: u64 = first.iter().sum();
        let mut expected: [u64; 7] = first;
        expected[top] += totals.ops - below;
        assert_eq!(counted.depth, expected, "{iodepth} {batch:?}");
    }
}

#[test]
fn each_group_of_a_batch_is_handed_over_at_its_own_time() {
    let stream = Stream {
        iodepth: 10,
        limits: Limits {
            time_based: false,
            ops: 10,
            ..plain::stream().limits
        },
        ..plain::stream()
    };
    for (group, handed_ns, submit_batches) in [
        (None, 10 * 1_000, [0, 0, 0, 1, 0, 0, 0]),
        // 4 made; a call, 8 made; a call, 10 made.
        (
            Some(4),
            4 * 400 + 4 * 5_800 + 2 * 11_000,
            [0, 3, 0, 0, 0, 0, 0],
        ),
    ] {
        let device = Costly {
            group,
            ..Costly::new(10, 50_000, 5_000, 100)
        };
        let (totals, _, end) = run_to_end(plan(1, &stream), device);
        assert_eq!(
            sum_ns(&totals, LatencyKind::Slat),
            f64::from(handed_ns),
            "{group:?}"
        );
        assert_eq!(end.submit_batches, submit_batches, "{group:?}");
        let parts: f64 = [LatencyKind::Wait, LatencyKind::Slat, LatencyKind::Clat]
            .map(|kind| sum_ns(&totals, kind))
            .iter()
            .sum();
        assert_eq!(parts, sum_ns(&totals, LatencyKind::Lat), "{group:?}");
    }
}
