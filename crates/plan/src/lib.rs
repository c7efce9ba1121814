//! The Plan: the orders the engine runs, every field explicit.
//!
//! Knows the shape of a Plan and what makes one well-formed. Deliberately knows no
//! defaults (nothing below the Plan has one), no job-file language and no device.
//! Units stand last in the names: `_ns` nanoseconds, `_bytes` bytes, `_hz` per second.
//! `contract/plan.schema.json` is generated from these types (`loadstone-engine schema`).

mod backend;
mod block_sizes;
mod headers;
mod pattern;
mod payload;
#[cfg(debug_assertions)]
pub mod plain;
mod priority;
mod rate;
mod sim;
mod tree;

use schemars::generate::SchemaSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use backend::{Backend, Capabilities, Direct, Keeps, TABLE as BACKENDS};
pub use block_sizes::{max_block_bytes, max_size};
pub use headers::{
    HeaderBacklog, HeaderLayout, HeaderPattern, HeaderSum, HeaderTrim, HeaderUntil, Headers,
};
pub use pattern::{OpPattern, Pattern, RandomOrder, Row, SizeWeight, Sizes, Strided, Zone};
pub use payload::{DedupeSet, Fill, Payload};
pub use priority::{PriorityOp, PriorityShare};
pub use rate::{Pace, Rate, RateAmount, RatePoint, RateProcess, Think};
pub use sim::{ServiceTime, SimBehaviour, SimDevice, SimFaults, SimLimit};
pub use tree::{FileOperation, FilePart, FileSelect, FileSize, FileSizes, FileStop, Tree, TreeUse};

/// The Plan version this engine reads.
pub const PLAN_VERSION: u32 = 1;

/// One run, completely resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Of the Plan's shape: the one an engine reads.
    #[schemars(extend("const" = PLAN_VERSION))]
    pub version: u32,
    /// Length of one sample interval.
    pub interval_ns: u64,
    /// After a stream's time is over, how long to wait for I/O still in flight before
    /// it is reported as hung and abandoned.
    pub grace_ns: u64,
    /// The most memory the engine may hold; it refuses a Plan that needs more.
    pub memory_limit_bytes: u64,
    /// Files and devices, each opened once.
    pub targets: Vec<Target>,
    /// Who is reported: a job section, or one clone of it.
    pub units: Vec<Unit>,
    /// What results are kept for: one unit on one target (or on many targets, when
    /// there are too many to keep apart).
    pub cells: Vec<Cell>,
    /// Threads. Those of stage 0 run first, then stage 1, and so on.
    pub workers: Vec<Worker>,
    /// Sources of I/O; each belongs to exactly one worker.
    pub streams: Vec<Stream>,
    /// Note every verified write in a journal beside the samples, so that a later run can
    /// verify what a crash left.
    #[serde(deserialize_with = "stated")]
    pub journal: Option<Journal>,
    /// Path of a journal: what streams with a table verify is what it tells, and their run
    /// is the journal's.
    #[serde(deserialize_with = "stated")]
    pub recover: Option<String>,
    /// What runs before knew of verified blocks at their ends; streams with a table begin with
    /// that, and their run is that of the first of them.
    pub earlier: Vec<Earlier>,
    /// Write at the end what is known of verified blocks, for runs that come after.
    pub hand_over: bool,
    /// Streams that end when their rate or latency is steady.
    pub steady: Vec<Steady>,
    /// Directories and files that streams with a [`Stream::tree`] work in.
    pub trees: Vec<Tree>,
}

/// What a run before knew of verified blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// Path of the file it wrote with [`Plan::hand_over`].
    pub path: String,
    /// Which of its targets are here.
    pub targets: Vec<EarlierTarget>,
}

/// A target of a run before, and the same here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EarlierTarget {
    /// Index into that run's targets.
    pub there: u32,
    /// Index into [`Plan::targets`].
    pub here: u32,
}

impl Plan {
    /// The streams of each worker, as indices, in the Plan's order.
    #[must_use]
    pub fn streams_by_worker(&self) -> Vec<Vec<u32>> {
        let mut all = vec![Vec::new(); self.workers.len()];
        for (index, stream) in (0..).zip(&self.streams) {
            all[stream.worker as usize].push(index);
        }
        all
    }
}

/// How a journal is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// When an acknowledged write must be there after a crash.
    pub durable: Durable,
    /// From this length on it is replaced by what is known at that moment. Only where
    /// writes are durable once acknowledged: else it grows.
    pub limit_bytes: u64,
}

/// When an acknowledged write must be there after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durable {
    /// At once.
    Acknowledged,
    /// Once a flush that was issued after its acknowledgement is done.
    Flushed,
}

/// Streams that end together once the last samples are steady.
/// What other streams do in the same cells counts as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Indices into [`Plan::streams`].
    pub streams: Vec<u32>,
    /// What is looked at.
    pub metric: SteadyMetric,
    /// Judge the slope of the least-squares line over the samples, per sample (false: the
    /// largest deviation from their mean).
    pub slope: bool,
    /// Steady below this: percent of the mean, or in the metric's unit.
    pub limit: f64,
    /// `limit` is in percent of the mean.
    pub percent: bool,
    /// Time left out after the first of the streams has started and ramped.
    pub after_ns: u64,
    /// Length of a sample, a multiple of [`Plan::interval_ns`].
    pub sample_ns: u64,
    /// Samples looked at, at least 2.
    pub samples: u32,
}

/// What has to be steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyMetric {
    /// Operations per second.
    Ops,
    /// Bytes per second.
    Bytes,
    /// Mean latency in nanoseconds.
    Latency,
}

/// A file or device and how to open and prepare it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Path as given to `open(2)`.
    pub path: String,
    /// What the planner found or will have created there.
    pub kind: TargetKind,
    /// Addressable bytes from offset 0 (for `null` and `sim` any value).
    pub size_bytes: u64,
    /// Open with `O_DIRECT`.
    pub direct: bool,
    /// Open read-only.
    pub read_only: bool,
    /// Create when missing, before the run.
    pub create: bool,
    /// `O_SYNC`, `O_DSYNC` or neither.
    pub sync: OpenSync,
    /// For a device that will be written: open with `O_EXCL`, so the kernel refuses one
    /// that is mounted or held. Of a character device its namesake, beside it.
    pub exclusive: bool,
    /// Identity the safety check saw; the engine refuses to open anything else.
    #[serde(deserialize_with = "stated")]
    pub identity: Option<Identity>,
    /// What must be written there before the run starts.
    #[serde(deserialize_with = "stated")]
    pub layout: Option<Layout>,
    /// Drop its cached pages before the run (`POSIX_FADV_DONTNEED`); of a tree those of each
    /// file when it is opened, as a part of the open.
    pub invalidate: bool,
    /// Advice given to the kernel before the run.
    #[serde(deserialize_with = "stated")]
    pub advice: Option<Advice>,
    /// Remove the file after the run.
    pub unlink: bool,
    /// Of the character device of an NVMe namespace.
    #[serde(deserialize_with = "stated")]
    pub namesake: Option<Namesake>,
    /// Of kind file, used by its name alone: it is not open during the run.
    #[serde(deserialize_with = "stated")]
    pub named: Option<Named>,
}

/// The block device with the same data as a character device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Namesake {
    /// Path as given to `open(2)`.
    pub path: String,
    /// Identity the safety check saw; the engine refuses to open anything else.
    #[serde(deserialize_with = "stated")]
    pub identity: Option<Identity>,
}

/// Kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// Regular file.
    File,
    /// Block device.
    Block,
    /// Character device such as `/dev/null`.
    Char,
    /// The character device of an NVMe namespace, as `/dev/ng0n1`. Always direct: it has no
    /// page cache. Only for the `io_uring_cmd` backend.
    Nvme,
    /// Nothing is opened (`null` and `sim` backends).
    Virtual,
    /// Directory that a [`Plan::trees`] is in.
    Tree,
}

/// Durability asked for at `open(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenSync {
    /// Neither flag.
    None,
    /// `O_SYNC`.
    Sync,
    /// `O_DSYNC`.
    Dsync,
}

/// What tells a target from any other, at the time of the safety check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
    /// `st_rdev`; 0 for regular files.
    pub special: u64,
    /// When a file or directory was made (`stx_btime`), since 1970: an inode's number is used again
    /// for the next file. Null where the file system does not tell.
    pub born_ns: Option<u64>,
}

/// How a file is prepared: allocated, then really written, because an unwritten
/// extent reads many times faster than data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The file must have at least this many bytes; existing bytes are kept.
    pub size_bytes: u64,
    /// Cut a longer file down to `size_bytes`.
    pub truncate: bool,
    /// Space allocation before the data.
    pub fallocate: Fallocate,
    /// Write data into the part that did not exist (false: only allocate or extend).
    pub write: bool,
    /// `fsync` when done.
    pub fsync: bool,
    /// Seed of the bytes written.
    pub seed: u64,
}

/// Space allocation of a prepared file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fallocate {
    /// No allocation; extend only by writing.
    None,
    /// `fallocate(2)` with mode 0, ignored where the file system lacks it.
    Native,
    /// `posix_fallocate(3)`.
    Posix,
    /// `fallocate(2)` with `FALLOC_FL_KEEP_SIZE`.
    Keep,
    /// `ftruncate(2)`: a sparse file.
    Truncate,
}

/// Access advice, as in `posix_fadvise(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// `POSIX_FADV_RANDOM`.
    Random,
    /// `POSIX_FADV_SEQUENTIAL`.
    Sequential,
    /// `POSIX_FADV_NOREUSE`.
    Noreuse,
}

/// A line of the result: a job section, or one clone of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Name of the job section.
    pub name: String,
    /// Reporting group the unit is in.
    pub group: u32,
    /// Clone number from 0, or none when all clones are in this unit.
    #[serde(deserialize_with = "stated")]
    pub clone: Option<u32>,
}

/// What one histogram is kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Index into [`Plan::units`].
    pub unit: u32,
    /// Index into [`Plan::targets`]; none when the targets are too many to keep apart.
    #[serde(deserialize_with = "stated")]
    pub target: Option<u32>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    /// Stages run one after the other; all workers of a stage start together.
    pub stage: u32,
    /// How this thread does I/O.
    pub backend: Backend,
    /// CPUs the thread may run on; empty: any.
    pub cpus: Vec<u32>,
    /// Added to the nice value the engine was started with, −20 to 19.
    pub nice: i32,
    /// Priority of its I/Os, as in [`PriorityShare`]; 0: the one the engine was started with.
    pub io_priority: u16,
    /// Of a ring: every so manieth I/O is given to a kernel worker at once, without a try in
    /// the caller; 0: none.
    pub force_async: u32,
}

/// An operation on a target by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NameOperation {
    /// Open a file that is made where it is missing, and close it.
    Create,
    /// `stat(2)`.
    Stat,
    /// `lstat(2)`.
    Lstat,
    /// `statx(2)` with all there is.
    Statx,
    /// `unlink(2)`.
    Delete,
    /// `mkdir(2)`.
    Mkdir,
    /// `rmdir(2)`.
    Rmdir,
}

/// What stands for a target that is used by name before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    /// Whatever is there; nothing is made.
    AsFound,
    /// The file, laid out.
    File,
    /// A directory, made where it is missing.
    Directory,
}

/// One source of I/O: a clone of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Name for messages, as `job.clone`.
    pub name: String,
    /// Index into [`Plan::workers`]; its stage is the stream's stage.
    pub worker: u32,
    /// Where it does I/O: at least one file, or none and a `tree`.
    pub files: Vec<FileUse>,
    /// How the next file is chosen.
    pub file_choice: FileChoice,
    /// Most files it is at work on: the next is begun when one is finished, all in turn.
    /// None: all of them.
    #[serde(deserialize_with = "stated")]
    pub open_files: Option<u32>,
    /// Seed of every random choice of this stream.
    pub seed: u64,
    /// Most I/Os in flight.
    pub iodepth: u32,
    /// How many to hand over and to wait for at a time; none: the engine chooses.
    #[serde(deserialize_with = "stated")]
    pub batch: Option<Batch>,
    /// Read, write and trim shares, and the order of addresses.
    pub pattern: Pattern,
    /// When I/Os should start.
    pub pace: Pace,
    /// Flushes within and after the stream.
    pub flush: Flush,
    /// Bytes written.
    pub payload: Payload,
    /// When it starts and ends.
    pub limits: Limits,
    /// What happens on an error.
    pub errors: ErrorPolicy,
    /// Keep a record of every I/O in `ios.arrows`.
    pub log_ios: bool,
    /// Stamp what is written, and check what is read.
    #[serde(deserialize_with = "stated")]
    pub verify: Option<Verify>,
    /// Verify by headers that fio can read.
    #[serde(deserialize_with = "stated")]
    pub headers: Option<Headers>,
    /// Its file is closed and opened again and again; none: it stays open.
    #[serde(deserialize_with = "stated")]
    pub connection: Option<Connection>,
    /// Share of the I/Os of several streams; none: as many as it can do.
    #[serde(deserialize_with = "stated")]
    pub flow: Option<Flow>,
    /// Hold back an I/O that overlaps one of the same stream in flight.
    pub serialize_overlap: bool,
    /// It starts, after its delay, when these earlier streams of its stage have ended.
    pub wait_for: Vec<u32>,
    /// Find the largest depth that meets a latency; none: always `iodepth`.
    #[serde(deserialize_with = "stated")]
    pub search: Option<DepthSearch>,
    /// I/Os with another priority than that of the worker.
    pub priorities: Vec<PriorityShare>,
    /// Operations on files of a tree; none: I/O to `files`.
    #[serde(deserialize_with = "stated")]
    pub tree: Option<TreeUse>,
}

/// The search for the largest depth at which a latency target is met. Until it is
/// found nothing counts for the result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DepthSearch {
    /// Latency to meet.
    pub target_ns: u64,
    /// How long each depth is tried.
    pub window_ns: u64,
    /// Share of the I/Os that have to meet it, percent.
    pub percentile: f64,
    /// Go on to the end of the stream's time, everything counts (false: one more window at
    /// the depth that was found, and end).
    pub keep_on: bool,
}

/// A stream opens its only file for so many I/Os, by a descriptor of its own, and closes it when
/// the last of them is back. Meanwhile the run keeps the target as it was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Reads, writes and trims between an open and its close, at least 1.
    pub ios: u32,
}

/// A stream's part of the I/Os of all streams with the same `id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Streams with the same number share.
    pub id: u32,
    /// Its part, above 0, of the sum of those running.
    pub weight: u32,
    /// How long it waits when it had more than its part; 0: as short as possible.
    pub sleep_ns: u64,
    /// I/Os above its part that it may have done, as long as they are at most 1/64 of its own;
    /// 0: none, so that streams wait for each other at every I/O.
    pub ahead: u32,
}

/// Verification of a stream. All streams that write to a target in a stage must agree on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verify {
    /// Unit of stamps and expectations: a multiple of 512 that divides every size and
    /// offset of the stream.
    pub block_bytes: u32,
    /// Identity of the run, part of every stamp.
    pub run: u64,
    /// Bytes between the stamps.
    pub content: VerifyContent,
    /// What reads are held against.
    pub expect: VerifyExpect,
    /// Read only what was written before: other reads are counted as done, not made.
    pub only_written: bool,
    /// End the stream at the first damage.
    pub fatal: bool,
    /// Read and check the place of each write before it, where something is known of it. A
    /// write that would hide damage is left out.
    pub read_before_write: bool,
    /// Read and check the place of each write after it.
    pub read_after_write: bool,
}

impl Verify {
    /// True when the stream's writes bring reads with them.
    #[must_use]
    pub fn reads_beside_writes(&self) -> bool {
        self.read_before_write || self.read_after_write
    }
}

/// Bytes between the stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyContent {
    /// The stream's payload.
    Payload,
    /// Generated from place and generation, so that damage is located to the bit.
    Generated,
    /// The payload's pattern, and no stamps between which it could be.
    Pattern,
}

/// What reads are held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyExpect {
    /// What this run wrote: 4 bytes of memory for each block.
    Table,
    /// Only what stamps say of themselves: no memory, and no lost or stale writes found.
    Stamps,
}

/// A stream's use of one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileUse {
    /// Index into [`Plan::targets`].
    pub target: u32,
    /// Index into [`Plan::cells`].
    pub cell: u32,
    /// First byte used.
    pub offset_bytes: u64,
    /// Bytes used from there.
    pub length_bytes: u64,
}

/// How a stream with several files picks the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileChoice {
    /// Each in turn, `every` I/Os on each.
    RoundRobin {
        /// I/Os before moving on, at least 1.
        every: u32,
    },
    /// A random one, kept for `every` I/Os.
    Random {
        /// I/Os before choosing again, at least 1.
        every: u32,
    },
    /// Finish one file before the next.
    Sequential {},
}

/// Fixed batch sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Hand over to the kernel this many at a time.
    pub submit: u32,
    /// Wait for at least this many completions (0: only poll).
    pub complete_min: u32,
    /// Take at most this many completions at a time.
    pub complete_max: u32,
    /// When full, drain to this depth before refilling.
    pub low: u32,
}

/// Flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flush {
    /// `fsync(2)` after so many writes (0: never).
    pub fsync_every: u32,
    /// `fdatasync(2)` after so many writes (0: never).
    pub fdatasync_every: u32,
    /// `fsync(2)` when the stream's I/O is done, inside its time.
    pub at_end: bool,
    /// `fsync(2)` when its files are closed; in a tree it is a part of each close.
    pub on_close: bool,
}

/// When a stream starts and ends; it ends at the first limit it meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Wait after the start of the stage.
    pub start_delay_ns: u64,
    /// Run this long before results count.
    pub ramp_ns: u64,
    /// Time of the stream after the ramp; 0: no limit.
    pub runtime_ns: u64,
    /// Keep going to the end of `runtime_ns` however much was done.
    pub time_based: bool,
    /// Bytes to move; 0: no limit. Counted over all loops.
    pub bytes: u64,
    /// I/Os to do; 0: no limit.
    pub ops: u64,
    /// Stop every stream of the stage when this one ends.
    pub ends_stage: bool,
    /// The same, when this one fails.
    pub ends_stage_on_error: bool,
    /// A longer latency of a read, write or trim is a failure of the stream; 0: any.
    pub max_latency_ns: [u64; 3],
    /// Its targets are prepared, and nothing else is done.
    pub prepare_only: bool,
}

/// What happens on an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorPolicy {
    /// Continue after a failed read.
    pub continue_read: bool,
    /// Continue after a failed write, trim or flush.
    pub continue_write: bool,
    /// Error numbers that do not count as failures of reads.
    pub ignore_read: Vec<i32>,
    /// The same for writes.
    pub ignore_write: Vec<i32>,
    /// Error numbers after which it may continue; empty: any.
    pub continue_after: Vec<i32>,
}

/// Reads what may be `null`. A field that is absent is an error: serde by itself takes it for `null`.
fn stated<'de, D, T>(value: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(value)
}

/// The JSON schema of a Plan: every field is required, as it is where a Plan is written.
#[must_use]
pub fn schema() -> serde_json::Value {
    SchemaSettings::default()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Plan>()
        .to_value()
}
