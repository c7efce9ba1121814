"""The ratios of `make bench` with an agent on the host and without: `python bench/beside_agent.py`.

The agent is a real one, and its coordinator asks it once a second. Rounds of a
case with it and without it are run in a drawn order, so that a slow minute hits both. Prints the ratio of
CPU time per I/O, which other work on the machine disturbs less than IOPS: its median and range.
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
ANSWER_S = 30.0


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
    ratios: dict[tuple[str, bool], list[float]] = {}
    for _ in range(options.rounds):
        rounds = [(name, beside) for name in options.only.split(",") for beside in (False, True)]
        for name, beside in drawn.sample(rounds, len(rounds)):
            case = next(one for one in cases.CASES if one.name == name)
            few = dataclasses.replace(case, programs=(cases.TUNED, cases.PRODUCT))
            with an_agent() if beside else contextlib.nullcontext():
                medians, _ = compare.compare(few, "", settings)
            ours, theirs = medians[cases.PRODUCT], medians[cases.TUNED]
            ratio = theirs.total_ns / ours.total_ns
            if not math.isfinite(ratio):
                print(f"{name}: left out a round that other work disturbed", file=sys.stderr)
                continue
            ratios.setdefault((name, beside), []).append(ratio)
    for name in options.only.split(","):
        alone, with_one = ratios.get((name, False)), ratios.get((name, True))
        if not alone or not with_one:
            print(f"{name}: no data: other work disturbed every round")
            continue
        changes = statistics.median(with_one) / statistics.median(alone) - 1
        print(
            f"{name}: CPU time of fio tuned over ours, without an agent {_told(alone)}, "
            f"with one {_told(with_one)}: {changes:+.1%}; "
            f"rounds without one differ by {max(alone) / min(alone) - 1:.0%}"
        )
    return 0


def _told(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    sys.exit(main())
