"""Faults at drawn moments: `python -m lab.hosts.attack --seed 1 --draws 40 [--transport pipe]`.

A draw is a phase, a moment in it, a fault and a host. However it falls: the run ends in time, no engine
and no agent stays, what was measured can be read, and a host that failed is named with a remedy. Needs
root and sshd.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.hosts import namespaces
from lab.hosts.faults import Trial
from lab.hosts.namespaces import NamespaceHosts

if TYPE_CHECKING:
    from collections.abc import Callable

PHASES = ("connect", "prepare", "armed", "running", "collecting")
FAULTS = (
    "agent killed", "agent frozen", "engine killed", "engine frozen", "ssh client killed",
    "ssh server killed", "link down", "link down for a while", "all agents killed", "Ctrl-C",
)  # fmt: skip
LOST_S = 6
ENDS_S = 120.0
"""A run of 6 s must have ended so long after the fault, on a machine that has other work to do."""
GONE_S = 30.0


@dataclass(frozen=True)
class Draw:
    """One fault, and when."""

    seed: int
    phase: str
    delay_s: float
    fault: str
    host: str
    transport: str
    on_loss: str

    @classmethod
    def of(cls, seed: int, transport: str | None) -> Draw:
        drawn = random.Random(seed)
        return cls(
            seed,
            drawn.choice(PHASES),
            drawn.uniform(0.0, 1.5),
            drawn.choice(FAULTS),
            drawn.choice(("h1", "h2")),
            transport or drawn.choice(("pipe", "dask")),
            drawn.choice(("stop", "stop", "continue")),
        )

    def __str__(self) -> str:
        when = f"{self.phase} + {self.delay_s:.2f} s"
        return f"{self.seed}: {self.fault} of {self.host}, {when}, {self.transport}, on_loss {self.on_loss}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--transport", choices=["dask", "pipe"])
    given = parser.parse_args()
    if (why := namespaces.missing()) is not None:
        print(f"not staged: {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wrong = 0
    with NamespaceHosts(2, name=f"hostsatt{given.seed}") as hosts:
        for seed in range(given.seed, given.seed + given.draws):
            draw = Draw.of(seed, given.transport)
            found = attacked(draw, hosts)
            wrong += bool(found)
            print(f"{draw}: {'; '.join(found) or 'as it should'}", flush=True)
            for name in hosts.names:
                hosts.sweep(name)
    print(f"{given.draws} draws, {wrong} not as they should be")
    return 1 if wrong else 0


def attacked(draw: Draw, hosts: NamespaceHosts) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="loadstone-hosts-attack-") as made:
        trial = Trial(hosts, Path(made), draw.transport)
        trial.start(run=f'lost_after_s = {LOST_S}\non_loss = "{draw.on_loss}"\nconnect_s = 60', seconds=6)
        trial.until(_reached(draw.phase, trial), 90)
        time.sleep(draw.delay_s)
        frozen: list[int] = []
        undo = _strike(draw, trial, frozen)
        began_s = time.monotonic()
        trial.finish(ENDS_S)
        took_s = time.monotonic() - began_s
        undo()
        for pid in frozen:
            _signal(pid, signal.SIGCONT)
        trial.settle(GONE_S)
        found = [*trial.notes]
        if "LEFT" in trial.back():
            found.append(trial.back())
        if "Traceback" in trial.said:
            found.append("it told a traceback: " + trial.said[-300:])
        if trial.code not in {0, 1, 2, 130}:
            found.append(f"code {trial.code}: {trial.said[-200:]}")
        if trial.code == 1 and (draw.host not in trial.said or "hint:" not in trial.said):
            found.append(f"host or remedy is not named: {trial.said[-300:]!r}")
        found += _unreadable(trial)
        print(f"  code {trial.code} after {took_s:.1f} s: {trial.kept()}", flush=True)
        return found


def _reached(phase: str, trial: Trial) -> Callable[[], bool]:
    hosts = trial.hosts
    running = [False]

    def collecting() -> bool:
        running[0] = running[0] or trial.running()
        return running[0] and not any(hosts.engines(name) for name in hosts.names)

    return {
        "connect": lambda: True,
        "prepare": lambda: all(hosts.agents(name) for name in hosts.names),
        "armed": lambda: any(trial.armed(name) for name in hosts.names),
        "running": trial.running,
        "collecting": collecting,
    }[phase]


def _strike(draw: Draw, trial: Trial, frozen: list[int]) -> Callable[[], None]:
    hosts, name = trial.hosts, draw.host
    pids: list[int] = []
    number = signal.SIGSTOP if "frozen" in draw.fault else signal.SIGKILL
    match draw.fault:
        case "agent killed" | "agent frozen":
            pids = hosts.agents(name)
        case "all agents killed":
            pids = [pid for one in hosts.names for pid in hosts.agents(one)]
        case "engine killed" | "engine frozen":
            pids = hosts.engines(name)
        case "ssh client killed":
            pids = _ssh_of(trial, hosts.address(name))
        case "ssh server killed":
            hosts.stop_server(name)
            return lambda: hosts.start_server(name)
        case "link down" | "link down for a while":
            hosts.link(name, "down")
            if draw.fault == "link down":
                return lambda: hosts.link(name, "up")
            time.sleep(LOST_S / 2)
            hosts.link(name, "up")
        case _:
            pids = [] if trial.process is None else [trial.process.pid]
            number = signal.SIGINT
    for pid in pids:
        _signal(pid, number)
    if number == signal.SIGSTOP:
        frozen += pids
    return lambda: None


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _ssh_of(trial: Trial, address: str) -> list[int]:
    """Processes of ssh to an address that this trial's coordinator started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                # Before its words: those of a process that hangs in the kernel would hold us up, too.
                if (entry / "comm").read_text().strip() != "ssh":
                    continue
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            key = str(trial.hosts.directory).encode()
            if words[0] == b"ssh" and address.encode() in words and any(key in word for word in words):
                found.append(int(entry.name))
    return found


def _unreadable(trial: Trial) -> list[str]:
    """What of the bundles does not open, here or on a host."""
    there = trial.kept()
    found = []
    if " of " in there and "bundles readable" in there:
        words = there.replace(",", "").replace(";", "").split()
        at = words.index("bundles")
        if words[at - 3] != words[at - 1]:
            found.append(there)
    record = trial.out / "hosts.json"
    if record.exists():
        json.loads(record.read_text())
    return found


if __name__ == "__main__":
    sys.exit(main())
