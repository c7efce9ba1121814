"""Lies and honest runs as an administrator meets them, written down by somebody who had not read the rules.

Knows which parts a kind is made of and in which range its numbers lie, as `drawn` does.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from lab.parts import CGROUPS, MIB, Stage, call
from lab.verdicts import drawn
from lab.verdicts.array import Array, program
from lab.verdicts.drawn import KINDS, shape, slow
from lab.verdicts.scenarios import CPU, OWN, drop_cache, job, written

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from lab.verdicts.drawn import Drawn

    from loadstone.verdict import RuleName

READS: Final = ("randread", "read")
SPINS: Final = "while :; do :; done"


def kind(
    expected: RuleName | None, *also: RuleName, explained: tuple[str, ...] = ()
) -> Callable[[Drawn], Drawn]:
    """Add a kind of these."""
    return drawn.kind(expected, *also, explained=explained, outside=True)


def array(stage: Stage, **parts: float) -> str:
    """A disk that is an array by parameters."""
    parameters = Array(**parts)  # type: ignore[arg-type]  # the fields of it are numbers, whole or not
    return stage.plugin(program(parameters), parameters.mib)


def between(chance: random.Random, low: float, high: float) -> float:
    """A number, drawn log-uniform."""
    return float(low * (high / low) ** chance.random())


def text_file(folder: Path, mib: int) -> Path:
    """A file of lines as a log has them."""
    path = folder / "log"
    with path.open("w") as out:
        for number in range(mib * MIB // 41):
            out.write(
                f"2026-11-24 host app[{number % 977:5d}]: request of {number % 60} took {number % 89:3d} ms\n"
            )
    call("sync", path)
    drop_cache(path)
    return path


def every(stage: Stage, words: str) -> None:
    """A shell that does this again and again beside the run."""
    stage.beside("sh", "-c", f"while :; do {words}; done")


# Lies that memory and layers tell


@kind("layer_flows", *CPU)
def a_loop_in_a_loop_in_memory(stage: Stage, chance: random.Random) -> Path:
    outer = stage.loop_over(written(stage.ext4(slow(stage, chance, 160)), 96))
    inner = written(stage.ext4(outer), 32)
    device = stage.loop_over(inner, direct=False)
    call("dd", f"if={inner}", "of=/dev/null", "bs=1M", "status=none")
    return stage.run(job(shape(chance)), device)


@kind("layer_flows", "writeback_absorbed", *CPU)
def writes_to_a_loop_that_absorbs(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance, 160)), 96)
    text = job(f"{shape(chance, chance.choice(('write', 'randwrite')))}; refill_buffers=1")
    return stage.run(text, stage.loop_over(file, direct=False))


@kind("page_cache_read", "layer_flows", *CPU)
def a_data_journal_makes_direct_reads_cached(stage: Stage, chance: random.Random) -> Path:
    """ext4 does no direct I/O under data=journal, and says nothing."""
    file = written(stage.ext4(slow(stage, chance, 128), options="noatime,data=journal"), 32)
    call("dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none")
    return stage.run(job(f"{shape(chance)}; invalidate=0"), file)


@kind("page_cache_read", "layer_flows", "reducible_payload", *CPU)
def direct_reads_of_compressed_extents(stage: Stage, chance: random.Random) -> Path:
    folder = stage.btrfs(slow(stage, chance, 256), options="compress-force=zstd,noatime")
    return stage.run(job(shape(chance, chance.choice(READS))), text_file(folder, 48))


@kind("page_cache_read", *CPU)
def another_program_reads_the_file_into_memory(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance, 96)), 48)
    every(stage, f"cat {file} > /dev/null; sleep 0.3")
    return stage.run(job(shape(chance), direct=0), file)


@kind("writeback_absorbed", *CPU)
def buffered_writes_and_a_flush_at_the_end(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.xfs(slow(stage, chance, 400)), 96)
    return stage.run(job(f"{shape(chance, 'write')}; end_fsync=1", direct=0), file)


@kind("overlapping_clones", "page_cache_read", *CPU)
def clones_read_the_same_file_in_order(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance, 160)), 96)
    drop_cache(file)
    return stage.run(job(f"rw=read; bs=16k; iodepth=1; numjobs={chance.choice((3, 4, 6))}", direct=0), file)


@kind("unwritten_region", "layer_flows", *CPU)
def a_punched_file(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance, 128)), 64)
    for at in range(0, 64, 4):
        call("fallocate", "-p", "-o", f"{at}M", "-l", f"{chance.choice((2, 3))}M", file)
    return stage.run(job(shape(chance)), file)


@kind("layer_flows", "unwritten_region", *CPU)
def half_of_an_image_is_a_hole(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.xfs(slow(stage, chance, 400)), 32)
    call("truncate", "-s", f"{chance.choice((96, 128))}M", file)
    return stage.run(job(shape(chance)), stage.loop_over(file))


@kind("layer_flows", "first_pass_allocation", "time_structure", "not_steady", "foreign_load", "own_limit")
def a_copy_up_under_the_load(stage: Stage, chance: random.Random) -> Path:
    """The first write copies the whole of a file from a slow disk."""
    disk = stage.ext4(slow(stage, chance, 256))
    (disk / "lower").mkdir()
    written(disk / "lower", 96)
    point = stage.overlay(disk / "lower", disk / "upper")
    drop_cache(disk / "lower" / "file")
    rate = chance.choice((20, 50))
    return stage.run(
        job(f"rw=randwrite; bs=4k; iodepth=1; rate_iops={rate}; refill_buffers=1", direct=0), point / "file"
    )


# Lies of content and allocation


@kind("reducible_payload", "layer_flows", *CPU, *OWN, explained=("reduction",))
def a_buffer_that_compresses_on_zram(stage: Stage, chance: random.Random) -> Path:
    share = chance.choice((60, 80, 95))
    text = f"{shape(chance, 'randwrite')}; refill_buffers=1; buffer_compress_percentage={share}"
    return stage.run(job(text), stage.zram())


@kind("reducible_payload", "layer_flows", "first_pass_allocation", *CPU, *OWN, explained=("reduction",))
def zeros_through_a_loop_to_btrfs(stage: Stage, chance: random.Random) -> Path:
    folder = stage.btrfs(slow(stage, chance, 256), options="compress-force=zstd,noatime")
    device = stage.loop_over(written(folder, 64))
    return stage.run(job(f"{shape(chance, 'randwrite')}; zero_buffers=1"), device)


@kind("reducible_payload", explained=("reduction",))
def an_array_that_stores_no_zeros(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 3, 8), zero_ms=0.3)
    return stage.run(job(f"{shape(chance, 'randwrite')}; zero_buffers=1"), device)


@kind("reducible_payload", explained=("reduction",))
def an_array_that_knows_the_content(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 3, 8), known_ms=0.4)
    share = chance.choice((90, 98))
    text = f"{shape(chance, 'randwrite')}; refill_buffers=1; dedupe_percentage={share}"
    return stage.run(job(text), device)


@kind("probes", explained=("unwritten",))
def an_array_that_was_never_written(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 3, 8), written=chance.choice((0.0, 0.2)), hole_ms=0.3)
    return stage.run(job(f"{shape(chance, 'randrw')}; rwmixread=95; refill_buffers=1"), device)


@kind("probes", "time_structure", "not_steady", explained=("first_touch",))
def an_array_that_allocates(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 0.5, 2), written=0.0, new_ms=between(chance, 6, 12))
    return stage.run(job(f"{shape(chance, 'randwrite')}; refill_buffers=1"), device)


@kind("first_pass_allocation", "layer_flows", "not_steady", "time_structure", explained=("first_touch",))
def durable_writes_to_unwritten_extents(stage: Stage, chance: random.Random) -> Path:
    file = stage.ext4(slow(stage, chance, 160)) / "file"
    call("fallocate", "-l", "96M", file)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1; sync=1; refill_buffers=1"), file)


@kind(
    "first_pass_allocation",
    "layer_flows",
    "resized_on_path",
    "not_steady",
    "time_structure",
    explained=("first_touch",),
)
def writes_after_a_clone(stage: Stage, chance: random.Random) -> Path:
    """A file that shares its blocks: each first write allocates."""
    file = written(stage.xfs(slow(stage, chance, 400)), 64)
    call("cp", "--reflink=always", file, file.with_name("clone"))
    call("sync", "-f", file)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1; fsync=1; refill_buffers=1"), file)


@kind(
    "depth_not_reached",
    "first_pass_allocation",
    "layer_flows",
    "not_steady",
    "time_structure",
    explained=("concurrency_limit", "first_touch"),
)
def appending_with_a_deep_queue(stage: Stage, chance: random.Random) -> Path:
    """Direct writes beyond the end of a file go one after the other."""
    file = stage.ext4(slow(stage, chance, 400)) / "file"
    file.touch()
    depth = chance.choice((16, 32))
    text = f"rw=write; bs=16k; iodepth={depth}; size=256m; fallocate=none; refill_buffers=1"
    return stage.run(job(text), file)


# Lies of limits


@kind("throttled", "probes", "time_structure", "depth_not_reached", explained=("iops_limit",))
def a_smooth_limit_of_iops(stage: Stage, chance: random.Random) -> Path:
    device = stage.smooth(iops=int(between(chance, 100, 900)))
    return stage.run(job(f"{shape(chance)}"), device)


@kind("throttled", "probes", "time_structure", "link_ceiling", explained=("bandwidth_limit",))
def a_smooth_limit_of_bytes(stage: Stage, chance: random.Random) -> Path:
    device = stage.smooth(bps=int(between(chance, 2, 24) * MIB))
    return stage.run(job(f"rw={chance.choice(READS)}; bs=64k; iodepth={chance.choice((2, 4, 8))}"), device)


@kind("throttled", "probes", "time_structure", explained=("iops_limit", "bandwidth_limit"))
def both_limits_of_an_array(stage: Stage, chance: random.Random) -> Path:
    iops = between(chance, 100, 400)
    device = array(stage, ms=1, iops=iops, bps=iops * chance.choice((8192, 16384, 32768)))
    return stage.run(job(f"rw=randread; bs=16k; iodepth={chance.choice((4, 8))}"), device)


@kind("throttled", "probes", "time_structure", "not_steady", explained=("burst_credits", "iops_limit"))
def credits_of_an_array_run_out(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=1, iops=between(chance, 100, 200), burst_s=between(chance, 2, 6))
    return stage.run(job(f"rw=randread; bs=4k; iodepth={chance.choice((2, 4))}", runtime_s=8), device)


@kind("throttled", "probes", "time_structure", "not_steady", explained=("burst_credits",))
def credits_of_an_array_last(stage: Stage, chance: random.Random) -> Path:
    device = array(
        stage, ms=between(chance, 2, 5), iops=between(chance, 50, 100), burst_s=between(chance, 30, 60)
    )
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), device)


@kind("throttled", "layer_flows", "depth_not_reached", "time_structure", explained=("iops_limit",))
def a_limit_below_a_loop(stage: Stage, chance: random.Random) -> Path:
    disk = stage.loop(160)
    file = written(stage.ext4(disk), 64)
    stage.throttle(disk, read_iops=int(between(chance, 100, 600)))
    return stage.run(job(shape(chance)), stage.loop_over(file))


@kind("probes", "throttled", "depth_not_reached", explained=("concurrency_limit",))
def an_array_with_few_servers(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 3, 8), servers=chance.choice((2, 3)))
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), device)


@kind("link_ceiling", "throttled", "probes", "time_structure", explained=("bandwidth_limit",))
def a_link_that_small_reads_fill(stage: Stage, chance: random.Random) -> Path:
    device = stage.remote(f"{chance.choice((10, 20, 40))}mbit")
    return stage.run(job("rw=randread; bs=4k; iodepth=8; ramp_time=1"), device)


@kind(
    "throttled",
    "time_structure",
    "storage_cpu",
    "probes",
    "not_steady",
    explained=("iops_limit", "background"),
)
def a_server_with_a_cpu_quota(stage: Stage, chance: random.Random) -> Path:
    group = stage.cgroup(
        "cpu", cpu__cfs_period_us="100000", cpu__cfs_quota_us=str(chance.randrange(2, 6) * 1000)
    )
    device = stage.served(filters=["delay"])
    (group / "cgroup.procs").write_text(str(stage.server.pid))
    try:
        return stage.run(job("rw=randread; bs=4k; iodepth=8"), device)
    finally:
        (CGROUPS / "cpu" / "cgroup.procs").write_text(str(stage.server.pid))


# Lies of caches


@kind("probes", "time_structure", "not_steady", explained=("cache",))
def a_cache_of_an_array_warms_up(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 3, 6), cache_mib=32, hit_ms=0.4)
    text = f"rw=randread; bs=16k; iodepth=4; size={chance.choice((8, 16))}m; norandommap=1"
    return stage.run(job(text, runtime_s=6), device)


@kind("probes", "short_stroke", "time_structure", "not_steady", explained=("cache",))
def a_tiny_span_in_an_arrays_cache(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 3, 8), cache_mib=8, hit_ms=0.4)
    text = f"{shape(chance)}; size={chance.choice((1, 2))}m; norandommap=1; ramp_time=3"
    return stage.run(job(text), device)


@kind("probes", "time_structure", "not_steady", explained=("cache",))
def a_hot_set_in_an_arrays_cache(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 3, 8), cache_mib=16, hit_ms=0.4)
    text = f"{shape(chance)}; random_distribution=zipf:1.2; norandommap=1; ramp_time=3"
    return stage.run(job(text), device)


@kind("probes", explained=("write_cache",))
def a_write_cache_that_holds_the_run(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 4, 10), write_cache_mib=256, drain=0.1, hit_ms=0.5)
    return stage.run(job(f"{shape(chance, 'randwrite')}; refill_buffers=1"), device)


@kind("probes", "time_structure", "not_steady", explained=("write_cache",))
def a_write_cache_that_ends(stage: Stage, chance: random.Random) -> Path:
    device = array(
        stage, ms=between(chance, 8, 16), write_cache_mib=chance.choice((4, 8)), drain=0.2, hit_ms=0.5
    )
    return stage.run(job("rw=randwrite; bs=8k; iodepth=2; refill_buffers=1", runtime_s=6), device)


# Lies: the medium's places, the shape of I/O


@kind("probes", "short_stroke", explained=("position",))
def the_fast_end_of_a_disk(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 1, 3), slope=between(chance, 2, 5))
    return stage.run(job(f"{shape(chance)}; size={chance.choice((3, 6))}m; norandommap=1"), device)


@kind("probes", "resized_on_path", explained=("misaligned",))
def a_partition_off_the_grid(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 1, 3), misaligned=between(chance, 1.8, 3))
    part = call("losetup", "-f", "--show", "--direct-io=on", "-o", str(63 * 512), device)
    stage.afterwards("losetup", "-d", part)
    return stage.run(job(shape(chance)), part)


@kind("resized_on_path")
def big_requests_cut_small(stage: Stage, chance: random.Random) -> Path:
    device = slow(stage, chance)
    stage.queue(device, max_sectors_kb=str(chance.choice((8, 16, 32))))
    return stage.run(job(f"rw=randread; bs={chance.choice(('128k', '256k'))}; iodepth=2"), device)


@kind("resized_on_path", "page_cache_read", "depth_not_reached")
def read_ahead_makes_them_big(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance, 256)), 192)
    drop_cache(file)
    return stage.run(job("rw=read; bs=4k; iodepth=1", direct=0), file)


# Lies: others, and time


@kind("foreign_load", "not_steady", "time_structure", explained=("background",))
def a_database_beside_it(stage: Stage, chance: random.Random) -> Path:
    folder = stage.ext4(slow(stage, chance, 160))
    file = written(folder, 32)
    every(stage, f"dd if=/dev/zero of={folder}/wal bs=64k count=8 conv=fsync status=none; sleep 0.01")
    return stage.run(job(shape(chance)), file)


@kind("foreign_load", "background_work", "not_steady", "time_structure", explained=("background",))
def a_scrub_under_the_load(stage: Stage, chance: random.Random) -> Path:
    delay = f"rdelay={chance.choice((1, 2))}ms"
    one, other = (stage.served(delay, filters=["delay"], mib=256) for _ in range(2))
    folder = stage.btrfs(one, other, options="noatime", data="raid1")
    file = written(folder, 96)
    drop_cache(file)
    stage.afterwards("sh", "-c", f"btrfs scrub cancel {folder} 2> /dev/null || :")
    every(stage, f"btrfs scrub start -B {folder} > /dev/null")
    return stage.run(job(shape(chance)), file)


@kind("time_structure", "not_steady", "probes", "foreign_load", explained=("background",))
def a_neighbour_behind_the_disk(stage: Stage, chance: random.Random) -> Path:
    period = between(chance, 0.8, 2)
    device = array(
        stage,
        busy_every_s=period,
        busy_s=period * chance.uniform(0.2, 0.4),
        busy_factor=between(chance, 6, 20),
    )
    return stage.run(job(shape(chance), runtime_s=6), device)


@kind("time_structure", "not_steady", explained=("background",))
def a_frozen_file_system(stage: Stage, chance: random.Random) -> Path:
    """A backup that freezes it for a moment, again and again."""
    folder = stage.ext4(slow(stage, chance, 96))
    file = written(folder, 32)
    wait, hold = chance.uniform(0.8, 1.5), chance.uniform(0.2, 0.5)

    def freeze() -> None:
        for _ in range(3):
            time.sleep(wait)
            call("fsfreeze", "-f", folder)
            time.sleep(hold)
            call("fsfreeze", "-u", folder)

    return stage.run(
        job("rw=randwrite; bs=4k; iodepth=2; refill_buffers=1", runtime_s=7), file, during=freeze
    )


@kind("time_structure", "not_steady", explained=("background",))
def a_server_that_is_stopped(stage: Stage, chance: random.Random) -> Path:
    device = slow(stage, chance)
    at, length = chance.uniform(0.5, 1.5), chance.uniform(0.6, 2)

    def stop() -> None:
        time.sleep(at)
        call("kill", "-STOP", str(stage.server.pid))
        time.sleep(length)
        call("kill", "-CONT", str(stage.server.pid))

    return stage.run(job(shape(chance), runtime_s=6), device, during=stop)


@kind("time_structure", "not_steady", "throttled", explained=("burst_credits", "bandwidth_limit"))
def a_rate_that_goes_down_in_steps(stage: Stage, chance: random.Random) -> Path:
    device = stage.served("rate-file={folder}/rate", "burstiness=0.1", filters=["rate"])
    rate, left = between(chance, 30, 80), chance.uniform(0.6, 0.75)
    (stage.folder / "rate").write_text(f"{rate:.0f}M")

    def decay() -> None:
        for step in range(1, 6):
            time.sleep(1)
            (stage.folder / "rate").write_text(f"{max(1, rate * left**step):.0f}M")

    return stage.run(job("rw=randread; bs=16k; iodepth=2", runtime_s=7), device, during=decay)


@kind("network_loss", "time_structure", "not_steady", explained=("background",))
def a_lossy_network(stage: Stage, chance: random.Random) -> Path:
    device = stage.remote("1gbit")
    interface = f"{stage.folder.name[-8:]}h"
    call("tc", "qdisc", "add", "dev", interface, "root", "netem", "loss", f"{chance.choice((1, 2, 4))}%")
    return stage.run(job(f"rw=randwrite; bs=16k; iodepth={chance.choice((2, 4))}; refill_buffers=1"), device)


# Lies: the host and the job


@kind("generator_cpu", "generator_stopped", "time_structure", "not_steady", explained=("generator",))
def a_share_of_a_busy_cpu(stage: Stage, chance: random.Random) -> Path:
    """The generator has a small share of a CPU that others use up."""
    group = stage.cgroup("cpu", cpu__shares=str(chance.choice((256, 512))))
    device = stage.loop()
    for _ in range(2):
        stage.beside("taskset", "-c", "0", "sh", "-c", SPINS)
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), device, groups=[group], cpus="0")


@kind("generator_stopped", "generator_cpu", "time_structure", "not_steady", explained=("generator",))
def a_generator_frozen_again_and_again(stage: Stage, chance: random.Random) -> Path:
    group = stage.cgroup("freezer")
    length = chance.uniform(0.3, 0.8)

    def freeze() -> None:
        for _ in range(3):
            time.sleep(0.6)
            (group / "freezer.state").write_text("FROZEN")
            time.sleep(length)
            (group / "freezer.state").write_text("THAWED")

    return stage.run(job(shape(chance), runtime_s=6), slow(stage, chance), groups=[group], during=freeze)


@kind("depth_not_reached", *OWN)
def a_deep_queue_asked_of_a_synchronous_call(stage: Stage, chance: random.Random) -> Path:
    text = job(f"rw=randread; bs=4k; iodepth={chance.choice((16, 32, 64))}")
    return stage.run(text.replace("ioengine=io_uring", "ioengine=psync"), slow(stage, chance))


@kind("io_errors", "too_few_samples")
def a_file_system_that_fills_up(stage: Stage, chance: random.Random) -> Path:
    file = stage.ext4(stage.loop(96)) / "file"
    call("truncate", "-s", "256M", file)
    rate = chance.choice((500, 1500))
    return stage.run(
        job(f"rw=write; bs=64k; iodepth=4; rate_iops={rate}; continue_on_error=all; refill_buffers=1"), file
    )


@kind("too_few_samples", "not_steady", "time_structure")
def a_disk_of_half_a_second(stage: Stage, chance: random.Random) -> Path:
    delay = f"rdelay={chance.choice((400, 700))}ms"
    return stage.run(job("rw=randread; bs=4k; iodepth=1"), stage.served(delay, filters=["delay"]))


# Honest


@kind(None)
def honest_mounted_sync(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance, 96), options="noatime,sync"), 32)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1; refill_buffers=1"), file)


@kind(None)
def honest_far_away(stage: Stage, chance: random.Random) -> Path:
    device = stage.remote("1gbit")
    interface = f"{stage.folder.name[-8:]}h"
    call("tc", "qdisc", "add", "dev", interface, "root", "netem", "delay", f"{chance.choice((2, 4, 8))}ms")
    return stage.run(job(f"rw=randread; bs=4k; iodepth={chance.choice((1, 2, 4))}"), device)


@kind(None, *OWN)
def honest_poisson_rate(stage: Stage, chance: random.Random) -> Path:
    rate = chance.choice((50, 100, 200))
    text = f"rw=randread; bs=4k; iodepth=8; rate_iops={rate}; rate_process=poisson"
    return stage.run(job(text), array(stage, ms=between(chance, 1, 4)))


@kind(None, *OWN)
def honest_pauses_between_bursts(stage: Stage, chance: random.Random) -> Path:
    text = f"rw=randread; bs=4k; iodepth=1; thinktime={chance.randrange(20, 60) * 1000}; thinktime_blocks=8"
    return stage.run(job(text), slow(stage, chance))


@kind(None)
def honest_scattered_latency(stage: Stage, chance: random.Random) -> Path:
    return stage.run(
        job(shape(chance)), array(stage, ms=between(chance, 1, 6), spread=chance.uniform(0.2, 0.7))
    )


@kind(None)
def honest_loop_on_a_file(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance, 128)), 64)
    return stage.run(
        job(shape(chance, chance.choice(("randread", "randwrite"))) + "; refill_buffers=1"),
        stage.loop_over(file),
    )


@kind(None)
def honest_reads_below_an_overlay(stage: Stage, chance: random.Random) -> Path:
    disk = stage.ext4(slow(stage, chance, 128))
    (disk / "lower").mkdir()
    drop_cache(written(disk / "lower", 64))
    point = stage.overlay(disk / "lower", disk / "upper")
    return stage.run(job(shape(chance)), point / "file")


@kind(None)
def honest_commits_on_xfs(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.xfs(slow(stage, chance, 400)), 64)
    return stage.run(
        job(f"rw=randwrite; bs=8k; iodepth=1; fsync={chance.choice((4, 8))}; refill_buffers=1"), file
    )


@kind("page_cache_read")
def big_buffered_reads_that_come_round(stage: Stage, chance: random.Random) -> Path:
    """Thought to be honest; but the file is read in less time than the run has, and then from memory."""
    file = written(stage.ext4(slow(stage, chance, 400)), 320)
    drop_cache(file)
    return stage.run(job("rw=read; bs=1m; iodepth=1", direct=0), file)


@kind(None)
def honest_jobs_side_by_side(stage: Stage, chance: random.Random) -> Path:
    jobs = chance.choice((2, 4))
    text = (
        f"rw=randread; bs=8k; iodepth=2; numjobs={jobs}; size={64 // jobs}m; offset_increment={64 // jobs}m"
    )
    return stage.run(job(text), slow(stage, chance))


@kind(None)
def honest_many_sizes(stage: Stage, chance: random.Random) -> Path:
    text = "rw=randrw; bssplit=4k/60:16k/30:64k/10; iodepth=4; refill_buffers=1"
    return stage.run(job(text), array(stage, ms=between(chance, 1, 4), spread=0.3))


@kind(None)
def honest_zipf(stage: Stage, chance: random.Random) -> Path:
    text = f"{shape(chance)}; random_distribution=zipf:1.1; norandommap=1"
    return stage.run(job(text), array(stage, ms=between(chance, 1, 6), spread=0.3))


@kind(None)
def honest_beside_another_disk(stage: Stage, chance: random.Random) -> Path:
    other = slow(stage, chance)
    every(stage, f"dd if={other} of=/dev/null iflag=direct bs=64k status=none")
    return stage.run(job(shape(chance)), slow(stage, chance))


@kind(None)
def honest_limit_far_above(stage: Stage, chance: random.Random) -> Path:
    ms = between(chance, 2, 5)
    return stage.run(job("rw=randread; bs=4k; iodepth=2"), array(stage, ms=ms, iops=2000 / ms * 4))


@kind(None)
def honest_small_file(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.ext4(slow(stage, chance, 96)), 2)
    return stage.run(job(f"{shape(chance)}; norandommap=1"), file)


@kind(None)
def honest_incompressible_on_btrfs(stage: Stage, chance: random.Random) -> Path:
    file = written(stage.btrfs(slow(stage, chance, 256), options="compress=zstd,noatime"), 64)
    drop_cache(file)
    return stage.run(job(shape(chance)), file)


OUTSIDE: Final = tuple(name for name, one in KINDS.items() if one.outside)
