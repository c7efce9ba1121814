//! Room for I/Os: how many a stream may have in flight now, and since when.
//!
//! Knows free slots, the depth and what keeps a stream from filling it: a search that lowered it,
//! a batch that waits to get low. Knows no I/O and no phase.

use crate::free_slots::Vacancies;

/// What keeps a stream with free slots from issuing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Nothing.
    Nothing,
    /// It was full and waits to get low.
    UntilLow,
    /// A search has lowered the depth: nothing is issued until nothing is in flight.
    UntilEmpty,
    /// Its file is to be closed and opened again once nothing is in flight.
    UntilOpened,
}

/// The room of one stream.
#[derive(Debug)]
pub struct Room {
    /// Free slots; the last freed is the next used, so a small working set stays in cache.
    free: Vec<u32>,
    /// Since when there is room for I/Os: as many as free slots.
    vacancies: Vacancies,
    depth: u32,
    /// Most in flight at present: less than `depth` while a search goes on.
    limit: u32,
    /// After being full it does not issue above this depth.
    low: u32,
    hold: Hold,
    /// Most that were in flight at one time.
    deepest: u32,
    /// When the depth last fell to `low`: no I/O was intended before.
    since_ns: u64,
}

impl Room {
    /// Room for `depth` I/Os in slots from `first` on.
    #[must_use]
    pub fn new(first: u32, depth: u32, limit: u32, low: u32) -> Self {
        Self {
            free: (first..first + depth).rev().collect(),
            vacancies: Vacancies::new(depth),
            depth,
            limit: limit.min(depth),
            low,
            hold: Hold::Nothing,
            deepest: 0,
            since_ns: 0,
        }
    }

    /// There is room since `time_ns`.
    pub fn open(&mut self, time_ns: u64) {
        self.vacancies.open(time_ns, self.limit);
    }

    /// Takes a slot, and says since when there was room for its I/O.
    #[inline(always)]
    pub fn take(&mut self) -> Option<(u32, u64)> {
        let slot = self.free.pop()?;
        Some((slot, self.vacancies.take()))
    }

    /// The I/O of a slot is back.
    #[inline(always)]
    pub fn give_back(&mut self, slot: u32, now_ns: u64) {
        self.free.push(slot);
        self.vacancies.add(now_ns);
    }

    /// Most that may be in flight.
    #[inline(always)]
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Most that may be in flight at present.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Free slots.
    #[inline(always)]
    #[must_use]
    pub fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// I/Os in flight.
    #[inline(always)]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.depth - self.free()
    }

    /// Another I/O may be issued.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self.hold {
            Hold::Nothing => self.in_flight() < self.limit,
            Hold::UntilLow => self.in_flight() < self.limit && self.in_flight() <= self.low,
            Hold::UntilEmpty | Hold::UntilOpened => false,
        }
    }

    /// It is filled to its depth whatever it was before: nothing holds it back when full.
    #[must_use]
    pub fn refills_at_once(&self) -> bool {
        self.low == self.depth
    }

    /// Nothing was intended before this.
    #[inline]
    #[must_use]
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Nothing was intended before this, from now on.
    pub fn begins_at(&mut self, time_ns: u64) {
        self.since_ns = time_ns;
    }

    /// An I/O is issued: when it is the last there is room for it waits to get low.
    #[inline]
    pub fn note_issued(&mut self) {
        if self.free.is_empty() && self.low < self.depth {
            self.hold = Hold::UntilLow;
        }
    }

    /// An I/O is back: the depth may have fallen to `low`.
    #[inline]
    pub fn note_ended(&mut self, now_ns: u64) {
        if self.hold == Hold::UntilLow && self.in_flight() <= self.low {
            self.hold = Hold::Nothing;
            self.since_ns = now_ns;
        }
    }

    /// A search goes to a larger depth.
    pub fn deepen(&mut self, depth: u32, now_ns: u64) {
        let depth = depth.min(self.depth);
        for _ in self.limit..depth {
            self.vacancies.add(now_ns);
        }
        self.limit = depth;
    }

    /// A search goes to a smaller depth, once nothing is in flight.
    pub fn lower(&mut self, depth: u32) {
        self.limit = depth.min(self.depth);
        self.hold = Hold::UntilEmpty;
    }

    /// It waits for all that is in flight.
    #[inline]
    #[must_use]
    pub fn is_lowering(&self) -> bool {
        self.hold == Hold::UntilEmpty
    }

    /// Nothing is in flight any more: true when that was waited for.
    #[inline]
    pub fn note_empty(&mut self, now_ns: u64) -> bool {
        let lowered = self.is_lowering() && self.in_flight() == 0;
        if lowered {
            self.hold = Hold::Nothing;
            self.since_ns = now_ns;
            self.vacancies.open(now_ns, self.limit);
        }
        lowered
    }

    /// Nothing is issued until its file is open again.
    pub fn wait_for_opening(&mut self) {
        self.hold = Hold::UntilOpened;
    }

    /// Nothing is in flight any more, and that was waited for to open its file again.
    #[inline]
    #[must_use]
    pub fn is_to_be_opened(&self) -> bool {
        self.hold == Hold::UntilOpened && self.in_flight() == 0
    }

    /// Its file is open: there is room since then.
    pub fn is_opened(&mut self, now_ns: u64) {
        self.hold = Hold::Nothing;
        self.since_ns = now_ns;
        self.vacancies.open(now_ns, self.limit);
    }

    /// Most that were in flight at one time.
    #[inline(always)]
    #[must_use]
    pub fn deepest(&self) -> u32 {
        self.deepest
    }

    /// So many were in flight.
    #[inline(always)]
    pub fn note_depth(&mut self, in_flight: u32) {
        self.deepest = self.deepest.max(in_flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(room: &mut Room) -> u32 {
        let mut count = 0;
        while room.is_open() && room.take().is_some() {
            room.note_issued();
            count += 1;
        }
        count
    }

    #[test]
    fn a_batch_is_filled_when_it_is_low_and_the_room_dates_from_then() {
        let mut room = Room::new(8, 4, 4, 1);
        room.open(5);
        assert_eq!(fill(&mut room), 4);
        for (slot, now_ns) in [(8, 10), (9, 20)] {
            room.give_back(slot, now_ns);
            room.note_ended(now_ns);
            assert!(!room.is_open());
        }
        room.give_back(10, 30);
        room.note_ended(30);
        assert!(room.is_open());
        assert_eq!(room.since_ns(), 30);
        assert_eq!(fill(&mut room), 3);
    }

    #[test]
    fn nothing_is_issued_between_a_close_and_the_open_after_it() {
        let mut room = Room::new(0, 2, 2, 2);
        room.open(1);
        assert_eq!(fill(&mut room), 2);
        room.wait_for_opening();
        for (slot, now_ns) in [(0, 10), (1, 20)] {
            assert!(!room.is_to_be_opened());
            room.give_back(slot, now_ns);
            room.note_ended(now_ns);
            assert!(!room.is_open());
        }
        assert!(room.is_to_be_opened());
        room.is_opened(35);
        assert!(room.is_open() && !room.is_to_be_opened());
        assert_eq!(room.since_ns(), 35);
        assert_eq!(room.take().map(|(_, since_ns)| since_ns), Some(35));
    }

    #[test]
    fn a_lower_depth_counts_when_all_is_back() {
        let mut room = Room::new(0, 8, 1, 8);
        room.open(1);
        assert_eq!(fill(&mut room), 1);
        room.deepen(4, 7);
        assert_eq!(fill(&mut room), 3);
        room.lower(2);
        for (slot, now_ns) in [(0, 10), (1, 11), (2, 12)] {
            room.give_back(slot, now_ns);
            room.note_ended(now_ns);
            assert!(!room.note_empty(now_ns) && !room.is_open());
        }
        room.give_back(3, 13);
        assert!(room.note_empty(13) && !room.note_empty(13));
        assert_eq!(room.take().map(|(_, since_ns)| since_ns), Some(13));
        assert_eq!(fill(&mut room), 1);
        // More than there are slots is never in flight.
        room.deepen(99, 14);
        assert_eq!((room.limit(), fill(&mut room)), (8, 6));
    }
}
