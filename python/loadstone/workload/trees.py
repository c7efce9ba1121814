"""Work in a tree of directories and files: what was asked, before anything is resolved.

Knows trees, the operations on their files and how the next file is chosen. Knows no job-file
language, and no tree on a disk: the anchor is the first target of the job, the tree that files are
copied or moved to the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from loadstone.frozen_model import FrozenModel
from loadstone.workload.blocks import BlockWork

if TYPE_CHECKING:
    from loadstone.workload.block_sizes import SizesByDirection

Operation = Literal[
    "transfer",
    "mkdir",
    "rmdir",
    "create",
    "delete",
    "open",
    "close",
    "getattr",
    "setattr",
    "access",
    "copy",
    "move",
]
NEEDS_FILES: Final = frozenset(
    ("transfer", "delete", "open", "close", "getattr", "setattr", "access", "copy", "move")
)
"""What can only be done to a file that is there."""
READS_ONLY: Final = frozenset(("open", "getattr", "access", "copy"))
"""What changes nothing in its own tree, and opens nothing there to write: `close` does."""
OPENS: Final = frozenset(("transfer", "create", "open", "close", "copy"))
"""What opens files, and closes them."""
ALONE: Final = frozenset(("mkdir", "rmdir", "create", "delete", "move"))
"""What has its file or directory for itself."""


class TreeShape(FrozenModel):
    """Directories and files below an anchor."""

    depth: Annotated[int, Field(ge=1)]
    width: Annotated[int, Field(ge=1)]
    files: Annotated[int, Field(ge=1)]
    """In each directory that has files."""
    everywhere: bool = False
    """All directories have files; false: only those of the lowest level."""
    sizes: tuple[tuple[int, float], ...]
    """Bytes and percent of the files."""
    around: bool = False
    """Sizes are drawn around the only one there is."""
    total_bytes: int = 0
    """Only the first files that come to this many bytes are ever made or used; 0: all."""

    @property
    def directories(self) -> int:
        """How many directories there are."""
        return sum(self.width**level for level in range(1, self.depth + 1))

    @property
    def total_files(self) -> int:
        """How many files there are."""
        folders = self.directories if self.everywhere else self.width**self.depth
        return folders * self.files

    @property
    def mean_bytes(self) -> float:
        """Mean size of a file."""
        return sum(size * percent for size, percent in self.sizes) / sum(part for _, part in self.sizes)

    @property
    def whole_bytes(self) -> int:
        """What all files come to, were all of them made; sizes are drawn, so this is a mean."""
        return int(self.total_files * self.mean_bytes)

    @property
    def expected_bytes(self) -> int:
        """What the files come to that are made."""
        return min(self.whole_bytes, self.total_bytes) if self.total_bytes else self.whole_bytes


class HostFiles(FrozenModel):
    """Every `count`-th file of a tree, from number `index` on: other hosts have the others."""

    index: Annotated[int, Field(ge=0)] = 0
    count: Annotated[int, Field(ge=1)] = 1


class FileSelection(FrozenModel):
    """Which file or directory is next."""

    kind: Literal["sequential", "random", "skewed"] = "sequential"
    random_start: bool = False
    """Sequential: begin at a random one."""
    once: bool = False
    """Sequential: each only once."""
    midpoint_percent: float | None = None
    """Skewed: share of the files below which half of the choices fall."""


class TreeWork(FrozenModel):
    """What a job does in its tree; each of its clones one operation at a time."""

    kind: Literal["tree"] = "tree"
    shape: TreeShape
    operation: Operation
    transfers: BlockWork
    """How files are read and written: a copy, a fill and a transfer go by its sizes."""
    select: FileSelection = FileSelection()
    random: bool = False
    """Transfers go to random addresses within a file; false: from its start to its end."""
    stop_transfers: int | None = None
    """A file is left after so many transfers."""
    stop_percent: int | None = None
    """Or after this share of its bytes; neither: when all of it was read or written."""
    delete_before: bool = False
    """Sequential writes: the file is deleted and written anew."""
    fill: bool = True
    """A file that is created is written to its full size."""
    shared: bool = False
    """Several clones may have the same file open."""
    working_set_bytes: int = 0
    """Only the first files that come to this many bytes are used; 0: all."""
    clear: bool = False
    """Before the run every file and directory of such a tree below the anchor is removed."""
    removes: bool = False
    """It does what `clear` asks for, measured; left out where what is there is not just this tree."""
    part: HostFiles = HostFiles()
    """The files that are this host's; directories are everybody's."""
    rate_ops: float | None = None
    """Operations per second of all clones together; None: a closed loop."""

    @property
    def blocks(self) -> BlockWork:
        """Reads and writes in the files of the tree."""
        return self.transfers

    @property
    def shares(self) -> tuple[int, int, int]:
        """Percent of reads, writes and trims of its transfers."""
        return self.transfers.shares

    @property
    def is_random(self) -> bool:
        """Whether transfers go to random addresses."""
        return self.transfers.is_random

    @property
    def trims_then_writes(self) -> bool:
        """Whether each trim brings a write of the same place."""
        return self.transfers.trims_then_writes

    @property
    def block_sizes(self) -> SizesByDirection:
        """Block sizes of its transfers."""
        return self.transfers.block_sizes
