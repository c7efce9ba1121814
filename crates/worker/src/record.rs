//! What a worker counts in one interval: per row, operations and latency histograms.
//!
//! Knows rows and how to add runs of equal latencies. Knows no cell, no file and no
//! clock. A row is what [`crate::rows`] says it is. Everything lies in one mapping, of
//! which only touched pages are resident: the same few buckets of all rows lie
//! together, because rows differ little and a row alone would touch a page for each few.
//! The ramp's rows, the odd ones, lie behind all others: most runs never touch them.

use std::io;

use crate::histogram::{bucket_of, BUCKETS};
use loadstone_io::memory::{look_at, Mapping, PAGE_BYTES};

/// Latencies kept for each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum LatencyKind {
    /// Intended start to reaped.
    Lat = 0,
    /// Picked up to handed over.
    Slat = 1,
    /// Handed over to reaped.
    Clat = 2,
    /// Intended start to picked up. In a closed loop mostly 0, so zeros are not counted
    /// one by one: they are the operations without a count in the histogram.
    Wait = 3,
}

/// Number of [`LatencyKind`]s.
pub const KINDS: usize = 4;
const WAIT: usize = LatencyKind::Wait as usize;

/// Buckets of a row that lie together: a cache line of them, a quarter of a power of two.
const BLOCK: usize = 16;

/// Sums of one kind of latency.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Sums {
    /// Sum in nanoseconds.
    pub sum_ns: f64,
    /// Sum of squares.
    pub sumsq_ns2: f64,
    /// Smallest; meaningless while the row has no operation.
    pub min_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl Sums {
    #[inline]
    fn add(&mut self, value_ns: u64, weight: f64, first: bool) {
        // One instruction from a signed number, several from an unsigned one.
        let ns = value_ns.min(i64::MAX as u64) as i64 as f64;
        self.sum_ns += ns * weight;
        self.sumsq_ns2 += ns * ns * weight;
        self.min_ns = if first {
            value_ns
        } else {
            self.min_ns.min(value_ns)
        };
        self.max_ns = self.max_ns.max(value_ns);
    }
}

/// Counts and sums of one row.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Totals {
    /// Completed without error.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Completed with an error.
    pub errors: u64,
    /// Completed with fewer bytes than asked.
    pub shorts: u64,
    /// I/Os in flight when the interval was cut.
    pub in_flight: u32,
    /// 1 when a stream fed this row during the interval.
    pub live: u32,
    /// By [`LatencyKind`].
    pub sums: [Sums; KINDS],
}

/// The counters of all rows of a worker for one interval.
#[derive(Debug)]
pub struct CounterTable {
    memory: Mapping,
    rows: usize,
    /// Pairs of an even and an odd row.
    pairs: usize,
    /// Start of the interval.
    pub start_ns: u64,
    /// End of the interval.
    pub end_ns: u64,
}

/// One run of I/Os with the same latencies.
#[derive(Debug, Clone, Copy)]
pub struct RepeatedLatency {
    /// Row.
    pub row: u32,
    /// Number of I/Os.
    pub count: u32,
    /// Bytes they moved together.
    pub bytes: u64,
    /// Values by [`LatencyKind`].
    pub values_ns: [u64; KINDS],
}

impl RepeatedLatency {
    /// No I/O, of no row.
    pub const NONE: Self = Self {
        row: u32::MAX,
        count: 0,
        bytes: 0,
        values_ns: [0; KINDS],
    };
}

/// I/Os received and not yet sorted in.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Inbox {
    items: [Immediate; INBOX],
    count: usize,
}

/// Most of them: so few that what they touch stays near, so many that it is looked up once.
const INBOX: usize = 32;
const INBOX_BYTES: usize = size_of::<Inbox>().next_multiple_of(64);

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Immediate {
    row: u32,
    bytes: u32,
    lat_ns: u64,
}

/// A page of a table.
#[derive(Clone, Copy)]
struct TablePage([u8; PAGE_BYTES]);

/// Blocks of one row.
const BLOCKS: usize = BUCKETS / BLOCK * KINDS;

/// What stands before the buckets.
fn head_bytes(pairs: usize) -> usize {
    INBOX_BYTES + (2 * pairs * size_of::<Totals>()).next_multiple_of(64)
}

/// Buckets of all rows of one parity.
fn half_bytes(pairs: usize) -> usize {
    pairs * BLOCKS * BLOCK * size_of::<u32>()
}

impl CounterTable {
    /// Bytes a table of so many rows needs.
    #[must_use]
    pub fn bytes_needed(rows: usize) -> usize {
        Self::bytes_without_ramp(rows) + half_bytes(rows.div_ceil(2))
    }

    /// Bytes it touches at most while no ramp's row counts anything.
    #[must_use]
    pub fn bytes_without_ramp(rows: usize) -> usize {
        let pairs = rows.div_ceil(2);
        head_bytes(pairs) + half_bytes(pairs)
    }

    /// A table of zeros.
    ///
    /// # Errors
    /// The error of `mmap(2)`.
    pub fn new(rows: usize) -> io::Result<Self> {
        let memory = Mapping::new(Self::bytes_needed(rows), false)?;
        Ok(Self {
            memory,
            rows,
            pairs: rows.div_ceil(2),
            start_ns: 0,
            end_ns: 0,
        })
    }

    /// A copy of the table of so many rows at `address`, which another thread may be
    /// writing.
    ///
    /// # Safety
    /// `address` must be that of a living table with `rows` rows.
    ///
    /// # Errors
    /// The error of `mmap(2)`.
    pub unsafe fn copy(address: usize, rows: usize, bounds_ns: (u64, u64)) -> io::Result<Self> {
        let mut copy = Self::new(rows)?;
        (copy.start_ns, copy.end_ns) = bounds_ns;
        let bytes = Self::bytes_needed(rows);
        for start in (0..bytes).step_by(PAGE_BYTES) {
            let len = PAGE_BYTES.min(bytes - start);
            // SAFETY: by the caller's promise both mappings are that long, and both begin
            // on a page.
            unsafe {
                let page: TablePage = look_at((address as *const u8).add(start).cast());
                // What counted nothing does not become resident.
                if page.0[..len] != [0; PAGE_BYTES][..len] {
                    let to = copy.memory.start().add(start);
                    to.copy_from_nonoverlapping(page.0.as_ptr(), len);
                }
            }
        }
        if rows > 0 {
            copy.settle();
        }
        Ok(copy)
    }

    /// Where the counters are; 0 for a table without rows.
    #[must_use]
    pub fn address(&self) -> usize {
        if self.rows == 0 {
            0
        } else {
            self.memory.start() as usize
        }
    }

    /// A table without rows.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            memory: Mapping::empty(),
            rows: 0,
            pairs: 0,
            start_ns: 0,
            end_ns: 0,
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Counts of a row.
    #[inline]
    pub fn totals_mut(&mut self, row: u32) -> &mut Totals {
        assert!((row as usize) < self.rows);
        // SAFETY: the row is in range; totals stand behind the inbox; zeros are valid.
        unsafe { &mut *self.first_totals().add(row as usize) }
    }

    /// Counts of a row.
    #[must_use]
    pub fn totals(&self, row: u32) -> &Totals {
        assert!((row as usize) < self.rows);
        // SAFETY: as in `totals_mut`.
        unsafe { &*self.first_totals().add(row as usize) }
    }

    #[inline]
    fn first_totals(&self) -> *mut Totals {
        self.memory.start().wrapping_add(INBOX_BYTES).cast()
    }

    /// Where the count of a bucket is. The mapping must be written only by its owner.
    #[inline]
    fn place(&self, row: u32, kind: usize, bucket: usize) -> *mut u32 {
        debug_assert!((row as usize) < self.rows && kind < KINDS && bucket < BUCKETS);
        let (row, half) = (row as usize / 2, row as usize % 2);
        let block = (half * BLOCKS + bucket / BLOCK * KINDS + kind) * self.pairs + row;
        self.memory
            .start()
            .wrapping_add(head_bytes(self.pairs))
            .cast::<u32>()
            .wrapping_add(block * BLOCK + bucket % BLOCK)
    }

    /// Buckets of a row with something in them and their counts, in order.
    pub fn counts(&self, row: u32, kind: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let sums = &self.totals(row).sums[kind];
        (bucket_of(sums.min_ns)..=bucket_of(sums.max_ns)).filter_map(move |bucket| {
            // SAFETY: the row was checked and `bucket_of` is below BUCKETS; zeros are valid.
            let count = unsafe { self.place(row, kind, bucket).read() };
            (count > 0).then_some((bucket, count))
        })
    }

    /// Adds a run of completed I/Os.
    #[inline]
    pub fn add(&mut self, run: &RepeatedLatency) {
        let count = u64::from(run.count);
        let totals = self.totals_mut(run.row);
        let first = totals.ops == 0;
        totals.ops += count;
        totals.bytes += run.bytes;
        let weight = count as f64;
        for kind in 0..WAIT {
            totals.sums[kind].add(run.values_ns[kind], weight, first);
        }
        let wait = run.values_ns[WAIT];
        if wait > 0 {
            let first = totals.sums[WAIT].max_ns == 0;
            totals.sums[WAIT].add(wait, weight, first);
            self.count(run.row, WAIT, wait, run.count);
        }
        for kind in 0..WAIT {
            self.count(run.row, kind, run.values_ns[kind], run.count);
        }
    }

    /// Adds one I/O that was picked up and handed over the moment it was intended: its clat
    /// is its lat, its slat and its wait are 0. It is sorted in later, with others: between
    /// two system calls that takes longer than in a batch.
    #[inline(always)]
    pub fn receive(&mut self, row: u32, bytes: u32, lat_ns: u64) {
        let inbox = self.inbox();
        let at = inbox.count % INBOX;
        inbox.items[at] = Immediate { row, bytes, lat_ns };
        inbox.count = at + 1;
        if inbox.count == INBOX {
            self.settle();
        }
    }

    /// Sorts in what was received. Nobody may look at the table before.
    #[inline(never)]
    pub fn settle(&mut self) {
        let Inbox { count, items } = *self.inbox();
        self.inbox().count = 0;
        let mut items = &items[..count.min(INBOX)];
        while let Some(first) = items.first() {
            let same = items
                .iter()
                .take_while(|item| item.row == first.row)
                .count();
            let (run, rest) = items.split_at(same);
            items = rest;
            // A copy of a table that was being written may hold anything.
            if (first.row as usize) < self.rows {
                self.add_immediate(first.row, run);
            }
        }
    }

    fn add_immediate(&mut self, row: u32, items: &[Immediate]) {
        const LAT: usize = LatencyKind::Lat as usize;
        const SLAT: usize = LatencyKind::Slat as usize;
        const CLAT: usize = LatencyKind::Clat as usize;
        let mut totals = *self.totals_mut(row);
        for item in items {
            let first = totals.ops == 0;
            totals.ops += 1;
            totals.bytes += u64::from(item.bytes);
            totals.sums[LAT].add(item.lat_ns, 1.0, first);
            totals.sums[CLAT].add(item.lat_ns, 1.0, first);
            self.count(row, LAT, item.lat_ns, 1);
            self.count(row, CLAT, item.lat_ns, 1);
        }
        totals.sums[SLAT].min_ns = 0;
        *self.totals_mut(row) = totals;
        self.count(row, SLAT, 0, items.len() as u32);
    }

    #[inline(always)]
    fn inbox(&mut self) -> &mut Inbox {
        debug_assert!(self.rows > 0);
        // SAFETY: it stands at the start of the mapping of a table with rows; zeros are valid.
        unsafe { &mut *self.memory.start().cast::<Inbox>() }
    }

    #[inline]
    fn count(&mut self, row: u32, kind: usize, value_ns: u64, count: u32) {
        assert!((row as usize) < self.rows && kind < KINDS);
        // SAFETY: `bucket_of` is below BUCKETS; row and kind were checked.
        unsafe {
            let bucket = self.place(row, kind, bucket_of(value_ns));
            *bucket = (*bucket).saturating_add(count);
        }
    }

    /// Makes every counter zero, touching only what was used.
    pub fn clear(&mut self) {
        for row in 0..self.rows as u32 {
            let totals = *self.totals(row);
            if totals.ops > 0 {
                for (kind, sums) in totals.sums.iter().enumerate() {
                    self.clear_counts(row, kind, sums);
                }
            }
            if totals.ops | totals.errors != 0 || totals.live != 0 || totals.in_flight != 0 {
                *self.totals_mut(row) = Totals::default();
            }
        }
    }

    /// Only reads what was not counted, so that it does not become resident.
    fn clear_counts(&mut self, row: u32, kind: usize, sums: &Sums) {
        for bucket in bucket_of(sums.min_ns)..=bucket_of(sums.max_ns) {
            let place = self.place(row, kind, bucket);
            // SAFETY: the row exists and `bucket_of` is below BUCKETS.
            unsafe {
                if place.read() != 0 {
                    place.write(0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(table: &CounterTable, row: u32, kind: usize) -> Vec<(usize, u32)> {
        // SAFETY: every bucket is in range.
        let count = |bucket| unsafe { table.place(row, kind, bucket).read() };
        let counts = (0..BUCKETS).map(|bucket| (bucket, count(bucket)));
        counts.filter(|&(_, count)| count > 0).collect()
    }

    #[test]
    fn a_run_counts_like_its_ios_one_by_one() {
        let (mut run_wise, mut one_by_one) =
            (CounterTable::new(2).unwrap(), CounterTable::new(2).unwrap());
        for (row, count, value) in [(0, 32, 4_000), (0, 1, 90), (1, 7, 1 << 50), (0, 5, 4_000)] {
            let values_ns = [value, value / 3, value - value / 3, 0];
            run_wise.add(&RepeatedLatency {
                row,
                count,
                bytes: 4096 * u64::from(count),
                values_ns,
            });
            for _ in 0..count {
                one_by_one.add(&RepeatedLatency {
                    row,
                    count: 1,
                    bytes: 4096,
                    values_ns,
                });
            }
        }
        for row in 0..2 {
            let (a, b) = (run_wise.totals(row), one_by_one.totals(row));
            assert_eq!((a.ops, a.bytes), (b.ops, b.bytes));
            for kind in 0..3 {
                let counts = all(&run_wise, row, kind);
                assert_eq!(counts, all(&one_by_one, row, kind));
                assert!(run_wise.counts(row, kind).eq(counts.iter().copied()));
                let counted: u64 = counts.iter().map(|&(_, n)| u64::from(n)).sum();
                assert_eq!(counted, a.ops);
                assert_eq!(a.sums[kind].min_ns, b.sums[kind].min_ns);
                assert_eq!(a.sums[kind].max_ns, b.sums[kind].max_ns);
                assert!(
                    (a.sums[kind].sum_ns - b.sums[kind].sum_ns).abs() <= 1e-9 * b.sums[kind].sum_ns
                );
            }
        }
    }

    #[test]
    fn ios_received_count_like_ios_added() {
        let (mut received, mut added) =
            (CounterTable::new(4).unwrap(), CounterTable::new(4).unwrap());
        let mut random = loadstone_base::rng::Rng::new(3);
        for index in 0..1000u32 {
            let (row, lat) = (index / 7 % 3, random.next_u64() >> (random.next_u64() % 64));
            received.receive(row, 512 + row, lat);
            added.add(&RepeatedLatency {
                row,
                count: 1,
                bytes: u64::from(512 + row),
                values_ns: [lat, 0, lat, 0],
            });
            if index % 101 == 0 {
                received.settle();
            }
        }
        // What a thread sees that has given the worker up.
        // SAFETY: the table lives and has four rows.
        let copy = unsafe { CounterTable::copy(received.address(), 4, (0, 1)) }.unwrap();
        received.settle();
        for table in [&received, &copy] {
            for row in 0..4 {
                let (a, b) = (table.totals(row), added.totals(row));
                assert_eq!((a.ops, a.bytes), (b.ops, b.bytes));
                for kind in 0..KINDS {
                    assert_eq!(all(table, row, kind), all(&added, row, kind));
                    let (a, b) = (a.sums[kind], b.sums[kind]);
                    assert_eq!((a.min_ns, a.max_ns), (b.min_ns, b.max_ns));
                    assert!((a.sum_ns - b.sum_ns).abs() <= 1e-9 * b.sum_ns);
                    assert!((a.sumsq_ns2 - b.sumsq_ns2).abs() <= 1e-9 * b.sumsq_ns2);
                }
            }
        }
        received.clear();
        assert_eq!(received.totals(0).ops, 0);
    }

    #[test]
    fn every_count_has_a_place_of_its_own() {
        let rows = 3;
        let table = CounterTable::new(rows).unwrap();
        let mut places = std::collections::HashSet::new();
        let end = table.memory.start() as usize + CounterTable::bytes_needed(rows);
        for row in 0..rows as u32 {
            for kind in 0..KINDS {
                for bucket in 0..BUCKETS {
                    let place = table.place(row, kind, bucket) as usize;
                    assert!(place + size_of::<u32>() <= end);
                    assert!(places.insert(place), "{row} {kind} {bucket}");
                }
            }
        }
        assert!(places
            .iter()
            .all(|&place| place >= table.memory.start() as usize + head_bytes(rows.div_ceil(2))));
        let first_of_ramp = table.memory.start() as usize + CounterTable::bytes_without_ramp(rows);
        assert!(places.iter().any(|&place| place == first_of_ramp));
        assert!(table.place(2, KINDS - 1, BUCKETS - 1) < first_of_ramp as *mut u32);
        assert!(table.place(1, 0, 0) >= first_of_ramp as *mut u32);
    }

    #[test]
    fn clearing_leaves_nothing() {
        let mut table = CounterTable::new(3).unwrap();
        for value in [0, 1, 77, 12_345, u64::MAX] {
            table.add(&RepeatedLatency {
                row: 1,
                count: 3,
                bytes: 1,
                values_ns: [value, value / 2, 5, value],
            });
        }
        table.totals_mut(2).errors = 1;
        table.clear();
        for row in 0..3 {
            assert_eq!(table.totals(row).ops + table.totals(row).errors, 0);
            for kind in 0..4 {
                assert_eq!(all(&table, row, kind), []);
            }
        }
    }
}
