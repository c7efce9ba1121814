"""Storage that is watched beside a run on several hosts: what it does is held against the sum of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadstone.analysis.summary import summarise
from loadstone.audit import run as audit_of_run
from loadstone.audit import watched_hosts
from loadstone.audit.judge import judge_case
from loadstone.bundle.read import Bundle
from tests.audit.test_storage_rules import host, links
from tests.hosts.test_report import PHASES
from tests.hosts.test_run import run

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.analysis.measurement import Measurement
    from loadstone.audit.watched_hosts import Watched

FULL = {"net.eth0.rx_bytes": 3e6, "net.eth0.tx_bytes": 122e6}
IDLE = {"net.eth0.rx_bytes": 3e6, "net.eth0.tx_bytes": 9e6}


@pytest.mark.in_turn
def test_the_link_of_the_storage_limits_all_hosts_in_the_phase_in_which_it_was_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: two clients filled the link of a watched server, and the verdict measured the storage."""
    times: list[tuple[int, int]] = []

    def of_phase(measurement: Measurement, bounds: tuple[int, int], _: frozenset[str]) -> tuple[Watched, ...]:
        if measurement.bundle.hosts is None:
            return ()
        times.append(bounds)
        return (host(FULL if len(times) == 2 else IDLE, facts=links(eth0=10**9)),)

    assert run(tmp_path, "--watch", "me=local", text=PHASES) == 0
    monkeypatch.setattr(watched_hosts, "of_phase", of_phase)
    summary = summarise(Bundle.open(tmp_path / "out"))
    cases = audit_of_run.cases_of_run(summary)
    names = [one.name for one in cases]
    of_all = ["the sum of all hosts: readers", "the sum of all hosts: large"]
    assert names == [*of_all, "h1: readers", "h1: large", "h2: readers", "h2: large"]
    first, second = times
    # A host that is through begins its next phase, whatever the others do.
    assert first[0] < second[0] < second[1]
    assert first[0] < first[1] < second[1]
    # Phases of milliseconds began apart as well, for what that counts.
    causes = [{one.rule: one.layer for one in judge_case(case).causes} for case in cases[:2]]
    assert [one.get("storage_link") for one in causes] == [None, "link eth0 of nas"]
    assert [[host.operations for host in case.hosts] for case in cases[:2]] == [[1024, 1024], [16, 16]]
    assert all(min(host.start_skew_ns or 0 for host in case.hosts) == 0 for case in cases[:2])
    # A doubt about a host decides nothing in that phase, and may in the other.
    assert [case.sum_decided for case in cases] == [False, False, False, True, False, True]
    # What all hosts did together in each of the phases: 4 and 2 clones' I/Os.
    assert [_ops(one.series) for one in cases[:2]] == [2048, 32]


def _ops(series: Any) -> int:
    return int(series["ops"].sum())


@pytest.mark.in_turn
def test_a_run_of_one_phase_has_one_case_of_all_hosts(tmp_path: Path) -> None:
    assert run(tmp_path, "--watch", "me=local") == 0
    first, *own = audit_of_run.cases_of_run(summarise(Bundle.open(tmp_path / "out")))
    assert (first.name, [one.name for one in first.watched]) == ("the sum of all hosts", ["me"])
    assert [one.watched for one in own] == [(), ()]
