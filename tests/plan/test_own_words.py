"""Who plans a job says what is wrong in the words of the language the job was written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import LoadstoneError
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.formats.vdbench import ParameterText, expand, lower, read
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.workload.model import Workload


def of_fio(options: str) -> Workload:
    text = "\n".join(["[job]", "ioengine=io_uring", *options.split(), ""])
    return read_jobfiles([TextSource(text.encode(), name="job.fio")])


def of_vdbench(storage: str, workload: str) -> Workload:
    text = f"sd=sd1,{storage}\nwd=wd1,sd=sd1,{workload}\nrd=rd1,wd=wd1,iorate=10,elapsed=3,interval=1\n"
    file = read([ParameterText(text.encode(), "job.vdb")])
    return lower(file, expand(file)[0])


def of_tree(filesystem: str, workload: str) -> Workload:
    text = (
        f"fsd=fsd1,depth=1,width=1,files=2,size=4k,{filesystem}\nfwd=fwd1,fsd=fsd1,{workload}\n"
        "rd=rd1,fwd=fwd1,fwdrate=10,elapsed=3,interval=1\n"
    )
    file = read([ParameterText(text.encode(), "job.vdb")])
    return lower(file, expand(file)[0])


def hint_of(workload: Workload, options: ResolveOptions | None = None) -> str | None:
    with pytest.raises(LoadstoneError) as caught:
        resolve(workload, options=options or ResolveOptions())
    return caught.value.hint


def test_the_smallest_use_of_a_target(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"x" * 512)
    asked = of_fio(f"filename={small} rw=read bs=4k")
    assert hint_of(asked) == "give a larger size, a smaller bs or a smaller offset"
    asked = of_vdbench(f"lun={small},range=(0,100)", "xfersize=4k,rdpct=100")
    assert hint_of(asked) == "give a larger size, a smaller xfersize or a smaller range"


def test_a_load_that_may_only_read(tmp_path: Path) -> None:
    only = ResolveOptions(read_only=True)
    assert hint_of(of_fio(f"filename={tmp_path / 'file'} rw=write size=1m"), only) == "use rw=read"
    asked = of_vdbench(f"lun={tmp_path / 'file'},size=1m", "xfersize=4k,rdpct=0")
    assert hint_of(asked, only) == "use rdpct=100"


def test_a_tree_that_is_not_there(tmp_path: Path) -> None:
    asked = of_tree(f"anchor={tmp_path}", "operation=read,xfersize=4k")
    assert hint_of(asked) == "have the tree made first: run a job with format=yes"
