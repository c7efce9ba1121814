//! What happens when: starts, ends of ramps and of time, pauses, orders to stop.
//!
//! Knows times and phases. Knows no completion and no histogram.

use std::cmp::Reverse;

use super::{Timer, WorkerState, BATCH, LEAVE_NS};
use crate::control::Stop;
use crate::search::DepthFinder;
use crate::stream::{Reason, Turn};

/// Longest that a completion may lie unseen for others to be taken with it.
const PATIENCE_NS: u128 = 100_000;

impl WorkerState {
    /// Starts the stage. A virtual clock's start is the stage's start.
    pub fn begin(&mut self, now: u64, is_virtual: bool) {
        if is_virtual {
            self.stage_start_ns = now;
        }
        let start = self.stage_start_ns;
        self.shift_ns = start.wrapping_sub(self.stage_offset_ns);
        for index in 0..self.streams.len() {
            let stream = &self.plan.streams[self.streams[index].id as usize];
            if stream.wait_for.is_empty() {
                let begins = start + stream.limits.start_delay_ns;
                self.timers
                    .push(Reverse((begins, Timer::Start, index as u32)));
            }
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

    pub(super) fn plan_event(&mut self) {
        let timer = self
            .timers
            .peek()
            .map_or(u64::MAX, |Reverse((time, _, _))| *time);
        self.next_event_ns = match self.to_be_opened.is_empty() {
            true => timer.min(self.next_cut_ns),
            false => 0,
        };
    }

    /// True when an order arrived that was not yet obeyed.
    #[inline]
    #[must_use]
    pub fn has_orders(&self) -> bool {
        self.lines.control.orders() != self.orders_seen
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
        self.refresh_patience();
        self.plan_event();
    }

    pub(super) fn obey(&mut self, now: u64) {
        let orders = self.lines.control.orders();
        if orders == self.orders_seen {
            return;
        }
        self.orders_seen = orders;
        let stop = self.lines.control.stopping();
        let all_over = stop != Stop::No || self.lines.control.stage_is_over(self.stage);
        let leaving = stop == Stop::Now && self.stop_seen != Stop::Now;
        self.stop_seen = stop;
        self.start_those_who_waited(now);
        for index in 0..self.streams.len() as u32 {
            let over = all_over
                || self
                    .lines
                    .control
                    .stream_is_over(self.streams[index as usize].id);
            if self.streams[index as usize].life.ending().is_some() {
                if stop != Stop::No {
                    self.set_grace(index, now + self.grace_ns());
                }
            } else if over {
                self.stop_issuing(index, Reason::Stopped, now);
            }
            if leaving {
                self.streams[index as usize].flushes.leave_out();
                self.set_grace(index, now + LEAVE_NS);
            }
        }
    }

    /// Streams wait for others by looking when there is an order: an end is one.
    fn start_those_who_waited(&mut self, now: u64) {
        for index in 0..self.streams.len() {
            let stream = &self.streams[index];
            let plan = &self.plan.streams[stream.id as usize];
            if !stream.life.is_waiting() || stream.turn != Turn::Idle {
                continue;
            }
            if let Some(ended_ns) = self.lines.control.ended_ns(&plan.wait_for) {
                // The clock was read before that end was seen.
                let late_ns = ended_ns.saturating_sub(self.run_time(now));
                let begins = now + late_ns + plan.limits.start_delay_ns;
                // It waits no more, but for its time.
                self.streams[index].turn.sleep(begins);
                self.timers
                    .push(Reverse((begins, Timer::Start, index as u32)));
            }
        }
    }

    pub(super) fn set_grace(&mut self, index: u32, time_ns: u64) {
        if self.streams[index as usize].life.hurry(time_ns) {
            self.timers.push(Reverse((time_ns, Timer::Grace, index)));
            self.plan_event();
        }
    }

    pub(super) fn fire(&mut self, timer: Timer, index: u32, time: u64, now: u64) {
        match timer {
            Timer::Start => self.start_stream(index, time, now),
            Timer::RampEnd => {
                if !self.streams[index as usize].life.has_ended() {
                    self.streams[index as usize].end_ramp();
                    self.mark_live(index);
                }
            }
            Timer::End => self.stop_issuing(index, Reason::Runtime, now),
            Timer::Wake => {
                if self.streams[index as usize].turn.fired(time) {
                    self.enqueue(index);
                }
            }
            Timer::Check => self.check_rate(index, now),
            Timer::Grace => {
                let ending = self.streams[index as usize].life.ending();
                if ending.is_some_and(|ending| ending.grace_ns == time) {
                    self.give_up(index, now);
                }
            }
        }
    }

    pub(super) fn start_stream(&mut self, index: u32, time: u64, now: u64) {
        if !self.streams[index as usize].life.is_waiting() {
            return;
        }
        let limits = self.plan.streams[self.streams[index as usize].id as usize].limits;
        let ramp_end = time + limits.ramp_ns;
        let (started, ramp_end_run) = (self.run_time(time), self.run_time(ramp_end));
        let end_ns = match limits.runtime_ns {
            0 => u64::MAX,
            runtime_ns => ramp_end + runtime_ns,
        };
        let stream = &mut self.streams[index as usize];
        stream.start(time, end_ns);
        if limits.ramp_ns > 0 {
            self.timers.push(Reverse((ramp_end, Timer::RampEnd, index)));
        }
        if limits.runtime_ns > 0 {
            self.timers.push(Reverse((end_ns, Timer::End, index)));
        }
        if let Some(schedule) = &mut stream.schedule {
            schedule.start(time);
            if let Some(check) = schedule.next_check_ns() {
                self.timers.push(Reverse((check, Timer::Check, index)));
            }
        }
        let counters = &mut self.counters[index as usize];
        counters.started_ns = started;
        // What a search measures on its way is not its result.
        let searching = self.streams[index as usize]
            .search
            .as_ref()
            .is_some_and(DepthFinder::is_searching);
        self.counters[index as usize].ramp_end_ns = if searching { u64::MAX } else { ramp_end_run };
        self.mark_live(index);
        self.wait.is_stale = true;
        if self.streams[index as usize].room.is_to_be_opened() {
            self.note_to_be_opened(index);
        }
        self.enqueue(index);
        debug_assert!(now >= time);
    }

    /// Sets the patience once for all streams that began or ended together: looking at
    /// every stream for each of them would take longer than thousands of I/Os.
    #[inline]
    pub(super) fn refresh_patience(&mut self) {
        if self.wait.is_stale {
            self.set_patience();
        }
    }

    /// Sees at the end of an interval how fast completions come.
    pub(super) fn watch_ends(&mut self, time_ns: u64) {
        let (ends, since_ns) = std::mem::replace(&mut self.ends.at_cut, (self.ends.total, time_ns));
        let span_ns = time_ns.saturating_sub(since_ns.max(self.stage_start_ns));
        let soon = u128::from(self.ends.total - ends) * PATIENCE_NS / u128::from(span_ns.max(1));
        self.ends.soon = u32::try_from(soon).unwrap_or(u32::MAX);
        self.wait.is_stale = true;
    }

    /// Waiting for several completions at a time costs no more latency than a share of
    /// the depth: with N in flight an I/O takes N completions' time, so waiting for N/16
    /// adds at most 1/16 and 1/32 on average. Nor does it cost more than [`PATIENCE_NS`]:
    /// of a slow device every completion is taken when it comes. The shallowest stream
    /// decides.
    pub(super) fn set_patience(&mut self) {
        self.wait.is_stale = false;
        let (mut target, mut most, mut batch) = (u32::MAX, u32::MAX, BATCH);
        for stream in self
            .streams
            .iter()
            .filter(|stream| stream.life.is_running())
        {
            let plan = &self.plan.streams[stream.id as usize];
            let own = match plan.batch {
                Some(batch) => batch.complete_min,
                None if stream.schedule.is_some() || stream.thinking.is_some() => 1,
                None => (stream.room.limit() / 16).min(self.ends.soon),
            };
            target = target.min(own.max(1));
            most = most.min(
                plan.batch
                    .map_or(u32::MAX, |batch| batch.complete_max.max(1)),
            );
            batch = batch.max(plan.batch.map_or(0, |batch| batch.submit));
        }
        self.wait.target = if target == u32::MAX { 1 } else { target };
        self.wait.reap_max = most;
        self.wait.batch_max = batch;
    }

    #[inline]
    pub(super) fn enqueue(&mut self, index: u32) {
        let stream = &mut self.streams[index as usize];
        if stream.can_issue() && stream.turn.queue() {
            self.ready.push_back(index);
        }
    }

    /// Queues a stream again at `time_ns`.
    pub fn wake_at(&mut self, index: u32, time_ns: u64) {
        if self.streams[index as usize].turn.sleep(time_ns) {
            self.timers.push(Reverse((time_ns, Timer::Wake, index)));
            self.next_event_ns = self.next_event_ns.min(time_ns);
        }
    }

    /// A pause began that spins until then: that keeps the worker from sleeping.
    #[inline]
    pub fn spin_through(&mut self, spin_end_ns: Option<u64>) {
        if let Some(spin_end_ns) = spin_end_ns {
            self.spin_until_ns = self.spin_until_ns.max(spin_end_ns);
        }
    }

    pub(super) fn check_rate(&mut self, index: u32, now: u64) {
        let stream = &mut self.streams[index as usize];
        if !stream.life.is_running() {
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
}
