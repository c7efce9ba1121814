"""vdbench's intervals of a run on hosts: not told before they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.bundle.hosts import HOSTS
from loadstone.report.vdbench.live_intervals import LiveSamples

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000_000


def test_a_run_on_hosts_has_no_interval_before_its_samples_are_here(tmp_path: Path) -> None:
    assert LiveSamples(tmp_path, S, 10, on_files=False).complete(5 * S, S) == 4
    (tmp_path / HOSTS).write_text("{}")
    of_hosts = LiveSamples(tmp_path, S, 10, on_files=False)
    assert (of_hosts.complete(5 * S, S), of_hosts.begun()) == (0, 0)
