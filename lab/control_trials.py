"""Set controls on this host, one at a time, kill some who do, restore, and read the system.

Knows idle states, huge pages, kernel parameters, dirty limits, queues of a loop device, a CPU that goes
offline, control groups, pinned and niced loads, and another host (a network namespace with an ssh server)
whose kernel files are set and whose page cache is dropped. What is read afterwards is read by this program,
not by the control. What does not exist here has to be said by `experiment plan`. Needs root, ssh and sshd.

    python -m lab.control_trials --cases 60 --killed 0.4 --seed 1

Prints one JSON document: how many cases of each kind, and every one after which something was not as before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lab.hosts.namespaces import NamespaceHosts
from lab.parts import Stage, call

from loadstone import exitcodes
from loadstone.control import page_cache
from loadstone.control.all_controls import Controls
from loadstone.control.changes import Changes, restore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CPU: Final = Path("/sys/devices/system/cpu")
GROUPS: Final = Path("/sys/fs/cgroup")
STEPS: Final = 8
"""A change has fewer steps; one that is killed beyond its last is killed before it puts back."""
ABSENT: Final = ("governor", "energy_preference", "boost", "smt", "frequency_max_khz", "nfs_server_threads")
FILE: Final = """title = "Trial"
repeats = 1
runtime = "1s"
size = "8m"
targets = ["{target}"]

[[patterns]]
name = "read"
options = {{ rw = "randread", bs = "4k", ioengine = "psync", rate_iops = 200 }}

[[factors]]
name = "trial"
{factor}
"""


def drawn(draw: random.Random, loop: str, host: str, group: str) -> tuple[str, str, str, Path | str]:
    """Return control, subject, value, and where it is read: a file, or `host:file`, or a group's name."""
    queue = Path(f"/sys/block/{Path(loop).name}/queue")
    remote = draw.choice(("ipv4/tcp_fin_timeout", "core/somaxconn", "ipv4/ip_default_ttl"))
    name = draw.choice(("swappiness", "vfs_cache_pressure", "dirty_expire_centisecs", "page-cluster"))
    cpu, idle = draw.choice((0, 1)), "cpuidle/state1/disable"
    cases: list[tuple[str, str, str, Path | str]] = [
        ("idle_states", f"cpu{cpu}", "POLL", CPU / f"cpu{cpu}" / idle),
        ("cpu_online", "cpu1", "0", CPU / "cpu1/online"),
        ("transparent_huge_pages", "", draw.choice(("always", "madvise", "never")),
         Path("/sys/kernel/mm/transparent_hugepage/enabled")),
        ("sysctl", f"vm.{name}", str(draw.randrange(1, 9)), Path("/proc/sys/vm") / name),
        ("dirty_limit", "", f"{draw.randrange(64, 256)}M", Path("/proc/sys/vm/dirty_bytes")),
        ("dirty_background_limit", "", f"{draw.randrange(16, 60)}M",
         Path("/proc/sys/vm/dirty_background_bytes")),
        ("io_scheduler", loop, draw.choice(("none", "kyber", "bfq")), queue / "scheduler"),
        ("read_ahead_kb", loop, str(4 * draw.randrange(1, 99)), queue / "read_ahead_kb"),
        ("nomerges", loop, draw.choice(("1", "2")), queue / "nomerges"),
        ("cgroup", group, json.dumps({"memory.limit_in_bytes": f"{draw.randrange(400, 900)}M"}), group),
        ("cgroup", group, json.dumps({"cpu.cfs_quota_us": "50000"}), group),
        ("remote_file", f"root@{host}:/proc/sys/net/{remote}", str(draw.randrange(20, 99)),
         f"{host}:/proc/sys/net/{remote}"),
    ]  # fmt: skip
    return draw.choice(cases)


class Trials:
    """The parts that cases are drawn on."""

    def __init__(self, hosts: NamespaceHosts, loop: str, folder: Path) -> None:
        self._hosts, self.loop, self.folder = hosts, loop, folder
        self.host = hosts.address("h1")

    def read(self, place: Path | str) -> str:
        """Read a value as the kernel has it; of a group where this process is, and whether it is there."""
        if isinstance(place, Path):
            return place.read_text().strip()
        if ":" in place:
            return self._hosts.run("h1", "cat", place.partition(":")[2]).stdout.strip()
        groups = sorted(str(path) for path in GROUPS.glob(f"*/**/{place}"))
        return f"{groups} {Path('/proc/self/cgroup').read_text()}"

    def case(self, draw: random.Random, at: int, *, killed: bool) -> dict[str, Any]:
        """Set one, look, and put it back; or be killed, and restore."""
        control, subject, value, place = drawn(draw, self.loop, self.host, f"lab{os.getpid()}c{at}")
        state, before = self.folder / f"state{at}", self.read(place)
        step = draw.randrange(STEPS) if killed else -1
        shown = self._in_child(lambda: self._change(state, (control, subject, value), place, step))
        was_killed = shown == "killed"
        if was_killed:
            unrestored = [str(one) for one in restore(Controls(), state) if not one.is_well]
        else:
            unrestored = [] if shown not in ("", before) or value in before else ["it was not set"]
        after = self.read(place)
        wrong = unrestored + ([] if after == before else [f"{before!r} became {after!r}"])
        left = [path.name for path in state.glob("*.jsonl")]
        return {"control": control, "subject": subject, "value": value, "killed": was_killed,
                "wrong": wrong + [f"left: {one}" for one in left]}  # fmt: skip

    def _change(self, state: Path, setting: tuple[str, str, str], place: Path | str, at: int) -> str:
        count = -1

        def step(_: str) -> None:
            nonlocal count
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)

        with Changes(Controls(), state, step) as changes:
            changes.set(*setting)
            shown = self.read(place)
            if at >= 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return shown

    @staticmethod
    def _in_child(work: Callable[[], str]) -> str:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writer, work().encode()[:4000])
            except BaseException as error:  # noqa: BLE001 # the parent prints it
                os.write(writer, f"refused: {error}".encode())
                os._exit(3)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            text = pipe.read()
        status = os.waitpid(child, 0)[1]
        return "killed" if os.WIFSIGNALED(status) else text

    def plan(self, factor: str) -> tuple[int, str]:
        """Return how `experiment plan` ends for a factor, and what it says."""
        path = self.folder / "trial.toml"
        path.write_text(FILE.format(target=self.loop, factor=factor))
        done = loadstone("experiment", "plan", path)
        return done.returncode, done.stdout + done.stderr

    def absent(self, control: str) -> list[str]:
        """Ask for what this host does not have."""
        subject = 'subject = "policy0"\n' if control in ("governor", "frequency_max_khz") else ""
        code, text = self.plan(f'control = "{control}"\n{subject}levels = ["as is", "7"]')
        return [] if code == exitcodes.USAGE and control in text else [f"{control}: {code}: {text[-300:]}"]

    def carried(self, option: str, levels: tuple[str, str], read: Callable[[Path], str]) -> list[str]:
        """Run an option of the job at two levels, and read of the engine's workers what they had."""
        path, values = self.folder / "trial.toml", set[str]()
        factor = f'option = "{option}"\nlevels = {json.dumps(levels)}'
        path.write_text(FILE.format(target=self.loop, factor=factor))
        words = ("experiment", "run", path, "--out", self.folder / option, "--no-report", "--no-calibration")
        process = started(*words)
        while process.poll() is None:
            for thread in workers():
                with contextlib.suppress(OSError, RuntimeError):
                    values.add(read(thread))
            time.sleep(0.05)
        right = process.returncode == 0 and set(levels) <= values
        return [] if right else [f"{option}: {process.returncode}, {sorted(values)} of {levels}"]

    def dropped(self) -> list[str]:
        """Drop the page cache of the other host, whose kernel is this one's."""
        file = self.folder / "cached"
        file.write_bytes(os.urandom(64 << 20))
        os.sync()
        file.read_bytes()
        before = cached_kib()
        page_cache.drop(f"root@{self.host}")
        return (
            [] if before - cached_kib() > 32 << 10 else [f"{before} KiB were cached, and {cached_kib()} are"]
        )


def cached_kib() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Cached:"))


def workers() -> Iterator[Path]:
    """Yield the threads that do I/O, of every engine."""
    for comm in Path("/proc").glob("[0-9]*/task/*/comm"):
        with contextlib.suppress(OSError):
            if comm.read_text().startswith("worker"):
                yield comm.parent


def allowed(thread: Path) -> str:
    text = (thread / "status").read_text()
    return next(line.split()[1] for line in text.splitlines() if line.startswith("Cpus_allowed_list"))


def nice(thread: Path) -> str:
    return (thread / "stat").read_text().rpartition(")")[2].split()[16]


def io_priority(thread: Path) -> str:
    return call("ionice", "-p", thread.name).rpartition(" ")[2]


def started(*words: str | Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "loadstone", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def loadstone(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "loadstone", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@contextlib.contextmanager
def reached(hosts: NamespaceHosts) -> Iterator[None]:
    """Have the `ssh` of this process and its children reach the hosts."""
    folder = hosts.directory / "bin"
    folder.mkdir()
    options = f"-i {hosts.directory}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    (folder / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh {options} -o LogLevel=ERROR "$@"\n')
    (folder / "ssh").chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}:{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


def main() -> int:
    """Draw cases, and print what became of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--killed", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with (
        NamespaceHosts(1, name="trial") as hosts,
        reached(hosts),
        Stage() as stage,
        tempfile.TemporaryDirectory(prefix="loadstone-trials-") as folder,
    ):
        trials = Trials(hosts, stage.loop(16), Path(folder))
        cases = [trials.case(draw, at, killed=draw.random() < options.killed) for at in range(options.cases)]
        wrong = [one for one in cases if one["wrong"]]
        beside = {name: trials.absent(name) for name in ABSENT}
        beside["numa node 1"] = _refused(*trials.plan('option = "numa_cpu_nodes"\nlevels = ["0", "1"]'))
        beside["CPU 7"] = _refused(*trials.plan('option = "cpus_allowed"\nlevels = ["0", "7"]'))
        beside["page cache of another host"] = trials.dropped()
        beside["cpus_allowed"] = trials.carried("cpus_allowed", ("0", "1"), allowed)
        beside["nice"] = trials.carried("nice", ("0", "7"), nice)
        beside["prio"] = trials.carried("prio", ("1", "6"), io_priority)
    counts = Counter(one["control"] for one in cases)
    document = {
        "cases": len(cases),
        "killed": sum(one["killed"] for one in cases),
        "of": dict(counts.most_common()),
        "wrong": wrong,
        "beside": {name: why or "right" for name, why in beside.items()},
    }
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    return 1 if wrong or any(beside.values()) else 0


def _refused(code: int, text: str) -> list[str]:
    return [] if code == exitcodes.USAGE else [f"{code}: {text[-300:]}"]


if __name__ == "__main__":
    raise SystemExit(main())
