"""CPU time per I/O with an agent on the host and without: `python bench/beside_agent.py`.

The agent is a real one, and its coordinator asks it once a second. A pair is a run of the engine beside it
and one while it is stopped (SIGSTOP), next to each other in a drawn order, so that a slow minute hits both.
Counted is the engine's own CPU time per I/O, which other work on the machine disturbs less than rates. What
the agent changes is the median of the pairs' changes, with the 95 % interval of that median. What the agent
takes itself is told as a share of a CPU.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import cases
import compare
import measure

from loadstone.hosts.agent_links import PipeLink, agent_argv
from loadstone.hosts.hosts_file import HostEntry

if TYPE_CHECKING:
    import programs

EVERY_S = 1.0
ANSWER_S = 300.0


class RealAgent:
    """An agent on this host, which hears of its coordinator once a second."""

    def __init__(self, directory: str) -> None:
        host = HostEntry(name="here", launch="local", directory=directory)
        self._link = PipeLink(host.name, agent_argv(host), lambda *_: None)
        self._ended = threading.Event()
        self._asking = threading.Thread(target=self._go_on)
        self.pid = 0

    def __enter__(self) -> Self:
        before = _children()
        self._link.open()
        self._link.ask({"do": "ping"}, ANSWER_S)
        (self.pid,) = _children() - before
        self._asking.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self._ended.set()
        self._asking.join()
        self._link.close()

    def _go_on(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._link.ask({"do": "ping"}, ANSWER_S)

    @property
    def cpu_s(self) -> float:
        """CPU time that it took so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _children() -> set[int]:
    return {int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run")
    parser.add_argument("--only", default="null,zero")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    drawn = random.Random(options.seed)
    names = options.only.split(",")
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    took_s = beside_s = 0.0
    with measure.scratch() as folder, RealAgent(folder) as agent:
        sides = {name: _engine(name, Path(folder)) for name in names}
        for _ in range(options.pairs):
            for name in drawn.sample(names, len(names)):
                costs = {}
                for beside in drawn.sample((True, False), 2):
                    os.kill(agent.pid, signal.SIGCONT if beside else signal.SIGSTOP)
                    began_s, before_s = time.monotonic(), agent.cpu_s
                    costs[beside] = _cost_ns(sides[name], options.seconds)
                    if beside:
                        beside_s += time.monotonic() - began_s
                        took_s += agent.cpu_s - before_s
                pairs[name].append((costs[False], costs[True]))
    for name in names:
        print(_summary(name, pairs[name]))
    print(f"the agent itself took {took_s / beside_s:.2%} of a CPU")
    return 0


def _engine(name: str, folder: Path) -> programs.Program:
    case = next(one for one in cases.CASES if one.name == name)
    return compare.program(cases.ENGINE, case.job(""), folder)


def _cost_ns(side: programs.Program, seconds: float) -> float:
    """Return the CPU time of an I/O; what the engine's start takes is in it, with an agent and without."""
    done = side.run(seconds, 0)
    return (done.user_s + done.system_s) * 1e9 / done.result.ios


def _summary(name: str, pairs: list[tuple[float, float]]) -> str:
    alone, with_one = ([pair[side] for pair in pairs] for side in (0, 1))
    changes = sorted(with_agent / without - 1 for without, with_agent in pairs)
    low, high = _median_interval(changes)
    return (
        f"{name}: CPU time per I/O {statistics.median(alone):.1f} ns without an agent, "
        f"{statistics.median(with_one):.1f} ns with one: {statistics.median(changes):+.1%} "
        f"({low:+.1%} to {high:+.1%}, {len(pairs)} pairs)"
    )


def _median_interval(ordered: list[float]) -> tuple[float, float]:
    """Return bounds that have the median of what was drawn between them in 95 % or more of all samples.

    By order statistics (binomial, no shape assumed); of five or fewer the range, which has it in less.
    """
    count = len(ordered)
    cut, beyond = 0, 0.5**count
    while cut + 1 < count / 2 and beyond + math.comb(count, cut + 1) * 0.5**count <= 0.025:
        cut += 1
        beyond += math.comb(count, cut) * 0.5**count
    return ordered[cut], ordered[count - 1 - cut]


if __name__ == "__main__":
    sys.exit(main())
