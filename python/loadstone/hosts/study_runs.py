"""The runs of a study made on hosts: each of them is a run on all hosts at once.

Knows what is looked at on every host before the first run, and that a host is held for the whole
study. What each host is asked to do comes from the caller (`works`).
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from loadstone.bundle.experiment import ExperimentTarget
from loadstone.errors import InputError, LoadstoneError, RefusedError, RunError
from loadstone.experiment.claims import stored
from loadstone.hosts.agreement import agree
from loadstone.hosts.asked_host import AskedHost, at_once
from loadstone.hosts.assignment import SeenTarget
from loadstone.hosts.coordinator import HostsRequest, run_on_hosts
from loadstone.hosts.greeting import greeting, new_number
from loadstone.hosts.host_state import indented
from loadstone.hosts.kept_agents import KeptAgents
from loadstone.messages import say
from loadstone.plan import tree_jobs
from loadstone.plan.derived import changes_trees
from loadstone.plan.model import Plan
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from loadstone.hosts.assignment import HostWork
    from loadstone.hosts.hosts_file import HostsFile
    from loadstone.plan.safety.guard import Consent
    from loadstone.session import Outcome
    from loadstone.study.controller import Next
    from loadstone.study.run_maker import StudyStep
    from loadstone.study.time_estimate import TimeEstimate

CHECK_S = 300.0
"""How long a host may take to look at the targets of one run."""


@dataclass(slots=True)
class _Looked:
    """What one host saw before the first run."""

    seen: dict[str, SeenTarget] = field(default_factory=dict)
    durations: dict[str, int | None] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    error: LoadstoneError | None = None

    def add(self, targets: Sequence[Mapping[str, Any]]) -> None:
        """Take in what the host says of the targets of a run."""
        for one in targets:
            target = SeenTarget.model_validate(one)
            before = self.seen.get(target.path)
            # What one host alone writes in a run is held against the others when that run begins.
            if before is None or (target.written, target.is_part) > (before.written, before.is_part):
                self.seen[target.path] = target


@dataclass(slots=True)
class RunsOnHosts:
    """A `RunMaker` whose runs go to hosts."""

    hosts: HostsFile
    works: Callable[[Next], Mapping[str, HostWork]]
    """What each host is asked to do in a run."""
    divide: bool = False
    say: Callable[[str], None] = lambda _: None
    check_plan: Callable[[Plan, Next], None] = lambda _, __: None
    """Raises for a Plan of a host that the study cannot use."""
    own_parts: frozenset[tuple[str, str]] = frozenset()
    """Host and path of targets that were divided when the Plans were made, in a study before."""
    holder: str = field(default_factory=new_number)
    agents: KeptAgents = field(init=False)
    _stored: dict[str, list[str]] = field(default_factory=dict)
    """By host, what the runs that were checked read and write there."""

    def __post_init__(self) -> None:
        self.agents = KeptAgents(self.hosts)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep an agent on every host, so that it is free for nobody else between two runs."""
        with self.agents:
            yield

    def check(self, known: Sequence[Next], consent: Consent, clock: TimeEstimate) -> None:
        """Let every host look at the targets of every run that is certain to come."""
        works = [(wanted, self.works(wanted)) for wanted in known]
        names = list(dict.fromkeys(name for _, each in works for name in each))
        looked = {name: _Looked() for name in names}
        asked_hosts = {name: AskedHost(name, self.agents.link) for name in names}
        at_once(
            [
                partial(
                    self._look,
                    asked_hosts[name],
                    [(one, each[name]) for one, each in works if name in each],
                    looked[name],
                )
                for name in names
            ]
        )
        self._refuse({name: one.error for name, one in looked.items() if one.error is not None})
        self._stored = {name: stored([*one.plans.values()]) for name, one in looked.items()}
        for wanted in known:
            for one in looked.values():
                if wanted.name in one.plans:
                    self.check_plan(one.plans[wanted.name], wanted)
            lengths = [one.durations.get(wanted.name) for one in looked.values()]
            whole = [length for length in lengths if length is not None]
            clock.planned(wanted, max(whole) if whole and len(whole) == len(lengths) else None)
        targets_by_host = {name: list(one.seen.values()) for name, one in looked.items()}
        agreement = agree(
            targets_by_host,
            consent,
            divide=self.divide,
            declared=self.hosts.shared,
            own_parts=self.own_parts,
        )
        if self.divide and not agreement.divisions:
            raise InputError(say("hosts.divide.nothing"), hint=say("hosts.divide.nothing_hint"))

    @property
    def names(self) -> Sequence[str]:
        """The hosts, as the list has them."""
        return self.hosts.names

    def targets(self) -> tuple[ExperimentTarget, ...]:
        """Let each host look at what the checked runs use there. Raises `LoadstoneError`."""
        if self.agents.is_broken:
            raise RunError(say("hosts.ended.look"))
        records: dict[str, list[ExperimentTarget]] = {}
        wrong: dict[str, LoadstoneError] = {}

        def look(name: str, paths: Sequence[str]) -> None:
            host = AskedHost(name, self.agents.link)
            try:
                with self._visit(host):
                    host.link.tell({"do": "record", "paths": list(paths)})
                    answer = host.answer("recorded", CHECK_S)
                every = [ExperimentTarget.model_validate_json(json.dumps(one)) for one in answer["targets"]]
                records[name] = [one.model_copy(update={"host": name}) for one in every]
            except LoadstoneError as error:
                wrong[name] = error

        at_once([partial(look, name, paths) for name, paths in self._stored.items() if paths])
        self._refuse(wrong)
        return tuple(one for name in self._stored for one in records.get(name, ()))

    def make(self, step: StudyStep, clock: TimeEstimate) -> Outcome:
        """Do one run on all hosts."""
        _ = clock
        progress = step.begin()
        return run_on_hosts(
            self.works(step.wanted),
            self.hosts,
            self.agents.link,
            HostsRequest(
                asked=step.asked,
                out_dir=step.out_dir,
                consent=step.consent,
                progress=progress,
                divide=self.divide,
                say=self.say,
                holder=self.holder,
                lost_before=self.agents.renew(),
                consent_is_checked=True,
                own_parts=self.own_parts,
            ),
            result=step.figures.document,
        )

    def _look(self, host: AskedHost, works: Sequence[tuple[Next, HostWork]], looked: _Looked) -> None:
        try:
            with self._visit(host):
                self._look_at_all(host, works, looked)
        except LoadstoneError as error:
            looked.error = error

    @contextlib.contextmanager
    def _visit(self, host: AskedHost) -> Iterator[None]:
        """Have an agent that answers and is of this version, outside of a run."""
        try:
            host.link.open()
            host.answer("up", self.hosts.run.connect_s)
            host.link.tell(greeting(self.hosts, host.name, run=self.holder, holder=self.holder))
            hello = host.answer("hello", self.hosts.run.connect_s)
            if hello["version"] != __version__:
                reason = say("hosts.version.refusal", there=str(hello["version"]), here=__version__)
                raise RunError(reason, hint=say("hosts.version.hint"))
            yield
        finally:
            host.link.tell({"do": "leave"})
            host.link.close()

    def _look_at_all(self, host: AskedHost, works: Sequence[tuple[Next, HostWork]], looked: _Looked) -> None:
        prepared = False
        for wanted, work in works:
            try:
                checked = _checked(host, work)
            except RefusedError as error:
                # What an earlier run makes is not there yet.
                if prepared:
                    looked.add(_trees_changed(host, work))
                    continue
                name = f"run {wanted.name}: " if len(works) > 1 else ""
                raise RefusedError(f"{name}{error.message}", hint=error.hint) from error
            plan = Plan.model_validate_json(checked["plan"])
            prepared = prepared or wanted.role == "prepare" or changes_trees(plan)
            looked.plans[wanted.name] = plan
            looked.durations[wanted.name] = checked.get("duration_ns")
            looked.add(checked["targets"])

    def _refuse(self, wrong: Mapping[str, LoadstoneError]) -> None:
        if not wrong:
            return
        first = say("hosts.not_begun.hosts", failed=len(wrong), hosts=len(self.names))
        lines = [indented(f"{name}: {error.message}") for name, error in wrong.items()]
        hints = [error.hint for error in wrong.values() if error.hint] or [say("hosts.ended.look")]
        usage = all(isinstance(error, RefusedError) for error in wrong.values())
        kind = RefusedError if usage else RunError
        raise kind("\n  ".join([first, *lines]), hint="; ".join(dict.fromkeys(hints)) or None)


def _checked(host: AskedHost, work: HostWork) -> dict[str, Any]:
    host.link.tell({"do": "check", "work": work.model_dump(mode="json")})
    checked: dict[str, Any] = host.answer("checked", CHECK_S)
    return checked


def _trees_changed(host: AskedHost, work: HostWork) -> list[dict[str, Any]]:
    """Return what a host says of the trees that a run changes, where it cannot be resolved yet."""
    changed = tree_jobs.only_making_directories(work.workload)
    if changed is None:
        return []
    try:
        targets: list[dict[str, Any]] = _checked(host, work.model_copy(update={"workload": changed}))[
            "targets"
        ]
    except RefusedError:
        return []
    return targets
