"""Rules that hold results of one document against each other, and a result against itself."""

from __future__ import annotations

from typing import Any

import pytest

from loadstone.audit.case import Figure, Printed, PublishedSetup, TargetState
from loadstone.audit.rule import CannotTell, Clear, NotMine
from loadstone.audit.rules import (
    not_repeatable,
    overlapping_clones,
    random_equals_sequential,
    short_stroke,
    state_differs,
    unit_mixup,
)
from loadstone.path.layers import Ceiling
from tests.audit.figures import GB, KIB, finding, job, overlapping, told

IN_ORDER = {"random_percent": 0.0}

# ---- overlapping_clones


def test_clones_without_offsets_read_the_same_blocks() -> None:
    several = job(clones=128, ranges=overlapping(16, targets=8), **IN_ORDER)
    found = finding(overlapping_clones.RULE, told(iops=1.4e6, jobs=(several,)))
    assert found.effect == "suspect"
    assert found.evidence["asked_for_each_block_factor"] == pytest.approx(16)
    assert found.evidence["distinct_bytes"] == 8 * GB


def test_buffered_clones_measure_the_page_cache() -> None:
    several = job(clones=4, ranges=overlapping(4), direct=False, **IN_ORDER)
    assert finding(overlapping_clones.RULE, told(iops=1e5, jobs=(several,))).effect == "not_valid"


@pytest.mark.parametrize(("step", "clear"), [(GB, True), (GB * 95 // 100, True), (GB // 2, False)])
def test_clones_that_start_apart(step: int, clear: bool) -> None:
    several = job(clones=4, ranges=overlapping(4, step_bytes=step), **IN_ORDER)
    answer = overlapping_clones.RULE.judge(told(iops=1e5, jobs=(several,)))
    assert isinstance(answer, Clear) == clear


def test_random_clones_over_one_range_are_an_ordinary_load() -> None:
    several = job(clones=4, ranges=overlapping(4))
    assert isinstance(overlapping_clones.RULE.judge(told(iops=1e5, jobs=(several,))), Clear)


def test_two_jobs_in_order_on_one_target_overlap_too() -> None:
    two = tuple(job(job=name, ranges=overlapping(1), **IN_ORDER) for name in "ab")
    assert finding(overlapping_clones.RULE, told(iops=1e5, jobs=two)).evidence["clones"] == 2


def test_clones_of_unknown_place_and_single_jobs() -> None:
    unknown = told(iops=1e5, jobs=(job(clones=4, **IN_ORDER),))
    assert isinstance(overlapping_clones.RULE.judge(unknown), CannotTell)
    assert isinstance(overlapping_clones.RULE.judge(told(iops=1e5)), NotMine)


# ---- random_equals_sequential


def pair(random_iops: float, ordered_iops: float, **changed: Any) -> Any:
    ordered = told(iops=ordered_iops, jobs=(job(**IN_ORDER),), name="in order", **changed)
    return told(iops=random_iops, siblings=(ordered,), **changed)


def test_random_as_fast_as_in_order_on_heads_is_memory() -> None:
    found = finding(random_equals_sequential.RULE, pair(25_400, 25_600, rotational=True, spindles=3))
    assert (found.effect, found.confidence) == ("not_valid", 0.9)


@pytest.mark.parametrize(("random_iops", "clear"), [(4999, True), (5001, False)])
def test_half_as_fast_is_the_edge(random_iops: float, clear: bool) -> None:
    answer = random_equals_sequential.RULE.judge(pair(random_iops, 10_000, rotational=True, spindles=3))
    assert isinstance(answer, Clear) == clear


def test_enough_spindles_make_it_possible() -> None:
    case = pair(25_400, 25_600, rotational=True, spindles=100)
    assert isinstance(random_equals_sequential.RULE.judge(case), Clear)


def test_on_flash_random_may_be_as_fast() -> None:
    assert isinstance(random_equals_sequential.RULE.judge(pair(1e5, 1e5, rotational=False)), NotMine)
    assert isinstance(random_equals_sequential.RULE.judge(pair(1e5, 1e5)), CannotTell)
    assert isinstance(random_equals_sequential.RULE.judge(told(iops=1e5, rotational=True)), NotMine)


# ---- state_differs


def layout(system: str, iops: float, writes: float, **changed: Any) -> Any:
    setup = PublishedSetup(
        system=system,
        drives="eight",
        drive_writes_per_write=writes,
        new_file=changed.pop("new_file", False),
    )
    return told(iops=iops, op="write", name=system, setup=setup, **changed)


def test_equal_drive_writes_at_unequal_rates() -> None:
    others = (layout("JBOD", 700e3, 1), layout("RAID10", 400e3, 2))
    found = finding(state_differs.RULE, layout("RAID0", 1.8e6, 1, siblings=others))
    assert found.effect == "suspect"
    assert found.evidence["apart_factor"] == pytest.approx(2.571, abs=0.001)
    assert "RAID10 800k" in str(found.evidence["drive_writes_per_s_by_layout"])


def test_mirrors_are_not_held_against_stripes() -> None:
    answer = state_differs.RULE.judge(layout("RAID0", 1.8e6, 1, siblings=(layout("RAID10", 400e3, 2),)))
    assert isinstance(answer, NotMine)


def test_like_rates_are_clear() -> None:
    answer = state_differs.RULE.judge(layout("RAID0", 1e6, 1, siblings=(layout("JBOD", 0.7e6, 1),)))
    assert isinstance(answer, Clear)


def test_a_first_pass_is_told_as_the_difference() -> None:
    new = layout("LUN", 11, 1, new_file=True, generator_cpu_percent=50.0)
    found = finding(state_differs.RULE, layout("LUN", 41, 1, new_file=False, siblings=(new,)))
    assert found.effect == "note"
    assert "first pass over a new file at 50 % of a CPU" in found.text
    assert "cannot be compared" in found.text


# ---- not_repeatable


def repeated(*values: float) -> Any:
    return told(iops=values[0], repeats=tuple(Figure(value) for value in values))


def test_runs_far_apart_do_not_repeat() -> None:
    found = finding(not_repeatable.RULE, repeated(161, 301, 373, 530, 209, 412, 403))
    assert found.effect == "suspect"
    assert found.chart is not None
    assert found.evidence["coefficient_of_variation_percent"] == pytest.approx(37.2, abs=0.1)


def test_runs_close_together_repeat() -> None:
    assert isinstance(not_repeatable.RULE.judge(repeated(43400, 43743, 44315, 44542)), Clear)


def test_a_first_run_unlike_the_others_is_told() -> None:
    assert "The first run" in finding(not_repeatable.RULE, repeated(18.8e3, 28.1e3, 28.1e3)).text


@pytest.mark.parametrize(("second", "clear"), [(110.0, True), (112.0, False)])
def test_of_two_runs_only_the_distance_counts(second: float, clear: bool) -> None:
    assert isinstance(not_repeatable.RULE.judge(repeated(100.0, second)), Clear) == clear


def test_one_run_says_nothing_of_the_next() -> None:
    assert isinstance(not_repeatable.RULE.judge(told(iops=1.0)), CannotTell)


# ---- short_stroke


@pytest.mark.parametrize(("used", "clear"), [(99, False), (100, True)])
def test_a_tenth_of_the_target_is_the_edge(used: int, clear: bool) -> None:
    for kind in (None, "block", "nvme"):
        targets = (TargetState(path="t", kind=kind, size_bytes=1000),)
        case = told(iops=1.0, jobs=(job(size_bytes=used),), targets=targets)
        assert isinstance(short_stroke.RULE.judge(case), Clear) == clear


def test_short_stroke_needs_both_sizes_and_no_file() -> None:
    assert isinstance(short_stroke.RULE.judge(told(iops=1.0)), CannotTell)
    for kind in ("file", "char", "virtual"):
        other = told(iops=1.0, targets=(TargetState(path="t", kind=kind, size_bytes=1),))
        assert isinstance(short_stroke.RULE.judge(other), NotMine)


# ---- unit_mixup


def printed(iops: float, bandwidth: str, bytes_per_s: float) -> Any:
    return told(iops=iops, bytes_per_s=bytes_per_s, printed=Printed((iops,), (bandwidth,)))


@pytest.mark.parametrize(
    ("factor", "effect"), [(1.048576, "suspect"), (1 / 1.048576, "suspect"), (8.0, "not_valid")]
)
def test_a_factor_between_units_is_a_slip(factor: float, effect: str) -> None:
    moved = 1000 * 4 * KIB * factor
    assert finding(unit_mixup.RULE, printed(1000, "4 MB/s", moved)).effect == effect


@pytest.mark.parametrize("factor", [1.0, 1.01, 1.3])
def test_rounding_and_other_differences_are_no_slip(factor: float) -> None:
    assert isinstance(unit_mixup.RULE.judge(printed(1000, "4 MB/s", 1000 * 4 * KIB * factor)), Clear)


def test_a_data_sheet_in_other_units_is_pointed_out() -> None:
    sheet = Ceiling(quantity="bytes_per_s", op="read", per_s=1.1e9, kind="specified", source="sheet")
    told_as = Printed(bandwidth=("1012.42 MiB/s",))
    found = finding(unit_mixup.RULE, told(bytes_per_s=1012.42 * 2**20, ceilings=(sheet,), printed=told_as))
    assert found.effect == "note"
    assert found.evidence["of_the_data_sheet_percent"] == pytest.approx(96.5, abs=0.05)
    assert found.evidence["with_the_units_mixed_up_percent"] == pytest.approx(92.0, abs=0.05)


def test_what_was_worked_out_here_proves_nothing() -> None:
    assert isinstance(unit_mixup.RULE.judge(told(iops=1000.0)), CannotTell)
    assert isinstance(unit_mixup.RULE.judge(told(iops=1000.0, source="bundle")), NotMine)


def test_sizes_of_blocks_are_told_in_binary() -> None:
    found = finding(unit_mixup.RULE, printed(1000, "33 MB/s", 8000 * 4 * KIB))
    assert found.evidence["block_bytes"] == 4 * KIB


def test_without_a_count_of_spindles_alike_rates_are_only_suspect() -> None:
    assert finding(random_equals_sequential.RULE, pair(25_400, 25_600, rotational=True)).effect == "suspect"
