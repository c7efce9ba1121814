"""Jobs that write without verify where others verify: refused beside them, told before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import RefusedError

if TYPE_CHECKING:
    from tests.plan.conftest import Planner

GLOBAL = "[global]\nfilename=/t/1g\nbs=4k\nsize=64m\n"
LAYOUT = "[layout]\nrw=write\nverify=md5\n"
ANEW = "[anew]\nstonewall\nrw=write\nverify=md5\n"
SPOIL = "[spoil]\nstonewall\nrw=randwrite\n"
CHECK = "[check]\nstonewall\nrw=read\nverify=md5\n"


def told(plan: Planner, jobs: str) -> list[tuple[str, str]]:
    notes = plan(GLOBAL + jobs).notes
    return [(str(note.where), note.text) for note in notes if "as damage" in note.text]


def test_writing_beside_who_verifies_is_refused_at_the_line_of_both(plan: Planner) -> None:
    with pytest.raises(RefusedError) as refused:
        plan(GLOBAL + LAYOUT + "[beside]\nrw=randwrite\n")
    assert str(refused.value) == (
        "job.fio:9: rw: [beside] writes to /t/1g without verify while [layout] verifies it "
        "(job.fio:7: verify): what one of them writes would look damaged to the other"
    )
    assert refused.value.hint == "give [beside] the verify of [layout], or another part of the file"


@pytest.mark.parametrize(
    "beside",
    [
        "rw=read",
        "rw=randwrite\nfilename=/t/other",
        "rw=randwrite\noffset=64m",
        "rw=randwrite\nverify=md5",
        "rw=randwrite\nstonewall",
    ],
    ids=["reads", "another file", "another part", "verifies, too", "later"],
)
def test_what_cannot_be_taken_for_damage_may_run_beside(plan: Planner, beside: str) -> None:
    assert told(plan, f"{LAYOUT}[beside]\n{beside}\n") == []


def test_trims_and_clones_count_as_writes(plan: Planner) -> None:
    clones = "[beside]\nrw=randtrim\nnumjobs=3\noffset=1m\noffset_increment=40m\nsize=8m\n"
    text = GLOBAL.replace("/t/1g", "/dev/sda") + LAYOUT
    with pytest.raises(RefusedError, match=r"\[beside\] writes to /dev/sda without verify"):
        plan(text + clones)
    plan(text + clones.replace("offset=1m", "offset=64m"))


def test_who_will_report_what_is_written_in_between_is_told(plan: Planner) -> None:
    text = "what [spoil] writes to /t/1g has no verify: [{}] will report it as damage"
    also = CHECK.replace("[check]", "[again]")
    assert told(plan, LAYOUT + SPOIL + CHECK + also) == [
        ("job.fio:10: rw", text.format("check")),
        ("job.fio:10: rw", text.format("again")),
    ]


@pytest.mark.parametrize(
    "jobs",
    [
        SPOIL + CHECK,
        SPOIL + ANEW + CHECK,
        LAYOUT + SPOIL + ANEW + CHECK,
        LAYOUT + SPOIL + "offset=64m\n" + CHECK,
        LAYOUT + SPOIL + CHECK + "offset=128m\n",
    ],
    ids=["nothing known", "before", "written again", "elsewhere", "read elsewhere"],
)
def test_what_nobody_will_look_for_is_not_told(plan: Planner, jobs: str) -> None:
    assert told(plan, jobs) == []
