"""Options of fio that are set in a load of another language."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import RefusedError, Where
from loadstone.formats.fio.override import with_options
from loadstone.workload.block_sizes import fixed
from loadstone.workload.blocks import BlockWork
from loadstone.workload.model import Job, Workload
from loadstone.workload.payload import CompressibleContent, PayloadRequests, RepeatedContent

if TYPE_CHECKING:
    from loadstone.workload.job_parts import PriorityRequests

HERE = Where("x.toml", 3)
ROWS = [
    {"percent": 60, "bytes": 4096, "read_percent": 80, "random_percent": 100},
    {"percent": 40, "bytes": 65536, "read_percent": 0, "random_percent": 0},
]


def rows() -> Workload:
    job = Job.of({"name": "mixed", "where": HERE, "work": {"kind": "rows", "rows": ROWS}})
    return Workload(name="mixed", jobs=(job,))


@pytest.mark.parametrize(("option", "value"), [("bs", "8k"), ("rwmixread", "50"), ("norandommap", "1")])
def test_rows_are_not_given_up_for_an_option_of_blocks(option: str, value: str) -> None:
    with pytest.raises(RefusedError, match=r"\[mixed\] has rows, each with a size") as refused:
        with_options(rows(), {option: value}, HERE)
    assert refused.value.hint == "set rw= too: both then take the place of the rows"


def test_a_pattern_takes_the_place_of_rows() -> None:
    (job,) = with_options(rows(), {"rw": "randread", "bs": "8k"}, HERE).jobs
    assert isinstance(job.work, BlockWork)
    assert job.work.mix.rw == "randread"


def test_what_rows_do_not_say_is_set_beside_them() -> None:
    (job,) = with_options(rows(), {"iodepth": "7"}, HERE).jobs
    assert job.work == rows().jobs[0].work
    assert job.engine.iodepth == 7


def payload(*options: dict[str, str]) -> PayloadRequests:
    """What a job writes in which options are set one after the other."""
    workload = Workload(name="w", jobs=(Job.of({"name": "j", "where": HERE, "sizes.bs": fixed(4096)}),))
    for one in options:
        workload = with_options(workload, one, HERE)
    return workload.jobs[0].payload


def test_content_that_can_be_reduced_is_made_anew_as_long_as_it_is_asked_for() -> None:
    compressed = {"buffer_compress_percentage": "30"}
    assert payload(compressed).refill_buffers
    assert payload(compressed).compress == CompressibleContent(percent=30, chunk_bytes=512)
    assert payload(compressed, {"buffer_compress_percentage": "0"}) == PayloadRequests()
    assert not payload({"refill_buffers": "0"}, compressed).refill_buffers
    assert not payload(compressed, {"refill_buffers": "0"}).refill_buffers
    assert payload(compressed, {"dedupe_percentage": "20"}).compress == payload(compressed).compress


def test_a_working_set_has_a_size_and_stays_beside_another_share() -> None:
    found = payload({"dedupe_percentage": "20", "dedupe_mode": "working_set"}, {"dedupe_percentage": "40"})
    assert found.repeat == RepeatedContent(percent=40, set_percent=5)
    with pytest.raises(RefusedError, match="has no effect without dedupe_mode=working_set"):
        payload({"dedupe_percentage": "20"}, {"dedupe_working_set_percentage": "9"})


def priorities(*options: dict[str, str]) -> PriorityRequests:
    """What priorities the I/Os of a job have in which options are set one after the other."""
    workload = Workload(name="w", jobs=(Job.of({"name": "j", "where": HERE, "sizes.bs": fixed(4096)}),))
    for one in options:
        workload = with_options(workload, one, HERE)
    return workload.jobs[0].priorities


def test_priorities_are_set_in_a_job_that_is_read_already() -> None:
    """They were refused, so no experiment could vary them."""
    assert priorities({"prio": "6"}).job_level == 6
    assert priorities({"prioclass": "3"}).job_class == 3
    own = priorities({"cmdprio_percentage": "20"})
    assert (own.percent, own.classes) == ((20, 20), (1, 1))
    kept = priorities({"cmdprio_class": "2"}, {"cmdprio_percentage": "20"})
    assert kept.classes == (2, 2)
