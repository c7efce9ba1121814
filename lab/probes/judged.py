"""What would be said of a line with these weights: the judge's own course, from what is kept of it.

So that one collection of situations is scored with weights fitted without a kind, without a family, and
with an explanation taken out of the list. Knows lines and fits; a test holds it to `audit.judge`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lab.fit.model import row_features
from lab.probes import rows

from loadstone.audit import belief
from loadstone.audit.belief import CREDIBLE, DECIDE, EVEN
from loadstone.audit.explained import REMAINS
from loadstone.audit.judge import ENOUGH, GRAVE
from loadstone.audit.rules import throttled
from loadstone.audit.rules.probes import LIKELY, effect_of
from loadstone.explanations.as_often_right import as_often_right
from loadstone.explanations.names import BY_NAME, UNEXPLAINED
from loadstone.explanations.weigh import measuring, scaled, weigh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.probes.rows import Row

    from loadstone.explanations.weigh import Weighed
    from loadstone.explanations.weights import Fitted

BELIEVED = 0.8
PLATEAUS = [["throttled", throttled.SURE], ["throttled", throttled.LESS_SURE]]
"""Findings that limit by evenness: of a line it is known by how sure the rule is."""
ORDER = ("not_valid", "limited", "suspect", "note")


@dataclass(frozen=True)
class ShortVerdict:
    """A verdict in short. `first`: the rule or explanation that is named first; `named`: all of them."""

    kind: str
    confidence: float
    first: str | None
    named: frozenset[str]
    findings: tuple[tuple[str, float], ...]
    chances: dict[str, float]
    limit: str | None = None
    """It is said to be at this limit, and that nobody can tell whose that is."""

    @property
    def measures(self) -> bool:
        """Whether it says that the number measures the storage."""
        return self.kind == "measures_storage"

    @property
    def believed(self) -> bool:
        """Whether it says so and is sure."""
        return self.measures and self.confidence >= BELIEVED

    @property
    def belief(self) -> float:
        """How probable it holds that the number measures the storage."""
        return self.confidence if self.measures else 1 - self.confidence


def untried(row: Row, fitted: Fitted) -> ShortVerdict:
    """Return what is said after the run alone."""
    row = _rarely_right_suspected(row, fitted)
    return _outcome_of(row, [list(one) for one in row["plain"]["causes"]], fitted)


@dataclass(frozen=True)
class WeighedLine:
    """What probes made of a line, before anything is told as often as it was right."""

    row: Row
    weighed: tuple[Weighed, ...]
    features: dict[str, float]
    sure: float
    """How probable it is that the number measures the storage."""
    causes: list[list[Any]]
    """Findings, that of probes among them: rule, confidence, effect."""
    pointed: Weighed
    """What probes alone point at."""

    @property
    def decided(self) -> bool:
        """Whether a rule decided otherwise."""
        return any(one[0] != "probes" and one[2] in DECIDE and one[1] >= CREDIBLE for one in self.causes)


def weighed_line(row: Row, fitted: Fitted, without: frozenset[str] = frozenset()) -> WeighedLine:
    """Return what probes made of a line, some explanations left out of the list also as they were chosen."""
    row = _rarely_right_suspected(row, fitted)
    measured = rows.weighable(row, without=bool(without))
    alone = weigh(measured.facts, measured.probed, without=without, weights=fitted.weights)
    tried = belief.TriedReadings.of(measured.facts, measured.probed)
    plain = belief.features((), 0, 1) | belief.of_probes(alone, tried)
    causes = [list(one) for one in row["plain"]["causes"]]
    pointed = scaled(alone, belief.after_probes(plain, fitted))[0]
    if pointed.explanation.effect != "measures" and pointed.probability >= LIKELY:
        causes.append(["probes", round(min(0.99, pointed.probability), 2), effect_of(pointed.explanation)])
    weighed = weigh(
        measured.facts,
        measured.probed,
        measured.found,
        measured.checked,
        without=without,
        weights=fitted.weights,
    )
    features = row_features(row) | belief.of_probes(weighed, tried)
    sure = belief.after_probes(features, fitted)
    limiters = sum(one.probability for one in scaled(weighed, sure) if "throttled" in one.explanation.rules)
    if limiters < REMAINS:
        causes = [[*one[:2], "note"] if one[:2] in PLATEAUS else one for one in causes]
    if sure >= EVEN:
        causes = [[*one[:2], "note"] if one[0] == "probes" else one for one in causes]
    return WeighedLine(row, tuple(weighed), features, sure, causes, pointed)


def probed(row: Row, fitted: Fitted, without: frozenset[str] = frozenset()) -> ShortVerdict:
    """Return what is said after probes, some explanations left out of the list also as they were chosen."""
    line = weighed_line(row, fitted, without)
    name = line.pointed.explanation.name
    named = any(one[0] == "probes" and one[2] != "note" for one in line.causes)
    explained = tuple(
        as_often_right(
            line.weighed,
            line.sure,
            line.features,
            decided=line.decided,
            pointed=name if named else None,
            fitted=fitted,
        )
    )
    probes_sure = round(min(belief.MOST, _chances(explained)[name]), 2)
    causes = [["probes", probes_sure, one[2]] if one[0] == "probes" else one for one in line.causes]
    return _outcome_of(line.row, causes, fitted, ProbedBelief(explained, measuring(explained), name))


@dataclass(frozen=True)
class ProbedBelief:
    """The explanations, how probable the storage is with all of them, and what probes alone point at."""

    told: tuple[Weighed, ...]
    measures: float
    pointed: str


def _chances(weighed: Sequence[Weighed]) -> dict[str, float]:
    return {one.explanation.name: one.probability for one in weighed}


def _rarely_right_suspected(row: Row, fitted: Fitted) -> Row:
    """Return a line whose findings decide nothing where such ones were right less often than not."""
    causes = [
        [*one[:2], "suspect"] if one[2] in DECIDE and _turned_out(fitted, *one) < CREDIBLE else one
        for one in row["plain"]["causes"]
    ]
    return row | {"plain": row["plain"] | {"causes": causes}}


def _turned_out(fitted: Fitted, rule: str, sure: float, effect: str) -> float:
    return belief.frequency_of(fitted, rule, effect, sure)


def _outcome_of(
    row: Row, causes: list[list[Any]], fitted: Fitted, after: ProbedBelief | None = None
) -> ShortVerdict:
    nameless = after is not None and after.pointed == UNEXPLAINED
    causes.sort(
        key=lambda one: (
            4 if one[1] < CREDIBLE else ORDER.index(one[2]),
            nameless and one[0] == "probes",
            -one[1],
        )
    )
    rests = [one for one in causes if one[2] != "note" and one[1] >= CREDIBLE]
    names = [after.pointed if rule == "probes" and after else rule for rule, _, _ in rests]
    deciding = next((one for one in rests if one[2] in DECIDE), None)
    suspects = [one for one in rests if one[2] == "suspect"]
    looked = {*row["plain"]["checked"], *(rule for rule, _, effect in causes if effect == "note")}
    if deciding is not None:
        kind, confidence = (
            ("not_valid" if deciding[2] == "not_valid" else "limited"),
            _turned_out(fitted, *deciding),
        )
    elif row["plain"]["essential"]:
        kind, confidence = "cannot_tell", 0.9
    else:
        kind, confidence = "measures_storage", min(belief.MOST, fitted.untried.probability(row_features(row)))
        grave = any(one[1] >= GRAVE for one in suspects if one[0] != "probes")
        if grave or confidence < CREDIBLE or len(looked) < ENOUGH:
            kind, confidence = "cannot_tell", 1 - confidence
    chances = _chances(after.told) if after else {}
    # What the run alone leaves open probes do not close.
    if after and kind == "measures_storage":
        confidence = after.measures
        if confidence < EVEN:
            kind, confidence = "cannot_tell", 1 - confidence
    likely = [name for name, chance in chances.items() if chance >= 0.1]
    first = names[0] if names and kind != "measures_storage" else next(iter(chances), None)
    pointed = after.pointed if after and rests and rests[0][0] == "probes" else None
    whose = pointed is not None and kind == "cannot_tell" and bool(BY_NAME[pointed].own)
    return ShortVerdict(
        kind=kind,
        confidence=round(confidence, 2),
        first=first,
        limit=pointed if whose else None,
        named=frozenset([*names, *likely]),
        findings=tuple(
            (str(name), _turned_out(fitted, *one)) for name, one in zip(names, rests, strict=True)
        ),
        chances=chances,
    )


def right(row: Row) -> frozenset[str]:
    """Return the rules and explanations that are right of a line."""
    kind = rows.kind_row(row)
    return frozenset({*kind.truth, *kind.rules})


def not_told(row: Row, said: ShortVerdict) -> bool:
    """Tell whether an honest line is said to be neither the storage's nor the job's, right or wrong."""
    return accused(row, replace(said, limit=None))


def accused(row: Row, said: ShortVerdict) -> bool:
    """Tell whether an honest line is said to be anything else than the storage or the job's own settings.

    Of a number at a limit of its storage's own it is right that it is at one, and that nobody can tell whose.
    """
    if said.measures or said.limit in rows.kind_row(row).own_limits:
        return False
    return not (said.kind == "limited" and said.first in right(row))
