//! A stream that does one I/O at a time and is alone: I/O after I/O, nothing in between.
//!
//! Knows the closed loop at depth 1 on a synchronous backend: the end of an I/O is the
//! intended start of the next, so nothing has to be queued. Knows no pace and no other
//! stream. Whatever is due or unusual is left to the loop that can do everything.

use super::Worker;
use crate::backend::{Backend, Done};
use crate::stream::Reason;

/// Why a streak ends.
enum Ending {
    /// An event or an order is due.
    Due,
    /// The next I/O does not fit into what the stream may move.
    Bytes,
    /// The last I/O was short or failed.
    Unusual(Done),
}

impl<B: Backend> Worker<B> {
    /// Does I/Os of the stream until it is time for something else; gives the time then.
    pub(super) fn streak(&mut self, index: u32, mut now: u64) -> u64 {
        let Some((slot, mut intended_ns)) = self.state.begin_streak(index) else {
            return now;
        };
        let mut count = 0;
        let ending = loop {
            if now >= self.state.next_event_ns || self.state.has_orders() {
                break Ending::Due;
            }
            let stream = &mut self.state.streams[index as usize];
            let next = stream.generator.next();
            if u64::from(next.len) > stream.bytes_left {
                break Ending::Bytes;
            }
            stream.bytes_left = stream.bytes_left.wrapping_sub(u64::from(next.len));
            self.issue::<true>(index, slot, &next, intended_ns, now);
            self.state.counters[index as usize].depth[0] += 1;
            count += 1;
            now = self.backend.now_ns();
            let mut ended = Done { slot, result: 0 };
            self.backend.reap(1, &mut |done| ended = done);
            if ended.result != next.len as i32 {
                break Ending::Unusual(ended);
            }
            self.state.complete_alone(index, slot, now);
            intended_ns = now;
        };
        self.state.end_streak(count);
        match ending {
            Ending::Due => self.state.free_slot(index, slot, now),
            Ending::Bytes => {
                self.state.free_slot(index, slot, now);
                self.state.stop_issuing(index, Reason::Bytes, now);
            }
            Ending::Unusual(done) => self.state.complete(done, now),
        }
        now
    }
}
