"""How long a load with flushes takes until it waits for as many of them as it will."""

from typing import Final

FILLED: Final = 3.0
"""Times the latency of a flush. Each takes a place of the queue until it ends. So their number, and the
latency, come near what they will be as 1 - exp(-t) does: after three 5 % are missing. Of an honest load at
depth 64 with a flush after every eighth write the rate fell by a half until then."""
