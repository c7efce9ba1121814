"""Steady rates that a limiter holds, and steady rates that are a disk's own: what tells them apart.

Knows limiters, disks and the signs that the rule `throttled` looks at; its thresholds are chosen
from this table. Each run is staged with real parts and taken down.

*scatter* is the deviation of one latency for each mean, *dispersion* what `audit/rate_variation.py` says:
about 1 for a disk, more for one that is faster at some times than at others, next to 0 for a
limiter. A host whose pauses are longer than a limiter's bucket takes from it what it could have made
up for, and such a run looks like a disk's. That a rate is a round number proves nothing by itself:
one in five is within 0.7 % of one, in I/Os, MB or MiB a second.

    python -m lab.plateaus [PART OF A NAME...]

Needs root, and a host that does nothing else: about ten minutes. Prints what it found.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.parts import MIB, MissingPartError, Stage, missing
from lab.verdicts.scenarios import job, written

from loadstone import units
from loadstone.analysis.summary import summarise
from loadstone.audit import rate_variation
from loadstone.audit.from_bundle import cases
from loadstone.audit.rule import CannotTell
from loadstone.audit.rules import throttled
from loadstone.bundle.read import Bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from loadstone.audit.case import Case

    Made = Callable[[Stage], str | Path]

RUNTIME_S = 6.0
RAMP_S = 1.0
"""As long as the burst that most of the limiters allow."""
PLATTER = """
import math, threading, time
import nbdkit
SIZE, TURN_S, TRACK = 64 << 20, 60 / 7200, 1 << 20
API_VERSION = 2
lock, at = threading.Lock(), 0
def thread_model(): return nbdkit.THREAD_MODEL_PARALLEL
def open(readonly): return 1
def get_size(h): return SIZE
def pread(h, buf, offset, flags): turn(len(buf), offset)
def pwrite(h, buf, offset, flags): turn(len(buf), offset)
def turn(count, offset):
    global at
    with lock:
        now, track = time.monotonic(), offset // TRACK
        seek_s = 0.0 if track == at else 0.001 + 0.006 * math.sqrt(abs(track - at) * TRACK / SIZE)
        under = (now + seek_s) / TURN_S % 1
        come_s = ((offset % TRACK) / TRACK - under) % 1 * TURN_S
        at = track
        time.sleep(max(0, now + seek_s + come_s + count / TRACK * TURN_S - time.monotonic()))
"""
"""A disk that turns 7,200 times a minute: a seek, and the wait until the place comes round."""


@dataclass(frozen=True)
class Plateau:
    """One run: what is staged, and what is asked of it."""

    name: str
    stage: Made
    work: str


def reads(depth: int, size: str = "4k") -> str:
    return f"rw=randread; bs={size}; iodepth={depth}"


def limiters() -> Iterator[Plateau]:
    """Yield what holds a rate: token buckets of a server, a network, the kernel and a hypervisor."""
    yield from _rates()
    for name, limits, work in (
        ("400 reads/s", {"read_iops": 400}, reads(1)),
        ("2,000 reads/s", {"read_iops": 2000}, reads(4)),
        ("2,000 reads/s", {"read_iops": 2000}, reads(32)),
        ("8 MiB/s", {"read_bps": 8 * MIB}, reads(1, "16k")),
        ("100 MiB/s", {"read_bps": 100 * MIB}, reads(32, "128k")),
    ):
        yield Plateau(f"blkio.throttle, {name}", _group(**limits), work)
    for name, limits, work in (
        ("1,000 I/Os a second", {"iops": 1000}, reads(1)),
        ("1,000 I/Os a second", {"iops": 1000}, reads(4)),
        ("3,000 I/Os a second", {"iops": 3000}, reads(32)),
        ("20 MB/s", {"bps": 20_000_000}, reads(1, "64k")),
    ):
        yield Plateau(f"QEMU throttle group, {name}", _smooth(**limits), work)
    for rate, work in (("200mbit", reads(1, "64k")), ("200mbit", reads(4, "64k")), ("100mbit", reads(1))):
        yield Plateau(f"tc tbf, {rate}", _remote(rate), work)


def _rates() -> Iterator[Plateau]:
    for mbit, burst_s, work in (
        (16, 0.3, reads(1, "16k")),
        (16, 0.02, reads(1)),
        (80, 0.1, reads(1)),
        (80, 0.1, reads(1, "64k")),
        (137, 0.2, reads(1, "16k")),
        (400, 0.05, reads(1, "128k")),
        (80, 0.1, reads(4, "16k")),
        (160, 0.1, reads(32, "16k")),
        (80, 0.1, "rw=randwrite; bs=16k; iodepth=1"),
        (80, 0.1, "rw=read; bs=64k; iodepth=1"),
    ):
        arguments = (f"rate={mbit}M", f"burstiness={burst_s:g}")
        yield Plateau(f"nbdkit rate, {mbit} Mbit/s, bucket {burst_s:g} s", _served(*arguments), work)
    for length, work in (("1ms", reads(1, "16k")), ("5ms", reads(4, "16k"))):
        over = ("rate=32M", "burstiness=0.1", f"rdelay={length}")
        yield Plateau(f"nbdkit rate, 32 Mbit/s, over a disk of {length}", _served(*over), work)


def disks() -> Iterator[Plateau]:
    """Yield what has a rate of its own: equal and unequal times, queues, caches, platters, arrays, memory."""
    for length, work in (
        ("1ms", reads(1)),
        ("2ms", reads(1)),
        ("5ms", reads(1)),
        ("8ms", reads(1)),
        ("8ms", reads(4)),
        ("2ms", reads(32)),
        ("2ms", "rw=randwrite; bs=4k; iodepth=1"),
        ("5ms", "rw=read; bs=64k; iodepth=1"),
    ):
        yield Plateau(f"a disk of {length}", _served(f"rdelay={length}", f"wdelay={length}"), work)
    for depth in (1, 4, 32):
        yield Plateau("one server, 2 ms", _single, reads(depth))
        yield Plateau("RAID0 of three such servers", _array, reads(depth))
        yield Plateau("a platter", _platter, reads(depth))
        yield Plateau("a disk in memory", _memory, reads(depth))
    yield Plateau("a platter", _platter, "rw=read; bs=64k; iodepth=1")
    yield Plateau("a platter", _platter, "rw=write; bs=4k; iodepth=1")
    yield Plateau("a cache over 5 ms", _cached, reads(1))
    yield Plateau("a cache over 5 ms", _cached, "rw=read; bs=4k; iodepth=1")
    yield Plateau("a disk in memory", _memory, "rw=randread; bs=128k; iodepth=2")
    yield Plateau("a disk in memory", _memory, "rw=read; bs=64k; iodepth=1")
    yield Plateau("zram", _zram, "rw=randwrite; bs=4k; iodepth=1; refill_buffers=1")
    yield Plateau("nbdkit without a limit", _served(), reads(1))
    yield Plateau("nbdkit without a limit", _served(), reads(32))
    for profile, count in (("raid0", 4), ("raid1", 2), ("raid10", 4), ("raid5", 4)):
        yield Plateau(f"btrfs {profile} in memory", _members(profile, count), reads(4))


def _served(*options: str) -> Made:
    filters = [name for name in ("rate", "delay") if any(name in one for one in options)]
    return lambda stage: stage.served(*options, filters=filters)


def _group(**limits: int) -> Made:
    def made(stage: Stage) -> str:
        device = stage.loop()
        stage.throttle(device, **limits)
        return device

    return made


def _smooth(**limits: int) -> Made:
    return lambda stage: stage.smooth(**limits)


def _remote(rate: str) -> Made:
    return lambda stage: stage.remote(rate)


def _single(stage: Stage) -> str:
    return stage.single_server(64, read="2ms", write="2ms")


def _array(stage: Stage) -> Path:
    servers = [stage.single_server(160, read="2ms", write="2ms") for _ in range(3)]
    return written(stage.btrfs(*servers, options="nodatacow,noatime", data="raid0"), 48)


def _members(profile: str, count: int) -> Made:
    def made(stage: Stage) -> Path:
        loops = [stage.loop(256) for _ in range(count)]
        return written(stage.btrfs(*loops, options="nodatacow,noatime", data=profile), 64)

    return made


def _platter(stage: Stage) -> str:
    return stage.plugin(PLATTER, 64)


def _cached(stage: Stage) -> str:
    options = ("cache-on-read=true", "cache-min-block-size=64K", "rdelay=5ms")
    return stage.served(*options, filters=["cache", "delay"])


def _memory(stage: Stage) -> str:
    return stage.loop()


def _zram(stage: Stage) -> str:
    return stage.zram()


def measured(plateau: Plateau) -> Case:
    """Stage a run and return what is known of it."""
    with Stage() as stage:
        text = job(f"{plateau.work}; ramp_time={RAMP_S:g}", runtime_s=RUNTIME_S)
        return cases(summarise(Bundle.open(stage.run(text, plateau.stage(stage)))))[0]


def row(plateau: Plateau, case: Case) -> str:
    """Return the signs of a run, and what the rule says of it, as a row of a table."""
    evenness, total = rate_variation.evenness(case), case.total
    rates = (units.count(total.iops.value) if total.iops else units.NONE, units.bandwidth(_bandwidth(case)))
    dispersion = units.digits(evenness.dispersion) if evenness else units.NONE
    scatter = f"{100 * evenness.scatter:.0f} %" if evenness else units.NONE
    cells = (plateau.name, f"`{plateau.work}`", *rates, scatter, dispersion, _answer_words(case))
    return f"| {' | '.join(cells)} |"


def _bandwidth(case: Case) -> float | None:
    return case.total.bandwidth.value if case.total.bandwidth else None


def _answer_words(case: Case) -> str:
    answer = throttled.RULE.judge(case)
    if isinstance(answer, tuple):
        return f"{answer[0].effect} by {answer[0].layer} ({100 * answer[0].confidence:.0f} %)"
    return "cannot tell" if isinstance(answer, CannotTell) else "clear"


def table(every: Iterator[Plateau], names: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the runs whose names have one of these parts, or of all."""
    yield "| what holds the rate | load | IOPS | bandwidth | scatter | dispersion | `throttled` says |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for one in every:
        if names and not any(name in one.name for name in names):
            continue
        try:
            yield row(one, measured(one))
        except MissingPartError as error:
            yield f"| {one.name} | `{one.work}` | – | – | – | – | not staged: {error} |"


def main(names: Sequence[str]) -> int:
    """Run all, or those of which a part of the name is given."""
    if reason := missing():
        print(f"cannot stage anything: {reason}", file=sys.stderr)
        return 2
    for title, every in (("Limiters", limiters()), ("Disks", disks())):
        print(f"\n## {title}\n")
        for line in table(every, names):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
