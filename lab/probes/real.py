"""`python -m lab.probes.real`: probes on real parts, built and taken down here; needs root."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from lab.parts import MissingPartError, Stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READ: Final = (
    "[job]\nioengine=io_uring\ndirect=1\nrw=randread\nbs=8k\niodepth=8\n"
    "filename={0}\ntime_based=1\nruntime=4s\n"
)
BUDGET: Final = "--probe=15s"


def _delayed(stage: Stage) -> Path:
    device = stage.served("rdelay=4ms", "wdelay=4ms", filters=["delay"], mib=512)
    return stage.run(READ, device, options=(BUDGET,))


def _iops(stage: Stage) -> Path:
    device = stage.loop(512)
    stage.throttle(device, read_iops=500)
    return stage.run(READ, device, options=(BUDGET,))


def _bandwidth(stage: Stage) -> Path:
    device = stage.loop(512)
    stage.throttle(device, read_bps=8 << 20)
    return stage.run(READ, device, options=(BUDGET,))


def _unseen(stage: Stage) -> Path:
    return stage.run(READ, stage.smooth(512, iops=400), options=(BUDGET,))


def _served_limit(stage: Stage) -> Path:
    device = stage.served("rate=64M", filters=["rate"], mib=512)
    return stage.run(READ, device, options=(BUDGET,))


def _zeros(stage: Stage) -> Path:
    where = stage.btrfs(
        stage.single_server(1024, read="1ms", write="4ms"), options="noatime,compress-force=zstd"
    )
    job = READ.replace("randread", "write").replace("direct=1", "direct=1\nzero_buffers=1\nsize=64m")
    return stage.run(job.replace("bs=8k", "bs=64k"), where / "data", options=(BUDGET,))


CASES: Final[dict[str, tuple[str, Callable[[Stage], Path]]]] = {
    "a disk with 4 ms (nbdkit delay), depth 8": ("medium or job_depth", _delayed),
    "500 reads per second (blkio throttle)": ("iops_limit", _iops),
    "8 MiB/s (blkio throttle)": ("bandwidth_limit", _bandwidth),
    "400 I/Os per second out of sight (qemu-storage-daemon)": ("iops_limit", _unseen),
    "64 Mbit/s out of sight (nbdkit rate)": ("bandwidth_limit", _served_limit),
    "zeros to btrfs with zstd": ("reduction", _zeros),
}


def main() -> int:
    """Stage each, and print what was said."""
    for name, (truth, staged) in CASES.items():
        try:
            with Stage() as stage:
                verdict = json.loads((staged(stage) / "result.json").read_text())["verdict"]
        except (MissingPartError, RuntimeError) as error:
            sys.stdout.write(f"| {name} | {truth} | not staged: {error} | |\n")
            continue
        explanations = verdict["explanations"][:3]
        likely = ", ".join(f"{one['name']} {one['probability']:.0%}" for one in explanations)
        probes = ", ".join(one["name"] for one in verdict["probes"])
        decided = verdict["causes"][0]["rule"] if verdict["causes"] else "–"
        sys.stdout.write(f"| {name} | {truth} | {likely} | {probes} | {verdict['kind']} ({decided}) |\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
