"""fio's verify options for `loadstone fio`, resolved into Plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError, RefusedError
from loadstone.plan.derived import asked_operations

if TYPE_CHECKING:
    from loadstone.plan.model import Headers, Stream
    from tests.plan.conftest import Planner

WRITE = "[w]\nfilename=/t/1g\nrw=randwrite\nbs=4k\nsize=64m\nverify=md5\n"
TRIMWRITE = "[a]\nfilename=/t/1g\nrw=trimwrite\nverify=crc32c\n"


def only(plan: Planner, text: str) -> Stream:
    (stream,) = plan(text, strict=True).plan.streams
    return stream


def headers(plan: Planner, text: str) -> Headers:
    found = only(plan, text).headers
    assert found is not None
    return found


def test_the_drop_in_reads_back_in_the_stream_that_wrote(plan: Planner) -> None:
    stream = only(plan, WRITE)
    assert stream.verify is None
    assert stream.headers is not None
    assert (stream.headers.sum, stream.headers.read_back, stream.headers.passes) == ("md5", True, 1)
    assert stream.limits.bytes == 64 << 20
    assert asked_operations(stream) == {"read", "write"}


def test_loadstone_run_verifies_by_stamps(plan: Planner) -> None:
    write, back = plan(WRITE).plan.streams
    assert write.verify is not None
    assert (write.headers, back.headers) == (None, None)


@pytest.mark.parametrize(
    ("options", "bytes_"),
    [
        ("", 4096),
        ("verify_interval=512\n", 512),
        ("verify_interval=2222\n", 4096),
        ("verify_interval=16k\n", 4096),
        ("bsrange=2k-8k\n", 2048),
        ("bsrange=2k-8k\nverify_interval=1k\n", 1024),
        ("bssplit=6k/50:4k/50\n", 2048),
        ("bsrange=2k-8k\nbs_unaligned=1\n", 0),
    ],
)
def test_the_interval_is_what_fio_makes_of_it(plan: Planner, options: str, bytes_: int) -> None:
    assert headers(plan, WRITE + options).interval_bytes == bytes_


@pytest.mark.parametrize(
    ("options", "by_address"),
    [
        ("", False),
        ("norandommap=1\n", True),
        ("rw=write\n", True),
        ("random_generator=lfsr\n", True),
        ("random_distribution=zipf:1.2\n", True),
        ("rw=write\nexperimental_verify=1\n", False),
        ("size=1m\nio_size=2m\n", True),
        ("size=1m\nio_size=512k\n", False),
        ("rw=randwrite:8\n", True),
        # 990300-011: windows come again, and a block that was written over was told to be damaged.
        ("zonemode=strided\nzonesize=64k\nzonerange=128k\n", True),
    ],
)
def test_what_is_written_once_is_read_back_in_its_turn(plan: Planner, options: str, by_address: bool) -> None:
    assert headers(plan, WRITE + options).by_address is by_address


def test_verify_only_writes_nothing(plan: Planner) -> None:
    resolution = plan(WRITE + "verify_only=1\n", strict=True)
    (stream,) = resolution.plan.streams
    assert stream.headers is not None
    assert stream.headers.only
    assert stream.pattern.write_percent == 100
    assert resolution.plan.targets[0].read_only
    assert asked_operations(stream) == {"read"}


def test_a_pass_of_writes_that_may_repeat_is_io_size_and_else_the_size(plan: Planner) -> None:
    assert only(plan, WRITE + "io_size=128m\n").limits.bytes == 64 << 20
    assert only(plan, WRITE + "io_size=32m\n").limits.bytes == 32 << 20
    assert only(plan, WRITE + "io_size=128m\nnorandommap=1\n").limits.bytes == 128 << 20
    timed = only(plan, WRITE + "time_based=1\nruntime=9\n")
    assert timed.limits.bytes == 64 << 20
    assert timed.headers is not None
    assert timed.headers.passes == 0
    looped = only(plan, WRITE + "loops=3\n")
    assert looped.headers is not None
    assert (looped.headers.passes, looped.limits.bytes) == (3, 64 << 20)


def test_writes_that_may_overlap_in_flight_wait_for_each_other(plan: Planner) -> None:
    deep = WRITE + "ioengine=libaio\niodepth=16\n"
    assert not only(plan, deep).serialize_overlap
    assert only(plan, deep + "norandommap=1\n").serialize_overlap


def test_backlog_and_trims_take_their_batches(plan: Planner) -> None:
    found = headers(
        plan, WRITE + "verify_backlog=8\ntrim_percentage=50\ntrim_backlog=4\ntrim_verify_zero=1\n"
    )
    assert found.backlog is not None
    assert (found.backlog.writes, found.backlog.batch) == (8, 8)
    assert found.trim is not None
    assert (found.trim.percent, found.trim.writes, found.trim.batch, found.trim.zeros) == (50, 4, 4, True)


def test_the_offset_in_a_pattern_has_its_place(plan: Planner) -> None:
    found = headers(plan, WRITE + 'verify=pattern\nverify_pattern="ab"%o0xff\nverify_pattern_interval=512\n')
    assert found.sum == "pattern"
    assert found.pattern is not None
    assert found.pattern.bytes == (97, 98, 0, 0, 0, 0, 0, 0, 0, 0, 255)
    assert (found.pattern.offsets_at, found.pattern.interval_bytes) == ((2,), 512)


def test_a_state_that_is_not_there_is_named(plan: Planner) -> None:
    with pytest.raises(InputError, match=r"local-w-0-verify\.state: No such file"):
        plan(WRITE + "verify_only=1\nverify_state_load=1\n", strict=True, aux_directory="/no/such")


@pytest.mark.parametrize("option", ["verify_pattern_interval=512", "trim_percentage=5", "verify=null"])
def test_stamps_refuse_what_only_headers_can_do(plan: Planner, option: str) -> None:
    with pytest.raises(RefusedError):
        plan(WRITE + option + "\n")


def test_a_place_read_back_once_for_each_write_to_it_may_hold_a_later_one(plan: Planner) -> None:
    again = headers(plan, WRITE + "norandommap=1\nexperimental_verify=1\n")
    assert (again.by_address, again.check_seed, again.check_number) == (False, False, False)
    once = headers(plan, WRITE + "experimental_verify=1\n")
    assert (once.check_seed, once.check_number) == (True, True)


@pytest.mark.parametrize(("options", "strict"), [("", False), ("verify_only=1\n", True)])
def test_writes_after_trims_are_not_said_to_be_verified(plan: Planner, options: str, *, strict: bool) -> None:
    with pytest.raises(RefusedError, match="trimwrite writes is not verified"):
        plan(TRIMWRITE + options, strict=strict)


def test_who_only_reads_may_have_written_after_trims(plan: Planner) -> None:
    assert plan(TRIMWRITE + "verify_only=1\n").plan.streams


def test_by_headers_writes_after_trims_are_read_back(plan: Planner) -> None:
    """Also where they are as long as the trims, and not as writes alone would be."""
    assert headers(plan, TRIMWRITE).read_back
    assert headers(plan, TRIMWRITE + "bs=4k,4k,64k\n").interval_bytes == 65536


@pytest.mark.parametrize("verified", ["", "verify=0\n"])
def test_a_write_does_not_go_past_the_trim_of_its_place(plan: Planner, verified: str) -> None:
    assert not only(plan, TRIMWRITE + verified).serialize_overlap
    assert only(plan, TRIMWRITE + verified + "ioengine=libaio\niodepth=4\n").serialize_overlap
