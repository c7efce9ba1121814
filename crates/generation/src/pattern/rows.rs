//! I/Os by rows: each row has its own size, share of reads, share of random addresses and
//! alignment, as Iometer's access specifications and vdbench's transfer size tables have.
//!
//! Knows the rows and one position in each file that all of them share: a sequential I/O
//! goes where the one before it ended, whichever row and operation that was. Knows no time.

use super::sizes::{alias_table, pick, Alias};
use super::{NextIo, MIXED};
use loadstone_base::rng::Rng;
use loadstone_plan as plan;

/// The rows of a pattern, and where each file is.
#[derive(Debug, Clone)]
pub(super) struct PatternRows {
    rows: Box<[plan::Row]>,
    /// For rows whatever the operation, for reads and for writes.
    lots: [Box<[Alias]>; 3],
    positions: Box<[Position]>,
    /// The row of the burst that is under way, and its I/Os left.
    current: usize,
    left: u32,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    begin: u64,
    end: u64,
    /// End of the last I/O.
    next: u64,
}

impl PatternRows {
    pub(super) fn new(rows: &[plan::Row], files: &[plan::FileUse]) -> Self {
        let lot = |share: fn(&plan::Row) -> f64| -> Box<[Alias]> {
            alias_table(rows.iter().map(|row| row.weight * share(row)).collect())
        };
        let position = |file: &plan::FileUse| Position {
            begin: file.offset_bytes,
            end: file.offset_bytes.saturating_add(file.length_bytes),
            next: file.offset_bytes,
        };
        Self {
            lots: [
                lot(|_| 1.0),
                lot(|row| f64::from(row.read_percent)),
                lot(|row| f64::from(100 - row.read_percent.min(100))),
            ],
            rows: rows.into(),
            positions: files.iter().map(position).collect(),
            current: 0,
            left: 0,
        }
    }

    /// The next I/O on a file; the operation is the row's unless it is given.
    pub(super) fn next(&mut self, op: Option<usize>, file: u32, rng: &mut Rng) -> NextIo {
        if let Some(op) = op {
            self.current = pick(&self.lots[1 + op.min(1)], rng);
        } else if self.left == 0 {
            self.current = pick(&self.lots[0], rng);
            self.left = self.rows[self.current].burst.max(1) - 1;
        } else {
            self.left -= 1;
        }
        let row = self.rows[self.current];
        let op = op.unwrap_or_else(|| usize::from(!chance(row.read_percent, rng)));
        NextIo {
            op: MIXED[op.min(1)],
            file,
            offset: self.positions[file as usize].take(row, rng),
            len: row.bytes,
        }
    }
}

impl Position {
    /// Where an I/O of a row goes.
    fn take(&mut self, row: plan::Row, rng: &mut Rng) -> u64 {
        let (align, len) = (row.align_bytes.max(1), u64::from(row.bytes));
        let first = self.begin.next_multiple_of(align);
        let places = self.end.saturating_sub(first).saturating_sub(len) / align + 1;
        let start = if chance(row.random_percent, rng) {
            first + rng.below(places) * align
        } else {
            let following = self.next.next_multiple_of(align);
            if following.saturating_add(len) > self.end {
                first
            } else {
                following
            }
        };
        self.next = start + len;
        start
    }
}

fn chance(percent: u32, rng: &mut Rng) -> bool {
    percent >= 100 || (percent > 0 && rng.below(100) < u64::from(percent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_base::ops::Op;
    use std::collections::BTreeMap;

    const KIB: u64 = 1024;

    fn row(weight: f64, kib: u64, read_percent: u32, random_percent: u32) -> plan::Row {
        plan::Row {
            weight,
            bytes: (kib * KIB) as u32,
            read_percent,
            random_percent,
            align_bytes: kib * KIB,
            burst: 1,
        }
    }

    fn take(rows: &[plan::Row], length_kib: u64, count: usize) -> Vec<NextIo> {
        let file = plan::FileUse {
            target: 0,
            cell: 0,
            offset_bytes: 0,
            length_bytes: length_kib * KIB,
        };
        let (mut rows, mut rng) = (PatternRows::new(rows, &[file]), Rng::new(5));
        (0..count).map(|_| rows.next(None, 0, &mut rng)).collect()
    }

    #[test]
    fn reads_and_writes_share_one_position() {
        let found = take(&[row(1.0, 4, 50, 0)], 16, 9);
        let at: Vec<u64> = found.iter().map(|io| io.offset / KIB).collect();
        assert_eq!(at, [0, 4, 8, 12, 0, 4, 8, 12, 0]);
        assert!(found.iter().any(|io| io.op == Op::Read));
        assert!(found.iter().any(|io| io.op == Op::Write));
    }

    #[test]
    fn a_sequential_row_goes_on_where_another_row_ended_at_its_own_alignment() {
        let mut small = row(1.0, 1, 100, 0);
        small.align_bytes = 512;
        let found = take(&[small, row(1.0, 4, 100, 0)], 1024, 200);
        for pair in found.windows(2) {
            let end = pair[0].offset + u64::from(pair[0].len);
            let align = if pair[1].len == 1024 { 512 } else { 4096 };
            let expected = end.next_multiple_of(align);
            assert!(
                pair[1].offset == expected || pair[1].offset == 0,
                "{pair:?}"
            );
        }
    }

    /// Each row keeps its own shares: 512 bytes are read at random, 64 KiB written one after
    /// the other, 8 KiB half and half.
    #[test]
    fn rows_keep_their_own_shares() {
        let rows = [
            row(50.0, 4, 100, 100),
            row(30.0, 8, 50, 50),
            row(20.0, 64, 0, 0),
        ];
        let draws = 100_000;
        let mut by: BTreeMap<u32, (u32, u32, u32)> = BTreeMap::new();
        let mut end = 0;
        for io in take(&rows, 1 << 20, draws) {
            let seen = by.entry(io.len).or_default();
            seen.0 += 1;
            seen.1 += u32::from(io.op == Op::Read);
            let align = u64::from(io.len);
            seen.2 += u32::from(io.offset != u64::next_multiple_of(end, align));
            end = io.offset + u64::from(io.len);
        }
        // Five binomial deviations.
        let near = |found: u32, of: u32, share: f64| {
            let deviation = (f64::from(of) * share * (1.0 - share)).sqrt();
            (f64::from(found) - f64::from(of) * share).abs() <= 5.0 * deviation + 1.0
        };
        for row in &rows {
            let (count, reads, jumps) = by[&row.bytes];
            assert!(near(count, draws as u32, row.weight / 100.0), "{by:?}");
            assert!(near(reads, count, f64::from(row.read_percent) / 100.0));
            // A random address is the following one once in 16,384 times at most; a
            // sequential one is not where it was expected after the end of the file.
            let random = f64::from(row.random_percent) / 100.0;
            assert!(
                near(jumps, count, random) || random == 0.0 && jumps < 50,
                "{by:?}"
            );
        }
    }

    #[test]
    fn a_burst_stays_with_its_row() {
        let mut rows = [row(1.0, 4, 100, 100), row(1.0, 8, 100, 100)];
        rows[0].burst = 3;
        let sizes: Vec<u32> = take(&rows, 1024, 3000).iter().map(|io| io.len).collect();
        let mut runs = sizes.chunk_by(|a, b| a == b).collect::<Vec<_>>();
        runs.pop();
        for run in runs {
            assert!(run[0] != 4096 || run.len() % 3 == 0, "{}", run.len());
        }
    }

    #[test]
    fn an_operation_that_is_given_chooses_among_the_rows_that_do_it() {
        let file = plan::FileUse {
            target: 0,
            cell: 0,
            offset_bytes: 0,
            length_bytes: 1 << 20,
        };
        let rows = [row(10.0, 4, 100, 100), row(90.0, 8, 0, 100)];
        let (mut rows, mut rng) = (PatternRows::new(&rows, &[file]), Rng::new(5));
        for _ in 0..1000 {
            assert_eq!(rows.next(Some(0), 0, &mut rng).len, 4096);
            let write = rows.next(Some(1), 0, &mut rng);
            assert_eq!((write.op, write.len), (Op::Write, 8192));
        }
    }

    #[test]
    fn places_keep_to_the_alignment_and_the_file() {
        let file = plan::FileUse {
            target: 0,
            cell: 0,
            offset_bytes: 5 * 512,
            length_bytes: 100 * KIB,
        };
        let rows = [row(1.0, 4, 100, 100), row(1.0, 16, 0, 30)];
        let (mut rows, mut rng) = (PatternRows::new(&rows, &[file]), Rng::new(8));
        for _ in 0..5000 {
            let io = rows.next(None, 0, &mut rng);
            assert_eq!(io.offset % u64::from(io.len), 0);
            assert!(io.offset >= 4096);
            assert!(io.offset + u64::from(io.len) <= 5 * 512 + 100 * KIB);
        }
    }
}
