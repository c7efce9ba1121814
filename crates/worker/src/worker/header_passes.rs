//! The I/Os of a stream that verifies by headers: passes of work, each read back after it.
//!
//! Knows how what the [`Readback`] wants becomes an I/O. Knows no header.

use super::{WorkerLoop, SKIPS};
use crate::state::WorkerState;
use crate::stream::Reason;
use loadstone_generation::pattern::NextIo;
use loadstone_io::backend::{IoBackend, Op};
use loadstone_verification::headers::history::Piece;
use loadstone_verification::headers::readback::{place_of, Part};

/// What came of a try.
enum PassStep {
    /// An I/O was issued.
    Issued,
    /// There is nothing to issue now.
    Nothing,
    /// Something else is to be tried.
    Again,
}

impl<B: IoBackend> WorkerLoop<B> {
    /// Issues the next I/O of a stream with a readback; false when there is none now.
    pub(super) fn issue_kept(&mut self, index: u32, now: u64) -> bool {
        for _ in 0..SKIPS {
            let step = match self.part(index) {
                Some(Part::Work) => self.work_on(index, now),
                Some(Part::ReadBack) => self.read_back(index, now),
                Some(Part::Settling | Part::Closing) => {
                    let stream = &self.state.streams[index as usize];
                    if stream.room.in_flight() > 0 {
                        PassStep::Nothing
                    } else {
                        go_on(&mut self.state, index, now)
                    }
                }
                None => PassStep::Nothing,
            };
            match step {
                PassStep::Issued => return true,
                PassStep::Nothing => return false,
                PassStep::Again => {}
            }
        }
        // Other streams get their turn.
        self.state.wake_at(index, now + 1);
        false
    }

    fn part(&self, index: u32) -> Option<Part> {
        let readback = self.state.streams[index as usize].checks.readback();
        readback.map(|readback| readback.part)
    }

    fn work_on(&mut self, index: u32, now: u64) -> PassStep {
        let stream = &mut self.state.streams[index as usize];
        let Some(readback) = stream.checks.readback_mut() else {
            return PassStep::Nothing;
        };
        if readback.rehearses() {
            return self.rehearse(index);
        }
        if let Some((next, piece)) = readback.due_between() {
            return self.issue_piece(index, &next, piece, now);
        }
        if stream.left.is_out_of_ops() || readback.is_at_the_end() {
            readback.part = Part::Settling;
            return PassStep::Again;
        }
        if let Some(next_look_ns) = stream.held_by_flow(now) {
            self.state.wake_at(index, next_look_ns);
            return PassStep::Nothing;
        }
        let Some((next, arrival_ns)) = self.next_apart(index, now) else {
            return PassStep::Nothing;
        };
        let stream = &mut self.state.streams[index as usize];
        if !stream.left.fits(next.len) {
            if let Some(readback) = stream.checks.readback_mut() {
                readback.part = Part::Settling;
            }
            return PassStep::Again;
        }
        let Some((slot, free_ns)) = stream.take_slot_for(&next) else {
            return PassStep::Nothing;
        };
        self.issue_for(
            index,
            slot,
            (&next, &next),
            arrival_ns.unwrap_or(free_ns),
            now,
        );
        PassStep::Issued
    }

    /// An I/O that another run made: it is only remembered.
    fn rehearse(&mut self, index: u32) -> PassStep {
        let stream = &mut self.state.streams[index as usize];
        let Some(readback) = stream.checks.readback_mut() else {
            return PassStep::Nothing;
        };
        let goes_on = !stream.left.is_out_of_ops();
        let next = goes_on.then(|| stream.generator.next());
        match next.filter(|next| stream.left.fits(next.len)) {
            Some(next) => {
                readback.rehearse(&next);
                stream.left.spend_bytes(next.len);
                stream.left.spend_ops(1);
            }
            None => readback.part = Part::Settling,
        }
        PassStep::Again
    }

    fn read_back(&mut self, index: u32, now: u64) -> PassStep {
        let stream = &mut self.state.streams[index as usize];
        let Some(readback) = stream.checks.readback_mut() else {
            return PassStep::Nothing;
        };
        match readback.take_wanted() {
            Some(piece) => self.issue_piece(index, &place_of(&piece, Op::Read), piece, now),
            None => {
                readback.part = Part::Closing;
                PassStep::Again
            }
        }
    }

    fn issue_piece(&mut self, index: u32, next: &NextIo, piece: Piece, now: u64) -> PassStep {
        let stream = &mut self.state.streams[index as usize];
        let Some((slot, free_ns)) = stream.take_slot() else {
            unreachable!("a stream that can issue has a free slot")
        };
        if let Some(readback) = stream.checks.readback_mut() {
            readback.coming = Some(piece);
        }
        stream.left.spend_ops(1);
        self.issue_for(index, slot, (next, next), free_ns, now);
        PassStep::Issued
    }
}

/// The next part begins: nothing is in flight.
fn go_on(state: &mut WorkerState, index: u32, now: u64) -> PassStep {
    let stream = &mut state.streams[index as usize];
    let Some(readback) = stream.checks.readback_mut() else {
        return PassStep::Nothing;
    };
    if readback.part == Part::Settling && readback.reads_back() {
        readback.begin_reading(now);
        return PassStep::Again;
    }
    let plan = &state.plan.streams[stream.id as usize];
    if !stream.left.is_out_of_ops() && readback.next_pass(plan.limits.time_based, now) {
        stream.left.begin_pass(readback.bytes_per_pass);
        stream.generator = loadstone_generation::pattern::Generator::new(plan);
        return PassStep::Again;
    }
    let reason = if stream.left.is_out_of_ops() {
        Reason::Ops
    } else {
        Reason::Bytes
    };
    state.stop_issuing(index, reason, now);
    PassStep::Nothing
}
