"""`loadstone rerun`: the Plan of a bundle once more, into a new bundle.

Knows that nothing is resolved again: the same Plan runs. The safety check is made anew,
because what a target holds may have changed since.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.bundle.read import Bundle
from loadstone.cli import finish, study
from loadstone.cli.consent import consent
from loadstone.cli.manner import Manner
from loadstone.path.spec import Spec
from loadstone.plan.guard import check_consent
from loadstone.session import Asked, run_plan

if TYPE_CHECKING:
    from loadstone.plan.model import Plan


def rerun(
    bundle: Path,
    /,
    *,
    manner: Manner = Manner(),
) -> int:
    """Run the Plan of a bundle again.

    Parameters
    ----------
    bundle
        Directory of the run to do again.
    """
    study.refuse(bundle, "rerun")
    old = Bundle.open(bundle)
    sheet = old.environment.get("spec")
    asked = Asked(
        request={
            "argv": sys.argv,
            "cwd": str(Path.cwd()),
            "front_end": "rerun",
            "options": {
                "bundle": str(bundle),
                "i_accept_data_loss": list(manner.i_accept_data_loss),
                "json": manner.json,
            },
            "first_request": old.request,
        },
        inputs=dict(old.inputs),
        workload_json=(old.path / "workload.json").read_text(),
        notes=list(old.notes),
        spec=None if sheet is None else Spec.model_validate(sheet),
    )
    agreed = consent(manner.i_accept_data_loss)
    check_consent(agreed, [old.plan])
    result = finish.Result()
    outcome = run_plan(
        forget_identities(old.plan),
        asked=asked,
        out_dir=manner.directory("rerun"),
        progress=finish.live(wanted=manner.progress),
        consent=agreed,
        result=result.document,
        calibration=manner.calibration,
    )
    return finish.tell(outcome, result, manner, require_valid=manner.require_valid)


def forget_identities(plan: Plan) -> Plan:
    """Return the Plan without what the old safety check saw: inode and device numbers change."""
    targets = tuple(target.model_copy(update={"identity": None}) for target in plan.targets)
    return plan.model_copy(update={"targets": targets})
