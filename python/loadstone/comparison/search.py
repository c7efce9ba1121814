"""The results under a path, and what looks like a result and is none: nothing is passed over without a word.

Knows by its name and its content what may be a lost result: an empty file, bytes where text should be, JSON
that breaks off, what is left of a run. The search itself is `audit.find_results`'. Judges no result.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from loadstone import file_kind
from loadstone.audit.find_results import PassedOver, find
from loadstone.audit.foreign import reader
from loadstone.bundle import layout
from loadstone.errors import LoadstoneError
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from loadstone.audit.find_results import Found, SearchProgress

OF_RESULTS: Final = (".json", ".csv", ".xml", ".html", ".htm", ".terse")
"""Files of these names are results, or were meant to be."""
OF_OUTPUTS: Final = (*OF_RESULTS, ".txt", ".out", ".log", ".toml", "")
"""Names of files that a program's output is sent to; an empty one is told."""
LOG: Final = re.compile(r"_[a-z]+(\.\d+)?\.log$")
"""fio's logs of single samples: of a short run they are empty."""
LONGEST: Final = 16 << 20
"""JSON that is longer is not read to its end only to say what is wrong with it."""
CONTROL: Final = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))
BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
LEAST_BINARY: Final = 0.01
"""Text has fewer control characters than this share."""
ANY_OF_A_RUN: Final = frozenset((*layout.STREAMS, *layout.STREAMS.values(), layout.SUMS))
"""One of these tells that a directory was a run."""
OF_A_RUN: Final = ANY_OF_A_RUN | {layout.PLAN, layout.WORKLOAD, layout.EVENTS, layout.HOST, layout.HOST_TABLE}
MOST_NAMED: Final = 8
"""Of the files of one ending in one directory that are no results; of more their number is told."""
MOST_REASONS: Final = 4
"""Of what was passed over, where there is nothing else."""


def search(path: Path, looked: SearchProgress) -> Iterator[Found]:
    """Yield every result under a path, what cannot be read, and what may be a lost result.

    Raises as `find` does.
    """
    files: list[Path] = []
    known: set[Path] = set()
    tell = looked.tell

    def noted(at: SearchProgress, place: Path) -> None:
        files.append(place)
        if tell is not None:
            tell(at, place)

    looked.tell = noted
    try:
        for one in find(path, looked):
            known.add(one.path if isinstance(one, PassedOver) else one[0])
            yield one
    finally:
        looked.tell = tell
    # What lies beside the files of a result of several, as vdbench's pages, belongs to it.
    unknown = [one for one in files if one not in known and one.parent not in known]
    for lost, count in _lost(unknown):
        looked.unrelated -= count
        yield lost


def reasons(root: Path | None, passed: Sequence[PassedOver]) -> str:
    """Say what was passed over and why, the first few: where nothing else is left. `root`: it lies below."""
    most_telling = sorted(passed, key=lambda one: not one.broken)
    clauses = [
        f"{one.path if root is None else within(root, one.path)}: {one.why}"
        for one in most_telling[:MOST_REASONS]
    ]
    more = len(passed) - MOST_REASONS
    return "; ".join(clauses) + (say("comparison.unread.more", files=more) if more > 0 else "")


def within(root: Path, path: Path) -> str:
    """Return a path as it is called below another one."""
    return str(path.relative_to(root)) if path != root and path.is_relative_to(root) else path.name


def _lost(files: Iterable[Path]) -> Iterator[tuple[PassedOver, int]]:
    """Tell of files that are no results which of them should be, and of how many files each is."""
    by_folder: dict[Path, list[Path]] = {}
    for file in files:
        by_folder.setdefault(file.parent, []).append(file)
    for folder, inside in by_folder.items():
        of_a_run = sorted({file.name for file in inside} & OF_A_RUN)
        if len(of_a_run) > 1 or not ANY_OF_A_RUN.isdisjoint(of_a_run):
            why = say("comparison.unread.part_of_run", files=", ".join(of_a_run))
            yield PassedOver(folder, why), sum(map(file_kind.is_file, inside))
            continue
        yield from _of_folder(folder, inside)


def _of_folder(folder: Path, files: Sequence[Path]) -> Iterator[tuple[PassedOver, int]]:
    lost = [one for file in files if (one := _looked_at(file)) is not None]
    counts = Counter(one.path.suffix for one in lost if not one.broken)
    many = {ending for ending, count in counts.items() if count > MOST_NAMED}
    yield from ((one, 1) for one in lost if one.broken or one.path.suffix not in many)
    for ending in sorted(many):
        yield PassedOver(folder, _many(counts[ending], ending), broken=False), counts[ending]


def _many(count: int, ending: str) -> str:
    if not ending:
        return say("comparison.unread.many_without_ending", files=count)
    return say("comparison.unread.many", files=count, ending=ending.removeprefix("."))


def _looked_at(file: Path) -> PassedOver | None:
    ending = file.suffix.lower()
    if ending not in OF_OUTPUTS or file.name.startswith(".") or LOG.search(file.name):
        return None
    if not file_kind.is_file(file):
        return None
    try:
        head = reader.head(file)
        wrong = _wrong(file, head, ending) if head.strip() else say("comparison.unread.empty")
    except LoadstoneError as error:
        wrong = error.message
    if ending in OF_RESULTS:
        why = wrong or say("comparison.unread.unknown")
        return PassedOver(file, why, broken=wrong is not None)
    return None if head.strip() else PassedOver(file, say("comparison.unread.empty_output"), broken=False)


def _wrong(file: Path, head: bytes, ending: str) -> str | None:
    """Say why a file cannot be what its name says; None: it can."""
    if not head.startswith(BYTE_ORDER_MARKS):
        controls = len(head) - len(head.translate(None, CONTROL))
        if controls > LEAST_BINARY * len(head):
            return say("comparison.unread.not_text")
    if ending != ".json" or file.stat().st_size > LONGEST:
        return None
    try:
        json.loads(reader.text(file))
    except json.JSONDecodeError as error:
        return say("comparison.unread.not_json", reason=error.msg, line=error.lineno, column=error.colno)
    except RecursionError:
        return say("comparison.unread.too_deep")
    return None
