"""`loadstone rerun`: the Plan of a bundle once more, into a new bundle.

Knows that nothing is resolved again: the same Plan runs. The safety check is made anew,
because what a target holds may have changed since.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from loadstone.bundle.read import Bundle
from loadstone.cli import finish, study
from loadstone.cli.arguments import Flag, Repeat
from loadstone.cli.consent import consent
from loadstone.cli.run import default_directory
from loadstone.path.spec import Spec
from loadstone.plan.guard import check_consent
from loadstone.session import Asked, run_plan

if TYPE_CHECKING:
    from loadstone.plan.model import Plan


def rerun(
    bundle: Path,
    /,
    *,
    out: Path | None = None,
    i_accept_data_loss: Annotated[tuple[str, ...], Repeat] = (),
    json: Annotated[bool, Flag] = False,
    progress: bool = True,
    report: bool = True,
    calibration: bool = True,
    require_valid: Annotated[bool, Flag] = False,
) -> int:
    """Run the Plan of a bundle again.

    Parameters
    ----------
    bundle
        Directory of the run to do again.
    out
        Directory of the new bundle; it must not exist or be empty [default: ./loadstone-runs/TIME-NAME].
    i_accept_data_loss
        Path of a target whose content may be lost (repeat for several); typed out, one by one.
    json
        Print one JSON document at the end instead of the summary.
    progress
        Show the run while it runs (on a terminal only).
    report
        Write the report into the bundle.
    calibration
        Measure for 0.3 s before the run what the load generator can do without a device.
    require_valid
        End with exit code 98 when the verdict is 'not valid' or 'cannot tell'.
    """
    study.refuse(bundle, "rerun")
    old = Bundle.open(bundle)
    sheet = old.environment.get("spec")
    asked = Asked(
        request={
            "argv": sys.argv,
            "cwd": str(Path.cwd()),
            "front_end": "rerun",
            "options": {"bundle": str(bundle), "i_accept_data_loss": list(i_accept_data_loss), "json": json},
            "first_request": old.request,
        },
        inputs=dict(old.inputs),
        workload_json=(old.path / "workload.json").read_text(),
        notes=list(old.notes),
        spec=None if sheet is None else Spec.model_validate(sheet),
    )
    agreed = consent(i_accept_data_loss)
    check_consent(agreed, [old.plan])
    result = finish.Result()
    outcome = run_plan(
        forget_identities(old.plan),
        asked=asked,
        out_dir=out or default_directory("rerun"),
        progress=finish.live(wanted=progress),
        consent=agreed,
        result=result.document,
        calibration=calibration,
    )
    return finish.tell(outcome, result, json=json, report=report, require_valid=require_valid)


def forget_identities(plan: Plan) -> Plan:
    """Return the Plan without what the old safety check saw: inode and device numbers change."""
    targets = tuple(target.model_copy(update={"identity": None}) for target in plan.targets)
    return plan.model_copy(update={"targets": targets})
