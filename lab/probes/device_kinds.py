"""Kinds of situations that lie in the storage: limiters, caches, contents, media, faults.

A kind says which job it needs (`shape`) and what it puts into the device (`cause`). Limits are drawn as a
share of what the device does without them. Runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lab.probes.kind import SituationKind
from lab.probes.situation import GIB, MOST_RATE, Healthy, Situation, limit, log_uniform

if TYPE_CHECKING:
    import random


# Jobs that a cause needs


def deep(made: Situation, chance: random.Random) -> None:
    """Ask for at least eight outstanding I/Os."""
    made.options["iodepth"] = 2 ** chance.randrange(3, 8)


def two_targets(made: Situation, chance: random.Random) -> None:
    """Use two targets."""
    deep(made, chance)
    made.targets = 2


def _off_grid(made: Situation, chance: random.Random) -> None:
    if chance.random() < 0.7:
        made.options["offset"] = 512 * chance.randrange(1, 8)
    else:
        made.options["bs"] = 4096 * chance.randrange(1, 8) + 512 * chance.randrange(1, 8)


def part_of_it(made: Situation, chance: random.Random) -> None:
    """Use a part of the device."""
    made.used_bytes = int(made.size_bytes * chance.uniform(0.02, 0.3)) // 131072 * 131072


def _zeros(made: Situation, _: random.Random) -> None:
    del made.options["refill_buffers"]
    made.options["zero_buffers"] = 1


def _pattern(made: Situation, _: random.Random) -> None:
    del made.options["refill_buffers"]
    made.options["buffer_pattern"] = "0x1234abcd"


def _copies(made: Situation, chance: random.Random) -> None:
    made.options["dedupe_percentage"] = chance.randrange(50, 100)


def small(made: Situation, chance: random.Random) -> None:
    """Use a span that a cache may hold."""
    made.used_bytes = int(log_uniform(chance, 8e6, 6e7)) // 131072 * 131072
    random_order(made)


def random_order(made: Situation) -> None:
    """Go to random places."""
    made.options["rw"] = {"read": "randread", "write": "randwrite"}.get(
        str(made.options["rw"]), made.options["rw"]
    )


def _mostly_reads(made: Situation, chance: random.Random) -> None:
    if chance.random() < 0.5:
        made.options |= {"rw": "randrw", "rwmixread": 95}


# Limiters


def _rate(chance: random.Random, without: Healthy) -> float:
    return without.rate * log_uniform(chance, 0.1, 0.7)


def _iops(made: Situation, chance: random.Random, without: Healthy) -> None:
    rate = _rate(chance, without)
    made.parts["limits"] = (limit(rate, rate * log_uniform(chance, 0.0005, 0.1), of_bytes=False),)


def _bandwidth(made: Situation, chance: random.Random, without: Healthy) -> None:
    rate = without.bytes_per_s * log_uniform(chance, 0.1, 0.7)
    burst = max(2.0 * made.block_bytes, rate * log_uniform(chance, 0.0005, 0.1))
    made.parts["limits"] = (limit(rate, burst, of_bytes=True),)


def _both(made: Situation, chance: random.Random, without: Healthy) -> None:
    rate = _rate(chance, without)
    of_bytes = rate * made.block_bytes * log_uniform(chance, 0.97, 1.03)
    made.parts["limits"] = (
        limit(rate, rate * 0.01, of_bytes=False),
        limit(of_bytes, max(2.0 * made.block_bytes, of_bytes * 0.01), of_bytes=True),
    )


def _link(made: Situation, chance: random.Random, without: Healthy) -> None:
    """A serial link: no burst, and its own latency."""
    rate = without.bytes_per_s * log_uniform(chance, 0.15, 0.8)
    made.parts["limits"] = (limit(rate, 1.0 * made.block_bytes, of_bytes=True),)


def _credits(made: Situation, chance: random.Random, without: Healthy) -> None:
    rate = without.rate * log_uniform(chance, 0.1, 0.5)
    lasts_s = made.main_s * log_uniform(chance, 1.1, 2.5)
    made.parts["limits"] = (limit(rate, (without.rate - rate) * lasts_s, of_bytes=False),)


def _credits_end(made: Situation, chance: random.Random, without: Healthy) -> None:
    rate = without.rate * log_uniform(chance, 0.1, 0.5)
    lasts_s = made.main_s * chance.uniform(0.25, 0.7)
    made.parts["limits"] = (limit(rate, (without.rate - rate) * lasts_s, of_bytes=False),)


def _concurrency(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.device["servers"] = max(1, round(made.depth * log_uniform(chance, 0.1, 0.6)))
    many_dies(made)


def many_dies(made: Situation) -> None:
    """Let nothing but the depth matter."""
    made.parts["dies"] = 4 * made.depth
    made.device["read_ns"] = max(int(str(made.device["read_ns"])), int(4 * made.depth / MOST_RATE * 1e9))


def _shared(made: Situation, chance: random.Random, without: Healthy) -> None:
    (_iops if chance.random() < 0.5 else _bandwidth)(made, chance, without)
    made.parts["shared_limits"] = True


def _slices(made: Situation, chance: random.Random, _: Healthy) -> None:
    """A limiter that lets everything through for a part of each slice, and nothing in the rest."""
    every = log_uniform(chance, 6e7, 3e8)
    made.device |= {"stall_every_ns": int(every), "stall_ns": int(every * chance.uniform(0.3, 0.8))}


# Caches


def fast(made: Situation, chance: random.Random, slow: str, times: float) -> int:
    """Draw a latency that is shorter than that of the medium."""
    return int(
        max(float(str(made.device[slow])) / log_uniform(chance, 2, times), made.depth / MOST_RATE * 1e9)
    )


def _cache(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts["cache_bytes"] = int((made.used_bytes or GIB) * log_uniform(chance, 1.2, 8))
    made.parts["cache_hit_ns"] = fast(made, chance, "read_ns", 50)
    made.warm_runs = 2


def _cache_partly(made: Situation, chance: random.Random, without: Healthy) -> None:
    _cache(made, chance, without)
    made.parts["cache_bytes"] = int((made.used_bytes or GIB) * chance.uniform(0.4, 0.9))


def _cache_fills(made: Situation, chance: random.Random, without: Healthy) -> None:
    """It is cold when the run begins, and the run reads everything more than once."""
    _cache(made, chance, without)
    made.warm_runs = 0
    span = without.bytes_per_s * made.main_s * chance.uniform(0.15, 0.5)
    made.used_bytes = max(64 * made.block_bytes, int(span) // 131072 * 131072)
    made.parts["cache_bytes"] = 4 * made.used_bytes


def _write_cache(made: Situation, chance: random.Random, without: Healthy, lasts: float) -> None:
    quick = fast(made, chance, "write_ns", 30)
    made.parts["write_cache_ns"] = quick
    rate = made.depth / quick * 1e9 * made.block_bytes
    made.parts["write_cache_bytes"] = int(rate * made.main_s * lasts)
    made.parts["drain_bytes_per_second"] = int(min(without.bytes_per_s, rate / 2))


def _write_cache_lasts(made: Situation, chance: random.Random, without: Healthy) -> None:
    _write_cache(made, chance, without, log_uniform(chance, 1.1, 2.5))


def _write_cache_ends(made: Situation, chance: random.Random, without: Healthy) -> None:
    _write_cache(made, chance, without, chance.uniform(0.2, 0.6))


# Contents


def _first_touch(made: Situation, chance: random.Random, _: Healthy) -> None:
    longest = max(float(str(made.device["read_ns"])), float(str(made.device["write_ns"])))
    made.parts["first_touch_ns"] = int(longest * log_uniform(chance, 1, 20))


def _partly_touched(made: Situation, chance: random.Random, without: Healthy) -> None:
    _first_touch(made, chance, without)
    made.parts["touched_bytes"] = int((made.used_bytes or made.size_bytes) * chance.uniform(0.1, 0.6))


def _unwritten(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts["unwritten_ns"] = fast(made, chance, "read_ns", 30)


def _partly_written(made: Situation, chance: random.Random, without: Healthy) -> None:
    _unwritten(made, chance, without)
    made.parts["written_bytes"] = int(made.size_bytes * chance.uniform(0.1, 0.5))


def _reduction(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts["zero_percent"] = round(log_uniform(chance, 12, 60))
    made.parts["repeat_percent"] = round(log_uniform(chance, 12, 60))


# Media


def _position(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts["end_percent"] = round(log_uniform(chance, 130, 250))


def _misaligned(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts |= {"grid_bytes": 4096, "misaligned_percent": round(log_uniform(chance, 130, 500))}


def _cleaning(made: Situation, chance: random.Random, _: Healthy) -> None:
    every = log_uniform(chance, 3e8, 1.2e9)
    made.device |= {"stall_every_ns": int(every), "stall_ns": int(every * log_uniform(chance, 0.12, 0.5))}


def _slow_moments(made: Situation, chance: random.Random, _: Healthy) -> None:
    """Short moments in which everything takes much longer: retries, wear levelling."""
    made.parts |= {
        "neighbour_ns": int(log_uniform(chance, 1e6, 2e7)),
        "neighbour_ppm": round(log_uniform(chance, 2e4, 2e5)),
        "neighbour_percent": round(log_uniform(chance, 500, 6000)),
    }


# Faults and neighbours


def _neighbour(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts |= {
        "neighbour_ns": int(log_uniform(chance, 5e7, 1e9)),
        "neighbour_ppm": round(log_uniform(chance, 1e5, 6e5)),
        "neighbour_percent": round(log_uniform(chance, 200, 3000)),
    }


def _fail_slow(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.parts |= {
        "neighbour_ns": int(log_uniform(chance, 5e8, 3e9)),
        "neighbour_ppm": round(log_uniform(chance, 2e5, 6e5)),
        "neighbour_percent": round(log_uniform(chance, 500, 10000)),
    }


def _scan(made: Situation, chance: random.Random, _: Healthy) -> None:
    every = log_uniform(chance, 1e9, 2e9)
    made.device |= {"stall_every_ns": int(every), "stall_ns": int(every * log_uniform(chance, 0.15, 0.5))}


def _failover(made: Situation, chance: random.Random, _: Healthy) -> None:
    """One stop in the whole run."""
    at = made.main_s * chance.uniform(0.51, 0.75)
    length = made.main_s * chance.uniform(0.12, 0.24)
    made.device |= {"stall_every_ns": int(at * 1e9), "stall_ns": int(length * 1e9)}


def _errors(made: Situation, chance: random.Random, _: Healthy) -> None:
    made.device["error_ppm"] = round(log_uniform(chance, 2e3, 3e5))
    made.options["continue_on_error"] = "io"


BACKGROUND: Final = ("background",)
UNEVEN: Final = ("time_structure", "not_steady", "throttled", "foreign_load")
CAPS: Final = ("throttled", "link_ceiling")
SPAN: Final = ("short_stroke",)
"""So small a span is what lets a cache answer."""

DEVICE_KINDS: Final = (
    SituationKind("iops_limit", "limiter", ("iops_limit",), CAPS, shape=deep, cause=_iops),
    SituationKind("bandwidth_limit", "limiter", ("bandwidth_limit",), CAPS, shape=deep, cause=_bandwidth),
    SituationKind("both_limits", "limiter", ("iops_limit", "bandwidth_limit"), CAPS, shape=deep, cause=_both),
    SituationKind("link", "limiter", ("bandwidth_limit",), CAPS, shape=deep, cause=_link),
    SituationKind("burst_credits", "limiter", ("burst_credits",), CAPS, cause=_credits, counterfactual=False),
    SituationKind(
        "burst_credits_end",
        "limiter",
        ("burst_credits", "iops_limit"),
        (*CAPS, "time_structure"),
        cause=_credits_end,
    ),
    SituationKind(
        "concurrency_limit",
        "limiter",
        ("concurrency_limit",),
        ("depth_not_reached",),
        shape=deep,
        cause=_concurrency,
    ),
    SituationKind("shared_limit", "limiter", ("shared_limit",), CAPS, shape=two_targets, cause=_shared),
    SituationKind("sliced_limit", "limiter", BACKGROUND, UNEVEN, cause=_slices),
    SituationKind(
        "cache", "cache", ("cache",), ("same_sequence_again", *SPAN), "reads", shape=small, cause=_cache
    ),
    SituationKind(
        "cache_partly",
        "cache",
        ("cache",),
        ("time_structure", *SPAN),
        "reads",
        shape=small,
        cause=_cache_partly,
    ),
    SituationKind(
        "cache_fills", "cache", ("cache",), (*UNEVEN, *SPAN), "reads", shape=small, cause=_cache_fills
    ),
    SituationKind(
        "write_cache", "cache", ("write_cache",), ("volatile_ack",), "writes", cause=_write_cache_lasts
    ),
    SituationKind(
        "write_cache_ends",
        "cache",
        ("write_cache", "bandwidth_limit"),
        (*UNEVEN, "volatile_ack"),
        "writes",
        cause=_write_cache_ends,
    ),
    SituationKind("first_touch_writes", "content", ("first_touch",), UNEVEN, "writes", cause=_first_touch),
    SituationKind("first_touch_reads", "content", ("first_touch",), UNEVEN, "reads", cause=_first_touch),
    SituationKind(
        "partly_touched", "content", ("first_touch",), UNEVEN, shape=part_of_it, cause=_partly_touched
    ),
    SituationKind("unwritten", "content", ("unwritten",), (), "reads", shape=_mostly_reads, cause=_unwritten),
    SituationKind(
        "partly_unwritten", "content", ("unwritten",), ("time_structure",), "reads", cause=_partly_written
    ),
    SituationKind("zeros", "content", ("reduction",), ("reducible_payload",), "writes", _zeros, _reduction),
    SituationKind(
        "one_pattern", "content", ("reduction",), ("reducible_payload",), "writes", _pattern, _reduction
    ),
    SituationKind("copies", "content", ("reduction",), ("reducible_payload",), "writes", _copies, _reduction),
    SituationKind(
        "position", "medium", ("position",), ("short_stroke",), "reads", part_of_it, _position, False
    ),
    SituationKind(
        "misaligned", "medium", ("misaligned",), ("resized_on_path",), shape=_off_grid, cause=_misaligned
    ),
    SituationKind("cleaning", "medium", BACKGROUND, UNEVEN, cause=_cleaning),
    SituationKind("slow_moments", "medium", BACKGROUND, UNEVEN, cause=_slow_moments),
    SituationKind("neighbour", "fault", BACKGROUND, UNEVEN, cause=_neighbour),
    SituationKind("fail_slow", "fault", BACKGROUND, UNEVEN, cause=_fail_slow),
    SituationKind("scan", "fault", BACKGROUND, UNEVEN, cause=_scan),
    SituationKind("failover", "fault", BACKGROUND, UNEVEN, cause=_failover),
    SituationKind(
        "errors",
        "fault",
        ("something_unexplained",),
        ("io_errors",),
        cause=_errors,
        counterfactual=False,
        in_device=False,
    ),
)
