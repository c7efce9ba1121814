"""Rules that rest on what the monitors saw beside the device: CPU, queues, others, network, time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.audit.above_device import above_device
from loadstone.audit.case import Case, Declared, ErrorCount, OpMeasurement
from loadstone.audit.judge import EXPLAINED_BY, judge_case
from loadstone.audit.rule import CannotTell, Clear, Finding, NotMine, Rule
from loadstone.audit.rules import (
    RULES,
    clock_jump,
    depth_not_reached,
    foreign_load,
    generator_cpu,
    governor,
    io_errors,
    network_loss,
    page_cache_read,
    rate_not_reached,
    resized_on_path,
    same_sequence_again,
    swapping,
    workload_drift,
)
from loadstone.explanations.weights import FITTED
from loadstone.path.layers import DataPath, Layer
from loadstone.verdict import RULE_NAMES, Time
from tests.audit.cases import disk, file, job, one, run, writer

if TYPE_CHECKING:
    from loadstone.audit.case import Op
    from loadstone.path.layers import LayerKind

MS = 10**6
BUFFERED = (job(direct=False),)

# generator_cpu


@pytest.mark.parametrize(
    ("waited_ms", "ran_ms", "confidence"),
    [(500, 300, 0.9), (250, 300, 0.75), (190, 300, None), (210, 900, None)],
    ids=["much", "some", "too little of the time", "too little of the wish"],
)
def test_threads_that_wait_for_a_cpu(waited_ms: int, ran_ms: int, confidence: float | None) -> None:
    case = run(extra=_waiting(waited_ms, ran_ms), device_ns=5e5)
    if confidence is None:
        assert generator_cpu.RULE.judge(case) == Clear()
    else:
        found = one(generator_cpu.RULE, case)
        assert (found.effect, found.confidence) == ("limited", confidence)


def _waiting(waited_ms: int, ran_ms: int, workers: int = 1) -> dict[str, float]:
    """What the scheduler says of all threads, and of each worker."""
    each = {f"engine.{9 + at}-worker-{at}.run_queue_ns": waited_ms * MS / workers for at in range(workers)}
    return {"engine.run_queue_ns": waited_ms * MS, "engine.on_cpu_ns": ran_ms * MS, **each}


@pytest.mark.parametrize(("device_ns", "effect"), [(8.5e5, "note"), (7e5, "limited")])
def test_threads_that_wait_while_the_ios_are_at_the_device_limit_nothing(
    device_ns: float, effect: str
) -> None:
    found = one(generator_cpu.RULE, run(extra=_waiting(500, 300), device_ns=device_ns))
    assert found.effect == effect
    near = one(generator_cpu.RULE, run(share_of_ceiling=0.55, device_ns=device_ns))
    assert near.effect == effect


@pytest.mark.parametrize(("workers", "found"), [(1, True), (8, False)])
def test_what_several_workers_waited_is_shared_among_them(workers: int, found: bool) -> None:
    case = run(jobs=(job(clones=8),), extra=_waiting(500, 300, workers), targets=(file(carriers=()),))
    assert isinstance(generator_cpu.RULE.judge(case), tuple) is found


def test_a_paced_load_feels_waiting_in_its_latency_or_not_at_all() -> None:
    extra: dict[str, float] = {"engine.run_queue_ns": 300 * MS, "engine.on_cpu_ns": 100 * MS}
    slow = run(jobs=(job(paced=True),), mean_ns=5e6, extra=dict(extra))
    fast = run(jobs=(job(paced=True),), mean_ns=5e5, extra=dict(extra))
    assert one(generator_cpu.RULE, slow).effect == "note"
    assert one(generator_cpu.RULE, fast).effect == "suspect"


@pytest.mark.parametrize(
    ("generator_ns", "depth", "effect"),
    [(4e6, 8, "limited"), (2e6, 8, "note"), (4e6, 1, "note"), (4e6, None, "note")],
)
def test_a_paced_load_whose_latency_is_the_generators_measures_the_generator(
    generator_ns: float, depth: int | None, effect: str
) -> None:
    """I/Os that start late with free slots wait for the generator; without one, for the storage."""
    time = Time(measured_ns=5e6, generator_ns=generator_ns, layers=(), unknown_ns=5e6 - generator_ns)
    extra: dict[str, float] = {"engine.run_queue_ns": 300 * MS, "engine.on_cpu_ns": 100 * MS}
    case = run(jobs=(job(paced=True, depth=depth),), mean_ns=5e6, extra=extra, time=time)
    found = one(generator_cpu.RULE, case)
    assert found.effect == effect
    assert ("late_share" in found.evidence) is (effect == "limited")


@pytest.mark.parametrize(("stopped_ms", "found"), [(60, True), (40, False)])
def test_a_quota_that_stops_the_engine(stopped_ms: int, found: bool) -> None:
    answer = generator_cpu.RULE.judge(run(extra={"cgroup.cpu.throttled_ns": stopped_ms * MS}))
    assert isinstance(answer, tuple) is found


def test_a_thread_that_is_always_busy_is_the_limit_unless_it_polls() -> None:
    extra: dict[str, float] = {"engine.7-worker-0.on_cpu_ns": 970 * MS}
    assert one(generator_cpu.RULE, run(extra=dict(extra))).evidence["thread"] == "7-worker-0"
    assert generator_cpu.RULE.judge(run(jobs=(job(polls=True),), extra=dict(extra))) == Clear()
    assert generator_cpu.RULE.judge(run(extra={"engine.7-worker-0.on_cpu_ns": 940 * MS})) == Clear()


def test_time_that_the_engine_spun_by_itself_is_no_work() -> None:
    extra: dict[str, float] = {"engine.7-worker-0.on_cpu_ns": 990 * MS, "engine.spun_ns": 300 * MS}
    assert generator_cpu.RULE.judge(run(extra=dict(extra))) == Clear()
    extra["engine.spun_ns"] = 10 * MS
    assert one(generator_cpu.RULE, run(extra=extra)).evidence["busy_share"] == 0.98


@pytest.mark.parametrize(("busy", "sure"), [(79.0, None), (81.0, 0.55), (93.0, 0.85)])
def test_a_busy_host_of_which_nothing_else_is_known_is_a_suspicion(busy: float, sure: float | None) -> None:
    answer = generator_cpu.RULE.judge(run(host_cpu_percent=busy))
    found = answer[0] if isinstance(answer, tuple) else None
    assert (found and (found.effect, found.confidence)) == (sure and ("suspect", sure))


@pytest.mark.parametrize(("busy", "effect"), [(85.0, "note"), (97.0, "suspect")])
def test_a_busy_host_whose_engine_did_not_wait_decides_nothing(busy: float, effect: str) -> None:
    extra: dict[str, float] = {"engine.run_queue_ns": 5 * MS, "engine.on_cpu_ns": 100 * MS}
    assert one(generator_cpu.RULE, run(host_cpu_percent=busy, extra=extra)).effect == effect
    paced = run(jobs=(job(paced=True),), host_cpu_percent=busy, extra=extra)
    assert one(generator_cpu.RULE, paced).effect == "note"


@pytest.mark.parametrize(("stolen", "found"), [(0.04, False), (0.06, True)])
def test_processors_that_were_taken_away(stolen: float, found: bool) -> None:
    columns = {"cpu.all.steal_ns": 2e9 * stolen, "cpu.all.idle_ns": 2e9 * (1 - stolen)}
    assert isinstance(generator_cpu.RULE.judge(run(extra=columns)), tuple) is found


def test_near_the_generators_own_ceiling() -> None:
    held_above = one(generator_cpu.RULE, run(share_of_ceiling=0.55, device_ns=5e5))
    assert (held_above.effect, held_above.confidence) == ("limited", 0.85)
    assert generator_cpu.RULE.judge(run(share_of_ceiling=0.45)) == Clear()
    assert isinstance(
        generator_cpu.RULE.judge(run(generator_cpu_percent=None, host_cpu_percent=None)), CannotTell
    )


# governor


def test_a_governor_that_slows_is_suspected_and_one_that_only_might_is_told() -> None:
    saving = {"host": {"cpu": {"governors": ["powersave"]}}}
    clocks = {"frequency.0.now_hz": 1.2e9, "frequency.0.limit_hz": 3e9}
    assert one(governor.RULE, run(environment=saving)).effect == "note"
    assert one(governor.RULE, run(environment=saving, extra=dict(clocks))).effect == "suspect"
    full = {"host": {"cpu": {"governors": ["performance"]}}}
    assert governor.RULE.judge(run(environment=full)) == Clear()
    assert isinstance(governor.RULE.judge(run()), CannotTell)


# depth_not_reached

DEEP = (job(iodepth=32),)
QUEUE = {"devices": {"loop0": {"queue": {"nr_requests": "4"}, "hardware_queues": 1}}}


def test_a_device_whose_queue_is_full_holds_the_rest_back() -> None:
    case = run(jobs=DEEP, device_ns=4e6, environment=QUEUE)
    found = one(depth_not_reached.RULE, case)
    assert (found.effect, found.confidence) == ("limited", 0.95)
    assert found.evidence["device_inflight"] == pytest.approx(4.0)
    assert found.evidence["above_device_ns"] == pytest.approx(28e6)


def test_waiting_above_a_device_of_unknown_room_is_less_sure() -> None:
    assert one(depth_not_reached.RULE, run(jobs=DEEP, device_ns=16e6)).confidence == 0.7


def test_what_the_host_itself_takes_is_no_waiting() -> None:
    # 32 outstanding at 400k IOPS: 80 us each, of which the device had 40.
    assert depth_not_reached.RULE.judge(run(400_000.0, jobs=DEEP, device_ns=40_000.0)) == Clear()
    assert depth_not_reached.RULE.judge(run(jobs=DEEP, device_ns=31e6)) == Clear()


def test_merged_ios_were_all_at_the_device() -> None:
    case = run(jobs=DEEP, device_ios=1 / 16, device_ns=31e6)
    assert depth_not_reached.RULE.judge(case) == Clear()


def test_an_engine_that_did_not_keep_its_depth() -> None:
    found = one(depth_not_reached.RULE, run(jobs=(job(iodepth=32, backend="psync"),), mean_ns=10e6))
    assert found.layer == "the load generator"
    assert "psync does one I/O at a time" in found.advice
    mixed = (job(iodepth=16, backend="psync"), job(iodepth=16, backend="io_uring"))
    assert "for all jobs" in one(depth_not_reached.RULE, run(jobs=mixed, mean_ns=10e6)).advice


def test_a_depth_asked_of_an_engine_that_does_one_at_a_time_is_told() -> None:
    found = one(
        depth_not_reached.RULE,
        run(jobs=(job(iodepth=1, asked_iodepth=32, clones=2, backend="psync"), job(iodepth=8))),
    )
    assert (found.effect, found.confidence, found.layer) == ("limited", 0.97, "the load generator")
    assert found.evidence == {"outstanding_asked": 72, "outstanding": 10, "engine": "psync"}
    assert depth_not_reached.RULE.judge(run(jobs=(job(asked_iodepth=1, backend="psync"),))) == Clear()
    in_memory = (disk(path="/dev/zram3", carriers=("block.zram3",)),)
    asked = (job(asked_iodepth=8, backend="psync"),)
    assert one(depth_not_reached.RULE, run(jobs=asked)).effect == "limited"
    assert one(depth_not_reached.RULE, run(jobs=asked, targets=in_memory)).effect == "note"
    paced = job(iodepth=1, asked_iodepth=32, backend="psync", rate_iops=100.0, paced=True)
    assert depth_not_reached.RULE.judge(run(jobs=(paced,))) == NotMine()


def test_what_the_generator_did_not_keep_waits_nowhere() -> None:
    # 16 of 32 were outstanding, all of them at the device: nothing of a latency passed above it.
    case = run(jobs=DEEP, mean_ns=16e6, device_ns=15.9e6)
    found = above_device(case)
    assert found is not None
    assert found.expected == pytest.approx(16)
    assert found.share < 0.01
    busy = one(generator_cpu.RULE, replace(case, host_cpu_percent=99.0))
    assert "above the device" not in busy.text
    assert one(depth_not_reached.RULE, case).evidence["outstanding"] == pytest.approx(16)


@pytest.mark.parametrize(
    ("profile", "op", "counted"),
    [("raid5", "write", False), ("raid5", "read", True), ("raid1", "write", True)],
)
def test_writes_wait_nowhere_above_the_members_of_parity(profile: str, op: Op, counted: bool) -> None:
    """Regression: what RAID 5 took between reading and writing was told as the generator's with 98 %."""
    array = Layer(name="btrfs", kind="btrfs", facts={"data_profile": profile}, counters="block.loop0")
    disks = (disk(path_layers=DataPath(target="/m/f", layers=(array,))),)
    case = run(op=op, jobs=DEEP, device_ns=1e6, targets=disks, host_cpu_percent=99.0)
    assert (above_device(case) is not None) is counted
    assert ("above the device" in one(generator_cpu.RULE, case).text) is counted


def test_a_queue_that_has_room_is_not_to_be_raised() -> None:
    roomy = {"devices": {"loop0": {"queue": {"nr_requests": "256"}, "hardware_queues": 1}}}
    found = one(depth_not_reached.RULE, run(jobs=(job(iodepth=8),), device_ns=1e6, environment=roomy))
    assert found.evidence["device_queue"] == 256
    assert "raise" not in found.advice
    assert found.advice.startswith("leave the queue of loop0 (256) alone")
    assert found.layer == "something above loop0"


def test_no_advice_tells_to_do_what_was_done() -> None:
    kept = run(jobs=(job(iodepth=32, backend="io_uring", direct=True),), mean_ns=10e6)
    assert "direct=1" not in one(depth_not_reached.RULE, kept).advice
    kept = run(jobs=(job(iodepth=32, backend="libaio", direct=True),), mean_ns=10e6)
    assert "lay the file out" not in one(depth_not_reached.RULE, kept).advice


@pytest.mark.parametrize(
    ("kind", "device", "said"),
    [
        ("disk", {"queue": {"nr_requests": "4"}}, "raise queue/nr_requests in /sys/block/loop0,"),
        (
            "disk",
            {"queue": {"nr_requests": "64"}, "device": {"queue_depth": "4"}},
            "raise device/queue_depth in /sys/block/loop0,",
        ),
        ("disk", {}, "look for a limit of a control group (io.max), and raise the device's queue"),
        ("multipath", {"queue": {"nr_requests": "4"}}, "raise queue_depth of the paths"),
        ("network_file_system", {}, "nconnect="),
    ],
)
def test_the_queue_to_raise_is_named(kind: LayerKind, device: dict[str, Any], said: str) -> None:
    path = DataPath(target="/dev/loop0", layers=(Layer(name="loop0", kind=kind, counters="block.loop0"),))
    environment = {"devices": {"loop0": device}}
    case = run(jobs=DEEP, targets=(disk(path_layers=path),), device_ns=4e6, environment=environment)
    assert said in one(depth_not_reached.RULE, case).advice


def test_a_paced_load_keeps_no_depth_and_an_unwatched_device_leaves_it_open() -> None:
    assert depth_not_reached.RULE.judge(run(jobs=(job(iodepth=32, rate_iops=1000.0),))) == NotMine()
    assert isinstance(depth_not_reached.RULE.judge(run(jobs=DEEP, targets=(disk(carriers=()),))), CannotTell)


# rate_not_reached


@pytest.mark.parametrize(("asked", "clear"), [(1000.0, True), (1040.0, True), (1100.0, False)])
def test_a_rate_is_reached_within_a_twentieth(asked: float, clear: bool) -> None:
    answer = rate_not_reached.RULE.judge(run(jobs=(job(rate_iops=asked),)))
    assert (answer == Clear()) is clear


def test_a_rate_in_bytes_and_chance_in_few_ios() -> None:
    short = run(jobs=(job(rate_bytes_per_s=5e6),))
    assert one(rate_not_reached.RULE, short).evidence["asked_bytes_per_s"] == 5e6
    # 80 of 100 I/Os expected in all: three deviations of a count of 100 are 30.
    assert rate_not_reached.RULE.judge(run(8.0, jobs=(job(rate_iops=10.0),))) == Clear()
    assert rate_not_reached.RULE.judge(run()) == NotMine()
    two = (job(rate_iops=10.0), job(job="other"))
    # A tool that issues no more than its depth has measured the storage at that depth.
    closed = replace(run(jobs=(job(rate_iops=1100.0),)), source="vdbench")
    assert one(rate_not_reached.RULE, closed).effect == "suspect"
    assert one(rate_not_reached.RULE, replace(closed, source="bundle")).effect == "not_valid"
    assert isinstance(rate_not_reached.RULE.judge(run(jobs=two)), CannotTell)


# resized_on_path


@pytest.mark.parametrize(
    ("device_ios", "effect"), [(1.0, None), (0.84, None), (0.8, "suspect"), (1.24, None), (2.0, "note")]
)
def test_sizes_at_the_device(device_ios: float, effect: str | None) -> None:
    answer = resized_on_path.RULE.judge(run(device_ios=device_ios))
    assert (answer[0].effect if isinstance(answer, tuple) else None) == effect


def test_merging_leaves_the_number_of_large_blocks_as_it_is() -> None:
    assert one(resized_on_path.RULE, run(block=131072, device_ios=0.3)).effect == "note"
    assert one(resized_on_path.RULE, run(block=32768, device_ios=0.3)).effect == "suspect"


def test_through_the_page_cache_merging_is_expected() -> None:
    assert one(resized_on_path.RULE, run(jobs=(job(direct=False),), device_ios=0.1)).effect == "note"
    assert isinstance(resized_on_path.RULE.judge(run(targets=(disk(carriers=()),))), CannotTell)
    assert resized_on_path.RULE.judge(run(targets=(file(file_system="tmpfs", carriers=()),))) == NotMine()


# foreign_load


@pytest.mark.parametrize(("moved", "confidence"), [(1.0, None), (1.05, None), (1.15, 0.8), (3.0, 0.95)])
def test_more_at_the_device_than_was_asked_is_of_others(moved: float, confidence: float | None) -> None:
    answer = foreign_load.RULE.judge(run(10_000.0, device_bytes=moved, device_ios=moved))
    assert (answer[0].confidence if isinstance(answer, tuple) else None) == confidence


def test_writes_of_others_beside_reads_count() -> None:
    case = run(extra={"block.loop0.write_bytes": 20e6, "block.loop0.writes": 500})
    assert one(foreign_load.RULE, case).evidence["foreign_bytes_per_s"] == 20_000_000


PARTITION = DataPath(
    target="/dev/sda2",
    layers=(
        Layer(name="sda2", kind="partition", below=("sda",), counters="block.loop0"),
        Layer(name="sda", kind="disk", counters="block.sda"),
    ),
)


@pytest.mark.parametrize(("other_bytes", "found"), [(0, False), (100_000, False), (2_000_000, True)])
def test_other_partitions_of_the_disk_count(other_bytes: int, found: bool) -> None:
    own = 1000 * 4096
    extra = {"block.sda.read_bytes": own, "block.sda.write_bytes": other_bytes}
    answer = foreign_load.RULE.judge(run(targets=(disk(path_layers=PARTITION),), extra=extra))
    assert isinstance(answer, tuple) is found


def test_a_journal_is_not_another_load() -> None:
    for durable in (writer(synchronous=True), writer(flushes=True)):
        case = run(op="write", jobs=(durable,), targets=(file(),), device_bytes=2.0)
        assert foreign_load.RULE.judge(case) == Clear()
    plain = run(op="write", targets=(file(),), device_bytes=2.0)
    assert one(foreign_load.RULE, plain).effect == "suspect"
    copying = file(file_system="btrfs")
    assert foreign_load.RULE.judge(run(op="write", targets=(copying,), device_bytes=2.0)) == Clear()
    # Reads are compared then, and the sentence says so: of a write run the job 'moved only 0 B/s'.
    reads = run(
        op="write", targets=(copying,), extra={"block.loop0.read_bytes": 20e6, "block.loop0.reads": 5e3}
    )
    assert "read 19.1 MiB/s but the job only 0 B/s" in one(foreign_load.RULE, reads).text.replace(
        "\N{NO-BREAK SPACE}", " "
    )
    moved = one(foreign_load.RULE, run(device_bytes=2.0)).text
    assert " moved " in moved


@pytest.mark.parametrize(
    ("moved", "cached_share", "effect", "said"),
    [
        (1.12, 0.1, "note", "file system metadata"),
        (2.0, 0.1, "suspect", "file system metadata"),
        (1.12, 0.9, "limited", "page cache wrote"),
    ],
    ids=["a little past the page cache", "much past the page cache", "out of the page cache"],
)
def test_whose_writes_are_beside_a_file(moved: float, cached_share: float, effect: str, said: str) -> None:
    cached = 10_000.0 * 4096 * (moved - 1) * cached_share
    extra = {"vm.cleaned_bytes": cached}
    case = run(10_000.0, op="write", targets=(file(),), device_bytes=moved, device_ios=moved, extra=extra)
    found = one(foreign_load.RULE, case)
    assert (found.effect, said in found.text) == (effect, True)


def test_a_file_under_a_loop_device_has_the_job_in_its_page_cache() -> None:
    loop = DataPath(target="/m/f", layers=(Layer(name="loop0", kind="loop", counters="block.loop0"),))
    extra = {"vm.cleaned_bytes": 10_000.0 * 4096}
    case = run(10_000.0, op="write", targets=(file(path_layers=loop),), device_bytes=1.5, extra=extra)
    assert one(foreign_load.RULE, case).effect == "suspect"


def test_reads_beside_a_file_are_never_its_file_system_s() -> None:
    case = run(10_000.0, targets=(file(),), device_bytes=1.5, device_ios=1.5, extra={"vm.cleaned_bytes": 0})
    assert one(foreign_load.RULE, case).effect == "limited"


def test_what_parity_needs_is_not_another_load() -> None:
    btrfs = DataPath(
        target="/m/f",
        layers=(
            Layer(name="btrfs raid5", kind="btrfs", facts={"data_profile": "raid5"}, counters="block.loop0"),
        ),
    )
    md = DataPath(target="/dev/md0", layers=(Layer(name="md0", kind="md", facts={"level": "raid6"}),))
    for path in (btrfs, md):
        writes = run(op="write", targets=(disk(path_layers=path),), device_bytes=3.0, device_ios=3.0)
        assert isinstance(foreign_load.RULE.judge(writes), CannotTell)
        reads = run(10_000.0, targets=(disk(path_layers=path),), device_bytes=3.0, device_ios=3.0)
        assert one(foreign_load.RULE, reads).confidence == 0.95


def test_buffered_and_unwatched_loads_cannot_be_told_apart() -> None:
    assert isinstance(foreign_load.RULE.judge(run(jobs=(job(direct=False),), device_bytes=3.0)), CannotTell)
    assert isinstance(foreign_load.RULE.judge(run(targets=(disk(carriers=()),))), CannotTell)
    assert foreign_load.RULE.judge(run(targets=(disk(kind="virtual"),))) == NotMine()


def test_what_a_program_in_user_space_reads_is_not_held_to_be_somebody_elses() -> None:
    """An encrypting one reads two blocks of its file for each that it was asked for."""
    layers = (
        Layer(name="/m/f", kind="file", below=("fuse.encfs on /m",)),
        Layer(name="fuse.encfs on /m", kind="fuse", below=("/e/f",)),
        Layer(name="/e/f", kind="file", below=("ext4 on /e",)),
        Layer(name="ext4 on /e", kind="file_system", facts={"type": "ext4"}, below=("loop0",)),
        Layer(name="loop0", kind="loop", counters="block.loop0"),
    )
    behind = file(file_system="fuse.encfs", path_layers=DataPath(target="/m/f", layers=layers))
    answer = foreign_load.RULE.judge(run(targets=(behind,), device_bytes=2.0))
    assert isinstance(answer, CannotTell)
    assert "fuse.encfs on /m" in answer.missing
    in_memory = layers[3].model_copy(update={"facts": {"type": "tmpfs"}, "below": ()})
    shown = replace(behind, path_layers=DataPath(target="/m/f", layers=(*layers[:3], in_memory)))
    assert page_cache_read.RULE.judge(run(targets=(shown,)))[0].effect == "not_valid"  # type: ignore[index] # it found


# workload_drift


def mixed(reads: int, writes: int, **asked: object) -> Case:
    case = run(jobs=(job(read_percent=70.0, **asked),))
    read, write = OpMeasurement(operations=reads), OpMeasurement(operations=writes)
    return replace(case, by_job={"job": {"read": read, "write": write}})


@pytest.mark.parametrize(
    ("reads", "writes", "found"),
    [(7000, 3000, False), (7300, 2700, False), (7500, 2500, True), (9, 1, False)],
)
def test_the_mix_may_be_off_by_two_points_and_chance(reads: int, writes: int, found: bool) -> None:
    answer = workload_drift.RULE.judge(mixed(reads, writes))
    assert isinstance(answer, tuple) is found


def test_rates_for_both_operations_are_a_mix_of_their_own() -> None:
    found = one(workload_drift.RULE, mixed(5000, 5000, rate_iops=1000.0))
    assert found.effect == "note"


def test_other_sizes_are_another_load() -> None:
    assert one(workload_drift.RULE, run(block=4000)).effect == "not_valid"
    assert workload_drift.RULE.judge(run(block=4040)) == Clear()
    split = job(read_block_bytes={4096: 0.5, 8192: 0.5})
    assert workload_drift.RULE.judge(run(jobs=(split,), block=6144)) == Clear()
    assert isinstance(workload_drift.RULE.judge(run(jobs=())), CannotTell)


@pytest.mark.parametrize(
    ("problem", "errors", "done", "says"),
    [
        (ErrorCount("fatal", "cannot open", 1), 0, 0, "The run failed before its first I/O"),
        (ErrorCount("engine", "fell silent", 1), 0, 900, "The load generator did not finish as planned"),
        (ErrorCount("io_error", "EIO", 1), 1, 900, "1 I/O failed"),
        (ErrorCount("io_error", "EIO", 1), 7, 0, "7 I/Os failed"),
    ],
)
def test_a_run_that_never_began_is_not_told_as_a_failed_io(
    problem: ErrorCount, errors: int, done: int, says: str
) -> None:
    case = replace(run(), problems=(problem,), total=OpMeasurement(operations=done, errors=errors))
    found = one(io_errors.RULE, case)
    assert found.effect == "not_valid"
    assert found.text.startswith(says)


# network_loss

NFS = DataPath(
    target="/mnt/data",
    layers=(
        Layer(name="/mnt/data", kind="file", below=("nfs4 on /mnt",)),
        Layer(name="nfs4 on /mnt", kind="network_file_system", counters="nfs./mnt"),
    ),
)
REMOTE = (file(path_layers=NFS, carriers=("nfs./mnt",)),)


@pytest.mark.parametrize(("again", "found"), [(0, False), (4, False), (20, True)])
def test_segments_sent_again(again: int, found: bool) -> None:
    spread = [again] + [0] * 9
    case = run(targets=REMOTE, extra={"tcp.sent_segments": 10_000, "tcp.retransmitted_segments": spread})
    assert isinstance(network_loss.RULE.judge(case), tuple) is found


def test_repeated_calls_are_a_loss_and_a_local_disk_has_no_network() -> None:
    extra: dict[str, float] = {
        "tcp.sent_segments": 10_000,
        "tcp.retransmitted_segments": 0,
        "nfs./mnt.retransmits": 3,
    }
    assert one(network_loss.RULE, run(targets=REMOTE, extra=extra)).evidence["repeated_calls"] == 30
    assert network_loss.RULE.judge(run()) == NotMine()
    assert isinstance(network_loss.RULE.judge(run(targets=REMOTE)), CannotTell)
    assert isinstance(network_loss.RULE.judge(run(targets=(disk(carriers=()),))), CannotTell)


# swapping


@pytest.mark.parametrize(("mib_per_row", "found"), [(0.0, False), (0.9, False), (1.1, True), (300.0, True)])
def test_a_host_that_swaps_is_suspect(mib_per_row: float, found: bool) -> None:
    case = run(extra={"vm.swapped_in_bytes": mib_per_row * (1 << 20), "vm.swapped_out_bytes": 0.0})
    if not found:
        assert swapping.RULE.judge(case) == Clear()
        return
    told = one(swapping.RULE, case)
    assert told.effect == "suspect"
    assert told.evidence["swapped_bytes_per_s"] == pytest.approx(mib_per_row * (1 << 20))


def test_without_counters_of_swap_nothing_can_be_told() -> None:
    assert isinstance(swapping.RULE.judge(run()), CannotTell)
    assert swapping.RULE.judge(run(source="fio")) == NotMine()


# clock_jump


def test_a_step_of_the_wall_clock_is_found_and_slewing_is_not() -> None:
    stepped = [0.0] * 5 + [2e9] * 5
    found = one(clock_jump.RULE, run(extra={"clock.offset_ns": stepped}))
    assert found.evidence["jump_ms"] == 2000.0
    assert found.chart is not None
    slewed = [500_000.0 * at for at in range(10)]
    assert clock_jump.RULE.judge(run(extra={"clock.offset_ns": slewed})) == Clear()
    edge = [0.0] * 9 + [9.9e6]
    assert clock_jump.RULE.judge(run(extra={"clock.offset_ns": edge})) == Clear()


def test_a_host_that_slept_measured_nothing() -> None:
    columns = {"clock.offset_ns": [0.0] * 10, "clock.suspended_ns": [0.0] * 5 + [3e9] * 5}
    assert one(clock_jump.RULE, run(extra=columns)).effect == "not_valid"


def test_without_clocks_nothing_can_be_told_and_other_sources_are_not_asked() -> None:
    assert isinstance(clock_jump.RULE.judge(run()), CannotTell)
    assert clock_jump.RULE.judge(run(source="fio")) == NotMine()


# same_sequence_again


def test_the_same_addresses_again_matter_with_a_cache() -> None:
    assert one(same_sequence_again.RULE, run(same_sequence_before=True)).effect == "note"
    cached = run(same_sequence_before=True, declared=Declared(cache_bytes=1 << 30))
    assert one(same_sequence_again.RULE, cached).effect == "suspect"
    assert one(same_sequence_again.RULE, run(jobs=BUFFERED, same_sequence_before=True)).effect == "suspect"
    assert same_sequence_again.RULE.judge(run(same_sequence_before=False)) == Clear()
    assert isinstance(same_sequence_again.RULE.judge(run()), CannotTell)
    in_order = run(jobs=(job(random_percent=0.0),), same_sequence_before=True)
    assert same_sequence_again.RULE.judge(in_order) == NotMine()


# All of them


def test_rules_are_named_once_and_as_the_shape_has_them() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert set(names) <= set(RULE_NAMES)


def test_no_two_rules_explain_each_other_away() -> None:
    reasons = {name: set(direct) for name, direct in EXPLAINED_BY.items()}
    assert set(reasons) <= {rule.name for rule in RULES}
    for name, direct in reasons.items():
        seen, waiting = set(), set(direct)
        while waiting:
            reason = waiting.pop()
            assert reason != name
            seen.add(reason)
            waiting |= reasons.get(reason, set()) - seen


def test_a_finding_whose_reason_is_found_decides_nothing() -> None:
    def says(name: str, effect: str, sure: float = 0.9) -> Rule:
        finding = Finding(effect, sure, f"{name}.", {}, "do", layer="a layer")  # type: ignore[arg-type]  # a literal
        return Rule(name, "?", "test", lambda _: (finding,))  # type: ignore[arg-type]  # a literal

    reason = says("throttled", "limited")
    alone = judge_case(run(), [says("rate_not_reached", "not_valid")])
    together = judge_case(run(), [says("rate_not_reached", "not_valid"), reason])
    assert alone.kind == "not_valid"
    assert together.kind == "limited"
    assert [cause.effect for cause in together.causes] == ["limited", "note"]
    suspected = [says("rate_not_reached", "not_valid"), says("throttled", "suspect")]
    assert judge_case(run(), suspected).kind == "not_valid"
    surer = [says("not_steady", "suspect"), says("throttled", "suspect", sure=0.5)]
    assert [cause.effect for cause in judge_case(run(), surer).causes] == ["suspect", "suspect"]
    unsure = [says("rate_not_reached", "not_valid"), says("throttled", "limited", sure=0.8)]
    assert judge_case(run(), unsure).kind == "not_valid"


@pytest.mark.parametrize(
    ("sure", "kind"), [(0.9, "cannot_tell"), (0.85, "cannot_tell"), (0.55, "measures_storage")]
)
@pytest.mark.parametrize("missing", [0, 2])
def test_a_grave_suspicion_leaves_nobody_able_to_tell_however_many_rules_could_look(
    sure: float, kind: str, missing: int
) -> None:
    doubt = Finding("suspect", sure, "doubtful", {}, "look")
    rules = [
        Rule("not_steady", "?", "test", lambda _: (doubt,)),
        Rule("foreign_load", "?", "test", lambda _: Clear()),
        Rule("io_errors", "?", "test", lambda _: Clear()),
        Rule("governor", "?", "test", lambda _: CannotTell("its clock", "look") if missing > 0 else Clear()),
        Rule(
            "clock_jump", "?", "test", lambda _: CannotTell("its clocks", "look") if missing > 1 else Clear()
        ),
        Rule("network_loss", "?", "test", lambda _: Clear()),
    ]
    assert judge_case(run(), rules).kind == kind


def test_an_honest_run_measures_the_storage() -> None:
    case = run(
        [1000.0 + 20 * (at % 3) for at in range(100)],
        same_sequence_before=False,
        extra={"engine.run_queue_ns": MS, "engine.on_cpu_ns": 100 * MS, "clock.offset_ns": 0},
    )
    verdict = judge_case(case)
    assert verdict.kind == "measures_storage", verdict.sentences
    assert [cause for cause in verdict.causes if cause.effect != "note"] == []


def test_others_on_the_cpus_are_no_suspicion_where_the_generator_was_served() -> None:
    served = {"engine.run_queue_ns": 1e6, "engine.cpu_ns": 1e8}
    quiet, busy = (
        judge_case(run(seconds=30.0, extra=served, host_cpu_percent=percent)) for percent in (20.0, 99.0)
    )
    told = [one for one in busy.causes if one.rule == "generator_cpu" and one.effect == "suspect"]
    # As often as such findings were right.
    assert [one.confidence for one in told] == [FITTED.findings["generator_cpu suspect 0.60"]]
    assert (busy.kind, busy.confidence) == (quiet.kind, quiet.confidence)
