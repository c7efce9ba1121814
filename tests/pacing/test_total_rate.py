"""--rate: one rate over all that runs at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.api.jobs.times_and_rates import total_rate
from loadstone.cli.options.arguments import LoadOptions
from loadstone.errors import InputError, RefusedError
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.plan.model import RateAmountOps, RateProcess
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.plan.stream import TotalRate

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan

TWO = (
    b"[global]\nioengine=null\nsize=1m\nruntime=1\ntime_based\n"
    b"[a]\nrw=randread\nnumjobs=3\n[b]\nrw=randrw\nrwmixread=75\n"
)


def planned(text: bytes, total: TotalRate) -> Plan:
    workload = read_jobfiles([TextSource(text, name="job")])
    return resolve(workload, options=ResolveOptions(rate=total)).plan


def test_clones_of_all_jobs_share_it_and_take_turns() -> None:
    streams = planned(TWO, TotalRate(8_000.0, RateProcess.LINEAR)).streams
    rates = [(s.pace.read, s.pace.write) for s in streams]
    assert [r.amount.per_second if r else None for r, _ in rates] == [2_000, 2_000, 2_000, 1_500]
    assert [w.amount.per_second if w else None for _, w in rates] == [None, None, None, 500]
    assert [r.phase for r, _ in rates if r] == [0.0, 0.25, 0.5, 0.75]


def test_stages_have_all_of_it_each() -> None:
    text = TWO.replace(b"[b]\n", b"[b]\nstonewall\n")
    streams = planned(text, TotalRate(9_000.0, RateProcess.POISSON)).streams
    read, write = streams[3].pace.read, streams[3].pace.write
    assert read is not None
    assert write is not None
    assert isinstance(read.amount, RateAmountOps)
    assert (read.amount.per_second, write.amount.per_second) == (6_750, 2_250)
    first = streams[0].pace.read
    assert first is not None
    assert (first.amount.per_second, first.phase) == (3_000, 0.0)


def test_streams_of_a_flow_share_theirs_by_weight() -> None:
    """Three streams, a third each; the two of the flow share their two thirds 9 to 1."""
    text = (
        b"[global]\nioengine=null\nsize=1m\nruntime=1\ntime_based\n"
        b"[a]\nrw=randread\nflow=90\n[b]\nrw=randread\n[c]\nrw=randwrite\nflow=10\n"
    )
    streams = planned(text, TotalRate(9_000.0, RateProcess.LINEAR)).streams
    rates = [s.pace.read or s.pace.write for s in streams]
    assert [r.amount.per_second for r in rates if r] == pytest.approx([5_400, 3_000, 600])
    assert all(s.flow is None for s in streams)


def test_a_job_with_a_rate_of_its_own_is_refused() -> None:
    text = TWO.replace(b"numjobs=3", b"numjobs=3\nrate_iops=10")
    with pytest.raises(RefusedError, match=r"a\.0 has a rate of its own"):
        planned(text, TotalRate(8_000.0, RateProcess.LINEAR))


@pytest.mark.in_turn
def test_reading_back_has_no_rate_and_a_search_takes_none(tmp_path: Path) -> None:
    total = TotalRate(100.0, RateProcess.LINEAR)
    text = f"[a]\nfilename={tmp_path}/new\nrw=write\nsize=1m\nverify=crc32c\n".encode()
    writes, back = planned(text, total).streams
    assert writes.pace.write is not None
    assert (back.pace.read, back.pace.write) == (None, None)
    with pytest.raises(RefusedError, match=r"a\.0 searches for a depth"):
        planned(TWO.replace(b"numjobs=3", b"latency_target=1ms\nlatency_window=1s"), total)


def test_words_become_a_rate() -> None:
    load = LoadOptions(rate="20k", rate_process="poisson", rate_profile="0s:10%,1m:100%,1m:50%")
    found = total_rate(load.changes())
    assert found is not None
    assert (found.iops, found.process) == (20_000.0, RateProcess.POISSON)
    assert found.profile == ((0, 0.1), (60_000_000_000, 1.0), (60_000_000_000, 0.5))
    assert total_rate(LoadOptions().changes()) is None


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (LoadOptions(rate="0"), "found 0, expected I/Os per second above 0"),
        (LoadOptions(rate_process="poisson"), "no effect without --rate"),
        (LoadOptions(rate_profile="0s:1%"), "no effect without --rate"),
        (LoadOptions(rate="1k", rate_profile="10s"), "expected TIME:SHARE%"),
        (LoadOptions(rate="1k", rate_profile="10s:5"), "expected TIME:SHARE%"),
        (LoadOptions(rate="1k", rate_profile="10s:5%,5s:5%"), "do not ascend"),
        (LoadOptions(rate="1k", rate_profile="10s:0%"), "0% all the time"),
    ],
)
def test_what_makes_no_sense_is_refused(load: LoadOptions, message: str) -> None:
    with pytest.raises(InputError, match=message):
        total_rate(load.changes())
