# ruff: noqa: E501 - a page of text
"""How often the analysis of an experiment is right: studies with planted effects, drawn from seeds.

Draws designs (two or three factors of two or three levels, three to eight repeats in random order
within blocks), effects, interactions, and errors of a kind. Kinds that the method was tuned on and
kinds that it was not are counted apart. Runs no I/O.

    python -m lab.experiments --studies 400 --seed 3 --keep FILE > docs/experiment-calibration.md
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.effects.analyse import MARGIN, analyse
from loadstone.effects.observations import Factor, Observation, Observations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.effects.findings import LevelEffect

TUNED: Final = ("normal", "skewed", "drift", "outlier", "all of these", "set rarely", "a noisy level")
HELD_OUT: Final = (
    "heavy tails", "two modes", "a step in time", "a wandering host", "unequal noise", "one slow block",
    "growing noise",
)  # fmt: skip
GAPS: Final = ("a block missing", "runs missing", "a level that fails", "two repeats", "five levels")
"""Designs that are not what was planned: errors are normal."""
CURVES: Final = ("bent drift", "waves", "a warm-up", "very heavy tails")
UNTRIED: Final = (*GAPS, *CURVES)
KINDS: Final = (*TUNED, *HELD_OUT, *UNTRIED)
EFFECTS: Final = (0.0, 0.02, 0.05, 0.10, 0.20)
INTERACTIONS: Final = (0.0, 0.0, 0.05, 0.10, 0.20)
PLANTED: Final = "a"
METRIC: Final = "lat_mean_ns"
SIGNS: Final = {"iops": -1.0}
"""Of metrics that fall where latencies rise."""
RUN_S: Final = 70.0
TOGETHER: Final = 20
STATED: Final = ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.01))
"""Chances that are counted together."""


@dataclass(frozen=True)
class PlantedStudy:
    """What was planted, and what was measured."""

    table: Observations
    effect: float
    """Of the second level of the first factor, as a logarithm."""
    interaction: float
    """How much larger that effect is at the second level of the second factor."""
    repeats: int
    noise: float


@dataclass(frozen=True)
class StudyFindings:
    """What was said of one study."""

    kind: str
    seed: int
    effect: float
    interaction: float
    repeats: int
    noise: float
    method: str
    covered: bool
    width: float
    found: bool
    wrong_way: bool
    stated: float | None
    """The chance to find the planted effect; None where the study was asked for another."""
    interaction_stated: float | None
    """The same of the planted interaction."""
    interaction_contrasts: int
    nulls: int
    raw_false: int
    family_false: bool
    interaction_found: bool
    others_covered: tuple[int, int]
    drift_found: bool
    outliers: int


def errors(
    kind: str, chance: np.random.Generator, levels: np.ndarray, blocks: np.ndarray, noise: float
) -> np.ndarray:
    """Draw the errors of runs in the order of time, with the deviation `noise` where they have one."""
    count = len(blocks)
    at = np.linspace(-0.5, 0.5, count)
    normal = chance.normal(0, noise, count)
    skewed = noise * (chance.gamma(1.0, 1.0, count) - 1.0)
    drift = chance.uniform(0.05, 0.3) * chance.choice([-1, 1]) * at
    outlier = np.zeros(count)
    outlier[chance.integers(count)] = chance.choice([-1, 1]) * chance.uniform(0.3, 1.0)
    ratio = chance.uniform(1.5, 4.0)
    setting = chance.normal(0, noise, (blocks.max() + 1, levels.max() + 1))[blocks, levels]

    def swing() -> float:
        return float(chance.uniform(0.05, 0.3) * chance.choice([-1, 1]))

    draws: dict[str, Callable[[], np.ndarray]] = {
        "normal": lambda: normal,
        "skewed": lambda: skewed,
        "drift": lambda: normal + drift,
        "outlier": lambda: normal + outlier,
        "all of these": lambda: skewed + drift + outlier,
        "set rarely": lambda: normal + setting,
        "a noisy level": lambda: normal * np.where(levels == levels.max(), ratio, 1.0),
        "heavy tails": lambda: noise * chance.standard_t(3, count) / math.sqrt(3),
        "two modes": lambda: normal / 2 + 4 * noise * (chance.random(count) < 0.2),
        "a step in time": lambda: normal + 0.2 * (at > chance.uniform(-0.4, 0.4)),
        "a wandering host": lambda: normal + np.cumsum(chance.normal(0, noise / 2, count)),
        "unequal noise": lambda: normal * np.where(levels == 0, 0.3, 1.5),
        "growing noise": lambda: normal * np.linspace(0.4, 1.6, count),
        "one slow block": lambda: (
            normal + (blocks == chance.integers(blocks.max() + 1)) * chance.uniform(0, 0.5)
        ),
        "bent drift": lambda: normal + swing() * (at + 0.5) ** 2,
        "waves": lambda: (
            normal + swing() / 2 * np.sin(2 * np.pi * (chance.uniform(1, 4) * at + chance.random()))
        ),
        "a warm-up": lambda: normal + swing() * np.exp(-(at + 0.5) * chance.uniform(4, 15)),
        "very heavy tails": lambda: noise / 2 * chance.standard_t(1.5, count),
    }
    return normal if kind in GAPS else draws[kind]()


def draw(kind: str, chance: np.random.Generator) -> PlantedStudy:
    """Draw a study."""
    factors = [
        Factor(name, ("1", "2") if chance.random() < 0.6 else ("1", "2", "3")) for name in (PLANTED, "b")
    ]
    if kind == "five levels":
        factors[0] = Factor(PLANTED, ("1", "2", "3", "4", "5"))
    if chance.random() < 0.3:
        factors.append(Factor("c", ("1", "2")))
    repeats = 2 if kind == "two repeats" else int(chance.choice([3, 4, 5, 8]))
    noise = float(chance.choice([0.005, 0.01, 0.02, 0.04]))
    effect = math.log1p(float(chance.choice(EFFECTS)))
    interaction = math.log1p(float(chance.choice(INTERACTIONS)))
    cells = list(product(*(factor.levels for factor in factors)))
    rarely = kind == "set rarely"
    order = [(block, cell) for block in range(repeats) for cell in _ordered(cells, chance, rarely=rarely)]
    levels = np.array([int(cell[0]) - 1 for _, cell in order])
    blocks = np.array([block for block, _ in order])
    noises = errors(kind, chance, levels, blocks, noise)
    measured = _measured(kind, chance, levels, blocks)
    rows = []
    for place, ((block, cell), off) in enumerate(zip(order, noises, strict=True)):
        if not measured[place]:
            continue
        log = effect * (cell[0] == "2") + interaction * (cell[0] == "2" and cell[1] == "2") + off
        named = {factor.name: level for factor, level in zip(factors, cell, strict=True)}
        figures = {METRIC: 1e6 * math.exp(log)}
        rows.append(
            Observation(f"{place:03d}", place, place * RUN_S, block, named, "4k random read", figures)
        )
    table = Observations(tuple(factors), tuple(rows), rarely=(PLANTED,) if rarely else ())
    return PlantedStudy(table, effect, interaction, repeats, noise)


def _measured(kind: str, chance: np.random.Generator, levels: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Draw which runs came to their end."""
    count = len(blocks)
    draws: dict[str, Callable[[], np.ndarray]] = {
        "a block missing": lambda: blocks != chance.integers(blocks.max() + 1),
        "runs missing": lambda: chance.random(count) > 0.15,
        "a level that fails": lambda: (levels != levels.max()) | (chance.random(count) > 0.4),
    }
    return draws[kind]() if kind in draws else np.ones(count, dtype=bool)


def _ordered(
    cells: list[tuple[str, ...]], chance: np.random.Generator, *, rarely: bool
) -> list[tuple[str, ...]]:
    shuffled = [cells[at] for at in chance.permutation(len(cells))]
    # A sort keeps the order of what is equal: the first factor's levels follow each other.
    return (
        sorted(shuffled, key=lambda cell: [one[0] for one in shuffled].index(cell[0])) if rarely else shuffled
    )


def truth(study: PlantedStudy, factor: str, level: str, against: str) -> float:
    """Return the planted effect of two levels, averaged over the levels of the other factors."""
    a, b = study.table.factors[:2]

    def mean(name: str, value: str) -> float:
        if name == a.name:
            return (value == "2") * (study.effect + study.interaction / len(b.levels))
        if name == b.name:
            return (value == "2") * study.interaction / len(a.levels)
        return 0.0

    return mean(factor, level) - mean(factor, against)


def judge(kind: str, seeds: Sequence[int]) -> list[StudyFindings]:
    """Draw studies, analyse them, and hold what was said against what was planted."""
    return [
        outcome(kind, draw(kind, np.random.default_rng([seed, KINDS.index(kind)])), seed) for seed in seeds
    ]


def outcome(kind: str, study: PlantedStudy, seed: int, metrics: Sequence[str] = (METRIC,)) -> StudyFindings:
    """Analyse a study, and hold what was said against what was planted; the first metric is what it is about."""
    real = truth(study, PLANTED, "2", "1")
    # The study is asked for its chance to find a change as large as a planted one: the effect, or in every
    # second study that has one the interaction.
    asks_pair = bool(study.interaction) and seed % 2 == 1
    effect = study.interaction if asks_pair else abs(real)
    analysis = analyse(study.table, seed=seed, margin=math.expm1(effect) or MARGIN)
    first = [one for one in analysis.effects if one.metric == metrics[0]]
    main = next(one for one in first if (one.factor, one.level, one.against) == (PLANTED, "2", "1"))
    others = [one for one in analysis.effects if one is not main]
    nulls = [one for one in analysis.effects if truth(study, one.factor, one.level, one.against) == 0]
    pairs = [one for one in analysis.interactions if set(one.factors) != {"a", "b"} or study.interaction == 0]
    assert main.change is not None
    detected = main.judgement in ("better", "worse")
    raw = [one.change.raw_p for one in nulls if one.change is not None and one.change.raw_p is not None]
    raw += [one.raw_p for one in pairs if one.raw_p is not None]
    planted = next(
        one for one in analysis.interactions if set(one.factors) == {"a", "b"} and one.metric == metrics[0]
    )
    sign = SIGNS.get(metrics[0], 1.0)
    return StudyFindings(
        kind=kind,
        seed=seed,
        effect=study.effect,
        interaction=study.interaction,
        repeats=study.repeats,
        noise=study.noise,
        method=main.method,
        covered=covers(main, sign * real),
        width=math.log((main.change.high or math.inf) / (main.change.low or 1)),
        found=detected,
        wrong_way=detected and real != 0 and (main.change.ratio > 1) != (sign * real > 0),
        stated=None if asks_pair or not real else main.power or 0.0,
        interaction_stated=planted.power or 0.0 if asks_pair else None,
        interaction_contrasts=math.prod(len(one.levels) - 1 for one in study.table.factors[:2]),
        nulls=len(raw),
        raw_false=sum(one < analysis.alpha for one in raw),
        family_false=any(one.judgement in ("better", "worse") for one in nulls) or any(one.found for one in pairs),
        interaction_found=bool(planted.found),
        others_covered=(
            sum(covers(one, SIGNS.get(one.metric, 1.0) * truth(study, one.factor, one.level, one.against)) for one in others),
            len(others),
        ),
        drift_found=any(one.found for one in analysis.drift),
        outliers=len(analysis.outliers),
    )  # fmt: skip


def covers(one: LevelEffect, real: float) -> bool:
    """Tell whether an interval holds the truth."""
    assert one.change is not None
    return (one.change.low or 0.0) <= math.exp(real) <= (one.change.high or math.inf)


def share(part: int, whole: int) -> str:
    """Write a share with its binomial error."""
    if not whole:
        return "–"
    of = part / whole
    return f"{100 * of:.1f} ± {100 * math.sqrt(max(of * (1 - of), 1 / whole / 4) / whole):.1f} %"


def share_of_several(parts: Sequence[tuple[int, int]]) -> str:
    """Write a share of what each study has several of, with its error between studies: theirs go together."""
    part, whole = (sum(one[at] for one in parts) for at in (0, 1))
    if not whole:
        return "–"
    of = part / whole
    error = math.sqrt(sum((inside - of * count) ** 2 for inside, count in parts)) / whole
    return f"{100 * of:.1f} ± {100 * error:.1f} %"


def lines(studies: Sequence[StudyFindings], kinds: Sequence[str]) -> list[str]:
    """Return the rows of the table of kinds."""
    table_rows = []
    for kind in kinds:
        of_kind = [one for one in studies if one.kind == kind]
        if not of_kind:
            continue
        methods = Counter(one.method for one in of_kind)
        clean = [one for one in of_kind if one.nulls]
        cells = [
            kind,
            str(len(of_kind)),
            share(sum(one.covered for one in of_kind), len(of_kind)),
            share_of_several([one.others_covered for one in of_kind]),
            share_of_several([(one.raw_false, one.nulls) for one in of_kind]),
            share(sum(one.family_false for one in clean), len(clean)),
            str(sum(one.wrong_way for one in of_kind)),
            share(sum(one.drift_found for one in of_kind), len(of_kind)),
            f"{sum(one.outliers > 0 for one in of_kind)}",
            f"{100 * (methods['bootstrap'] + methods['welch']) / len(of_kind):.0f} %",
        ]
        table_rows.append(f"| {' | '.join(cells)} |")
    return table_rows


HEAD: Final = (
    "| errors | studies | planted effect in its interval | all other effects in theirs | null effects below 5 %, each | "
    "studies with any null effect significant | wrong way | drift found | outlier named | not Student's t |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)


def page(studies: Sequence[StudyFindings], command: str) -> str:
    """Return the page."""
    tuned = [one for one in studies if one.kind in TUNED]
    held_out = [one for one in studies if one.kind in HELD_OUT]
    untried = [one for one in studies if one.kind in UNTRIED]
    page_lines = [
        *kinds_of_errors(studies, command, untried),
        "## Planted interactions",
        "",
        "| size | noise | tuned: found | not tuned: found |",
        "|---:|---:|---:|---:|",
        *_interactions(tuned, held_out),
        "",
        "Size 0: how often there was said to be one, after correction.",
        "",
        "## The chance to find an effect, as stated and as it was",
        "",
        "| stated | studies (tuned) | stated on average | found | studies (not tuned) | stated on average | found |",
        "|---:|---:|---:|---:|---:|---:|---:|",
        *_powers(tuned, held_out),
        "",
        "The stated chance holds for the strictest step of Holm's correction; the step that an effect meets may be easier.",
        "",
        *interaction_power_section(studies),
        "## By the number of repeats",
        "",
        "| repeats | studies | planted effect in its interval | width of the interval, median | any null effect significant |",
        "|---:|---:|---:|---:|---:|",
        *_repeats(studies),
    ]
    return "\n".join(page_lines) + "\n"


def kinds_of_errors(
    studies: Sequence[StudyFindings], command: str, untried: Sequence[StudyFindings]
) -> list[str]:
    """Return the page up to the tables of each kind of error, with what each kind is."""
    return [
        "# How often the analysis of an experiment is right",
        "",
        f"`{command}` drew {len(studies)} experiments from seeds and analysed each as `loadstone experiment report` does. "
        "Each has two or three factors of two or three levels, and three to eight repeats in random order within blocks. Runs "
        "vary by 0.5 to 4 %. The first factor has an effect of 0 to 20 %, and in half of the studies an interaction with the second. ± is the binomial "
        "standard error; that of a study's several effects is between studies.",
        "",
        "## Errors that the method was tuned on",
        "",
        *HEAD,
        *lines(studies, TUNED),
        "",
        "*Skewed*: exponential. *Drift*: 5 to 30 % over the study, either way. *Outlier*: one run off by 30 to 170 %. *All of "
        "these*: skewed, with drift and an outlier. *Set rarely*: the first factor is set once for all runs of a level in a "
        "block. Each setting has an error of its own. *A noisy level*: the last level of the first factor, 1.5 to 4 times.",
        "",
        "## Errors that it was not tuned on",
        "",
        *HEAD,
        *lines(studies, HELD_OUT),
        "",
        "*Heavy tails*: Student's t with three degrees of freedom. *Two modes*: a fifth of the runs is slower by four "
        "deviations. *A step in time*: 20 % at a random moment. *A wandering host*: a random walk. *Unequal noise*: the first "
        "level is five times as even as the others. *One slow block*: up to 65 %. *Growing noise*: four times as large at the end as at the beginning.",
        "",
        "## Designs with gaps, and errors that change with time otherwise",
        "",
        *HEAD,
        *lines(untried, UNTRIED),
        "",
        "*A block missing*: none of its runs came to their end. *Runs missing*: 15 % of all. *A level that fails*: 40 % of the "
        "runs of the first factor's last level. *Two repeats*, *five levels* (of the first factor): nothing else. *Bent drift*, "
        "*waves*, *a warm-up*: 5 to 30 %, which no straight line follows. *Very heavy tails*: Student's t with 1.5 degrees of "
        "freedom. No limit was chosen on these.",
        "",
        "Method and limits were chosen on studies of the tuned kinds with the seeds 1 and 2; the page is of another seed.",
        "",
    ]


def interaction_power_section(studies: Sequence[StudyFindings]) -> list[str]:
    """Return the section about the chance to find an interaction."""
    return [
        "## The chance to find an interaction, as stated and as it was",
        "",
        "The planted one is one combination that differs from what the two factors let expect of it.",
        "",
        "| stated | two levels each: studies | stated on average | found | more levels: studies | stated on average | found |",
        "|---:|---:|---:|---:|---:|---:|---:|",
        *interaction_powers(studies),
        "",
    ]


def _interactions(tuned: Sequence[StudyFindings], held: Sequence[StudyFindings]) -> list[str]:
    table_rows = []
    for size in sorted({one.interaction for one in (*tuned, *held)}):
        for low, high in ((0.0, 0.015), (0.015, 1.0)):
            cells = [
                share(sum(one.interaction_found for one in group), len(group))
                for every in (tuned, held)
                for group in [[one for one in every if one.interaction == size and low < one.noise <= high]]
            ]
            noise = "0.5 to 1 %" if high < 1 else "2 to 4 %"
            table_rows.append(f"| {100 * math.expm1(size):.0f} % | {noise} | {' | '.join(cells)} |")
    return table_rows


def _powers(tuned: Sequence[StudyFindings], held: Sequence[StudyFindings]) -> list[str]:
    table_rows = []
    for low, high in STATED:
        cells = []
        for every in (tuned, held):
            group = [
                one for one in every if one.effect > 0 and one.stated is not None and low <= one.stated < high
            ]
            cells += _stated_and_found([(one.stated or 0.0, one.found) for one in group])
        table_rows.append(f"| {100 * low:.0f} to {min(100, 100 * high):.0f} % | {' | '.join(cells)} |")
    return table_rows


def _stated_and_found(studies: Sequence[tuple[float, bool]]) -> list[str]:
    """Return their number, the chance as stated on average, and how many found what was planted."""
    on_average = f"{100 * float(np.mean([stated for stated, _ in studies])):.0f} %" if studies else "–"
    return [str(len(studies)), on_average, share(sum(detected for _, detected in studies), len(studies))]


def interaction_powers(studies: Sequence[StudyFindings]) -> list[str]:
    """Return the rows of the chance to find an interaction, with one contrast and with several."""
    table_rows = []
    for low, high in STATED:
        cells = []
        for single in (True, False):
            group = [
                (one.interaction_stated, one.interaction_found)
                for one in studies
                if one.interaction_stated is not None and (one.interaction_contrasts == 1) is single
            ]
            cells += _stated_and_found([pair for pair in group if low <= pair[0] < high])
        table_rows.append(f"| {100 * low:.0f} to {min(100, 100 * high):.0f} % | {' | '.join(cells)} |")
    return table_rows


def _repeats(studies: Sequence[StudyFindings]) -> list[str]:
    table_rows = []
    for count in sorted({one.repeats for one in studies}):
        group = [one for one in studies if one.repeats == count]
        width = float(np.median([one.width for one in group]))
        cells = (
            share(sum(one.covered for one in group), len(group)),
            f"{100 * math.expm1(width):.1f} %",
            share(sum(one.family_false for one in group), len(group)),
        )
        table_rows.append(f"| {count} | {len(group)} | {' | '.join(cells)} |")
    return table_rows


@dataclass(frozen=True)
class DrawnStudies:
    """Which studies are to be judged, and how."""

    judge: Callable[[str, Sequence[int]], list[StudyFindings]]
    kinds: tuple[str, ...]
    seeds: range
    together: int
    """Studies that are judged at once."""

    def outcomes(self, keep: Path | None, jobs: int) -> list[StudyFindings]:
        """Judge them, so many processes side by side; a line of `keep` is not done again.

        A few of each kind in turn, so that a run that is ended early has equally many of all.
        """
        lines = keep.read_text().splitlines() if keep and keep.exists() else []
        earlier = [StudyFindings(**json.loads(line)) for line in lines]
        known = {(one.kind, one.seed): one for one in earlier}
        left = {kind: [seed for seed in self.seeds if (kind, seed) not in known] for kind in self.kinds}
        batches = [
            (self.judge, kind, seeds)
            for at in range(0, len(self.seeds), self.together)
            for kind, every in left.items()
            if (seeds := every[at : at + self.together])
        ]
        with (
            multiprocessing.get_context("spawn").Pool(jobs) as pool,
            contextlib.redirect_stdout(sys.stderr),
            (keep or Path(os.devnull)).open("a") as file,
        ):
            for judged in pool.imap_unordered(_judged, batches):
                known |= {(one.kind, one.seed): one for one in judged}
                file.writelines(f"{json.dumps(asdict(one))}\n" for one in judged)
                file.flush()
        return [known[kind, seed] for kind in self.kinds for seed in self.seeds]


def _judged(
    job: tuple[Callable[[str, Sequence[int]], list[StudyFindings]], str, list[int]],
) -> list[StudyFindings]:
    judge_them, kind, seeds = job
    return judge_them(kind, seeds)


def options_of(doc: str | None, kinds: Sequence[str]) -> argparse.ArgumentParser:
    """Return the options: which studies are drawn, and where outcomes are kept."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--kinds", default=",".join(kinds), help="names with commas between them")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument(
        "--keep", type=Path, help="a file of outcomes that another run of the same code goes on from"
    )
    return parser


def main() -> int:
    """Print the page."""
    options = options_of(__doc__, KINDS).parse_args()
    seeds = range(options.seed * 1_000_000, options.seed * 1_000_000 + options.studies)
    drawn = DrawnStudies(judge, tuple(options.kinds.split(",")), seeds, TOGETHER)
    findings = drawn.outcomes(options.keep, options.jobs)
    command = f"python -m lab.experiments --studies {options.studies} --seed {options.seed}"
    sys.stdout.write(page(findings, command))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
