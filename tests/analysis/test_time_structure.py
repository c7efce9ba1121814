"""What is found in a load's course, and how often chance makes it of a steady one: simulated."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np
import pytest

from loadstone.analysis.histogram import BUCKETS, Histogram, values_of
from loadstone.analysis.time_structure import FineRates, comb, levels, modes, stalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Draw = Callable[[np.random.Generator, float], float]

PERIOD_S = 0.01
STEADY: dict[str, Draw] = {
    "constant": lambda random, mean: mean * random.normal(1, 0.03),
    "exponential": lambda random, mean: random.exponential(mean),
    "lognormal": lambda random, mean: mean * random.lognormal(-0.18, 0.6),
    "rotating": lambda random, mean: mean * (0.5 + random.random()),
}


def load(
    random: np.random.Generator,
    draw: Draw,
    mean_s: float,
    depth: int,
    seconds: float,
    *,
    stopped: Callable[[float], float] = lambda now: now,
) -> tuple[FineRates, NDArray[np.float64]]:
    """A closed loop of `depth` I/Os; `stopped` moves the end of one that falls into a stop."""
    flying = [(abs(draw(random, mean_s)), 0.0) for _ in range(depth)]
    heapq.heapify(flying)
    ends, took = [], []
    while flying[0][0] < seconds:
        now, since = heapq.heappop(flying)
        ends.append(now)
        took.append(now - since)
        heapq.heappush(flying, (stopped(now + max(1e-6, abs(draw(random, mean_s)))), now))
    count = round(seconds / PERIOD_S)
    ops, _ = np.histogram(ends, np.arange(count + 1) * PERIOD_S)
    lengths = np.full(count, PERIOD_S * 1e9)
    return FineRates(np.cumsum(lengths), lengths, ops.astype(np.float64)), np.array(took) * 1e9


def pausing(times: list[tuple[float, float]]) -> Callable[[float], float]:
    def stopped(now: float) -> float:
        return next((begin + length for begin, length in times if begin <= now < begin + length), now)

    return stopped


@pytest.mark.parametrize("drawn", [40, pytest.param(400, marks=pytest.mark.nightly)])
@pytest.mark.in_turn
def test_steady_loads_are_left_alone(drawn: int) -> None:
    """No more than 1 in 100 of drawn steady loads is told to have any structure."""
    random = np.random.default_rng(13)
    told: dict[str, list[str]] = {"stalls": [], "comb": [], "levels": []}
    for number in range(drawn):
        name = list(STEADY)[number % len(STEADY)]
        depth = int(random.choice([1, 2, 4, 16]))
        mean_s = float(10 ** random.uniform(-3.3, -2))
        rates, took = load(random, STEADY[name], mean_s, depth, float(random.choice([4, 8])))
        what = f"{name} depth {depth} mean {mean_s:.4f}"
        for kind, found in (
            ("stalls", stalls(rates, float(np.percentile(took, 90)), depth)),
            ("comb", comb(rates)),
            ("levels", levels(rates)),
        ):
            if found is not None:
                told[kind].append(what)
    assert {kind: len(found) for kind, found in told.items() if len(found) > drawn / 100} == {}, told


@pytest.mark.parametrize("seed", range(4))
def test_a_hang_of_three_seconds_is_no_noise(seed: int) -> None:
    random = np.random.default_rng(seed)
    draw = list(STEADY.values())[seed]
    rates, took = load(random, draw, 0.002, 4, 10, stopped=pausing([(4.0, 3.0)]))
    found = stalls(rates, float(np.percentile(took, 90)), 4)
    assert found is not None
    assert len(found.every) == 1
    assert found.longest_ns == pytest.approx(3e9, rel=0.05)


def test_what_was_left_out_is_no_stall() -> None:
    random = np.random.default_rng(2)
    rates, took = load(random, STEADY["lognormal"], 0.002, 2, 8)
    kept = (rates.ends_ns <= 3e9) | (rates.ends_ns - rates.lengths_ns >= 4e9)
    gone = FineRates(rates.ends_ns[kept], rates.lengths_ns[kept], rates.ops[kept])
    gone.ops[298:302] = 0
    assert stalls(gone, float(np.percentile(took, 90)), 2) is None


@pytest.mark.parametrize(("period_s", "length_s"), [(5.0, 0.4), (2.0, 0.1), (1.0, 0.3)])
def test_stalls_at_regular_times_have_a_period(period_s: float, length_s: float) -> None:
    random = np.random.default_rng(5)
    times = [(1 + number * period_s, length_s) for number in range(6)]
    rates, took = load(random, STEADY["lognormal"], 0.001, 2, 7 * period_s, stopped=pausing(times))
    found = stalls(rates, float(np.percentile(took, 90)), 2)
    assert found is not None
    assert found.period_ns == pytest.approx(period_s * 1e9, rel=0.05)
    assert found.median_ns == pytest.approx(length_s * 1e9, rel=0.25)


@pytest.mark.in_turn
def test_a_quota_of_a_tenth_of_a_second_is_a_comb() -> None:
    random = np.random.default_rng(5)
    times = [(number * 0.1 + 0.06, 0.04) for number in range(80)]
    rates, _ = load(random, STEADY["lognormal"], 0.0004, 4, 8, stopped=pausing(times))
    found = comb(rates)
    assert found is not None
    assert found.period_ns == pytest.approx(100e6, rel=0.03)


@pytest.mark.parametrize(("after", "shape"), [(0.5, "step down"), (2.0, "step up")])
def test_a_change_of_level_is_found_where_it_is(after: float, shape: str) -> None:
    random = np.random.default_rng(3)
    one, _ = load(random, STEADY["lognormal"], 0.001, 2, 4)
    other, _ = load(random, STEADY["lognormal"], 0.001 / after, 2, 6)
    both = FineRates(
        np.concatenate([one.ends_ns, other.ends_ns + 4e9]),
        np.concatenate([one.lengths_ns, other.lengths_ns]),
        np.concatenate([one.ops, other.ops]),
    )
    found = levels(both)
    assert found is not None
    assert found.shape == shape
    assert found.every[0].end_ns == pytest.approx(4e9, rel=0.05)
    assert found.every[1].per_s / found.every[0].per_s == pytest.approx(after, rel=0.1)


def test_a_slow_decay_is_falling() -> None:
    random = np.random.default_rng(3)
    parts = [load(random, STEADY["constant"], 0.001 * 1.07**step, 1, 0.5)[0] for step in range(16)]
    whole = FineRates(
        np.cumsum(np.concatenate([one.lengths_ns for one in parts])),
        np.concatenate([one.lengths_ns for one in parts]),
        np.concatenate([one.ops for one in parts]),
    )
    found = levels(whole)
    assert found is not None
    assert found.shape == "falling"


def histogram(values_ns: NDArray[np.float64]) -> Histogram:
    every = values_of(np.arange(BUCKETS))
    buckets = np.clip(np.searchsorted(every, values_ns), 0, BUCKETS - 1)
    return Histogram.of(buckets.astype(np.int64), np.ones(len(buckets), np.int64))


def test_two_kinds_of_io_are_two_modes_and_one_kind_is_none() -> None:
    random = np.random.default_rng(1)
    fast, slow = random.lognormal(np.log(1e6), 0.2, 3000), random.lognormal(np.log(2e7), 0.2, 700)
    found = modes(histogram(np.concatenate([fast, slow])))
    assert [round(one.share, 2) for one in found] == [0.81, 0.19]
    assert found[1].latency_ns == pytest.approx(2e7, rel=0.1)
    for seed in range(40):
        random = np.random.default_rng(seed)
        assert modes(histogram(random.lognormal(np.log(1e6), 0.7, 2000))) == ()
        assert modes(histogram(random.exponential(1e6, 2000))) == ()
