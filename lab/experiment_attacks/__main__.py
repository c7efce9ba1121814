"""Experiments as people get them wrong, drawn from a seed and run by the verb itself.

Knows the attacks, a file for each noun, and how one is done: in a directory of its own, with the machine held
against what it was before. After each the exit code, the message with its file and line, and the state of the
machine are as they should be, or it is told. Needs root.

    python -m lab.experiment_attacks --seed 1 [--only NAME...]

Prints a line for each attack and how many were right, and ends with 1 when one was not.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from typing import TYPE_CHECKING, Final

from lab.experiment_attacks import commands, full_disks, losses, mistakes, side_by_side, signals, valid
from lab.experiment_attacks.bench import AttackBench, WrongError
from lab.parts import Stage, missing

if TYPE_CHECKING:
    from collections.abc import Callable

ATTACKS: Final[dict[str, Callable[[AttackBench], None]]] = {
    one.__name__: one
    for group in (valid, commands, mistakes, losses, signals, full_disks, side_by_side)
    for one in group.ATTACKS
}


def attack(name: str, seed: int) -> str | None:
    """Do one attack; return what was wrong, None where nothing was."""
    with Stage() as stage:
        bench = AttackBench(stage, random.Random(f"{name} {seed}"))
        bench.before = bench.snapshot()
        try:
            ATTACKS[name](bench)
            bench.is_put_back()
        except WrongError as error:
            return str(error)
        except Exception:  # noqa: BLE001 - told as what it is, and the next attack is tried
            return traceback.format_exc()
    return None


def main() -> int:
    """Do all attacks, and tell of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), help="without names: all")
    options = parser.parse_args()
    if reason := missing():
        print(f"cannot run here: {reason}", file=sys.stderr)
        return 2
    wrong = 0
    for name in options.only or ATTACKS:
        mistake = attack(name, options.seed)
        wrong += mistake is not None
        print(
            f"{name} (seed {options.seed}): {'as it should be' if mistake is None else 'WRONG: ' + mistake}",
            flush=True,
        )
    tried = len(options.only or ATTACKS)
    print(f"{tried - wrong} of {tried} as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
