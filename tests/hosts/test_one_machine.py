"""Hosts that are processes of one machine, on one device: no host's load is foreign to another."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import threading
from typing import TYPE_CHECKING

import pytest

from loadstone.cli.main import main
from tests.hosts.test_run import hosts_file
from tests.support.devices import attached

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOB = """[readers]
ioengine=psync
direct=1
rw=randread
bs=64k
rate_iops=100
time_based
runtime=4
filename={device}
"""
pytestmark = [
    pytest.mark.root,
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("losetup") is None, reason="needs root and losetup"),
]


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    image = tmp_path / "hosts-image"
    image.write_bytes(os.urandom(1 << 20) * 32)
    with attached(image, "--direct-io=on") as found:
        yield found


@contextlib.contextmanager
def somebody_else(device: str) -> Iterator[None]:
    """Read the device at about twice what a host reads, as long as this lasts."""
    over = threading.Event()

    def read() -> None:
        descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, 1 << 18) as buffer:
            while not over.wait(0.02):
                os.preadv(descriptor, [buffer], 0)
        os.close(descriptor)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("foreign", [False, True])
def test_only_a_load_of_nobody_of_the_run_is_foreign(
    tmp_path: Path, device: str, capsys: pytest.CaptureFixture[str], *, foreign: bool
) -> None:
    (tmp_path / "job.fio").write_text(JOB.format(device=device))
    words = ["run", str(tmp_path / "job.fio"), "--hosts", str(hosts_file(tmp_path)), "--json"]
    with somebody_else(device) if foreign else contextlib.nullcontext():
        code = main([*words, "--out", str(tmp_path / "out"), "--no-report", "--no-calibration"])
    out, err = capsys.readouterr()
    assert code == 0, err
    verdict = json.loads(out)["verdict"]
    told = {cause["rule"]: cause["text"] for cause in verdict["causes"]}
    assert ("foreign_load" in told) == foreign, told
    assert "foreign_load" not in {one["rule"] for one in verdict["missing"]}
