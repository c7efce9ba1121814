"""What the layers of a path did, and which was fullest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle
from loadstone.path import ceilings
from loadstone.path.layers import Ceiling, DataPath, Layer
from tests.support.paths import SECOND_NS, run_on
from tests.support.runs import MadeJob, begun_again, make

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.analysis.path import LayerUse, Paths
    from loadstone.analysis.summary import Summary

MB = 10**6


def paths(made: Summary) -> Paths:
    (paths,) = made.paths
    return paths


def use(made: Summary, name: str) -> LayerUse:
    found = paths(made).named(name)
    assert found is not None
    return found


def disk(name: str, *below: str, limits: tuple[Ceiling, ...] = ()) -> Layer:
    return Layer(name=name, kind="disk", below=below, ceilings=limits, counters=f"block.{name}")


def counted(
    name: str, *, read: int = 0, write: int = 0, busy: float = 0.0, queue: float = 0.0
) -> dict[str, int]:
    """Per second: megabytes in I/Os of 4000 bytes, share of time busy, I/Os in flight."""
    return {
        f"block.{name}.read_bytes": read * MB,
        f"block.{name}.write_bytes": write * MB,
        f"block.{name}.reads": read * 250,
        f"block.{name}.writes": write * 250,
        f"block.{name}.busy_ns": int(busy * SECOND_NS),
        f"block.{name}.queue_time_ns": int(queue * SECOND_NS),
    }


@pytest.mark.in_turn
def test_counters_over_the_measured_time(tmp_path: Path) -> None:
    made = run_on(tmp_path, [disk("sda")], counted("sda", read=100, write=20, busy=0.5, queue=7.5))
    found = use(made, "sda")
    assert found.traffic is not None
    assert (found.traffic.read_bytes_per_s, found.traffic.write_bytes_per_s) == (100e6, 20e6)
    assert (found.traffic.read_iops, found.traffic.write_iops) == (25e3, 5e3)
    assert (found.busy_share, found.outstanding, found.counted) == (0.5, 7.5, True)
    assert paths(made).seconds == pytest.approx(4)


def test_ramps_are_left_out(tmp_path: Path) -> None:
    made = run_on(tmp_path, [disk("sda")], counted("sda", read=1), job=MadeJob(ramp_s=2.0))
    assert paths(made).seconds == pytest.approx(2)


def test_the_target_itself_did_what_the_engine_says(tmp_path: Path) -> None:
    made = run_on(tmp_path, [disk("sda")], counted("sda", read=100), job=MadeJob(ops_hz={"read": 1000.0}))
    top = paths(made).uses[0]
    assert top.traffic is not None
    assert top.traffic.read_iops == pytest.approx(1000, rel=0.03)
    assert top.traffic.write_iops == 0


def test_a_link_carries_what_stands_on_it(tmp_path: Path) -> None:
    link = Layer(name="fc host0", kind="link", ceilings=(ceilings.fibre_channel(4),))
    raid = Layer(name="md0", kind="md", below=("sda", "sdb"), counters="block.md0")
    layers = [raid, disk("sda", "fc host0"), disk("sdb", "fc host0"), link]
    columns = counted("sda", read=150) | counted("sdb", read=230) | counted("md0", read=380)
    made = run_on(tmp_path, layers, columns)
    found = use(made, "fc host0")
    assert found.counted is False
    assert found.traffic is not None
    assert found.traffic.read_bytes_per_s == 380e6
    assert found.fullest == pytest.approx(0.95)
    narrowest, how = paths(made).narrowest()
    assert ([one.layer.name for one in narrowest], how) == (["fc host0"], "ceiling")


def test_what_one_part_did_not_tell_is_not_guessed(tmp_path: Path) -> None:
    link = Layer(name="ata1", kind="link", ceilings=(ceilings.sata(6),))
    layers = [
        Layer(name="md0", kind="md", below=("sda", "sdb")),
        disk("sda", "ata1"),
        disk("sdb", "ata1"),
        link,
    ]
    made = run_on(tmp_path, layers, counted("sda", read=590))
    assert use(made, "sdb").traffic is None
    assert use(made, "ata1").traffic is None
    assert use(made, "ata1").fullest is None


def test_a_full_duplex_link_is_as_full_as_its_fuller_way(tmp_path: Path) -> None:
    limits = (ceilings.fibre_channel(4), ceilings.sata(6))
    made = run_on(tmp_path, [disk("sda", limits=limits)], counted("sda", read=200, write=300))
    shares = [held.share for held in use(made, "sda").held]
    assert shares == [pytest.approx(300 / 400), pytest.approx(500 / 600)]


def test_a_ceiling_of_another_access_is_not_held_against_it(tmp_path: Path) -> None:
    random = Ceiling(quantity="iops", op="read", per_s=25e3, kind="specified", source="x", access="random")
    layers = [disk("sda", limits=(random,))]
    assert use(run_on(tmp_path, layers, counted("sda", read=100)), "sda").fullest == 1.0
    other = run_on(tmp_path / "s", layers, counted("sda", read=100), job=MadeJob(random_percent=0))
    assert use(other, "sda").fullest is None


def test_a_limit_counts_ios_before_they_are_merged(tmp_path: Path) -> None:
    limit = Ceiling(quantity="iops", op="read", per_s=50e3, kind="limit", source="a group")
    above = Layer(
        name="cgroup /a on sda", kind="cgroup", below=("sda",), ceilings=(limit,), counters="block.sda"
    )
    columns = counted("sda", read=100) | {"block.sda.read_merges": 25_000, "block.sda.write_merges": 0}
    made = run_on(tmp_path, [above, disk("sda")], columns)
    assert use(made, "cgroup /a on sda").fullest == 1.0
    lower = use(made, "sda").traffic
    assert lower is not None
    assert lower.read_iops == 25e3


def test_without_a_ceiling_the_lowest_busy_layer_is_told_as_such(tmp_path: Path) -> None:
    layers = [disk("loop0", "sda"), disk("sda")]
    columns = counted("loop0", read=1, busy=1.0) | counted("sda", read=1, busy=0.97)
    narrowest, how = paths(run_on(tmp_path, layers, columns)).narrowest()
    assert ([one.layer.name for one in narrowest], how) == (["sda"], "busy")
    idle = run_on(tmp_path / "i", layers, counted("loop0", busy=0.5) | counted("sda", busy=0.2))
    assert paths(idle).narrowest()[0] == []


def test_members_side_by_side_are_full_together(tmp_path: Path) -> None:
    raid = Layer(name="md0", kind="md", below=("sda", "sdb", "sdc"))
    layers = [raid, *(disk(name, limits=(ceilings.sata(3),)) for name in raid.below)]
    columns = counted("sda", read=290) | counted("sdb", read=280) | counted("sdc", read=100)
    narrowest, _ = paths(run_on(tmp_path, layers, columns)).narrowest()
    assert [one.layer.name for one in narrowest] == ["sda", "sdb"]


def test_a_layer_that_nothing_counts_and_a_bundle_without_paths(tmp_path: Path) -> None:
    made = run_on(tmp_path, [disk("sda")], {})
    assert use(made, "sda").traffic is None
    assert use(made, "sda").busy_share is None
    assert summarise(Bundle.open(make(tmp_path / "old").path)).paths == []


def test_layers_are_told_over_the_seconds_of_the_load_beside_them(tmp_path: Path) -> None:
    """Two phases on one disk: its mean over both stands beside neither."""
    made = make(
        tmp_path / "b",
        MadeJob("fast", {"read": 1000.0}, targets=(0,)),
        MadeJob("slow", {"read": 200.0}, targets=(1,), stage=1),
        targets=2,
        seconds=4.0,
        seal=None,
        host=False,
    )
    disk = Layer(name="sda", kind="disk", counters="block.sda")
    told = [
        DataPath(target=target.path, layers=(Layer(name=target.path, kind="file", below=("sda",)), disk))
        for target in made.plan.targets
    ]
    (made.path / "environment.json").write_text(
        json.dumps({"paths": [one.model_dump(mode="json", exclude_defaults=True) for one in told]})
    )
    with (made.path / "host.jsonl").open("w") as file:
        for at in range(1, 9):
            rate = 1000 if at <= 4 else 200
            row = {
                "t_ns": at * SECOND_NS,
                "dt_ns": SECOND_NS,
                "block.sda.reads": rate,
                "block.sda.read_bytes": rate * 4096,
                "block.sda.writes": 0,
                "block.sda.write_bytes": 0,
            }
            file.write(json.dumps(row) + "\n")
    found = summarise(Bundle.open(begun_again(made.path))).paths
    assert [one.phase for one in found] == ["fast", "slow"]
    for one, per_s in zip(found, (1000.0, 200.0), strict=True):
        top, below = one.uses
        assert top.traffic is not None
        assert below.traffic is not None
        assert below.traffic.read_iops == per_s
        assert top.traffic.read_iops == pytest.approx(per_s, rel=0.1)
        assert one.seconds == 4.0
