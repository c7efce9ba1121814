"""A live display in a terminal of its own: four phases of 32 jobs, each drawn when its number is read.

    python -m tests.cli.live_display STEPS DONE

A number that is read from STEPS, a named pipe, draws that phase, and is then written to DONE. At the end
of STEPS the display ends. Whoever starts it gives the terminal.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from loadstone.cli.display import live_progress
from loadstone.cli.process import standard_output
from tests.support import runs
from tests.support.runs import MadeJob

PHASES = ("4k-random-read", "4k-random-write", "128k-sequential-read", "128k-sequential-write")
LUNS = 32


def op_of(name: str) -> str:
    return "read" if name.endswith("read") else "write"


def rows_of(phase: int) -> list[dict[str, Any]]:
    name = PHASES[phase]
    size = 131072 if name.startswith("128k") else 4096
    return [
        {
            "cell": phase * LUNS + lun,
            "op": op_of(name),
            "ramp": False,
            "ops": 11_000 + 300 * lun,
            "bytes": (11_000 + 300 * lun) * size,
            "errors": 0,
            "p50_ns": 310_000 + 9_000 * lun,
            "p99_ns": 8_200_000 + 170_000 * lun,
            "max_ns": 61_000_000 + lun,
            "inflight": 128,
        }
        for lun in range(LUNS)
    ]


def main(steps: Path, done: Path) -> None:
    standard_output.guarded(closed=False)
    live_progress.DRAW_EVERY_S = 0.0  # type: ignore[misc] # each step is to be seen
    jobs = tuple(
        MadeJob(f"{name}-lun-{lun:02d}", {op_of(name): 100.0}, stage=at, group=at)
        for at, name in enumerate(PHASES)
        for lun in range(LUNS)
    )
    display = live_progress.LiveProgress()
    display.begin(runs.plan_of(jobs, 1, 10.0, 500_000_000), Path("runs/vostok"))
    display.event({"type": "start"})
    at = 0
    with steps.open() as asked:
        for line in asked:
            phase, second = divmod(int(line), 10)
            if phase > at:
                at = phase
                display.event({"type": "stage", "t_ns": at * 10_000_000_000, "stage": at})
            display.event({"type": "tick", "t_ns": (10 * at + second) * 1_000_000_000, "rows": rows_of(at)})
            done.write_text(line)
    display.finish()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
