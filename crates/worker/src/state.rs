//! A worker's state: its streams, slots, timers and counters.
//!
//! Knows what is kept; the files below it know what is done with it. Knows no backend:
//! the worker's loop moves I/Os between these state and one.

mod channels;
mod completion;
mod connections;
mod ending;
pub mod files;
mod intervals;
mod latency;
mod single_stream;
mod timers;
mod verification;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use crate::control::{Message, Stop};
use crate::record::{CounterTable, RepeatedLatency};
use crate::rows::WorkerRows;
use crate::samples::IoRecord;
use crate::slots::{batch_column, count_depths, depth_column, Counters, Slot, NOT_HANDED};
use crate::stream::StreamState;
pub use channels::Lines;
use loadstone_plan::Plan;

/// I/Os handed over at a time when the Plan leaves it to the engine. On targets that
/// complete at once 64 cost 2 % less CPU per I/O than 32, and 128 no less than 64.
pub const BATCH: u32 = 64;

/// Records of single I/Os sent at a time.
pub const LOG_BLOCK: usize = 8192;
/// Blocks of records a worker may have: one it fills, the others on their way to the file.
pub const LOG_BLOCKS: usize = 16;
/// After the parent is gone, I/O in flight gets this long.
pub const LEAVE_NS: u64 = 200_000_000;
/// Least time for the flushes after the last I/O.
const FLUSH_GRACE_NS: u64 = 60_000_000_000;
/// A storage that writes less than this, 1 MiB/s, is taken for one that hangs.
const FLUSHED_BYTES_PER_NS: (u64, u64) = (1 << 20, 1_000_000_000);

/// How long the flushes after a stream's last I/O may take: as long as all that it may have
/// left in memory needs on a slow storage. After an order to stop nobody waits that long.
#[must_use]
pub fn flush_grace_ns(plan: &Plan, stream: u32, stop: Stop) -> u64 {
    let (bytes, per_ns) = FLUSHED_BYTES_PER_NS;
    let files = plan.streams[stream as usize].files.iter();
    let dirty = files.map(|file| file.length_bytes).sum::<u64>();
    let writing_ns = (dirty / bytes).saturating_mul(per_ns);
    match stop {
        Stop::No => plan.grace_ns.max(FLUSH_GRACE_NS.saturating_add(writing_ns)),
        Stop::Drain => plan.grace_ns,
        Stop::Now => LEAVE_NS,
    }
}

/// What a timer does when it fires; equal times fire in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Start,
    RampEnd,
    End,
    Wake,
    Check,
    Grace,
}

/// The state of one worker.
#[derive(Debug)]
pub struct WorkerState {
    /// The Plan.
    pub plan: Arc<Plan>,
    /// Index of the worker.
    pub worker: u32,
    /// Its streams.
    pub streams: Vec<StreamState>,
    /// All slots, those of a stream together.
    pub slots: &'static mut [Slot],
    /// By stream.
    pub counters: &'static mut [Counters],
    /// Streams that may issue now.
    pub ready: VecDeque<u32>,
    /// Slots issued since the last hand-over.
    pub pending: Vec<u32>,
    /// Streams that have not ended.
    pub alive: usize,
    /// I/Os in flight.
    pub in_flight: u32,
    /// For how many completions it waits.
    pub wait: CompletionWait,
    ends: Ends,
    /// No sleep before this time: a pause is being spun away.
    pub spin_until_ns: u64,
    /// It has arrivals and a processor to itself: it spins before they are due.
    pub spins: bool,
    /// Next cut or timer.
    pub next_event_ns: u64,
    /// Nothing was handed over yet.
    pub first: bool,
    /// Start of the stage on the worker's clock (virtual clocks start at theirs).
    pub stage_start_ns: u64,
    /// Start of the stage since the run's origin.
    pub stage_offset_ns: u64,
    /// An I/O never came back: its buffer must outlive the worker.
    pub lost: bool,
    stage: u32,
    shift_ns: u64,
    stop_seen: Stop,
    orders_seen: u32,
    timers: BinaryHeap<Reverse<(u64, Timer, u32)>>,
    lines: Lines,
    table: Box<CounterTable>,
    rows: Arc<WorkerRows>,
    next_cut_ns: u64,
    /// Ends of ramps within the stage, latest first.
    ramp_ends: Vec<u64>,
    run: RepeatedLatency,
    run_intended_ns: u64,
    run_handed_ns: u64,
    reported: Reported,
    log: Vec<IoRecord>,
    log_blocks: usize,
    /// Streams whose file is to be opened again.
    to_be_opened: Vec<u32>,
    batches: Batches,
}

/// For how many completions a worker waits, and how much it takes and hands over at a time.
#[derive(Debug)]
pub struct CompletionWait {
    /// Completions to wait for when nothing can be issued.
    pub target: u32,
    /// Most completions taken at a time.
    pub reap_max: u32,
    /// Most I/Os handed over at a time.
    pub batch_max: u32,
    /// What the three above follow from has changed since they were set.
    is_stale: bool,
}

impl CompletionWait {
    /// Before anything is known of the streams.
    const AT_START: Self = Self {
        target: 1,
        reap_max: u32::MAX,
        batch_max: BATCH,
        is_stale: false,
    };
}

/// Completions, and how fast they come.
#[derive(Debug)]
struct Ends {
    /// Completions reaped so far.
    total: u64,
    /// How many there were at the last cut, and when that was.
    at_cut: (u64, u64),
    /// Completions that come while waiting for several is no loss, at the last interval's
    /// rate; before the first cut nobody knows.
    soon: u32,
}

impl Ends {
    /// None came yet.
    const NONE: Self = Self {
        total: 0,
        at_cut: (0, 0),
        soon: u32::MAX,
    };
}

/// What was said of targets, which is not said again.
#[derive(Debug, Default)]
struct Reported {
    /// By target.
    errors: BTreeMap<u32, u32>,
    /// By target, once there is any: stream and offset of what was told, never longer than
    /// what may be.
    damage: BTreeMap<u32, Vec<(u32, u64)>>,
}

/// How many I/Os were handed over and came back at a time.
#[derive(Debug, Default)]
struct Batches {
    submit: [u64; 7],
    complete: [u64; 7],
}

/// Where a worker's state are kept, allocated before it starts.
#[derive(Debug)]
pub struct Memory {
    /// Slots of all its streams.
    pub slots: &'static mut [Slot],
    /// Counters, by stream.
    pub counters: &'static mut [Counters],
    /// Rows of its tables.
    pub rows: Arc<WorkerRows>,
    /// First table.
    pub table: Box<CounterTable>,
}

impl WorkerState {
    /// Opens the state; nothing is allocated after this but for errors.
    #[must_use]
    pub fn new(
        plan: Arc<Plan>,
        worker: u32,
        streams: Vec<StreamState>,
        memory: Memory,
        lines: Lines,
    ) -> Self {
        lines.use_table(&memory.table);
        let logged = streams.iter().any(|stream| stream.logged);
        let paced = streams.iter().any(|stream| stream.schedule.is_some());
        Self {
            spins: paced
                && workers_to_cpus(&plan, worker).is_some_and(|(workers, cpus)| workers <= cpus),
            stage: plan.workers[worker as usize].stage,
            reported: Reported::default(),
            pending: Vec::with_capacity(memory.slots.len()),
            ready: VecDeque::with_capacity(streams.len() + 1),
            timers: BinaryHeap::with_capacity(streams.len() * 7 + 8),
            alive: streams.len(),
            log: Vec::with_capacity(if logged { LOG_BLOCK } else { 0 }),
            log_blocks: 1,
            in_flight: 0,
            wait: CompletionWait::AT_START,
            ends: Ends::NONE,
            spin_until_ns: 0,
            next_event_ns: 0,
            first: true,
            stage_start_ns: 0,
            stage_offset_ns: 0,
            lost: false,
            shift_ns: 0,
            stop_seen: Stop::No,
            orders_seen: 0,
            next_cut_ns: u64::MAX,
            ramp_ends: Vec::with_capacity(streams.len()),
            run: RepeatedLatency::NONE,
            run_intended_ns: 0,
            run_handed_ns: 0,
            batches: Batches::default(),
            to_be_opened: Vec::with_capacity(streams.len()),
            plan,
            worker,
            streams,
            slots: memory.slots,
            counters: memory.counters,
            lines,
            table: memory.table,
            rows: memory.rows,
        }
    }

    /// Sends a message; a main thread that is gone needs none.
    pub fn say(&self, message: Message) {
        self.lines.say(message);
    }

    /// Name of the backend that runs.
    #[must_use]
    pub fn backend_name(&self) -> &'static str {
        let planned = || self.plan.workers[self.worker as usize].backend.name();
        self.lines.fallback.get().copied().unwrap_or_else(planned)
    }

    /// Worker's clock to time since the run's origin.
    #[inline]
    fn run_time(&self, time_ns: u64) -> u64 {
        time_ns.wrapping_sub(self.shift_ns)
    }

    /// Stamps and counts what was issued since the last hand-over: one call hands it over.
    #[inline]
    pub fn hand_over(&mut self, handed_ns: u64) {
        for &slot in &self.pending {
            self.slots[slot as usize].handed_ns = handed_ns;
        }
        self.count_submit(self.pending.len() as u32);
        self.pending.clear();
    }

    /// When the first I/O was handed over.
    #[must_use]
    pub fn first_handed_ns(&self) -> u64 {
        self.slots
            .iter()
            .map(|slot| slot.handed_ns)
            .filter(|&handed| handed != NOT_HANDED)
            .min()
            .unwrap_or(0)
    }

    /// Counts I/Os handed over by one call.
    #[inline]
    pub fn count_submit(&mut self, issued: u32) {
        self.in_flight += issued;
        self.batches.submit[batch_column(issued)] += 1;
    }

    /// Counts I/Os of a stream that were handed over one by one: each has a depth of its own.
    #[inline]
    pub fn count_one_by_one(&mut self, index: u32, before: u32, count: u32) {
        count_depths(
            &mut self.counters[index as usize].depth,
            before,
            before + count,
        );
    }

    /// Counts I/Os of a stream at the depth they made together, as fio counts a batch; and as
    /// it counts what is handed over one by one where each end is followed by a start.
    #[inline]
    pub fn count_together(&mut self, index: u32, depth: u32, count: u32) {
        self.counters[index as usize].depth[depth_column(depth)] += u64::from(count);
    }

    /// Rows of this worker.
    #[must_use]
    pub fn rows(&self) -> &WorkerRows {
        &self.rows
    }
}

/// How many workers run on the CPUs of this one, itself among them, and how many CPUs these are;
/// none where nobody can tell. Where there are more workers, spinning takes time from each other.
#[must_use]
pub fn workers_to_cpus(plan: &Plan, worker: u32) -> Option<(usize, usize)> {
    let mine = &plan.workers[worker as usize];
    let meets = |other: &&loadstone_plan::Worker| {
        other.stage == mine.stage
            && (mine.cpus.is_empty()
                || other.cpus.is_empty()
                || other.cpus.iter().any(|cpu| mine.cpus.contains(cpu)))
    };
    // Counts only the processors this thread was put on.
    let cpus = std::thread::available_parallelism().ok()?.get();
    let workers = plan.workers.iter().filter(meets).take(cpus + 1).count();
    Some((workers, cpus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::{plain, FileUse, Stream};

    #[test]
    fn a_flush_at_the_end_may_take_as_long_as_what_it_has_to_write() {
        let span = |length_bytes| {
            let files = vec![FileUse {
                target: 0,
                cell: 0,
                offset_bytes: 0,
                length_bytes,
            }];
            let stream = Stream {
                files,
                ..plain::stream()
            };
            plain::plan(loadstone_plan::Backend::Null {}, vec![stream])
        };
        assert_eq!(flush_grace_ns(&span(0), 0, Stop::No), FLUSH_GRACE_NS);
        let minutes = flush_grace_ns(&span(600 << 20), 0, Stop::No);
        assert_eq!(minutes, FLUSH_GRACE_NS + 600_000_000_000);
        let plan = span(u64::MAX);
        assert!(flush_grace_ns(&plan, 0, Stop::No) > minutes);
        assert_eq!(flush_grace_ns(&plan, 0, Stop::Drain), plan.grace_ns);
    }
}
