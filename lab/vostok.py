"""Redo the Vostok array study small: its six published fio job files, unchanged, on loop devices.

The job files name /dev/sdc to /dev/sdj; `--map` sends each to a loop device. Run time is cut
by `--runtime`. The sixth file, as published, ends with a section that has no file name: it
must be refused as it is, and is run from a copy with the missing line added.

    python lab/vostok.py --out /tmp/vostok [--seconds 10] [--size-mib 256]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from loops import loop_devices, unavailable

JOBS = Path(__file__).resolve().parent.parent / "examples" / "vostok"
DISKS = [f"/dev/sd{letter}" for letter in "cdefghij"]
MISSING = "/dev/sdi"
"""The disk the sixth file does not name: its last section is empty."""
LOADSTONE = [sys.executable, "-m", "loadstone"]


def run(job: Path, devices: list[str], seconds: int, out: Path) -> tuple[int, str, str]:
    """Run one job file with every disk mapped to a loop device; exit code, stdout, stderr."""
    command = [*LOADSTONE, "run", str(job), "--runtime", f"{seconds}s", "--out", str(out), "--json"]
    for disk, device in zip(DISKS, devices, strict=True):
        if disk in job.read_text():
            command += ["--map", f"{disk}={device}", "--i-accept-data-loss", device]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def row(name: str, document: dict[str, object]) -> str:
    """One line of the table, from the `--json` document of a run."""
    total = document["total"]
    assert isinstance(total, dict)
    latency = total["latency_ns"]
    p99 = latency["percentiles"]["99"]
    return (
        f"| {name} | {total['iops'] / 1e3:.1f} k | {total['bandwidth_bytes_per_s'] / 1e6:.0f} MB/s "
        f"| {latency['mean'] / 1e6:.2f} ms | {'no data' if p99 is None else f'{p99 / 1e6:.2f} ms'} |"
    )


def main() -> int:
    """Run the study; print a Markdown table and where each report is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder for the bundles")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--size-mib", type=int, default=256)
    options = parser.parse_args()
    if reason := unavailable():
        print(f"cannot run here: {reason}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    rows = ["| job file | IOPS | bandwidth | mean latency | p99 |", "|---|---|---|---|---|"]
    with (
        tempfile.TemporaryDirectory() as folder,
        loop_devices(Path(folder), len(DISKS), options.size_mib << 20) as devices,
    ):
        for job in sorted(JOBS.glob("*.fio")):
            bundle = options.out / job.stem
            code, stdout, stderr = run(job, devices, options.seconds, bundle)
            if code == 2 and "job-8" in stderr:
                print(f"{job.name}, as published, is refused:\n{stderr}", file=sys.stderr)
                mended = Path(folder) / job.name
                mended.write_text(job.read_text().rstrip() + f"\nfilename={MISSING}\n")
                code, stdout, stderr = run(mended, devices, options.seconds, bundle)
            if code != 0:
                print(f"{job.name}: exit {code}\n{stderr}", file=sys.stderr)
                return 1
            rows.append(row(job.stem, json.loads(stdout)))
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
