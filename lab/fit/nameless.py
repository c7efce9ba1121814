"""How often something unexplained is right, where it is the most probable: a count on the calibration.

Knows the judge's own course (`lab.probes.judged`). It can be right only of a cause that is in no list. So
each lie is there twice: as it was probed, and, as `UNLISTED` of one, as it was probed without its
explanation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lab.fit import model
from lab.probes import judged, rows

from loadstone.explanations.as_often_right import OF_BELIEF, doubts_of_unexplained
from loadstone.explanations.weights import Logistic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.probes.rows import Row

    from loadstone.explanations.weights import Fitted

UNCOUNTED: Final = Logistic(
    intercept=0.0, slopes=dict.fromkeys(("share", "storage", "sure", "decided", *OF_BELIEF), 0.0)
)
"""Before it is counted."""


def fit_unexplained(every: Sequence[Row], fitted: Fitted) -> Logistic:
    """Return the regression; all else of `fitted` is counted."""
    cases = [case for row in every for case in _cases(row, fitted)]
    doubts, right, counts = zip(*cases, strict=True)
    free = dict.fromkeys(doubts[0], (None, None))
    return model.regression(doubts, right, counts, bounds=free)


def _cases(row: Row, fitted: Fitted) -> Iterator[tuple[dict[str, float], bool, float]]:
    """Yield doubts, whether it is right, and as how many it counts."""
    kind = rows.kind_row(row)
    if not row["tried"] or not kind.in_device:
        return
    ways = [(frozenset[str](), False, 1.0)]
    if not kind.honest and row.get("tried_without"):
        ways.append((frozenset(kind.truth), True, rows.UNLISTED))
    for without, right, count in ways:
        line = judged.weighed_line(row, fitted, without)
        doubts = doubts_of_unexplained(
            line.weighed, line.sure, line.features, decided=line.decided, fitted=fitted
        )
        if doubts is not None:
            yield doubts, right, count
