"""What a reader of another tool's results is.

Knows how a file is opened without trusting it: bounded in size, and whatever is wrong with it
ends as an error that names it. Knows no format.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from loadstone import file_kind, input_file
from loadstone.analysis.latency import Latency, weighed
from loadstone.audit.case import LEADING, Figure, OpMeasurement, RateSpread
from loadstone.errors import InputError, NoStorageError, Where
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from loadstone.analysis.summary import Summary
    from loadstone.audit.case import Case

MAX_BYTES: Final = 256 << 20
"""No result is larger; logs of single I/Os are not results."""
_UNEXPECTED: Final = (
    ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""What content that nobody expected comes out as."""
BROKEN: Final = "breaks the reader"
"""What is said of a result that a reader stumbled over, instead of saying what is wrong with it."""
MOST_CLONES: Final = 1 << 16
"""Of one load: fio has no more than 4096. Each has a place of its own, which is made and looked at."""
HEAD_BYTES: Final = 65536
"""What `recognises` may look at."""


@dataclass(frozen=True, slots=True)
class ForeignResults:
    """What a file holds. `notes` say what a reader had to take on trust or could not see."""

    format: str
    cases: tuple[Case, ...]
    title: str | None = None
    source: str | None = None
    notes: tuple[str, ...] = ()
    verified: bool | None = None
    """Of a bundle: whether every file is the one that was sealed; None where nothing tells."""
    summary: Summary | None = None
    """Of a bundle: what its cases were made of."""


@dataclass(frozen=True, slots=True)
class ResultsReader:
    """One format. `recognises` looks at the path and its first bytes (empty for a directory)."""

    name: str
    recognises: Callable[[Path, bytes], bool]
    read_valid: Callable[[Path], ForeignResults]
    """Raises InputError for what it knows to be wrong."""

    def read(self, path: Path) -> ForeignResults:
        """Read a file or directory. Raises InputError, also where the reader met what it did not expect."""
        try:
            return self.read_valid(path)
        except _UNEXPECTED as error:
            raise InputError(
                f"{BROKEN} of {self.name}: {type(error).__name__}: {error}"[:200],
                where=Where(str(path)),
                hint=say("audit.results.reader_hint"),
            ) from error


def head(path: Path) -> bytes:
    """Return the first bytes of a file; nothing for a directory. Raises InputError."""
    return b"" if file_kind.is_directory(path) else start(path, HEAD_BYTES)


def start(path: Path, most_bytes: int) -> bytes:
    """Return a file, or the first bytes of a longer one. Raises InputError."""
    try:
        return input_file.start(path, most_bytes)
    except OSError as error:
        raise make_error(
            InputError, "audit.results.unreadable", where=Where(str(path)), reason=error.strerror
        ) from error


def text(path: Path) -> str:
    """Return a file as text. Raises InputError for one that cannot be a result."""
    raw = start(path, MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise make_error(
            InputError, "audit.results.too_large", where=Where(str(path)), most_mib=MAX_BYTES >> 20
        )
    for encoding in ("utf-8-sig", "utf-16") if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1")


def wrong(path: Path, key: str, line: int | None = None, **values: str) -> InputError:
    """Return (not raise) the error `audit.foreign.KEY` at a line of a file."""
    return make_error(InputError, f"audit.foreign.{key}", where=Where(str(path), line), **values)


def no_storage(path: Path, key: str, **values: str) -> NoStorageError:
    """Return the same of a result that is whole, and of something else than storage."""
    return make_error(NoStorageError, f"audit.foreign.{key}", where=Where(str(path)), **values)


def number(value: Any) -> float | None:
    """Return a finite number that is not negative; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value.replace(",", "").rstrip("%"))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        parsed = float(value)
    except OverflowError:
        return None
    return parsed if math.isfinite(parsed) and parsed >= 0 else None


def whole(value: Any) -> int | None:
    """Return a whole number that is not negative; None for anything else."""
    amount = number(value)
    return None if amount is None else int(amount)


def positive(value: Any) -> float | None:
    """Return a number above 0; None for anything else: a tool's 0 for 'not measured' is no value."""
    return number(value) or None


def figure(value: float | None) -> Figure | None:
    """Return a number without an error, None when there is none."""
    return None if value is None else Figure(value)


def added(parts: Iterable[OpMeasurement]) -> OpMeasurement:
    """Add operations that ran at the same time; latencies by their counts, None where one is missing."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]

    def total(values: list[Any]) -> Any:
        return sum(values) if values and None not in values else None

    return OpMeasurement(
        operations=total([part.operations for part in parts]),
        bytes=total([part.bytes for part in parts]),
        errors=total([part.errors for part in parts]),
        iops=figure(total([part.iops.value if part.iops else None for part in parts])),
        bandwidth=figure(total([part.bandwidth.value if part.bandwidth else None for part in parts])),
        latencies=_latencies(parts),
        spread=_spread(parts),
    )


def _spread(parts: Sequence[OpMeasurement]) -> RateSpread | None:
    """Return how much the sum of rates may vary: as if all went up and down together."""
    moving = [part for part in parts if part.iops is not None and part.iops.value]
    spreads = [part.spread for part in moving]
    whole = sum(part.iops.value for part in moving if part.iops is not None)
    if not whole or None in spreads:
        return None
    known = [(part.iops.value, part.spread) for part in moving if part.iops and part.spread]
    share = sum(rate * spread.share for rate, spread in known) / whole
    return RateSpread(share, min(spread.samples for _, spread in known))


def _latencies(parts: Sequence[OpMeasurement]) -> dict[str, Latency]:
    """Return the latencies of all I/Os, of each kind that all parts tell."""
    moving = [part for part in parts if part.operations != 0 and (part.iops is None or part.iops.value)]
    weights = [part.operations or (part.iops.value if part.iops else None) for part in moving]
    if not moving or None in weights:
        return {}
    if len(moving) == 1:
        return moving[0].latencies

    def together(of_parts: Sequence[Latency | None]) -> Latency | None:
        known = [one for one in of_parts if one is not None and one.mean_ns is not None]
        return weighed(list(zip(weights, known, strict=True))) if len(known) == len(moving) else None

    kinds = {kind: together([part.latencies.get(kind) for part in moving]) for kind in LEADING}
    if not any(kinds.values()):
        kinds = {"unknown": together([part.latency for part in moving])}
    return {kind: latency for kind, latency in kinds.items() if latency is not None}


def with_siblings(found: Sequence[Case]) -> tuple[Case, ...]:
    """Return cases of one result that know each other."""
    return tuple(replace(one, siblings=tuple(other for other in found if other is not one)) for one in found)
