"""The Plan: the orders the engine runs, as Python values.

Generated from `contract/plan.schema.json` by `tests/support/plan_model.py`: run `make docs`, do not
edit. No field has a default. A variant of a tagged union is named by the union and the variant
(`SizesFixed`). Units stand last in the names: `_ns` nanoseconds, `_bytes` bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from loadstone.plan.base import F64, I32, I64, U8, U16, U32, U64, Part


class Advice(StrEnum):
    """Access advice, as in `posix_fadvise(2)`."""

    RANDOM = "random"
    """`POSIX_FADV_RANDOM`."""
    SEQUENTIAL = "sequential"
    """`POSIX_FADV_SEQUENTIAL`."""
    NOREUSE = "noreuse"
    """`POSIX_FADV_NOREUSE`."""


class BackendFalloc(Part):
    """`fallocate(2)`: reads keep the size, writes may extend it, trims punch holes."""

    type: Literal["falloc"] = "falloc"


class BackendFiles(Part):
    """Operations on files and directories by name, one at a time."""

    type: Literal["files"] = "files"


class BackendIoUring(Part):
    """io_uring, one ring."""

    type: Literal["io_uring"] = "io_uring"
    registered_files: bool
    """Register files and address them by index."""
    fixed_buffers: bool
    """Register the buffers and use the fixed operations where they win."""
    iopoll: bool
    """Poll for completions (`IORING_SETUP_IOPOLL`); needs `direct` everywhere."""
    sqpoll: bool
    """Kernel submission thread (`IORING_SETUP_SQPOLL`)."""


class BackendIoUringCmd(Part):
    """Commands to an NVMe namespace past the block layer (`IORING_OP_URING_CMD`)."""

    type: Literal["io_uring_cmd"] = "io_uring_cmd"
    registered_files: bool
    """Register files and address them by index."""
    fixed_buffers: bool
    """Register the buffers (`IORING_URING_CMD_FIXED`)."""
    iopoll: bool
    """Poll for completions (`IORING_SETUP_IOPOLL`)."""
    sqpoll: bool
    """Kernel submission thread (`IORING_SETUP_SQPOLL`)."""


class BackendLibaio(Part):
    """Linux native AIO (`io_submit(2)`)."""

    type: Literal["libaio"] = "libaio"


class BackendMmap(Part):
    """Copies through a shared mapping, one I/O at a time."""

    type: Literal["mmap"] = "mmap"


class BackendMoveExtents(Part):
    """ext4's exchange of extents: writes give a range the blocks a donor has there."""

    type: Literal["move_extents"] = "move_extents"
    donor: U32
    """Index into `Plan.targets`: the file the blocks come from."""
    in_place: bool
    """The donor is given its blocks before each exchange, and loses them after it."""


class BackendNames(Part):
    """One operation on its targets by their names: each I/O is one, whatever its bytes."""

    type: Literal["names"] = "names"
    operation: NameOperation
    """What is done."""


class BackendNull(Part):
    """No I/O: completes at once. Measures the engine itself."""

    type: Literal["null"] = "null"


class BackendPsync(Part):
    """`pread(2)`/`pwrite(2)`, one I/O at a time."""

    type: Literal["psync"] = "psync"


class BackendSim(Part):
    """Virtual clock and a seeded device model."""

    type: Literal["sim"] = "sim"
    device: SimDevice
    """The modelled device."""


class BackendSplice(Part):
    """`splice(2)` through a pipe, one I/O at a time."""

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
"""How a worker does I/O."""


class Batch(Part):
    """Fixed batch sizes."""

    submit: U32
    """Hand over to the kernel this many at a time."""
    complete_min: U32
    """Wait for at least this many completions (0: only poll)."""
    complete_max: U32
    """Take at most this many completions at a time."""
    low: U32
    """When full, drain to this depth before refilling."""


class Cell(Part):
    """What one histogram is kept for."""

    unit: U32
    """Index into `Plan.units`."""
    target: U32 | None
    """Index into `Plan.targets`; none when the targets are too many to keep apart."""


class DedupeSet(Part):
    """Contents that writes repeat from."""

    contents: U64
    """How many there are, above 0."""
    seed: U64
    """Where they come from: streams with the same number repeat from the same set."""


class DepthSearch(Part):
    """
    The search for the largest depth at which a latency target is met. Until it is
    found nothing counts for the result.
    """

    target_ns: U64
    """Latency to meet."""
    window_ns: U64
    """How long each depth is tried."""
    percentile: F64
    """Share of the I/Os that have to meet it, percent."""
    keep_on: bool
    """
    Go on to the end of the stream's time, everything counts (false: one more window at
    the depth that was found, and end).
    """


DoneItem = TypeAliasType("DoneItem", Annotated[tuple[U64, U64], Field(max_length=2, min_length=2)])


class Durable(StrEnum):
    """When an acknowledged write must be there after a crash."""

    ACKNOWLEDGED = "acknowledged"
    """At once."""
    FLUSHED = "flushed"
    """Once a flush that was issued after its acknowledgement is done."""


class Earlier(Part):
    """What a run before knew of verified blocks."""

    path: str
    """Path of the file it wrote with `Plan.hand_over`."""
    targets: tuple[EarlierTarget, ...]
    """Which of its targets are here."""


class EarlierTarget(Part):
    """A target of a run before, and the same here."""

    there: U32
    """Index into that run's targets."""
    here: U32
    """Index into `Plan.targets`."""


class ErrorPolicy(Part):
    """What happens on an error."""

    continue_read: bool
    """Continue after a failed read."""
    continue_write: bool
    """Continue after a failed write, trim or flush."""
    ignore_read: tuple[I32, ...]
    """Error numbers that do not count as failures of reads."""
    ignore_write: tuple[I32, ...]
    """The same for writes."""
    continue_after: tuple[I32, ...]
    """Error numbers after which it may continue; empty: any."""


class Fallocate(StrEnum):
    """Space allocation of a prepared file."""

    NONE = "none"
    """No allocation; extend only by writing."""
    NATIVE = "native"
    """`fallocate(2)` with mode 0, ignored where the file system lacks it."""
    POSIX = "posix"
    """`posix_fallocate(3)`."""
    KEEP = "keep"
    """`fallocate(2)` with `FALLOC_FL_KEEP_SIZE`."""
    TRUNCATE = "truncate"
    """`ftruncate(2)`: a sparse file."""


class FileChoiceRandom(Part):
    """A random one, kept for `every` I/Os."""

    type: Literal["random"] = "random"
    every: U32
    """I/Os before choosing again, at least 1."""


class FileChoiceRoundRobin(Part):
    """Each in turn, `every` I/Os on each."""

    type: Literal["round_robin"] = "round_robin"
    every: U32
    """I/Os before moving on, at least 1."""


class FileChoiceSequential(Part):
    """Finish one file before the next."""

    type: Literal["sequential"] = "sequential"


FileChoice = TypeAliasType(
    "FileChoice",
    Annotated[FileChoiceRoundRobin | FileChoiceRandom | FileChoiceSequential, Field(discriminator="type")],
)
"""How a stream with several files picks the next one."""


class FileOperationAccess(Part):
    """`access(2)` a file."""

    type: Literal["access"] = "access"


class FileOperationClose(Part):
    """Open a file to write, write nothing, and close it: the close is what was asked for."""

    type: Literal["close"] = "close"


class FileOperationCopy(Part):
    """
    Copy a file, whole, in the sizes of the pattern's reads, to the same place in another
    tree; what is there is deleted first.
    """

    type: Literal["copy"] = "copy"
    to: U32
    """Index into `Plan.trees`."""


class FileOperationCreate(Part):
    """Make a file that is not there."""

    type: Literal["create"] = "create"
    fill: bool
    """
    Write it to its full size, with the pattern's writes (false: leave it empty).
    Files that are there but not full are filled, too.
    """


class FileOperationDelete(Part):
    """Remove a file."""

    type: Literal["delete"] = "delete"


class FileOperationGetattr(Part):
    """`stat(2)` a file."""

    type: Literal["getattr"] = "getattr"


class FileOperationMkdir(Part):
    """Make a directory whose parent is there."""

    type: Literal["mkdir"] = "mkdir"


class FileOperationMove(Part):
    """
    Move a file (`renameat(2)`) to the same place in another tree; what is there is
    replaced.
    """

    type: Literal["move"] = "move"
    to: U32
    """As for `copy`."""


class FileOperationOpen(Part):
    """Open and close a file."""

    type: Literal["open"] = "open"


class FileOperationRmdir(Part):
    """Remove an empty directory."""

    type: Literal["rmdir"] = "rmdir"


class FileOperationSetattr(Part):
    """Set a file's times (`utimensat(2)`)."""

    type: Literal["setattr"] = "setattr"


class FileOperationTransfer(Part):
    """
    Reads and writes by the pattern's shares. A file is opened, read or written until
    `stop`, closed, and the next one opened.
    """

    type: Literal["transfer"] = "transfer"
    random: bool
    """Random addresses within the file (false: from its start to its end)."""
    stop: FileStop
    """When the file is left."""
    delete_before: bool
    """Sequential writes: delete the file and write it anew."""


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
"""What is asked for."""


class FileSelectRandom(Part):
    """Uniform."""

    type: Literal["random"] = "random"


class FileSelectSequential(Part):
    """One after the other, shared by all streams that use the tree with this operation."""

    type: Literal["sequential"] = "sequential"
    random_start: bool
    """Begin at a random one (false: at the first)."""
    once: bool
    """Each only once (false: from the first again)."""


class FileSelectSkewed(Part):
    """Low numbers more often: where an exponential distribution falls whose midpoint this is."""

    type: Literal["skewed"] = "skewed"
    midpoint_percent: F64
    """Share of the files below which half of the choices fall, percent."""


FileSelect = TypeAliasType(
    "FileSelect",
    Annotated[FileSelectSequential | FileSelectRandom | FileSelectSkewed, Field(discriminator="type")],
)
"""Which file or directory is next."""


class FileSize(Part):
    """One entry of `FileSizes.Table`."""

    bytes: U64
    """Bytes; 0: empty files."""
    weight: F64
    """Relative frequency, above 0."""


class FileSizesAround(Part):
    """Drawn around a mean."""

    type: Literal["around"] = "around"
    mean_bytes: U64
    """Mean size."""


class FileSizesTable(Part):
    """A table of sizes with weights; one entry: all the same."""

    type: Literal["table"] = "table"
    table: tuple[FileSize, ...]
    """Entries; weights need not add up to anything."""


FileSizes = TypeAliasType(
    "FileSizes", Annotated[FileSizesTable | FileSizesAround, Field(discriminator="type")]
)
"""Sizes of the files of a tree."""


class FileStopPercent(Part):
    """After this share of its bytes, above 0; sequential: or at its end."""

    type: Literal["percent"] = "percent"
    percent: U32
    """Percent."""


class FileStopTransfers(Part):
    """After so many transfers, or at its end."""

    type: Literal["transfers"] = "transfers"
    count: U64
    """Above 0."""


class FileStopWhole(Part):
    """Sequential: at its end. Random: after as many bytes as it has."""

    type: Literal["whole"] = "whole"


FileStop = TypeAliasType(
    "FileStop", Annotated[FileStopWhole | FileStopTransfers | FileStopPercent, Field(discriminator="type")]
)
"""When a file is left for another."""


class FileUse(Part):
    """A stream's use of one target."""

    target: U32
    """Index into `Plan.targets`."""
    cell: U32
    """Index into `Plan.cells`."""
    offset_bytes: U64
    """First byte used."""
    length_bytes: U64
    """Bytes used from there."""


class FillPattern(Part):
    """A repeated pattern of 1 to 65,536 bytes."""

    type: Literal["pattern"] = "pattern"
    bytes: tuple[U8, ...]
    """The bytes."""


class FillRandom(Part):
    """Pseudo-random bytes."""

    type: Literal["random"] = "random"


class FillZero(Part):
    """Zeros."""

    type: Literal["zero"] = "zero"


Fill = TypeAliasType("Fill", Annotated[FillRandom | FillZero | FillPattern, Field(discriminator="type")])
"""Base content."""


class Flow(Part):
    """A stream's part of the I/Os of all streams with the same `id`."""

    id: U32
    """Streams with the same number share."""
    weight: U32
    """Its part, above 0, of the sum of those running."""
    sleep_ns: U64
    """How long it waits when it had more than its part; 0: as short as possible."""
    ahead: U32
    """
    I/Os above its part that it may have done, as long as they are at most 1/64 of its own;
    0: none, so that streams wait for each other at every I/O.
    """


class Flush(Part):
    """Flushes."""

    fsync_every: U32
    """`fsync(2)` after so many writes (0: never)."""
    fdatasync_every: U32
    """`fdatasync(2)` after so many writes (0: never)."""
    at_end: bool
    """`fsync(2)` when the stream's I/O is done, inside its time."""
    on_close: bool
    """`fsync(2)` when its files are closed; in a tree it is a part of each close."""


class HeaderBacklog(Part):
    """Reads of what was written between the writes."""

    writes: U32
    """Writes after which some are read back."""
    batch: U32
    """How many are read back then."""


class HeaderLayout(StrEnum):
    """Which fios take a header for their own."""

    EARLIER = "earlier"
    """Those up to 3.40."""
    LATER = "later"
    """Those from 3.41 on."""


class HeaderPattern(Part):
    """What lies between the headers."""

    bytes: tuple[U8, ...]
    """Bytes that are repeated."""
    offsets_at: tuple[U32, ...]
    """Where in them the offset of the I/O stands, 8 bytes, lowest first."""
    interval_bytes: U32
    """The pattern, and the offset in it, begin anew so often; 0: with each I/O."""


class HeaderSum(StrEnum):
    """What a block is checked by."""

    META = "meta"
    """The header alone."""
    MD5 = "md5"
    """MD5."""
    CRC64 = "crc64"
    """CRC-64."""
    CRC32 = "crc32"
    """CRC-32."""
    CRC32C = "crc32c"
    """CRC-32C."""
    CRC32C_INTEL = "crc32c_intel"
    """CRC-32C."""
    CRC16 = "crc16"
    """CRC-16."""
    CRC7 = "crc7"
    """CRC-7."""
    SHA256 = "sha256"
    """SHA-256."""
    SHA512 = "sha512"
    """SHA-512."""
    SHA3224 = "sha3224"
    """SHA3-224."""
    SHA3256 = "sha3256"
    """SHA3-256."""
    SHA3384 = "sha3384"
    """SHA3-384."""
    SHA3512 = "sha3512"
    """SHA3-512."""
    XXHASH = "xxhash"
    """xxHash of 32 bits."""
    SHA1 = "sha1"
    """SHA-1."""
    PATTERN_HDR = "pattern_hdr"
    """The pattern, behind a header."""
    PATTERN = "pattern"
    """The pattern, and there is no header."""
    NULL = "null"
    """Nothing: it is read back and not looked at."""


class HeaderTrim(Part):
    """Trims of what was written."""

    percent: U32
    """Share of the writes that are trimmed later."""
    writes: U32
    """Writes after which some are trimmed."""
    batch: U32
    """How many are trimmed then."""
    zeros: bool
    """What was trimmed is read back too, and must be zeros."""


class HeaderUntil(Part):
    """What had been written when another run ended."""

    number: U64
    """Writes that were issued."""
    open: tuple[U64, ...]
    """Numbers of those that were not done, or failed."""
    in_doubt: U32
    """Of so many of the last ones only those to the places in `done` were done."""
    done: tuple[DoneItem, ...]
    """File, as index of the stream's, and offset."""


class Headers(Part):
    """
    Verification by headers in the format of fio: either side checks what the other wrote. What a
    stream wrote is read back by the stream itself, in the sizes in which it was written.
    """

    sum: HeaderSum
    """What a block is checked by."""
    layout: HeaderLayout
    """Layout of the headers that are written; either is read."""
    interval_bytes: U32
    """Bytes from one header to the next; an I/O that is shorter, or 0, has one."""
    offset_bytes: U32
    """Where the header is in its block."""
    pattern: HeaderPattern | None
    """What lies between the headers; none: random bytes."""
    compress_percent: U32
    """Part of the random bytes that compresses away, percent."""
    read_back: bool
    """Read back what was written when a pass is over."""
    only: bool
    """Write nothing: read back what a stream like this wrote before."""
    by_address: bool
    """
    Read back in the order of addresses, and of writes that overlap only the last (false: in
    the order in which they were written).
    """
    passes: U64
    """Passes of `Limits.bytes` and `Limits.ops`; 0: until its time is over."""
    enough_bytes: U64
    """After the passes go on until so many bytes were read and written; 0: no."""
    backlog: HeaderBacklog | None
    """Reads of what was written between the writes."""
    trim: HeaderTrim | None
    """Trims of what was written."""
    fatal: bool
    """End all streams of the run at the first damage."""
    go_on: bool
    """Go on after damage."""
    dump_dir: str | None
    """Directory for the content of damaged blocks; none: it is not kept."""
    check_seed: bool
    """A header must have the seed with which the stream wrote it."""
    check_number: bool
    """A header must have the number of the write."""
    thread: U16
    """Number of the stream in headers."""
    until: HeaderUntil | None
    """Read back only what had been written when another run ended."""
    tell_state: bool
    """Tell at the end what was written, for another run's `until`."""
    flushed_only: bool
    """Read back, and tell of, only what was written before the last flush."""


class Identity(Part):
    """What tells a target from any other, at the time of the safety check."""

    device: U64
    """`st_dev`."""
    inode: U64
    """`st_ino`."""
    special: U64
    """`st_rdev`; 0 for regular files."""
    born_ns: U64 | None
    """
    When a file or directory was made (`stx_btime`), since 1970: an inode's number is used again
    for the next file. Null where the file system does not tell.
    """


class Journal(Part):
    """How a journal is kept."""

    durable: Durable
    """When an acknowledged write must be there after a crash."""
    limit_bytes: U64
    """
    From this length on it is replaced by what is known at that moment. Only where
    writes are durable once acknowledged: else it grows.
    """


class Layout(Part):
    """
    How a file is prepared: allocated, then really written, because an unwritten
    extent reads many times faster than data.
    """

    size_bytes: U64
    """The file must have at least this many bytes; existing bytes are kept."""
    truncate: bool
    """Cut a longer file down to `size_bytes`."""
    fallocate: Fallocate
    """Space allocation before the data."""
    write: bool
    """Write data into the part that did not exist (false: only allocate or extend)."""
    fsync: bool
    """`fsync` when done."""
    seed: U64
    """Seed of the bytes written."""


class Limits(Part):
    """When a stream starts and ends; it ends at the first limit it meets."""

    start_delay_ns: U64
    """Wait after the start of the stage."""
    ramp_ns: U64
    """Run this long before results count."""
    runtime_ns: U64
    """Time of the stream after the ramp; 0: no limit."""
    time_based: bool
    """Keep going to the end of `runtime_ns` however much was done."""
    bytes: U64
    """Bytes to move; 0: no limit. Counted over all loops."""
    ops: U64
    """I/Os to do; 0: no limit."""
    ends_stage: bool
    """Stop every stream of the stage when this one ends."""
    ends_stage_on_error: bool
    """The same, when this one fails."""
    max_latency_ns: tuple[U64, U64, U64]
    """A longer latency of a read, write or trim is a failure of the stream; 0: any."""
    prepare_only: bool
    """Its targets are prepared, and nothing else is done."""


class NameOperation(StrEnum):
    """An operation on a target by its name."""

    CREATE = "create"
    """Open a file that is made where it is missing, and close it."""
    STAT = "stat"
    """`stat(2)`."""
    LSTAT = "lstat"
    """`lstat(2)`."""
    STATX = "statx"
    """`statx(2)` with all there is."""
    DELETE = "delete"
    """`unlink(2)`."""
    MKDIR = "mkdir"
    """`mkdir(2)`."""
    RMDIR = "rmdir"
    """`rmdir(2)`."""


class Named(StrEnum):
    """What stands for a target that is used by name before the run."""

    AS_FOUND = "as_found"
    """Whatever is there; nothing is made."""
    FILE = "file"
    """The file, laid out."""
    DIRECTORY = "directory"
    """A directory, made where it is missing."""


class Namesake(Part):
    """The block device with the same data as a character device."""

    path: str
    """Path as given to `open(2)`."""
    identity: Identity | None
    """Identity the safety check saw; the engine refuses to open anything else."""


class OpPattern(Part):
    """Addresses and sizes of one operation."""

    random_percent: U32
    """Share of I/Os at random addresses, 0 (sequential) to 100."""
    random: RandomOrder
    """Random addresses."""
    stride_bytes: I64
    """
    Sequential addresses: bytes added after each I/O besides its own size;
    negative walks backwards.
    """
    stride_spread_bytes: U64
    """As many bytes more at most, drawn for each I/O: whole sizes of it, from none to below this."""
    run_length: U32
    """
    Sequential I/Os in a row before a jump to a new random address, or before the stride is
    added; at least 1.
    """
    run_identical: bool
    """Repeat the same address `run_length` times."""
    sizes: Sizes
    """Sizes."""
    align_bytes: U64
    """Random addresses are multiples of this."""


class OpenSync(StrEnum):
    """Durability asked for at `open(2)`."""

    NONE = "none"
    """Neither flag."""
    SYNC = "sync"
    """`O_SYNC`."""
    DSYNC = "dsync"
    """`O_DSYNC`."""


class Pace(Part):
    """When I/Os should start."""

    read: Rate | None
    """Arrival rate of reads, writes, trims; none: closed loop."""
    write: Rate | None
    """See `read`."""
    trim: Rate | None
    """See `read`."""
    think: Think | None
    """Pause after so many I/Os."""


class Pattern(Part):
    """What an I/O is and where it goes."""

    read_percent: U32
    """Shares of the operations; they add up to 100."""
    write_percent: U32
    """See `read_percent`."""
    trim_percent: U32
    """See `read_percent`."""
    trim_then_write: bool
    """A trim of a block is followed by a write of it."""
    read: OpPattern
    """Order of addresses for reads, writes and trims."""
    write: OpPattern
    """See `read`."""
    trim: OpPattern
    """See `read`."""
    strided: Strided | None
    """I/O stays in a window that moves over each file; none: the whole range."""
    rows: tuple[Row, ...] | None
    """
    I/Os by rows: each has its own size, operation and address. The shares and sizes
    above then say what the rows come to together, and the orders of addresses are not
    used. None: shares, sizes and addresses do not depend on each other.
    """


class Payload(Part):
    """Bytes written."""

    fill: Fill
    """Base content of the buffers."""
    refill: bool
    """Make all of the content new for every write (false: only the stamps change)."""
    stamp: bool
    """Change a few bytes of every 512 for each write, so that no two blocks are equal."""
    compress_percent: U32
    """Percent of each chunk that compresses away, 0 to 100."""
    compress_chunk_bytes: U32
    """Chunk of `compress_percent`; 0: the block."""
    dedupe_percent: U32
    """Percent of writes, or of their units, that repeat earlier content."""
    dedupe_set: DedupeSet | None
    """What those repeat from; none: the last contents of the stream."""
    dedupe_unit_bytes: U32
    """Bytes of a write that are drawn together, new or repeated; 0: the whole write."""


class Plan(Part):
    """One run, completely resolved."""

    version: Literal[1] = 1
    """Of the Plan's shape: the one an engine reads."""
    interval_ns: U64
    """Length of one sample interval."""
    grace_ns: U64
    """
    After a stream's time is over, how long to wait for I/O still in flight before
    it is reported as hung and abandoned.
    """
    memory_limit_bytes: U64
    """The most memory the engine may hold; it refuses a Plan that needs more."""
    targets: tuple[Target, ...]
    """Files and devices, each opened once."""
    units: tuple[Unit, ...]
    """Who is reported: a job section, or one clone of it."""
    cells: tuple[Cell, ...]
    """
    What results are kept for: one unit on one target (or on many targets, when
    there are too many to keep apart).
    """
    workers: tuple[Worker, ...]
    """Threads. Those of stage 0 run first, then stage 1, and so on."""
    streams: tuple[Stream, ...]
    """Sources of I/O; each belongs to exactly one worker."""
    journal: Journal | None
    """
    Note every verified write in a journal beside the samples, so that a later run can
    verify what a crash left.
    """
    recover: str | None
    """
    Path of a journal: what streams with a table verify is what it tells, and their run
    is the journal's.
    """
    earlier: tuple[Earlier, ...]
    """
    What runs before knew of verified blocks at their ends; streams with a table begin with
    that, and their run is that of the first of them.
    """
    hand_over: bool
    """Write at the end what is known of verified blocks, for runs that come after."""
    steady: tuple[Steady, ...]
    """Streams that end when their rate or latency is steady."""
    trees: tuple[Tree, ...]
    """Directories and files that streams with a `Stream.tree` work in."""


class PriorityOp(StrEnum):
    """Operations that can have a priority of their own."""

    READ = "read"
    """Reads."""
    WRITE = "write"
    """Writes."""


class PriorityShare(Part):
    """Reads or writes of a stream that have another priority than its thread."""

    op: PriorityOp
    """Which I/Os."""
    block_bytes: U32 | None
    """Only those of this size; none: of any."""
    percent: F64
    """How many of them, chosen at random."""
    priority: U16
    """Their priority."""


class RandomOrderListed(Part):
    """Blocks by number in a fixed order, over and over."""

    type: Literal["listed"] = "listed"
    blocks: tuple[U64, ...]
    """Numbers of the blocks, from 0; at least one."""
    advance: bool
    """
    Each time the list begins again it lies as many blocks further on as it has
    entries (false: the same blocks again).
    """


class RandomOrderNormal(Part):
    """Normal around the middle."""

    type: Literal["normal"] = "normal"
    deviation_percent: F64
    """Standard deviation in percent of the range."""
    center: F64 | None
    """As for Zipf."""


class RandomOrderPareto(Part):
    """Pareto with parameter `h`, 0 to 1."""

    type: Literal["pareto"] = "pareto"
    h: F64
    """Shape."""
    center: F64 | None
    """As for Zipf."""


class RandomOrderReuse(Part):
    """
    A walk over the leaves of a binary tree that mostly stays near, one for each file
    and for all operations of the stream that have this order.
    """

    type: Literal["reuse"] = "reuse"
    leaf_bytes: U64
    """Size of a leaf."""
    least_leaves: U64
    """Leaves of the smallest subtree the next one is drawn from."""
    climb_percent: U32
    """Chance of drawing from twice as many, each time again."""
    step_leaves: U64
    """Only leaves whose number is a multiple of this."""
    again_percent: U32
    """Share of I/Os whose address the next I/O of the operation has again."""


class RandomOrderUniform(Part):
    """
    Uniform; with `repeat` false every block is touched once before any is
    touched again, in bounded memory.
    """

    type: Literal["uniform"] = "uniform"
    repeat: bool
    """Addresses may come again before all were touched."""


class RandomOrderZipf(Part):
    """Zipf with exponent `theta` over the blocks; ranks scattered over the range."""

    type: Literal["zipf"] = "zipf"
    theta: F64
    """Exponent, above 0 and not 1."""
    center: F64 | None
    """Where the hottest block is, as a share of the range; none: scattered."""


class RandomOrderZoned(Part):
    """Zones with their own share of the accesses."""

    type: Literal["zoned"] = "zoned"
    zones: tuple[Zone, ...]
    """Zones in address order; access shares add up to 100."""


RandomOrder = TypeAliasType(
    "RandomOrder",
    Annotated[
        RandomOrderUniform
        | RandomOrderZipf
        | RandomOrderPareto
        | RandomOrderNormal
        | RandomOrderZoned
        | RandomOrderReuse
        | RandomOrderListed,
        Field(discriminator="type"),
    ],
)
"""Order of random addresses."""


class Rate(Part):
    """An arrival rate."""

    amount: RateAmount
    """How much."""
    process: RateProcess
    """Spacing of arrivals."""
    profile: tuple[RatePoint, ...]
    """
    The rate over the stream's time, ramp included: `amount` times the share that
    these points give, straight lines between them, the first and the last share
    before and after. Two points at one time are a step. Empty: always `amount`.
    """
    phase: F64
    """
    Evenly spaced arrivals begin this part of a gap late, from 0 to below 1, so that
    clones do not all start an I/O at the same moment. 0 for all other arrivals.
    """
    minimum: F64
    """
    Fail the stream when over a `min_window_ns` it achieves less than this share
    of a unit per second (0: never); same unit as `amount`.
    """
    min_window_ns: U64
    """Window of `minimum`."""


class RateAmountBytes(Part):
    """Bytes per second."""

    unit: Literal["bytes"] = "bytes"
    per_second: F64
    """Above 0."""


class RateAmountOps(Part):
    """Operations per second."""

    unit: Literal["ops"] = "ops"
    per_second: F64
    """Above 0."""


RateAmount = TypeAliasType(
    "RateAmount", Annotated[RateAmountOps | RateAmountBytes, Field(discriminator="unit")]
)
"""Rate in operations or in bytes."""


class RatePoint(Part):
    """One point of `Rate.profile`."""

    at_ns: U64
    """Time since the stream's start; not below that of the point before."""
    share: F64
    """Share of the rate's amount, at least 0."""


class RateProcess(StrEnum):
    """Spacing of arrivals."""

    LINEAR = "linear"
    """Evenly spaced."""
    POISSON = "poisson"
    """Poisson: exponential gaps."""
    UNIFORM = "uniform"
    """Gaps drawn evenly between nothing and twice their mean."""
    SPIKE = "spike"
    """All arrivals of a second at its beginning, counted from the start of the stream."""


class Row(Part):
    """One kind of I/O among several."""

    weight: F64
    """Its part of the I/Os; any unit."""
    bytes: U32
    """Size."""
    read_percent: U32
    """Share of reads; the others are writes."""
    random_percent: U32
    """
    Share of random addresses; the others begin where the last I/O on the file ended,
    of whichever row it was.
    """
    align_bytes: U64
    """Addresses are multiples of this."""
    burst: U32
    """I/Os that follow each other when it is this row's turn."""


class ServiceTime(StrEnum):
    """Distribution of simulated service times."""

    CONSTANT = "constant"
    """Always the mean."""
    EXPONENTIAL = "exponential"
    """Exponential."""
    UNIFORM = "uniform"
    """Uniform from 0 to twice the mean."""


class SimBehaviour(Part):
    """
    The parts of a storage system that change what a number means. 0 turns a part off.

    An I/O passes them in this order: limits, caches, queue slots (`servers`), dies. The state
    (credits, what is cached, what was written or touched) is kept per target over the stages
    of a run, and over runs in the file `state`.
    """

    state: str | None
    """File in which the state is kept from run to run; none: each run begins anew."""
    dies: U32
    """
    Dies, each of which does one I/O at a time; an address belongs to one of them.
    0: any server can do any I/O.
    """
    kib_ns: U64
    """Service time of a die for each KiB, beside `read_ns` and `write_ns`."""
    limits: tuple[SimLimit, ...]
    """Limits on the rate, one after the other."""
    shared_limits: bool
    """All targets of the run share the limits of the first."""
    cache_bytes: U64
    """A cache with the blocks that were used last: its size."""
    cache_hit_ns: U64
    """Latency of a hit."""
    write_cache_bytes: U64
    """Writes acknowledged from a cache as long as there is room in it: its size."""
    write_cache_ns: U64
    """Latency of a write that finds room."""
    drain_bytes_per_second: U64
    """Rate at which it is emptied."""
    size_bytes: U64
    """Length of the target, for places on it."""
    end_percent: U32
    """Service time at its end, in percent of that at its beginning."""
    zero_percent: U32
    """Service time of a write of zeros, in percent."""
    repeat_percent: U32
    """Service time of a write of content that was written before, in percent."""
    unwritten_ns: U64
    """Latency of a read of what was never written; all below `written_bytes` was."""
    written_bytes: U64
    """What was written before the first run."""
    first_touch_ns: U64
    """Added to the first I/O of each 64 KiB; all below `touched_bytes` was touched."""
    touched_bytes: U64
    """What was touched before the first run."""
    grid_bytes: U64
    """Grid of the medium."""
    misaligned_percent: U32
    """Service time of I/O off the grid, in percent."""
    flush_ns: U64
    """Service time of a flush; 0: that of a write."""
    neighbour_ns: U64
    """Other work in the storage comes and goes in slots of this length."""
    neighbour_ppm: U32
    """Share of the slots in which there is some, in parts per million."""
    neighbour_percent: U32
    """Service time in such a slot, in percent."""


class SimDevice(Part):
    """A seeded model of a device on a virtual clock."""

    seed: U64
    """Seed of every random choice below."""
    servers: U32
    """I/Os in service at the same time; the rest wait in order."""
    read_ns: U64
    """Mean service time of a read."""
    write_ns: U64
    """Mean service time of a write, trim or sync."""
    service: ServiceTime
    """Distribution of service times around the mean."""
    stall_every_ns: U64
    """The device stands still for `stall_ns` every `stall_every_ns` (0: never)."""
    stall_ns: U64
    """Length of a stall."""
    error_ppm: U32
    """Share of I/Os that fail with `EIO`, in parts per million."""
    short_ppm: U32
    """Share of I/Os that complete short (half the bytes), in parts per million."""
    hang_ppm: U32
    """Share of I/Os that never complete, in parts per million."""
    faults: SimFaults | None
    """The device keeps what is written, and damages it; none: it touches no data."""
    behaviour: SimBehaviour | None
    """What the device is made of beside its servers; none: servers and nothing else."""


class SimFaults(Part):
    """
    How a simulated device damages data: shares of its writes or reads in parts per
    million, at most one fault for each. Every injection is an event.
    """

    lost_ppm: U32
    """Acknowledged writes that have no effect."""
    torn_ppm: U32
    """Writes of which only the first sectors arrive."""
    misdirected_ppm: U32
    """Writes that go to another place."""
    stale_ppm: U32
    """Reads that return what was there before the last write."""
    flip_ppm: U32
    """Writes of which one to four bits are flipped."""
    zero_ppm: U32
    """Writes that leave zeros."""
    foreign_ppm: U32
    """Writes that leave noise."""


class SimLimit(Part):
    """A token bucket."""

    per_second: U64
    """Tokens per second."""
    burst: U64
    """Tokens the bucket holds, and begins with."""
    of_bytes: bool
    """A byte costs a token; false: an I/O."""


class SizeWeight(Part):
    """Entry of a `Sizes.Split` table."""

    bytes: U32
    """Bytes, above 0."""
    weight: F64
    """Relative frequency, above 0."""


class SizesFixed(Part):
    """Always the same."""

    type: Literal["fixed"] = "fixed"
    bytes: U32
    """Bytes, above 0."""


class SizesRange(Part):
    """Uniform between two sizes, in multiples of `step_bytes`."""

    type: Literal["range"] = "range"
    min_bytes: U32
    """Smallest."""
    max_bytes: U32
    """Largest."""
    step_bytes: U32
    """Granularity, above 0."""


class SizesSplit(Part):
    """A table of sizes with weights."""

    type: Literal["split"] = "split"
    table: tuple[SizeWeight, ...]
    """Entries; weights need not add up to anything."""


Sizes = TypeAliasType("Sizes", Annotated[SizesFixed | SizesRange | SizesSplit, Field(discriminator="type")])
"""Sizes of I/Os."""


class Steady(Part):
    """
    Streams that end together once the last samples are steady.
    What other streams do in the same cells counts as well.
    """

    streams: tuple[U32, ...]
    """Indices into `Plan.streams`."""
    metric: SteadyMetric
    """What is looked at."""
    slope: bool
    """
    Judge the slope of the least-squares line over the samples, per sample (false: the
    largest deviation from their mean).
    """
    limit: F64
    """Steady below this: percent of the mean, or in the metric's unit."""
    percent: bool
    """`limit` is in percent of the mean."""
    after_ns: U64
    """Time left out after the first of the streams has started and ramped."""
    sample_ns: U64
    """Length of a sample, a multiple of `Plan.interval_ns`."""
    samples: U32
    """Samples looked at, at least 2."""


class SteadyMetric(StrEnum):
    """What has to be steady."""

    OPS = "ops"
    """Operations per second."""
    BYTES = "bytes"
    """Bytes per second."""
    LATENCY = "latency"
    """Mean latency in nanoseconds."""


class Stream(Part):
    """One source of I/O: a clone of a job."""

    name: str
    """Name for messages, as `job.clone`."""
    worker: U32
    """Index into `Plan.workers`; its stage is the stream's stage."""
    files: tuple[FileUse, ...]
    """Where it does I/O: at least one file, or none and a `tree`."""
    file_choice: FileChoice
    """How the next file is chosen."""
    open_files: U32 | None
    """
    Most files it is at work on: the next is begun when one is finished, all in turn.
    None: all of them.
    """
    seed: U64
    """Seed of every random choice of this stream."""
    iodepth: U32
    """Most I/Os in flight."""
    batch: Batch | None
    """How many to hand over and to wait for at a time; none: the engine chooses."""
    pattern: Pattern
    """Read, write and trim shares, and the order of addresses."""
    pace: Pace
    """When I/Os should start."""
    flush: Flush
    """Flushes within and after the stream."""
    payload: Payload
    """Bytes written."""
    limits: Limits
    """When it starts and ends."""
    errors: ErrorPolicy
    """What happens on an error."""
    log_ios: bool
    """Keep a record of every I/O in `ios.arrows`."""
    verify: Verify | None
    """Stamp what is written, and check what is read."""
    headers: Headers | None
    """Verify by headers that fio can read."""
    flow: Flow | None
    """Share of the I/Os of several streams; none: as many as it can do."""
    serialize_overlap: bool
    """Hold back an I/O that overlaps one of the same stream in flight."""
    wait_for: tuple[U32, ...]
    """It starts, after its delay, when these earlier streams of its stage have ended."""
    search: DepthSearch | None
    """Find the largest depth that meets a latency; none: always `iodepth`."""
    priorities: tuple[PriorityShare, ...]
    """I/Os with another priority than that of the worker."""
    tree: TreeUse | None
    """Operations on files of a tree; none: I/O to `files`."""


class Strided(Part):
    """A window that moves over a file."""

    zone_bytes: U64
    """Bytes to move before the window goes on."""
    range_bytes: U64
    """Length of the window."""
    skip_bytes: U64
    """Bytes left out between two windows."""


class Target(Part):
    """A file or device and how to open and prepare it."""

    path: str
    """Path as given to `open(2)`."""
    kind: TargetKind
    """What the planner found or will have created there."""
    size_bytes: U64
    """Addressable bytes from offset 0 (for `null` and `sim` any value)."""
    direct: bool
    """Open with `O_DIRECT`."""
    read_only: bool
    """Open read-only."""
    create: bool
    """Create when missing, before the run."""
    sync: OpenSync
    """`O_SYNC`, `O_DSYNC` or neither."""
    exclusive: bool
    """
    For a device that will be written: open with `O_EXCL`, so the kernel refuses one
    that is mounted or held. Of a character device its namesake, beside it.
    """
    identity: Identity | None
    """Identity the safety check saw; the engine refuses to open anything else."""
    layout: Layout | None
    """What must be written there before the run starts."""
    invalidate: bool
    """
    Drop its cached pages before the run (`POSIX_FADV_DONTNEED`); of a tree those of each
    file when it is opened, as a part of the open.
    """
    advice: Advice | None
    """Advice given to the kernel before the run."""
    unlink: bool
    """Remove the file after the run."""
    namesake: Namesake | None
    """Of the character device of an NVMe namespace."""
    named: Named | None
    """Of kind file, used by its name alone: it is not open during the run."""


class TargetKind(StrEnum):
    """Kind of a target."""

    FILE = "file"
    """Regular file."""
    BLOCK = "block"
    """Block device."""
    CHAR = "char"
    """Character device such as `/dev/null`."""
    NVME = "nvme"
    """
    The character device of an NVMe namespace, as `/dev/ng0n1`. Always direct: it has no
    page cache. Only for the `io_uring_cmd` backend.
    """
    VIRTUAL = "virtual"
    """Nothing is opened (`null` and `sim` backends)."""
    TREE = "tree"
    """Directory that a `Plan.trees` is in."""


class Think(Part):
    """Think time."""

    pause_ns: U64
    """Length of the pause."""
    spin_ns: U64
    """The first part of the pause is spent spinning, not sleeping."""
    every_ios: U32
    """Pause after this many I/Os, at least 1."""
    count_issued: bool
    """Count I/Os when they are issued (false: when they complete)."""
    every_ns: U64
    """
    Pause after so long since the last pause, however many I/Os these were; 0: by their
    number.
    """


class Tree(Part):
    """
    A tree of directories and files. Their names are vdbench's: level `l` holds the
    directories `vdb.<l>_<n>.dir` (n from 1), a directory the files `vdb_f<nnnn>.file`.
    """

    target: U32
    """
    Index into `Plan.targets`: its anchor, a target of kind `tree` that no other
    tree has. How files are opened (`direct`, `sync`), whether their cached pages are
    dropped then (`invalidate`), whether a missing anchor is made (`create`) and what
    they come to (`size_bytes`) stands there.
    """
    depth: U32
    """Levels of directories below the anchor, at least 1."""
    width: U32
    """Directories in the anchor and in each directory above the lowest level, at least 1."""
    files: U32
    """Files in each directory that has files, at least 1."""
    first_file: U32
    """Number of the first of them: 1, or 0 as newer versions of vdbench have it."""
    everywhere: bool
    """All directories have files (false: only those of the lowest level)."""
    sizes: FileSizes
    """Size of each file: the same for the same `seed` and number of the file."""
    seed: U64
    """Seed of the sizes."""
    total_bytes: U64
    """Only the first files that come to this many bytes are ever created or used; 0: all."""
    clear: bool
    """
    Before the run remove every file and directory with such a name below the anchor,
    whatever tree it was of.
    """


class TreeUse(Part):
    """
    What a stream does in a tree: one operation at a time, so its `iodepth` is 1, its backend
    `files`, and it has no `files` of its own.

    Transfers have the sizes of the stream's pattern, and their rows; so has everything else
    that was done for the operation: opens, closes, creates (in each an open). It ends with reason `exhausted`
    when nothing is left to do the operation on and no other stream of the stage can change
    that.
    """

    tree: U32
    """Index into `Plan.trees`."""
    cell: U32
    """Index into `Plan.cells`."""
    operation: FileOperation
    """What is asked for; only this is paced, and counts in `limits.ops`."""
    select: FileSelect
    """Which file or directory is next."""
    working_set_bytes: U64
    """Only the first files that come to this many bytes are used; 0: all."""
    shared: bool
    """Several streams may have the same file open at a time."""
    rate: Rate | None
    """Arrivals; none: closed loop. The stream's own `pace` is empty."""
    queue: U32 | None
    """
    Streams with the same number take their arrivals from one queue, whoever is free
    first: its rate is what all of them have together.
    """


class Unit(Part):
    """A line of the result: a job section, or one clone of it."""

    name: str
    """Name of the job section."""
    group: U32
    """Reporting group the unit is in."""
    clone: U32 | None
    """Clone number from 0, or none when all clones are in this unit."""


class Verify(Part):
    """Verification of a stream. All streams that write to a target in a stage must agree on it."""

    block_bytes: U32
    """
    Unit of stamps and expectations: a multiple of 512 that divides every size and
    offset of the stream.
    """
    run: U64
    """Identity of the run, part of every stamp."""
    content: VerifyContent
    """Bytes between the stamps."""
    expect: VerifyExpect
    """What reads are held against."""
    only_written: bool
    """Read only what was written before: other reads are counted as done, not made."""
    fatal: bool
    """End the stream at the first damage."""
    read_before_write: bool
    """
    Read and check the place of each write before it, where something is known of it. A
    write that would hide damage is left out.
    """
    read_after_write: bool
    """Read and check the place of each write after it."""


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
    """Only what stamps say of themselves: no memory, and no lost or stale writes found."""


class Worker(Part):
    """One thread."""

    stage: U32
    """Stages run one after the other; all workers of a stage start together."""
    backend: Backend
    """How this thread does I/O."""
    cpus: tuple[U32, ...]
    """CPUs the thread may run on; empty: any."""
    nice: I32
    """Nice value, −20 to 19."""
    io_priority: U16
    """Priority of its I/Os, as in `PriorityShare`; 0: the one the engine was started with."""
    force_async: U32
    """
    Of a ring: every so manieth I/O is given to a kernel worker at once, without a try in
    the caller; 0: none.
    """


class Zone(Part):
    """One zone of `RandomOrder.Zoned`."""

    access_percent: F64
    """Share of the accesses, percent."""
    length_bytes: U64
    """Length of the zone in bytes."""
