"""An experiment's directory as the story that its reports tell: what was done, measured and found.

Knows where each part is from. Computes no effect and draws nothing.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from loadstone.bundle import experiment as on_disk
from loadstone.bundle import study as study_on_disk
from loadstone.effects.analyse import analyse
from loadstone.experiment.observe import observations
from loadstone.report.experiment.story import ExperimentStory

if TYPE_CHECKING:
    from pathlib import Path


def story_of(path: Path) -> ExperimentStory | None:
    """Read an experiment and analyse it; None where no run completed. Raises `BundleError`."""
    table = observations(path)
    if not table.rows:
        return None
    return ExperimentStory(on_disk.read(path), table, analyse(table), redo(path))


def redo(path: Path) -> str:
    """Return the command that runs it once more."""
    study = study_on_disk.read(path)
    options = study.request.get("options", {})
    words = ["loadstone", "experiment", "run", on_disk.read(path).file]
    for name, value in study.settings.get("parameters", {}).items():
        words += ["--set", f"{name}={value}"]
    if study.settings.get("leave_out_unset"):
        words.append("--leave-out-unset")
    if options.get("allow_exec"):
        words.append("--allow-exec")
    return shlex.join(words)
