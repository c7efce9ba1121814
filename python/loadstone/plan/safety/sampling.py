"""Which places of a file or device are looked at, and what chance that leaves of missing something.

Knows numbers only. The places are drawn anew each time: nobody can lay content around them.

What is looked at is cut into blocks of 64 KiB. A pass cuts it into strata of equal length and takes
one block at a random place in each, independently. Content that fills a share s of all blocks fills
shares s1 .. sn of the strata, whose mean is s; all n looks miss it with chance (1-s1)...(1-sn), which
is at most (1-s)^n wherever the content lies (the mean of logarithms is at most the logarithm of the
mean). That is reached by content that is scattered evenly. A contiguous run that is as long as two
strata fills one, and is never missed.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

BLOCK_BYTES: Final = 64 << 10
PASSES: Final[tuple[int, ...]] = (1024, 1024, 2048, 4096, 8192)
"""Strata of each pass. A slow device may be left after any pass but not before the first."""
SAMPLES: Final = sum(PASSES)


def chance_of_missing(share: float, samples: int) -> float:
    """Return the most likely a share of the blocks is missed by so many samples."""
    return (1.0 - share) ** samples


@dataclass(frozen=True, slots=True)
class Space:
    """The parts of a file that may hold anything: (offset, length), ascending, not touching."""

    parts: Sequence[tuple[int, int]]
    _ends: Sequence[int]

    @classmethod
    def of(cls, parts: Sequence[tuple[int, int]]) -> Space:
        """Return the space made of parts."""
        return cls(parts, tuple(accumulate(length for _, length in parts)))

    @property
    def size_bytes(self) -> int:
        """What they come to."""
        return self._ends[-1] if self._ends else 0

    def offset(self, place: int) -> int:
        """Return where in the file the byte is that has so many of the space before it."""
        part = bisect_right(self._ends, place)
        offset, length = self.parts[part]
        return offset + place - (self._ends[part] - length)

    def pieces(self, bytes_each: int) -> Iterator[int]:
        """Yield the offset of every aligned piece that the space touches, ascending."""
        done = -1
        for offset, length in self.parts:
            first, last = offset // bytes_each, (offset + length - 1) // bytes_each
            for piece in range(max(first, done + 1), last + 1):
                yield piece * bytes_each
            done = max(done, last)


def blocks(space: Space, strata: int, random: Random) -> Iterator[int]:
    """Yield the offset of one block of each stratum, ascending."""
    size = space.size_bytes
    for stratum in range(strata):
        low, high = size * stratum // strata, size * (stratum + 1) // strata
        if high > low:
            yield space.offset(random.randrange(low, high)) // BLOCK_BYTES * BLOCK_BYTES
