"""Faults at drawn moments: `python -m lab.hosts.attack --seed 1 --draws 40 [--transport pipe] [--study]`.

A draw is a phase, a moment in it, a fault and a host. However it falls: the run ends in time, no engine
and no agent stays, engines are gone soon after a coordinator that was killed, what was measured can be
read, and a host that failed is named with a remedy. With `--study` three runs share their agents, and
the moment may be in any of them or between two. Needs root and sshd.
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
from lab.hosts.faults import Trial, opens
from lab.hosts.namespaces import NamespaceHosts

if TYPE_CHECKING:
    from collections.abc import Callable

PHASES = ("connect", "prepare", "armed", "running", "collecting")
COORDINATOR = "coordinator killed"
FAULTS = (
    "agent killed", "agent frozen", "engine killed", "engine frozen", "ssh client killed",
    "ssh server killed", "link down", "link down for a while", "all agents killed", "Ctrl-C",
    COORDINATOR,
)  # fmt: skip
LOST_S = 6
ENDS_S = 600.0
"""Runs of 6 s must have ended so long after the fault, on a machine that has other work to do."""
GONE_S = 240.0
"""Processes must have left so long after the end, on a machine where an interpreter's end takes its time."""
ENGINES_GONE_S = 2.0
"""After the coordinator was killed."""
STUDY_S = 30.0
"""The moment of a fault in a study, at most so long after its phase."""


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
    study: bool

    @classmethod
    def of(cls, seed: int, *, transport: str | None, fault: str | None, study: bool) -> Draw:
        drawn = random.Random(seed)
        return cls(
            seed,
            drawn.choice(PHASES),
            drawn.uniform(0.0, STUDY_S if study else 1.5),
            fault or drawn.choice(FAULTS),
            drawn.choice(("h1", "h2")),
            transport or drawn.choice(("pipe", "dask")),
            drawn.choice(("stop", "stop", "continue")),
            study,
        )

    def __str__(self) -> str:
        when = f"{self.phase} + {self.delay_s:.2f} s"
        return f"{self.seed}: {self.fault} of {self.host}, {when}, {self.transport}, on_loss {self.on_loss}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--transport", choices=["dask", "pipe"])
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--study", action="store_true", help="three runs with the same agents")
    given = parser.parse_args()
    if (why := namespaces.missing()) is not None:
        print(f"not staged: {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wrong = 0
    with NamespaceHosts(2, name=f"hostsatt{given.seed}") as hosts:
        for seed in range(given.seed, given.seed + given.draws):
            draw = Draw.of(seed, transport=given.transport, fault=given.fault, study=given.study)
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
        trial.start(
            *(("--repeat", "3") if draw.study else ()),
            run=f'lost_after_s = {LOST_S}\non_loss = "{draw.on_loss}"\nconnect_s = 60',
            seconds=6,
        )
        trial.until(_reached(draw.phase, trial), 90)
        time.sleep(draw.delay_s)
        frozen: list[int] = []
        undo = _strike(draw, trial, frozen)
        began_s = time.monotonic()
        gone_s = trial.gone_within(GONE_S) if draw.fault == COORDINATOR else None
        trial.finish(ENDS_S)
        took_s = time.monotonic() - began_s
        undo()
        for pid in frozen:
            _signal(pid, signal.SIGCONT)
        trial.settle(GONE_S)
        found = [*trial.notes]
        if "LEFT" in (back := trial.back()):
            found.append(back)
        if "Traceback" in trial.said:
            found.append("it told a traceback: " + trial.said[-300:])
        if draw.fault == COORDINATOR:
            told = "never" if gone_s is None else f"after {gone_s:.2f} s"
            print(f"  engines gone {told}", flush=True)
            if gone_s is None or gone_s > ENGINES_GONE_S:
                found.append(f"engines gone {told}")
        if trial.code not in {0, 1, 2, 130} and (draw.fault, trial.code) != (COORDINATOR, -signal.SIGKILL):
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


def _struck(draw: Draw, trial: Trial) -> list[int] | None:
    """Processes that a fault strikes; None: it strikes none."""
    hosts, name = trial.hosts, draw.host
    processes: dict[str, Callable[[], list[int]]] = {
        "agent": lambda: hosts.agents(name),
        "all agents": lambda: [pid for one in hosts.names for pid in hosts.agents(one)],
        "engine": lambda: hosts.engines(name),
        "ssh client": lambda: _ssh_of(trial, hosts.address(name)),
        "coordinator": trial.coordinator,
        "Ctrl-C": lambda: trial.coordinator()[:1],
    }
    found = processes.get(draw.fault.removesuffix(" killed").removesuffix(" frozen"))
    return None if found is None else found()


def _strike(draw: Draw, trial: Trial, frozen: list[int]) -> Callable[[], None]:
    hosts, name = trial.hosts, draw.host
    pids = _struck(draw, trial)
    if pids is not None:
        number = signal.SIGSTOP if "frozen" in draw.fault else signal.SIGKILL
        for pid in pids:
            _signal(pid, signal.SIGINT if draw.fault == "Ctrl-C" else number)
        if number == signal.SIGSTOP:
            frozen += pids
    elif draw.fault == "ssh server killed":
        hosts.stop_server(name)
        return lambda: hosts.start_server(name)
    else:
        hosts.link(name, "down")
        if draw.fault == "link down":
            return lambda: hosts.link(name, "up")
        time.sleep(LOST_S / 2)
        hosts.link(name, "up")
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
    """What of the bundles does not open, here or on a host: all have a Plan before the first I/O."""
    begun = [
        path.parent
        for root in (trial.out, *(trial.hosts.directory / name for name in trial.hosts.names))
        for path in root.rglob("plan.json")
    ]
    record = trial.out / "hosts.json"
    if record.exists():
        json.loads(record.read_text())
    return [f"{path} cannot be read" for path in begun if not opens(path)]


if __name__ == "__main__":
    sys.exit(main())
