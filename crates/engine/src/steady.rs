//! Streams that end when their rate or latency is steady: fio's `steadystate`.
//!
//! Knows samples of equal length and the last few of them. Knows no worker: it is given
//! the rows of each interval and says which streams to end.

use std::collections::VecDeque;

use loadstone_plan::{Plan, Steady, SteadyMetric};
use loadstone_worker::events::{Event, SteadyState};
use loadstone_worker::samples::SampleRow;

/// Number of a flush among the operations: it moves nothing.
const SYNC: u8 = 3;

/// One rule while a run goes on.
#[derive(Debug)]
pub struct Watch {
    rule: u32,
    plan: Steady,
    cells: Vec<u32>,
    /// End of the sample that is being taken; none before the first row that counts.
    until_ns: Option<u64>,
    sample: Sample,
    kept: VecDeque<Sample>,
    judged: Judged,
    attained: bool,
}

/// What was counted in one sample.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    ops: u64,
    bytes: u64,
    lat_sum_ns: f64,
}

/// The figures of the last judgement.
#[derive(Debug, Clone, Copy, Default)]
struct Judged {
    deviation: f64,
    slope: f64,
    /// None before there were enough samples, and where nothing moved at all.
    criterion: Option<f64>,
}

/// The rules of a Plan.
#[must_use]
pub fn watches(plan: &Plan) -> Vec<Watch> {
    let of = |(rule, steady): (u32, &Steady)| {
        let mut cells: Vec<u32> = steady
            .streams
            .iter()
            .flat_map(|&stream| &plan.streams[stream as usize].files)
            .map(|file| file.cell)
            .collect();
        cells.sort_unstable();
        cells.dedup();
        Watch {
            rule,
            plan: steady.clone(),
            cells,
            until_ns: None,
            sample: Sample::default(),
            kept: VecDeque::with_capacity(steady.samples as usize + 1),
            judged: Judged::default(),
            attained: false,
        }
    };
    (0..).zip(&plan.steady).map(of).collect()
}

impl Watch {
    /// Takes the rows of an interval that ends at `end_ns`; true when the state is steady
    /// from now on.
    pub fn see(&mut self, rows: &[SampleRow], interval_ns: u64, end_ns: u64) -> bool {
        if self.attained {
            return false;
        }
        for row in rows {
            let counts = !row.key.ramp
                && row.key.op != SYNC
                && self.cells.binary_search(&row.key.cell).is_ok();
            if !counts {
                continue;
            }
            let until_ns = *self.until_ns.get_or_insert_with(|| {
                let from_ns = row.start_ns + self.plan.after_ns;
                from_ns.next_multiple_of(interval_ns) + self.plan.sample_ns
            });
            // A late worker's rows may be of a sample that is closed.
            if row.start_ns + self.plan.sample_ns >= until_ns {
                self.sample.ops += row.ops;
                self.sample.bytes += row.bytes;
                self.sample.lat_sum_ns += row.sums[0].sum_ns;
            }
        }
        match self.until_ns {
            Some(until_ns) if end_ns >= until_ns => {
                self.until_ns = Some(until_ns + self.plan.sample_ns);
                self.close()
            }
            _ => false,
        }
    }

    fn close(&mut self) -> bool {
        self.kept.push_back(std::mem::take(&mut self.sample));
        let most = self.plan.samples as usize;
        if self.kept.len() > most {
            self.kept.pop_front();
        }
        if self.kept.len() == most {
            let values: Vec<f64> = self.kept.iter().map(|sample| self.value(sample)).collect();
            self.judged = judge(&values, self.plan.slope, self.plan.percent);
            let below = |criterion: f64| criterion.abs() < self.plan.limit;
            self.attained = self.judged.criterion.is_some_and(below);
        }
        self.attained
    }

    fn value(&self, sample: &Sample) -> f64 {
        match self.plan.metric {
            SteadyMetric::Ops => self.per_second(sample.ops) as f64,
            SteadyMetric::Bytes => self.per_second(sample.bytes) as f64,
            SteadyMetric::Latency => mean_ns(sample) as f64,
        }
    }

    fn per_second(&self, count: u64) -> u64 {
        (count as f64 * 1e9 / self.plan.sample_ns as f64) as u64
    }

    /// The streams that end together.
    #[must_use]
    pub fn streams(&self) -> &[u32] {
        &self.plan.streams
    }

    /// What was found, now or at the end of the run.
    #[must_use]
    pub fn describe(&self, t_ns: u64) -> Event {
        Event::Steady(Box::new(SteadyState {
            t_ns,
            rule: self.rule,
            attained: self.attained,
            criterion: self.judged.criterion,
            deviation: self.judged.deviation,
            slope: self.judged.slope,
            ops_per_second: self.kept.iter().map(|s| self.per_second(s.ops)).collect(),
            bytes_per_second: self.kept.iter().map(|s| self.per_second(s.bytes)).collect(),
            lat_mean_ns: self.kept.iter().map(mean_ns).collect(),
        }))
    }

    /// True once it was attained.
    #[must_use]
    pub fn is_attained(&self) -> bool {
        self.attained
    }
}

fn mean_ns(sample: &Sample) -> u64 {
    if sample.ops == 0 {
        0
    } else {
        (sample.lat_sum_ns / sample.ops as f64) as u64
    }
}

/// Largest deviation from the mean, or the slope of the least-squares line per sample; in
/// percent of the mean when wanted.
fn judge(values: &[f64], slope: bool, percent: bool) -> Judged {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let middle = (count - 1.0) / 2.0;
    let mut judged = Judged::default();
    let raw = if slope {
        let (mut xy, mut xx) = (0.0, 0.0);
        for (x, y) in values.iter().enumerate() {
            let x = x as f64 - middle;
            xy += x * (y - mean);
            xx += x * x;
        }
        judged.slope = xy / xx;
        judged.slope
    } else {
        let apart = values.iter().map(|value| (value - mean).abs());
        judged.deviation = apart.fold(0.0, f64::max);
        judged.deviation
    };
    // Of nothing there is no share: a device that stands still is not steady.
    judged.criterion = match (mean == 0.0, percent) {
        (true, _) => None,
        (false, true) => Some(100.0 * raw / mean),
        (false, false) => Some(raw),
    };
    judged
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_worker::samples::RowKey;

    const SECOND: u64 = 1_000_000_000;
    const HALF: u64 = SECOND / 2;

    fn watch(metric: SteadyMetric, slope: bool, limit: f64, percent: bool) -> Watch {
        Watch {
            rule: 0,
            plan: Steady {
                streams: vec![4],
                metric,
                slope,
                limit,
                percent,
                after_ns: SECOND,
                sample_ns: SECOND,
                samples: 3,
            },
            cells: vec![1],
            until_ns: None,
            sample: Sample::default(),
            kept: VecDeque::new(),
            judged: Judged::default(),
            attained: false,
        }
    }

    fn row(interval: u64, cell: u32, ramp: bool, ops: u64) -> SampleRow {
        let key = RowKey {
            interval: interval as u32,
            stage: 0,
            cell,
            op: 0,
            priority: 0,
            ramp,
        };
        let mut row = SampleRow::empty(key, interval * HALF, (interval + 1) * HALF);
        (row.ops, row.bytes, row.sums[0].sum_ns) = (ops, ops * 4096, ops as f64 * 5_000.0);
        row
    }

    /// Operations of each half second in, the half second in which it was steady out.
    fn steady_at(watch: &mut Watch, ops: &[u64]) -> Option<usize> {
        (0..).zip(ops).position(|(interval, &ops)| {
            let rows = [row(interval, 1, false, ops), row(interval, 7, false, 999)];
            watch.see(&rows, HALF, (interval + 1) * HALF)
        })
    }

    #[test]
    fn deviations_are_of_whole_samples_after_the_time_left_out() {
        let mut watch = watch(SteadyMetric::Ops, false, 3.0, true);
        let ops = [900, 10, 50, 50, 40, 60, 51, 51, 49, 50, 1, 1];
        // Seconds from the second on: 100, 100, 102 and their mean 100.67.
        assert_eq!(steady_at(&mut watch, &ops), Some(7));
        assert_eq!(watch.streams(), [4]);
        let Event::Steady(found) = watch.describe(7) else {
            panic!("another event");
        };
        assert_eq!(found.ops_per_second, [100, 100, 102]);
        assert_eq!(found.bytes_per_second[2], 102 * 4096);
        assert_eq!(found.lat_mean_ns, [5_000; 3]);
        let criterion = found.criterion.unwrap_or(0.0);
        assert!(found.attained && (criterion - 100.0 * 4.0 / 302.0).abs() < 1e-9);
        assert_eq!((found.slope, found.rule), (0.0, 0));
    }

    #[test]
    fn a_slope_is_judged_by_its_size_whichever_way_it_goes() {
        let falls = [0, 0, 50, 50, 45, 45, 40, 40, 40, 40, 40, 40, 40, 40];
        let mut percent = watch(SteadyMetric::Bytes, true, 5.0, true);
        // 90, 80, 80 falls by 5 a second, 6 % of 83.3; 80, 80, 80 by nothing.
        assert_eq!(steady_at(&mut percent, &falls), Some(11));
        let mut absolute = watch(SteadyMetric::Ops, true, 5.5, false);
        assert_eq!(steady_at(&mut absolute, &falls), Some(9));
        assert!((absolute.judged.slope + 5.0).abs() < 1e-9);
    }

    #[test]
    fn the_ramp_and_a_standstill_do_not_count() {
        let mut ramp = watch(SteadyMetric::Ops, false, 50.0, true);
        for interval in 0..40 {
            assert!(!ramp.see(&[row(interval, 1, true, 10)], HALF, (interval + 1) * HALF));
        }
        assert!(ramp.until_ns.is_none());
        let mut still = watch(SteadyMetric::Ops, false, 50.0, false);
        assert_eq!(steady_at(&mut still, &[0; 40]), None);
    }
}
