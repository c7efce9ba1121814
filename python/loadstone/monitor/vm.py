"""What passes between the page cache and the devices: /proc/vmstat.

Format: the kernel's mm/vmstat.c; `pgpgin` and `pgpgout` are KiB of block I/O on any device, direct
I/O included, and count once for each layer of a stack. Dirtied and cleaned are of the page cache
alone: a buffered write dirties, write-back cleans.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from loadstone.monitor.counters import Counters

VMSTAT = Path("/proc/vmstat")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
GROWING: Final = {
    "pgpgin": ("block_in_bytes", 1024),
    "pgpgout": ("block_out_bytes", 1024),
    "nr_dirtied": ("dirtied_bytes", PAGE_BYTES),
    "nr_written": ("cleaned_bytes", PAGE_BYTES),
    "pgmajfault": ("major_faults", 1),
    "pswpin": ("swapped_in_bytes", PAGE_BYTES),
    "pswpout": ("swapped_out_bytes", PAGE_BYTES),
}


class Vm:
    """Traffic of the page cache, as `vm.<what>`."""

    def __init__(self, source: Path = VMSTAT) -> None:
        self._source = source

    def read(self) -> Counters:
        """Read now."""
        counters = Counters()
        for line in self._source.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name in GROWING:
                counter, factor = GROWING[name]
                counters.growing[f"vm.{counter}"] = int(value) * factor
        return counters
