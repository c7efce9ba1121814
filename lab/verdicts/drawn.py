"""Labelled runs with real parts whose parameters are drawn from a seed: many of each kind.

Knows which parts a kind is made of and in which range its numbers lie. The fixed ones are in `scenarios`.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lab.parts import MIB, Stage, call
from lab.verdicts.scenarios import CPU, OWN, Scenario, drop_cache, job, written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from loadstone.verdict import RuleName

    Drawn = Callable[[Stage, random.Random], Path]


@dataclass(frozen=True)
class DrawnKind:
    """What is expected of a kind (None: it is honest), and what is true beside.

    `explained`: the explanations that probes may rightly give it. `outside`: it is of `outside`. `hidden`:
    it is in the storage, and nothing on this host shows it until probes ask.
    """

    stage: Drawn
    expected: RuleName | None
    also: tuple[RuleName, ...]
    explained: tuple[str, ...]
    outside: bool
    hidden: bool


KINDS: Final[dict[str, DrawnKind]] = {}


def kind(
    expected: RuleName | None,
    *also: RuleName,
    explained: tuple[str, ...] = (),
    outside: bool = False,
    hidden: bool = False,
) -> Callable[[Drawn], Drawn]:
    """Add a kind."""

    def add(stage: Drawn) -> Drawn:
        KINDS[stage.__name__] = DrawnKind(stage, expected, also, explained, outside, hidden)
        return stage

    return add


def kind_of(seed: int, *, honest_only: bool = False, among: Sequence[str] = ()) -> str:
    """Return the kind that a seed stands for: kind after kind, every second one honest, or all.

    `among`: of these kinds each has its turn.
    """
    if among:
        return among[seed % len(among)]
    known = {name: one for name, one in KINDS.items() if not one.outside}
    lies = [name for name, one in known.items() if one.expected is not None]
    honest = [name for name in known if name not in lies]
    if honest_only:
        return honest[seed % len(honest)]
    names = lies if seed % 2 else honest
    return names[seed // 2 % len(names)]


def spinning(seed: int) -> int:
    """Return how many programs use up CPUs beside the run of a seed: none beside half of them, or up to 2."""
    chance = random.Random(f"spinning {seed}")
    return chance.choice((1, 2)) if chance.random() < 0.5 else 0


def scenario(seed: int, name: str) -> Scenario:
    """Return the run of a seed, of this kind."""
    of = KINDS[name]

    def staged(parts: Stage) -> Path:
        return of.stage(parts, random.Random(f"{name} {seed}"))

    story = f"{name.replace('_', ' ')} (seed {seed})"
    return Scenario(name, story, staged, of.expected, of.also, of.explained)


def slow(stage: Stage, chance: random.Random, mib: int = 64) -> str:
    """A disk with a delay."""
    delay = f"{chance.choice((1, 2, 3, 5, 8))}ms"
    return stage.served(f"rdelay={delay}", f"wdelay={delay}", filters=["delay"], mib=mib)


def shape(chance: random.Random, moves: str = "randread") -> str:
    """A job's size and depth."""
    return f"rw={moves}; bs={chance.choice(('4k', '8k', '16k'))}; iodepth={chance.choice((1, 2, 4, 8))}"


# Lies


@kind("page_cache_read", *CPU)
def reads_from_the_page_cache(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(stage.loop()), 48)
    call("dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none")
    return stage.run(job(f"{shape(chance)}; invalidate=0", direct=0), file)


@kind("writeback_absorbed", *CPU)
def writes_into_the_page_cache(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance)), 32)
    return stage.run(job(shape(chance, chance.choice(("write", "randwrite"))), direct=0), file)


@kind("unwritten_region", "layer_flows", *CPU)
def reads_of_holes(stage: Stage, chance: random.Random) -> Path:
    file = stage.ext4(stage.loop()) / "file"
    call(*(("truncate", "-s") if chance.random() < 0.5 else ("fallocate", "-l")), "64M", file)
    return stage.run(job(shape(chance)), file)


@kind("layer_flows", "unwritten_region", *CPU)
def holes_under_a_loop(stage: Stage, chance: random.Random) -> Path:
    file = stage.ext4(slow(stage, chance, 96)) / "img"
    call("truncate", "-s", "64M", file)
    return stage.run(job(shape(chance)), stage.loop_over(file))


@kind("layer_flows", *CPU)
def loop_in_the_page_cache(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance, 96)), 48)
    device = stage.loop_over(file, direct=False)
    call("dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none")
    return stage.run(job(shape(chance)), device)


@kind("reducible_payload", *CPU)
def zeros_on_zram(stage: Stage, chance: random.Random) -> Path:
    return stage.run(job(f"{shape(chance, 'randwrite')}; zero_buffers=1"), stage.zram())


@kind("reducible_payload", "first_pass_allocation", "layer_flows", *CPU, *OWN)
def pattern_on_btrfs(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.btrfs(stage.loop(256), options="compress-force=zstd,noatime"), 48)
    rate = chance.choice((100, 200, 300))
    return stage.run(job(f"rw=write; bs=128k; iodepth=4; buffer_pattern=0xdeadbeef; rate_iops={rate}"), file)


@kind("throttled", "depth_not_reached")
def iops_of_a_control_group(stage: Stage, chance: random.Random) -> Path:
    device = stage.loop()
    number = call("lsblk", "-dno", "MAJ:MIN", device).strip()
    limit = chance.randrange(150, 900)
    group = stage.cgroup("blkio", blkio__throttle__read_iops_device=f"{number} {limit}")
    return stage.run(job(f"rw=randread; bs=4k; iodepth={chance.choice((1, 4, 16))}"), device, groups=[group])


@kind("throttled", "depth_not_reached")
def bandwidth_of_a_control_group(stage: Stage, chance: random.Random) -> Path:
    device = stage.loop()
    number = call("lsblk", "-dno", "MAJ:MIN", device).strip()
    limit = chance.randrange(4, 20) * MIB
    group = stage.cgroup("blkio", blkio__throttle__write_bps_device=f"{number} {limit}")
    return stage.run(job("rw=randwrite; bs=64k; iodepth=2"), device, groups=[group])


@kind("throttled", "time_structure")
def rate_out_of_sight(stage: Stage, chance: random.Random) -> Path:
    rate = chance.choice((8, 16, 24, 40))
    device = stage.served(f"rate={rate}M", f"burstiness={chance.choice((0.1, 0.3, 1))}", filters=["rate"])
    return stage.run(job("rw=randread; bs=16k; iodepth=1; ramp_time=1", runtime_s=6), device)


@kind("throttled", "not_steady", "time_structure")
def credits_that_end(stage: Stage, chance: random.Random) -> Path:
    device = stage.served("rate-file={folder}/rate", "burstiness=0.1", filters=["rate"])
    fast, drop = chance.choice((48, 64, 96)), chance.uniform(0.2, 0.5)
    (stage.folder / "rate").write_text(f"{fast}M")

    def slow_down() -> None:
        time.sleep(chance.uniform(1.5, 3))
        (stage.folder / "rate").write_text(f"{int(fast * drop)}M")

    return stage.run(job("rw=randread; bs=16k; iodepth=1", runtime_s=6), device, during=slow_down)


@kind("generator_cpu")
def a_cpu_quota(stage: Stage, chance: random.Random) -> Path:
    quota = chance.randrange(8, 30) * 1000
    group = stage.cgroup("cpu", cpu__cfs_period_us="100000", cpu__cfs_quota_us=str(quota))
    return stage.run(job("rw=randread; bs=4k; iodepth=8"), stage.loop(), groups=[group])


@kind("rate_not_reached")
def a_rate_too_high(stage: Stage, chance: random.Random) -> Path:
    device = stage.single_server(64, read="2ms", write="2ms")
    rate = chance.choice((900, 2000, 4000))
    return stage.run(job(f"rw=randread; bs=4k; iodepth=1; rate_iops={rate}"), device)


@kind("depth_not_reached")
def a_short_queue(stage: Stage, chance: random.Random) -> Path:
    device = stage.served("rdelay=4ms", filters=["delay"])
    stage.queue(device, nr_requests="4")
    return stage.run(job(f"rw=randread; bs=4k; iodepth={chance.choice((32, 64, 128))}"), device)


@kind("foreign_load", *CPU)
def other_load(stage: Stage, chance: random.Random) -> Path:
    device = slow(stage, chance)
    size = chance.choice(("16k", "64k"))
    operation = (
        f"if={device} of=/dev/null iflag=direct"
        if chance.random() < 0.5
        else f"if=/dev/zero of={device} oflag=direct"
    )
    stage.beside("sh", "-c", f"while :; do dd {operation} bs={size}; done")
    return stage.run(job("rw=randread; bs=4k; iodepth=1"), device)


@kind("time_structure", "not_steady")
def one_hang(stage: Stage, chance: random.Random) -> Path:
    device = stage.pausing()
    at, length = chance.uniform(1, 3), chance.uniform(0.5, 2.5)
    return stage.run(
        job("rw=randread; bs=4k; iodepth=4", runtime_s=7), device, during=lambda: stage.pause([(at, length)])
    )


@kind("time_structure", "not_steady")
def regular_stalls(stage: Stage, chance: random.Random) -> Path:
    device = stage.pausing()
    every, length = chance.uniform(0.7, 1.6), chance.uniform(0.2, 0.5)
    text = job("rw=randread; bs=4k; iodepth=4", runtime_s=10)
    times = [(every, length)] * int(8 / (every + length))
    return stage.run(text, device, during=lambda: stage.pause(times))


@kind("generator_stopped", "not_steady")
def a_stopped_generator(stage: Stage, chance: random.Random) -> Path:
    length = chance.uniform(0.5, 2)
    text = job("rw=randread; bs=4k; iodepth=4", runtime_s=5)
    return stage.run(text, slow(stage, chance), during=lambda: stage.stop_engine(length))


@kind("io_errors", "too_few_samples")
def errors(stage: Stage, chance: random.Random) -> Path:
    share = chance.choice((1, 5, 20))
    device = stage.served("error=EIO", f"error-pread-rate={share}%", "rdelay=1ms", filters=["error", "delay"])
    return stage.run(job("rw=randread; bs=4k; iodepth=1; continue_on_error=io"), device)


@kind("layer_flows", "not_steady", "resized_on_path")
def data_journal(stage: Stage, chance: random.Random) -> Path:
    folder = stage.ext4(slow(stage, chance, 128), options="noatime,data=journal")
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1; fsync=1"), written(folder, 32))


@kind("first_pass_allocation", "rate_not_reached", *CPU, *OWN)
def a_first_pass(stage: Stage, chance: random.Random) -> Path:
    file = stage.ext4(stage.loop(512)) / "file"
    call("truncate", "-s", "400M", file)
    rate = chance.choice((2000, 4000, 6000))
    return stage.run(job(f"rw=randwrite; bs=4k; iodepth=4; rate_iops={rate}"), file)


@kind("same_sequence_again", "time_structure", "generator_cpu", *OWN, hidden=True)
def the_same_addresses_again(stage: Stage, chance: random.Random) -> Path:
    device = stage.served("rdelay=2ms", "cache-on-read=true", filters=["cache", "delay"])
    text = job(f"rw=randread; bs=4k; iodepth=1; randseed={chance.randrange(1, 99)}", runtime_s=3)
    stage.run(text, device)
    return stage.run(text, device)


@kind("too_few_samples", *CPU)
def too_short(stage: Stage, chance: random.Random) -> Path:
    return stage.run(job(shape(chance), runtime_s=chance.uniform(0.1, 0.4)), stage.loop())


@kind("page_cache_read", "layer_flows", *CPU)
def reads_a_fuse_client_keeps(stage: Stage, chance: random.Random) -> Path:
    delay = f"rdelay={chance.choice((2, 4, 8))}ms"
    file = stage.fuse_file(delay, filters=["delay"], mib=32, keeps_pages=True)
    call("dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none")
    return stage.run(job(f"{shape(chance)}; invalidate=0", direct=0), file)


@kind("page_cache_read", "writeback_absorbed", "layer_flows", *CPU)
def an_overlay_in_memory(stage: Stage, chance: random.Random) -> Path:
    """The file lies on a slow disk; its copy, which is used, in memory."""
    lower = stage.ext4(slow(stage, chance, 96))
    written(lower, 32)
    point = stage.overlay(lower, stage.folder / "upper")
    return stage.run(job(shape(chance, "randrw")), point / "file")


@kind("link_ceiling", "throttled", "time_structure", hidden=True)
def a_slow_link(stage: Stage, chance: random.Random) -> Path:
    device = stage.remote(f"{chance.choice((60, 100, 200))}mbit")
    return stage.run(job("rw=randread; bs=64k; iodepth=8; ramp_time=1", runtime_s=6), device)


@kind("page_cache_read", *CPU, *OWN)
def reads_under_a_memory_limit(stage: Stage, chance: random.Random) -> Path:
    """A part of the file fits into what the group may keep, and is read again and again."""
    file = stage.ext4(stage.loop(640, written=False)) / "file"
    call("dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=512", "conv=fsync", "status=none")
    drop_cache(file)
    limit = chance.choice((384, 448)) * MIB
    group = stage.cgroup("memory", memory__limit_in_bytes=str(limit))
    text = job("rw=randread; bs=64k; iodepth=1; invalidate=0; norandommap=1", direct=0)
    return stage.run(text, file, groups=[group])


# Several at once


@kind("throttled", "foreign_load", "depth_not_reached", *CPU)
def a_limit_and_other_load(stage: Stage, chance: random.Random) -> Path:
    device = stage.loop()
    number = call("lsblk", "-dno", "MAJ:MIN", device).strip()
    group = stage.cgroup("blkio", blkio__throttle__read_iops_device=f"{number} {chance.randrange(150, 900)}")
    stage.beside("sh", "-c", f"while :; do dd if={device} of=/dev/null iflag=direct bs=64k; sleep 0.05; done")
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), device, groups=[group])


@kind("generator_cpu", "page_cache_read")
def a_quota_and_the_page_cache(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(stage.loop()), 48)
    call("dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none")
    quota = chance.randrange(8, 30) * 1000
    group = stage.cgroup("cpu", cpu__cfs_period_us="100000", cpu__cfs_quota_us=str(quota))
    return stage.run(job(f"{shape(chance)}; invalidate=0", direct=0), file, groups=[group])


@kind("io_errors", "time_structure", "not_steady", "too_few_samples")
def errors_and_a_hang(stage: Stage, chance: random.Random) -> Path:
    control = "pause-control={folder}/pause.sock"
    device = stage.served(
        "rdelay=2ms", "error=EIO", "error-pread-rate=5%", control, filters=["pause", "error", "delay"]
    )
    text = job("rw=randread; bs=4k; iodepth=2; continue_on_error=io", runtime_s=7)
    return stage.run(text, device, during=lambda: stage.pause([(1.0, chance.uniform(0.5, 2))]))


# Honest


@kind(None)
def honest_reads(stage: Stage, chance: random.Random) -> Path:
    return stage.run(job(shape(chance)), slow(stage, chance))


@kind(None)
def honest_writes(stage: Stage, chance: random.Random) -> Path:
    return stage.run(job(f"{shape(chance, 'randwrite')}; refill_buffers=1"), slow(stage, chance))


@kind(None)
def honest_mix(stage: Stage, chance: random.Random) -> Path:
    text = f"{shape(chance, 'randrw')}; rwmixread={chance.randrange(30, 90)}; refill_buffers=1"
    return stage.run(job(text), slow(stage, chance))


@kind(None)
def honest_in_order(stage: Stage, chance: random.Random) -> Path:
    return stage.run(job("rw=read; bs=64k; iodepth=4"), slow(stage, chance, 128))


@kind(None)
def honest_file(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance)), 32)
    drop_cache(file)
    return stage.run(job(shape(chance)), file)


@kind(None)
def honest_durable(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance)), 32)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1; sync=1; refill_buffers=1"), file)


@kind(None, *OWN)
def honest_rate(stage: Stage, chance: random.Random) -> Path:
    rate = chance.choice((100, 500, 1500))
    return stage.run(job(f"rw=randread; bs=4k; iodepth=16; rate_iops={rate}"), stage.loop())


@kind(None, *OWN)
def honest_think_time(stage: Stage, chance: random.Random) -> Path:
    text = f"rw=randread; bs=4k; iodepth=1; thinktime={chance.randrange(2000, 9000)}"
    return stage.run(job(text), slow(stage, chance))


@kind(None)
def honest_single_server(stage: Stage, chance: random.Random) -> Path:
    device = stage.single_server(64, read=f"{chance.choice((1, 2, 4))}ms", write="4ms")
    return stage.run(job(f"rw=randread; bs=4k; iodepth={chance.choice((1, 4))}"), device)


# Its I/O is done by plain calls, one at a time, whatever depth the job asks for: that is said.
@kind(None, "depth_not_reached")
def honest_fuse(stage: Stage, chance: random.Random) -> Path:
    file = stage.fuse_file(f"rdelay={chance.choice((2, 4, 8))}ms", filters=["delay"], mib=32)
    return stage.run(job(shape(chance)), file)


@kind(None)
def honest_overlay(stage: Stage, chance: random.Random) -> Path:
    disk = stage.ext4(slow(stage, chance, 128))
    (disk / "lower").mkdir()
    written(disk / "lower", 32)
    point = stage.overlay(disk / "lower", disk / "upper")
    return stage.run(job(f"{shape(chance, 'randwrite')}; refill_buffers=1"), point / "file")


@kind(None)
def honest_raid(stage: Stage, chance: random.Random) -> Path:
    one, other = slow(stage, chance, 256), slow(stage, chance, 256)
    folder = stage.btrfs(one, other, options="nodatacow,noatime", data="raid1")
    return stage.run(job(shape(chance)), written(folder, 48))


@kind(None, *CPU)
def honest_zram(stage: Stage, chance: random.Random) -> Path:
    device = stage.zram()
    call("dd", "if=/dev/urandom", f"of={device}", "bs=1M", "oflag=direct", "count=128", "status=none")
    return stage.run(job(shape(chance)), device)


@kind(None, *CPU)
def honest_disk_in_memory(stage: Stage, chance: random.Random) -> Path:
    return stage.run(job(f"{shape(chance, chance.choice(('randread', 'read')))}"), stage.loop())


@kind(None)
def honest_xfs(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.xfs(slow(stage, chance, 400)), 96)
    drop_cache(file)
    return stage.run(job(shape(chance)), file)


@kind(None)
def honest_fsync(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance)), 32)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1; fsync=1; refill_buffers=1"), file)


@kind(None)
def honest_two_disks(stage: Stage, chance: random.Random) -> Path:
    one, other = slow(stage, chance), slow(stage, chance)
    return stage.run(job(shape(chance)).replace("{0}", "{0}:{1}"), one, other)
