"""fio's status line, from a Plan and made-up ticks."""

from __future__ import annotations

import io
from typing import Any

import pytest

from loadstone.cli.fio.eta import Eta
from loadstone.formats.fio import TokenSource, read_jobfiles
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.resolve import resolve

SECOND_NS = 10**9


def eta(*options: str, out: io.StringIO | None = None) -> Eta:
    jobs = read_jobfiles([TokenSource(("--name=a", "--ioengine=null", "--size=100g", *options))])
    return Eta(resolve(jobs, host=HostFacts.here()).plan, out, interval_s=0.0, newline_s=0.0)


def tick(t_ns: int, moved_bytes: int) -> dict[str, Any]:
    row = {"op": "read", "ops": moved_bytes // 4096, "bytes": moved_bytes}
    return {"type": "tick", "t_ns": t_ns, "rows": [row]}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "Jobs: 1 (f=1)"),
        (("--rate_iops=100", "--rate_iops_min=40", "--numjobs=2"), "Jobs: 2 (f=2), 80-200 IOPS"),
        (("--rw=rw", "--rate=3m,2m", "--rate_min=1m"), "Jobs: 1 (f=1), 2048KiB/s-5120KiB/s"),
        (("--rw=rw", "--rate=1m,", "--rate_process=poisson"), "Jobs: 1 (f=1), 0B/s-1024KiB/s"),
    ],
)
def test_the_least_and_the_asked_rate_of_all_jobs_that_run(options: tuple[str, ...], says: str) -> None:
    line = eta("--time_based", "--runtime=10", *options).line([1e6, 0.0, 0.0], [244.0, 0.0, 0.0])
    assert line.partition(": [")[0] == says


def test_what_is_left_is_known_by_time_or_by_bytes_or_not_at_all() -> None:
    by_time = eta("--time_based", "--runtime=10")
    by_bytes = eta("--io_size=4g")
    for one in (by_time, by_bytes):
        one.event(tick(2 * SECOND_NS, 1 << 30))
    assert by_time.left_s == pytest.approx(8.0)
    assert by_bytes.left_s == pytest.approx(6.0)
    assert eta("--io_size=4g").left_s is None, "nothing was moved yet"


def test_nothing_is_printed_without_a_place_for_it() -> None:
    out = io.StringIO()
    for place in (None, out):
        watched = eta("--time_based", "--runtime=10", out=place)
        watched.event(tick(SECOND_NS, 4096))
        watched.finish()
    assert out.getvalue() == "Jobs: 1 (f=1): [R(1)][10.0%][r=4KiB/s][r=1 IOPS][eta 00m:09s]\r\n"
