"""Collectors on files with known content, and on this host."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.monitor import sampler as sampling
from loadstone.monitor.block import Block
from loadstone.monitor.counters import Counters, increase
from loadstone.monitor.cpu import NS_PER_TICK, Cpu
from loadstone.monitor.engine import Engine
from loadstone.monitor.memory import Memory
from loadstone.monitor.net import Net
from loadstone.monitor.pressure import Pressure
from loadstone.monitor.sampler import Collector, Sampler
from loadstone.monitor.tracepoints import TRACING
from loadstone.path.block import BlockDevice
from tests.guard.plans import plan, target

if TYPE_CHECKING:
    from pathlib import Path


def test_cpu(tmp_path: Path) -> None:
    source = tmp_path / "stat"
    source.write_text("cpu  10 2 3 100 4 1 5 6 7 0\ncpu0 10 2 3 100 4 1 5 6 7 0\nintr 5\n")
    found = Cpu(source).read().growing
    kinds = {"user": 12, "system": 3, "irq": 6, "iowait": 4, "steal": 6, "idle": 100}
    assert found == {
        f"cpu.{core}.{kind}_ns": ticks * NS_PER_TICK for core in ("all", "0") for kind, ticks in kinds.items()
    }


def test_memory(tmp_path: Path) -> None:
    source = tmp_path / "meminfo"
    source.write_text("MemTotal:  1000 kB\nDirty:  3 kB\nHugePages_Total:  7\n")
    assert Memory(source).read().levels == {"memory.total_bytes": 1024000, "memory.dirty_bytes": 3072}


def test_a_device_that_the_kernel_does_not_count_has_no_figures(tmp_path: Path) -> None:
    """With `iostats` off they stood still: all that was read was said to come from memory."""
    (tmp_path / "queue").mkdir()
    (tmp_path / "stat").write_text("1 2 8 4 5 6 16 8 9 10 11\n")
    device = BlockDevice("sdx", tmp_path)
    (tmp_path / "queue/iostats").write_text("0\n")
    assert Block([device]).read() == Counters()
    (tmp_path / "queue/iostats").write_text("1\n")
    assert Block([device]).read().growing["block.sdx.reads"] == 1


def test_block_with_and_without_the_newer_fields(tmp_path: Path) -> None:
    device = BlockDevice("sdx", tmp_path)
    old = "1 2 8 4 5 6 16 8 9 10 11"
    (tmp_path / "stat").write_text(old + "\n")
    found = Block([device]).read()
    assert found.levels == {"block.sdx.inflight": 9}
    assert found.growing["block.sdx.reads"] == 1
    assert found.growing["block.sdx.read_bytes"] == 8 * 512
    assert found.growing["block.sdx.write_bytes"] == 16 * 512
    assert found.growing["block.sdx.write_time_ns"] == 8_000_000
    assert found.growing["block.sdx.busy_ns"] == 10_000_000
    assert not any("trim" in key or "flush" in key for key in found.growing)
    (tmp_path / "stat").write_text(old + " 12 13 24 15 16 17\n")
    newer = Block([device]).read().growing
    assert newer["block.sdx.trims"] == 12
    assert newer["block.sdx.trim_bytes"] == 24 * 512
    assert newer["block.sdx.flushes"] == 16
    assert newer["block.sdx.flush_time_ns"] == 17_000_000


def test_a_device_that_is_gone_has_no_keys(tmp_path: Path) -> None:
    assert Block([BlockDevice("sdx", tmp_path / "gone")]).read() == Counters()


def test_net(tmp_path: Path) -> None:
    source = tmp_path / "dev"
    rows = "h1\nh2\n  eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n"
    source.write_text(rows)
    found = Net(source).read().growing
    assert found["net.eth0.rx_bytes"] == 1
    assert found["net.eth0.rx_drops"] == 4
    assert found["net.eth0.tx_bytes"] == 5
    assert found["net.eth0.tx_errors"] == 7


def test_pressure_only_of_what_the_kernel_has(tmp_path: Path) -> None:
    (tmp_path / "io").write_text(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=2\n"
    )
    assert Pressure(tmp_path).read().growing == {
        "pressure.io.some_ns": 5000,
        "pressure.io.full_ns": 2000,
    }


def test_engine_sees_this_process_and_its_time_grow() -> None:
    collector = Engine(os.getpid())
    before = collector.read()
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    row = increase(before, collector.read())
    assert row["engine.threads"] >= 1
    assert row["engine.rss_bytes"] > 1 << 20
    assert row["engine.user_ns"] + row["engine.system_ns"] >= NS_PER_TICK


def test_a_process_that_is_gone_has_no_keys() -> None:
    assert Engine(2**22 + 1).read() == Counters()


def test_increase_has_nothing_to_say_about_what_is_new_or_went_back() -> None:
    before = Counters({"a": 5, "b": 5}, {"level": 1})
    after = Counters({"a": 7, "b": 1, "c": 9}, {"level": 3})
    assert increase(before, after) == {"a": 2, "level": 3}


def test_sampler_rows_cover_the_time_without_gaps(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    without_tracefs = set() if any((place / "events").is_dir() for place in TRACING) else {"served"}
    rows: list[dict[str, Any]] = []
    origin_ns = time.monotonic_ns()
    sampler = Sampler(plan(target(str(tmp_path / "x"))), os.getpid(), origin_ns, rows.append)
    sampler.start()
    time.sleep(1.1)
    cost = sampler.stop()
    assert cost["rows"] == len(rows) == 2
    assert cost["cpu_ns"] > 0
    assert sum(cost["by_collector"].values()) <= cost["cpu_ns"]
    assert {"cpu", "block", "run_queue", "clock"} <= cost["by_collector"].keys()
    assert cost.get("failed", {}).keys() <= without_tracefs
    assert rows[0]["t_ns"] >= 1_000_000_000
    assert rows[1]["t_ns"] - rows[1]["dt_ns"] == rows[0]["t_ns"]
    assert all(isinstance(value, int) for row in rows for value in row.values())
    assert {"cpu.all.user_ns", "memory.free_bytes", "engine.threads"} <= rows[0].keys()


def test_a_collector_that_fails_costs_its_columns_and_not_the_run(tmp_path: Path) -> None:
    class Broken:
        def read(self) -> Counters:
            raise ValueError("invalid literal for int(): 'x'")

    rows: list[dict[str, Any]] = []
    one = plan(target(str(tmp_path / "x")))
    collectors: dict[str, Collector] = {"broken": Broken(), "memory": Memory()}
    sampler = Sampler(one, os.getpid(), time.monotonic_ns(), rows.append, collectors=collectors)
    sampler.start()
    cost = sampler.stop()
    assert cost["failed"] == {"broken": "ValueError: invalid literal for int(): 'x'"}
    assert cost["by_collector"]["memory"] > 0
    assert "memory.free_bytes" in rows[0]


def test_monitors_whose_first_sample_found_no_memory_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by failing allocations: their thread was waited for and had never been started."""
    shortages = [MemoryError()]

    def now() -> Counters:
        if shortages:
            raise shortages.pop()
        return Counters({}, {})

    monkeypatch.setattr(sampling, "Counters", now)
    rows: list[dict[str, Any]] = []
    one = plan(target(str(tmp_path / "x")))
    sampler = Sampler(one, os.getpid(), time.monotonic_ns(), rows.append, collectors={})
    with pytest.raises(MemoryError):
        sampler.start()
    sampler.stop()


def test_monitors_that_fail_in_the_run_say_so_and_leave_it_alone(tmp_path: Path) -> None:
    """Found by failing allocations: the thread ended in a traceback, and the run knew nothing of it."""

    def refused(_row: dict[str, Any]) -> None:
        raise MemoryError

    one = plan(target(str(tmp_path / "x")))
    began_ns = time.monotonic_ns() - 950_000_000
    sampler = Sampler(one, os.getpid(), began_ns, refused, collectors={"memory": Memory()})
    sampler.start()
    while sampler._thread.is_alive():
        time.sleep(0.01)
    assert sampler.stop()["failed"] == {"all": "out of memory"}
