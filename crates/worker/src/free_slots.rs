//! When a stream's free slots became free.
//!
//! Knows times and their order, not which slot they belong to: slots are alike, and the
//! one freed last is used first because its buffer is still in the cache. In a closed
//! loop an I/O should start the moment there is room for it, so the room that has waited
//! longest is used first, whichever slot holds the I/O.

use std::collections::VecDeque;

/// Times at which room for I/Os came to be, oldest first, equal ones counted together.
#[derive(Debug)]
pub struct Vacancies {
    runs: VecDeque<(u64, u32)>,
}

impl Vacancies {
    /// No room yet, for a stream of up to `depth` I/Os in flight.
    #[must_use]
    pub fn new(depth: u32) -> Self {
        Self {
            runs: VecDeque::with_capacity(depth as usize),
        }
    }

    /// Room for `count` I/Os since `time_ns`, and none older.
    pub fn open(&mut self, time_ns: u64, count: u32) {
        self.runs.clear();
        if count > 0 {
            self.runs.push_back((time_ns, count));
        }
    }

    /// Room for one more since `time_ns`.
    #[inline]
    pub fn add(&mut self, time_ns: u64) {
        match self.runs.back_mut() {
            Some((time, count)) if *time == time_ns => *count += 1,
            _ => self.runs.push_back((time_ns, 1)),
        }
    }

    /// Takes the oldest room and says since when it was free; 0 when there is none.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let Some((time_ns, count)) = self.runs.front_mut() else {
            return 0;
        };
        let time_ns = *time_ns;
        *count -= 1;
        if *count == 0 {
            self.runs.pop_front();
        }
        time_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_room_is_taken_first_and_nothing_is_allocated() {
        let mut vacancies = Vacancies::new(4);
        let capacity = vacancies.runs.capacity();
        vacancies.open(5, 2);
        vacancies.add(5);
        vacancies.add(9);
        assert_eq!([(); 4].map(|()| vacancies.take()), [5, 5, 5, 9]);
        for time in 10..1000 {
            (0..4).for_each(|step| vacancies.add(time * 10 + step));
            for step in 0..4 {
                assert_eq!(vacancies.take(), time * 10 + step);
            }
        }
        assert_eq!(vacancies.runs.capacity(), capacity);
    }

    #[test]
    fn a_start_forgets_what_was_before() {
        let mut vacancies = Vacancies::new(2);
        vacancies.add(1);
        vacancies.open(7, 1);
        assert_eq!((vacancies.take(), vacancies.take()), (7, 0));
    }
}
