//! From the workers' tables to the sample files and ticks.
//!
//! Knows when an interval is complete: when every worker of the stage has handed it in.
//! Knows no worker's inside. Keeps nothing once it is written; totals are sums over the
//! file.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::budget::spare_tables;
use crate::steady::{self, Watch};
use loadstone_base::ops::AnyOp;
use loadstone_io::usage::{Resident, Usage};
use loadstone_plan::Plan;
use loadstone_worker::events::{Event, Speaker, TickRow};
use loadstone_worker::record::CounterTable;
use loadstone_worker::rows::WorkerRows;
use loadstone_worker::samples::{
    ios_batch, ios_schema, samples_batch, samples_schema, BatchFile, IoRecord, RowKey, SampleRow,
};

/// Writer of samples and ticks.
#[derive(Debug)]
pub struct Reporter {
    samples: BatchFile,
    ios: Option<BatchFile>,
    interval_ns: u64,
    /// Rows of intervals not complete yet.
    pending: BTreeMap<u32, BTreeMap<RowKey, SampleRow>>,
    origin_usage: Usage,
    resident: Resident,
    total_ops: u64,
    last_ns: u64,
    steady: Vec<Watch>,
    /// Intervals that are written together: as many as a worker may be ahead.
    together: u32,
}

impl Reporter {
    /// Creates the files in `dir`.
    ///
    /// # Errors
    /// Of the files.
    pub fn new(plan: &Plan, dir: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let logged = plan.streams.iter().any(|stream| stream.log_ios);
        let ios = logged
            .then(|| BatchFile::create(&dir.join("ios.arrows"), &ios_schema()))
            .transpose()?;
        let workers = 0..plan.workers.len() as u32;
        let together = workers
            .map(|worker| spare_tables(plan, worker) as u32)
            .min();
        let together = together.unwrap_or(1);
        Ok(Self {
            samples: BatchFile::create(&dir.join("samples.arrows"), &samples_schema())?,
            ios,
            interval_ns: plan.interval_ns,
            pending: BTreeMap::new(),
            origin_usage: Usage::now(),
            resident: Resident::open(),
            total_ops: 0,
            last_ns: 0,
            steady: steady::watches(plan),
            together,
        })
    }

    /// The origin is now: CPU time counts from here.
    pub fn start(&mut self) {
        self.origin_usage = Usage::now();
    }

    /// Use since the origin.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::now().since(&self.origin_usage)
    }

    /// I/Os completed without error so far.
    #[must_use]
    pub fn total_ops(&self) -> u64 {
        self.total_ops
    }

    /// End of the last interval handed in.
    #[must_use]
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Takes the rows of one worker's interval; the table may be cleared afterwards.
    pub fn take(&mut self, table: &CounterTable, rows: &WorkerRows, stage: u32) {
        self.last_ns = self.last_ns.max(table.end_ns);
        let interval = (table.end_ns.max(1) - 1) / self.interval_ns;
        let interval = u32::try_from(interval).unwrap_or(u32::MAX);
        for row in 0..table.rows() as u32 {
            let (pair, ramp) = rows.meaning(row);
            let key = RowKey {
                interval,
                stage,
                cell: pair.cell,
                op: pair.op.code(),
                priority: pair.priority,
                ramp,
            };
            let Some(taken) = SampleRow::take(table, row, key) else {
                continue;
            };
            if taken.start_ns == taken.end_ns && taken.ops + taken.errors == 0 {
                continue;
            }
            self.total_ops += taken.ops;
            let interval_rows = self.pending.entry(interval).or_default();
            match interval_rows.get_mut(&key) {
                Some(row) => row.merge(&taken),
                None => drop(interval_rows.insert(key, taken)),
            }
        }
    }

    /// Writes the intervals that end by `complete_ns`, some of them together, and says a
    /// tick for each. Returns the streams that are to end because they are steady.
    ///
    /// # Errors
    /// Of the files.
    pub fn write_until(&mut self, complete_ns: u64, speaker: &mut Speaker) -> io::Result<Vec<u32>> {
        let mut steady = Vec::new();
        while let Some((&first, _)) = self.pending.first_key_value() {
            let next = (first / self.together + 1).saturating_mul(self.together);
            if self.end_ns(next - 1) > complete_ns {
                break;
            }
            let later = self.pending.split_off(&next);
            let complete = std::mem::replace(&mut self.pending, later);
            let rows: Vec<SampleRow> = complete
                .into_values()
                .flat_map(BTreeMap::into_values)
                .collect();
            self.samples.write(&samples_batch(&rows)?)?;
            for rows in rows.chunk_by(|one, next| one.key.interval == next.key.interval) {
                self.tick(rows, speaker, &mut steady);
            }
        }
        Ok(steady)
    }

    /// Says what was done in an interval, and adds the streams that are steady with it.
    fn tick(&mut self, rows: &[SampleRow], speaker: &mut Speaker, steady: &mut Vec<u32>) {
        let interval = rows[0].key.interval;
        let usage = self.usage();
        speaker.say(&Event::Tick {
            t_ns: rows.iter().map(|row| row.end_ns).max().unwrap_or(0),
            interval,
            cpu_user_ns: usage.cpu_user_ns,
            cpu_system_ns: usage.cpu_system_ns,
            spun_ns: usage.spun_ns,
            rss_bytes: self.resident.bytes(),
            rows: tick_rows(rows),
        });
        let end_ns = self.end_ns(interval);
        for watch in &mut self.steady {
            if watch.see(rows, self.interval_ns, end_ns) {
                speaker.say(&watch.describe(end_ns));
                steady.extend_from_slice(watch.streams());
            }
        }
    }

    /// End of an interval on the grid.
    fn end_ns(&self, interval: u32) -> u64 {
        (u64::from(interval) + 1).saturating_mul(self.interval_ns)
    }

    /// Writes records of single I/Os.
    ///
    /// # Errors
    /// Of the file.
    pub fn write_ios(&mut self, records: &[IoRecord]) -> io::Result<()> {
        match &mut self.ios {
            Some(file) => file.write(&ios_batch(records)?),
            None => Ok(()),
        }
    }

    /// Writes everything that is left and the end markers.
    ///
    /// # Errors
    /// Of the files.
    pub fn finish(&mut self, speaker: &mut Speaker) -> io::Result<()> {
        self.write_until(u64::MAX, speaker)?;
        for watch in self.steady.iter().filter(|watch| !watch.is_attained()) {
            speaker.say(&watch.describe(self.last_ns));
        }
        self.samples.finish()?;
        self.ios.as_mut().map_or(Ok(()), BatchFile::finish)
    }
}

/// One row for each cell and operation, whatever the priorities of the I/Os.
fn tick_rows(rows: &[SampleRow]) -> Vec<TickRow> {
    let kind = |row: &SampleRow| (row.key.cell, row.key.op, row.key.ramp);
    let together = rows.chunk_by(|one, next| kind(one) == kind(next));
    together
        .map(|rows| match rows {
            [row] => tick_row(row),
            rows => tick_row(&merged(rows)),
        })
        .collect()
}

fn merged(rows: &[SampleRow]) -> SampleRow {
    let mut all = rows[0].clone();
    for row in &rows[1..] {
        let mut row = row.clone();
        row.key = all.key;
        all.merge(&row);
    }
    all
}

fn tick_row(row: &SampleRow) -> TickRow {
    TickRow {
        cell: row.key.cell,
        op: AnyOp::from_code(row.key.op).name(),
        ramp: row.key.ramp,
        ops: row.ops,
        bytes: row.bytes,
        errors: row.errors,
        p50_ns: row.percentile_ns(0.50),
        p99_ns: row.percentile_ns(0.99),
        max_ns: row.sums[0].max_ns,
        inflight: row.in_flight,
    }
}
