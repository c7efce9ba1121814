"""What there is to know about a target and everything under it, for the record.

Knows sysfs attributes, mounts and statfs. Judges nothing; a fact that cannot be had is
absent, never guessed. Serial numbers are kept as a hash: they tell two devices apart without
naming the customer's hardware.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone.path.mounts import mount_of
from loadstone.path.underlying import under_path

if TYPE_CHECKING:
    from loadstone.path.block import BlockDevice

QUEUE: Final = (
    "scheduler",
    "nr_requests",
    "rotational",
    "write_cache",
    "fua",
    "logical_block_size",
    "physical_block_size",
    "minimum_io_size",
    "optimal_io_size",
    "discard_granularity",
    "discard_max_bytes",
    "max_sectors_kb",
    "max_hw_sectors_kb",
    "read_ahead_kb",
    "nomerges",
    "rq_affinity",
    "io_poll",
    "wbt_lat_usec",
    "iostats",
    "add_random",
    "zoned",
)
DEVICE: Final = ("vendor", "model", "rev", "firmware_rev", "queue_depth", "numa_node", "transport", "state")


def target(path: str) -> dict[str, Any]:
    """Facts about one target: what it is, its mount, and the devices under it, nearest first."""
    where = Path(path)
    facts: dict[str, Any] = {"path": path, "real_path": os.path.realpath(path)}
    try:
        status = where.stat()
    except OSError as error:
        facts["missing"] = error.strerror
        status = None
    if status is not None:
        facts |= _file(status)
    if status is None or not stat.S_ISCHR(status.st_mode):
        mount = None if status is not None and stat.S_ISBLK(status.st_mode) else mount_of(where)
        if mount is not None:
            facts["mount"] = {
                "point": mount.point,
                "file_system": mount.kind,
                "source": mount.source,
                "options": mount.options,
                "super_options": mount.super_options,
            }
            facts["file_system_space"] = _space(mount.point)
        nearest = where if status is not None else where.resolve().parent
        facts["devices"] = [device.name for device in under_path(nearest)]
    return facts


def device(device: BlockDevice) -> dict[str, Any]:
    """Facts about one block device; queue settings are those of its disk."""
    disk = device.disk()
    facts: dict[str, Any] = {"name": device.name, "size_bytes": device.size_bytes}
    if disk != device:
        facts["disk"] = disk.name
        facts["start_bytes"] = int(device.attribute("start") or 0) * 512
    facts["read_only"] = device.attribute("ro") == "1"
    backing = device.backing_file()
    if backing is not None:
        facts["backing_file"] = backing
        facts["backing_direct_io"] = device.attribute("loop/dio") == "1"
    for name, attribute in (("dm_name", "dm/name"), ("dm_uuid", "dm/uuid"), ("md_level", "md/level")):
        value = device.attribute(attribute)
        if value:
            facts[name] = value
    facts["on"] = [slave.name for slave in device.slaves()]
    facts["device"] = _present(disk, [f"device/{name}" for name in DEVICE])
    serial = disk.attribute("serial") or disk.attribute("device/serial")
    if serial:
        facts["serial_sha256"] = hashlib.sha256(serial.encode()).hexdigest()[:16]
    facts["queue"] = _present(disk, [f"queue/{name}" for name in QUEUE])
    hardware_queues = list((disk.sys / "mq").glob("[0-9]*"))
    if hardware_queues:
        facts["hardware_queues"] = len(hardware_queues)
    return facts


def _present(device: BlockDevice, attributes: list[str]) -> dict[str, str]:
    values = {name.rpartition("/")[2]: device.attribute(name) for name in attributes}
    return {name: value for name, value in values.items() if value is not None}


def _file(status: os.stat_result) -> dict[str, Any]:
    if stat.S_ISBLK(status.st_mode):
        return {"kind": "block", "device_number": _number(status.st_rdev)}
    if stat.S_ISCHR(status.st_mode):
        return {"kind": "char", "device_number": _number(status.st_rdev)}
    return {
        "kind": "file" if stat.S_ISREG(status.st_mode) else "other",
        "size_bytes": status.st_size,
        # Less than its size: sparse or compressed, and reads of holes never reach the medium.
        "allocated_bytes": status.st_blocks * 512,
    }


def _number(number: int) -> str:
    return f"{os.major(number)}:{os.minor(number)}"


def _space(point: str) -> dict[str, int]:
    try:
        fs = os.statvfs(point)
    except OSError:
        return {}
    return {
        "block_bytes": fs.f_bsize,
        "total_bytes": fs.f_blocks * fs.f_frsize,
        "free_bytes": fs.f_bavail * fs.f_frsize,
    }
