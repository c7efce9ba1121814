"""Where I/Os go within their targets, and which of them read and write. Knows no file."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from loadstone.frozen_model import FrozenModel

Direction = Literal["read", "write", "trim"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("read", "write", "trim")

ReadWrite = Literal[
    "read", "write", "trim", "randread", "randwrite", "randtrim", "rw", "randrw", "trimwrite", "randtrimwrite"
]
NumbersByDirection = tuple[float | None, float | None, float | None]


class Reuse(FrozenModel):
    """A hierarchical reuse random walk: a place in a binary tree that mostly stays near."""

    leaf_bytes: int
    least_leaves: int
    """The next leaf is one of so many around the last, or of twice as many, and again."""
    climb_percent: int
    """Chance of each doubling."""
    step_leaves: int = 1
    """Only leaves whose number is a multiple of this."""
    again_percent: int = 0
    """Share of I/Os that are done once more."""


class Aging(FrozenModel):
    """Writes that leave an SSD as long random writing does: every block, and some of them once more."""

    over_provisioning: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """What the SSD has beyond the range that is written, as a share of it."""
    regions: Annotated[int, Field(ge=2)] = 100
    """Parts in which it is written, each with its own share that is written again in the next."""
    cache_bytes: int = 0
    """Of the SSD; above 0 what is written again comes at the end of the next region, out of its reach."""


class Distribution(FrozenModel):
    """How random addresses are spread; `parameter` is theta, h or a percentage."""

    kind: Literal["random", "zipf", "pareto", "normal", "zoned", "zoned_abs", "reuse", "sequence", "aged"]
    parameter: float | None = None
    reuse: Reuse | None = None
    """Of the kind `reuse`, which walks on with every I/O of the job, of any direction."""
    center: float | None = None
    blocks: tuple[int, ...] = ()
    """Of the kind `sequence`: numbers of blocks, in order, over and over."""
    aging: Aging | None = None
    """Of the kind `aged`."""
    zones: tuple[tuple[float, float], ...] = ()
    """(access percent, size) in order; size is percent (`zoned`) or bytes (`zoned_abs`)."""


class ReadWriteMix(FrozenModel):
    """Reads, writes and trims."""

    rw: ReadWrite = "read"
    read_percent: Annotated[int, Field(ge=0, le=100)] = 50
    """Of `rw` and `randrw`."""


UNIFORM: Final = Distribution(kind="random")


class AddressRequests(FrozenModel):
    """Where the next I/O goes: in order, unless the mix says at random."""

    stride_bytes: int = 0
    """Sequential: so many bytes are skipped after each I/O; below 0 it goes backwards."""
    stride_spread_bytes: int = 0
    """Sequential: at most so many bytes more are skipped, drawn for each I/O."""
    run_length: Annotated[int, Field(ge=1)] = 1
    """Random: I/Os that follow each other at each address."""
    run_identical: bool = False
    """They are all at the same place."""
    blockalign_bytes: tuple[int | None, int | None, int | None] = (None, None, None)
    """Random addresses are multiples of this; None: of the smallest size."""
    random_distribution: tuple[Distribution, Distribution, Distribution] = (UNIFORM, UNIFORM, UNIFORM)
    sequence_advances: bool = False
    """A `sequence` lies further on each time it begins again."""
    percentage_random: tuple[float, float, float] = (100.0, 100.0, 100.0)
    norandommap: bool = False
    """A block may come again before all others came."""
    random_generator: Literal["tausworthe", "tausworthe64", "lfsr"] = "tausworthe"
    """With `lfsr` every block comes once in any case, without a map."""


class SeedRequests(FrozenModel):
    """Whether random sequences repeat."""

    repeatable: bool | None = None
    """Each run has the same; None: left open, so that runs of one study differ."""
    randseed: int | None = None
