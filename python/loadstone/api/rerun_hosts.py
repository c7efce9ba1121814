"""A run, or each run of a study, again on the hosts it was on: each gets the Plan it had.

Knows which hosts must be named for that, and what keeps a run from being the same again.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from loadstone.api.on_hosts import run_works, texts_of
from loadstone.errors import RefusedError, Where
from loadstone.messages import make_error, say
from loadstone.study.rerun import plans_of_hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from loadstone.api.on_hosts import GivenHosts
    from loadstone.api.one_run import HowRun
    from loadstone.api.results import Result
    from loadstone.bundle.hosts import HostsRecord
    from loadstone.bundle.read import Bundle
    from loadstone.hosts.assignment import HostWork
    from loadstone.hosts.hosts_file import HostsFile
    from loadstone.session import RunRequest
    from loadstone.study.controller import Next
    from loadstone.study.rerun import HostPlans, StudyRerun
    from loadstone.study.run import StudyRequest
    from loadstone.study.run_maker import RunMaker

    Say = Callable[[str], None]


def rerun_on_hosts(
    on: GivenHosts | None, old: Bundle, record: HostsRecord, request: RunRequest, settings: HowRun
) -> Result:
    """Run the Plans of a bundle of hosts again, each on the host of its name."""
    on, named = _hosts_of_then(on, old.path, [part.name for part in record.hosts])
    plans = plans_of_hosts(old, record)
    if plans.missing:
        raise make_error(
            RefusedError, "hosts.again.no_plan", where=Where(str(old.path)), names=", ".join(plans.missing)
        )
    request = dataclasses.replace(request, inputs={**request.inputs, **on.inputs()})
    works = _works(plans, request, calibration=settings.calibration)
    return run_works(on, named, works, request, settings, own_parts=plans.own_parts)


def maker_again(
    on: GivenHosts | None, path: Path, old: StudyRerun, request: StudyRequest
) -> Callable[[bool, Say], RunMaker] | None:
    """Return what makes the runs of a study again on its hosts; None where it was on one host.

    It takes whether to calibrate, and who hears what happens between hosts. Raises `RefusedError`
    where other hosts are named than the study had.
    """
    if not old.of_hosts:
        if on is not None:
            on.refuse("a study of one host that is run again")
        return None
    names = dict.fromkeys(name for plans in old.of_hosts.values() for name in plans.names)
    on, named = _hosts_of_then(on, path, [*names])
    request = dataclasses.replace(request, inputs={**request.inputs, **on.inputs()})
    own_parts = frozenset[tuple[str, str]]().union(*(plans.own_parts for plans in old.of_hosts.values()))

    def make(calibration: bool, say_to: Say) -> RunMaker:
        from loadstone.hosts.study_runs import RunsOnHosts

        def works_of(wanted: Next) -> dict[str, HostWork]:
            return _works(old.of_hosts[wanted.name], request, calibration=calibration)

        return RunsOnHosts(named, works_of, say=say_to, own_parts=own_parts)

    return make


def _hosts_of_then(on: GivenHosts | None, path: Path, earlier: Sequence[str]) -> tuple[GivenHosts, HostsFile]:
    """Return the hosts that are named now. Raises where they are not those of then."""
    if on is None:
        raise make_error(
            RefusedError, "hosts.again.no_hosts", where=Where(str(path)), names=", ".join(earlier)
        )
    if on.divide:
        raise on.caller.error("hosts.again.divided", "divide", hint=say("hosts.command.leave_out"))
    named = on.read()
    if set(named.names) != set(earlier):
        raise make_error(
            RefusedError,
            "hosts.again.others",
            where=on.caller.at("hosts"),
            there=", ".join(earlier),
            here=", ".join(named.names),
        )
    return on, named


def _works(plans: HostPlans, request: RunRequest | StudyRequest, *, calibration: bool) -> dict[str, HostWork]:
    from loadstone.hosts.assignment import HostWork

    return {
        name: HostWork(
            workload=one.workload,
            plan=one.plan,
            inputs=texts_of(request.inputs),
            request=request.request,
            calibration=calibration,
        )
        for name, one in plans.of.items()
    }
