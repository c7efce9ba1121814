"""Files and devices that the kernel itself serves to others, with no process that has them open.

Knows the configfs of the SCSI target (LIO), of the NVMe target and of USB mass storage. Reads only.
References: Linux Documentation/target/, Documentation/usb/gadget_configfs.rst, and
drivers/nvme/target/configfs.c.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from loadstone.messages import say

CONFIG: Final = Path("/sys/kernel/config")
_FILE: Final = re.compile(r"File: (.+?)\s+Size: ")


def exported(config: Path = CONFIG) -> list[tuple[Path, str]]:
    """Return paths that are served, each with a sentence that says by what."""
    exports = []
    for store in sorted(config.glob("target/core/*/*")):
        if _text(store / "enable") == "1":
            file = _FILE.search(_text(store / "info"))
            path = file[1] if file else _text(store / "udev_path")
            exports.append((path, say("plan.held.scsi_target", name=f"{store.parent.name}/{store.name}")))
    for space in config.glob("nvmet/subsystems/*/namespaces/*"):
        if _text(space / "enable") == "1":
            owner = space.parent.parent.name
            exports.append((_text(space / "device_path"), say("plan.held.nvme_target", name=owner)))
    units = config.glob("usb_gadget/*/functions/mass_storage.*/lun.*")
    exports += [(_text(unit / "file"), say("plan.held.usb_gadget")) for unit in units]
    return [(Path(path), use) for path, use in exports if path.startswith("/")]


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="surrogateescape").strip()
    except OSError:
        return ""
