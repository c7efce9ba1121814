"""Runs made up from a seed: a Plan, the engine's tables and its events, in a bundle.

The tables are written as the engine writes them: an Arrow IPC stream, one record batch per
interval. Latencies are lognormal, so that means and percentiles can be checked against the
values they were made from, which are kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from loadstone.bundle import layout, seal
from loadstone.bundle.disk import Disk
from loadstone.bundle.growth import Growth
from loadstone.bundle.study import StudyRecord
from loadstone.bundle.write import BundleWriter
from loadstone.errors import Where
from loadstone.plan.model import Plan
from loadstone.workload.addresses import AddressRequests, ReadWriteMix
from loadstone.workload.block_sizes import SizeRequests, fixed
from loadstone.workload.blocks import BlockWork
from loadstone.workload.engine_choice import EngineChoice
from loadstone.workload.job_parts import JobLimits, JobSchedule
from loadstone.workload.model import Job as RequestedJob
from loadstone.workload.model import Workload
from loadstone.workload.trees import TreeShape, TreeWork
from tests.support import plans

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

SUB_BITS = 6
START_UNIX_NS = 1_790_000_000_000_000_000


@dataclass
class MadeJob:
    """A section: its clones each run `ops_hz` of each op on every one of `targets`."""

    name: str = "job"
    ops_hz: dict[str, float] = field(default_factory=lambda: {"read": 1000.0})
    median_ns: float = 100_000.0
    sigma: float = 0.4
    block_bytes: int = 4096
    targets: tuple[int, ...] = (0,)
    clones: int = 1
    group: int = 0
    stage: int = 0
    ramp_s: float = 0.0
    paced: bool = False
    keep_clones_apart: bool = False
    random_percent: int = 100
    iodepth: int = 32
    errors: int = 0
    tree: str = ""
    """The operation it was asked for in the tree of its only target; its other rows are on the way there."""


@dataclass
class MadeRun:
    """`latencies[(unit, op)]`: the `lat` of every measured I/O."""

    path: Path
    plan: Plan
    latencies: dict[tuple[int, str], list[NDArray[np.int64]]]


def bucket_of(values_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The engine's formula, written a second time from its description."""
    top = np.floor(np.log2(np.maximum(values_ns, 64).astype(np.float64))).astype(np.int64)
    shift = top - SUB_BITS
    return np.minimum((shift << SUB_BITS) + (values_ns >> shift), layout_buckets() - 1)


def layout_buckets() -> int:
    return (44 - SUB_BITS + 1) << SUB_BITS


def make(
    path: Path,
    *jobs: MadeJob,
    seconds: float = 5.0,
    interval_ns: int = 500_000_000,
    targets: int = 1,
    seed: int = 1,
    seal: str | None = "complete",
    host: bool = True,
    notes: list[Any] | None = None,
    extra_events: list[dict[str, Any]] | None = None,
    log_ios: bool = False,
    text: bytes = b"[job]\nrw=randread\n",
) -> MadeRun:
    """Write a bundle. `seal=None` leaves it as a killed run does."""
    plan = plan_of(jobs or (MadeJob(),), targets, seconds, interval_ns, log_ios=log_ios)
    run = MadeRun(path, plan, {})
    writer = BundleWriter.create(
        path,
        request={"argv": ["loadstone", "run", "job.fio"], "cwd": "/tmp", "front_end": "run", "options": {}},
        inputs={"job.fio": text},
        workload_json=_workload_of(jobs or (MadeJob(),), seconds).model_dump_json(),
        plan_json=plan.model_dump_json(),
        notes=notes or [],
        environment={"host": {"kernel": "6.1.0", "cpu": {"model": "Test CPU", "online": 2}}},
    )
    rng = np.random.default_rng(seed)
    stages = 1 + max(worker.stage for worker in plan.workers)
    _tell_start(writer)
    _write_samples(run, jobs or (MadeJob(),), rng, seconds, stages)
    length_ns = int(seconds * 1e9) * stages
    if host:
        _host_rows(writer, rng, length_ns)
    for event in extra_events or []:
        writer.event(event)
    writer.note_growth()
    if seal is not None:
        _tell_end(run, writer, seconds)
        writer.seal(seal)  # type: ignore[arg-type]  # any status, from a parameter
    writer.close()
    return run


def _workload_of(jobs: tuple[MadeJob, ...], seconds: float) -> Workload:
    """Return the request that such a Plan could be made from."""
    return Workload(name="run", jobs=tuple(_requested(job, seconds) for job in jobs))


def _requested(job: MadeJob, seconds: float) -> RequestedJob:
    shares = [job.ops_hz.get(op, 0.0) for op in ("read", "write", "trim")]
    trims = bool(shares[2]) and not (shares[0] or shares[1])
    rw = "trim" if trims else "rw"
    mix = ReadWriteMix(
        rw=f"rand{rw}" if job.random_percent else rw,  # type: ignore[arg-type] # one of its names
        read_percent=round(100 * shares[0] / (shares[0] + shares[1])) if shares[0] + shares[1] else 0,
    )
    addresses = AddressRequests(percentage_random=(float(job.random_percent),) * 3, norandommap=True)
    blocks = BlockWork(mix=mix, sizes=SizeRequests(bs=fixed(job.block_bytes)), addresses=addresses)
    shape = TreeShape(depth=1, width=2, files=100, sizes=((65536, 100.0),))
    work = TreeWork(shape=shape, operation=job.tree, transfers=blocks) if job.tree else blocks  # type: ignore[arg-type] # one of its names
    return RequestedJob(
        name=job.name,
        where=Where("job.fio", 1),
        work=work,
        engine=EngineChoice(ioengine="io_uring", iodepth=job.iodepth, direct=True),
        schedule=JobSchedule(numjobs=job.clones),
        limits=JobLimits(
            ramp_ns=int(job.ramp_s * 1e9), runtime_ns=int((seconds - job.ramp_s) * 1e9), time_based=True
        ),
    )


def study_record(kind: str, **fields: Any) -> StudyRecord:
    """Return the record of a study of this kind that began and has no run yet, unless `fields` say so."""
    begun = {
        "name": kind,
        "front_end": "fio",
        "loadstone_version": "0",
        "started": "2026-01-01T00:00:00+00:00",
        "request": {},
    }
    return StudyRecord.model_validate({"kind": kind, **begun, **fields})


def reseal(path: Path) -> Path:
    """Make a changed bundle one that was sealed as it is now."""
    (path / layout.SUMS).unlink(missing_ok=True)  # Of the samples as they were.
    manifest = json.loads((path / layout.MANIFEST).read_text())
    manifest["files"] = {}
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if file.is_file() and name != layout.MANIFEST and name not in seal.REPORTS:
            size_bytes, digest = seal.hash_of(path, name)
            manifest["files"][name] = {"size_bytes": size_bytes, "blake3": digest}
    (path / layout.MANIFEST).write_text(json.dumps(seal.with_digest(manifest)))
    return path


def begun_again(path: Path) -> Path:
    """Make a changed bundle that was never sealed one whose run began as it is now."""
    manifest = json.loads((path / layout.MANIFEST).read_text())
    manifest["begun"] = {name: seal.sealed((path / name).read_bytes()) for name in manifest["begun"]}
    (path / layout.MANIFEST).write_text(json.dumps(seal.with_digest(manifest)))
    with (path / layout.GROWTH).open("r+b") as file:
        file.truncate()
        Growth(file.fileno(), Disk()).note(path)
    return path


def plan_of(
    jobs: tuple[MadeJob, ...], targets: int, seconds: float, interval_ns: int, *, log_ios: bool = False
) -> Plan:
    units: list[dict[str, Any]] = []
    cells: list[dict[str, Any]] = []
    workers: list[dict[str, Any]] = []
    streams: list[dict[str, Any]] = []
    for job in jobs:
        backend = {"type": "files"} if job.tree else plans.IO_URING | {"fixed_buffers": False}
        workers.append(plans.worker(backend, job.stage))
        cell_of: dict[int, int] = {}
        for clone in range(job.clones):
            if clone == 0 or job.keep_clones_apart:
                apart = clone if job.keep_clones_apart else None
                units.append({"name": job.name, "group": job.group, "clone": apart})
                for target in job.targets:
                    cell_of[target] = len(cells)
                    cells.append({"unit": len(units) - 1, "target": target})
            streams.append(_stream(job, clone, len(workers) - 1, cell_of, seconds, log_ios=log_ios))
    in_trees = any(job.tree for job in jobs)
    document = plans.plan(
        [
            _target(index) | ({"kind": "tree", "invalidate": False} if in_trees else {})
            for index in range(targets)
        ],
        streams,
        workers,
        interval_ns=interval_ns,
        units=units,
        cells=cells,
        trees=[_tree(index) for index in range(targets)] if in_trees else [],
    )
    return Plan.model_validate_json(json.dumps(document))


def _target(index: int) -> dict[str, Any]:
    path = f"/mnt/test/data{index}"
    return plans.target(path, size_bytes=1 << 30, direct=True, create=True, invalidate=True)


def _tree(target: int) -> dict[str, Any]:
    return {
        "target": target,
        "depth": 1,
        "width": 2,
        "files": 100,
        "first_file": 0,
        "everywhere": False,
        "sizes": {"type": "table", "table": [{"bytes": 65536, "weight": 1.0}]},
        "seed": 1,
        "total_bytes": 0,
        "clear": False,
        "part": {"index": 0, "count": 1},
        "vouched_ns": None,
    }


def _in_tree(job: MadeJob, cell: int, rate: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {"type": job.tree}
    if job.tree == "transfer":
        operation |= {"random": True, "stop": {"type": "whole"}, "delete_before": False}
    if job.tree == "create":
        operation |= {"fill": True}
    return {
        "tree": job.targets[0],
        "cell": cell,
        "operation": operation,
        "select": {"type": "random"},
        "working_set_bytes": 0,
        "shared": False,
        "rate": rate if job.paced else None,
        "queue": None,
    }


def _stream(
    job: MadeJob, clone: int, worker: int, cell_of: dict[int, int], seconds: float, *, log_ios: bool
) -> dict[str, Any]:
    shares = {op: job.ops_hz.get(op, 0.0) for op in ("read", "write", "trim")}
    whole = sum(shares.values()) or 1.0
    rate = {
        "amount": {"unit": "ops", "per_second": job.ops_hz.get(job.tree, whole)},
        "process": "poisson",
        "profile": [],
        "phase": 0.0,
        "minimum": 0.0,
        "min_window_ns": 0,
    }
    made = plans.stream(
        name=f"{job.name}.{clone}",
        worker=worker,
        files=[
            {"target": target, "cell": cell, "offset_bytes": 0, "length_bytes": 1 << 30}
            for target, cell in cell_of.items()
        ],
        seed=clone,
        iodepth=job.iodepth,
        block_bytes=job.block_bytes,
        random_percent=job.random_percent,
        repeat=True,
        read_percent=round(100 * shares["read"] / whole),
        trim_percent=round(100 * shares["trim"] / whole),
        pace={"read": rate if job.paced else None},
        ramp_ns=int(job.ramp_s * 1e9),
        runtime_ns=int((seconds - job.ramp_s) * 1e9),
        time_based=True,
        log_ios=log_ios,
    )
    if job.tree:
        unpaced = {"read": None, "write": None, "trim": None, "think": None}
        in_tree = _in_tree(job, cell_of[job.targets[0]], rate)
        made |= {"files": [], "iodepth": 1, "pace": unpaced, "tree": in_tree}
    return made


def _write_samples(
    run: MadeRun, jobs: tuple[MadeJob, ...], rng: np.random.Generator, seconds: float, stages: int
) -> None:
    schema = arrow_schema(layout.SAMPLES)
    interval_ns = run.plan.interval_ns
    length_ns = int(seconds * 1e9)
    rows: list[dict[str, Any]] = []
    ends: list[int] = []
    unit_jobs = _jobs_of_units(jobs)
    for stage in range(stages):
        origin_ns = stage * length_ns
        for at_ns in range(0, length_ns, interval_ns):
            end_ns = min(at_ns + interval_ns, length_ns)
            for index, cell in enumerate(run.plan.cells):
                job = unit_jobs[cell.unit]
                if job.stage != stage:
                    continue
                ramp = at_ns < job.ramp_s * 1e9
                clones = 1 if job.keep_clones_apart else job.clones
                for op, hz in job.ops_hz.items():
                    count = int(rng.poisson(hz * clones * (end_ns - at_ns) / 1e9))
                    rows.append(_row(run, rng, job, (index, cell.unit, op), count, ramp=ramp))
                    rows[-1] |= {
                        "interval": len(ends),
                        "start_ns": origin_ns + at_ns,
                        "end_ns": origin_ns + end_ns,
                        "stage": stage,
                    }
            ends.append(len(rows))
    # As the engine, a batch for each interval; one table for all takes a tenth of the time of making each.
    table = pa.Table.from_pylist(rows, schema=schema)
    with (run.path / "samples.arrows").open("wb") as file, pa.ipc.new_stream(file, schema) as out:
        for start, end in pairwise((0, *ends)):
            out.write_table(table.slice(start, end - start))


def _row(
    run: MadeRun, rng: np.random.Generator, job: MadeJob, key: tuple[int, int, str], count: int, *, ramp: bool
) -> dict[str, Any]:
    cell, unit, op = key
    clat = rng.lognormal(np.log(job.median_ns), job.sigma, count).astype(np.int64)
    slat = rng.integers(500, 3000, count)
    wait = rng.exponential(5000, count).astype(np.int64) if job.paced else np.zeros(0, np.int64)
    lat = clat + slat + (wait if job.paced else 0)
    if not ramp:
        run.latencies.setdefault((unit, op), []).append(lat)
    return {
        "cell": cell,
        "op": layout.OPS.index(op),
        "priority": 0,
        "ramp": ramp,
        "ops": count,
        "bytes": count * job.block_bytes if op in ("read", "write", "trim") else 0,
        "errors": job.errors,
        "shorts": 0,
        **_latency("lat", lat),
        **_latency("slat", slat),
        **_latency("clat", clat),
        **_latency("wait", wait),
    }


def _latency(name: str, values: NDArray[np.int64]) -> dict[str, Any]:
    buckets, counts = np.unique(bucket_of(values), return_counts=True)
    return {
        f"{name}_sum_ns": float(values.sum()),
        f"{name}_sumsq_ns2": float((values.astype(np.float64) ** 2).sum()),
        f"{name}_min_ns": int(values.min(initial=2**62)) if len(values) else 0,
        f"{name}_max_ns": int(values.max(initial=0)),
        f"{name}_bucket": buckets.tolist(),
        f"{name}_count": counts.tolist(),
    }


def _jobs_of_units(jobs: tuple[MadeJob, ...]) -> list[MadeJob]:
    return [job for job in jobs for _ in range(job.clones if job.keep_clones_apart else 1)]


def arrow_schema(schema: pl.Schema) -> pa.Schema:
    """The columns as the engine declares them: plain lists, not large ones."""
    table = schema.to_frame().to_arrow()
    fields = [
        pa.field(one.name, pa.list_(one.type.value_type)) if pa.types.is_large_list(one.type) else one
        for one in table.schema
    ]
    return pa.schema(fields)


def _tell_start(writer: BundleWriter) -> None:
    writer.event({"type": "hello", "engine_version": "0.1.0", "pid": 4242, "memory_bytes": 8 << 20})
    writer.event({"type": "start", "unix_ns": START_UNIX_NS, "startup_ns": 12_000_000})


def _tell_end(run: MadeRun, writer: BundleWriter, seconds: float) -> None:
    ops = 0
    for index, stream in enumerate(run.plan.streams):
        stage = run.plan.workers[stream.worker].stage
        begin_ns = int(stage * seconds * 1e9)
        writer.event(
            {
                "type": "stream_end",
                "t_ns": begin_ns + int(seconds * 1e9),
                "stream": index,
                "reason": "runtime",
                "started_ns": begin_ns,
                "ramp_end_ns": begin_ns + stream.limits.ramp_ns,
                "ended_ns": begin_ns + int(seconds * 1e9),
                "issued": [0, 0, 0, 0],
                "completed": [0, 0, 0, 0],
                "failed": [0, 0, 0, 0],
                "depth": [0, 0, 0, 0, 0, 100, 0],
                "submit_batches": [0, 10, 0, 0, 0, 0, 0],
                "complete_batches": [0, 10, 0, 0, 0, 0, 0],
                "backend": "io_uring",
            }
        )
    ops = sum(len(part) for parts in run.latencies.values() for part in parts)
    stages = 1 + max(worker.stage for worker in run.plan.workers)
    writer.event(
        {
            "type": "end",
            "t_ns": int(seconds * 1e9) * stages,
            "reason": "done",
            "cpu_user_ns": 100 * ops,
            "cpu_system_ns": 1500 * ops,
            "voluntary_switches": 10,
            "involuntary_switches": 3,
            "major_faults": 0,
            "minor_faults": 900,
            "rss_peak_bytes": 9 << 20,
            "ops": ops,
        }
    )


def _host_rows(writer: BundleWriter, rng: np.random.Generator, length_ns: int) -> None:
    second = 1_000_000_000
    for at_ns in range(second, length_ns + 1, second):
        busy = float(rng.uniform(0.3, 0.7))
        row: dict[str, Any] = {"t_ns": at_ns, "dt_ns": second}
        for core in ("all", "0", "1"):
            whole = 2 * second if core == "all" else second
            row |= {
                f"cpu.{core}.user_ns": int(whole * busy * 0.3),
                f"cpu.{core}.system_ns": int(whole * busy * 0.6),
                f"cpu.{core}.irq_ns": int(whole * busy * 0.1),
                f"cpu.{core}.iowait_ns": int(whole * 0.1),
                f"cpu.{core}.steal_ns": 0,
                f"cpu.{core}.idle_ns": int(whole * (0.9 - busy)),
            }
        row |= {
            "memory.total_bytes": 8 << 30,
            "memory.available_bytes": int((5 << 30) + rng.integers(0, 1 << 28)),
            "memory.dirty_bytes": int(rng.integers(0, 64 << 20)),
            "memory.cached_bytes": 2 << 30,
            "engine.rss_bytes": 9 << 20,
            "engine.user_ns": 100_000_000,
            "engine.system_ns": 600_000_000,
        }
        writer.host(row)
