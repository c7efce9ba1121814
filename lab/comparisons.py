# ruff: noqa: E501 - a page of text
"""How often a comparison is right: pairs of results with a known difference, compared by the program.

Draws runs from a seed: correlated noise, drift, outliers, runs that differ among themselves, sides
with other numbers of runs of another length, and phases that are not valid and faster than anything.
Judges as `loadstone compare` and its gate do.

    python -m lab.comparisons --pairs 1000 --seed 20261123 > docs/compare-series.md
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from lab.experiments import share

from loadstone.analysis.estimate import ratio
from loadstone.analysis.latency import Latency
from loadstone.analysis.statistics.significance import Sample
from loadstone.audit.case import Case, Figure, JobRequest, OpMeasurement, RateSpread
from loadstone.comparison import gate as gates
from loadstone.comparison import matrix, pairing
from loadstone.comparison.measured_values import of_case, sample
from loadstone.comparison.metric import IOPS, MEAN, P99
from loadstone.comparison.phase import ComparedPhase
from loadstone.comparison.side import Side
from loadstone.verdict import Kind, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.comparison.compare import Alone
    from loadstone.comparison.matrix import Effect

PATTERNS: Final = ("4k random read", "4k random write", "128k sequential read")
DIFFERENCES: Final = (0.0, 0.01, 0.02, 0.05, 0.10)
DETECT: Final = 0.05
LENGTHS: Final = (20, 40, 120, 120, 400)
"""Half seconds of a run: of ten seconds to some minutes."""
REPEATS: Final = ((1, 1), (1, 1), (3, 3), (5, 5), (2, 2), (1, 3), (5, 1), (2, 5), (3, 10))
"""Runs of each side."""
DEPTH: Final = 32
BINS: Final = (0.0, 0.2, 0.5, 0.8, 0.95, 1.0)
OF_A_KIND: Final = 400
"""Pairs without a difference of each kind: of these 2.5 % are ten."""


@dataclass(frozen=True)
class DrawnDevice:
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
class PairKind:
    """How the two sides were measured, and what disturbs them; None: as it is drawn."""

    repeats: tuple[int, int] | None = None
    lengths: tuple[int, int] | None = None
    drift: bool | None = None
    outliers: bool | None = None
    fio: tuple[bool, bool] | None = None
    """Of which sides no more is known than fio tells: a mean, its deviation, and the number of samples."""


@dataclass(frozen=True)
class PairOutcome:
    """What was said of one pair whose second side is slower by `difference`."""

    difference: float
    everywhere: bool
    """Whether all patterns are slower; otherwise the first alone."""
    kind: PairKind
    invalid: bool
    better: bool
    worse: bool
    green_invalid: bool
    gate: str
    tests: tuple[tuple[float, bool], ...]
    """Of each pattern: the chance that was stated, and whether it was found to be worse."""


def device(chance: np.random.Generator, kind: PairKind) -> DrawnDevice:
    """Draw one."""
    drift, outliers = (float(chance.choice(some)) for some in ([-0.05, 0.05, -0.15], [0.01, 0.02, 0.05]))
    return DrawnDevice(
        iops=float(10 ** chance.uniform(3, 5.5)),
        noise=float(chance.uniform(0.01, 0.08)),
        memory=float(chance.choice([0.0, 0.3, 0.6])),
        drift=drift if kind.drift else 0.0,
        outliers=outliers if kind.outliers else 0.0,
        between=float(10 ** chance.uniform(-3.5, -1.5)),
    )


def phase(
    chance: np.random.Generator,
    drawn_device: DrawnDevice,
    level: float,
    pattern: str,
    *,
    run: str,
    valid: bool,
    length: int,
    fio: bool,
) -> ComparedPhase:
    """Measure one phase of one run of so many intervals; `level` is what it does, as a share of the device."""
    noise = chance.normal(0, 1, length)
    for at in range(1, length):
        noise[at] = drawn_device.memory * noise[at - 1] + np.sqrt(1 - drawn_device.memory**2) * noise[at]
    course = 1 + drawn_device.noise * noise + drawn_device.drift * np.linspace(-0.5, 0.5, length)
    course = np.where(chance.random(length) < drawn_device.outliers, 0.67 * course, course)
    rates = (
        np.maximum(course, 0.01) * drawn_device.iops * level * np.exp(chance.normal(0, drawn_device.between))
    )
    ops = np.round(rates * 0.5)
    strata = np.zeros(length, np.int64)
    iops = ratio(ops, np.full(length, 0.5), strata, "1/s")
    # A closed loop: outstanding I/Os are rate times latency.
    mean = ratio(np.full(length, DEPTH * 0.5e9), ops, strata, "ns")
    assert iops is not None
    assert mean is not None
    tail = mean.value * 3 * np.exp(chance.normal(0, 0.03))
    samples = {IOPS: sample(iops), MEAN: sample(mean), P99: Sample(tail, 0.03 * tail, length - 1.0)}
    total = OpMeasurement(
        iops=Figure(iops.value),
        latencies={"unknown": Latency(mean_ns=mean.value)},
        spread=RateSpread(float(rates.std(ddof=1) / rates.mean()), length),
    )
    case = Case(
        name=pattern, source="fio" if fio else "bundle", jobs=(JobRequest(job="a", iodepth=DEPTH),),
        total=total if fio else OpMeasurement(), ops={},
    )  # fmt: skip
    return ComparedPhase(
        run=run, path=Path(run), name=pattern, pattern=pattern, verdict=_verdict(valid=valid), case=case, number=1,
        values=of_case(case) if fio else {name: value for name, value in samples.items() if value is not None},
    )  # fmt: skip


def _verdict(*, valid: bool) -> Verdict:
    kind: Kind = "measures_storage" if valid else "not_valid"
    return Verdict(
        kind=kind, limited_by=None, confidence=0.9, sentences="", causes=(), missing=(), checked=(), advice=()
    )


def drawn(chance: np.random.Generator) -> PairKind:
    """Draw how a pair was measured."""
    long = [int(one) for one in chance.choice(LENGTHS, 2)]
    return PairKind(
        repeats=REPEATS[chance.integers(len(REPEATS))],
        lengths=(long[0], long[1] if chance.random() < 0.5 else long[0]),
        drift=bool(chance.random() < 0.4),
        outliers=bool(chance.random() < 0.4),
        fio=(False, False),
    )


def pair(
    seed: int, *, invalid: bool | None = None, kind: PairKind | None = None, difference: float | None = None
) -> PairOutcome:
    """Draw a pair, compare it, and say what was found; what of its kind is None is drawn."""
    chance = np.random.default_rng(seed)
    slower = float(chance.choice(DIFFERENCES)) if difference is None else difference
    fixed, any_ = kind or PairKind(), drawn(chance)
    known = PairKind(*(b if a is None else a for a, b in zip(astuple(fixed), astuple(any_), strict=True)))
    broken = bool(chance.random() < 0.15) if invalid is None else invalid
    everywhere = bool(chance.random() < 0.5)
    phases_of_sides: tuple[list[ComparedPhase], list[ComparedPhase]] = ([], [])
    for number, pattern in enumerate(PATTERNS):
        drawn_device = device(chance, known)
        for side, phases in enumerate(phases_of_sides):
            factor = 1 - slower if side and (everywhere or number == 0) else 1.0
            for run in range((known.repeats or (1, 1))[side]):
                valid = not (broken and side and number == 0 and run == 0)
                length = (known.lengths or (120, 120))[side]
                level = factor if valid else 3 * factor
                phases.append(
                    phase(
                        chance, drawn_device, level, pattern, run=f"{side}{run}", valid=valid, length=length,
                        fio=(known.fio or (False, False))[side],
                    )
                )  # fmt: skip
    sides = [
        Side(name, Path(name), tuple(phases)) for name, phases in zip("ab", phases_of_sides, strict=True)
    ]
    rows, _ = pairing.rows(sides)
    return judged(
        matrix.effects(rows), sides, difference=slower, everywhere=everywhere, kind=known, invalid=broken
    )


def judged(
    effects: Sequence[Effect],
    sides: Sequence[Side],
    *,
    difference: float,
    everywhere: bool,
    kind: PairKind,
    invalid: bool,
    alone: Sequence[Alone] = (),
) -> PairOutcome:
    """Say what a comparison found of a pair that is known, and what its gate answers."""
    powers = gates.powers(effects, sides, detect=DETECT, alpha=matrix.ALPHA)
    gate = gates.gate(effects, sides, powers, detect=DETECT, alone=alone)
    worse = {one.pattern: one.judgement == "worse" for one in effects if one.first}
    # Where the first alone is slower the others are no tests of the power.
    tested = [one for one in powers if one.pattern == PATTERNS[0]]
    return PairOutcome(
        difference=difference,
        everywhere=everywhere,
        kind=kind,
        invalid=invalid,
        better=any(one.judgement == "better" for one in effects),
        worse=any(one.judgement == "worse" for one in effects),
        green_invalid=any(one.told_apart and not (one.before.valid and one.after.valid) for one in effects)
        or (invalid and gate.outcome == "passed"),
        gate=gate.outcome,
        tests=tuple((one.power, worse.get(one.pattern, False)) for one in tested),
    )


def kinds() -> dict[str, PairKind]:
    """Return the kinds of pairs that are held against each other without a difference, by their names."""
    steady = PairKind(lengths=(120, 120), drift=False, outliers=False)
    by_name = {
        f"{a} and {b} runs" if (a, b) != (1, 1) else "1 run each": replace(steady, repeats=(a, b))
        for a, b in dict.fromkeys(REPEATS)
    }
    for a, b in ((20, 20), (20, 400), (400, 40)):
        named = f"1 run each of {a / 2:.0f} s and {b / 2:.0f} s"
        by_name[named] = replace(steady, repeats=(1, 1), lengths=(a, b))
    for drift, outliers, word in ((True, False, "drift"), (False, True, "outliers"), (True, True, "both")):
        for runs in ((1, 1), (3, 3), (1, 3)):
            by_name[f"{word}, {runs[0]} and {runs[1]} runs"] = replace(
                steady, repeats=runs, drift=drift, outliers=outliers
            )
    for fio, word in (((True, True), "fio's"), ((True, False), "fio's beside Loadstone's")):
        for disturbed, words in ((False, ""), (True, ", both")):
            kind = replace(steady, repeats=(1, 1), fio=fio, drift=disturbed, outliers=disturbed)
            by_name[f"1 run each, {word}{words}"] = kind
    by_name["3 and 1 runs, fio's beside Loadstone's"] = replace(steady, repeats=(3, 1), fio=(True, False))
    return by_name


def table(
    outcomes: Sequence[PairOutcome],
    alike: Mapping[str, Sequence[PairOutcome]],
    seed: int,
    slower: Sequence[PairOutcome] = (),
) -> str:
    """Return the page; `slower`: more pairs that are slower by what the gate looks for."""
    lines = [
        "# How often a comparison of series is right",
        "",
        f"`python -m lab.comparisons --pairs {len(outcomes)} --seed {seed}` drew {len(outcomes)} pairs of results. Each pair has three patterns, and one to ten runs of 10 s to 200 s on each side. The sides may differ in the number and the length of their runs. They have correlated noise, drift, outliers and runs that differ. In some pairs a phase is not valid, and three times as fast. The second side is slower by a known share, in half of the pairs in one pattern alone.",
        "",
        *difference_lines(outcomes),
        "",
        f"Pairs with a phase that is not valid: {sum(one.invalid for one in outcomes)}; of these a difference or a pass rested on it in {sum(one.green_invalid for one in outcomes)}.",
        "",
        "## Kinds of pairs without a difference",
        "",
        "Promised is that chance calls any row better in at most 2.5 % of the comparisons, and worse in as many. *Gate 98*: it could not have seen a regression of "
        f"{100 * DETECT:.0f} %, and says so; with two runs of each side it hardly ever could. "
        f"Of {OF_A_KIND} pairs of which 2.5 % are significant, {_seen_of(OF_A_KIND, 0.025)} are seen in 95 of 100 tables.",
        "",
        "| kind | pairs | some row better | some row worse | gate 0 | gate 98 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, pairs in alike.items():
        parts = (
            sum(one.better for one in pairs),
            sum(one.worse for one in pairs),
            sum(one.gate == "passed" for one in pairs),
            sum(one.gate in {"not_detectable", "no_data", "not_valid"} for one in pairs),
        )
        cells = " | ".join(f"{100 * part / len(pairs):.1f} %" for part in parts)
        lines.append(f"| {name} | {len(pairs)} | {cells} |")
    lines += [
        "",
        "## The power that the gate states",
        "",
        f"Valid pairs of which one pattern alone is slower by {100 * DETECT:.0f} %. The table has the stated chance to find that, and how often it was found. The stated chance is of one regression alone; of several at once one is found more often.",
        "",
        *power_lines(calibration([*outcomes, *slower])),
    ]
    return "\n".join(lines) + "\n"


def difference_lines(outcomes: Sequence[PairOutcome]) -> list[str]:
    """Return a table of what was said, by how much slower the second side is."""
    lines = [
        "| slower by | pairs | some row better | some row worse | not significant | cannot say | gate 0 | gate 97 | gate 98 |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for difference in sorted({one.difference for one in outcomes}):
        planted = [one for one in outcomes if one.difference == difference]
        same = [one for one in planted if not one.better and not one.worse]
        codes = Counter({"passed": "0", "regression": "97"}.get(one.gate, "98") for one in planted)
        parts = [
            sum(one.better for one in planted),
            sum(one.worse for one in planted),
            sum(one.gate == "passed" for one in same),
            sum(one.gate != "passed" for one in same),
            *(codes[code] for code in ("0", "97", "98")),
        ]
        cells = " | ".join(share(part, len(planted)) for part in parts)
        lines.append(f"| {100 * difference:.0f} % | {len(planted)} | {cells} |")
    return lines


def names(kind: PairKind) -> list[str]:
    """Return the words for how a pair was measured."""
    a, b = kind.repeats or (1, 1)
    return [
        "1 run each" if a == b == 1 else ("as many runs" if a == b else "other numbers of runs"),
        "drift" if kind.drift else "no drift",
        "outliers" if kind.outliers else "no outliers",
        "runs as long" if kind.lengths and len(set(kind.lengths)) == 1 else "runs of other lengths",
    ]


def _seen_of(count: int, share: float) -> str:
    """Return between which shares so many draws lie in 95 of 100 cases."""
    below = 0.0
    bounds: list[float] = []
    for hits in range(count + 1):
        below += math.comb(count, hits) * share**hits * (1 - share) ** (count - hits)
        if below > (0.025, 0.975)[len(bounds)]:
            bounds.append(100 * hits / count)
        if len(bounds) == 2:
            break
    return f"{bounds[0]:.1f} to {bounds[1]:.1f} %"


def power_lines(tests: Sequence[tuple[PairKind, float, bool]]) -> list[str]:
    """Return the tables of stated chances and what was found."""
    lines = [
        "| stated | pairs | stated on average | scatter by chance | found |",
        "|---:|---:|---:|---:|---:|",
    ]
    for low, high in pairwise(BINS):
        in_range = [(p, hit) for _, p, hit in tests if low <= p < high or p == high == 1.0]
        if in_range:
            name = f"{100 * low:.0f} to {100 * high:.0f} %"
            lines.append(_power_line(name, in_range))
    lines += [
        "",
        "| pairs with | pairs | stated on average | scatter by chance | found |",
        "|---|---:|---:|---:|---:|",
    ]
    groups: dict[str, list[tuple[float, bool]]] = {}
    for kind, p, hit in tests:
        for name in names(kind):
            groups.setdefault(name, []).append((p, hit))
    return lines + [_power_line(name, groups[name]) for name in sorted(groups)]


def _power_line(name: str, mine: Sequence[tuple[float, bool]]) -> str:
    stated, hits = (100 * float(np.mean([test[at] for test in mine])) for at in (0, 1))
    by_chance = 100 * sum(power * (1 - power) for power, _ in mine) ** 0.5 / len(mine)
    return f"| {name} | {len(mine)} | {stated:.0f} % | ± {by_chance:.1f} % | {hits:.0f} % |"


def calibration(outcomes: Sequence[PairOutcome]) -> list[tuple[PairKind, float, bool]]:
    """Return the tests of valid pairs that are slower in one pattern by exactly what is looked for."""
    return [
        (one.kind, power, hit)
        for one in outcomes
        if one.difference == DETECT and not one.invalid and not one.everywhere
        for power, hit in one.tests
    ]


def alike(seed: int, count: int = OF_A_KIND) -> dict[str, list[PairOutcome]]:
    """Draw valid pairs without a difference of every kind."""
    return {
        name: [
            pair(seed * 1_000_000 + 500_000 + 10_000 * number + at, invalid=False, kind=kind, difference=0.0)
            for at in range(count)
        ]
        for number, (name, kind) in enumerate(kinds().items())
    }


def main() -> int:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    outcomes = [pair(options.seed * 1_000_000 + at) for at in range(options.pairs)]
    more = [
        pair(options.seed * 1_000_000 + 200_000 + at, invalid=False, difference=DETECT)
        for at in range(options.pairs)
    ]
    sys.stdout.write(table(outcomes, alike(options.seed), options.seed, more))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
