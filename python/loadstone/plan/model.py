"""The Plan: the orders the engine runs, as Python values.

Mirrors `crates/engine/src/plan.rs` field by field, so that `Plan.model_dump_json()` is
what `loadstone-engine run` reads and `Plan.model_validate_json()` reads it back. Knows
the shape only: no defaults, no job-file language, no device. A tagged union of the Rust
side is one class per variant here, named by the union and the variant (`SizesFixed`).
Units stand last in the names: `_ns` nanoseconds, `_bytes` bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from loadstone.plan.base import F64, I32, U16, U32, U64, Part
from loadstone.plan.headers import Headers
from loadstone.plan.patterns import Pattern
from loadstone.plan.payloads import Payload
from loadstone.plan.priorities import PriorityShare
from loadstone.plan.rates import Pace
from loadstone.plan.sims import SimDevice
from loadstone.plan.trees import FileOperationCopy, FileOperationMove, Tree, TreeUse

PLAN_VERSION: Final = 1
"""The Plan version written here and read by the engine."""


class TargetKind(StrEnum):
    """Kind of a target."""

    FILE = "file"
    BLOCK = "block"
    CHAR = "char"
    NVME = "nvme"
    """The character device of an NVMe namespace, as `/dev/ng0n1`."""
    VIRTUAL = "virtual"
    """Nothing is opened (`null` and `sim` backends)."""
    TREE = "tree"
    """Directory that a tree is in."""


class OpenSync(StrEnum):
    """Durability asked for at `open(2)`."""

    NONE = "none"
    SYNC = "sync"
    DSYNC = "dsync"


class Identity(Part):
    """`stat(2)` identity of a target at the time of the safety check."""

    device: U64
    inode: U64
    special: U64
    """`st_rdev`; 0 for regular files."""


class Namesake(Part):
    """The block device with the same data as a character device."""

    path: str
    identity: Identity | None


class Fallocate(StrEnum):
    """Space allocation of a prepared file."""

    NONE = "none"
    NATIVE = "native"
    POSIX = "posix"
    KEEP = "keep"
    TRUNCATE = "truncate"


class Layout(Part):
    """How a file is prepared: allocated, then really written."""

    size_bytes: U64
    truncate: bool
    fallocate: Fallocate
    write: bool
    fsync: bool
    seed: U64


class Advice(StrEnum):
    """Access advice, as in `posix_fadvise(2)`."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"
    NOREUSE = "noreuse"


class Named(StrEnum):
    """What stands for a target that is used by name before the run."""

    AS_FOUND = "as_found"
    FILE = "file"
    DIRECTORY = "directory"


class NameOperation(StrEnum):
    """An operation on a target by its name."""

    CREATE = "create"
    STAT = "stat"
    LSTAT = "lstat"
    STATX = "statx"
    DELETE = "delete"
    MKDIR = "mkdir"
    RMDIR = "rmdir"


class Target(Part):
    """A file or device and how to open and prepare it."""

    path: str
    kind: TargetKind
    size_bytes: U64
    direct: bool
    read_only: bool
    create: bool
    sync: OpenSync
    exclusive: bool
    identity: Identity | None
    layout: Layout | None
    invalidate: bool
    advice: Advice | None
    unlink: bool
    namesake: Namesake | None = None
    """Of the character device of an NVMe namespace."""
    named: Named | None = None
    """Of kind file, used by its name alone: it is not open during the run."""


class Unit(Part):
    """A line of the result: a job section, or one clone of it."""

    name: str
    group: U32
    clone: U32 | None


class Cell(Part):
    """What one histogram is kept for: indexes into `Plan.units` and `Plan.targets`."""

    unit: U32
    target: U32 | None


class BackendIoUring(Part):
    """io_uring, one ring."""

    type: Literal["io_uring"] = "io_uring"
    registered_files: bool
    fixed_buffers: bool
    iopoll: bool
    sqpoll: bool


class BackendIoUringCmd(Part):
    """Commands to an NVMe namespace past the block layer, through a ring."""

    type: Literal["io_uring_cmd"] = "io_uring_cmd"
    registered_files: bool
    fixed_buffers: bool
    iopoll: bool
    sqpoll: bool


class BackendLibaio(Part):
    """Linux native AIO."""

    type: Literal["libaio"] = "libaio"


class BackendPsync(Part):
    """`pread(2)`/`pwrite(2)`, one I/O at a time."""

    type: Literal["psync"] = "psync"


class BackendMmap(Part):
    """Copies through a shared mapping, one I/O at a time."""

    type: Literal["mmap"] = "mmap"


class BackendFiles(Part):
    """Operations on files and directories by name, one at a time."""

    type: Literal["files"] = "files"


class BackendNames(Part):
    """One operation on its targets by their names: each I/O is one, whatever its bytes."""

    type: Literal["names"] = "names"
    operation: NameOperation


class BackendFalloc(Part):
    """`fallocate(2)`: reads keep the size, writes may extend it, trims punch holes."""

    type: Literal["falloc"] = "falloc"


class BackendSplice(Part):
    """`splice(2)` through a pipe, one I/O at a time."""

    type: Literal["splice"] = "splice"


class BackendMoveExtents(Part):
    """ext4's exchange of extents: writes give a range the blocks a donor has there."""

    type: Literal["move_extents"] = "move_extents"
    donor: U32
    in_place: bool


class BackendNull(Part):
    """No I/O: completes at once."""

    type: Literal["null"] = "null"


class BackendSim(Part):
    """Virtual clock and a seeded device model."""

    type: Literal["sim"] = "sim"
    device: SimDevice


Backend = Annotated[
    BackendIoUring
    | BackendIoUringCmd
    | BackendLibaio
    | BackendPsync
    | BackendMmap
    | BackendFiles
    | BackendNames
    | BackendFalloc
    | BackendSplice
    | BackendMoveExtents
    | BackendNull
    | BackendSim,
    Field(discriminator="type"),
]


class Worker(Part):
    """One thread."""

    stage: U32
    backend: Backend
    cpus: tuple[U32, ...]
    nice: I32
    io_priority: U16 = 0
    """As `ioprio_set(2)` has it; 0: the one the engine was started with."""
    force_async: U32 = 0
    """Of a ring: every so manieth I/O is given to a kernel worker at once; 0: none."""


class FileUse(Part):
    """A stream's use of one target."""

    target: U32
    cell: U32
    offset_bytes: U64
    length_bytes: U64


class FileChoiceRoundRobin(Part):
    """Each in turn, `every` I/Os on each."""

    type: Literal["round_robin"] = "round_robin"
    every: U32


class FileChoiceRandom(Part):
    """A random one, kept for `every` I/Os."""

    type: Literal["random"] = "random"
    every: U32


class FileChoiceSequential(Part):
    """Finish one file before the next."""

    type: Literal["sequential"] = "sequential"


FileChoice = Annotated[
    FileChoiceRoundRobin | FileChoiceRandom | FileChoiceSequential, Field(discriminator="type")
]


class Batch(Part):
    """Fixed batch sizes, as fio's `iodepth_batch*` and `iodepth_low`."""

    submit: U32
    complete_min: U32
    complete_max: U32
    low: U32


class Flush(Part):
    """Flushes within and after the stream."""

    fsync_every: U32
    fdatasync_every: U32
    at_end: bool
    on_close: bool


class Limits(Part):
    """When a stream starts and ends; it ends at the first limit it meets."""

    start_delay_ns: U64
    ramp_ns: U64
    runtime_ns: U64
    time_based: bool
    bytes: U64
    ops: U64
    ends_stage: bool
    """All streams of the stage end with this one."""
    ends_stage_on_error: bool = False
    """The same, when this one fails."""
    max_latency_ns: tuple[U64, U64, U64] = (0, 0, 0)
    """A longer latency of a read, write or trim fails the stream; 0: any."""
    prepare_only: bool = False
    """Its targets are prepared, and nothing else is done."""


class ErrorPolicy(Part):
    """What happens on an error."""

    continue_read: bool
    continue_write: bool
    ignore_read: tuple[I32, ...]
    ignore_write: tuple[I32, ...]
    continue_after: tuple[I32, ...] = ()
    """Error numbers after which it may continue; empty: any."""


class VerifyContent(StrEnum):
    """Bytes between the stamps."""

    PAYLOAD = "payload"
    """The stream's payload."""
    GENERATED = "generated"
    """Generated from place and generation, so that damage is located to the bit."""
    PATTERN = "pattern"
    """The payload's pattern, and no stamps between which it could be."""


class VerifyExpect(StrEnum):
    """What reads are held against."""

    TABLE = "table"
    """What this run wrote: 4 bytes of memory for each block."""
    STAMPS = "stamps"
    """Only what stamps say of themselves: no lost or stale writes are found."""


class Verify(Part):
    """Stamp what is written, and check what is read."""

    block_bytes: U32
    """A multiple of 512 that divides every size and offset of the stream."""
    run: U64
    content: VerifyContent
    expect: VerifyExpect
    only_written: bool
    """Read only what was written before; other reads are counted as done, not made."""
    fatal: bool
    """End the stream at the first damage."""
    read_before_write: bool = False
    """Read and check the place of each write before it, where something is known of it."""
    read_after_write: bool = False
    """Read and check the place of each write after it."""

    @property
    def reads_beside_writes(self) -> bool:
        """Whether writes bring reads with them."""
        return self.read_before_write or self.read_after_write


class Flow(Part):
    """A stream's part of the I/Os of all streams with the same `id`."""

    id: U32
    weight: U32
    sleep_ns: U64


class DepthSearch(Part):
    """The search for the largest depth that meets a latency target."""

    target_ns: U64
    window_ns: U64
    percentile: F64
    """Share of the I/Os that have to meet it, percent."""
    keep_on: bool
    """Go on to the end of the stream's time; false: one more window at the depth found."""


class Stream(Part):
    """One source of I/O: a clone of a job."""

    name: str
    worker: U32
    files: tuple[FileUse, ...]
    file_choice: FileChoice
    seed: U64
    iodepth: U32
    batch: Batch | None
    pattern: Pattern
    pace: Pace
    flush: Flush
    payload: Payload
    limits: Limits
    errors: ErrorPolicy
    log_ios: bool
    verify: Verify | None = None
    """Absent from Plans written before there was verification: bundles keep them."""
    headers: Headers | None = None
    """Verify as fio does, by headers that it can read."""
    flow: Flow | None = None
    serialize_overlap: bool = False
    wait_for: tuple[U32, ...] = ()
    """It starts, after its delay, when these earlier streams of its stage have ended."""
    search: DepthSearch | None = None
    open_files: U32 | None = None
    """Most files it is at work on: the next is begun when one is finished; none: all of them."""
    priorities: tuple[PriorityShare, ...] = ()
    """I/Os with another priority than that of the worker."""
    tree: TreeUse | None = None
    """Operations on files of a tree; none: I/O to `files`."""

    @property
    def cells(self) -> frozenset[int]:
        """Cells its samples are counted in."""
        return frozenset((self.tree.cell,) if self.tree is not None else (use.cell for use in self.files))

    @property
    def asks_for(self) -> frozenset[str]:
        """Operations it was asked for; in a tree it does others besides, to get there."""
        shares = (self.pattern.read_percent, self.pattern.write_percent, self.pattern.trim_percent)
        if self.tree is not None and self.tree.operation.type != "transfer":
            return frozenset((self.tree.operation.type,))
        moves = {op for op, share in zip(("read", "write", "trim"), shares, strict=True) if share}
        if self.headers is not None and self.headers.only:
            moves -= {"write", "trim"}
        if self.headers is not None and self.headers.read_back:
            moves.add("read")
        return frozenset(moves | ({"write"} if self.pattern.trim_then_write else set()))

    @property
    def reads_back(self) -> bool:
        """Whether it only reads back what other streams of its job wrote."""
        return self.verify is not None and self.verify.only_written


class Durable(StrEnum):
    """When an acknowledged write must be there after a crash."""

    ACKNOWLEDGED = "acknowledged"
    """At once."""
    FLUSHED = "flushed"
    """Once a flush that was issued after its acknowledgement is done."""


class Journal(Part):
    """How a journal of verified writes is kept."""

    durable: Durable
    limit_bytes: U64


class SteadyMetric(StrEnum):
    """What has to be steady."""

    OPS = "ops"
    BYTES = "bytes"
    LATENCY = "latency"


class Steady(Part):
    """Streams that end together once the last samples are steady."""

    streams: tuple[U32, ...]
    metric: SteadyMetric
    slope: bool
    """Judge the slope of the least-squares line; false: the largest deviation from the mean."""
    limit: F64
    percent: bool
    """`limit` is in percent of the mean; false: in the metric's unit."""
    after_ns: U64
    sample_ns: U64
    """A multiple of `Plan.interval_ns`."""
    samples: U32


class Plan(Part):
    """One run, completely resolved."""

    version: Literal[1] = PLAN_VERSION
    interval_ns: U64
    grace_ns: U64
    memory_limit_bytes: U64
    targets: tuple[Target, ...]
    units: tuple[Unit, ...]
    cells: tuple[Cell, ...]
    workers: tuple[Worker, ...]
    streams: tuple[Stream, ...]
    journal: Journal | None = None
    """Note every verified write, so that a later run can verify what a crash left."""
    recover: str | None = None
    """Path of a journal: what streams with a table verify is what it tells."""
    steady: tuple[Steady, ...] = ()
    trees: tuple[Tree, ...] = ()
    """Directories and files that streams with a `tree` work in."""

    @property
    def changes_trees(self) -> bool:
        """Whether files and directories are there afterwards that were not before, or the reverse."""
        return any(not self.targets[tree.target].read_only for tree in self.trees)

    def targets_of(self, stream: Stream) -> tuple[int, ...]:
        """Return the numbers of the targets a stream works on, each once; a tree's is its anchor."""
        if stream.tree is None:
            return tuple(dict.fromkeys(use.target for use in stream.files))
        trees = [stream.tree.tree]
        if isinstance(stream.tree.operation, FileOperationCopy | FileOperationMove):
            trees.append(stream.tree.operation.to)
        return tuple(self.trees[index].target for index in trees)
