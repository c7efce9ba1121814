"""Facts of hosts beside each other, as a comparison tells them."""

from __future__ import annotations

from typing import Any

from loadstone import units
from loadstone.comparison import differences


def facts(*devices: tuple[str, str]) -> dict[str, str]:
    """Return what is told of devices with these limits of discards: granularity and largest, in bytes."""
    queues: dict[str, Any] = {
        f"disk{at}": {"queue": {"discard_granularity": one, "discard_max_bytes": most}}
        for at, (one, most) in enumerate(devices)
    }
    return {
        key: value.replace(units.THIN, " ") for key, value in differences._facts({"devices": queues}).items()
    }


def test_bytes_that_the_kernel_tells_as_plain_digits_have_a_unit() -> None:
    """The page had `device queue discard max bytes: 0, 4294966784`."""
    assert facts(("512", "4294966784"), ("0", "0")) == {
        "device queue discard granularity": "0 B, 512 B",
        "device queue discard max bytes": "0 B, 4.00 GiB",
    }


def test_devices_in_another_order_are_no_difference() -> None:
    assert facts(("512", "8192"), ("0", "0")) == facts(("0", "0"), ("512", "8192"))
