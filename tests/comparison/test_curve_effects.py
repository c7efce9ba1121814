"""Curves beside each other, made by hand: latency grows as that of one server that fills up."""

from __future__ import annotations

from loadstone.analysis.estimate import Estimate
from loadstone.analysis.study.curve import Curve, LoadPoint
from loadstone.comparison.curve_effects import Curves, effects


def point(order: int, iops: float, mean_ns: float, *, valid: bool = True) -> LoadPoint:
    def estimate(value: float, unit: str) -> Estimate:
        return Estimate(value=value, error=0.01 * value, unit=unit, count=100)

    return LoadPoint(
        runs=1, iops=estimate(iops, "1/s"), bandwidth=estimate(4096 * iops, "B/s"),
        mean_ns=estimate(mean_ns, "ns"), percentiles_ns={}, intervals_ns={}, large_blocks=False,
        asked_iops=iops, held=True,
        percent=10.0 * order, order=order, valid=valid,
    )  # fmt: skip


def curve(most: float, *, valid: bool = True) -> Curve:
    shares = (0.1, 0.3, 0.5, 0.7, 0.9)
    loads = tuple(
        point(at, share * most, 100_000 / (1 - share), valid=valid) for at, share in enumerate(shares)
    )
    return Curve("reads", None, loads, None, None)


def names(*each: Curve | None) -> list[list[str]]:
    found = list(effects([Curves("reads", each)], 0))
    told = [(one.side, one.metric.name.replace("\N{NO-BREAK SPACE}", " ")) for one in found]
    return [[name for at, name in told if at == side] for side in range(1, len(each))]


def test_all_sides_are_read_at_the_same_load_and_latency() -> None:
    twice, slower = names(curve(10_000), curve(20_000), curve(6_000))
    assert twice == slower == ["maximum IOPS", "latency at 3.70k IOPS", "IOPS at 220 µs"]
    assert names(curve(10_000), curve(20_000)) == [
        ["maximum IOPS", "latency at 6.30k IOPS", "IOPS at 220 µs"]
    ]


def test_sides_that_are_far_apart_are_read_in_the_middle_of_what_all_reach() -> None:
    # 70 % of the slower one's maximum lies below the lowest load of the faster, and twice the latency
    # there above the highest of the slower.
    fast = Curve("reads", None, (point(0, 1_500, 40_000), point(1, 6_000, 90_000)), None, None)
    slow = Curve("reads", None, (point(0, 400, 50_000), point(1, 1_700, 75_000)), None, None)
    assert names(fast, slow) == [["maximum IOPS", "latency at 1.50k IOPS", "IOPS at 61.0 µs"]]
    apart = Curve("reads", None, (point(0, 10, 500_000), point(1, 20, 900_000)), None, None)
    assert names(fast, apart) == [["maximum IOPS"]]


def test_a_side_without_a_valid_load_sets_no_level_and_is_compared_in_nothing() -> None:
    twice, broken = names(curve(10_000), curve(20_000), curve(900_000, valid=False))
    assert twice == ["maximum IOPS", "latency at 6.30k IOPS", "IOPS at 220 µs"]
    assert broken == []


def test_curves_without_any_valid_load_are_compared_in_nothing() -> None:
    assert names(curve(10_000, valid=False), curve(20_000, valid=False)) == [[]]
