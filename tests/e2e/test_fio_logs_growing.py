"""fio's logs while `loadstone fio` runs, as those who follow them see them."""

from __future__ import annotations

import itertools
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.started import StartedProgram

if TYPE_CHECKING:
    from pathlib import Path

JOB = """[global]
filename=file
size=1m
rw=randread
bs=4k
runtime=4
time_based
rate_iops=100
[windows]
write_bw_log=windows
write_hist_log=windows
log_avg_msec=500
log_hist_msec=1000
[each]
write_iops_log=each
[packed]
write_iops_log=packed
log_store_compressed=1
log_compression=1m
[both]
numjobs=2
per_job_logs=0
log_avg_msec=1000
write_iops_log=both
"""
GROWING = ("windows_bw.1.log", "windows_clat_hist.1.log", "each_iops.2.log")


@pytest.mark.in_turn
def test_lines_come_while_the_run_goes_on_and_stay(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    seen: dict[str, list[str]] = {name: [] for name in GROWING}
    inodes: dict[str, set[int]] = {name: set() for name in GROWING}
    with StartedProgram(["fio", "job.fio"], cwd=tmp_path, stdout=subprocess.DEVNULL) as run:
        while run.poll() is None:
            for name in GROWING:
                path = tmp_path / name
                if path.exists() and (text := path.read_text()) not in seen[name][-1:]:
                    seen[name].append(text)
                    inodes[name].add(path.stat().st_ino)
            time.sleep(0.1)
        assert run.returncode == 0
    for name in GROWING:
        texts = [*seen[name], (tmp_path / name).read_text()]
        assert len(seen[name]) >= 2, f"{name}: a reader sees the run go on"
        assert len(inodes[name] | {(tmp_path / name).stat().st_ino}) == 1, name
        for before, after in itertools.pairwise(texts):
            assert after.startswith(before), f"{name}: no line is taken back"
    lines = (tmp_path / "windows_bw.1.log").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == [str(500 * at) for at in range(1, 9)]
    assert len((tmp_path / "each_iops.2.log").read_text().splitlines()) >= 390
    assert len((tmp_path / "both_iops.log").read_text().splitlines()) == 8
    assert next(tmp_path.glob("packed_iops*")).stat().st_size > 0
