"""Rows: what they come to together, and what the engine makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from loadstone.errors import RefusedError, Where
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.model import Pattern, RateProcess, SizesFixed, SizesSplit
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.plan.stream import TotalRate
from loadstone.workload.model import Job, Workload
from loadstone.workload.placement import Amount, TargetName
from loadstone.workload.rows import RowWork, WorkloadRow
from tests.plan.test_engine_agrees import checked

if TYPE_CHECKING:
    from pathlib import Path

SMALL = WorkloadRow(percent=60, bytes=4096, read_percent=80, random_percent=100)
LARGE = WorkloadRow(percent=40, bytes=65536, read_percent=10, random_percent=0, align_bytes=65536)


def workload(*rows: WorkloadRow, **changes: Any) -> Workload:
    job = Job.of(
        {
            "name": "rows",
            "where": Where("rows"),
            "work": RowWork(rows=rows),
            "placement.targets": (TargetName(path="/nowhere/data", written="data"),),
            "engine.ioengine": "null",
            "placement.size": Amount(bytes=1 << 30),
            "engine.iodepth": 4,
            "limits.runtime_ns": 10**9,
            "limits.time_based": True,
            **changes,
        }
    )
    return Workload(name="rows", jobs=(job,))


def pattern(*rows: WorkloadRow, **changes: Any) -> Pattern:
    return resolve(workload(*rows, **changes), host=HostFacts.here()).plan.streams[0].pattern


def test_shares_and_sizes_are_what_the_rows_come_to() -> None:
    made = pattern(SMALL, LARGE)
    assert (made.read_percent, made.write_percent, made.trim_percent) == (52, 48, 0)
    assert isinstance(made.read.sizes, SizesSplit)
    assert {e.bytes: round(e.weight, 6) for e in made.read.sizes.table} == {
        4096: round(100 * 48 / 52, 6),
        65536: round(100 * 4 / 52, 6),
    }
    assert made.read.random_percent == round(100 * 48 / 52)
    assert made.write.random_percent == round(100 * 12 / 48)
    assert made.rows is not None
    assert [row.align_bytes for row in made.rows] == [512, 65536]


def test_what_happens_seldom_is_not_rounded_away() -> None:
    made = pattern(
        WorkloadRow(percent=99, bytes=512, read_percent=100, random_percent=0),
        *[WorkloadRow(percent=0.1, bytes=1024, read_percent=0, random_percent=0)],
    )
    assert (made.read_percent, made.write_percent) == (99, 1)
    assert made.read.sizes == SizesFixed(bytes=512)
    assert made.write.sizes == SizesFixed(bytes=1024)


def test_a_total_rate_is_shared_out_exactly() -> None:
    rate = TotalRate(iops=1000.0, process=RateProcess.LINEAR)
    plan = resolve(workload(SMALL, LARGE), options=ResolveOptions(rate=rate)).plan
    pace = plan.streams[0].pace
    assert pace.read is not None
    assert pace.write is not None
    assert pace.read.amount.per_second == pytest.approx(520)
    assert pace.write.amount.per_second == pytest.approx(480)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"placement.zone_mode": "strided"}, RefusedError, "zone_mode has no effect"),
    ],
)
def test_what_has_no_effect_is_refused(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        pattern(SMALL, **change)


@pytest.mark.parametrize(
    "change", [{"percent": 0.0}, {"bytes": 0}, {"burst": 0}, {"read_percent": 101}, {"random_percent": -1}]
)
def test_rows_that_cannot_be(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        WorkloadRow.model_validate(SMALL.model_dump() | change)


@pytest.mark.parametrize("rows", [(SMALL,), (SMALL, LARGE), (LARGE,)])
def test_the_engine_accepts_it(tmp_path: Path, rows: tuple[WorkloadRow, ...]) -> None:
    plan = resolve(workload(*rows)).plan
    assert plan.version == 1
    path = tmp_path / "plan.json"
    path.write_text(plan.model_dump_json())
    done = checked(path)
    assert done.returncode == 0, done.stdout + done.stderr
