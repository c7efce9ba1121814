"""Layouts and settings that this host's kernel lacks, on one that has them: `python -m lab.machine_layouts`.

A machine in QEMU has md, the device mapper, an NFS server, threads of a core, two NUMA nodes and CPU
frequencies: a table of ACPI says that there are three, and the kernel's driver sets them. In it everything
of an experiment but the load is done as on any host: arrays and volumes are built, killed at drawn moments
and restored, and the system is read after each. Last experiments are run by their verb.
Emulated: nothing is known of how fast anything is.
Needs root, qemu-system-x86_64 and apt, which brings the kernel into a cache; installs nothing.

    python -m lab.machine_layouts --points 40 --seed 1 [--parts build kill run]

Prints what was built and how many points were as they should be, and ends with 1 when one was not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lab.experiment_drill import kill_later, restore
from lab.parts import LOADSTONE, call

from lab import machine
from loadstone.engine.binary import find
from loadstone.experiment.machine_state import Machine
from loadstone.experiment.prepared import PreparedExperiment, ReadOptionsOfExperiment, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.bundle.experiment import MachineSetting

MODULES: Final = (
    "loop", "raid0", "raid1", "raid10", "raid456", "dm_mod", "dm_raid",
    "dm_thin_pool", "xfs", "nfsd", "nfsv4", "nfs", "acpi_cpufreq", "cpufreq_ondemand", "cpufreq_powersave",
)  # fmt: skip
PACKAGES: Final = (
    "nfs-kernel-server", "nfs-common", "libtirpc3", "libwrap0", "libnfsidmap1", "libevent-core-2.1-7",
    "libkeyutils1",
)  # fmt: skip
TOOLS: Final = ("exportfs", "rpc.nfsd", "rpc.mountd", "mount.nfs4", "mount.nfs")
COMPILER: Final = ("acpica-tools", "iasl")
CPUS: Final = 4
FREQUENCIES: Final = """DefinitionBlock ("", "SSDT", 2, "LAB", "CPUFREQ", 1) {{
  {external}
  {scopes}
}}
"""
OF_A_CPU: Final = """  Scope (\\_SB.CPUS.C00{number}) {{
    Name (_PCT, Package () {{ ResourceTemplate () {{ Register (SystemIO, 8, 0, 0x80) }},
                              ResourceTemplate () {{ Register (SystemIO, 8, 0, 0x80) }} }})
    Name (_PSS, Package () {{ Package () {{ 3000, 30000, 10, 10, 3, 3 }},
                              Package () {{ 2000, 20000, 10, 10, 2, 2 }},
                              Package () {{ 1000, 10000, 10, 10, 1, 1 }} }})
    Name (_PPC, 0)
  }}"""
"""Frequencies in MHz, which are set by a port that does nothing (ACPI 6.5, 8.4.5)."""
THRESHOLD: Final = Path("/sys/devices/system/cpu/cpufreq/ondemand/up_threshold")
ROOT: Final = Path(__file__).resolve().parents[1]
LVS: Final = ("lvs", "--noheadings", "-o", "vg_name,lv_name,segtype")
DISKS: Final = 4
DISK_MIB: Final = 320
PATIENCE_S: Final = 3600.0
STEPS: Final = ("build", "kill", "run")
"""Each layout once; killed at drawn moments; experiments by their verb."""
DEVICES: Final = tuple(f"/dev/loop{number}" for number in range(DISKS))

SCRIPT: Final = """
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root LD_LIBRARY_PATH=/usr/lib
for one in /mods/*.ko; do insmod $one || echo no $one; done
mkdir -p /dev/shm /dev/md /run/lock /run/lvm /var/lib /exp /root
mount -t tmpfs -o size=80% t /dev/shm; mount -t tmpfs t /run; mkdir -p /run/lock/lvm /run/lvm
ip link set lo up
mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs
mount -t tmpfs e /exp; dd if=/dev/zero of=/exp/data bs=1M count=8 2>/dev/null
mount -t nfsd nfsd /proc/fs/nfsd; mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs
exportfs -r; rpc.mountd -N 3; rpc.nfsd -N 3 4; echo Y > /proc/fs/nfsd/v4_end_grace
cd /lab; export PYTHONHOME=/python PYTHONPATH=/lab:/lab/python:/site PYTHONDONTWRITEBYTECODE=1
export LOADSTONE_ENGINE=/usr/bin/loadstone-engine PYTHONFAULTHANDLER=1
echo @@@
exec python3 -m lab.machine_layouts --inside --points POINTS --seed SEED --parts PARTS
"""
FILES: Final = {
    "etc/netconfig": "tcp tpi_cots_ord v inet tcp - -\nudp tpi_clts v inet udp - -\n",
    "etc/services": "nfs 2049/tcp\nsunrpc 111/tcp\n",
    "etc/protocols": "tcp 6 TCP\nudp 17 UDP\n",
    "etc/passwd": "root:x:0:0::/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\n",
    "etc/exports": "/exp *(rw,no_root_squash,no_subtree_check,fsid=0,insecure)\n",
    "etc/lvm/lvm.conf": "activation { udev_sync = 0\n udev_rules = 0 }\n"
    "devices { obtain_device_list_from_udev = 0 }\n",
    "etc/mke2fs.conf": "[defaults]\n base_features = sparse_super,filetype,resize_inode,dir_index,ext_attr\n"
    " blocksize = 4096\n inode_size = 256\n inode_ratio = 16384\n[fs_types]\n ext4 = {\n"
    "  features = has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize\n }\n",
}
ON_THE_WAY: Final = (
    "lvm", "mdadm", "mkfs.ext4", "mkfs.xfs", "wipefs", "blkid", "losetup", "mount", "umount", "dd", "ip",
    "sh", "fallocate", "thin_check", "env", "sync", "dmsetup",
)  # fmt: skip
LVM: Final = ("pvcreate", "vgcreate", "lvcreate", "vgremove", "pvremove", "pvs", "vgs", "lvs", "lvconvert")
LEFT_OUT: Final = (
    "_duckdb", "typst", "pandas", "mypy", "mypyc", "datamodel_code_generator", "pip", "hypothesis", "_pytest",
    "setuptools", "grimp", "vl_convert", "scipy", "scipy.libs", "dask", "distributed", "ruff", "tornado",
    "cryptography", "pysnmp",
)  # fmt: skip
"""Packages that no experiment needs."""


LAYOUTS: Final = """
[layouts."md RAID0"]
manager = "md"
raid = "0"
chunk_kib = 64

[layouts."md RAID1"]
manager = "md"
raid = "1"
groups = 2

[layouts."md RAID10 bare"]
manager = "md"
raid = "10"
filesystem = "none"

[layouts."md RAID5"]
manager = "md"
raid = "5"
filesystem = "xfs"

[layouts."md RAID6"]
manager = "md"
raid = "6"

[layouts."LVM linear"]
manager = "lvm"

[layouts."LVM striped"]
manager = "lvm"
raid = "0"
chunk_kib = 32
size_percent = 50

[layouts."LVM RAID1"]
manager = "lvm"
raid = "1"
groups = 2

[layouts."LVM RAID5 bare"]
manager = "lvm"
raid = "5"
filesystem = "none"

[layouts."LVM RAID10"]
manager = "lvm"
raid = "10"

[layouts."LVM thin"]
manager = "lvm"
thin = true
raid = "0"

[layouts."LVM thin on RAID1"]
manager = "lvm"
thin = true
raid = "1"
groups = 2

[layouts."NFS"]
manager = "mount"
source = "127.0.0.1:/"
filesystem_type = "nfs4"
mount_options = ["vers=4.2"]

[layouts."NFS small sync"]
manager = "mount"
source = "127.0.0.1:/"
filesystem_type = "nfs4"
mount_options = ["vers=4.1", "rsize=8192", "wsize=8192", "sync"]
"""
FILE: Final = """title = "Layouts of another kernel"
repeats = 1
design = "one_at_a_time"
runtime = "1s"
size = "8m"
devices = [{devices}]
targets = ["{{file}}"]
{layouts}
[[patterns]]
name = "write"
options = {{ rw = "randwrite", bs = "4k", direct = 1, ioengine = "psync" }}

[[factors]]
name = "layout"
kind = "layout"
levels = [{levels}]

{settings}"""
NODES: Final = """title = "Nodes of another machine"
repeats = 1
runtime = "2s"
size = "8m"
targets = ["/dev/shm/lab/on-a-node"]

[[patterns]]
name = "write"
options = { rw = "randwrite", bs = "4k", ioengine = "psync" }

[[factors]]
name = "node"
option = "numa_cpu_nodes"
levels = ["0", "1"]
"""
_POLICY: Final = Path("/sys/devices/system/cpu/cpufreq/policy0")
SETTINGS: Final[dict[str, tuple[Path, tuple[str | int, ...]]]] = {
    "smt": (Path("/sys/devices/system/cpu/smt/control"), ("on", "off")),
    "nfs_server_threads": (Path("/proc/fs/nfsd/threads"), ("as is", 9)),
    "governor": (_POLICY / "scaling_governor", ("as is", "performance", "powersave")),
    "frequency_max_khz": (_POLICY / "scaling_max_freq", ("as is", 2000000)),
    "frequency_min_khz": (_POLICY / "scaling_min_freq", ("as is", 2000000)),
}
"""Where the kernel tells each, and the levels of a factor of it."""
PARTS: Final[dict[str, str]] = {
    "md RAID0": "md:raid0 4",
    "md RAID1": "md:raid1 2 md:raid1 2",
    "md RAID10 bare": "md:raid10 4",
    "md RAID5": "md:raid5 4",
    "md RAID6": "md:raid6 4",
    "LVM linear": "lvm:linear",
    "LVM striped": "lvm:striped",
    "LVM RAID1": "lvm:raid1 lvm:raid1",
    "LVM RAID5 bare": "lvm:raid5",
    "LVM RAID10": "lvm:raid10",
    "LVM thin": "lvm:thin lvm:thin-pool",
    "LVM thin on RAID1": "lvm:thin lvm:thin lvm:thin-pool lvm:thin-pool",
    "NFS": "nfs4 vers=4.2",
    "NFS small sync": "nfs4 vers=4.1 rsize=8192 wsize=8192 sync",
}
"""What the kernel and lvm(8) themselves say of what stands."""


def layout_names() -> list[str]:
    return re.findall(r'\[layouts\."(.+)"\]', LAYOUTS)


def there() -> dict[str, tuple[Path, tuple[str | int, ...]]]:
    """Return the settings that this machine has."""
    return {name: one for name, one in SETTINGS.items() if one[0].exists()}


def file(folder: Path, levels: Sequence[str]) -> Path:
    """Write an experiment's file."""
    path = folder / "machine.toml"
    quoted = [", ".join(f'"{one}"' for one in many) for many in (DEVICES, levels)]
    factors = "".join(
        f'\n[[factors]]\nname = "{name}"\ncontrol = "{name}"\nlevels = {json.dumps(chosen)}\n'
        for name, (_, chosen) in there().items()
    )
    every = re.split(r"(?=\[layouts)", LAYOUTS)
    used = "".join(one for one in every if any(f'[layouts."{name}"]' in one for name in levels))
    path.write_text(FILE.format(devices=quoted[0], layouts=used, levels=quoted[1], settings=factors))
    return path


def standing() -> str:
    """What stands, as the kernel and lvm(8) tell it."""
    arrays = sorted(Path("/sys/block").glob("md*/md"))
    # One that was stopped may keep its node a moment, without a level.
    layers = [
        f"md:{level} {(array / 'raid_disks').read_text().strip()}"
        for array in arrays
        if (level := (array / "level").read_text().strip())
    ]
    # A line for each segment: a linear volume has one on each device.
    segments = {tuple(line.split()) for line in call(*LVS).splitlines()}
    layers += sorted(f"lvm:{one[-1]}" for one in segments)
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, _, kind, options, *_ = line.split()
        if kind == "nfs4":
            wanted = (
                ["vers=4.2"] if "vers=4.2" in options else ["vers=4.1", "rsize=8192", "wsize=8192", "sync"]
            )
            layers.append(" ".join([kind, *(one for one in wanted if one in options.split(","))]))
    return " ".join(layers)


def snapshot(folder: Path) -> dict[str, str]:
    """Read everything that an experiment changes here."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    signatures = {device: call("wipefs", "--json", device) for device in DEVICES}
    return signatures | {
        "standing": standing(),
        "groups": call("vgs", "--noheadings", "-o", "vg_name"),
        "physical volumes": call("pvs", "--noheadings", "-o", "pv_name"),
        "mapped": " ".join(
            sorted(path.name for path in Path("/dev/mapper").glob("*") if path.name != "control")
        ),
        "mounts": "\n".join(sorted(line for line in mounts if "/run/loadstone" in line)),
        "left in /run": " ".join(sorted(path.name for path in Path("/run/loadstone").glob("ls*"))),
        "threshold of ondemand": THRESHOLD.read_text().strip(),
        "frequencies": " ".join(
            f"{path.parent.name}: {path.read_text().strip()}"
            for path in sorted(_POLICY.parent.glob("policy*/scaling_[gm][oia]*"))
        ),
        "online": Path("/sys/devices/system/cpu/online").read_text().strip(),
        **{name: place.read_text().strip() for name, (place, _) in there().items()},
        "journals": " ".join(sorted(path.name for path in (folder / "state/changes").glob("*.jsonl"))),
    }


def difference(before: dict[str, str], now: dict[str, str]) -> dict[str, Any]:
    return {name: [before[name], now[name]] for name in before if before[name] != now[name]}


def everything_but_load(prepared: PreparedExperiment, state: Path, look: Any = None) -> None:
    """Set the machine for each run in order, and put it back."""
    machine_here = Machine(prepared.varied, prepared.label, where=state / "changes")
    records: list[MachineSetting] = []
    try:
        machine_here.begin()
        for run in prepared.document.runs:
            wanted_state = prepared.asked(run)
            with machine_here.around(wanted_state, None, records.extend):
                if look is not None:
                    look(wanted_state, machine_here)
    finally:
        machine_here.end()
    if machine_here.still_changed:
        raise RuntimeError(f"not put back: {machine_here.still_changed}")


def build_each(folder: Path) -> list[str]:
    """Build each layout once, and hold what stands against what was asked for."""
    wrong: list[str] = []
    layouts: set[str] = set()

    def look(answer: Any, machine_here: Machine) -> None:
        name = answer.layout
        expected, now = PARTS.get(name, ""), standing()
        if name not in layouts:
            layouts.add(name)
            print(f"{name}: {now or 'nothing but file systems'}", flush=True)
            if now != expected:
                wrong.append(f"{name}: {now!r} stands, expected {expected!r}")
            for volume in machine_here.volumes(name):
                target = Path(volume) / "written" if Path(volume).is_dir() else Path(volume)
                call("dd", "if=/dev/zero", f"of={target}", "bs=64k", "count=8", "conv=fsync,notrunc")
        for one in answer.settings:
            current = SETTINGS[one.control][0].read_text().strip()
            if one.value not in ("as is", current):
                wrong.append(f"{one.control} is {current}, asked was {one.value}")

    names = layout_names()
    for pair in zip(names[0::2], names[1::2], strict=True):
        prepared = prepare(file(folder, pair), ReadOptionsOfExperiment())
        began = time.monotonic()
        try:
            everything_but_load(prepared, folder / "state", look)
        except Exception as error:  # noqa: BLE001 - told, and the next one is tried
            wrong.append(f"{pair}: {error}")
            print(f"{pair}: WRONG {error}", flush=True)
        print(f"   {time.monotonic() - began:.0f} s", flush=True)
    return wrong


def drill(folder: Path, points: int, seed: int, before: dict[str, str]) -> list[str]:
    """Kill at drawn moments, restore, and read the system."""
    draw = random.Random(seed)
    killed = 0
    for number in range(points):
        names = draw.sample(layout_names(), 2)
        prepared = prepare(file(folder, names), ReadOptionsOfExperiment())
        after_s = draw.uniform(0.0, 14.0)
        child = os.fork()
        if child == 0:
            try:
                everything_but_load(prepared, folder / "state")
            except BaseException as error:  # noqa: BLE001 - told, and the parent looks at what is left
                print(f"child: {error!r}", flush=True)
                os._exit(3)
            os._exit(0)
        killed += kill_later(child, after_s)
        output = restore(folder / "state", draw, within_s=3)
        changed = difference(before, snapshot(folder))
        print(f"point {number}: {names}, killed after {after_s:.1f} s", flush=True)
        if output or changed:
            return [f"point {number} ({names}, {after_s:.2f} s): {output} {json.dumps(changed)}"]
    print(f"{points} points, {killed} killed while at it", flush=True)
    return []


def whole(folder: Path, before: dict[str, str]) -> list[str]:
    """Run experiments by their verb."""
    wrong = []
    layouts = file(folder, ["md RAID5", "LVM thin", "NFS"])
    nodes = folder / "nodes.toml"
    nodes.write_text(NODES)
    ready = ROOT / "examples/experiments/governor-and-layer.toml"
    small = [
        "--set",
        f"device={DEVICES[0]}",
        "--set",
        "runtime=1s",
        "--set",
        "size=16m",
        "--set",
        "repeats=2",
    ]
    for path, words, lost in ((layouts, [], DEVICES), (nodes, [], ()), (ready, small, DEVICES[:1])):
        wrong += planned_and_run(path, [*words], lost, folder)
        changed = difference(before, snapshot(folder))
        wrong += [f"after {path.name}: {json.dumps(changed)}"] if changed else []
    return wrong


def planned_and_run(path: Path, words: Sequence[str], lost: Sequence[str], folder: Path) -> list[str]:
    """Have the verb plan and run a file, and look where its engine's threads are meanwhile."""
    consent = [word for one in lost for word in ("--i-accept-data-loss", one)]
    out = ["--out", str(folder / path.stem), "--no-progress", "--no-calibration", "--no-report"]
    wrong, cpus = [], set[str]()
    for action in (["plan", str(path)], ["run", str(path), *out, *consent]):
        command = [*LOADSTONE, "experiment", *action, *words]
        environment = os.environ | {"LOADSTONE_STATE": str(folder / "state")}
        with tempfile.TemporaryFile("w+") as output:
            begun = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
            while begun.poll() is None:
                cpus |= cpus_of_engine()
                time.sleep(0.1)
            output.seek(0)
            print(output.read()[-6000:], flush=True)
        if begun.returncode:
            wrong.append(f"{path.name}: {action[0]} ended with {begun.returncode}")
    if path.stem == "nodes" and not {"0-1", "2-3"} <= cpus:
        wrong.append(f"the engine's threads were on CPUs {sorted(cpus)}, not on each node")
    print(f"threads of the engine may run on CPUs {sorted(cpus)}", flush=True)
    return wrong


def cpus_of_engine() -> set[str]:
    """Return the CPUs on which threads of the engine may run, as the kernel tells them."""
    lists = set()
    for process in Path("/proc").glob("[0-9]*"):
        # One that ends meanwhile takes its directory with it.
        with contextlib.suppress(OSError):
            # A thread has a name of its own; its process has the program's.
            if "loadstone-engi" not in (process / "comm").read_text():
                continue
            for status in (process / "task").glob("*/status"):
                lists.add(status.read_text().partition("Cpus_allowed_list:")[2].split()[0])
    return lists


def inside(points: int, seed: int, parts: Sequence[str]) -> int:
    """In the machine: build, kill and run, or some of these."""
    folder = Path("/dev/shm/lab")
    folder.mkdir()
    for number, device in enumerate(DEVICES):
        with (folder / f"disk{number}").open("wb") as out:
            out.truncate(DISK_MIB << 20)
        call("losetup", device, folder / f"disk{number}")
    # One that the kernel makes anew must come back with what somebody had set.
    for governor in sorted(_POLICY.parent.glob("policy*/scaling_governor")):
        governor.write_text("ondemand")
    THRESHOLD.write_text("71")
    print(f"settings: {list(there())}", flush=True)
    before = snapshot(folder)
    wrong = build_each(folder) if "build" in parts else []
    if changed := difference(before, snapshot(folder)):
        wrong.append(f"after each was built: {json.dumps(changed)}")
    wrong += drill(folder, points, seed, before) if "kill" in parts and not changed else []
    wrong += whole(folder, before) if "run" in parts else []
    print("@@@ " + json.dumps(wrong))
    return 0


def main() -> int:
    """Boot the machine, and print what was found in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="s, for a busy host")
    parser.add_argument("--parts", nargs="+", choices=STEPS, default=STEPS, help="what is done in it")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options.points, options.seed, options.parts)
    if (why := machine.missing()) is not None:
        print(f"no machine can be had here: {why}", file=sys.stderr)
        return 2
    # Where libraries are looked for by default: mount(8) takes LD_LIBRARY_PATH away.
    programs = machine.unpacked_tools(PACKAGES, TOOLS, "usr/lib")
    compiler = machine.unpacked(COMPILER[:1])[COMPILER[1]]
    programs |= {f"sbin/{name}": programs[f"usr/sbin/{name}"] for name in TOOLS if name.startswith("mount.")}
    programs |= {f"usr/sbin/{name}": Path(answer) for name in ON_THE_WAY if (answer := shutil.which(name))}
    programs |= {f"usr/sbin/{name}": programs["usr/sbin/lvm"] for name in LVM if "usr/sbin/lvm" in programs}
    trees = machine.python_trees(
        lambda name: name not in LEFT_OUT and "mypyc" not in name, ("python", "lab", "examples/experiments")
    )
    programs |= {"usr/bin/loadstone-engine": find(), **machine.python_programs(trees)}
    with tempfile.TemporaryDirectory(prefix="loadstone-lab-") as name:
        table = frequencies(Path(name), compiler)
        output = machine.run(
            script_of(options.points, options.seed, options.parts),
            folder=Path(name), programs=programs, files=FILES, trees=trees, modules=MODULES,
            # No AMD of family 15, for which the kernel's driver has no frequencies.
            devices=[
                "-cpu", "max,vendor=GenuineIntel,family=6,model=85", "-acpitable", f"file={table}",
                "-object", "memory-backend-ram,id=m0,size=3072M", "-numa", "node,memdev=m0,cpus=0-1",
                "-object", "memory-backend-ram,id=m1,size=3072M", "-numa", "node,memdev=m1,cpus=2-3",
            ],
            memory_mib=6144, cpus=f"{CPUS},sockets=2,cores=1,threads=2", patience_s=options.patience,
        )  # fmt: skip
    print(output)
    answer = output.rpartition("@@@ ")[2].strip()
    return 1 if not answer.startswith("[]") else 0


def script_of(points: int, seed: int, parts: Sequence[str]) -> str:
    """Return what the machine does."""
    steps = SCRIPT.replace("POINTS", str(points)).replace("SEED", str(seed))
    return steps.replace("PARTS", " ".join(parts))


def frequencies(folder: Path, compiler: Path) -> Path:
    """Return a table of ACPI by which each CPU has frequencies."""
    names = "\n  ".join(f"External (\\_SB.CPUS.C00{number}, DeviceObj)" for number in range(CPUS))
    scopes = "\n".join(OF_A_CPU.format(number=number) for number in range(CPUS))
    (folder / "cpu.asl").write_text(FREQUENCIES.format(external=names, scopes=scopes))
    call(compiler, "-p", folder / "cpu", folder / "cpu.asl")
    return folder / "cpu.aml"


if __name__ == "__main__":
    sys.exit(main())
