"""Options of fio that are set in a load of another language."""

from __future__ import annotations

import pytest

from loadstone.errors import RefusedError, Where
from loadstone.formats.fio.override import with_options
from loadstone.workload.blocks import BlockWork
from loadstone.workload.model import Job, Workload

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
