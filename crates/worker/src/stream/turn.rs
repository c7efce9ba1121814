//! When a stream is looked at next: it is queued, sleeps until a time, or something has to happen.
//!
//! Knows that it is never queued twice and never both queued and asleep. Knows no queue and no
//! timer: who uses it has them.

/// What calls for a stream next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// A completion, or an event.
    Idle,
    /// It is in its worker's queue.
    Queued,
    /// A timer, and nothing before it.
    Asleep {
        /// When it fires.
        until_ns: u64,
    },
}

impl Turn {
    /// It is to be queued: true when its worker has to do that now.
    #[inline(always)]
    pub fn queue(&mut self) -> bool {
        let idle = *self == Self::Idle;
        if idle {
            *self = Self::Queued;
        }
        idle
    }

    /// It was taken from the queue.
    #[inline(always)]
    pub fn take(&mut self) {
        *self = Self::Idle;
    }

    /// It sleeps, unless it wakes sooner; true when a timer is to be set.
    pub fn sleep(&mut self, until_ns: u64) -> bool {
        match *self {
            Self::Asleep { until_ns: before } if before <= until_ns => false,
            _ => {
                *self = Self::Asleep { until_ns };
                true
            }
        }
    }

    /// The timer of this time fired: true when it was waited for.
    pub fn fired(&mut self, time_ns: u64) -> bool {
        let its = *self == Self::Asleep { until_ns: time_ns };
        if its {
            *self = Self::Idle;
        }
        its
    }

    /// What it slept for does not count any more.
    pub fn wake(&mut self) {
        if matches!(self, Self::Asleep { .. }) {
            *self = Self::Idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_queued_once_and_not_while_it_sleeps() {
        let mut turn = Turn::Idle;
        assert!(turn.queue() && !turn.queue());
        turn.take();
        assert!(turn.sleep(50) && !turn.sleep(60) && turn.sleep(40));
        assert!(!turn.queue());
        // The timers of the first and the second time are still set.
        assert!(!turn.fired(50) && turn.fired(40) && !turn.fired(40));
        assert!(turn.queue());
        turn.wake();
        assert_eq!(turn, Turn::Queued);
    }
}
