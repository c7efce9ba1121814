# ruff: noqa: E501 - a page of text
"""Experiments with planted effects whose runs go through the engine, on a simulated device.

Draws an experiment's file and what each run's device is like: exponential service times (so latencies
are skewed), an effect and an interaction of known size, and errors of a kind from run to run. The order
and the blocks are those of the file, the figures those of a bundle, the analysis that of `loadstone
experiment report`. The clock is virtual, and the runs of ten experiments are jobs of one Plan, each with
a device and a clock of its own, so that an experiment takes a part of a second.

    python -m lab.simulated_experiments --studies 400 --seed 11 --keep FILE > docs/experiment-simulated.md
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from lab.steady_device import steady_device

from lab import experiments
from loadstone.analysis.study.run_figures import RunFigures
from loadstone.analysis.study.run_figures import run as figures_of
from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle
from loadstone.bundle.study import Point
from loadstone.experiment import observe
from loadstone.experiment.prepared import ReadOptionsOfExperiment, prepare
from loadstone.plan.model import BackendSim, SimDevice
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.session import RunRequest, run_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.experiments import PlantedStudy, StudyFindings

    from loadstone.effects.observations import Observations
    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.study.controller import Next

KINDS: Final = ("skewed latencies", "skewed runs", "drift", "outlier", "all of these", "unequal noise")
ERRORS: Final = {"skewed latencies": "normal", "skewed runs": "skewed"}
"""Errors from run to run of a kind, where they are called otherwise."""
METRICS: Final = ("iops", "lat_mean_ns", "lat_p99_ns")
SERVICE_NS: Final = 800_000
TOGETHER: Final = 10
"""Experiments of one Plan."""
SERVERS: Final = 4
BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
FILE: Final = """title = "Planted"
seed = {seed}
repeats = {repeats}
runtime = "2s"
size = "1g"
metrics = {metrics}

[[patterns]]
name = "4k random read"
options = {{ ioengine = "null", rw = "randread", bs = "4k", iodepth = {servers} }}
"""
FACTOR: Final = """
[[factors]]
name = "{name}"
kind = "command"
levels = [{levels}]
"""


@dataclass(frozen=True)
class DrawnExperiment:
    """An experiment before its runs: what is planted, and how long its device takes in each."""

    prepared: PreparedExperiment
    services_ns: tuple[int, ...]
    seed: int
    effect: float
    interaction: float
    repeats: int
    noise: float


def draw(kind: str, seed: int, folder: Path) -> DrawnExperiment:
    """Draw an experiment's file, and what is planted."""
    chance = np.random.default_rng([seed, KINDS.index(kind)])
    counts = [2 if chance.random() < 0.6 else 3, 2]
    repeats = int(chance.choice([3, 4, 5, 8]))
    noise = float(chance.choice([0.005, 0.01, 0.02, 0.04]))
    effect = math.log1p(float(chance.choice(experiments.EFFECTS)))
    interaction = math.log1p(float(chance.choice(experiments.INTERACTIONS)))
    path = folder / f"{seed}.toml"
    path.write_text(_file(seed, repeats, counts))
    prepared = prepare(path, ReadOptionsOfExperiment(allow_exec=True))
    runs = prepared.document.runs
    first = np.array([int(run.levels[experiments.PLANTED]) - 1 for run in runs])
    second = np.array([int(run.levels["b"]) - 1 for run in runs])
    blocks = np.array([run.block for run in runs])
    off = experiments.errors(ERRORS.get(kind, kind), chance, first, blocks, noise)
    logs = effect * (first == 1) + interaction * ((first == 1) & (second == 1)) + off
    services = tuple(round(SERVICE_NS * math.exp(log)) for log in logs)
    return DrawnExperiment(prepared, services, seed, effect, interaction, repeats, noise)


def simulate(kind: str, seeds: Sequence[int]) -> list[PlantedStudy]:
    """Draw experiments and run them on simulated devices."""
    with tempfile.TemporaryDirectory(prefix="loadstone-planted-") as folder:
        drawn = [draw(kind, seed, Path(folder)) for seed in seeds]
        return [
            experiments.PlantedStudy(
                _table(one, figures), one.effect, one.interaction, one.repeats, one.noise
            )
            for one, figures in zip(drawn, measure(drawn, Path(folder) / "bundle"), strict=True)
        ]


def _table(drawn: DrawnExperiment, figures: list[RunFigures]) -> Observations:
    """Return what the report of an experiment would have read; its runs follow each other in time."""
    document = drawn.prepared.document
    begun = tuple(
        run.model_copy(update={"started": (BEGAN + timedelta(seconds=at * experiments.RUN_S)).isoformat()})
        for at, run in enumerate(document.runs)
    )
    return observe.table(document.model_copy(update={"runs": begun}), figures)


def _file(seed: int, repeats: int, counts: Sequence[int]) -> str:
    text = FILE.format(seed=seed, repeats=repeats, metrics=json.dumps(METRICS), servers=SERVERS)
    for name, count in zip((experiments.PLANTED, "b"), counts, strict=True):
        levels = ", ".join(f'{{ name = "{at + 1}", do = "true", undo = "true" }}' for at in range(count))
        text += FACTOR.format(name=name, levels=levels)
    return text


def measure(drawn: Sequence[DrawnExperiment], bundle: Path) -> list[list[RunFigures]]:
    """Run all runs as jobs of one Plan, each on a device of its own; return their figures by experiment."""
    runs = [(one, at, following) for one in drawn for at, following in enumerate(one.prepared.nexts)]
    jobs = tuple(
        job.model_copy(update={"name": _job_name(one, following)})
        for one, _, following in runs
        for job in following.workload.jobs
    )
    workload = runs[0][2].workload.model_copy(update={"jobs": jobs})
    plan = resolve(workload, options=ResolveOptions()).plan
    workers = tuple(
        plan.workers[0].model_copy(
            update={"backend": BackendSim(device=device(one.services_ns[at], one.seed, at))}
        )
        for one, at, _ in runs
    )
    streams = tuple(stream.model_copy(update={"worker": at}) for at, stream in enumerate(plan.streams))
    request = RunRequest(
        request={"argv": [], "cwd": "/", "front_end": "run", "options": {}},
        inputs={},
        workload_json=workload.model_dump_json(),
        notes=[],
    )
    changed = plan.model_copy(update={"workers": workers, "streams": streams})
    outcome = run_plan(changed, request=request, out_dir=bundle, calibration=False)
    assert outcome.error is None, outcome.error
    summary = summarise(Bundle.open(outcome.bundle_path))
    lines = {line.job: line for line in figures_of(Point(name="planted"), summary).lines}
    return [
        [
            RunFigures(Point(name=it.name, factors=it.factors, status="complete"), line, (line,))
            for it in one.prepared.nexts
            for line in [lines[_job_name(one, it)]]
        ]
        for one in drawn
    ]


def _job_name(one: DrawnExperiment, following: Next) -> str:
    return f"{one.seed} {following.name}"


def device(service_ns: int, seed: int, number: int) -> SimDevice:
    """Return the device of a run."""
    return steady_device(service_ns, seed=seed * 1000 + number, servers=SERVERS, service="exponential")


def judge(kind: str, seeds: Sequence[int]) -> list[StudyFindings]:
    """Simulate experiments, analyse each, and hold what was said against what was planted."""
    studies = simulate(kind, seeds)
    return [experiments.outcome(kind, one, seed, METRICS) for one, seed in zip(studies, seeds, strict=True)]


def _powers(studies: Sequence[StudyFindings]) -> list[str]:
    """Compare the stated chance with what was found, by what was planted and not by what was stated."""
    table_rows = []
    for effect in sorted({one.effect for one in studies} - {0.0}):
        for low, high, name in ((0.0, 0.015, "0.5 to 1 %"), (0.015, 1.0, "2 to 4 %")):
            group = [
                one
                for one in studies
                if one.effect == effect and one.interaction == 0 and low < one.noise <= high
            ]
            if group:
                stated = float(np.mean([one.stated or 0.0 for one in group]))
                cells = (f"{100 * math.expm1(effect):.0f} %", name, str(len(group)), f"{100 * stated:.1f} %")
                table_rows.append(
                    f"| {' | '.join(cells)} | {experiments.share(sum(one.found for one in group), len(group))} |"
                )
    every = [one for one in studies if one.effect > 0 and one.interaction == 0]
    if every:
        stated = 100 * float(np.mean([one.stated or 0.0 for one in every]))
        table_rows.append(
            f"| any | any | {len(every)} | {stated:.1f} % | {experiments.share(sum(one.found for one in every), len(every))} |"
        )
    return table_rows


def _interactions(studies: Sequence[StudyFindings]) -> list[str]:
    table_rows = []
    for size in sorted({one.interaction for one in studies}):
        for low, high, name in ((0.0, 0.015, "0.5 to 1 %"), (0.015, 1.0, "2 to 4 %")):
            group = [one for one in studies if one.interaction == size and low < one.noise <= high]
            table_rows.append(
                f"| {100 * math.expm1(size):.0f} % | {name} | {experiments.share(sum(one.interaction_found for one in group), len(group))} |"
            )
    return table_rows


def page(studies: Sequence[StudyFindings], command: str) -> str:
    """Return the page."""
    return "\n".join(
        [
            "# Planted effects, measured by the engine",
            "",
            f"`{command}` ran {len(studies)} experiments through the engine's simulated device and analysed each as `loadstone "
            "experiment report` does. Each file has two factors of two or three levels, and three to eight repeats in the order "
            "that it draws. A run takes 2 s of virtual time and varies by 0.5 to 4 % from run to run. Service times are "
            "exponential, so latencies are skewed in every kind. An effect of 0 to 20 % and, in half of them, an interaction are planted in the service "
            "time of the device. Figures are IOPS, mean latency and p99, from the bundle. ± is the binomial standard error; that of a study's several effects is between studies.",
            "",
            *experiments.HEAD,
            *experiments.lines(studies, KINDS),
            "",
            "*Skewed latencies*: nothing else. *Skewed runs*: an exponential error from run to run. *Drift*: 5 to 30 % over the "
            "study, either way. *Outlier*: one run off by 30 to 170 %. *All of these*: skewed runs with drift and an outlier. "
            "*Unequal noise*: the first level is five times as even as the others. *Planted effect* is that of IOPS; *all "
            "other effects* are those of the three figures, which are not independent of each other.",
            "",
            "## Planted interactions",
            "",
            "| size | from run to run | found |",
            "|---:|---:|---:|",
            *_interactions(studies),
            "",
            "## The chance to find an effect, as stated and as it was",
            "",
            "Experiments without an interaction, by what was planted:",
            "",
            "| effect | from run to run | studies | stated on average | found |",
            "|---:|---:|---:|---:|---:|",
            *_powers(studies),
            "",
            "The stated chance holds for the strictest step of Holm's correction; the step that an effect meets may be easier.",
            "",
            *experiments.interaction_power_section(studies),
        ]
    )


def main() -> int:
    """Print the page."""
    options = experiments.options_of(__doc__, KINDS).parse_args()
    seeds = range(options.seed * 1_000_000, options.seed * 1_000_000 + options.studies)
    drawn = experiments.DrawnStudies(judge, tuple(options.kinds.split(",")), seeds, TOGETHER)
    findings = drawn.outcomes(options.keep, options.jobs)
    command = f'python -m lab.simulated_experiments --studies {options.studies} --seed {options.seed} --kinds "{options.kinds}"'
    sys.stdout.write(page(findings, command))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
