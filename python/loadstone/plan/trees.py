"""Trees of directories and files in the Plan, and what streams do there.

Mirrors `crates/engine/src/plan/tree.rs`, as `model.py` mirrors the rest.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from loadstone.plan.base import F64, U32, U64, Part
from loadstone.plan.rates import Rate


class FileSize(Part):
    """One entry of a table of sizes."""

    bytes: U64
    weight: F64


class FileSizesTable(Part):
    """A table of sizes with weights; one entry: all the same."""

    type: Literal["table"] = "table"
    table: tuple[FileSize, ...]


class FileSizesAround(Part):
    """Drawn around a mean."""

    type: Literal["around"] = "around"
    mean_bytes: U64


FileSizes = Annotated[FileSizesTable | FileSizesAround, Field(discriminator="type")]


class Tree(Part):
    """A tree of directories and files, named as vdbench names them."""

    target: U32
    """Index into `Plan.targets`: its anchor."""
    depth: U32
    width: U32
    files: U32
    """In each directory that has files."""
    first_file: U32
    """Number of the first of them: 0 or 1."""
    everywhere: bool
    """All directories have files; false: only those of the lowest level."""
    sizes: FileSizes
    seed: U64
    total_bytes: U64
    """Only the first files that come to this many bytes are created or used; 0: all."""
    clear: bool
    """Before the run remove every file and directory with such a name below the anchor."""


class FileStopWhole(Part):
    """Sequential: at its end. Random: after as many bytes as it has."""

    type: Literal["whole"] = "whole"


class FileStopTransfers(Part):
    """After so many transfers, or at its end."""

    type: Literal["transfers"] = "transfers"
    count: U64


class FileStopPercent(Part):
    """After this share of its bytes; sequential: or at its end."""

    type: Literal["percent"] = "percent"
    percent: U32


FileStop = Annotated[FileStopWhole | FileStopTransfers | FileStopPercent, Field(discriminator="type")]


class FileOperationTransfer(Part):
    """Reads and writes by the pattern's shares."""

    type: Literal["transfer"] = "transfer"
    random: bool
    """Random addresses within the file; false: from its start to its end."""
    stop: FileStop
    delete_before: bool
    """Sequential writes: delete the file and write it anew."""


class FileOperationMkdir(Part):
    """Make a directory whose parent is there."""

    type: Literal["mkdir"] = "mkdir"


class FileOperationRmdir(Part):
    """Remove an empty directory."""

    type: Literal["rmdir"] = "rmdir"


class FileOperationCreate(Part):
    """Make a file that is not there."""

    type: Literal["create"] = "create"
    fill: bool
    """Write it full with the pattern's writes, also one that is there but not full; false: leave it empty."""


class FileOperationDelete(Part):
    """Remove a file."""

    type: Literal["delete"] = "delete"


class FileOperationOpen(Part):
    """Open and close a file."""

    type: Literal["open"] = "open"


class FileOperationClose(Part):
    """Open a file to write, write nothing, and close it: the close is what was asked for."""

    type: Literal["close"] = "close"


class FileOperationGetattr(Part):
    """`stat(2)` a file."""

    type: Literal["getattr"] = "getattr"


class FileOperationSetattr(Part):
    """Set a file's times (`utimensat(2)`)."""

    type: Literal["setattr"] = "setattr"


class FileOperationAccess(Part):
    """`access(2)` a file."""

    type: Literal["access"] = "access"


class FileOperationCopy(Part):
    """Copy a file, whole, in the sizes of the pattern's reads; what is at the other place goes first."""

    type: Literal["copy"] = "copy"
    to: U32


class FileOperationMove(Part):
    """Move a file (`renameat(2)`) to the same place in another tree; what is there is replaced."""

    type: Literal["move"] = "move"
    to: U32


FileOperation = Annotated[
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
]


class FileSelectSequential(Part):
    """One after the other, shared by all streams that use the tree with this operation."""

    type: Literal["sequential"] = "sequential"
    random_start: bool
    once: bool
    """Each only once; false: from the first again."""


class FileSelectRandom(Part):
    """Uniform."""

    type: Literal["random"] = "random"


class FileSelectSkewed(Part):
    """Low numbers more often."""

    type: Literal["skewed"] = "skewed"
    midpoint_percent: F64
    """Share of the files below which half of the choices fall."""


FileSelect = Annotated[
    FileSelectSequential | FileSelectRandom | FileSelectSkewed, Field(discriminator="type")
]


class TreeUse(Part):
    """What a stream does in a tree, one operation at a time."""

    tree: U32
    cell: U32
    operation: FileOperation
    """What is asked for: only this is paced, and counts in `limits.ops`."""
    select: FileSelect
    working_set_bytes: U64
    """Only the first files that come to this many bytes are used; 0: all."""
    shared: bool
    """Several streams may have the same file open at a time."""
    rate: Rate | None
    """Arrivals; none: closed loop. The stream's own `pace` is empty."""
