"""Probes after a run on several hosts: each is a run on all of them at once.

Knows which streams and targets of a probe's Plan are whose. What is probed is decided in `probe`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from loadstone.bundle.read import Bundle
from loadstone.errors import RefusedError
from loadstone.hosts.agreement import SHARED
from loadstone.hosts.assignment import HostWork
from loadstone.hosts.coordinator import run_on_hosts
from loadstone.messages import say
from loadstone.probe import after_run
from loadstone.probe.arms import plan_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.bundle.hosts import HostPart, HostsRecord
    from loadstone.hosts.coordinator import HostsRequest
    from loadstone.hosts.hosts_file import HostsFile
    from loadstone.hosts.kept_agents import KeptAgents
    from loadstone.plan.model import Plan
    from loadstone.plan.safety.guard import Consent
    from loadstone.probe.base import Base
    from loadstone.probe.probe_session import Offer, Ran, Runner
    from loadstone.session import Progress


def on_hosts(
    hosts: HostsFile,
    agents: KeptAgents,
    request: HostsRequest,
    progress: Callable[[], Progress | None],
) -> after_run.MakeRunner:
    """Return who runs probes on the hosts of a run; `progress` makes who sees each of them."""

    def runner(bundle: Bundle, base: Base) -> Runner:
        record = bundle.hosts
        if record is None:
            raise RefusedError(say("hosts.probing.no_hosts"))

        def run(offer: Offer, number: int) -> Ran:
            probe_request, relative = after_run.request_of(bundle, offer.probe, number)
            works = {
                part.name: HostWork(
                    workload=after_run.made_of_a_plan(offer.probe),
                    plan=_plan_of(part, bundle, base, offer),
                    calibration=False,
                )
                for part in record.hosts
            }
            outcome = run_on_hosts(
                works,
                hosts,
                agents.link,
                dataclasses.replace(
                    request,
                    asked=probe_request,
                    out_dir=bundle.path / relative,
                    consent=_consent(request.consent, record),
                    lost_before=agents.renew(),
                    consent_is_checked=True,
                    divide=False,
                    progress=progress(),
                ),
                result=after_run.document,
            )
            return after_run.ran(outcome, relative)

        return run

    return runner


def _consent(consent: Consent, record: HostsRecord) -> Consent:
    """Return the run's consent; what was divided for the run is divided in its Plans."""
    divided = {f"{SHARED}:{path}" for one in record.shared if one.divided for path in one.paths.values()}
    return dataclasses.replace(consent, paths=consent.paths | divided)


def _plan_of(part: HostPart, bundle: Bundle, base: Base, offer: Offer) -> Plan:
    """Return a host's part of a probe's Plan. Raises `RefusedError` where it has none in some turn."""
    host_base = _part_of(base, part)
    plan = plan_of(host_base, offer.turns)
    stages = {plan.workers[stream.worker].stage for stream in plan.streams}
    if len(stages) < len(offer.turns.order):
        # It would be in its last turn while the others are in their first.
        raise RefusedError(say("hosts.probing.idle", name=part.name))
    own = Bundle.open(bundle.path / str(part.bundle), unverified=True).plan
    number_there = {number: at for at, number in reversed(list(enumerate(part.targets)))}
    return plan.model_copy(
        update={
            "targets": tuple(
                plan.targets[number].model_copy(update={"path": own.targets[at].path})
                for at, number in enumerate(part.targets)
            ),
            "streams": tuple(
                stream.model_copy(
                    update={
                        "files": tuple(
                            use.model_copy(update={"target": number_there[use.target]})
                            for use in stream.files
                        )
                    }
                )
                for stream in plan.streams
            ),
        }
    )


def _part_of(base: Base, part: HostPart) -> Base:
    """Return what a host's part of the probes starts from: its streams, and what they wrote."""
    plan = base.plan
    streams = plan.streams[part.first_stream : part.first_stream + part.streams]
    host_base = dataclasses.replace(base, plan=plan.model_copy(update={"streams": streams}))
    share = len(host_base.streams) / len(base.streams)
    return dataclasses.replace(
        host_base, main=dataclasses.replace(base.main, written_bytes=round(base.main.written_bytes * share))
    )
