"""The runs that go into another tool's format, and what is to be doubted of them.

Such a format has no word for what is not known: a run whose samples cannot be read would stand in it with
zeros. Knows that one run is refused then, and that of a study it is left out by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.bundle import study
from loadstone.bundle.read import Bundle
from loadstone.errors import BundleError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ExportedRuns:
    """Runs whose samples can be read, in order."""

    bundles: tuple[Bundle, ...]
    doubts: tuple[str, ...] = ()
    """Why these may not be the numbers that were measured, or not all of them."""


def why_nothing(bundle: Bundle) -> str | None:
    """Return what of a bundle could not be read, where nothing is found in it; None where all could be."""
    return next(iter(bundle.faults), bundle.doubt)


def refuse_unread(bundle: Bundle) -> None:
    """Raise `BundleError` for a run whose samples cannot be read."""
    if (fault := bundle.samples_fault()) is not None:
        raise make_error(BundleError, "report.export.unread", path=bundle.path, reason=fault)


def open_runs(path: Path, roles: Sequence[str] | None = None, *, unverified: bool = False) -> ExportedRuns:
    """Open a run, or those of a study that have one of these roles. Raises `BundleError`."""
    if not study.is_study(path):
        bundle = Bundle.open(path, unverified=unverified)
        refuse_unread(bundle)
        return ExportedRuns((bundle,), tuple(_doubts(bundle)))
    opened = study.open_all(path, unverified=unverified)
    bundles: list[Bundle] = []
    doubts = opened.doubts
    for point in opened.study.points:
        run = opened.bundles.get(point.name)
        if run is None or (roles is not None and point.role not in roles):
            continue
        if (fault := run.samples_fault()) is None:
            bundles.append(run)
            doubts += [f"{point.bundle}: {message}" for message in _faults(run)]
        else:
            doubts.append(say("report.export.left_out", run=str(point.bundle), reason=fault))
    return ExportedRuns(tuple(bundles), tuple(dict.fromkeys(doubts)))


def _doubts(bundle: Bundle) -> list[str]:
    _faults(bundle)
    return bundle.doubts


def _faults(bundle: Bundle) -> list[str]:
    """Return what cannot be read of a run beside its samples. All of a sealed one can be."""
    if not bundle.verified:
        bundle.look_at_all()
        _ = bundle.events
    return bundle.faults
