"""What would hold the engine up, found before the run."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from loadstone import engine_groups, host_limits
from tests.e2e.program import job, needs_engine

if TYPE_CHECKING:
    from pathlib import Path


def test_an_ordinary_class_is_not_held() -> None:
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    assert host_limits.real_time() is None


@pytest.mark.parametrize(
    ("policy", "runtime", "said"),
    [
        (os.SCHED_FIFO, "950000", "SCHED_FIFO: the kernel may stop it for 50 ms of each 1000 ms"),
        (os.SCHED_RR, "500000", "SCHED_RR: the kernel may stop it for 500 ms of each 1000 ms"),
        (6, "950000", "SCHED_DEADLINE"),
        (os.SCHED_FIFO, "-1", None),
        (os.SCHED_FIFO, "1000000", None),
        (os.SCHED_FIFO | host_limits.RESET_ON_FORK, "950000", None),
        (os.SCHED_BATCH, "950000", None),
    ],
)
def test_a_class_that_is_held_for_a_part_of_each_second(
    monkeypatch: pytest.MonkeyPatch, policy: int, runtime: str, said: str | None
) -> None:
    files = {
        "/proc/sys/kernel/sched_rt_runtime_us": runtime,
        "/proc/sys/kernel/sched_rt_period_us": "1000000",
    }
    monkeypatch.setattr(os, "sched_getscheduler", lambda _pid: policy)
    monkeypatch.setattr(host_limits, "text", lambda path: files.get(str(path)))
    found = host_limits.real_time()
    if said is None:
        assert found is None
    else:
        assert found is not None
        assert found.found.startswith(said)
        assert "keep other work off its CPUs" in found.remedy


@pytest.mark.parametrize(
    ("release", "share", "held"),
    [("6.11.9", None, False), ("6.12.0", None, True), ("6.18.44", "50000000", True), ("6.18.44", "0", False)],
)
def test_from_6_12_on_the_setting_does_not_lift_it(
    monkeypatch: pytest.MonkeyPatch, release: str, share: str | None, held: bool
) -> None:
    files = {"/proc/sys/kernel/sched_rt_runtime_us": "-1", "/proc/sys/kernel/sched_rt_period_us": "1000000"}
    files["/proc/sys/kernel/osrelease"] = release
    if share is not None:
        files |= {
            f"/sys/kernel/debug/sched/fair_server/cpu{n}/runtime": share for n in os.sched_getaffinity(0)
        }
    monkeypatch.setattr(os, "sched_getscheduler", lambda _pid: os.SCHED_FIFO)
    monkeypatch.setattr(host_limits, "text", lambda path: files.get(str(path)))
    assert (host_limits.real_time() is not None) == held


def test_a_control_group_that_holds_it_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/sys/kernel/sched_rt_runtime_us": "950000",
        "/proc/sys/kernel/sched_rt_period_us": "1000000",
        "/sys/fs/cgroup/cpu/job/cpu.rt_runtime_us": "0",
        "/sys/fs/cgroup/cpu/job/cpu.rt_period_us": "1000000",
    }
    monkeypatch.setattr(os, "sched_getscheduler", lambda _pid: os.SCHED_FIFO)
    monkeypatch.setattr(host_limits, "text", lambda path: files.get(str(path)))
    monkeypatch.setattr(engine_groups, "lines", lambda: ["3:cpu,cpuacct:/job"])
    found = host_limits.real_time()
    assert found is not None
    assert "1000 ms of each 1000 ms" in found.found


@pytest.mark.parametrize(
    ("number", "switch", "said", "remedy"),
    [
        (errno.EPERM, "2", "kernel.io_uring_disabled is 2", "io_uring_disabled=0"),
        (errno.EPERM, "1", "kernel.io_uring_disabled is 1", "io_uring_group"),
        (errno.EPERM, "0", "seccomp", "profile"),
        (errno.ENOSYS, None, "the kernel has none", "5.10"),
        (errno.ENOMEM, "0", "the limit on locked memory is", "ulimit -l"),
    ],
)
def test_why_there_is_no_ring(
    monkeypatch: pytest.MonkeyPatch, number: int, switch: str | None, said: str, remedy: str
) -> None:
    class Refusing:
        @staticmethod
        def syscall(*_words: object) -> int:
            ctypes.set_errno(number)
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_a, **_k: Refusing())
    monkeypatch.setattr(host_limits, "text", lambda _path: switch)
    found = host_limits.no_ring()
    assert found is not None
    assert said in found.found
    assert "libaio" in found.found
    assert remedy in found.remedy


@pytest.mark.in_turn
@pytest.mark.root
def test_a_run_in_a_real_time_class_says_that_it_may_be_held(tmp_path: Path) -> None:
    needs_engine()
    chrt = shutil.which("chrt")
    if (
        chrt is None
        or subprocess.run([chrt, "-f", "10", "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("no real-time class to be had")
    if host_limits._stopped() is None:
        pytest.skip("real-time tasks are not held here")
    text = "[r]\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime=500ms\nfilename=/dev/zero\nrate_iops=100\n"
    one = job(tmp_path / "r.fio", text)
    program = [chrt, "-f", "10", sys.executable, "-m", "loadstone.cli.main"]
    words = ["run", str(one), "--out", "b", "--no-report", "--no-calibration"]
    done = subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    notes = json.loads((tmp_path / "b" / "notes.json").read_text())
    assert any("SCHED_FIFO: the kernel may stop it" in note["text"] for note in notes)
    assert "SCHED_FIFO" in done.stdout + done.stderr
    shown = subprocess.run([*program, "doctor"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "SCHED_FIFO" in shown.stdout
