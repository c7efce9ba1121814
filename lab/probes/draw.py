"""Situations from a seed: a simulated device, a job, and what lies behind its number.

Parameters are drawn log-uniform. A cause counts only where it changes the number: limits are drawn as a
share of what the device does without them, which is measured first.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.plan.model import ServiceTime, SimBehaviour, SimDevice, SimLimit

if TYPE_CHECKING:
    from collections.abc import Callable

GIB: Final = 1 << 30
MAIN_S: Final = 4.0
MOST_HEALTHY: Final = 8e3
MOST_RATE: Final = 40e3


@dataclass
class Situation:
    """One draw. `options`: of the job, in fio's words. `truth`: names that are right."""

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

    @property
    def honest(self) -> bool:
        """Whether the number is the storage's."""
        return self.kind.startswith("honest")


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


def healthy(kind: str, seed: int) -> Situation:
    """Draw the device and the job, without a cause."""
    chance = random.Random(f"{kind}-{seed}")
    dies, depth = round(log_uniform(chance, 2, 64)), 2 ** chance.randrange(0, 8)
    # A simulated I/O takes a moment of real time: no device does more than MOST_RATE.
    read_ns = max(log_uniform(chance, 60e3, 3e6), dies / MOST_HEALTHY * 1e9)
    size = chance.choice([4096, 8192, 16384, 65536])
    writes = kind in WRITES or (kind not in READS and chance.random() < 0.4)
    options: dict[str, object] = {
        "rw": "randwrite" if writes else "randread",
        "bs": size,
        "iodepth": depth,
        "refill_buffers": 1,
    }
    made = Situation(
        kind=kind,
        seed=seed,
        truth=frozenset({"medium", "job_depth"}),
        device={
            "read_ns": int(read_ns),
            "write_ns": int(read_ns * log_uniform(chance, 0.5, 3)),
            "service": chance.choice([ServiceTime.EXPONENTIAL, ServiceTime.UNIFORM]),
        },
        parts={
            "dies": dies,
            "kib_ns": int(read_ns / 64 * log_uniform(chance, 0.02, 2)),
            "flush_ns": int(read_ns * log_uniform(chance, 0.2, 5)),
            "size_bytes": 64 * GIB,
        },
        options=options,
    )
    if kind in SHAPES:
        SHAPES[kind](made, chance)
    return made


def _deep(made: Situation, chance: random.Random) -> None:
    made.options["iodepth"] = 2 ** chance.randrange(3, 8)


def _two(made: Situation, chance: random.Random) -> None:
    _deep(made, chance)
    made.targets = 2


def _off_grid(made: Situation, _: random.Random) -> None:
    made.options["offset"] = 512


def _part(made: Situation, chance: random.Random) -> None:
    made.used_bytes = int(made.size_bytes * chance.uniform(0.02, 0.3)) // 65536 * 65536


def _zeros(made: Situation, chance: random.Random) -> None:
    if chance.random() < 0.5:
        made.options["zero_buffers"] = 1
    else:
        made.options["buffer_pattern"] = "0x1234abcd"
    del made.options["refill_buffers"]


def _small(made: Situation, chance: random.Random) -> None:
    made.used_bytes = int(log_uniform(chance, 8e6, 6e7)) // 65536 * 65536


def _mixed(made: Situation, chance: random.Random) -> None:
    if chance.random() < 0.5:
        made.options |= {"rw": "randrw", "rwmixread": 95}


WRITES: Final = frozenset({"write_cache", "reduction"})
READS: Final = frozenset({"cache", "unwritten", "position", "honest_cold_cache"})
SHAPES: Final[dict[str, Callable[[Situation, random.Random], None]]] = {
    "iops_limit": _deep,
    "bandwidth_limit": _deep,
    "concurrency_limit": _deep,
    "shared_limit": _two,
    "misaligned": _off_grid,
    "position": _part,
    "reduction": _zeros,
    "cache": _small,
    "unwritten": _mixed,
    "honest_two_targets": _two,
}


def afflicted(kind: str, seed: int, without: Healthy) -> Situation:
    """Draw the same with the cause in it."""
    made = healthy(kind, seed)
    chance = random.Random(f"cause-{kind}-{seed}")
    cause = CAUSES.get(kind)
    if cause is not None:
        made.truth = frozenset({kind})
        cause(made, chance, without)
    return made


def _fast(made: Situation, chance: random.Random, slow: str, times: float) -> int:
    """Draw a latency that is shorter than that of the medium."""
    depth = int(str(made.options["iodepth"]))
    return int(max(float(str(made.device[slow])) / log_uniform(chance, 2, times), depth / MOST_RATE * 1e9))


def _limit(per_second: float, burst: float, *, of_bytes: bool) -> SimLimit:
    return SimLimit(per_second=max(1, int(per_second)), burst=max(1, int(burst)), of_bytes=of_bytes)


def _iops(made: Situation, chance: random.Random, without: Healthy) -> None:
    rate = without.rate * log_uniform(chance, 0.1, 0.7)
    made.parts["limits"] = (_limit(rate, rate * log_uniform(chance, 0.0005, 0.1), of_bytes=False),)


def _bandwidth(made: Situation, chance: random.Random, without: Healthy) -> None:
    rate = without.bytes_per_s * log_uniform(chance, 0.1, 0.7)
    burst = max(2.0 * int(str(made.options["bs"])), rate * log_uniform(chance, 0.0005, 0.1))
    made.parts["limits"] = (_limit(rate, burst, of_bytes=True),)


def _credits(made: Situation, chance: random.Random, without: Healthy) -> None:
    rate = without.rate * log_uniform(chance, 0.1, 0.5)
    lasts_s = MAIN_S * log_uniform(chance, 1.1, 2.5)
    made.parts["limits"] = (_limit(rate, (without.rate - rate) * lasts_s, of_bytes=False),)


def _concurrency(made: Situation, chance: random.Random, _: Healthy) -> None:
    depth = int(str(made.options["iodepth"]))
    made.device["servers"] = max(1, round(depth * log_uniform(chance, 0.1, 0.6)))
    made.parts["dies"] = 4 * depth
    made.device["read_ns"] = max(int(str(made.device["read_ns"])), int(4 * depth / MOST_RATE * 1e9))


def _shared(made: Situation, chance: random.Random, without: Healthy) -> None:
    _iops(made, chance, without)
    made.parts["shared_limits"] = True


def _cache(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts["cache_bytes"] = int((made.used_bytes or GIB) * log_uniform(chance, 1.2, 8))
    made.parts["cache_hit_ns"] = _fast(made, chance, "read_ns", 50)
    made.warm_runs = 2


def _write_cache(made: Situation, chance: random.Random, without: Healthy) -> None:
    fast = _fast(made, chance, "write_ns", 30)
    made.parts["write_cache_ns"] = fast
    depth = int(str(made.options["iodepth"]))
    rate = depth / fast * 1e9 * int(str(made.options["bs"]))
    made.parts["write_cache_bytes"] = int(rate * MAIN_S * log_uniform(chance, 1.1, 2.5))
    made.parts["drain_bytes_per_second"] = int(min(without.bytes_per_s, rate / 2))


def _first_touch(made: Situation, chance: random.Random, _: Healthy) -> None:
    longest = max(float(str(made.device["read_ns"])), float(str(made.device["write_ns"])))
    made.parts["first_touch_ns"] = int(longest * log_uniform(chance, 1, 20))


def _unwritten(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts["unwritten_ns"] = _fast(made, chance, "read_ns", 30)


def _reduction(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts["zero_percent"] = round(log_uniform(chance, 5, 60))
    made.parts["repeat_percent"] = round(log_uniform(chance, 5, 60))


def _position(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts["end_percent"] = round(log_uniform(chance, 130, 250))


def _misaligned(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts |= {"grid_bytes": 4096, "misaligned_percent": round(log_uniform(chance, 130, 500))}


def _background(made: Situation, chance: random.Random, _: Healthy) -> None:
    if chance.random() < 0.5:
        every = log_uniform(chance, 4e8, 2e9)
        made.device |= {"stall_every_ns": int(every), "stall_ns": int(every * log_uniform(chance, 0.1, 0.5))}
    else:
        made.parts |= {
            "neighbour_ns": int(log_uniform(chance, 5e7, 1e9)),
            "neighbour_ppm": round(log_uniform(chance, 1e5, 6e5)),
            "neighbour_percent": round(log_uniform(chance, 200, 3000)),
        }


def _loose(made: Situation, chance: random.Random, without: Healthy) -> None:
    """Draw a limit that is there and does not bind."""
    made.parts["limits"] = (_limit(without.rate * log_uniform(chance, 3, 30), 1e3, of_bytes=False),)


def _cold(made: Situation, chance: random.Random, _: Healthy) -> None:
    """Draw a cache that is there and does not hold what is read."""
    made.parts["cache_bytes"] = int(log_uniform(chance, 1e6, 1e7))
    made.parts["cache_hit_ns"] = _fast(made, chance, "read_ns", 50)


CAUSES: Final[dict[str, Callable[[Situation, random.Random, Healthy], None]]] = {
    "iops_limit": _iops,
    "bandwidth_limit": _bandwidth,
    "burst_credits": _credits,
    "concurrency_limit": _concurrency,
    "shared_limit": _shared,
    "cache": _cache,
    "write_cache": _write_cache,
    "first_touch": _first_touch,
    "unwritten": _unwritten,
    "reduction": _reduction,
    "position": _position,
    "misaligned": _misaligned,
    "background": _background,
}
HONEST: Final[dict[str, Callable[[Situation, random.Random, Healthy], None] | None]] = {
    "honest": None,
    "honest_loose_limit": _loose,
    "honest_cold_cache": _cold,
    "honest_two_targets": None,
}
KINDS: Final = (*CAUSES, *HONEST)


def drawn(kind: str, seed: int, without: Healthy) -> Situation:
    """Draw a situation of a kind, honest ones too."""
    if kind in CAUSES:
        return afflicted(kind, seed, without)
    made = healthy(kind, seed)
    change = HONEST[kind]
    if change is not None:
        change(made, random.Random(f"cause-{kind}-{seed}"), without)
    return made
