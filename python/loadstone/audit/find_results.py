"""The results under a path: bundles, studies, other tools' files and directories, however deep.

Knows which words name what, and that in a directory nothing ends the search: what cannot be read
is passed over with a reason. Follows no link to a directory, opens nothing but regular files, and
looks at so many files at most. Judges nothing.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from loadstone import file_kind
from loadstone.analysis.summary import summarise
from loadstone.audit import foreign
from loadstone.audit.foreign import reader
from loadstone.audit.foreign.reader import ForeignResults
from loadstone.audit.repeats import REPEAT, with_repeats
from loadstone.audit.run import cases_of_run
from loadstone.bundle import layout
from loadstone.bundle.read import Bundle
from loadstone.bundle.study import bundle_of, is_study
from loadstone.bundle.study import read as read_study
from loadstone.errors import InputError, LoadstoneError, NoStorageError, Where
from loadstone.helpers import cpus
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from loadstone.bundle.study import Factor, Point, StudyRecord
    from loadstone.helpers import Helpers

MANY_RUNS: Final = 40
"""So many take longer to read than a process takes to start."""
LIMIT: Final = 20_000
"""Names in directories that are looked at in all, unless told otherwise."""
OF_A_BUNDLE: Final = (layout.MANIFEST, layout.PLAN, layout.WORKLOAD, layout.REQUEST, layout.EVENTS)
"""Files of a bundle. Two tell one: other programs write a manifest.json, too, and a bundle may be damaged."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """What was not read, and why."""

    path: Path
    why: str
    broken: bool = True
    """It is a result, or may be one; False: it was left out by rule."""
    refused: LoadstoneError | None = None
    """What reading it ended with."""


@dataclass(slots=True)
class SearchProgress:
    """How far a search has come."""

    limit: int = LIMIT
    unverified: bool = False
    """Read bundles that are not as they were sealed, too."""
    helpers: Helpers | None = None
    """Where many runs of a study are read; None: here, one after the other."""
    begun: dict[Path, list[Future[ForeignResults | PassedOver]]] = field(default_factory=dict)
    """The runs of studies that helpers read already."""
    tell: Callable[[SearchProgress, Path], None] | None = None
    files: int = 0
    """Names in directories, of files and of directories."""
    unrelated: int = 0
    results: int = 0
    full: bool = False
    seen: dict[tuple[int, int], Path] = field(default_factory=dict)
    contents: dict[str, Path] = field(default_factory=dict)
    """Other tools' files by their hash: a copy is no repeat."""

    def at(self, path: Path) -> None:
        """Tell where the search is."""
        if self.tell is not None:
            self.tell(self, path)


Found = tuple[Path, ForeignResults] | PassedOver


def find(path: Path, looked: SearchProgress) -> Iterator[Found]:
    """Yield every result that a path names. Raises for one that is no directory of results."""
    mode = check_there(path)
    if is_bundle(path):
        yield path, bundle(Bundle.open(path, unverified=looked.unverified))
    elif is_study(path):
        yield from _study(path, looked, alone=True)
    elif stat.S_ISDIR(mode):
        yield from _walk(path, looked)
    elif stat.S_ISREG(mode):
        yield path, foreign.read(path)
    else:
        raise make_error(InputError, "audit.results.other", where=Where(str(path)))


def begin(path: Path, looked: SearchProgress) -> None:
    """Have helpers read the runs of a study before it is its turn: they would wait meanwhile.

    What is wrong with it is told when it is searched.
    """
    if is_bundle(path) or not is_study(path):
        return
    with contextlib.suppress(LoadstoneError):
        points = _with_runs(read_study(path, unverified=looked.unverified))
        futures = _asked_for(path, points, looked)
        if futures is not None:
            looked.begun[path] = futures


def check_there(path: Path) -> int:
    """Return the mode of a path. Raises `InputError` where nothing is there, or may not be looked at."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise make_error(InputError, "audit.results.none_there", where=Where(str(path))) from error
    except OSError as error:
        reason = str(error.strerror)
        raise make_error(
            InputError, "audit.results.unreadable", where=Where(str(path)), reason=reason
        ) from error


def is_bundle(path: Path) -> bool:
    """Whether a directory is a bundle, whole or not."""
    return sum(file_kind.is_file(path / name) for name in OF_A_BUNDLE) > 1


def bundle(opened: Bundle) -> ForeignResults:
    """Read a run of our own."""
    summary = summarise(opened)
    cases = tuple(cases_of_run(summary))
    notes = tuple(problem.message for problem in summary.problems if problem.kind == "bundle")
    notes += () if opened.unsealed is None else (opened.unsealed,)
    return ForeignResults("bundle", cases, notes=notes, verified=opened.verified, summary=summary)


def not_read(passed: Iterable[PassedOver]) -> str | None:
    """Say in a sentence that an answer is without something that is a result, or may be one."""
    broken = [one for one in passed if one.broken]
    if not broken:
        return None
    first = broken[0]
    key = "audit.results.not_read" if len(broken) == 1 else "audit.results.several_not_read"
    return say(key, results=len(broken), path=first.path, reason=first.why)


def _study(path: Path, looked: SearchProgress, *, alone: bool = False) -> Iterator[Found]:
    """Read the runs of a study, which know their repeats; one that is broken is passed over.

    `alone`: the study was named by itself, and is refused as a run would be that is not as it was sealed.
    """
    study = read_study(path, unverified=looked.unverified)
    points = _with_runs(study)
    if not points:
        raise make_error(InputError, "audit.results.empty_study", where=Where(str(path)))
    read = []
    for point, results in zip(points, _runs(path, points, looked), strict=True):
        run = path / str(point.bundle)
        if isinstance(results, PassedOver):
            if alone and results.refused is not None and not looked.unverified:
                raise results.refused
            yield results
        else:
            read.append((run, _told_apart(point, study.kind), results))
    repeated = with_repeats([(factors, one.cases) for _, factors, one in read])
    for (run, _, one), known in zip(read, repeated, strict=True):
        yield run, replace(one, cases=known)


def _told_apart(point: Point, kind: str) -> dict[str, Factor]:
    """Return the factors of a run, and of one of several files the name without the number of its repeat.

    Files may have sections of one name, and what they ask for is not among the factors.
    """
    if kind != "list" or REPEAT not in point.factors:
        return point.factors
    return {**point.factors, "": point.name.removesuffix(f" {REPEAT} {point.factors[REPEAT]}")}


def _runs(
    path: Path, points: Sequence[Point], looked: SearchProgress
) -> Iterator[ForeignResults | PassedOver]:
    """Read runs of a study, many of them by helpers."""
    futures = looked.begun.pop(path, None) or _asked_for(path, points, looked)
    if futures is not None:
        yield from (one.result() for one in futures)
        return
    for point in points:
        yield _of_study(path, point, looked.unverified)


def _with_runs(study: StudyRecord) -> list[Point]:
    return [point for point in study.points if point.bundle and point.role != "prepare"]


def _asked_for(
    path: Path, points: Sequence[Point], looked: SearchProgress
) -> list[Future[ForeignResults | PassedOver]] | None:
    """Have helpers read runs; None where there are no helpers or too few runs."""
    if looked.helpers is None or len(points) < MANY_RUNS or cpus() == 1:
        return None
    return [looked.helpers.do(_of_study, path, point, looked.unverified) for point in points]


def _of_study(path: Path, point: Point, unverified: bool) -> ForeignResults | PassedOver:  # it travels
    return _tried(path / str(point.bundle), lambda _: _opened(path, point, unverified=unverified))


def _opened(path: Path, point: Point, *, unverified: bool) -> ForeignResults:
    opened = bundle_of(path, point, unverified=unverified)
    return ForeignResults("bundle", ()) if opened is None else bundle(opened)


def _tried(path: Path, read: Callable[[Path], ForeignResults]) -> ForeignResults | PassedOver:
    """Read, and make a reason of what goes wrong: one broken result must not take the others with it."""
    try:
        return read(path)
    except LoadstoneError as error:
        return PassedOver(path, _reason(path, error), not isinstance(error, NoStorageError), error)


def _reason(path: Path, error: LoadstoneError) -> str:
    """Return what an error says, without the path that stands beside it."""
    text = str(error).partition("\n")[0]
    for known in (f"{path}/", f"{path}: ", f"{path}:", f"{path} "):
        text = text.replace(known, "line " if known.endswith(":") else "")
    return text


def _walk(root: Path, looked: SearchProgress) -> Iterator[Found]:
    """Read what lies in a directory and below it, in the order of names."""
    waiting = [root]
    while waiting:
        place = waiting.pop()
        looked.at(place)
        whole = yield from _whole(place, looked)
        if whole:
            continue
        try:
            with os.scandir(place) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield PassedOver(place, f"cannot be read: {error.strerror}")
            continue
        below: list[Path] = []
        for entry in inside:
            if looked.files >= looked.limit:
                looked.full = True
                why = f"not looked at from {entry.name} on: {looked.limit} names are the limit (--limit)"
                yield PassedOver(place, why)
                return
            yield from _entry(entry, below, looked)
        waiting += reversed(below)


def _whole(place: Path, looked: SearchProgress) -> Generator[Found, None, bool]:
    """Read a directory that is one result. Returns whether nothing else is to be looked for in it."""
    if is_bundle(place):
        yield _counted(
            place, _tried(place, lambda at: bundle(Bundle.open(at, unverified=looked.unverified))), looked
        )
        return True
    if is_study(place):
        try:
            results = list(_study(place, looked))
        except LoadstoneError as error:
            # Its runs are bundles by themselves.
            yield PassedOver(place, _reason(place, error))
            return False
        for one in results:
            looked.results += not isinstance(one, PassedOver)
            yield one
        return True
    try:
        known = foreign.recognise(place)
    except LoadstoneError:
        return False  # Whoever lists it tells why it cannot be read.
    if known is not None:
        yield _counted(place, _tried(place, known.read), looked)
    return False


def _counted(place: Path, found: ForeignResults | PassedOver, looked: SearchProgress) -> Found:
    if isinstance(found, PassedOver):
        return found
    looked.results += 1
    return place, found


def _entry(entry: os.DirEntry[str], below: list[Path], looked: SearchProgress) -> Iterator[Found]:
    """Look at one name in a directory; directories are kept for later."""
    path = Path(entry.path)
    looked.files += 1
    try:
        status = entry.stat()
    except OSError as error:
        yield PassedOver(path, f"cannot be read: {error.strerror}")
        return
    if stat.S_ISDIR(status.st_mode):
        if entry.is_symlink():
            yield PassedOver(path, "is a link to a directory: name it by itself", broken=False)
        elif not entry.name.startswith("."):
            below.append(path)
        return
    if not stat.S_ISREG(status.st_mode):
        return
    looked.at(path)
    first = looked.seen.setdefault((status.st_dev, status.st_ino), path)
    if first != path:
        yield PassedOver(path, f"is the same file as {first}", broken=False)
        return
    results = _tried(path, _file)
    if not isinstance(results, PassedOver) and results.cases:
        first = looked.contents.setdefault(blake3(reader.start(path, reader.MAX_BYTES)).hexdigest(), path)
        if first != path:
            results = PassedOver(path, f"is a copy of {first}", broken=False)
    if isinstance(results, PassedOver) or results.cases:
        yield _counted(path, results, looked)
    else:
        looked.unrelated += 1


def _file(path: Path) -> ForeignResults:
    """Read a file; one that is no result has no case."""
    known = foreign.recognise(path)
    return ForeignResults("", ()) if known is None else known.read(path)
