"""Gates on real runs with a planted difference: `python -m lab.real_gates --blocks 15 --seed 1`.

A loop device in memory lets through so many I/Os a second (blkio.throttle), far below what this host can
do, so that the difference that is planted is the one that is there. Each run has a limit of its own: that of
its side, and a drawn scatter between runs. A block has five sides of three runs each: two without a
difference, and three that are slower by 5, 10 and 20 %. Each of the first two is held against the others, as
`loadstone compare A B --gate --detect 10%` does: seven gates. With `--alike` a block has six sides without a
difference, and three gates. Needs root and control groups of version 1.

Prints one JSON document: the exit codes by what was planted and how much runs scatter, and the power that was
stated, beside how often 97 came where 10 % were planted.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from lab.parts import Stage

import loadstone
from loadstone.comparison import gate as gates
from loadstone.comparison.compare import compare

DETECT: Final = 0.1
PLANTED: Final = (0.0, 0.05, 0.1, 0.2)
OF_PLANTED: Final = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4))
"""The sides of a block that are held against each other, by their numbers."""
ALIKE: Final = 6
SCATTERS: Final = (0.0, 0.02, 0.04)
"""Standard deviation of the logarithm of a run's limit."""
IOPS: Final = 600
REPEATS: Final = 3
JOB: Final = """[read]
filename={device}
ioengine=libaio
direct=1
rw=randread
bs=4k
iodepth=4
time_based
runtime=1500ms
ramp_time=300ms
"""


def side(device: str, folder: Path, slower: float, scatter: float, draw: random.Random) -> Path:
    """Run a side's repeats, each under a limit of its own."""
    job = folder / "job.fio"
    job.write_text(JOB.format(device=device))
    own = folder / f"{slower:g}-{len(list(folder.glob('*-*')))}"
    own.mkdir()
    for at in range(REPEATS):
        limit = round(IOPS * (1 - slower) * math.exp(scatter * draw.gauss(0, 1)))
        with Stage() as limits:
            limits.throttle(device, read_iops=limit)
            loadstone.run(job, out=own / f"run{at}", calibration=False)
    return own


def gate(before: Path, after: Path) -> dict[str, Any]:
    """Return how the gate ends, and the least power that it states: that of the row which decides."""
    table = compare([before, after])
    powers = gates.powers(table.effects, table.sides, detect=DETECT, alpha=table.alpha)
    outcome = gates.gate(table.effects, table.sides, powers, detect=DETECT, alone=table.alone).outcome
    stated = [one.power for one in powers if one.power is not None]
    return {
        "code": {"passed": 0, "regression": 97}.get(outcome, 98),
        "outcome": outcome,
        "power": min(stated, default=None),
        "judgements": {one.metric.name: one.judgement for one in table.effects},
    }


def block(seed: int, at: int, *, alike: bool) -> list[dict[str, Any]]:
    """Run the sides of a block in a drawn order, and gate them.

    `alike`: six sides without a difference, of which two and two are held against each other.
    """
    draw = random.Random(f"{seed} {at}")
    scatter = SCATTERS[at % len(SCATTERS)]
    wanted = [0.0] * ALIKE if alike else [0.0, *PLANTED]
    pairs = [(one, one + 1) for one in range(0, ALIKE, 2)] if alike else OF_PLANTED
    order = list(range(len(wanted)))
    draw.shuffle(order)
    with Stage() as stage, tempfile.TemporaryDirectory(prefix="loadstone-gates-", dir="/dev/shm") as place:
        device = stage.loop(64)
        sides = {one: side(device, Path(place), wanted[one], scatter, draw) for one in order}
        return [
            {"block": at, "planted": wanted[after], "scatter": scatter, **gate(sides[before], sides[after])}
            for before, after in pairs
        ]


def main() -> int:
    """Run the blocks, and print what their gates said."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="no block begins later")
    parser.add_argument("--alike", action="store_true", help="six sides without a difference: three gates")
    options = parser.parse_args()
    gated: list[dict[str, Any]] = []
    until_s = time.monotonic() + 60 * options.minutes
    for at in range(options.blocks):
        if time.monotonic() < until_s:
            gated += block(options.seed, at, alike=options.alike)
            codes = [(one["planted"], one["code"], one["power"]) for one in gated if one["block"] == at]
            sys.stderr.write(f"{at}: {codes}\n")
    counts = Counter((one["planted"], one["scatter"], one["code"]) for one in gated)
    rows = [
        {"planted": planted, "scatter": scatter, "code": code, "gates": number}
        for (planted, scatter, code), number in sorted(counts.items())
    ]
    sys.stdout.write(json.dumps({"gates": len(gated), "codes": rows, "all": gated}, indent=2) + "\n")
    false = sum(one["code"] == 97 for one in gated if not one["planted"])
    return 1 if false else 0


if __name__ == "__main__":
    raise SystemExit(main())
