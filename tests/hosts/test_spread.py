"""Job files for several hosts: which host does which part of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from loadstone.errors import InputError, RefusedError, Where
from loadstone.formats import iometer, vdbench
from loadstone.hosts.hosts_file import read_hosts
from loadstone.workload.other_hosts import refuse_elsewhere, spread

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.workload.model import Workload

WHERE = Where("command line", option="--hosts")
HOSTS = """hd=default,shell=ssh,user=root
hd=h1,system=10.0.0.1
hd=h2,system=10.0.0.2
hd=h3,system=10.0.0.3
hd=h4,system=10.0.0.4
"""


def lowered(text: str) -> Workload:
    file = vdbench.read([vdbench.ParameterText(text.encode())])
    return vdbench.lower(file, vdbench.expand(file)[0])


def on(workload: Workload, *names: str) -> dict[str, list[tuple[str, int | None, float | None]]]:
    made = spread(workload, {name: (name,) for name in names}, WHERE)
    return {
        name: [
            (job.placement.targets[0].path, job.engine.iodepth, job.pacing.rate_iops[0]) for job in one.jobs
        ]
        for name, one in made.items()
    }


def test_hosts_divide_the_threads_and_the_rate_of_an_sd() -> None:
    text = f"{HOSTS}sd=sd1,lun=/dev/a,threads=10\nwd=wd1,sd=sd1\nrd=r,wd=wd1,iorate=1000,elapsed=2\n"
    workload = lowered(text)
    with pytest.raises(RefusedError, match=r"<text>:2: hd: hd=h1 is another host") as refused:
        refuse_elsewhere(workload)
    assert "--hosts 10.0.0.1" in str(refused.value.hint)
    found = on(workload, "h1", "h2", "h3", "h4")
    assert [each[0][1] for each in found.values()] == [3, 3, 2, 2]
    assert [each[0][2] for each in found.values()] == [300.0, 300.0, 200.0, 200.0]
    # Called by their addresses, they are the same.
    by_address = on(workload, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
    assert list(by_address.values()) == list(found.values())


@pytest.mark.parametrize(
    "sd", ["sd=sd1,host=(h1,h2),lun=(/dev/a,/dev/b)", "sd=sd1,hd=h1,lun=/dev/a,hd=h2,lun=/dev/b"]
)
def test_an_sd_may_be_another_lun_on_each_host(sd: str) -> None:
    text = f"{HOSTS}{sd},threads=4\nsd=sd2,host=h3,lun=/dev/c\nsd=sd3,host=h4,lun=/dev/d\nwd=wd1,sd=sd*\n"
    found = on(lowered(f"{text}rd=r,wd=wd1,iorate=max,elapsed=2\n"), "h1", "h2", "h3", "h4")
    assert found == {
        "h1": [("/dev/a", 2, None)],
        "h2": [("/dev/b", 2, None)],
        "h3": [("/dev/c", 8, None)],
        "h4": [("/dev/d", 8, None)],
    }


def test_clients_are_hosts_and_workloads_choose_theirs() -> None:
    text = "hd=(h,g),clients=2,shell=ssh\nsd=sd1,lun=/dev/a,threads=4\nwd=wd1,sd=sd1,host=h\n"
    workload = lowered(f"{text}wd=wd2,sd=sd1,host=g,rdpct=0\nrd=r,wd=wd*,iorate=max,elapsed=2\n")
    made = spread(workload, {name: (name,) for name in ("h_cl0", "h_cl1", "g_cl0", "g_cl1")}, WHERE)
    assert [[job.own_options["wd"] for job in one.jobs] for one in made.values()] == [
        ["wd1"], ["wd1"], ["wd2"], ["wd2"],
    ]  # fmt: skip


def test_a_file_system_belongs_to_one_host() -> None:
    fsd = "fsd=fsd_$host,anchor=/data/$host,depth=1,width=1,files=2,size=4k\n"
    text = f"{HOSTS}{fsd}fwd=fwd_$host,fsd=fsd_$host,host=$host,operation=read\n"
    found = spread(
        lowered(f"{text}rd=r,fwd=fwd*,fwdrate=max,format=no,elapsed=2\n"),
        {name: (name,) for name in ("h1", "h2", "h3", "h4")},
        WHERE,
    )
    assert [[job.placement.targets[0].path for job in one.jobs] for one in found.values()] == [
        ["/data/h1"], ["/data/h2"], ["/data/h3"], ["/data/h4"],
    ]  # fmt: skip
    # The tree is made there, too.
    file = vdbench.read([vdbench.ParameterText(f"{text}rd=r,fwd=fwd*,fwdrate=max,format=yes\n".encode())])
    made = spread(
        vdbench.lower(file, vdbench.expand(file)[0]), {f"h{at}": (f"h{at}",) for at in range(1, 5)}, WHERE
    )
    assert {name: {job.placement.targets[0].path for job in one.jobs} for name, one in made.items()} == {
        name: {f"/data/{name}"} for name in ("h1", "h2", "h3", "h4")
    }
    shared = f"{HOSTS}fsd=fsd1,anchor=/data,depth=1,width=1,files=2,size=4k\nfwd=fwd1,fsd=fsd1\n"
    with pytest.raises(RefusedError, match="4 hosts would work in fsd=fsd1, which is not shared"):
        lowered(f"{shared}rd=r,fwd=fwd1,fwdrate=max,format=no,elapsed=2\n")


SHARED = f"""{HOSTS}fsd=fsd1,anchor=/data,depth=1,width=2,files=10,size=4k,shared=yes
fwd=fwd1,fsd=fsd1,threads=8
fwd=fwd2,fsd=fsd1,host=(h2,h3),threads=4
"""


def parts(run: str) -> dict[str, list[tuple[str, int | None, int, int]]]:
    """Of each host the operations, threads and parts of the files."""
    hosts = {f"h{at}": (f"h{at}",) for at in range(1, 5)}
    return {
        name: [
            (job.tree.operation, job.schedule.numjobs, job.tree.part.index, job.tree.part.count)
            for job in one.jobs
            if job.tree is not None
        ]
        for name, one in spread(lowered(f"{SHARED}rd=r,elapsed=2,{run}\n"), hosts, WHERE).items()
    }


def test_a_shared_file_system_is_divided_by_files() -> None:
    assert parts("fwd=fwd1,fwdrate=max,format=no") == {
        f"h{at + 1}": [("transfer", 2, at, 4)] for at in range(4)
    }
    made = parts("fwd=fwd1,fwdrate=max,format=(restart,only)")
    assert made == {f"h{at + 1}": [("mkdir", 2, at, 4), ("create", 2, at, 4)] for at in range(4)}


def test_a_host_has_the_same_files_in_every_run_and_may_have_nothing_to_do_in_one() -> None:
    assert parts("fwd=fwd2,fwdrate=max,format=no") == {
        "h2": [("transfer", 2, 1, 4)],
        "h3": [("transfer", 2, 2, 4)],
    }
    # What is removed may be a tree of another shape: one host removes all of it.
    assert parts("fwd=fwd1,fwdrate=max,format=(clean,only)") == {
        "h1": [("delete", 8, 0, 1), ("rmdir", 8, 0, 1)]
    }


@pytest.mark.parametrize("operation", ["rmdir", "copy,target=fsd2", "move,target=fsd2"])
def test_what_has_no_part_for_each_host_is_refused_on_several(operation: str) -> None:
    other = "fsd=fsd2,anchor=/other,depth=1,width=2,files=10,size=4k,shared=yes\n"
    text = SHARED.replace("fwd=fwd1,", f"{other}fwd=fwd1,").replace("threads=8", f"operation={operation}")
    with pytest.raises(RefusedError, match=f"operation={operation.partition(',')[0]} on several hosts"):
        lowered(f"{text}rd=r,elapsed=2,fwd=fwd1,fwdrate=max,format=no\n")


def test_hosts_that_the_file_and_the_command_line_do_not_share_are_told() -> None:
    text = f"{HOSTS}sd=sd1,lun=/dev/a\nwd=wd1,sd=sd1\nrd=r,wd=wd1,iorate=max,elapsed=2\n"
    with pytest.raises(InputError, match="names the host h4, and --hosts has h1, h2, h3"):
        on(lowered(text), "h1", "h2", "h3")
    with pytest.raises(InputError, match="gives h5 nothing to do"):
        on(lowered(text), "h1", "h2", "h3", "h4", "h5")
    few = text.replace("lun=/dev/a", "lun=/dev/a,threads=3")
    with pytest.raises(RefusedError, match="h4 has nothing to do: its jobs have fewer threads than hosts"):
        on(lowered(few), "h1", "h2", "h3", "h4")


ICF_MANAGER: Final = """'Manager ID, manager name
	{at},HOST{at}
'Manager network address
	10.0.0.{at}
'Worker
	Worker 1
'Worker type
	DISK
'Default target settings for worker
'Number of outstanding IOs,test connection rate,transactions per connection
	{depth},DISABLED,1
'Disk maximum size,starting sector
	2048,0
'End default target settings for worker
'Assigned access specs
	4k
'End assigned access specs
'Target assignments
'Target
	/data/m{at}
'Target type
	DISK
'End target
'End target assignments
'End worker
'End manager
"""
ICF: Final = """Version 1.1.0
'TEST SETUP ====================================================================
'Test Description
	several managers
'Run Time
'	hours      minutes    seconds
	0          0          2
'Ramp Up Time (s)
	0
'END test setup
'ACCESS SPECIFICATIONS =========================================================
'Access specification name,default assignment
	4k,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
	4096,100,100,100,0,1,4096,0
'END access specifications
'MANAGER LIST ==================================================================
{managers}'END manager list
Version 1.1.0
"""


def icf(managers: int) -> bytes:
    """A configuration whose managers have a worker each, with a file of its own."""
    each = (ICF_MANAGER.format(at=at, depth=at + 1) for at in range(1, managers + 1))
    return ICF.format(managers="".join(each)).encode()


def test_a_manager_is_a_host() -> None:
    workload = iometer.runs(iometer.read_icf(icf(3), "three.icf"))[0].workload
    refuse_elsewhere(workload)
    hosts = {"a": ("a", "10.0.0.1"), "HOST2": ("HOST2",), "c": ("c", "10.0.0.3")}
    made = spread(workload, hosts, WHERE)
    assert {
        name: [(job.placement.targets[0].path, job.engine.iodepth) for job in one.jobs]
        for name, one in made.items()
    } == {
        "a": [("/data/m1", 2)],
        "HOST2": [("/data/m2", 3)],
        "c": [("/data/m3", 4)],
    }


def test_names_of_many_hosts_are_longer_than_a_file_may_be_called() -> None:
    """Found by fuzzing: they were looked for as a file, and the system call's refusal was the answer."""
    names = [f"load-{number:02}.example.org" for number in range(20)]
    assert read_hosts(",".join(names)).names == names


def test_a_client_file_of_fio_names_hosts(tmp_path: Path) -> None:
    path = tmp_path / "clients"
    path.write_text("# the lab\nh1\nip4:10.0.0.2,8765\n\nip6:fe80::1\n")
    assert [host.reached_by for host in read_hosts(str(path)).host] == ["h1", "10.0.0.2", "fe80::1"]
    path.write_text("h1\nsock:/tmp/s\n")
    with pytest.raises(InputError, match="clients:2: sock: is a socket"):
        read_hosts(str(path))
    path.write_text("h1 h2\n")
    with pytest.raises(InputError, match="clients:1: found h1 h2, expected one host on each line"):
        read_hosts(str(path))
