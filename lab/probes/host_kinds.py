"""Kinds of situations that lie in the host, its stack or the job, and honest ones.

What the host's counters would say is drawn here (`Watch`), because the simulated backend has no host; the
same kinds are staged with real parts in `lab/verdicts`. Runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lab.probes.device_kinds import deep, fast, many_dies, part_of_it, small, two_targets
from lab.probes.kind import SituationKind
from lab.probes.situation import MOST_RATE, Healthy, Situation, limit, log_uniform

if TYPE_CHECKING:
    import random


# The load generator and its host


def _quota(situation: Situation, chance: random.Random, _: Healthy) -> None:
    share = chance.uniform(0.2, 0.8)
    situation.watch.stopped_by_quota = share
    situation.watch.engine = 1 - share
    situation.watch.clock = chance.uniform(0.1, 0.5)
    # A quota stops the generator in each period of 100 ms.
    situation.device |= {"stall_every_ns": 100_000_000, "stall_ns": int(share * 1e8)}


def _few_processors(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.watch.waiting = log_uniform(chance, 0.2, 0.9)
    situation.watch.engine = log_uniform(chance, 0.1, 0.5)
    situation.watch.others_cpu = chance.uniform(0.7, 1.0)
    situation.watch.clock = chance.uniform(0.2, 0.7)


def _steal(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.watch.steal = log_uniform(chance, 0.06, 0.5)
    situation.watch.clock = chance.uniform(0.4, 0.9)
    situation.device |= {"stall_every_ns": 50_000_000, "stall_ns": int(situation.watch.steal * 5e7)}


def _full_thread(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.watch.engine = chance.uniform(0.95, 1.0)
    situation.watch.clock = log_uniform(chance, 0.1, 0.5)


def _wall_clock(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.watch.clock_jump_s = log_uniform(chance, 0.05, 100.0) * chance.choice((-1, 1))


# Layers of the stack


def _page_cache(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.watch.buffered = chance.random() < 0.6
    situation.watch.seen = situation.watch.ios = chance.choice((0.0, chance.uniform(0.0, 0.8)))
    situation.device["read_ns"] = max(int(situation.depth / 16e3 * 1e9), int(log_uniform(chance, 5e3, 1e5)))
    many_dies(situation)


def _writeback(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.watch.buffered = True
    situation.watch.flushes = False
    situation.options.pop("fdatasync", None)
    situation.watch.seen = situation.watch.ios = chance.choice((0.0, chance.uniform(0.0, 0.7)))


def _holes(situation: Situation, chance: random.Random, without: Healthy) -> None:
    del without
    situation.watch.unbacked = chance.uniform(0.3, 1.0)
    situation.parts["unwritten_ns"] = fast(situation, chance, "read_ns", 30)
    situation.parts["written_bytes"] = int(situation.size_bytes * (1 - situation.watch.unbacked))


def _cached_below(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """A loop device whose file lies in the page cache."""
    situation.watch.below = chance.uniform(0.0, 0.6)


def _twice(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """A journal or a copy on write below: writes grow on their way."""
    situation.watch.below = chance.uniform(1.6, 3.0)


def _somebody_else(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.watch.others = log_uniform(chance, 0.15, 4.0)
    situation.parts |= {
        "neighbour_ns": int(log_uniform(chance, 1e6, 2e8)),
        "neighbour_ppm": round(log_uniform(chance, 3e5, 9e5)),
        "neighbour_percent": round(log_uniform(chance, 150, 600)),
    }


def _split(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.watch.ios = float(2 ** chance.randrange(2, 6))
    situation.options["bs"] = 4096 * 2 ** chance.randrange(4, 7)


def _merged(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.watch.ios = 1 / 2 ** chance.randrange(2, 6)
    situation.options |= {"rw": "read", "bs": 4096}


# The job itself


def _too_high(situation: Situation, chance: random.Random, without: Healthy) -> None:
    situation.options["rate_iops"] = max(2, int(without.rate * log_uniform(chance, 1.3, 20)))


def _rate(situation: Situation, chance: random.Random, without: Healthy) -> None:
    situation.options["rate_iops"] = max(2, int(without.rate * log_uniform(chance, 0.1, 0.6)))
    if chance.random() < 0.5:
        situation.options["rate_process"] = "poisson"


def _think(situation: Situation, chance: random.Random, without: Healthy) -> None:
    situation.options["iodepth"] = 1
    situation.options["thinktime"] = int(1e6 / max(1.0, without.rate) * log_uniform(chance, 1, 20)) + 1


def _short(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.main_s = log_uniform(chance, 0.05, 0.4)


# Honest


def _alone(situation: Situation, _: random.Random) -> None:
    situation.options["iodepth"] = 1


def _flushing(situation: Situation, chance: random.Random) -> None:
    situation.options["fdatasync"] = 2 ** chance.randrange(0, 4)


def _clones(situation: Situation, chance: random.Random) -> None:
    situation.options |= {"numjobs": chance.randrange(2, 5), "offset_increment": 4 << 30}
    situation.used_bytes = 4 << 30


def _sizes(situation: Situation, chance: random.Random) -> None:
    if chance.random() < 0.5:
        situation.options["bssplit"] = "4k/60:16k/30:64k/10"
    else:
        situation.options["bsrange"] = "4k-64k"


def _same_content(situation: Situation, chance: random.Random) -> None:
    """Content that repeats, on a device that reduces nothing."""
    del situation.options["refill_buffers"]
    if chance.random() < 0.5:
        situation.options["zero_buffers"] = 1


def _loose(situation: Situation, chance: random.Random, without: Healthy) -> None:
    """A limit that is there and does not bind."""
    situation.parts["limits"] = (limit(without.rate * log_uniform(chance, 3, 30), 1e3, of_bytes=False),)


def _cold(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """A cache that is there and does not hold what is read."""
    situation.parts["cache_bytes"] = int(log_uniform(chance, 1e6, 1e7))
    situation.parts["cache_hit_ns"] = fast(situation, chance, "read_ns", 50)


def _written(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """Never-written blocks would be quick, and all of them were written."""
    situation.parts["unwritten_ns"] = fast(situation, chance, "read_ns", 30)
    situation.parts["written_bytes"] = situation.size_bytes


def _touched(situation: Situation, chance: random.Random, without: Healthy) -> None:
    del without
    situation.parts["first_touch_ns"] = int(
        float(str(situation.device["read_ns"])) * log_uniform(chance, 1, 20)
    )
    situation.parts["touched_bytes"] = situation.size_bytes


def _quiet_neighbour(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """Somebody whose work hardly matters."""
    situation.parts |= {
        "neighbour_ns": int(log_uniform(chance, 1e6, 1e8)),
        "neighbour_ppm": round(log_uniform(chance, 1e4, 2e5)),
        "neighbour_percent": round(chance.uniform(102, 112)),
    }


def _small_stops(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """Stalls of a percent of the time."""
    every = log_uniform(chance, 5e7, 5e8)
    situation.device |= {"stall_every_ns": int(every), "stall_ns": int(every * 0.01)}


def _busy_but_served(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """Processors are in use by others, and the generator does not wait for them."""
    situation.watch.others_cpu = chance.uniform(0.2, 0.55)


def _own_channel(situation: Situation, chance: random.Random, without: Healthy) -> None:
    """The bandwidth of the medium's own channel: nothing but another medium would do more."""
    channel = max(without.bytes_per_s * log_uniform(chance, 0.15, 0.9), 2.0 * situation.block_bytes)
    situation.parts["limits"] = (
        limit(channel, situation.block_bytes * chance.randrange(1, 5), of_bytes=True),
    )


def _own_controller(situation: Situation, chance: random.Random, without: Healthy) -> None:
    """The rate of the medium's own controller, which takes as long for an I/O of any size."""
    rate = max(2.0, without.rate * log_uniform(chance, 0.15, 0.9))
    situation.parts["limits"] = (limit(rate, chance.randrange(1, 5), of_bytes=False),)


def _own_heads(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """One to four heads that transfer for most of the time of each I/O."""
    ns, moving = _few(situation, chance), chance.uniform(0.6, 0.97)
    situation.parts["kib_ns"] = max(1, int(ns * moving * 1024 / situation.block_bytes))
    situation.device |= {"read_ns": int(ns * (1 - moving)), "write_ns": int(ns * (1 - moving))}


def _own_cores(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """One to four cores whose time hardly depends on the size."""
    ns = _few(situation, chance)
    situation.parts["kib_ns"] = int(ns * chance.uniform(0, 0.1) * 1024 / situation.block_bytes)
    situation.device |= {"read_ns": ns, "write_ns": int(ns * log_uniform(chance, 1, 2))}


def _few(situation: Situation, chance: random.Random) -> int:
    """Let few of something do everything, and return how long each takes for an I/O."""
    servers = 2 ** chance.randrange(0, 3)
    situation.device["servers"] = servers
    situation.parts["dies"] = 0
    return max(int(str(situation.device["read_ns"])), int(servers / MOST_RATE * 1e9))


GENERATOR: Final = ("generator",)
OTHER: Final = ("something_unexplained",)
IN_MEMORY: Final = ("cache", "write_cache")

HOST_KINDS: Final = (
    SituationKind("cpu_quota", "host", GENERATOR, ("generator_cpu",), cause=_quota),
    SituationKind(
        "few_processors",
        "host",
        GENERATOR,
        ("generator_cpu",),
        cause=_few_processors,
        counterfactual=False,
        in_device=False,
    ),
    SituationKind(
        "steal", "host", GENERATOR, ("generator_cpu",), cause=_steal, counterfactual=False, in_device=False
    ),
    SituationKind(
        "full_thread",
        "host",
        GENERATOR,
        ("generator_cpu",),
        cause=_full_thread,
        counterfactual=False,
        in_device=False,
    ),
    SituationKind(
        "wall_clock", "host", OTHER, ("clock_jump",), cause=_wall_clock, counterfactual=False, in_device=False
    ),
    SituationKind(
        "page_cache",
        "stack",
        IN_MEMORY,
        ("page_cache_read", "layer_flows"),
        "reads",
        cause=_page_cache,
        counterfactual=False,
        in_device=False,
    ),
    SituationKind(
        "writeback",
        "stack",
        IN_MEMORY,
        ("writeback_absorbed", "layer_flows"),
        "writes",
        cause=_writeback,
        counterfactual=False,
        in_device=False,
    ),
    SituationKind(
        "holes", "stack", ("unwritten",), ("unwritten_region", "layer_flows"), "reads", cause=_holes
    ),
    SituationKind(
        "cached_below",
        "stack",
        IN_MEMORY,
        ("layer_flows",),
        "reads",
        cause=_cached_below,
        counterfactual=False,
        in_device=False,
    ),
    SituationKind(
        "written_twice",
        "stack",
        OTHER,
        ("layer_flows",),
        "writes",
        cause=_twice,
        counterfactual=False,
        in_device=False,
    ),
    SituationKind(
        "somebody_else",
        "stack",
        ("background",),
        ("foreign_load", "layer_flows"),
        cause=_somebody_else,
    ),
    SituationKind(
        "split", "stack", OTHER, ("resized_on_path",), cause=_split, counterfactual=False, in_device=False
    ),
    SituationKind(
        "merged",
        "stack",
        OTHER,
        ("resized_on_path",),
        "reads",
        cause=_merged,
        counterfactual=False,
        in_device=False,
    ),
    SituationKind(
        "rate_too_high",
        "job",
        ("job_rate",),
        ("rate_not_reached",),
        cause=_too_high,
        counterfactual=False,
        in_device=False,
    ),
    SituationKind(
        "too_short", "job", OTHER, ("too_few_samples",), cause=_short, counterfactual=False, in_device=False
    ),
)
MEASURES: Final = ("medium", "job_depth")
PACED: Final = ("job_rate",)
BY_BYTES: Final = ("bandwidth_limit", "concurrency_limit")
BY_IOS: Final = ("iops_limit", "concurrency_limit")
HONEST_KINDS: Final = (
    SituationKind("honest", "honest", MEASURES, ()),
    SituationKind("honest_alone", "honest", MEASURES, (), shape=_alone),
    SituationKind("honest_flushing", "honest", MEASURES, (), "writes", shape=_flushing),
    SituationKind("honest_clones", "honest", MEASURES, (), shape=_clones),
    SituationKind("honest_sizes", "honest", MEASURES, (), shape=_sizes),
    SituationKind("honest_same_content", "honest", MEASURES, (), "writes", shape=_same_content),
    SituationKind("honest_part", "honest", MEASURES, (), shape=part_of_it),
    SituationKind("honest_small", "honest", MEASURES, (), "reads", shape=small),
    SituationKind("honest_two_targets", "honest", MEASURES, (), shape=two_targets),
    SituationKind("honest_loose_limit", "honest", MEASURES, (), cause=_loose),
    SituationKind("honest_cold_cache", "honest", MEASURES, (), "reads", cause=_cold),
    SituationKind("honest_written", "honest", MEASURES, (), "reads", cause=_written),
    SituationKind("honest_touched", "honest", MEASURES, (), cause=_touched),
    SituationKind("honest_quiet_neighbour", "honest", MEASURES, (), cause=_quiet_neighbour),
    SituationKind("honest_small_stops", "honest", MEASURES, (), cause=_small_stops),
    SituationKind("honest_busy_host", "honest", MEASURES, (), cause=_busy_but_served),
    SituationKind(
        "honest_own_channel", "honest", MEASURES, (), shape=deep, cause=_own_channel, own_limits=BY_BYTES
    ),
    SituationKind(
        "honest_own_controller", "honest", MEASURES, (), shape=deep, cause=_own_controller, own_limits=BY_IOS
    ),
    SituationKind(
        "honest_own_heads", "honest", MEASURES, (), shape=deep, cause=_own_heads, own_limits=BY_BYTES
    ),
    SituationKind(
        "honest_own_cores", "honest", MEASURES, (), shape=deep, cause=_own_cores, own_limits=BY_IOS
    ),
    SituationKind("honest_rate", "honest", PACED, ("own_limit",), cause=_rate),
    SituationKind("honest_think_time", "honest", PACED, ("own_limit",), cause=_think),
)
