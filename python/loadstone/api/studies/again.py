"""The runs of a study once more.

Knows that nothing is resolved or decided anew: a curve is measured at the loads of then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.api import rerunning
from loadstone.api.studies.prepared import PreparedStudy
from loadstone.study import rerun
from loadstone.study.run import StudyRequest
from loadstone.study.run_list import ListController

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.safety.guard import Consent
    from loadstone.study.rerun import StudyRerun


def prepare_again(path: Path, consent: Consent, *, unverified: bool) -> tuple[PreparedStudy, StudyRerun]:
    """Prepare a study that is run again; return what was read of it, too. Raises `BundleError`."""
    old = rerun.read(path, unverified=unverified)
    request = StudyRequest(
        kind=old.study.kind,
        name=old.study.name,
        front_end="rerun",
        request=rerunning.rerun_request(path, consent, old.study.request),
        inputs=old.inputs,
        settings=old.study.settings,
        notes=[
            *old.study.notes,
            *rerunning.changed_since(old.doubt),
            *([_loads_of(path)] if old.study.kind == "curve" else []),
        ],
        spec=old.spec,
    )
    controller = ListController(old.nexts)
    return PreparedStudy(
        controller, request, lambda wanted: old.settled[wanted.name], after_failure="go_on"
    ), old


def _loads_of(path: Path) -> dict[str, Any]:
    text = f"the loads are those of {path.absolute()}: percents are of the maximum that was measured there"
    return {"kind": "changed", "text": text, "where": None}
