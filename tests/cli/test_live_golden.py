"""The live display of four phases and 128 jobs at four widths, resized on the way, as golden files.

To write them anew: LOADSTONE_WRITE_GENERATED=1 python -m pytest tests/cli/test_live_golden.py
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from loadstone.cli.display import console, live_progress
from tests.support import runs
from tests.support.runs import Job

GOLDEN = Path(__file__).parents[1] / "data" / "terminal"
PHASES = ("4k-random-read", "4k-random-write", "128k-sequential-read", "128k-sequential-write")
LUNS = 32
HEIGHT = 24
LINES_UP = re.compile(r"\x1b\[1A")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def frames(monkeypatch: pytest.MonkeyPatch, widths: tuple[int, ...]) -> str:
    """Draw four phases, the terminal as wide as it is told in each; return what stands at the end."""
    out = io.StringIO()
    screen = Console(file=out, force_terminal=True, width=widths[0], height=HEIGHT, color_system=None)
    monkeypatch.setattr(console, "console", lambda: screen)
    monkeypatch.setattr(live_progress, "DRAW_EVERY_S", 0.0)
    ops = {name: "read" if name.endswith("read") else "write" for name in PHASES}
    jobs = tuple(
        Job(
            f"{name}-lun-{lun:02d}", {"read" if name.endswith("read") else "write": 100.0}, stage=at, group=at
        )
        for at, name in enumerate(PHASES)
        for lun in range(LUNS)
    )
    display = live_progress.LiveProgress()
    display.begin(runs.plan_of(jobs, 1, 10.0, 500_000_000), Path("runs/vostok"))
    display.event({"type": "start"})
    for at, name in enumerate(PHASES):
        if at:
            display.event({"type": "stage", "t_ns": at * 10_000_000_000, "stage": at})
        screen.width = widths[min(at, len(widths) - 1)]
        size = 131072 if name.startswith("128k") else 4096
        op = ops[name]
        for second in (1, 2):
            rows = [
                {
                    "cell": at * LUNS + lun,
                    "op": op,
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
            display.event({"type": "tick", "t_ns": (10 * at + second) * 1_000_000_000, "rows": rows})
    drawn = out.getvalue()
    display.finish()
    last = drawn.rpartition("\x1b[1A")[2]
    stay = re.findall(r"bundle: \S+|phase \d of \d done: [^\n]*", CONTROL.sub("", drawn))
    kept = list(dict.fromkeys(line.rstrip() for line in stay))
    text = "\n".join([*kept, *(line.rstrip() for line in CONTROL.sub("", last).splitlines())])
    return text.replace("\N{NO-BREAK SPACE}", " ") + "\n"


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_four_phases_and_128_jobs(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    found = frames(monkeypatch, (width,))
    lines = found.splitlines()
    assert sum(line.startswith("phase ") for line in lines) == 3
    assert all(len(line) <= width for line in lines if not line.startswith("phase "))
    # Broken in two by a narrower terminal, the picture and the line of the cursor still fit.
    assert sum(not line.startswith(("phase ", "bundle: ")) for line in lines) < HEIGHT // 2
    for part in ("IOPS", "bandwidth", "p99", "phase 4 of 4", "left", "█", "more"):
        assert part in found, part
    golden = GOLDEN / f"live-{width}.txt"
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        golden.write_text(found)
    assert found == golden.read_text()


def test_a_terminal_that_is_resized_shows_what_one_of_that_width_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert frames(monkeypatch, (80, 60, 120, 200)) == (GOLDEN / "live-200.txt").read_text()
    assert frames(monkeypatch, (200, 120, 80, 60)) == (GOLDEN / "live-60.txt").read_text()
