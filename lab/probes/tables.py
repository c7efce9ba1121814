"""The tables of what verdicts and probes were worth: from lines to text.

Knows lines, fits and what each of them says. Stages nothing and fits nothing.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lab.fit.pointed import named
from lab.probes import judged, rows
from lab.probes.draw import KINDS, NEVER_FITTED

from loadstone.explanations.names import BY_NAME, UNEXPLAINED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lab.probes.judged import ShortVerdict
    from lab.probes.rows import Row

    from loadstone.explanations.weights import Fitted

NAMED = 0.1
SEEN = ("host", "stack", "job")
"""Families with evidence on the host."""
BINS = 10
RESAMPLED = 2000
"""Times that kinds are drawn anew, and the seed of it."""


@dataclass(frozen=True)
class ScoredLine:
    """A line and all that would be said of it. The last three only of lies that were probed.

    `unseen`: by a fit that never saw its kind; of an honest line by one of those fits, drawn by its seed.
    """

    row: Row
    untried: ShortVerdict
    probed: ShortVerdict | None = None
    unseen: ShortVerdict | None = None
    kind_out: ShortVerdict | None = None
    family_out: ShortVerdict | None = None
    removed: ShortVerdict | None = None

    @property
    def honest(self) -> bool:
        """Whether it is an honest situation."""
        return rows.kind_row(self.row).honest

    def right_first(self, said: ShortVerdict) -> bool:
        """Tell whether what is named first is right."""
        if self.honest:
            return not judged.accused(self.row, said)
        return not said.believed and said.first in judged.right(self.row)


Fits = dict[str, "Fitted"]


def score(every: Iterable[Row], whole: Fitted, by_kind: Fits, by_family: Fits) -> list[ScoredLine]:
    """Say of every line what is said of it; `by_kind` and `by_family`: fits made without them."""
    scored = []
    fits = [by_kind[name] for name in sorted(by_kind)]
    for row in every:
        kind = rows.kind_row(row)
        plain = judged.untried(row, whole)
        if not row["tried"]:
            scored.append(ScoredLine(row, plain))
            continue
        truth = frozenset(kind.truth)
        probed = judged.probed(row, whole)
        if kind.honest:
            fit = random.Random(f"unseen {row['seed']}").choice(fits) if fits else whole
            scored.append(ScoredLine(row, plain, probed, judged.probed(row, fit) if fits else None))
            continue
        without, outside = by_kind.get(kind.name), by_family.get(kind.family)
        gone = without or outside or whole
        by_kind_out = judged.probed(row, without) if without else None
        by_family_out = judged.probed(row, outside) if outside else None
        scored.append(
            ScoredLine(
                row,
                plain,
                probed,
                (by_kind_out or by_family_out or probed) if fits else None,
                by_kind_out,
                by_family_out,
                judged.probed(row, gone, truth) if row.get("tried_without") else None,
            )
        )
    return scored


def _cells(*values: object) -> str:
    return f"| {' | '.join(map(str, values))} |"


def _head(*names: str) -> list[str]:
    return [_cells(*names), "|" + "---|" * len(names)]


def share(some: int, whole: int) -> str:
    """Return a share with its 95 % interval (Wilson)."""
    if not whole:
        return "–"
    low, high = wilson(some, whole)
    return f"{some} of {whole}: {100 * some / whole:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def wilson(some: float, whole: float) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    z = 1.96
    centre = (some + z * z / 2) / (whole + z * z)
    half = z / (whole + z * z) * math.sqrt(some * (whole - some) / whole + z * z / 4)
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class SummaryRows:
    """The lines of a table of shares and their aims."""

    lines: list[str]

    def add(
        self, of: str, what: str, aim: str, which: Sequence[ScoredLine], true: Callable[[ScoredLine], bool]
    ) -> None:
        """Add of how many of `which` it is `true`."""
        some = sum(true(one) for one in which)
        self.lines.append(_cells(of, what, aim, share(some, len(which)), _met(what, aim, some, len(which))))


def summary(every: Sequence[ScoredLine]) -> list[str]:
    """Return the lines that matter, with their aims."""
    lies = [one for one in every if not one.honest]
    honest = [one for one in every if one.honest]
    known = [one for one in lies if rows.kind_row(one.row).family in SEEN]
    after = [one for one in honest if one.probed is not None]
    table = SummaryRows([*_head("of", "what", "aim", "share", "met")])
    add = table.add
    add(
        "lies with evidence on the host",
        "named first",
        "80 %",
        known,
        lambda one: one.right_first(one.untried),
    )
    add("the same", "not said to measure the storage", "95 %", known, lambda one: not one.untried.measures)
    add("lies in the storage, nothing tried", "not believed (80 %)", "–",
        [one for one in lies if one not in known], lambda one: not one.untried.believed)  # fmt: skip
    _add_hidden(table, [one for one in lies if one.probed is not None])
    several = [one for one in lies if rows.kind_row(one.row).family in NEVER_FITTED]
    add("several causes at once, in no fit, nothing tried", "not believed (80 %)", "–", several,
        lambda one: not one.untried.believed)  # fmt: skip
    unseen = [one for one in several if one.family_out]
    add(
        "the same, after probes", "not believed", "90 %", unseen, lambda one: not _of(one.family_out).believed
    )
    add("the same, after probes", "named first", "–", unseen,
        lambda one: one.right_first(_of(one.family_out)))  # fmt: skip
    add("honest runs, nothing tried", "accused", "3 %", honest,
        lambda one: judged.accused(one.row, one.untried))  # fmt: skip
    add("honest runs after probes", "accused", "3 %", after,
        lambda one: judged.accused(one.row, _of(one.probed)))  # fmt: skip
    add("the same, with those told to be at a limit, whose cannot be told", "accused or so told", "–", after,
        lambda one: judged.not_told(one.row, _of(one.probed)))  # fmt: skip
    return table.lines


def _add_hidden(table: SummaryRows, tried: Sequence[ScoredLine]) -> None:
    """Add the rows of lies that leave no evidence on the host, after probes and by fits without them."""
    add = table.add
    hidden = [one for one in tried if rows.kind_row(one.row).family not in (*SEEN, *NEVER_FITTED)]
    add("hidden lies after probes", "not believed", "90 %", hidden, lambda one: not _of(one.probed).believed)
    add("the same, kind left out of the fit", "not believed", "90 %", [one for one in hidden if one.kind_out],
        lambda one: not _of(one.kind_out).believed)  # fmt: skip
    add("the same, family left out", "not believed", "90 %", [one for one in hidden if one.family_out],
        lambda one: not _of(one.family_out).believed)  # fmt: skip
    add("the same, explanation removed, too", "not believed", "95 %", [one for one in hidden if one.removed],
        lambda one: not _of(one.removed).believed)  # fmt: skip
    add("hidden lies after probes", "named first", "–", hidden, lambda one: one.right_first(_of(one.probed)))
    add("the same, kind left out of the fit", "named first", "–", [one for one in hidden if one.kind_out],
        lambda one: one.right_first(_of(one.kind_out)))  # fmt: skip


def _met(what: str, aim: str, some: int, whole: int) -> str:
    """Tell whether a share is where it should be; of accusations the aim is the most there may be."""
    if not whole or not aim[0].isdigit():
        return "–"
    percent, limit = 100 * some / whole, float(aim.partition(" ")[0])
    return "yes" if (percent <= limit if what == "accused" else percent >= limit) else "**no**"


def _of(said: ShortVerdict | None) -> ShortVerdict:
    assert said is not None
    return said


def by_kind(every: Sequence[ScoredLine]) -> list[str]:
    """Return the table of kinds, before and after probes."""
    out = _head(
        "kind", "family", "runs", "named first", "named", "said to measure", "probed", "named first",
        "named", "doubted", "believed", "kind left out: first", "believed",
        "family left out: first", "believed",
        "explanation removed: unexplained first", "believed",
    )  # fmt: skip
    groups: dict[str, list[ScoredLine]] = defaultdict(list)
    for one in every:
        groups[one.row["kind"]].append(one)
    for name, kind in KINDS.items():
        group = groups.get(name, [])
        if not group:
            continue
        tried = [one for one in group if one.probed is not None]
        plain = (
            len(group),
            sum(one.right_first(one.untried) for one in group),
            sum(_named(one, one.untried) for one in group),
            sum(one.untried.measures for one in group),
        )
        after = (
            len(tried),
            sum(one.right_first(_of(one.probed)) for one in tried),
            sum(_named(one, _of(one.probed)) for one in tried),
            sum(not _of(one.probed).believed for one in tried),
            sum(_of(one.probed).believed for one in tried),
        )
        left: list[object] = []
        for part in ("kind_out", "family_out"):
            fits = [(one, getattr(one, part)) for one in tried if getattr(one, part) is not None]
            left += (
                [sum(one.right_first(fit) for one, fit in fits), sum(fit.believed for _, fit in fits)]
                if fits
                else ["–", "–"]
            )
        gone = [one.removed for one in tried if one.removed is not None]
        left += (
            [sum(_unknown(one) for one in gone), sum(one.believed for one in gone)] if gone else ["–", "–"]
        )
        out.append(_cells(name, kind.family, *plain, *after, *left))
    return out


def _named(one: ScoredLine, said: ShortVerdict) -> bool:
    if one.honest:
        return said.belief >= NAMED
    return bool(said.named & judged.right(one.row))


def _unknown(said: ShortVerdict) -> bool:
    """Whether something unexplained is the most probable of what is not the storage itself."""
    others = {name: chance for name, chance in said.chances.items() if BY_NAME[name].effect != "measures"}
    return bool(others) and max(others, key=lambda name: others[name]) == UNEXPLAINED


class ToldCase(NamedTuple):
    """How sure something was told, whether it was right, and as how many it counts."""

    sure: float
    right: bool
    weight: float = 1.0
    kind: str = ""


def reliability(predictions: Sequence[ToldCase]) -> list[str]:
    """Return a reliability diagram as a table: bins of equal number, and what each was worth.

    Intervals are of the effective number of cases (Kish): those that count less tell less.
    """
    out = _head("told (mean)", "from", "to", "cases", "true", "share", "95 % interval", "within 5 points")
    for part in bins(predictions):
        whole = sum(one.weight for one in part)
        mean = sum(one.sure * one.weight for one in part) / whole
        true = sum(one.weight for one in part if one.right)
        effective = whole**2 / sum(one.weight**2 for one in part)
        low, high = wilson(true / whole * effective, effective)
        near = abs(true / whole - mean) <= 0.05
        out.append(
            _cells(
                f"{100 * mean:.0f} %", f"{100 * min(part)[0]:.0f} %", f"{100 * max(part)[0]:.0f} %",
                len(part) if whole == len(part) else f"{len(part)}, counted as {whole:.0f}",
                f"{true:.0f}", f"{100 * true / whole:.0f} %", f"{100 * low:.0f} to {100 * high:.0f}",
                "yes" if near else "no",
            )
        )  # fmt: skip
    return out


def by_kinds(predictions: Sequence[ToldCase]) -> str:
    """Say what they were worth together; the interval is of other kinds (bootstrap, honest ones apart).

    Situations of one kind are alike: of a kind that no fit saw, the next kind tells more than the next
    situation.
    """
    kinds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in predictions:
        kinds[one.kind][0] += 1
        kinds[one.kind][1] += one.right
    groups = [
        np.array([counts for name, counts in kinds.items() if KINDS[name].honest is honest])
        for honest in (True, False)
    ]
    rng = np.random.default_rng(RESAMPLED)
    draws = [group[rng.integers(0, len(group), (RESAMPLED, len(group)))] for group in groups if len(group)]
    sums = np.sum([draw.sum(axis=1) for draw in draws], axis=0)
    low, high = np.quantile(sums[:, 1] / sums[:, 0], (0.025, 0.975))
    count = len(predictions)
    sure = sum(one.sure for one in predictions) / count
    right = sum(one.right for one in predictions) / count
    return (
        f"{count} cases of {len(kinds)} kinds, told {100 * sure:.0f} %, right {100 * right:.0f} % "
        f"({100 * low:.0f} to {100 * high:.0f} with other kinds like these)"
    )


def bins(predictions: Sequence[ToldCase]) -> list[list[ToldCase]]:
    """Return parts of about equal number, in order; what was told the same is in the same one."""
    levels: dict[float, list[ToldCase]] = defaultdict(list)
    for one in predictions:
        levels[round(one.sure, 2)].append(one)
    least = max(20, sum(one.weight for one in predictions) // BINS)
    parts: list[list[ToldCase]] = []
    for level in sorted(levels):
        if parts and sum(one.weight for one in parts[-1]) < least:
            parts[-1] += levels[level]
        else:
            parts.append(levels[level])
    if len(parts) > 1 and sum(one.weight for one in parts[-1]) < least:
        last = parts.pop()
        parts[-1] += last
    return parts


def brier(predictions: Sequence[ToldCase]) -> str:
    """Return the Brier score and its parts: reliability - resolution + uncertainty."""
    if not predictions:
        return "–"
    count = len(predictions)
    base = sum(one.right for one in predictions) / count
    value = sum((one.sure - one.right) ** 2 for one in predictions) / count
    groups: dict[int, list[ToldCase]] = defaultdict(list)
    for one in predictions:
        groups[min(BINS - 1, int(one.sure * BINS))].append(one)
    off = resolution = 0.0
    for part in groups.values():
        mean = sum(one.sure for one in part) / len(part)
        true = sum(one.right for one in part) / len(part)
        off += len(part) / count * (mean - true) ** 2
        resolution += len(part) / count * (true - base) ** 2
    return (
        f"Brier score {value:.3f} = reliability {off:.3f} - resolution {resolution:.3f} + "
        f"uncertainty {base * (1 - base):.3f} (and what differs within bins); {count} cases"
    )


def measuring(
    every: Sequence[ScoredLine], pick: Callable[[ScoredLine], ShortVerdict | None]
) -> list[ToldCase]:
    """Return every 'measures the storage' with its confidence, and whether it does."""
    answers = [(one, pick(one)) for one in every]
    return [
        ToldCase(answer.confidence, one.honest, kind=one.row["kind"])
        for one, answer in answers
        if answer is not None and answer.measures
    ]


def believing(
    every: Sequence[ScoredLine], pick: Callable[[ScoredLine], ShortVerdict | None]
) -> list[ToldCase]:
    """Return of every verdict how probable it holds that the number measures the storage.

    A number that is rightly said to be limited by the job's own settings is left out: it is neither.
    """
    answers = [(one, answer) for one in every if (answer := pick(one)) is not None]
    return [
        ToldCase(answer.belief, one.honest)
        for one, answer in answers
        if not (one.honest and answer.kind == "limited" and not judged.accused(one.row, answer))
    ]


def first_named(every: Sequence[ScoredLine]) -> list[ToldCase]:
    """Return the probability of the most probable explanation after probes, and whether it is right.

    Where that is something unexplained, `unexplained_first` has it.
    """
    return [_first(one, one.probed) for one in every if one.probed is not None and _is_named(one, one.probed)]


def unexplained_first(every: Sequence[ScoredLine]) -> list[ToldCase]:
    """Return the same where something unexplained is the most probable, of lies one in five in no list.

    Each lie that was probed without its explanation is there again, and counts as `rows.UNLISTED` of one.
    """
    pairs = [(one, one.probed) for one in every if one.probed is not None]
    pairs += [(one, one.removed) for one in every if one.removed is not None]
    unknown = [pair for pair in pairs if rows.kind_row(pair[0].row).in_device and not _is_named(*pair)]
    return [
        ToldCase(_first(one, answer).sure, True, rows.UNLISTED)
        if answer is one.removed
        else ToldCase(_first(one, answer).sure, False)
        for one, answer in unknown
    ]


def _is_named(one: ScoredLine, said: ShortVerdict) -> bool:
    return rows.kind_row(one.row).in_device and next(iter(said.chances)) != UNEXPLAINED


def _first(one: ScoredLine, said: ShortVerdict) -> ToldCase:
    name, chance = next(iter(said.chances.items()))
    if BY_NAME[name].effect != "measures":
        return ToldCase(min(1.0, chance), name in rows.kind_row(one.row).truth)
    storage = sum(c for other, c in said.chances.items() if BY_NAME[other].effect == "measures")
    return ToldCase(min(1.0, storage), one.honest)


def of_explanations(every: Sequence[ScoredLine]) -> list[str]:
    """Return what explanations after probes were worth, as tables."""
    named, unexplained, probes = first_named(every), unexplained_first(every), pointed(every)
    return [
        brier(named),
        "",
        *reliability(named),
        "",
        f"Where *something unexplained* is the most probable ({len(unexplained)} cases), it can be right "
        "only of a cause that is in no list. One lie in five is taken to be such a one. So each of those "
        "above counts here a second time, as a quarter of one, as it was probed without its explanation:",
        "",
        *reliability(unexplained),
        "",
        f"What probes point at, where the verdict names it ({len(probes)} cases, something unexplained "
        "apart):",
        "",
        *reliability(probes),
    ]


def pointed(every: Sequence[ScoredLine]) -> list[ToldCase]:
    """Return what probes alone point at, where the verdict names it, and whether it is right."""
    tried = [(one.row, one.probed) for one in every if one.probed is not None]
    return [ToldCase(sure, right) for row, answer in tried for sure, right in named(row, answer)]


def findings(every: Sequence[ScoredLine]) -> list[ToldCase]:
    """Return every finding of a rule with its confidence, and whether it is right."""
    return [
        ToldCase(sure, name in judged.right(one.row)) for one in every for name, sure in one.untried.findings
    ]


def each_rule(every: Sequence[ScoredLine]) -> list[str]:
    """Return what each rule adds: what the verdict would be without it."""
    out = _head(
        "rule", "findings", "right", "lies that would be said to measure the storage",
        "no longer named first", "honest runs no longer accused",
    )  # fmt: skip
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    for one in every:
        for name, _ in one.untried.findings:
            counts[name][0] += 1
            counts[name][1] += name in judged.right(one.row)
        for name, (kind, first) in one.row["without_rule"].items():
            numbers_of_rule = counts[name]
            if one.honest:
                right = kind == "measures_storage" or (kind == "limited" and first in judged.right(one.row))
                numbers_of_rule[4] += judged.accused(one.row, one.untried) and right
            else:
                numbers_of_rule[2] += not one.untried.measures and kind == "measures_storage"
                numbers_of_rule[3] += one.right_first(one.untried) and first not in judged.right(one.row)
    for name, numbers in sorted(counts.items(), key=lambda pair: -pair[1][3]):
        if numbers[0]:
            out.append(_cells(f"`{name}`", *numbers))
    return out
