"""`python -m lab.verdicts.cost --keep FILE`: what watching a run and judging it cost, a line for each job.

Takes what the run says of its own monitors, and times reading and judging of its bundle again. The engine's
finer samples are taken by its first thread, which does no I/O: what that thread used is at least their cost.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from lab.parts import LOADSTONE

from loadstone.analysis.summary import summarise
from loadstone.audit.run import audit
from loadstone.bundle.read import Bundle

SECONDS: Final = 20
JOB: Final = "[job]\nsize=64m\ndirect=0\ntime_based=1\nruntime={seconds}s\nfilename={file}\n{options}\n"
JOBS: Final = {
    "random reads, depth 16": "ioengine=io_uring\nrw=randread\nbs=4k\niodepth=16",
    "writes with fdatasync, four jobs": "ioengine=psync\nrw=randwrite\nbs=4k\nfdatasync=8\nnumjobs=4",
    "500 I/Os per second": "ioengine=psync\nrw=randrw\nbs=4k\nrate_iops=500",
}


@dataclass(frozen=True)
class Cost:
    """Of one job. CPU time and elapsed time in seconds; `monitors` and `samples` are shares of one CPU."""

    job: str
    seconds: int
    monitors: float
    samples: float
    verdict_cpu_s: float
    verdict_s: float


def measured(name: str, options: str) -> Cost:
    """Run a job, and judge its bundle once more."""
    with tempfile.TemporaryDirectory(prefix="verdict-cost-") as place:
        job, out = Path(place) / "job.fio", Path(place) / "bundle"
        job.write_text(JOB.format(seconds=SECONDS, file=Path(place) / "data", options=options))
        words = [*LOADSTONE, "run", str(job), "--out", str(out)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        share = json.loads((out / "result.json").read_text())["tool"]["monitor_cpu_share"]
        began, spent = time.monotonic(), _cpu_s()
        audit(summarise(Bundle.open(out)))
        judged = (round(_cpu_s() - spent, 3), round(time.monotonic() - began, 3))
        return Cost(name, SECONDS, share, _sampling(Bundle.open(out)), *judged)


def _sampling(bundle: Bundle) -> float:
    """Return the CPU time of the engine's first thread, which samples, in each second."""
    first = next(int(event["pid"]) for event in bundle.events if event["type"] == "hello")
    host = bundle.host("engine.")
    (column,) = (one for one in host.columns if re.fullmatch(rf"engine\.{first}-.*\.on_cpu_ns", one))
    known = host.select("dt_ns", column).drop_nulls()
    return round(float(known[column].sum()) / float(known["dt_ns"].sum()), 5)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def read(path: Path) -> list[Cost]:
    """Return the lines of a file."""
    return [Cost(**json.loads(text)) for text in path.read_text().splitlines()]


def main() -> int:
    """Measure, and keep."""
    options = argparse.ArgumentParser(prog="python -m lab.verdicts.cost", description=__doc__)
    options.add_argument("--keep", type=Path, required=True)
    arguments = options.parse_args()
    costs = [measured(name, job) for name, job in JOBS.items()]
    arguments.keep.write_text("".join(json.dumps(asdict(one)) + "\n" for one in costs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
