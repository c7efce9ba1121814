"""All situations at once as arrays, so that weights can be tried quickly.

Knows the same sums as `loadstone.explanations.weigh`, over many situations; a test holds the two together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from lab.probes import rows as lines

from loadstone.explanations.cells import cells_of, densities
from loadstone.explanations.names import BY_NAME, UNEXPLAINED, possible
from loadstone.explanations.predictions import READINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.probes.rows import Row
    from numpy.typing import NDArray

    from loadstone.explanations.weights import Weights

    Floats = NDArray[np.float64]

READING_NAMES: Final = tuple(READINGS)


@dataclass(frozen=True)
class Evidence:
    """One situation. A row for each explanation in each regime, a column for each reading."""

    rows: Floats
    """Which explanation each is."""
    odds: Floats
    measures: Floats
    unknown: Floats
    nearly: Floats
    at_a_limit: Floats
    right: Floats
    names: tuple[str, ...]
    """Of the readings."""
    told: Floats
    anything: Floats
    found: Floats
    clear: Floats
    """How many rules that point at it found nothing."""


def of(row: Row, *, probed: bool = True, removed: bool = False) -> Evidence:
    """Return what a line says. `removed`: its explanation is not in the list; the unknown is right.

    Then what was tried without it counts; of lines that were never tried so, what was tried with it.
    """
    measured = lines.weighable(row, probed=probed, without=removed and bool(row.get("tried_without")))
    truth = frozenset(lines.kind_row(row).truth)
    every = [one for one in possible(measured.facts) if not (removed and one.name in truth)]
    cells = cells_of(every)
    right = frozenset({UNEXPLAINED}) if removed else truth
    readings = (
        [] if measured.probed is None else [one for tried in measured.probed.tried for one in tried.readings]
    )
    known = [one for one in readings if one.name in READINGS]
    parts = [densities(cells, one.name, np.array([one.value]), one.error) for one in known]
    checked = set(measured.checked)

    def of_cells(value: dict[str, float]) -> Floats:
        return np.array([value[one.name] for one in cells.every], np.float64)

    finding_logs = {
        one.name: tuple(math.log(max(1.0, measured.found[rule] / max(1e-6, 1 - measured.found[rule])))
                        for rule in one.rules if rule in measured.found)
        for one in every
    }  # fmt: skip
    most = max((len(one) for one in finding_logs.values()), default=0)
    return Evidence(
        rows=cells.rows.astype(np.float64),
        odds=np.log(cells.odds),
        measures=of_cells({one.name: float(BY_NAME[one.name].effect == "measures") for one in every}),
        unknown=of_cells({one.name: float(one.name == UNEXPLAINED) for one in every}),
        nearly=cells.nearly.astype(np.float64),
        at_a_limit=cells.at_a_limit.astype(np.float64),
        right=of_cells({one.name: float(one.name in right) for one in every}),
        names=tuple(one.name for one in known),
        told=np.stack([part[0][:, 0] for part in parts], axis=1)
        if parts
        else np.zeros((len(cells.every), 0)),
        anything=np.array([part[1][0] for part in parts]),
        found=np.array(
            [[*finding_logs[one.name], *[0.0] * (most - len(finding_logs[one.name]))] for one in cells.every]
        ),
        clear=of_cells(
            {
                one.name: float(sum(rule in checked - set(measured.found) for rule in one.rules))
                for one in every
            }
        ),
    )


@dataclass(frozen=True)
class LikeliestCauses:
    """Of each situation the most probable of what is not the storage.

    `part`: of all causes; whether it is right, and whether it is something unexplained.
    """

    part: Floats
    right: NDArray[np.bool_]
    unknown: NDArray[np.bool_]


@dataclass
class Sort:
    """Explanations whose readings depend on the same weights, and what these made of them last."""

    places: tuple[NDArray[np.intp], NDArray[np.intp]]
    """Situation and explanation of each."""
    told: Floats
    known: tuple[tuple[float, ...], Floats] | None = None


@dataclass(frozen=True)
class EvidenceTable:
    """Many situations, padded to one shape: situation, explanation in its regime, reading."""

    rows: Floats
    odds: Floats
    measures: Floats
    unknown: Floats
    nearly: Floats
    at_a_limit: Floats
    right: Floats
    names: NDArray[np.intp]
    """Place of each reading's name in `READING_NAMES`."""
    told: Floats
    anything: Floats
    used: Floats
    found: Floats
    clear: Floats

    @cached_property
    def sorts(self) -> dict[str, Sort]:
        """The sorts of explanations: the named ones, and the two of the unexplained."""
        nearly, unknown = self.nearly > 0, self.unknown > 0
        masks = {"named": ~unknown, "unlike": unknown & ~nearly, "nearly": unknown & nearly}
        places = {name: np.nonzero(mask) for name, mask in masks.items()}
        return {name: Sort((at[0], at[1]), self.told[at]) for name, at in places.items()}

    def logs(self, weights: Weights) -> Floats:
        """Return the logarithm of each chance."""
        logs = (
            self.odds
            + self.measures * math.log(weights.measures_odds)
            + self.unknown * math.log(weights.unexplained_odds)
            + weights.dependence * self._by_explanation(weights)
            + np.minimum(self.found, math.log(weights.most_odds)).sum(axis=2)
            + self.clear * math.log(weights.clear)
        )
        logs -= logs.max(axis=1, keepdims=True)
        normalised: Floats = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
        return normalised

    def _by_explanation(self, weights: Weights) -> Floats:
        """Return what all readings of a situation say together of each of its explanations.

        Of each sort of explanation that depends on other weights: a step of a fit changes one, and what
        the others leave as it is has been worked out.
        """
        named = tuple(weights.surprise_of(name) for name in READING_NAMES)
        whole = np.empty(self.odds.shape)
        for sort, shares in (
            ("named", named),
            ("unlike", (weights.unlike,) * len(READING_NAMES)),
            ("nearly", (weights.fewer,) * len(READING_NAMES)),
        ):
            part = self.sorts[sort]
            if part.known is None or part.known[0] != shares:
                unlike = np.array(shares)[self.names[part.places[0]]]
                density = (1 - unlike) * part.told + unlike * self.anything[part.places[0]]
                logs = np.log(np.maximum(density, 1e-300)) * self.used[part.places[0]]
                part.known = (shares, logs.sum(axis=1))
            whole[part.places] = part.known[1]
        return whole

    def surprised(self, weights: Weights) -> dict[str, tuple[float, float]]:
        """Return of each reading how many nothing predicted that is right, and how many there were."""
        surprises = np.array([weights.surprise_of(name) for name in READING_NAMES])[self.names]
        share = surprises[:, None, :]
        strange = share * self.anything[:, None, :]
        part = strange / (strange + (1 - share) * self.told)
        chances = np.exp(self.logs(weights)) * self.right * (1 - self.unknown)
        chances /= np.maximum(chances.sum(axis=1, keepdims=True), 1e-300)
        surprising = (part * chances[:, :, None]).sum(axis=1) * self.used
        whole = self.used * (chances.sum(axis=1, keepdims=True) > 0)
        return {
            name: (float(surprising[self.names == at].sum()), float(whole[self.names == at].sum()))
            for at, name in enumerate(READING_NAMES)
        }

    def right_logs(self, weights: Weights) -> Floats:
        """Return the logarithm of the chance that is given to what is right, of each situation."""
        chances = np.exp(self.logs(weights)) * self.right
        logs: Floats = np.log(np.maximum(chances.sum(axis=1), 1e-9))
        return logs

    def limited(self, weights: Weights) -> Floats:
        """Return the part of that in which nothing of the storage is idle."""
        chances = np.exp(self.logs(weights)) * self.measures
        share: Floats = (chances * self.at_a_limit).sum(axis=1) / np.maximum(chances.sum(axis=1), 1e-300)
        return share

    def causes(self, weights: Weights) -> LikeliestCauses:
        """Return the most probable cause of each situation."""
        chances = np.exp(self.logs(weights)) * (1 - self.measures)
        each = range(1 + int(self.rows.max()))
        sums = np.stack([(chances * (self.rows == row)).sum(axis=1) for row in each], axis=1)
        first = sums.argmax(axis=1)
        of_first = self.rows == first[:, None]
        return LikeliestCauses(
            sums.max(axis=1) / np.maximum(sums.sum(axis=1), 1e-300),
            (of_first & (self.right > 0)).any(axis=1),
            (of_first & (self.unknown > 0)).any(axis=1),
        )

    def measuring(self, weights: Weights) -> Floats:
        """Return the chance that it measures the storage, of each situation."""
        chances: Floats = (np.exp(self.logs(weights)) * self.measures).sum(axis=1)
        return chances


def table(every: Sequence[Evidence]) -> EvidenceTable:
    """Put situations together."""
    cells = max(len(one.odds) for one in every)
    readings = max(one.told.shape[1] for one in every)
    rules = max(1, *(one.found.shape[1] if one.found.ndim == 2 else 0 for one in every))

    def flat(name: str, fill: float = 0.0) -> Floats:
        array = np.full((len(every), cells), fill)
        for at, one in enumerate(every):
            value = getattr(one, name)
            array[at, : len(value)] = value
        return array

    def wide(name: str) -> Floats:
        array = np.ones((len(every), readings))
        for at, one in enumerate(every):
            value = getattr(one, name)
            array[at, : len(value)] = value
        return array

    likelihoods = np.ones((len(every), cells, readings))
    names = np.zeros((len(every), readings), np.intp)
    finding_logs = np.zeros((len(every), cells, rules))
    used = np.zeros((len(every), readings))
    for at, one in enumerate(every):
        likelihoods[at, : one.told.shape[0], : one.told.shape[1]] = one.told
        used[at, : one.told.shape[1]] = 1.0
        names[at, : len(one.names)] = [READING_NAMES.index(name) for name in one.names]
        if one.found.size:
            finding_logs[at, : one.found.shape[0], : one.found.shape[1]] = one.found
    return EvidenceTable(
        rows=flat("rows", -1.0),
        odds=flat("odds", -1e9),
        measures=flat("measures"),
        unknown=flat("unknown"),
        nearly=flat("nearly"),
        at_a_limit=flat("at_a_limit"),
        right=flat("right"),
        names=names,
        told=likelihoods,
        anything=wide("anything"),
        used=used,
        found=finding_logs,
        clear=flat("clear"),
    )
