"""The document of `loadstone audit --json`.

Knows its shape: the verdict on everything, on each file and on each of its phases. Changes only by
adding fields; what is removed or changes its meaning raises `FORMAT`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from loadstone.audit.judge import judge
from loadstone.verdict import Audited, Phase, Verdict
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.audit.foreign.reader import Results
    from loadstone.audit.search import Passed

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class AuditedResults:
    """A file, what was read from it, and what it is worth."""

    path: str
    results: Results
    audited: Audited


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class File(_Model):
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


class PassedOver(_Model):
    """Something in a directory that was not read."""

    path: str
    why: str
    broken: bool = Field(description="it is a result that could not be read; false: left out by rule")


class Document(_Model):
    """The root. `verdict` and `phases` are of all files together, as in a result.json."""

    format: Literal[1] = FORMAT
    kind: Literal["audit"] = "audit"
    tool_version: str
    verdict: Verdict
    phases: tuple[Phase, ...]
    files: tuple[File, ...]
    passed_over: tuple[PassedOver, ...] = ()


def audited(path: str, results: Results) -> AuditedResults:
    """Judge what was read from a file."""
    return AuditedResults(path, results, judge(results.cases))


def overall(every: Sequence[AuditedResults]) -> Audited:
    """Return the verdict on all files together."""
    if len(every) == 1:
        return every[0].audited
    return judge([case for one in every for case in one.results.cases])


def document(every: Sequence[AuditedResults], passed: Sequence[Passed] = ()) -> Document:
    """Return the document."""
    whole = overall(every)
    return Document(
        tool_version=__version__,
        verdict=whole.verdict,
        phases=whole.phases,
        files=tuple(
            File(
                path=one.path,
                format=one.results.format,
                title=one.results.title,
                source=one.results.source,
                verified=one.results.verified,
                notes=one.results.notes,
                verdict=one.audited.verdict,
                phases=one.audited.phases,
            )
            for one in every
        ),
        passed_over=tuple(PassedOver(path=str(one.path), why=one.why, broken=one.broken) for one in passed),
    )
