"""The design of an experiment as a matrix: which effects can be known from the runs that there are.

Knows factors, levels, blocks and times. Knows no measured value: what enters the model follows
from the design alone, so that no test decides what is tested next.

Factors are coded by deviations (each level against the mean of all levels), so that a main effect
is an average over the levels of the others, with equal weights, and orders of interaction do not
depend on each other (D. C. Montgomery, Design and Analysis of Experiments, chapter 5). Blocks and
a straight line of time take out what changes while the experiment runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from loadstone.effects.findings import DriftTaken
    from loadstone.effects.observations import Factor, Observation

    Numbers = NDArray[np.float64]

MIN_FREEDOM: Final = 4
"""Interactions of three and more factors go to the error until it has so many degrees of freedom."""
FREEDOM_FOR_LINE: Final = 6
"""From so many on a line of time is worth one of them."""
MAX_INFLATION: Final = 10.0
"""A line that makes the variance of an effect larger than this many times cannot be told from it."""
FOLLOWS_TIME: Final = 2.0
"""From this inflation on a factor's levels are said to follow the time."""
SMALL: Final = 1e-8
TOLD: Final = 1e-6
"""A contrast that the runs tell differs by less from what they span."""


@dataclass(frozen=True, slots=True)
class DesignTerm:
    """A factor or an interaction, by the positions of its factors, and its columns."""

    factors: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """The matrix, and where in it what stands."""

    matrix: Numbers
    names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    """Of each factor, those that have data."""
    terms: tuple[DesignTerm, ...]
    nuisance: tuple[int, ...]
    """Columns of blocks and time."""
    line: int | None
    """Column of the line of time; it rises by 1 over the experiment."""
    taken_out: DriftTaken
    blocks: int
    unknown: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]
    """Terms that cannot be known, and those that they cannot be told from (empty: cells are missing)."""
    pooled: tuple[tuple[int, ...], ...]
    """Terms that are taken for error."""
    follows_time: tuple[str, ...]
    """Factors whose levels follow the time."""
    cannot_part: tuple[str, ...]
    """Those that cannot be told from a drift."""
    known: Numbers | None = None
    """What the runs tell of main effects, each column a combination of the mean and the codes of all factors:
    also of those that the model has no term for. None: everything."""
    resting: tuple[str, ...] | None = None
    """Where one factor at a time is varied, the level of each while another is; None: another design."""
    plots: NDArray[np.int64] | None = None
    """Of each run, which plot it is in, where factors are set rarely: one setting, several runs."""

    def term(self, *factors: int) -> DesignTerm | None:
        """Return a term of the model; None when it has none."""
        return next((one for one in self.terms if one.factors == factors), None)

    def name(self, factors: Sequence[int]) -> str:
        """Return how a term is called: `a`, `a:b`."""
        return ":".join(self.names[at] for at in factors)

    def main(self, factor: int, level: str, against: str) -> Numbers | None:
        """Return the contrast of two levels of a factor, averaged over all other factors.

        None also where it is another factor's as well, for which the model has no term then.
        """
        row = self._contrast({factor: (level, against)})
        separable = row is not None and self._is_told(
            0.0, {factor: self._difference(factor, (level, against))}
        )
        return row if separable else None

    def interaction(
        self, first: int, levels: tuple[str, str], second: int, at: tuple[str, str]
    ) -> Numbers | None:
        """Return the contrast of a contrast: how an effect differs between two levels of another factor."""
        return self._contrast({first: levels, second: at})

    def simple(self, factor: int, levels: tuple[str, str], other: int, at: str) -> Numbers | None:
        """Return the contrast of two levels of a factor at one level of another."""
        main = self.main(factor, *levels)
        pair = (factor, other) if factor < other else (other, factor)
        term = self.term(*pair)
        if main is None or term is None:
            return None
        codes = {factor: self._difference(factor, levels), other: self._code(other, at)}
        main[list(term.columns)] += _outer([codes[one] for one in pair])
        return main

    def cell(self, chosen: dict[str, str]) -> Numbers | None:
        """Return the combination whose value is a cell's mean, over all blocks, in the middle of the time."""
        return self.mean(chosen)

    def mean(self, chosen: dict[str, str]) -> Numbers | None:
        """Return the same of some factors' levels, averaged over the levels of all others.

        With one factor at a time the others are at rest: their average is of combinations nobody measured.
        """
        if self.resting is not None:
            chosen = dict(zip(self.names, self.resting, strict=True)) | chosen
        row = np.zeros(self.matrix.shape[1])
        row[0] = 1.0
        for term in self.terms:
            if any(self.names[at] not in chosen for at in term.factors):
                continue
            if any(chosen[self.names[at]] not in self.levels[at] for at in term.factors):
                return None
            codes = [self._code(at, chosen[self.names[at]]) for at in term.factors]
            row[list(term.columns)] = _outer(codes)
        own = {
            at: self._code(at, chosen[name])
            for at, name in enumerate(self.names)
            if name in chosen and chosen[name] in self.levels[at]
        }
        return row if self._is_told(1.0, own) else None

    def _is_told(self, mean: float, codes: dict[int, Numbers]) -> bool:
        """Return whether the runs tell this combination of main effects from every other."""
        if self.known is None:
            return True
        parts = [codes.get(at, np.zeros(len(levels) - 1)) for at, levels in enumerate(self.levels)]
        row = np.concatenate([[mean], *(part for part in parts if len(part))])
        return bool(np.abs(row - self.known @ (self.known.T @ row)).max() < TOLD)

    def departures(self, first: int, second: int) -> list[Numbers]:
        """Return for each combination of two factors the interaction where it alone departs, by 1."""
        sizes = len(self.levels[first]), len(self.levels[second])
        departures = []
        for place in np.ndindex(*sizes):
            values = np.zeros(sizes)
            values[place] = 1.0
            own = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
            departures.append(own[:-1, :-1].ravel())
        return departures

    def _contrast(self, differences: dict[int, tuple[str, str]]) -> Numbers | None:
        ordered = tuple(sorted(differences))
        term = self.term(*ordered)
        if term is None:
            return None
        row = np.zeros(self.matrix.shape[1])
        row[list(term.columns)] = _outer([self._difference(at, differences[at]) for at in ordered])
        return row

    def _difference(self, factor: int, levels: tuple[str, str]) -> Numbers:
        return self._code(factor, levels[0]) - self._code(factor, levels[1])

    def _code(self, factor: int, level: str) -> Numbers:
        return np.asarray(codes(len(self.levels[factor]))[self.levels[factor].index(level)])


def codes(count: int) -> Numbers:
    """Return a row for each level: 1 in its own column, the last level -1 in all."""
    return np.vstack([np.eye(count - 1), -np.ones((1, count - 1))])


def _outer(parts: Sequence[Numbers]) -> Numbers:
    outer: Numbers = parts[0]
    for part in parts[1:]:
        outer = np.asarray(np.outer(outer, part).ravel(), dtype=np.float64)
    return outer


@dataclass(frozen=True, slots=True)
class _Factorial:
    """The part of the matrix that is made of levels."""

    names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    matrix: Numbers
    terms: tuple[DesignTerm, ...]
    unknown: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]
    pooled: tuple[tuple[int, ...], ...]


def build(factors: Sequence[Factor], rows: Sequence[Observation], rarely: Sequence[str] = ()) -> Design:
    """Return the design of these runs; `rarely`: factors that are set once for several runs."""
    design = _of_runs(factors, rows)
    return replace(
        design, plots=_plots(rows, rarely), resting=_resting(design, rows), known=_known(design, rows)
    )


def _known(design: Design, rows: Sequence[Observation]) -> Numbers | None:
    """Return what the runs tell of main effects, where one of them cannot be known; None: all of it."""
    if not any(len(term) == 1 for term, _ in design.unknown):
        return None
    varied = [at for at, levels in enumerate(design.levels) if len(levels) > 1]
    every = [_columns((at,), design.names, design.levels, rows) for at in varied]
    _, sizes, basis = np.linalg.svd(np.hstack([np.ones((len(rows), 1)), *every]), full_matrices=False)
    return np.asarray(basis[sizes > SMALL * max(1.0, float(sizes[0]))].T)


def _resting(design: Design, rows: Sequence[Observation]) -> tuple[str, ...] | None:
    """Return the first level of every factor where no run has two that differ from it."""
    varied = [at for at, levels in enumerate(design.levels) if len(levels) > 1]
    first = tuple(levels[0] if levels else "" for levels in design.levels)
    apart = [sum(row.levels[design.names[at]] != first[at] for at in varied) for row in rows]
    at_rest = 0 in apart and max(apart) <= 1
    return first if at_rest and len(varied) > 1 else None


def _plots(rows: Sequence[Observation], rarely: Sequence[str]) -> NDArray[np.int64] | None:
    if not rarely:
        return None
    keys = [(row.block, *(row.levels[name] for name in rarely)) for row in rows]
    numbers = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    # One run for each setting is a design like any other.
    return np.array([numbers[key] for key in keys]) if len(numbers) < len(rows) else None


def _of_runs(factors: Sequence[Factor], rows: Sequence[Observation]) -> Design:
    names = tuple(one.name for one in factors)
    levels = tuple(
        tuple(level for level in one.levels if any(row.levels[one.name] == level for row in rows))
        for one in factors
    )
    varied = [at for at in range(len(names)) if len(levels[at]) > 1]
    wanted = [term for size in range(1, len(varied) + 1) for term in combinations(varied, size)]
    most = _most_order(wanted, rows, levels)
    matrix = np.ones((len(rows), 1))
    terms: list[DesignTerm] = []
    unknown: list[tuple[tuple[int, ...], tuple[str, ...]]] = []
    for term in wanted:
        if len(term) > most:
            continue
        if any((at,) in (gone for gone, _ in unknown) for at in term):
            unknown.append((term, ()))
            continue
        added = _columns(term, names, levels, rows)
        both = np.hstack([matrix, added])
        if _rank(both) == both.shape[1]:
            first = matrix.shape[1]
            terms.append(DesignTerm(term, tuple(range(first, both.shape[1]))))
            matrix = both
        else:
            unknown.append((term, _aliases(matrix, added, terms, names)))
    matrix, terms, pooled = _with_error(matrix, terms, rows)
    factorial = _Factorial(names, levels, matrix, tuple(terms), tuple(unknown), tuple(pooled))
    return _with_time(factorial, rows)


def _most_order(
    wanted: Sequence[tuple[int, ...]], rows: Sequence[Observation], levels: Sequence[Sequence[str]]
) -> int:
    """Return up to which order terms are looked at: beyond two only in a design with all cells."""
    order = max((len(term) for term in wanted), default=1)
    cells = {tuple(sorted(row.levels.items())) for row in rows}
    every = int(np.prod([max(1, len(one)) for one in levels]))
    return order if len(cells) == every else min(order, 2)


def _columns(
    term: tuple[int, ...], names: Sequence[str], levels: Sequence[Sequence[str]], rows: Sequence[Observation]
) -> Numbers:
    coded = [codes(len(levels[at])) for at in term]
    return np.array(
        [
            _outer(
                [code[levels[at].index(row.levels[names[at]])] for at, code in zip(term, coded, strict=True)]
            )
            for row in rows
        ]
    )


def written(term: str) -> str:
    """Write the name of a term for people: `a × b` where it is `a:b` in a document."""
    return term.replace(":", " × ")


def _rank(matrix: Numbers) -> int:
    return int(np.linalg.matrix_rank(matrix, tol=SMALL * max(matrix.shape)))


def _aliases(
    matrix: Numbers, added: Numbers, terms: Sequence[DesignTerm], names: Sequence[str]
) -> tuple[str, ...]:
    """Return the terms that a new one is a combination of; none where it is partly its own."""
    weights, *_ = np.linalg.lstsq(matrix, added, rcond=None)
    if np.abs(added - matrix @ weights).max() > 1e-6:
        return ()
    return tuple(
        ":".join(names[at] for at in term.factors)
        for term in terms
        if np.abs(weights[list(term.columns)]).max() > 1e-6
    )


def _with_error(
    matrix: Numbers, terms: list[DesignTerm], rows: Sequence[Observation]
) -> tuple[Numbers, list[DesignTerm], list[tuple[int, ...]]]:
    """Leave out the highest orders until something is left to tell the error from."""
    blocks = len({row.block for row in rows})
    pooled: list[tuple[int, ...]] = []
    while terms:
        order = max(len(term.factors) for term in terms)
        freedom = len(rows) - matrix.shape[1] - (blocks - 1)
        enough = MIN_FREEDOM if order > 2 else 1
        if order == 1 or freedom >= enough:
            break
        gone = [term for term in terms if len(term.factors) == order]
        pooled += [term.factors for term in gone]
        terms = [term for term in terms if len(term.factors) < order]
        matrix = matrix[:, : 1 + sum(len(term.columns) for term in terms)]
    return matrix, terms, pooled


def _with_time(levels: _Factorial, rows: Sequence[Observation]) -> Design:
    matrix, terms, names = levels.matrix, levels.terms, levels.names
    count = matrix.shape[1]
    in_blocks = _in_blocks(matrix, rows)
    blocked = in_blocks.shape[1] > count
    time = line_of(rows)
    full_matrix, line = in_blocks, None
    drift_taken: DriftTaken = "blocks" if blocked else "nothing"
    within, alone = (_inflation(one, time, terms) for one in (in_blocks, matrix))
    worst, worst_alone = (max(one.values(), default=1.0) for one in (within, alone))
    follows = {at for at, factor in within.items() if factor >= FOLLOWS_TIME}
    never: set[int] = set()
    if len(rows) - in_blocks.shape[1] >= FREEDOM_FOR_LINE and worst <= MAX_INFLATION:
        full_matrix, line = np.hstack([in_blocks, time]), in_blocks.shape[1]
        drift_taken = "blocks_and_line" if blocked else "line"
    elif worst > MAX_INFLATION >= worst_alone and len(rows) - count - 1 >= MIN_FREEDOM:
        # The same order in every block: only from block to block can time be told from the levels.
        full_matrix, line, drift_taken = np.hstack([matrix, time]), count, "line"
    else:
        never = {at for at in follows if not blocked or within[at] > MAX_INFLATION}
    return Design(
        matrix=full_matrix,
        names=names,
        levels=levels.levels,
        terms=terms,
        nuisance=tuple(range(count, full_matrix.shape[1])),
        line=line,
        taken_out=drift_taken,
        blocks=len({row.block for row in rows}),
        unknown=levels.unknown,
        pooled=levels.pooled,
        follows_time=tuple(names[at] for at in sorted(follows)),
        cannot_part=tuple(names[at] for at in sorted(never)),
    )


def _in_blocks(matrix: Numbers, rows: Sequence[Observation]) -> Numbers:
    """Return the matrix with a column for each block but one, where these are no combination of levels."""
    numbers = sorted({row.block for row in rows})
    if len(numbers) == 1:
        return matrix
    block = np.array([codes(len(numbers))[numbers.index(row.block)] for row in rows])
    joined = np.hstack([matrix, block])
    known = _rank(joined) == joined.shape[1] and len(rows) > joined.shape[1]
    return joined if known else matrix


def line_of(rows: Sequence[Observation]) -> Numbers:
    """Return the time of each run, from -0.5 to 0.5 over the experiment; the order where no time is known."""
    time = np.array([row.started_s for row in rows], dtype=np.float64)
    if np.ptp(time) == 0:
        time = np.array([row.order for row in rows], dtype=np.float64)
    spread = np.ptp(time)
    middle = (time.max() + time.min()) / 2
    return np.asarray((time - middle) / (spread or 1.0), dtype=np.float64)[:, None]


def _inflation(matrix: Numbers, time: Numbers, terms: Sequence[DesignTerm]) -> dict[int, float]:
    """Return for each factor how many times larger the variance of its effects is with a line of time."""
    both = np.hstack([matrix, time])
    mains = {term.factors[0]: term for term in terms if len(term.factors) == 1}
    if _rank(both) < both.shape[1]:
        return dict.fromkeys(mains, float("inf"))
    before = np.linalg.inv(matrix.T @ matrix)
    after = np.linalg.inv(both.T @ both)
    inflations = {}
    for factor, term in mains.items():
        columns = list(term.columns)
        coded = codes(len(columns) + 1)
        pairs = np.array([coded[b] - coded[a] for a, b in combinations(range(len(coded)), 2)])
        variances = [
            np.einsum("ij,jk,ik->i", pairs, one[np.ix_(columns, columns)], pairs) for one in (before, after)
        ]
        inflations[factor] = float((variances[1] / variances[0]).max())
    return inflations


def cells(factors: Sequence[Factor], rows: Sequence[Observation]) -> list[dict[str, str]]:
    """Return the combinations of an experiment, in the order of the file; only those that were asked for."""
    requested = {tuple(row.levels[one.name] for one in factors) for row in rows}
    every = product(*(one.levels for one in factors))
    return [
        {one.name: level for one, level in zip(factors, combination, strict=True)}
        for combination in every
        if combination in requested
    ]
