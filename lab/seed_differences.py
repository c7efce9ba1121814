# ruff: noqa: E501 - a page of text
"""Which differences that five published studies report are real, given how often each number was measured.

Knows the figures as they were published (lab/published_differences.toml), and what a figure without repeats
cannot show. Measures nothing.

    python -m lab.seed_differences > docs/seeds-differences.md
"""

from __future__ import annotations

import math
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone import units
from loadstone.analysis.statistics.significance import Sample, contrast, holm
from loadstone.comparison.gate import chance
from loadstone.comparison.matrix import fair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FIGURES: Final = Path(__file__).parent / "published_differences.toml"
ALPHA: Final = 0.05


@dataclass(frozen=True)
class ColumnNoise:
    """What repeats of one workload differ by, over all rows of a table."""

    deviation: float
    """Of logarithms."""
    freedom: int


@dataclass(frozen=True)
class PublishedPair:
    """Two published figures, and what their repeats say of the difference."""

    study: str
    what: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    names: tuple[str, str]
    unit: str
    printed: float
    """Half of the last digit that was printed, as a share."""
    caution: str
    noise: tuple[ColumnNoise, ColumnNoise] | None = None
    """The noise of each side's workload in all rows of its table: two runs know too little of it."""


def sample(values: Sequence[float], printed: float) -> Sample:
    """Return the mean of repeats; the error is their spread, and never below what was rounded away."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return Sample(mean, None, None)
    spread = math.sqrt(sum((one - mean) ** 2 for one in values) / (len(values) - 1))
    rounding = printed * mean / math.sqrt(3)
    return Sample(mean, max(spread, rounding) / math.sqrt(len(values)), len(values) - 1, len(values))


def notes(path: Path = FIGURES) -> dict[str, str]:
    """Read what is to be known of each study beside its differences."""
    return dict(tomllib.loads(path.read_text())["notes"])


def read(path: Path = FIGURES) -> list[PublishedPair]:
    """Read the figures, in the order of the notes on their studies."""
    document = tomllib.loads(path.read_text())
    pairs = [_pair(one) for one in document["pair"]]
    pairs += [pair for table in document["table"] for pair in _of_table(table)]
    order = list(document["notes"])
    return sorted(pairs, key=lambda pair: order.index(pair.study))


def _pair(one: dict[str, Any]) -> PublishedPair:
    (first, a), (second, b) = one["values"].items()
    return PublishedPair(
        one["study"], one["what"], tuple(map(float, a)), tuple(map(float, b)), (first, second),
        one.get("unit", "IOPS"), float(one.get("printed", 0.0)), one.get("caution", ""),
    )  # fmt: skip


def _of_table(table: dict[str, Any]) -> Iterator[PublishedPair]:
    """Yield a pair for each workload of two rows that differ in one thing, and of two workloads in a row."""
    cells = {row["name"]: [tuple(map(float, cell)) for cell in row["cells"]] for row in table["rows"]}
    columns = table["columns"]
    noises = [_noise([row[at] for row in cells.values() if row[at]]) for at in range(len(columns))]
    for one in table["changes"]:
        a, b = one["from"], one["to"]
        for at, workload in enumerate(columns):
            if cells[a][at] and cells[b][at]:
                caution = one.get("caution", "") if one.get("of", workload) in workload else ""
                noise = (noises[at], noises[at])
                yield PublishedPair(
                    table["study"], workload, cells[a][at], cells[b][at], (a, b), "IOPS", 0.0, caution, noise
                )
    for one in table["across"]:
        row, (first, second) = one["row"], one["columns"]
        yield PublishedPair(
            table["study"], row, cells[row][first], cells[row][second], (columns[first], columns[second]),
            "IOPS", 0.0, one["caution"], (noises[first], noises[second]),
        )  # fmt: skip


def _noise(cells: Sequence[Sequence[float]]) -> ColumnNoise:
    squares = 0.0
    for values in cells:
        logs = [math.log(value) for value in values]
        squares += sum((log - sum(logs) / len(logs)) ** 2 for log in logs)
    freedom = sum(len(values) - 1 for values in cells)
    return ColumnNoise(math.sqrt(squares / freedom), freedom)


def judged(pairs: Sequence[PublishedPair]) -> list[tuple[PublishedPair, str, str]]:
    """Return for each pair its change and what it is worth; Holm's correction within each study."""
    sides = [_sides(one) for one in pairs]
    known = [contrast(a, b) for a, b in sides]
    corrected: dict[int, float] = {}
    strictest: dict[str, float] = {}
    for study in dict.fromkeys(one.study for one in pairs):
        at = [
            n
            for n, one in enumerate(pairs)
            if one.study == study and (difference := known[n]) and difference.p is not None
        ]
        strictest[study] = ALPHA / max(1, len(at))
        corrected |= dict(zip(at, holm([known[n].p or 0.0 for n in at]), strict=True))  # type: ignore[union-attr]
    verdicts = []
    for n, one in enumerate(pairs):
        difference = known[n]
        assert difference is not None
        large = difference.change >= 3
        change = f"{1 + difference.change:.3g}×" if large else f"{100 * difference.change:+.3g} %"
        if difference.low is None or difference.high is None:
            verdicts.append((one, change, _alone(difference.change)))
            continue
        ends = (difference.low, difference.high)
        low, high = (f"{1 + end:.3g}" if large else f"{100 * end:+.3g}" for end in ends)
        change += f" ({low} to {high})"
        verdict = (
            "**real**"
            if corrected[n] < ALPHA
            else f"**not significant**: {_judgement(sides[n], strictest[one.study])}"
        )
        verdicts.append((one, change, f"{verdict} (p {corrected[n]:.2g})"))
    return verdicts


def _sides(one: PublishedPair) -> tuple[Sample, Sample]:
    if one.noise is None:
        return fair(sample(one.a, one.printed), sample(one.b, one.printed))
    a, b = (
        # Both sides share a column's freedom, which Welch's formula adds up.
        Sample(mean, mean * noise.deviation / math.sqrt(len(values)), noise.freedom / 2, len(values))
        for values, noise in zip((one.a, one.b), one.noise, strict=True)
        for mean in [sum(values) / len(values)]
    )
    return a, b


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _alone(change: float) -> str:
    """Say what a single figure on each side can show: nothing, but how even it would have to be."""
    # Two runs, one on each side: the difference of logarithms over the deviation of one run.
    needed = abs(math.log1p(change)) / (1.96 * math.sqrt(2))
    if not needed:
        return "**cannot be known**: measured once"
    return f"**cannot be known**: measured once; real only if runs repeat to within {_percent(needed)}"


def _judgement(sides: tuple[Sample, Sample], alpha: float) -> str:
    """Say what would have been found in four of five such studies, among as many tests as there are."""
    a, b = sides
    assert a.error is not None
    assert b.error is not None
    error = math.hypot(a.error / a.value, b.error / b.value)
    freedom = min(a.freedom or 1.0, b.freedom or 1.0)
    low, high = 0.0, 5.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle, error, freedom, alpha) < 0.8 else (low, middle)
    if high > 4.6:
        return "only a factor of 100 or more would have been seen"
    factor = math.exp(high)
    least = f"a factor of {factor:.2g}" if factor >= 3 else f"a difference of {_percent(factor - 1)}"
    return f"{least} would have been seen"


def _duration(seconds: float) -> str:
    return units.duration(seconds * 1e9)


WRITERS: Final[dict[str, Callable[[float], str]]] = {
    "bytes/s": units.bandwidth_decimal,
    "s": _duration,
    "percent": lambda percent: f"{percent:.3g} %",
}


def figure(values: Sequence[float], unit: str) -> str:
    """Write what was published."""
    write = WRITERS.get(unit, units.count)
    low, high = min(values), max(values)
    text = write(low) if low == high else f"{write(low)} to {write(high)}"
    return text.replace(units.THIN, " ") + (f" ({len(values)} runs)" if len(values) > 1 else "")


def page(pairs: Sequence[PublishedPair]) -> str:
    """Return the page."""
    judgements, beside = judged(pairs), notes()
    counts = {
        word: sum(verdict.startswith(f"**{word}") for *_, verdict in judgements)
        for word in ("real", "not significant", "cannot be known")
    }
    lines = [
        "# Which published differences are real",
        "",
        "What you can take from the differences that five published studies report, given how often they measured. The figures "
        "are in [published_differences.toml](../lab/published_differences.toml); [seeds-audited.md](seeds-audited.md) asks whether "
        "each number measures the storage at all.",
        "",
        "    python -m lab.seed_differences > docs/seeds-differences.md",
        "",
        f"Of {len(judgements)} differences {counts['real']} are real, {counts['not significant']} are not significant, and "
        f"{counts['cannot be known']} cannot be known, because nothing was repeated.",
        "",
        "*Real*: significant at 5 % by Welch's test on logarithms, after Holm's correction within the study. A difference that is "
        "real may still not come from what the study names: the caution says what else differed. Where only the least and the "
        "largest of several runs are published, they are taken for two runs. The noise of a workload is taken from all rows "
        "of the table. A figure printed with few digits has at least the "
        "error of its rounding. A single run beside repeats is taken to vary as they do. What *would have been seen* "
        "is what four of five such studies would show, after the correction for all tests of the study.",
    ]
    for study in dict.fromkeys(one.study for one in pairs):
        lines += [
            "",
            f"## {study}",
            "",
            beside[study],
            "",
            "| what | from | to | change (95 % interval) | is it real? | caution |",
            "|---|---|---|---:|---|---|",
        ]
        for one, change, verdict in judgements:
            if one.study == study:
                a, b = (
                    f"{name}: {figure(values, one.unit)}"
                    for name, values in zip(one.names, (one.a, one.b), strict=True)
                )
                lines.append(f"| {one.what} | {a} | {b} | {change} | {verdict} | {one.caution} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the page."""
    sys.stdout.write(page(read()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
