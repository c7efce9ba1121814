"""Charts as SVG: the same chart is the same text, whatever was drawn before it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from loadstone.report.pictures import chart_images
from loadstone.report.pictures.charts import base, latency_axis

LETTER = 7.0
"""Pixels: as wide as one of DejaVu Sans, which pages are drawn with where there is nothing narrower."""


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


@pytest.mark.in_turn
def test_labels_of_a_logarithmic_axis_do_not_stand_on_each_other() -> None:
    """The last one was moved inwards, onto its neighbour: `100 ms200 ms`."""
    for width in (330, 390, 480):
        axis = latency_axis("v", [1.2e6, 190e6])
        spec = base("a", [{"v": 1.2e6}, {"v": 190e6}]) | {
            "width": width,
            "mark": "point",
            "encoding": {"x": axis},
        }
        labels = re.findall(
            r'text-anchor="(\w+)" transform="translate\(([\d.]+),[\d.]+\)"([^>]*)>([^<]+ ms)</text>',
            chart_images.svg(spec),
        )
        assert {anchor for anchor, *_ in labels} == {"middle"}
        drawn = [(x, text) for _, x, look, text in labels if 'opacity="0"' not in look]
        assert len(drawn) > 4
        edge = -100.0
        for x, text in drawn:
            half = LETTER * len(text) / 2
            assert float(x) - half > edge, (width, drawn)
            edge = float(x) + half
