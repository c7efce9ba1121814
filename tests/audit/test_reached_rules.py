"""Rules that hold what was asked against what arrived: caches, holes, allocation, payload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loadstone.analysis.time_structure import FineRates
from loadstone.audit.case import Declared, PayloadProperties, Range, TargetState
from loadstone.audit.rule import CannotTell, Clear, NotMine, cannot_tell
from loadstone.audit.rules import (
    first_pass_allocation,
    page_cache_read,
    reducible_payload,
    unwritten_region,
    volatile_ack,
    writeback_absorbed,
)
from loadstone.audit.targets import file_below
from loadstone.path.layers import DataPath, Layer
from tests.audit.cases import MIB, disk, file, job, one, run, writer

BUFFERED = (job(direct=False),)


# page_cache_read


@pytest.mark.parametrize(("arrived", "confidence"), [(0.0, 0.97), (0.5, 0.97), (0.93, 0.97)])
def test_buffered_reads_that_did_not_arrive_came_from_memory(arrived: float, confidence: float) -> None:
    found = one(page_cache_read.RULE, run(jobs=BUFFERED, targets=(file(),), device_bytes=arrived))
    assert found.effect == "not_valid"
    assert found.confidence == confidence
    assert found.evidence["asked_bytes"] == 10_000 * 4096
    assert found.evidence["device_bytes"] == round(10_000 * 4096 * arrived)
    assert found.chart is not None
    assert found.chart.level == pytest.approx(1000 * 4096)


@pytest.mark.parametrize("arrived", [0.951, 1.0, 1.5])
def test_reads_that_arrived_are_the_storages(arrived: float) -> None:
    assert page_cache_read.RULE.judge(run(jobs=BUFFERED, device_bytes=arrived)) == Clear()


def test_random_reads_served_by_read_ahead_are_found_though_the_bytes_are_there() -> None:
    case = run(jobs=BUFFERED, device_bytes=1.4, device_ios=0.4)
    assert one(page_cache_read.RULE, case).confidence == 0.85
    in_order = run(jobs=(job(direct=False, random_percent=0.0),), device_bytes=1.0, device_ios=0.1)
    assert page_cache_read.RULE.judge(in_order) == Clear()


def test_without_counters_buffered_reads_cannot_be_believed_and_direct_ones_only_not_checked() -> None:
    bare = {"carriers": ()}
    buffered = page_cache_read.RULE.judge(run(jobs=BUFFERED, targets=(file(**bare),)))
    direct = page_cache_read.RULE.judge(run(targets=(file(**bare),)))
    assert isinstance(buffered, CannotTell)
    assert buffered.essential
    assert isinstance(direct, CannotTell)
    assert not direct.essential


def test_a_file_system_in_memory_is_no_storage() -> None:
    target = file(file_system="tmpfs", carriers=())
    assert one(page_cache_read.RULE, run(targets=(target,))).evidence == {"file_system": "tmpfs"}
    assert one(writeback_absorbed.RULE, run(op="write", targets=(target,))).effect == "not_valid"


def test_holes_are_not_the_page_caches_business() -> None:
    target = file(unwritten_bytes_before=128 * MIB)
    assert page_cache_read.RULE.judge(run(targets=(target,), device_bytes=0.0)) == Clear()


def test_writes_are_not_reads() -> None:
    assert page_cache_read.RULE.judge(run(op="write")) == NotMine()
    assert writeback_absorbed.RULE.judge(run()) == NotMine()


@pytest.mark.parametrize(
    ("burst_ios", "device_share", "accused"),
    [(100, 0.89, False), (10, 0.89, True), (100, 0.6, True), (1000, 0.6, True)],
)
def test_a_burst_at_the_edge_of_what_was_watched_is_not_the_page_cache(
    burst_ios: int, device_share: float, accused: bool
) -> None:
    """A limiter let 100 I/Os go each tenth of a second: of one second a tenth was "from memory"."""
    every = burst_ios // 10  # samples of 10 ms
    ops = np.zeros(200)
    ops[::every] = burst_ios
    fine = FineRates(np.linspace(1e7, 2e9, 200), np.full(200, 1e7), ops)
    case = run(1000.0, seconds=1.0, device_bytes=device_share, fine=fine)
    assert bool(isinstance(page_cache_read.RULE.judge(case), tuple)) is accused


# writeback_absorbed


def test_buffered_writes_that_did_not_arrive_were_absorbed() -> None:
    case = run(op="write", jobs=(writer(direct=False),), targets=(file(),), device_bytes=0.3)
    found = one(writeback_absorbed.RULE, case)
    assert found.effect == "not_valid"
    assert found.text.startswith("70 %")


def test_writes_that_arrived_within_the_time_are_clear() -> None:
    case = run(op="write", jobs=(writer(direct=False),), targets=(file(),), device_bytes=0.96)
    assert writeback_absorbed.RULE.judge(case) == Clear()


def test_a_mirror_that_writes_twice_does_not_hide_what_is_missing() -> None:
    case = run(op="write", jobs=(writer(direct=False),), targets=(file(),), device_bytes=1.2)
    assert isinstance(writeback_absorbed.RULE.judge(case), Clear)
    members = Layer(name="btrfs raid1", kind="btrfs", facts={"data_profile": "raid1"})
    mirror = file(path_layers=DataPath(target="/mnt/data", layers=(members,)))
    mirrored = run(op="write", jobs=(writer(direct=False),), targets=(mirror,), device_bytes=1.2)
    assert one(writeback_absorbed.RULE, mirrored).text.startswith("40 %")


@pytest.mark.parametrize(
    ("end_fsync", "size_bytes", "believed"),
    [(False, 1 << 30, False), (True, 1 << 30, True), (True, 1 << 20, False), (True, None, False)],
)
def test_unwatched_buffered_writes_are_believed_only_with_a_flush_of_all_of_them(
    end_fsync: bool, size_bytes: int | None, believed: bool
) -> None:
    """What was written over before the flush may never have been stored."""
    jobs = (writer(direct=False, end_fsync=end_fsync, size_bytes=size_bytes),)
    answer = writeback_absorbed.RULE.judge(run(op="write", jobs=jobs, targets=(file(carriers=()),)))
    assert isinstance(answer, CannotTell)
    assert answer.essential is not believed


def test_a_burst_into_a_declared_cache_is_suspected_up_to_twice_its_size() -> None:
    written = 10_000 * 4096
    small = run(op="write", declared=Declared(cache_bytes=written))
    assert one(writeback_absorbed.RULE, small).effect == "suspect"
    assert (
        writeback_absorbed.RULE.judge(run(op="write", declared=Declared(cache_bytes=written // 2))) == Clear()
    )


# unwritten_region


def test_reads_of_holes_are_found_and_are_surest_when_they_did_not_arrive() -> None:
    target = file(unwritten_bytes_before=128 * MIB)
    assert one(unwritten_region.RULE, run(targets=(target,), device_bytes=0.0)).confidence == 0.97
    bare = file(unwritten_bytes_before=128 * MIB, carriers=())
    assert one(unwritten_region.RULE, run(targets=(bare,))).confidence == 0.9


def test_where_the_holes_of_a_file_lie_is_not_told_as_known() -> None:
    """Of a file that was read in part, its upper bound was told as what had never been written."""
    part = job(ranges=((Range("/mnt/data", 0, 64 * MIB),),))
    target = file(unwritten_bytes_before=64 * MIB)
    answer = one(unwritten_region.RULE, run(jobs=(part,), targets=(target,), device_bytes=0.0)).text
    assert answer.startswith("At most 64.0\xa0MiB of 64.0\xa0MiB in /mnt/data (100 %) were never written")
    whole = one(unwritten_region.RULE, run(targets=(target,), device_bytes=0.0)).text
    assert whole.startswith("64.0\xa0MiB of 128\xa0MiB")


def test_what_a_device_saw_of_another_tools_writes_is_at_most_the_jobs() -> None:
    case = run(op="write", jobs=BUFFERED, targets=(file(),), device_bytes=0.25)
    assert " were still in memory: only " in one(writeback_absorbed.RULE, case).text
    foreign = one(writeback_absorbed.RULE, replace(case, source="fio")).text
    assert foreign.startswith("At least 75 % of the bytes written were still in memory: at most 9.77\xa0MiB")


def test_holes_that_nobody_read_do_not_matter() -> None:
    target = file(unwritten_bytes_before=64 * MIB)
    assert unwritten_region.RULE.judge(run(targets=(target,), device_bytes=1.0)) == Clear()


@pytest.mark.parametrize(("share", "clear"), [(0.05, True), (0.06, False)])
def test_a_loop_device_over_holes_is_found_though_it_counts_the_reads(share: float, clear: bool) -> None:
    target = disk(unwritten_bytes_before=round(share * 128 * MIB))
    answer = unwritten_region.RULE.judge(run(targets=(target,)))
    assert (answer == Clear()) is clear


@pytest.mark.parametrize(
    ("used_mib", "unwritten_mib", "least_mib"), [(64, 64, 0), (64, 100, 36), (128, 64, 64), (64, 128, 64)]
)
def test_of_a_device_at_least_what_no_place_is_left_for_was_read_unwritten(
    used_mib: int, unwritten_mib: int, least_mib: int
) -> None:
    part = job(ranges=((Range("/dev/loop0", 0, used_mib * MIB),),))
    case = run(jobs=(part,), targets=(disk(unwritten_bytes_before=unwritten_mib * MIB),))
    if not least_mib:
        assert unwritten_region.RULE.judge(case) == cannot_tell(
            "audit.unwritten_region.extents", where="/dev/loop0"
        )
        return
    found = one(unwritten_region.RULE, case)
    assert found.evidence["unwritten_bytes"] == least_mib * MIB
    assert found.evidence["size_bytes"] == used_mib * MIB


def test_a_device_that_tells_nothing_of_what_was_written_leaves_it_open() -> None:
    answer = unwritten_region.RULE.judge(run(targets=(disk(unwritten_bytes_before=None),)))
    assert answer == cannot_tell("audit.unwritten_region.extents", where="/dev/loop0")


# first_pass_allocation


@pytest.mark.parametrize(
    ("target", "confidence"),
    [
        (file(allocated_bytes_before=0, allocated_bytes_after=30 * MIB), 0.92),
        (file(unwritten_bytes_before=128 * MIB, unwritten_bytes_after=98 * MIB), 0.92),
        (file(allocated_bytes_before=0, allocated_bytes_after=4 * MIB), 0.75),
    ],
)
def test_space_that_was_found_as_the_job_went_is_a_first_pass(target: object, confidence: float) -> None:
    found = one(first_pass_allocation.RULE, run(op="write", targets=(target,)))  # type: ignore[arg-type]  # a Target
    assert found.effect == "limited"
    assert found.confidence == confidence
    assert found.layer == "ext4 (allocation)"


def image(hole: int, file_system: str = "ext4") -> TargetState:
    """A loop device over a file, of which so much was never written, on a disk that a file serves."""
    layers = (
        Layer(name="loop0", kind="loop", below=("/mnt/img",), counters="block.loop0"),
        Layer(name="/mnt/img", kind="file", below=(f"{file_system} on /mnt",)),
        Layer(
            name=f"{file_system} on /mnt", kind="file_system", below=("loop1",), facts={"type": file_system}
        ),
        Layer(name="loop1", kind="loop", below=("/run/disk",), counters="block.loop1"),
        Layer(name="/run/disk", kind="file"),
    )
    path = DataPath(target="/dev/loop0", layers=layers)
    return disk(unwritten_bytes_before=hole, path_layers=path)


def test_writes_to_holes_under_a_loop_are_a_first_pass() -> None:
    """Regression: of an image in a file on a served disk nothing was known, and 92 % were believed."""
    found = one(first_pass_allocation.RULE, run(op="write", targets=(image(128 * MIB),)))
    assert found.effect == "limited"
    assert found.evidence["allocated_bytes"] == pytest.approx(33.66 * MIB, rel=0.01)
    assert first_pass_allocation.RULE.judge(run(op="write", targets=(image(0),))) == NotMine()
    assert (
        first_pass_allocation.RULE.judge(run(op="write", targets=(image(128 * MIB, "tmpfs"),))) == NotMine()
    )
    assert file_below(image(0).path_layers) == image(0).path_layers.layers[1]  # type: ignore[union-attr]


def test_overwrites_and_devices_allocate_nothing() -> None:
    grown = 10_000 * 4096 * 5 // 100
    at_edge = file(allocated_bytes_before=0, allocated_bytes_after=grown)
    assert first_pass_allocation.RULE.judge(run(op="write", targets=(at_edge,))) == Clear()
    assert first_pass_allocation.RULE.judge(run(op="write", targets=(file(),))) == Clear()
    assert first_pass_allocation.RULE.judge(run(op="write")) == NotMine()
    unknown = file(allocated_bytes_after=None, unwritten_bytes_after=None)
    assert isinstance(first_pass_allocation.RULE.judge(run(op="write", targets=(unknown,))), CannotTell)


# reducible_payload

ZRAM = disk(path="/dev/zram0", reduces="zram zram0: compression lzo-rle")


@pytest.mark.parametrize(
    ("payload", "effect", "confidence"),
    [
        (PayloadProperties("zero"), "not_valid", 0.95),
        (PayloadProperties("pattern"), "not_valid", 0.95),
        (PayloadProperties("random", repeats=True), "suspect", 0.6),
        (PayloadProperties("random", repeats=False, compress_percent=50.0), "note", 0.95),
    ],
)
def test_reducible_data_on_a_reducing_layer(
    payload: PayloadProperties, effect: str, confidence: float
) -> None:
    found = one(reducible_payload.RULE, run(op="write", jobs=(writer(payload=payload),), targets=(ZRAM,)))
    assert (found.effect, found.confidence) == (effect, confidence)


def test_zeros_on_storage_that_tells_nothing_are_suspected() -> None:
    found = one(reducible_payload.RULE, run(op="write", jobs=(writer(payload=PayloadProperties("zero")),)))
    assert (found.effect, found.confidence) == ("suspect", 0.5)


def test_data_that_does_not_compress_is_clear_and_unknown_data_is_missing_where_it_matters() -> None:
    assert reducible_payload.RULE.judge(run(op="write", targets=(ZRAM,))) == Clear()
    unknown = reducible_payload.RULE.judge(run(op="write", jobs=(writer(payload=None),), targets=(ZRAM,)))
    assert unknown == cannot_tell("audit.reducible_payload.written", essential=True)
    assert reducible_payload.RULE.judge(run()) == NotMine()


def test_reads_of_compressed_data_show_at_the_device() -> None:
    packed = file(reduces="file_system btrfs: compression zstd")
    assert one(reducible_payload.RULE, run(targets=(packed,), device_bytes=0.1)).effect == "not_valid"
    assert reducible_payload.RULE.judge(run(targets=(packed,), device_bytes=0.95)) == Clear()


def test_what_no_compression_leaves_was_in_the_page_cache_though_direct_io_was_asked_for() -> None:
    """As btrfs does it: 1.12 GiB read of a compressed file that lay in memory, 996 KiB from the device."""
    packed = file(reduces="file_system btrfs: compression zstd:3")
    case = run(targets=(packed,), device_bytes=996 / (1.12 * (1 << 20)))
    assert reducible_payload.RULE.judge(case) == Clear()
    assert one(page_cache_read.RULE, case).effect == "not_valid"
    single = file(reduces="dm vdo: deduplication on")
    shared = run(targets=(single,), device_bytes=0.001)
    assert one(reducible_payload.RULE, shared).effect == "not_valid"
    assert page_cache_read.RULE.judge(shared) == Clear()


# volatile_ack

CACHED = {"devices": {"loop0": {"queue": {"write_cache": "write back"}}}}
UNCACHED = {"devices": {"loop0": {"queue": {"write_cache": "write through"}}}}
DURABLE = (writer(synchronous=True),)


def test_a_write_cache_is_told_and_decides_nothing() -> None:
    assert one(volatile_ack.RULE, run(op="write", environment=CACHED)).effect == "note"
    assert volatile_ack.RULE.judge(run(op="write", environment=UNCACHED)) == Clear()
    assert isinstance(volatile_ack.RULE.judge(run(op="write")), CannotTell)
    assert volatile_ack.RULE.judge(run(environment=CACHED)) == NotMine()


def test_writes_of_which_some_waited_for_a_flush_are_told_so() -> None:
    jobs = (writer(synchronous=False, flushes=True),)
    assert "not every write" in one(volatile_ack.RULE, run(op="write", jobs=jobs, environment=CACHED)).text
    assert "no write" in one(volatile_ack.RULE, run(op="write", environment=CACHED)).text


def test_durable_writes_without_a_flush_at_the_device_are_not_durable() -> None:
    assert one(volatile_ack.RULE, run(op="write", jobs=DURABLE, environment=CACHED)).effect == "not_valid"
    flushed = run(op="write", jobs=DURABLE, environment=CACHED, extra={"block.loop0.flushes": 1000})
    assert volatile_ack.RULE.judge(flushed) == Clear()


@pytest.mark.parametrize(("iops", "clear"), [(249.0, True), (260.0, False)])
def test_durable_writes_faster_than_platters_turn(iops: float, clear: bool) -> None:
    declared = Declared(rotational=True, spindles=1)
    case = run(iops, op="write", jobs=DURABLE, environment=UNCACHED, declared=declared)
    assert (volatile_ack.RULE.judge(case) == Clear()) is clear


@pytest.mark.parametrize(
    ("before", "after", "read_mib", "found"),
    [(128, 128, 50, True), (0, 128, 1000, True), (0, 128, 100, False), (0, 0, 1000, False)],
)
def test_a_file_nothing_counts_is_asked_of_the_page_cache(
    before: int, after: int, read_mib: int, found: bool
) -> None:
    """A FUSE file has no device: what answers from its pages was told as the generator's CPU."""
    target = file(
        carriers=(),
        file_system="fuse",
        unwritten_bytes_before=None,
        cached_bytes_before=before * MIB,
        cached_bytes_after=after * MIB,
    )
    case = run(read_mib * 25.6, jobs=(job(direct=False),), targets=(target,), traffic=None)
    answer = page_cache_read.RULE.judge(case)
    assert isinstance(answer, tuple) == found
