"""The loop that the fuzzers of job files and of results share: make an input, try it, stop at a finding.

A refusal with a message is an answer; any other exception, a standstill or an empty message is a
finding. Knows no language.
"""

from __future__ import annotations

import argparse
import random
import signal
import time
import traceback
from typing import TYPE_CHECKING, TypeVar

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

T = TypeVar("T")

SECONDS_PER_INPUT = 10
STANDSTILL_SECONDS = 120


def main(
    about: str | None,
    noun: str,
    make: Callable[[random.Random], T],
    one: Callable[[T, random.Random], str],
    show: Callable[[T], str] = repr,
) -> int:
    """Try what `make` makes until the time is over; `one` says in a word how an input ended.

    `show` gives the input of a finding, or says where it is.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    counts: dict[str, int] = {}
    signal.signal(signal.SIGPROF, _too_long)
    signal.signal(signal.SIGALRM, _too_long)
    end = time.monotonic() + arguments.minutes * 60
    while time.monotonic() < end:
        data = make(rng)
        # Processor time, because the machine may be busy; the clock only against a standstill.
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_INPUT)
        signal.alarm(STANDSTILL_SECONDS)
        try:
            outcome = one(data, rng)
        except LoadstoneError as refusal:
            outcome = type(refusal).__name__
            if not str(refusal).strip():
                print(f"FINDING: an error without a message for\n{show(data)}")
                return 1
        except Exception:  # noqa: BLE001 - any other exception is the finding
            traceback.print_exc()
            print(f"FINDING: seed {arguments.seed}, after {sum(counts.values())} {noun}:\n{show(data)}")
            return 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
        counts[outcome] = counts.get(outcome, 0) + 1
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(f"{sum(counts.values())} {noun}, seed {arguments.seed}, no finding: {told}")
    return 0


def sometimes_damaged(data: bytes, rng: random.Random) -> bytes:
    """Return the same bytes, or, one time in ten, with some of them changed."""
    made = bytearray(data)
    if rng.random() < 0.1 and data:
        for _ in range(rng.randint(1, 8)):
            made[rng.randrange(len(made))] = rng.randrange(256)
    return bytes(made)


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"one input took more than {SECONDS_PER_INPUT} s")
