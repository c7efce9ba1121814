"""What an I/O costs: fio with its defaults, fio tuned by hand, and the bare engine.

Alternates the three on targets where the kernel does almost nothing (`/dev/null` writes
and `/dev/zero` reads, 4 KiB, 128 deep, one job, the latency of every I/O recorded) and
prints ratios of medians. Processor time per I/O is the slope between a short and a long
run, so start-up does not count.

    python bench/engine_overhead.py [--rounds 3] [--short 1] [--long 4]

Knows nothing of `loadstone` itself: the engine gets a Plan written here.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from tests.engine import plans  # noqa: E402 - the path is set above

TUNED = [
    "--fixedbufs",
    "--registerfiles",
    "--norandommap",
    "--iodepth_batch_submit=32",
    "--iodepth_batch_complete_min=32",
    "--iodepth_batch_complete_max=32",
]
BYTES = 4 << 30


@dataclass(frozen=True)
class Sample:
    """One run: I/Os done, their rate, processor time used."""

    ios: int
    iops: float
    user_s: float
    system_s: float


@dataclass(frozen=True)
class Cost:
    """I/Os per second and nanoseconds per I/O."""

    iops: float
    user_ns: float
    system_ns: float


def fio(target: str, rw: str, extra: list[str], seconds: float) -> Sample:
    """One run of fio."""
    command = ["fio", "--name=a", f"--filename={target}", f"--rw={rw}", "--bs=4k", "--iodepth=128"]
    command += ["--ioengine=io_uring", "--size=4g", "--time_based", f"--runtime={seconds}", "--thread"]
    command += ["--output-format=json", *extra]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = json.loads(text[text.index("{") :])["jobs"][0]["write" if "write" in rw else "read"]
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return Sample(result["total_ios"], result["iops"], user, system)


def engine(target: str, rw: str, backend: dict[str, object] | None, seconds: float) -> Sample:
    """One run of the engine, every latency recorded, one-second intervals."""
    nanoseconds = int(seconds * 1e9)
    one = plans.stream(
        read_percent=0 if "write" in rw else 100,
        iodepth=128,
        length_bytes=BYTES,
        runtime_ns=nanoseconds,
        time_based=True,
    )
    document = plans.plan(
        [plans.target(target, "char", BYTES)],
        [one],
        [plans.worker(backend)],
        interval_ns=1_000_000_000,
    )
    with tempfile.TemporaryDirectory() as directory:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        outcome = plans.run(document, Path(directory))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    end = outcome.of("end")[0]
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return Sample(end["ops"], end["ops"] / end["t_ns"] * 1e9, user, system)


def cost(short: Sample, long: Sample) -> Cost:
    """The slope between two lengths."""
    ios = long.ios - short.ios
    user, system = long.user_s - short.user_s, long.system_s - short.system_s
    return Cost(long.iops, user * 1e9 / ios, system * 1e9 / ios)


def median(costs: list[Cost]) -> Cost:
    """Field by field."""
    return Cost(*(statistics.median(getattr(c, f) for c in costs) for f in ("iops", "user_ns", "system_ns")))


def main() -> None:
    """Prints a line per target and program, then the ratios."""
    parser = argparse.ArgumentParser(description="Cost of an I/O: fio, fio tuned, the engine.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", type=float, default=1)
    parser.add_argument("--long", type=float, default=4)
    options = parser.parse_args()
    for target, rw in (("/dev/null", "randwrite"), ("/dev/zero", "randread")):
        runs: dict[str, Callable[[float], Sample]] = {
            "fio": partial(fio, target, rw, []),
            "fio tuned": partial(fio, target, rw, TUNED),
            "engine": partial(engine, target, rw, None),
            "engine, no I/O": partial(engine, target, rw, plans.NULL),
        }
        found: dict[str, list[Cost]] = {name: [] for name in runs}
        for _ in range(options.rounds):
            for name, run in runs.items():
                found[name].append(cost(run(options.short), run(options.long)))
        medians = {name: median(costs) for name, costs in found.items()}
        for name, m in medians.items():
            rate, per_io = f"{m.iops / 1e6:7.2f} M IOPS", f"{m.user_ns:5.0f} + {m.system_ns:4.0f} ns"
            print(f"{target} {rw:9} {name:15} {rate}  {per_io} (user + system)")
        ours = medians["engine"].iops
        default, tuned = ours / medians["fio"].iops, ours / medians["fio tuned"].iops
        print(f"{target} {rw:9} x{default:.2f} of fio's defaults, x{tuned:.2f} of fio tuned")


if __name__ == "__main__":
    main()
