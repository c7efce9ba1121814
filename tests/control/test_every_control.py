# ruff: noqa: E501 - a table
"""Every control that is a file of the kernel: set, read, and put back after its process is gone.

On a tree of files that this test makes: most machines have no governors, threads of a core or NFS
server. A control without a row here fails the last test.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from loadstone.control import file_controls
from loadstone.control.all_controls import Controls
from loadstone.control.changes import Changes, restore
from loadstone.control.cpu import Governor
from loadstone.errors import RefusedError
from tests.control import machine

if TYPE_CHECKING:
    from pathlib import Path

CPU = "sys/devices/system/cpu"
POLICY = f"{CPU}/cpufreq/policy0"
QUEUE = "sys/block/sda/queue"


@dataclass(frozen=True)
class ControlFile:
    """A control, its file with what it holds, what is set, and how the file looks then."""

    control: str
    subject: str
    file: str
    before: str
    value: str
    after: str
    refused: str | None = None


ROWS = (
    ControlFile("governor", "policy0", f"{POLICY}/scaling_governor", "powersave", "performance", "performance", "fast"),
    ControlFile("governor_tunable", "policy0/powersave/limit", f"{POLICY}/powersave/limit", "40", "50", "50"),
    ControlFile("frequency_min_khz", "policy0", f"{POLICY}/scaling_min_freq", "800000", "1200000", "1200000", "slow"),
    ControlFile("frequency_max_khz", "policy0", f"{POLICY}/scaling_max_freq", "3600000", "2000000", "2000000", "2 GHz"),
    ControlFile("energy_preference", "policy0", f"{POLICY}/energy_performance_preference", "balance_power", "performance",
        "performance"),
    ControlFile("boost", "", f"{CPU}/cpufreq/boost", "1", "0", "0", "on"),
    ControlFile("boost", "", f"{CPU}/intel_pstate/no_turbo", "0", "0", "1"),
    ControlFile("smt", "", f"{CPU}/smt/control", "on", "off", "off", "0"),
    ControlFile("cpu_online", "cpu1", f"{CPU}/cpu1/online", "1", "0", "0", "off"),
    ControlFile("idle_states", "cpu0", f"{CPU}/cpu0/cpuidle/state2/disable", "0", "POLL,C1", "1", "C9"),
    ControlFile("io_scheduler", "sda", f"{QUEUE}/scheduler", "none [mq-deadline] bfq", "none", "[none] mq-deadline bfq", "cfq"),
    ControlFile("scheduler_tunable", "sda/read_expire", f"{QUEUE}/iosched/read_expire", "123", "77", "77"),
    ControlFile("nr_requests", "sda", f"{QUEUE}/nr_requests", "200", "33", "33", "many"),
    ControlFile("read_ahead_kb", "sda", f"{QUEUE}/read_ahead_kb", "128", "16", "16", "16k"),
    ControlFile("write_cache", "sda", f"{QUEUE}/write_cache", "write back", "write through", "write through", "off"),
    ControlFile("wbt_lat_usec", "sda", f"{QUEUE}/wbt_lat_usec", "75000", "0", "0"),
    ControlFile("max_sectors_kb", "sda", f"{QUEUE}/max_sectors_kb", "1280", "64", "64", "all"),
    ControlFile("nomerges", "sda", f"{QUEUE}/nomerges", "0", "2", "2", "3"),
    ControlFile("rq_affinity", "sda", f"{QUEUE}/rq_affinity", "1", "2", "2", "cpu"),
    ControlFile("dirty_limit", "", "proc/sys/vm/dirty_ratio", "20", "5%", "5", "64x"),
    ControlFile("dirty_limit", "", "proc/sys/vm/dirty_bytes", "0", "64m", "67108864"),
    ControlFile("dirty_background_limit", "", "proc/sys/vm/dirty_background_ratio", "10", "5%", "5", "64x"),
    ControlFile("transparent_huge_pages", "", "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never", "never",
        "always madvise [never]", "off"),
    ControlFile("sysctl", "vm.swappiness", "proc/sys/vm/swappiness", "60", "10", "10"),
    ControlFile("nfs_server_threads", "", "proc/fs/nfsd/threads", "8", "64", "64", "many"),
)  # fmt: skip
NOT_FILES = {
    "mount_options", "cgroup_limit", "cgroup", "fill_level", "layout", "remote_file", "command",
}  # fmt: skip
"""On real parts: test_real_controls.py, tests/experiment/test_real_layouts.py, lab/experiment_drill.py."""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Return a machine with a file for every row."""
    root = tmp_path / "host"
    machine.make(root)
    for row in ROWS:
        if row.file.endswith("no_turbo"):
            continue
        path = root / row.file
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(f"{row.before}\n")
    preferences = root / POLICY / "energy_performance_available_preferences"
    preferences.write_text("performance balance_power power\n")
    return root


@pytest.mark.in_turn
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.control} {row.file.rpartition('/')[2]}")
def test_what_a_killed_process_set_is_put_back(host: Path, tmp_path: Path, row: ControlFile) -> None:
    if row.file.endswith("no_turbo"):
        (host / row.file).parent.mkdir()
        (host / row.file).write_text(row.before)
    before = machine.snapshot(host)
    child = os.fork()
    if not child:
        try:
            Changes(machine.controls(host), tmp_path / "state").set(row.control, row.subject, row.value)
        finally:
            # As a kill does: nothing is put back.
            os._exit(0)
    os.waitpid(child, 0)
    now = machine.snapshot(host)
    assert now[row.file].strip() == row.after
    assert [one.is_well for one in restore(machine.controls(host), tmp_path / "state")] == [True]
    assert {name: text.strip() for name, text in machine.snapshot(host).items()} == {
        name: text.strip() for name, text in before.items()
    }


@pytest.mark.parametrize("row", [row for row in ROWS if row.refused], ids=lambda row: row.control)
def test_a_value_that_it_does_not_take_is_refused_and_nothing_written_down(
    host: Path, tmp_path: Path, row: ControlFile
) -> None:
    before = machine.snapshot(host)
    with pytest.raises(RefusedError) as refused:
        Changes(machine.controls(host), tmp_path / "state").set(row.control, row.subject, str(row.refused))
    assert repr(row.refused) in refused.value.message
    assert "takes" in (refused.value.hint or "")
    assert machine.snapshot(host) == before
    assert not list((tmp_path / "state").glob("*")), json.dumps(before)


def test_every_control_is_tried() -> None:
    names = {control.name for control in Controls().every()}
    assert names == {row.control for row in ROWS} | NOT_FILES


@pytest.mark.parametrize("shared", [False, True])
def test_a_governor_comes_back_with_its_tunables(tmp_path: Path, *, shared: bool) -> None:
    """The kernel makes them anew, with their defaults: a threshold of 70 was 95 afterwards."""
    host = tmp_path / "host"
    machine.make(host)
    policies = host / CPU / "cpufreq"

    def tunables(policy: Path) -> Path:
        return (policies if shared else policy) / "ondemand"

    class KernelGovernor(Governor):
        def write(self, subject: str, value: str) -> None:
            super().write(subject, value)
            for policy in policies.glob("policy*"):
                used = any((one / self.file).read_text() == "ondemand" for one in policies.glob("policy*"))
                own = (policy / self.file).read_text() == "ondemand"
                if not (used if shared else own):
                    shutil.rmtree(tunables(policy), ignore_errors=True)
                elif not tunables(policy).exists():
                    tunables(policy).mkdir()
                    (tunables(policy) / "up_threshold").write_text("95")

    controls = machine.controls(host)
    controls.replace(KernelGovernor(host / "sys"))
    for policy in policies.glob("policy*"):
        (policy / "scaling_available_governors").write_text("performance ondemand\n")
        (policy / "scaling_governor").write_text("ondemand")
        (policy / "scaling_setspeed").write_text("<unsupported>\n")
        tunables(policy).mkdir(exist_ok=True)
        (tunables(policy) / "up_threshold").write_text("70")
    before = machine.snapshot(host)
    with Changes(controls, tmp_path / "state") as changes:
        changes.set("governor", "", "performance")
        assert not list(policies.rglob("up_threshold"))
    assert machine.snapshot(host) == before


def test_a_limit_of_frequency_is_waited_for(host: Path, tmp_path: Path) -> None:
    """The kernel's worker sets it: it was read before that, and called not put back."""
    timers: list[threading.Timer] = []

    def later(path: Path, value: str) -> None:
        timers.append(threading.Timer(0.2, lambda: path.write_text(value)))
        timers[-1].start()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_controls, "put", later)
        with Changes(machine.controls(host), tmp_path / "state") as changes:
            (change,) = changes.set("frequency_max_khz", "policy0", "2000000")
    assert change.after == "2000000"
    assert (host / POLICY / "scaling_max_freq").read_text().strip() == "3600000"
