"""What the kernel counts for the devices under a run's targets, before and after.

Knows `/sys/class/block/*/stat` (Documentation/block/stat.rst: times in milliseconds,
sectors of 512 bytes) and which devices lie under a target. Knows no output format.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.path.child import run_in_child
from loadstone.path.underlying import under_path
from loadstone.plan.model import TargetKind
from loadstone.report.fio.stats import DiskUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.path.block import BlockDevice
    from loadstone.plan.model import Plan

_Counts = list[int]
SILENT_S = 5.0


class Disks:
    """Counters of the devices that carry a Plan's targets, from the time of creation."""

    def __init__(self, plan: Plan) -> None:
        self._devices = _devices_by_child(plan)
        self._before = {device: _counts(device) for device in self._all()}
        self._since_s = time.monotonic()

    def used(self) -> list[DiskUse]:
        """Return what each device did until now; one that is gone or never was has none."""
        elapsed_ms = round((time.monotonic() - self._since_s) * 1000)
        return [
            use
            for device in self._devices
            if (use := self._use(device, elapsed_ms, _parts(device))) is not None
        ]

    def _all(self) -> list[BlockDevice]:
        return [one for device in self._devices for one in (device, *_parts(device))]

    def _use(self, device: BlockDevice, elapsed_ms: int, parts: Sequence[BlockDevice]) -> DiskUse | None:
        before, after = self._before.get(device), _counts(device)
        if not before or not after:
            return None
        grown = [now - then for now, then in zip(after, before, strict=True)]
        return DiskUse(
            name=device.name,
            read_ios=grown[0],
            read_merges=grown[1],
            read_sectors=grown[2],
            read_ticks_ms=grown[3],
            write_ios=grown[4],
            write_merges=grown[5],
            write_sectors=grown[6],
            write_ticks_ms=grown[7],
            busy_ms=grown[9],
            in_queue_ms=grown[10],
            elapsed_ms=elapsed_ms,
            parts=[use for part in parts if (use := self._use(part, elapsed_ms, ())) is not None],
        )


def _devices_by_child(plan: Plan) -> list[BlockDevice]:
    """Look in a child: what does not answer has no counters to show."""
    try:
        return run_in_child(
            lambda: list(dict.fromkeys(_devices(plan))), doing="looking for devices", silent_s=SILENT_S
        )
    except LoadstoneError:
        return []


def _devices(plan: Plan) -> list[BlockDevice]:
    disks = []
    for target in plan.targets:
        if target.kind in {TargetKind.FILE, TargetKind.BLOCK}:
            path = Path(target.path)
            carried_by = under_path(path if path.exists() else path.absolute().parent)
            if carried_by:
                disks.append(carried_by[0].disk())
    return disks


def _parts(device: BlockDevice) -> list[BlockDevice]:
    return device.slaves()


def _counts(device: BlockDevice) -> _Counts:
    text = device.attribute("stat")
    return [int(field) for field in text.split()[:11]] if text else []
