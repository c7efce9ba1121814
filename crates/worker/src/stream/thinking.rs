//! Pauses of a stream: fio's `thinktime`.
//!
//! Knows after how many I/Os or how long one comes, and when it ends. Knows no I/O.

use loadstone_plan::Think;

/// Pauses after so many I/Os, or after so long.
#[derive(Debug, Clone, Copy)]
pub struct Thinking {
    plan: Think,
    left: u32,
    /// When the time between two pauses is over; none: it has not begun.
    due_ns: Option<u64>,
    /// When the last pause ends, and until when it spins.
    pause: Pause,
}

/// A pause.
#[derive(Debug, Clone, Copy, Default)]
struct Pause {
    end_ns: u64,
    spin_end_ns: u64,
}

impl Thinking {
    /// No pause yet.
    #[must_use]
    pub fn new(plan: Think) -> Self {
        Self {
            plan,
            left: plan.every_ios,
            due_ns: None,
            pause: Pause::default(),
        }
    }

    /// When the last pause ends; 0: there was none.
    #[inline]
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.pause.end_ns
    }

    /// Until when it spins instead of sleeping.
    #[must_use]
    pub fn spin_end_ns(&self) -> u64 {
        self.pause.spin_end_ns
    }

    /// Counts an issued or a completed I/O; true when a pause begins with it.
    #[inline]
    pub fn count(&mut self, issued: bool, now_ns: u64) -> bool {
        if self.plan.count_issued != issued || !self.is_due(now_ns) {
            return false;
        }
        self.pause = Pause {
            end_ns: now_ns + self.plan.pause_ns,
            spin_end_ns: now_ns + self.plan.spin_ns.min(self.plan.pause_ns),
        };
        true
    }

    fn is_due(&mut self, now_ns: u64) -> bool {
        let plan = &self.plan;
        if plan.every_ns == 0 {
            self.left = self.left.saturating_sub(1);
            let due = self.left == 0;
            if due {
                self.left = plan.every_ios.max(1);
            }
            return due;
        }
        let begins_ns = match self.due_ns {
            None => now_ns,
            Some(due_ns) if now_ns >= due_ns => now_ns.saturating_add(plan.pause_ns),
            Some(_) => return false,
        };
        let due = self.due_ns.is_some();
        self.due_ns = Some(begins_ns.saturating_add(plan.every_ns));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinking(every_ios: u32, every_ns: u64) -> Thinking {
        Thinking::new(Think {
            pause_ns: 100,
            spin_ns: 30,
            every_ios,
            count_issued: false,
            every_ns,
        })
    }

    #[test]
    fn a_pause_comes_after_so_many_ios_or_after_so_long() {
        let mut by_number = thinking(3, 0);
        let pauses = [10, 20, 30, 40, 50, 60].map(|now_ns| by_number.count(false, now_ns));
        assert_eq!(pauses, [false, false, true, false, false, true]);
        assert_eq!((by_number.end_ns(), by_number.spin_end_ns()), (160, 90));
        // The first begins the time; what comes back within a pause begins no other.
        let mut by_time = thinking(1, 50);
        let pauses = [10, 59, 60, 65, 209, 210].map(|now_ns| by_time.count(false, now_ns));
        assert_eq!(pauses, [false, false, true, false, false, true]);
    }

    #[test]
    fn what_is_not_counted_begins_no_pause() {
        let mut thinking = thinking(1, 0);
        assert!(!thinking.count(true, 10) && thinking.end_ns() == 0);
    }
}
