"""Runs a situation in the engine's simulated backend, probes it, and keeps what was said.

Time is virtual: a situation of half a minute takes a moment. Bundles are left out to be fast; the Plans,
the choice and the readings are those of `loadstone run --probe`.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl
from lab.probes.draw import MAIN_S, Healthy, Situation, device, drawn, healthy

from loadstone.engine.process import EngineProcess
from loadstone.explanations.weigh import weigh
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.plan.host import HostFacts
from loadstone.plan.model import BackendSim, Plan
from loadstone.plan.resolve import ResolveOptions, resolve
from loadstone.probe import session
from loadstone.probe.base import Base
from loadstone.probe.figures import COLUMNS, Figures, of_stage

if TYPE_CHECKING:
    from loadstone.explanations.readings import Probed
    from loadstone.probe.probe import Probe

BUDGET_S: Final = 20.0
OVERHEAD_S: Final = 0.5
CLEAR: Final = ("generator_cpu", "governor")
"""The generator of a virtual clock is never the limit, and its rules would say so."""


@dataclass(frozen=True)
class Tried:
    """A situation and what was said of it."""

    situation: Situation
    base: Base
    probed: Probed
    chances: dict[str, float]

    def without(self, names: frozenset[str]) -> dict[str, float]:
        """Return what would be said if these explanations were not in the list."""
        told = weigh(self.base.facts, self.probed, checked=CLEAR, without=names)
        return {one.explanation.name: one.probability for one in told}


def plan_of(situation: Situation, state: str | None) -> Plan:
    """Return the Plan of the run."""
    options = {**situation.options, "time_based": 1, "runtime": f"{MAIN_S}s", "direct": 1}
    size = situation.used_bytes or situation.size_bytes - 65536
    lines = ["[global]", "ioengine=null", f"size={size}"]
    lines += [f"{name}={value}" for name, value in options.items() if name != "direct"]
    names = [f"[job{number}]" for number in range(situation.targets)]
    text = "\n".join([*lines, *names]) + "\n"
    workload = read_jobfiles([TextSource(text.encode(), name="sim.fio")])
    here = HostFacts.here()
    one = replace(here, cpus=here.cpus[:1])
    made = resolve(workload, host=one, options=ResolveOptions(interval_ns=50_000_000)).plan
    backend = BackendSim(device=device(situation, state))
    return made.model_copy(
        update={
            "workers": tuple(worker.model_copy(update={"backend": backend}) for worker in made.workers),
            "targets": tuple(
                target.model_copy(update={"size_bytes": situation.size_bytes}) for target in made.targets
            ),
        }
    )


def run(plan: Plan) -> pl.DataFrame:
    """Run a Plan and return its samples."""
    with tempfile.TemporaryDirectory(prefix="probes-lab-") as place:
        directory = Path(place)
        file = directory / "plan.json"
        file.write_text(plan.model_dump_json())
        fatal = None
        with EngineProcess(file, directory) as engine:
            for event in engine.events(60.0):
                if event is not None and event.get("type") in {"fatal", "talk"}:
                    fatal = event
        samples = directory / "samples.arrows"
        if fatal is not None or not samples.exists():
            raise RuntimeError(f"the engine: {fatal}")
        return pl.read_ipc_stream(samples, columns=list(COLUMNS)).select(COLUMNS)


def figures(plan: Plan) -> Figures:
    """Run a Plan of one stage and add it up."""
    found = of_stage(run(plan), 0)
    if found is None:
        raise RuntimeError("nothing was measured")
    return found


def attempt(kind: str, seed: int) -> Tried:
    """Draw a situation, run it, probe it."""
    with tempfile.TemporaryDirectory(prefix="probes-lab-") as place:
        before = figures(plan_of(healthy(kind, seed), None))
        situation = drawn(kind, seed, Healthy(before.rate, before.bytes_per_s))
        plan = plan_of(situation, f"{place}/state")
        for _ in range(situation.warm_runs):
            run(plan)
        base = Base(plan, 0, figures(plan), BUDGET_S)
        spent = [0.0]

        def probe(plan: Plan, probe: Probe, number: int) -> session.Ran:
            del probe
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
            return session.Ran(run(plan), f"probes/{number:03d}", complete=True)

        none = session.RuleFindings({}, CLEAR)
        probed = session.probe(base, probe, none, clock=lambda: spent[0], overhead_s=OVERHEAD_S)
        told = weigh(base.facts, probed, checked=CLEAR)
        return Tried(situation, base, probed, {one.explanation.name: one.probability for one in told})
