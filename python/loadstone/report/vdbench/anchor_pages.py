"""`anchors.html` and the `Anchor size:` lines: how large each tree is, and what a run opened of it.

Knows a tree's size by its shape: with several file sizes the bytes are those to be expected. What a run
made or deleted of a tree is not counted file by file, and is `n/a` then, as is what it opened at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.workload.trees import TreeShape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.report.vdbench.interval_totals import Counted

UNKNOWN: Final = "n/a"
_GROUPS: Final = (
    "......Anchor size....",
    "......Total size.....",
    "......Workingset.....",
    "....Existing ........",
    "...Opened...",
)
_PLAIN_BYTES: Final = 100_000
"""Less than this has no unit where sizes have three digits after the point."""
_UNITS: Final = ("k", "m", "g", "t", "p")
_CHANGES: Final = frozenset(("mkdir", "rmdir", "create", "delete", "copy", "move"))
_Cell = int | None


def trees_of(jobs: Iterable[Mapping[str, Any]]) -> dict[str, TreeShape]:
    """Return the trees jobs work in, by anchor; `jobs` as a Workload's JSON has them."""
    trees: dict[str, TreeShape] = {}
    for job in jobs:
        if job["work"]["kind"] == "tree":
            trees.setdefault(
                str(job["own_options"]["anchor"]), TreeShape.model_validate(job["work"]["shape"])
            )
    return trees


def sizes(trees: Mapping[str, TreeShape]) -> list[str]:
    """Return the lines `Anchor size:`, and that of the sum when there are several."""
    lines = [
        f"Anchor size: anchor={anchor}: dirs: {tree.directories:>12,}; files: {tree.total_files:>12,}; "
        f"bytes: {_thousandth(tree.whole_bytes):>10} ({tree.whole_bytes:,})"
        for anchor, tree in trees.items()
    ]
    if len(trees) > 1:
        directories = sum(tree.directories for tree in trees.values())
        files = sum(tree.total_files for tree in trees.values())
        whole = _thousandth(sum(tree.whole_bytes for tree in trees.values()))
        lines.append(
            f"Estimated totals for all {len(trees)} anchors: dirs: {directories:,}; files: {files:,}; "
            f"bytes: {whole} "
        )
    return lines


def header(anchors: Sequence[str]) -> list[str]:
    """Return what stands above the numbers."""
    width = _width(anchors)
    above = "".join(f" {group:<24}" for group in _GROUPS)
    below = " ".join([*[f"{'files':>8} {'dirs':>8} {'bytes':>6}"] * 4, f"{'files':>8} {'bytes':>6}"])
    return [f"{'':<{width}}   {above} ", f"{'':<{width}} {below}", ""]


def first(trees: Mapping[str, TreeShape]) -> list[str]:
    """Return the rows before the first run: the sizes alone."""
    return [_row(trees, anchor, (*_total(tree), *(0,) * 8)) for anchor, tree in trees.items()]


def rows(run: Counted, trees: Mapping[str, TreeShape]) -> list[str]:
    """Return the rows of a run: one for each of its trees."""
    lines = []
    for anchor, tree in trees_of(run.jobs).items():
        jobs = [job for job in run.jobs if job["own_options"]["anchor"] == anchor]
        working = max(int(job["work"]["working_set_bytes"]) for job in jobs)
        part = (_files_in(tree, working), tree.directories, working) if working else (0, 0, 0)
        lines.append(
            _row(
                trees, anchor, (*_total(tree), *part, *_existing(run, tree, jobs), *_opened(run, tree, jobs))
            )
        )
    return lines


def _total(tree: TreeShape) -> tuple[int, int, int]:
    """Return what `totalsize=` leaves of a tree; nothing where it was not asked for."""
    if not tree.total_bytes:
        return (0, 0, 0)
    return (_files_in(tree, tree.total_bytes), tree.directories, tree.total_bytes)


def _existing(run: Counted, tree: TreeShape, jobs: Sequence[Mapping[str, Any]]) -> tuple[_Cell, ...]:
    changed = {str(job["work"]["operation"]) for job in jobs} & _CHANGES
    if changed and not (run.makes_trees and run.bundle.status == "complete"):
        return (None, None, None)
    return _total(tree) if tree.total_bytes else (tree.total_files, tree.directories, tree.whole_bytes)


def _opened(run: Counted, tree: TreeShape, jobs: Sequence[Mapping[str, Any]]) -> tuple[_Cell, ...]:
    name = jobs[0]["own_options"]["fsd"]
    part = next((part for part in run.storages if part.name == name), None)
    opens = sum(tally.of("open").count for tally in part.intervals) if part is not None else 0
    if not opens:
        return (0, 0)
    if any(job["work"]["select"]["kind"] != "sequential" for job in jobs) and opens > 1:
        return (None, None)
    files = min(opens, _total(tree)[0] or tree.total_files)
    return (files, files * tree.whole_bytes // tree.total_files)


def _files_in(tree: TreeShape, size_bytes: int) -> int:
    return min(tree.total_files, -(-size_bytes * tree.total_files // max(1, tree.whole_bytes)))


def _row(trees: Mapping[str, TreeShape], anchor: str, numbers: Sequence[_Cell]) -> str:
    tree = trees[anchor]
    cells: list[_Cell] = [tree.total_files, tree.directories, tree.whole_bytes, *numbers]
    text = ""
    for at, value in enumerate(cells):
        is_bytes = at in (2, 5, 8, 11, 13)
        cell_text = UNKNOWN if value is None else _tenth(value) if is_bytes else str(value)
        text += f" {cell_text:>{6 if is_bytes else 8}}"
    return f"{anchor:<{_width(trees)}}{text}"


def _width(anchors: Iterable[str]) -> int:
    return max((len(anchor) for anchor in anchors), default=0)


def _tenth(size_bytes: int) -> str:
    """Return bytes in six letters, as this page has them."""
    if size_bytes < 10 << 10:
        return str(size_bytes)
    return _in_units(size_bytes, 1)


def _thousandth(size_bytes: int) -> str:
    return str(size_bytes) if size_bytes < _PLAIN_BYTES else _in_units(size_bytes, 3)


def _in_units(size_bytes: int, digits: int) -> str:
    power = min(max(1, (size_bytes.bit_length() - 1) // 10), len(_UNITS))
    # Half of a digit goes up, as in Java.
    whole = (2 * size_bytes * 10**digits + (1 << 10 * power)) // (2 << 10 * power)
    return f"{whole / 10**digits:.{digits}f}{_UNITS[power - 1]}"
