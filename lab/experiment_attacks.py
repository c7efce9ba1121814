# ruff: noqa: E501 - files as people write them
"""Experiments as people get them wrong, drawn from a seed and run by the verb itself.

Knows files with every kind of factor, mistakes in them, budgets that are too small, devices that hold
something, signals at drawn moments, targets that go, full disks, and two experiments at once. After each
the exit code, the message with its file and line, and the state of the machine are held against what they
should be. Needs root.

    python -m lab.experiment_attacks --seed 1 [--only NAME...]

Prints a line for each attack, and ends with 1 when one found something.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lab.parts import Stage, call, missing

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S: Final = 240
BEGINNING: Final = """title = "Attack"
repeats = 2
runtime = "{runtime}"
size = "4m"
targets = ["{target}"]
"""
LOAD: Final = """
[[patterns]]
name = "load"
options = { ioengine = "psync", rw = "randrw", bs = "4k", rate_iops = 400 }
"""
VARIED: Final = """
[[factors]]
name = "pressure"
control = "sysctl"
subject = "vm.stat_interval"
levels = [1, 7]
"""


class WrongError(AssertionError):
    """Something was not as it should be."""


@dataclass(slots=True)
class Ran:
    """A verb that ended."""

    code: int
    out: str
    err: str

    def ends(self, *codes: int) -> Ran:
        """Hold the exit code against what it may be; a traceback is never right."""
        if self.code not in codes or "Traceback" in self.err:
            raise WrongError(f"exit code {self.code}, expected {codes}: {self.err[-800:]}")
        return self

    def ends_asked(self, number: int) -> Ran:
        """Hold the end after a signal against what it may be: before the program has begun it is Python's."""
        return self if number and self.code == -number else self.ends(130, 0)

    def says(self, *patterns: str) -> Ran:
        """Look for words in what was said on the error stream."""
        for pattern in patterns:
            if not re.search(pattern, " ".join(self.err.split())):
                raise WrongError(f"does not say {pattern!r}: {self.err[-800:]}")
        return self


@dataclass(slots=True)
class Bench:
    """A directory, and what the machine looked like before."""

    stage: Stage
    draw: random.Random
    before: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Return where everything is."""
        return self.stage.folder

    @property
    def state(self) -> Path:
        """Return where the journal is."""
        return self.folder / "state"

    @property
    def small(self) -> Path:
        """Return where an attack mounts a disk of its own that gets full."""
        return self.folder / "small"

    def text(self, factors: str = VARIED, *, target: str = "", runtime: str = "1s", load: str = LOAD) -> str:
        """Return a file."""
        return BEGINNING.format(runtime=runtime, target=target or self.folder / "data") + load + factors

    def file(self, text: str) -> Path:
        """Write a file."""
        path = self.folder / "attack.toml"
        path.write_text(text)
        return path

    def start(self, action: str, path: Path, *words: str, state: Path | None = None) -> subprocess.Popen[str]:
        """Start the verb."""
        command = [sys.executable, "-m", "loadstone", "experiment", action, str(path), *words]
        if action in ("run", "resume"):
            command += ["--no-calibration", "--no-report", "--no-progress"]
        if action == "run" and "--out" not in words:
            command += ["--out", str(self.folder / "out")]
        environment = os.environ | {"LOADSTONE_STATE": str(state or self.state)}
        return subprocess.Popen(
            command, env=environment, cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def ran(self, action: str, path: Path, *words: str, state: Path | None = None) -> Ran:
        """Run the verb to its end."""
        return self.ended(self.start(action, path, *words, state=state))

    def restore(self, *words: str) -> Ran:
        """Run `loadstone restore`."""
        command = [sys.executable, "-m", "loadstone", "restore", *words]
        environment = os.environ | {"LOADSTONE_STATE": str(self.state)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return Ran(done.returncode, done.stdout, done.stdout + done.stderr)

    @staticmethod
    def ended(process: subprocess.Popen[str]) -> Ran:
        """Wait for a verb; one that does not end is asked to, so that it puts the machine back."""
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            _, err = process.communicate()
            raise WrongError(f"it did not end in {PATIENCE_S} s: {err[-800:]}") from None
        return Ran(process.returncode, out, err)

    def snapshot(self) -> dict[str, str]:
        """Read what an experiment may have changed."""
        mounts = [
            line for line in Path("/proc/self/mounts").read_text().splitlines()
            if str(self.folder) in line
        ]  # fmt: skip
        groups = [
            str(path) for path in Path("/sys/fs/cgroup").glob("*/ls????????-*") if self._is_ours(path.name)
        ]
        queues = {
            f"{device.name} {file}": (device / "queue" / file).read_text().strip()
            for device in sorted(Path("/sys/block").glob("loop*"))
            for file in ("scheduler", "read_ahead_kb")
            if str(self.folder) in _backing(device)
        }
        journals = sorted(path.name for path in (self.state / "changes").glob("*.jsonl"))
        return queues | {
            "sysctl": Path("/proc/sys/vm/stat_interval").read_text().strip(),
            "mounts": "\n".join(line for line in mounts if str(self.small) not in line),
            "groups": " ".join(groups),
            "journals": " ".join(journals),
            "fills": " ".join(str(path) for path in self.folder.glob("*/.loadstone-fill")),
        }

    def _is_ours(self, group: str) -> bool:
        return not Path("/proc", group.partition("-")[2]).exists()

    def is_put_back(self) -> None:
        """Raise where the machine is not as it was."""
        now = self.snapshot()
        for name in sorted(set(self.before) | set(now)):
            if name in self.before and now.get(name) != self.before[name]:
                raise WrongError(f"{name} was {self.before[name]!r} and is {now.get(name)!r}")

    def runs(self, out: Path) -> dict[str, str | None]:
        """Return the status of each point of a study."""
        document = json.loads((out / "study.json").read_text())
        return {point["name"]: point["status"] for point in document["points"]}

    def complete(self, out: Path, count: int) -> None:
        """Raise where not every run completed, or where anything that was measured is lost."""
        done = [name for name, status in self.runs(out).items() if status == "complete"]
        if len(done) != count:
            raise WrongError(f"{len(done)} of {count} runs are complete: {self.runs(out)}")


def _backing(device: Path) -> str:
    try:
        return (device / "loop/backing_file").read_text()
    except OSError:
        return ""


def _line(path: Path, words: str) -> str:
    """Return the pattern of a message about the line that has these words."""
    lines = path.read_text().splitlines()
    number = next(at for at, line in enumerate(lines, start=1) if words in line)
    return rf"{re.escape(path.name)}:{number}\b"


# Valid files of every kind of factor


def _valid(bench: Bench, factors: str, runs: int, *words: str, **changes: str) -> None:
    path = bench.file(bench.text(factors, **changes))
    bench.ran("plan", path, *(word for word in words if word == "--allow-exec")).ends(0)
    bench.is_put_back()
    bench.ran("run", path, *words).ends(0)
    bench.complete(bench.folder / "out", runs)
    bench.ran("report", bench.folder / "out", "--output", str(bench.folder / "page.html")).ends(0)


def option(bench: Bench) -> None:
    """Any option of a job."""
    name, levels = bench.draw.choice([("bs", '"4k", "8k"'), ("rwmixread", "20, 80"), ("numjobs", "1, 2")])
    _valid(bench, f'\n[[factors]]\nname = "f"\noption = "{name}"\nlevels = [{levels}]\n', 4)


def parameter(bench: Bench) -> None:
    """A parameter of a named workload."""
    load = '\n[[patterns]]\nname = "load"\nworkload = "storagereview-sql-80-20-like"\noptions = { ioengine = "psync" }\n'
    text = bench.text('\n[[factors]]\nname = "f"\nparameter = "dephts"\nlevels = [1, 2]\n', load=load)
    path = bench.file(text)
    bench.ran("plan", path).ends(2).says("dephts")


def control(bench: Bench) -> None:
    """A scheduler or a read-ahead of a device."""
    device = bench.stage.loop(32, written=False)
    bench.before = bench.snapshot()
    name, levels = bench.draw.choice(
        [("io_scheduler", '"none", "mq-deadline"'), ("read_ahead_kb", "128, 16")]
    )
    factor = f'\n[[factors]]\nname = "f"\ncontrol = "{name}"\nsubject = "{device}"\nlevels = [{levels}]\n'
    _valid(bench, factor, 4, "--i-accept-data-loss", device, target=device)


def layout(bench: Bench) -> None:
    """Layouts on two devices."""
    devices = [bench.stage.loop(200, written=False) for _ in range(2)]
    bench.before = bench.snapshot()
    raid = bench.draw.choice(["0", "1"])
    factors = (
        f'\n[layouts.array]\nmanager = "btrfs"\nraid = "{raid}"\n\n[layouts.each]\nfilesystem = "ext4"\n'
        '\n[[factors]]\nname = "f"\nkind = "layout"\nlevels = ["array", "each"]\n'
    )
    text = bench.text(factors, target="{file}")
    names = ", ".join(f'"{one}"' for one in devices)
    path = bench.file(f"devices = [{names}]\n{text}")
    bench.ran("run", path).ends(0)
    bench.complete(bench.folder / "out", 4)


def two_targets(bench: Bench) -> None:
    """Targets."""
    names = ", ".join(f'"{bench.folder}/{one}"' for one in "ab")
    _valid(bench, f'\n[[factors]]\nname = "f"\nkind = "target"\nlevels = [{names}]\n', 4)


def allocation(bench: Bench) -> None:
    """States of a file."""
    levels = ", ".join(
        f'"{one}"' for one in bench.draw.sample(["first pass", "later pass", "holes", "preallocated"], 2)
    )
    _valid(bench, f'\n[[factors]]\nname = "f"\nkind = "allocation"\nlevels = [{levels}]\n', 4)


def page_cache(bench: Bench) -> None:
    """The page cache."""
    _valid(bench, '\n[[factors]]\nname = "f"\nkind = "page_cache"\nlevels = ["kept", "dropped"]\n', 4)


def cache_share(bench: Bench) -> None:
    """Sizes as a share of memory."""
    factor = '\n[[factors]]\nname = "f"\nkind = "cache_share"\nof = "8m"\nlevels = ["25%", "100%"]\n'
    _valid(bench, factor, 4)


def _volume(bench: Bench) -> Path:
    volume = bench.stage.ext4(bench.stage.loop(96, written=False), options="relatime")
    bench.before = bench.snapshot()
    return volume


def fill(bench: Bench) -> None:
    """How full a file system is."""
    volume = _volume(bench)
    percent = bench.draw.randrange(40, 80)
    factor = (
        f'\n[[factors]]\nname = "f"\nkind = "fill_level"\nof = "{volume}"\nlevels = ["as is", "{percent}%"]\n'
    )
    _valid(bench, factor, 4, target=str(volume / "data"))


def group(bench: Bench) -> None:
    """Limits of a control group."""
    file = "memory.limit_in_bytes" if Path("/sys/fs/cgroup/memory").is_dir() else "memory.max"
    level = f'{{ name = "small", limits = {{ "{file}" = "{bench.draw.randrange(400, 900)}M" }} }}'
    _valid(bench, f'\n[[factors]]\nname = "f"\nkind = "cgroup"\nlevels = ["as is", {level}]\n', 4)


def command(bench: Bench) -> None:
    """Commands, permitted and not, and one that fails."""
    mark = bench.folder / "mark"
    level = f'{{ name = "on", do = "touch {mark}", undo = "rm {mark}" }}'
    factor = f'\n[[factors]]\nname = "f"\nkind = "command"\nlevels = ["as is", {level}]\n'
    path = bench.file(bench.text(factor))
    for action in ("plan", "run"):
        bench.ran(action, path).ends(2).says("--allow-exec", _line(path, "levels"))
    if mark.exists() or (bench.folder / "out").exists():
        raise WrongError("something was done without a permission")
    _valid(bench, factor, 4, "--allow-exec")
    if mark.exists():
        raise WrongError("the command was not undone")
    shutil.rmtree(bench.folder / "out")
    path = bench.file(bench.text(factor.replace("touch", "false")))
    bench.ran("run", path, "--allow-exec").ends(1).says("ended with 1")


# Mistakes


def misspelt(bench: Bench) -> None:
    """A name that is none, in one of many places."""
    right, wrong, near = bench.draw.choice(
        [
            ("repeats", "repaets", "repeats"),
            ("levels", "level", "levels"),
            ('control = "sysctl"', 'control = "sysctrl"', "sysctl"),
            ("[[patterns]]", "[[pattern]]", "patterns"),
            ("rate_iops", "rate_iopps", "rate_iops"),
            ("subject", "subjct", "subject"),
        ]
    )
    path = bench.file(bench.text().replace(right, wrong, 1))
    for action in ("plan", "run"):
        found = bench.ran(action, path).ends(2).says(rf"did you mean '?{near}|{near}")
        if wrong != "rate_iopps":
            found.says(_line(path, wrong))


def wrong_value(bench: Bench) -> None:
    """A value that is none."""
    right, wrong = bench.draw.choice(
        [
            ("repeats = 2", "repeats = 0"),
            ('runtime = "1s"', 'runtime = "1"'),
            ('size = "4m"', 'size = "four"'),
            ('control = "sysctl"', 'control = "sysctl"\noption = "bs"'),
            ("levels = [1, 7]", "levels = [1]"),
            ("levels = [1, 7]", "levels = [1, 1]"),
        ]
    )
    path = bench.file(bench.text().replace(right, wrong, 1))
    bench.ran("run", path).ends(2).says(rf"{path.name}:\d+")


def one_thing_twice(bench: Bench) -> None:
    """Two factors on one control or one option, or a factor and a setting."""
    second = VARIED.replace('name = "pressure"', 'name = "again"')
    either = bench.draw.choice(
        [
            (VARIED + second, "again"),
            (VARIED + '\n[[settings]]\ncontrol = "sysctl"\nsubject = "vm.stat_interval"\nvalue = 5\n', "settings"),
            ("".join(f'\n[[factors]]\nname = "{name}"\noption = "bs"\nlevels = ["4k", "8k"]\n' for name in "ab"), "b"),
        ]
    )  # fmt: skip
    path = bench.file(bench.text(either[0]))
    bench.ran("plan", path).ends(2).says(rf"{path.name}:\d+")
    bench.ran("run", path).ends(2)


def cannot_be_set(bench: Bench) -> None:
    """A level that this host does not have."""
    factor = bench.draw.choice(
        [
            VARIED.replace("stat_interval", "no_such_parameter"),
            '\n[[factors]]\nname = "f"\ncontrol = "governor"\nlevels = ["performance", "powersave"]\n',
            '\n[[factors]]\nname = "f"\nkind = "cgroup"\nlevels = ["as is", { name = "x", limits = { "nosuch.max" = "1" } }]\n',
        ]
    )  # fmt: skip
    path = bench.file(bench.text(factor))
    for action in ("plan", "run"):
        bench.ran(action, path).ends(2).says("cannot be set here", "--leave-out-unset")
    if (bench.folder / "out").exists():
        raise WrongError("a study was begun")


def not_taken(bench: Bench) -> None:
    """A value that only the kernel refuses, during the study."""
    path = bench.file(bench.text(VARIED.replace("1, 7", '1, "many"')))
    bench.ran("run", path).ends(1, 2).says("stat_interval")


def unknown_kind(bench: Bench) -> None:
    """A factor of no kind, of two, or of one that needs something else."""
    factor = bench.draw.choice(
        [
            VARIED.replace('control = "sysctl"', 'kind = "governer"'),
            VARIED.replace('control = "sysctl"\n', ""),
            VARIED + 'kind = "page_cache"\n',
            '\n[[factors]]\nname = "f"\nkind = "fill_level"\nlevels = ["10%", "20%"]\n',
            '\n[[factors]]\nname = "f"\nkind = "layout"\nlevels = ["one", "two"]\n',
        ]
    )
    path = bench.file(bench.text(factor))
    for action in ("plan", "run"):
        bench.ran(action, path).ends(2).says(rf"{path.name}:\d+")


def no_effect(bench: Bench) -> None:
    """A factor that does nothing to this workload: refused before the study."""
    name, levels = bench.draw.choice(
        [("rwmixread", "20, 80"), ("iodepth", "1, 8"), ("numjobs", '1, "1"'), ("bs", '"4k", "4096"')]
    )
    load = LOAD if name != "rwmixread" else LOAD.replace("randrw", "randread")
    path = bench.file(
        bench.text(f'\n[[factors]]\nname = "f"\noption = "{name}"\nlevels = [{levels}]\n', load=load)
    )
    for action in ("plan", "run"):
        bench.ran(action, path).ends(2).says(rf"{path.name}:\d+")
    if (bench.folder / "out").exists():
        raise WrongError("a study was begun")


def once(bench: Bench) -> None:
    """One repeat: it runs, and says that chance cannot be ruled out."""
    target = _volume(bench) / "data"
    path = bench.file(bench.text(target=str(target)).replace("repeats = 2", "repeats = 1"))
    found = bench.ran("run", path).ends(0)
    if "chance cannot be ruled out" not in found.out + found.err:
        raise WrongError(f"does not say that nothing is known: {found.out[-800:]}")


def aliased(bench: Bench) -> None:
    """A fraction: what cannot be told apart is named; one that is too small is refused."""
    names = ("bs", "numjobs", "rwmixread", "fsync")
    levels = ('"4k", "8k"', "1, 2", "20, 80", "0, 8")
    factors = "".join(
        f'\n[[factors]]\nname = "{name}"\noption = "{name}"\nlevels = [{level}]\n'
        for name, level in zip(names, levels, strict=True)
    )
    small = bench.draw.random() < 0.5
    extra = f'repeats = 1\ndesign = "fraction"\nbudget = {{ time = "{"9s" if small else "18s"}" }}'
    path = bench.file(bench.text(factors).replace("repeats = 2", extra))
    if small:
        for action in ("plan", "run"):
            bench.ran(action, path).ends(2).says("budget")
        return
    found = bench.ran("plan", path).ends(0)
    if "cannot be told from" not in found.out:
        raise WrongError(f"does not say what is aliased: {found.out[-800:]}")


def no_file(bench: Bench) -> None:
    """What is no file of an experiment."""
    path = bench.folder / "attack.toml"
    kind = bench.draw.choice(["absent", "empty", "binary", "folder", "json", "cut"])
    match kind:
        case "empty":
            path.write_text("")
        case "binary":
            path.write_bytes(os.urandom(4096))
        case "folder":
            path.mkdir()
        case "json":
            path.write_text('{"title": 1}')
        case "cut":
            path.write_text(bench.text()[: bench.draw.randrange(20, 200)])
        case _:
            pass
    bench.ran("plan", path).ends(2).says(path.name)
    bench.ran("run", path).ends(2)
    bench.ran("resume", path).ends(1, 2)
    bench.ran("report", path).ends(1, 2)


def small_budget(bench: Bench) -> None:
    """Less time or fewer bytes than it takes: the last runs are left out, and `resume` begins no more."""
    limit = bench.draw.choice(['time = "6s"', 'written = "1200k"', 'time = "1s"', 'written = "1k"'])
    path = bench.file(bench.text().replace("repeats = 2", f"repeats = 40\nbudget = {{ {limit} }}"))
    ran = bench.ran("run", path).says("budget")
    out = bench.folder / "out"
    count = len(bench.runs(out))
    ran.ends(0 if count else 1)
    if count >= 80:
        raise WrongError("the budget was exceeded")
    if limit.startswith("time"):
        bench.ran("resume", out).ends(0 if count else 1).says("budget")
        if len(bench.runs(out)) > count + 1:
            raise WrongError(f"resumed, it did {len(bench.runs(out)) - count} more runs")


# What must not be lost


def precious(bench: Bench) -> None:
    """A device that holds a file system, without consent; one that is mounted, with it."""
    device = bench.stage.loop(200, written=False)
    call("mkfs.ext4", "-q", "-L", "precious", device)
    factors = (
        '\n[layouts.one]\nfilesystem = "ext4"\n\n[layouts.two]\nfilesystem = "none"\n'
        '\n[[factors]]\nname = "f"\nkind = "layout"\nlevels = ["one", "two"]\n'
    )
    path = bench.file(f'devices = ["{device}"]\n' + bench.text(factors, target="{file}"))
    bench.ran("run", path).ends(2).says("--i-accept-data-loss")
    folder = bench.folder / "mounted"
    folder.mkdir()
    call("mount", device, folder)
    try:
        bench.ran("run", path, "--i-accept-data-loss", device).ends(2).says("mounted")
    finally:
        call("umount", folder)
    if "precious" not in call("blkid", "-p", device):
        raise WrongError("the file system is lost")


def own_file(bench: Bench) -> None:
    """A target that is somebody's file."""
    data = bench.folder / "data"
    data.write_bytes(os.urandom(8 << 20))
    before = data.read_bytes()
    bench.ran("run", bench.file(bench.text())).ends(2).says("--i-accept-data-loss")
    if data.read_bytes() != before:
        raise WrongError("the file was changed")


# Signals, and what goes meanwhile


def _begun(process: subprocess.Popen[str], out: Path, runs: int) -> None:
    """Wait until so many runs have begun."""
    until_s = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until_s:
        if len(list(out.glob("runs/*"))) >= runs:
            return
        time.sleep(0.02)


def _interrupt(bench: Bench, number: int, text: str | None = None) -> None:
    path, out = bench.file(text or bench.text()), bench.folder / "out"
    process = bench.start("run", path)
    time.sleep(bench.draw.uniform(0.0, 8.0))
    alive = process.poll() is None
    if alive:
        process.send_signal(number)
    ran = bench.ended(process)
    if number != signal.SIGKILL:
        ran.ends_asked(0 if out.exists() else number)
    if number == signal.SIGKILL and alive:
        time.sleep(0.5)
        bench.restore().ends(0)
    bench.is_put_back()
    if not (out / "experiment.json").exists():
        return
    kept = [name for name, status in bench.runs(out).items() if status == "complete"]
    process = bench.start("resume", out)
    if bench.draw.random() < 0.5:
        time.sleep(bench.draw.uniform(0.0, 4.0))
        process.send_signal(signal.SIGINT)
        bench.ended(process).ends_asked(signal.SIGINT)
        bench.is_put_back()
        process = bench.start("resume", out)
    bench.ended(process).ends(0)
    bench.complete(out, 4)
    if not set(kept) <= set(bench.runs(out)):
        raise WrongError("a run that was complete is gone")


def interrupted(bench: Bench) -> None:
    """Ctrl-C at a drawn moment of run and resume."""
    _interrupt(bench, signal.SIGINT)


def terminated(bench: Bench) -> None:
    """SIGTERM."""
    _interrupt(bench, signal.SIGTERM)


def killed(bench: Bench) -> None:
    """SIGKILL, then `loadstone restore`, then resume."""
    _interrupt(bench, signal.SIGKILL)


def _layouts(bench: Bench) -> str:
    """Return a file with two layouts of two devices, on each of which a scheduler is set."""
    devices = [bench.stage.loop(200, written=False) for _ in range(2)]
    bench.before = bench.snapshot()
    names = ", ".join(f'"{one}"' for one in devices)
    factors = (
        f'\n[layouts.array]\nmanager = "btrfs"\nraid = "{bench.draw.choice("01")}"\n'
        '\n[layouts.each]\nfilesystem = "ext4"\n'
        '\n[[factors]]\nname = "f"\nkind = "layout"\nlevels = ["array", "each"]\n'
        f'\n[[settings]]\ncontrol = "io_scheduler"\nsubject = "{devices[0]}"\nvalue = "none"\n'
    )
    return f"devices = [{names}]\n{bench.text(factors, target='{file}')}"


def interrupted_building(bench: Bench) -> None:
    """Ctrl-C while layouts are built and taken down."""
    _interrupt(bench, signal.SIGINT, _layouts(bench))


def killed_building(bench: Bench) -> None:
    """SIGKILL there."""
    _interrupt(bench, signal.SIGKILL, _layouts(bench))


def interrupted_plan(bench: Bench) -> None:
    """Ctrl-C during plan."""
    process = bench.start("plan", bench.file(bench.text()))
    time.sleep(bench.draw.uniform(0.0, 1.5))
    process.send_signal(signal.SIGINT)
    bench.ended(process).ends_asked(signal.SIGINT)


def target_goes(bench: Bench) -> None:
    """The directory of the target is removed, or the device shrinks, while it runs."""
    folder = bench.folder / "sub"
    folder.mkdir()
    path, out = bench.file(bench.text(target=str(folder / "data"))), bench.folder / "out"
    process = bench.start("run", path)
    _begun(process, out, 1)
    time.sleep(bench.draw.uniform(0.2, 1.5))
    shutil.rmtree(folder)
    bench.ended(process).ends(1).says("sub")
    bench.is_put_back()
    folder.mkdir()
    bench.ran("resume", out).ends(0)
    bench.complete(out, 4)


def edited(bench: Bench) -> None:
    """The file is edited between run and resume: repeats, seed, a level more, another factor, a comment."""
    path, out = bench.file(bench.text()), bench.folder / "out"
    process = bench.start("run", path)
    _begun(process, out, 2)
    process.send_signal(signal.SIGINT)
    bench.ended(process).ends(130)
    text = path.read_text()
    right, wrong = bench.draw.choice(
        [
            ("repeats = 2", "repeats = 3"),
            ("repeats = 2", "repeats = 2\nseed = 9"),
            ("[1, 7]", "[1, 7, 9]"),
            ("[1, 7]", "[7, 1]"),
            ('"vm.stat_interval"', '"vm.page-cluster"'),
            ("rate_iops = 400", "rate_iops = 500"),
            ("repeats = 2", "repeats = 2 # still"),
        ]
    )
    path.write_text(text.replace(right, wrong))
    bench.ran("resume", out).ends(2).says("is not what the experiment began with", path.name)
    path.write_text(text)
    bench.ran("resume", out).ends(0)
    bench.complete(out, 4)


def changed_by_others(bench: Bench) -> None:
    """Somebody sets the control to a third value during a run: it is theirs, and that is said."""
    path, out = bench.file(bench.text(VARIED.replace("[1, 7]", "[6, 7]"), runtime="3s")), bench.folder / "out"
    process = bench.start("run", path)
    _begun(process, out, 1)
    time.sleep(bench.draw.uniform(1.0, 3.0))
    file = Path("/proc/sys/vm/stat_interval")
    try:
        file.write_text("5")
        bench.ended(process).ends(1).says(
            "STILL CHANGED", "NOT put back to 1: somebody else set it to 5 since"
        )
        if file.read_text().strip() != "5":
            raise WrongError(f"somebody's value was changed to {file.read_text().strip()}")
        bench.restore().ends(1).says("somebody else set it to 5")
        bench.restore("--force").ends(0)
        bench.is_put_back()
    finally:
        file.write_text(bench.before["sysctl"])
    bench.ran("resume", out).ends(0)
    bench.complete(out, 4)


def restored_meanwhile(bench: Bench) -> None:
    """`loadstone restore` while an experiment runs: refused, and the experiment goes on."""
    path, out = bench.file(bench.text(VARIED.replace("[1, 7]", "[6, 7]"), runtime="3s")), bench.folder / "out"
    process = bench.start("run", path)
    _begun(process, out, 1)
    time.sleep(bench.draw.uniform(1.0, 3.0))
    before = Path("/proc/sys/vm/stat_interval").read_text()
    bench.restore(*bench.draw.choice([(), ("--force",)])).ends(1).says(
        rf"refused: process {process.pid} is alive|refused: process \d+ is alive"
    )
    if before.strip() in ("6", "7") and Path("/proc/sys/vm/stat_interval").read_text().strip() == "1":
        raise WrongError("what a living experiment set was put back")
    bench.ended(process).ends(0)
    bench.complete(out, 4)


def restored_twice(bench: Bench) -> None:
    """Killed, and two `loadstone restore` at once, then a third: nothing is undone twice."""
    marks = bench.folder / "undone"
    level = f'{{ name = "on", do = "true", undo = "echo x >> {marks}" }}'
    factors = VARIED + f'\n[[factors]]\nname = "f"\nkind = "command"\nlevels = [{level}, "as is"]\n'
    path, out = (
        bench.file(bench.text(factors, runtime="3s").replace('"random"', '"given"')),
        bench.folder / "out",
    )
    process = bench.start("run", path, "--allow-exec")
    _begun(process, out, bench.draw.randrange(1, 8))
    time.sleep(bench.draw.uniform(0.0, 2.0))
    process.kill()
    bench.ended(process)
    time.sleep(0.5)
    undone = marks.read_text().count("x") if marks.exists() else 0
    command = [sys.executable, "-m", "loadstone", "restore"]
    environment = os.environ | {"LOADSTONE_STATE": str(bench.state)}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [one.communicate()[0] for one in both]
    if any(one.returncode for one in both):
        raise WrongError(f"two at once: {said}")
    bench.restore().ends(0).says("nothing was left changed")
    now = marks.read_text().count("x") if marks.exists() else 0
    if now > undone + 1:
        raise WrongError(f"a command was undone {now - undone} times")
    bench.is_put_back()


def grandchild(bench: Bench) -> None:
    """Killed while a command has a program of its own at work: what that makes later is undone, too."""
    mark, begun = bench.folder / "mark", bench.folder / "begun"
    level = f'{{ name = "on", do = "(touch {begun}; sleep 20; touch {mark}) & wait", undo = "rm -f {mark}" }}'
    factor = f'\n[[factors]]\nname = "f"\nkind = "command"\nlevels = [{level}, "as is"]\n'
    process = bench.start("run", bench.file(bench.text(factor)), "--allow-exec")
    until_s = time.monotonic() + 120
    while not begun.exists() and time.monotonic() < until_s:
        time.sleep(0.02)
    began_s = time.monotonic()
    time.sleep(bench.draw.uniform(0.0, 2.0))
    process.kill()
    bench.ended(process)
    bench.restore().ends(0)
    time.sleep(max(0.0, 22 + began_s - time.monotonic()))
    if mark.exists():
        raise WrongError("what a command's own program made after the kill is still there")


def rebooted(bench: Bench) -> None:
    """Killed in a run, and the host boots: settings are the kernel's again, what was made on disk is not."""
    mark = bench.folder / "mark"
    level = f'{{ name = "on", do = "touch {mark}", undo = "rm {mark}" }}'
    factors = VARIED + f'\n[[factors]]\nname = "f"\nkind = "command"\nlevels = [{level}, "as is"]\n'
    path, out = bench.file(bench.text(factors, runtime="2s")), bench.folder / "out"
    process = bench.start("run", path, "--allow-exec")
    _begun(process, out, bench.draw.randrange(1, 6))
    process.kill()
    bench.ended(process)
    time.sleep(0.5)
    Path("/proc/sys/vm/stat_interval").write_text(bench.before["sysctl"])
    for journal in (bench.state / "changes").glob("*.jsonl"):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        journal.write_text(journal.read_text().replace(boot, "the boot before"))
    bench.restore().ends(0)
    if mark.exists():
        raise WrongError("what the command made is still there")
    bench.is_put_back()
    bench.ran("resume", out, "--allow-exec").ends(0)
    bench.complete(out, 8)


def wild_command(bench: Bench) -> None:
    """Commands that stay in the background, hang, print escapes, or cannot be undone."""
    kind = bench.draw.choice(["background", "hangs", "escapes", "cannot be undone"])
    number = bench.folder / "pid"
    does = {
        "background": (f"sleep 300 & echo $! > {number}", f"kill $(cat {number})"),
        "hangs": ("sleep 300", "true"),
        "escapes": (r"printf '\\033[2Jgone\\007\\n' >&2; exit 3", "true"),
        "cannot be undone": ("true", r"printf '\\033[2Jno way' >&2; exit 4"),
    }
    do, undo = does[kind]
    level = f'{{ name = "on", do = "{do}", undo = "{undo}" }}'
    path = bench.file(
        bench.text(f'\n[[factors]]\nname = "f"\nkind = "command"\nlevels = ["as is", {level}]\n')
    )
    out = bench.folder / "out"
    process = bench.start("run", path, "--allow-exec")
    if kind == "hangs":
        until_s = time.monotonic() + PATIENCE_S
        while not _children(process.pid, "sleep 300") and time.monotonic() < until_s:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        bench.ended(process).ends(130)
    elif kind == "background":
        bench.ended(process).ends(0)
        bench.complete(out, 4)
        if Path("/proc", number.read_text().strip()).exists():
            raise WrongError("the program in the background was not ended")
    elif kind == "escapes":
        bench.ended(process).ends(1).says(r"ended with 3: \\x1b\[2Jgone")
    else:
        bench.ended(process).ends(1).says("STILL CHANGED", r"ended with 4: \\x1b\[2Jno way")
        bench.restore().ends(1).says("ended with 4")
        bench.before.pop("journals")


def _children(number: int, words: str) -> bool:
    """Return whether a descendant of a process is this command."""
    for task in Path(f"/proc/{number}/task").glob("*/children"):
        for child in task.read_text().split():
            try:
                said = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                continue
            if said == words or _children(int(child), words):
                return True
    return False


def one_target(bench: Bench) -> None:
    """Two experiments on one target: the second is refused while the first writes, or waits its turn."""
    path = bench.file(bench.text(runtime="4s"))
    second = bench.folder / "second.toml"
    second.write_text(
        path.read_text().replace("vm.stat_interval", "vm.page-cluster").replace("[1, 7]", "[3, 2]")
    )
    process = bench.start("run", path)
    _begun(process, bench.folder / "out", 1)
    time.sleep(1.0)
    bench.ran("run", second, "--out", str(bench.folder / "out2")).ends(1, 2).says("data")
    bench.ended(process).ends(0)
    bench.complete(bench.folder / "out", 4)


def full_journal(bench: Bench) -> None:
    """The disk of the journal is full before, or gets full during a run: all is put back, and it ends."""
    state, later = bench.small, bench.draw.random() < 0.5
    state.mkdir()
    call("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", state)
    try:
        (state / "changes").mkdir(mode=0o700)
        path, out = bench.file(bench.text(runtime="2s")), bench.folder / "out"
        process = bench.start("run", path, state=state) if later else None
        if process is not None:
            _begun(process, out, 1)
        _fill(state / "filler", 1 << 20)
        if process is None:
            bench.ran("run", path, state=state).ends(1, 2).says("cannot be written down", "No space left")
        else:
            # What a record that is removed leaves free may be enough for the next one.
            ran = bench.ended(process).ends(0, 1)
            if ran.code:
                ran.says("cannot be written down", "No space left")
        bench.is_put_back()
        if later:
            (state / "filler").unlink()
            bench.ran("resume", out, state=state).ends(0)
            bench.complete(out, 4)
            if left := list((state / "changes").glob("*.jsonl")):
                raise WrongError(f"journals are left: {left}")
    finally:
        call("umount", state)


def _fill(path: Path, size_bytes: int) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            for _ in range(0, size_bytes, 512):
                file.write(bytes(512))
        except OSError:
            pass


def full_study(bench: Bench) -> None:
    """The disk of the study fills up while it runs."""
    folder = bench.small
    folder.mkdir()
    call("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder)
    try:
        path, out = bench.file(bench.text(runtime="2s")), folder / "out"
        process = bench.start("run", path, "--out", str(out))
        _begun(process, out, bench.draw.randrange(1, 3))
        _fill(folder / "filler", 4 << 20)
        bench.ended(process).ends(1).says("No space left")
        bench.is_put_back()
        (folder / "filler").unlink()
        bench.ran("resume", out).ends(0)
        bench.complete(out, 4)
    finally:
        call("umount", folder)


def two_at_once(bench: Bench) -> None:
    """Two experiments on one control: the second is refused what the first has set."""
    first = bench.file(bench.text(VARIED.replace("[1, 7]", "[6, 7]"), runtime="4s"))
    second = bench.folder / "second.toml"
    second.write_text(first.read_text().replace("/data", "/other").replace('"4s"', '"1s"'))
    process = bench.start("run", first)
    _begun(process, bench.folder / "out", 1)
    other = bench.ran("run", second, "--out", str(bench.folder / "out2"))
    other.ends(1, 2).says("has changed it and will put it back")
    bench.ended(process).ends(0)
    bench.complete(bench.folder / "out", 4)
    bench.is_put_back()
    bench.ran("resume", bench.folder / "out2").ends(0)
    bench.complete(bench.folder / "out2", 4)


def used_directory(bench: Bench) -> None:
    """A directory that is there already, or may not be written."""
    path, out = bench.file(bench.text()), bench.folder / "out"
    out.mkdir()
    (out / "mine").write_text("x")
    bench.ran("run", path).ends(1, 2).says("out")
    if (out / "mine").read_text() != "x":
        raise WrongError("somebody's file was changed")


ATTACKS: Final[dict[str, Callable[[Bench], None]]] = {
    one.__name__: one
    for one in (
        option, parameter, control, layout, two_targets, allocation, page_cache, cache_share, fill, group,
        command, misspelt, wrong_value, one_thing_twice, cannot_be_set, not_taken, no_file, small_budget,
        precious, own_file, interrupted, terminated, killed, interrupted_plan, target_goes, edited,
        full_journal, full_study, two_at_once, used_directory, interrupted_building, killed_building,
        changed_by_others, rebooted, wild_command, one_target, unknown_kind, no_effect, once, aliased,
        restored_meanwhile, restored_twice, grandchild,
    )
}  # fmt: skip


def attack(name: str, seed: int) -> str | None:
    """Do one attack; return what was wrong, None where nothing was."""
    with Stage() as stage:
        bench = Bench(stage, random.Random(f"{name} {seed}"))
        bench.before = bench.snapshot()
        try:
            ATTACKS[name](bench)
            bench.is_put_back()
        except WrongError as error:
            return str(error)
        except Exception:  # noqa: BLE001 - told as what it is, and the next attack is tried
            return traceback.format_exc()
    return None


def main() -> int:
    """Do all attacks, and tell of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), help="without names: all")
    options = parser.parse_args()
    if reason := missing():
        print(f"cannot run here: {reason}", file=sys.stderr)
        return 2
    wrong = 0
    for name in options.only or ATTACKS:
        found = attack(name, options.seed)
        wrong += found is not None
        print(
            f"{name} (seed {options.seed}): {'as it should be' if found is None else 'WRONG: ' + found}",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
