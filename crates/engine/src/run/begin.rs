//! The start of a stage: all workers are ready, the order to begin came, the time it begins at.
//!
//! Knows the clock and the order. Knows no I/O.

use super::{Run, LOOK_UP};
use loadstone_base::clock::{monotonic_ns, unix_ns};
use loadstone_base::run_error::RunError;
use loadstone_worker::control::{Message, StageStart, Stop};
use loadstone_worker::events::Event;
use std::time::Duration;

/// The last of the way to the start of an armed run is not slept: a sleep ends late.
const SPIN: Duration = Duration::from_micros(100);

impl Run {
    pub(super) fn await_ready(&mut self, count: usize) -> Result<(), RunError> {
        let mut ready = 0;
        while ready < count {
            match self.inbox.recv_timeout(Duration::from_secs(60)) {
                Ok(Message::Ready { .. }) => ready += 1,
                Ok(Message::Failed { message, hint, .. }) => {
                    return Err(RunError::broken(message, hint))
                }
                Ok(Message::Event(event)) => self.speaker.say(&event),
                Ok(_) => {}
                Err(_) => {
                    return Err(RunError::broken(
                        "a worker did not get ready within a minute",
                        "",
                    ))
                }
            }
        }
        Ok(())
    }

    /// Says that all is ready and waits for the time of the start; false when it was stopped meanwhile.
    pub(super) fn await_start(&mut self) -> bool {
        let armed_ns = monotonic_ns();
        self.speaker.say(&Event::Armed {
            monotonic_ns: armed_ns,
        });
        let at_ns = loop {
            if let Some(at_ns) = self.control.await_start(LOOK_UP) {
                break at_ns;
            }
            if self.is_called_off() {
                return false;
            }
        };
        while let Some(left) = Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()))
            .checked_sub(SPIN)
            .filter(|left| !left.is_zero())
        {
            std::thread::sleep(left.min(LOOK_UP));
            if self.is_called_off() {
                return false;
            }
        }
        while monotonic_ns() < at_ns {
            std::hint::spin_loop();
        }
        self.armed_ns = monotonic_ns() - armed_ns;
        true
    }

    fn is_called_off(&self) -> bool {
        self.control.stopping() != Stop::No || self.speaker.is_alone()
    }

    /// Virtual clocks continue where the stage before ended; the real one just goes on.
    pub(super) fn start_time(&mut self, stage: u32, members: &[u32]) -> StageStart {
        let clock_ns = self.clock.now_ns();
        if stage == 0 {
            self.origin_ns = clock_ns;
            self.reporter.start();
        }
        let virtual_only = members.iter().all(|&w| {
            self.plan.workers[w as usize]
                .backend
                .capabilities()
                .virtual_time
        });
        let offset_ns = if virtual_only {
            self.reporter.last_ns()
        } else {
            clock_ns - self.origin_ns
        };
        StageStart {
            clock_ns,
            offset_ns,
        }
    }

    pub(super) fn say_start(&mut self, handed_ns: u64) {
        if self.started {
            return;
        }
        self.started = true;
        let startup_ns = handed_ns
            .saturating_sub(self.engine_start_ns)
            .saturating_sub(self.layout_ns)
            .saturating_sub(self.armed_ns);
        // The wall clock of the origin, from the present one.
        let unix_ns = unix_ns() - (self.clock.now_ns() - self.origin_ns);
        self.speaker.say(&Event::Start {
            unix_ns,
            startup_ns,
            monotonic_ns: self.origin_ns,
            first_ns: handed_ns.saturating_sub(self.origin_ns),
        });
    }
}
