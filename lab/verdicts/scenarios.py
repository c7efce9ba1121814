"""The labelled runs: what is staged, and what a right verdict says of it.

A lie is a run whose number is not the storage's at work, with the rule that has to name it. An
honest run has none. `also` are findings that are true beside the expected one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.parts import MIB, Stage, call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadstone.verdict import RuleName

    Staged = Callable[[Stage], Path]


@dataclass(frozen=True)
class Scenario:
    """One labelled run. `expected` is None for an honest one."""

    name: str
    story: str
    stage: Staged
    expected: RuleName | None = None
    also: tuple[RuleName, ...] = ()
    explained: tuple[str, ...] = ()
    """Explanations that probes may rightly give it; where it is expected of them."""


SCENARIOS: list[Scenario] = []
CPU: tuple[RuleName, ...] = ("generator_cpu",)
"""A disk in memory is as fast as the CPUs: that they were the limit is always true beside."""


OWN: tuple[RuleName, ...] = ("own_limit",)
"""A job that keeps the rate it asked for is limited by that, whatever the storage could do."""


def lie(story: str, expected: RuleName, *also: RuleName) -> Callable[[Staged], Staged]:
    def add(stage: Staged) -> Staged:
        SCENARIOS.append(Scenario(stage.__name__, story, stage, expected, also))
        return stage

    return add


def honest(story: str, *also: RuleName) -> Callable[[Staged], Staged]:
    def add(stage: Staged) -> Staged:
        SCENARIOS.append(Scenario(stage.__name__, story, stage, None, also))
        return stage

    return add


def job(lines: str, *, runtime_s: float = 4, name: str = "j", direct: int = 1) -> str:
    """A job file of one job on the first target; `lines` separated by semicolons."""
    options = [
        "ioengine=io_uring",
        "filename={0}",
        f"direct={direct}",
        "time_based=1",
        f"runtime={runtime_s:g}",
        *(line.strip() for line in lines.split(";")),
    ]
    return "\n".join([f"[{name}]", *options, ""])


def written(folder: Path, mib: int) -> Path:
    """A file that is written whole, with data that does not compress, and lies on its disk."""
    path = folder / "file"
    call("dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={mib}", "conv=fsync", "status=none")
    return path


def drop_cache(path: Path) -> None:
    call("dd", f"if={path}", "iflag=nocache", "count=0", "status=none")


# Lies: memory in the storage's place


@lie("random reads of a file that lies in the page cache, direct=0", "page_cache_read", *CPU)
def cached_reads(stage: Stage) -> Path:
    file = written(stage.ext4(stage.loop()), 64)
    call("dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none")
    return stage.run(job("rw=randread; bs=4k; iodepth=1; invalidate=0", direct=0), file)


@lie("half of the file in the page cache, half not", "page_cache_read", *CPU, *OWN)
def half_cached_reads(stage: Stage) -> Path:
    file = written(stage.ext4(stage.served("rdelay=1ms", filters=["delay"])), 48)
    drop_cache(file)
    call("dd", f"if={file}", "of=/dev/null", "bs=1M", "count=24", "status=none")
    text = job("rw=randread; bs=4k; iodepth=1; invalidate=0; rate_iops=300", direct=0)
    return stage.run(text, file)


@lie("random reads of a file on tmpfs, direct=1", "page_cache_read", *CPU)
def tmpfs_reads(stage: Stage) -> Path:
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), stage.backing(64))


@lie("random writes to a file on tmpfs", "writeback_absorbed", *CPU)
def tmpfs_writes(stage: Stage) -> Path:
    return stage.run(job("rw=randwrite; bs=4k; iodepth=4"), stage.backing(64))


@lie("sequential buffered writes, no flush, less than the memory takes", "writeback_absorbed", *CPU)
def buffered_writes(stage: Stage) -> Path:
    file = written(stage.ext4(stage.served("wdelay=5ms", filters=["delay"])), 48)
    return stage.run(job("rw=write; bs=64k; iodepth=1", direct=0), file)


@lie("random buffered overwrites of the same small file", "writeback_absorbed", *CPU)
def buffered_overwrites(stage: Stage) -> Path:
    file = written(stage.ext4(stage.loop()), 32)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1", direct=0), file)


# Lies: space that was never written


@lie("direct reads of a sparse file on ext4", "unwritten_region", *CPU)
def sparse_file(stage: Stage) -> Path:
    file = stage.ext4(stage.loop()) / "file"
    call("truncate", "-s", "64M", file)
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), file)


@lie("direct reads of a file that was allocated with fallocate and never written", "unwritten_region", *CPU)
def allocated_file(stage: Stage) -> Path:
    file = stage.ext4(stage.loop()) / "file"
    call("fallocate", "-l", "64M", file)
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), file)


@lie("reads of a loop device over a file that is all hole", "unwritten_region", *CPU)
def sparse_disk(stage: Stage) -> Path:
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), stage.loop(128, written=False))


@lie("direct writes to a new sparse file on ext4: each allocates", "first_pass_allocation", *CPU, *OWN)
def first_pass(stage: Stage) -> Path:
    file = stage.ext4(stage.loop(512)) / "file"
    call("truncate", "-s", "400M", file)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=4; rate_iops=5000"), file)


@lie("direct writes to a file from fallocate: each converts an extent", "first_pass_allocation", *CPU, *OWN)
def first_pass_unwritten(stage: Stage) -> Path:
    file = stage.ext4(stage.loop(512)) / "file"
    call("fallocate", "-l", "400M", file)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=4; rate_iops=5000"), file)


# Lies: data that is not there


@lie("zeros written to zram", "reducible_payload", *CPU)
def zeros_on_zram(stage: Stage) -> Path:
    return stage.run(job("rw=randwrite; bs=4k; iodepth=4; zero_buffers=1"), stage.zram())


@lie("one short pattern written to btrfs with zstd", "reducible_payload", "first_pass_allocation", *CPU, *OWN)
def pattern_on_btrfs(stage: Stage) -> Path:
    folder = stage.btrfs(stage.loop(256), options="compress-force=zstd,noatime")
    file = written(folder, 64)
    return stage.run(job("rw=write; bs=128k; iodepth=4; buffer_pattern=0xdeadbeef; rate_iops=300"), file)


# Lies: something lets only so much through


@lie("a control group that allows 400 reads per second", "throttled", "depth_not_reached")
def cgroup_read_iops(stage: Stage) -> Path:
    device = stage.loop()
    number = call("lsblk", "-dno", "MAJ:MIN", device).strip()
    group = stage.cgroup("blkio", blkio__throttle__read_iops_device=f"{number} 400")
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), device, groups=[group])


@lie("a control group that allows 8 MiB/s of writes", "throttled", "depth_not_reached")
def cgroup_write_bandwidth(stage: Stage) -> Path:
    device = stage.loop()
    number = call("lsblk", "-dno", "MAJ:MIN", device).strip()
    group = stage.cgroup("blkio", blkio__throttle__write_bps_device=f"{number} {8 * MIB}")
    return stage.run(job("rw=randwrite; bs=64k; iodepth=2"), device, groups=[group])


@lie("a disk that a limiter out of sight holds at 2 MiB/s", "throttled")
def limited_disk(stage: Stage) -> Path:
    device = stage.served("rate=16M", "burstiness=0.3", filters=["rate"])
    return stage.run(job("rw=randread; bs=16k; iodepth=1; ramp_time=1", runtime_s=6), device)


@lie("a disk that is fast until its burst allowance is used up", "throttled", "not_steady")
def burst_then_limit(stage: Stage) -> Path:
    device = stage.served("rate-file={folder}/rate", "burstiness=0.1", filters=["rate"])
    (stage.folder / "rate").write_text("64M")

    def slow_down() -> None:
        time.sleep(2.0)
        (stage.folder / "rate").write_text("16M")

    return stage.run(job("rw=randread; bs=16k; iodepth=1", runtime_s=6), device, during=slow_down)


# Lies: the load generator


@lie("a load generator with a CPU quota of 15 % of one processor", "generator_cpu")
def cpu_quota(stage: Stage) -> Path:
    group = stage.cgroup("cpu", cpu__cfs_period_us="100000", cpu__cfs_quota_us="15000")
    return stage.run(job("rw=randread; bs=4k; iodepth=8"), stage.loop(), groups=[group])


@lie("a load generator that shares its one CPU with six other programs", "generator_cpu")
def shared_processor(stage: Stage) -> Path:
    device = stage.loop()
    stage.spin(6, cpu=0)
    return stage.run(job("rw=randread; bs=4k; iodepth=8"), device, cpus="0")


@lie("4,000 I/Os per second asked of a disk that does about 450", "rate_not_reached")
def rate_too_high(stage: Stage) -> Path:
    device = stage.served("rdelay=2ms", filters=["delay"], connections=1)
    return stage.run(job("rw=randread; bs=4k; iodepth=1; rate_iops=4000"), device)


@lie("64 outstanding asked of a device whose queue takes 4", "depth_not_reached")
def short_queue(stage: Stage) -> Path:
    device = stage.served("rdelay=4ms", filters=["delay"])
    stage.queue(device, nr_requests="4")
    return stage.run(job("rw=randread; bs=4k; iodepth=64"), device)


# Lies: what is beside, and what goes wrong


@lie("another program reads from the same device", "foreign_load", *CPU)
def second_reader(stage: Stage) -> Path:
    device = stage.served("rdelay=1ms", filters=["delay"])
    stage.beside("sh", "-c", f"while :; do dd if={device} of=/dev/null bs=64k iflag=direct; done")
    return stage.run(job("rw=randread; bs=4k; iodepth=1"), device)


@lie("another program writes to the same device", "foreign_load", *CPU)
def second_writer(stage: Stage) -> Path:
    device = stage.served("wdelay=2ms", filters=["delay"])
    stage.beside("sh", "-c", f"while :; do dd if=/dev/zero of={device} bs=16k oflag=direct; done")
    return stage.run(job("rw=randread; bs=4k; iodepth=1"), device)


@lie("four clones read the same part of the disk", "overlapping_clones", "short_stroke", *CPU)
def same_part(stage: Stage) -> Path:
    device = stage.served("rdelay=1ms", filters=["delay"])
    return stage.run(job("rw=read; bs=64k; iodepth=1; numjobs=4"), device)


@lie("reads fail for a second in the middle", "io_errors")
def errors_in_the_middle(stage: Stage) -> Path:
    device = stage.served(
        "error=EIO", "error-pread-rate=50%", "error-file={folder}/fail", "rdelay=1ms",
        filters=["error", "delay"],
    )  # fmt: skip

    def fail() -> None:
        (stage.folder / "fail").touch()
        time.sleep(1.0)
        (stage.folder / "fail").unlink()

    text = job("rw=randread; bs=4k; iodepth=1; continue_on_error=io")
    return stage.run(text, device, during=fail)


@lie("the disk goes away in the middle", "io_errors", "too_few_samples")
def vanishing_disk(stage: Stage) -> Path:
    device = stage.served("rdelay=1ms", filters=["delay"])
    return stage.run(job("rw=randread; bs=4k; iodepth=1"), device, during=stage.server_dies)


@lie("a run of 300 ms", "too_few_samples", *CPU)
def too_short(stage: Stage) -> Path:
    return stage.run(job("rw=randread; bs=4k; iodepth=1", runtime_s=0.3), stage.loop())


@lie("60 I/Os in all", "too_few_samples")
def too_few(stage: Stage) -> Path:
    device = stage.served("rdelay=50ms", filters=["delay"], connections=1)
    return stage.run(job("rw=randread; bs=4k; iodepth=1", runtime_s=3), device)


@lie("4 KiB I/Os in order, which are merged on the way", "resized_on_path", *CPU)
def merged(stage: Stage) -> Path:
    device = stage.served("rdelay=2ms", filters=["delay"])
    return stage.run(
        job("rw=read; bs=4k; iodepth=32; iodepth_batch=16; iodepth_batch_complete_min=16"), device
    )


@lie("a disk that becomes slower and slower", "not_steady")
def slower_and_slower(stage: Stage) -> Path:
    device = stage.served("rate-file={folder}/rate", "burstiness=0.05", filters=["rate"])
    (stage.folder / "rate").write_text("160M")

    def slow_down() -> None:
        for rate in range(150, 50, -10):
            (stage.folder / "rate").write_text(f"{rate}M")
            time.sleep(0.5)

    return stage.run(job("rw=randread; bs=16k; iodepth=1", runtime_s=6), device, during=slow_down)


@lie(
    "the second of two runs over the same addresses, through a cache",
    "same_sequence_again",
    *OWN,
)
def same_sequence(stage: Stage) -> Path:
    device = stage.served("rdelay=2ms", "cache-on-read=true", filters=["cache", "delay"])
    sheet = stage.folder / "sheet.toml"
    sheet.write_text('format = 1\nname = "a disk with a cache"\ncache = "1 GiB"\n')
    text = job("rw=randread; bs=4k; iodepth=1; randseed=7; rate_iops=200")
    stage.run(text, device, options=["--spec", str(sheet)])
    return stage.run(text, device, options=["--spec", str(sheet)])


@lie("half reads, half writes asked; the writes have a rate of their own and stay behind", "workload_drift")
def drifted_mix(stage: Stage) -> Path:
    text = job("rw=randrw; rwmixread=50; bs=4k; iodepth=4; rate_iops=,200")
    return stage.run(text, stage.loop())


# Lies below the nearest device, over time, and of the generator itself


@lie("a loop device without direct I/O, whose file lies in the page cache", "layer_flows", *CPU)
def loop_through_the_page_cache(stage: Stage) -> Path:
    file = written(stage.ext4(stage.served("rdelay=2ms", filters=["delay"], mib=96)), 64)
    device = stage.loop_over(file, direct=False)
    call("dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none")
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), device)


@lie("a loop device over a file that is all hole, on a slow disk", "layer_flows", "unwritten_region", *CPU)
def holes_below_a_loop(stage: Stage) -> Path:
    file = stage.ext4(stage.served("rdelay=2ms", filters=["delay"], mib=96)) / "img"
    call("truncate", "-s", "64M", file)
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), stage.loop_over(file))


@lie("ext4 that keeps data in its journal, too: each write is written twice", "layer_flows", "not_steady")
def data_in_the_journal(stage: Stage) -> Path:
    folder = stage.ext4(
        stage.served("wdelay=1ms", filters=["delay"], mib=128), options="noatime,data=journal"
    )
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1; fsync=1"), written(folder, 32))


@lie("a disk that hangs once for three seconds", "time_structure", "not_steady")
def one_hang(stage: Stage) -> Path:
    device = stage.pausing()
    text = job("rw=randread; bs=4k; iodepth=4", runtime_s=8)
    return stage.run(text, device, during=lambda: stage.pause([(2.0, 3.0)]))


@lie("a disk that stalls for 0.4 s every two seconds", "time_structure", "not_steady")
def stalls_at_regular_times(stage: Stage) -> Path:
    device = stage.pausing()
    text = job("rw=randread; bs=4k; iodepth=4", runtime_s=12)
    return stage.run(text, device, during=lambda: stage.pause([(1.6, 0.4)] * 5))


@lie("a load generator that is stopped for a second", "generator_stopped", "not_steady")
def stopped_generator(stage: Stage) -> Path:
    device = stage.served("rdelay=2ms", filters=["delay"])
    text = job("rw=randread; bs=4k; iodepth=4", runtime_s=5)
    return stage.run(text, device, during=lambda: stage.stop_engine(1.0))


@lie("a job that pauses 5 ms after each I/O", "own_limit")
def think_time(stage: Stage) -> Path:
    text = job("rw=randread; bs=4k; iodepth=1; thinktime=5000")
    return stage.run(text, stage.served("rdelay=1ms", filters=["delay"]))


# What verdicts were wrong about once, and on which parts


@lie("direct reads of a compressed btrfs file that lies in the page cache", "page_cache_read", *CPU)
def compressed_reads_in_memory(stage: Stage) -> Path:
    file = stage.btrfs(stage.loop(256), options="compress-force=zstd,noatime") / "file"
    call("dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=64", "conv=fsync", "status=none")
    call("dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none")
    return stage.run(job("rw=randread; bs=4k; iodepth=4; invalidate=0"), file)


@lie("reads of 64 KiB on a device that takes 4 KiB at a time", "resized_on_path", "too_few_samples", *CPU)
def sixteen_pieces(stage: Stage) -> Path:
    device = stage.served("rdelay=1ms", filters=["delay"])
    stage.queue(device, max_sectors_kb="4")
    return stage.run(job("rw=randread; bs=64k; iodepth=4"), device)


@lie("reads of a zram disk that was never written", "unwritten_region", *CPU)
def never_written_zram(stage: Stage) -> Path:
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), stage.zram())


@lie("a third of the reads fail", "io_errors", "too_few_samples", "depth_not_reached", *CPU)
def a_third_fails(stage: Stage) -> Path:
    device = stage.served("error=EIO", "error-pread-rate=30%", "rdelay=1ms", filters=["error", "delay"])
    return stage.run(job("rw=randread; bs=4k; iodepth=2; continue_on_error=io"), device)


@honest("depth 4 on a slow device whose queue takes many more")
def small_depth_of_a_long_queue(stage: Stage) -> Path:
    device = stage.served("rdelay=3ms", filters=["delay"])
    stage.queue(device, scheduler="mq-deadline")
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), device)


# Honest runs


@honest("random reads of a disk with 10 ms, depth 4")
def slow_random_reads(stage: Stage) -> Path:
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), stage.served("rdelay=10ms", filters=["delay"]))


@honest("random writes to a disk with 8 ms, depth 4")
def slow_random_writes(stage: Stage) -> Path:
    return stage.run(job("rw=randwrite; bs=4k; iodepth=4"), stage.served("wdelay=8ms", filters=["delay"]))


@honest("sequential 64 KiB reads of a disk with 8 ms")
def slow_sequential_reads(stage: Stage) -> Path:
    return stage.run(job("rw=read; bs=64k; iodepth=4"), stage.served("rdelay=8ms", filters=["delay"]))


@honest("70 % reads on a disk with 6 and 12 ms")
def slow_mix(stage: Stage) -> Path:
    device = stage.served("rdelay=6ms", "wdelay=12ms", filters=["delay"])
    return stage.run(job("rw=randrw; rwmixread=70; bs=8k; iodepth=4"), device)


@honest("2,000 paced reads per second from a disk in memory", *OWN)
def paced_reads(stage: Stage) -> Path:
    return stage.run(job("rw=randread; bs=4k; iodepth=16; rate_iops=2000"), stage.loop())


@honest("1,000 writes per second with random gaps to a disk in memory", *OWN)
def paced_writes(stage: Stage) -> Path:
    text = job("rw=randwrite; bs=4k; iodepth=32; rate_iops=1000; rate_process=poisson")
    return stage.run(text, stage.loop())


@honest("paced overwrites of a written file on ext4", *OWN)
def overwrites(stage: Stage) -> Path:
    file = written(stage.ext4(stage.loop()), 64)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=4; rate_iops=1000"), file)


@honest("direct reads of a written file on ext4, a disk with 6 ms")
def file_reads(stage: Stage) -> Path:
    file = written(stage.ext4(stage.served("rdelay=6ms", filters=["delay"])), 32)
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), file)


@honest("durable writes (O_SYNC) to a file on ext4, a disk with 6 ms")
def durable_writes(stage: Stage) -> Path:
    file = written(stage.ext4(stage.served("wdelay=6ms", filters=["delay"])), 32)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1; sync=1"), file)


@honest("one buffered pass in order over a file that is not in memory", *OWN)
def cold_buffered_pass(stage: Stage) -> Path:
    file = written(stage.ext4(stage.loop(256)), 160)
    text = job("rw=read; bs=128k; iodepth=1; rate=40m; size=160m", direct=0)
    return stage.run(text.replace("time_based=1\n", ""), file)


@honest("incompressible data to zram, paced", *OWN)
def random_data_on_zram(stage: Stage) -> Path:
    text = job("rw=randwrite; bs=4k; iodepth=4; refill_buffers=1; rate_iops=2000")
    return stage.run(text, stage.zram())


@honest("paced reads and overwrites on btrfs without copy on write", *OWN)
def paced_on_btrfs(stage: Stage) -> Path:
    folder = stage.btrfs(stage.loop(256), options="nodatacow,noatime")
    file = written(folder, 64)
    return stage.run(job("rw=randrw; bs=4k; iodepth=4; rate_iops=400"), file)


@honest("two jobs at the same time on two disks", *OWN)
def two_disks(stage: Stage) -> Path:
    one, other = stage.loop(), stage.loop()
    first = job("rw=randread; bs=4k; iodepth=4; rate_iops=1000", name="one")
    second = job("rw=randwrite; bs=16k; iodepth=4; rate_iops=500", name="other").replace("{0}", "{1}")
    return stage.run(first + second, one, other)


@honest("128 KiB reads of a disk in memory, as fast as it goes", *CPU)
def fast_large_reads(stage: Stage) -> Path:
    return stage.run(job("rw=randread; bs=128k; iodepth=2"), stage.loop())
