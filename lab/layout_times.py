"""How long layouts and levels take to be set and put back, which `loadstone experiment plan` assumes.

Knows loop devices in memory and the layouts that this kernel can build. Sets each through the product's own
journal, as a run does. Needs root. ZFS is the one that answers `zpool list`, or zfs-fuse.

    python -m lab.layout_times --repeats 10 > FILE
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from lab.parts import Stage, missing

from loadstone.control.changes import Changes
from loadstone.control.layout import build
from loadstone.control.layout.description import LayoutDescription, LayoutOrder

if TYPE_CHECKING:
    from collections.abc import Callable

LAYOUTS: Final[dict[str, dict[str, Any]]] = {
    "ext4 on each": {"filesystem": "ext4"},
    "XFS on each": {"filesystem": "xfs"},
    "btrfs on each": {"filesystem": "btrfs"},
    "btrfs raid1": {"manager": "btrfs", "raid": "1"},
    "ZFS mirror": {"manager": "zfs", "raid": "1"},
    "ZFS with a log": {"manager": "zfs", "raid": "jbod", "log": "LAST"},
}
LEVELS: Final = (
    ("sysctl", "vm.swappiness", "61"),
    ("dirty_limit", "", "15%"),
    ("io_scheduler", "DEVICE", "bfq"),
    ("nr_requests", "DEVICE", "64"),
    ("read_ahead_kb", "DEVICE", "64"),
    ("transparent_huge_pages", "", "never"),
)
MIB: Final = 400


def order(devices: list[str], folder: str, number: int, keys: dict[str, Any]) -> LayoutOrder:
    """Return what is to be built on these devices; a log is on the last of them."""
    log = devices[-1] if keys.get("log") else None
    used = devices[:-1] if log else devices
    description = LayoutDescription.model_validate({**keys, "log": log} if log else keys)
    one = LayoutOrder(
        label=f"ls{number:08x}",
        name="times",
        devices=tuple(used),
        identities=(),
        description=description,
        base=f"{folder}/base{number}",
    )
    return one.model_copy(update={"identities": tuple(map(build.identity_of, one.used))})


def timed(repeats: int, once: Callable[[], None]) -> list[float]:
    """Return how long it took each time, in seconds."""
    times = []
    for _ in range(repeats):
        began_s = time.monotonic()
        once()
        times.append(time.monotonic() - began_s)
    return times


def row(name: str, times: list[float]) -> str:
    """Return a row: median and range, in seconds."""
    return (
        f"| {name} | {len(times)} | {statistics.median(times):.2f} | {min(times):.2f} to {max(times):.2f} |"
    )


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    if (why := missing()) is not None:
        print(f"cannot run here: {why}", file=sys.stderr)
        return 2
    print("| what | times | median, s | range, s |\n|---|---:|---:|---:|")
    with Stage() as stage:
        devices = [stage.loop(MIB, written=False) for _ in range(3)]
        number = 0
        if subprocess.run(["zpool", "list"], capture_output=True, check=False).returncode != 0:
            stage.beside("zfs-fuse", "--no-daemon", "--pidfile", stage.folder / "zfs.pid")
            time.sleep(2.0)
        for name, keys in LAYOUTS.items():
            example = order(devices, str(stage.folder), number, keys)
            if (absent := build.why_not(example)) is not None:
                print(f"{name}: left out: {absent}", file=sys.stderr)
                continue

            def layout(keys: dict[str, Any] = keys) -> None:
                nonlocal number
                number += 1
                one = order(devices, str(stage.folder), number, keys)
                with Changes(where=stage.folder / "state") as changes:
                    down = build.order_text("take down", one)
                    changes.make("layout", "times", build.order_text("build", one), down)

            print(row(name, timed(options.repeats, layout)), flush=True)
        for control, subject, value in LEVELS:
            device = subject.replace("DEVICE", devices[0])

            def level(control: str = control, subject: str = device, value: str = value) -> None:
                with Changes(where=stage.folder / "state") as changes:
                    changes.set(control, subject, value)

            print(row(control, timed(options.repeats, level)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
