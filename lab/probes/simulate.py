"""Runs a situation in the engine's simulated backend, judges it, probes it, and judges it again.

Time is virtual: a situation of half a minute takes a moment. The Plans, the choice of probes, the readings
and the verdicts are those of `loadstone run --probe`; the probes themselves leave no bundles, to be fast.
"""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from lab.probes import watched
from lab.probes.draw import KINDS, drawn, healthy
from lab.probes.situation import Healthy, Situation, device, workload_of

from loadstone.analysis.summary import summarise
from loadstone.audit.from_bundle import cases
from loadstone.audit.judge import judge_case
from loadstone.audit.rules import RULES
from loadstone.engine.binary import find
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.model import BackendSim, Plan
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.probe import contents, probe_session
from loadstone.probe.after_run import base_from
from loadstone.probe.figures import COLUMNS, Figures, issuing_ns, of_stage

if TYPE_CHECKING:
    from lab.probes.kind import SituationKind

    from loadstone.audit.case import Case
    from loadstone.audit.rule import Rule
    from loadstone.explanations.readings import Probed, Tried
    from loadstone.probe.base import Base
    from loadstone.verdict import Verdict

BUDGET_S: Final = 20.0
OVERHEAD_S: Final = 0.5
GARBAGE: Final = 0.1
"""Of the arrays that answer for what was never written, without zeros."""
FILLED_WITH_ZEROS: Final = 0.05
"""Of the devices that somebody wrote zeros to."""


@dataclass(frozen=True)
class StagedSituation:
    """A situation that was run: what the audit sees of it, and what probes measured."""

    situation: Situation
    kind: SituationKind
    change: float
    """Logarithm of the rate, against that of the same device and job without the cause."""
    case: Case
    base: Base
    rules: tuple[Rule, ...]
    """Each with the answer that it gave of the case."""
    probed: Probed | None = None
    probed_without: Probed | None = None
    """Of a lie in the device: what is tried where its explanation is not in the list."""


def plan_of(situation: Situation, state: str | None, interval_ns: int | None = None) -> Plan:
    """Return the Plan of the run; its samples are as long as the product chooses, or this long."""
    host = HostFacts.here()
    one = replace(host, cpus=host.cpus[:1])
    resolved = resolve(workload_of(situation), host=one, options=ResolveOptions(interval_ns=interval_ns)).plan
    backend = BackendSim(device=device(situation, state))
    return resolved.model_copy(
        update={
            "workers": tuple(worker.model_copy(update={"backend": backend}) for worker in resolved.workers),
            "targets": tuple(
                target.model_copy(update={"size_bytes": situation.size_bytes}) for target in resolved.targets
            ),
        }
    )


def engine(plan: Plan, directory: Path) -> list[dict[str, Any]]:
    """Run a Plan in a directory, where its samples are then, and return its events."""
    file = directory / "plan.json"
    file.write_text(plan.model_dump_json())
    words = [str(find()), "run", str(file), "--out", str(directory)]
    with Popen(words, stdin=PIPE, stdout=PIPE, stderr=STDOUT) as process:
        # Its standard input stays open: the end of that would be an order to stop.
        lines = process.stdout.read() if process.stdout else b""
    # Virtual time has hundreds of ticks, and nobody looks at one.
    events = [json.loads(line) for line in lines.splitlines() if b'"type":"tick"' not in line]
    if any(event.get("type") == "fatal" for event in events):
        raise RuntimeError(f"the engine: {events}")
    if not (directory / "samples.arrows").exists():
        raise RuntimeError("the engine left no samples")
    return events


def run(plan: Plan) -> pl.DataFrame:
    """Run a Plan and return its samples."""
    with tempfile.TemporaryDirectory(prefix="probes-lab-") as place:
        engine(plan, Path(place))
        return pl.read_ipc_stream(Path(place) / "samples.arrows", columns=list(COLUMNS)).select(COLUMNS)


def figures(plan: Plan) -> Figures:
    """Run a Plan of one stage and add it up."""
    measured = of_stage(run(plan), 0, issuing_ns(plan, 0))
    if measured is None:
        raise RuntimeError("nothing was measured")
    return measured


def attempt(name: str, seed: int, *, probing: bool = True, keep: Path | None = None) -> StagedSituation:
    """Draw a situation, run it, and probe it. `keep`: where its bundle stays, to be judged again."""
    kind = KINDS[name]
    with tempfile.TemporaryDirectory(prefix="probes-lab-") as place:
        before = figures(plan_of(healthy(kind, seed), None))
        situation = drawn(kind, seed, Healthy(before.rate, before.bytes_per_s))
        state = f"{place}/state"
        fine = plan_of(situation, state, watched.FINE_NS)
        plan = plan_of(situation, state)
        for _ in range(situation.warm_runs):
            run(plan)
        remembered = _remembered(Path(state))
        # The same run twice: once as the product samples it, once closely, from the same state.
        close = run(fine)
        _restore(Path(state), remembered)
        directory = Path(place) / "engine"
        directory.mkdir()
        events = engine(plan, directory)
        opened = watched.bundle(
            situation, plan, directory, [*events, *watched.fine(close)], keep or Path(place) / "bundle"
        )
        made_of = summarise(opened)
        (case,) = cases(made_of)
        base = base_from(made_of.measurement, BUDGET_S)
        if base is None:
            raise RuntimeError("nothing was measured")
        base = replace(base, plan=plan)
        change = watched.log_ratio(base.main.rate, before.rate)
        staged = StagedSituation(situation, kind, change, case, base, answered(case))
        if not probing:
            return staged
        after = _remembered(Path(state))
        plain = judge_case(case, staged.rules)
        known_contents = contents_of(situation)
        staged = replace(staged, probed=_probed(base, plain, known_contents))
        if kind.honest or not kind.in_device:
            return staged
        _restore(Path(state), after)
        return replace(staged, probed_without=_probed(base, plain, known_contents, frozenset(kind.truth)))


def _remembered(state: Path) -> dict[Path, bytes]:
    """Return what the device remembers: the engine keeps a file for each of its targets."""
    return {file: file.read_bytes() for file in state.parent.glob(f"{state.name}.*")}


def _restore(state: Path, kept: dict[Path, bytes]) -> None:
    """Give the device back what it remembered."""
    for file in _remembered(state).keys() - kept.keys():
        file.unlink()
    for file, content in kept.items():
        file.write_bytes(content)


def answered(case: Case) -> tuple[Rule, ...]:
    """Return the rules with their answers: what is said with and without one is weighed several times."""
    return tuple(_answered(rule, case) for rule in RULES)


def _answered(rule: Rule, case: Case) -> Rule:
    answer = rule.judge(case) if rule.looks_at(case) else None
    return rule if answer is None else replace(rule, judge=lambda _: answer)


def contents_of(situation: Situation) -> Tried:
    """Return what blocks of the device hold: zeros where nothing was written, and now and then elsewhere."""
    chance = random.Random(f"contents {situation.kind} {situation.seed}")
    share = 0.0
    if situation.parts.get("unwritten_ns"):
        used = situation.used_bytes or situation.size_bytes
        share = max(0.0, 1 - int(str(situation.parts.get("written_bytes", 0))) / used)
        # Some arrays answer with whatever lay there.
        share *= chance.random() > GARBAGE
    if not share:
        share = float(chance.random() < FILLED_WITH_ZEROS)
    zeros = sum(chance.random() < share for _ in range(contents.BLOCKS))
    return contents.tried(zeros, contents.BLOCKS, 0.05)


def _probed(base: Base, verdict: Verdict, seen: Tried, without: frozenset[str] = frozenset()) -> Probed:
    """Probe as the product does after a run with this verdict."""
    findings = probe_session.RuleFindings(
        {cause.rule: cause.confidence for cause in verdict.causes if cause.effect != "note"}, verdict.checked
    )
    spent = [0.0]

    def probe(offer: probe_session.Offer, number: int) -> probe_session.Ran:
        plan = offer.plan
        stages = {worker.stage for worker in plan.workers}
        whole = sum(
            max(
                (stream.limits.ramp_ns + stream.limits.runtime_ns)
                for stream in plan.streams
                if plan.workers[stream.worker].stage == stage
            )
            for stage in stages
        )
        spent[0] += whole / 1e9 + OVERHEAD_S
        return probe_session.Ran(run(plan), f"probes/{number:03d}", complete=True)

    return probe_session.probe(
        base,
        probe,
        findings,
        clock=lambda: spent[0],
        overhead_s=OVERHEAD_S,
        without=without,
        look=lambda base: seen if base.facts.reads and not base.facts.repeats_payload else None,
    )
