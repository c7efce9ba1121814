"""Content of many kinds drawn to many places of a device that is too long to be read: what a look misses.

Kinds in `APART` were put aside when the look was made and are in no test of it. Knows bytes and places;
what a look is made of is made small here, so that a device of 16 to 64 MiB is as a long one.
"""

from __future__ import annotations

import contextlib
import gzip
import math
import struct
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final
from unittest import mock

from lab.safety import trial

from loadstone.plan.safety import content, sampling, structure_offsets
from loadstone.plan.safety.sampling import BLOCK_BYTES, Space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Make = Callable[[Random, int], bytes]

PASSES: Final = (32, 32, 64)
FIRST_SEED: Final = 40_000


def _sparse(draw: Random, length: int) -> bytes:
    sparse = bytearray(length)
    for _ in range(3):
        sparse[draw.randrange(length)] = draw.randrange(1, 256)
    return bytes(sparse)


def _pages(draw: Random, length: int) -> bytes:
    pages = bytearray(length)
    for at in range(0, length, 8192):
        pages[at : at + 8] = draw.randbytes(8)[: length - at]
    return bytes(pages)


def _log(draw: Random, length: int) -> bytes:
    line = b"2026-01-%02d %02d:%02d:%02d host daemon[%d]: accepted\n"
    one = b"".join(line % tuple(draw.randrange(10, 28) for _ in range(5)) for _ in range(40))
    return (one * (length // len(one) + 1))[:length]


def _sound(draw: Random, length: int) -> bytes:
    """Quiet sound of 16 bits: most samples are close to zero."""
    step = draw.uniform(0.01, 0.1)
    samples = [int(3 * math.sin(at * step)) for at in range(min(length, BLOCK_BYTES) // 2 + 1)]
    return (struct.pack(f"<{len(samples)}h", *samples) * (length // len(samples) + 1))[:length]


def _black_image(draw: Random, length: int) -> bytes:
    """A picture that is black but for a dot, row by row."""
    row = bytearray(4096)
    row[draw.randrange(4096)] = 255
    return (bytes(row) * (length // 4096 + 1))[:length]


def _counters(draw: Random, length: int) -> bytes:
    first = draw.randrange(1 << 16)
    count = min(length, BLOCK_BYTES) // 8 + 1
    return (struct.pack(f"<{count}Q", *range(first, first + count)) * (length // count + 1))[:length]


def _padded_archives(draw: Random, length: int) -> bytes:
    one = gzip.compress(draw.randbytes(200)).ljust(4096, b"\0")
    return (one * (length // 4096 + 1))[:length]


def _columns(draw: Random, length: int) -> bytes:
    """A column of numbers, most of them zero, squeezed."""
    numbers = [0 if draw.random() < 0.95 else draw.randrange(1000) for _ in range(4096)]
    one = b"PAR1" + zlib.compress(struct.pack("<4096I", *numbers))
    return (one * (length // len(one) + 1))[:length]


def _wide_text(draw: Random, length: int) -> bytes:
    one = "".join(draw.choices("naïve café – müßig\n", k=2000)).encode("utf-16-le")
    return (one * (length // len(one) + 1))[:length]


KINDS: Final[dict[str, Make]] = {
    "text": lambda draw, length: (bytes(draw.choices(b"etaoin shrdlu\n", k=4096)) * (length // 4096 + 1))[
        :length
    ],
    "random bytes": lambda draw, length: draw.randbytes(length),
    "ones": lambda _, length: b"\xff" * length,
    "three bytes in zeros": _sparse,
    "pages with a head of 8 bytes": _pages,
}
APART: Final[dict[str, Make]] = {
    "lines of a log": _log,
    "text of two bytes a letter": _wide_text,
    "quiet sound": _sound,
    "a black picture with a dot": _black_image,
    "numbers that count up": _counters,
    "archives padded with zeros": _padded_archives,
    "a squeezed column of numbers": _columns,
    "every other byte zero": lambda draw, length: (bytes((0, draw.randrange(1, 256))) * length)[:length],
}
LAYOUTS: Final = (
    "one piece",
    "one run",
    "scattered",
    "periodic",
    "clustered",
    "at the end",
    "at the beginning",
)


def laid(draw: Random, how: str, size: int) -> list[tuple[int, int]]:
    """Where it lies, as (offset, length)."""
    length = min(size, int(2 ** draw.uniform(0, 18)))
    if how == "one piece":
        return [(draw.randrange(size - length + 1), length)]
    if how == "one run":
        length = min(size, 64 << 20, int(size * 2 ** draw.uniform(-12, -1)) or 1)
        return [(draw.randrange(size - length + 1), length)]
    if how in ("at the end", "at the beginning"):
        return [(size - length if how == "at the end" else 0, length)]
    count = min(size, int(2 ** draw.uniform(1, 9)))
    length = min(length, size // count)
    if how == "periodic":
        step, phase = size // count, draw.randrange(size // count - length + 1)
        return [(number * step + phase, length) for number in range(count)]
    low = draw.randrange(size) if how == "clustered" else 0
    high = draw.randrange(low, size) + 1 if how == "clustered" else size
    return [(min(draw.randrange(low, high), size - length), length) for _ in range(count)]


@dataclass
class Tally:
    """How often something was drawn, missed, and was to be missed by the stated chance."""

    drawn: int = 0
    missed: int = 0
    stated: float = 0.0
    spread: float = 0.0

    def add(self, chance: float, *, missed: bool) -> None:
        self.drawn += 1
        self.missed += missed
        self.stated += chance
        self.spread += chance * (1 - chance)

    @property
    def right(self) -> bool:
        """Whether no more was missed than the chance allows, four standard deviations and one."""
        return self.missed <= self.stated + 4 * math.sqrt(self.spread) + 1


@contextlib.contextmanager
def small_look() -> Iterator[None]:
    """Look as at a device that is too long to be read: its holes are not known, nothing is read whole."""
    with contextlib.ExitStack() as stack:
        for place, name, value in (
            (content, "WHOLE_BYTES", 0),
            (sampling, "PASSES", PASSES),
            # Only the sample: what stands at known places is found besides.
            (structure_offsets, "HEAD_BYTES", BLOCK_BYTES),
            (structure_offsets, "TAIL_BYTES", BLOCK_BYTES),
            (structure_offsets, "places", lambda _: []),
            (content._Look._sampled, "__defaults__", (PASSES,)),
            (content.BlockReader, "space", lambda reader: Space.of([(0, reader.size_bytes)])),
        ):
            stack.enter_context(mock.patch.object(place, name, value))
        yield


def tried_in_memory(draws: int) -> tuple[dict[str, Tally], dict[str, Tally]]:
    """Do as `tried`, in a directory of its own.

    A process that was spawned loads no `__main__` of a package: it stands here.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        return tried(Path(folder), draws)


def tried(folder: Path, draws: int) -> tuple[dict[str, Tally], dict[str, Tally]]:
    """Draw every kind as often; return what was missed by kind and by layout."""
    kinds = {name: Tally() for name in (*KINDS, *APART)}
    layouts = {name: Tally() for name in LAYOUTS}
    seed = FIRST_SEED
    path = folder / "drawn"
    with small_look():
        for name, make in (KINDS | APART).items():
            for number in range(draws):
                trial.go_on()
                draw = Random(seed)
                seed += 1
                how = LAYOUTS[number % len(LAYOUTS)]
                size = int(2 ** draw.uniform(24, 26)) // 512 * 512
                blocks = _filled(path, size, laid(draw, how, size), make, draw)
                chance = sampling.chance_of_missing(blocks, sum(PASSES))
                missed = content.look(path).held is None
                kinds[name].add(chance, missed=missed)
                layouts[how].add(chance, missed=missed)
                path.unlink()
    return kinds, layouts


def _filled(path: Path, size: int, places: list[tuple[int, int]], make: Make, draw: Random) -> float:
    """Write it; return the share of blocks that hold anything."""
    blocks: set[int] = set()
    with path.open("wb") as file:
        file.truncate(size)
        for offset, length in places:
            data = make(draw, min(length, BLOCK_BYTES))
            data = (data * (length // max(1, len(data)) + 1))[:length]
            data = data if data.strip(b"\0") else data[:-1] + b"\1"
            file.seek(offset)
            file.write(data)
        file.flush()
        for block in {at // BLOCK_BYTES for offset, length in places for at in _touched(offset, length)}:
            with path.open("rb") as reader:
                reader.seek(block * BLOCK_BYTES)
                if reader.read(BLOCK_BYTES).strip(b"\0"):
                    blocks.add(block)
    return len(blocks) / -(-size // BLOCK_BYTES)


def _touched(offset: int, length: int) -> Iterator[int]:
    yield from range(offset // BLOCK_BYTES * BLOCK_BYTES, offset + length, BLOCK_BYTES)


def table(kinds: dict[str, Tally], layouts: dict[str, Tally]) -> str:
    """The part of the page."""
    lines = [
        "\n## Content drawn by kind and place\n\n",
        f"Devices of 16 to 64 MiB, looked at as one that is too long to be read whole. The look has "
        f"{sum(PASSES)} samples\nin {len(PASSES)} passes. *stated* is the sum of the chances above. "
        "Kinds marked * were put aside when\nthe look was made: no test of it has them.\n\n",
        "| what was drawn | draws | missed | stated |\n|---|---:|---:|---:|\n",
    ]
    for name, tally in (kinds | layouts).items():
        mark = " *" if name in APART else ""
        wrong = "" if tally.right else " **wrong**"
        lines.append(f"| {name}{mark} | {tally.drawn} | {tally.missed}{wrong} | {tally.stated:.1f} |\n")
    return "".join(lines)
