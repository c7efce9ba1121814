"""Kill experiments at random moments on real parts, restore, and read the system.

Knows loop devices in memory, btrfs and ext4 layouts on them, schedulers, a kernel parameter, a control
group, a filled file system and a remounted one. Most points kill a process that does everything of an
experiment but the load (`--points`); some kill `loadstone experiment run` itself (`--whole`). A fifth of
the points lose power: mounts and devices come back as a boot brings them, half of them without the file
system that was filled, which is mounted after a first restore. Needs root.

    python -m lab.experiment_drill --points 200 --whole 10 --seed 1

Prints one JSON document: how many points, and every one after which something was not as before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.parts import LOADSTONE, Stage, call, missing

from loadstone.control import change_journal, changes, orphans
from loadstone.control.fill import FILE as FILL_FILE
from loadstone.experiment.machine_state import Machine
from loadstone.experiment.prepared import PreparedExperiment, ReadOptionsOfExperiment, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.bundle.experiment import MachineSetting

QUEUE = ("scheduler", "nr_requests", "read_ahead_kb")
DEVICES = 3
ORPHANS_S = 60.0
FIRST_LOOP = 1000
GROUP = "memory.limit_in_bytes"
FILE = """title = "Drill"
repeats = 1
design = "one_at_a_time"
runtime = "1s"
size = "16m"
devices = [{devices}]
targets = ["{{file}}"]

[layouts.raid0]
manager = "btrfs"
raid = "0"

[layouts.raid1]
manager = "btrfs"
raid = "1"

[layouts.each]
filesystem = "ext4"

[[patterns]]
name = "write"
options = {{ rw = "randwrite", bs = "4k", direct = 1, ioengine = "io_uring", iodepth = 4 }}

[[settings]]
control = "sysctl"
subject = "{parameter}"
value = 77

[[factors]]
name = "layout"
kind = "layout"
levels = ["raid0", "each", "raid1"]

[[factors]]
name = "scheduler"
control = "io_scheduler"
subject = "{device}"
levels = ["none", "bfq"]

[[factors]]
name = "full"
kind = "fill_level"
of = "{volume}"
levels = ["as is", "60%"]

[[factors]]
name = "group"
kind = "cgroup"
levels = ["as is", {{ name = "small", limits = {{ "{group}" = "512M" }} }}]

[[factors]]
name = "mount"
control = "mount_options"
subject = "{volume}"
levels = ["as is", "noatime"]
"""


@dataclass(slots=True)
class DrillBench:
    """Devices and what they looked like before."""

    stage: Stage
    folder: Path
    devices: list[str] = field(default_factory=list)
    backings: list[Path] = field(default_factory=list)
    parameter: str = "vm.vfs_cache_pressure"
    volume: str = ""
    """A file system that is no layout's: it is filled and remounted."""
    volume_device: str = ""

    @property
    def state(self) -> Path:
        """Return where the journals are."""
        return self.folder / "state"

    def file(self) -> Path:
        """Write the experiment's file."""
        path = self.folder / "drill.toml"
        names = ", ".join(f'"{one}"' for one in self.devices)
        path.write_text(
            FILE.format(
                devices=names,
                device=self.devices[0],
                parameter=self.parameter,
                group=GROUP,
                volume=self.volume,
            )
        )
        return path

    def snapshot(self) -> dict[str, str]:
        """Read everything that an experiment changes here."""
        states = {"parameter": Path(f"/proc/sys/{self.parameter.replace('.', '/')}").read_text().strip()}
        for device in self.devices:
            name = Path(device).name
            queue = Path(f"/sys/block/{name}/queue")
            for file in QUEUE:
                states[f"{name} {file}"] = (queue / file).read_text().strip()
            blkid = subprocess.run(["blkid", "-p", device], capture_output=True, text=True, check=False)
            states[f"{name} signature"] = blkid.stdout.strip()
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        states["mounts"] = "\n".join(sorted(line for line in mounts if self._is_ours(line)))
        states["files"] = " ".join(sorted(path.name for path in Path(self.volume).iterdir()))
        states["groups"] = " ".join(sorted(str(path) for path in self._left_groups()))
        states["journals"] = " ".join(sorted(path.name for path in self._journals()))
        return states

    def _is_ours(self, line: str) -> bool:
        return self.volume in line or line.split(maxsplit=1)[0] in self.devices

    def _left_groups(self) -> list[Path]:
        """Return groups of processes that are gone: others may have an experiment of their own."""
        groups = Path("/sys/fs/cgroup").glob("*/ls????????-*")
        return [path for path in groups if not _lives(path.name.partition("-")[2])]

    def _journals(self) -> list[Path]:
        return sorted((self.state / "changes").glob("*.jsonl"))

    def labels(self) -> list[str]:
        """Return the labels of layouts in the journals."""
        text = "".join(path.read_text(errors="replace") for path in self._journals())
        return sorted(set(re.findall(r"\bls[0-9a-f]{8}\b", text)))

    def left_in_run(self, labels: Sequence[str]) -> str:
        """Return what is left of layouts in the directory of what does not outlive a boot."""
        names = [name for label in labels for name in (label, f"{label}.lock")]
        return " ".join(name for name in names if (orphans.folder() / name).exists())

    def mount_volume(self) -> bool:
        """Mount the file system that was filled; return whether what fills it is on it."""
        call("mount", self.volume_device, self.volume)
        return (Path(self.volume) / FILL_FILE).exists()

    def lose_power(self, *, without_volume: bool, renamed: bool = False) -> None:
        """Come up as after a boot: nothing of an experiment is mounted, settings are the kernel's own.

        `renamed`: each disk has the name that another had before.
        """
        labels = self.labels()
        _end_with_parents(labels)
        for path in self._journals():
            path.write_bytes(path.read_bytes().replace(change_journal.boot_id().encode(), b"the boot before"))
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            source, point, *_ = line.split()
            if source in self.devices:
                call("umount", point)
        Path(f"/proc/sys/{self.parameter.replace('.', '/')}").write_text(self.before["parameter"])
        call("mount", "-o", "remount,atime,relatime", self.volume)
        self._reattach(renamed=renamed)
        for path in self._left_groups():
            path.rmdir()
        for label in labels:
            orphans.forget(label)
            base = orphans.folder() / label
            for folder in (*base.glob("*"), base):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        if without_volume:
            call("umount", self.volume)

    def put_back(self) -> None:
        """Put back what a drill leaves that ends in the middle of a point."""
        if f" {self.volume} " not in Path("/proc/self/mounts").read_text():
            call("mount", self.volume_device, self.volume)
        _end_with_parents(self.labels())
        for one in changes.restore(where=self.state / "changes"):
            if not one.is_well:
                print(one, file=sys.stderr, flush=True)

    def _reattach(self, *, renamed: bool) -> None:
        """Take every device away and bring it back, with its own name or each with another's."""
        for device in self.devices if renamed else ():
            call("losetup", "-d", device)
        if renamed:
            self.backings = [*self.backings[1:], self.backings[0]]
        for device, backing in zip(self.devices, self.backings, strict=True):
            if not renamed:
                call("losetup", "-d", device)
            _attached(device, backing)
            name = Path(device).name
            for file in QUEUE:
                value = self.before[f"{name} {file}"]
                Path(f"/sys/block/{name}/queue/{file}").write_text(_chosen(value))

    before: dict[str, str] = field(default_factory=dict)


def _end_with_parents(labels: Sequence[str]) -> None:
    """Wait for programs that were killed: a mount under way would appear after the boot."""
    for label in labels:
        if not orphans.wait_until_gone(label, ORPHANS_S):
            raise RuntimeError(f"a program of {label} lives on")


def _lives(number: str) -> bool:
    """Return whether a process lives; one that is only not yet waited for does not."""
    try:
        return Path("/proc", number, "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _attached(device: str, backing: Path) -> None:
    """Attach a device again, as soon as whatever was on it has let it go."""
    for _ in range(100):
        try:
            call("losetup", "--direct-io=on", device, backing)
        except RuntimeError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"{device} is still held")


def _chosen(line: str) -> str:
    return next((word[1:-1] for word in line.split() if word.startswith("[")), line)


def bench(stage: Stage, parameter: str) -> DrillBench:
    """Make the devices, and a file system beside them."""
    drill_bench = DrillBench(stage, stage.folder, parameter=parameter)
    for _ in range(DEVICES):
        backing = stage.backing(300, written=False)
        # A number that nobody gets who asks for the first free one: it is detached for a moment.
        device = f"/dev/loop{FIRST_LOOP + os.getpid() % 10000 * DEVICES + len(drill_bench.devices)}"
        call("losetup", "--direct-io=on", device, backing)
        stage._stack.callback(call, "losetup", "-d", device)
        drill_bench.backings.append(backing)
        drill_bench.devices.append(device)
    device = stage.loop(128, written=False)
    call("mkfs.ext4", "-q", device)
    folder = stage.folder / "volume"
    folder.mkdir()
    call("mount", device, folder)
    stage._stack.callback(call, "umount", folder)
    drill_bench.volume, drill_bench.volume_device = str(folder), device
    stage._stack.callback(drill_bench.put_back)
    drill_bench.before = drill_bench.snapshot()
    return drill_bench


def everything_but_load(prepared: PreparedExperiment, state: Path) -> None:
    """Set the machine for each run in order, and put it back."""
    machine = Machine(prepared.varied, prepared.label, where=state / "changes")
    records: list[MachineSetting] = []
    try:
        machine.begin()
        for run in prepared.document.runs:
            with machine.around(prepared.asked(run), None, records.extend):
                time.sleep(0.002)
    finally:
        machine.end()


def kill_later(child: int, after_s: float) -> bool:
    """Kill a process after so long, or where the drill ends before; return whether it was still there."""
    until = time.monotonic() + after_s
    alive = True
    try:
        while alive and time.monotonic() < until:
            alive = not os.waitpid(child, os.WNOHANG)[0]
            time.sleep(0.001)
    finally:
        if alive:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return alive


def in_child(drill_bench: DrillBench, prepared: PreparedExperiment, after_s: float) -> bool:
    """Do it in a process of its own and kill that."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            everything_but_load(prepared, drill_bench.state)
        except BaseException as error:  # noqa: BLE001 - told, and the parent looks at what is left
            print(f"child: {error!r}", file=sys.stderr, flush=True)
            os._exit(3)
        os._exit(0)
    return kill_later(child, after_s)


def whole(drill_bench: DrillBench, after_s: float, number: int) -> bool:
    """Run the verb itself, and kill it and the engine's parent."""
    out = drill_bench.folder / f"out{number}"
    consent = [word for one in drill_bench.devices for word in ("--i-accept-data-loss", one)]
    command = [*LOADSTONE, "experiment", "run", str(drill_bench.file()), "--out", str(out)]
    environment = os.environ | {"LOADSTONE_STATE": str(drill_bench.state)}
    done = subprocess.Popen(
        [*command, *consent, "--no-progress", "--no-report", "--no-calibration"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(after_s)
    finally:
        alive = done.poll() is None
        workers = Path(f"/proc/{done.pid}/task/{done.pid}/children")
        numbers = [int(word) for word in workers.read_text().split()] if alive else []
        for one in [done.pid, *numbers] if alive else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
    done.wait()
    time.sleep(0.3)  # The engine ends when its standard input closes.
    return alive


def restore(state: Path, draw: random.Random, within_s: float = 0.2) -> list[str]:
    """Restore, killed half-way in half of the cases first; return what it says is not well."""
    where = state / "changes"
    if draw.random() < 0.5:
        child = os.fork()
        if child == 0:
            try:
                changes.restore(where=where)
            finally:
                os._exit(0)
        kill_later(child, draw.random() * within_s)
    return [str(one) for one in changes.restore(where=where) if not one.is_well]


def restores_at_once(state: Path, draw: random.Random) -> None:
    """Begin two restores at one time, and kill them at moments of their own."""
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            try:
                changes.restore(where=state / "changes")
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        kill_later(child, draw.random() * 0.2)


@dataclass(slots=True)
class DrillCounts:
    """How often what happened at the points of a drill."""

    killed: int = 0
    lost_power: int = 0
    came_up_without_the_filled_file_system: int = 0
    restored_twice_at_once_and_killed: int = 0
    came_up_with_other_names: int = 0
    of_those_told_that_a_fill_is_out_of_reach: int = 0


def drill(points: int, wholes: int, seed: int, parameter: str, *, harder: bool = False) -> dict[str, Any]:
    """Do all points; return what was found.

    `harder`: after half of the points two restores begin at once and are killed, and in half of the power
    losses the devices come up under each other's names.
    """
    draw, further = random.Random(seed), random.Random(f"harder {seed}")
    counts = DrillCounts()
    wrong: list[dict[str, Any]] = []
    with Stage() as stage:
        drill_bench = bench(stage, parameter)
        began = time.monotonic()
        everything_but_load(prepare(drill_bench.file(), ReadOptionsOfExperiment()), drill_bench.state)
        length_s = time.monotonic() - began
        if (now := drill_bench.snapshot()) != drill_bench.before:
            print(json.dumps(_difference(drill_bench.before, now), indent=1), file=sys.stderr, flush=True)
            return {"points": 0, "wrong": [{"undisturbed": _difference(drill_bench.before, now)}]}
        for number in range(points + wholes):
            is_whole = number >= points
            after_s = draw.uniform(2.0, 25.0) if is_whole else draw.uniform(0.0, length_s * 1.05)
            prepared = prepare(drill_bench.file(), ReadOptionsOfExperiment())
            counts.killed += (
                whole(drill_bench, after_s, number) if is_whole else in_child(drill_bench, prepared, after_s)
            )
            if difference := after_restore(drill_bench, draw, further if harder else None, counts):
                wrong.append({"point": number, "after_s": after_s} | difference)
                print(json.dumps(wrong[-1], indent=1), file=sys.stderr, flush=True)
                break
            if is_whole:
                shutil.rmtree(drill_bench.folder / f"out{number}", ignore_errors=True)
            if number % 10 == 9:
                so_far = f"{counts.killed} killed, {counts.lost_power} lost power"
                print(f"{number + 1} points, {so_far}", file=sys.stderr, flush=True)
    return {"points": number + 1, **asdict(counts), "seed": seed, "wrong": wrong}


def after_restore(
    drill_bench: DrillBench, draw: random.Random, further: random.Random | None, counts: DrillCounts
) -> dict[str, Any]:
    """Lose power by chance, restore, and return how what is there then differs from before; {}: not.

    `further` draws what only a harder drill does.
    """
    labels = drill_bench.labels()
    power = draw.random() < 0.2
    without = power and draw.random() < 0.5
    if power:
        renamed = further is not None and further.random() < 0.5
        counts.came_up_with_other_names += renamed
        drill_bench.lose_power(without_volume=without, renamed=renamed)
    if further is not None and further.random() < 0.5:
        restores_at_once(drill_bench.state, further)
        counts.restored_twice_at_once_and_killed += 1
    output = restore(drill_bench.state, draw)
    unseen = ""
    if without:
        if drill_bench.mount_volume() and not output:
            unseen = "a fill on a file system that was not mounted"
        counts.of_those_told_that_a_fill_is_out_of_reach += bool(output)
        output = restore(drill_bench.state, draw)
    now = drill_bench.snapshot()
    counts.lost_power += power
    counts.came_up_without_the_filled_file_system += without
    left = drill_bench.left_in_run(labels)
    if now == drill_bench.before and not (output or left or unseen):
        return {}
    unlike = _difference(drill_bench.before, now) | {"left_in_run": left, "unseen": unseen}
    return {"power": power, "said": output} | unlike


def _difference(before: dict[str, str], now: dict[str, str]) -> dict[str, Any]:
    return {name: [before.get(name), now.get(name)] for name in before if before.get(name) != now.get(name)}


def main() -> int:
    """Read the options, drill, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--whole", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parameter", default="vm.vfs_cache_pressure", help="kernel parameter that is set")
    parser.add_argument(
        "--harder", action="store_true", help="two restores at once, and devices under other names"
    )
    options = parser.parse_args()
    if reason := missing():
        print(f"cannot run here: {reason}", file=sys.stderr)
        return 2
    summary = drill(options.points, options.whole, options.seed, options.parameter, harder=options.harder)
    print(json.dumps(summary, indent=2))
    return 1 if summary["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
