"""The axis of changes: labels that have room."""

from __future__ import annotations

import math
import random

import pytest

from loadstone.report.pictures import forest

PLOT = 340
"""Pixels between the ends of the axis, where names stand beside their rows."""
LETTER = 5.8


@pytest.mark.parametrize("seed", range(998_000, 998_040))
def test_labels_of_the_axis_do_not_stand_on_each_other(seed: int) -> None:
    """The last one is moved inwards, so as not to be cut, and stood on its neighbour: `+900 %+4,900 %`."""
    drawn = random.Random(seed)
    axis = forest._axis(10 ** drawn.uniform(-1.9, 0), 10 ** drawn.uniform(0, 1.9))
    low, high = (math.log(end) for end in axis["scale"]["domain"])
    edge = -math.inf
    assert 1.0 in axis["axis"]["values"]
    for value in axis["axis"]["values"]:
        text = "none" if value == 1 else f"{100 * (value - 1):+,.3g} %"
        width = LETTER * len(text)
        left = PLOT * (math.log(value) - low) / (high - low) - width / 2
        left = min(max(left, 0), PLOT - width)
        assert left > edge, (axis["axis"]["values"], text)
        edge = left + width
