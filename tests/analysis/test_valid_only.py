"""Knees, limits and operating points rest on valid runs alone, and say so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.analysis.study.curve import curve
from loadstone.analysis.study.run_figures import RunFigures
from loadstone.analysis.study.sweep import sweep
from loadstone.bundle.study import Point
from loadstone.report.study import curve as study_curve
from loadstone.report.study import sweep as study_sweep
from loadstone.report.study.terminal import in_short
from tests.analysis.test_repeats import measured

if TYPE_CHECKING:
    from loadstone.verdict import Kind

RATES = (10.0, 30.0, 50.0, 59.0, 70.0, 85.0, 95.0)


def rung(percent: float | None, *, valid: bool = True) -> RunFigures:
    """A run of M/D/1 at a share of 10,000 I/Os per second."""
    share = 1.0 if percent is None else percent / 100
    mean_ns = 1e5 * (1 + min(share, 0.99) / (2 * (1 - min(share, 0.99))))
    one = measured(10_000 * share, 5.0)
    assert one.latency is not None
    one = replace(one, latency=replace(one.latency, mean_ns=mean_ns))
    verdict: Kind = "measures_storage" if valid else "not_valid"
    name = f"{percent}"
    return RunFigures(Point(name=name, factors={"rate_percent": percent}, verdict=verdict), one, (one,))


def test_a_knee_rests_on_valid_points_alone() -> None:
    honest = curve([rung(None), *(rung(percent) for percent in RATES)])
    assert honest.knee is not None
    # Points from a cache: fast beyond what the device does.
    lies = [replace(rung(p, valid=False), whole=measured(1e6 * p, 5.0)) for p in (96.0, 97.0, 98.0)]
    found = curve([rung(None), *(rung(percent) for percent in RATES), *lies])
    assert found.knee == honest.knee
    assert found.left_out == 3
    assert "3 of 10 loads are not valid" in study_curve.sentences(found)[-1]
    assert study_curve.cells(found.loads[-1], found)[-1] == "not valid"


def test_without_a_valid_point_there_is_no_knee_and_it_is_said() -> None:
    found = curve([rung(None, valid=False), *(rung(percent, valid=False) for percent in RATES)])
    assert found.knee is None
    assert study_curve.sentences(found) == ["No load of the curve is valid: there is no knee and no limit."]


def deep(iodepth: int, iops: float, *, valid: bool = True) -> RunFigures:
    one = measured(iops, 1.0)
    verdict: Kind = "measures_storage" if valid else "not_valid"
    return RunFigures(Point(name=f"{iodepth}", factors={"iodepth": iodepth}, verdict=verdict), one, (one,))


def test_a_run_that_is_not_valid_is_said_to_be_when_it_has_ended() -> None:
    """A study without a valid run took hours, and only its report told."""
    point = rung(50.0, valid=False).point.model_copy(update={"decided_by": "unwritten_region"})
    assert in_short(replace(rung(50.0, valid=False), point=point)).endswith(", not valid (unwritten_region)")
    assert "valid" not in in_short(rung(50.0))


SETTINGS = {"axes": [["iodepth", [1, 2, 4, 8, 16]]], "gain_share": 0.1}


def test_an_operating_point_rests_on_valid_runs_alone() -> None:
    honest = [deep(1, 1000), deep(2, 1900), deep(4, 3500), deep(8, 3600)]
    (advice,) = sweep([*honest, deep(16, 90_000, valid=False)], SETTINGS).advice
    assert advice.value == 4
    assert advice == sweep(honest, SETTINGS).advice[0]
    said = study_sweep.sentences(sweep([*honest, deep(16, 90_000, valid=False)], SETTINGS), 0.1)
    assert said[-1] == "1 of 5 combinations is not valid and is left out."


def test_without_a_valid_run_nothing_is_recommended() -> None:
    found = sweep([deep(depth, 1000.0 * depth, valid=False) for depth in (1, 2, 4)], SETTINGS)
    assert found.advice == ()
    assert study_sweep.sentences(found, 0.1) == ["No combination is valid: nothing is recommended."]
