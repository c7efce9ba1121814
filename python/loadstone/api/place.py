"""Where a result goes when nobody says where."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from loadstone import file_name

RUNS: Final = Path("loadstone-runs")


def default_directory(name: str) -> Path:
    """Return a new directory under ./loadstone-runs, named after the time and the job."""
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{file_name.safe(name, most_bytes=64, keep='-_.')}"
    directory, number = RUNS / stem, 1
    while os.path.lexists(directory):
        number += 1
        directory = RUNS / f"{stem}-{number}"
    return directory
