"""The simulated device to begin with: one service time, no stall, no fault."""

from __future__ import annotations

from typing import Any

from loadstone.plan.model import SimDevice


def steady_device(service_ns: int, **changes: Any) -> SimDevice:
    """Return a device of one server that takes so long for each I/O, with some fields changed."""
    fields: dict[str, Any] = {
        "seed": 1, "servers": 1, "read_ns": service_ns, "write_ns": service_ns,
        "service": "constant", "stall_every_ns": 0, "stall_ns": 0, "error_ppm": 0, "short_ppm": 0,
        "hang_ppm": 0, "faults": None, "behaviour": None,
    }  # fmt: skip
    return SimDevice.model_validate(fields | changes, strict=False)


def simulated(service_ns: int, **changes: Any) -> dict[str, Any]:
    """Return the backend with that device, as a document."""
    return {"type": "sim", "device": steady_device(service_ns, **changes).model_dump(mode="json")}
