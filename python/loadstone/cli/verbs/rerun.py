"""`loadstone rerun`: the Plan of a bundle once more, or those of a study, into a new one.

Knows that nothing is resolved again: the same Plans run. The safety check is made anew,
because what a target holds may have changed since.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from loadstone.cli.display import console
from loadstone.cli.options.arguments import Unverified  # noqa: TC001 - the argument parser reads it
from loadstone.cli.options.run_options import RunOptions


def rerun(
    bundle: Path,
    /,
    *,
    unverified: Unverified = False,
    run_options: RunOptions = RunOptions(),
) -> int:
    """Run the Plan of a bundle again, or all of a study's in their order.

    Nothing is resolved or decided anew: a curve is measured at the loads of then. Commands of
    the job file are not run.

    Parameters
    ----------
    bundle
        Directory of the run or the study to do again.
    """
    from loadstone.bundle import study as on_disk
    from loadstone.bundle.read import Bundle
    from loadstone.cli.display import run_summary
    from loadstone.cli.running.consent import consent
    from loadstone.path.spec import Spec
    from loadstone.plan.safety.guard import check_consent
    from loadstone.session import RunRequest, run_plan
    from loadstone.study.rerun import forget_identities

    if on_disk.is_study(bundle):
        return _study(bundle, run_options, unverified=unverified)
    old = Bundle.open(bundle, unverified=unverified)
    sheet = old.environment.get("spec")
    asked = RunRequest(
        request=_request(bundle, run_options, old.request),
        inputs=dict(old.inputs),
        workload_json=old.workload.model_dump_json(),
        notes=[*old.notes, *_doubt(old.doubt)],
        spec=None if sheet is None else Spec.model_validate(sheet),
        watch=run_options.watched(),
    )
    agreed = consent(run_options.i_accept_data_loss)
    check_consent(agreed, [old.plan])
    result = run_summary.RunSummary()
    outcome = run_plan(
        forget_identities(old.plan),
        asked=asked,
        out_dir=run_options.directory("rerun"),
        progress=run_summary.live(wanted=run_options.progress),
        consent=agreed,
        result=result.document,
        calibration=run_options.calibration,
    )
    return run_summary.tell(outcome, result, run_options, require_valid=run_options.require_valid)


def _study(path: Path, run_options: RunOptions, *, unverified: bool) -> int:
    from loadstone.cli.running import study
    from loadstone.study import rerun as study_rerun
    from loadstone.study.run import StudyRequest
    from loadstone.study.run_list import ListController

    old = study_rerun.read(path, unverified=unverified)
    if old.left_out:
        console.say(f"{path} ended before {old.left_out} of its runs began; the others are run again")
    if old.commands:
        console.say("the commands of the job file are not run again")
    asked = StudyRequest(
        kind=old.study.kind,
        name=old.study.name,
        front_end="rerun",
        request=_request(path, run_options, old.study.request),
        inputs=old.inputs,
        settings=old.study.settings,
        notes=[
            *old.study.notes,
            *_doubt(old.doubt),
            *([_loads_of(path)] if old.study.kind == "curve" else []),
        ],
        spec=old.spec,
    )
    controller = ListController(old.nexts)
    return study.execute(
        controller, asked, run_options, lambda wanted: old.settled[wanted.name], after_failure="go_on"
    )


def _doubt(doubt: str | None) -> list[dict[str, Any]]:
    """Return the note that a Plan may not be the one that ran; say it, too."""
    if doubt is None:
        return []
    text = f"the Plan is of a bundle that is {doubt}"
    console.doubts([text])
    return [{"kind": "changed", "text": text, "where": None}]


def _loads_of(path: Path) -> dict[str, Any]:
    text = f"the loads are those of {path.absolute()}: percents are of the maximum that was measured there"
    return {"kind": "changed", "text": text, "where": None}


def _request(path: Path, run_options: RunOptions, first: dict[str, Any]) -> dict[str, Any]:
    from loadstone.analysis.steady_start import OPTION

    return {
        "argv": sys.argv,
        "cwd": str(Path.cwd()),
        "front_end": "rerun",
        "options": {
            "bundle": str(path),
            "i_accept_data_loss": list(run_options.i_accept_data_loss),
            "json": run_options.json,
            # How the numbers are taken from what was measured stays as it was.
            OPTION: first.get("options", {}).get(OPTION, False),
        },
        "first_request": first,
    }
