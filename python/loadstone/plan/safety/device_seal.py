"""What a device held when a run of this process had ended, told from a sample.

A device can keep no mark. Within one process, whose runs follow each other (a study, a curve, the run
definitions of a parameter file), what a run left behind is known again by a digest of places drawn at
random. It is forgotten when the process ends: another one needs consent. Another disk under the same
device number is another device, whatever it holds.
"""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from loadstone.plan.safety import sampling, seen
from loadstone.plan.safety.content import CHUNK_BYTES, BlockReader
from loadstone.plan.safety.sampling import BLOCK_BYTES, Space

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES: Final = 128


@dataclass(frozen=True, slots=True)
class DeviceSeal:
    """A digest of some places of a device."""

    number: int
    disk_number: int
    seed: int
    size_bytes: int
    digest: str

    @classmethod
    def of(cls, path: Path, number: int, seed: int | None = None) -> DeviceSeal:
        """Seal a device as it is now. Raises OSError."""
        seed = secrets.randbits(64) if seed is None else seed
        content = blake3()
        with BlockReader(path) as reader:
            size = reader.size_bytes
            for offset in range(0, min(size, 4 * CHUNK_BYTES), CHUNK_BYTES):
                content.update(reader.read(offset, CHUNK_BYTES))
            space = Space.of([(0, size)])
            for offset in sampling.blocks(space, SAMPLES, random.Random(seed)):  # noqa: S311 - kept secret
                content.update(reader.read(offset, BLOCK_BYTES))
            tail = max(0, size - CHUNK_BYTES)
            content.update(reader.read(tail - tail % BLOCK_BYTES, CHUNK_BYTES))
        return cls(number, seen.disk_number(number), seed, size, content.hexdigest())

    def holds(self, path: Path) -> bool:
        """Whether the device still holds what it held."""
        try:
            return DeviceSeal.of(path, self.number, self.seed) == self
        except OSError:
            return False
