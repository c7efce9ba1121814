"""A second set of lies and honest runs from outside, written down before the rules were changed for them.

Knows which parts a kind is made of and in which range its numbers lie, as `outside` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lab.parts import MIB, Stage, call
from lab.verdicts.drawn import KINDS, shape, slow
from lab.verdicts.outside import OUTSIDE, array, between, every, kind
from lab.verdicts.scenarios import CPU, OWN, drop_cache, job, written

if TYPE_CHECKING:
    import random
    from pathlib import Path


# Lies of queues


@kind("depth_not_reached", "probes", explained=("concurrency_limit",))
def a_deep_queue_in_user_space(stage: Stage, chance: random.Random) -> Path:
    """A file of FUSE: what it asks of the kernel is done one after the other."""
    file = stage.fuse_file(f"rdelay={chance.choice((4, 8))}ms", filters=["delay"])
    return stage.run(job(f"rw=randread; bs=4k; iodepth={chance.choice((32, 64, 128))}"), file)


@kind("depth_not_reached", *OWN)
def a_queue_that_is_emptied(stage: Stage, chance: random.Random) -> Path:
    """It is filled again only when all of it has come back, and latencies differ."""
    depth = chance.choice((16, 32))
    text = f"rw=randread; bs=4k; iodepth={depth}; iodepth_low=1; iodepth_batch={depth}"
    return stage.run(job(text), array(stage, ms=between(chance, 2, 6), spread=1.0))


@kind("depth_not_reached", *OWN)
def a_synchronous_call_with_clones(stage: Stage, chance: random.Random) -> Path:
    text = job(f"rw=randread; bs=8k; iodepth={chance.choice((8, 32))}; numjobs={chance.choice((2, 3))}")
    return stage.run(text.replace("ioengine=io_uring", "ioengine=pvsync"), slow(stage, chance))


@kind("depth_not_reached", "first_pass_allocation", "writeback_absorbed", explained=("concurrency_limit",))
def synchronous_writers_of_one_file(stage: Stage, chance: random.Random) -> Path:
    """Each waits for the lock of the inode while another one writes and flushes."""
    file = written(stage.ext4(slow(stage, chance, 96)), 32)
    text = f"rw=randwrite; bs=4k; iodepth=1; numjobs={chance.choice((4, 8))}; sync=1; refill_buffers=1"
    return stage.run(job(text, direct=0), file)


# Lies of limits


@kind(
    "throttled",
    "probes",
    "time_structure",
    "link_ceiling",
    "depth_not_reached",
    explained=("bandwidth_limit",),
)
def a_limited_file_of_user_space(stage: Stage, chance: random.Random) -> Path:
    """No device below it counts anything."""
    (file,) = stage.limited(bps=int(between(chance, 2, 16) * MIB))
    return stage.run(job(f"rw=randread; bs={chance.choice(('16k', '32k'))}; iodepth=4"), file)


@kind("throttled", "probes", "time_structure", explained=("shared_limit", "iops_limit"))
def two_disks_under_one_limit(stage: Stage, chance: random.Random) -> Path:
    one, other = map(stage.loop_over, stage.limited(count=2, iops=int(between(chance, 200, 1500))))
    text = job(f"rw=randread; bs=4k; iodepth={chance.choice((4, 8))}").replace("{0}", "{0}:{1}")
    return stage.run(text, one, other)


@kind("throttled", "time_structure", "not_steady", "probes", explained=("burst_credits", "iops_limit"))
def credits_for_two_seconds(stage: Stage, chance: random.Random) -> Path:
    iops = int(between(chance, 100, 300))
    (file,) = stage.limited(iops=iops, iops_max=iops * chance.choice((3, 5)), iops_max_length=2)
    return stage.run(job("rw=randread; bs=4k; iodepth=4", runtime_s=7), stage.loop_over(file))


@kind("throttled", "probes", "time_structure", explained=("burst_credits",))
def credits_that_outlast_the_run(stage: Stage, chance: random.Random) -> Path:
    iops = int(between(chance, 100, 300))
    (file,) = stage.limited(iops=iops, iops_max=iops * 4, iops_max_length=8)
    return stage.run(job("rw=randread; bs=4k; iodepth=4"), stage.loop_over(file))


@kind("throttled", "probes", "time_structure", "link_ceiling", explained=("bandwidth_limit",))
def writes_that_fill_a_link(stage: Stage, chance: random.Random) -> Path:
    device = stage.remote("1gbit")
    call("tc", "qdisc", "add", "dev", f"{stage.folder.name[-8:]}h", "root", "tbf",
         "rate", f"{chance.choice((20, 40, 80))}mbit", "burst", "64kb", "latency", "200ms")  # fmt: skip
    return stage.run(job("rw=randwrite; bs=32k; iodepth=4; refill_buffers=1"), device)


# Lies of caches and content


@kind("probes", "short_stroke", "same_sequence_again", explained=("cache",))
def a_span_that_the_server_keeps(stage: Stage, chance: random.Random) -> Path:
    """The server read it before the run; the rest of its disk is slow."""
    delay = f"rdelay={chance.choice((3, 5, 8))}ms"
    device = stage.served(delay, "cache-on-read=true", filters=["cache", "delay"])
    mib = chance.choice((2, 4, 6))
    call("dd", f"if={device}", "of=/dev/null", "bs=64k", f"count={mib * 16}", "iflag=direct", "status=none")
    return stage.run(job(f"{shape(chance)}; size={mib}m; norandommap=1"), device)


@kind("page_cache_read", "writeback_absorbed", *CPU, *OWN)
def checks_of_what_was_just_written(stage: Stage, chance: random.Random) -> Path:
    """Verification reads what it wrote from the page cache."""
    file = written(stage.ext4(slow(stage, chance, 96)), 32)
    text = f"rw=write; bs={chance.choice(('16k', '64k'))}; iodepth=1; size=24m; verify=crc32c; do_verify=1"
    return stage.run(job(text, direct=0), file)


@kind("volatile_ack", "probes", explained=("write_cache",))
def flushes_that_are_not_sent(stage: Stage, chance: random.Random) -> Path:
    """ext4 without barriers over a disk whose flush takes its time."""
    device = array(stage, ms=between(chance, 1, 2), flush_ms=between(chance, 20, 50))
    file = written(stage.ext4(device, options="noatime,nobarrier"), 24)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1; fsync=1; refill_buffers=1"), file)


@kind("probes", "first_pass_allocation", "time_structure", "not_steady", explained=("first_touch",))
def a_virtual_disk_that_grows(stage: Stage, chance: random.Random) -> Path:
    file = stage.qcow2(stage.ext4(slow(stage, chance, 160)))
    text = f"rw=randwrite; bs={chance.choice(('4k', '8k'))}; iodepth=2; refill_buffers=1"
    return stage.run(job(text), stage.loop_over(file))


@kind("probes", "unwritten_region", "layer_flows", explained=("unwritten",))
def a_virtual_disk_with_nothing_in_it(stage: Stage, chance: random.Random) -> Path:
    file = stage.qcow2(stage.ext4(slow(stage, chance, 160)))
    text = f"rw=randrw; rwmixread={chance.choice((95, 97))}; bs=4k; iodepth=2; refill_buffers=1"
    return stage.run(job(text), stage.loop_over(file))


@kind("page_cache_read", "unwritten_region", "layer_flows", *CPU)
def an_inline_file_of_btrfs(stage: Stage, chance: random.Random) -> Path:
    """So small that it lies in the tree, which is kept in memory; direct reads do not help."""
    folder = stage.btrfs(slow(stage, chance, 256), options="noatime,max_inline=2048")
    file = folder / "file"
    call("dd", "if=/dev/urandom", f"of={file}", "bs=1500", "count=1", "conv=fsync", "status=none")
    return stage.run(job("rw=randread; bs=512; iodepth=1; size=1024; norandommap=1"), file)


@kind("first_pass_allocation", "layer_flows", "resized_on_path", "not_steady", "time_structure",
      explained=("first_touch",))  # fmt: skip
def writes_under_a_snapshot(stage: Stage, chance: random.Random) -> Path:
    """A file that is not copied on write is, once, after a snapshot."""
    folder = stage.btrfs(slow(stage, chance, 256), options="noatime,nodatacow")
    call("btrfs", "subvolume", "create", folder / "data")
    file = written(folder / "data", 48)
    call("btrfs", "subvolume", "snapshot", folder / "data", folder / "kept")
    call("sync", "-f", file)
    return stage.run(job("rw=randwrite; bs=4k; iodepth=1; fsync=4; refill_buffers=1"), file)


# Lies of places, state and others


@kind("probes", "short_stroke", explained=("position",))
def the_slow_end_of_a_disk(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 1, 2), slope=between(chance, 2, 4))
    return stage.run(job(f"{shape(chance)}; offset=56m; size=8m; norandommap=1"), device)


@kind("layer_flows", "background_work", "state_differs", explained=("background",))
def a_mirror_that_lost_a_half(stage: Stage, chance: random.Random) -> Path:
    one, other = slow(stage, chance, 256), stage.loop(256)
    folder = stage.btrfs(one, other, options="noatime", data="raid1")
    written(folder, 48)
    call("umount", folder)
    call("wipefs", "-a", other)
    call("btrfs", "device", "scan", "--forget")
    call("mount", "-o", "degraded,noatime", one, folder)
    drop_cache(folder / "file")
    return stage.run(job(shape(chance)), folder / "file")


@kind("time_structure", "not_steady", "probes", "depth_not_reached", explained=("background",))
def another_host_now_and_then(stage: Stage, chance: random.Random) -> Path:
    """A second client of an array with few servers, in bursts."""
    device = array(stage, ms=between(chance, 2, 4), servers=2)
    other = stage.another_client()
    read = f"dd if={other} of=/dev/null bs=64k iflag=direct count=100 status=none"
    pause = chance.uniform(0.7, 1.2)
    every(stage, f"({read} & {read} & {read} & {read} & wait); sleep {pause:.2f}")
    return stage.run(job("rw=randread; bs=4k; iodepth=2", runtime_s=7), device)


@kind("foreign_load", "throttled", "background_work", *CPU, explained=("background",))
def a_bandwidth_that_two_groups_share(stage: Stage, chance: random.Random) -> Path:
    device = stage.loop()
    stage.throttle(device, read_bps=int(between(chance, 8, 24) * MIB))
    every(stage, f"dd if={device} of=/dev/null iflag=direct bs=64k status=none")
    return stage.run(job("rw=randread; bs=16k; iodepth=4"), device)


# Honest


@kind(None)
def writes_smaller_than_a_block(stage: Stage, chance: random.Random) -> Path:
    """Thought to be a lie: one at a time on ext4. This kernel lets all of them in, and the disk had them."""
    file = written(stage.ext4(slow(stage, chance, 96)), 32)
    depth = chance.choice((8, 16, 32))
    return stage.run(job(f"rw=randwrite; bs=2k; iodepth={depth}; refill_buffers=1"), file)


@kind(None)
def honest_stripe(stage: Stage, chance: random.Random) -> Path:
    folder = stage.btrfs(slow(stage, chance, 256), slow(stage, chance, 256), data="raid0")
    file = written(folder, 48)
    drop_cache(file)
    return stage.run(job(shape(chance)), file)


@kind(None)
def honest_virtual_disk(stage: Stage, chance: random.Random) -> Path:
    file = stage.qcow2(stage.ext4(slow(stage, chance, 160)), 48)
    device = stage.loop_over(file)
    call("dd", "if=/dev/urandom", f"of={device}", "bs=1M", "count=48", "oflag=direct", "status=none")
    text = f"{shape(chance, chance.choice(('randread', 'randwrite')))}; refill_buffers=1"
    return stage.run(job(text), device)


@kind(None)
def honest_across_a_network(stage: Stage, chance: random.Random) -> Path:
    return stage.run(job(f"rw=randread; bs=4k; iodepth={chance.choice((1, 2))}"), stage.remote("1gbit"))


@kind(None)
def honest_libaio(stage: Stage, chance: random.Random) -> Path:
    text = job(f"{shape(chance, 'randrw')}; rwmixread=70; refill_buffers=1")
    return stage.run(text.replace("ioengine=io_uring", "ioengine=libaio"), slow(stage, chance))


@kind(None)
def honest_synchronous_clones(stage: Stage, chance: random.Random) -> Path:
    text = job(f"rw=randread; bs=4k; iodepth=1; numjobs={chance.choice((2, 4))}; thread=1")
    return stage.run(text.replace("ioengine=io_uring", "ioengine=psync"), slow(stage, chance))


@kind(None)
def honest_dear_flushes(stage: Stage, chance: random.Random) -> Path:
    device = array(stage, ms=between(chance, 1, 3), flush_ms=between(chance, 2, 12))
    return stage.run(
        job(f"rw=randwrite; bs=4k; iodepth=1; fdatasync={chance.choice((1, 4))}; refill_buffers=1"), device
    )


@kind(None)
def honest_the_middle(stage: Stage, chance: random.Random) -> Path:
    text = f"{shape(chance)}; offset={chance.choice((16, 24))}m; size=24m"
    return stage.run(job(text), array(stage, ms=between(chance, 1, 5), spread=0.3))


@kind(None)
def honest_mirror_writes(stage: Stage, chance: random.Random) -> Path:
    folder = stage.btrfs(slow(stage, chance, 256), slow(stage, chance, 256), data="raid1",
                         options="noatime,nodatacow")  # fmt: skip
    text = f"{shape(chance, 'randwrite')}; refill_buffers=1"
    return stage.run(job(text), written(folder, 48))


@kind(None)
def honest_two_modes(stage: Stage, chance: random.Random) -> Path:
    """A mix of reads and far slower writes."""
    device = stage.served(
        f"rdelay={chance.choice((1, 2))}ms", f"wdelay={chance.choice((8, 12))}ms", filters=["delay"]
    )
    return stage.run(job("rw=randrw; rwmixread=70; bs=4k; iodepth=4; refill_buffers=1"), device)


@kind(None, *OWN)
def honest_credits_never_needed(stage: Stage, chance: random.Random) -> Path:
    (file,) = stage.limited(iops=4000, iops_max=8000, iops_max_length=2)
    # One I/O at a time keeps far below it.
    return stage.run(
        job(f"rw=randread; bs=4k; iodepth=1; thinktime={chance.randrange(2, 6) * 1000}"),
        stage.loop_over(file),
    )


AGAIN: Final = tuple(name for name, one in KINDS.items() if one.outside and name not in OUTSIDE)
