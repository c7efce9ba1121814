//! What each verify block may hold: four bytes per block.
//!
//! Knows how writes in flight, acknowledged and failed change what a later read may
//! find, and how reads that overlap them are judged. Knows no bytes of a block.
//!
//! A table is shared by all threads that use the target; every change is one atomic
//! exchange. What several writes in flight to one block leave behind is any of them, so
//! the table keeps a span of generations. The bits of an entry, from the lowest:
//!
//! | bits | what |
//! |---|---|
//! | 12 | generation last given out; 0: none |
//! | 4 | span: how many generations before that may be there as well |
//! | 7 | writes in flight |
//! | 5 | writes of the group in flight: all since the block was last quiet |
//! | 1 | one of the group was acknowledged |
//! | 1 | known: nothing but these generations may be there |
//! | 1 | seen: a read returned the generation last given out |
//! | 1 | reported: damage of this block was found, and counted for the run |
//!
//! All zero is the start: nothing is known. Counts that reach their limit make the block
//! unknown rather than wrong, until a write that had it for itself is acknowledged.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::stamp::GENERATIONS;

const SPAN_SHIFT: u32 = 12;
const FLIGHT_SHIFT: u32 = 16;
const GROUP_SHIFT: u32 = 23;
const GENERATION_MASK: u32 = 0xfff;
const SPAN_MAX: u32 = 15;
const FLIGHT_MAX: u32 = 127;
const GROUP_MAX: u32 = 31;
const SUCCESS: u32 = 1 << 28;
const KNOWN: u32 = 1 << 29;
const SEEN: u32 = 1 << 30;
const REPORTED: u32 = 1 << 31;

/// How a write or trim of a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Acknowledged.
    Acknowledged,
    /// Failed, or never came back: the block may hold the old or the new.
    Uncertain,
    /// The block was discarded: it may hold anything.
    Discarded,
}

/// State of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockState(u32);

impl BlockState {
    /// An entry of a quiet block: `generation`, or one of `span` generations before it.
    #[must_use]
    pub fn quiet(generation: u16, span: u16) -> Self {
        if u32::from(span) >= SPAN_MAX || generation == 0 {
            return Self(u32::from(generation));
        }
        Self(u32::from(generation) | (u32::from(span) << SPAN_SHIFT) | KNOWN)
    }

    /// As it is kept from one run to the next: what was in flight leaves it unknown, and
    /// nobody has read it or told its damage.
    #[must_use]
    pub fn at_rest(self) -> u32 {
        let kept = if self.in_flight() == 0 {
            GENERATION_MASK | SPAN_MAX << SPAN_SHIFT | KNOWN
        } else {
            GENERATION_MASK
        };
        self.0 & kept
    }

    /// The state that was kept. Of a block without a generation nothing is known, whatever a file
    /// of somebody else's says.
    #[must_use]
    pub fn of_rest(kept: u32) -> Self {
        match Self(kept).generation() {
            0 => Self::default(),
            _ => Self(Self(kept).at_rest()),
        }
    }

    /// Unknown, whatever was written: the file that had it is gone.
    #[must_use]
    pub fn as_unknown(self) -> Self {
        Self(self.0 & GENERATION_MASK)
    }

    /// Generation last given out; 0: none.
    #[inline]
    #[must_use]
    pub fn generation(self) -> u16 {
        (self.0 & GENERATION_MASK) as u16
    }

    /// Earlier generations that may be there as well.
    #[inline]
    #[must_use]
    pub fn span(self) -> u32 {
        (self.0 >> SPAN_SHIFT) & SPAN_MAX
    }

    /// Writes in flight.
    #[inline]
    #[must_use]
    pub fn in_flight(self) -> u32 {
        (self.0 >> FLIGHT_SHIFT) & FLIGHT_MAX
    }

    /// Nothing but the generations of the span may be there.
    #[inline]
    #[must_use]
    pub fn is_known(self) -> bool {
        self.0 & KNOWN != 0
    }

    /// Nothing but reads came between this state and `later`.
    fn is_unwritten_in(self, later: Self) -> bool {
        (self.0 ^ later.0) & !(SEEN | REPORTED) == 0
    }

    fn group(self) -> u32 {
        (self.0 >> GROUP_SHIFT) & GROUP_MAX
    }

    fn with(self, shift: u32, max: u32, value: u32) -> Self {
        Self(self.0 & !(max << shift) | (value << shift))
    }

    /// After a write is issued; its generation is then [`BlockState::generation`].
    #[must_use]
    pub fn begin(self) -> Self {
        let alone = self.in_flight() == 0;
        let mut next = Self(self.0 & !GENERATION_MASK | u32::from(following(self.generation())));
        next.0 &= !(SEEN | REPORTED);
        if alone {
            next.0 &= !SUCCESS;
        }
        let group = if alone {
            1
        } else {
            (self.group() + 1).min(GROUP_MAX)
        };
        next = next.with(GROUP_SHIFT, GROUP_MAX, group);
        if self.span() + 1 >= SPAN_MAX {
            next.0 &= !KNOWN;
        }
        next = next.with(SPAN_SHIFT, SPAN_MAX, (self.span() + 1).min(SPAN_MAX));
        if self.in_flight() + 1 >= FLIGHT_MAX {
            // Too many to count: never known again.
            next.0 &= !KNOWN;
        }
        next.with(
            FLIGHT_SHIFT,
            FLIGHT_MAX,
            (self.in_flight() + 1).min(FLIGHT_MAX),
        )
    }

    /// After a write has ended.
    #[must_use]
    pub fn end(self, outcome: WriteOutcome) -> Self {
        let flying = self.in_flight();
        if flying == FLIGHT_MAX || flying == 0 {
            return self;
        }
        let mut next = self.with(FLIGHT_SHIFT, FLIGHT_MAX, flying - 1);
        match outcome {
            WriteOutcome::Acknowledged => next.0 |= SUCCESS,
            WriteOutcome::Uncertain => {}
            WriteOutcome::Discarded => next = next.with(GROUP_SHIFT, GROUP_MAX, GROUP_MAX),
        }
        if flying > 1 {
            return next;
        }
        let group = next.group();
        if group == GROUP_MAX {
            next.0 &= !KNOWN;
        } else if next.0 & SUCCESS != 0 && group - 1 < SPAN_MAX {
            // What was there before the group is gone; any of the group may be last.
            next.0 |= KNOWN;
            next = next.with(SPAN_SHIFT, SPAN_MAX, group - 1);
        } else if next.0 & SUCCESS != 0 {
            next.0 &= !KNOWN;
        }
        next
    }
}

/// The generation after `generation`.
#[inline]
#[must_use]
pub fn following(generation: u16) -> u16 {
    if generation >= GENERATIONS {
        1
    } else {
        generation + 1
    }
}

/// The generation `count` writes before `generation`.
#[must_use]
pub fn before(generation: u16, count: u16) -> u16 {
    let count = count % GENERATIONS;
    if count < generation {
        generation - count
    } else {
        generation + GENERATIONS - count
    }
}

/// Writes from `earlier` to `later`.
#[inline]
#[must_use]
pub fn distance(earlier: u16, later: u16) -> u16 {
    if earlier <= later {
        later - earlier
    } else {
        later + GENERATIONS - earlier
    }
}

/// What a read of a block may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expectation {
    /// Newest generation that may be there; 0: none was written.
    pub newest: u16,
    /// How many before it may be there as well.
    pub span: u32,
    /// Content from before the run may be there as well.
    pub anything: bool,
    /// Sectors of different generations may be there side by side.
    pub mixed: bool,
    /// An earlier read returned `newest`.
    pub seen: bool,
    /// A generation after `newest` may be there: the end of the journal was lost.
    pub newer: bool,
}

impl Expectation {
    /// The expectation that allows every generation, for a run that keeps no table.
    pub const NONE: Self = Self {
        newest: 0,
        span: 0,
        anything: true,
        mixed: false,
        seen: false,
        newer: false,
    };

    /// Of a read that was issued at state `before` and completed at state `after`.
    #[inline]
    #[must_use]
    pub fn between(before: BlockState, after: BlockState) -> Self {
        let quiet = before.is_unwritten_in(after) && after.in_flight() == 0;
        let newest = after.generation();
        let since = u32::from(distance(before.generation(), newest));
        Self {
            newest,
            span: if quiet {
                after.span()
            } else {
                since + before.span()
            },
            anything: !before.is_known() || !after.is_known(),
            mixed: !quiet || after.span() > 0,
            seen: before.0 & after.0 & SEEN != 0,
            newer: false,
        }
    }

    /// True when `generation` may be there.
    #[inline]
    #[must_use]
    pub fn allows(&self, generation: u16) -> bool {
        if self.newest == 0 {
            return self.anything;
        }
        if !(1..=GENERATIONS).contains(&generation) {
            return false;
        }
        let behind = u32::from(distance(generation, self.newest));
        behind <= self.span
            || (self.newer
                && u32::from(distance(self.newest, generation)) < u32::from(GENERATIONS) / 2)
    }

    /// True when `generation` was written later than anything expected.
    #[must_use]
    pub fn is_newer(&self, generation: u16) -> bool {
        self.newer
            && generation != self.newest
            && self.allows(generation)
            && u32::from(distance(generation, self.newest)) > self.span
    }
}

/// The states of a range of a target, and its count of writes.
#[derive(Debug)]
pub struct BlockTable {
    entries: Box<[AtomicU32]>,
    start_bytes: u64,
    block_bytes: u32,
    sequence: AtomicU64,
    newer: bool,
}

impl BlockTable {
    /// Bytes a table for so many bytes of a target needs.
    #[must_use]
    pub fn memory_bytes(length_bytes: u64, block_bytes: u32) -> u64 {
        length_bytes.div_ceil(u64::from(block_bytes)) * 4
    }

    /// A table in which nothing is known, for `length_bytes` from `start_bytes` (a
    /// multiple of `block_bytes`). Memory is taken from the kernel as blocks are touched.
    #[must_use]
    pub fn new(start_bytes: u64, length_bytes: u64, block_bytes: u32) -> Self {
        let count = length_bytes.div_ceil(u64::from(block_bytes)) as usize;
        let zeros = vec![0u32; count].into_boxed_slice();
        // SAFETY: AtomicU32 has the size, alignment and valid values of u32. Made this
        // way the zeros come from fresh pages, which cost nothing until written.
        let entries = unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [AtomicU32]) };
        Self {
            entries,
            start_bytes,
            block_bytes,
            sequence: AtomicU64::new(0),
            newer: false,
        }
    }

    /// Allows generations newer than any in the table: it comes from a journal whose end
    /// was lost.
    pub fn allow_newer(&mut self) {
        self.newer = true;
    }

    /// Number of a new write.
    #[inline]
    pub fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Number of the last write.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    /// Continues the numbers after those of an earlier run.
    pub fn set_sequence(&self, sequence: u64) {
        self.sequence.store(sequence, Ordering::Relaxed);
    }

    /// Bytes of a verify block.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Number of the block at `offset`, which is in the range.
    #[inline]
    #[must_use]
    pub fn index(&self, offset: u64) -> usize {
        ((offset - self.start_bytes) / u64::from(self.block_bytes)) as usize
    }

    /// Offset of block `index`.
    #[must_use]
    pub fn offset(&self, index: usize) -> u64 {
        self.start_bytes + index as u64 * u64::from(self.block_bytes)
    }

    /// Number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when it covers nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// State of block `index`.
    #[inline]
    #[must_use]
    pub fn entry(&self, index: usize) -> BlockState {
        BlockState(self.entries[index].load(Ordering::Acquire))
    }

    /// Sets the state of block `index`, before the run.
    pub fn set(&self, index: usize, entry: BlockState) {
        self.entries[index].store(entry.0, Ordering::Release);
    }

    /// Notes a write (or trim) of block `index` that is about to be issued; returns its
    /// generation.
    #[inline]
    pub fn begin(&self, index: usize) -> u16 {
        self.change(index, BlockState::begin).generation()
    }

    /// Notes its end.
    #[inline]
    pub fn end(&self, index: usize, outcome: WriteOutcome) {
        self.change(index, |entry| entry.end(outcome));
    }

    #[inline]
    fn change(&self, index: usize, change: impl Fn(BlockState) -> BlockState) -> BlockState {
        let cell = &self.entries[index];
        let mut old = cell.load(Ordering::Acquire);
        loop {
            let new = change(BlockState(old));
            match cell.compare_exchange_weak(old, new.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return new,
                Err(now) => old = now,
            }
        }
    }

    /// What a read of block `index` may return that was issued at state `before` and has
    /// completed now; with the state now.
    #[inline]
    #[must_use]
    pub fn expectation(&self, index: usize, before: BlockState) -> (Expectation, BlockState) {
        let after = self.entry(index);
        let newer = self.newer;
        (
            Expectation {
                newer,
                ..Expectation::between(before, after)
            },
            after,
        )
    }

    /// Notes that the newest generation was read; nothing when the block has changed
    /// since it had the state `after`.
    #[inline]
    pub fn mark_seen(&self, index: usize, after: BlockState) {
        if after.0 & SEEN == 0 && after.in_flight() == 0 {
            self.mark(index, after, SEEN);
        }
    }

    /// Notes that damage of the block was found; false when it had been found before.
    pub fn mark_reported(&self, index: usize, after: BlockState) -> bool {
        let mut now = after;
        while now.0 & REPORTED == 0 {
            match self.replace(index, now, REPORTED) {
                Ok(_) => return true,
                // Another read marked it, and of several only one is the first.
                Err(other) if after.is_unwritten_in(other) => now = other,
                Err(_) => return true,
            }
        }
        false
    }

    fn mark(&self, index: usize, after: BlockState, flag: u32) {
        // When it fails the block was written meanwhile, and the mark is of no use.
        let _ = self.replace(index, after, flag);
    }

    /// Adds a flag to a block whose state still is `known`; otherwise what it is now.
    fn replace(&self, index: usize, known: BlockState, flag: u32) -> Result<u32, BlockState> {
        self.entries[index]
            .compare_exchange(known.0, known.0 | flag, Ordering::AcqRel, Ordering::Acquire)
            .map_err(BlockState)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expectation(entry: BlockState) -> Expectation {
        Expectation::between(entry, entry)
    }

    #[test]
    fn of_reads_that_find_a_block_damaged_one_is_the_first_until_it_is_written() {
        let table = BlockTable::new(0, 4096, 4096);
        for _ in 0..2 {
            table.begin(0);
            table.end(0, WriteOutcome::Acknowledged);
            // Both came back before either of them was judged.
            let (one, other) = (table.entry(0), table.entry(0));
            table.mark_seen(0, one);
            assert!(table.mark_reported(0, one));
            assert!(!table.mark_reported(0, other));
            assert!(!table.mark_reported(0, table.entry(0)));
        }
    }

    #[test]
    fn an_acknowledged_write_alone_leaves_only_itself() {
        let entry = BlockState::default().begin();
        assert!(expectation(entry).anything);
        let entry = entry.end(WriteOutcome::Acknowledged);
        let now = expectation(entry);
        assert_eq!(
            (now.newest, now.span, now.anything, now.mixed),
            (1, 0, false, false)
        );
        let flying = entry.begin();
        let during = expectation(flying);
        assert!(during.allows(1) && during.allows(2) && !during.allows(3) && during.mixed);
        let after = expectation(flying.end(WriteOutcome::Acknowledged));
        assert!(after.allows(2) && !after.allows(1) && !after.mixed);
    }

    #[test]
    fn a_failed_write_leaves_old_or_new_until_the_next_success() {
        let old = BlockState::default()
            .begin()
            .end(WriteOutcome::Acknowledged);
        let failed = old.begin().end(WriteOutcome::Uncertain);
        let now = expectation(failed);
        assert!(now.allows(1) && now.allows(2) && now.mixed && !now.anything);
        let healed = expectation(failed.begin().end(WriteOutcome::Acknowledged));
        assert!(healed.allows(3) && !healed.allows(2) && !healed.allows(1));
    }

    #[test]
    fn a_read_that_overlaps_a_write_may_see_either() {
        let before = BlockState::default()
            .begin()
            .end(WriteOutcome::Acknowledged);
        let after = before.begin().end(WriteOutcome::Acknowledged);
        let read = Expectation::between(before, after);
        assert!(read.allows(1) && read.allows(2) && read.mixed && !read.anything);
    }

    #[test]
    fn a_discarded_block_may_hold_anything() {
        let entry = BlockState::default()
            .begin()
            .end(WriteOutcome::Acknowledged);
        let entry = entry.begin().end(WriteOutcome::Discarded);
        assert!(expectation(entry).anything);
        assert!(!expectation(entry.begin().end(WriteOutcome::Acknowledged)).anything);
    }

    #[test]
    fn generations_wrap_without_zero() {
        let mut entry = BlockState::default();
        for i in 0..10_000u32 {
            entry = entry.begin().end(WriteOutcome::Acknowledged);
            assert_eq!(u32::from(entry.generation()), i % 4095 + 1);
            let now = expectation(entry);
            assert!(now.allows(entry.generation()) && now.span == 0 && !now.anything);
        }
    }

    #[test]
    fn too_many_in_flight_make_a_block_unknown_and_not_wrong() {
        let mut entry = BlockState::default()
            .begin()
            .end(WriteOutcome::Acknowledged);
        for _ in 0..300 {
            entry = entry.begin();
        }
        for _ in 0..300 {
            entry = entry.end(WriteOutcome::Acknowledged);
        }
        assert!(expectation(entry).anything);
    }

    /// A block of which each write is atomic, with the truth kept beside the table.
    #[derive(Debug, Default)]
    struct Truth {
        entry: BlockState,
        flying: Vec<u16>,
        holds: u16,
        /// Expectations of reads: state at issue, what they saw.
        reads: Vec<(BlockState, u16)>,
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        /// Whatever the order of issues, effects and ends, what is really there is allowed.
        #[test]
        fn what_is_there_is_always_allowed(steps in prop::collection::vec((0u8..7, any::<u16>()), 1..300)) {
            let mut truth = Truth::default();
            // Writes whose effect is still to come, and those that only wait for their end.
            let mut landed: Vec<(u16, WriteOutcome)> = Vec::new();
            for (step, pick) in steps {
                let pick = usize::from(pick);
                match step {
                    0 | 1 => {
                        truth.entry = truth.entry.begin();
                        truth.flying.push(truth.entry.generation());
                    }
                    2 | 3 if !truth.flying.is_empty() => {
                        let generation = truth.flying.swap_remove(pick % truth.flying.len());
                        truth.holds = generation;
                        landed.push((generation, WriteOutcome::Acknowledged));
                    }
                    4 if !truth.flying.is_empty() => {
                        // Fails; half of them after all had an effect.
                        let generation = truth.flying.swap_remove(pick % truth.flying.len());
                        if pick % 2 == 0 { truth.holds = generation; }
                        landed.push((generation, WriteOutcome::Uncertain));
                    }
                    5 if !landed.is_empty() => {
                        let (_, outcome) = landed.swap_remove(pick % landed.len());
                        truth.entry = truth.entry.end(outcome);
                    }
                    _ => truth.reads.push((truth.entry, truth.holds)),
                }
                for (before, saw) in &truth.reads {
                    let read = Expectation::between(*before, truth.entry);
                    prop_assert!(read.anything || read.allows(*saw), "{read:?} saw {saw}");
                }
                let now = expectation(truth.entry);
                prop_assert!(now.anything || now.allows(truth.holds), "{now:?} holds {}", truth.holds);
            }
        }
    }
}
