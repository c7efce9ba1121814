"""An experiment's report written to a file: a page, Markdown or PDF, by the ending of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone import output
from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.report.article.files import ENDINGS, as_file
from loadstone.report.experiment.article import article

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.report.experiment.story import ExperimentStory


def check_ending(path: Path) -> None:
    """Raise `InputError` for an ending that says nothing."""
    if path.suffix.lower() not in ENDINGS:
        found = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
        raise make_error(
            InputError, "report.files.experiment", path=path, found=found, endings=", ".join(ENDINGS)
        )


def write(story: ExperimentStory, path: Path) -> None:
    """Write the report."""
    output.write(path, as_file(article(story), path.suffix.lower()))
