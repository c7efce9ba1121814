//! Completions: recorded, counted, and what follows from them.
//!
//! Knows latencies and results. Knows no backend. The common completion takes the short
//! way; whatever is unusual about it or its stream takes the slow one.

use super::{WorkerState, LOG_BLOCK};
use crate::control::Message;
use crate::events::{Event, IoFailure, MAX_ERRORS_PER_TARGET};
use crate::record::RepeatedLatency;
use crate::samples::IoRecord;
use crate::slots::{batch_column, Slot, NOT_HANDED};
use crate::stream::{Checks, Reason, StreamState};
use loadstone_base::errno::describe_errno;
use loadstone_base::ops::OpKind;
use loadstone_io::backend::{Done, Failure};

/// What an I/O moved whose completion says so many bytes: a trim all or nothing, a flush nothing.
fn moved_bytes(completed: Option<u32>, slot: &Slot) -> u32 {
    match (completed, slot.op) {
        (Some(_), OpKind::Trim) => slot.len,
        (Some(_), OpKind::Sync) | (None, _) => 0,
        (Some(bytes), _) => bytes,
    }
}

impl WorkerState {
    /// Takes one completion.
    #[inline]
    pub fn complete(&mut self, done: Done, now: u64) {
        let slot = &mut self.slots[done.slot as usize];
        let index = slot.stream;
        let stream = &mut self.streams[index as usize];
        if slot.handed_ns == NOT_HANDED {
            return; // given up before
        }
        if !stream.life.is_simple() || !done.outcome.is_moved(slot.len) {
            self.complete_slow(done, now);
            return;
        }
        let row = slot.row + stream.ramp();
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
        self.free_slot(index, done.slot, now);
    }

    /// A slot of a stream that can go on at once has room for the next I/O.
    #[inline]
    pub fn free_slot(&mut self, index: u32, slot: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        self.slots[slot as usize].handed_ns = NOT_HANDED;
        stream.room.give_back(slot, now);
        stream.note_done(now);
        self.in_flight -= 1;
        if stream.turn.queue() {
            self.ready.push_back(index);
        }
    }

    /// A completion with anything unusual about it or its stream.
    #[inline(never)]
    pub(super) fn complete_slow(&mut self, done: Done, now: u64) {
        let slot = self.slots[done.slot as usize];
        let index = slot.stream;
        let id = self.streams[index as usize].id;
        let row = slot.row + self.streams[index as usize].ramp();
        let whole = matches!(slot.op, OpKind::Trim | OpKind::Sync);
        let moved = moved_bytes(done.outcome.bytes(), &slot);
        let failure = done.failure();
        let failed = failure.is_some() || (!whole && moved == 0 && slot.len > 0);
        let short = !failed && !whole && moved < slot.len;
        if failed {
            self.table.totals_mut(row).errors += 1;
            self.counters[index as usize].failed[slot.op as usize] += 1;
        } else {
            self.count_moved(row, &slot, moved, short, now);
        }
        if self.streams[index as usize].logged {
            self.log_io(&slot, moved, failure.map_or(0, |why| why.errno), now);
        }
        self.slots[done.slot as usize].handed_ns = NOT_HANDED;
        self.in_flight -= 1;
        let stream = &mut self.streams[index as usize];
        stream.room.give_back(done.slot, now);
        stream.note_done(now);
        if let Some(schedule) = &mut stream.schedule {
            schedule.completed(slot.op, u64::from(moved));
        }
        if let Some(overlaps) = &mut stream.overlaps {
            overlaps.ended(done.slot);
        }
        let pause = stream.note_thought(false, now);
        self.spin_through(pause);
        self.watch_latency(index, &slot, now);
        match self.streams[index as usize].checks {
            Checks::Nothing => {}
            Checks::Stamps { .. } => {
                let sound = self.verify(index, done.slot, &slot, moved, failed, now);
                self.go_on_in_chain(index, done.slot, sound && !failed, now);
            }
            Checks::Headers(_) => {
                self.verify_by_headers(index, done.slot, &slot, moved, failed, now);
            }
        }
        if failed || short {
            self.report(id, index, &slot, failure, moved, now);
        }
        self.after_completion(index, now);
    }

    fn count_moved(&mut self, row: u32, slot: &Slot, moved: u32, short: bool, now: u64) {
        self.flush_run();
        self.table.add(&start_run(row, slot, u64::from(moved), now));
        self.table.totals_mut(row).shorts += u64::from(short);
        self.counters[slot.stream as usize].completed[slot.op as usize] += 1;
    }

    /// What follows an I/O at its place is due now.
    fn go_on_in_chain(&mut self, index: u32, number: u32, goes_on: bool, now: u64) {
        let stream = &mut self.streams[index as usize];
        if let Some(chains) = stream.checks.chains_mut() {
            // In a closed loop it starts when there is room, as every other I/O.
            let due_ns = stream.schedule.is_some().then_some(now);
            chains.ended(number - stream.first_slot, goes_on, due_ns);
        }
    }

    /// What a stream does once one of its I/Os is back.
    pub(super) fn after_completion(&mut self, index: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        stream.room.note_ended(now);
        if stream.room.note_empty(now) {
            if let Some(search) = &mut stream.search {
                search.begin(now);
            }
        }
        if stream.life.ending().is_some() && stream.room.in_flight() == 0 {
            self.drained(index, now);
        } else if stream.room.is_to_be_opened() {
            self.note_to_be_opened(index);
        } else {
            self.enqueue(index);
        }
    }

    /// Says what failed or came back short, and ends the stream unless it may go on.
    pub(super) fn report(
        &mut self,
        id: u32,
        index: u32,
        slot: &Slot,
        failure: Option<Failure>,
        moved: u32,
        now: u64,
    ) {
        let errno = failure.map_or(0, |why| why.errno);
        let plan = &self.plan.streams[id as usize];
        if errno != 0 && StreamState::ignores(plan, slot.op, errno) {
            return;
        }
        let goes_on = moved > 0 || StreamState::tolerates(plan, slot.op, errno);
        let said = self.reported.errors.entry(slot.target).or_default();
        *said += 1;
        if *said <= MAX_ERRORS_PER_TARGET {
            let path = &self.plan.targets[slot.target as usize].path;
            let what = match failure {
                Some(why) => self.describe(why),
                None => short_text(slot, moved),
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
            self.end_because(index, Reason::Error, now);
        }
    }

    /// An error number, with what this worker's way of doing I/O has to do with it.
    fn describe(&self, failure: Failure) -> String {
        if let Some(status) = failure.status {
            return (status.words)(status.code);
        }
        let errno = failure.errno;
        let backend = &self.plan.workers[self.worker as usize].backend;
        match errno {
            libc::EOPNOTSUPP if backend.is_polled() => {
                "the target cannot be polled for completions: use hipri=0, or give the device poll queues"
                    .into()
            }
            _ => describe_errno(errno),
        }
    }

    pub(super) fn log_io(&mut self, slot: &Slot, moved: u32, error: i32, now: u64) {
        let ramp = self.streams[slot.stream as usize].ramp() > 0;
        let worker = &self.plan.workers[self.worker as usize];
        self.log.push(IoRecord {
            t_ns: self.run_time(now),
            stream: self.streams[slot.stream as usize].id,
            target: slot.target,
            op: slot.op,
            priority: slot.priority.unwrap_or(worker.io_priority),
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
    pub(super) fn flush_run(&mut self) {
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
        self.refresh_patience();
        self.ends.total += u64::from(reaped);
        self.batches.complete[batch_column(reaped)] += 1;
        debug_assert!(now >= self.stage_start_ns);
    }
}

#[inline]
pub(super) fn start_run(row: u32, slot: &Slot, bytes: u64, now: u64) -> RepeatedLatency {
    let lat = now.saturating_sub(slot.intended_ns);
    let slat = slot.handed_ns.saturating_sub(slot.picked_ns);
    let clat = now.saturating_sub(slot.handed_ns);
    let wait = slot.picked_ns.saturating_sub(slot.intended_ns);
    RepeatedLatency {
        row,
        count: 1,
        bytes,
        values_ns: [lat, slat, clat, wait],
    }
}

fn short_text(slot: &Slot, moved: u32) -> String {
    if moved == 0 && slot.op == OpKind::Read {
        "end of the file: it is shorter than the job expects".into()
    } else if moved == 0 {
        "nothing was written".into()
    } else {
        format!("short: only {moved} bytes moved")
    }
}
