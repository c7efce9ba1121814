"""One measurement counts once, in however many files it stands."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.comparison.compare import compare
from loadstone.comparison.copies import is_the_same_measurement
from loadstone.comparison.side import Side
from loadstone.comparison.side import side as read_side
from tests.comparison.test_compare import FOREIGN

if TYPE_CHECKING:
    from loadstone.comparison.phase import ComparedPhase


def test_a_copy_of_a_result_is_no_repeat_of_it(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    text = (FOREIGN / "fio" / "grouped.json").read_text()
    for place in (before, after):
        place.mkdir()
        (place / "a.json").write_text(text)
    (before / "b.json").write_text(text)
    (before / "c.json").write_text(text + "\n")
    made = compare([before, after])
    assert {phase.run for phase in made.sides[0].phases} == {"a.json"}
    assert f"before: b.json is a copy of {before / 'a.json'}" in made.warnings
    assert f"before: c.json is the same measurement as {before / 'a.json'}: it counts once" in made.warnings
    assert any(
        text.startswith("after: a.json is the same measurement as a.json of before") for text in made.warnings
    )
    assert not any("b.json" in one.what for one in made.alone)


def test_one_run_in_several_forms_counts_once(tmp_path: Path) -> None:
    """Its JSON, terse and normal output in one directory were three repeats that agree."""
    for name in ("json+.json", "terse3.txt", "terse5.txt", "normal.txt"):
        shutil.copy(FOREIGN.parent / "fio-small-run" / name, tmp_path / name)
    found = read_side(tmp_path)
    assert [(phase.run, phase.name) for phase in found.phases] == [
        ("json+.json", "mix"),
        ("json+.json", "after"),
    ]
    assert len(found.passed) == 3


@pytest.mark.parametrize(("min_ns", "same"), [(35_000, True), (35_600, True), (21_000, False)])
def test_runs_of_a_device_with_a_limit_are_no_copies(min_ns: float, *, same: bool) -> None:
    """They complete as many I/Os in as long: two tools' runs were told to be one measurement."""
    one = read_side(FOREIGN.parent / "fio-small-run" / "json+.json").phases[0]
    printed, other = _with_shortest(one, 35_000), replace(_with_shortest(one, min_ns), path=Path("bundle"))
    assert is_the_same_measurement(printed, other) is same


def _with_shortest(phase: ComparedPhase, min_ns: float) -> ComparedPhase:
    ops = {
        op: replace(found, latencies={"lat": replace(found.latencies["lat"], min_ns=min_ns)})
        for op, found in phase.case.ops.items()
    }
    return replace(phase, case=replace(phase.case, ops=ops))


def test_sides_are_read_where_an_interrupt_arrives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Regression: sides that threads read kept the program for 240 s after Ctrl-C."""

    def interrupted(*_: object, **__: object) -> Side:
        assert threading.current_thread() is threading.main_thread()
        raise KeyboardInterrupt

    monkeypatch.setattr("loadstone.comparison.compare.side", interrupted)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(KeyboardInterrupt):
        compare([tmp_path / "a", tmp_path / "b"])
