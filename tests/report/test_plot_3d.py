"""Grids drawn in three dimensions: what is where, how high, and what hides what."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pytest

from loadstone import units
from loadstone.report.pictures import chart_images, plot_3d


def grid(values: list[list[float | None]]) -> plot_3d.Grid:
    columns = [f"c{n}" for n in range(len(values[0]))]
    return plot_3d.Grid(
        "t", "across", columns, "down", [f"r{n}" for n in range(len(values))], values, units.count
    )


def faces(spec: Any) -> dict[int, list[dict[str, Any]]]:
    """Corners by face in the order drawn, without walls and floor."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for corner in spec["layer"][0]["data"]["values"]:
        if corner["edge"] == "white":
            found[corner["face"]].append(corner)
    return dict(found)


def labels(spec: Any) -> list[str]:
    return [label["text"] for layer in spec["layer"][1:] for label in layer["data"]["values"]]


def test_a_bar_is_as_high_as_its_number() -> None:
    spec = plot_3d.drawn(grid([[10.0, 20.0], [5.0, None]]), "bars")
    bars = list(faces(spec).values())
    assert len(bars) == 3 * 3  # three sides of three bars; what is missing has none
    heights = [side[2]["y"] - side[1]["y"] for side in bars[::3]]
    assert heights == pytest.approx([plot_3d.TALL / 2, plot_3d.TALL, plot_3d.TALL / 4], abs=0.01)
    assert "0" in labels(spec)


def test_what_is_nearer_is_drawn_later() -> None:
    spec = plot_3d.drawn(grid([[1.0] * 4 for _ in range(3)]), "bars")
    floors = [min(corner["y"] for corner in side) for side in list(faces(spec).values())[::3]]
    # Nearer is lower on the paper.
    assert floors == sorted(floors, reverse=True)


def test_numbers_far_apart_stand_on_a_logarithmic_axis_from_a_whole_power() -> None:
    spec = plot_3d.drawn(grid([[30.0, 3000.0], [300.0, 30_000.0]]), "bars")
    tops = [side[2]["y"] - side[1]["y"] for side in list(faces(spec).values())[::3]]
    whole = math.log10(30_000 / 10)
    expected = [plot_3d.TALL * math.log10(value / 10) / whole for value in (30, 3000, 300, 30_000)]
    assert sorted(tops) == pytest.approx(sorted(expected), abs=0.01)
    assert [text for text in labels(spec) if text[0].isdigit()] == ["10", "100", "1k", "10k"]


def test_a_surface_has_a_hole_where_a_number_is_missing() -> None:
    whole = plot_3d.drawn(grid([[1.0] * 4] * 3), "surface")
    holed = plot_3d.drawn(grid([[1.0] * 4, [1.0, None, 1.0, 1.0], [1.0] * 4]), "surface")
    assert (len(faces(whole)), len(faces(holed))) == (2 * 3, 2)


def test_the_higher_the_darker() -> None:
    spec = plot_3d.drawn(grid([[1.0, 1.0, 9.0], [1.0, 1.0, 9.0]]), "surface")
    low, high = (face[0]["fill"] for face in faces(spec).values())
    assert int(low[1:3], 16) > int(high[1:3], 16)


def test_a_line_or_nothing_is_no_solid() -> None:
    assert plot_3d.drawn(grid([[1.0, 2.0]]), "bars") is None
    assert plot_3d.drawn(grid([[None, None], [None, 0.0]]), "surface") is None


@pytest.mark.parametrize("form", ["bars", "surface"])
def test_it_can_be_drawn_with_all_its_faces(form: Any) -> None:
    spec = plot_3d.drawn(grid([[1.0, 2.0, 50.0]] * 3), form)
    assert spec is not None
    svg = chart_images.svg(spec)
    assert svg.count('stroke="white"') == len(faces(spec))
    assert all(name in svg for name in ("across", "down", "c2", "r0"))
