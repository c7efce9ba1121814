"""What others on the host's processors can have made is told and decides nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from loadstone.analysis.contention import Contention, contention
from loadstone.analysis.latency import Latency
from loadstone.analysis.time_structure import FineRates
from loadstone.audit.rules import generator_stopped, not_steady, time_structure
from tests.audit.cases import one, run

SAMPLE_NS = 10_000_000
CROWDED = Contention(waiting=0.9, runnable=16.0, cpus=2)
QUIET = Contention(waiting=0.05, runnable=1.0, cpus=2)


def rows(waiting: float, runnable: float) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "dt_ns": [10**9] * 4,
            "pressure.cpu.some_ns": [int(waiting * 1e9)] * 4,
            "tasks.runnable": [runnable] * 4,
        }
    )


@pytest.mark.parametrize(
    ("waiting", "runnable", "cpus", "share", "wait_ns"),
    [
        (0.0, 1, 2, 0.0, 0.0),
        (0.5, 2, 2, 0.0, 0.0),  # both run
        (1.0, 4, 2, 0.5, 40e6),
        (0.8, 16, 2, 0.7, 280e6),
        (0.8, 16, 64, 0.0, 0.0),
    ],
)
def test_others_take_all_but_a_fair_share_while_somebody_waits(
    waiting: float, runnable: float, cpus: int, share: float, wait_ns: float
) -> None:
    found = contention(rows(waiting, runnable), cpus)
    assert found is not None
    assert found.share == pytest.approx(share)
    assert found.wait_ns == pytest.approx(wait_ns)


def test_what_was_not_watched_is_not_known() -> None:
    assert contention(None, 2) is None
    assert contention(rows(0.5, 4), None) is None
    assert contention(rows(0.5, 4).drop("tasks.runnable"), 2) is None
    assert contention(rows(0.5, 4).clear(), 2) is None


def rates_of_levels(levels: list[float]) -> tuple[list[float], FineRates]:
    """Ten seconds of these rates, in tenths of a second and in samples."""
    each = np.repeat(levels, 100 // len(levels))
    ops = np.random.default_rng(3).poisson(np.repeat(each, 10) / 100).astype(np.float64)
    ends = ((np.arange(1000) + 1) * SAMPLE_NS).astype(np.float64)
    return list(each), FineRates(ends, np.full(1000, SAMPLE_NS, np.float64), ops)


@pytest.mark.parametrize(
    ("high", "low", "who", "effect"),
    [
        (4000.0, 1500.0, CROWDED, "note"),
        (4000.0, 200.0, CROWDED, "suspect"),  # more than they can take
        (4000.0, 1500.0, QUIET, "suspect"),
        (4000.0, 1500.0, None, "suspect"),
    ],
)
def test_a_change_that_others_can_make_is_no_evidence_about_the_storage(
    high: float, low: float, who: Contention | None, effect: str
) -> None:
    rates, fine = rates_of_levels([high, low])
    case = run(rates, fine=fine, contention=who)
    assert [one(rule, case).effect for rule in (time_structure.RULE, not_steady.RULE)] == [effect] * 2
    assert ("runnable on" in one(time_structure.RULE, case).text) == (effect == "note")


@pytest.mark.parametrize(
    ("length", "who", "effect"), [(10, CROWDED, "note"), (120, CROWDED, "suspect"), (10, QUIET, "suspect")]
)
def test_a_stall_no_longer_than_a_thread_waits_its_turn_may_be_that(
    length: int, who: Contention, effect: str
) -> None:
    rates, fine = rates_of_levels([4000.0])
    fine.ops[500 : 500 + length] = 0
    case = run(rates, fine=fine, contention=who)
    case = replace(case, total=replace(case.total, latencies={"lat": Latency(40_000, 1e6)}))
    assert one(time_structure.RULE, case).effect == effect


@pytest.mark.parametrize(
    ("ms", "left_out", "who", "effect"),
    [
        (150, True, CROWDED, "note"),
        (1_500, True, CROWDED, "suspect"),  # nobody waits so long for a turn
        (150, True, QUIET, "suspect"),
        (150, False, CROWDED, "not_valid"),  # it is in the figures
    ],
)
def test_a_generator_that_waited_its_turn_and_is_in_no_figure_is_no_reason_to_doubt_them(
    ms: int, left_out: bool, who: Contention, effect: str
) -> None:
    stop = (2_000_000_000, 2_000_000_000 + ms * 1_000_000)
    case = run(rates_of_levels([4000.0])[0], stops=(stop,), stops_left_out=left_out, contention=who)
    assert one(generator_stopped.RULE, case).effect == effect


def test_stalls_that_take_much_of_the_time_are_more_than_turns() -> None:
    rates, fine = rates_of_levels([4000.0])
    for begin in (60, 170, 330, 480, 550, 720, 810, 930):
        fine.ops[begin : begin + 25] = 0
    case = run(rates, fine=fine, contention=CROWDED)
    case = replace(case, total=replace(case.total, latencies={"lat": Latency(40_000, 1e6)}))
    assert one(time_structure.RULE, case).effect == "suspect"


def test_what_has_an_order_in_time_is_not_made_by_others() -> None:
    rates, fine = rates_of_levels([4000.0])
    for begin in range(100, 1000, 100):
        fine.ops[begin : begin + 10] = 0
    stalls = run(rates, fine=fine, contention=CROWDED)
    stalls = replace(stalls, total=replace(stalls.total, latencies={"lat": Latency(40_000, 1e6)}))
    assert one(time_structure.RULE, stalls).effect == "suspect"
    rates, fine = rates_of_levels([8000.0 / 1.4**level for level in range(10)])
    assert one(time_structure.RULE, run(rates, fine=fine, contention=CROWDED)).effect == "suspect"
    up_and_down, fine = rates_of_levels([4000.0, 2500.0, 4100.0, 2000.0, 3900.0])
    assert one(time_structure.RULE, run(up_and_down, fine=fine, contention=CROWDED)).effect == "note"


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([4000.0, 2500.0, 2500.0, 4100.0, 4100.0], "IOPS had 3 levels between 2.55k and 4.04k."),
        ([4000.0, 2500.0, 4100.0, 2000.0, 3900.0], "over 5 levels between 1.98k and 4.17k."),
    ],
)
def test_of_levels_the_lowest_and_the_highest_are_told(levels: list[float], words: str) -> None:
    """A dip to half was said to be a change from 27.3k to 27.8k: the first level and the last."""
    rates, fine = rates_of_levels(levels)
    assert words in one(time_structure.RULE, run(rates, fine=fine)).text
