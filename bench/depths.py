"""`make bench`: does a target see the depth a job asks for, and is its rate fio's at least.

Runs fio, fio tuned and `loadstone fio` in turn at every depth from 1 to 256 on a loop device,
a file past the page cache and one in it. The depth a device saw is its own: the time its I/Os
spent in queue (`/sys/block/NAME/stat`, Documentation/block/stat.rst) over the length of the run.
The ratio is to the fio whose median is the better: the larger of two in every round would be a
draw of two against one, and above an equal program's rate by their noise. It is taken within each
round and given with the lowest and highest of all; at the depths asked for it should be 1.0 or the
noise should reach it. The CPU time, given alike, is the whole program's. To start `loadstone fio` takes
2 s of it, give or take 0.2: at low depths a run takes 3 s or more. Judges ratios only.

    python bench/depths.py [--rounds 5] [--seconds 2] [--only loop,direct,cached] [--depths 1,8]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cases
import measure
import programs
from compare import markdown, named, nanoseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
TARGETS = {
    "loop": cases.DIRECT | {"filename": "{loop}"},
    "direct": cases.DIRECT | {"filename": "{file}"},
    "cached": cases.URING | {"filename": "{file}", "rw": "randread", "invalidate": "0"},
}
HEAD = [
    "target",
    "depth",
    "program",
    "IOPS",
    "CPU ns per I/O (all rounds)",
    "mean depth at the device",
    "IOPS, loadstone fio over the better fio (all rounds)",
]


@dataclass(frozen=True)
class Taken:
    """One run: I/Os per second, CPU time per I/O, and the depth the device saw, if there is one."""

    iops: float
    cpu_ns: float
    depth: float | None


class BlockCounters:
    """The block device below a path, if it counts."""

    def __init__(self, path: str) -> None:
        status = Path(path).stat()
        number = status.st_rdev or status.st_dev
        disk = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat")
        self._stat = disk if disk.exists() else None

    def queued_s(self) -> float | None:
        """Time all its I/Os together have spent in queue."""
        return int(self._stat.read_text().split()[10]) / 1e3 if self._stat else None


def take(program: programs.Program, device: BlockCounters, options: argparse.Namespace) -> Taken:
    """Run a program for a short and a long time; its start costs neither depth nor CPU."""
    short = program.run(options.seconds / 4, options.patience)
    before = device.queued_s()
    run = program.run(options.seconds, options.patience)
    after = device.queued_s()
    cost = measure.slope([short], [run])
    # By the length the program measured: its start is no load.
    length_s = run.result.ios / run.result.iops
    depth = None if before is None or after is None else (after - before) / length_s
    return Taken(cost.iops, cost.total_ns, depth)


def row(target: str, depth: int, path: str, options: argparse.Namespace) -> list[list[str]]:
    """Compare the programs at one depth."""
    job = TARGETS[target] | {"iodepth": str(depth), "filename": path}
    sides = (
        programs.fio(cases.FIO, job),
        programs.fio_tuned(cases.TUNED, job),
        programs.loadstone(cases.PRODUCT, job),
    )
    device = BlockCounters(path)
    measurements: dict[str, list[Taken]] = {side.name: [] for side in sides}
    for number in range(options.rounds):
        print(f"{target}: depth {depth}, round {number + 1}", file=sys.stderr)
        for side in sides:
            measurements[side.name].append(take(side, device, options))
    return [
        [target, str(depth), name, *numbers(runs), ratio(name, measurements)]
        for name, runs in measurements.items()
    ]


def numbers(runs: Sequence[Taken]) -> list[str]:
    """Medians of the runs of one program."""
    depths = [run.depth for run in runs if run.depth is not None]
    return [
        f"{statistics.median(run.iops for run in runs) / 1e3:.0f}k",
        spread([run.cpu_ns for run in runs]),
        f"{statistics.median(depths):.1f}" if depths else "no device",
    ]


def spread(cpu_ns: Sequence[float]) -> str:
    """Median, lowest and highest: where few I/Os are done a start's noise is more than they cost."""
    return (
        f"{nanoseconds(statistics.median(cpu_ns))} ({nanoseconds(min(cpu_ns))} to {nanoseconds(max(cpu_ns))})"
    )


def ratio(name: str, taken: dict[str, list[Taken]]) -> str:
    """Median, lowest and highest ratio of Loadstone's rate to that of the better fio in the same round."""
    if name != cases.PRODUCT:
        return ""
    better = max((cases.FIO, cases.TUNED), key=lambda fio: statistics.median(run.iops for run in taken[fio]))
    ratios = [ours.iops / theirs.iops for ours, theirs in zip(taken[name], taken[better], strict=True)]
    return f"x{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="medians of so many (default 5)")
    parser.add_argument("--seconds", type=float, default=2, help="length of a run (default 2)")
    parser.add_argument("--only", default=",".join(TARGETS), help=f"targets, of {','.join(TARGETS)}")
    parser.add_argument("--depths", default=",".join(map(str, DEPTHS)), help="depths, separated by commas")
    parser.add_argument("--patience", type=float, default=0, help="seconds to wait for an idle machine")
    parser.add_argument("--folder", help="where the test file is made (default: the temporary directory)")
    options = parser.parse_args()
    options.only = named(parser, options.only, list(TARGETS), "target")
    options.depths = [int(depth) for depth in options.depths.split(",")]
    return options


def main() -> None:
    """Run all rows; print the table."""
    options = arguments()
    measure.tidy_when_stopped()
    rows: list[list[str]] = []
    with cases.targets(options.folder) as paths:
        for target in options.only:
            needs = TARGETS[target]["filename"].strip("{}")
            if needs in paths:
                for depth in options.depths:
                    rows += row(target, depth, paths[needs], options)
    where = f"{time.strftime('%Y-%m-%d')}, Linux {platform.release()}, {'; '.join(programs.versions())}"
    print(f"{where}; medians of {options.rounds} rounds of {options.seconds:g} s\n")
    print(markdown(HEAD, rows))


if __name__ == "__main__":
    main()
