"""`--hosts`: a run, or each run of a study, on several hosts.

Knows what each host is asked to do, and how it is reached. The rest is done in `hosts`.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import input_file
from loadstone.api.jobs.changes import JobChanges
from loadstone.api.jobs.read_workload import total_rate
from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE, SHELL
from loadstone.errors import InputError, RefusedError, Where
from loadstone.messages import say
from loadstone.session import RunRequest
from loadstone.workload.other_hosts import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.api.jobs.data_sheet import DataSheet
    from loadstone.api.studies.prepared import PreparedStudy
    from loadstone.bundle.read import Bundle
    from loadstone.cli.options.run_options import RunOptions
    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.hosts.hosts_file import HostsFile
    from loadstone.hosts.work import HostWork
    from loadstone.plan.model import Plan
    from loadstone.plan.stream import TotalRate
    from loadstone.session import Progress
    from loadstone.study.controller import Next
    from loadstone.study.run_maker import RunMaker
    from loadstone.workload.model import Workload


def refuse_alone(run_options: RunOptions) -> None:
    """Refuse an option that is for runs on several hosts."""
    if run_options.divide and run_options.hosts is None:
        raise InputError(
            say("hosts.command.alone"),
            where=Where(COMMAND_LINE, option="--divide"),
            hint=say("hosts.command.alone_hint"),
        )


def refuse_hosts(run_options: RunOptions, what: str, hint: str | None = None) -> None:
    """Refuse hosts for what is done on one."""
    refuse_alone(run_options)
    if run_options.hosts is not None:
        raise RefusedError(
            say("hosts.command.not_for", what=what),
            where=Where(COMMAND_LINE, option="--hosts"),
            hint=hint or say("hosts.command.leave_out"),
        )


def refuse_machine(prepared: PreparedExperiment) -> None:
    """Refuse an experiment that sets something of a machine: it would be set here, where no load is."""
    found = [one.control for one in prepared.whole.settings]
    found += [one.name for one in prepared.factors if one.what == "cache_share" and one.of is None]
    for run in prepared.document.runs:
        asked = prepared.asked(run)
        found += [one.control for one in asked.settings]
        found += ["layout"] if asked.layout is not None else []
        # That of a server is dropped over there, whoever loads it.
        found += ["page cache"] if any(one.host is None for one in asked.drops) else []
        found += ["allocation"] if asked.allocation is not None else []
        found += ["group"] if asked.group is not None else []
    if found:
        raise RefusedError(
            say("hosts.command.machine", names=", ".join(dict.fromkeys(found))),
            where=Where(str(prepared.path)),
            hint=say("hosts.command.machine_hint"),
        )


def maker(run_options: RunOptions, prepared: PreparedStudy, known: Sequence[Next]) -> RunMaker | None:
    """Return who makes the runs of a study on `--hosts`; None: they are made here."""
    if run_options.hosts is None:
        return None
    if prepared.changes_of is None:
        raise RefusedError(
            say("hosts.command.not_for", what="a study that is run again"),
            where=Where(COMMAND_LINE, option="--hosts"),
            hint=say("hosts.command.again_hint"),
        )
    if len(known) > 1 and (handed := next((one for one in known if one.workload.hand_over), None)):
        raise RefusedError(
            say("hosts.command.hand_over", name=handed.name),
            where=Where(COMMAND_LINE, option="--hosts"),
            hint=say("hosts.command.hand_over_hint"),
        )
    asked = prepared.asked
    return _study_maker(run_options, prepared.changes_of, asked.request, asked.inputs, prepared.check)


def experiment_maker(prepared: PreparedExperiment, run_options: RunOptions) -> RunMaker | None:
    """Return who makes the runs of an experiment on `--hosts`; None: they are made here."""
    if run_options.hosts is None:
        return None
    changes = JobChanges(caller=SHELL)
    request = {"front_end": "experiment", "file": str(prepared.path)}
    return _study_maker(run_options, lambda _: changes, request, prepared.inputs, lambda _, __: None)


def _study_maker(
    run_options: RunOptions,
    changes_of: Callable[[Next], JobChanges],
    request: dict[str, Any],
    inputs: dict[str, bytes],
    check: Callable[[Plan, Next], None],
) -> RunMaker:
    from loadstone.hosts.hosts_file import read_hosts
    from loadstone.hosts.study_runs import RunsOnHosts

    word = str(run_options.hosts)
    named = read_hosts(word)
    inputs = inputs | _file_of(word)

    def works_of(wanted: Next) -> dict[str, HostWork]:
        changes = changes_of(wanted)
        return works(
            wanted.workload,
            changes,
            named,
            request,
            inputs,
            rate=wanted.rate or total_rate(changes),
            calibration=run_options.calibration,
        )

    return RunsOnHosts(named, works_of, divide=run_options.divide, say=console.say, check_plan=check)


def _file_of(word: str) -> dict[str, bytes]:
    return {word: input_file.read(Path(word), "list of hosts")} if Path(word).is_file() else {}


def once(
    asked_for: Workload,
    changes: JobChanges,
    options: dict[str, Any],
    run_options: RunOptions,
    sheet: DataSheet,
    *,
    probe: str | None,
    dry_run: bool,
) -> int:
    """Do one run on all hosts at once, with probes after it where a budget is given for them."""
    from loadstone.cli.running import probing
    from loadstone.hosts.hosts_file import read_hosts

    if dry_run:
        raise InputError(
            say("hosts.probing.dry_run"),
            where=Where(COMMAND_LINE, option="--dry-run"),
            hint=say("hosts.probing.dry_run_hint"),
        )
    seconds = None if probe is None else probing.read_budget(probe)
    if seconds is not None:
        probing.tell_bounds_on_hosts(seconds)
    word = str(run_options.hosts)
    named = read_hosts(word)
    request = {
        "argv": sys.argv,
        "cwd": str(Path.cwd()),
        "front_end": "run",
        "options": options | {"probe": probe} | _options_of(run_options),
    }
    inputs = {**asked_for.sources, **sheet.inputs, **_file_of(word)}
    return run_and_tell(
        works(
            asked_for,
            changes,
            named,
            request,
            inputs,
            rate=total_rate(changes),
            calibration=run_options.calibration,
        ),
        named,
        RunRequest(
            request=request,
            inputs=inputs,
            workload_json=asked_for.model_dump_json(),
            notes=[],
            spec=sheet.spec,
            watch=run_options.watched(),
        ),
        asked_for.name,
        run_options,
        probe_s=seconds,
    )


def _options_of(run_options: RunOptions) -> dict[str, Any]:
    return {
        "hosts": run_options.hosts,
        "divide": run_options.divide,
        "i_accept_data_loss": list(run_options.i_accept_data_loss),
        "json": run_options.json,
        "watch": list(run_options.watch),
    }


def again(old: Bundle, path: Path, request: dict[str, Any], run_options: RunOptions) -> int:
    """Run the Plans of a bundle of hosts again, each on the host of its name."""
    from loadstone.bundle.hosts import HOSTS, HostsRecord
    from loadstone.bundle.read import Bundle as BundleOnDisk
    from loadstone.hosts.hosts_file import read_hosts
    from loadstone.hosts.work import HostWork
    from loadstone.path.spec import Spec
    from loadstone.study.rerun import forget_identities

    record = HostsRecord.model_validate_json((path / HOSTS).read_bytes())
    word = run_options.hosts
    if word is None:
        raise RefusedError(
            say("hosts.again.no_hosts", names=", ".join(part.name for part in record.hosts)),
            where=Where(str(path)),
            hint=say("hosts.again.no_hosts_hint"),
        )
    if run_options.divide:
        raise InputError(
            say("hosts.again.divided"), where=Where(COMMAND_LINE, option="--divide"), hint="leave it out"
        )
    named = read_hosts(word)
    gone = [part.name for part in record.hosts if part.bundle is None]
    if gone:
        raise RefusedError(say("hosts.again.no_plan", names=", ".join(gone)), where=Where(str(path)))
    if set(named.names) != {part.name for part in record.hosts}:
        raise RefusedError(
            say(
                "hosts.again.others",
                there=", ".join(part.name for part in record.hosts),
                here=", ".join(named.names),
            ),
            where=Where(COMMAND_LINE, option="--hosts"),
            hint=say("hosts.again.others_hint"),
        )
    inputs = {**old.inputs, **_file_of(word)}
    texts = {name: base64.b64encode(content).decode() for name, content in inputs.items()}
    request = {**request, "options": request["options"] | _options_of(run_options)}
    found = {}
    for part in record.hosts:
        mine = BundleOnDisk.open(path / str(part.bundle), unverified=True)
        found[part.name] = HostWork(
            workload=mine.workload,
            plan=forget_identities(mine.plan),
            inputs=texts,
            request=request,
            calibration=run_options.calibration,
        )
    sheet = old.environment.get("spec")
    asked = RunRequest(
        request=request,
        inputs=inputs,
        workload_json=old.workload.model_dump_json(),
        notes=list(old.notes),
        spec=None if sheet is None else Spec.model_validate(sheet),
        watch=run_options.watched(),
    )
    return run_and_tell(found, named, asked, "rerun", run_options)


def run_and_tell(
    works_of_hosts: Mapping[str, HostWork],
    named: HostsFile,
    asked: RunRequest,
    name: str,
    run_options: RunOptions,
    *,
    probe_s: float | None = None,
) -> int:
    """Do a run on hosts, print its result and return the exit code."""
    from loadstone.api.probed import ProbedFigures
    from loadstone.api.results import Result
    from loadstone.audit.run import SealedFigures
    from loadstone.cli.display import run_summary
    from loadstone.cli.running.consent import consent
    from loadstone.hosts.coordinator import HostsRequest, run_on_hosts
    from loadstone.hosts.greeting import new_number
    from loadstone.hosts.kept_agents import KeptAgents
    from loadstone.hosts.probing import on_hosts

    def display() -> Progress | None:
        return run_summary.live(wanted=run_options.progress)

    request = HostsRequest(
        asked=asked,
        out_dir=run_options.directory(name),
        consent=consent(run_options.i_accept_data_loss),
        progress=display(),
        divide=run_options.divide,
        say=console.say,
        holder=new_number(),
    )
    with KeptAgents(named) as agents:
        figures = (
            SealedFigures()
            if probe_s is None
            else ProbedFigures(probe_s, on_hosts(named, agents, request, display), console.say)
        )
        outcome = run_on_hosts(works_of_hosts, named, agents.link, request, result=figures.document)
    result = Result(outcome.bundle_path, outcome, figures)
    return run_summary.tell(result, run_options, require_valid=run_options.require_valid)


def works(
    asked_for: Workload,
    changes: JobChanges,
    named: HostsFile,
    request: dict[str, Any],
    inputs: dict[str, bytes],
    *,
    rate: TotalRate | None,
    calibration: bool,
) -> dict[str, HostWork]:
    """Return what each host is asked to do: the same or its part, with random addresses of its own."""
    from loadstone.hosts.work import HostRate, HostWork
    from loadstone.study.random_seeds import own_sequence

    if any(
        job.process.exec_prerun is not None or job.process.exec_postrun is not None for job in asked_for.jobs
    ):
        raise RefusedError(say("hosts.command.commands"), hint=say("hosts.command.commands_hint"))
    texts = {name: base64.b64encode(content).decode() for name, content in inputs.items()}
    called = {one.name: tuple(dict.fromkeys((one.name, one.reached_by))) for one in named.host}
    of_hosts = spread(asked_for, called, Where(COMMAND_LINE, option="--hosts"))
    return {
        name: HostWork(
            workload=own_sequence(of_hosts[name], number),
            rate=None if rate is None else HostRate.of(rate, 1 / len(named.host)),
            keep_ioengine=changes.keep_ioengine,
            journal=changes.journal,
            inputs=texts,
            request=request,
            calibration=calibration,
        )
        for number, name in enumerate(named.names, start=1)
    }
