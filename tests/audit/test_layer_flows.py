"""Each layer held against its neighbour: what adds up, and the name of what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from loadstone.audit import latency_split, layer_flows, served
from loadstone.audit.case import Moved, TargetState
from loadstone.audit.rule import Clear, NotMine
from loadstone.audit.rules import layer_flows as rule
from loadstone.path.layers import DataPath, Layer
from tests.audit import cases

if TYPE_CHECKING:
    from loadstone.verdict import LayerFlow

MIB = 1 << 20
SECONDS = 4


def layer(name: str, kind: Any, *below: str, counted: bool = True, **facts: Any) -> Layer:
    return Layer(
        name=name, kind=kind, below=below, facts=facts, counters=f"block.{name}" if counted else None
    )


def host(**moved: tuple[float, float]) -> pl.DataFrame:
    """Rows of a second each; by device MiB read and written in all of them."""
    columns: dict[str, list[float]] = {
        "t_ns": [(at + 1) * 1e9 for at in range(SECONDS)],
        "dt_ns": [1e9] * SECONDS,
    }
    for name, (reads, writes) in moved.items():
        for op, mib in (("read", reads), ("write", writes)):
            columns[f"block.{name}.{op}_bytes"] = [mib * MIB / SECONDS] * SECONDS
            columns[f"block.{name}.{op}s"] = [mib * 256 / SECONDS] * SECONDS
            columns[f"block.{name}.{op}_time_ns"] = [mib * 256 * 1e6 / SECONDS] * SECONDS
            columns[f"block.{name}.{op}_merges"] = [0.0] * SECONDS
        columns[f"block.{name}.flushes"] = [2.0] * SECONDS
        columns[f"block.{name}.busy_ns"] = [5e8] * SECONDS
    return pl.DataFrame(columns)


def flows(layers: list[Layer], rows: pl.DataFrame, reads: float, writes: float = 0.0) -> dict[str, LayerFlow]:
    path = DataPath(target=layers[0].name, layers=tuple(layers))
    asked = {
        "read": Moved(reads * 256, reads * MIB),
        "write": Moved(writes * 256, writes * MIB),
        "trim": Moved(0, 0),
    }
    target = TargetState(layers[0].name, path_layers=path)
    return {one.name: one for one in layer_flows.flows(rows, asked, [target])}  # type: ignore[arg-type]


def several(
    paths: list[list[Layer]], rows: pl.DataFrame, by_target: dict[str, tuple[float, float]]
) -> dict[str, LayerFlow]:
    """Flows under several targets; `by_target` has the MiB read and written of each that is known."""

    def moved(reads: float, writes: float) -> dict[Any, Moved]:
        return {
            "read": Moved(reads * 256, reads * MIB),
            "write": Moved(writes * 256, writes * MIB),
            "trim": Moved(0, 0),
        }

    parts = {name: moved(*sizes) for name, sizes in by_target.items()}
    whole = moved(*(sum(sizes) for sizes in zip(*by_target.values(), strict=True)))
    targets = [
        TargetState(path[0].name, path_layers=DataPath(target=path[0].name, layers=tuple(path)))
        for path in paths
    ]
    return {one.name: one for one in layer_flows.flows(rows, whole, targets, parts)}


LOOP = [layer("loop1", "loop", "/img", direct_io=False), layer("/img", "file", "ext4", counted=False)]
BELOW = [layer("ext4", "file_system", "sda", counted=False, options="rw"), layer("sda", "disk")]


def test_what_is_handed_on_agrees() -> None:
    told = flows([*LOOP, *BELOW], host(loop1=(100, 0), sda=(101, 0)), 100)
    assert [one.agrees for one in told.values()] == [True, None, None, True]
    assert told["sda"].given_by == "loop1"
    assert told["sda"].expected_read_bytes == 100 * MIB
    assert told["sda"].flushes == 8
    assert told["sda"].busy_share == 0.5
    assert told["sda"].service_ns == pytest.approx(1e6)


@pytest.mark.parametrize(
    ("reads", "writes", "why"), [(100, 0, "served from memory"), (0, 100, "absorbed in memory")]
)
def test_a_loop_without_direct_io_keeps_its_files_pages(reads: float, writes: float, why: str) -> None:
    told = flows([*LOOP, *BELOW], host(loop1=(reads, writes), sda=(reads / 50, writes / 50)), reads, writes)
    assert told["loop1"].agrees
    assert told["sda"].agrees is False
    assert str(told["sda"].why).startswith(f"{why}: loop1 has no direct I/O")
    assert told["loop1"].state == ("no direct I/O: cached in memory below",)


@pytest.mark.parametrize(("direct", "doubted"), [(False, True), (True, False)])
def test_a_cache_in_memory_over_what_nobody_counts_is_doubted(*, direct: bool, doubted: bool) -> None:
    loop = layer("loop1", "loop", "/img", direct_io=direct)
    told = flows([loop, layer("/img", "file", counted=False)], host(loop1=(100, 0)), 100)
    case = cases.run(layers=tuple(told.values()))
    if not doubted:
        assert rule.RULE.judge(case) == Clear()
        return
    found = cases.one(rule.RULE, case)
    assert (found.effect, found.layer) == ("suspect", "loop1")
    assert "nothing below it is counted" in found.text


def test_files_of_one_file_system_give_its_disk_what_they_got_together() -> None:
    files = [layer(f"/mnt/{name}", "file", "ext4", counted=False) for name in "ab"]
    told = several(
        [[file, *BELOW] for file in files], host(sda=(130, 20)), {"/mnt/a": (100, 0), "/mnt/b": (30, 20)}
    )
    assert (told["sda"].agrees, told["sda"].given_by) == (True, "the job")
    assert told["sda"].expected_read_bytes == 130 * MIB
    assert told["sda"].expected_write_bytes == 20 * MIB


def test_each_of_several_devices_is_held_against_its_own_part() -> None:
    devices = [[layer("sda", "disk")], [layer("sdb", "disk")]]
    told = several(devices, host(sda=(100, 0), sdb=(5, 0)), {"sda": (100, 0), "sdb": (100, 0)})
    assert [told[name].agrees for name in ("sda", "sdb")] == [True, False]
    assert told["sdb"].why == "served from memory on the way"


def test_what_the_job_gave_one_of_several_targets_may_be_unknown() -> None:
    told = several(
        [[layer("sda", "disk")], [layer("sdb", "disk")]], host(sda=(9, 0), sdb=(9, 0)), {"sda": (9, 0)}
    )
    assert told["sda"].agrees
    assert told["sdb"].agrees is None


def test_files_of_which_only_the_whole_load_is_known_meet_in_their_file_system() -> None:
    files = [layer(f"/mnt/{name}", "file", "ext4", counted=False) for name in "ab"]
    told = several([[file, *BELOW] for file in files], host(sda=(50, 0)), {"": (100, 0)})
    assert told["/mnt/a"].expected_read_bytes is None
    assert (told["sda"].agrees, told["sda"].given_by) == (False, "the job")
    assert told["sda"].expected_read_bytes == 100 * MIB


def test_a_disk_below_a_mirror_and_a_partition_is_held_against_nothing() -> None:
    mirror = layer("md0", "md", "sda", "sdb", level="raid1")
    paths = [
        [mirror, layer("sda", "disk"), layer("sdb", "disk")],
        [layer("sda1", "partition", "sda"), layer("sda", "disk")],
    ]
    told = several(
        paths, host(md0=(0, 50), sda=(0, 150), sdb=(0, 50), sda1=(0, 100)), {"md0": (0, 50), "sda1": (0, 100)}
    )
    assert told["sda"].agrees is None
    assert told["sda"].expected_write_bytes is None


def test_holes_below_are_never_stored() -> None:
    loop = layer("loop1", "loop", "/img", direct_io=True)
    file = layer("/img", "file", "ext4", counted=False, size_bytes=64 * MIB, hole_bytes=64 * MIB)
    told = flows([loop, file, *BELOW], host(loop1=(100, 0), sda=(0, 0)), 100)
    assert told["sda"].why == "never stored: /img has holes"


def test_a_mirror_writes_twice_on_purpose() -> None:
    file = layer("/mnt/f", "file", "btrfs on /mnt", counted=False)
    system = layer("btrfs on /mnt", "file_system", "btrfs raid1", counted=False)
    mirror = layer("btrfs raid1", "btrfs", "sda", "sdb", counted=False, data_profile="raid1")
    told = flows(
        [file, system, mirror, layer("sda", "disk"), layer("sdb", "disk")],
        host(sda=(0, 100), sdb=(0, 100)),
        0,
        100,
    )
    assert told["sda"].expected_write_bytes == told["sdb"].expected_write_bytes == 100 * MIB
    assert told["sda"].agrees is not False


def test_a_journal_that_keeps_data_amplifies() -> None:
    file = layer("/mnt/f", "file", "ext4", counted=False)
    system = layer("ext4", "file_system", "sda", counted=False, super_options="rw,data=journal")
    told = flows([file, system, layer("sda", "disk")], host(sda=(0, 220)), 0, 100)
    assert str(told["sda"].why).startswith("amplified: the journal")
    assert "journal mode: data" in told["ext4"].state


def test_the_rule_leaves_the_first_device_to_others_and_names_what_is_below() -> None:
    told = flows([*LOOP, *BELOW], host(loop1=(100, 0), sda=(3, 0)), 100)
    found = cases.one(rule.RULE, cases.run(layers=tuple(told.values())))
    assert found.effect == "not_valid"
    assert found.layer == "loop1"
    first = flows([layer("sda", "disk")], host(sda=(3, 0)), 100)
    assert isinstance(rule.RULE.judge(cases.run(layers=tuple(first.values()))), Clear)
    assert isinstance(rule.RULE.judge(cases.run(source="fio")), NotMine)


def test_a_mirror_of_btrfs_that_lost_a_member_is_named_and_writes_once() -> None:
    file = layer("/mnt/f", "file", "btrfs on /mnt", counted=False)
    system = layer("btrfs on /mnt", "file_system", "btrfs raid1", counted=False)
    mirror = layer("btrfs raid1", "btrfs", "sda", counted=False, data_profile="raid1", degraded=1)
    told = flows([file, system, mirror, layer("sda", "disk")], host(sda=(0, 100)), 0, 100)
    assert told["sda"].agrees
    assert told["btrfs raid1"].state == ("degraded: 1 member missing", "profile raid1")
    found = cases.one(rule.RULE, cases.run(layers=tuple(told.values())))
    assert (found.effect, found.layer) == ("limited", "btrfs raid1")


def test_a_misaligned_partition_is_named_though_its_bytes_add_up() -> None:
    part = layer("sda1", "partition", "sda", start_bytes=512 * 63)
    told = flows([part, layer("sda", "disk")], host(sda1=(100, 0), sda=(100, 0)), 100)
    found = cases.one(rule.RULE, cases.run(layers=tuple(told.values())))
    assert found.effect == "limited"
    assert found.layer == "sda1"


def test_the_parts_of_a_latency_add_up_to_it() -> None:
    told = tuple(flows([*LOOP, *BELOW], host(loop1=(100, 0), sda=(50, 0)), 100).values())
    clocks = latency_split._clocks(latency_split._levels(told))
    parts, unknown = latency_split.divided(3e6, clocks)
    assert [(one.name, one.ns) for one in parts] == [
        (latency_split.ABOVE, 2e6),
        ("loop1", 0.5e6),
        ("sda", 0.5e6),
    ]
    assert sum(one.ns for one in parts) + unknown == 3e6
    assert latency_split.divided(3e6, []) == ((), 3e6)
    # Clocks that say more than was measured are not of the same I/Os.
    assert latency_split.divided(0.5e6, clocks) == ((), 0.5e6)


def tails(rows: pl.DataFrame, size_bytes: float = 4096, **p99s: float) -> list[tuple[str, float]]:
    told = flows([*LOOP, *BELOW], rows, 100)
    layers = [one.model_copy(update={"service_p99_ns": p99s.get(one.name)}) for one in told.values()]
    return latency_split._tails(latency_split._levels(layers), size_bytes)


def test_a_percentile_is_divided_as_far_down_as_its_ios_go() -> None:
    rows = host(loop1=(100, 0), sda=(100, 0))
    assert tails(rows, loop1=2e6, sda=1.5e6) == [("loop1", 2e6), ("sda", 1.5e6)]
    # Half of the reads came from memory, or the disk was not followed: what is below loop1 is one part.
    assert tails(host(loop1=(100, 0), sda=(50, 0)), loop1=2e6, sda=1.5e6) == [("loop1 and below", 2e6)]
    assert tails(rows, loop1=2e6) == [("loop1 and below", 2e6)]
    # Somebody else's I/Os are among those that were followed.
    assert tails(host(loop1=(150, 0), sda=(100, 0)), loop1=2e6, sda=1.5e6) == []
    # Blocks of 64 KiB were cut: the slowest of 4 KiB say nothing of them.
    assert tails(rows, 65536, loop1=2e6, sda=1.5e6) == []
    assert tails(rows, sda=1.5e6) == []


def served_rows(*each: dict[int, int], unfinished: int = 0) -> pl.DataFrame:
    columns = sorted({low for row in each for low in row})
    frame = {f"served.sda.from_{low}_ns": [row.get(low) for row in each] for low in columns}
    return pl.DataFrame(frame | {"served.sda.unfinished_ios": [unfinished or None] * len(each)})


def test_the_percentile_of_a_sample_needs_enough_ios_that_agree_from_second_to_second() -> None:
    even = {1024: 195, 8192: 5}
    assert served.p99_ns(served_rows(*[even] * 10), "sda") == 8192 + 512
    assert served.p99_ns(served_rows(*[even] * 10), "sdb") is None
    assert served.p99_ns(served_rows(*[even] * 4), "sda") is None  # four seconds
    assert served.p99_ns(served_rows(*[{1024: 50, 8192: 2}] * 10), "sda") is None  # five beyond it
    # All slow ones in one second of ten: another run may have none of them, or twice as many.
    once = [{1024: 200}] * 9 + [{1024: 150, 8192: 50}]
    assert served.p99_ns(served_rows(*once), "sda") is None
    # The end of more than one in a hundred was not seen: it may have been anything.
    assert served.p99_ns(served_rows(*[even] * 10, unfinished=3), "sda") is None
    assert served.p99_ns(served_rows(*[even] * 10, unfinished=1), "sda") == 8192 + 512
