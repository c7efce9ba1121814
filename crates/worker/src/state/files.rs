//! Operations of a stream in a tree: begun, timed, recorded, and what follows from errors.
//!
//! Knows one operation at a time and the steps it is made of, each timed by itself. Knows
//! no path and no system call. The slot says what is under way, so that a stuck worker
//! can be told from outside what it waits for.

use super::completion::start_run;
use super::WorkerState;
use crate::control::Message;
use crate::events::{Event, IoFailure, MAX_ERRORS_PER_TARGET};
use crate::slots::{batch_column, Slot, NOT_HANDED};
use crate::stream::{Phase, Reason, StreamState};
use loadstone_base::errno::describe_errno;
use loadstone_base::ops::{AnyOp, FileOp, OpKind};

/// An operation, or a step of one.
#[derive(Debug, Clone, Copy)]
pub struct OperationStep {
    /// What is done.
    pub op: AnyOp,
    /// Target of the tree it is done in.
    pub target: u32,
    /// Where in the file; 0 for operations by name.
    pub offset: u64,
    /// Bytes asked for; 0 for operations by name.
    pub bytes: u32,
}

/// Times of an operation up to its start.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// When it should have started.
    pub intended_ns: u64,
    /// When the worker took it up.
    pub picked_ns: u64,
}

impl WorkerState {
    /// An operation or a step of one begins. Gives what was under way before, for its end.
    pub fn begin_step(
        &mut self,
        index: u32,
        step: &OperationStep,
        times: Option<Times>,
        handed_ns: u64,
    ) -> Slot {
        let stream = &mut self.streams[index as usize];
        let cell = (self.plan.streams[stream.id as usize].tree.as_ref()).map(|its| its.cell);
        let slot = &mut self.slots[stream.first_slot as usize];
        let outer = *slot;
        slot.intended_ns = times.map_or(handed_ns, |times| times.intended_ns);
        slot.picked_ns = times.map_or(handed_ns, |times| times.picked_ns);
        slot.handed_ns = handed_ns;
        slot.offset = step.offset;
        slot.len = step.bytes;
        slot.row = self.rows.row(cell.unwrap_or(0), step.op);
        slot.target = step.target;
        let counters = &mut self.counters[index as usize];
        match step.op {
            AnyOp::Io(op) => {
                (slot.op, slot.file_op) = (op, None);
                counters.issued[op as usize] += 1;
            }
            AnyOp::File(op) => {
                slot.file_op = Some(op);
                counters.file_ops[op.index()].issued += 1;
            }
        }
        if outer.handed_ns == NOT_HANDED {
            stream.room.take();
            counters.depth[0] += 1;
            self.count_submit(1);
        }
        if self.first {
            self.first = false;
            self.say(Message::First { handed_ns });
        }
        outer
    }

    /// It ends: with the bytes it moved, or an error number.
    pub fn end_step(&mut self, index: u32, outer: Slot, outcome: Result<u32, i32>, now: u64) {
        let ramp = self.streams[index as usize].ramp();
        let slot = self.leave_step(index, outer, now);
        let (row, moved) = (slot.row + ramp, outcome.unwrap_or(0));
        let failed = outcome.is_err() || moved < slot.len.min(1);
        let counters = &mut self.counters[index as usize];
        match slot.file_op {
            Some(op) if failed => counters.file_ops[op.index()].failed += 1,
            Some(op) => counters.file_ops[op.index()].completed += 1,
            None if failed => counters.failed[slot.op as usize] += 1,
            None => counters.completed[slot.op as usize] += 1,
        }
        if failed {
            self.table.totals_mut(row).errors += 1;
        } else {
            self.table.add(&start_run(row, &slot, moved.into(), now));
            self.table.totals_mut(row).shorts += u64::from(moved < slot.len);
        }
        let stream = &mut self.streams[index as usize];
        stream.note_done(now);
        if outer.handed_ns == NOT_HANDED {
            self.batches.complete[batch_column(1)] += 1;
        }
    }

    /// It was left before its end, because the stream's time is over: it counts as begun.
    pub fn abandon_step(&mut self, index: u32, outer: Slot, now: u64) {
        self.leave_step(index, outer, now);
    }

    fn leave_step(&mut self, index: u32, outer: Slot, now: u64) -> Slot {
        let stream = &mut self.streams[index as usize];
        let first_slot = stream.first_slot;
        if outer.handed_ns == NOT_HANDED {
            stream.room.give_back(first_slot, now);
            self.in_flight -= 1;
        }
        std::mem::replace(&mut self.slots[first_slot as usize], outer)
    }

    /// One thing that was asked for is done or has failed; `bytes` were moved by it.
    pub fn count_requested(&mut self, index: u32, asked_bytes: u32, moved_bytes: u32) {
        let stream = &mut self.streams[index as usize];
        stream.left.spend_ops(1);
        stream.left.spend_bytes_up_to(asked_bytes);
        if let Some(schedule) = &mut stream.schedule {
            let whole = loadstone_generation::pace::Schedule::WHOLE;
            schedule.issued(whole, asked_bytes);
            schedule.completed(whole.kind(), u64::from(moved_bytes));
        }
        if let Some(flow) = &mut stream.flow {
            flow.took();
        }
    }

    /// Within an operation of many steps: hands in the interval when it is over. False when
    /// the stream is to issue nothing more; what is due then comes after the operation.
    pub fn goes_on(&mut self, index: u32, now: u64) -> bool {
        while now >= self.next_cut_ns {
            let time = self.next_cut_ns;
            self.cut(time, false);
            self.plan_cut(time);
            self.plan_event();
        }
        let stream = &self.streams[index as usize];
        let ordered = self.has_orders()
            && (self.lines.control.stopping() != crate::control::Stop::No
                || self.lines.control.stage_is_over(self.stage)
                || self.lines.control.stream_is_over(stream.id));
        let in_time = match stream.life.phase() {
            Phase::Simple { end_ns } | Phase::Running { end_ns } => now < end_ns,
            _ => false,
        };
        in_time && !ordered
    }

    /// Lets a stream have its next turn.
    pub fn requeue(&mut self, index: u32) {
        self.enqueue(index);
    }

    /// The file that was open at the end of a stream is closed.
    pub fn closed_at_end(&mut self, index: u32, now: u64) {
        self.streams[index as usize].flushes.leave_out();
        self.drained(index, now);
    }

    /// Says what failed or came back short. False when the stream has to end for it.
    pub fn say_failure(
        &mut self,
        index: u32,
        step: &OperationStep,
        place: &str,
        outcome: Result<u32, i32>,
        now: u64,
    ) -> bool {
        let id = self.streams[index as usize].id;
        let plan = &self.plan.streams[id as usize];
        let side = side_of(step.op);
        let (errno, moved) = (outcome.err().unwrap_or(0), outcome.unwrap_or(0));
        if errno != 0 && StreamState::ignores(plan, side, errno) {
            return true;
        }
        let goes_on = moved > 0 || StreamState::tolerates(plan, side, errno);
        let said = self.reported.errors.entry(step.target).or_default();
        *said += 1;
        if *said <= MAX_ERRORS_PER_TARGET {
            let what = match (errno, step.op) {
                (0, AnyOp::Io(OpKind::Read)) if moved == 0 => {
                    "end of the file: it is shorter than it was".into()
                }
                (0, _) => format!("short: only {moved} bytes moved"),
                _ => describe_errno(errno),
            };
            let name = step.op.name();
            let did = match step.op {
                AnyOp::Io(_) => format!("{name} of {} bytes at offset {}", step.bytes, step.offset),
                AnyOp::File(_) => name.into(),
            };
            self.say(Message::Event(Event::IoError(IoFailure {
                t_ns: self.run_time(now),
                stream: id,
                target: step.target,
                op: name,
                offset: step.offset,
                bytes: step.bytes,
                errno,
                moved,
                message: format!("{did} of {place}: {what}"),
            })));
        }
        goes_on
    }

    /// Ends a stream because of an error, whatever it was ending for.
    pub fn fail(&mut self, index: u32, now: u64) {
        self.end_because(index, Reason::Error, now);
    }
}

/// Which errors it is tolerated by: those of reads or those of writes.
fn side_of(op: AnyOp) -> OpKind {
    match op {
        AnyOp::Io(OpKind::Read)
        | AnyOp::File(FileOp::Open | FileOp::Close | FileOp::Getattr | FileOp::Access) => {
            OpKind::Read
        }
        AnyOp::Io(_) | AnyOp::File(_) => OpKind::Write,
    }
}
