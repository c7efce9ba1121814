"""An experiment as the story that its reports tell: what was done, measured and found.

Knows where each part is from. Computes no effect and draws nothing.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from loadstone.bundle import experiment as on_disk
from loadstone.bundle import study as study_on_disk
from loadstone.effects.analyse import analyse
from loadstone.experiment.attempts import counts, stem
from loadstone.experiment.observe import complete_runs, table
from loadstone.report.experiment.story import ExperimentStory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.bundle.experiment import ExperimentDocument
    from loadstone.bundle.study import StudyRecord
    from loadstone.study.controller import Done

ENDINGS: Final = {
    None: "it was interrupted",
    "interrupted": "it was interrupted",
    "partial": "it was cut short",
}
"""What is said of a run that ended without an error and did not complete, by its status."""


def story_on_disk(path: Path) -> ExperimentStory | None:
    """Read an experiment and analyse it; None where no run completed. Raises `BundleError`."""
    return story_of(on_disk.read(path), study_on_disk.read(path), complete_runs(path))


def story_of(
    document: ExperimentDocument, study: StudyRecord, runs: Sequence[RunFigures]
) -> ExperimentStory | None:
    """Analyse an experiment; None where no run completed."""
    observed = table(document, runs)
    if not observed.rows:
        return None
    return ExperimentStory(document, observed, analyse(observed), redo(document, study), _failed(study), runs)


def _failed(study: StudyRecord) -> dict[str, str]:
    """Return the runs that did not complete, in any attempt, and why the last one did not."""
    complete = {one.name for one in study.points if one.status == "complete"}
    lost = {
        stem(one.name): one.error or ENDINGS.get(one.status, "it failed")
        for one in study.points
        if one.status != "complete"
    }
    return {name: why for name, why in lost.items() if name not in complete}


def measured_runs(done: Sequence[Done]) -> tuple[list[RunFigures], list[str]]:
    """Return the runs that completed, and the names of those that nothing can be read of.

    A run of an earlier session may have a damaged bundle; what this session measured is in memory.
    """
    complete = [one.run for one in done if counts(one.point)]
    unread = [one.point.name for one in complete if one.summary is None]
    return [one for one in complete if one.summary is not None], unread


def redo(document: ExperimentDocument, study: StudyRecord) -> str:
    """Return the command that runs it once more."""
    options = study.request.get("options", {})
    words = ["loadstone", "experiment", "run", document.file]
    for name, value in study.settings.get("parameters", {}).items():
        words += ["--set", f"{name}={value}"]
    if study.settings.get("leave_out_unset"):
        words.append("--leave-out-unset")
    if options.get("allow_exec"):
        words.append("--allow-exec")
    return shlex.join(words)
