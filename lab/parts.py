"""Real parts to stage a run with, each removed by what made it, in reverse order, also on failure.

Knows loop devices, file systems, zram, block devices served from user space (nbdkit under FUSE under
a loop device), control groups of version 1 and loads beside the one that is measured. Needs root.
Removes nothing that it did not make. Knows no verdict.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from socket import AF_UNIX, create_connection, socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MIB = 1 << 20
CGROUPS = Path("/sys/fs/cgroup")
ZRAM = Path("/sys/class/zram-control")
LOADSTONE = (sys.executable, "-m", "loadstone")
PATIENCE_S = 40.0
PROGRAMS = ("losetup", "mkfs.ext4", "mkfs.btrfs", "nbdkit", "nbdfuse", "taskset", "fallocate")
JOIN = (
    'nice=${LAB_NICE:--20}; echo "$nice" 2>/dev/null > /proc/$$/autogroup; '
    'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 1; shift; done; shift; '
    'exec nice -n "$nice" "$@"'
)
"""Join control groups and become the program, in a session of its own.

What is staged goes before whatever else the host does meanwhile, which is not under test: within
a session by its nice value, between sessions by that of the session (sched_autogroup). `LAB_NICE=0`: what
is staged gets no more than the others, so that they are what honest runs have beside them.
"""


STOPS = (signal.SIGINT, signal.SIGTERM)
AGAIN_S = 10.0
"""After so long an interrupt that did not arrive is raised again: Python ignores what a finalizer raises."""


def _interrupted(*_: object) -> None:
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, _interrupted)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    raise KeyboardInterrupt


class MissingPartError(Exception):
    """A part that this host does not have."""


def missing() -> str | None:
    """Why nothing can be staged here, or None."""
    if os.geteuid() != 0:
        return "staging needs root"
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    done = subprocess.run(["losetup", "-f"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no free loop device: {done.stderr.strip()}"


def loadstone_with(**environment: str) -> list[str]:
    """Return the words that start the program with more in its environment, and this engine."""
    more = {"LOADSTONE_ENGINE": os.environ.get("LOADSTONE_ENGINE", "")} | environment
    return ["env", *(f"{name}={value}" for name, value in more.items()), *LOADSTONE]


def call(*words: str | Path) -> str:
    """Run a program that has to succeed and return what it printed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


def write(path: Path, mib: int) -> Path:
    """Make a file of what does not compress and return its path."""
    with path.open("wb") as out:
        for _ in range(mib):
            out.write(os.urandom(MIB))
    return path


class Stage:
    """Parts of one scenario in a folder of its own; `close` takes all of it down. `options`: of every run."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        self._options = options
        self._stack = contextlib.ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="loadstone-lab-", dir="/dev/shm"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._bundles = 0

    def __enter__(self) -> Stage:
        # The first signal begins the teardown, which a second one must not cut short.
        self._before = {number: signal.signal(number, _interrupted) for number in STOPS}
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
        try:
            self._stack.close()
        finally:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def afterwards(self, *words: str | Path) -> None:
        """Run this program when all is taken down."""
        self._stack.callback(call, *words)

    # Block devices

    def backing(self, mib: int, *, written: bool = True) -> Path:
        """A file in memory, filled with what does not compress, or with a hole."""
        path = self.folder / f"disk{len(list(self.folder.glob('disk*[0-9]')))}"
        write(path, mib if written else 0)
        os.truncate(path, mib * MIB)
        return path

    def loop(self, mib: int = 128, *, written: bool = True) -> str:
        """A loop device over a file in memory: a fast disk."""
        return self.loop_over(self.backing(mib, written=written))

    def loop_over(self, path: Path, *, direct: bool = True) -> str:
        """A loop device over a file; without direct I/O its pages stay in the page cache."""
        device = call("losetup", "-f", "--show", f"--direct-io={'on' if direct else 'off'}", path)
        self._stack.callback(call, "losetup", "-d", device)
        return device

    def single_server(self, mib: int, *, read: str, write: str) -> str:
        """A device that does one I/O after the other, each in the same time, like `2ms`."""
        delays = (f"rdelay={read}", f"wdelay={write}")
        return self.served(*delays, filters=["noparallel", "delay"], mib=mib, connections=1, written=False)

    def queue(self, device: str, **settings: str) -> None:
        """Set attributes of a device's queue; a loop device keeps them, so they are put back."""
        for name, value in settings.items():
            file = Path(f"/sys/block/{Path(device).name}/queue/{name}")
            before = re.sub(r".*\[(.+)\].*", r"\1", file.read_text().strip())
            file.write_text(value)
            self._stack.callback(file.write_text, before)

    def zram(self, mib: int = 128) -> str:
        """A disk that keeps what is written to it compressed in memory. Reading `hot_add` makes it."""
        if not (ZRAM / "hot_add").exists():
            raise MissingPartError("this kernel has no zram")
        number = int((ZRAM / "hot_add").read_text())
        self._stack.callback((ZRAM / "hot_remove").write_text, str(number))
        self._stack.callback(Path(f"/sys/block/zram{number}/reset").write_text, "1")
        Path(f"/sys/block/zram{number}/disksize").write_text(str(mib * MIB))
        return f"/dev/zram{number}"

    def served(
        self,
        *options: str,
        filters: Sequence[str] = (),
        mib: int = 64,
        connections: int = 4,
        written: bool = True,
    ) -> str:
        """A loop device over a file that nbdkit serves through its filters: slow, limited or failing.

        Options may name files of the folder: `{folder}` stands for it.
        """
        backing = self.backing(mib, written=written)
        socket = self._server(backing, options, filters)
        file = self.folder / f"{backing.name}.nbd"
        return self._nbd(file, f"nbd+unix:///?socket={socket}", mib, connections)

    def _server(self, backing: Path, options: Sequence[str], filters: Sequence[str]) -> Path:
        socket = self.folder / f"{backing.name}.sock"
        chosen = [f"--filter={name}" for name in filters]
        arguments = [option.format(folder=self.folder) for option in options]
        self.server = self._program("nbdkit", "-f", "-U", socket, *chosen, "file", backing, *arguments)
        until(socket.exists, "nbdkit's socket")
        return socket

    def fuse_file(
        self, *options: str, filters: Sequence[str] = (), mib: int = 64, keeps_pages: bool = False
    ) -> Path:
        """A file of a file system in user space (FUSE), as a network's client has one.

        `keeps_pages`: what was read stays in the page cache from one open to the next.
        """
        backing = self.backing(mib)
        socket, file = self._server(backing, options, filters), self.folder / f"{backing.name}.fuse"
        file.touch()
        words = ("-o", "kernel_cache") if keeps_pages else ()
        self._program("nbdfuse", "-C", "4", *words, file, f"nbd+unix:///?socket={socket}")
        until(lambda: file.stat().st_size == mib * MIB, "nbdfuse's file")
        self._stack.callback(unmount, file)
        return file

    def overlay(self, lower: Path, upper: Path) -> Path:
        """An overlay of two directories, mounted: what is written to is copied up first."""
        work, point = upper.parent / f"{upper.name}.work", self.folder / "mount-overlay"
        for folder in (upper, work, point):
            folder.mkdir(exist_ok=True)
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        call("mount", "-t", "overlay", "-o", options, "overlay", point)
        self._stack.callback(call, "umount", point)
        return point

    def pausing(self, mib: int = 64) -> str:
        """A disk with 2 ms that `pause` can hold up."""
        control = "pause-control={folder}/pause.sock"
        return self.served("rdelay=2ms", "wdelay=2ms", control, filters=["pause", "delay"], mib=mib)

    def pause(self, times: Sequence[tuple[float, float]]) -> None:
        """Hold the disk up: each time after so many seconds, for so many."""
        with socket(AF_UNIX) as control:
            control.connect(str(self.folder / "pause.sock"))
            for wait_s, length_s in times:
                time.sleep(wait_s)
                control.send(b"p")
                time.sleep(length_s)
                control.send(b"r")

    def stop_engine(self, length_s: float) -> None:
        """Stop the engine of the run that is under way, and let it go on."""
        bundle = max(self.folder.glob("bundle*"), key=lambda path: path.stat().st_mtime)
        events = map(json.loads, (bundle / "events.jsonl").read_text().splitlines()[:-1])
        number = next(int(event["pid"]) for event in events if event["type"] == "hello")
        time.sleep(1.0)
        os.kill(number, signal.SIGSTOP)
        time.sleep(length_s)
        os.kill(number, signal.SIGCONT)

    def plugin(self, program: str, mib: int, connections: int = 4) -> str:
        """A loop device over a file that a program in Python serves, as a plugin of nbdkit's."""
        if subprocess.run(["nbdkit", "python", "--dump-plugin"], capture_output=True, check=False).returncode:
            raise MissingPartError("nbdkit has no plugin for Python")
        script, socket, file = (self.folder / f"plugin.{kind}" for kind in ("py", "sock", "nbd"))
        script.write_text(program)
        self._program("nbdkit", "-f", "-U", socket, "python", script)
        until(socket.exists, "nbdkit's socket")
        return self._nbd(file, f"nbd+unix:///?socket={socket}", mib, connections)

    def remote(self, rate: str, mib: int = 64) -> str:
        """A loop device over a file that is served across a network which carries only `rate` back."""
        for name in ("ip", "tc"):
            if shutil.which(name) is None:
                raise MissingPartError(f"not installed: {name}")
        space, near, far = (f"{self.folder.name[-8:]}{kind}" for kind in ("n", "h", "t"))
        call("ip", "netns", "add", space)
        self._stack.callback(call, "ip", "netns", "del", space)
        call("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", space)
        call("ip", "addr", "add", "198.18.0.1/30", "dev", near)
        call("ip", "link", "set", near, "up")
        inside = ("ip", "netns", "exec", space)
        call(*inside, "ip", "addr", "add", "198.18.0.2/30", "dev", far)
        call(*inside, "ip", "link", "set", far, "up")
        call(*inside, "tc", "qdisc", "add", "dev", far, "root", "tbf", "rate", rate,
             "burst", "64kb", "latency", "200ms")  # fmt: skip
        self._program(*inside, "nbdkit", "-f", "-i", "198.18.0.2", "-p", "10809", "file", self.backing(mib))
        until(lambda: _listens("198.18.0.2", 10809), "nbdkit's port")
        return self._nbd(self.folder / "remote.nbd", "nbd://198.18.0.2:10809", mib, 4)

    def smooth(self, mib: int = 64, **limits: int) -> str:
        """A loop device over a file whose server lets through so many `iops` or `bps`, without bursts."""
        return self.loop_over(self.limited(mib, **limits)[0])

    def limited(self, mib: int = 64, count: int = 1, **limits: int) -> list[Path]:
        """Files whose server lets through so much of all of them together: `iops`, `bps`, `iops_max` …"""
        words: list[str | Path] = ["--object", f"throttle-group,id=group,{_qemu_limits(limits)}"]
        files = []
        for number in range(count):
            backing, file = self.backing(mib), self.folder / f"limited{number}.fuse"
            file.touch()
            files.append(file)
            words += [
                "--blockdev", f"driver=file,node-name=file{number},filename={backing}",
                "--blockdev",
                f"driver=throttle,node-name=limited{number},throttle-group=group,file=file{number}",
                "--export",
                f"type=fuse,id=export{number},node-name=limited{number},mountpoint={file},writable=on",
            ]  # fmt: skip
        self._exports(files, mib, words)
        return files

    def qcow2(self, folder: Path, mib: int = 64) -> Path:
        """A file that qemu serves from an image in a folder, which grows as it is written to."""
        image, file = folder / "image.qcow2", self.folder / "qcow2.fuse"
        call("qemu-img", "create", "-q", "-f", "qcow2", image, f"{mib}M")
        file.touch()
        node = f"driver=file,node-name=image,filename={image},cache.direct=on,cache.no-flush=off"
        words: list[str | Path] = [
            "--blockdev", node,
            "--blockdev", "driver=qcow2,node-name=disk,file=image",
            "--export", f"type=fuse,id=export,node-name=disk,mountpoint={file},writable=on",
        ]  # fmt: skip
        self._exports([file], mib, words)
        return file

    def _exports(self, files: Sequence[Path], mib: int, words: Sequence[str | Path]) -> None:
        if shutil.which("qemu-storage-daemon") is None:
            raise MissingPartError("not installed: qemu-storage-daemon")
        self._program("qemu-storage-daemon", *words)
        for file in files:
            until(lambda file=file: file.stat().st_size == mib * MIB, "a file of qemu-storage-daemon")  # type: ignore[misc]  # bound by default
            self._stack.callback(unmount, file)

    def another_client(self) -> Path:
        """A second file of the server of the last plugin, as another host has it."""
        file = self.folder / "another.nbd"
        return self._nbd_file(file, f"nbd+unix:///?socket={self.folder / 'plugin.sock'}", 64, 4)

    def _nbd(self, file: Path, uri: str, mib: int, connections: int) -> str:
        return self.loop_over(self._nbd_file(file, uri, mib, connections))

    def _nbd_file(self, file: Path, uri: str, mib: int, connections: int) -> Path:
        file.touch()
        self._program("nbdfuse", "-C", str(connections), file, uri)
        until(lambda: file.stat().st_size == mib * MIB, "nbdfuse's file")
        self._stack.callback(unmount, file)
        return file

    def server_dies(self) -> None:
        """End the program that serves the device, as a pulled cable does."""
        self.server.kill()

    # File systems

    def ext4(self, device: str, options: str = "noatime") -> Path:
        """A new ext4 on a device, mounted."""
        call("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
        return self._mount(device, "ext4", options)

    def xfs(self, device: str) -> Path:
        """A new XFS on a device of at least 300 MiB, mounted."""
        if shutil.which("mkfs.xfs") is None:
            raise MissingPartError("not installed: mkfs.xfs")
        call("mkfs.xfs", "-q", "-f", device)
        return self._mount(device, "xfs")

    def btrfs(self, device: str, *more: str, options: str = "noatime", data: str = "single") -> Path:
        """A new btrfs on one or several devices, with a profile for its data, mounted."""
        call("mkfs.btrfs", "--quiet", "--force", "--data", data, device, *more)
        return self._mount(device, "btrfs", options)

    def _mount(self, device: str, kind: str, options: str = "noatime") -> Path:
        point = self.folder / f"mount-{kind}{len(list(self.folder.glob('mount-*')))}"
        point.mkdir()
        call("mount", "-t", kind, "-o", options, device, point)
        self._stack.callback(call, "umount", point)
        return point

    # Control groups, version 1

    def cgroup(self, controller: str, **settings: str) -> Path:
        """A control group of our own; a key's first `__` stands for a dot."""
        root = CGROUPS / controller
        if not (root / "cgroup.procs").exists():
            raise MissingPartError(f"no control groups of version 1 with {controller}")
        group = root / self.folder.name
        group.mkdir()
        self._stack.callback(group.rmdir)
        for key, value in settings.items():
            (group / key.replace("__", ".")).write_text(value)
        return group

    def throttle(self, device: str, **limits: int) -> None:
        """Let all of the host do only so much on a device: `read_iops`, `write_bps` and so on."""
        root = CGROUPS / "blkio"
        number = call("lsblk", "-dno", "MAJ:MIN", device)
        for name, limit in limits.items():
            file = root / f"blkio.throttle.{name}_device"
            if not file.exists():
                raise MissingPartError("no limits of the block layer in control groups of version 1")
            file.write_text(f"{number} {limit}")
            self._stack.callback(file.write_text, f"{number} 0")

    # Loads beside

    def beside(self, *words: str | Path) -> subprocess.Popen[bytes]:
        """A program that runs until the scenario ends."""
        return self._program(*words)

    def spin(self, count: int, cpu: int | None = None) -> None:
        """Programs that use up CPUs."""
        pinned = ["taskset", "-c", str(cpu)] if cpu is not None else []
        for _ in range(count):
            self.beside(*pinned, sys.executable, "-c", "while True: pass")

    def _program(self, *words: str | Path) -> subprocess.Popen[bytes]:
        command = _first(*words)
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        self._stack.callback(_end, process)
        return process

    # The run

    def loadstone(self, *words: str | Path) -> str:
        """Run a verb that has to succeed, and return what it printed. Ends it when interrupted."""
        command = _first(sys.executable, "-m", "loadstone.cli.main", *words)
        done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
        if done.returncode:
            raise RuntimeError(
                f"loadstone {' '.join(map(str, words))}: {done.stderr.strip() or done.returncode}"
            )
        return done.stdout

    def run(
        self,
        job: str,
        *targets: str | Path,
        groups: Sequence[Path] = (),
        cpus: str | None = None,
        during: Callable[[], None] | None = None,
        options: Sequence[str] = (),
    ) -> Path:
        """Run a job file on the targets and return its bundle; `during` is called while it runs.

        The job file's `{0}`, `{1}` … stand for the targets. What it ends with does not matter: a
        failed run has a bundle, too.
        """
        self._bundles += 1
        file, bundle = self.folder / f"job{self._bundles}.fio", self.folder / f"bundle{self._bundles}"
        file.write_text(job.format(*targets))
        consent = [word for one in targets for word in ("--i-accept-data-loss", str(one))]
        words = [
            "run",
            str(file),
            "--out",
            str(bundle),
            "--no-progress",
            "--no-report",
            *consent,
            *options,
            *self._options,
        ]
        command = [sys.executable, "-m", "loadstone.cli.main", *words]
        if cpus is not None:
            command = ["taskset", "-c", cpus, *command]
        process = subprocess.Popen(
            _first(*command, groups=groups),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            if during is not None:
                until(lambda: _measuring(bundle), "the run's first second")
                during()
            _, output = process.communicate(timeout=120)
        events = bundle / "events.jsonl"
        if not events.exists() or '"start"' not in events.read_text():
            raise RuntimeError(f"the run did not begin: {output.strip()}")
        return bundle


def _first(*words: str | Path, groups: Sequence[Path] = ()) -> list[str]:
    return ["sh", "-c", JOIN, "sh", *map(str, groups), "--", *map(str, words)]


def _qemu_limits(limits: dict[str, int]) -> str:
    """Limits as qemu names them: `iops_max` is `x-iops-total-max`."""
    parts = {name.partition("_")[::2]: limit for name, limit in limits.items()}
    return ",".join(
        f"x-{kind}-total{'-' if more else ''}{more.replace('_', '-')}={limit}"
        for (kind, more), limit in parts.items()
    )


def unmount(file: Path) -> None:
    # nbdfuse may have left already, and its mount with it.
    subprocess.run(["umount", "-l", str(file)], check=False, stderr=subprocess.DEVNULL)


def _measuring(bundle: Path) -> bool:
    events = bundle / "events.jsonl"
    return events.exists() and '"tick"' in events.read_text()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(2)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _listens(host: str, port: int) -> bool:
    with create_connection((host, port), timeout=1):
        return True


def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if true():
                return
        time.sleep(0.02)
    raise RuntimeError(f"waited {PATIENCE_S:.0f} s in vain for {what}")


def busy_share(seconds: float = 0.5) -> float:
    """Return the part of all CPUs that is in use now, by anybody."""
    before = cpu_times()
    time.sleep(seconds)
    after = cpu_times()
    whole = sum(after) - sum(before)
    idle = after[3] + after[4] - before[3] - before[4]
    return 1 - idle / whole if whole else 0.0


def stolen_share(before: list[int], after: list[int]) -> float:
    """Return the part of all CPUs' time that the hypervisor took between two times of `cpu_times`."""
    whole = sum(after) - sum(before)
    return (after[7] - before[7]) / whole if whole else 0.0


def cpu_times() -> list[int]:
    """Return the first eight times of all CPUs in /proc/stat, in ticks: user first, steal last (proc(5))."""
    return [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
