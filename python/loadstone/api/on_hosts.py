"""A run, or each run of a study, on several load generators at once.

Knows what each host is asked to do, and what cannot be asked of them. The rest is done in `hosts`.
"""

from __future__ import annotations

import base64
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from loadstone import input_file
from loadstone.api.jobs.job_changes import PYTHON, JobChanges
from loadstone.api.jobs.times_and_rates import total_rate
from loadstone.api.one_run import result_of
from loadstone.errors import RefusedError, Where
from loadstone.messages import make_error, say
from loadstone.workload.other_hosts import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.api.jobs.job_changes import Caller
    from loadstone.api.one_run import HowRun
    from loadstone.api.results import Result
    from loadstone.api.studies.prepared_study import PreparedStudy
    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.hosts.assignment import HostWork
    from loadstone.hosts.hosts_file import HostsFile
    from loadstone.plan.model import Plan
    from loadstone.plan.stream import TotalRate
    from loadstone.session import Progress, RunRequest
    from loadstone.study.controller import Next
    from loadstone.study.run_maker import RunMaker
    from loadstone.workload.model import Workload

    Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GivenHosts:
    """The load generators of a run, as they were named."""

    word: str
    """h1,root@h2:2222, or a file HOSTS.toml."""
    divide: bool
    """Each host gets its own part of what several of them write."""
    caller: Caller

    def read(self) -> HostsFile:
        """Return the hosts. Raises `InputError`."""
        from loadstone.hosts.hosts_file import read_hosts

        return read_hosts(self.word)

    def inputs(self) -> dict[str, bytes]:
        """Return the file that names them, where there is one."""
        return (
            {self.word: input_file.read(Path(self.word), "list of hosts")}
            if Path(self.word).is_file()
            else {}
        )

    def document(self) -> dict[str, Any]:
        """Return what was given, as `request.json` keeps it."""
        return {"hosts": self.word, "divide": self.divide}

    def refuse(self, what: str, hint: str | None = None) -> NoReturn:
        """Refuse hosts for what is done on one."""
        raise make_error(
            RefusedError,
            "hosts.command.not_for",
            where=self.caller.at("hosts"),
            hint=hint or say("hosts.command.leave_out"),
            what=what,
        )


def given_hosts(hosts: str | None, *, divide: bool, caller: Caller = PYTHON) -> GivenHosts | None:
    """Return the hosts that were named; None: the run is on this one. Raises `InputError`."""
    if hosts is None and divide:
        raise caller.error("hosts.command.alone", "divide")
    return None if hosts is None else GivenHosts(hosts, divide, caller)


def run_job_on_hosts(
    on: GivenHosts,
    asked_for: Workload,
    changes: JobChanges,
    settings: HowRun,
    request: RunRequest,
    *,
    probe_s: float | None = None,
    see_probe: Callable[[], Progress | None] = lambda: None,
) -> Result:
    """Run a job on all hosts at once, with probes after it for `probe_s`; `see_probe` makes who sees each."""
    named = on.read()
    request = dataclasses.replace(request, inputs={**request.inputs, **on.inputs()})
    works = works_of_hosts(
        asked_for,
        changes,
        named,
        request.request,
        request.inputs,
        rate=total_rate(changes),
        calibration=settings.calibration,
    )
    return run_works(on, named, works, request, settings, probe_s=probe_s, see_probe=see_probe)


def run_works(
    on: GivenHosts,
    named: HostsFile,
    works: Mapping[str, HostWork],
    run_request: RunRequest,
    settings: HowRun,
    *,
    probe_s: float | None = None,
    see_probe: Callable[[], Progress | None] = lambda: None,
    own_parts: frozenset[tuple[str, str]] = frozenset(),
) -> Result:
    """Run what each host is asked to do on all of them; `own_parts` as in `HostsRequest`."""
    from loadstone.api.probed import ProbedFigures
    from loadstone.audit.run import SealedFigures
    from loadstone.hosts.coordinator import HostsRequest, run_on_hosts
    from loadstone.hosts.greeting import new_number
    from loadstone.hosts.kept_agents import KeptAgents
    from loadstone.hosts.probe_runs import on_hosts

    request = HostsRequest(
        asked=run_request,
        out_dir=settings.out,
        consent=settings.consent,
        progress=settings.progress,
        divide=on.divide,
        say=settings.say,
        holder=new_number(),
        own_parts=own_parts,
    )
    with KeptAgents(named) as agents:
        figures = (
            SealedFigures()
            if probe_s is None
            else ProbedFigures(probe_s, on_hosts(named, agents, request, see_probe), settings.say)
        )
        outcome = run_on_hosts(works, named, agents.link, request, result=figures.document)
    return result_of(outcome, figures, check=settings.check)


def study_maker(
    on: GivenHosts | None, prepared: PreparedStudy, *, calibration: bool, say_to: Say = lambda _: None
) -> RunMaker | None:
    """Return who makes the runs of a study on hosts; None: they are made here."""
    if prepared.again is not None:
        return prepared.again(calibration, say_to)
    if on is None or prepared.changes_of is None:
        return None
    known = prepared.controller.known()
    if len(known) > 1 and (handed := next((one for one in known if one.workload.hand_over), None)):
        raise make_error(
            RefusedError, "hosts.command.hand_over", where=on.caller.at("hosts"), name=handed.name
        )
    study_request = prepared.asked
    return _maker(
        on,
        prepared.changes_of,
        study_request.request,
        study_request.inputs,
        prepared.check,
        calibration=calibration,
        say_to=say_to,
    )


def experiment_maker(
    on: GivenHosts | None, prepared: PreparedExperiment, *, calibration: bool, say_to: Say = lambda _: None
) -> RunMaker | None:
    """Return who makes the runs of an experiment on hosts; None: they are made here."""
    if on is None:
        return None
    _refuse_machine(prepared)
    changes = JobChanges(caller=on.caller)
    return _maker(
        on,
        lambda _: changes,
        {"front_end": "experiment", "file": str(prepared.path)},
        prepared.inputs,
        lambda _, __: None,
        calibration=calibration,
        say_to=say_to,
    )


def _refuse_machine(prepared: PreparedExperiment) -> None:
    """Refuse an experiment that sets something of a machine: it would be set here, where no load is."""
    controls = [one.control for one in prepared.whole.settings]
    controls += [one.name for one in prepared.factors if one.what == "cache_share" and one.of is None]
    for run in prepared.document.runs:
        conditions = prepared.asked(run)
        controls += [one.control for one in conditions.settings]
        controls += ["layout"] if conditions.layout is not None else []
        # That of a server is dropped over there, whoever loads it.
        controls += ["page cache"] if any(one.host is None for one in conditions.drops) else []
        controls += ["allocation"] if conditions.allocation is not None else []
        controls += ["group"] if conditions.group is not None else []
    if controls:
        raise make_error(
            RefusedError,
            "hosts.command.machine",
            where=Where(str(prepared.path)),
            names=", ".join(dict.fromkeys(controls)),
        )


def _maker(
    on: GivenHosts,
    changes_of: Callable[[Next], JobChanges],
    request: dict[str, Any],
    inputs: Mapping[str, bytes],
    check: Callable[[Plan, Next], None],
    *,
    calibration: bool,
    say_to: Say,
) -> RunMaker:
    from loadstone.hosts.study_runs import RunsOnHosts

    named = on.read()
    sent = {**inputs, **on.inputs()}

    def works_of(wanted: Next) -> dict[str, HostWork]:
        changes = changes_of(wanted)
        rate = wanted.rate or total_rate(changes)
        return works_of_hosts(
            wanted.workload, changes, named, request, sent, rate=rate, calibration=calibration
        )

    return RunsOnHosts(named, works_of, divide=on.divide, say=say_to, check_plan=check)


def works_of_hosts(
    asked_for: Workload,
    changes: JobChanges,
    named: HostsFile,
    request: dict[str, Any],
    inputs: Mapping[str, bytes],
    *,
    rate: TotalRate | None,
    calibration: bool,
) -> dict[str, HostWork]:
    """Return what hosts are asked to do: the same or their parts, with random addresses of their own.

    A host that is idle in this run, and works in others of the same file, is left out.
    """
    from loadstone.hosts.assignment import HostRate, HostWork
    from loadstone.study.random_seeds import own_sequence

    if _has_commands(asked_for):
        raise make_error(RefusedError, "hosts.command.commands")
    called = {one.name: tuple(dict.fromkeys((one.name, one.reached_by))) for one in named.host}
    of_hosts = spread(asked_for, called, changes.caller.at("hosts"))
    texts = texts_of(inputs)
    return {
        name: HostWork(
            workload=own_sequence(of_hosts[name], number),
            vocabulary=of_hosts[name].jobs[0].vocabulary,
            rate=None if rate is None else HostRate.of(rate, 1 / len(of_hosts)),
            keep_ioengine=changes.keep_ioengine,
            journal=changes.journal,
            inputs=texts,
            request=request,
            calibration=calibration,
        )
        for number, name in enumerate(named.names, start=1)
        if name in of_hosts
    }


def _has_commands(asked_for: Workload) -> bool:
    processes: Sequence[Any] = [job.process for job in asked_for.jobs]
    return any(one.exec_prerun is not None or one.exec_postrun is not None for one in processes)


def texts_of(inputs: Mapping[str, bytes]) -> dict[str, str]:
    """Return files the user gave as they travel to hosts."""
    return {name: base64.b64encode(content).decode() for name, content in inputs.items()}
