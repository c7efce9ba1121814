"""NVMe commands in a machine of our own, where that is asked for; and that its cases can fail."""

from __future__ import annotations

import os
from typing import Any

import pytest
from lab.parts import MissingPartError

from lab import nvme
from loadstone.engine.binary import find

ASKED = "LOADSTONE_LAB_NVME"


@pytest.mark.slow
def test_every_case_is_as_it_should_be() -> None:
    if not os.environ.get(ASKED):
        pytest.skip(f"boots a machine in QEMU and may download a kernel: set {ASKED}=1")
    try:
        results = nvme.run(find())
    except MissingPartError as error:
        pytest.skip(str(error))
    assert {name: wrong for name, wrong in results.items() if wrong} == {}
    assert len(results) == len(nvme.CASES) + 1


def end(**changes: Any) -> nvme.Events:
    stream = {"type": "stream_end", "completed": [0, 1024, 0, 1024], "failed": [0, 0, 0, 0]}
    return [{"type": "verify_end", "checked": 1024}, stream | changes, {"type": "end"}]


def test_a_judge_passes_what_is_right_and_says_what_is_wrong() -> None:
    assert nvme.verified(end()) is None
    assert nvme.flushed(end()) is None
    assert nvme.verified([{"type": "verify_end", "checked": 1023}, *end()[1:]]) == "1023 blocks were checked"
    assert "streams failed" in (nvme.sound(end(failed=[1, 0, 0, 0])) or "")
    assert "did nothing" in (nvme.sound(end(completed=[0, 0, 0, 0])) or "")
    assert "it failed" in (nvme.sound(end()[:-1]) or "")
    assert "damage" in (nvme.verified([{"type": "damage", "message": "x"}, *end()]) or "")
    assert nvme.spoiled(end()) is not None


def test_an_error_has_to_say_what_it_should() -> None:
    told = {"type": "io_error", "message": "read: NVMe status: write fault", "errno": 5, "moved": 0}
    assert nvme.fails("write fault", errno=5)([told]) is None
    for events in ([told | {"moved": 512}], [told | {"errno": 22}], [told | {"message": "EIO"}], []):
        assert nvme.fails("write fault", errno=5)(events) is not None
    fatal: nvme.Events = [{"type": "fatal", "message": "in use", "hint": "free it"}]
    assert nvme.refuses("in use", "free")(fatal) is None
    assert nvme.refuses("in use", "mounted")(fatal) is not None
    assert nvme.refuses("in use")([]) is not None


def test_every_case_has_a_plan() -> None:
    for case in nvme.CASES:
        assert "/dev/n" in nvme.plan(case)


def test_links_that_are_not_as_the_guard_has_them_are_told() -> None:
    right = [f"ng0n{n} /sys/c /sys/class/nvme-generic" for n in nvme.BLOCK_BYTES]
    right += [f"nvme0n{n} /sys/c" for n in nvme.BLOCK_BYTES]
    assert nvme.links_wrong(right) is None
    assert nvme.links_wrong(right[1:]) is not None
    assert nvme.links_wrong([*right[:-1], "nvme0n4 /sys/other"]) is not None
