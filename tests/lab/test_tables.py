"""The tables of the studies that are redone small: every number is in its row and column."""

from __future__ import annotations

from typing import Any

from lab import queue_depth, vroc
from loadstone import units


def run_at(stage: str, iodepth: int, iops: float | None) -> dict[str, Any]:
    total = None if iops is None else {"iops": {"value": iops, "error": None}}
    return {"factors": {"stage": stage, "iodepth": iodepth}, "total": total}


def test_both_runs_stand_at_their_pattern_and_depth() -> None:
    runs = [
        run_at("write", 2, 150.0),
        run_at("read", 10, 12_345.0),
        run_at("read", 2, 400.0),
        run_at("read", 2, 410.0),
        run_at("write", 10, 640.0),
        run_at("read", 10, None),
    ]
    # Patterns as they come, depths by size and not as text; a run that failed has no rate.
    assert list(queue_depth.table({"runs": runs})) == [
        "| depth | write | read |",
        "|--:|--:|--:|",
        "| 2 | 150 | 400, 410 |",
        "| 10 | 640 | 12.3k, – |",
    ]


def curve(iops: float, error: float | None, latency_ns: float) -> dict[str, Any]:
    return {
        "maximum": {
            "iops": {"value": iops, "error": error},
            "bandwidth_bytes_per_s": {"value": iops * 65536, "error": error and error * 65536},
            "latency_mean_ns": {"value": latency_ns, "error": None},
        }
    }


def test_a_layout_stands_beside_raid0() -> None:
    found = {
        (load, layout.name): curve(1000.0 * (1 + at), 20.0, 5e6)
        for at, layout in enumerate(vroc.LAYOUTS)
        for load in vroc.LOADS
    }
    lines = [line.replace(units.THIN, " ") for line in vroc.tables(found)]
    blank = lines.index("")
    maxima, shares = lines[:blank], lines[blank + 1 :]
    assert maxima[0] == shares[0] == "|  | JBOD | RAID0 | RAID10 | RAID5 |"
    assert len(maxima) == len(shares) == len(vroc.LOADS) + 2
    by_load = {line.split(" | ")[0].strip("| "): line for line in maxima[2:]}
    assert list(by_load) == list(vroc.LOADS)
    small = by_load["sql"].strip("| ").split(" | ")[1:]
    assert small[0] == "1.000k ± 0.020k, 5.00 ms"
    assert small[2] == "3.000k ± 0.020k, 5.00 ms"
    # Large blocks are told in bytes: 2,000 of 64 KiB a second.
    assert "125.0 ± 1.2 MiB/s" in by_load["read-64k-sequential"]
    assert shares[2] == "| read-4k-random | 0.500 | 1.00 | 1.50 | 2.00 |"
