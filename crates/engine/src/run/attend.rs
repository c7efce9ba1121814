//! What the main thread does while workers work: takes what they send, and looks after them.
//!
//! Knows their messages. Which of them are silent or lost is known to [`super::watch`].

use super::fine_samples::FineSamples;
use super::watch::{stream_ends, WatchedWorker};
use super::{Run, LOOK_UP};
use crate::budget::spare_tables;
use crate::setup::WorkerHandle;
use loadstone_base::run_error::RunError;
use loadstone_worker::control::{Message, StageStart};
use loadstone_worker::events::Event;
use std::sync::mpsc::RecvTimeoutError;

impl Run {
    /// Serves the workers of a stage until all of them have ended.
    pub(super) fn attend(
        &mut self,
        stage: u32,
        hands: &mut [WorkerHandle],
        start: StageStart,
    ) -> Result<(), RunError> {
        self.stopped_ns = None;
        self.hung = vec![false; self.plan.targets.len()];
        let ends_ns = stream_ends(&self.plan, start.clock_ns);
        let watch = |hand| WatchedWorker::new(&self.plan, hand, &ends_ns, start);
        let mut seen: Vec<WatchedWorker> = hands.iter().map(watch).collect();
        let virtual_clock = hands.iter().any(|hand| self.is_virtual(hand));
        let mut fine = (!virtual_clock).then(|| FineSamples::new(stage, hands, start.offset_ns));
        let mut looked_up_ns = start.clock_ns;
        let most_said = self.most_said(hands);
        while !seen.iter().all(WatchedWorker::has_ended) {
            let asleep_ns = self.clock.now_ns();
            let nap = fine.as_ref().map_or(LOOK_UP, |fine| {
                fine.wait(asleep_ns - self.origin_ns).min(LOOK_UP)
            });
            let mail = self.inbox.recv_timeout(nap);
            let now = self.clock.now_ns();
            if let Some(fine) = &mut fine {
                let late_ns = (now - asleep_ns).saturating_sub(nap.as_nanos() as u64);
                self.sample(fine, hands, now, late_ns);
            }
            match mail {
                Ok(message) => self.receive(message, stage, hands, &mut seen)?,
                Err(RecvTimeoutError::Timeout) => {
                    if now < looked_up_ns + LOOK_UP.as_nanos() as u64 {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            looked_up_ns = now;
            // One look at all workers for what all of them say, not one for each message.
            for _ in 1..most_said {
                let Ok(message) = self.inbox.try_recv() else {
                    break;
                };
                self.receive(message, stage, hands, &mut seen)?;
            }
            self.look_up(stage, hands, &mut seen)?;
        }
        if let Some(event) = fine.as_mut().and_then(|fine| fine.told(true)) {
            self.speaker.say(&event);
        }
        self.hear_the_last(stage, hands, &mut seen)
    }

    /// Messages that may be waiting when the first of them is taken: each worker sends a table at
    /// a time, and has so many.
    fn most_said(&self, hands: &[WorkerHandle]) -> usize {
        let tables = hands
            .iter()
            .map(|hand| spare_tables(&self.plan, hand.worker));
        tables.sum()
    }

    /// Waits for the threads of a stage, and takes what they still sent.
    fn hear_the_last(
        &mut self,
        stage: u32,
        hands: &mut [WorkerHandle],
        seen: &mut [WatchedWorker],
    ) -> Result<(), RunError> {
        if !self.lost {
            for thread in hands.iter_mut().filter_map(|hand| hand.thread.take()) {
                let _ = thread.join();
            }
        }
        while let Ok(message) = self.inbox.try_recv() {
            self.receive(message, stage, hands, seen)?;
        }
        self.write_until(u64::MAX)
    }

    /// Takes a fine sample when one is due, and says what there is to be said.
    fn sample(&mut self, fine: &mut FineSamples, hands: &[WorkerHandle], now: u64, late_ns: u64) {
        let run_ns = now - self.origin_ns;
        if !fine.is_due(run_ns) {
            return;
        }
        if let Some(event) = fine.take(hands, run_ns, late_ns) {
            self.speaker.say(&event);
        }
        if let Some(event) = fine.told(false) {
            self.speaker.say(&event);
        }
    }

    fn receive(
        &mut self,
        message: Message,
        stage: u32,
        hands: &mut [WorkerHandle],
        seen: &mut [WatchedWorker],
    ) -> Result<(), RunError> {
        match message {
            Message::Ready { .. } => {}
            Message::Failed { message, hint, .. } => return Err(RunError::broken(message, hint)),
            Message::First { handed_ns } => self.say_start(handed_ns),
            Message::Event(event) => self.pass_on(&event),
            Message::Ios {
                worker,
                mut records,
            } => {
                self.write(|reporter, _| reporter.write_ios(&records))?;
                records.clear();
                if let Some(at) = place_of(worker, hands) {
                    let _ = hands[at].log_blocks.send(records);
                }
            }
            Message::Cut {
                worker,
                mut table,
                last,
            } => {
                let Some(at) = place_of(worker, hands) else {
                    return Ok(());
                };
                if seen[at].has_ended() {
                    return Ok(()); // given up, and its table taken, before it came back
                }
                self.reporter.take(&table, &hands[at].rows, stage);
                seen[at].progress_ns = if last { u64::MAX } else { table.end_ns };
                table.clear();
                let _ = hands[at].tables.send(table);
            }
        }
        Ok(())
    }

    /// Says what a worker tells, and keeps what of it decides over the end.
    fn pass_on(&mut self, event: &Event) {
        match event {
            // Of a worker that was given up and came back it is known.
            Event::StreamEnd(end) if self.ended[end.stream as usize] => return,
            Event::StreamEnd(end) => self.ended[end.stream as usize] = true,
            Event::Hung { target, .. } => {
                self.hung[*target as usize] = true;
                self.abandoned = true;
            }
            _ => {}
        }
        self.speaker.say(event);
    }
}

/// Where a worker is among those of a stage, which are in the Plan's order.
fn place_of(worker: u32, hands: &[WorkerHandle]) -> Option<usize> {
    hands.binary_search_by_key(&worker, |hand| hand.worker).ok()
}
