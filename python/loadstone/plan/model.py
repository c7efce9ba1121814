"""The Plan: the orders the engine runs, as Python values.

Generated from `contract/plan.schema.json` by `tests/support/plan_model.py`: run `make docs`, do not
edit. What a field means is said in `crates/plan/src/lib.rs`. No field has a default. A variant of a
tagged union is named by the union and the variant (`SizesFixed`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from loadstone.plan.part import F64, I32, I64, U8, U16, U32, U64, Part


class Advice(StrEnum):
    RANDOM = "random"
    SEQUENTIAL = "sequential"
    NOREUSE = "noreuse"


class BackendFalloc(Part):
    type: Literal["falloc"] = "falloc"


class BackendFiles(Part):
    type: Literal["files"] = "files"


class BackendIoUring(Part):
    type: Literal["io_uring"] = "io_uring"
    registered_files: bool
    fixed_buffers: bool
    iopoll: bool
    sqpoll: bool


class BackendIoUringCmd(Part):
    type: Literal["io_uring_cmd"] = "io_uring_cmd"
    registered_files: bool
    fixed_buffers: bool
    iopoll: bool
    sqpoll: bool


class BackendLibaio(Part):
    type: Literal["libaio"] = "libaio"


class BackendMmap(Part):
    type: Literal["mmap"] = "mmap"


class BackendMoveExtents(Part):
    type: Literal["move_extents"] = "move_extents"
    donor: U32
    in_place: bool


class BackendNames(Part):
    type: Literal["names"] = "names"
    operation: NameOperation


class BackendNull(Part):
    type: Literal["null"] = "null"


class BackendPsync(Part):
    type: Literal["psync"] = "psync"


class BackendSim(Part):
    type: Literal["sim"] = "sim"
    device: SimDevice


class BackendSplice(Part):
    type: Literal["splice"] = "splice"


Backend = TypeAliasType(
    "Backend",
    Annotated[
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
    ],
)


class Batch(Part):
    submit: U32
    complete_min: U32
    complete_max: U32
    low: U32


class Cell(Part):
    unit: U32
    target: U32 | None


class Connection(Part):
    ios: U32


class DedupeSet(Part):
    contents: U64
    seed: U64


class DepthSearch(Part):
    target_ns: U64
    window_ns: U64
    percentile: F64
    keep_on: bool


DoneItem = TypeAliasType("DoneItem", Annotated[tuple[U64, U64], Field(max_length=2, min_length=2)])


class Durable(StrEnum):
    ACKNOWLEDGED = "acknowledged"
    FLUSHED = "flushed"


class Earlier(Part):
    path: str
    targets: tuple[EarlierTarget, ...]


class EarlierTarget(Part):
    there: U32
    here: U32


class ErrorPolicy(Part):
    continue_read: bool
    continue_write: bool
    ignore_read: tuple[I32, ...]
    ignore_write: tuple[I32, ...]
    continue_after: tuple[I32, ...]


class Fallocate(StrEnum):
    NONE = "none"
    NATIVE = "native"
    POSIX = "posix"
    KEEP = "keep"
    TRUNCATE = "truncate"


class FileChoiceRandom(Part):
    type: Literal["random"] = "random"
    every: U32


class FileChoiceRoundRobin(Part):
    type: Literal["round_robin"] = "round_robin"
    every: U32


class FileChoiceSequential(Part):
    type: Literal["sequential"] = "sequential"


FileChoice = TypeAliasType(
    "FileChoice",
    Annotated[FileChoiceRoundRobin | FileChoiceRandom | FileChoiceSequential, Field(discriminator="type")],
)


class FileOperationAccess(Part):
    type: Literal["access"] = "access"


class FileOperationClose(Part):
    type: Literal["close"] = "close"


class FileOperationCopy(Part):
    type: Literal["copy"] = "copy"
    to: U32


class FileOperationCreate(Part):
    type: Literal["create"] = "create"
    fill: bool


class FileOperationDelete(Part):
    type: Literal["delete"] = "delete"


class FileOperationGetattr(Part):
    type: Literal["getattr"] = "getattr"


class FileOperationMkdir(Part):
    type: Literal["mkdir"] = "mkdir"


class FileOperationMove(Part):
    type: Literal["move"] = "move"
    to: U32


class FileOperationOpen(Part):
    type: Literal["open"] = "open"


class FileOperationRmdir(Part):
    type: Literal["rmdir"] = "rmdir"


class FileOperationSetattr(Part):
    type: Literal["setattr"] = "setattr"


class FileOperationTransfer(Part):
    type: Literal["transfer"] = "transfer"
    random: bool
    stop: FileStop
    delete_before: bool


FileOperation = TypeAliasType(
    "FileOperation",
    Annotated[
        FileOperationTransfer
        | FileOperationMkdir
        | FileOperationRmdir
        | FileOperationCreate
        | FileOperationDelete
        | FileOperationOpen
        | FileOperationClose
        | FileOperationGetattr
        | FileOperationSetattr
        | FileOperationAccess
        | FileOperationCopy
        | FileOperationMove,
        Field(discriminator="type"),
    ],
)


class FilePart(Part):
    index: U32
    count: U32


class FileSelectRandom(Part):
    type: Literal["random"] = "random"


class FileSelectSequential(Part):
    type: Literal["sequential"] = "sequential"
    random_start: bool
    once: bool


class FileSelectSkewed(Part):
    type: Literal["skewed"] = "skewed"
    midpoint_percent: F64


FileSelect = TypeAliasType(
    "FileSelect",
    Annotated[FileSelectSequential | FileSelectRandom | FileSelectSkewed, Field(discriminator="type")],
)


class FileSize(Part):
    bytes: U64
    weight: F64


class FileSizesAround(Part):
    type: Literal["around"] = "around"
    mean_bytes: U64


class FileSizesTable(Part):
    type: Literal["table"] = "table"
    table: tuple[FileSize, ...]


FileSizes = TypeAliasType(
    "FileSizes", Annotated[FileSizesTable | FileSizesAround, Field(discriminator="type")]
)


class FileStopPercent(Part):
    type: Literal["percent"] = "percent"
    percent: U32


class FileStopTransfers(Part):
    type: Literal["transfers"] = "transfers"
    count: U64


class FileStopWhole(Part):
    type: Literal["whole"] = "whole"


FileStop = TypeAliasType(
    "FileStop", Annotated[FileStopWhole | FileStopTransfers | FileStopPercent, Field(discriminator="type")]
)


class FileUse(Part):
    target: U32
    cell: U32
    offset_bytes: U64
    length_bytes: U64


class FillPattern(Part):
    type: Literal["pattern"] = "pattern"
    bytes: tuple[U8, ...]


class FillRandom(Part):
    type: Literal["random"] = "random"


class FillZero(Part):
    type: Literal["zero"] = "zero"


Fill = TypeAliasType("Fill", Annotated[FillRandom | FillZero | FillPattern, Field(discriminator="type")])


class Flow(Part):
    id: U32
    weight: U32
    sleep_ns: U64
    ahead: U32


class Flush(Part):
    fsync_every: U32
    fdatasync_every: U32
    at_end: bool
    on_close: bool


class HeaderBacklog(Part):
    writes: U32
    batch: U32


class HeaderLayout(StrEnum):
    EARLIER = "earlier"
    LATER = "later"


class HeaderPattern(Part):
    bytes: tuple[U8, ...]
    offsets_at: tuple[U32, ...]
    interval_bytes: U32


class HeaderSum(StrEnum):
    META = "meta"
    MD5 = "md5"
    CRC64 = "crc64"
    CRC32 = "crc32"
    CRC32C = "crc32c"
    CRC32C_INTEL = "crc32c_intel"
    CRC16 = "crc16"
    CRC7 = "crc7"
    SHA256 = "sha256"
    SHA512 = "sha512"
    SHA3224 = "sha3224"
    SHA3256 = "sha3256"
    SHA3384 = "sha3384"
    SHA3512 = "sha3512"
    XXHASH = "xxhash"
    SHA1 = "sha1"
    PATTERN_HDR = "pattern_hdr"
    PATTERN = "pattern"
    NULL = "null"


class HeaderTrim(Part):
    percent: U32
    writes: U32
    batch: U32
    zeros: bool


class HeaderUntil(Part):
    number: U64
    open: tuple[U64, ...]
    in_doubt: U32
    done: tuple[DoneItem, ...]


class Headers(Part):
    sum: HeaderSum
    layout: HeaderLayout
    interval_bytes: U32
    offset_bytes: U32
    pattern: HeaderPattern | None
    compress_percent: U32
    read_back: bool
    only: bool
    by_address: bool
    passes: U64
    enough_bytes: U64
    backlog: HeaderBacklog | None
    trim: HeaderTrim | None
    fatal: bool
    go_on: bool
    dump_dir: str | None
    check_seed: bool
    check_number: bool
    thread: U16
    until: HeaderUntil | None
    tell_state: bool
    flushed_only: bool


class Identity(Part):
    device: U64
    inode: U64
    special: U64
    born_ns: U64 | None


class Journal(Part):
    durable: Durable
    limit_bytes: U64


class Layout(Part):
    size_bytes: U64
    truncate: bool
    fallocate: Fallocate
    write: bool
    fsync: bool
    seed: U64


class Limits(Part):
    start_delay_ns: U64
    ramp_ns: U64
    runtime_ns: U64
    time_based: bool
    bytes: U64
    ops: U64
    ends_stage: bool
    ends_stage_on_error: bool
    max_latency_ns: tuple[U64, U64, U64]
    prepare_only: bool


class NameOperation(StrEnum):
    CREATE = "create"
    STAT = "stat"
    LSTAT = "lstat"
    STATX = "statx"
    DELETE = "delete"
    MKDIR = "mkdir"
    RMDIR = "rmdir"


class Named(StrEnum):
    AS_FOUND = "as_found"
    FILE = "file"
    DIRECTORY = "directory"


class Namesake(Part):
    path: str
    identity: Identity | None


class OpPattern(Part):
    random_percent: U32
    random: RandomOrder
    stride_bytes: I64
    stride_spread_bytes: U64
    run_length: U32
    run_identical: bool
    sizes: Sizes
    align_bytes: U64


class OpenSync(StrEnum):
    NONE = "none"
    SYNC = "sync"
    DSYNC = "dsync"


class Pace(Part):
    read: Rate | None
    write: Rate | None
    trim: Rate | None
    think: Think | None


class Pattern(Part):
    read_percent: U32
    write_percent: U32
    trim_percent: U32
    trim_then_write: bool
    read: OpPattern
    write: OpPattern
    trim: OpPattern
    strided: Strided | None
    rows: tuple[Row, ...] | None


class Payload(Part):
    fill: Fill
    refill: bool
    stamp: bool
    compress_percent: U32
    compress_chunk_bytes: U32
    dedupe_percent: U32
    dedupe_set: DedupeSet | None
    dedupe_unit_bytes: U32


class Plan(Part):
    version: Literal[1]
    interval_ns: U64
    grace_ns: U64
    memory_limit_bytes: U64
    targets: tuple[Target, ...]
    units: tuple[Unit, ...]
    cells: tuple[Cell, ...]
    workers: tuple[Worker, ...]
    streams: tuple[Stream, ...]
    journal: Journal | None
    recover: str | None
    earlier: tuple[Earlier, ...]
    hand_over: bool
    steady: tuple[Steady, ...]
    trees: tuple[Tree, ...]


class PriorityOp(StrEnum):
    READ = "read"
    WRITE = "write"


class PriorityShare(Part):
    op: PriorityOp
    block_bytes: U32 | None
    percent: F64
    priority: U16


class RandomOrderAged(Part):
    type: Literal["aged"] = "aged"
    again_blocks: tuple[U64, ...]
    region_blocks: U64
    at_the_end: bool


class RandomOrderListed(Part):
    type: Literal["listed"] = "listed"
    blocks: tuple[U64, ...]
    advance: bool


class RandomOrderNormal(Part):
    type: Literal["normal"] = "normal"
    deviation_percent: F64
    center: F64 | None


class RandomOrderPareto(Part):
    type: Literal["pareto"] = "pareto"
    h: F64
    center: F64 | None


class RandomOrderReuse(Part):
    type: Literal["reuse"] = "reuse"
    leaf_bytes: U64
    least_leaves: U64
    climb_percent: U32
    step_leaves: U64
    again_percent: U32


class RandomOrderUniform(Part):
    type: Literal["uniform"] = "uniform"
    repeat: bool


class RandomOrderZipf(Part):
    type: Literal["zipf"] = "zipf"
    theta: F64
    center: F64 | None


class RandomOrderZoned(Part):
    type: Literal["zoned"] = "zoned"
    zones: tuple[Zone, ...]


RandomOrder = TypeAliasType(
    "RandomOrder",
    Annotated[
        RandomOrderUniform
        | RandomOrderZipf
        | RandomOrderPareto
        | RandomOrderNormal
        | RandomOrderZoned
        | RandomOrderReuse
        | RandomOrderListed
        | RandomOrderAged,
        Field(discriminator="type"),
    ],
)


class Rate(Part):
    amount: RateAmount
    process: RateProcess
    profile: tuple[RatePoint, ...]
    phase: F64
    minimum: F64
    min_window_ns: U64


class RateAmountBytes(Part):
    unit: Literal["bytes"] = "bytes"
    per_second: F64


class RateAmountOps(Part):
    unit: Literal["ops"] = "ops"
    per_second: F64


RateAmount = TypeAliasType(
    "RateAmount", Annotated[RateAmountOps | RateAmountBytes, Field(discriminator="unit")]
)


class RatePoint(Part):
    at_ns: U64
    share: F64


class RateProcess(StrEnum):
    LINEAR = "linear"
    POISSON = "poisson"
    UNIFORM = "uniform"
    SPIKE = "spike"


class Row(Part):
    weight: F64
    bytes: U32
    read_percent: U32
    random_percent: U32
    align_bytes: U64
    burst: U32


class ServiceTime(StrEnum):
    CONSTANT = "constant"
    EXPONENTIAL = "exponential"
    UNIFORM = "uniform"


class SimBehaviour(Part):
    state: str | None
    dies: U32
    kib_ns: U64
    limits: tuple[SimLimit, ...]
    shared_limits: bool
    cache_bytes: U64
    cache_hit_ns: U64
    write_cache_bytes: U64
    write_cache_ns: U64
    drain_bytes_per_second: U64
    size_bytes: U64
    end_percent: U32
    zero_percent: U32
    repeat_percent: U32
    unwritten_ns: U64
    written_bytes: U64
    first_touch_ns: U64
    touched_bytes: U64
    grid_bytes: U64
    misaligned_percent: U32
    flush_ns: U64
    neighbour_ns: U64
    neighbour_ppm: U32
    neighbour_percent: U32


class SimDevice(Part):
    seed: U64
    servers: U32
    read_ns: U64
    write_ns: U64
    service: ServiceTime
    stall_every_ns: U64
    stall_ns: U64
    error_ppm: U32
    short_ppm: U32
    hang_ppm: U32
    faults: SimFaults | None
    behaviour: SimBehaviour | None


class SimFaults(Part):
    lost_ppm: U32
    torn_ppm: U32
    misdirected_ppm: U32
    stale_ppm: U32
    flip_ppm: U32
    zero_ppm: U32
    foreign_ppm: U32


class SimLimit(Part):
    per_second: U64
    burst: U64
    of_bytes: bool


class SizeWeight(Part):
    bytes: U32
    weight: F64


class SizesFixed(Part):
    type: Literal["fixed"] = "fixed"
    bytes: U32


class SizesRange(Part):
    type: Literal["range"] = "range"
    min_bytes: U32
    max_bytes: U32
    step_bytes: U32


class SizesSplit(Part):
    type: Literal["split"] = "split"
    table: tuple[SizeWeight, ...]


Sizes = TypeAliasType("Sizes", Annotated[SizesFixed | SizesRange | SizesSplit, Field(discriminator="type")])


class Steady(Part):
    streams: tuple[U32, ...]
    metric: SteadyMetric
    slope: bool
    limit: F64
    percent: bool
    after_ns: U64
    sample_ns: U64
    samples: U32


class SteadyMetric(StrEnum):
    OPS = "ops"
    BYTES = "bytes"
    LATENCY = "latency"


class Stream(Part):
    name: str
    worker: U32
    files: tuple[FileUse, ...]
    file_choice: FileChoice
    open_files: U32 | None
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
    verify: Verify | None
    headers: Headers | None
    connection: Connection | None
    flow: Flow | None
    serialize_overlap: bool
    wait_for: tuple[U32, ...]
    search: DepthSearch | None
    priorities: tuple[PriorityShare, ...]
    tree: TreeUse | None


class Strided(Part):
    zone_bytes: U64
    range_bytes: U64
    skip_bytes: U64


class Target(Part):
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
    namesake: Namesake | None
    named: Named | None


class TargetKind(StrEnum):
    FILE = "file"
    BLOCK = "block"
    CHAR = "char"
    NVME = "nvme"
    VIRTUAL = "virtual"
    TREE = "tree"


class Think(Part):
    pause_ns: U64
    spin_ns: U64
    every_ios: U32
    count_issued: bool
    every_ns: U64


class Tree(Part):
    target: U32
    depth: U32
    width: U32
    files: U32
    first_file: U32
    everywhere: bool
    sizes: FileSizes
    seed: U64
    total_bytes: U64
    clear: bool
    part: FilePart
    vouched_ns: U64 | None


class TreeUse(Part):
    tree: U32
    cell: U32
    operation: FileOperation
    select: FileSelect
    working_set_bytes: U64
    shared: bool
    rate: Rate | None
    queue: U32 | None


class Unit(Part):
    name: str
    group: U32
    clone: U32 | None


class Verify(Part):
    block_bytes: U32
    run: U64
    content: VerifyContent
    expect: VerifyExpect
    only_written: bool
    fatal: bool
    read_before_write: bool
    read_after_write: bool


class VerifyContent(StrEnum):
    PAYLOAD = "payload"
    GENERATED = "generated"
    PATTERN = "pattern"


class VerifyExpect(StrEnum):
    TABLE = "table"
    STAMPS = "stamps"


class Worker(Part):
    stage: U32
    backend: Backend
    cpus: tuple[U32, ...]
    nice: I32
    io_priority: U16
    force_async: U32


class Zone(Part):
    access_percent: F64
    length_bytes: U64


SCHEMA_DIGEST: Final = "f2255625f6b3049f40a7cf6810cbe11c6b8abad6ed4e9fed578a92004bf34109"
"""Of the schema of an engine that reads these Plans."""
