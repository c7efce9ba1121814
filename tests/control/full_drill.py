"""Fill the file system of the journal to a drawn byte, kill who changes settings there, restore; then look.

`python -m tests.control.full_drill FOLDER POINTS`: mounts a small tmpfs under FOLDER (root), prints one JSON
document with the count of points, how many were refused and how many killed, and what was not as before. The
file system is full during the first restore as well; with room again nothing is left of the record.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from loadstone.control.changes import restore
from loadstone.errors import RefusedError
from tests.control import machine
from tests.control.drill import killer, session

PAGE_BYTES = 4096
"""What a tmpfs gives a file at once: the record meets the end of a page, wherever that falls in a line."""
PAGES = 4
STEPS = 40
REFUSED = 4


def ended_with(host: Path, state: Path, seed: int, at: int, words: str) -> int:
    """Change settings in a process of its own, whose record begins with these words; return how it ended."""
    child = os.fork()
    if child == 0:
        sys.argv = [words]
        try:
            session(host, state, seed, killer(at))
        except RefusedError:
            os._exit(REFUSED)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def fill(path: Path, free_pages: int) -> None:
    """Leave so many pages of the file system free."""
    statistics = os.statvfs(path.parent)
    path.write_bytes(bytes(max(0, statistics.f_bfree - free_pages) * PAGE_BYTES))


def run(folder: Path, points: int) -> dict[str, object]:
    """Do so many points on a file system of their own."""
    state, refused, killed = folder / "state", 0, 0
    wrong: list[dict[str, object]] = []
    state.mkdir(mode=0o700)
    size = f"size={PAGES * PAGE_BYTES},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "exper-journal", state], check=True)
    try:
        for seed in range(points):
            draw = random.Random(seed)
            host = folder / str(seed)
            machine.make(host)
            before = {name: text.strip() for name, text in machine.snapshot(host).items()}
            fill(state / "filler", draw.choice((0, 1, 1, 1, 2)))
            code = ended_with(host, state, seed, draw.randrange(STEPS), "x" * draw.randrange(PAGE_BYTES))
            refused, killed = refused + (code == REFUSED), killed + (code < 0)
            restore(machine.controls(host), state)
            after = {name: text.strip() for name, text in machine.snapshot(host).items()}
            (state / "filler").unlink()
            again = restore(machine.controls(host), state)
            left = [path.name for path in state.iterdir()]
            if after != before or left or not all(one.is_well for one in again) or code > REFUSED:
                changed = {name: after.get(name) for name in before if after.get(name) != before[name]}
                wrong.append({"seed": seed, "code": code, "changed": changed, "left": left})
    finally:
        subprocess.run(["umount", state], check=True)
    return {"points": points, "refused": refused, "killed": killed, "wrong": wrong}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(Path(sys.argv[1]), int(sys.argv[2]))))
