"""The fit itself: weights by maximum likelihood, then two regressions that make frequencies of them.

Knows arrays of situations. Leaves out what it is told to leave out, so that it can be scored on that.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy
from lab.fit import evidence
from lab.probes import rows as lines
from lab.probes.draw import KINDS, LIES

from loadstone.audit.belief import (
    AGREED,
    ALIKE,
    LIMITED_BENDS,
    MOST,
    MOSTLY,
    TriedReadings,
    cautious,
    ceiling,
    features,
    finding_key,
    given,
)
from loadstone.explanations.strangeness import FAR
from loadstone.explanations.weights import Frequency, Logistic, Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lab.fit.evidence import Evidence, EvidenceTable
    from lab.probes.kind import SituationKind
    from lab.probes.rows import Row
    from numpy.typing import NDArray

    from loadstone.explanations.weights import Fitted

    Floats = NDArray[np.float64]

UNKNOWN_WEIGHT: Final = 0.25
"""A situation whose explanation was taken out of the list counts so much of one. Fitted on seeds 100002 to
170121 and held against 180001 to 181344: with a half in its place 245 of 361 lies were named first, in place
of 252, and as many honest ones were accused."""
UNKNOWN_PART: Final = 0.75
"""The same in the regression after probes: it takes from belief what lies of kinds that nobody thought of
would make of it. Of seeds 713187 to 718350, which it is not fitted on, 60 of 1374 lies whose explanation was
taken out have 80 % with it, and 1681 of 2582 honest numbers. With a half in its place 64 and 1680 have it,
with 1 51 and 1671."""
LIMITED: Final = 0.7
"""Of what is given to the storage: from here on it is mostly a limit of its own."""
RIDGE: Final = 2.0
"""Of the regressions' slopes, in situations."""
SLOPES: Final = dict.fromkeys(
    ("measures", "measures_limited", "share", "storage"), (0.0, None)
) | dict.fromkeys(("limited", *(f"limited_{at:g}" for at in LIMITED_BENDS)), (None, None))
"""Bounds of those that do not only take away from belief."""
LEAST_IN_A_STEP: Final = 80
"""So many situations of the calibration share a step at least."""
APART: Final = 2.0
"""Standard errors between steps: those that are nearer cannot be told apart, and are one."""
BOUNDS: Final = {
    "dependence": (0.2, 1.0),
    "unlike": (0.1, 0.6),
    "fewer": (0.02, 0.1),
    "measures_odds": (0.2, 20.0),
    "unexplained_odds": (0.1, 4.0),
    "clear": (0.1, 1.0),
    "most_odds": (1.5, 60.0),
}

LEAST_SURPRISE: Final = 0.004
MOST_SURPRISE: Final = 0.3
PSEUDO: Final = 20.0
"""So many readings as usual stand beside those that were seen of one name."""
ROUNDS: Final = 4
LIKE: Final = 8.0
"""So many findings as sure as their rule makes them stand beside those that were seen."""
NEAR: Final = 3
"""Steps from the whole fit to one without a kind: it is near."""
FIRST: Final = Weights(
    dependence=0.7, surprise=0.03, surprises={}, unlike=0.2, fewer=0.05, measures_odds=1.0,
    unexplained_odds=1.0, clear=0.5, most_odds=10.0,
)  # fmt: skip


@dataclass(frozen=True)
class FitSample:
    """Lines with what each says, made once and used by every fit."""

    rows: tuple[Row, ...]
    listed: tuple[Evidence, ...]
    removed: tuple[Evidence, ...]
    tried: tuple[TriedReadings, ...]
    tried_removed: tuple[TriedReadings, ...]
    """Of what was tried without an explanation."""

    @cached_property
    def tables(self) -> tuple[EvidenceTable, EvidenceTable]:
        """All lines as they are listed, and without their explanation."""
        return evidence.table(self.listed), evidence.table(self.removed)


def sample(rows: Sequence[Row], *, alone: bool = False) -> FitSample:
    """Return the lines the weights can be fitted on: those whose device does what their kind says.

    Each is there twice: as it was measured, and, but for `alone`, as it would have been beside others on the
    CPUs.
    """
    measured = [row for row in rows if simulated(row)]
    used = (*measured, *(() if alone else map(lines.beside_others, measured)))
    return FitSample(
        used,
        tuple(evidence.of(row) for row in used),
        tuple(evidence.of(row, removed=True) for row in used),
        tuple(_tried(row) for row in used),
        tuple(_tried(row, without=bool(row.get("tried_without"))) for row in used),
    )


def simulated(row: Row) -> bool:
    """Tell whether the cause is in the simulated device, not only in what its host counts."""
    return _in_device(lines.kind_row(row))


def _in_device(kind: SituationKind) -> bool:
    return kind.in_device and "something_unexplained" not in kind.truth


def fit_weights(
    of: FitSample, leave: Callable[[Row], bool] | None = None, start: Weights | None = None
) -> Weights:
    """Return the weights that give most to what is right; lines for which `leave` holds are not there."""
    used = [at for at, row in enumerate(of.rows) if leave is None or not leave(row)]
    listed = evidence.table([of.listed[at] for at in used])
    lies = [at for at in used if not lines.kind_row(of.rows[at]).honest]
    removed = evidence.table([of.removed[at] for at in lies])
    honest = np.array([lines.kind_row(of.rows[at]).honest for at in used])
    # Honest situations and lies weigh the same, however many of each were left out.
    weigh = np.where(honest, 0.5 / max(1, honest.sum()), 0.5 / max(1, (~honest).sum()))

    weights = start or FIRST
    for _ in range(ROUNDS if start is None else 1):
        known = weights.surprises

        def loss(point: Floats, known: dict[str, float] = known) -> float:
            tried = _weights(point, known)
            unknown = float(removed.right_logs(tried).mean())
            return -float((listed.right_logs(tried) * weigh).sum()) - UNKNOWN_WEIGHT / 2 * unknown

        steps = {"maxiter": 60 if start is None else NEAR, "eps": 1e-4, "ftol": 1e-7}
        optimum = scipy.optimize.minimize(loss, _point(weights), method="L-BFGS-B", options=steps)
        weights = _weights(optimum.x, known)
        surprises = listed.surprised(weights)
        whole = sum(count for _, count in surprises.values())
        usual = min(
            MOST_SURPRISE, max(LEAST_SURPRISE, sum(strange for strange, _ in surprises.values()) / whole)
        )
        shares = {
            name: min(MOST_SURPRISE, max(LEAST_SURPRISE, (strange + PSEUDO * usual) / (count + PSEUDO)))
            for name, (strange, count) in surprises.items()
            if count
        }
        rounded = {name: float(f"{share:.3g}") for name, share in shares.items()}
        weights = weights.model_copy(update={"surprise": float(f"{usual:.3g}"), "surprises": rounded})
    return weights


def rounded(weights: Weights) -> Weights:
    """Return weights as they are written: to three digits."""
    fields = weights.model_dump()
    plain = {name: float(f"{value:.3g}") for name, value in fields.items() if name != "surprises"}
    return Weights.model_validate({**fields, **plain})


def _weights(point: Floats, surprises: dict[str, float]) -> Weights:
    """Return the weights of a point without bounds."""
    values: dict[str, float] = {}
    for (name, (low, high)), at in zip(BOUNDS.items(), point, strict=True):
        share = 1 / (1 + math.exp(-max(-30.0, min(30.0, float(at)))))
        values[name] = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
    return Weights(**values, surprise=FIRST.surprise, surprises=surprises)


def _point(weights: Weights) -> Floats:
    logits = []
    for name, (low, high) in BOUNDS.items():
        share = (math.log(getattr(weights, name)) - math.log(low)) / (math.log(high) - math.log(low))
        share = min(max(share, 1e-3), 1 - 1e-3)
        logits.append(math.log(share / (1 - share)))
    return np.array(logits)


def undecided(row: Row) -> bool:
    """Tell whether no rule decided about it: then the regressions say what it is worth."""
    findings = row["plain"]
    deciding = [one for one in lines.findings(findings) if one[2] in ("not_valid", "limited")]
    return not deciding and not findings["essential"]


def row_features(row: Row) -> dict[str, float]:
    """Return the features of a line before probes."""
    findings = row["plain"]
    suspicions = [sure for _, sure, effect in findings["causes"] if effect == "suspect"]
    looked = len(
        {*findings["checked"], *(rule for rule, _, effect in findings["causes"] if effect == "note")}
    )
    return features(suspicions, len(findings["missing"]), looked)


def _tried(row: Row, *, without: bool = False) -> TriedReadings:
    measured = lines.weighable(row, without=without)
    return TriedReadings.of(measured.facts, measured.probed)


def fit_findings(rows: Sequence[Row], leave: Callable[[Row], bool] | None = None) -> dict[str, float]:
    """Return how often findings of each sort were right: of few, near to how sure their rule makes them.

    Of the lines of the calibration: those of the fit are of earlier rules, some of which were as sure of
    other findings.
    """
    tallies: dict[str, list[float]] = {}
    counts = frequencies(rows, leave)
    for row in rows:
        if leave is not None and leave(row):
            continue
        kind = lines.kind_row(row)
        for rule, sure, effect in lines.findings(row["plain"]):
            tally = tallies.setdefault(finding_key(rule, effect, sure), [sure, 0.0, 0.0])
            tally[1] += counts[kind.name] * (rule in kind.rules)
            tally[2] += counts[kind.name]
    return {
        key: round(min(MOST, (right + LIKE * sure) / (whole + LIKE)), 2)
        for key, (sure, right, whole) in sorted(tallies.items())
    }


def frequencies(rows: Sequence[Row], leave: Callable[[Row], bool] | None = None) -> dict[str, float]:
    """Return how often each line of a kind counts, so that kinds are as frequent as they are drawn.

    Half of what is drawn is honest, and every kind of lie as frequent as the next, however many lines of
    each were kept. Some families are never fitted: those that are stand for their part. Where only kinds in
    the device are there, that is the part of those.
    """
    counts = Counter(row["kind"] for row in rows if not (leave is not None and leave(row)))
    honest = sum(count for name, count in counts.items() if KINDS[name].honest)
    fitted = [kind for kind in LIES if kind.name in counts]
    host = any(not _in_device(kind) for kind in fitted)
    drawn = sum(host or _in_device(kind) for kind in LIES) / len(LIES)
    of_a_kind = (honest or len(rows)) * drawn / max(1, len(fitted))
    return {name: 1.0 if KINDS[name].honest else of_a_kind / count for name, count in counts.items()}


def fit_untried(rows: Sequence[Row], leave: Callable[[Row], bool] | None = None) -> Logistic:
    """Return the regression for runs after which nothing was tried."""
    used = [row for row in rows if undecided(row) and not (leave is not None and leave(row))]
    # What the rules decided is not here: the shares of the others have to stay as they were drawn.
    honest = [lines.kind_row(row).honest for row in used]
    counts = frequencies(rows, leave)
    return regression([row_features(row) for row in used], honest, [counts[row["kind"]] for row in used])


@dataclass(frozen=True)
class BelievedLines:
    """What regressions after probes are fitted on: features, truth, and as how many each counts."""

    told: tuple[dict[str, float], ...]
    honest: tuple[bool, ...]
    counts: tuple[float, ...]
    listed: tuple[bool, ...]
    """False: as if nobody had thought of its kind."""

    def part(self, wanted: Sequence[bool]) -> BelievedLines:
        """Return those that are wanted."""
        return BelievedLines(
            tuple(itertools.compress(self.told, wanted)),
            tuple(itertools.compress(self.honest, wanted)),
            tuple(itertools.compress(self.counts, wanted)),
            tuple(itertools.compress(self.listed, wanted)),
        )


def believed_lines(
    of: FitSample,
    weights: Weights,
    leave: Callable[[Row], bool] | None = None,
    *,
    thought_of: bool = False,
) -> BelievedLines:
    """Return the lines that no rule decided; lies a second time as if nobody had thought of their kind.

    `thought_of`: without those.
    """
    listed, removed = (
        np.stack([table.measuring(weights), table.limited(weights)], axis=1) for table in of.tables
    )
    used = [at for at, row in enumerate(of.rows) if undecided(row) and not (leave is not None and leave(row))]
    lies = [at for at in used if of.rows[at].get("tried_without") and not thought_of]
    feature_rows = [
        row_features(of.rows[at]) | given(float(measures[at][0]), float(measures[at][1]), tried[at])
        for measures, tried, several in ((listed, of.tried, used), (removed, of.tried_removed, lies))
        for at in several
    ]
    of_kind = frequencies(of.rows, leave)
    counts = [of_kind[of.rows[at]["kind"]] for at in used]
    counts += [UNKNOWN_PART * of_kind[of.rows[at]["kind"]] for at in lies]
    honest = (lines.kind_row(of.rows[at]).honest for at in (*used, *lies))
    listed_too = (*(True for _ in used), *(False for _ in lies))
    return BelievedLines(tuple(feature_rows), tuple(honest), tuple(counts), listed_too)


def fit_probed(of: BelievedLines) -> tuple[Logistic, float]:
    """Return the regression for runs with probes: not every lie has its explanation in the list.

    And how often a number measured the storage of which nothing was idle, where most spoke for that.
    """
    bound = [
        listed and one["limited"] >= LIMITED and one["measures_limited"] > 0
        for one, listed in zip(of.told, of.listed, strict=True)
    ]
    near = of.part(bound)
    right = sum(itertools.compress(near.counts, near.honest))
    limited = round(min(ALIKE, (right + 1) / (sum(near.counts) + 2)), 3)
    # Of what the ceiling keeps from being believed, the regression need not take more.
    training = of.part(
        [listed or ceiling(one, limited) >= AGREED for one, listed in zip(of.told, of.listed, strict=True)]
    )
    return regression(training.told, training.honest, training.counts), limited


def fit_frequencies(
    of: FitSample, fitted: Fitted, leave: Callable[[Row], bool] | None = None
) -> dict[str, Frequency]:
    """Return how often the cautious answer was right, of lines it was not fitted on (isotonic regression).

    Of numbers with an open question of their own, and of the explanations.
    """
    used = believed_lines(of, fitted.weights, leave, thought_of=True)
    beliefs = np.array([cautious(one, fitted) for one in used.told])
    truth = np.array(used.honest)
    is_open = np.array([one["open"] >= MOSTLY for one in used.told])
    curves: dict[str, Frequency] = {}
    for name, chosen in (("frequency", ~is_open), ("open_frequency", is_open)):
        curves[name] = _counted(beliefs[chosen], truth[chosen])
    return curves | fit_causes(of, fitted.weights, leave)


def fit_causes(
    of: FitSample, weights: Weights, leave: Callable[[Row], bool] | None = None
) -> dict[str, Frequency]:
    """Return how often the most probable explanation was right, of lines the weights were not fitted on.

    Of numbers that a rule decided otherwise of, the storage; of lies, the most probable cause that has a
    name. Something unexplained is counted elsewhere (`lab.fit.nameless`).
    """
    used = np.array([leave is None or not leave(row) for row in of.rows])
    honest = np.array([lines.kind_row(row).honest for row in of.rows])
    decided = ~np.array([undecided(row) for row in of.rows])
    table, _ = of.tables
    listed, of_listed = table.causes(weights), table.measuring(weights)
    lies = used & ~honest
    named = lies & ~listed.unknown
    return {
        "decided": _counted(of_listed[used & decided], honest[used & decided]),
        "causes": _counted(listed.part[named & ~decided], listed.right[named & ~decided]),
        "decided_causes": _counted(listed.part[named & decided], listed.right[named & decided]),
    }


def _counted(predicted: Floats, right: NDArray[np.bool_]) -> Frequency:
    order = np.argsort(predicted, kind="stable")
    return isotonic(predicted[order], right[order].astype(np.float64))


@dataclass(frozen=True)
class ToldAlike:
    """Situations that are told the same. `low`, `high`: of the answers, first and last."""

    right: float
    whole: float
    low: float
    high: float

    @property
    def share(self) -> float:
        """How often it was right."""
        return (self.right + 0.5) / (self.whole + 1)

    def and_(self, other: ToldAlike) -> ToldAlike:
        """Return both as one."""
        return ToldAlike(self.right + other.right, self.whole + other.whole, self.low, other.high)

    def apart(self, other: ToldAlike) -> float:
        """Return by how many standard errors the next one is right more often."""
        errors = (one.share * (1 - one.share) / (one.whole + 1) for one in (self, other))
        return (other.share - self.share) / math.sqrt(sum(errors))


def isotonic(predicted: Floats, truth: Floats) -> Frequency:
    """Return frequencies that never fall. `predicted`: in order.

    Neighbours that would fall, or that cannot be told apart, are put together, the most alike first.
    """
    parts = np.array_split(np.arange(len(predicted)), max(1, len(predicted) // LEAST_IN_A_STEP))
    steps = [
        ToldAlike(truth[part].sum(), len(part), predicted[part[0]], predicted[part[-1]]) for part in parts
    ]
    while len(steps) > 1:
        apart = [one.apart(other) for one, other in itertools.pairwise(steps)]
        at = int(np.argmin(apart))
        if apart[at] >= APART:
            break
        steps[at : at + 2] = [steps[at].and_(steps[at + 1])]
    return Frequency(
        told=tuple(round(float(edge), 4) for step in steps for edge in (step.low, step.high)),
        right=tuple(round(step.share, 3) for step in steps for _ in range(2)),
    )


def fit_strange(of: FitSample, leave: Callable[[Row], bool] | None = None) -> float:
    """Return how often a number with a reading far off measured the storage, where no rule decided."""
    far = [row for row, one in zip(of.rows, of.tried, strict=True) if one.strange >= FAR and undecided(row)]
    used = [row for row in far if leave is None or not leave(row)]
    counts = frequencies(of.rows, leave)
    honest = sum(lines.kind_row(row).honest for row in used)
    return round((honest + 1) / (sum(counts[row["kind"]] for row in used) + 2), 3)


def regression(
    rows: Sequence[dict[str, float]],
    honest: Sequence[bool],
    counts: Sequence[float] | None = None,
    *,
    bounds: Mapping[str, tuple[float | None, float | None]] = SLOPES,
) -> Logistic:
    """Return the regression at the frequencies as they were drawn. `counts`: of each as so many.

    `bounds`: of slopes; one that is not in it only takes away.
    """
    names = sorted(rows[0])
    values = np.array([[one[name] for name in names] for one in rows])
    truth = np.array(honest, np.float64)
    each = np.ones(len(truth)) if counts is None else np.array(counts)
    limits = [(None, None), *(bounds.get(name, (None, 0.0)) for name in names)]

    def loss(point: Floats) -> float:
        at = point[0] + values @ point[1:]
        return float((each * (np.logaddexp(0, at) - truth * at)).sum() + RIDGE / 2 * (point[1:] ** 2).sum())

    optimum = scipy.optimize.minimize(loss, np.zeros(1 + len(names)), method="L-BFGS-B", bounds=limits)
    told_slopes = {name: round(float(at), 4) for name, at in zip(names, optimum.x[1:], strict=True)}
    return Logistic(intercept=round(float(optimum.x[0]), 4), slopes=told_slopes)
