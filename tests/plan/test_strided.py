"""Windows, flows and overlaps: from the job file to the Plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError
from loadstone.plan.model import Flow, Strided

if TYPE_CHECKING:
    from tests.plan.conftest import Planner

NULL = "[a]\nioengine=null\nsize=1m\n"


@pytest.mark.parametrize(
    ("options", "strided"),
    [
        (
            "zonemode=strided\nzonesize=64k\n",
            Strided(zone_bytes=65536, range_bytes=65536, skip_bytes=0),
        ),
        ("zonesize=8k\nzonerange=64k\n", Strided(zone_bytes=8192, range_bytes=65536, skip_bytes=0)),
        (
            "zonesize=8k\nzoneskip=1m\n",
            Strided(zone_bytes=8192, range_bytes=8192, skip_bytes=1 << 20),
        ),
        ("zonemode=none\nzonesize=8k\n", None),
        ("", None),
    ],
)
def test_windows(plan: Planner, options: str, strided: Strided | None) -> None:
    assert plan(NULL + options).plan.streams[0].pattern.strided == strided


@pytest.mark.parametrize("options", ["zonemode=strided\n", "zonesize=8k\nbs=16k\n"])
def test_windows_that_cannot_be(plan: Planner, options: str) -> None:
    with pytest.raises(InputError):
        plan(NULL + options)


def test_windows_go_on_to_the_end_of_what_exists(plan: Planner) -> None:
    stream = plan("[a]\nfilename=/t/1g\nsize=1m\noffset=4k\nzonesize=8k\nzoneskip=8k\n").plan.streams[0]
    assert (stream.files[0].length_bytes, stream.limits.bytes) == ((1 << 30) - 4096, 1 << 20)


def test_random_windows_take_the_block_that_size_ends_in(plan: Planner) -> None:
    """990300-060: 194.25 blocks are 195 to fio, whose map is cleared for each zone."""
    text = "[a]\nrw=randread\nsize=777k\nfilename=/t/1g\nzonemode=strided\nzonesize=64k\nzoneskip=64k\n"
    assert plan(text).plan.streams[0].limits.bytes == 195 * 4096


def test_windows_go_on_past_a_share_of_the_file(plan: Planner) -> None:
    """990300-023: fio's zones end with the file also where `size` is a percentage."""
    text = "[a]\nfilename=/t/1g\nsize=5%\noffset=25%\nbs=1m\nzonemode=strided\nzonesize=1m\nzoneskip=1m\n"
    stream = plan(text).plan.streams[0]
    assert (stream.files[0].offset_bytes, stream.files[0].length_bytes) == (1 << 28, 3 << 28)
    assert stream.limits.bytes == 51 << 20


@pytest.mark.parametrize(
    ("options", "zones"), [("openfiles=3\n", False), ("openfiles=1\n", True), ("", True)]
)
def test_fio_has_no_zones_where_several_files_are_open(plan: Planner, options: str, zones: bool) -> None:
    text = f"[a]\nnrfiles=3\nsize=3m\nzonemode=strided\nzonesize=64k\nzoneskip=64k\n{options}"
    found = plan(text, strict=True)
    assert (found.plan.streams[0].pattern.strided is not None) is zones
    said = [note.text for note in found.notes if "zonemode" in note.text]
    assert said == ([] if zones else ["zonemode=strided has no effect with openfiles above 1, as in fio"])


def test_flows(plan: Planner) -> None:
    streams = plan(NULL + "flow=8\nflow_id=2\nflow_sleep=100\n[b]\nioengine=null\nsize=1m\n").plan.streams
    assert streams[0].flow == Flow(id=2, weight=8, sleep_ns=100_000, ahead=0)
    assert streams[1].flow is None


@pytest.mark.parametrize(
    ("options", "held"),
    [("rw=randwrite\niodepth=4\n", True), ("rw=randread\niodepth=4\n", False), ("rw=randwrite\n", False)],
)
def test_overlaps_are_held_back_where_they_matter(plan: Planner, options: str, held: bool) -> None:
    assert plan(NULL + "serialize_overlap=1\n" + options).plan.streams[0].serialize_overlap is held


@pytest.mark.parametrize(
    ("options", "moved"),
    [
        ("rw=read:512k\nbs=1m\nsize=128m\n", 85 << 20),
        ("rw=read:512k\nbs=1m\nsize=128m\nloops=2\n", 170 << 20),
        ("rw=read:512k\nbs=1m\nsize=128m\nio_size=128m\n", 128 << 20),
        ("rw=read:4k\nbs=8k\nsize=28k\n", 2 * 8192),
        ("rw=read:4k\nbs=4k\nsize=20k\n", 3 * 4096),
        ("rw=read:4k\nbs=4k\nsize=24k\n", 24 << 10),
        ("rw=read:8k\nbs=4k\nsize=28k\n", 3 * 4096),
        ("rw=read:8k\nbs=4k\nsize=24k\n", 24 << 10),
        ("rw=read:8k\nbs=4k\nsize=24k\noffset=8k\n", 2 * 4096),
        ("rw=read\nbs=4k\nsize=1000k\nzonesize=64k\nzonerange=256k\nzoneskip=64k\n", 58 * 4096),
        ("rw=read\nbs=4k\nsize=960k\nzonesize=64k\nzonerange=256k\nzoneskip=64k\n", 960 << 10),
        ("rw=read\nbs=4k\nsize=1280k\nzonesize=64k\nzonerange=256k\nzoneskip=64k\n", 1280 << 10),
        ("rw=read:-8k\nbs=4k\nsize=16k\n", 16 << 10),
    ],
)
def test_a_walk_with_holes_ends_at_the_end_of_the_file(plan: Planner, options: str, moved: int) -> None:
    assert plan(f"[a]\nioengine=null\n{options}").plan.streams[0].limits.bytes == moved
