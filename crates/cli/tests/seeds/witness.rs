//! The real worker loop on a simulated device, with a witness in between.
//!
//! Knows how a worker is put together and what passes the seam to its backend. The
//! witness keeps its own account: it knows no slot's times and no histogram.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

use loadstone_base::ops::{AnyOp, OpKind};
use loadstone_engine::budget::buffer_stride;
use loadstone_io::backend::sim::{Sim, START_NS};
use loadstone_io::backend::{Done, Io, IoBackend};
use loadstone_io::memory::Mapping;
use loadstone_plan::{self as plan, Plan};
use loadstone_verification::verify::tables::VerifyTables;
use loadstone_worker::control::{Control, Message};
use loadstone_worker::events::{Event, StreamEnd};
use loadstone_worker::record::{CounterTable, Sums, KINDS};
use loadstone_worker::rows::WorkerRows;
use loadstone_worker::samples::{self, IoRecord};
use loadstone_worker::slots::{Counters, Slot};
use loadstone_worker::state::{Lines, Memory, WorkerState};
use loadstone_worker::stream::StreamState;
use loadstone_worker::worker::WorkerLoop;

/// Tables to cut into; what is not cut for want of one goes on to the next interval.
const TABLES: usize = 12;

/// One I/O as it went by. Times count from the clock's start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeenIo {
    pub stream: u32,
    /// The backend's number of the file, which here is the target's.
    pub file: u32,
    pub op: OpKind,
    pub offset: u64,
    pub len: u32,
    pub pushed_ns: u64,
    /// When it came back and with what; none: never.
    pub back: Option<(u64, Result<u32, i32>)>,
    /// I/Os of its stream in flight with it when it was pushed, itself included.
    pub depth: u32,
}

/// A row of one interval.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalRow {
    pub cell: u32,
    pub op: OpKind,
    pub ops: u64,
    pub bytes: u64,
    pub errors: u64,
    /// Sum, minimum and maximum by kind of latency.
    pub sums: [(f64, u64, u64); KINDS],
    /// Buckets that are not empty and their counts, by kind.
    pub histograms: [Vec<(u16, u32)>; KINDS],
}

/// One interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    pub start_ns: u64,
    pub end_ns: u64,
    pub rows: Vec<IntervalRow>,
}

/// How one stream ended, by its own account.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    pub stream: u32,
    pub t_ns: u64,
    pub reason: &'static str,
    pub started_ns: u64,
    pub ended_ns: u64,
    pub issued: [u64; 4],
    pub completed: [u64; 4],
    pub failed: [u64; 4],
    pub depth: [u64; 7],
    pub hung: u64,
}

/// One record of the log: stream, end, hand-over, operation, offset and error, and the
/// four latencies.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub struct LogRecord {
    pub identity: (u32, u64, u64, u8, u64, i32),
    /// By kind.
    pub latencies_ns: [u64; KINDS],
}

/// Everything a run left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct WitnessedRun {
    pub seen: Vec<SeenIo>,
    pub intervals: Vec<Interval>,
    pub ends: Vec<End>,
    pub log: Vec<LogRecord>,
}

struct Witness {
    sim: Sim,
    seen: Vec<SeenIo>,
    /// By slot: its stream, and the I/O in flight on it.
    slots: Vec<(u32, Option<usize>)>,
    in_flight: Vec<u32>,
}

impl IoBackend for Witness {
    const VIRTUAL: bool = true;

    fn now_ns(&mut self) -> u64 {
        self.sim.now_ns()
    }

    fn push(&mut self, io: Io) {
        let pushed_ns = self.sim.now_ns() - START_NS;
        let (stream, current) = &mut self.slots[io.slot as usize];
        assert!(current.is_none(), "slot {} is in flight already", io.slot);
        *current = Some(self.seen.len());
        let depth = &mut self.in_flight[*stream as usize];
        *depth += 1;
        self.seen.push(SeenIo {
            stream: *stream,
            file: io.file,
            op: io.op.kind(),
            offset: io.offset,
            len: io.len,
            pushed_ns,
            back: None,
            depth: *depth,
        });
        self.sim.push(io);
    }

    fn flush(&mut self, wait_for: u32, until_ns: u64) -> io::Result<()> {
        self.sim.flush(wait_for, until_ns)
    }

    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        let now_ns = self.sim.now_ns() - START_NS;
        let (seen, slots, in_flight) = (&mut self.seen, &mut self.slots, &mut self.in_flight);
        self.sim.reap(max, &mut |done: Done| {
            let (stream, current) = &mut slots[done.slot as usize];
            let index = current.take().expect("it was in flight");
            seen[index].back = Some((now_ns, done.outcome.result()));
            in_flight[*stream as usize] -= 1;
            take(done);
        })
    }
}

/// Runs a Plan of one worker.
pub fn run(plan: &Plan) -> WitnessedRun {
    let plan = Arc::new(plan.clone());
    let plan::Backend::Sim { device } = &plan.workers[0].backend else {
        panic!("not a simulation")
    };
    let rows = Arc::new(WorkerRows::new(&plan, &plan.streams_by_worker()[0]));
    let stride = |stream: &plan::Stream| buffer_stride(stream) * stream.iodepth as usize;
    let buffers = Mapping::new(plan.streams.iter().map(stride).sum(), false).unwrap();
    let mut slots = lay_out(&plan, &buffers);
    let mut counters = vec![Counters::default(); plan.streams.len()];
    // The state want memory that outlives them; `worker` does not outlive this function.
    // SAFETY: both vectors are declared before the worker and are not touched while it lives.
    let (slot_slice, counter_slice) = unsafe {
        (
            std::slice::from_raw_parts_mut(slots.as_mut_ptr(), slots.len()),
            std::slice::from_raw_parts_mut(counters.as_mut_ptr(), counters.len()),
        )
    };
    let table = || Box::new(CounterTable::new(rows.len()).unwrap());
    let (tables, spare) = channel();
    (0..TABLES).for_each(|_| tables.send(table()).unwrap());
    drop(tables);
    let (out, inbox) = channel();
    let streams = streams(&plan, &rows);
    let memory = Memory {
        slots: slot_slice,
        counters: counter_slice,
        rows: rows.clone(),
        table: table(),
    };
    let state = WorkerState::new(plan.clone(), 0, streams, memory, lines(out, spare));
    let depth = plan.streams.iter().map(|stream| stream.iodepth).sum();
    let backend = Witness {
        sim: Sim::new(device, plan.targets.len(), depth),
        seen: Vec::new(),
        slots: state.slots.iter().map(|slot| (slot.stream, None)).collect(),
        in_flight: vec![0; plan.streams.len()],
    };
    let mut worker = WorkerLoop { backend, state };
    worker.run().unwrap();
    let seen = std::mem::take(&mut worker.backend.seen);
    drop(worker);
    collect(seen, &inbox, &rows)
}

fn streams(plan: &Arc<Plan>, rows: &Arc<WorkerRows>) -> Vec<StreamState> {
    let verify_tables = Arc::new(VerifyTables::new(plan));
    let mut first_slot = 0;
    let state = |id| {
        let state = StreamState::new(plan, id, first_slot, rows, &verify_tables, &|target| target);
        first_slot += state.room.depth();
        state
    };
    (0..plan.streams.len() as u32).map(state).collect()
}

fn lines(out: Sender<Message>, spare: Receiver<Box<CounterTable>>) -> Lines {
    Lines {
        control: Arc::new(Control::default()),
        out,
        spare,
        // Nobody gives blocks of records back: each one is new.
        log_spare: channel().1,
        table_in_use: Arc::default(),
        fallback: Arc::default(),
    }
}

fn lay_out(plan: &Plan, buffers: &Mapping) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut address = buffers.start() as usize;
    for (index, stream) in plan.streams.iter().enumerate() {
        for _ in 0..stream.iodepth {
            slots.push(Slot::free(index as u32, address));
            address += buffer_stride(stream);
        }
    }
    slots
}

fn collect(seen: Vec<SeenIo>, inbox: &Receiver<Message>, rows: &WorkerRows) -> WitnessedRun {
    let mut outcome = WitnessedRun {
        seen,
        intervals: Vec::new(),
        ends: Vec::new(),
        log: Vec::new(),
    };
    let mut hung = BTreeMap::<u32, u64>::new();
    while let Ok(message) = inbox.try_recv() {
        match message {
            Message::Cut { table, .. } => outcome.intervals.push(interval(&table, rows)),
            Message::Ios { records, .. } => outcome.log.extend(records.iter().map(logged)),
            Message::Event(Event::Hung { stream, .. }) => *hung.entry(stream).or_default() += 1,
            Message::Event(Event::StreamEnd(end)) => outcome.ends.push(self::end(&end)),
            _ => {}
        }
    }
    for end in &mut outcome.ends {
        end.hung = hung.get(&end.stream).copied().unwrap_or(0);
        // What comes back to a stream that was given up is too late to count.
        let late = |io: &&mut SeenIo| {
            io.stream == end.stream && io.back.is_some_and(|(back_ns, _)| back_ns >= end.t_ns)
        };
        if end.hung > 0 {
            outcome
                .seen
                .iter_mut()
                .filter(late)
                .for_each(|io| io.back = None);
        }
    }
    outcome
}

fn logged(io: &IoRecord) -> LogRecord {
    let handed_ns = io.t_ns - io.clat_ns;
    LogRecord {
        identity: (
            io.stream,
            io.t_ns,
            handed_ns,
            io.op as u8,
            io.offset,
            io.error,
        ),
        latencies_ns: [io.lat_ns, io.slat_ns, io.clat_ns, io.wait_ns],
    }
}

fn end(end: &StreamEnd) -> End {
    End {
        stream: end.stream,
        t_ns: end.t_ns,
        reason: end.reason,
        started_ns: end.started_ns,
        ended_ns: end.ended_ns,
        issued: end.issued,
        completed: end.completed,
        failed: end.failed,
        depth: end.depth,
        hung: 0,
    }
}

fn interval(table: &CounterTable, rows: &WorkerRows) -> Interval {
    let row = |number: u32| {
        let (pair, ramp) = rows.meaning(number);
        let AnyOp::Io(op) = pair.op else { return None };
        let key = samples::RowKey {
            interval: 0,
            stage: 0,
            cell: pair.cell,
            op: pair.op.code(),
            priority: pair.priority,
            ramp,
        };
        let row = samples::SampleRow::take(table, number, key)?;
        let sums = |sums: Sums| (sums.sum_ns, sums.min_ns, sums.max_ns);
        Some(IntervalRow {
            cell: pair.cell,
            op,
            ops: row.ops,
            bytes: row.bytes,
            errors: row.errors,
            sums: row.sums.map(sums),
            histograms: row.buckets,
        })
    };
    Interval {
        start_ns: table.start_ns,
        end_ns: table.end_ns,
        rows: (0..table.rows() as u32).filter_map(row).collect(),
    }
}
