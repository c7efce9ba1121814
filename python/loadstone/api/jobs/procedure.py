"""Named procedures: a catalogue entry that is several runs.

Knows how parameters, targets, size and runtime change them; preparations keep their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.api.jobs.read_workload import changed
from loadstone.api.jobs.run_list import RunList
from loadstone.messages import say
from loadstone.study.controller import Controller, Next
from loadstone.study.list_controller import ListController
from loadstone.study.rounds import RoundsController
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.api.jobs.job_changes import JobChanges
    from loadstone.workload.catalogue import CatalogueEntry, ProcedureRun

_WITHOUT_EFFECT: Final = ("allow_exec", "interval", "warmup")


def read(name: str, changes: JobChanges) -> RunList:
    """Read an entry and everything it runs."""
    changes.refuse(_WITHOUT_EFFECT, "a named procedure")
    if changes.sections:
        raise changes.caller.error("api.job.procedure", "sections")
    entry = catalogue.load(name)
    runs = entry.runs(changes.parameters)
    nexts = [
        Next(
            run.name,
            changed(run.workload, changes, runtime=run.role != "prepare"),
            factors=dict(run.factors),
            role=run.role,
        )
        for run in runs
    ]
    rounds = entry.rounds

    def closing(controller: Controller) -> list[dict[str, Any]]:
        why = controller.ended_because if isinstance(controller, RoundsController) else None
        return [{"kind": "info", "text": why, "where": None}] if why else []

    return RunList(
        language="catalogue",
        name=entry.name,
        made=lambda: _controller(entry, nexts),
        listing=[_listed(number, run, one) for number, (run, one) in enumerate(_pairs(runs, nexts), start=1)],
        lines=[f"{run.name}{'' if run.role == 'measure' else ' (prepares)'}" for run in runs]
        + ([f"again until {rounds.tracks} is steady, at most {rounds.most} times"] if rounds else []),
        inputs={f"{entry.name}.toml": entry.text.encode()},
        notes=list(dict.fromkeys(note for one in nexts for note in one.workload.notes)),
        settings={
            "procedure": entry.name,
            "rounds": None if rounds is None else _document(entry),
            "loops": entry.loops if len(entry.loops) == 2 else None,
        },
        once=_once(entry),
        closing=closing,
    )


def _once(entry: CatalogueEntry) -> str:
    """Return why an entry cannot be repeated; empty where it can."""
    if entry.rounds is not None:
        return say("api.job.until_steady")
    return say("api.job.drawn_as_surface") if len(entry.loops) == 2 else ""


def _pairs(runs: Sequence[ProcedureRun], nexts: Sequence[Next]) -> list[tuple[ProcedureRun, Next]]:
    return list(zip(runs, nexts, strict=True))


def _controller(entry: CatalogueEntry, nexts: Sequence[Next]) -> Controller:
    rounds = entry.rounds
    if rounds is None:
        return ListController(nexts)
    return RoundsController(
        [one for one in nexts if one.role == "prepare"],
        [one for one in nexts if one.role != "prepare"],
        most=rounds.most,
        tracks=rounds.tracks,
        quantity=rounds.quantity,
        every=rounds.every,
    )


def _document(entry: CatalogueEntry) -> dict[str, Any]:
    rounds = entry.rounds
    assert rounds is not None  # noqa: S101 - asked by the caller
    return {
        "most": rounds.most,
        "tracks": rounds.tracks,
        "quantity": rounds.quantity,
        "every": rounds.every,
    }


def _listed(number: int, run: ProcedureRun, one: Next) -> dict[str, Any]:
    return {
        "number": number,
        "name": run.name,
        "role": run.role,
        **run.factors,
        "jobs": [
            job.model_dump(mode="json", exclude_defaults=True, exclude={"where", "set_at"})
            for job in one.workload.jobs
        ],
    }
