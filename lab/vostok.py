"""Redo the Vostok array study small: its six published fio job files, unchanged, on loop devices.

The job files name /dev/sdc to /dev/sdj; `--map` sends each to a loop device. Run time is cut
by `--runtime`. The sixth file, as published, ends with a section that has no file name: it
must be refused as it is, and is run from a copy with the missing line added.

    python -m lab.vostok --out /tmp/vostok [--seconds 10] [--size-mib 256]

Needs root. Leaves a bundle for each job file, and prints a table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab.parts import Stage, missing

from loadstone import exitcodes, units

JOBS = Path(__file__).resolve().parent.parent / "examples" / "vostok"
DISKS = [f"/dev/sd{letter}" for letter in "cdefghij"]
MISSING = "/dev/sdi"
"""The disk the sixth file does not name: its last section is empty."""
LOADSTONE = [sys.executable, "-m", "loadstone"]


def run(job: Path, devices: list[str], seconds: int, out: Path) -> subprocess.CompletedProcess[str]:
    """Run one job file with every disk mapped to a loop device."""
    command = [*LOADSTONE, "run", str(job), "--runtime", f"{seconds}s", "--out", str(out), "--json"]
    for disk, device in zip(DISKS, devices, strict=True):
        if disk in job.read_text():
            command += ["--map", f"{disk}={device}", "--i-accept-data-loss", device]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def row(name: str, total: dict[str, Any]) -> str:
    """One line of the table, from the total of the document that `run --json` prints."""
    latency = total["latency_ns"]
    shown = (
        units.count(total["iops"]),
        units.bandwidth_decimal(total["bandwidth_bytes_per_s"]),
        units.duration(latency["mean"]),
        units.duration(latency["percentiles"]["99"]),
    )
    return f"| {name} | {' | '.join(shown)} |"


def main() -> int:
    """Run the study; print a Markdown table and where each report is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder for the bundles")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--size-mib", type=int, default=256)
    options = parser.parse_args()
    if reason := missing():
        print(f"cannot run here: {reason}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    rows = ["| job file | IOPS | bandwidth | mean latency | p99 |", "|---|--:|--:|--:|--:|"]
    with Stage() as stage:
        devices = [stage.loop(options.size_mib) for _ in DISKS]
        for job in sorted(JOBS.glob("*.fio")):
            bundle = options.out / job.stem
            done = run(job, devices, options.seconds, bundle)
            if done.returncode == exitcodes.USAGE and "job-8" in done.stderr:
                print(f"{job.name}, as published, is refused:\n{done.stderr}", file=sys.stderr)
                mended = stage.folder / job.name
                mended.write_text(f"{job.read_text().rstrip()}\nfilename={MISSING}\n")
                done = run(mended, devices, options.seconds, bundle)
            if done.returncode:
                print(f"{job.name}: exit {done.returncode}\n{done.stderr}", file=sys.stderr)
                return 1
            rows.append(row(job.stem, json.loads(done.stdout)["total"]))
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
