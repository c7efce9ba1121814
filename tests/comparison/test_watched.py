"""Watched hosts before and after: what is told apart, and which way is better."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from loadstone.analysis.statistics.significance import Contrast, Sample
from loadstone.comparison import compare, watched
from loadstone.comparison.compare import Alone
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


def test_a_host_that_is_less_busy_with_less_work_is_not_better() -> None:
    """Where the storage had become slower its server was green: it was less busy."""
    quantities = [row("cpu_percent", 90, 45), row("zfs_arc_hit_percent", 90, 45), row("load_one", 50, 50)]
    made = _judged(quantities, sides=2, alpha=0.05, unlike={1})
    assert [one.cells[1].judgement for one in made] == ["differs", "differs", "same"]
    contrast = made[0].cells[1].contrast
    assert contrast is not None
    assert round(contrast.change, 3) == -0.5


@pytest.mark.parametrize(
    ("quantity", "judgement", "alone", "unlike"),
    [
        ("count", "worse", (), {1}), ("bytes_per_s", "unknown", (), {1}), ("count", "unrepeated", (), {1}),
        ("count", "same", (), set()), ("ns", "worse", (), set()),
        ("count", "same", ("b",), {1}), ("count", "same", ("a",), {0, 1}),
    ],
)  # fmt: skip
def test_sides_did_the_same_where_no_rate_and_no_load_differs(
    quantity: str, judgement: str, alone: tuple[str, ...], unlike: set[int]
) -> None:
    sides = [SimpleNamespace(name=name) for name in "ab"]
    effect = SimpleNamespace(side=1, metric=SimpleNamespace(quantity=quantity), judgement=judgement)
    missing = [Alone(name, "4k", "it does not have 4k") for name in alone]
    assert compare._unlike(sides, [effect], missing) == unlike  # type: ignore[arg-type,list-item] # what it reads of them


def test_what_a_host_did_in_a_run_that_is_not_valid_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's CPU was held against that of a run that had read its page cache."""
    track, paths = SimpleNamespace(key="cpu_percent", mean=1.0), [Path("valid"), Path("cached")]
    host = SimpleNamespace(name="nas", rows=None, facts=None)
    monkeypatch.setattr(watched.watched, "span_ns", lambda _: None)  # type: ignore[attr-defined]
    monkeypatch.setattr(watched.watched, "hosts", lambda bundle: [host])  # type: ignore[attr-defined]
    monkeypatch.setattr(watched.watched, "within", lambda rows, _: rows)  # type: ignore[attr-defined]
    monkeypatch.setattr(watched.watched, "tracks", lambda *_: [track])  # type: ignore[attr-defined]
    monkeypatch.setattr(watched.measured_values, "sample", lambda _: Sample(50, 1, 9, 1))  # type: ignore[attr-defined]
    run = SimpleNamespace(measurement=SimpleNamespace(bundle=None))
    side = SimpleNamespace(
        runs=[SimpleNamespace(path=path, summary=run) for path in paths],
        phases=[SimpleNamespace(path=path, valid=path == paths[0]) for path in paths],
    )
    ((_, sample),) = watched._of_side(side).values()  # type: ignore[arg-type]
    assert sample.runs == 1


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
