"""Loads drawn by a seed, in the languages of all front ends, and a run's exports in all formats."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Final, Literal

from loadstone.bundle.read import Bundle
from loadstone.formats import iometer, vdbench
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.report import iometer as iometer_csv
from loadstone.report.fio import bundles as fio
from loadstone.report.vdbench import pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadstone.workload.model import Workload

FRONTS: Final = ("fio", "vdbench", "iometer")
FORMATS: Final = (
    *("fio-json.json", "fio-normal.txt", "fio-terse3.txt", "fio-terse5.txt"),
    *("iometer.csv", "iometer-2008.csv", "vdbench-50406", "vdbench-50407"),
)
SIZES: Final = ("512", "4k", "8k", "64k", "256k")

Load = tuple["Workload", dict[str, bytes]]


def workloads(front: str, seed: int) -> list[Load]:
    """Return what a front end makes of a file drawn by a seed: its runs, each with its input."""
    rng = random.Random(f"{front} {seed}")
    return {"fio": _fio, "vdbench": _vdbench, "iometer": _iometer}[front](rng)


def _fio(rng: random.Random) -> list[Load]:
    text = "[global]\nioengine=libaio\ndirect=1\ntime_based\n"
    text += f"runtime={rng.choice((3, 6, 12))}\n"
    text += f"ramp_time={rng.choice((1, 3))}\n" if rng.random() < 0.4 else ""
    text += "group_reporting\n" if rng.random() < 0.3 else ""
    for number in range(rng.randint(1, 3)):
        kind = rng.choice(("read", "write", "randread", "randwrite", "rw", "randrw"))
        text += (
            f"[j{number}]\nrw={kind}\niodepth={rng.choice((1, 2, 7, 32))}\nfilename=/dev/sd{'abc'[number]}\n"
        )
        text += "stonewall\n" if number and rng.random() < 0.5 else ""
        # Clones apart: the same blocks again and again are a finding of their own.
        text += f"numjobs={rng.randint(2, 4)}\noffset_increment=1g\n" if rng.random() < 0.4 else ""
        text += f"rwmixread={rng.randint(1, 99)}\n" if kind.endswith("rw") else ""
        text += rng.choice(
            (
                f"bs={rng.choice(SIZES)}\n",
                f"bs={rng.choice(SIZES)},{rng.choice(SIZES)}\n",
                "bssplit=4k/60:8k/30:64k/10\n",
                "bsrange=4k-64k\n",
            )
        )
        text += f"rate_iops={rng.choice((50, 200))}\n" if rng.random() < 0.3 else ""
    return [(read_jobfiles([TextSource(text, "a.fio")]), {"a.fio": text.encode()})]


def _vdbench(rng: random.Random) -> list[Load]:
    storages = rng.randint(1, 3)
    text = "".join(
        f"sd=sd{n},lun=/dev/sd{'xabc'[n]},openflags=o_direct,size=1g\n" for n in range(1, storages + 1)
    )
    works = rng.randint(1, 2)
    for number in range(1, works + 1):
        size = rng.choice((*SIZES, "(4k,50,8k,50)", "(512,4,4k,67,8k,29)", "(4k,64k,4k)"))
        reads, seek = rng.choice((0, 100, 70, 35)), rng.choice((0, 100, 100, 80))
        text += f"wd=wd{number},sd=sd*,xfersize={size},rdpct={reads},seekpct={seek}"
        text += f",skew={50}\n" if works > 1 and rng.random() < 0.5 else "\n"
        if works > 1 and "skew" in text and number == 1:
            text = text.replace(",skew=50", "")
    for number in range(1, rng.randint(1, 2) + 1):
        text += f"rd=rd{number},wd=wd*,iorate={rng.choice(('max', 'max', 100, 300))}"
        text += f",elapsed={rng.choice((6, 12))},interval={rng.choice((1, 2))}"
        text += f",warmup={rng.choice((4, 8))}" if rng.random() < 0.5 else ""
        text += rng.choice((f",threads={rng.choice((2, 8, 32))}", ",forthreads=(2,4)", ""))
        text += ",forxfersize=(4k,64k)" if rng.random() < 0.3 else ""
        text += "\n"
    file = vdbench.read([vdbench.ParameterText(text.encode(), "a.parm")])
    return [(vdbench.lower(file, run), {"a.parm": text.encode()}) for run in vdbench.expand(file)]


def _iometer(rng: random.Random) -> list[Load]:
    specs = rng.randint(1, 3)
    text = "Version 1.1.0\n'TEST SETUP ====\n'Run Time\n'\thours minutes seconds\n\t0 0 "
    text += f"{rng.choice((3, 6, 12))}\n'Ramp Up Time (s)\n\t{rng.choice((0, 0, 3))}\n"
    text += f"'Record Results\n\t{rng.choice(('ALL', 'ALL', 'NO_TARGETS', 'NO_WORKERS'))}\n'END test setup\n"
    text += "'ACCESS SPECIFICATIONS ====\n"
    for number in range(specs):
        text += f"'Access specification name,default assignment\n\tspec {number},NONE\n"
        text += "'size,% of size,% reads,% random,delay,burst,align,reply\n"
        cuts = sorted(rng.sample(range(1, 100), rng.randint(0, 2)))
        for low, high in zip((0, *cuts), (*cuts, 100), strict=True):
            size = rng.choice((512, 4096, 8192, 65536, 262_144))
            reads, scattered = rng.choice((0, 100, 67)), rng.choice((0, 100, 40))
            text += f"\t{size},{high - low},{reads},{scattered},0,1,{size},0\n"
    text += "'END access specifications\n'MANAGER LIST ====\n'Manager ID, manager name\n\t1,HOST\n"
    text += "'Manager network address\n\t127.0.0.1\n"
    same = rng.random() < 0.5
    for number in range(1, rng.randint(1, 3) + 1):
        text += f"'Worker\n\tWorker {number}\n'Worker type\n\tDISK\n"
        text += "'Default target settings for worker\n"
        text += "'Number of outstanding IOs,test connection rate,transactions per connection\n"
        text += f"\t{rng.choice((1, 4, 16))},DISABLED,1\n"
        text += "'Disk maximum size,starting sector\n\t0,0\n'End default target settings for worker\n"
        text += "'Assigned access specs\n"
        text += "".join(f"\tspec {(n if same else n + number) % specs}\n" for n in range(specs))
        text += "'End assigned access specs\n'Target assignments\n"
        for drive in range(rng.randint(1, 2)):
            text += f"'Target\n\t/mnt/w{number}{'ab'[drive]}\n'Target type\n\tDISK\n'End target\n"
        text += "'End target assignments\n'End worker\n"
    text += "'End manager\n'END manager list\nVersion 1.1.0\n"
    configuration = iometer.read_icf(text.encode(), "a.icf")
    return [(run.workload, {"a.icf": text.encode()}) for run in iometer.runs(configuration)]


def exports(bundle: Path, out: Path) -> Iterator[tuple[str, Path]]:
    """Write a run in every format that `audit` reads."""
    out.mkdir()
    opened = Bundle.open(bundle)
    texts: dict[str, Callable[[], str]] = {
        "fio-json.json": lambda: json.dumps(fio.json_document(opened)),
        "fio-normal.txt": lambda: fio.normal_text(opened),
        "fio-terse3.txt": lambda: "\n".join(fio.terse_lines(opened, 3)) + "\n",
        "fio-terse5.txt": lambda: "\n".join(fio.terse_lines(opened, 5)) + "\n",
        "iometer.csv": lambda: iometer_csv.export(bundle)[0],
        "iometer-2008.csv": lambda: iometer_csv.export(bundle, layout="2008")[0],
    }
    for name, write in texts.items():
        (out / name).write_text(write())
        yield name, out / name
    layouts: tuple[Literal["50406", "50407"], ...] = ("50406", "50407")
    for layout in layouts:
        pages.export(bundle, out / f"vdbench-{layout}", layout)
        yield f"vdbench-{layout}", out / f"vdbench-{layout}"
