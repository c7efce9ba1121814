"""Notes taken while planning, each once. Knows how to place a note at a job's option."""

from __future__ import annotations

from loadstone.workload.model import Job, Note, NoteKind


class Notes:
    """Collects notes; the same text at the same place is kept once."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Note] = {}

    def add(self, job: Job, field: str, text: str, kind: NoteKind) -> None:
        """Keep a note about a field of a job."""
        where = job.at(field)
        self._kept.setdefault((str(where), text), Note(where=where, text=text, kind=kind))

    def info(self, job: Job, field: str, text: str) -> None:
        """Keep something worth knowing."""
        self.add(job, field, text, "info")

    def trap(self, job: Job, field: str, text: str) -> None:
        """Keep something another tool would have read differently, or that misleads."""
        self.add(job, field, text, "trap")

    def changed(self, job: Job, field: str, text: str) -> None:
        """Keep something done another way than written."""
        self.add(job, field, text, "changed")

    def general(self, text: str, kind: NoteKind = "info") -> None:
        """Keep a note that belongs to no place."""
        self._kept.setdefault(("", text), Note(where=None, text=text, kind=kind))

    @property
    def all(self) -> tuple[Note, ...]:
        """Every note in the order it was taken."""
        return tuple(self._kept.values())
