//! A stream that does one I/O at a time and is alone: I/O after I/O, nothing in between.
//!
//! Knows the closed loop at depth 1 on a synchronous backend: the end of an I/O is the
//! intended start of the next, so nothing has to be queued, and when next to nothing is
//! done in between one reading of the clock stands for both. Knows no pace and no other
//! stream. Whatever is due or unusual is left to the loop that can do everything.

use super::{fill_slot, WorkerLoop};
use crate::stream::Reason;
use loadstone_io::backend::{Done, IoBackend};

/// Why a streak ends.
enum StreakEnd {
    /// An event or an order is due.
    Due,
    /// The next I/O does not fit into what the stream may move.
    Bytes,
    /// The last I/O was short or failed.
    Unusual(Done),
}

impl<B: IoBackend> WorkerLoop<B> {
    /// Does I/Os of the stream until it is time for something else; gives the time then.
    pub(super) fn streak(&mut self, index: u32, mut now: u64) -> u64 {
        let Some((slot, mut intended_ns)) = self.state.begin_streak(index) else {
            return now;
        };
        let mut count = 0;
        let mut lane = self.state.lane(index, slot);
        let ending = loop {
            if lane.is_over(now) {
                break StreakEnd::Due;
            }
            let next = lane.stream.generator.next();
            if !lane.stream.left.fits(next.len) {
                break StreakEnd::Bytes;
            }
            lane.stream.left.spend_bytes(next.len);
            let io = fill_slot::io(lane.stream, slot, lane.slot, &next, intended_ns, now);
            let quick = fill_slot::fill(lane.stream, lane.slot);
            lane.slot.handed_ns = if quick { now } else { self.backend.now_ns() };
            lane.counters.issued[lane.slot.op as usize] += 1;
            count += 1;
            let outcome = self.backend.perform(io);
            now = self.backend.now_ns();
            if !outcome.is_moved(next.len) {
                break StreakEnd::Unusual(Done::new(slot, outcome));
            }
            lane.complete(now);
            intended_ns = now;
        };
        self.state.end_streak(index, count);
        match ending {
            StreakEnd::Due => self.state.free_slot(index, slot, now),
            StreakEnd::Bytes => {
                self.state.free_slot(index, slot, now);
                self.state.stop_issuing(index, Reason::Bytes, now);
            }
            StreakEnd::Unusual(done) => self.state.complete(done, now),
        }
        now
    }
}
