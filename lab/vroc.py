"""Redo StorageReview's Intel VROC study small: eight slow devices in four layouts.

Knows the layouts (eight volumes of one device, and two volumes of four in RAID0, RAID10 and RAID5,
each a profile of btrfs), the loads and the order they are measured in. It is a model of what the
layouts cost and not of the drives: each device does one I/O after the other, all in the same time.
Knows no published number.

    python -m lab.vroc --out /tmp/vroc [--seconds 1.5] [--load write-4k-random]

Needs root. Leaves a study per load and layout, a picture per load, and prints the tables.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.parts import Stage, call, missing, write

from loadstone import units
from loadstone.analysis.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

JOB = Path(__file__).resolve().parent.parent / "examples" / "vroc" / "vroc.fio"
DEVICES = 8
DEVICE_MIB = 256
DATA_MIB = 128
"""What all volumes of a layout hold together."""
TIMES = {"read": "2ms", "write": "10ms"}
PERCENTS = "50,85,105"


@dataclass(frozen=True, slots=True)
class VrocLayout:
    """How the eight devices are put together."""

    name: str
    group: int
    profile: str


LAYOUTS = (
    VrocLayout("JBOD", 1, "single"),
    VrocLayout("RAID0", 4, "raid0"),
    VrocLayout("RAID10", 4, "raid10"),
    VrocLayout("RAID5", 4, "raid5"),
)


LOADS = (
    "read-4k-random",
    "write-4k-random",
    "read-64k-sequential",
    "write-64k-sequential",
    "sql",
    "sql-90-10",
    "sql-80-20",
)


def volumes(stage: Stage, layout: VrocLayout) -> list[Path]:
    """Build the layout and return a written file on each of its volumes."""
    devices = [stage.single_server(DEVICE_MIB, **TIMES) for _ in range(DEVICES)]
    files = []
    for first in range(0, DEVICES, layout.group):
        group = devices[first : first + layout.group]
        # In place, as a controller writes: copy-on-write makes large sequential writes of random ones.
        folder = stage.btrfs(*group, options="nodatacow,noatime", data=layout.profile)
        files.append(write(folder / "data", DATA_MIB * layout.group // DEVICES))
    call("sync")
    return files


def measure(
    stage: Stage, load: str, files: Sequence[Path], options: argparse.Namespace, out: Path
) -> dict[str, Any]:
    """Measure one curve; return the curve of the study's document."""
    targets = [word for file in files for word in ("--target", file, "--i-accept-data-loss", file)]
    # Each point once: the picture shows how far the points scatter.
    how = ("--points", options.points, "--repeat", "1", "--runtime", f"{options.seconds:g}s", "--json")
    output = stage.loadstone(
        "curve", JOB, "--section", load, *targets, *how, "--no-progress", "--no-report", "--out", out
    )
    (curve,) = json.loads(output)["curves"]
    return dict(curve)


def main() -> int:
    """Run the study; print the tables, and draw a picture of each load."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder for studies and pictures")
    parser.add_argument("--seconds", type=float, default=1.5, help="time of each point")
    parser.add_argument("--points", default=PERCENTS, help="loads in percent of the maximum")
    parser.add_argument("--load", choices=LOADS, action="append", help="only this load (repeat for several)")
    options = parser.parse_args()
    loads = options.load or LOADS
    if reason := missing():
        print(f"cannot run here: {reason}", file=sys.stderr)
        return 2
    studies_by_layout: dict[tuple[str, str], dict[str, Any]] = {}
    for layout in LAYOUTS:
        with Stage() as stage:
            files = volumes(stage, layout)
            for load in loads:
                study = options.out / load / layout.name
                studies_by_layout[load, layout.name] = measure(stage, load, files, options, study)
                print(f"{layout.name}, {load}: {study}", file=sys.stderr, flush=True)
    for load in loads:
        studies = [options.out / load / layout.name for layout in LAYOUTS]
        with Stage() as stage:
            stage.loadstone("report", *studies, "--output", options.out / f"{load}.svg")
    print("\n".join(tables(studies_by_layout, loads)))
    return 0


def tables(runs: Mapping[tuple[str, str], dict[str, Any]], loads: Sequence[str] = LOADS) -> Iterator[str]:
    """Return each maximum with its latency, and the maxima as shares of RAID0's, as Markdown."""
    heading = ["", *(layout.name for layout in LAYOUTS)]
    yield from _table(
        heading,
        [[load, *(_maximum(load, runs[load, one.name]) for one in LAYOUTS)] for load in loads],
    )
    yield ""
    yield from _table(heading, [[load, *_shares(runs, load)] for load in loads])


def _maximum(load: str, curve: dict[str, Any]) -> str:
    most = curve["maximum"]
    rate, steps = most["iops"], "count"
    if "64k" in load:
        rate, steps = most["bandwidth_bytes_per_s"], "binary"
    estimate = Estimate(rate["value"], rate["error"], count=0, unit="")
    return f"{units.with_error(estimate, steps)}, {units.duration(most['latency_mean_ns']['value'])}"


def _shares(runs: Mapping[tuple[str, str], dict[str, Any]], load: str) -> list[str]:
    rates = [runs[load, one.name]["maximum"]["iops"]["value"] for one in LAYOUTS]
    base = rates[[one.name for one in LAYOUTS].index("RAID0")]
    return [units.digits(rate / base) for rate in rates]


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heading)} |"
    yield f"|---{'|--:' * (len(heading) - 1)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    sys.exit(main())
