"""The ratios of `make bench` with an agent on the host and without: `python bench/beside_agent.py`.

The agent is a real one, and its coordinator asks it once a second. A pair is one round of a case with it
and one without, next to each other in a drawn order, so that a slow minute hits both. Prints the ratio of
CPU time per I/O, which other work on the machine disturbs less than IOPS: its median and range. What the
agent changes is the median of the pairs' changes, with the 95 % interval of that median.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import random
import statistics
import sys
import tempfile
import threading
from typing import TYPE_CHECKING

import cases
import compare

from loadstone.hosts.agent_links import PipeLink, agent_argv
from loadstone.hosts.hosts_file import HostEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY_S = 1.0
ANSWER_S = 300.0


@contextlib.contextmanager
def an_agent() -> Iterator[None]:
    """While entered, an agent is on this host, and hears of its coordinator once a second."""
    with tempfile.TemporaryDirectory(prefix="loadstone-beside-") as directory:
        host = HostEntry(name="here", launch="local", directory=directory)
        link = PipeLink(host.name, agent_argv(host), lambda *_: None)
        link.open()
        ended = threading.Event()
        try:
            link.ask({"do": "ping"}, ANSWER_S)

            def go_on() -> None:
                while not ended.wait(EVERY_S):
                    link.ask({"do": "ping"}, ANSWER_S)

            asking = threading.Thread(target=go_on)
            asking.start()
            try:
                yield
            finally:
                ended.set()
                asking.join()
        finally:
            link.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.5, help="of a long run")
    parser.add_argument("--only", default="null,zero")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    settings = argparse.Namespace(rounds=1, seconds=options.seconds, patience=0)
    drawn = random.Random(options.seed)
    pairs: dict[str, list[tuple[float, float]]] = {}
    names = options.only.split(",")
    for _ in range(options.rounds):
        for name in drawn.sample(names, len(names)):
            case = next(one for one in cases.CASES if one.name == name)
            few = dataclasses.replace(case, programs=(cases.TUNED, cases.PRODUCT))
            by_side = {
                beside: _ratio(few, settings, beside=beside) for beside in drawn.sample((True, False), 2)
            }
            if not all(map(math.isfinite, by_side.values())):
                print(f"{name}: left out a pair that other work disturbed", file=sys.stderr)
                continue
            pairs.setdefault(name, []).append((by_side[False], by_side[True]))
    for name in names:
        print(_summary(name, pairs.get(name, [])))
    return 0


def _ratio(case: cases.Case, settings: argparse.Namespace, *, beside: bool) -> float:
    """Return fio's CPU time per I/O over ours in one round, NaN where other work disturbed it.

    It is the programs' own time: that of the kernel's workers has all other work of the machine in it.
    """
    with an_agent() if beside else contextlib.nullcontext():
        medians, _ = compare.compare(case, "", settings)
    theirs, ours = (medians[name].user_ns + medians[name].system_ns for name in (cases.TUNED, cases.PRODUCT))
    return theirs / ours if min(theirs, ours) > 0 else math.nan


def _summary(name: str, pairs: list[tuple[float, float]]) -> str:
    if not pairs:
        return f"{name}: no data: other work disturbed every pair"
    alone, with_one = ([pair[side] for pair in pairs] for side in (0, 1))
    changes = sorted(with_agent / without - 1 for without, with_agent in pairs)
    low, high = _median_interval(changes)
    return (
        f"{name}: CPU time of fio tuned over ours, without an agent {_told(alone)}, with one "
        f"{_told(with_one)}: {statistics.median(changes):+.1%} ({low:+.1%} to {high:+.1%}, {len(pairs)} "
        f"pairs); rounds without one differ by {max(alone) / min(alone) - 1:.0%}"
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


def _told(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    sys.exit(main())
