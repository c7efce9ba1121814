//! A simulated device on a virtual clock.
//!
//! Knows a queueing model: every file of the worker is one device of `servers` servers
//! fed from one queue in order of arrival (G/G/c), with stalls and faults. Time is a
//! number that moves only when somebody waits, so the same Plan and seed give the same
//! run, however busy the machine is. Touches no buffer, unless the device has a medium.
//!
//! Rules of the model:
//! * A device stands still from `k·stall_every_ns` for `stall_ns`, for k = 1, 2, …,
//!   counted from the clock's start. I/Os in service are held up, none begins.
//! * An I/O that hangs occupies no server: the device lost it and goes on.
//! * A failed or short I/O takes the time of a good one. A short one moves half its
//!   bytes.
//! * A flush is served like a write.
//! * A model with a `behaviour` is made of more than servers (`sim_behaviour.rs`).
//! * Handing over takes no time. A caller that only polls (waits for nothing, until no
//!   time, with nothing new) sees the clock move by 100 ns, or it would poll for ever.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;

use super::queue::CompletionQueue;
use super::sim_behaviour::{behave, limited, Remembered};
use super::sim_medium::{Faults, Medium};
use super::{Done, Io, IoBackend, Op, Outcome};
use loadstone_base::rng::{mix, Rng};
use loadstone_plan::{ServiceTime, SimDevice};

/// Where the clock starts: not at 0, which reads like "never" to whoever keeps times.
pub const START_NS: u64 = 1_000_000_000;
/// Cost of a poll that finds nothing.
const POLL_NS: u64 = 100;
const MILLION: u64 = 1_000_000;

/// The simulated backend.
#[derive(Debug)]
pub struct Sim {
    model: SimDevice,
    now_ns: u64,
    devices: Vec<Device>,
    /// Completions to come: time, number of the I/O, slot, outcome.
    coming: BinaryHeap<Reverse<(u64, u64, u32, Outcome)>>,
    done: CompletionQueue,
    count: u64,
    /// Something was handed over since the last flush.
    pushed: bool,
}

/// State of one device.
#[derive(Debug)]
struct Device {
    rng: Rng,
    /// When each server is free, counted from the clock's start.
    free_ns: BinaryHeap<Reverse<u64>>,
    /// Where data are kept, and what goes wrong there.
    medium: Option<(Arc<Medium>, Faults)>,
    /// What it is made of beside its servers, and whose limits hold.
    behaviour: Option<(Remembered, Remembered)>,
}

impl Sim {
    /// `files` devices like `model` on a clock that starts at [`START_NS`], for up to
    /// `depth` I/Os in flight.
    #[must_use]
    pub fn new(model: &SimDevice, files: usize, depth: u32) -> Self {
        // No more than `depth` I/Os are in service at a time, so more servers change nothing.
        let servers = model.servers.clamp(1, depth.max(1));
        let device = |file| Device {
            rng: Rng::new(mix(model.seed) ^ file as u64),
            free_ns: (0..servers).map(|_| Reverse(0)).collect(),
            medium: None,
            behaviour: None,
        };
        Self {
            model: model.clone(),
            now_ns: START_NS,
            devices: (0..files).map(device).collect(),
            coming: BinaryHeap::with_capacity(depth as usize),
            done: CompletionQueue::new(depth),
            count: 0,
            pushed: false,
        }
    }

    /// Gives every device its medium, when the model has faults.
    #[must_use]
    pub fn with_media(mut self, media: impl Iterator<Item = Arc<Medium>>) -> Self {
        if let Some(faults) = self.model.faults {
            for (file, (device, medium)) in self.devices.iter_mut().zip(media).enumerate() {
                let seed = mix(self.model.seed ^ 0xfa17) ^ file as u64;
                device.medium = Some((medium, Faults::new(faults, seed)));
            }
        }
        self
    }

    /// Gives every device the state of its target, when the model has any.
    #[must_use]
    pub fn with_states(mut self, states: &[Remembered], first: &Remembered) -> Self {
        if let Some(model) = &self.model.behaviour {
            for (device, state) in self.devices.iter_mut().zip(states) {
                let limits = if model.shared_limits { first } else { state };
                device.behaviour = Some((state.clone(), limits.clone()));
            }
        }
        self
    }

    /// Moves the clock to the next completion if that is not after `until_ns`.
    fn advance(&mut self, until_ns: u64) -> bool {
        match self.coming.peek() {
            Some(&Reverse((time_ns, _, slot, outcome))) if time_ns <= until_ns => {
                self.coming.pop();
                self.now_ns = self.now_ns.max(time_ns);
                self.done.push(slot, outcome);
                true
            }
            _ => false,
        }
    }
}

/// Time a service of `service_ns` begun at `start_ns` ends, with the stalls in
/// between (both counted from the clock's start); none when the device never moves again.
fn end_of_service(model: &SimDevice, start_ns: u64, service_ns: u64) -> Option<u64> {
    let (every, stall) = (model.stall_every_ns, model.stall_ns);
    if every == 0 || stall == 0 {
        return start_ns.checked_add(service_ns);
    }
    // Count only time the device works: before the first stall all of it, later
    // `every - stall` of every period.
    let working = every.saturating_sub(stall);
    let worked = |time: u64| match time / every {
        0 => time,
        periods => {
            let into = (time % every).saturating_sub(stall).min(working);
            every + (periods - 1) * working + into
        }
    };
    let target = worked(start_ns).checked_add(service_ns)?;
    if target <= every {
        return Some(target.max(start_ns));
    }
    if working == 0 {
        return None;
    }
    // Whole periods of work before the one it ends in; an end on the edge is before the
    // next stall.
    let beyond = target - every;
    let periods = (beyond - 1) / working;
    let into = beyond - periods * working;
    (periods + 1)
        .checked_mul(every)?
        .checked_add(stall + into)
        .map(|end| end.max(start_ns))
}

impl Device {
    /// When and how an I/O that arrives at `arrival_ns` completes, both counted from the
    /// clock's start; none: never.
    fn serve(&mut self, model: &SimDevice, arrival_ns: u64, io: &Io) -> Option<(u64, Outcome)> {
        // Always two draws, so that one I/O's fate does not shift those of the next.
        let fate = self.rng.below(MILLION);
        let luck = self.rng.unit();
        let (hang, error) = (u64::from(model.hang_ppm), u64::from(model.error_ppm));
        if fate < hang {
            return None;
        }
        let outcome = match io.op {
            _ if fate < hang + error => Outcome::failed(libc::EIO),
            Op::Sync(_) => Outcome::moved(0),
            _ if fate < hang + error + u64::from(model.short_ppm) => Outcome::moved(io.len / 2),
            _ => Outcome::moved(io.len),
        };
        let mean_ns = if io.op == Op::Read {
            model.read_ns
        } else {
            model.write_ns
        };
        let service_ns = match model.service {
            ServiceTime::Constant => mean_ns,
            ServiceTime::Exponential => (-luck.ln() * mean_ns as f64) as u64,
            ServiceTime::Uniform => (luck * 2.0 * mean_ns as f64) as u64,
        };
        if let (Some(made_of), Some((state, limits))) = (&model.behaviour, &self.behaviour) {
            let slots = &mut self.free_ns;
            let stalled = |start_ns, service_ns| end_of_service(model, start_ns, service_ns);
            let begin_ns = limited(made_of, limits, arrival_ns, io.len);
            let end_ns = behave(made_of, state, slots, io, begin_ns, service_ns, &stalled);
            return end_ns.map(|end_ns| (end_ns, outcome));
        }
        let Reverse(free_ns) = self.free_ns.pop()?;
        let end_ns = end_of_service(model, arrival_ns.max(free_ns), service_ns);
        self.free_ns.push(Reverse(end_ns.unwrap_or(u64::MAX)));
        end_ns.map(|end_ns| (end_ns, outcome))
    }
}

impl IoBackend for Sim {
    const VIRTUAL: bool = true;

    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn push(&mut self, io: Io) {
        self.pushed = true;
        self.count += 1;
        let device = &mut self.devices[io.file as usize];
        let arrival_ns = self.now_ns - START_NS;
        if let Some((end_ns, outcome)) = device.serve(&self.model, arrival_ns, &io) {
            let time_ns = START_NS.saturating_add(end_ns);
            if let (Some((medium, faults)), Some(moved)) = (&mut device.medium, outcome.bytes()) {
                let moved = if io.op == Op::Trim { io.len } else { moved };
                medium.perform(&io, moved, faults);
            }
            self.coming
                .push(Reverse((time_ns, self.count, io.slot, outcome)));
        }
    }

    fn flush(&mut self, wait_for: u32, until_ns: u64) -> io::Result<()> {
        let pushed = std::mem::take(&mut self.pushed);
        // What is over by now costs no waiting.
        while self.advance(self.now_ns) {}
        while (self.done.len() as u32) < wait_for && self.advance(until_ns) {}
        if self.done.len() as u32 >= wait_for.max(1) {
            return Ok(());
        }
        if until_ns > self.now_ns {
            // Nothing is lost by jumping: until then nothing happens, or, without a
            // number to wait for, only what the caller would see at its next poll.
            let next_ns = match self.coming.peek() {
                Some(&Reverse((time_ns, ..))) if wait_for == 0 => time_ns.min(until_ns),
                _ => until_ns,
            };
            if next_ns != u64::MAX {
                self.now_ns = next_ns;
            }
            while self.advance(self.now_ns) {}
        } else if !pushed {
            self.now_ns += POLL_NS;
        }
        Ok(())
    }

    #[inline]
    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        self.done.reap(max, take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_base::rng::Rng;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn model(service: ServiceTime) -> SimDevice {
        SimDevice {
            seed: 1,
            servers: 1,
            read_ns: 1000,
            write_ns: 3000,
            service,
            stall_every_ns: 0,
            stall_ns: 0,
            error_ppm: 0,
            short_ppm: 0,
            hang_ppm: 0,
            faults: None,
            behaviour: None,
        }
    }

    fn io(slot: u32, op: Op) -> Io {
        Io {
            slot,
            op,
            file: 0,
            offset: 0,
            len: 4096,
            buffer: std::ptr::null_mut(),
            priority: 0,
        }
    }

    /// Time since the clock's start.
    fn time(sim: &mut Sim) -> u64 {
        sim.now_ns() - START_NS
    }

    /// A closed loop of reads at this depth: completion time, slot, result and latency.
    fn closed_loop(sim: &mut Sim, depth: u32, count: usize) -> Vec<(u64, u32, Outcome, u64)> {
        let mut begun = vec![time(sim); depth as usize];
        let mut seen = Vec::new();
        (0..depth).for_each(|slot| sim.push(io(slot, Op::Read)));
        while seen.len() < count {
            sim.flush(1, u64::MAX).unwrap();
            let now = time(sim);
            let mut free = Vec::new();
            let reaped = sim.reap(depth, &mut |done| {
                let latency = now - begun[done.slot as usize];
                seen.push((now, done.slot, done.outcome, latency));
                free.push(done.slot);
            });
            assert!(reaped > 0, "an I/O was lost");
            for slot in free {
                begun[slot as usize] = now;
                sim.push(io(slot, Op::Read));
            }
        }
        seen
    }

    /// Regression, found by fuzzing Plans: a table of 2^31 servers was filled before the start.
    #[test]
    fn more_servers_than_depth_are_the_same_as_depth() {
        let with = |servers| {
            let model = SimDevice {
                servers,
                ..model(ServiceTime::Exponential)
            };
            closed_loop(&mut Sim::new(&model, 1, 8), 8, 500)
        };
        assert_eq!(with(u32::MAX), with(8));
        assert_ne!(with(7), with(8));
    }

    #[test]
    fn constant_service_gives_the_analytic_rate_and_latency() {
        for (servers, depth) in [(1, 1), (1, 8), (4, 4), (4, 16), (8, 3)] {
            let model = SimDevice {
                servers,
                ..model(ServiceTime::Constant)
            };
            let mut sim = Sim::new(&model, 1, depth);
            let seen = closed_loop(&mut sim, depth, 1000);
            let busy = servers.min(depth);
            let last = seen[999].0;
            assert_eq!(
                last,
                1000 * 1000u64.div_ceil(u64::from(busy)),
                "{servers} servers"
            );
            // Little: depth = rate x latency.
            let expected = 1000 * u64::from(depth) / u64::from(busy);
            assert!(
                seen[depth as usize..].iter().all(|io| io.3 == expected),
                "depth {depth}"
            );
        }
    }

    #[test]
    fn a_random_service_keeps_its_mean_and_shape() {
        for (service, variance) in [
            (ServiceTime::Exponential, 1.0),
            (ServiceTime::Uniform, 1.0 / 3.0),
        ] {
            let model = SimDevice {
                read_ns: 100_000,
                ..model(service)
            };
            let mut sim = Sim::new(&model, 1, 1);
            let latencies: Vec<_> = closed_loop(&mut sim, 1, 40_000)
                .iter()
                .map(|io| io.3 as f64 / 1e5)
                .collect();
            let mean = latencies.iter().sum::<f64>() / 4e4;
            let spread = latencies.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4e4;
            assert!((mean - 1.0).abs() < 0.02, "{service:?} {mean}");
            assert!(
                (spread / variance - 1.0).abs() < 0.06,
                "{service:?} {spread}"
            );
        }
    }

    #[test]
    fn an_open_m_m_1_queue_has_the_textbook_response_time() {
        // Arrivals at 0.7 of the service rate: mean response 1 / (1 - 0.7) service times.
        let model = SimDevice {
            read_ns: 10_000,
            ..model(ServiceTime::Exponential)
        };
        let mut sim = Sim::new(&model, 1, 4096);
        let mut rng = Rng::new(3);
        let (mut arrival, mut sum, mut count) = (0f64, 0f64, 0u32);
        let mut arrivals = vec![0u64; 4096];
        for i in 0..200_000u32 {
            arrival += -rng.unit().ln() * 10_000.0 / 0.7;
            let at = arrival as u64;
            while time(&mut sim) < at {
                sim.flush(1, START_NS + at).unwrap();
                let now = time(&mut sim);
                sim.reap(4096, &mut |done| {
                    sum += (now - arrivals[done.slot as usize]) as f64;
                    count += 1;
                });
            }
            arrivals[(i % 4096) as usize] = time(&mut sim);
            sim.push(io(i % 4096, Op::Read));
        }
        let response = sum / f64::from(count) / 10_000.0;
        assert!((response - 1.0 / 0.3).abs() < 0.2, "{response}");
    }

    #[test]
    fn stalls_hold_up_what_is_in_service() {
        let model = SimDevice {
            stall_every_ns: 10_000,
            stall_ns: 4_000,
            ..model(ServiceTime::Constant)
        };
        let mut sim = Sim::new(&model, 1, 1);
        let times: Vec<_> = closed_loop(&mut sim, 1, 16).iter().map(|io| io.0).collect();
        let mut expected: Vec<u64> = (1..=10).map(|i| i * 1000).collect();
        expected.extend((1..=6).map(|i| 14_000 + i * 1000));
        assert_eq!(times, expected);
        assert_eq!(
            closed_loop(&mut sim, 1, 2)[0].0,
            25_000,
            "and again in the next period"
        );
    }

    proptest! {
        #[test]
        fn the_end_of_service_is_what_counting_nanoseconds_gives(
            every in 1u64..60, stall in 0u64..60, start in 0u64..300, service in 0u64..200,
        ) {
            let model = SimDevice { stall_every_ns: every, stall_ns: stall, ..model(ServiceTime::Constant) };
            // One nanosecond of work is done in every one that is not in a stall.
            let standing = |t: u64| t >= every && t % every < stall;
            let mut left = service;
            let mut time = start;
            while left > 0 && time < 20_000 {
                left -= u64::from(!standing(time));
                time += 1;
            }
            let expected = (left == 0).then_some(time);
            let got = end_of_service(&model, start, service);
            if service == 0 || expected.is_none() {
                // An I/O without work ends at once, or with the stall it arrives in.
                prop_assert!(got.is_none_or(|end| end >= start));
            } else {
                prop_assert_eq!(got, expected);
            }
        }

        #[test]
        fn every_io_completes_once_and_the_seed_decides_when(
            seed: u64,
            servers in 1u32..5,
            depth in 1u32..20,
            ppm in (0u32..300_000, 0u32..300_000),
        ) {
            let model = SimDevice {
                seed, servers, error_ppm: ppm.0, short_ppm: ppm.1, ..model(ServiceTime::Exponential)
            };
            let run = || closed_loop(&mut Sim::new(&model, 1, depth), depth, 500);
            let seen = run();
            prop_assert_eq!(&seen, &run());
            prop_assert!(seen.is_sorted_by_key(|io| io.0));
            prop_assert!(seen.iter().all(|io| [4096, 2048, -libc::EIO].map(Outcome::of).contains(&io.2)));
        }
    }

    #[test]
    fn faults_come_as_often_as_asked_for() {
        let model = SimDevice {
            error_ppm: 100_000,
            short_ppm: 200_000,
            ..model(ServiceTime::Constant)
        };
        let mut sim = Sim::new(&model, 1, 4);
        let seen = closed_loop(&mut sim, 4, 20_000);
        let count = |result| seen.iter().filter(|io| io.2 == result).count();
        // Binomial, deviations 42 and 57.
        assert!((1800..2200).contains(&count(Outcome::of(-libc::EIO))));
        assert!((3760..4240).contains(&count(Outcome::moved(2048))));
    }

    #[test]
    fn an_io_that_hangs_never_completes_and_time_goes_on() {
        let model = SimDevice {
            hang_ppm: 1_000_000,
            ..model(ServiceTime::Constant)
        };
        let mut sim = Sim::new(&model, 1, 2);
        sim.push(io(0, Op::Read));
        sim.flush(1, START_NS + 50_000).unwrap();
        assert_eq!(time(&mut sim), 50_000);
        assert_eq!(sim.reap(8, &mut |_| panic!("it hangs")), 0);
    }

    #[test]
    fn waiting_stops_at_the_number_or_at_the_time() {
        let mut sim = Sim::new(&model(ServiceTime::Constant), 2, 8);
        for slot in 0..4 {
            sim.push(Io {
                file: slot % 2,
                ..io(slot, Op::Write)
            });
        }
        sim.flush(0, 0).unwrap();
        assert_eq!(time(&mut sim), 0, "handing over takes no time");
        sim.flush(2, u64::MAX).unwrap();
        assert_eq!(time(&mut sim), 3000, "two devices side by side");
        assert_eq!(sim.reap(1, &mut |done| assert_eq!(done.slot, 0)), 1);
        sim.flush(3, START_NS + 5000).unwrap();
        assert_eq!(time(&mut sim), 5000, "the third is not done by then");
        assert_eq!(sim.reap(8, &mut |done| assert_eq!(done.slot, 1)), 1);
        sim.flush(0, START_NS + 100_000).unwrap();
        assert_eq!(
            time(&mut sim),
            6000,
            "a poll sees a completion when it happens"
        );
        assert_eq!(sim.reap(8, &mut |_| {}), 2);
        sim.flush(0, START_NS + 100_000).unwrap();
        assert_eq!(time(&mut sim), 100_000, "nothing in flight: sleep");
        sim.flush(0, 0).unwrap();
        assert_eq!(
            time(&mut sim),
            100_100,
            "a bare poll moves the clock a little"
        );
    }
}
