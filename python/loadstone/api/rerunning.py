"""A bundle that was measured, run again or read back.

Knows that nothing is resolved again: the same Plans run. The safety check is made anew, because
what a target holds may have changed since.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.analysis.steady_start import OPTION
from loadstone.api import exporting
from loadstone.api.jobs.job_changes import PYTHON
from loadstone.api.on_hosts import given_hosts
from loadstone.api.one_run import HowRun, consent_of, request_of, run_once, watched
from loadstone.api.place import default_directory
from loadstone.api.probed import ProbedFigures, budget_s, on_this_host
from loadstone.api.rerun_hosts import rerun_on_hosts
from loadstone.api.results import Result
from loadstone.bundle import layout, members
from loadstone.bundle import study as on_disk
from loadstone.bundle.read import Bundle
from loadstone.errors import BundleError, InputError
from loadstone.messages import make_error, say
from loadstone.path.identity import BOOT_ID
from loadstone.path.spec import Spec
from loadstone.plan.asking_jobs import target_places
from loadstone.plan.safety.guard import check_consent
from loadstone.plan.verification.journal import asked_back, read_back
from loadstone.session import RunRequest
from loadstone.study.rerun import forget_identities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.api.on_hosts import GivenHosts
    from loadstone.api.one_run import Watched
    from loadstone.bundle.hosts import HostsRecord
    from loadstone.plan.safety.guard import Consent
    from loadstone.session import Progress
    from loadstone.watch.address import WatchedAddress


def rerun(
    bundle: Result | Path | str,
    *,
    accept_data_loss: Sequence[Path | str] | Consent = (),
    calibration: bool = True,
    probe: str | float | None = None,
    out: Path | str | None = None,
    hosts: str | None = None,
    watch: Sequence[str | WatchedAddress] = (),
    progress: Progress | None = None,
    check: bool = True,
    unverified: bool = False,
) -> Result:
    """Run the Plan of a bundle again, into a new one; commands of its job file are not run.

    Arguments are those of `run`; `unverified` takes the Plan of a bundle that was altered. A run on hosts
    needs `hosts` of the same names, and has no `probe`. `rerun_study` runs a study again. Raises
    `BundleError` for what is no bundle.
    """
    directory = Path(out) if out is not None else default_directory("rerun")
    consent = consent_of(accept_data_loss)
    seconds = None if probe is None else budget_s(probe, PYTHON.at("probe"))
    return rerun_bundle(
        _opened(bundle, "rerun", unverified=unverified),
        given_hosts(hosts, divide=False),
        HowRun(directory, consent, calibration=calibration, progress=progress, check=check),
        watched(watch),
        None if seconds is None else ProbedFigures(seconds, on_this_host(consent)),
    )


def rerun_bundle(
    old: Bundle,
    on: GivenHosts | None,
    settings: HowRun,
    watch: Watched,
    figures: ProbedFigures | None = None,
) -> Result:
    """Run the Plan of a bundle again, or each of its hosts' Plans on the host of that name."""
    sheet, consent = old.environment.get("spec"), settings.consent
    request = rerun_request(old.path, consent, old.request)
    request["options"]["probe"] = None if figures is None else figures.budget_s
    if on is not None:
        request["options"] |= on.document()
    new_request = RunRequest(
        request=request,
        inputs=dict(old.inputs),
        workload_json=old.workload.model_dump_json(),
        notes=[*old.notes, *changed_since(old.doubt), *_levels_not_set(old.request)],
        spec=None if sheet is None else Spec.model_validate(sheet),
        watch=watch,
    )
    if old.hosts is not None:
        PYTHON.refuse("a run on hosts that is run again", probe=figures)
        return rerun_on_hosts(on, old, old.hosts, new_request, settings)
    if on is not None:
        on.refuse("a run of one host that is run again")
    check_consent(consent, [old.plan])
    settings = replace(settings, consent=consent.placed(target_places(old.plan, old.workload)))
    return run_once(forget_identities(old.plan), new_request, settings, figures)


def is_study(path: Path) -> bool:
    """Tell whether a directory is a study, which `rerun_study` runs again."""
    return on_disk.is_study(path)


def rerun_request(path: Path, consent: Consent, first: dict[str, Any]) -> dict[str, Any]:
    """Return `request.json` of what is run again."""
    options = {
        "bundle": str(path),
        "i_accept_data_loss": sorted(consent.paths),
        # How the numbers are taken from what was measured stays as it was.
        OPTION: first.get("options", {}).get(OPTION, False),
    }
    return request_of("rerun", options, first)


def changed_since(doubt: str | None) -> list[dict[str, Any]]:
    """Return the note that a Plan may not be the one that ran."""
    if doubt is None:
        return []
    return [{"kind": "changed", "text": f"the Plan is of a bundle that is {doubt}", "where": None}]


def _levels_not_set(first: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the note that a run of an experiment comes again without what was set before it."""
    study = first.get("study", {})
    if study.get("kind") != "experiment":
        return []
    levels = {name: one for name, one in study["factors"].items() if name not in {"pattern", "repeat"}}
    names = ", ".join(f"{name}={level}" for name, level in levels.items()) or study["point"]
    return [{"kind": "changed", "text": say("api.rerun.levels", levels=names), "where": None}]


def verify(
    bundle: Result | Path | str,
    *,
    out: Path | str | None = None,
    progress: Progress | None = None,
    check: bool = True,
    unverified: bool = False,
) -> Result:
    """Read back what a run with a journal wrote, also after a crash in the middle of it.

    The result's document counts the damaged blocks, and with `check` any of them raises `RunError`.
    Raises `InputError` for a run that kept no journal, `BundleError` for what is no bundle.
    """
    wrote = _opened(bundle, "verify", unverified=unverified)
    path = wrote.path
    if wrote.hosts is not None:
        _refuse_joint(path, wrote.hosts)
    if wrote.plan.journal is None:
        raise make_error(InputError, "api.rerun.no_journal", path=path)
    journal = path / layout.JOURNAL
    plan = read_back(wrote.plan, journal)
    if not members.exists(path, layout.JOURNAL):
        raise make_error(BundleError, "api.rerun.no_file", journal=journal)
    # The engine opens it by its name: no link, no device.
    members.open_member(path, layout.JOURNAL).close()
    request = RunRequest(
        request=request_of("verify", {"bundle": str(path)}, wrote.request),
        inputs=dict(wrote.inputs),
        workload_json=asked_back(wrote.workload).model_dump_json(),
        notes=[] if wrote.doubt is None else [f"the journal is of a bundle that is {wrote.doubt}"],
    )
    directory = Path(out) if out is not None else default_directory("verify")
    settings = HowRun(directory, calibration=False, progress=progress, check=check)
    return run_once(plan, request, settings)


def _refuse_joint(path: Path, record: HostsRecord) -> None:
    """Refuse a run on several hosts: each has a journal of its own, and its targets are there."""
    kept_at = {one.name: path / one.bundle for one in record.hosts if one.bundle is not None}
    journals = {name: at for name, at in kept_at.items() if members.exists(at, layout.JOURNAL)}
    if not journals and len(kept_at) == len(record.hosts):
        return
    own = BOOT_ID.read_text().strip() if BOOT_ID.is_file() else None
    near = [one.name for one in record.hosts if one.name in journals and own and one.kernel == own]
    commands = " and ".join(f"`loadstone verify {journals[name]}`" for name in near)
    near_hint = say("api.rerun.journal_near", paths=commands)
    far = [one.name for one in record.hosts if one.name not in near]
    far_hint = say("api.rerun.journal_far", names=", ".join(far))
    lost = [f"{one.name}: {one.error}" for one in record.hosts if one.bundle is None and one.error]
    texts = [*(f"{name}: {at}" for name, at in journals.items()), *lost]
    raise make_error(
        InputError,
        "api.rerun.journals_of_hosts",
        hint="; ".join([near_hint] * bool(near) + [far_hint] * bool(far)),
        path=path,
        journals="; ".join(texts) or ", ".join(far),
    )


def _opened(bundle: Result | Path | str, verb: str, *, unverified: bool) -> Bundle:
    if isinstance(bundle, Result):
        return bundle.bundle
    exporting.refuse_study(Path(bundle), verb)
    return Bundle.open(Path(bundle), unverified=unverified)
