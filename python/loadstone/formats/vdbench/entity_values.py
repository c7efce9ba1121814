"""Values that several entities share: ranges of addresses, open flags, seek modes, transfer sizes, shares.

Knows their forms in a parameter file. Does not know what becomes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from loadstone.errors import InputError
from loadstone.formats.vdbench.values import choice, numbers, texts
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.errors import Where
    from loadstone.formats.vdbench.grammar import Parameter

SECTOR_BYTES: Final = 512
MAX_STEPS: Final = 1024
"""Sizes that `xfersize=(min,max,align)` may mean."""
MAX_THREADS: Final = 65_536
LARGEST_PERCENT: Final = 200
"""From here on a range is in bytes."""
_FLAGS: Final = (
    "o_direct",
    "directio",
    "o_sync",
    "o_dsync",
    "o_rsync",
    "fsync",
    "directio_off",
    "clear_cache",
    "clearcache",
)
_HEX_BITS: Final = {0x4000: "o_direct", 0x101000: "o_sync", 0x1000: "o_dsync"}


class Span(NamedTuple):
    """A part of an SD: in percent, or in bytes when `high` is above 200."""

    low: float
    high: float


class Sizes(NamedTuple):
    """Transfer sizes: pairs of bytes and percent, or `step_bytes` apart between two."""

    pairs: tuple[tuple[int, float], ...]
    step_bytes: int = 0
    """Above 0: every multiple of it between the two sizes of `pairs`, equally often."""

    @property
    def smallest_bytes(self) -> int:
        """Smallest size."""
        return min(size for size, _ in self.pairs)

    @property
    def largest_bytes(self) -> int:
        """Largest size."""
        return max(size for size, _ in self.pairs)


@dataclass(frozen=True, slots=True)
class Seek:
    """Where the next I/O goes. `percent`: chance that it goes to a random place."""

    percent: float
    ends: bool = False
    """Stop at the end instead of beginning again."""
    anywhere: bool = False
    """A sequential walk begins at a random place."""
    midpoint: float = 0.0
    """Above 0: random places crowd at low addresses (`poisson`)."""


RANDOM: Final = Seek(100.0)
ONE_SIZE: Final = Sizes(((4096, 100.0),))


def span(parameter: Parameter) -> Span:
    """Read `range=(low,high)`."""
    bounds = numbers(parameter)
    if len(bounds) != 2:
        raise parameter.error("formats_vdbench.entity_values.range_values", bounds=len(bounds))
    low, high = bounds[0].value, bounds[1].value
    if not 0 <= low < high:
        raise parameter.error("formats_vdbench.entity_values.range_falls", low=f"{low:g}", high=f"{high:g}")
    if low <= 100 and high <= LARGEST_PERCENT and high > 100 and high - low >= 100:
        raise parameter.error("formats_vdbench.entity_values.range_whole", low=f"{low:g}", high=f"{high:g}")
    return Span(low, high)


def flags(parameter: Parameter) -> tuple[str, ...]:
    """Read open flags by name, or their bits as 0x4000."""
    flag_names: list[str] = []
    for text in texts(parameter):
        word = text.lower()
        if word.startswith("0x"):
            flag_names += _bits(parameter, word)
        elif word in _FLAGS:
            flag_names.append(word)
        else:
            raise parameter.error(
                "formats_vdbench.entity_values.flags", found=repr(text[:40]), flags=", ".join(_FLAGS)
            )
    if "directio_off" in flag_names and {"directio", "o_direct"} & set(flag_names):
        raise parameter.error("formats_vdbench.entity_values.flags_both")
    return tuple(dict.fromkeys(flag_names))


def _bits(parameter: Parameter, word: str) -> list[str]:
    try:
        left = int(word, 16)
    except ValueError:
        raise parameter.error("formats_vdbench.entity_values.bits", found=repr(word[:40])) from None
    flag_names = []
    for bits, name in _HEX_BITS.items():
        if left & bits == bits:
            flag_names.append(name)
            left &= ~bits
    if left or not flag_names:
        raise parameter.error("formats_vdbench.entity_values.bits_unknown", left=f"{left:#x}", word=word)
    return flag_names


def sizes(parameter: Parameter) -> Sizes:
    """Read `xfersize=`: one size, `(size,percent,...)` or `(min,max,align)`."""
    values = [number.value for number in numbers(parameter)]
    if len(values) == 1:
        return Sizes(((_bytes(parameter, values[0]), 100.0),))
    if len(values) == 3:
        low, high, step = (_bytes(parameter, value) for value in values)
        if low >= high:
            raise parameter.error("formats_vdbench.entity_values.sizes_fall", low=low, high=high)
        if (high - low) // step >= MAX_STEPS:
            raise parameter.error("formats_vdbench.entity_values.sizes_many", most=MAX_STEPS)
        return Sizes(((low, 50.0), (high, 50.0)), step_bytes=step)
    if len(values) % 2:
        raise parameter.error("formats_vdbench.entity_values.size_pairs", values=len(values))
    pairs = [(_bytes(parameter, size), share) for size, share in zip(values[::2], values[1::2], strict=True)]
    total = sum(share for _, share in pairs)
    if round(total) != 100 or any(share < 0 for _, share in pairs):
        raise parameter.error("formats_vdbench.entity_values.sizes_sum", total=f"{total:g}")
    return Sizes(tuple((size, share * 100 / total) for size, share in pairs if share))


def _bytes(parameter: Parameter, value: float) -> int:
    if value <= 0 or value % SECTOR_BYTES or value >= 2**31:
        raise parameter.error("formats_vdbench.entity_values.size", value=f"{value:g}", sector=SECTOR_BYTES)
    return int(value)


def seek(parameter: Parameter) -> Seek:
    """Read `seekpct=` in all its forms."""
    percent: float = 100.0
    ends = anywhere = False
    midpoint = 0.0
    # A list keeps its dashes apart; only -1 has one.
    for text in (parameter.text,) if not parameter.listed else parameter.pieces:
        word = text.lower()
        if not word[:1].isalpha():
            value = _plain_number(parameter, word)
            if midpoint:
                midpoint = value
            elif value == -1:
                percent, ends = 0.0, True
            elif 0 <= value <= 100:
                percent = value
            else:
                raise parameter.error("formats_vdbench.entity_values.seek", found=repr(text))
            continue
        kind = choice(parameter, word, ("sequential", "random", "eof", "seqnz", "sequentialnz", "poisson"))
        midpoint = 3.0 if kind == "poisson" else midpoint
        percent = 100.0 if kind in ("random", "poisson") else 0.0
        ends = kind == "eof"
        anywhere = kind.endswith("nz")
    if midpoint < 0 or (midpoint and midpoint > 1000):
        raise parameter.error("formats_vdbench.entity_values.midpoint", midpoint=f"{midpoint:g}")
    return Seek(percent, ends, anywhere, midpoint)


def _plain_number(parameter: Parameter, word: str) -> float:
    try:
        value = float(word.removesuffix("%"))
    except ValueError:
        raise parameter.error("formats_vdbench.entity_values.seek_word", found=repr(word[:40])) from None
    return value if abs(value) <= 10_000 else 10_001.0


def sectors(parameter: Parameter) -> int:
    """Read bytes in whole sectors."""
    values = numbers(parameter)
    value = values[0].value if len(values) == 1 else -1.0
    if value < 0 or value % SECTOR_BYTES:
        raise parameter.error(
            "formats_vdbench.entity_values.sectors", found=repr(parameter.text), sector=SECTOR_BYTES
        )
    return int(value)


def some_sectors(parameter: Parameter) -> int:
    """Read bytes in whole sectors, at least one."""
    size_bytes = sectors(parameter)
    if not size_bytes:
        raise parameter.error(
            "formats_vdbench.entity_values.some_sectors", found=repr(parameter.text), sector=SECTOR_BYTES
        )
    return size_bytes


def positive(parameter: Parameter) -> float:
    """Read one number above 0."""
    values = numbers(parameter)
    if len(values) != 1 or values[0].value <= 0:
        raise parameter.error("formats_vdbench.entity_values.positive", found=repr(parameter.text))
    return values[0].value


def divided(parameter: Parameter) -> int:
    """Read `n`, or `(n,m)` for n divided by m."""
    terms = [number.value for number in numbers(parameter)]
    if len(terms) > 2 or terms[0] < 1 or terms[-1] < 1:
        raise parameter.error("formats_vdbench.entity_values.divided", found=repr(parameter.text))
    value = int(terms[0]) if len(terms) == 1 else int(terms[0]) // int(terms[1])
    if value < 1:
        raise parameter.error("formats_vdbench.entity_values.below_one", found=parameter.text)
    return value


def threads(parameter: Parameter) -> int:
    """Read how many I/Os may be in progress."""
    value = divided(parameter)
    if value > MAX_THREADS:
        raise parameter.error("formats_vdbench.entity_values.threads", value=value, most=MAX_THREADS)
    return value


def start_and_count(parameter: Parameter) -> tuple[int, int]:
    """Read `count=(start,count)`."""
    values = [number.value for number in numbers(parameter)]
    if len(values) != 2 or any(value != int(value) or value < 0 for value in values) or not values[1]:
        raise parameter.error("formats_vdbench.entity_values.start_and_count", found=repr(parameter.text))
    if values[1] > 10_000:
        raise parameter.error("formats_vdbench.entity_values.count_large", values_1=f"{values[1]:g}")
    return int(values[0]), int(values[1])


def skew_shares(shares: Sequence[float | None], most_off: float, run: str, where: Where) -> list[float]:
    """Return what `skew=` says, and an equal part of the rest for what has none, in percent.

    Where all are given they may be `most_off` percent off 100. Raises InputError where they do not add up.
    """
    total = sum(skew or 0.0 for skew in shares)
    free = sum(skew is None for skew in shares)
    if total > 100 + 0.001 or (total >= 100 if free else abs(total - 100) > most_off):
        raise make_error(InputError, "formats_vdbench.common.skew", where=where, run=run, total=f"{total:g}")
    rest = (100 - total) / free if free else 0.0
    return [rest if skew is None else skew for skew in shares]
