"""The document of `loadstone audit --json`.

Knows its shape: the verdict on everything, on each file and on each of its phases. Changes only by
adding fields; what is removed or changes its meaning raises `FORMAT`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from loadstone.audit.judge import judge
from loadstone.errors import as_text
from loadstone.frozen_model import FrozenModel
from loadstone.verdict import Audited, Phase, Verdict
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.audit.find_results import PassedOver
    from loadstone.audit.foreign.reader import ForeignResults

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class AuditedResults:
    """A file, what was read from it, and what it is worth."""

    path: str
    results: ForeignResults
    audited: Audited


class AuditedFile(FrozenModel):
    """One file, bundle or directory."""

    path: str
    format: str
    title: str | None
    source: str | None = Field(description="where published figures come from")
    verified: bool | None = Field(
        description="of a bundle, every file is the one that was sealed; null: nothing tells, "
        "false: read with --unverified"
    )
    notes: tuple[str, ...] = Field(description="what a reader took on trust or could not see")
    verdict: Verdict
    phases: tuple[Phase, ...]


class SkippedPath(FrozenModel):
    """Something in a directory that was not read."""

    path: str
    why: str
    broken: bool = Field(description="it is a result that could not be read; false: left out by rule")


class AuditDocument(FrozenModel):
    """The root. `verdict` and `phases` are of all files together, as in a result.json."""

    format: Literal[1] = FORMAT
    kind: Literal["audit"] = "audit"
    tool_version: str
    verdict: Verdict
    phases: tuple[Phase, ...]
    files: tuple[AuditedFile, ...]
    passed_over: tuple[SkippedPath, ...] = ()


def audited(path: str, results: ForeignResults) -> AuditedResults:
    """Judge what was read from a file."""
    return AuditedResults(path, results, judge(results.cases))


def overall(every: Sequence[AuditedResults]) -> Audited:
    """Return the verdict on all files together."""
    if len(every) == 1:
        return every[0].audited
    return judge([case for one in every for case in one.results.cases])


def document(every: Sequence[AuditedResults], passed: Sequence[PassedOver] = ()) -> AuditDocument:
    """Return the document."""
    whole = overall(every)
    return AuditDocument(
        tool_version=__version__,
        verdict=whole.verdict,
        phases=whole.phases,
        files=tuple(
            AuditedFile(
                path=as_text(one.path),
                format=one.results.format,
                title=None if one.results.title is None else as_text(one.results.title),
                source=one.results.source,
                verified=one.results.verified,
                notes=one.results.notes,
                verdict=one.audited.verdict,
                phases=one.audited.phases,
            )
            for one in every
        ),
        passed_over=tuple(
            SkippedPath(path=as_text(str(one.path)), why=one.why, broken=one.broken) for one in passed
        ),
    )
