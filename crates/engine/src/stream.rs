//! One stream inside its worker: what it may still do and what it waits for.
//!
//! Knows a stream's limits, pauses and counts. Knows no backend, no slot's content and
//! no histogram; the worker's loop does.

use std::sync::Arc;

use crate::backend::SyncKind;
use crate::chain::Chains;
use crate::flow::Share;
use crate::free_slots::Vacancies;
use crate::headers::readback::{Part, Readback};
use crate::ops::{AnyOp, OpKind, OPS};
use crate::overlap::Overlaps;
use crate::pace::Schedule;
use crate::pattern::Generator;
use crate::payload::Filler;
use crate::plan::{max_block_bytes, Plan, Stream, Think};
use crate::priority::Priorities;
use crate::rows::Rows;
use crate::search::Search;
use crate::verify::tables::VerifyTables;
use crate::verify::verifier::Verifier;

/// Where a stream is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before its start.
    Waiting,
    /// Issuing.
    Running,
    /// No more I/O is issued; some is in flight.
    Draining,
    /// The flushes after the last I/O.
    Flushing,
    /// Over.
    Ended,
}

/// Why a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its time was over.
    Runtime,
    /// Its bytes were moved.
    Bytes,
    /// Its I/Os were done.
    Ops,
    /// An I/O failed.
    Error,
    /// Somebody stopped it.
    Stopped,
    /// An I/O did not come back.
    Hung,
    /// It was slower than its minimum.
    RateMinimum,
    /// What it read was damaged.
    Damage,
    /// An I/O took longer than it may, or no depth meets the target.
    Latency,
    /// The depth that meets the latency target was found and measured.
    Found,
    /// In its tree nothing is left to do the operation on.
    Exhausted,
}

impl Reason {
    /// True when the stream did not do what it was asked for.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Error | Self::Hung | Self::RateMinimum | Self::Damage | Self::Latency
        )
    }

    /// As in the `stream_end` event.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Bytes => "bytes",
            Self::Ops => "ops",
            Self::Error => "error",
            Self::Stopped => "stopped",
            Self::Hung => "hung",
            Self::RateMinimum => "rate_minimum",
            Self::Damage => "damage",
            Self::Latency => "latency",
            Self::Found => "found",
            Self::Exhausted => "exhausted",
        }
    }
}

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

/// Pauses after so many I/Os.
#[derive(Debug, Clone, Copy)]
pub struct Thinking {
    plan: Think,
    left: u32,
    /// When the time between two pauses is over; 0: it has not begun.
    due_ns: u64,
    /// Until here the pause spins.
    pub spin_until_ns: u64,
}

/// Flushes between writes.
#[derive(Debug, Clone, Copy)]
pub struct Flushing {
    every: [u32; 2],
    left: [u32; 2],
    /// A flush that comes before anything else, and of which file.
    pub due: Option<(u32, SyncKind)>,
    /// Files still to be flushed at the end.
    pub at_end: u32,
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
    /// Free slots; the last freed is the next used, so a small working set stays in cache.
    pub free: Vec<u32>,
    /// Since when there is room for I/Os: as many as free slots.
    pub vacancies: Vacancies,
    /// First of its slots.
    pub first_slot: u32,
    /// Largest block, and so the content of a slot's buffer.
    pub block_bytes: u32,
    /// Most in flight.
    pub depth: u32,
    /// Most in flight at present: less than `depth` while a search goes on.
    pub limit: u32,
    /// Nothing is issued until nothing is in flight: a search has lowered the limit.
    pub emptying_out: bool,
    /// Search for a depth.
    pub search: Option<Search>,
    /// Longest latency of reads, writes and trims; `u64::MAX`: any.
    pub max_latency_ns: [u64; 3],
    /// Most that were in flight at one time.
    pub deepest: u32,
    /// After being full it does not issue above this depth.
    pub low: u32,
    /// It was full and waits to get to `low`.
    pub emptying: bool,
    /// Handed over at a time.
    pub submit: u32,
    /// Arrivals; none in a closed loop.
    pub schedule: Option<Schedule>,
    /// Pauses.
    pub thinking: Option<Thinking>,
    /// Its share of the I/Os of several streams.
    pub flow: Option<Share>,
    /// Priorities other than its worker's.
    pub priorities: Option<Box<Priorities>>,
    /// Ranges in flight, when I/Os that overlap wait.
    pub overlaps: Option<Overlaps>,
    /// Writes with reads before and after them.
    pub chains: Option<Chains>,
    /// Flushes.
    pub flushing: Flushing,
    /// I/Os and bytes it may still issue.
    pub ops_left: u64,
    /// See `ops_left`.
    pub bytes_left: u64,
    /// Phase.
    pub phase: Phase,
    /// Why it ends.
    pub reason: Reason,
    /// In its ramp.
    pub in_ramp: bool,
    /// In the worker's queue.
    pub queued: bool,
    /// Nothing but its free slots decides whether it can issue: the fast path.
    pub simple: bool,
    /// A timer will queue it then; `u64::MAX`: no timer.
    pub wake_ns: u64,
    /// A record of every I/O is kept.
    pub logged: bool,
    /// Paused until then (thinking), or the time of its next arrival.
    pub not_before_ns: u64,
    /// When the depth last fell to `low`: no I/O was intended before.
    pub eligible_ns: u64,
    /// When its time is over, on the worker's clock; `u64::MAX`: never.
    pub end_ns: u64,
    /// When it has to be empty.
    pub grace_end_ns: u64,
    /// Last completion.
    pub last_done_ns: u64,
    /// Stamps and checks.
    pub verifier: Option<Box<Verifier>>,
    /// Verification by headers.
    pub readback: Option<Box<Readback>>,
}

impl Thinking {
    /// Counts an I/O; true when a pause begins with it.
    fn is_due(&mut self, now_ns: u64) -> bool {
        let plan = &self.plan;
        if plan.every_ns == 0 {
            self.left = self.left.saturating_sub(1);
            let due = self.left == 0;
            if due {
                self.left = plan.every_ios.max(1);
            }
            return due;
        }
        let begins_ns = match self.due_ns {
            0 => now_ns,
            due_ns if now_ns >= due_ns => now_ns.saturating_add(plan.pause_ns),
            _ => return false,
        };
        let due = self.due_ns > 0;
        self.due_ns = begins_ns.saturating_add(plan.every_ns);
        due
    }
}

impl StreamState {
    /// The state before the start. `local` maps the Plan's targets to the worker's files.
    #[must_use]
    pub fn new(
        plan: &Plan,
        id: u32,
        first_slot: u32,
        rows: &Rows,
        verify_tables: &Arc<VerifyTables>,
        local: &dyn Fn(u32) -> u32,
    ) -> Self {
        let stream = &plan.streams[id as usize];
        let uses = stream.files.iter().map(|file| {
            let rows = OpKind::ALL.map(|op| rows.row(file.cell, AnyOp::Io(op)));
            Use {
                local: local(file.target),
                target: file.target,
                rows,
            }
        });
        let writes = stream.pattern.write_percent > 0 || stream.pattern.trim_then_write;
        let limits = &stream.limits;
        let by_headers = stream.headers.is_some();
        let limit = |value: u64| {
            if value == 0 || (limits.time_based && !by_headers) {
                u64::MAX
            } else {
                value
            }
        };
        let flush = &stream.flush;
        let depth = stream.iodepth;
        Self {
            id,
            generator: Generator::new(stream),
            filler: (writes && !by_headers && !Verifier::generates(stream.verify))
                .then(|| Filler::new(&stream.payload, stream.seed)),
            uses: uses.collect(),
            free: (first_slot..first_slot + depth).rev().collect(),
            vacancies: Vacancies::new(depth),
            first_slot,
            block_bytes: max_block_bytes(stream),
            depth,
            limit: stream.search.map_or(depth, |_| 1),
            emptying_out: false,
            search: stream.search.map(|search| Search::new(search, depth)),
            max_latency_ns: limits
                .max_latency_ns
                .map(|most| if most == 0 { u64::MAX } else { most }),
            deepest: 0,
            low: stream.batch.map_or(depth, |batch| batch.low),
            emptying: false,
            submit: stream.batch.map_or(u32::MAX, |batch| batch.submit),
            schedule: match &stream.tree {
                Some(in_tree) => in_tree
                    .rate
                    .as_ref()
                    .map(|rate| Schedule::single(rate, stream)),
                None => Schedule::new(&stream.pace, &stream.pattern, stream.seed),
            },
            thinking: stream.pace.think.map(|plan| Thinking {
                plan,
                left: plan.every_ios,
                due_ns: 0,
                spin_until_ns: 0,
            }),
            flow: None,
            priorities: Priorities::new(stream, rows),
            overlaps: stream.serialize_overlap.then(|| Overlaps::new(depth)),
            chains: (stream.verify.as_ref()).and_then(|verify| Chains::new(verify, depth)),
            flushing: Flushing {
                every: [flush.fsync_every, flush.fdatasync_every],
                left: [flush.fsync_every, flush.fdatasync_every],
                due: None,
                at_end: if flush.at_end {
                    stream.files.len() as u32
                } else {
                    0
                },
            },
            ops_left: if limits.prepare_only {
                0
            } else {
                limit(limits.ops)
            },
            bytes_left: limit(limits.bytes),
            phase: Phase::Waiting,
            reason: Reason::Runtime,
            in_ramp: limits.ramp_ns > 0 || stream.search.is_some_and(|search| !search.keep_on),
            queued: false,
            simple: false,
            wake_ns: u64::MAX,
            logged: stream.log_ios,
            not_before_ns: 0,
            eligible_ns: 0,
            end_ns: u64::MAX,
            grace_end_ns: u64::MAX,
            last_done_ns: 0,
            verifier: Verifier::new(stream, verify_tables).map(Box::new),
            readback: Readback::new(stream, limit(limits.bytes), verify_tables).map(Box::new),
        }
    }

    /// No I/O of a closed loop was intended before this: the depth fell to `low`, or a
    /// pause ended.
    #[inline]
    #[must_use]
    pub fn floor_ns(&self) -> u64 {
        self.eligible_ns.max(self.not_before_ns)
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
        self.eligible_ns = now + nap_ns;
        Some(self.eligible_ns)
    }

    /// What it does now is to read back what it wrote, not what it was asked for.
    #[inline]
    #[must_use]
    pub fn is_reading_back(&self) -> bool {
        (self.readback.as_ref()).is_some_and(|readback| readback.part != Part::Work)
    }

    /// I/Os in flight.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.depth - self.free.len() as u32
    }

    /// True when the next visit could issue something.
    #[inline]
    #[must_use]
    pub fn can_issue(&self) -> bool {
        match self.phase {
            Phase::Running => {
                self.in_flight() < self.limit
                    && !self.emptying_out
                    && (!self.emptying || self.in_flight() <= self.low)
            }
            Phase::Flushing => self.flushing.at_end > 0 && !self.free.is_empty(),
            _ => false,
        }
    }

    /// Counts writes towards the next flush.
    #[inline]
    pub fn note_write(&mut self, file: u32) {
        for (kind, sync) in [SyncKind::File, SyncKind::Data].into_iter().enumerate() {
            if self.flushing.every[kind] > 0 {
                self.flushing.left[kind] -= 1;
                if self.flushing.left[kind] == 0 {
                    self.flushing.left[kind] = self.flushing.every[kind];
                    self.flushing.due = Some((file, sync));
                }
            }
        }
    }

    /// True while only its limits and free slots decide what it does next.
    #[must_use]
    pub fn is_simple(&self) -> bool {
        self.phase == Phase::Running
            && self.schedule.is_none()
            && self.thinking.is_none()
            && !self.flushes_between()
            && !self.logged
            && self.verifier.is_none()
            && self.readback.is_none()
            && self.flow.is_none()
            && self.priorities.is_none()
            && self.overlaps.is_none()
            && self.search.is_none()
            && self.max_latency_ns == [u64::MAX; 3]
            && self.low == self.depth
    }

    /// True when flushes come between its writes.
    #[must_use]
    pub fn flushes_between(&self) -> bool {
        self.flushing.every != [0, 0]
    }

    /// Counts an issued or completed I/O towards the next pause; true when it begins now.
    #[inline]
    pub fn note_thought(&mut self, issued: bool, now_ns: u64) -> bool {
        let Some(thinking) = &mut self.thinking else {
            return false;
        };
        if thinking.plan.count_issued != issued {
            return false;
        }
        if !thinking.is_due(now_ns) {
            return false;
        }
        thinking.spin_until_ns = now_ns + thinking.plan.spin_ns.min(thinking.plan.pause_ns);
        self.not_before_ns = now_ns + thinking.plan.pause_ns;
        true
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

#[cfg(test)]
mod tests {
    use super::*;

    fn thinking(every_ios: u32, every_ns: u64) -> Thinking {
        Thinking {
            plan: Think {
                pause_ns: 100,
                spin_ns: 0,
                every_ios,
                count_issued: false,
                every_ns,
            },
            left: every_ios,
            due_ns: 0,
            spin_until_ns: 0,
        }
    }

    #[test]
    fn a_pause_comes_after_so_many_ios_or_after_so_long() {
        let mut by_number = thinking(3, 0);
        let pauses = [10, 20, 30, 40, 50, 60].map(|now_ns| by_number.is_due(now_ns));
        assert_eq!(pauses, [false, false, true, false, false, true]);
        // The first begins the time; what comes back within a pause begins no other.
        let mut by_time = thinking(1, 50);
        let pauses = [10, 59, 60, 65, 209, 210].map(|now_ns| by_time.is_due(now_ns));
        assert_eq!(pauses, [false, false, true, false, false, true]);
    }
}
