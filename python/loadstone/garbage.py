"""When Python looks for garbage in a program of its own. Knows nothing of what the program does."""

from __future__ import annotations

import gc
from typing import Final

OBJECTS: Final = 10_000
"""So many more are there before the youngest are looked through."""


def collect_from_now_on() -> None:
    """Look for garbage among what is made from here on; a program begins without (`gc.disable`).

    What was read for it stays, and so do results of hundreds of runs, which are millions of objects. To look
    at the youngest after 700 more took a sixth of the time of a comparison.
    """
    gc.freeze()
    gc.set_threshold(OBJECTS, 10, 10)
    gc.enable()
