"""The runs of a study once more.

Knows that nothing is resolved or decided anew: a curve is measured at the loads of then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.api import rerunning
from loadstone.api.rerun_hosts import maker_again
from loadstone.api.studies.prepared_study import PreparedStudy
from loadstone.bundle import layout
from loadstone.errors import RefusedError, Where
from loadstone.messages import make_error, say
from loadstone.study import rerun
from loadstone.study.list_controller import ListController
from loadstone.study.run import StudyRequest
from loadstone.workload.model import Note

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.api.on_hosts import GivenHosts
    from loadstone.plan.safety.guard import Consent
    from loadstone.study.controller import Next
    from loadstone.study.rerun import StudyRerun


def prepare_again(
    path: Path, on: GivenHosts | None, consent: Consent, *, unverified: bool
) -> tuple[PreparedStudy, StudyRerun]:
    """Prepare a study that is run again; return what was read of it, too.

    Raises `BundleError` for what is no study, and `RefusedError` for an experiment, whose levels would not
    be set, and where other hosts are named than the study had.
    """
    old = rerun.read(path, unverified=unverified)
    if old.study.kind == "experiment":
        file = str(old.study.request.get("options", {}).get("file", "FILE"))
        raise make_error(
            RefusedError,
            "study.experiment",
            where=Where(str(path)),
            file=file,
            copy=path / old.study.inputs.get(file, layout.INPUT),
        )
    left_out = tuple(_left_out(old, one) for one in old.nexts if _missing(old, one))
    whole = [one for one in old.nexts if not _missing(old, one)]
    if not whole:
        lost = dict.fromkeys(name for one in old.nexts for name in _missing(old, one))
        raise make_error(RefusedError, "hosts.again.no_plan", where=Where(str(path)), names=", ".join(lost))
    request = StudyRequest(
        kind=old.study.kind,
        name=old.study.name,
        front_end="rerun",
        request=_request(path, on, consent, old),
        inputs=old.inputs,
        settings=old.study.settings,
        notes=[
            *old.study.notes,
            *rerunning.changed_since(old.doubt),
            *([_loads_of(path)] if old.study.kind == "curve" else []),
            *(note.model_dump(mode="json") for note in left_out),
        ],
        spec=old.spec,
    )
    prepared = PreparedStudy(
        ListController(tuple(whole)),
        request,
        lambda wanted: old.settled[wanted.name],
        notes=left_out,
        after_failure="go_on",
        again=maker_again(on, path, old, request),
    )
    return prepared, old


def _request(path: Path, on: GivenHosts | None, consent: Consent, old: StudyRerun) -> dict[str, Any]:
    request = rerunning.rerun_request(path, consent, old.study.request)
    request["options"] |= {} if on is None else on.document()
    return request


def _missing(old: StudyRerun, wanted: Next) -> tuple[str, ...]:
    """Return the hosts whose part in a run nobody knows."""
    plans = old.of_hosts.get(wanted.name)
    return () if plans is None else plans.missing


def _left_out(old: StudyRerun, wanted: Next) -> Note:
    text = say("hosts.again.left_out", name=wanted.name, names=", ".join(_missing(old, wanted)))
    return Note(where=None, kind="changed", text=text)


def _loads_of(path: Path) -> dict[str, Any]:
    text = f"the loads are those of {path.absolute()}: percents are of the maximum that was measured there"
    return {"kind": "changed", "text": text, "where": None}
