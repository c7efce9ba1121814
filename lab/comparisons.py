# ruff: noqa: E501 - a page of text
"""How often a comparison is right: pairs of results with a known difference, compared by the program.

Draws runs from a seed: correlated noise, drift, outliers, runs that differ among themselves, and
phases that are not valid and faster than anything. Judges as `loadstone compare` and its gate do.

    python -m lab.comparisons --pairs 1000 > docs/compare-calibration.md
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from loadstone.analysis.estimate import ratio
from loadstone.analysis.statistics.significance import Sample
from loadstone.audit.case import Case, JobRequest, OpMeasurement
from loadstone.comparison import gate as gates
from loadstone.comparison import matrix, pairing
from loadstone.comparison.metric import IOPS, MEAN, P99
from loadstone.comparison.phase import ComparedPhase
from loadstone.comparison.side import Side
from loadstone.comparison.values import sample
from loadstone.verdict import Kind, Verdict

PATTERNS: Final = ("4k random read", "4k random write", "128k sequential read")
DIFFERENCES: Final = (0.0, 0.01, 0.02, 0.05, 0.10)
DETECT: Final = 0.05
INTERVALS: Final = 120
"""A minute of half seconds."""
DEPTH: Final = 32


@dataclass(frozen=True)
class Device:
    """How a device behaves; both sides of a pair have the same."""

    iops: float
    noise: float
    memory: float
    """Correlation of neighbouring intervals."""
    drift: float
    """Share by which it ends slower or faster than it began."""
    outliers: float
    """Share of intervals that lose a third."""
    between: float
    """Deviation of runs from each other."""


@dataclass(frozen=True)
class PairOutcome:
    """What was said of one pair whose second side is slower by `difference`."""

    difference: float
    repeats: int
    invalid: bool
    better: bool
    worse: bool
    green_invalid: bool
    gate: str
    tests: tuple[tuple[float, bool], ...]
    """Of each pattern: the chance that was stated, and whether it was found to be worse."""


def device(chance: np.random.Generator, repeats: int) -> Device:
    """Draw one; runs that are not repeated cannot tell how they differ, so they do not."""
    return Device(
        iops=float(10 ** chance.uniform(3, 5.5)),
        noise=float(chance.uniform(0.01, 0.08)),
        memory=float(chance.choice([0.0, 0.3, 0.6])),
        drift=float(chance.choice([0.0, 0.0, -0.05, 0.05, -0.15])),
        outliers=float(chance.choice([0.0, 0.0, 0.02])),
        between=float(chance.uniform(0.0, 0.02)) if repeats > 1 else 0.0,
    )


def phase(
    chance: np.random.Generator, made: Device, factor: float, pattern: str, *, run: str, valid: bool
) -> ComparedPhase:
    """Measure one phase of one run."""
    noise = chance.normal(0, 1, INTERVALS)
    for at in range(1, INTERVALS):
        noise[at] = made.memory * noise[at - 1] + np.sqrt(1 - made.memory**2) * noise[at]
    course = 1 + made.noise * noise + made.drift * np.linspace(-0.5, 0.5, INTERVALS)
    course = np.where(chance.random(INTERVALS) < made.outliers, 0.67 * course, course)
    level = made.iops * factor * np.exp(chance.normal(0, made.between)) * (1 if valid else 3)
    rates = np.maximum(course, 0.01) * level
    ops = np.round(rates * 0.5)
    strata = np.zeros(INTERVALS, np.int64)
    iops = ratio(ops, np.full(INTERVALS, 0.5), strata, "1/s")
    # A closed loop: outstanding I/Os are rate times latency.
    mean = ratio(np.full(INTERVALS, DEPTH * 0.5e9), ops, strata, "ns")
    assert iops is not None
    assert mean is not None
    tail = mean.value * 3 * np.exp(chance.normal(0, 0.03))
    found = {IOPS: sample(iops), MEAN: sample(mean), P99: Sample(tail, 0.03 * tail, INTERVALS - 1.0)}
    return ComparedPhase(
        run=run, path=Path(run), name=pattern, pattern=pattern, verdict=_verdict(valid=valid),
        case=Case(name=pattern, source="bundle", jobs=(JobRequest(job="a"),), total=OpMeasurement(), ops={}),
        number=1, values={metric: value for metric, value in found.items() if value is not None},
    )  # fmt: skip


def _verdict(*, valid: bool) -> Verdict:
    kind: Kind = "measures_storage" if valid else "not_valid"
    return Verdict(
        kind=kind, limited_by=None, confidence=0.9, sentences="", causes=(), missing=(), checked=(), advice=()
    )


def pair(seed: int, *, invalid: bool | None = None) -> PairOutcome:
    """Draw a pair, compare it, and say what was found."""
    chance = np.random.default_rng(seed)
    difference = float(chance.choice(DIFFERENCES))
    repeats = int(chance.choice([1, 1, 3, 5]))
    broken = bool(chance.random() < 0.15) if invalid is None else invalid
    before: list[ComparedPhase] = []
    after: list[ComparedPhase] = []
    for number, pattern in enumerate(PATTERNS):
        made = device(chance, repeats)
        for run in range(repeats):
            before.append(phase(chance, made, 1.0, pattern, run=f"a{run}", valid=True))
            valid = not (broken and number == 0 and run == 0)
            after.append(phase(chance, made, 1 - difference, pattern, run=f"b{run}", valid=valid))
    sides = [Side("a", Path("a"), tuple(before)), Side("b", Path("b"), tuple(after))]
    rows, _ = pairing.rows(sides)
    found = matrix.effects(rows)
    known = gates.powers(found, sides, detect=DETECT, alpha=matrix.ALPHA)
    said = gates.gate(found, sides, known, detect=DETECT)
    worse = {one.pattern: one.judgement == "worse" for one in found if one.first}
    return PairOutcome(
        difference=difference,
        repeats=repeats,
        invalid=broken,
        better=any(one.judgement == "better" for one in found),
        worse=any(one.judgement == "worse" for one in found),
        green_invalid=any(one.told_apart and not (one.before.valid and one.after.valid) for one in found)
        or (broken and said.outcome == "passed"),
        gate=said.outcome,
        tests=tuple((one.power, worse.get(one.pattern, False)) for one in known),
    )


def table(found: list[PairOutcome]) -> str:
    """Return the page."""
    lines = [
        "# How often a comparison is right",
        "",
        f"`python -m lab.comparisons --pairs {len(found)}` drew {len(found)} pairs of results from a seed: three "
        "patterns, one, three or five runs of each, correlated noise, drift, outliers, runs that differ, and in "
        "some pairs a phase that is not valid and three times as fast. The second side is slower by a known share.",
        "",
        "| slower by | pairs | some row better | some row worse | nothing told apart | gate 0 | gate 97 | gate 98 |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for difference in DIFFERENCES:
        mine = [one for one in found if one.difference == difference]
        if not mine:
            continue
        codes = Counter({"passed": "0", "regression": "97"}.get(one.gate, "98") for one in mine)
        shares = [
            sum(one.better for one in mine),
            sum(one.worse for one in mine),
            sum(not one.better and not one.worse for one in mine),
            *(codes[code] for code in ("0", "97", "98")),
        ]
        cells = " | ".join(f"{100 * share / len(mine):.1f} %" for share in shares)
        lines.append(f"| {100 * difference:.0f} % | {len(mine)} | {cells} |")
    lines += [
        "",
        f"Pairs with a phase that is not valid: {sum(one.invalid for one in found)}; of these a difference or a pass "
        f"rested on it in {sum(one.green_invalid for one in found)}.",
        "",
        f"Pairs that are slower by {100 * DETECT:.0f} % and valid, pattern by pattern: the chance to find that, as it "
        "was stated, and how often it was found. With few runs the stated chance rests on an error that is itself "
        "a guess: it is right on average over pairs of one kind.",
        "",
        "| runs of each side | patterns | stated on average | found |",
        "|---:|---:|---:|---:|",
    ]
    for repeats, tests in calibration(found).items():
        stated, seen = (100 * float(np.mean([test[at] for test in tests])) for at in (0, 1))
        lines.append(f"| {repeats} | {len(tests)} | {stated:.0f} % | {seen:.0f} % |")
    return "\n".join(lines) + "\n"


def calibration(found: list[PairOutcome]) -> dict[int, list[tuple[float, bool]]]:
    """Return the tests of pairs with exactly the difference that is looked for, by the number of runs."""
    made: dict[int, list[tuple[float, bool]]] = {}
    for one in sorted(found, key=lambda one: one.repeats):
        if one.difference == DETECT and not one.invalid:
            made.setdefault(one.repeats, []).extend(one.tests)
    return made


def main() -> int:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.stdout.write(table([pair(options.seed * 1_000_000 + at) for at in range(options.pairs)]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
