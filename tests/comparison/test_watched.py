"""Watched hosts before and after: what is told apart, and which way is better."""

from __future__ import annotations

from loadstone.analysis.statistics.significance import Contrast, Sample
from loadstone.comparison.watched import WatchedCell, WatchedRow, _contrast, _judged


def row(key: str, before: float, after: float | None, error: float = 0.5, runs: int = 3) -> WatchedRow:
    first = Sample(before, error, 20, runs)
    second = None if after is None else Sample(after, error, 20, runs)
    return WatchedRow(
        "nas", key, key, "percent", (WatchedCell(first), WatchedCell(second, _contrast(first, second)))
    )


def test_lower_and_higher_are_better_where_they_are() -> None:
    made = _judged(
        [
            row("cpu_percent", 90, 45),
            row("zfs_arc_hit_percent", 90, 45),
            row("disks_read_bytes_per_s", 90, 45),
            row("disk_sda_busy_percent", 50, 50.1),
            row("load_one", 50, None),
        ],
        sides=2,
        alpha=0.05,
    )
    judged = [one.cells[1].judgement for one in made]
    of_single_runs = [row("cpu_percent", 90, 70, runs=1), row("disks_read_bytes_per_s", 90, 70, runs=1)]
    single = [one.cells[1].judgement for one in _judged(of_single_runs, sides=2, alpha=0.05)]
    assert judged == ["better", "worse", "differs", "same", "unknown"]
    assert single == ["unrepeated", "unrepeated"]
    found = made[0].cells[1].contrast
    assert isinstance(found, Contrast)
    assert round(found.change, 3) == -0.5
    assert made[4].cells[1].contrast is None


def test_many_quantities_are_corrected_for_their_number() -> None:
    alone = _judged([row("load_one", 50, 53)], sides=2, alpha=0.05)
    among = _judged(
        [row("load_one", 50, 53), *[row(f"x{at}", 50, 50) for at in range(500)]], sides=2, alpha=0.05
    )
    ps = [one[0].cells[1].contrast for one in (alone, among)]
    assert ps[0] is not None
    assert ps[1] is not None
    assert ps[0].p is not None
    assert ps[1].p is not None
    assert ps[1].p > 100 * ps[0].p
