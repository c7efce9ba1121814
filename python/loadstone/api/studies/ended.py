"""A study that has just ended, told from what was measured: also where its directory cannot be read.

Knows which report is a study's. Runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone import exitcodes
from loadstone.api.results import REPORT
from loadstone.bundle.study import result_text

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.errors import LoadstoneError
    from loadstone.screen import Screen
    from loadstone.study.controller import Done
    from loadstone.study.run import StudyOutcome


class EndedStudy:
    """What became of a study's runs."""

    def __init__(self, outcome: StudyOutcome) -> None:
        self._outcome = outcome

    @property
    def path(self) -> Path:
        """Its directory."""
        return self._outcome.path

    @property
    def error(self) -> LoadstoneError | None:
        """What its last run failed with, or why the study cannot be written."""
        return self._outcome.error

    @property
    def document_text(self) -> str | None:
        """Its `result.json` as it stands in the study; None where nobody could compute one."""
        return None if self._outcome.result is None else result_text(self._outcome.result)

    def exit_code(self, *, require_valid: bool) -> int:
        """Return the exit code, which may depend on what the runs' numbers are worth."""
        worthless = any(point.verdict in ("not_valid", "cannot_tell") for point in self._outcome.study.points)
        if require_valid and worthless and self._outcome.exit_code == exitcodes.DONE:
            return exitcodes.NOT_VALID
        return self._outcome.exit_code

    def print(self, screen: Screen) -> None:
        """Print what its runs measured."""
        from loadstone.report.study import terminal

        terminal.summary(self._outcome.study, [one.run for one in self._outcome.done], screen)

    def report(self) -> Path:
        """Write its page into its directory, and return where."""
        from loadstone.report.study import page

        where = self.path / REPORT
        runs = [one.run for one in self._outcome.done]
        page.write([page.StudyPage(self.path, self._outcome.study, runs)], where)
        return where


def in_short(done: Done) -> str:
    """Return what a run of a study measured, in a line."""
    from loadstone.report.study import terminal

    return terminal.in_short(done.run)
