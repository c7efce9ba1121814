"""What many hosts cost the coordinator: `python -m lab.hosts.scale [--agents 64] [--merge 64] [--simulate]`.

Agents are played by a thread in a child process, which speaks as a real agent does once a second;
samples of an hour are made up. Prints figures; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from tests.support import plans

from loadstone.analysis.summary import summarise
from loadstone.bundle import layout
from loadstone.bundle.hosts import HOSTS, HostsRecord
from loadstone.bundle.read import Bundle
from loadstone.bundle.write import BundleWriter
from loadstone.hosts.merge import merged_events, merged_plan
from loadstone.hosts.phases import Ask, Decide, Do, Open, PhaseLimits, Phases, SetStart
from loadstone.hosts.ticks import MergedTicks
from loadstone.plan.model import Plan

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", type=int, default=64)
    parser.add_argument("--merge", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=3600)
    options = parser.parse_args()
    print(json.dumps({"live": live(options.agents)}))
    for count in (64, 256, 1000, 2000, 5000):
        print(json.dumps({"phases": simulated(count)}))
    print(json.dumps({"merge": merge(options.merge, options.seconds)}))
    return 0


def one_plan() -> Plan:
    document = plans.plan(
        [plans.target("/dev/null", "char")], [plans.stream()], [plans.worker(plans.NULL)], interval_ns=10**9
    )
    return Plan.model_validate_json(json.dumps(document))


def live(count: int, seconds: int = 120) -> dict[str, float]:
    """Processor time for the words of so many hosts: a tick and a sign of life of each, once a second."""
    merged = merged_plan({f"h{number}": one_plan() for number in range(count)})
    ticks = MergedTicks(merged.parts)
    row = {
        "cell": 0,
        "op": "read",
        "ramp": False,
        "ops": 1000,
        "bytes": 4096000,
        "errors": 0,
        "p50_ns": 1,
        "p99_ns": 2,
        "max_ns": 3,
        "inflight": 1,
    }
    began_s = time.process_time()
    shown = 0
    for second in range(seconds):
        for number in range(count):
            text = json.dumps(
                {
                    "type": "event",
                    "event": {"type": "tick", "interval": second, "t_ns": second * 10**9, "rows": [row]},
                }
            )
            message = json.loads(text)
            shown += len(ticks.heard(f"h{number}", message["event"]))
            json.loads(json.dumps({"type": "alive", "cpu_s": 0.01}))
            json.dumps({"do": "alive"})
    used_s = time.process_time() - began_s
    return {"hosts": count, "cpu_share": round(used_s / seconds, 5), "shown": shown}


def simulated(count: int) -> dict[str, Any]:
    """Let so many hosts go through all phases with a loss; the cost of each look at the time."""
    names = [f"h{number}" for number in range(count)]
    phases = Phases(names, 0.0, "stop", PhaseLimits())
    began_s = time.process_time()
    actions: list[Do] = []

    answers: dict[type[Do], Callable[[], list[Do]]] = {
        Decide: lambda: phases.decided(1.0, go=True),
        Open: lambda: phases.opened(2.0),
    }

    def do(doing: list[Do]) -> None:
        for one in doing:
            actions.append(one)
            if type(one) in answers:
                do(answers[type(one)]())

    for name in names:
        do(phases.connected(name, 0.5))
    for name in names:
        do(phases.checked(name, 1.0))
    for name in names:
        do(phases.armed(name, 2.0))
    for name in names:
        do(phases.confirmed(name, 2.5))
    for name in names:
        do(phases.started(name, 4.0))
    through_s = time.process_time() - began_s
    began_s = time.process_time()
    for step in range(50):
        do(phases.passed(5.0 + step / 100))
    look_s = (time.process_time() - began_s) / 50
    do(phases.lost(names[0], "staged", 6.0))
    stops = sum(isinstance(one, Ask) and one.what == "stop" for one in actions)
    starts = sum(isinstance(one, SetStart) for one in actions)
    return {
        "hosts": count,
        "through_all_phases_s": round(through_s, 3),
        "look_s": round(look_s, 6),
        "looks_cpu_share": round(look_s * 5, 5),
        "starts": starts,
        "stops_after_a_loss": stops,
    }


def begun_bundle(directory: Path, plan: Plan, workload: dict[str, Any]) -> BundleWriter:
    """Begin a bundle that says nothing but what is run."""
    return BundleWriter.create(
        directory,
        request={},
        inputs={},
        workload_json=json.dumps(workload),
        plan_json=plan.model_dump_json(),
        notes=[],
        environment={},
    )


def sealed_host(folder: Path, plan: Plan, seconds: int, table: pl.DataFrame) -> None:
    """Write the bundle of one host, with a tick for each second and the samples of `table`."""
    own = begun_bundle(folder, plan, {})
    for second in range(1, seconds + 1):
        own.event(
            {
                "type": "tick",
                "t_ns": second * 10**9,
                "interval": second - 1,
                "cpu_user_ns": second * 10**8,
                "cpu_system_ns": second * 10**8,
                "rss_bytes": 1,
                "rows": [],
            }
        )
    table.write_parquet(folder / "samples.parquet")
    own.seal("complete", exit_code=0)


def merge(count: int, seconds: int) -> dict[str, Any]:
    """Put together samples of so many seconds of so many hosts."""
    with tempfile.TemporaryDirectory(prefix="loadstone-hosts-scale-") as directory:
        run = Path(directory) / "run"
        plan = one_plan()
        table = samples(seconds)
        merged = merged_plan({f"h{number}": plan for number in range(count)})
        workload = {"name": "scale", "front_end": "fio", "jobs": [], "notes": []}
        writer = begun_bundle(run, merged.plan, workload)
        parts = []
        for part in merged.parts:
            sealed_host(run / "hosts" / part.name, plan, seconds, table)
            parts.append(part.model_copy(update={"bundle": f"hosts/{part.name}", "status": "complete"}))
        (run / HOSTS).write_text(HostsRecord(hosts=tuple(parts)).model_dump_json())
        began_s, cpu_s = time.monotonic(), time.process_time()
        bundles = [(part, Bundle(run / part.bundle, {"status": "complete"})) for part in parts if part.bundle]
        for event in merged_events(bundles, 10**18):
            writer.event(event)
        told_s = time.monotonic() - began_s
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        summary = summarise(Bundle(run, {"status": "complete"}))
        data = summary.total.data
        hosts = summary.totals("host")
        whole_s = time.monotonic() - began_s
        operations = 0 if data is None else data.operations
        writer.close()
        return {
            "hosts": count,
            "seconds": seconds,
            "rows": count * seconds,
            "events_s": round(told_s, 2),
            "merged_s": round(whole_s, 2),
            "merged_cpu_s": round(time.process_time() - cpu_s, 2),
            "peak_rss_mb_before": before // 1024,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "operations": operations,
            "is_the_sum": operations == count * int(table["ops"].sum()),
            "lines": len(hosts),
        }


def samples(seconds: int, buckets: int = 60) -> pl.DataFrame:
    """Return samples of a host with one cell: histograms of so many buckets each second."""
    rng = np.random.default_rng(7)
    counts = rng.integers(1, 2000, (seconds, buckets)).astype(np.uint32)
    ops = counts.sum(axis=1).astype(np.uint64)
    at = np.arange(seconds, dtype=np.uint64)
    columns: dict[str, Any] = {
        "interval": at.astype(np.uint32),
        "start_ns": at * 10**9,
        "end_ns": (at + 1) * 10**9,
        "stage": np.zeros(seconds, np.uint32),
        "cell": np.zeros(seconds, np.uint32),
        "op": np.zeros(seconds, np.uint8),
        "priority": np.zeros(seconds, np.uint16),
        "ramp": np.zeros(seconds, bool),
        "ops": ops,
        "bytes": ops * 4096,
        "errors": np.zeros(seconds, np.uint64),
        "shorts": np.zeros(seconds, np.uint64),
    }
    buckets_of = [list(range(500, 500 + buckets))] * seconds
    for kind in layout.LATENCIES:
        columns |= {
            f"{kind}_sum_ns": ops * 1e5,
            f"{kind}_sumsq_ns2": ops * 1.2e10,
            f"{kind}_min_ns": np.full(seconds, 1000, np.uint64),
            f"{kind}_max_ns": np.full(seconds, 10**7, np.uint64),
            f"{kind}_bucket": buckets_of,
            f"{kind}_count": counts.tolist(),
        }
    return pl.DataFrame(columns, schema=layout.SAMPLES)


if __name__ == "__main__":
    sys.exit(main())
