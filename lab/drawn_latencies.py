# ruff: noqa: E501 - a page of text
"""Experiments whose runs are drawn I/O by I/O in this process: thousands of studies, without the engine.

Draws what `lab.simulated_experiments` draws and answers to: the file, the order, planted effects and the
errors from run to run. Each run is a number of I/Os in a closed loop, whose latencies are drawn from one of
several skewed distributions. IOPS, the mean and p99 come from them, p99 from buckets as an engine's. So it
is known by how much figures from few or heavy-tailed latencies lead the analysis astray.

    python -m lab.drawn_latencies --studies 1300 --seed 158000000 --kinds "skewed latencies" --keep FILE
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from lab import experiments, simulated_experiments
from loadstone.analysis.histogram import MIN_BEYOND, SUB_BITS
from loadstone.effects import runs_of, tests_together
from loadstone.effects.studied_metric import made_test, study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lab.experiments import PlantedStudy

STREAMS: Final = 4
"""I/Os in flight, as of the simulated device."""
KINDS: Final[dict[str, tuple[str, str, int]]] = {
    "skewed latencies": ("normal", "exponential", 10_000),
    "drift": ("drift", "exponential", 10_000),
    "outlier": ("outlier", "exponential", 10_000),
    "all of these": ("all of these", "exponential", 10_000),
    "few I/Os": ("normal", "exponential", 1_200),
    "lognormal": ("normal", "lognormal", 2_000),
    "rare stalls": ("normal", "stalls", 2_000),
    "heavy tails": ("normal", "pareto", 2_000),
}
"""Of each kind: the errors from run to run, the distribution of latencies, and the I/Os of a run."""

DISTRIBUTIONS: Final[dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]]] = {
    "exponential": lambda chance, shape: chance.exponential(1.0, shape),
    "lognormal": lambda chance, shape: chance.lognormal(-(1.2**2) / 2, 1.2, shape),
    "stalls": lambda chance, shape: (
        chance.exponential(0.9, shape) + (chance.random(shape) < 0.01) * chance.exponential(10.0, shape)
    ),
    "pareto": lambda chance, shape: 0.6 * (chance.pareto(2.5, shape) + 1.0),
}
"""Latencies whose mean is one."""
BASE_NS: Final = 1e6
ALPHA: Final = 0.05


def draw(kind: str, seed: int) -> PlantedStudy:
    """Draw an experiment as `lab.experiments` does, and the figures of every I/O's run."""
    errors, service, count = KINDS[kind]
    chance = np.random.default_rng([seed, list(KINDS).index(kind)])
    study = experiments.draw(errors, chance)
    rows = tuple(
        replace(row, metrics=figures(row.metrics[experiments.METRIC], service, count, chance))
        for row in study.table.rows
    )
    table = replace(study.table, rows=rows, metrics=simulated_experiments.METRICS)
    return replace(study, table=table)


def figures(mean_ns: float, service: str, count: int, chance: np.random.Generator) -> dict[str, float]:
    """Draw about `count` I/Os in a closed loop, and return what a run of them measures."""
    length_ns = BASE_NS * count / STREAMS
    latencies = mean_ns * DISTRIBUTIONS[service](chance, (STREAMS, 2 * count // STREAMS + 200))
    inside = np.sort(latencies[latencies.cumsum(axis=1) <= length_ns])
    measured = {"iops": len(inside) / length_ns * 1e9, "lat_mean_ns": float(inside.mean())}
    place = math.ceil(0.99 * len(inside)) - 1
    if len(inside) - place - 1 >= MIN_BEYOND - 1:
        width = 2.0 ** (math.floor(math.log2(inside[place])) - SUB_BITS)
        measured["lat_p99_ns"] = float((math.floor(inside[place] / width) + 0.5) * width)
    return measured


@dataclass(frozen=True)
class TestedEffect:
    """One test of one study: a factor's levels, or two factors together, in one metric."""

    kind: str
    seed: int
    repeats: int
    metric: str
    is_null: bool
    p: float | None
    corrected: float | None
    covered: bool | None
    """Whether its interval has the truth; None of an interaction."""


def tests_of(kind: str, seed: int) -> Iterator[TestedEffect]:
    """Draw a study, test all of its effects as a report does, and hold them against what was planted."""
    planted = draw(kind, seed)
    factors = planted.table.factors
    studied = [study(planted.table, one, seed) for one in runs_of.of_each(planted.table)]
    mains = [(one, main) for one in studied for main in one.mains]
    pairs = [(one, pair) for one in studied for pair in one.pairs]
    tests = [made_test(one, main.known.p if main.known else None) for one, main in mains]
    tests += [made_test(one, pair.p) for one, pair in pairs]
    corrected = tests_together.corrected(tests)
    for (one, main), p in zip(mains, corrected, strict=False):
        assert main.known is not None
        sign = experiments.SIGNS.get(one.runs.metric, 1.0)
        real = sign * experiments.truth(planted, factors[main.factor].name, main.level, main.against)
        low, high = main.known.interval() or (-math.inf, math.inf)
        yield TestedEffect(
            kind, seed, planted.repeats, one.runs.metric, real == 0, main.known.p, p, low <= real <= high
        )
    for (one, pair), p in zip(pairs, corrected[len(mains) :], strict=True):
        is_null = {factors[at].name for at in pair.factors} != {"a", "b"} or planted.interaction == 0
        yield TestedEffect(kind, seed, planted.repeats, one.runs.metric, is_null, pair.p, p, None)


def row(name: str, tested: Sequence[TestedEffect]) -> str:
    """Return a row of the table: effects of one study go together, so errors are between studies."""
    nulls: dict[int, list[TestedEffect]] = {}
    covered: dict[int, list[bool]] = {}
    for one in tested:
        if one.is_null and one.p is not None:
            nulls.setdefault(one.seed, []).append(one)
        if one.covered is not None:
            covered.setdefault(one.seed, []).append(one.covered)
    below = [(sum((one.p or 0.0) < ALPHA for one in every), len(every)) for every in nulls.values()]
    families = [any((one.corrected or 0.0) < ALPHA for one in every) for every in nulls.values()]
    cells = (
        name,
        str(len({one.seed for one in tested})),
        experiments.share_of_several(below),
        experiments.share(sum(families), len(families)),
        experiments.share_of_several([(sum(every), len(every)) for every in covered.values()]),
    )
    return f"| {' | '.join(cells)} |"


def table_rows(tested: Sequence[TestedEffect]) -> Iterator[str]:
    """Return the rows of all kinds, and of each number of repeats."""
    yield "| latencies | studies | nulls below 5 %, each | studies with a significant null | effects in their intervals |"
    yield "|---|---:|---:|---:|---:|"
    for kind in KINDS:
        of_kind = [one for one in tested if one.kind == kind]
        if not of_kind:
            continue
        yield row(kind, of_kind)
        for repeats in sorted({one.repeats for one in of_kind}):
            yield row(f"{kind}, {repeats} repeats", [one for one in of_kind if one.repeats == repeats])


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--seed", type=int, default=158_000_000, help="of the first study; each has the next")
    parser.add_argument("--kinds", default=",".join(KINDS), help="names with commas between them")
    parser.add_argument("--keep", type=Path, help="a file of tests that another run goes on from")
    options = parser.parse_args()
    tested: list[TestedEffect] = []
    if options.keep and options.keep.exists():
        tested = [TestedEffect(**json.loads(line)) for line in options.keep.read_text().splitlines()]
    known = {(one.kind, one.seed) for one in tested}
    with (options.keep or Path(os.devnull)).open("a") as file:
        for seed in range(options.seed, options.seed + options.studies):
            for kind in options.kinds.split(","):
                if (kind, seed) not in known:
                    every = list(tests_of(kind, seed))
                    tested += every
                    file.writelines(f"{json.dumps(asdict(one))}\n" for one in every)
                    file.flush()
    sys.stdout.writelines(f"{line}\n" for line in table_rows(tested))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
