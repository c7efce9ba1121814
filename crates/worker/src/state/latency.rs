//! What a latency leads to: a failure of the stream, or another depth.
//!
//! Knows the depth a search asks for and how a stream gets there. Knows no histogram.

use super::WorkerState;
use crate::control::Message;
use crate::events::Event;
use crate::search::SearchStep;
use crate::slots::Slot;
use crate::stream::Reason;
use loadstone_base::ops::OpKind;

impl WorkerState {
    /// Holds a completion against the longest latency there may be, and tells the search.
    pub(super) fn watch_latency(&mut self, index: u32, slot: &Slot, now: u64) {
        if slot.op == OpKind::Sync {
            return;
        }
        let lat_ns = now.saturating_sub(slot.intended_ns);
        let stream = &mut self.streams[index as usize];
        if !stream.life.is_running() {
            return;
        }
        let max_ns = stream.max_latency_ns[slot.op as usize];
        if lat_ns > max_ns {
            self.end_too_late(index, slot, (lat_ns, max_ns), now);
            return;
        }
        // What is in flight from a deeper time says nothing of the depth to come.
        if stream.room.is_lowering() {
            return;
        }
        let Some(search) = &mut stream.search else {
            return;
        };
        match search.completed(lat_ns, now) {
            SearchStep::Stay => {}
            SearchStep::Deeper(depth) => {
                stream.room.deepen(depth, now);
                self.say_depth(index, false, now);
            }
            SearchStep::Shallower(depth) => {
                stream.room.lower(depth);
                self.say_depth(index, false, now);
            }
            SearchStep::Found => {
                stream.end_ramp();
                self.counters[index as usize].ramp_end_ns = self.run_time(now);
                self.mark_live(index);
                self.say_depth(index, true, now);
            }
            SearchStep::Over => self.stop_issuing(index, Reason::Found, now),
            SearchStep::Missed => {
                self.say(Message::Event(Event::Note {
                    text: "the latency target is missed with a single I/O in flight".into(),
                    worker: Some(self.worker),
                    target: Some(slot.target),
                }));
                self.stop_issuing(index, Reason::Latency, now);
            }
        }
    }

    fn end_too_late(&mut self, index: u32, slot: &Slot, latency: (u64, u64), now: u64) {
        let (lat_ns, max_ns) = latency;
        self.say(Message::Event(Event::TooLate {
            t_ns: self.run_time(now),
            stream: self.streams[index as usize].id,
            target: slot.target,
            op: slot.op.name(),
            offset: slot.offset,
            bytes: slot.len,
            lat_ns,
            max_ns,
        }));
        self.say_too_late(slot, lat_ns);
        self.stop_issuing(index, Reason::Latency, now);
    }

    fn say_depth(&mut self, index: u32, found: bool, now: u64) {
        let stream = &self.streams[index as usize];
        self.say(Message::Event(Event::Depth {
            t_ns: self.run_time(now),
            stream: stream.id,
            depth: stream.room.limit(),
            found,
        }));
        self.set_patience();
    }

    #[cold]
    fn say_too_late(&self, slot: &Slot, lat_ns: u64) {
        let path = &self.plan.targets[slot.target as usize].path;
        self.say(Message::Event(Event::Note {
            text: format!(
                "a {} of {} bytes at offset {} of {path} took {:.3} ms, longer than it may",
                slot.op.name(),
                slot.len,
                slot.offset,
                lat_ns as f64 / 1e6,
            ),
            worker: Some(self.worker),
            target: Some(slot.target),
        }));
    }
}
