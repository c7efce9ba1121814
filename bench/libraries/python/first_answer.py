"""What a first answer of a process beside this one takes: ours, and loky's.

`pip install --target D loky`, then `PYTHONPATH=D python bench/libraries/python/first_answer.py loky|ours`.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Final

POOLS: Final = {
    "ours": ("loadstone.helpers", "Helpers", "do"),
    "loky": ("loky", "ProcessPoolExecutor", "submit"),
}


def main(which: str) -> None:
    """Print the CPU seconds of this process and those it started, to the end of both."""
    module, name, ask = POOLS[which]
    with getattr(importlib.import_module(module), name)(1) as pool:
        getattr(pool, ask)(len, "abc").result()
    print(f"{which}: {sum(os.times()[:4]):.2f} s of CPU")


if __name__ == "__main__":
    main(sys.argv[1])
