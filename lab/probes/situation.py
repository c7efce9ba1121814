"""A situation: a device, a host that watches it, a job, and what is true of its number.

Knows the shape of one and how numbers are drawn. Runs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.plan.model import ServiceTime, SimBehaviour, SimDevice, SimLimit

if TYPE_CHECKING:
    import random

    from loadstone.workload.model import Workload

GIB: Final = 1 << 30
MAIN_S: Final = 6.0
MOST_HEALTHY: Final = 5e3
MOST_RATE: Final = 16e3
"""A simulated I/O takes a moment of real time: no device does more."""


@dataclass
class Watch:
    """What this host's counters say beside what the simulated device did: shares of it, per second.

    `seen`: bytes at the device for each byte asked for; `ios`: the same of I/Os; `clock`: part of the
    latency that passes by the device's own clock; `others`: bytes per second of somebody else, as a share
    of those asked for. CPU: shares of one CPU, or of the time.
    """

    seen: float = 1.0
    ios: float = 1.0
    clock: float = 0.96
    others: float = 0.0
    engine: float | None = None
    waiting: float = 0.002
    stopped_by_quota: float = 0.0
    steal: float = 0.0
    others_cpu: float = 0.05
    resent: float = 0.0
    clock_jump_s: float = 0.0
    flushes: bool = True
    buffered: bool = False
    unbacked: float = 0.0
    """Part of the device that was never written, where a layer tells."""
    below: float | None = None
    """Bytes at a second device under the first for each byte at the first; None: there is none."""


@dataclass
class Situation:
    """One draw. `options`: of the job, in fio's words. `truth`: explanations that are right."""

    kind: str
    seed: int
    truth: frozenset[str]
    device: dict[str, object]
    parts: dict[str, object]
    options: dict[str, object]
    targets: int = 1
    warm_runs: int = 0
    size_bytes: int = 64 * GIB
    used_bytes: int | None = None
    main_s: float = MAIN_S
    watch: Watch = field(default_factory=Watch)
    stops: tuple[tuple[float, float], ...] = ()
    """When the load generator itself stands still: begin and length in seconds."""

    @property
    def depth(self) -> int:
        """Outstanding I/Os of a job."""
        return int(str(self.options["iodepth"]))

    @property
    def block_bytes(self) -> int:
        """Of one I/O."""
        return int(str(self.options["bs"]))


@dataclass(frozen=True)
class Healthy:
    """What the same device did for the same job without the cause."""

    rate: float
    bytes_per_s: float


PARTS: Final[dict[str, object]] = {
    "state": None, "dies": 0, "kib_ns": 0, "limits": (), "shared_limits": False,
    "cache_bytes": 0, "cache_hit_ns": 0, "write_cache_bytes": 0, "write_cache_ns": 0,
    "drain_bytes_per_second": 0, "size_bytes": 0, "end_percent": 0, "zero_percent": 0,
    "repeat_percent": 0, "unwritten_ns": 0, "written_bytes": 0, "first_touch_ns": 0,
    "touched_bytes": 0, "grid_bytes": 0, "misaligned_percent": 0, "flush_ns": 0,
    "neighbour_ns": 0, "neighbour_ppm": 0, "neighbour_percent": 0,
}  # fmt: skip


def device(situation: Situation, state: str | None) -> SimDevice:
    """Return the device of the Plan."""
    parts = SimBehaviour.model_validate({**PARTS, **situation.parts, "state": state})
    fields = {
        "seed": situation.seed, "servers": 4096, "stall_every_ns": 0, "stall_ns": 0,
        "error_ppm": 0, "short_ppm": 0, "hang_ppm": 0, "faults": None,
        **situation.device, "behaviour": parts,
    }  # fmt: skip
    return SimDevice.model_validate(fields)


def log_uniform(chance: random.Random, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return math.exp(chance.uniform(math.log(low), math.log(high)))


def limit(per_second: float, burst: float, *, of_bytes: bool) -> SimLimit:
    """Return a token bucket."""
    return SimLimit(per_second=max(1, int(per_second)), burst=max(1, int(burst)), of_bytes=of_bytes)


def any_job(chance: random.Random, direction: str) -> dict[str, object]:
    """Draw a job of any mix, depth, size and order. `direction`: `reads`, `writes` or `any`."""
    shares = {
        "reads": {"randread": 5, "read": 2},
        "writes": {"randwrite": 5, "write": 2},
        "any": {"randread": 5, "randwrite": 3, "randrw": 3, "read": 2, "write": 1},
    }[direction]
    mix = chance.choices(list(shares), list(shares.values()))[0]
    size = chance.choice([4096, 4096, 8192, 8192, 16384, 65536, 131072])
    options: dict[str, object] = {
        "rw": mix,
        "bs": size,
        "iodepth": 2 ** chance.randrange(0, 8),
        "refill_buffers": 1,
    }
    if mix == "randrw":
        options["rwmixread"] = chance.randrange(20, 96)
    if "write" in mix and chance.random() < 0.15:
        options["fdatasync"] = 2 ** chance.randrange(0, 7)
    return options


def bare(kind: str, seed: int, chance: random.Random, direction: str) -> Situation:
    """Draw a device and a job without any cause."""
    options = any_job(chance, direction)
    dies = round(log_uniform(chance, 2, 64))
    read_ns = max(log_uniform(chance, 60e3, 8e6), dies / MOST_HEALTHY * 1e9)
    service = chance.choice([ServiceTime.EXPONENTIAL, ServiceTime.UNIFORM, ServiceTime.CONSTANT])
    return Situation(
        kind=kind,
        seed=seed,
        truth=frozenset({"medium", "job_depth"}),
        device={
            "read_ns": int(read_ns),
            "write_ns": int(read_ns * log_uniform(chance, 0.5, 3)),
            "service": service,
        },
        parts={
            "dies": dies,
            "kib_ns": int(read_ns / 64 * log_uniform(chance, 0.02, 2)),
            "flush_ns": int(read_ns * log_uniform(chance, 0.2, 5)),
            "size_bytes": 64 * GIB,
        },
        options=options,
    )


def workload_of(situation: Situation) -> Workload:
    """Return what the run is asked for."""
    options = {**situation.options, "time_based": 1, "runtime": f"{situation.main_s:.3f}s"}
    size = situation.used_bytes or situation.size_bytes - 131072
    lines = ["[global]", "ioengine=null", f"size={size}"]
    lines += [f"{name}={value}" for name, value in options.items()]
    names = [f"[job{number}]" for number in range(situation.targets)]
    text = "\n".join([*lines, *names]) + "\n"
    return read_jobfiles([TextSource(text.encode(), name="sim.fio")])
