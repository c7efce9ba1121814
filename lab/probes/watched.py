"""A bundle of a simulated run, as a host that watched it would have kept it.

Knows the samples and events of the run and what `Watch` says of the host's counters; writes what the
product's own reader takes in. Judges nothing.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from lab.probes.situation import workload_of

from loadstone.bundle.read import Bundle
from loadstone.bundle.write import BundleWriter
from loadstone.plan.model import BackendIoUring, Plan, TargetKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lab.probes.situation import Situation

SECOND_NS: Final = 10**9
FINE_NS: Final = 10_000_000
"""As the engine samples real time; in virtual time it keeps no such samples."""
CPU_PER_IO_NS: Final = 6_000
PROCESSORS: Final = 8
OPS: Final = ("read", "write", "trim")
FLUSH: Final = 3
NOISE: Final = 0.004
LOWER: Final = "sdz"
JOB: Final = b"[job]\n"
COLUMNS: Final = ["start_ns", "end_ns", "cell", "op", "ops", "bytes", "lat_sum_ns"]


def bundle(
    situation: Situation, plan: Plan, ran: Path, events: Sequence[dict[str, Any]], out: Path
) -> Bundle:
    """Write the bundle of a run whose engine left its samples in `ran`."""
    names = [f"nvme{number}n1" for number in range(len(plan.targets))]
    writer = BundleWriter.create(
        out,
        request={"argv": ["loadstone", "run", "job.fio"], "cwd": "/", "front_end": "run", "options": {}},
        inputs={"job.fio": JOB},
        workload_json=workload_of(situation).model_dump_json(),
        plan_json=_seen_by_host(situation, plan, names).model_dump_json(),
        notes=[],
        environment=_environment(situation, names),
    )
    shutil.copyfile(ran / "samples.arrows", out / "samples.arrows")
    samples = pl.read_ipc_stream(out / "samples.arrows", columns=COLUMNS)
    kept_types = {"start", "stream_end", "end", "io_error", "errors", "fine_samples"}
    for event in events:
        if event.get("type") == "start":
            writer.event({"type": "hello", "engine_version": "0.1.0", "pid": 4242, "memory_bytes": 8 << 20})
        if event.get("type") in kept_types:
            writer.event(event)
    for row in _rows(situation, samples, names):
        writer.host(row)
    writer.event({"type": "engine_exit", "code": 0})
    # Not sealed: that would hash and convert what is read once and thrown away.
    writer.close()
    return Bundle.open(out)


def _seen_by_host(situation: Situation, plan: Plan, names: Sequence[str]) -> Plan:
    """Return the Plan with devices in place of what is simulated."""
    direct = not situation.watch.buffered
    workers = tuple(worker.model_copy(update={"backend": _RING}) for worker in plan.workers)
    targets = tuple(
        target.model_copy(update={"kind": TargetKind.BLOCK, "path": f"/dev/{name}", "direct": direct})
        for target, name in zip(plan.targets, names, strict=True)
    )
    return plan.model_copy(update={"workers": workers, "targets": targets})


_RING: Final = BackendIoUring(registered_files=False, fixed_buffers=False, iopoll=False, sqpoll=False)


def _environment(situation: Situation, names: Sequence[str]) -> dict[str, Any]:
    size = situation.size_bytes
    return {
        "host": {"kernel": "6.18.0", "cpu": {"model": "simulated", "online": PROCESSORS}},
        "targets": [
            {"path": f"/dev/{name}", "kind": "block", "devices": [name], "size_bytes": size} for name in names
        ],
        "devices": {name: {"name": name, "size_bytes": size, "queue": {"rotational": "0"}} for name in names},
        "paths": [
            {"target": f"/dev/{name}", "layers": _layers(situation, name), "gaps": []} for name in names
        ],
        "same_sequence": [],
    }


def _layers(situation: Situation, name: str) -> list[dict[str, Any]]:
    watch, size = situation.watch, situation.size_bytes
    disk = {
        "size_bytes": size,
        "rotational": False,
        "write_cache": "write through",
        "logical_block_bytes": 512,
        "physical_block_bytes": 512,
    }
    if watch.below is None and not watch.unbacked:
        return [{"name": name, "kind": "nvme", "facts": disk, "counters": f"block.{name}"}]
    file = {
        "size_bytes": size,
        "method": "seek",
        "looked_at_bytes": size,
        "hole_bytes": int(watch.unbacked * size),
        "written_bytes": size - int(watch.unbacked * size),
        "complete": True,
    }
    memory = watch.below is not None and watch.below < 1
    return [
        {
            "name": name,
            "kind": "loop",
            "below": ["/images/disk"],
            "facts": {**disk, "direct_io": not memory},
            "counters": f"block.{name}",
        },
        {"name": "/images/disk", "kind": "file", "below": [LOWER], "facts": file},
        {"name": LOWER, "kind": "disk", "facts": disk, "counters": f"block.{LOWER}"},
    ]


def fine(samples: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield what the engine's own short samples would have told, from intervals of that length."""
    rows = samples.group_by("interval").agg(
        pl.col("start_ns").min(), pl.col("end_ns").max(), pl.col("ops").filter(pl.col("op") < 3).sum()
    )
    rows = rows.sort("interval")
    if not rows.height:
        return
    starts, ends, ops = (rows[name].to_numpy() for name in ("start_ns", "end_ns", "ops"))
    yield {
        "type": "fine_samples",
        "t_ns": int(ends[-1]),
        "stage": 0,
        "start_ns": int(starts[0]),
        "lengths_us": [int(one) for one in (ends - starts) // 1000],
        "ops": [int(one) for one in ops],
    }


def _rows(situation: Situation, samples: pl.DataFrame, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the monitors' rows, one for each second."""
    watch, chance = situation.watch, random.Random(f"watch-{situation.kind}-{situation.seed}")
    last_ns = int(samples["end_ns"].max() or 0)  # type: ignore[arg-type] # a number
    jumped = False
    counts = _by_second(samples, len(names))
    for second, begin in enumerate(range(0, last_ns, SECOND_NS)):
        end = min(begin + SECOND_NS, last_ns)
        length = end - begin
        if length < SECOND_NS // 10:
            continue
        ios = sum(one.ios for (at, _, op), one in counts.items() if at == second and op < FLUSH)
        row: dict[str, Any] = {"t_ns": end, "dt_ns": length}
        for number, name in enumerate(names):
            totals = [counts.get((second, number, op), NOTHING) for op in range(FLUSH + 1)]
            row |= _device(situation, totals, name, length, chance)
        row |= _processors(situation, ios, length, chance)
        jumped = jumped or begin >= last_ns // 2
        offset = watch.clock_jump_s if jumped else 0.0
        row |= {
            "clock.offset_ns": int(offset * 1e9 + chance.gauss(0, 2e4)),
            "clock.suspended_ns": 0,
            "tcp.sent_segments": int(ios),
            "tcp.retransmitted_segments": int(ios * watch.resent),
        }
        yield row


@dataclass(frozen=True)
class DeviceSecond:
    """What ended in a second on a device, of one operation."""

    ios: float = 0.0
    bytes: float = 0.0
    spent_ns: float = 0.0


NOTHING: Final = DeviceSecond()


def _by_second(samples: pl.DataFrame, devices: int) -> dict[tuple[int, int, int], DeviceSecond]:
    """Return what ended, by second, device and operation."""
    rows = samples.group_by(
        (pl.col("start_ns") // SECOND_NS).alias("second"), (pl.col("cell") % devices).alias("device"), "op"
    ).agg(pl.col("ops", "bytes", "lat_sum_ns").sum())
    return {
        (second, number, op): DeviceSecond(float(ios), float(moved), float(spent))
        for second, number, op, ios, moved, spent in rows.iter_rows()
    }


def _device(
    situation: Situation, done: Sequence[DeviceSecond], name: str, length: int, chance: random.Random
) -> dict[str, int]:
    watch = situation.watch
    row: dict[str, int] = {}
    inflight = 0.0
    for op, one in zip(OPS, done, strict=False):
        noise = 1 + chance.gauss(0, NOISE)
        moved, ios = one.bytes * noise, one.ios * noise
        clock = watch.clock * min(1.0, watch.seen) * (1 + watch.others)
        row |= {
            f"block.{name}.{op}s": int(ios * watch.ios * (1 + watch.others)),
            f"block.{name}.{op}_bytes": int(moved * (watch.seen + watch.others) // 512 * 512),
            f"block.{name}.{op}_merges": int(ios * max(0.0, 1 - watch.ios)) if watch.seen == 1 else 0,
            f"block.{name}.{op}_time_ns": int(one.spent_ns * clock),
        }
        inflight += row[f"block.{name}.{op}_time_ns"]
        if watch.below is not None:
            row |= {
                f"block.{LOWER}.{op}s": int(ios * watch.below),
                f"block.{LOWER}.{op}_bytes": int(moved * watch.below // 512 * 512),
                f"block.{LOWER}.{op}_merges": 0,
                f"block.{LOWER}.{op}_time_ns": int(one.spent_ns * 0.9 * min(1.0, watch.below)),
            }
    flush = done[FLUSH] if watch.flushes else NOTHING
    busy = min(float(length), inflight)
    row |= {
        f"block.{name}.flushes": int(flush.ios),
        f"block.{name}.flush_time_ns": int(flush.spent_ns),
        f"block.{name}.busy_ns": int(busy),
        f"block.{name}.inflight": round(inflight / length),
        f"block.{name}.queue_time_ns": int(inflight),
    }
    if watch.below is not None:
        row |= {f"block.{LOWER}.flushes": int(flush.ios), f"block.{LOWER}.busy_ns": int(busy * 0.9)}
    return row


def _processors(situation: Situation, ios: float, length: int, chance: random.Random) -> dict[str, int]:
    watch = situation.watch
    own = watch.engine * length if watch.engine is not None else ios * CPU_PER_IO_NS
    own = min(own * (1 + chance.gauss(0, 0.02)), 0.999 * length)
    waited = watch.waiting / max(1e-6, 1 - watch.waiting) * own
    whole = PROCESSORS * length
    used = min(own + watch.others_cpu * whole, whole * (1 - watch.steal))
    stolen = watch.steal * whole
    thread = "engine.4243-worker-0"
    return {
        "engine.user_ns": int(own * 0.4),
        "engine.system_ns": int(own * 0.6),
        "engine.on_cpu_ns": int(own),
        "engine.run_queue_ns": int(waited),
        f"{thread}.user_ns": int(own * 0.4),
        f"{thread}.system_ns": int(own * 0.6),
        f"{thread}.on_cpu_ns": int(own),
        f"{thread}.run_queue_ns": int(waited),
        "cpu.all.user_ns": int(used * 0.5),
        "cpu.all.system_ns": int(used * 0.5),
        "cpu.all.steal_ns": int(stolen),
        "cpu.all.irq_ns": 0,
        "cpu.all.iowait_ns": 0,
        "cpu.all.idle_ns": int(max(0.0, whole - used - stolen)),
        "cgroup.cpu.periods": 10,
        "cgroup.cpu.throttled_ns": int(watch.stopped_by_quota * length),
        "cgroup.cpu.throttled_periods": 10 if watch.stopped_by_quota else 0,
    }


def log_ratio(one: float, other: float) -> float:
    """Return the logarithm of a ratio."""
    return float(np.log(max(one, 1e-9) / max(other, 1e-9)))
