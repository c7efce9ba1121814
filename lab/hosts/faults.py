"""What goes wrong on the way, staged on namespace hosts: what is said, what is kept, what is put back.

Each fault is a row: how it is made, when, and what must be true afterwards. Needs root and sshd.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.hosts.namespaces import NamespaceHosts
    from lab.hosts.standing import StandingScheduler

JOB = (
    "[readers]\nioengine=psync\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime={seconds}\nfilename={file}\n"
)
WRITERS = "[writers]\nioengine=psync\nrw=randwrite\nbs=4k\nsize=1m\ntime_based\nruntime=3\nfilename={file}\n"
LONG_WRITERS = WRITERS.replace("runtime=3", "runtime={seconds}")
LATE_MS = 100
"""So long after it went on may a host's last write be that nobody waits for, on a busy machine."""
STALL_S = 4.0
"""An I/O over a link that is down for 5 s takes longer than this."""
LONG_S = 120
"""A run that a fault ends."""
STANDING = "dask, standing scheduler"
EVERY_WAY = ("dask", "pipe", STANDING)
ROOM_S = 4.0
"""Engines must be gone 2 s after their coordinator; here with room for a machine that does other work."""


@dataclass
class Trial:
    """One run while something goes wrong."""

    hosts: NamespaceHosts
    directory: Path
    transport: str
    standing: StandingScheduler | None = None
    process: subprocess.Popen[str] | None = None
    said: str = ""
    told: str = ""
    code: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def out(self) -> Path:
        return self.directory / "out"

    def start(
        self,
        *more: str,
        run: str = "",
        hosts: dict[str, str] | None = None,
        job: str = JOB,
        seconds: int = 6,
        env: dict[str, str] | None = None,
        verb: tuple[str, ...] = ("run",),
    ) -> None:
        """Begin a run of a job, or what another verb does with the job file or `verb`'s own file."""
        data = self.directory / "data"
        data.write_bytes(bytes(1 << 20))
        path = self.directory / "job.fio"
        path.write_text(job.format(file=data, seconds=seconds))
        way = f'transport = "{self.transport}"' if self.standing is None else self.standing.settings
        toml = self.hosts.hosts_toml(run=f"{way}\n{run}", hosts=hosts)
        asked = [*verb, *([] if verb[0] == "experiment" else [str(path)])]
        words = [sys.executable, "-m", "loadstone", *asked, "--hosts", str(toml)]
        words += ["--out", str(self.out), "--no-report", "--no-calibration", *more]
        self.process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )

    def until(self, what: Callable[[], bool], seconds: float = 60) -> bool:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            if what():
                return True
            if self.process is not None and self.process.poll() is not None:
                return what()
            time.sleep(0.05)
        return False

    def reach(self, what: Callable[[], bool]) -> None:
        """Wait for the moment of a fault. Raises `LookupError` where it does not come: it is not staged."""
        if not self.until(what, 300):
            raise LookupError("the moment of the fault did not come")

    def running(self) -> bool:
        """Whether every host's engine does I/O."""
        return all(self.hosts.engines(name) and self._has_samples(name) for name in self.hosts.names)

    def _has_samples(self, name: str) -> bool:
        return any(
            path.stat().st_size > 5000 for path in (self.hosts.directory / name).rglob("samples.arrows")
        )

    def armed(self, name: str) -> bool:
        return bool(self.hosts.engines(name))

    def finish(self, seconds: float = 240) -> None:
        assert self.process is not None
        try:
            self.told, self.said = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.told, self.said = self.process.communicate()
            self.notes.append("DID NOT END")
        self.code = self.process.returncode

    def coordinator(self) -> list[int]:
        """The process that a shell waits for, and the one that works."""
        if self.process is None:
            return []
        children = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [self.process.pid, *(int(pid) for pid in children.stdout.split())]

    def gone_within(self, seconds: float) -> float | None:
        """Return how long it took until no engine is left; None: they are still there."""
        began_s = time.monotonic()
        while time.monotonic() - began_s < seconds:
            if not any(self.hosts.engines(name) for name in self.hosts.names):
                return time.monotonic() - began_s
            time.sleep(0.02)
        return None

    def settle(self, seconds: float) -> None:
        """Give agents so long to be gone."""
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s and "LEFT" in self.back():
            time.sleep(0.1)

    def record(self) -> dict[str, dict[str, object]]:
        path = self.out / "hosts.json"
        if not path.exists():
            return {}
        return {host["name"]: host for host in json.loads(path.read_text())["hosts"]}

    def kept(self) -> str:
        """Say what there is to read."""
        left = [
            path for name in self.hosts.names for path in (self.hosts.directory / name).rglob("manifest.json")
        ]
        readable = [path for path in left if opens(path.parent)]
        there = f"{len(readable)} of {len(left)} bundles readable on the hosts" if left else ""
        if not (self.out / "manifest.json").exists():
            return there or "nothing was begun"
        if not list((self.out / "hosts").glob("*/manifest.json")) and there:
            return f"partial, without figures; {there}"
        made = summarise(Bundle.open(self.out))
        hosts = [part.name for part in (made.bundle.hosts.hosts if made.bundle.hosts else ()) if part.bundle]
        data = made.total.data
        ops = 0 if data is None else data.operations
        return f"{made.status}: {ops} I/Os of {', '.join(hosts) or 'no host'}"

    def back(self) -> str:
        """Say what is left on the hosts."""
        left = [name for name in self.hosts.names if self.hosts.engines(name) or self.hosts.agents(name)]
        return "no process is left" if not left else f"PROCESSES LEFT on {', '.join(left)}"


def opens(path: Path) -> bool:
    try:
        return bool(Bundle.open(path).plan) and Bundle.open(path).samples() is not None
    except Exception:  # noqa: BLE001 # whatever is wrong with it, it does not open
        return False


@dataclass(frozen=True)
class Fault:
    """One row."""

    name: str
    make: Callable[[Trial], None]
    expect: Callable[[Trial], bool]
    """Whether what must be true is."""
    transports: tuple[str, ...] = ("dask", "pipe")
    """Or `STANDING`: the rows that can differ where scheduler and workers are not the run's own."""


def _kill(pids: list[int], number: int = signal.SIGKILL) -> None:
    """Raises `LookupError` where there is nobody: a fault that was not staged is no row."""
    struck = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            struck += 1
    if not struck:
        raise LookupError("nothing was there to strike")


def unreachable(trial: Trial) -> None:
    trial.hosts.link("h2", "down")
    trial.start(run="connect_s = 6")
    trial.finish()
    trial.hosts.link("h2", "up")


def no_server(trial: Trial) -> None:
    trial.hosts.stop_server("h2")
    trial.start()
    trial.finish()
    trial.hosts.start_server("h2")


def no_such_name(trial: Trial) -> None:
    trial.start(hosts={"h2": "port = 2\n"})
    trial.finish()


def key_refused(trial: Trial) -> None:
    other = trial.directory / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    trial.start(hosts={"h2": f'identity_file = "{other}"\n'})
    trial.finish()


def host_key_differs(trial: Trial) -> None:
    known = trial.directory / "known"
    key = trial.directory / "other.pub"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(trial.directory / "other")], check=True
    )
    known.write_text(f"{trial.hosts.address('h2')} {' '.join(key.read_text().split()[:2])}\n")
    options = ["StrictHostKeyChecking=yes", f"UserKnownHostsFile={known}", "LogLevel=ERROR"]
    trial.start(hosts={"h2": "ssh_options = " + json.dumps(options)})
    trial.finish()


def not_installed(trial: Trial) -> None:
    trial.start(hosts={"h2": 'program = ["loadstone-is-not-there"]\n'})
    trial.finish()


def version_differs(trial: Trial) -> None:
    copy = trial.directory / "old"
    copy.mkdir()
    subprocess.run(
        ["cp", "-r", str(Path(os.environ["PYTHONPATH"].split(":")[0]) / "loadstone"), str(copy)], check=True
    )
    (copy / "loadstone" / "version.py").write_text('__version__ = "0.0.9"\n')
    program = [
        "env",
        f"PYTHONPATH={copy}",
        f"LOADSTONE_ENGINE={os.environ.get('LOADSTONE_ENGINE', '')}",
        sys.executable,
        "-m",
        "loadstone",
    ]
    trial.start(hosts={"h2": "program = " + json.dumps(program)})
    trial.finish()


def clock_off(trial: Trial) -> None:
    shim = trial.directory / "shim"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text(
        "import time\n_ns = time.time_ns\ntime.time_ns = lambda: _ns() + 3_000_000_000\n"
    )
    base = os.environ.get("PYTHONPATH", "")
    program = [
        "env",
        f"PYTHONPATH={shim}:{base}",
        f"LOADSTONE_ENGINE={os.environ.get('LOADSTONE_ENGINE', '')}",
        sys.executable,
        "-m",
        "loadstone",
    ]
    trial.start(hosts={"h2": "program = " + json.dumps(program)}, seconds=2)
    trial.finish()


def watched_clock_off(trial: Trial) -> None:
    """Watch a host by ssh whose `date` is three seconds ahead of everybody's."""
    shim = trial.directory / "date"
    shim.write_text('#!/bin/sh\nexec /bin/date -d "3 seconds" "$@"\n')
    shim.chmod(0o755)
    client = trial.directory / "client"
    client.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        f"path = 'PATH={trial.directory}:$PATH; export PATH; '\n"
        f"words = ['ssh', '-i', {str(trial.hosts.directory / 'key')!r}, '-o', 'StrictHostKeyChecking=no',\n"
        f"    '-o', 'UserKnownHostsFile={trial.hosts.directory / 'known'}', *sys.argv[1:-1]]\n"
        "os.execvp('ssh', [*words, path + sys.argv[-1]])\n"
    )
    client.chmod(0o755)
    trial.start(
        "--watch",
        f"nas=ssh://root@{trial.hosts.address('h2')}",
        env={"LOADSTONE_SSH": str(client)},
        seconds=4,
    )
    trial.finish()
    result = trial.out / "result.json"
    if result.exists():
        told = json.loads(result.read_text())["watched"]["nas"]
        off_s, error_s = told["clock_offset_s"], told["clock_error_s"]
        trial.notes.append(f"clock of nas off by {off_s:.2f} s ± {error_s:.2f} s")


def clock_is_told(trial: Trial) -> bool:
    """Whether the watched host's clock is said to be three seconds ahead, within its error."""
    told = next(
        (note for note in trial.notes if note.startswith("clock of nas")), "0 0 0 0 0 0 0 0 9"
    ).split()
    return complete(trial) and abs(float(told[5]) - 3) <= float(told[8]) + 0.1


def agent_killed(phase: str) -> Callable[[Trial], None]:
    def make(trial: Trial) -> None:
        # The run is over when it is struck, however late that is; only what is collected ended before.
        seconds = 6 if phase == "collect" else LONG_S
        trial.start(run="lead_s = 6" if phase == "armed" else "", seconds=seconds)
        hosts = trial.hosts
        if phase == "prepare":
            trial.reach(lambda: bool(hosts.agents("h2")))
        elif phase == "armed":
            trial.reach(lambda: all(trial.armed(name) for name in hosts.names))
        elif phase == "running":
            trial.reach(trial.running)
        else:
            trial.reach(trial.running)
            trial.reach(lambda: not hosts.engines("h2"))
        _kill(hosts.agents("h2"))
        trial.notes.append(f"engine of h2 gone after {_gone(trial, 'h2')}")
        trial.finish()

    return make


def _gone(trial: Trial, name: str) -> str:
    began_s = time.monotonic()
    while time.monotonic() - began_s < 10:
        if not trial.hosts.engines(name):
            return f"{time.monotonic() - began_s:.1f} s"
        time.sleep(0.02)
    return "NEVER"


def agent_killed_going_on(trial: Trial) -> None:
    trial.start(run='on_loss = "continue"', seconds=20)
    trial.reach(trial.running)
    _kill(trial.hosts.agents("h2"))
    trial.finish()


def engine_killed(trial: Trial) -> None:
    trial.start(seconds=LONG_S)
    trial.reach(trial.running)
    _kill(trial.hosts.engines("h2"))
    trial.finish()


def agent_frozen(trial: Trial) -> None:
    trial.start(run="lost_after_s = 4", seconds=LONG_S)
    trial.reach(trial.running)
    frozen = trial.hosts.agents("h2")
    _kill(frozen, signal.SIGSTOP)
    trial.finish()
    # It cannot end anything: its engine must have ended by itself.
    trial.notes.append(f"engine of h2 gone {_gone(trial, 'h2')} after the run")
    # One that belongs to a worker was killed by it meanwhile.
    with contextlib.suppress(LookupError):
        _kill(frozen, signal.SIGCONT)


def agent_frozen_and_coordinator_killed(trial: Trial) -> None:
    """Nobody is left who could end the engine, and nobody who wants it."""
    trial.start(seconds=LONG_S)
    trial.reach(trial.running)
    frozen = trial.hosts.agents("h2")
    _kill(frozen, signal.SIGSTOP)
    _kill(trial.coordinator())
    _note_engines_gone(trial)
    with contextlib.suppress(LookupError):
        _kill(frozen, signal.SIGCONT)
    trial.finish()


def agent_and_server_frozen(trial: Trial) -> None:
    """No word and no end comes through any more: the engine ends when it was quiet for too long."""
    trial.start(run="lost_after_s = 4", seconds=LONG_S)
    trial.reach(trial.running)
    frozen = [pid for pid in trial.hosts.processes("h2") if pid not in trial.hosts.engines("h2")]
    _kill(frozen, signal.SIGSTOP)
    try:
        trial.notes.append(f"engine of h2 gone after {_gone(trial, 'h2')}")
        trial.finish()
    finally:
        _kill(frozen, signal.SIGCONT)


def host_paused(
    trial: Trial, *, until: Callable[[], object], run: str = "", then: bool = False, alone_s: float = 0.0
) -> None:
    """Stop everything on h2, and let it go on, its engine first: what does it still write?

    `alone_s`: the engine must end by itself, before those go on who could tell it.
    """
    data = trial.directory / "data"
    consent = [f"h1:{data}", f"h2:{data}", f"shared:{data}"]
    more = [word for one in consent for word in ("--i-accept-data-loss", one)]
    trial.start(*more, job=LONG_WRITERS, seconds=30 if then else LONG_S, run=run)
    trial.reach(trial.running)
    engines = trial.hosts.engines("h2")
    paused = [pid for pid in trial.hosts.processes("h2") if pid not in engines]
    _kill([*engines, *paused], signal.SIGSTOP)
    try:
        until()
    finally:
        resumed_s = time.time()
        _kill(engines, signal.SIGCONT)
        time.sleep(alone_s)
        _kill(paused, signal.SIGCONT)
    if not then:
        gone = _gone(trial, "h2")
        late_s = max(0.0, data.stat().st_mtime - resumed_s)
        trial.notes.append(f"wrote for {late_s * 1e3:.0f} ms after it went on, its engine gone {gone} later")
    trial.finish()


def paused_and_given_up(trial: Trial) -> None:
    host_paused(trial, until=trial.finish, run="lost_after_s = 4", alone_s=1.0)


def paused_and_coordinator_killed(trial: Trial) -> None:
    def until() -> None:
        _kill(trial.coordinator())
        # The other host's engine must be gone, so that what is written is this one's.
        trial.until(lambda: not trial.hosts.engines("h1"), 10)
        time.sleep(2)

    host_paused(trial, until=until)


def paused_for_a_while(trial: Trial) -> None:
    host_paused(trial, until=lambda: time.sleep(3), run="lost_after_s = 12", then=True)


def wrote_no_more(trial: Trial) -> bool:
    """Whether nothing but what was under way was written by a host that nobody waits for."""
    note = next((note for note in trial.notes if note.startswith("wrote for ")), "wrote for 9999 ms")
    return int(note.split()[2]) <= LATE_MS and "NEVER" not in note


def _note_engines_gone(trial: Trial) -> None:
    gone = trial.gone_within(10)
    trial.notes.append("engines gone " + (f"after {gone:.1f} s" if gone is not None else "NEVER"))


def link_short(trial: Trial) -> None:
    trial.start(seconds=30, run="lost_after_s = 12")
    trial.reach(trial.running)
    trial.hosts.link("h2", "down")
    time.sleep(5)
    trial.hosts.link("h2", "up")
    trial.finish()


def link_lost(trial: Trial) -> None:
    trial.start(seconds=LONG_S, run="lost_after_s = 4")
    trial.reach(trial.running)
    trial.hosts.link("h2", "down")
    trial.notes.append(f"engine of h2 gone after {_gone(trial, 'h2')}")
    trial.finish()
    trial.hosts.link("h2", "up")
    trial.gone_within(10)


def coordinator_killed(number: int) -> Callable[[Trial], None]:
    def make(trial: Trial) -> None:
        trial.start(seconds=LONG_S)
        trial.reach(trial.running)
        _kill(trial.coordinator(), number)
        _note_engines_gone(trial)
        trial.finish()
        trial.until(lambda: not any(trial.hosts.agents(name) for name in trial.hosts.names), 10)
        time.sleep(1)

    return make


def interrupted(trial: Trial) -> None:
    trial.start(seconds=LONG_S)
    trial.reach(trial.running)
    assert trial.process is not None
    trial.process.send_signal(signal.SIGINT)
    trial.finish()


def two_coordinators(trial: Trial) -> None:
    trial.start(seconds=LONG_S)
    trial.reach(trial.running)
    first, out = trial.process, trial.out
    second = Trial(trial.hosts, trial.directory / "second", trial.transport, trial.standing)
    second.directory.mkdir()
    second.start()
    second.finish()
    trial.notes.append(f"second: code {second.code}: {_short(second.said)}")
    trial.process = first
    assert out == trial.out
    assert first is not None
    first.send_signal(signal.SIGINT)
    trial.finish()


def disk_full(trial: Trial) -> None:
    small = trial.directory / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "loadstone-hosts", str(small)], check=True)
    try:
        trial.start(hosts={"h2": f'directory = "{small}"\n'}, seconds=20)
        trial.finish()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)


def no_room_here(trial: Trial) -> None:
    trial.directory.joinpath("out").mkdir()
    (trial.out / "something").write_text("kept")
    trial.start()
    trial.finish()


def mounted_on_one(trial: Trial) -> None:
    trial.start(job="[w]\nioengine=psync\nrw=write\nbs=4k\nsize=1m\nfilename=/proc/version\n")
    trial.finish()


def same_target_written(trial: Trial) -> None:
    trial.start(job=WRITERS)
    trial.finish()


def wrong_certificate(trial: Trial) -> None:
    make = [sys.executable, "-m", "loadstone", "hosts", "certificates", "h1,h2", "--directory"]
    for place in ("certs", "others"):
        subprocess.run([*make, str(trial.directory / place)], check=True, capture_output=True)
    for ending in ("pem", "key"):
        source = trial.directory / "others" / f"h2.{ending}"
        (trial.directory / "certs" / f"h2.{ending}").write_text(source.read_text())
    trial.start(run=f'certificates = "{trial.directory / "certs"}"\nconnect_s = 8')
    trial.finish()


def certificate_missing(trial: Trial) -> None:
    (trial.directory / "certs").mkdir()
    trial.start(run=f'certificates = "{trial.directory / "certs"}"')
    trial.finish()


def all_well(trial: Trial) -> None:
    trial.start(seconds=2)
    trial.finish()


def missing_target(trial: Trial) -> None:
    trial.start(job="[r]\nioengine=psync\nrw=read\nfilename=/dev/nosuchdisk\nsize=1m\n")
    trial.finish()


@contextlib.contextmanager
def serves(trial: Trial, *words: str) -> Iterator[None]:
    """While entered, a program runs on h2."""
    process = subprocess.Popen(
        [*trial.hosts.argv("h2"), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(1)
        yield
    finally:
        process.kill()
        process.wait()


def wrong_community(trial: Trial) -> None:
    conf = trial.directory / "snmpd.conf"
    conf.write_text(f"agentaddress udp:{trial.hosts.address('h2')}:161\nrocommunity right\n")
    with serves(trial, "/usr/sbin/snmpd", "-f", "-C", "-c", str(conf), "-Lf", "/dev/null"):
        watch = ["--watch", f"nas=snmp://{trial.hosts.address('h2')}"]
        trial.start(*watch, env={"LOADSTONE_SNMP_COMMUNITY": "wrong"})
        trial.finish()


def wrong_snmp_password(trial: Trial) -> None:
    conf = trial.directory / "snmpd.conf"
    conf.write_text(
        f"agentaddress udp:{trial.hosts.address('h2')}:161\n"
        "createUser watcher SHA-256 right-password AES right-password\nrouser watcher\n"
    )
    secrets = trial.directory / "secrets.toml"
    secrets.write_text(
        '[nas]\nuser = "watcher"\nauth_password = "wrong-password"\nprivacy_password = "right-password"\n'
    )
    secrets.chmod(0o600)
    with serves(
        trial, "env", f"SNMP_PERSISTENT_DIR={trial.directory}",
        "/usr/sbin/snmpd", "-f", "-C", "-c", str(conf), "-Lf", "/dev/null",
    ):  # fmt: skip
        watch = ["--watch", f"nas=snmp://{trial.hosts.address('h2')}"]
        trial.start(*watch, "--watch-secrets", str(secrets))
        trial.finish()


def watched_key_refused(trial: Trial) -> None:
    other = trial.directory / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    known = trial.directory / "known"
    words = f"ssh -i {other} -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile={known}"
    trial.start("--watch", f"nas=ssh://root@{trial.hosts.address('h2')}", env={"LOADSTONE_SSH": words})
    trial.finish()


def storage_link_short(trial: Trial) -> None:
    """Both hosts read a disk that h2 serves over its link; the link is down for 5 s."""
    address = f"nbd://{trial.hosts.address('h2')}:10809"
    with serves(trial, "nbdkit", "-f", "-i", trial.hosts.address("h2"), "memory", "64M"):
        file = trial.directory / "client.nbd"
        file.touch()
        client = subprocess.Popen(["nbdfuse", str(file), address])
        device = ""
        try:
            trial.reach(lambda: file.stat().st_size > 0)
            words = ["losetup", "--find", "--show", "--direct-io=on", str(file)]
            device = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
            job = JOB.replace("{file}", device) + "direct=1\n"
            trial.start(job=job, seconds=30, run="lost_after_s = 20")
            trial.reach(trial.running)
            trial.hosts.link("h2", "down")
            time.sleep(5)
            trial.hosts.link("h2", "up")
            trial.finish()
        finally:
            trial.hosts.link("h2", "up")
            if device:
                subprocess.run(["losetup", "--detach", device], check=False)
            subprocess.run(["fusermount", "-u", "-z", str(file)], check=False)
            client.kill()
            client.wait()
    if (trial.out / "result.json").exists():
        total = json.loads((trial.out / "result.json").read_text())["total"]
        trial.notes.append(f"slowest I/O {total['latency_ns']['max'] / 1e9:.1f} s")


def stalled_and_went_on(trial: Trial) -> bool:
    slowest = next((float(note.split()[2]) for note in trial.notes if note.startswith("slowest")), 0.0)
    return complete(trial) and slowest > STALL_S


def _short(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("bundle:")]
    return " ".join(lines)[:700]


def not_begun(trial: Trial) -> bool:
    return trial.code in {1, 2} and trial.kept() == "nothing was begun" and "h2" in trial.said


def watch_refused(trial: Trial) -> bool:
    return trial.code in {1, 2} and trial.kept() == "nothing was begun" and "nas" in trial.said


def failed_with_figures(trial: Trial) -> bool:
    return (
        trial.code == 1
        and "h2" in trial.said
        and trial.kept().startswith("failed: ")
        and " 0 I/Os" not in trial.kept()
    )


def complete(trial: Trial) -> bool:
    return trial.code == 0 and trial.kept().startswith("complete: ") and "h1, h2" in trial.kept()


def ended_quickly(trial: Trial) -> bool:
    gone = next((note for note in trial.notes if "engines gone after" in note), "")
    return bool(gone) and float(gone.split()[3]) < ROOM_S and "2 of 2" in trial.kept()


FAULTS: tuple[Fault, ...] = (
    Fault("nothing", all_well, complete, EVERY_WAY),
    Fault("host unreachable (its link is down)", unreachable, not_begun),
    Fault("no ssh server on a host", no_server, not_begun),
    Fault("wrong port", no_such_name, not_begun),
    Fault("key refused", key_refused, not_begun),
    Fault("host key is another one", host_key_differs, not_begun),
    Fault("Loadstone not installed on a host", not_installed, not_begun),
    Fault("version differs", version_differs, not_begun),
    Fault(
        "wall clock off by 3 s",
        clock_off,
        lambda t: complete(t) and int(str(t.record()["h2"]["clock_offset_ns"])) > 2.9e9,
    ),
    Fault("clock of a watched host off by 3 s", watched_clock_off, clock_is_told),
    Fault("agent killed in prepare", agent_killed("prepare"), not_begun, EVERY_WAY),
    Fault("agent killed while armed", agent_killed("armed"), lambda t: t.code == 1 and "h2" in t.said),
    Fault("agent killed while it runs", agent_killed("running"), failed_with_figures, EVERY_WAY),
    Fault(
        "agent killed while its bundle is collected",
        agent_killed("collect"),
        lambda t: t.code in {0, 1} and "I/Os" in t.kept(),
    ),
    Fault("agent killed while it runs, on_loss = continue", agent_killed_going_on, failed_with_figures),
    Fault(
        "agent frozen (SIGSTOP)",
        agent_frozen,
        lambda t: failed_with_figures(t) and "NEVER" not in " ".join(t.notes),
        EVERY_WAY,
    ),
    Fault(
        "agent frozen, then coordinator killed",
        agent_frozen_and_coordinator_killed,
        ended_quickly,
        EVERY_WAY,
    ),
    Fault(
        "agent and ssh server of a host frozen",
        agent_and_server_frozen,
        lambda t: failed_with_figures(t) and "NEVER" not in " ".join(t.notes),
    ),
    Fault("host paused for 3 s", paused_for_a_while, complete, EVERY_WAY),
    Fault(
        "host paused until the others gave it up, then goes on",
        paused_and_given_up,
        lambda t: failed_with_figures(t) and wrote_no_more(t),
        EVERY_WAY,
    ),
    Fault(
        "host paused, coordinator killed, host goes on",
        paused_and_coordinator_killed,
        wrote_no_more,
        EVERY_WAY,
    ),
    Fault(
        "engine killed on one host",
        engine_killed,
        lambda t: t.code == 1 and "h2" in t.said and "I/Os" in t.kept(),
    ),
    Fault("link down for 5 s and up again", link_short, complete, EVERY_WAY),
    Fault("link down for good", link_lost, failed_with_figures, EVERY_WAY),
    Fault("coordinator killed (SIGKILL)", coordinator_killed(signal.SIGKILL), ended_quickly, EVERY_WAY),
    Fault(
        "coordinator told to end (SIGTERM)",
        coordinator_killed(signal.SIGTERM),
        lambda t: t.code == 130 or "interrupted" in t.kept(),
    ),
    Fault("Ctrl-C", interrupted, lambda t: t.code == 130 and t.kept().startswith("interrupted: "), EVERY_WAY),
    Fault(
        "two coordinators on the same hosts",
        two_coordinators,
        lambda t: t.kept().startswith("interrupted: ") and "used by another run" in " ".join(t.notes),
        EVERY_WAY,
    ),
    Fault("disk full on one host", disk_full, lambda t: t.code in {1, 2} and "h2" in t.said),
    Fault("storage's link (NBD) down for 5 s and up again", storage_link_short, stalled_and_went_on),
    Fault("wrong SNMP community for a watched host", wrong_community, watch_refused),
    Fault("wrong SNMP password for a watched host", wrong_snmp_password, watch_refused),
    Fault("key refused by a watched host", watched_key_refused, watch_refused),
    Fault("--out is not empty", no_room_here, lambda t: t.code == 2 and (t.out / "something").exists()),
    Fault("a target that must never be written", mounted_on_one, lambda t: t.code == 2 and "h1" in t.said),
    Fault(
        "several hosts would write one file",
        same_target_written,
        lambda t: t.code == 2 and "--divide" in t.said and not any((t.directory / "data").read_bytes()),
    ),
    Fault("no such target", missing_target, lambda t: t.code in {1, 2} and "h1" in t.said),
    Fault("certificate of another authority on one host", wrong_certificate, not_begun, ("dask",)),
    Fault(
        "certificates missing",
        certificate_missing,
        lambda t: t.code == 2 and "certificates" in t.said,
        ("dask",),
    ),
)
