"""How often what probes point at is right, where the verdict names it: a count on the calibration.

Knows the judge's own course (`lab.probes.judged`). What the verdict names is chosen by being probable, so
it is right less often than all that is told with that probability.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from lab.fit import model
from lab.probes import judged, rows

from loadstone.explanations.names import BY_NAME, UNEXPLAINED
from loadstone.explanations.weights import Frequency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.probes.judged import ShortVerdict
    from lab.probes.rows import Row

    from loadstone.explanations.weights import Fitted

AS_TOLD: Final = Frequency(told=(0.0, 1.0), right=(0.0, 1.0))


def named(row: Row, said: ShortVerdict) -> list[tuple[float, bool]]:
    """Return what probes point at in this verdict, as sure as it is told, and whether it is right.

    Not where that is something unexplained, or where the cause is not in the device.
    """
    kind = rows.kind_row(row)
    if not kind.in_device:
        return []
    return [
        (sure, name in kind.truth) for name, sure in said.findings if name in BY_NAME and name != UNEXPLAINED
    ]


def fit_pointed(every: Sequence[Row], fitted: Fitted) -> Frequency:
    """Return how often it was right, by what all other counts make of it (isotonic regression)."""
    uncounted = fitted.model_copy(update={"pointed": AS_TOLD})
    cases = [case for row in every for case in named(row, judged.probed(row, uncounted))]
    predicted, right = (np.array([case[at] for case in cases], np.float64) for at in (0, 1))
    order = np.argsort(predicted, kind="stable")
    return model.isotonic(predicted[order], right[order])
