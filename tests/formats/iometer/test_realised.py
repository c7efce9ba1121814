"""The I/Os of a specification are what its lines say, counted one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.workload.placement import Amount
from tests.formats.iometer.files import made
from tests.support.realised import agrees, realised, sizes
from tests.support.work import rows_of

if TYPE_CHECKING:
    from pathlib import Path

READ, WRITE = 0, 1


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "name", ["12-file-server.icf", "13-all-in-one.icf", "15-burst-rows.icf", "17-2004.icf"]
)
def test_sizes_directions_and_addresses_are_those_of_the_lines(tmp_path: Path, name: str) -> None:
    (run,) = made(name)
    rows = rows_of(run.workload.jobs[0])
    ios = realised(run.workload, tmp_path, size=Amount(bytes=1 << 30), ops=40_000)
    assert ios.height >= 40_000
    weight: dict[tuple[int, int], float] = {}
    for row in rows:
        # In a burst of so many the row is drawn once.
        share = row.percent * row.burst
        for op, percent in ((READ, row.read_percent), (WRITE, 100 - row.read_percent)):
            key = (op, row.bytes)
            weight[key] = weight.get(key, 0.0) + share * percent
    found = sizes(ios)
    bursts = max(row.burst for row in rows)
    # Draws of a burst are not independent: there are as many draws as bursts.
    assert agrees({key: count // bursts for key, count in found.items()}, weight)


@pytest.mark.in_turn
def test_reads_and_writes_move_along_together(tmp_path: Path) -> None:
    """Iometer has one position on a drive; a random I/O moves it, too."""
    (run,) = made("13-all-in-one.icf")
    ios = realised(run.workload, tmp_path, size=Amount(bytes=1 << 30), ops=20_000).sort("start_ns", "t_ns")
    ends = (ios["offset"] + ios["bytes"]).to_list()
    follows = sum(offset == end for offset, end in zip(ios["offset"].to_list()[1:], ends, strict=False))
    random = sum(row.percent * row.random_percent for row in rows_of(run.workload.jobs[0])) / 100
    # 4 I/Os at a time complete in their order, so the log is in the order of issue.
    assert 100 * follows / ios.height == pytest.approx(100 - random, abs=2)


@pytest.mark.in_turn
def test_bursts_pause(tmp_path: Path) -> None:
    """8 I/Os, 10 ms, 8 I/Os: 800 a second at the most."""
    (run,) = made("14-bursts.icf")
    ios = realised(run.workload, tmp_path, size=Amount(bytes=1 << 30), seconds=10.0)
    assert ios.height / 10 == pytest.approx(800, rel=0.01)
