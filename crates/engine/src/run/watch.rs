//! The main thread's eye on the workers: which are silent, late or lost.
//!
//! Knows when a worker should have ended and where its state lie in memory. A worker that
//! is stuck in a system call cannot answer, so its slots, counters and table are read from
//! outside, without its help.

use super::{Run, LOST_NS};
use crate::setup::WorkerHandle;
use loadstone_base::ops::OpKind;
use loadstone_base::run_error::RunError;
use loadstone_plan::Plan;
use loadstone_worker::control::{StageStart, Stop};
use loadstone_worker::events::{Event, StreamEnd, MAX_ERRORS_PER_TARGET};
use loadstone_worker::slots::{Slot, NOT_HANDED};
use loadstone_worker::state::{flush_grace_ns, LEAVE_NS};

/// Intervals are written this long after their end even when a worker is late.
const LATE_NS: u64 = 1_000_000_000;
/// Bounds of the time without a completion after which a worker is called silent.
const SILENT_NS: (u64, u64) = (1_000_000_000, 10_000_000_000);

/// What the main thread knows of one worker of the present stage.
#[derive(Debug)]
pub(super) struct WatchedWorker {
    /// End of the last interval handed in, since the origin; `u64::MAX`: it has ended.
    pub(super) progress_ns: u64,
    /// When its streams are over at the latest, on the clock of the run.
    planned_end_ns: u64,
    /// Those of them that flush after their last I/O.
    flushes: Vec<u32>,
    /// I/Os it had completed when that number last changed, and when that was.
    done: u64,
    changed_ns: u64,
    /// When its counters were last looked at.
    looked_ns: u64,
    /// Its silence was told.
    told: bool,
}

impl WatchedWorker {
    /// Nothing was seen of it yet. `ends_ns` is that of [`stream_ends`].
    pub(super) fn new(
        plan: &Plan,
        hand: &WorkerHandle,
        ends_ns: &[u64],
        start: StageStart,
    ) -> Self {
        let ends = hand.streams.iter().map(|&id| ends_ns[id as usize]);
        let flushes = |&&id: &&u32| plan.streams[id as usize].flush.at_end;
        Self {
            progress_ns: start.offset_ns,
            planned_end_ns: ends.max().unwrap_or(u64::MAX),
            flushes: hand.streams.iter().filter(flushes).copied().collect(),
            done: 0,
            changed_ns: start.clock_ns,
            looked_ns: start.clock_ns,
            told: false,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.progress_ns == u64::MAX
    }
}

/// When each stream is over at the latest, of a stage that starts at `start_ns`.
pub(super) fn stream_ends(plan: &Plan, start_ns: u64) -> Vec<u64> {
    let mut ends_ns: Vec<u64> = Vec::with_capacity(plan.streams.len());
    for stream in &plan.streams {
        let limits = &stream.limits;
        if limits.runtime_ns == 0 || stream.flush.at_end {
            ends_ns.push(u64::MAX);
            continue;
        }
        // Those it waits for come before it in the Plan.
        let before = stream.wait_for.iter();
        let begins_ns = before
            .map(|&other| ends_ns[other as usize].saturating_add(plan.grace_ns))
            .max()
            .unwrap_or(start_ns);
        let lasts_ns = limits.start_delay_ns + limits.ramp_ns + limits.runtime_ns;
        ends_ns.push(begins_ns.saturating_add(lasts_ns));
    }
    ends_ns
}

impl Run {
    /// Whatever no message tells: orders, a reader that is gone, silent and lost workers.
    pub(super) fn look_up(
        &mut self,
        stage: u32,
        hands: &[WorkerHandle],
        seen: &mut [WatchedWorker],
    ) -> Result<(), RunError> {
        if self.speaker.is_alone() {
            self.control.stop(Stop::Now);
        }
        self.say_signal();
        let now = self.clock.now_ns();
        let ordered = self.control.stopping() != Stop::No || self.control.stage_is_over(stage);
        if ordered && self.stopped_ns.is_none() {
            self.stopped_ns = Some(now);
        }
        for (hand, seen) in hands.iter().zip(seen.iter_mut()) {
            if seen.has_ended() || self.is_virtual(hand) {
                continue;
            }
            let planned = seen.planned_end_ns;
            let deadline = self
                .stopped_ns
                .map_or(planned, |stopped| planned.min(stopped))
                .saturating_add(self.grace_ns(&seen.flushes));
            if now > deadline.saturating_add(LOST_NS) {
                self.give_up(stage, hand, seen.progress_ns, now)?;
                seen.progress_ns = u64::MAX;
            } else {
                self.notice_silence(hand, seen, now);
            }
        }
        let durable = now - self.journal_synced_ns >= self.plan.interval_ns;
        if durable {
            self.journal_synced_ns = now;
        }
        self.verify_tables.commit(durable)?;
        self.write_complete(hands, seen)
    }

    pub(super) fn is_virtual(&self, hand: &WorkerHandle) -> bool {
        let backend = &self.plan.workers[hand.worker as usize].backend;
        backend.capabilities().virtual_time
    }

    /// Writes the intervals all workers have handed in, and those that are long over: the
    /// rows of a late worker follow in a batch of their own.
    pub(super) fn write_complete(
        &mut self,
        hands: &[WorkerHandle],
        seen: &[WatchedWorker],
    ) -> Result<(), RunError> {
        let complete = seen.iter().map(|seen| seen.progress_ns).min();
        let mut complete = complete.unwrap_or(u64::MAX);
        if complete == u64::MAX {
            return Ok(());
        }
        if !hands.iter().any(|hand| self.is_virtual(hand)) {
            let run_ns = self.clock.now_ns().saturating_sub(self.origin_ns);
            complete = complete.max(run_ns.saturating_sub(LATE_NS));
        }
        self.write_until(complete)
    }

    /// How long a worker may take to end after its time: as it sees it itself.
    fn grace_ns(&self, flushes: &[u32]) -> u64 {
        let stop = self.control.stopping();
        if stop == Stop::Now {
            return LEAVE_NS;
        }
        let graces = flushes
            .iter()
            .map(|&stream| flush_grace_ns(&self.plan, stream, stop));
        self.plan.grace_ns.saturating_add(graces.max().unwrap_or(0))
    }

    /// Says once that a worker has I/O in flight and nothing comes back.
    fn notice_silence(&mut self, hand: &WorkerHandle, seen: &mut WatchedWorker, now: u64) {
        // Looking at every counter is not for every time.
        if now < seen.looked_ns.saturating_add(SILENT_NS.0) {
            return;
        }
        seen.looked_ns = now;
        let done = (0..hand.counters.len())
            .map(|index| hand.counters.copy(index).ended())
            .sum();
        if done != seen.done {
            (seen.done, seen.changed_ns, seen.told) = (done, now, false);
            return;
        }
        let silent_ns = now - seen.changed_ns;
        if seen.told || silent_ns < self.plan.grace_ns.clamp(SILENT_NS.0, SILENT_NS.1) {
            return;
        }
        let Some(oldest) = in_flight(hand).min_by_key(|slot| slot.handed_ns) else {
            return;
        };
        seen.told = true;
        let what = match oldest.file_op {
            None if oldest.op == OpKind::Sync => "a flush of".to_owned(),
            Some(op) => format!("{} in", op.name()),
            None => format!(
                "{} of {} bytes at offset {} of",
                oldest.op.name(),
                oldest.len,
                oldest.offset
            ),
        };
        let text = format!(
            "no I/O has completed for {:.1} s; {} in flight, the oldest: {what} {}",
            silent_ns as f64 / 1e9,
            in_flight(hand).count(),
            self.plan.targets[oldest.target as usize].path,
        );
        self.speaker.say(&Event::Note {
            text,
            worker: Some(hand.worker),
            target: Some(oldest.target),
        });
    }

    /// A worker is stuck in a system call: says what it waits for and takes what it had
    /// counted since its last interval.
    fn give_up(
        &mut self,
        stage: u32,
        hand: &WorkerHandle,
        progress_ns: u64,
        now: u64,
    ) -> Result<(), RunError> {
        self.lost = true;
        let t_ns = now - self.origin_ns;
        for slot in in_flight(hand).take(MAX_ERRORS_PER_TARGET as usize) {
            self.speaker.say(&Event::Hung {
                t_ns,
                stream: hand.streams[slot.stream as usize],
                target: slot.target,
                op: slot.op_name(),
                offset: slot.offset,
                bytes: slot.len,
                age_ns: now.saturating_sub(slot.handed_ns),
            });
        }
        self.salvage(stage, hand, (progress_ns, t_ns))?;
        for (index, &stream) in hand.streams.iter().enumerate() {
            if std::mem::replace(&mut self.ended[stream as usize], true) {
                continue;
            }
            let counters = hand.counters.copy(index);
            self.speaker.say(&Event::StreamEnd(Box::new(StreamEnd {
                t_ns,
                stream,
                reason: "hung",
                started_ns: counters.started_ns,
                ramp_end_ns: counters.ramp_end_ns,
                ended_ns: t_ns,
                issued: counters.issued,
                completed: counters.completed,
                failed: counters.failed,
                file_ops: counters.file_ops(&self.plan.streams[stream as usize]),
                depth: counters.depth,
                submit_batches: [0; 7],
                complete_batches: [0; 7],
                backend: hand.backend_name(&self.plan),
            })));
        }
        Ok(())
    }

    /// Takes the interval a lost worker had begun.
    fn salvage(
        &mut self,
        stage: u32,
        hand: &WorkerHandle,
        bounds_ns: (u64, u64),
    ) -> Result<(), RunError> {
        let copy = hand.table_in_use(bounds_ns).map_err(|error| {
            RunError::broken(
                format!("a lost worker's counters were not kept: {error}"),
                "",
            )
        })?;
        let Some(mut table) = copy else { return Ok(()) };
        for slot in in_flight(hand) {
            let ramp_end_ns = hand.counters.copy(slot.stream as usize).ramp_end_ns;
            let row = slot.row + u32::from(ramp_end_ns > bounds_ns.1);
            table.totals_mut(row).in_flight += 1;
        }
        self.reporter.take(&table, &hand.rows, stage);
        Ok(())
    }
}

/// The slots of a worker that are in flight, looked at from outside.
fn in_flight(hand: &WorkerHandle) -> impl Iterator<Item = Slot> + '_ {
    (0..hand.slots.len())
        .map(|index| hand.slots.copy(index))
        .filter(|slot| slot.handed_ns != NOT_HANDED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::{plain, Backend, Limits, Stream};

    #[test]
    fn a_stream_ends_after_all_it_waits_for_also_in_long_chains() {
        let plan = |count: usize, start_delay_ns, runtime_ns| {
            let stream = Stream {
                limits: Limits {
                    start_delay_ns,
                    ramp_ns: 5,
                    runtime_ns,
                    ..plain::stream().limits
                },
                ..plain::stream()
            };
            plain::plan(Backend::Null {}, vec![stream; count])
        };
        // Each waits for every one before it: too many ways to follow one by one.
        let mut chain = plan(64, 1, 10);
        chain.grace_ns = 100;
        for (index, stream) in (0..).zip(&mut chain.streams) {
            stream.wait_for = (0..index).collect();
        }
        let ends_ns = stream_ends(&chain, 1_000);
        let expected: Vec<u64> = (0..64).map(|index| 1_016 + index * 116).collect();
        assert_eq!(ends_ns, expected);

        let mut endless = plan(2, 0, 0);
        endless.streams[1].limits.runtime_ns = 10;
        endless.streams[1].wait_for = vec![0];
        assert_eq!(stream_ends(&endless, 1_000), [u64::MAX, u64::MAX]);
    }
}
