"""Redo a queue-depth study small: 1 to 256 by doubling, four patterns, every run twice.

Knows the array, the sweep and the table. The array is a RAID0 of three devices that do one I/O
after the other, all in the same time, as the article had a RAID0 of three disks. Knows no published
number and recommends nothing itself.

    python -m lab.queue_depth --out /tmp/depth [--seconds 1.5]

Needs root. Leaves the study and a chart, and prints the table and what the sweep recommends.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.parts import Stage, call, missing, write

from loadstone import units

if TYPE_CHECKING:
    from collections.abc import Iterator

JOB = Path(__file__).resolve().parent.parent / "examples" / "nfs-queue-depth" / "four-patterns.fio"
DISKS = 3
DISK_MIB = 256
DATA_MIB = 96
DEPTHS = "1..256"
RUNS = 2


def array(stage: Stage) -> Path:
    """Build the array and return a written file on it."""
    disks = [stage.single_server(DISK_MIB, read="2ms", write="4ms") for _ in range(DISKS)]
    folder = stage.btrfs(*disks, options="nodatacow,noatime", data="raid0")
    file = write(folder / "data", DATA_MIB)
    call("sync")
    return file


def table(document: dict[str, Any]) -> Iterator[str]:
    """Return the rate of both runs of every pattern and depth, as Markdown."""
    rates: dict[tuple[str, int], list[str]] = {}
    for run in document["runs"]:
        at, total = run["factors"], run["total"]
        iops = total and total["iops"]
        rates.setdefault((at["stage"], at["iodepth"]), []).append(units.count(iops and iops["value"]))
    patterns = list(dict.fromkeys(stage for stage, _ in rates))
    yield f"| depth | {' | '.join(patterns)} |"
    yield f"|--:{'|--:' * len(patterns)}|"
    for depth in sorted({depth for _, depth in rates}):
        yield f"| {depth} | {' | '.join(', '.join(rates[one, depth]) for one in patterns)} |"


def main() -> int:
    """Run the study; print the table, and draw the rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="directory of the study")
    parser.add_argument("--seconds", type=float, default=1.5, help="time of each run")
    options = parser.parse_args()
    if reason := missing():
        print(f"cannot run here: {reason}", file=sys.stderr)
        return 2
    with Stage() as stage:
        file = array(stage)
        target = ("--target", file, "--i-accept-data-loss", file)
        how = ("--iodepth", DEPTHS, "--repeat", str(RUNS), "--runtime", f"{options.seconds:g}s")
        output = stage.loadstone("sweep", JOB, *target, *how, "--no-progress", "--out", options.out)
        stage.loadstone("report", options.out, "--output", options.out.with_suffix(".svg"))
    document = json.loads((options.out / "result.json").read_text())
    print("\n".join([*table(document), "", output]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
