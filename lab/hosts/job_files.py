"""Job files that name hosts, run on namespace hosts: `python -m lab.hosts.job_files`, which writes a page.

Each file is small, and counts to the I/O: `docs/hosts-job-files.md` has them with what every host did.
Needs root and sshd.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lab.hosts import namespaces
from lab.hosts.namespaces import NamespaceHosts
from lab.parts import LOADSTONE

PAGE = Path(__file__).parents[2] / "docs" / "hosts-job-files.md"
HEAD = """# Job files that name hosts, run on hosts

Look up here how a file of vdbench, Iometer or fio for several hosts is run with `--hosts`. The totals are
the hosts' sums to the I/O. `python -m lab.hosts.job_files` runs each file on namespaces with ssh servers,
and writes this page. DIR is a directory for files of 4 MiB.
"""
VDBENCH = """* Four hosts: two share sd1, each with its own file; one has sd2; two clients share sd3.
hd=default,shell=ssh,user=root
hd=one,system={h1}
hd=two,system={h2}
hd=(h),clients=2
sd=default,size=4m,threads=4
sd=sd1,host=(one,two),lun=({d}/one,{d}/two)
sd=sd2,host=one,lun={d}/alone
sd=sd3,hd=h,lun={d}/shared
wd=default,xfersize=4k,rdpct=100
wd=wd1,sd=sd1
wd=wd2,sd=sd2,host=one
wd=wd3,sd=sd3
rd=rd1,wd=wd*,iorate=400,elapsed=3,interval=1
"""
FILES = """* A tree on each host.
hd=default,shell=ssh,user=root
hd=one,system={h1}
hd=two,system={h2}
hd=h_cl0,system={h3}
hd=h_cl1,system={h4}
fsd=fsd_$host,anchor={d}/tree_$host,depth=1,width=2,files=4,size=16k
fwd=fwd_$host,fsd=fsd_$host,host=$host,operation=read,xfersize=4k,fileio=random,threads=2
rd=rd1,fwd=fwd*,fwdrate=200,format=yes,elapsed=3,interval=1
"""
SHARED_TREE = """* One tree for all hosts, each with every fourth file.
hd=default,shell=ssh,user=root
hd=one,system={h1}
hd=two,system={h2}
hd=h_cl0,system={h3}
hd=h_cl1,system={h4}
fsd=fsd1,anchor={d}/tree_of_all,depth=2,width=2,files=6,size=16k,shared=yes
fwd=fwd1,fsd=fsd1,operation=read,xfersize=4k,fileio=random,threads=8
rd=make,fwd=fwd1,fwdrate=max,format=(restart,only)
rd=rd1,fwd=fwd1,fwdrate=400,format=no,elapsed=3,interval=1
"""
FIO = "[r]\nioengine=psync\nrw=randread\nbs=4k\nsize=4m\nio_size=2m\nnumjobs=2\nfilename={d}/shared\n"
MANAGER = """'Manager ID, manager name
\t{at},{name}
'Manager network address
\t{address}
'Worker
\tWorker 1
'Worker type
\tDISK
'Default target settings for worker
'Number of outstanding IOs,test connection rate,transactions per connection
\t{depth},DISABLED,1
'Disk maximum size,starting sector
\t8192,0
'End default target settings for worker
'Assigned access specs
\t4k
'End assigned access specs
'Target assignments
'Target
\t{target}
'Target type
\tDISK
'End target
'End target assignments
'End worker
'End manager
"""
ICF = """Version 1.1.0
'TEST SETUP ====================================================================
'Test Description
\tthree managers
'Run Time
'\thours      minutes    seconds
\t0          0          2
'Ramp Up Time (s)
\t0
'END test setup
'ACCESS SPECIFICATIONS =========================================================
'Access specification name,default assignment
\t4k,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t4096,100,100,100,0,1,4096,0
'END access specifications
'MANAGER LIST ==================================================================
{managers}'END manager list
Version 1.1.0
"""


def main() -> int:
    if (why := namespaces.missing()) is not None:
        print(f"not run: {why}")
        return 0
    pages, wrong = [HEAD], 0
    with NamespaceHosts(4) as hosts, tempfile.TemporaryDirectory(prefix="loadstonejobfiles") as place:
        directory = Path(place)
        for name in ("one", "two", "alone", "shared"):
            (directory / name).write_bytes(os.urandom(4 << 20))
        (directory / "tree_of_all").mkdir()
        addresses = {name: hosts.address(name) for name in hosts.names}
        managers = "".join(
            MANAGER.format(
                at=at, name=f"MANAGER{at}", address=addresses[f"h{at}"], depth=at, target=directory / "shared"
            )
            for at in range(1, 4)
        )
        toml = hosts.hosts_toml(run="connect_s = 300").read_text()
        clients = toml.replace('name = "h3"', 'name = "h_cl0"').replace('name = "h4"', 'name = "h_cl1"')
        three = toml[: toml.index('[[host]]\nname = "h4"')]
        for title, file, text, hosts_of in (
            ("vdbench: four hosts", "four.parm", VDBENCH.format(d=directory, **addresses), clients),
            ("vdbench: a file system on each", "trees.parm", FILES.format(d=directory, **addresses), toml),
            (
                "vdbench: a file system of all",
                "shared.parm",
                SHARED_TREE.format(d=directory, **addresses),
                toml,
            ),
            ("Iometer: three managers", "three.icf", ICF.format(managers=managers), three),
            ("fio: each host does all of it", "job.fio", FIO.format(d=directory), toml),
        ):
            (directory / file).write_text(text)
            (directory / "hosts.toml").write_text(hosts_of)
            page, right = _run(directory, file, title, addresses)
            wrong += not right
            pages.append(page)
            print(page, flush=True)
    PAGE.write_text("\n".join(pages))
    return 1 if wrong else 0


def _run(directory: Path, file: str, title: str, addresses: dict[str, str]) -> tuple[str, bool]:
    out = directory / f"out-{file}"
    words = [*LOADSTONE, "run", str(directory / file), "--no-calibration"]
    words += ["--hosts", str(directory / "hosts.toml"), "--out", str(out), "--no-report", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    shown = (directory / file).read_text().replace(str(directory), "DIR").replace("\t", "    ")
    for name, address in addresses.items():
        shown = shown.replace(address, f"ADDRESS-OF-{name}")
    lines = [f"## {title}", "```", shown.rstrip(), "```"]
    if done.returncode:
        return "\n".join([*lines, f"code {done.returncode}: {done.stderr.strip()}", ""]), False
    runs = [path.parent for path in sorted(out.rglob("hosts.json"))]
    lines += ["| run | host | jobs | I/Os |", "|---|---|---|---|"]
    right = bool(runs)
    for run in runs:
        document = json.loads((run / "result.json").read_text())
        total = document["total"]["operations"]
        sum_ = sum(host["ops"] for host in document["hosts"])
        right = right and total == sum_ > 0
        for host in document["hosts"]:
            plan = json.loads((run / "hosts" / host["name"] / "plan.json").read_text())
            jobs = ", ".join(dict.fromkeys(unit["name"] for unit in plan["units"]))
            jobs = jobs.replace(str(directory), "DIR")
            lines.append(f"| {run.name.replace(out.name, file)} | {host['name']} | {jobs} | {host['ops']} |")
        same = "the sum" if total == sum_ else f"NOT the sum {sum_}"
        lines.append(f"| {run.name.replace(out.name, file)} | all | | {total}, {same} |")
    return "\n".join([*lines, ""]), right


if __name__ == "__main__":
    sys.exit(main())
