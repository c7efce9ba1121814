//! The sample files: `samples.arrows` and `ios.arrows`.
//!
//! Knows their columns and how to merge rows of several workers. Knows no thread. Every
//! batch goes out with one `write(2)`, so a killed run leaves whole batches.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int32Builder, ListBuilder, UInt16Builder, UInt32Builder,
    UInt64Builder, UInt8Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::histogram::value_of;
use crate::record::{CounterTable, LatencyKind, Sums, KINDS};
use loadstone_base::new_file::new_file;
use loadstone_base::ops::OpKind;

/// Prefixes of the latency columns, in the order of [`crate::record::LatencyKind`].
pub const KIND_NAMES: [&str; KINDS] = ["lat", "slat", "clat", "wait"];

/// What a row stands for. The order is the order in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// Number of the interval.
    pub interval: u32,
    /// Stage.
    pub stage: u32,
    /// Cell.
    pub cell: u32,
    /// Operation.
    pub op: u8,
    /// Ramp.
    pub ramp: bool,
    /// Priority.
    pub priority: u16,
}

/// One row of `samples.arrows`, with sparse histograms.
#[derive(Debug, Clone)]
pub struct SampleRow {
    /// What it stands for.
    pub key: RowKey,
    /// Bounds since the run's origin.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// As in [`crate::record::Totals`].
    pub ops: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Failed I/Os.
    pub errors: u64,
    /// Short I/Os.
    pub shorts: u64,
    /// In flight at the end.
    pub in_flight: u32,
    /// Sums by kind.
    pub sums: [Sums; KINDS],
    /// Buckets and counts by kind, ascending.
    pub buckets: [Vec<(u16, u32)>; KINDS],
}

impl SampleRow {
    /// Takes a row out of a worker's table; none when there is nothing to tell.
    #[must_use]
    pub fn take(table: &CounterTable, row: u32, key: RowKey) -> Option<Self> {
        let totals = *table.totals(row);
        if totals.live == 0 && totals.ops == 0 && totals.errors == 0 {
            return None;
        }
        let mut buckets: [Vec<(u16, u32)>; KINDS] = Default::default();
        let mut sums = [Sums::default(); KINDS];
        if totals.ops > 0 {
            for kind in 0..KINDS {
                sums[kind] = totals.sums[kind];
                let counts = table.counts(row, kind);
                buckets[kind] = counts
                    .map(|(bucket, count)| (bucket as u16, count))
                    .collect();
            }
            const WAIT: usize = LatencyKind::Wait as usize;
            add_zeros(&mut buckets[WAIT], &mut sums[WAIT], totals.ops);
        }
        let (start_ns, end_ns) = (table.start_ns, table.end_ns);
        let (ops, bytes, errors, shorts) = (totals.ops, totals.bytes, totals.errors, totals.shorts);
        Some(Self {
            key,
            start_ns,
            end_ns,
            ops,
            bytes,
            errors,
            shorts,
            in_flight: totals.in_flight,
            sums,
            buckets,
        })
    }

    /// A row in which nothing happened.
    #[must_use]
    pub fn empty(key: RowKey, start_ns: u64, end_ns: u64) -> Self {
        Self {
            key,
            start_ns,
            end_ns,
            ops: 0,
            bytes: 0,
            errors: 0,
            shorts: 0,
            in_flight: 0,
            sums: [Sums::default(); KINDS],
            buckets: Default::default(),
        }
    }

    /// Adds a row of the same key.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.key, other.key);
        for kind in 0..KINDS {
            let (mine, theirs) = (&mut self.sums[kind], &other.sums[kind]);
            mine.sum_ns += theirs.sum_ns;
            mine.sumsq_ns2 += theirs.sumsq_ns2;
            if other.ops > 0 {
                mine.min_ns = if self.ops == 0 {
                    theirs.min_ns
                } else {
                    mine.min_ns.min(theirs.min_ns)
                };
                mine.max_ns = mine.max_ns.max(theirs.max_ns);
            }
            self.buckets[kind] = merge_sparse(&self.buckets[kind], &other.buckets[kind]);
        }
        self.start_ns = self.start_ns.min(other.start_ns);
        // The later part of an interval says what is in flight at its end.
        self.in_flight = if self.end_ns < other.start_ns + 1 {
            other.in_flight
        } else {
            self.in_flight + other.in_flight
        };
        self.end_ns = self.end_ns.max(other.end_ns);
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.shorts += other.shorts;
    }

    /// Latency below which `share` of the I/Os lie (0 without any).
    #[must_use]
    pub fn percentile_ns(&self, share: f64) -> u64 {
        let rank = ((self.ops as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for &(bucket, count) in &self.buckets[0] {
            seen += u64::from(count);
            if seen >= rank {
                return value_of(usize::from(bucket))
                    .clamp(self.sums[0].min_ns, self.sums[0].max_ns);
            }
        }
        0
    }
}

/// Counts the operations that did not wait at all, which the table leaves out.
fn add_zeros(buckets: &mut Vec<(u16, u32)>, sums: &mut Sums, ops: u64) {
    let counted: u64 = buckets.iter().map(|&(_, count)| u64::from(count)).sum();
    let zeros = ops.saturating_sub(counted);
    if zeros > 0 {
        buckets.insert(0, (0, u32::try_from(zeros).unwrap_or(u32::MAX)));
        sums.min_ns = 0;
    }
}

fn merge_sparse(a: &[(u16, u32)], b: &[(u16, u32)]) -> Vec<(u16, u32)> {
    let mut merged: Vec<(u16, u32)> = Vec::with_capacity(a.len() + b.len());
    let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let take_left = match (left.peek(), right.peek()) {
            (None, None) => return merged,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(l), Some(r)) => l.0 <= r.0,
        };
        let Some(&(bucket, count)) = (if take_left { left.next() } else { right.next() }) else {
            return merged;
        };
        match merged.last_mut() {
            Some(last) if last.0 == bucket => last.1 = last.1.saturating_add(count),
            _ => merged.push((bucket, count)),
        }
    }
}

/// Schema of `samples.arrows`.
#[must_use]
pub fn samples_schema() -> Schema {
    let plain = |name: &str, kind: DataType| Field::new(name, kind, false);
    let mut fields = vec![
        plain("interval", DataType::UInt32),
        plain("start_ns", DataType::UInt64),
        plain("end_ns", DataType::UInt64),
        plain("stage", DataType::UInt32),
        plain("cell", DataType::UInt32),
        plain("op", DataType::UInt8),
        plain("priority", DataType::UInt16),
        plain("ramp", DataType::Boolean),
        plain("ops", DataType::UInt64),
        plain("bytes", DataType::UInt64),
        plain("errors", DataType::UInt64),
        plain("shorts", DataType::UInt64),
    ];
    for kind in KIND_NAMES {
        fields.push(plain(&format!("{kind}_sum_ns"), DataType::Float64));
        fields.push(plain(&format!("{kind}_sumsq_ns2"), DataType::Float64));
        fields.push(plain(&format!("{kind}_min_ns"), DataType::UInt64));
        fields.push(plain(&format!("{kind}_max_ns"), DataType::UInt64));
        let list = |item: DataType| DataType::List(Arc::new(Field::new("item", item, false)));
        fields.push(plain(&format!("{kind}_bucket"), list(DataType::UInt16)));
        fields.push(plain(&format!("{kind}_count"), list(DataType::UInt32)));
    }
    Schema::new(fields)
}

/// Schema of `ios.arrows`.
#[must_use]
pub fn ios_schema() -> Schema {
    let plain = |name: &str, kind: DataType| Field::new(name, kind, false);
    Schema::new(vec![
        plain("t_ns", DataType::UInt64),
        plain("stream", DataType::UInt32),
        plain("target", DataType::UInt32),
        plain("op", DataType::UInt8),
        plain("priority", DataType::UInt16),
        plain("offset", DataType::UInt64),
        plain("bytes", DataType::UInt32),
        plain("wait_ns", DataType::UInt64),
        plain("slat_ns", DataType::UInt64),
        plain("clat_ns", DataType::UInt64),
        plain("lat_ns", DataType::UInt64),
        plain("error", DataType::Int32),
        plain("ramp", DataType::Boolean),
    ])
}

/// One row of `ios.arrows`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the columns of ios.arrows")]
pub struct IoRecord {
    pub t_ns: u64,
    pub stream: u32,
    pub target: u32,
    pub op: OpKind,
    pub priority: u16,
    pub offset: u64,
    pub bytes: u32,
    pub wait_ns: u64,
    pub slat_ns: u64,
    pub clat_ns: u64,
    pub lat_ns: u64,
    pub error: i32,
    pub ramp: bool,
}

/// An Arrow IPC stream whose every batch is one `write(2)`.
pub struct BatchFile {
    file: File,
    writer: StreamWriter<Vec<u8>>,
}

impl std::fmt::Debug for BatchFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("BatchFile")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl BatchFile {
    /// Creates the file, for nobody else to read, and writes the schema.
    ///
    /// # Errors
    /// Of the file, whatever it is that stands there already, or of the schema's encoding.
    pub fn create(path: &Path, schema: &Schema) -> io::Result<Self> {
        let file = new_file(path)?;
        let writer = StreamWriter::try_new(Vec::new(), schema).map_err(arrow_error)?;
        let mut this = Self { file, writer };
        this.drain()?;
        Ok(this)
    }

    fn drain(&mut self) -> io::Result<()> {
        let buffer = self.writer.get_mut();
        self.file.write_all(buffer)?;
        buffer.clear();
        Ok(())
    }

    /// Writes one batch.
    ///
    /// # Errors
    /// Of the file, or of the encoding.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.writer.write(batch).map_err(arrow_error)?;
        self.drain()
    }

    /// Writes the end marker.
    ///
    /// # Errors
    /// Of the file.
    pub fn finish(&mut self) -> io::Result<()> {
        self.writer.finish().map_err(arrow_error)?;
        self.drain()
    }
}

fn arrow_error(error: ArrowError) -> io::Error {
    io::Error::other(error)
}

/// A batch of `samples.arrows`.
///
/// # Errors
/// When the columns do not fit the schema, which is a defect.
pub fn samples_batch(rows: &[SampleRow]) -> io::Result<RecordBatch> {
    let u64s = |get: &dyn Fn(&SampleRow) -> u64| -> ArrayRef {
        let mut builder = UInt64Builder::with_capacity(rows.len());
        rows.iter().for_each(|row| builder.append_value(get(row)));
        Arc::new(builder.finish())
    };
    let u32s = |get: &dyn Fn(&SampleRow) -> u32| -> ArrayRef {
        let mut builder = UInt32Builder::with_capacity(rows.len());
        rows.iter().for_each(|row| builder.append_value(get(row)));
        Arc::new(builder.finish())
    };
    let f64s = |get: &dyn Fn(&SampleRow) -> f64| -> ArrayRef {
        let mut builder = Float64Builder::with_capacity(rows.len());
        rows.iter().for_each(|row| builder.append_value(get(row)));
        Arc::new(builder.finish())
    };
    let mut ops = UInt8Builder::with_capacity(rows.len());
    let mut priorities = UInt16Builder::with_capacity(rows.len());
    let mut ramps = BooleanBuilder::with_capacity(rows.len());
    for row in rows {
        ops.append_value(row.key.op);
        priorities.append_value(row.key.priority);
        ramps.append_value(row.key.ramp);
    }
    let mut columns: Vec<ArrayRef> = vec![
        u32s(&|row| row.key.interval),
        u64s(&|row| row.start_ns),
        u64s(&|row| row.end_ns),
        u32s(&|row| row.key.stage),
        u32s(&|row| row.key.cell),
        Arc::new(ops.finish()),
        Arc::new(priorities.finish()),
        Arc::new(ramps.finish()),
        u64s(&|row| row.ops),
        u64s(&|row| row.bytes),
        u64s(&|row| row.errors),
        u64s(&|row| row.shorts),
    ];
    for kind in 0..KINDS {
        columns.push(f64s(&|row| row.sums[kind].sum_ns));
        columns.push(f64s(&|row| row.sums[kind].sumsq_ns2));
        columns.push(u64s(&|row| row.sums[kind].min_ns));
        columns.push(u64s(&|row| row.sums[kind].max_ns));
        columns.extend(histogram_columns(rows, kind));
    }
    RecordBatch::try_new(Arc::new(samples_schema()), columns).map_err(arrow_error)
}

/// The buckets that are not empty, and how many I/Os are in each.
fn histogram_columns(rows: &[SampleRow], kind: usize) -> [ArrayRef; 2] {
    let item = |kind: DataType| Field::new("item", kind, false);
    let mut buckets = ListBuilder::new(UInt16Builder::new()).with_field(item(DataType::UInt16));
    let mut counts = ListBuilder::new(UInt32Builder::new()).with_field(item(DataType::UInt32));
    for row in rows {
        for &(bucket, count) in &row.buckets[kind] {
            buckets.values().append_value(bucket);
            counts.values().append_value(count);
        }
        buckets.append(true);
        counts.append(true);
    }
    [Arc::new(buckets.finish()), Arc::new(counts.finish())]
}

/// A batch of `ios.arrows`.
///
/// # Errors
/// As [`samples_batch`].
pub fn ios_batch(ios: &[IoRecord]) -> io::Result<RecordBatch> {
    let u64s = |get: fn(&IoRecord) -> u64| -> ArrayRef {
        let mut builder = UInt64Builder::with_capacity(ios.len());
        ios.iter().for_each(|io| builder.append_value(get(io)));
        Arc::new(builder.finish())
    };
    let u32s = |get: fn(&IoRecord) -> u32| -> ArrayRef {
        let mut builder = UInt32Builder::with_capacity(ios.len());
        ios.iter().for_each(|io| builder.append_value(get(io)));
        Arc::new(builder.finish())
    };
    let mut ops = UInt8Builder::with_capacity(ios.len());
    let mut priorities = UInt16Builder::with_capacity(ios.len());
    let mut errors = Int32Builder::with_capacity(ios.len());
    let mut ramps = BooleanBuilder::with_capacity(ios.len());
    for io in ios {
        ops.append_value(io.op as u8);
        priorities.append_value(io.priority);
        errors.append_value(io.error);
        ramps.append_value(io.ramp);
    }
    let columns: Vec<ArrayRef> = vec![
        u64s(|io| io.t_ns),
        u32s(|io| io.stream),
        u32s(|io| io.target),
        Arc::new(ops.finish()),
        Arc::new(priorities.finish()),
        u64s(|io| io.offset),
        u32s(|io| io.bytes),
        u64s(|io| io.wait_ns),
        u64s(|io| io.slat_ns),
        u64s(|io| io.clat_ns),
        u64s(|io| io.lat_ns),
        Arc::new(errors.finish()),
        Arc::new(ramps.finish()),
    ];
    RecordBatch::try_new(Arc::new(ios_schema()), columns).map_err(arrow_error)
}

/// Both schemas as a JSON document: by file, its columns with name and type.
#[must_use]
pub fn describe() -> serde_json::Value {
    let columns = |schema: &Schema| -> serde_json::Value {
        let fields = schema.fields().iter();
        fields.map(|field| serde_json::json!({"name": field.name(), "type": type_name(field.data_type())})).collect()
    };
    serde_json::json!({
        "samples.arrows": columns(&samples_schema()),
        "ios.arrows": columns(&ios_schema()),
        "histogram": {
            "sub_bits": crate::histogram::SUB_BITS,
            "max_bits": crate::histogram::MAX_BITS,
            "buckets": crate::histogram::BUCKETS,
        },
    })
}

fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::List(item) => format!("list<{}>", type_name(item.data_type())),
        DataType::Boolean => "bool".into(),
        DataType::Float64 => "f64".into(),
        DataType::UInt8 => "u8".into(),
        DataType::UInt16 => "u16".into(),
        DataType::UInt32 => "u32".into(),
        DataType::UInt64 => "u64".into(),
        DataType::Int32 => "i32".into(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    #[test]
    fn samples_never_go_over_what_is_there_nor_through_a_link() {
        let name = format!("loadstone-{}-new-file", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let (file, link, fresh) = (
            directory.join("file"),
            directory.join("link"),
            directory.join("fresh"),
        );
        std::fs::write(&file, "kept").unwrap();
        symlink(&fresh, &link).unwrap();
        for taken in [&file, &link, Path::new("/dev/null")] {
            let refused = BatchFile::create(taken, &samples_schema()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(std::fs::read(&file).unwrap(), b"kept");
        BatchFile::create(&fresh, &samples_schema()).unwrap();
        let mode = std::fs::metadata(&fresh).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
