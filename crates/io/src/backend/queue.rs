//! Completions waiting to be reaped, oldest first, without allocation.

use super::{Done, Outcome};

/// A queue that holds at most as many completions as I/Os can be in flight.
#[derive(Debug)]
pub(super) struct CompletionQueue {
    done: Vec<(u32, Outcome)>,
    taken: usize,
}

impl CompletionQueue {
    pub(super) fn new(depth: u32) -> Self {
        Self {
            done: Vec::with_capacity(depth as usize),
            taken: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.done.len() - self.taken
    }

    #[inline]
    pub(super) fn push(&mut self, slot: u32, outcome: Outcome) {
        if self.done.len() == self.done.capacity() && self.taken > 0 {
            self.done.drain(..self.taken);
            self.taken = 0;
        }
        debug_assert!(
            self.done.len() < self.done.capacity(),
            "more in flight than the depth"
        );
        self.done.push((slot, outcome));
    }

    /// As [`super::IoBackend::reap`].
    #[inline]
    pub(super) fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        let end = self.done.len().min(self.taken.saturating_add(max as usize));
        for &(slot, outcome) in &self.done[self.taken..end] {
            take(Done::new(slot, outcome));
        }
        let count = end - self.taken;
        self.taken = end;
        if end == self.done.len() {
            self.done.clear();
            self.taken = 0;
        }
        count as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_come_out_in_order_and_the_room_is_reused() {
        let mut queue = CompletionQueue::new(4);
        let mut expected = 0;
        for round in 0..20u32 {
            for i in 0..3 {
                queue.push(round * 3 + i, Outcome::moved(1));
            }
            let max = if round % 2 == 0 { 2 } else { u32::MAX };
            let mut check = |done: Done| {
                assert_eq!(done.slot, expected);
                expected += 1;
            };
            let count = queue.reap(max, &mut check);
            assert_eq!(count, if round % 2 == 0 { 2 } else { 4 });
            assert_eq!(queue.len(), usize::from(round % 2 == 0));
            if round % 2 == 0 {
                // Make room for the next three.
                assert_eq!(queue.reap(0, &mut |_| panic!("none were asked for")), 0);
            }
        }
    }

    #[test]
    fn it_never_allocates_beyond_its_depth() {
        let mut queue = CompletionQueue::new(5);
        let capacity = queue.done.capacity();
        for slot in 0..1000 {
            queue.push(slot, Outcome::moved(0));
            if queue.len() == 5 {
                queue.reap(1 + slot % 4, &mut |_| {});
            }
        }
        assert_eq!(queue.done.capacity(), capacity);
    }
}
