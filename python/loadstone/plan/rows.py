"""I/Os by rows: kinds of I/O that each have their own size, direction and addresses.

Knows the rows for the engine, and what they come to for each operation. Knows no job-file language
and no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.plan import model
from loadstone.workload.block_sizes import FixedSize, SizeTable

if TYPE_CHECKING:
    from loadstone.workload.block_sizes import BlockSizes
    from loadstone.workload.model import Job
    from loadstone.workload.rows import RowWork

_REPLACED: Final = ("placement.zone_mode", "verification.verify")
"""Fields of a job that rows leave without effect."""


def read_percent(weighted: tuple[model.Row, ...]) -> float:
    """Return the share of reads over all rows, exactly."""
    whole = sum(row.weight for row in weighted)
    return sum(row.weight * row.read_percent for row in weighted) / whole


def pattern(job: Job, work: RowWork, unit_bytes: int) -> model.Pattern:
    """Resolve the pattern; rows that ask for no alignment get `unit_bytes`."""
    _check(job)
    reads, writes, trims = work.shares
    rows = _rows(work, unit_bytes)
    ops = [_op(rows, index, block) for index, block in enumerate(work.block_sizes)]
    return model.Pattern(
        read_percent=reads,
        write_percent=writes,
        trim_percent=trims,
        trim_then_write=False,
        read=ops[0],
        write=ops[1],
        trim=ops[2],
        strided=None,
        rows=rows,
    )


def _rows(work: RowWork, unit_bytes: int) -> tuple[model.Row, ...]:
    return tuple(
        model.Row(
            weight=float(row.percent),
            bytes=row.bytes,
            read_percent=row.read_percent,
            random_percent=row.random_percent,
            align_bytes=row.align_bytes or unit_bytes,
            burst=row.burst,
        )
        for row in work.rows
    )


def _op(rows: tuple[model.Row, ...], index: int, block: BlockSizes) -> model.OpPattern:
    """Return what the rows come to for one operation: for reports; the engine goes by the rows."""
    does = [(row.weight * (row.read_percent, 100 - row.read_percent, 0)[index], row) for row in rows]
    whole = sum(weight for weight, _ in does)
    random = sum(weight * row.random_percent for weight, row in does) / whole if whole else 0.0
    if isinstance(block, SizeTable):
        table = tuple(model.SizeWeight(bytes=e.bytes, weight=e.percent) for e in block.entries)
        drawn: model.Sizes = model.SizesSplit(table=table)
    else:
        assert isinstance(block, FixedSize)  # noqa: S101 - `sizes` makes no other
        drawn = model.SizesFixed(bytes=block.bytes)
    return model.OpPattern(
        random_percent=round(random),
        random=model.RandomOrderUniform(repeat=True),
        stride_bytes=0,
        stride_spread_bytes=0,
        run_length=1,
        run_identical=False,
        sizes=drawn,
        align_bytes=min(row.align_bytes for row in rows),
    )


def _check(job: Job) -> None:
    """Refuse what would have no effect beside rows."""
    for field in _REPLACED:
        if job.value(field) is not None:
            raise job.refusal("plan.pattern.beside_rows", field, option=job.option(field))
