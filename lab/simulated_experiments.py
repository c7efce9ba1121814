# ruff: noqa: E501 - a page of text
"""Experiments with planted effects whose runs go through the engine, on a simulated device.

Draws an experiment's file and what each run's device is like: exponential service times (so latencies
are skewed), an effect and an interaction of known size, and errors of a kind from run to run. The order
and the blocks are those of the file, the figures those of a bundle, the analysis that of `loadstone
experiment report`. The clock is virtual, and the runs of an experiment are jobs of one Plan, each with a
device and a clock of its own, so that an experiment takes half a second.

    python -m lab.simulated_experiments --studies 400 --seed 11 > docs/experiment-simulated.md
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from lab import experiments
from loadstone.analysis.study.run_figures import RunFigures
from loadstone.analysis.study.run_figures import run as figures_of
from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle
from loadstone.bundle.study import Point
from loadstone.experiment import observe
from loadstone.experiment.prepared import ReadOptionsOfExperiment, prepare
from loadstone.plan.model import BackendSim, SimDevice
from loadstone.plan.resolve import ResolveOptions, resolve
from loadstone.session import RunRequest, run_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.experiments import PlantedStudy, StudyOutcome

    from loadstone.experiment.prepared import PreparedExperiment

KINDS: Final = ("skewed latencies", "skewed runs", "drift", "outlier", "all of these", "unequal noise")
ERRORS: Final = {"skewed latencies": "normal", "skewed runs": "skewed"}
"""Errors from run to run of a kind, where they are called otherwise."""
METRICS: Final = ("iops", "lat_mean_ns", "lat_p99_ns")
SERVICE_NS: Final = 400_000
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


def simulate(kind: str, seed: int) -> PlantedStudy:
    """Draw an experiment and run it on the simulated device."""
    chance = np.random.default_rng([seed, KINDS.index(kind)])
    counts = [2 if chance.random() < 0.6 else 3, 2]
    repeats = int(chance.choice([3, 4, 5, 8]))
    noise = float(chance.choice([0.005, 0.01, 0.02, 0.04]))
    effect = math.log1p(float(chance.choice(experiments.EFFECTS)))
    interaction = math.log1p(float(chance.choice(experiments.INTERACTIONS)))
    with tempfile.TemporaryDirectory(prefix="loadstone-planted-") as folder:
        path = Path(folder) / "planted.toml"
        path.write_text(_file(seed, repeats, counts))
        prepared = prepare(path, ReadOptionsOfExperiment(allow_exec=True))
        runs = prepared.document.runs
        first = np.array([int(run.levels[experiments.PLANTED]) - 1 for run in runs])
        second = np.array([int(run.levels["b"]) - 1 for run in runs])
        blocks = np.array([run.block for run in runs])
        off = experiments.errors(ERRORS.get(kind, kind), chance, first, blocks, noise)
        logs = effect * (first == 1) + interaction * ((first == 1) & (second == 1)) + off
        services = [round(SERVICE_NS * math.exp(log)) for log in logs]
        figures = measure(prepared, services, seed, Path(folder) / "bundle")
    document = prepared.document.model_copy(
        update={
            "runs": tuple(
                run.model_copy(
                    update={"started": (BEGAN + timedelta(seconds=at * experiments.RUN_S)).isoformat()}
                )
                for at, run in enumerate(runs)
            )
        }
    )
    table = observe.table(document, figures)
    return experiments.PlantedStudy(table, effect, interaction, repeats, noise)


def _file(seed: int, repeats: int, counts: Sequence[int]) -> str:
    text = FILE.format(seed=seed, repeats=repeats, metrics=json.dumps(METRICS), servers=SERVERS)
    for name, count in zip((experiments.PLANTED, "b"), counts, strict=True):
        levels = ", ".join(f'{{ name = "{at + 1}", do = "true", undo = "true" }}' for at in range(count))
        text += FACTOR.format(name=name, levels=levels)
    return text


def measure(
    prepared: PreparedExperiment, services_ns: Sequence[int], seed: int, bundle: Path
) -> list[RunFigures]:
    """Run an experiment's runs as jobs of one Plan, each on a device of its own; return their figures."""
    nexts = prepared.nexts
    jobs = tuple(job.model_copy(update={"name": one.name}) for one in nexts for job in one.workload.jobs)
    workload = nexts[0].workload.model_copy(update={"jobs": jobs})
    plan = resolve(workload, options=ResolveOptions()).plan
    workers = tuple(
        plan.workers[0].model_copy(update={"backend": BackendSim(device=device(service_ns, seed, at))})
        for at, service_ns in enumerate(services_ns)
    )
    streams = tuple(stream.model_copy(update={"worker": at}) for at, stream in enumerate(plan.streams))
    asked = RunRequest(
        request={"argv": [], "cwd": "/", "front_end": "run", "options": {}},
        inputs={},
        workload_json=workload.model_dump_json(),
        notes=[],
    )
    changed = plan.model_copy(update={"workers": workers, "streams": streams})
    outcome = run_plan(changed, asked=asked, out_dir=bundle, calibration=False)
    assert outcome.error is None, outcome.error
    summary = summarise(Bundle.open(outcome.bundle_path))
    lines = {line.job: line for line in figures_of(Point(name="planted"), summary).lines}
    return [
        RunFigures(
            Point(name=one.name, factors=one.factors, status="complete"), lines[one.name], (lines[one.name],)
        )
        for one in nexts
    ]


def device(service_ns: int, seed: int, number: int) -> SimDevice:
    """Return the device of a run."""
    fields = {
        "seed": seed * 1000 + number, "servers": SERVERS, "read_ns": service_ns, "write_ns": service_ns,
        "service": "exponential", "stall_every_ns": 0, "stall_ns": 0, "error_ppm": 0, "short_ppm": 0,
        "hang_ppm": 0, "faults": None, "behaviour": None,
    }  # fmt: skip
    return SimDevice.model_validate_json(json.dumps(fields))


def judge(kind: str, seed: int) -> StudyOutcome:
    """Simulate an experiment, analyse it, and hold what was said against what was planted."""
    return experiments.outcome(kind, simulate(kind, seed), seed, METRICS)


def _powers(found: Sequence[StudyOutcome]) -> list[str]:
    """Compare the stated chance with what was found, by what was planted and not by what was stated."""
    made = []
    for effect in sorted({one.effect for one in found} - {0.0}):
        for low, high, name in ((0.0, 0.015, "0.5 to 1 %"), (0.015, 1.0, "2 to 4 %")):
            mine = [
                one
                for one in found
                if one.effect == effect and one.interaction == 0 and low < one.noise <= high
            ]
            if mine:
                stated = float(np.mean([one.stated for one in mine]))
                cells = (f"{100 * math.expm1(effect):.0f} %", name, str(len(mine)), f"{100 * stated:.1f} %")
                made.append(
                    f"| {' | '.join(cells)} | {experiments.share(sum(one.found for one in mine), len(mine))} |"
                )
    every = [one for one in found if one.effect > 0 and one.interaction == 0]
    if every:
        stated = 100 * float(np.mean([one.stated for one in every]))
        made.append(
            f"| any | any | {len(every)} | {stated:.1f} % | {experiments.share(sum(one.found for one in every), len(every))} |"
        )
    return made


def _interactions(found: Sequence[StudyOutcome]) -> list[str]:
    made = []
    for size in sorted({one.interaction for one in found}):
        for low, high, name in ((0.0, 0.015, "0.5 to 1 %"), (0.015, 1.0, "2 to 4 %")):
            mine = [one for one in found if one.interaction == size and low < one.noise <= high]
            made.append(
                f"| {100 * math.expm1(size):.0f} % | {name} | {experiments.share(sum(one.interaction_found for one in mine), len(mine))} |"
            )
    return made


def page(found: Sequence[StudyOutcome], command: str) -> str:
    """Return the page."""
    return "\n".join(
        [
            "# Planted effects, measured by the engine",
            "",
            f"`{command}` ran {len(found)} experiments through the engine's simulated device and analysed each as `loadstone "
            "experiment report` does: a file with two factors of two or three levels, three to eight repeats in the order that "
            "the file draws, 2 s of virtual time for each run, exponential service times (latencies are skewed in every kind), "
            "0.5 to 4 % from run to run. An effect of 0 to 20 % and, in half of them, an interaction are planted in the service "
            "time of the device. Figures are IOPS, mean latency and p99, from the bundle. ± is the binomial standard error.",
            "",
            *experiments.HEAD,
            *experiments.lines(found, KINDS),
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
            *_interactions(found),
            "",
            "## The chance to find an effect, as stated and as it was",
            "",
            "Experiments without an interaction, by what was planted:",
            "",
            "| effect | from run to run | studies | stated on average | found |",
            "|---:|---:|---:|---:|---:|",
            *_powers(found),
            "",
            "The stated chance holds for the strictest step of Holm's correction; the step that an effect meets may be easier.",
            "",
        ]
    )


def main() -> int:
    """Print the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--kinds", default=",".join(KINDS), help="names with commas between them")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    options = parser.parse_args()
    asked = [
        (kind, options.seed * 1_000_000 + at)
        for kind in options.kinds.split(",")
        for at in range(options.studies)
    ]
    with (
        multiprocessing.get_context("spawn").Pool(options.jobs) as pool,
        contextlib.redirect_stdout(sys.stderr),
    ):
        found = pool.starmap(judge, asked, chunksize=10)
    sys.stdout.write(
        page(found, f"python -m lab.simulated_experiments --studies {options.studies} --seed {options.seed}")
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
