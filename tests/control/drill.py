"""Kill a process that changes settings at every one of its steps, and its restore too; then look.

`python -m tests.control.drill FOLDER SEEDS`: prints one JSON document with the count of points and
what was not as before. A program of its own, because it forks.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.control import change_journal
from loadstone.control.changes import Changes, restore
from tests.control import machine

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS_OF_RESTORE = 12


def killer(at: int) -> Callable[[str], None]:
    """Return what kills this process at its step number `at`, from 0."""
    count = -1

    def step(_: str) -> None:
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return step


def in_child(work: Callable[[], object]) -> bool:
    """Do it in a process of its own; return whether it ended by itself."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 # the parent asks how it ended, and prints nothing
            os._exit(3)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise RuntimeError(f"the process ended with {os.WEXITSTATUS(status)}")
    return os.WIFEXITED(status)


def session(host: Path, state: Path, seed: int, step: Callable[[str], None]) -> None:
    """Change some settings, drawn from a seed, and put them back."""
    draw = random.Random(seed)
    moves = [
        ("io_scheduler", draw.choice(("sda", "sdb")), draw.choice(("none", "bfq"))),
        ("nr_requests", "sda", str(draw.randrange(8, 100))),
        ("read_ahead_kb", "sdb", str(draw.randrange(1, 100))),
        ("governor", "", "performance"),
        ("idle_states", draw.choice(("cpu0", "cpu1")), draw.choice(("POLL", "POLL,C1"))),
        ("sysctl", "vm.swappiness", str(draw.randrange(1, 50))),
        ("io_scheduler", "sda", draw.choice(("none", "mq-deadline"))),
    ]
    draw.shuffle(moves)
    with Changes(machine.controls(host), state, step) as changes:
        for control, subject, value in moves[: draw.randrange(2, len(moves) + 1)]:
            changes.set(control, subject, value)


def lose_power(host: Path, state: Path, draw: random.Random) -> None:
    """Lose the end of a record, and have the machine come up as it is without anybody's settings."""
    for path in state.glob("*.jsonl"):
        content = path.read_bytes()
        last = content.splitlines(keepends=True)[1:][-1:]
        kept = len(content) - draw.randrange(len(b"".join(last)) + 1)
        path.write_bytes(content[:kept].replace(change_journal.boot_id().encode(), b"the boot before"))
    shutil.rmtree(host)
    machine.make(host)


def run(folder: Path, seeds: int) -> dict[str, object]:
    """Kill at every step of every seed's session, and at a drawn step of the restore after it."""
    points, wrong = 0, []
    for seed in range(seeds):
        at = 0
        ended = False
        while not ended:
            place = folder / f"{seed}-{at}"
            host, state = place / "host", place / "state"
            machine.make(host)
            before = {name: text.strip() for name, text in machine.snapshot(host).items()}
            ended = in_child(lambda: session(host, state, seed, killer(at)))  # noqa: B023 # called at once
            draw = random.Random(seed * 1000 + at)
            if draw.random() < 1 / 3 and state.exists():
                lose_power(host, state, draw)
            if draw.random() < 0.5:
                limit = draw.randrange(STEPS_OF_RESTORE)
                in_child(lambda: restore(machine.controls(host), state, step=killer(limit)))  # noqa: B023 - called at once
            done = restore(machine.controls(host), state)
            after = {name: text.strip() for name, text in machine.snapshot(host).items()}
            left = [path.name for path in state.glob("*.jsonl")] if state.exists() else []
            if after != before or left or not all(one.is_well for one in done):
                changed = {name: after.get(name) for name in before if after.get(name) != before[name]}
                wrong.append({"seed": seed, "step": at, "changed": changed, "left": left})
            points += 1
            at += 1
    return {"points": points, "wrong": wrong}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(Path(sys.argv[1]), int(sys.argv[2]))))
