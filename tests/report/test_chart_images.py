"""Charts as SVG: the same chart is the same text, whatever was drawn before it."""

from __future__ import annotations

import re
from typing import Any

from loadstone.report.pictures import chart_images


def clipped(highest: int) -> dict[str, Any]:
    """A chart that cuts off what is beyond its axis."""
    return {
        "data": {"values": [{"x": 1, "y": 2}, {"x": 2, "y": highest}]},
        "mark": {"type": "line", "clip": True},
        "encoding": {
            "x": {"field": "x", "type": "quantitative"},
            "y": {"field": "y", "type": "quantitative", "scale": {"domain": [0, 10]}},
        },
    }


def test_a_chart_is_the_same_whatever_was_drawn_before_it() -> None:
    """Regression: a page's clip paths were counted in the order in which its charts happened to be drawn."""
    first = chart_images.svg(clipped(20))
    chart_images.svg(clipped(30))
    assert chart_images.svg(clipped(20)) == first


def test_charts_of_one_page_do_not_cut_each_other() -> None:
    one, other = (chart_images.svg(clipped(highest)) for highest in (20, 30))
    names, others = (set(re.findall(r'id="([^"]+)"', drawn)) for drawn in (one, other))
    assert names
    assert others
    assert not names & others
    for drawn, own in ((one, names), (other, others)):
        assert set(re.findall(r"url\(#([^)]+)\)", drawn)) <= own
