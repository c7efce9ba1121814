"""What large results cost to read: an hour of 128 jobs, a short run of 128 jobs, two studies of 250 runs.

Makes them on a simulated device, whose clock is virtual, through the same session as any run, so
that every file of a bundle is there and as large as after a real one; an hour is a minute, sixty
times. Then measures the programs that a person types, in a process each: CPU and wall time, and
the largest memory. Results are made once, and found again.

    python -m bench.sizes DIRECTORY [--runs 250] [--hour 3600]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from lab.steady_device import steady_device

from loadstone.bundle import arrows, host, layout, seal, sums
from loadstone.bundle import study as on_disk
from loadstone.bundle.read import Bundle
from loadstone.bundle.study import Point, StudyRecord
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.monitor.sampler import MonitoredPath, Sampler
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.model import BackendSim, Plan
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.session import Means, RunRequest, run_plan
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SECOND_NS: Final = 1_000_000_000
MINUTE_S: Final = 60
ADDITIONS: Final = 20_000_000


TARGETS: Final = 8
CLONES: Final = 16
REPEATS: Final = 5
SIZES: Final = ("4k", "8k", "16k", "64k", "128k")
ORDERS: Final = ("randread", "randwrite", "read", "write", "randrw")
DEPTHS: Final = (1, 8)
LUNS: Final = 4
RUN_S: Final = 10.0
MEASURE: Final = (
    "import resource, subprocess, sys, time\n"
    "began = time.monotonic()\n"
    "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
    "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
    "print(code, time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss)\n"
)


class VirtualSeconds:
    """Stands in for the monitors of a virtual clock: real rows, as many as the run had seconds."""

    def __init__(
        self,
        plan: Plan,
        pid: int,
        origin_ns: int,
        write: Callable[[dict[str, Any]], None],
        under: MonitoredPath,
    ) -> None:
        self._read: list[dict[str, Any]] = []
        self._write = write
        self._sampler = Sampler(plan, pid, origin_ns, self._read.append, under)
        self._seconds = round(length_s(plan))

    def start(self) -> None:
        """Begin."""
        self._sampler.start()

    def stop(self) -> dict[str, Any]:
        """Write a row for each second of the virtual clock."""
        cost = self._sampler.stop()
        for second in range(self._seconds if self._read else 0):
            like = self._read[second % len(self._read)]
            self._write(like | {"t_ns": (second + 1) * SECOND_NS, "dt_ns": SECOND_NS})
        return cost


def length_s(plan: Plan) -> float:
    """Return how long a Plan of one stage runs."""
    return max((one.limits.ramp_ns + one.limits.runtime_ns) / 1e9 for one in plan.streams)


def run(path: Path, options: Sequence[str], jobs: Sequence[str], seed: int, interval_ns: int) -> None:
    """Run jobs on a simulated device into a bundle."""
    text = "\n".join(["[global]", "ioengine=null", "size=1g", *options, *(f"[{name}]" for name in jobs), ""])
    workload = read_jobfiles([TextSource(text.encode(), name="sizes.fio")])
    this_host = HostFacts.here()
    # One thread: each has a virtual clock of its own.
    one = replace(this_host, cpus=this_host.cpus[:1])
    plan = resolve(workload, host=one, options=ResolveOptions(interval_ns=interval_ns)).plan
    device = steady_device(6_000_000, seed=seed, servers=96, write_ns=9_000_000, service="exponential")
    backend = BackendSim(device=device)
    workers = tuple(worker.model_copy(update={"backend": backend}) for worker in plan.workers)
    request = RunRequest(
        request={"argv": ["loadstone", "run", "sizes.fio"], "cwd": "/", "front_end": "run", "options": {}},
        inputs={"sizes.fio": text.encode()},
        workload_json=workload.model_dump_json(),
        notes=[],
    )
    simulated_plan = plan.model_copy(update={"workers": workers})
    outcome = run_plan(simulated_plan, request=request, out_dir=path, means=Means(sampler=VirtualSeconds))  # type: ignore[arg-type] # it stands in
    if outcome.error is not None:
        raise outcome.error


def many_jobs(path: Path, seconds: int, interval_ns: int) -> None:
    """Run 128 jobs on 8 targets."""
    names = [f"lun-{lun}-{clone:02d}" for lun in range(TARGETS) for clone in range(CLONES)]
    options = ["rw=randread", "bs=8k", "iodepth=8", "time_based", f"runtime={seconds}s"]
    run(path, options, names, 1, interval_ns)


def hour(path: Path, seconds: int) -> None:
    """Make a run of 128 jobs of many minutes out of one of a minute."""
    minute = path.with_name("minute")
    if not minute.exists():
        many_jobs(minute, MINUTE_S, SECOND_NS)
    shutil.copytree(minute, path)
    for name, interval in ((layout.STREAMS["samples.arrows"], "interval"), (layout.HOST_TABLE, None)):
        table = pl.read_parquet(path / name)
        times = [column for column in ("start_ns", "end_ns", "t_ns") if column in table.columns]
        parts = []
        for part in range(seconds // MINUTE_S):
            moved = [(pl.col(time) + part * MINUTE_S * SECOND_NS).cast(table[time].dtype) for time in times]
            if interval:
                moved.append((pl.col(interval) + part * MINUTE_S).cast(pl.UInt32))
            parts.append(table.with_columns(moved))
        groups = arrows.GROUP_ROWS if interval else host.GROUP_ROWS
        # As `arrows.sink` and `host_to_parquet` write them.
        whole_table = pl.concat(parts)
        whole_table.write_parquet(path / name, compression="zstd", row_group_size=groups, statistics=False)
    _stretch_events(path / layout.EVENTS, seconds)
    whole = Bundle.open(path, unverified=True)
    sums.to_parquet(whole.sample_pieces, whole.last_interval(), path / layout.SUMS)
    plan = json.loads((path / layout.PLAN).read_text())
    for stream in plan["streams"]:
        stream["limits"]["runtime_ns"] = seconds * SECOND_NS
    (path / layout.PLAN).write_text(json.dumps(plan))
    manifest = json.loads((path / layout.MANIFEST).read_text())
    for name in (*manifest["files"], layout.SUMS):
        size_bytes, digest = seal.hash_of(path, name)
        manifest["files"][name] = {"size_bytes": size_bytes, "blake3": digest}
    (path / layout.MANIFEST).write_text(json.dumps(seal.with_digest(manifest)))


def _stretch_events(path: Path, seconds: int) -> None:
    """Repeat what is told again and again, and move what is told at the end."""
    again: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for line in path.read_text().splitlines():
        event = json.loads(line)
        (again if event["type"] in {"tick", "fine_samples"} else rest).append(event)
    added = (seconds - MINUTE_S) * SECOND_NS
    with path.open("w") as file:
        for event in rest:
            for name in ("t_ns", "ended_ns"):
                if event["type"] in {"stream_end", "end"} and name in event:
                    event[name] += added
            if event["type"] in {"stream_end", "end"}:
                continue
            file.write(json.dumps(event) + "\n")
        for part in range(seconds // MINUTE_S):
            for event in again:
                moved = {
                    name: event[name] + part * MINUTE_S * SECOND_NS
                    for name in ("t_ns", "start_ns")
                    if name in event
                }
                file.write(json.dumps({**event, **moved}) + "\n")
        for event in rest:
            if event["type"] in {"stream_end", "end"}:
                file.write(json.dumps(event) + "\n")


def patterns() -> Iterator[tuple[str, list[str]]]:
    """Name and options of every pattern of a study."""
    for order in ORDERS:
        for size in SIZES:
            for depth in DEPTHS:
                yield f"{order}-{size}-{depth}", [f"rw={order}", f"bs={size}", f"iodepth={depth}"]


def study(path: Path, seed: int, runs: int) -> None:
    """Make a study of patterns, each of them run several times from seeds of its own."""
    record = StudyRecord(
        kind="list", name="sizes", front_end="fio", loadstone_version=__version__,
        started="2026-01-01T00:00:00+00:00", request={"argv": [], "cwd": "/", "options": {}},
    )  # fmt: skip
    record = on_disk.begin(path, record, {})
    points: list[Point] = []
    for number, (name, options) in enumerate(patterns()):
        for repeat in range(REPEATS):
            if len(points) == runs:
                break
            place = f"{on_disk.RUNS}/{len(points) + 1:03d}-{name}"
            jobs = [f"lun-{lun}" for lun in range(LUNS)]
            timed = ["time_based", f"runtime={RUN_S:.0f}s"]
            run(path / place, [*options, *timed], jobs, seed + REPEATS * number + repeat, SECOND_NS // 2)
            factors: dict[str, str | float | int | None] = {"repeat": repeat + 1}
            points.append(
                Point(
                    name=f"{name} repeat {repeat + 1}", factors=factors, bundle=place, status="complete",
                    exit_code=0, seal=on_disk.seal_of(path / place),
                )
            )  # fmt: skip
    on_disk.write(path, record.model_copy(update={"points": tuple(points), "status": "complete"}))


def measured(what: str, command: Sequence[str]) -> str:
    """Run a command and return its row of the table."""
    process = subprocess.run(
        [sys.executable, "-c", MEASURE, *command], check=True, capture_output=True, text=True
    )
    code, wall_s, cpu_s, rss_kib = process.stdout.split()
    if code != "0":
        sys.stderr.write(process.stderr)
    size = f"{int(rss_kib) / 1024:.0f} MiB"
    return f"| {what} | {float(wall_s):.1f} s | {float(cpu_s):.1f} s | {size} | {code} |"


def additions_s() -> float:
    """Return how long Python takes for 20 million additions here: what tells two machines, or days, apart."""
    began, added = time.monotonic(), 0
    for number in range(ADDITIONS):
        added += number
    return time.monotonic() - began


def main() -> int:
    """Make what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--runs", type=int, default=250)
    parser.add_argument("--hour", type=int, default=3600, help="seconds of the long run")
    options = parser.parse_args()
    place: Path = options.directory
    place.mkdir(parents=True, exist_ok=True)
    makers: list[tuple[str, Callable[[Path], None]]] = [
        ("short", lambda path: many_jobs(path, 30, SECOND_NS // 2)),
        ("hour", lambda path: hour(path, options.hour)),
        ("before", lambda path: study(path, 1, options.runs)),
        ("after", lambda path: study(path, 1001, options.runs)),
    ]
    for name, make in makers:
        if not (place / name).exists():
            began = time.monotonic()
            make(place / name)
            sys.stderr.write(f"made {name} in {time.monotonic() - began:.0f} s\n")
    loadstone = [sys.executable, "-m", "loadstone"]
    page = str(place / "page.html")
    before_s = additions_s()
    table = [
        "| what | wall | CPU | memory | exit |",
        "|---|---:|---:|---:|---:|",
        measured("report, 128 jobs, 30 s", [*loadstone, "report", str(place / "short"), "-o", page]),
        measured(
            f"report, 128 jobs, {options.hour} s", [*loadstone, "report", str(place / "hour"), "-o", page]
        ),
        measured(
            f"comparison of two studies of {options.runs} runs",
            [*loadstone, "compare", str(place / "before"), str(place / "after"), "-o", page],
        ),
    ]
    sys.stdout.write("\n".join(table) + "\n")
    speed = f"before {before_s:.1f} s, after {additions_s():.1f} s"
    sys.stdout.write(f"20 million additions in Python took: {speed}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
