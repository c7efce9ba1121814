"""fio's verify options, resolved into Plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.engine.plan_check import memory_bytes
from loadstone.errors import RefusedError
from loadstone.plan.derived import reads_back

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from tests.plan.conftest import Planner


def streams(plan: Planner, text: str) -> list[Stream]:
    return list(plan(text).plan.streams)


def stages(plan: Planner, text: str) -> list[tuple[str, int]]:
    found = plan(text).plan
    return [(stream.name, found.workers[stream.worker].stage) for stream in found.streams]


WRITE = "[w]\nfilename=/t/1g\nrw=randwrite\nbs=4k\nsize=64m\nverify=md5\n"


def test_what_is_written_is_read_back_in_a_stage_of_its_own(plan: Planner) -> None:
    write, back = streams(plan, WRITE)
    assert write.verify is not None
    assert (write.verify.block_bytes, write.verify.only_written) == (4096, False)
    assert (write.verify.expect, write.verify.content) == ("table", "generated")
    assert back.verify == write.verify.model_copy(update={"only_written": True})
    assert reads_back(back)
    assert not reads_back(write)
    assert (back.pattern.read_percent, back.pattern.read.random_percent) == (100, 0)
    assert back.limits.bytes == 64 << 20
    assert back.limits.runtime_ns == 0
    assert stages(plan, WRITE) == [("w.0", 0), ("w.0.verify", 1)]


def test_stages_make_room_for_reading_back(plan: Planner) -> None:
    text = (
        WRITE
        + "[x]\nfilename=/t/1g\noffset=512m\nsize=64m\nrw=read\n[y]\nstonewall\nfilename=/t/1g\nrw=read\n"
    )
    assert stages(plan, text.replace("verify=md5\n", "verify=md5\nnumjobs=1\n")) == [
        ("w.0", 0),
        ("w.0.verify", 1),
        ("x.0", 0),
        ("y.0", 2),
    ]


def test_do_verify_0_only_stamps(plan: Planner) -> None:
    assert [stream.name for stream in streams(plan, WRITE + "do_verify=0\n")] == ["w.0"]


def test_verify_only_reads_what_an_earlier_run_wrote(plan: Planner) -> None:
    (back,) = streams(plan, WRITE + "verify_only\n")
    assert back.verify is not None
    assert (back.verify.expect, back.verify.only_written) == ("stamps", False)
    assert back.pattern.write_percent == 0


def test_verify_only_trims_nothing(plan: Planner) -> None:
    (back,) = streams(plan, "[a]\nfilename=/t/1g\nrw=trimwrite\nverify_only\n")
    found = back.pattern
    assert (found.read_percent, found.write_percent, found.trim_percent) == (100, 0, 0)
    assert not found.trim_then_write


def test_a_read_job_is_held_against_what_the_run_wrote(plan: Planner) -> None:
    later = "[r]\nstonewall\nfilename=/t/1g\nrw=read\nsize=64m\nbs=64k\nverify=md5\nverify_interval=4k\n"
    *_, read = streams(plan, WRITE + later)
    assert read.verify is not None
    assert (read.verify.expect, read.verify.block_bytes) == ("table", 4096)


@pytest.mark.parametrize(
    ("options", "block_bytes"),
    [
        ("bs=64k", 65536),
        ("bs=64k\nverify_interval=4k", 4096),
        ("bssplit=4k/50:6k/50", 2048),
        ("bs=8k\noffset=512", 512),
    ],
)
def test_the_verify_block_divides_every_size_and_offset(
    plan: Planner, options: str, block_bytes: int
) -> None:
    first = streams(plan, f"[w]\nfilename=/t/1g\nrw=write\nsize=64m\nverify=crc32c\n{options}\n")[0]
    assert first.verify is not None
    assert first.verify.block_bytes == block_bytes


def test_a_payload_that_was_asked_for_is_kept(plan: Planner) -> None:
    first = streams(plan, WRITE + "buffer_pattern=0xab\n")[0]
    assert first.verify is not None
    assert first.verify.content == "payload"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("bs=1000", "multiples of 512"),
        ("verify_interval=3k", "does not divide"),
        ("dedupe_percentage=10", "no two stamped blocks"),
        ("ioengine=null", "keeps no data"),
    ],
)
def test_what_cannot_be_verified_is_refused(plan: Planner, options: str, words: str) -> None:
    with pytest.raises(RefusedError, match=words):
        plan(WRITE + options + "\n")


def test_the_table_is_in_the_memory_that_is_told(plan: Planner) -> None:
    plain = memory_bytes(plan(WRITE.replace("verify=md5\n", "")).plan)
    assert memory_bytes(plan(WRITE).plan) - plain >= (64 << 20) // 4096 * 4


def test_every_run_has_an_identity_of_its_own(plan: Planner) -> None:
    runs = {stream.verify.run for _ in range(3) for stream in streams(plan, WRITE) if stream.verify}
    assert len(runs) == 3


def test_what_one_run_writes_at_random_another_reads_at_the_same_addresses(plan: Planner) -> None:
    job = "[a]\nnumjobs=3\nsize=1m\nverify=md5\nnorandommap\nrw=rand{}\n"
    written, read = (plan(job.format(what)).plan.streams for what in ("write", "read"))
    seeds = {one.name: one.seed for one in written if not reads_back(one)}
    assert seeds == {one.name: one.seed for one in read}
    assert len(set(seeds.values())) == 3
