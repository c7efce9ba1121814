"""The types of other rooms that the API takes and gives, for who writes types against it."""

from __future__ import annotations

from loadstone.plan.model import Plan
from loadstone.session import Progress
from loadstone.study.controller import Done, Next
from loadstone.study.run import StudyProgress
from loadstone.workload.model import Note, Workload

__all__ = ["Done", "Next", "Note", "Plan", "Progress", "StudyProgress", "Workload"]
