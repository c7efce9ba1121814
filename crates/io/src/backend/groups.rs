//! How many I/Os a ring hands over by one call while the worker makes more of them.
//!
//! Handed over as a whole, a batch leaves the target idle while it is made, and the worker idle
//! while it is served. In groups both work at the same time. A target that completes an I/O in
//! the call that hands it over leaves nothing to overlap and makes a group a wasted call: so one
//! group is tried now and then, and the next batches go by what came of it.

/// Groups to a full queue: `bench/depths.py` on a loop device, against whole batches and groups
/// of 2 to 16.
const PER_QUEUE: u32 = 8;
/// Smaller groups cost more CPU than the overlap saves.
const SMALLEST: u32 = 4;
/// Hand-overs from one trial to the next.
const TRIAL_EVERY: u32 = 256;
/// No groups: larger than any batch.
const WHOLE: u32 = u32::MAX;

/// The size of the groups of one ring.
#[derive(Debug)]
pub(super) struct Groups {
    /// I/Os in a group, where groups pay.
    size: u32,
    /// I/Os in a group now.
    now: u32,
    /// True if the last trial's I/Os were complete when the call returned.
    completes_at_once: bool,
    /// Hand-overs until the next trial; 0: the next group is one.
    due_in: u32,
}

impl Groups {
    /// Of a ring for up to `depth` I/Os in flight.
    pub fn of_depth(depth: u32) -> Self {
        Self::of((depth / PER_QUEUE).max(SMALLEST))
    }

    /// Of a ring whose batches stay whole.
    pub fn none() -> Self {
        Self::of(WHOLE)
    }

    fn of(size: u32) -> Self {
        Self {
            size,
            now: size,
            completes_at_once: false,
            due_in: 0,
        }
    }

    /// I/Os to hand over at a time, of the batch being made.
    #[inline]
    pub fn now(&self) -> u32 {
        self.now
    }

    /// True if it is to be seen what comes of the group just handed over.
    #[inline]
    pub fn is_trial(&self) -> bool {
        self.due_in == 0
    }

    /// What came of it: true if all of it was complete at once.
    pub fn note(&mut self, completed_at_once: bool) {
        self.completes_at_once = completed_at_once;
        self.due_in = TRIAL_EVERY;
    }

    /// A batch was handed over: sets the groups of the next.
    #[inline]
    pub fn next_batch(&mut self) {
        if self.due_in > 0 {
            self.due_in -= 1;
        }
        self.now = if self.completes_at_once && self.due_in > 0 {
            WHOLE
        } else {
            self.size
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the groups of `batches` batches, each large enough for a group.
    fn sizes(groups: &mut Groups, batches: usize, at_once: impl Fn(usize) -> bool) -> Vec<u32> {
        (0..batches)
            .map(|batch| {
                let now = groups.now();
                if now != WHOLE && groups.is_trial() {
                    groups.note(at_once(batch));
                }
                groups.next_batch();
                now
            })
            .collect()
    }

    #[test]
    fn a_group_is_an_eighth_of_the_depth_and_at_least_four() {
        let sizes = [1, 16, 32, 64, 256].map(|depth| Groups::of_depth(depth).now());
        assert_eq!(sizes, [4, 4, 4, 8, 32]);
        assert_eq!(Groups::none().now(), WHOLE);
    }

    #[test]
    fn batches_stay_whole_where_a_group_completes_at_once_until_the_next_trial() {
        let sizes = sizes(&mut Groups::of_depth(64), 600, |_| true);
        let trials: Vec<usize> = (0..600).filter(|&batch| sizes[batch] == 8).collect();
        assert_eq!(trials, [0, 256, 512]);
    }

    #[test]
    fn a_target_that_stops_completing_at_once_gets_groups_again() {
        let sizes = sizes(&mut Groups::of_depth(64), 600, |batch| batch < 256);
        assert_eq!(sizes[255], WHOLE);
        assert!(sizes[256..].iter().all(|&size| size == 8));
    }
}
