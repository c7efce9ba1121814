"""Probes after a run on hosts: each host does its part of them, and writes nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.bundle.read import Bundle
from loadstone.cli.main import main
from tests.hosts.test_run import hosts_file, job_file, run

if TYPE_CHECKING:
    from pathlib import Path

WRITES = """[writers]
ioengine=psync
rw=randwrite
bs=4k
size=1m
time_based
runtime=1
numjobs=2
filename={file}
"""


def ranges(path: Path) -> set[tuple[int, int]]:
    """First and last byte of what the streams of a host's bundle use."""
    return {
        (use.offset_bytes, use.offset_bytes + use.length_bytes)
        for stream in Bundle.open(path).plan.streams
        for use in stream.files
    }


@pytest.mark.nightly
def test_each_host_probes_its_own_part_of_what_is_divided(tmp_path: Path) -> None:
    consent = [f"--i-accept-data-loss=h{number}:{tmp_path / 'data'}" for number in (1, 2)]
    assert run(tmp_path, "--divide", "--probe=60s", *consent, text=WRITES) == 0
    whole = Bundle.open(tmp_path / "out")
    assert whole.verified
    halves = [(0, 1 << 19), (1 << 19, 1 << 20)]
    probes = sorted((tmp_path / "out" / "probes").glob("*/hosts"))
    assert probes
    for hosts in (tmp_path / "out" / "hosts", *probes):
        for number, (first, last) in enumerate(halves, start=1):
            assert all(first <= low and high <= last for low, high in ranges(hosts / f"h{number}"))
    for path in probes:
        measured = Bundle.open(path.parent)
        assert measured.hosts is not None
        assert [(part.name, part.status) for part in measured.hosts.hosts] == [
            ("h1", "complete"),
            ("h2", "complete"),
        ]
        # A turn that one of them skips would run beside another's next one.
        turns = [
            {one.plan.workers[stream.worker].stage for stream in one.plan.streams}
            for one in (Bundle.open(path / "h1"), Bundle.open(path / "h2"))
        ]
        assert turns[0] == turns[1]


def test_what_hosts_would_probe_is_not_foretold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", str(job_file(tmp_path)), "--hosts", str(hosts_file(tmp_path)), "--probe", "--dry-run"]
    assert main(words) == 2
    assert "only the hosts see their targets" in capsys.readouterr().err
