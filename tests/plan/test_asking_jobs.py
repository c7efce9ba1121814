"""Where the targets of a Plan were named, told from the Plan and its Workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import Where
from loadstone.formats.fio import TextSource, read_jobfiles
from loadstone.plan.asking_jobs import jobs_of_units, target_places
from loadstone.plan.resolve import resolve
from tests.plan.test_trees import planned_run

if TYPE_CHECKING:
    from pathlib import Path

TWICE = """[global]
size=64k
rw=write
[a]
numjobs=2
filename={place}/x
[b]
filename={place}/y:{place}/x
[a]
filename={place}/z
[c]
directory={place}
nrfiles=2
"""


def test_each_target_has_the_place_where_it_was_first_named(tmp_path: Path) -> None:
    workload = read_jobfiles([TextSource(TWICE.format(place=tmp_path).encode(), name="t.fio")])
    plan = resolve(workload).plan
    assert [None if job is None else job.name for job in jobs_of_units(plan, workload)] == [
        "a",
        "b",
        "a",
        "c",
    ]
    assert target_places(plan, workload) == {
        f"{tmp_path}/x": Where("t.fio", 6, "filename"),
        f"{tmp_path}/y": Where("t.fio", 8, "filename"),
        f"{tmp_path}/z": Where("t.fio", 10, "filename"),
        # No option names the files of a job by itself: its section does.
        f"{tmp_path}/c.0.0": Where("t.fio", 11),
        f"{tmp_path}/c.0.1": Where("t.fio", 11),
    }


def test_a_unit_that_no_job_has_is_nobodys(tmp_path: Path) -> None:
    workload = read_jobfiles([TextSource(TWICE.format(place=tmp_path).encode(), name="t.fio")])
    plan = resolve(workload).plan
    fewer = workload.model_copy(update={"jobs": workload.jobs[:1]})
    assert [job is None for job in jobs_of_units(plan, fewer)] == [False, True, False, True]
    assert set(target_places(plan, fewer)) == {f"{tmp_path}/x", f"{tmp_path}/z"}


def test_a_copy_has_two_trees_and_one_place(tmp_path: Path) -> None:
    text = (
        "fsd=default,depth=1,width=2\nfsd=f,anchor=/t/a\nfsd=g,anchor=/t/b\n"
        "fwd=w,fsd=f,operation=copy,target=g\nrd=r,fwd=w,fwdrate=max,elapsed=4\n"
    )
    workload, resolution = planned_run(text)
    place = Where("t.parm", 2, "anchor")
    assert target_places(resolution.plan, workload) == {"/t/a": place, "/t/b": place}


def test_the_donor_of_extents_is_a_target(tmp_path: Path) -> None:
    for name in ("x", "d"):
        (tmp_path / name).write_bytes(bytes(1 << 16))
    text = f"[m]\nioengine=e4defrag\ndonorname={tmp_path}/d\nrw=write\nsize=64k\nfilename={tmp_path}/x\n"
    workload = read_jobfiles([TextSource(text.encode(), name="t.fio")])
    places = target_places(resolve(workload).plan, workload)
    assert places == dict.fromkeys((f"{tmp_path}/x", f"{tmp_path}/d"), Where("t.fio", 6, "filename"))
