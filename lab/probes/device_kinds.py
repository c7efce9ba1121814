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


def deep(situation: Situation, chance: random.Random) -> None:
    """Ask for at least eight outstanding I/Os."""
    situation.options["iodepth"] = 2 ** chance.randrange(3, 8)


def two_targets(situation: Situation, chance: random.Random) -> None:
    """Use two targets."""
    deep(situation, chance)
    situation.targets = 2


def _off_grid(situation: Situation, chance: random.Random) -> None:
    if chance.random() < 0.7:
        situation.options["offset"] = 512 * chance.randrange(1, 8)
    else:
        situation.options["bs"] = 4096 * chance.randrange(1, 8) + 512 * chance.randrange(1, 8)


def part_of_it(situation: Situation, chance: random.Random) -> None:
    """Use a part of the device."""
    situation.used_bytes = int(situation.size_bytes * chance.uniform(0.02, 0.3)) // 131072 * 131072


def _zeros(situation: Situation, _: random.Random) -> None:
    del situation.options["refill_buffers"]
    situation.options["zero_buffers"] = 1


def _pattern(situation: Situation, _: random.Random) -> None:
    del situation.options["refill_buffers"]
    situation.options["buffer_pattern"] = "0x1234abcd"


def _copies(situation: Situation, chance: random.Random) -> None:
    situation.options["dedupe_percentage"] = chance.randrange(50, 100)


def small(situation: Situation, chance: random.Random) -> None:
    """Use a span that a cache may hold."""
    situation.used_bytes = int(log_uniform(chance, 8e6, 6e7)) // 131072 * 131072
    random_order(situation)


def random_order(situation: Situation) -> None:
    """Go to random places."""
    situation.options["rw"] = {"read": "randread", "write": "randwrite"}.get(
        str(situation.options["rw"]), situation.options["rw"]
    )


def _mostly_reads(situation: Situation, chance: random.Random) -> None:
    if chance.random() < 0.5:
        situation.options |= {"rw": "randrw", "rwmixread": 95}


# Limiters


def _rate(chance: random.Random, without: Healthy) -> float:
    return without.rate * log_uniform(chance, 0.1, 0.7)


def _iops(situation: Situation, chance: random.Random, without: Healthy) -> None:
    rate = _rate(chance, without)
    situation.parts["limits"] = (limit(rate, rate * log_uniform(chance, 0.0005, 0.1), of_bytes=False),)


def _bandwidth(situation: Situation, chance: random.Random, without: Healthy) -> None:
    rate = without.bytes_per_s * log_uniform(chance, 0.1, 0.7)
    burst = max(2.0 * situation.block_bytes, rate * log_uniform(chance, 0.0005, 0.1))
    situation.parts["limits"] = (limit(rate, burst, of_bytes=True),)


def _both(situation: Situation, chance: random.Random, without: Healthy) -> None:
    rate = _rate(chance, without)
    of_bytes = rate * situation.block_bytes * log_uniform(chance, 0.97, 1.03)
    situation.parts["limits"] = (
        limit(rate, rate * 0.01, of_bytes=False),
        limit(of_bytes, max(2.0 * situation.block_bytes, of_bytes * 0.01), of_bytes=True),
    )


def _link(situation: Situation, chance: random.Random, without: Healthy) -> None:
    """A serial link: no burst, and its own latency."""
    rate = without.bytes_per_s * log_uniform(chance, 0.15, 0.8)
    situation.parts["limits"] = (limit(rate, 1.0 * situation.block_bytes, of_bytes=True),)


def _credits(situation: Situation, chance: random.Random, without: Healthy) -> None:
    rate = without.rate * log_uniform(chance, 0.1, 0.5)
    lasts_s = situation.main_s * log_uniform(chance, 1.1, 2.5)
    situation.parts["limits"] = (limit(rate, (without.rate - rate) * lasts_s, of_bytes=False),)


def _credits_end(situation: Situation, chance: random.Random, without: Healthy) -> None:
    rate = without.rate * log_uniform(chance, 0.1, 0.5)
    lasts_s = situation.main_s * chance.uniform(0.25, 0.7)
    situation.parts["limits"] = (limit(rate, (without.rate - rate) * lasts_s, of_bytes=False),)


def _concurrency(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.device["servers"] = max(1, round(situation.depth * log_uniform(chance, 0.1, 0.6)))
    many_dies(situation)


def many_dies(situation: Situation) -> None:
    """Let nothing but the depth matter."""
    situation.parts["dies"] = 4 * situation.depth
    situation.device["read_ns"] = max(
        int(str(situation.device["read_ns"])), int(4 * situation.depth / MOST_RATE * 1e9)
    )


def _shared(situation: Situation, chance: random.Random, without: Healthy) -> None:
    (_iops if chance.random() < 0.5 else _bandwidth)(situation, chance, without)
    situation.parts["shared_limits"] = True


def _slices(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """A limiter that lets everything through for a part of each slice, and nothing in the rest."""
    every = log_uniform(chance, 6e7, 3e8)
    situation.device |= {"stall_every_ns": int(every), "stall_ns": int(every * chance.uniform(0.3, 0.8))}


# Caches


def fast(situation: Situation, chance: random.Random, slow: str, times: float) -> int:
    """Draw a latency that is shorter than that of the medium."""
    return int(
        max(
            float(str(situation.device[slow])) / log_uniform(chance, 2, times),
            situation.depth / MOST_RATE * 1e9,
        )
    )


def _cache(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.parts["cache_bytes"] = int((situation.used_bytes or GIB) * log_uniform(chance, 1.2, 8))
    situation.parts["cache_hit_ns"] = fast(situation, chance, "read_ns", 50)
    situation.warm_runs = 2


def _cache_partly(situation: Situation, chance: random.Random, without: Healthy) -> None:
    _cache(situation, chance, without)
    situation.parts["cache_bytes"] = int((situation.used_bytes or GIB) * chance.uniform(0.4, 0.9))


def _cache_fills(situation: Situation, chance: random.Random, without: Healthy) -> None:
    """It is cold when the run begins, and the run reads everything more than once."""
    _cache(situation, chance, without)
    situation.warm_runs = 0
    span = without.bytes_per_s * situation.main_s * chance.uniform(0.15, 0.5)
    situation.used_bytes = max(64 * situation.block_bytes, int(span) // 131072 * 131072)
    situation.parts["cache_bytes"] = 4 * situation.used_bytes


def _write_cache(situation: Situation, chance: random.Random, without: Healthy, lasts: float) -> None:
    quick = fast(situation, chance, "write_ns", 30)
    situation.parts["write_cache_ns"] = quick
    rate = situation.depth / quick * 1e9 * situation.block_bytes
    situation.parts["write_cache_bytes"] = int(rate * situation.main_s * lasts)
    situation.parts["drain_bytes_per_second"] = int(min(without.bytes_per_s, rate / 2))


def _write_cache_lasts(situation: Situation, chance: random.Random, without: Healthy) -> None:
    _write_cache(situation, chance, without, log_uniform(chance, 1.1, 2.5))


def _write_cache_ends(situation: Situation, chance: random.Random, without: Healthy) -> None:
    _write_cache(situation, chance, without, chance.uniform(0.2, 0.6))


# Contents


def _first_touch(situation: Situation, chance: random.Random, _: Healthy) -> None:
    longest = max(float(str(situation.device["read_ns"])), float(str(situation.device["write_ns"])))
    situation.parts["first_touch_ns"] = int(longest * log_uniform(chance, 1, 20))


def _partly_touched(situation: Situation, chance: random.Random, without: Healthy) -> None:
    _first_touch(situation, chance, without)
    situation.parts["touched_bytes"] = int(
        (situation.used_bytes or situation.size_bytes) * chance.uniform(0.1, 0.6)
    )


def _unwritten(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.parts["unwritten_ns"] = fast(situation, chance, "read_ns", 30)


def _partly_written(situation: Situation, chance: random.Random, without: Healthy) -> None:
    _unwritten(situation, chance, without)
    situation.parts["written_bytes"] = int(situation.size_bytes * chance.uniform(0.1, 0.5))


def _reduction(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.parts["zero_percent"] = round(log_uniform(chance, 12, 60))
    situation.parts["repeat_percent"] = round(log_uniform(chance, 12, 60))


# Media


def _position(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.parts["end_percent"] = round(log_uniform(chance, 130, 250))


def _misaligned(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.parts |= {"grid_bytes": 4096, "misaligned_percent": round(log_uniform(chance, 130, 500))}


def _cleaning(situation: Situation, chance: random.Random, _: Healthy) -> None:
    every = log_uniform(chance, 3e8, 1.2e9)
    situation.device |= {
        "stall_every_ns": int(every),
        "stall_ns": int(every * log_uniform(chance, 0.12, 0.5)),
    }


def _slow_moments(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """Short moments in which everything takes much longer: retries, wear levelling."""
    situation.parts |= {
        "neighbour_ns": int(log_uniform(chance, 1e6, 2e7)),
        "neighbour_ppm": round(log_uniform(chance, 2e4, 2e5)),
        "neighbour_percent": round(log_uniform(chance, 500, 6000)),
    }


# Faults and neighbours


def _neighbour(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.parts |= {
        "neighbour_ns": int(log_uniform(chance, 5e7, 1e9)),
        "neighbour_ppm": round(log_uniform(chance, 1e5, 6e5)),
        "neighbour_percent": round(log_uniform(chance, 200, 3000)),
    }


def _fail_slow(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.parts |= {
        "neighbour_ns": int(log_uniform(chance, 5e8, 3e9)),
        "neighbour_ppm": round(log_uniform(chance, 2e5, 6e5)),
        "neighbour_percent": round(log_uniform(chance, 500, 10000)),
    }


def _scan(situation: Situation, chance: random.Random, _: Healthy) -> None:
    every = log_uniform(chance, 1e9, 2e9)
    situation.device |= {
        "stall_every_ns": int(every),
        "stall_ns": int(every * log_uniform(chance, 0.15, 0.5)),
    }


def _failover(situation: Situation, chance: random.Random, _: Healthy) -> None:
    """One stop in the whole run."""
    at = situation.main_s * chance.uniform(0.51, 0.75)
    length = situation.main_s * chance.uniform(0.12, 0.24)
    situation.device |= {"stall_every_ns": int(at * 1e9), "stall_ns": int(length * 1e9)}


def _errors(situation: Situation, chance: random.Random, _: Healthy) -> None:
    situation.device["error_ppm"] = round(log_uniform(chance, 2e3, 3e5))
    situation.options["continue_on_error"] = "io"


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
