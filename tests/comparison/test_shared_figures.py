"""Sides that tell the same load by figures of different kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.comparison.compare import compare

if TYPE_CHECKING:
    from pathlib import Path

RESULT = """
format = 1
title = "T"
source = "S"
[[system]]
name = "s"
[[result]]
name = "4k random read"
system = "s"
op = "read"
access = "random"
block = "4k"
iodepth = 32
"""


def side(path: Path, figures: str) -> Path:
    """Write down a printed result."""
    path.write_text(RESULT + figures)
    return path


def test_a_load_without_a_figure_on_both_sides_is_named(tmp_path: Path) -> None:
    """One side has a latency only, the other a rate: told were an empty table and *give several runs*."""
    latency = side(tmp_path / "a.toml", 'latency = "3.2 ms"')
    rate = side(tmp_path / "b.toml", "iops = [10000, 10100, 9950]")
    both = side(tmp_path / "c.toml", 'iops = 10500\nlatency = "3.05 ms"')
    expected = "no figure of 4k random read is in both: a.toml has latency mean, b.toml has IOPS, bandwidth"
    assert expected in compare([latency, rate]).warnings
    for sides in ([latency, both], [rate, both]):
        assert not any("no figure of" in one for one in compare(sides).warnings)
