from __future__ import annotations

import pytest

from loadstone import units
from loadstone.analysis.estimate import Estimate


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (0, "0 ns"), (1, "1 ns"), (999, "999 ns"), (1000, "1.00 µs"), (1234, "1.23 µs"), (99_960, "100 µs"),
        (999_960, "1.00 ms"), (12_340_000, "12.3 ms"), (1_500_000_000, "1.50 s"),
        (12.34, "12.3 ns"), (None, "–"),
    ],
)  # fmt: skip
def test_durations(value_ns: float | None, text: str) -> None:
    assert plain(units.duration(value_ns)) == text


def test_what_is_little_is_not_written_as_nothing() -> None:
    assert [units.digits(value) for value in (0.0, 0.0006, 0.0004, -0.0004)] == [
        "0",
        "0.001",
        "<0.001",
        ">-0.001",
    ]


def test_other_quantities() -> None:
    assert plain(units.size(1536)) == "1.50 KiB"
    assert plain(units.bandwidth(100 * 2**20)) == "100 MiB/s"
    assert plain(units.bandwidth_decimal(104_857_600)) == "105 MB/s"
    assert [units.count(n) for n in (0, 7, 999, 1000, 12_345, 1_543_000)] == [
        "0",
        "7",
        "999",
        "1.00k",
        "12.3k",
        "1.54M",
    ]
    assert plain(units.seconds(59.5)) == "59.5 s"
    assert plain(units.seconds(3725)) == "1 h 2 min 5 s"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (12_340.0, 123.0, "12.34k ± 0.12k"), (12_340.0, 400.0, "12.3k ± 0.4k"),
        (12_340.0, 960.0, "12.3k ± 1.0k"),
        (12_340.0, 3_400.0, "12.3k ± 3.4k"),
        (12_340.0, 5_000.0, "12k ± 5k"), (12_340.0, 0.1, "12.34k ± <0.01k"),
        (12_340.0, 21_000.0, "12k ± 21k"), (850.0, 40.0, "850 ± 40"), (850.0, 120.0, "850 ± 120"),
        (857.0, 120.0, "860 ± 120"), (998.0, 50.0, "1.00k ± 0.05k"), (-998.0, 50.0, "-1.00k ± 0.05k"),
        (999_700.0, 1_200.0, "0.9997M ± 0.0012M"), (700.0, 4_000.0, "1k ± 4k"), (998.0, 3.0, "998.0 ± 3.0"),
        (7.0, 0.0, "7.00"), (7.0, None, "7.00"), (0.0, 0.2, "0.00 ± 0.20"),
    ],
)  # fmt: skip
def test_a_value_ends_where_its_error_ends(value: float, error: float | None, text: str) -> None:
    assert plain(units.with_error(Estimate(value, error, 9, "1/s"), "count")) == text


def test_an_error_is_written_in_the_unit_of_its_value() -> None:
    assert plain(units.with_error(Estimate(102_400.0, 3210.0, 9, "ns"), "time")) == "102.4 ± 3.2 µs"
    assert plain(units.with_error(Estimate(102_400.0, 10.0, 9, "ns"), "time")) == "102.4 ± <0.1 µs"
    assert plain(units.with_error(Estimate(2**20, None, 2, "B/s"), "binary")) == "1.00 MiB/s"
    assert units.with_error(None, "count") == "–"


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (3.7, "count", "4"), (4300.0, "count", "4k"), (1234.0, "count", "1.2k"), (91_000.0, "time", "90 µs"),
        (0.0, "count", "0"), (54_988.8, "binary", "50 KiB/s"), (2.9e-11, "binary", "<0.001 B/s"),
        (2e-9, "count", "<0.001"), (0.0012, "time", "0.0012 ns"),
    ],
)  # fmt: skip
def test_an_error_by_itself_has_no_third_digit(value: float, kind: str, text: str) -> None:
    assert plain(units.error(value, kind)) == text


@pytest.mark.parametrize("error", [None, 1.0, 12.0, 120.0, 3000.0])
@pytest.mark.parametrize(("value", "kind"), [(12_340.0, "count"), (102_400.0, "time"), (3e8, "binary")])
def test_a_figure_has_the_same_digits_with_and_without_its_error(
    value: float, kind: str, error: float | None
) -> None:
    found = Estimate(value, error, 9, "")
    whole, alone = plain(units.with_error(found, kind)), plain(units.figure(found, kind))
    assert alone.startswith(whole.partition(" ± ")[0].rstrip("kMGBi/sµnm "))
    assert ("±" in whole) is (error is not None)
    assert "±" not in alone
