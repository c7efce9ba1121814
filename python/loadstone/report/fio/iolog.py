"""fio's trace of a job's I/Os (`write_iolog`), which `read_iolog` of fio replays.

Knows version 3 of the format: a line per I/O, `microseconds file direction offset length`,
in the order of their submission, between the lines that add, open and close the files
(fio's HOWTO, "Trace file format v3"). Deliberately knows no bundle: I/Os come as a frame.
An I/O that failed moved no bytes and has no length here, so it is left out.
"""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, Final

import polars as pl

from loadstone import output
from loadstone.report.fio.output_options import naming_option

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.report.fio.collect import Source
    from loadstone.report.fio.reported_lines import Member

HEADER: Final = "fio version 3 iolog"
OPTION: Final = "outputs.logs.iolog"
CHUNK_ROWS: Final = 2_000_000
"""I/Os turned into text at a time."""
_NAMES: Final = ("read", "write", "trim", "sync")


def write(source: Source, ios: pl.LazyFrame, directory: Path) -> list[Path]:
    """Write every trace asked for under `directory`; return the paths, each once.

    `ios` has the columns of `ios.arrows`. Clones and jobs that name the same file share
    it, sorted by time. A file of that name is replaced (fio appends to it).
    """
    traces = requested(source.everyone, directory)
    for path, members in traces.items():
        streams = [stream for member in members for stream in member.streams]
        with naming_option(members[0].job, OPTION):
            output.directory(path.parent)
            with output.opened(path) as file:
                text = io.TextIOWrapper(file, encoding="utf-8", write_through=True)
                _trace(source, ios.filter(pl.col("stream").is_in(streams)), streams, text)
                text.detach()
    return list(traces)


def requested(everyone: Sequence[Member], directory: Path) -> dict[Path, list[Member]]:
    """Return the traces that are asked for, each with who asks for it."""
    traces: dict[Path, list[Member]] = {}
    for member in everyone:
        if member.job.outputs.logs.iolog is not None:
            traces.setdefault(directory / member.job.outputs.logs.iolog, []).append(member)
    return traces


def _trace(source: Source, ios: pl.LazyFrame, streams: Sequence[int], file: IO[str]) -> None:
    plan = source.plan
    targets = dict.fromkeys(use.target for stream in streams for use in plan.streams[stream].files)
    names = [plan.targets[target].path for target in targets]
    file.write(f"{HEADER}\n")
    file.writelines(f"0 {name} {action}\n" for action in ("add", "open") for name in names)
    # The frame is by completion; a trace is by submission.
    done = ios.filter(pl.col("error") == 0).with_columns(
        (pl.col("t_ns") - pl.col("clat_ns") - pl.col("slat_ns")).alias("begun_ns")
    )
    rows = done.sort("begun_ns", maintain_order=True).collect()
    first_ns = rows["begun_ns"].min() if rows.height else 0
    last_us = 0
    for part in rows.iter_slices(CHUNK_ROWS):
        lines = part.select(_line(plan.targets, int(str(first_ns))).alias("line"))
        file.write(lines.write_csv(include_header=False, quote_style="never"))
        last_us = (int(part["begun_ns"][-1]) - int(str(first_ns))) // 1000
    file.writelines(f"{last_us} {name} close\n" for name in names)


def _line(targets: Sequence[object], first_ns: int) -> pl.Expr:
    paths = [str(getattr(target, "path", "")) for target in targets]
    path = pl.col("target").replace_strict(dict(enumerate(paths)), return_dtype=pl.String)
    op = pl.col("op").replace_strict(dict(enumerate(_NAMES)), return_dtype=pl.String)
    microseconds = (pl.col("begun_ns") - first_ns) // 1000
    words = [microseconds.cast(pl.String), path, op, pl.col("offset").cast(pl.String)]
    return pl.concat_str([*words, pl.col("bytes").cast(pl.String)], separator=" ")
