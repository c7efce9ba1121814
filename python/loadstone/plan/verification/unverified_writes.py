"""Writes without verification to what other jobs verify.

Knows which jobs run at the same time and which before others: beside each other they are
refused, before a job that reads they are told. Does not know how blocks are judged: the
engine does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.messages import say
from loadstone.plan import model as plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.errors import RefusedError
    from loadstone.plan.clone_files import FileRange
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.model import Job

    Placed = tuple[Job, int, plan.Stream, Sequence[FileRange]]
    _Bytes = list[tuple[int, int]]


@dataclass(slots=True)
class _Use:
    """What the clones of a job do in one stage to one file."""

    job: Job
    stage: int
    path: str
    verify: plan.Verify | None
    reads: bool
    writes: bool
    parts: _Bytes = field(default_factory=list)


def check(placed: Iterable[Placed], notes: Notes) -> None:
    """Note which jobs will report as damage what others write; `placed` are (job, stage, stream, files).

    Raises RefusedError when a job writes without verify where another verifies at the same time.
    """
    placed = list(placed)
    if not any(stream.verify for _, _, stream, _ in placed):
        return
    for uses in _by_file(placed).values():
        for use in uses:
            use.parts.sort()
        for writer in uses:
            if writer.writes and writer.verify is None:
                _check(writer, [use for use in uses if use.verify and not _by_pattern(use.verify)], notes)


def _check(writer: _Use, verified: Sequence[_Use], notes: Notes) -> None:
    touched = [use for use in verified if _meet(writer.parts, use.parts)]
    for other in touched:
        if other.stage == writer.stage:
            raise _refused(writer, other)
    for reader in touched:
        if reader.reads and reader.stage > writer.stage and _is_last(writer, reader, touched):
            text = say(
                "plan.notes.unverified", writer=writer.job.name, path=writer.path, reader=reader.job.name
            )
            notes.trap(writer.job, "mix.rw", text)


def _is_last(writer: _Use, reader: _Use, verified: Iterable[_Use]) -> bool:
    """Whether the writer comes after all that was written for the reader to find.

    Of what this run did not write before nothing is known, so nothing is damage.
    """
    stages = [use.stage for use in verified if use.writes and use.stage < reader.stage]
    return max(stages, default=writer.stage) < writer.stage


def _refused(writer: _Use, other: _Use) -> RefusedError:
    at = other.job.at("verification.verify")
    return writer.job.refusal(
        "plan.verify.written_beside",
        "mix.rw",
        name=writer.job.name,
        path=writer.path,
        other=other.job.name,
        place=str(at),
    )


def _by_pattern(verify: plan.Verify) -> bool:
    """Whether nothing is asked of who writes but the pattern."""
    return verify.content is plan.VerifyContent.PATTERN and verify.expect is plan.VerifyExpect.STAMPS


def _by_file(
    placed: Iterable[Placed],
) -> dict[object, list[_Use]]:
    files: dict[object, dict[object, _Use]] = {}
    for job, stage, stream, ranges in placed:
        shares = stream.pattern
        writes = shares.write_percent + shares.trim_percent > 0
        for part in ranges:
            if part.facts.kind is plan.TargetKind.VIRTUAL:
                continue
            uses = files.setdefault(part.facts.identity or part.path, {})
            key = (id(job), stage)
            if key not in uses:
                uses[key] = _Use(job, stage, part.path, stream.verify, shares.read_percent > 0, writes)
            uses[key].parts.append((part.offset_bytes, part.end_bytes))
    return {file: list(uses.values()) for file, uses in files.items()}


def _meet(one: _Bytes, other: _Bytes) -> bool:
    """Whether two sorted lists of parts have a byte in common."""
    at, to = 0, 0
    while at < len(one) and to < len(other):
        if one[at][0] < other[to][1] and other[to][0] < one[at][1]:
            return True
        if one[at][1] <= other[to][1]:
            at += 1
        else:
            to += 1
    return False
