"""What an I/O costs beside a vdbench that somebody has installed: one parameter file, both programs.

Knows how vdbench and `loadstone run` are started on a parameter file, and reads both by flatfile.html.
Processor time per I/O is the slope between a short and a long run, as in `compare.py`, so that neither
Java's start nor a report counts.

    python bench/vdbench.py --vdbench DIR/vdbench [--rounds 3] [--seconds 10] [--only cached,loop]

It needs the machine for itself, and Java.
"""

from __future__ import annotations

import argparse
import math
import platform
import shlex
import sys
import time
from pathlib import Path

import measure
from cases import targets
from compare import SHORT_S, markdown, nanoseconds
from programs import LOADSTONE

WARMUP_S = 2
THREADS = 8
MODES = {
    "cached": ("file", ""),
    "direct": ("file", ",openflags=o_direct"),
    "loop": ("loop", ",openflags=o_direct"),
}
"""Which target, and how it is opened."""


def text(mode: str, target: str, seconds: float) -> str:
    """Return a parameter file: 4 KiB random reads, as fast as they go."""
    flags = MODES[mode][1]
    return (
        f"sd=sd1,lun={target},threads={THREADS}{flags}\nwd=wd1,sd=sd1,xfersize=4k,rdpct=100,seekpct=100\n"
        f"rd=rd1,wd=wd1,iorate=max,elapsed={seconds:.0f},warmup={WARMUP_S},interval=1\n"
    )


def flat(out: Path) -> measure.ProgramResult:
    """Read what a run did: all its intervals, those of the warmup included, and its average rate."""
    lines = (out / "flatfile.html").read_text().splitlines()
    names = next(line for line in lines if line.startswith(" ") and "timestamp" in line).split()
    rows = [dict(zip(names, line.split(), strict=False)) for line in lines if " rd1 " in line]
    average = next(row for row in rows if row["Interval"].startswith("avg"))
    ios = sum(float(row["rate"]) for row in rows if row is not average)
    return measure.ProgramResult(int(ios), float(average["rate"]), float(average["resp"]) * 1e6)


def once(name: str, words: list[str], folder: Path, job: str) -> measure.MeasuredRun:
    """Run one of the two on a parameter file."""
    (folder / "job.parm").write_text(job)
    out = folder / f"out{len(list(folder.iterdir()))}"
    where = {"vdbench": ["-f", folder / "job.parm", "-o", out]}.get(
        name,
        [
            *("run", folder / "job.parm", "--out", f"{out}.study", "--vdbench-output", out),
            *("--no-calibration", "--no-report", "--no-progress"),
        ],
    )
    return measure.run([*words, *map(str, where)], lambda _: flat(out))


def ratio(ours: float, theirs: float) -> str:
    """Return ours over theirs, or that there is nothing to divide."""
    quotient = ours / theirs if theirs else math.nan
    return "no data" if math.isnan(quotient) else f"{quotient:.2f}"


def main() -> int:
    """Run both in turn; print a row for each program and mode, and the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vdbench", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default=",".join(MODES))
    parser.add_argument("--folder", help="where the file is made [default: the current directory]")
    options = parser.parse_args()
    sides = {"vdbench": [str(options.vdbench.resolve())], "loadstone run": LOADSTONE}
    rows = []
    with targets(options.folder) as paths, measure.scratch() as scratch:
        for mode in options.only.split(","):
            if (target := paths.get(MODES[mode][0])) is None:
                continue
            short: dict[str, list[measure.MeasuredRun]] = {name: [] for name in sides}
            long: dict[str, list[measure.MeasuredRun]] = {name: [] for name in sides}
            for number in range(options.rounds):
                for name, words in sides.items():
                    print(f"{mode}: round {number + 1}, {name}", file=sys.stderr)
                    short[name].append(once(name, words, Path(scratch), text(mode, target, 2 * SHORT_S)))
                    long[name].append(once(name, words, Path(scratch), text(mode, target, options.seconds)))
            costs = {name: measure.slope(short[name], long[name]) for name in sides}
            theirs, ours = costs.values()
            for name, cost in costs.items():
                rows.append(
                    [
                        *(
                            mode,
                            name,
                            f"{cost.iops:.0f}",
                            nanoseconds(cost.user_ns),
                            nanoseconds(cost.system_ns),
                        ),
                        *(nanoseconds(cost.total_ns), f"{cost.others_cores:.2f}"),
                        "" if name == "vdbench" else ratio(ours.iops, theirs.iops),
                        "" if name == "vdbench" else ratio(ours.total_ns, theirs.total_ns),
                    ]
                )
    head = ["target", "program", "IOPS", "user ns", "system ns", "all ns per I/O", "others"]
    print(markdown([*head, "IOPS over vdbench's", "time per I/O over vdbench's"], rows))
    print(f"\n{time.strftime('%Y-%m-%d')}, Linux {platform.release()}: {shlex.join(sys.argv)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
