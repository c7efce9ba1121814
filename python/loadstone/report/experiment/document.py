"""The document of `experiment report --json`.

Knows its shape. Changes only by adding fields; what is removed or changes its meaning raises `FORMAT`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from loadstone.effects.findings import Effects
from loadstone.frozen_model import FrozenModel
from loadstone.report.experiment import words
from loadstone.version import __version__

if TYPE_CHECKING:
    from loadstone.report.experiment.story import ExperimentStory

FORMAT: Final = 1


class JsonSetting(FrozenModel):
    """One setting of the machine over all runs."""

    control: str
    subject: str = Field(description="of what: a device, a policy; empty: the host")
    before: str
    asked: list[str]
    times: int
    outcomes: dict[str, int] = Field(description="what became of it afterwards, and how often")
    why: str
    left: bool = Field(description="whether it is not as it was before")


class JsonObservation(FrozenModel):
    """One run, or one pattern of a run with several."""

    run: str
    order: int
    started_s: float = Field(description="since the experiment began")
    block: int
    pattern: str
    levels: dict[str, str]
    metrics: dict[str, float] = Field(description="what was not measured is absent")
    invalid: str | None = Field(description="why no effect rests on it")


class ExperimentReportDocument(FrozenModel):
    """`experiment report --json`."""

    format: Literal[1]
    loadstone_version: str
    title: str
    question: str
    answer: str = Field(description="in a sentence")
    open: list[str] = Field(description="what is not decided, and how many repeats would decide it")
    redo: str = Field(description="the command that runs it again")
    runs_planned: int
    runs_done: int
    ended_because: str | None
    settings: list[JsonSetting]
    observations: list[JsonObservation]
    effects: Effects


def document(story: ExperimentStory) -> dict[str, Any]:
    """Return the JSON document."""
    report_document = ExperimentReportDocument(
        format=FORMAT,
        loadstone_version=__version__,
        title=story.record.title,
        question=story.record.question,
        answer=words.headline(story),
        open=words.open_points(story.effects),
        redo=story.redo,
        runs_planned=len(story.record.runs),
        runs_done=len({row.run for row in story.table.rows}),
        ended_because=story.record.ended_because,
        settings=[
            JsonSetting(
                control=one.control, subject=one.subject, before=one.before, asked=list(one.asked),
                times=one.times, outcomes=dict(one.outcomes), why=one.why, left=one.left,
            )
            for one in story.changed()
        ],
        observations=[
            JsonObservation(
                run=row.run, order=row.order, started_s=row.started_s, block=row.block, pattern=row.pattern,
                levels=dict(row.levels), metrics=dict(row.metrics), invalid=row.invalid,
            )
            for row in story.table.rows
        ],
        effects=story.effects,
    )  # fmt: skip
    return report_document.model_dump(mode="json")
