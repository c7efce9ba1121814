"""Job files of the drawn situations: in each language, for so many hosts, reads or writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lab.hosts.job_files import ICF, MANAGER

if TYPE_CHECKING:
    from pathlib import Path

    from lab.hosts.drawn import HostsSituation
    from lab.hosts.namespaces import NamespaceHosts

LANGUAGES = ("fio", "fio", "vdbench", "icf", "toml")
RUNS = {"run": 1, "repeats": 2, "curve": 2, "sweep": 2, "experiment": 2, "replay": 1}
FIO = "[a]\nioengine=psync\nrw={rw}\nbs=4k\nsize=1m\ntime_based\nruntime={seconds}\nrate_iops=300\n"
CLOSED = FIO.replace("rate_iops=300\n", "")
"""Whose maximum is looked for."""
EXPERIMENT = """title = "drawn"
repeats = 1
runtime = "{seconds}s"
targets = ["{file}"]
[[patterns]]
name = "r"
options = {{ rw = "{rw}", ioengine = "psync", bs = "4k", size = "1m", time_based = 1, rate_iops = 300 }}
[[factors]]
name = "jobs"
option = "numjobs"
levels = [1, 2]
"""


def write(at: HostsSituation, place: Path, hosts: NamespaceHosts, file: Path, seconds: int) -> Path:
    """Write the job file of a situation; return it."""
    rw = "randwrite" if at.writes else "randread"
    if at.language == "toml":
        path = place / "job.toml"
        path.write_text(EXPERIMENT.format(rw=rw, file=file, seconds=seconds))
    elif at.language == "vdbench":
        path = place / "job.parm"
        path.write_text(_vdbench(at, hosts, file, seconds))
    elif at.language == "icf":
        path = place / "job.icf"
        managers = "".join(
            MANAGER.format(at=number, name=name, address=hosts.address(name), depth=number, target=file)
            for number, name in enumerate(hosts.names, start=1)
        )
        text = ICF.format(managers=managers).replace("\t8192,0", "\t2048,0")
        path.write_text(text.replace("\t0          0          2", f"\t0          0          {seconds}"))
    else:
        path = place / "job.fio"
        text = CLOSED if at.verb == "curve" else FIO
        path.write_text(text.format(rw=rw, seconds=seconds) + f"filename={file}\n")
    return path


def _vdbench(at: HostsSituation, hosts: NamespaceHosts, file: Path, seconds: int) -> str:
    names = ",".join(hosts.names)
    lines = [f"hd={name},system={hosts.address(name)}" for name in hosts.names]
    luns = ",".join([str(file)] * at.hosts)
    lines.append(f"sd=sd1,host=({names}),lun=({luns}),size=1m,threads=4")
    lines.append(f"wd=wd1,sd=sd1,xfersize=4k,rdpct={0 if at.writes else 100}")
    lines.append(f"rd=rd1,wd=wd1,iorate=400,elapsed={seconds},interval=1")
    return "\n".join(lines) + "\n"


def _bundle(first: Path) -> Path:
    """Return a bundle of all hosts: the run's own, or that of the study of a vdbench or Iometer file."""
    return next((path.parent for path in sorted(first.rglob("hosts.json"))), first)


def verb_words(at: HostsSituation, job: Path, first: Path) -> list[str]:
    """Return the words of a verb with its job file, or with the bundle that is run again."""
    return {
        "run": ["run", str(job)],
        "repeats": ["run", str(job), "--repeat", "2"],
        "curve": ["curve", str(job), "--points", "50"],
        "sweep": ["sweep", str(job), "--numjobs", "1,2"],
        "experiment": ["experiment", "run", str(job)],
        "replay": ["rerun", str(_bundle(first))],
    }[at.verb]


def parts_of(bundle: Path) -> list[tuple[int, int]]:
    """Return where each host's part of the target begins and ends, in bytes and in their order."""
    parts = set()
    for path in bundle.glob("hosts/*/plan.json"):
        uses = [use for stream in json.loads(path.read_text())["streams"] for use in stream["files"]]
        ends = {(use["offset_bytes"], use["offset_bytes"] + use["length_bytes"]) for use in uses}
        parts |= {(path.parent.name, *one) for one in ends}
    return sorted((begin, end) for _, begin, end in parts)
