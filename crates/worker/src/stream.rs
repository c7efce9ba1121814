//! One stream inside its worker: what it may still do and what it waits for.
//!
//! Knows the parts of a stream's state and what follows from several of them. Each part keeps its
//! own: nobody else writes a phase, a turn, a depth or a limit. Knows no backend, no slot's
//! content and no histogram; the worker's loop does.

mod checks;
mod connection;
mod flushes;
mod left;
mod life;
mod room;
mod thinking;
mod turn;

use std::sync::Arc;

use crate::flow::FlowShare;
use crate::priority::Priorities;
use crate::rows::WorkerRows;
use crate::search::DepthFinder;
use loadstone_base::ops::{AnyOp, OpKind, OPS};
use loadstone_generation::overlap::Overlaps;
use loadstone_generation::pace::Schedule;
use loadstone_generation::pattern::{Generator, NextIo};
use loadstone_generation::payload::Filler;
use loadstone_plan::{max_block_bytes, FileUse, Plan, Stream};
use loadstone_verification::verify::tables::VerifyTables;
use loadstone_verification::verify::verifier::Verifier;

pub use checks::Checks;
pub use connection::ConnectedFile;
pub use flushes::Flushes;
pub use left::{Left, ANY};
pub use life::{Life, Phase, Reason, StreamEnding};
pub use room::Room;
pub use thinking::Thinking;
pub use turn::Turn;

/// A stream's file as the worker addresses it.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// Index into the worker's open files.
    pub local: u32,
    /// Index into the Plan's targets.
    pub target: u32,
    /// Even row by operation.
    pub rows: [u32; OPS],
}

/// The state of one stream.
#[derive(Debug)]
pub struct StreamState {
    /// Index into the Plan's streams.
    pub id: u32,
    /// Addresses.
    pub generator: Generator,
    /// Bytes to write; none when it writes nothing.
    pub filler: Option<Filler>,
    /// Files.
    pub uses: Vec<Use>,
    /// First of its slots.
    pub first_slot: u32,
    /// Largest block, and so the content of a slot's buffer.
    pub block_bytes: u32,
    /// Handed over at a time.
    pub submit: u32,
    /// Longest latency of reads, writes and trims; `u64::MAX`: any.
    pub max_latency_ns: [u64; 3],
    /// A record of every I/O is kept.
    pub logged: bool,

    /// Phase, and how it ends.
    pub life: Life,
    /// When it is looked at next.
    pub turn: Turn,
    /// Slots and depth.
    pub room: Room,
    /// I/Os and bytes it may still issue.
    pub left: Left,
    /// Flushes.
    pub flushes: Flushes,
    /// What it does is not measured yet.
    in_ramp: bool,
    /// Last completion.
    last_done_ns: u64,

    /// Arrivals; none in a closed loop.
    pub schedule: Option<Schedule>,
    /// Pauses.
    pub thinking: Option<Thinking>,
    /// Search for a depth.
    pub search: Option<DepthFinder>,
    /// Its file is closed and opened again and again.
    pub connection: Option<Box<ConnectedFile>>,
    /// Its share of the I/Os of several streams.
    pub flow: Option<FlowShare>,
    /// Priorities other than its worker's.
    pub priorities: Option<Box<Priorities>>,
    /// Ranges in flight, when I/Os that overlap wait.
    pub overlaps: Option<Overlaps>,
    /// Verification.
    pub checks: Checks,
}

/// When a stream's I/Os start: by the rate of its work in a tree, or by its own.
fn schedule_of(stream: &Stream) -> Option<Schedule> {
    match &stream.tree {
        Some(in_tree) => {
            let rate = in_tree.rate.as_ref()?;
            Some(Schedule::single(rate, stream))
        }
        None => Schedule::new(&stream.pace, &stream.pattern, stream.seed),
    }
}

/// A number of I/Os or bytes as the stream keeps to it: what goes by time has no other end.
fn limit_of(stream: &Stream, number: u64) -> u64 {
    if number == 0 || (stream.limits.time_based && stream.headers.is_none()) {
        ANY
    } else {
        number
    }
}

fn left_of(stream: &Stream) -> Left {
    let ops = match stream.limits.prepare_only {
        true => 0,
        false => limit_of(stream, stream.limits.ops),
    };
    Left::new(ops, limit_of(stream, stream.limits.bytes))
}

fn room_of(stream: &Stream, first_slot: u32) -> Room {
    let depth = stream.iodepth;
    let limit = stream.search.map_or(depth, |_| 1);
    let low = stream.batch.map_or(depth, |batch| batch.low);
    Room::new(first_slot, depth, limit, low)
}

impl StreamState {
    /// The state before the start. `local` maps the Plan's targets to the worker's files.
    #[must_use]
    pub fn new(
        plan: &Plan,
        id: u32,
        first_slot: u32,
        rows: &WorkerRows,
        verify_tables: &Arc<VerifyTables>,
        local: &dyn Fn(u32) -> u32,
    ) -> Self {
        let stream = &plan.streams[id as usize];
        let use_of = |file: &FileUse| Use {
            local: local(file.target),
            target: file.target,
            rows: OpKind::ALL.map(|op| rows.row(file.cell, AnyOp::Io(op))),
        };
        let fills = stream.pattern.writes() && stream.headers.is_none();
        let or_none = |most: u64| if most == 0 { u64::MAX } else { most };
        let limits = &stream.limits;
        let depth = stream.iodepth;
        Self {
            id,
            generator: Generator::new(stream),
            filler: (fills && !Verifier::generates(stream.verify))
                .then(|| Filler::new(&stream.payload, stream.seed)),
            uses: stream.files.iter().map(use_of).collect(),
            first_slot,
            block_bytes: max_block_bytes(stream),
            submit: stream.batch.map_or(u32::MAX, |batch| batch.submit),
            max_latency_ns: limits.max_latency_ns.map(or_none),
            logged: stream.log_ios,
            life: Life::new(),
            turn: Turn::Idle,
            room: room_of(stream, first_slot),
            left: left_of(stream),
            flushes: Flushes::new(&stream.flush, stream.files.len() as u32),
            in_ramp: limits.ramp_ns > 0 || stream.search.is_some_and(|search| !search.keep_on),
            last_done_ns: 0,
            schedule: schedule_of(stream),
            thinking: stream.pace.think.map(Thinking::new),
            search: stream.search.map(|search| DepthFinder::new(search, depth)),
            connection: None,
            flow: None,
            priorities: Priorities::new(stream, rows),
            overlaps: stream.serialize_overlap.then(|| Overlaps::new(depth)),
            checks: Checks::new(stream, limit_of(stream, limits.bytes), verify_tables),
        }
    }

    /// It starts at `time_ns`, and its time is over at `end_ns`.
    pub fn start(&mut self, time_ns: u64, end_ns: u64) {
        self.turn.wake();
        self.life.start(self.is_simple(), end_ns);
        self.room.open(time_ns);
        if self.connection.is_some() {
            self.room.wait_for_opening();
        }
        self.last_done_ns = time_ns;
        if let Some(search) = &mut self.search {
            search.begin(time_ns);
        }
        if let Some(flow) = &mut self.flow {
            flow.join();
        }
    }

    /// It issues nothing more, for this reason; false when it did not before.
    pub fn stop(&mut self, reason: Reason) -> bool {
        let ran = self.life.is_running();
        if !self.life.stop(reason) {
            return false;
        }
        if let Some(flow) = &mut self.flow {
            flow.leave();
        }
        if !ran || reason == Reason::Error {
            self.flushes.leave_out();
        }
        // Neither a pause nor an arrival holds up what comes after the last I/O.
        self.turn.wake();
        true
    }

    /// Nothing but its limits and free slots decides what it does once it has started.
    fn is_simple(&self) -> bool {
        self.schedule.is_none()
            && self.thinking.is_none()
            && !self.flushes.come_between()
            && !self.logged
            && self.checks.are_none()
            && self.flow.is_none()
            && self.connection.is_none()
            && self.priorities.is_none()
            && self.overlaps.is_none()
            && self.search.is_none()
            && self.max_latency_ns == [u64::MAX; 3]
            && self.room.refills_at_once()
    }

    /// 1 in the ramp: odd rows are those of I/Os that are not measured.
    #[inline(always)]
    #[must_use]
    pub fn ramp(&self) -> u32 {
        u32::from(self.in_ramp)
    }

    /// What comes is measured.
    pub fn end_ramp(&mut self) {
        self.in_ramp = false;
    }

    /// No I/O of a closed loop was intended before this: the depth fell to `low`, or a
    /// pause ended.
    #[inline]
    #[must_use]
    pub fn floor_ns(&self) -> u64 {
        self.room.since_ns().max(self.paused_until_ns())
    }

    /// When its last pause ends; 0: there was none.
    #[inline]
    #[must_use]
    pub fn paused_until_ns(&self) -> u64 {
        self.thinking.as_ref().map_or(0, Thinking::end_ns)
    }

    /// Last completion, or the start.
    #[must_use]
    pub fn last_done_ns(&self) -> u64 {
        self.last_done_ns
    }

    /// Something of it has ended.
    #[inline(always)]
    pub fn note_done(&mut self, now_ns: u64) {
        self.last_done_ns = now_ns;
    }

    /// Of a stream with one operation at a time: since when the next one could start.
    #[must_use]
    pub fn free_since_ns(&self) -> u64 {
        self.last_done_ns.max(self.floor_ns())
    }

    /// None when its flow lets it issue, else when it looks again: until then none of its
    /// I/Os should have started.
    pub fn held_by_flow(&mut self, now: u64) -> Option<u64> {
        let nap_ns = self.flow.as_ref()?.must_wait_ns()?;
        self.room.begins_at(now + nap_ns);
        Some(self.room.since_ns())
    }

    /// True when the next visit could issue something.
    #[inline]
    #[must_use]
    pub fn can_issue(&self) -> bool {
        match self.life.phase() {
            Phase::Simple { .. } | Phase::Running { .. } => self.room.is_open(),
            Phase::Flushing(_) => self.flushes.are_left() && self.room.free() > 0,
            Phase::Waiting | Phase::Draining(_) | Phase::Ended => false,
        }
    }

    /// Takes a free slot for an I/O of a stream that is not simple, and says when it should have
    /// started at the earliest.
    pub fn take_slot(&mut self) -> Option<(u32, u64)> {
        let (slot, free_ns) = self.room.take()?;
        Some((slot, free_ns.max(self.floor_ns())))
    }

    /// The same for an I/O that counts against what is left of the stream, and its share of a flow.
    #[inline(always)]
    pub fn take_slot_for(&mut self, next: &NextIo) -> Option<(u32, u64)> {
        let taken = self.take_slot()?;
        self.left.spend_bytes(next.len);
        self.left.spend_ops(1);
        if let Some(flow) = &mut self.flow {
            flow.took();
        }
        Some(taken)
    }

    /// Counts an issued I/O towards the end of its connection: nothing is issued until the next.
    #[inline]
    pub fn note_connected(&mut self) {
        if self.connection.as_mut().is_some_and(|own| own.spend()) {
            self.room.wait_for_opening();
        }
    }

    /// Counts an issued or completed I/O towards the next pause: until when that spins when it
    /// begins now.
    #[inline]
    pub fn note_thought(&mut self, issued: bool, now_ns: u64) -> Option<u64> {
        let thinking = self.thinking.as_mut()?;
        let counts = !self.checks.are_reading_back();
        (counts && thinking.count(issued, now_ns)).then(|| thinking.spin_end_ns())
    }

    /// True when `errno` of its operation `op` is answered by continuing.
    #[must_use]
    pub fn tolerates(stream: &Stream, op: OpKind, errno: i32) -> bool {
        let errors = &stream.errors;
        let continues = if op == OpKind::Read {
            errors.continue_read
        } else {
            errors.continue_write
        };
        let after = &errors.continue_after;
        // A read at the end of a file has no error number; it is an I/O error, as in fio.
        let errno = if errno == 0 { libc::EIO } else { errno };
        continues && (after.is_empty() || after.contains(&errno))
    }

    /// True when `errno` of `op` does not count as a failure.
    #[must_use]
    pub fn ignores(stream: &Stream, op: OpKind, errno: i32) -> bool {
        let list = if op == OpKind::Read {
            &stream.errors.ignore_read
        } else {
            &stream.errors.ignore_write
        };
        list.contains(&errno)
    }
}
