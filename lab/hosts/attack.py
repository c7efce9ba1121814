"""Faults at drawn moments: `python -m lab.hosts.attack --seed 1 --draws 60 [--keep FILE] [--write]`.

A draw is a command, one of its runs, a phase of it, a moment in that, a fault and a host. The moment is
always before the command's end: a draw that struck nothing is wrong. However it falls: the command ends in
time, no engine, agent, mount, namespace, temporary file or record of a user stays, engines are gone soon
after a coordinator that was killed, what was measured can be read, and a host that failed is named with a
remedy. `--keep` has a line for each draw, and a later run goes on from it; `--write` makes
docs/hosts-attacks.md of it. Needs root and sshd.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lab.hosts import namespaces
from lab.hosts.namespaces import NamespaceHosts
from lab.hosts.standing import StandingScheduler
from lab.hosts.trial import STANDING, HostsTrial, opens

from loadstone import temporary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = Path(__file__).parents[2] / "docs" / "hosts-attacks.md"
HEAD = """# Faults at drawn moments

Look up here what became of runs and studies on two hosts that were struck at moments drawn at random.
`python -m lab.hosts.attack --seed 1 --draws 60 --keep FILE --write` draws command, fault, host and moment
from the seed, strikes, and writes this page. *As it should*: the command ended, what it measured can be
read, and a host that failed is named with a remedy. No process, mount, temporary file, record of a user or
namespace is left.

| seed | command | transport | fault | moment | as it should | exit code | what is said | what is kept |
|---|---|---|---|---|---|---|---|---|
"""
PHASES = ("connect", "prepare", "armed", "running", "collecting")
VERBS: dict[str, tuple[str, ...]] = {
    "run": ("run",),
    "repeat": ("run", "--repeat", "2"),
    "curve": ("curve", "--points", "50"),
    "sweep": ("sweep", "--numjobs", "1,2"),
    "experiment": ("experiment", "run"),
}
EXPERIMENT = """title = "struck"
repeats = 1
runtime = "{seconds}s"
targets = ["{file}"]
[[patterns]]
name = "r"
options = {{ rw = "randread", ioengine = "psync", bs = "4k", size = "1m", time_based = 1 }}
[[factors]]
name = "jobs"
option = "numjobs"
levels = [1, 2]
"""
COORDINATOR = "coordinator killed"
FAULTS = (
    "agent killed", "agent frozen", "engine killed", "engine frozen", "ssh client killed",
    "ssh server killed", "link down", "link down for a while", "all agents killed", "Ctrl-C",
    COORDINATOR, "disk of the bundle full", "target cut short", "wall clock steps by 3 s",
)  # fmt: skip
LOST_S = 6
ENDS_S = 600.0
"""Runs of some seconds must have ended so long after the fault, on a machine that has other work to do."""
GONE_S = 240.0
"""Processes must have left so long after the end, on a machine where an interpreter's end takes its time."""
ENGINES_GONE_S = 2.0
"""After the coordinator was killed."""
RUN_S, STUDY_RUN_S = 12, 6
"""How long a run lasts, alone and in a study: longer than the longest delay after it has begun."""
DELAYS_S = {"connect": 1.5, "prepare": 1.0, "armed": 1.0, "running": 4.0, "collecting": 0.3}
"""The moment of a fault, at most so long after its phase has begun."""
RUNS = {"run": 1}
"""Of a command; of others two."""
SMALL = "1m"
"""The disk of a host's bundle that gets full."""
CLOCK = """import os, time
_ns, _s = time.time_ns, time.time
def _off(): return 3 if os.path.exists({mark!r}) else 0
time.time_ns = lambda: _ns() + _off() * 1_000_000_000
time.time = lambda: _s() + _off()
"""


@dataclass(frozen=True)
class Draw:
    """One fault, and when."""

    seed: int
    verb: str
    phase: str
    delay_s: float
    fault: str
    host: str
    transport: str
    on_loss: str
    number: int
    """Of the run it falls into, from 1 on."""

    @classmethod
    def of(cls, seed: int) -> Draw:
        drawn = random.Random(seed)
        verb, phase = drawn.choice(tuple(VERBS)), drawn.choice(PHASES)
        return cls(
            seed,
            verb,
            phase,
            round(drawn.uniform(0.0, DELAYS_S[phase]), 2),
            drawn.choice(FAULTS),
            drawn.choice(("h1", "h2")),
            drawn.choice(("pipe", "dask", "dask", STANDING)),
            drawn.choice(("stop", "stop", "continue")),
            # Agents stay for all runs of a study: they are started and asked once.
            1 if phase in ("connect", "prepare") else drawn.randint(1, RUNS.get(verb, 2)),
        )

    @property
    def moment(self) -> str:
        return f"{self.phase} {self.number} + {self.delay_s:.2f} s"


@dataclass
class Struck:
    """What became of it."""

    draw: Draw
    code: int | None = None
    said: str = ""
    kept: str = ""
    wrong: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if (why := namespaces.missing()) is not None:
        print(f"not staged: {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    known = _earlier_lines(options.keep)
    wanted = [seed for seed in range(options.seed, options.seed + options.draws) if seed not in known]
    if wanted:
        with NamespaceHosts(2, name=f"hostsatt{options.seed}") as hosts:
            for seed in wanted:
                known[seed] = _line(attacked(Draw.of(seed), hosts))
                print(json.dumps(known[seed]), flush=True)
                if options.keep is not None:
                    with options.keep.open("a") as file:
                        file.write(json.dumps(known[seed]) + "\n")
                for name in hosts.names:
                    hosts.sweep(name)
    wrong = sum(bool(one["wrong"]) for one in known.values())
    summary = f"{len(known)} draws, {wrong} not as they should be"
    print(summary)
    if options.write:
        PAGE.write_text(HEAD + "\n".join(_row(known[seed]) for seed in sorted(known)) + f"\n\n{summary}.\n")
    return 1 if wrong else 0


def _earlier_lines(path: Path | None) -> dict[int, dict[str, object]]:
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["seed"]: line for line in lines}


def _line(struck: Struck) -> dict[str, object]:
    drawn = asdict(struck.draw) | {"moment": struck.draw.moment}
    return drawn | {"code": struck.code, "said": struck.said, "kept": struck.kept, "wrong": struck.wrong}


def _row(line: dict[str, object]) -> str:
    wrong = line["wrong"]
    right = "yes" if not wrong else "**no**: " + "; ".join(map(str, wrong)) if isinstance(wrong, list) else ""
    cells = [line["seed"], line["verb"], line["transport"], f"{line['fault']} ({line['host']})"]
    cells += [line["moment"], right, line["code"], line["said"], line["kept"]]
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def attacked(draw: Draw, hosts: NamespaceHosts) -> Struck:
    """Strike one command, and look at everything it may leave."""
    struck = Struck(draw)
    with tempfile.TemporaryDirectory(prefix="loadstone-hosts-attack-") as directory:
        place = Path(directory)
        own, small = place / "tmp", place / "small"
        for path in (own, small, place / "shim"):
            path.mkdir()
        (place / "shim" / "sitecustomize.py").write_text(CLOCK.format(mark=str(place / "clock")))
        hosts.environment = {
            "TMPDIR": str(own),
            "PYTHONPATH": f"{place / 'shim'}:{os.environ.get('PYTHONPATH', '')}",
        }
        with mounted(small) if "disk" in draw.fault else contextlib.nullcontext():
            _strike_one(struck, hosts, place)
        hosts.environment = {}
    return struck


@contextlib.contextmanager
def mounted(path: Path) -> Iterator[None]:
    """While entered, a file system of a megabyte is there."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "loadstone-hosts", str(path)]
    subprocess.run(words, check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=False)


def _strike_one(struck: Struck, hosts: NamespaceHosts, place: Path) -> None:
    draw = struck.draw
    with StandingScheduler(hosts) if draw.transport == STANDING else contextlib.nullcontext() as standing:
        trial = HostsTrial(hosts, place, draw.transport, standing)
        verb = VERBS[draw.verb]
        if draw.verb == "experiment":
            (place / "experiment.toml").write_text(
                EXPERIMENT.format(file=place / "data", seconds=STUDY_RUN_S)
            )
            verb = (*verb, str(place / "experiment.toml"))
        small = f'directory = "{place / "small"}"\n' if "disk" in draw.fault else ""
        trial.start(
            run=f'lost_after_s = {LOST_S}\non_loss = "{draw.on_loss}"\nconnect_s = 90',
            seconds=RUN_S if draw.verb == "run" else STUDY_RUN_S,
            hosts={draw.host: small},
            verb=verb,
            env={"TMPDIR": str(place / "tmp")},
        )
        trial.until(_reached(draw, trial), 240)
        time.sleep(draw.delay_s)
        if trial.process is not None and trial.process.poll() is not None:
            struck.wrong.append("the command had ended before the moment came")
        frozen: list[int] = []
        undo = _strike(draw, trial, frozen)
        gone_s = trial.gone_within(GONE_S) if draw.fault == COORDINATOR else None
        trial.finish(ENDS_S)
        undo()
        for pid in frozen:
            _signal(pid, signal.SIGCONT)
        trial.settle(GONE_S)
        struck.code, struck.kept = trial.code, _kept_of(trial)
        struck.said = trial.last_words()
        struck.wrong += [
            *trial.notes,
            *_wrong(draw, trial, gone_s),
            *_unreadable(trial),
            *_left(draw, trial, place),
        ]


def _wrong(draw: Draw, trial: HostsTrial, gone_s: float | None) -> list[str]:
    mistakes = []
    if "Traceback" in trial.said:
        mistakes.append("it told a traceback: " + trial.said[-300:])
    if draw.fault == COORDINATOR and (gone_s is None or gone_s > ENGINES_GONE_S):
        mistakes.append("engines gone " + ("never" if gone_s is None else f"after {gone_s:.2f} s"))
    if trial.code not in {0, 1, 2, 130} and (draw.fault, trial.code) != (COORDINATOR, -signal.SIGKILL):
        mistakes.append(f"code {trial.code}: {trial.said[-200:]}")
    struck = trial.hosts.names if draw.fault.startswith("all") else [draw.host]
    if trial.code == 1 and ("hint:" not in trial.said or not any(name in trial.said for name in struck)):
        mistakes.append("host or remedy is not named")
    return mistakes


def _left(draw: Draw, trial: HostsTrial, place: Path) -> list[str]:
    """Say what stayed: processes, mounts, temporary files, records of who uses a host."""
    leftovers = [trial.back()] if "LEFT" in trial.back() else []
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    ours = {str(place / "small")}
    leftovers += [f"mount {one} is left" for one in mounts if one.startswith(str(place)) and one not in ours]
    if "killed" in draw.fault:
        # Who is killed removes nothing; the next program does.
        temporary.remove_abandoned(place / "tmp")
    files = sorted(path.name for path in (place / "tmp").iterdir())
    leftovers += [f"temporary: {', '.join(files)[:120]}"] if files else []
    spaces = {
        f"net:[{Path(f'/run/netns/{trial.hosts.space(name)}').stat().st_ino}]" for name in trial.hosts.names
    }
    leftovers += [
        f"{path} is held"
        for path in Path("/tmp/loadstone-agents").glob("*.json")
        if _is_recorded(path, spaces)
    ]
    return leftovers


def _is_recorded(path: Path, spaces: set[str]) -> bool:
    """Whether a living process holds the record of a host of ours."""
    try:
        with path.open() as file:
            is_ours = json.loads(file.read()).get("network") in spaces
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return is_ours
    except (OSError, ValueError):
        return False
    return False


def _kept_of(trial: HostsTrial) -> str:
    study = trial.out / "study.json"
    if not study.exists():
        return trial.kept()
    record = json.loads(study.read_text())
    statuses = [str(point["status"]) for point in record["points"]]
    runs = ", ".join(f"{statuses.count(one)} {one}" for one in dict.fromkeys(statuses))
    return f"study {record['status']}, runs: {runs or 'none'}"


def _reached(draw: Draw, trial: HostsTrial) -> Callable[[], bool]:
    hosts = trial.hosts
    begun, before = trial.begun(draw.number), trial.begun(draw.number - 1)
    was_begun, was_ended = [False], [draw.number == 1]

    def armed() -> bool:
        """Engines are there that are none of the run before."""
        is_there = any(trial.armed(name) for name in hosts.names)
        was_begun[0] = was_begun[0] or before()
        was_ended[0] = was_ended[0] or (was_begun[0] and not is_there)
        return was_ended[0] and is_there

    def collecting() -> bool:
        was_begun[0] = was_begun[0] or begun()
        return was_begun[0] and not any(hosts.engines(name) for name in hosts.names)

    return {
        "connect": lambda: True,
        "prepare": lambda: all(hosts.agents(name) for name in hosts.names),
        "armed": armed,
        "running": begun,
        "collecting": collecting,
    }[draw.phase]


def _struck(draw: Draw, trial: HostsTrial) -> list[int] | None:
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
    listing = processes.get(draw.fault.removesuffix(" killed").removesuffix(" frozen"))
    return None if listing is None else listing()


def _strike(draw: Draw, trial: HostsTrial, frozen: list[int]) -> Callable[[], None]:
    hosts, name, place = trial.hosts, draw.host, trial.directory
    pids = _struck(draw, trial)
    if pids is not None:
        number = signal.SIGSTOP if "frozen" in draw.fault else signal.SIGKILL
        for pid in pids:
            _signal(pid, signal.SIGINT if draw.fault == "Ctrl-C" else number)
        if number == signal.SIGSTOP:
            frozen += pids
        return lambda: None
    match draw.fault:
        case "ssh server killed":
            hosts.stop_server(name)
            return lambda: hosts.start_server(name)
        case "disk of the bundle full":
            filler = place / "small" / "filler"
            subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], capture_output=True, check=False)
        case "target cut short":
            os.truncate(place / "data", 0)
        case "wall clock steps by 3 s":
            (place / "clock").touch()
        case _:
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


def _ssh_of(trial: HostsTrial, address: str) -> list[int]:
    """Processes of ssh to an address that this trial's coordinator started."""
    pids = []
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
                pids.append(int(entry.name))
    return pids


def _unreadable(trial: HostsTrial) -> list[str]:
    """What of the bundles does not open, here or on a host: all have a Plan before the first I/O."""
    begun = [
        path.parent
        for root in (trial.out, *(trial.hosts.directory / name for name in trial.hosts.names))
        for path in root.rglob("plan.json")
    ]
    for record in trial.out.rglob("hosts.json"):
        json.loads(record.read_text())
    return [f"{path} cannot be read" for path in begun if not opens(path)]


if __name__ == "__main__":
    sys.exit(main())
