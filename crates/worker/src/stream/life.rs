//! The life of a stream: it waits, issues, drains, flushes and is over.
//!
//! Knows the phases, what belongs to each, and the only ways from one to the next. Knows no
//! clock, no slot and no I/O.

/// Where a stream is in its life. What is known only in a phase lies in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before its start.
    Waiting,
    /// Issuing, and nothing but its free slots and limits decides what: the fast path.
    Simple {
        /// When its time is over; `u64::MAX`: never.
        end_ns: u64,
    },
    /// Issuing.
    Running {
        /// As above.
        end_ns: u64,
    },
    /// No more I/O is issued; some is in flight.
    Draining(StreamEnding),
    /// The flushes after the last I/O.
    Flushing(StreamEnding),
    /// Over.
    Ended,
}

/// How a stream comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamEnding {
    /// Why.
    pub reason: Reason,
    /// When its time was to be over; `u64::MAX`: never.
    pub end_ns: u64,
    /// When it has to be empty.
    pub grace_ns: u64,
}

/// Why a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its time was over.
    Runtime,
    /// Its bytes were moved.
    Bytes,
    /// Its I/Os were done.
    Ops,
    /// An I/O failed.
    Error,
    /// Somebody stopped it.
    Stopped,
    /// An I/O did not come back.
    Hung,
    /// It was slower than its minimum.
    RateMinimum,
    /// What it read was damaged.
    Damage,
    /// An I/O took longer than it may, or no depth meets the target.
    Latency,
    /// The depth that meets the latency target was found and measured.
    Found,
    /// In its tree nothing is left to do the operation on.
    Exhausted,
}

impl Reason {
    /// True when the stream did not do what it was asked for.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Error | Self::Hung | Self::RateMinimum | Self::Damage | Self::Latency
        )
    }

    /// As in the `stream_end` event.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Bytes => "bytes",
            Self::Ops => "ops",
            Self::Error => "error",
            Self::Stopped => "stopped",
            Self::Hung => "hung",
            Self::RateMinimum => "rate_minimum",
            Self::Damage => "damage",
            Self::Latency => "latency",
            Self::Found => "found",
            Self::Exhausted => "exhausted",
        }
    }
}

/// A stream's life. Nobody sets a phase: each way to the next one is a function, which does
/// nothing where there is no such way.
#[derive(Debug)]
pub struct Life {
    phase: Phase,
}

impl Life {
    /// Before the start.
    #[must_use]
    pub fn new() -> Self {
        Self {
            phase: Phase::Waiting,
        }
    }

    /// The phase.
    #[inline(always)]
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Before its start.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// It issues, and nothing but its free slots and limits decides what.
    #[inline(always)]
    #[must_use]
    pub fn is_simple(&self) -> bool {
        matches!(self.phase, Phase::Simple { .. })
    }

    /// It issues.
    #[inline]
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Simple { .. } | Phase::Running { .. })
    }

    /// The flushes after its last I/O are made.
    #[inline]
    #[must_use]
    pub fn is_flushing(&self) -> bool {
        matches!(self.phase, Phase::Flushing(_))
    }

    /// It issues nothing more, and is not over.
    #[inline]
    #[must_use]
    pub fn ending(&self) -> Option<StreamEnding> {
        match self.phase {
            Phase::Draining(ending) | Phase::Flushing(ending) => Some(ending),
            _ => None,
        }
    }

    /// Over.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// It waits no more.
    pub fn start(&mut self, simple: bool, end_ns: u64) {
        if self.is_waiting() {
            self.phase = if simple {
                Phase::Simple { end_ns }
            } else {
                Phase::Running { end_ns }
            };
        }
    }

    /// It issues nothing more; false when it did not before. Its time of grace is still to
    /// be said.
    pub fn stop(&mut self, reason: Reason) -> bool {
        let end_ns = match self.phase {
            Phase::Waiting => u64::MAX,
            Phase::Simple { end_ns } | Phase::Running { end_ns } => end_ns,
            Phase::Draining(_) | Phase::Flushing(_) | Phase::Ended => return false,
        };
        self.phase = Phase::Draining(StreamEnding {
            reason,
            end_ns,
            grace_ns: u64::MAX,
        });
        true
    }

    /// What is on its way to its end ends for another reason.
    pub fn blame(&mut self, reason: Reason) {
        if let Phase::Draining(ending) | Phase::Flushing(ending) = &mut self.phase {
            ending.reason = reason;
        }
    }

    /// It has to be empty by then; false when that is no sooner than what was said before.
    pub fn hurry(&mut self, grace_ns: u64) -> bool {
        match &mut self.phase {
            Phase::Draining(ending) | Phase::Flushing(ending) if grace_ns < ending.grace_ns => {
                ending.grace_ns = grace_ns;
                true
            }
            _ => false,
        }
    }

    /// It has drained, and flushes: false when it did not drain. A new time of grace begins.
    pub fn flush(&mut self) -> bool {
        let Phase::Draining(ending) = self.phase else {
            return false;
        };
        self.phase = Phase::Flushing(StreamEnding {
            grace_ns: u64::MAX,
            ..ending
        });
        true
    }

    /// It is over; none when it was, or was not stopped.
    pub fn end(&mut self) -> Option<StreamEnding> {
        let ending = self.ending()?;
        self.phase = Phase::Ended;
        Some(ending)
    }
}

impl Default for Life {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_goes_one_way() {
        let mut life = Life::new();
        assert!(life.is_waiting() && life.end().is_none() && !life.flush() && !life.hurry(1));
        life.start(true, 90);
        assert!(life.is_simple() && life.is_running());
        life.start(false, 10);
        assert_eq!(life.phase(), Phase::Simple { end_ns: 90 });
        assert!(life.stop(Reason::Runtime));
        assert!(!life.is_running() && !life.stop(Reason::Ops));
        assert!(life.hurry(50) && !life.hurry(60) && life.hurry(40));
        life.blame(Reason::Error);
        assert!(life.flush() && !life.flush() && life.is_flushing());
        // The grace of the drain is not that of the flushes.
        assert!(life.hurry(1000));
        let end = life.end().unwrap();
        assert_eq!(
            (end.reason, end.end_ns, end.grace_ns),
            (Reason::Error, 90, 1000)
        );
        life.start(true, 1);
        life.blame(Reason::Hung);
        assert!(life.has_ended() && life.end().is_none() && !life.stop(Reason::Ops));
    }

    #[test]
    fn one_that_never_started_ends_too() {
        let mut life = Life::new();
        assert!(life.stop(Reason::Stopped));
        let end = life.end().unwrap();
        assert_eq!((end.reason, end.end_ns), (Reason::Stopped, u64::MAX));
    }
}
