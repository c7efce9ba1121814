//! A worker's books: its streams, slots, timers and counters.
//!
//! Knows what completes, what is due and what an interval is. Knows no backend: the
//! worker's loop moves I/Os between these books and one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::Arc;

use crate::backend::{Done, Op};
use crate::control::{Control, Message, Stop};
use crate::events::{describe_errno, Event, IoFailure, StreamEnd, MAX_ERRORS_PER_TARGET};
use crate::plan::Plan;
use crate::record::{Run, Table};
use crate::rows::{ops_of, Rows};
use crate::samples::IoRecord;
use crate::slots::{batch_column, count_depths, Counters, Slot, NOT_HANDED};
use crate::stream::{Phase, Reason, StreamState};
use crate::worker::BATCH;

/// Records of single I/Os sent at a time.
pub const LOG_BLOCK: usize = 8192;
/// After the parent is gone, I/O in flight gets this long.
const LEAVE_NS: u64 = 200_000_000;
/// Least time for the flushes after the last I/O.
const FLUSH_GRACE_NS: u64 = 60_000_000_000;

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

/// The books of one worker.
#[derive(Debug)]
pub struct State {
    /// Orders.
    pub control: Arc<Control>,
    /// The Plan.
    pub plan: Arc<Plan>,
    /// Index of the worker and its stage.
    pub worker: u32,
    /// Name of the backend that really runs.
    pub backend_name: &'static str,
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
    /// Completions to wait for when nothing can be issued.
    pub wait_target: u32,
    /// Most completions taken at a time.
    pub reap_max: u32,
    /// Most I/Os handed over at a time.
    pub batch_max: u32,
    /// No sleep before this time: a pause is being spun away.
    pub spin_until_ns: u64,
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
    stage_over: bool,
    timers: BinaryHeap<Reverse<(u64, Timer, u32)>>,
    table: Box<Table>,
    spare: Receiver<Box<Table>>,
    out: Sender<Message>,
    rows: Arc<Rows>,
    next_cut_ns: u64,
    /// Ends of ramps within the stage, latest first.
    ramp_ends: Vec<u64>,
    run: Run,
    run_intended_ns: u64,
    run_handed_ns: u64,
    errors_said: Vec<u32>,
    log: Vec<IoRecord>,
    submit_batches: [u64; 7],
    complete_batches: [u64; 7],
}

/// What a worker's books are opened with.
#[derive(Debug)]
pub struct Opening {
    /// Orders.
    pub control: Arc<Control>,
    /// The Plan.
    pub plan: Arc<Plan>,
    /// Index of the worker.
    pub worker: u32,
    /// Name of its backend.
    pub backend_name: &'static str,
    /// Its streams.
    pub streams: Vec<StreamState>,
    /// Slots of all of them.
    pub slots: &'static mut [Slot],
    /// Counters, by stream.
    pub counters: &'static mut [Counters],
    /// Rows.
    pub rows: Arc<Rows>,
    /// First table.
    pub table: Box<Table>,
    /// Where tables come back.
    pub spare: Receiver<Box<Table>>,
    /// Where messages go.
    pub out: Sender<Message>,
}

impl State {
    /// Opens the books; nothing is allocated after this but for errors.
    #[must_use]
    pub fn new(opening: Opening) -> Self {
        let Opening {
            control,
            plan,
            worker,
            backend_name,
            streams,
            slots,
            counters,
            rows,
            table,
            spare,
            out,
        } = opening;
        let count = streams.len();
        let logged = streams.iter().any(|stream| stream.logged);
        Self {
            stage: plan.workers[worker as usize].stage,
            errors_said: vec![0; plan.targets.len()],
            pending: Vec::with_capacity(slots.len()),
            ready: VecDeque::with_capacity(count + 1),
            timers: BinaryHeap::with_capacity(count * 7 + 8),
            alive: count,
            log: Vec::with_capacity(if logged { LOG_BLOCK } else { 0 }),
            in_flight: 0,
            wait_target: 1,
            reap_max: u32::MAX,
            batch_max: BATCH,
            spin_until_ns: 0,
            next_event_ns: 0,
            first: true,
            stage_start_ns: 0,
            stage_offset_ns: 0,
            lost: false,
            shift_ns: 0,
            stop_seen: Stop::No,
            stage_over: false,
            next_cut_ns: u64::MAX,
            ramp_ends: Vec::with_capacity(count),
            run: Run {
                row: u32::MAX,
                count: 0,
                bytes: 0,
                values_ns: [0; 4],
            },
            run_intended_ns: 0,
            run_handed_ns: 0,
            submit_batches: [0; 7],
            complete_batches: [0; 7],
            control,
            plan,
            worker,
            backend_name,
            streams,
            slots,
            counters,
            table,
            spare,
            out,
            rows,
        }
    }

    /// Sends a message; a main thread that is gone needs none.
    pub fn say(&self, message: Message) {
        let _ = self.out.send(message);
    }

    /// Worker's clock to time since the run's origin.
    #[inline]
    fn run_time(&self, time_ns: u64) -> u64 {
        time_ns.wrapping_sub(self.shift_ns)
    }

    /// Starts the stage. A virtual clock's start is the stage's start.
    pub fn begin(&mut self, now: u64, is_virtual: bool) {
        if is_virtual {
            self.stage_start_ns = now;
        }
        let start = self.stage_start_ns;
        self.shift_ns = start.wrapping_sub(self.stage_offset_ns);
        for index in 0..self.streams.len() {
            let limits = self.plan.streams[self.streams[index].id as usize].limits;
            let begins = start + limits.start_delay_ns;
            self.timers
                .push(Reverse((begins, Timer::Start, index as u32)));
        }
        for (other, stream) in self.plan.streams.iter().enumerate() {
            let same_stage = self.plan.workers[stream.worker as usize].stage == self.stage;
            if same_stage && stream.limits.ramp_ns > 0 {
                self.ramp_ends
                    .push(start + stream.limits.start_delay_ns + stream.limits.ramp_ns);
            }
            debug_assert!(other < self.plan.streams.len());
        }
        self.ramp_ends.sort_unstable_by_key(|&time| Reverse(time));
        self.ramp_ends.dedup();
        self.table.start_ns = self.stage_offset_ns;
        self.plan_cut(start);
        self.plan_event();
    }

    /// Sets the next cut after `time_ns`: the next multiple of the interval, or an end
    /// of a ramp before it.
    fn plan_cut(&mut self, time_ns: u64) {
        let interval = self.plan.interval_ns;
        let grid = (self.run_time(time_ns) / interval + 1) * interval;
        self.next_cut_ns = grid.wrapping_add(self.shift_ns);
        while self
            .ramp_ends
            .last()
            .is_some_and(|&ramp_end| ramp_end <= time_ns)
        {
            self.ramp_ends.pop();
        }
        if let Some(&ramp_end) = self.ramp_ends.last() {
            self.next_cut_ns = self.next_cut_ns.min(ramp_end);
        }
    }

    fn plan_event(&mut self) {
        let timer = self
            .timers
            .peek()
            .map_or(u64::MAX, |Reverse((time, _, _))| *time);
        self.next_event_ns = timer.min(self.next_cut_ns);
    }

    /// True when an order arrived that was not yet obeyed.
    #[inline]
    #[must_use]
    pub fn has_orders(&self) -> bool {
        self.control.stopping() != self.stop_seen
            || (!self.stage_over && self.control.stage_is_over(self.stage))
    }

    /// Does everything due by `now`, in the order of time.
    #[cold]
    pub fn events(&mut self, now: u64, is_virtual: bool) {
        self.obey(now);
        loop {
            let timer = self
                .timers
                .peek()
                .map_or(u64::MAX, |Reverse((time, _, _))| *time);
            if timer.min(self.next_cut_ns) > now {
                break;
            }
            if self.next_cut_ns <= timer {
                let time = self.next_cut_ns;
                self.cut(time, is_virtual);
                self.plan_cut(time);
            } else if let Some(Reverse((time, timer, index))) = self.timers.pop() {
                self.fire(timer, index, time, now);
            }
        }
        self.plan_event();
    }

    fn obey(&mut self, now: u64) {
        let stop = self.control.stopping();
        let over = self.control.stage_is_over(self.stage);
        if stop == self.stop_seen && over == self.stage_over {
            return;
        }
        let leaving = stop == Stop::Now && self.stop_seen != Stop::Now;
        self.stop_seen = stop;
        self.stage_over = over;
        for index in 0..self.streams.len() as u32 {
            match self.streams[index as usize].phase {
                Phase::Waiting | Phase::Running => self.stop_issuing(index, Reason::Stopped, now),
                Phase::Draining | Phase::Flushing if stop != Stop::No => {
                    let grace = if stop == Stop::Now {
                        LEAVE_NS
                    } else {
                        self.plan.grace_ns
                    };
                    self.set_grace(index, now + grace);
                }
                _ => {}
            }
            if leaving && self.streams[index as usize].phase != Phase::Ended {
                self.streams[index as usize].flushing.at_end = 0;
                self.set_grace(index, now + LEAVE_NS);
            }
        }
    }

    fn set_grace(&mut self, index: u32, time_ns: u64) {
        let stream = &mut self.streams[index as usize];
        if time_ns < stream.grace_end_ns {
            stream.grace_end_ns = time_ns;
            self.timers.push(Reverse((time_ns, Timer::Grace, index)));
            self.plan_event();
        }
    }

    fn fire(&mut self, timer: Timer, index: u32, time: u64, now: u64) {
        match timer {
            Timer::Start => self.start_stream(index, time, now),
            Timer::RampEnd => {
                if self.streams[index as usize].phase != Phase::Ended {
                    self.streams[index as usize].in_ramp = false;
                    self.mark_live(index);
                }
            }
            Timer::End => self.stop_issuing(index, Reason::Runtime, now),
            Timer::Wake => {
                let stream = &mut self.streams[index as usize];
                if stream.wake_ns == time {
                    stream.wake_ns = u64::MAX;
                    self.enqueue(index);
                }
            }
            Timer::Check => self.check_rate(index, now),
            Timer::Grace => {
                let stream = &self.streams[index as usize];
                if stream.phase != Phase::Ended && stream.grace_end_ns == time {
                    self.give_up(index, now);
                }
            }
        }
    }

    fn start_stream(&mut self, index: u32, time: u64, now: u64) {
        if self.streams[index as usize].phase != Phase::Waiting {
            return;
        }
        let limits = self.plan.streams[self.streams[index as usize].id as usize].limits;
        let ramp_end = time + limits.ramp_ns;
        let (started, ramp_end_run) = (self.run_time(time), self.run_time(ramp_end));
        let stream = &mut self.streams[index as usize];
        stream.phase = Phase::Running;
        stream.vacancies.open(time, stream.depth);
        stream.last_done_ns = time;
        if limits.ramp_ns > 0 {
            self.timers.push(Reverse((ramp_end, Timer::RampEnd, index)));
        }
        if limits.runtime_ns > 0 {
            stream.end_ns = ramp_end + limits.runtime_ns;
            self.timers
                .push(Reverse((stream.end_ns, Timer::End, index)));
        }
        if let Some(schedule) = &mut stream.schedule {
            schedule.start(time);
            if let Some(check) = schedule.next_check_ns() {
                self.timers.push(Reverse((check, Timer::Check, index)));
            }
        }
        stream.simple = stream.is_simple();
        let counters = &mut self.counters[index as usize];
        counters.started_ns = started;
        counters.ramp_end_ns = ramp_end_run;
        self.mark_live(index);
        self.set_patience();
        self.enqueue(index);
        debug_assert!(now >= time);
    }

    /// Waiting for several completions at a time costs no more latency than a share of
    /// the depth: with N in flight an I/O takes N completions' time, so waiting for N/16
    /// adds at most 1/16 and 1/32 on average. The shallowest stream decides.
    fn set_patience(&mut self) {
        let (mut target, mut most, mut batch) = (u32::MAX, u32::MAX, BATCH);
        for stream in self
            .streams
            .iter()
            .filter(|stream| stream.phase == Phase::Running)
        {
            let plan = &self.plan.streams[stream.id as usize];
            let own = match plan.batch {
                Some(batch) => batch.complete_min,
                None if stream.schedule.is_some() || stream.thinking.is_some() => 1,
                None => stream.depth / 16,
            };
            target = target.min(own.max(1));
            most = most.min(
                plan.batch
                    .map_or(u32::MAX, |batch| batch.complete_max.max(1)),
            );
            batch = batch.max(plan.batch.map_or(0, |batch| batch.submit));
        }
        self.wait_target = if target == u32::MAX { 1 } else { target };
        self.reap_max = most;
        self.batch_max = batch;
    }

    #[inline]
    fn enqueue(&mut self, index: u32) {
        let stream = &mut self.streams[index as usize];
        if !stream.queued && stream.wake_ns == u64::MAX && stream.can_issue() {
            stream.queued = true;
            self.ready.push_back(index);
        }
    }

    /// Queues a stream again at `time_ns`.
    pub fn wake_at(&mut self, index: u32, time_ns: u64) {
        let stream = &mut self.streams[index as usize];
        if time_ns < stream.wake_ns {
            stream.wake_ns = time_ns;
            self.timers.push(Reverse((time_ns, Timer::Wake, index)));
            self.next_event_ns = self.next_event_ns.min(time_ns);
        }
    }

    /// A pause began: spinning keeps the worker from sleeping.
    pub fn start_pause(&mut self, index: u32) {
        if let Some(thinking) = self.streams[index as usize].thinking {
            self.spin_until_ns = self.spin_until_ns.max(thinking.spin_until_ns);
        }
    }

    fn check_rate(&mut self, index: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        if stream.phase != Phase::Running {
            return;
        }
        let Some(schedule) = &mut stream.schedule else {
            return;
        };
        let kept = schedule.keeps_minimum(now);
        if let Some(check) = schedule.next_check_ns() {
            self.timers.push(Reverse((check, Timer::Check, index)));
        }
        if !kept {
            self.stop_issuing(index, Reason::RateMinimum, now);
        }
    }

    /// Issues nothing more for a stream.
    #[cold]
    pub fn stop_issuing(&mut self, index: u32, reason: Reason, now: u64) {
        let grace = if self.stop_seen == Stop::Now {
            LEAVE_NS
        } else {
            self.plan.grace_ns
        };
        let stream = &mut self.streams[index as usize];
        if !matches!(stream.phase, Phase::Waiting | Phase::Running) {
            return;
        }
        let ran = stream.phase == Phase::Running;
        stream.phase = Phase::Draining;
        stream.simple = false;
        stream.reason = reason;
        if !ran || reason == Reason::Error {
            stream.flushing.at_end = 0;
        }
        self.set_grace(index, now + grace);
        if self.streams[index as usize].in_flight() == 0 {
            self.drained(index, now);
        }
    }

    /// Nothing is in flight any more.
    fn drained(&mut self, index: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        if stream.flushing.at_end > 0 {
            if stream.phase == Phase::Draining {
                stream.phase = Phase::Flushing;
                stream.grace_end_ns = u64::MAX;
                let grace = self.plan.grace_ns.max(FLUSH_GRACE_NS);
                self.set_grace(index, now + grace);
            }
            self.enqueue(index);
        } else {
            self.end_stream(index, now);
        }
    }

    fn end_stream(&mut self, index: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        stream.phase = Phase::Ended;
        stream.simple = false;
        let (id, reason) = (stream.id, stream.reason);
        // A stream that ran its time ended with it, not with its last completion.
        let due = if reason == Reason::Runtime {
            stream.end_ns
        } else {
            0
        };
        let ended = stream.last_done_ns.max(due);
        let ended = if ended == 0 { now } else { ended };
        let counters = self.counters[index as usize];
        self.alive -= 1;
        self.say(Message::Event(Event::StreamEnd(Box::new(StreamEnd {
            t_ns: self.run_time(now),
            stream: id,
            reason: reason.name(),
            started_ns: counters.started_ns,
            ramp_end_ns: counters.ramp_end_ns,
            ended_ns: self.run_time(ended).max(counters.started_ns),
            issued: counters.issued,
            completed: counters.completed,
            failed: counters.failed,
            depth: counters.depth,
            submit_batches: self.submit_batches,
            complete_batches: self.complete_batches,
            backend: self.backend_name,
        }))));
        if self.plan.streams[id as usize].limits.ends_stage {
            self.control.end_stage(self.stage);
        }
        self.set_patience();
    }

    /// The time of grace is over: what is in flight is reported and abandoned.
    fn give_up(&mut self, index: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        if stream.in_flight() > 0 {
            self.lost = true;
            if self.stop_seen != Stop::Now {
                stream.reason = Reason::Hung;
            }
            let (first, depth, id) = (stream.first_slot, stream.depth, stream.id);
            let mut said = 0;
            for slot_index in first..first + depth {
                let slot = self.slots[slot_index as usize];
                if slot.handed_ns == NOT_HANDED {
                    continue;
                }
                self.in_flight -= 1;
                self.slots[slot_index as usize].handed_ns = NOT_HANDED;
                if said < MAX_ERRORS_PER_TARGET {
                    said += 1;
                    self.say(Message::Event(Event::Hung {
                        t_ns: self.run_time(now),
                        stream: id,
                        target: slot.target,
                        op: slot.op.name(),
                        offset: slot.offset,
                        bytes: slot.len,
                        age_ns: now.saturating_sub(slot.handed_ns),
                    }));
                }
            }
        }
        self.end_stream(index, now);
    }

    /// Marks the rows a stream feeds, so that an interval without completions is told.
    fn mark_live(&mut self, index: u32) {
        let stream = &self.streams[index as usize];
        let ramp = u32::from(stream.in_ramp);
        for op in ops_of(&self.plan.streams[stream.id as usize]) {
            for file in &stream.uses {
                self.table.totals_mut(file.rows[op as usize] + ramp).live = 1;
            }
        }
    }

    /// Closes the interval at `time_ns` and gives its table away. When the main thread
    /// still has the other one, the interval goes on to the next cut instead.
    fn cut(&mut self, time_ns: u64, is_virtual: bool) {
        let fresh = if is_virtual {
            self.spare.recv().ok()
        } else {
            self.spare.try_recv().ok()
        };
        let Some(fresh) = fresh else { return };
        self.hand_in(time_ns, Some(fresh));
        for index in 0..self.streams.len() as u32 {
            // A ramp that ends with this interval is over for the next one.
            let ramp_over = self.counters[index as usize].ramp_end_ns <= self.run_time(time_ns);
            let stream = &mut self.streams[index as usize];
            stream.in_ramp &= stream.phase == Phase::Waiting || !ramp_over;
            if !matches!(
                self.streams[index as usize].phase,
                Phase::Waiting | Phase::Ended
            ) {
                self.mark_live(index);
            }
        }
        self.send_log();
    }

    fn hand_in(&mut self, time_ns: u64, fresh: Option<Box<Table>>) {
        self.count_in_flight();
        self.table.end_ns = self.run_time(time_ns);
        let last = fresh.is_none();
        let mut next = match fresh {
            Some(table) => table,
            None => Box::new(Table::empty()),
        };
        next.start_ns = self.table.end_ns;
        let table = std::mem::replace(&mut self.table, next);
        self.say(Message::Cut {
            worker: self.worker,
            table,
            last,
        });
    }

    /// Looks at every slot, once per interval, rather than counting at every I/O.
    fn count_in_flight(&mut self) {
        if self.in_flight == 0 {
            return;
        }
        for slot in self
            .slots
            .iter()
            .filter(|slot| slot.handed_ns != NOT_HANDED)
        {
            let ramp = u32::from(self.streams[slot.stream as usize].in_ramp);
            self.table.totals_mut(slot.row + ramp).in_flight += 1;
        }
    }

    /// Hands in the last interval.
    pub fn finish(&mut self, now: u64) {
        // The log first: after the last interval nobody listens any more.
        self.send_log();
        self.hand_in(now, None);
    }

    fn send_log(&mut self) {
        if !self.log.is_empty() {
            let records = std::mem::replace(&mut self.log, Vec::with_capacity(LOG_BLOCK));
            self.say(Message::Ios {
                worker: self.worker,
                records,
            });
        }
    }

    /// Stamps what was issued since the last hand-over.
    #[inline]
    pub fn stamp_handed(&mut self, handed_ns: u64) {
        for &slot in &self.pending {
            self.slots[slot as usize].handed_ns = handed_ns;
        }
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

    /// Counts a batch handed over.
    #[inline]
    pub fn count_submit(&mut self, issued: u32) {
        self.in_flight += issued;
        self.submit_batches[batch_column(issued)] += 1;
    }

    /// Counts the depths at which `count` I/Os of a stream were issued.
    #[inline]
    pub fn count_issued(&mut self, index: u32, before: u32, count: u32) {
        count_depths(
            &mut self.counters[index as usize].depth,
            before,
            before + count,
        );
    }

    /// Takes one completion.
    #[inline]
    pub fn complete(&mut self, done: Done, now: u64) {
        let slot = &mut self.slots[done.slot as usize];
        let index = slot.stream;
        let stream = &mut self.streams[index as usize];
        if slot.handed_ns == NOT_HANDED {
            return; // given up before
        }
        if !stream.simple || done.result != slot.len as i32 {
            self.complete_slow(done, now);
            return;
        }
        let row = slot.row + u32::from(stream.in_ramp);
        let run = &mut self.run;
        if run.row == row
            && self.run_intended_ns == slot.intended_ns
            && self.run_handed_ns == slot.handed_ns
        {
            run.count += 1;
            run.bytes += u64::from(slot.len);
        } else {
            if run.count > 0 {
                self.table.add(run);
            }
            self.run_intended_ns = slot.intended_ns;
            self.run_handed_ns = slot.handed_ns;
            *run = start_run(row, slot, u64::from(slot.len), now);
        }
        self.counters[index as usize].completed[slot.op as usize] += 1;
        slot.handed_ns = NOT_HANDED;
        stream.free.push(done.slot);
        stream.vacancies.add(now);
        stream.last_done_ns = now;
        self.in_flight -= 1;
        if !stream.queued {
            stream.queued = true;
            self.ready.push_back(index);
        }
    }

    /// A completion with anything unusual about it or its stream.
    #[inline(never)]
    fn complete_slow(&mut self, done: Done, now: u64) {
        let slot = self.slots[done.slot as usize];
        let index = slot.stream;
        let id = self.streams[index as usize].id;
        let row = slot.row + u32::from(self.streams[index as usize].in_ramp);
        let whole = matches!(slot.op, Op::Trim | Op::Sync);
        let moved = match (done.result, slot.op) {
            (0.., Op::Trim) => slot.len,
            (0.., Op::Sync) => 0,
            (result, _) => result.max(0) as u32,
        };
        let failed = done.result < 0 || (!whole && moved == 0 && slot.len > 0);
        let short = !failed && !whole && moved < slot.len;
        if failed {
            self.table.totals_mut(row).errors += 1;
            self.counters[index as usize].failed[slot.op as usize] += 1;
        } else {
            self.flush_run();
            self.table
                .add(&start_run(row, &slot, u64::from(moved), now));
            self.table.totals_mut(row).shorts += u64::from(short);
            self.counters[index as usize].completed[slot.op as usize] += 1;
        }
        if self.streams[index as usize].logged {
            self.log_io(&slot, moved, (-done.result).max(0), now);
        }
        self.slots[done.slot as usize].handed_ns = NOT_HANDED;
        self.in_flight -= 1;
        let stream = &mut self.streams[index as usize];
        stream.free.push(done.slot);
        stream.vacancies.add(now);
        stream.last_done_ns = now;
        if let Some(schedule) = &mut stream.schedule {
            schedule.completed(slot.op, u64::from(moved));
        }
        if stream.note_thought(false, now) {
            self.start_pause(index);
        }
        if failed || short {
            self.report(id, index, &slot, done.result, moved, now);
        }
        self.after_completion(index, now);
    }

    /// What a stream does once one of its I/Os is back.
    fn after_completion(&mut self, index: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        if stream.emptying && stream.in_flight() <= stream.low {
            stream.emptying = false;
            stream.eligible_ns = now;
        }
        match stream.phase {
            Phase::Draining | Phase::Flushing if stream.in_flight() == 0 => {
                self.drained(index, now)
            }
            _ => self.enqueue(index),
        }
    }

    /// Says what failed or came back short, and ends the stream unless it may go on.
    fn report(&mut self, id: u32, index: u32, slot: &Slot, result: i32, moved: u32, now: u64) {
        let errno = (-result).max(0);
        let plan = &self.plan.streams[id as usize];
        if errno != 0 && StreamState::ignores(plan, slot.op, errno) {
            return;
        }
        let goes_on = moved > 0 || StreamState::tolerates(plan, slot.op);
        let said = &mut self.errors_said[slot.target as usize];
        *said += 1;
        if *said <= MAX_ERRORS_PER_TARGET {
            let path = &self.plan.targets[slot.target as usize].path;
            let what = if errno != 0 {
                describe_errno(errno)
            } else {
                short_text(slot, moved)
            };
            self.say(Message::Event(Event::IoError(IoFailure {
                t_ns: self.run_time(now),
                stream: id,
                target: slot.target,
                op: slot.op.name(),
                offset: slot.offset,
                bytes: slot.len,
                errno,
                moved,
                message: format!(
                    "{} of {} bytes at offset {} of {path}: {what}",
                    slot.op.name(),
                    slot.len,
                    slot.offset
                ),
            })));
        }
        if !goes_on {
            self.stop_issuing(index, Reason::Error, now);
            // A stream that was ending for another reason ends because of the error.
            self.streams[index as usize].reason = Reason::Error;
        }
    }

    fn log_io(&mut self, slot: &Slot, moved: u32, error: i32, now: u64) {
        let ramp = self.streams[slot.stream as usize].in_ramp;
        self.log.push(IoRecord {
            t_ns: self.run_time(now),
            stream: self.streams[slot.stream as usize].id,
            target: slot.target,
            op: slot.op,
            offset: slot.offset,
            bytes: moved,
            wait_ns: slot.picked_ns.saturating_sub(slot.intended_ns),
            slat_ns: slot.handed_ns.saturating_sub(slot.picked_ns),
            clat_ns: now.saturating_sub(slot.handed_ns),
            lat_ns: now.saturating_sub(slot.intended_ns),
            error,
            ramp,
        });
        if self.log.len() >= LOG_BLOCK {
            self.send_log();
        }
    }

    #[inline]
    fn flush_run(&mut self) {
        if self.run.count > 0 {
            self.table.add(&self.run);
            self.run.count = 0;
            self.run.row = u32::MAX;
        }
    }

    /// Ends a batch of completions.
    #[inline]
    pub fn settle(&mut self, reaped: u32, now: u64) {
        self.flush_run();
        self.complete_batches[batch_column(reaped)] += 1;
        debug_assert!(now >= self.stage_start_ns);
    }

    /// Rows of this worker.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }
}

#[inline]
fn start_run(row: u32, slot: &Slot, bytes: u64, now: u64) -> Run {
    let lat = now.saturating_sub(slot.intended_ns);
    let slat = slot.handed_ns.saturating_sub(slot.picked_ns);
    let clat = now.saturating_sub(slot.handed_ns);
    let wait = slot.picked_ns.saturating_sub(slot.intended_ns);
    Run {
        row,
        count: 1,
        bytes,
        values_ns: [lat, slat, clat, wait],
    }
}

fn short_text(slot: &Slot, moved: u32) -> String {
    if moved == 0 && slot.op == Op::Read {
        "end of the file: it is shorter than the job expects".into()
    } else if moved == 0 {
        "nothing was written".into()
    } else {
        format!("short: only {moved} bytes moved")
    }
}
