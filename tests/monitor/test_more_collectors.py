"""The collectors of what stands beside the devices: clocks, groups, the network, temperatures."""

from __future__ import annotations

import os
import re
import time
from threading import get_native_id
from typing import TYPE_CHECKING

import pytest

from loadstone.monitor import target_files
from loadstone.monitor.cgroup import Cgroup
from loadstone.monitor.clock import Clock
from loadstone.monitor.counters import Counters, increase
from loadstone.monitor.frequency import ClockFrequency
from loadstone.monitor.nfs import Nfs
from loadstone.monitor.run_queue import RunQueue
from loadstone.monitor.tasks import Tasks
from loadstone.monitor.tcp import Tcp
from loadstone.monitor.temperature import PERIOD_NS, Temperature
from loadstone.monitor.vm import PAGE_BYTES, Vm
from loadstone.monitor.zram import Zram
from loadstone.path.block import BlockDevice
from tests.guard.plans import plan, target

if TYPE_CHECKING:
    from pathlib import Path


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def test_run_queue_of_each_thread_and_of_all(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "7/task/7/schedstat": "100 20 3\n",
            "7/task/7/comm": "engine\n",
            "7/task/8/schedstat": "50 5 1\n",
            "7/task/8/comm": "worker-0\n",
        },
    )
    assert RunQueue(7, tmp_path).read().growing == {
        "engine.on_cpu_ns": 150,
        "engine.run_queue_ns": 25,
        "engine.7-engine.on_cpu_ns": 100,
        "engine.7-engine.run_queue_ns": 20,
        "engine.8-worker-0.on_cpu_ns": 50,
        "engine.8-worker-0.run_queue_ns": 5,
    }
    assert RunQueue(9, tmp_path).read() == Counters()


def test_run_queue_counts_the_time_a_thread_had() -> None:
    collector = RunQueue(os.getpid())
    if not collector.read().growing:
        pytest.skip("this kernel has no /proc/PID/schedstat")
    before, used_ns = collector.read(), time.thread_time_ns()
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        pass
    used_ns = time.thread_time_ns() - used_ns
    # Other threads of a worker may end meanwhile, and then no sum is told.
    grown = increase(before, collector.read())
    [mine] = [name for name in grown if re.fullmatch(rf"engine\.{get_native_id()}-.*\.on_cpu_ns", name)]
    # The kernel brings its own account of a running thread up to date at the next tick.
    assert grown[mine] == pytest.approx(used_ns, rel=0.5)


def test_frequency_of_cores_that_share_a_clock_is_told_once(tmp_path: Path) -> None:
    for name, governor in (("policy0", "performance"), ("policy4", "powersave")):
        tree(
            tmp_path / "cpufreq" / name,
            {
                "scaling_cur_freq": "2400000\n",
                "scaling_max_freq": "3000000\n",
                "scaling_governor": f"{governor}\n",
            },
        )
    found = ClockFrequency(tmp_path).read().levels
    assert found["frequency.0.now_hz"] == 2_400_000_000
    assert found["frequency.0.limit_hz"] == 3_000_000_000
    assert (found["frequency.0.governor_performance"], found["frequency.4.governor_performance"]) == (1, 0)
    assert ClockFrequency(tmp_path / "guest").read() == Counters()


def test_vm_counts_pages_and_kib_as_bytes(tmp_path: Path) -> None:
    source = tmp_path / "vmstat"
    source.write_text("nr_free_pages 5\nnr_dirtied 3\nnr_written 2\npgpgin 7\npgpgout 8\npgmajfault 1\n")
    assert Vm(source).read().growing == {
        "vm.dirtied_bytes": 3 * PAGE_BYTES,
        "vm.cleaned_bytes": 2 * PAGE_BYTES,
        "vm.block_in_bytes": 7 * 1024,
        "vm.block_out_bytes": 8 * 1024,
        "vm.major_faults": 1,
    }


def test_tasks_are_counted_and_interrupts_by_their_sum(tmp_path: Path) -> None:
    source = tmp_path / "stat"
    source.write_text(
        "cpu  1 2 3 4 5 6 7 8\nintr 900 30 870\nctxt 77\nbtime 1\nprocesses 12\nprocs_running 3\n"
        "procs_blocked 2\nsoftirq 5 1 4\n"
    )
    found = Tasks(source).read()
    assert found.growing == {"tasks.interrupts": 900, "tasks.context_switches": 77, "tasks.forks": 12}
    assert found.levels == {"tasks.runnable": 3, "tasks.blocked": 2}
    assert Tasks().read().growing["tasks.context_switches"] > 0


def test_tcp_finds_values_by_name_not_by_place(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "snmp": "Ip: InSegs\nIp: 99\nTcp: RtoMin RetransSegs OutSegs InSegs InErrs\nTcp: 200 4 9 8 1\n",
            "netstat": "TcpExt: X TCPTimeouts\nTcpExt: 1 2\nIpExt: TCPTimeouts\nIpExt: 77\n",
        },
    )
    assert Tcp(tmp_path).read().growing == {
        "tcp.retransmitted_segments": 4,
        "tcp.sent_segments": 9,
        "tcp.received_segments": 8,
        "tcp.bad_segments": 1,
        "tcp.timeouts": 2,
    }


MOUNTSTATS = """device proc mounted on /proc with fstype proc
device srv:/a mounted on /mnt/n\\040x with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tbytes:\t1000 200 30 4 900 150 1 1
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 1 0 0 50 50 0 100 7 2 0 0
\txprt:\ttcp 0 0 2 0 0 50 50 0 100 5 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 10 12 1 1000 9000 5 60 70 0
\t       WRITE: 4 4 0 2000 300 1 20 22 0
device srv:/b mounted on /mnt/other with fstype nfs4 statvers=1.1
\tbytes:\t5 5 5 5 5 5 5 5
"""


def test_nfs_of_the_mounts_that_matter(tmp_path: Path) -> None:
    tree(tmp_path, {"self/mountstats": MOUNTSTATS})
    found = Nfs({"/mnt/n x"}, tmp_path).read().growing
    assert {key.rpartition(".")[0] for key in found} == {"nfs./mnt/n x"}
    told = {key.rpartition(".")[2]: value for key, value in found.items()}
    assert (told["asked_read_bytes"], told["asked_write_bytes"]) == (1030, 204)
    assert (told["read_bytes"], told["write_bytes"]) == (900, 150)
    assert (told["reads"], told["read_rtt_ns"], told["read_execute_ns"]) == (10, 60_000_000, 70_000_000)
    assert (told["retransmits"], told["timeouts"], told["reconnects"], told["backlog"]) == (2, 1, 1, 12)
    assert Nfs((), tmp_path).read() == Counters()


def test_temperatures_are_asked_for_every_ten_seconds(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "class/hwmon/hwmon0/name": "nvme\n",
            "class/hwmon/hwmon0/temp1_input": "41850\n",
            "class/hwmon/hwmon0/temp1_label": "Composite\n",
            "class/thermal/thermal_zone0/type": "x86 pkg.temp\n",
            "class/thermal/thermal_zone0/temp": "-5000\n",
            "devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "3\n",
        },
    )
    now = [0]
    collector = Temperature(tmp_path, lambda: now[0])
    tree(tmp_path, {"devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "5\n"})
    assert collector.read().levels == {
        "temperature.nvme-hwmon0-Composite.millicelsius": 41850,
        "temperature.thermal_zone0-x86_pkg_temp.millicelsius": -5000,
        "temperature.cpu.throttles": 2,
    }
    now[0] = PERIOD_NS - 1
    assert collector.read() == Counters()
    now[0] = PERIOD_NS
    assert collector.read().levels


def test_a_step_of_the_wall_clock_is_seen() -> None:
    ahead = {time.CLOCK_REALTIME: 10**18, time.CLOCK_BOOTTIME: 5, time.CLOCK_MONOTONIC: 0}
    ticks = iter(range(1000))
    collector = Clock(lambda clock: 1000 + next(ticks) + ahead[clock])
    assert abs(collector.read().levels["clock.offset_ns"]) <= 1
    ahead[time.CLOCK_REALTIME] -= 2_000_000_000
    ahead[time.CLOCK_BOOTTIME] += 3_000_000
    found = collector.read().levels
    assert found["clock.offset_ns"] == pytest.approx(-2_000_000_000, abs=2)
    assert found["clock.suspended_ns"] == 3_000_000


def test_zram_tells_what_it_holds_and_what_that_takes(tmp_path: Path) -> None:
    tree(tmp_path, {"zram0/mm_stat": "4096000 1000 8192 0 8192 0 0 0\n", "sda/size": "8\n"})
    devices = [BlockDevice(name, tmp_path / name) for name in ("zram0", "sda")]
    assert Zram(devices).read().levels == {
        "block.zram0.stored_bytes": 4096000,
        "block.zram0.memory_bytes": 8192,
    }


V1 = "30 27 0:25 / {point}/{name} rw - cgroup cgroup rw,{name}\n"


def groups(root: Path, group: str = "/job") -> Path:
    """A process in `group` of version 1's cpu and blkio."""
    point = root / "cg"
    mountinfo = "".join(V1.format(point=point, name=name) for name in ("cpu", "blkio"))
    tree(root, {"self/mountinfo": mountinfo, "5/cgroup": f"2:blkio:{group}\n1:cpu,cpuacct:{group}\n"})
    return point


def test_cgroup_throttling_and_the_limits_of_devices_that_matter(tmp_path: Path) -> None:
    point = groups(tmp_path)
    tree(
        point,
        {
            "cpu/job/cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_time 500\n",
            "blkio/job/blkio.throttle.read_iops_device": "7:0 500\n8:0 9\n",
            "blkio/blkio.throttle.write_bps_device": "7:0 1048576\n",
        },
    )
    collector = Cgroup(5, {"7:0": "loop0"}, tmp_path)
    found = collector.read()
    assert found.growing == {
        "cgroup.cpu.periods": 9,
        "cgroup.cpu.throttled_periods": 4,
        "cgroup.cpu.throttled_ns": 500,
    }
    # The root's limit does not hold for a process in another group.
    assert found.levels == {"cgroup.loop0.read_limit_iops": 500}
    tree(point, {"blkio/job/blkio.throttle.read_iops_device": "7:0 50\n"})
    assert collector.read().levels == {"cgroup.loop0.read_limit_iops": 50}


def test_the_state_of_files_leaves_out_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x" * 8192)
    os.truncate(tmp_path / "data", 1 << 20)
    made = plan(target(str(tmp_path / "gone")), target(str(tmp_path / "data")), target("null", "virtual"))
    found = target_files.states(made, "begin")
    assert [(one["type"], one["when"], one["target"], one["size_bytes"]) for one in found] == [
        ("target_state", "begin", 1, 1 << 20)
    ]
    assert found[0]["allocated_bytes"] < 1 << 20
