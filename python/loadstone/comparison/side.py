"""One side of a comparison: every phase of every run under a path, and the worst verdict of them.

Knows that a side is a bundle, a study, another tool's result, or a directory of any of them.
Compares nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from loadstone.audit.find_results import PassedOver, SearchProgress
from loadstone.audit.judge import WORST_FIRST
from loadstone.bundle import study as on_disk
from loadstone.comparison import at_once
from loadstone.comparison.copies import Measurements
from loadstone.comparison.phase import ComparedPhase, phases
from loadstone.comparison.saturation import beyond_saturation
from loadstone.comparison.search import reasons, search, within
from loadstone.errors import BundleError, InputError, Where
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.analysis.summary import Summary
    from loadstone.bundle.study import Point, StudyRecord
    from loadstone.verdict import Kind

ROLES: Final = ("measure", "maximum")


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run of our own, for the questions that need more than its phases."""

    path: Path
    summary: Summary
    point: Point | None
    study: Path | None


@dataclass(frozen=True, slots=True)
class Side:
    """What one path holds."""

    name: str
    path: Path
    phases: tuple[ComparedPhase, ...]
    runs: tuple[ComparedRun, ...] = ()
    studies: tuple[tuple[Path, StudyRecord], ...] = ()
    verified: bool | None = None
    doubts: tuple[str, ...] = ()
    """Why these may not be the numbers that were measured."""
    passed: tuple[PassedOver, ...] = ()
    """What was not read."""
    at_once: tuple[str, ...] = ()
    """Which results were taken for one load, because they ran at the same time."""

    @property
    def not_read(self) -> str | None:
        """That results under the path could not be read, in a sentence; `passed` says which."""
        count = sum(one.broken for one in self.passed)
        return say("comparison.unread.left_out", results=count) if count else None

    def said_of(self, passed: PassedOver) -> str:
        """Say what was not read, and why."""
        key = "not_read" if passed.broken else "passed"
        return say(f"comparison.unread.{key}", name=within(self.path, passed.path), reason=passed.why)

    @property
    def beyond(self) -> list[ComparedPhase]:
        """The loads at the end of its curves that the storage could not keep up with."""
        return beyond_saturation(self.phases)

    @property
    def _of_figures(self) -> list[ComparedPhase]:
        beyond = {id(phase) for phase in self.beyond}
        return [phase for phase in self.phases if id(phase) not in beyond]

    @property
    def counts(self) -> dict[Kind, int]:
        """How many phases have each verdict, the worst first; verdicts nobody has are left out.

        Loads beyond saturation are none of them: they are what ends a curve, and out of every figure.
        """
        counter = Counter(phase.verdict.kind for phase in self._of_figures)
        return {kind: counter[kind] for kind in WORST_FIRST if counter[kind]}

    @property
    def verdict(self) -> Kind:
        """The worst of them."""
        return next(iter(self.counts), "cannot_tell")

    @property
    def worst(self) -> ComparedPhase:
        """A phase of that verdict, the one where it is surest."""
        kind = self.verdict
        return max(
            (one for one in self._of_figures if one.verdict.kind == kind),
            key=lambda one: one.verdict.confidence * (-1 if kind == "measures_storage" else 1),
        )


def side(path: Path, looked: SearchProgress | None = None) -> Side:
    """Read everything under a path. Raises `InputError` or `BundleError` when it holds no result."""
    looked = looked or SearchProgress()
    read = _Read(unverified=looked.unverified)
    all_phases: list[ComparedPhase] = []
    measurements = Measurements()
    runs: list[ComparedRun] = []
    passed: list[PassedOver] = []
    copies: dict[tuple[Path, Path], list[tuple[Path, Path]]] = {}
    verified: list[bool | None] = []
    for one in search(path, looked):
        if isinstance(one, PassedOver):
            passed.append(one)
            continue
        where, results = one
        study, point = read.point(where)
        if point is not None and point.role not in ROLES:
            continue
        verified.append(results.verified)
        in_a_list = study is not None and read.studies[study].kind == "list"
        new_phases = list(phases(where, results, point, named=in_a_list))
        if (known_as := _measured_before(new_phases, measurements)) is not None:
            copies.setdefault((where.parent, known_as.parent), []).append((where, known_as))
            continue
        all_phases += new_phases
        measurements.add(new_phases)
        if results.summary is not None:
            runs.append(ComparedRun(where, results.summary, point, study))
    passed += _copies(copies)
    if not all_phases:
        raise _nothing(path, passed)
    together = at_once.joined(all_phases)
    name = path.resolve().name if path.name in ("", ".", "..") else path.name
    known = {one for one in verified if one is not None}
    return Side(
        name=name,
        path=path,
        phases=together.phases,
        runs=tuple(runs),
        studies=tuple(read.studies.items()),
        verified=all(known) if known else None,
        doubts=tuple(dict.fromkeys(_doubts(runs))),
        passed=tuple(passed),
        at_once=together.notes,
    )


def _measured_before(later: Sequence[ComparedPhase], before: Measurements) -> Path | None:
    """Return which result has all of these measurements already: a copy, or another form of one run."""
    same = [before.first_same(one) for one in later]
    first = same[0] if same else None
    return first.path if first is not None and all(one is not None for one in same) else None


def _copies(copies: Mapping[tuple[Path, Path], Sequence[tuple[Path, Path]]]) -> Iterator[PassedOver]:
    """Tell which results were measured before; of the runs of a study, all together."""
    for (folder, known_in), pairs in copies.items():
        if folder.name == known_in.name == on_disk.RUNS and len(pairs) > 1:
            key = "copies_within" if folder == known_in else "copies"
            why = say(f"comparison.sides.{key}", runs=len(pairs), study=known_in.parent)
            yield PassedOver(folder.parent, why, broken=False)
            continue
        for path, known_as in pairs:
            yield PassedOver(path, say("comparison.sides.measured_before", run=known_as), broken=False)


def _doubts(runs: Sequence[ComparedRun]) -> list[str]:
    return [doubt for run in runs for doubt in run.summary.bundle.doubts]


class _Read:
    """The studies that runs belong to, each read once."""

    def __init__(self, *, unverified: bool) -> None:
        self.studies: dict[Path, StudyRecord] = {}
        self._unverified = unverified

    def point(self, run: Path) -> tuple[Path | None, Point | None]:
        """Return the study a run lies in, and what that says of it."""
        if len(run.parts) < 2 or run.parent.name != on_disk.RUNS:
            return None, None
        root = run.parent.parent
        if root not in self.studies:
            if not on_disk.is_study(root):
                return None, None
            try:
                self.studies[root] = on_disk.read(root, unverified=self._unverified)
            except BundleError:
                return None, None
        name = f"{on_disk.RUNS}/{run.name}"
        return root, next((one for one in self.studies[root].points if one.bundle == name), None)


def _nothing(path: Path, passed: Sequence[PassedOver]) -> InputError:
    if passed:
        return make_error(
            InputError, "comparison.sides.cannot", where=Where(str(path)), reasons=reasons(path, passed)
        )
    return make_error(InputError, "comparison.sides.unknown", where=Where(str(path)))


def named(sides: Sequence[Side]) -> tuple[Side, ...]:
    """Give sides that are called the same as much of their paths as tells them apart."""
    names = [one.name for one in sides]
    return tuple(
        replace(one, name=_told_apart(one, [other for other in sides if other.name == one.name]))
        if names.count(one.name) > 1
        else one
        for one in sides
    )


def _told_apart(side: Side, alike: Sequence[Side]) -> str:
    others = [one.path.absolute().parts for one in alike if one is not side]
    path_parts = side.path.absolute().parts
    for count in range(2, len(path_parts)):
        if all(other[-count:] != path_parts[-count:] for other in others):
            return "/".join(path_parts[-count:])
    return str(side.path)
