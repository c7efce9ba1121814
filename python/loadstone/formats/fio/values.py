"""The values of fio's options, text in, typed value out.

Knows the notation of each kind of value (triplets, splits, distributions, CPU lists,
patterns, error lists). Knows no option by name, no job and no default.
A reader takes the text, the `Reading` it notes things in, and the value read before for
the same field (fio's triplets leave a direction alone when its place is empty).
"""

from __future__ import annotations

import errno
import math
import re
from typing import TYPE_CHECKING, Final, TypeVar

from loadstone import input_file
from loadstone.formats.fio import numbers
from loadstone.messages import say
from loadstone.messages.suggest import nearest
from loadstone.workload.addresses import Distribution
from loadstone.workload.block_sizes import BlockSizes, FixedSize, SizeRange, SizeShare, SizeTable
from loadstone.workload.payload import MAX_PATTERN_BYTES
from loadstone.workload.placement import Amount, FileService

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.formats.fio.numbers import Reading

T = TypeVar("T")
U = TypeVar("U")

MAX_BLOCK_BYTES: Final = 2**31 - 1
"""The kernel moves less than 2 GiB in one call: of sizes that vary none is larger."""
MAX_FIXED_BYTES: Final = 2**40
"""A block of one size may be larger: it is moved in parts."""
SMALL_PERCENT: Final = 1e-9
MAX_SPLITS: Final = 64
"""What the engine takes; fio 3.33 took 512, later ones more than a Plan should hold."""


def triple(
    text: str, reading: Reading, previous: object, read: Callable[[str, Reading], T]
) -> tuple[T | None, ...]:
    """Read `read[,write[,trim]]`: one value is for all, two give trims the second."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 3:
        raise reading.error("formats_fio.values.directions", values=len(parts), found=repr(text))
    if len(parts) == 1:
        parts = parts * 3
    elif len(parts) == 2:
        parts = [parts[0], parts[1], parts[1]]
    before = previous if isinstance(previous, tuple) else (None, None, None)
    cache: dict[str, T] = {}
    result: list[T | None] = []
    for part, old in zip(parts, before, strict=True):
        if part and part not in cache:
            cache[part] = read(part, reading)
        result.append(cache[part] if part else old)
    return tuple(result)


def block_bytes(text: str, reading: Reading, most: int = MAX_BLOCK_BYTES) -> int:
    """Read one block size."""
    value = numbers.size(text, reading)
    if not 1 <= value <= most:
        raise reading.error("formats_fio.values.block_size", found=repr(text), most=most)
    return value


def block_fixed(text: str, reading: Reading) -> BlockSizes:
    """Read `4k`."""
    if not text.startswith("(") and re.search(r"\w[-:]", text):
        raise reading.error("formats_fio.values.one_size", found=repr(text), size=text)
    return FixedSize(bytes=block_bytes(text, reading, MAX_FIXED_BYTES))


def block_range(text: str, reading: Reading) -> BlockSizes:
    """Read `1k-4k`."""
    low, separator, high = re.sub(":", "-", text).partition("-")
    if not separator:
        raise reading.error("formats_fio.values.range", found=repr(text))
    if reading.strict:
        low, high = (_as_far_as_fio_reads(part, text, reading) for part in (low, high))
    smallest, largest = block_bytes(low.strip(), reading), block_bytes(high.strip(), reading)
    if smallest > largest:
        reading.note(
            "trap",
            say("formats_fio.values.range_turned", found=repr(text), low=low.strip(), high=high.strip()),
        )
        smallest, largest = largest, smallest
    return SizeRange(min_bytes=smallest, max_bytes=largest)


def _as_far_as_fio_reads(
    part: str, text: str, reading: Reading, key: str = "formats_fio.values.not_a_range"
) -> str:
    """Cut a size where fio stops reading it: after the first number and unit."""
    match = re.match(r"[^(/-]+(?=[/-])", part.strip())
    if match is None:
        return part
    left_out = part.strip()[match.end() :]
    reading.note(
        "trap",
        say(key, found=repr(text), read=match[0], left_out=left_out),
    )
    return match[0]


def _shares(text: str, reading: Reading, read: Callable[[str, Reading], U]) -> list[tuple[str, U | None]]:
    """Read `a/b:c/d:e/`: the text before each slash and the value after it."""
    result: list[tuple[str, U | None]] = []
    for entry in text.split(":"):
        if not entry.strip():
            continue
        left, _, right = entry.partition("/")
        result.append((left.strip(), read(right.strip(), reading) if right.strip() else None))
    if not result:
        raise reading.error("formats_fio.values.shares", found=repr(text))
    if len(result) > MAX_SPLITS:
        raise reading.error("formats_fio.priorities.entries", entries=len(result), most=MAX_SPLITS)
    return result


def _percent(text: str, reading: Reading) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise reading.error("formats_fio.values.percent", found=repr(text))
    return value


def real(text: str, reading: Reading) -> float:
    """Read a decimal number."""
    try:
        value = float(text.strip())
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise reading.error("formats_fio.values.number", found=repr(text))
    return value


def share(text: str, reading: Reading) -> float:
    """Read a number between 0 and 1."""
    value = real(text, reading)
    if not 0 < value < 1:
        raise reading.error("formats_fio.values.fraction", found=repr(text))
    return value


def block_split(text: str, reading: Reading) -> BlockSizes:
    """Read `4k/60:64k/40`; an empty share takes an equal part of what is left."""
    entries: list[tuple[int, float | None]] = []
    for left, percent in _shares(text, reading, _percent):
        share = percent
        if percent == 0:
            reading.note("trap", say("formats_fio.values.share_of_zero", size=left))
            share = None if reading.strict else 0.0
        cut = reading.strict and share is not None
        size = _as_far_as_fio_reads(left, left, reading, "formats_fio.values.not_one_size") if cut else left
        entries.append((block_bytes(size, reading), share))
    percent_sum = sum(share or 0 for _, share in entries)
    if percent_sum > 100:
        raise reading.error("formats_fio.values.shares_sum", found=repr(text), percent_sum=f"{percent_sum:g}")
    blank = sum(share is None for _, share in entries)
    if percent_sum == 0 and not blank:
        raise reading.error("formats_fio.values.shares_zero", found=repr(text))
    filled = [
        SizeShare(size, (100 - percent_sum) / blank if share is None else share) for size, share in entries
    ]
    rest = 0.0 if blank else 100 - percent_sum
    if rest > SMALL_PERCENT:
        most = max(range(len(filled)), key=lambda i: filled[i].percent)
        filled[most] = SizeShare(filled[most].bytes, filled[most].percent + rest)
        reading.note(
            "trap",
            say("formats_fio.values.rest", shares=f"{percent_sum:g}", size=filled[most].bytes),
        )
    return SizeTable(entries=tuple(filled))


def bounded(low: int, high: int) -> Callable[[str, Reading], int]:
    """Return a reader of integers from `low` to `high`."""
    return lambda text, reading: numbers.integer(text, reading, low, high)


def rate(text: str, reading: Reading) -> float | None:
    """Read a rate; 0 is no rate."""
    return float(numbers.size(text, reading)) or None


_KINDS: Final = ("random", "zipf", "pareto", "normal", "zoned", "zoned_abs", "sequence")
_BELL_PERCENT: Final = 100 / 12
"""What fio draws for `normal` without a deviation: the mean of 12 uniform numbers."""
_DEFAULT_PARAMETER: Final = {"zipf": 1.1, "pareto": 0.2, "normal": _BELL_PERCENT}
MAX_SEQUENCE: Final = 64
"""Blocks that fio takes in a sequence."""


def distribution(text: str, reading: Reading) -> tuple[Distribution, ...]:
    """Read `random_distribution`: for reads, writes and trims."""
    kind, colon, rest = text.strip().partition(":")
    if kind in ("zoned", "zoned_abs"):
        if not colon:
            raise reading.error("formats_fio.values.no_zones", kind=kind)
        rest = rest.replace(f"{kind}:", "")
        zones = triple(rest, reading, None, lambda t, r: _zones(t, r, absolute=kind == "zoned_abs"))
        default = Distribution(kind="random")
        return tuple(Distribution(kind=kind, zones=z) if z else default for z in zones)  # type: ignore[arg-type]  # checked above
    if kind == "random":
        return (Distribution(kind="random"),) * 3
    if kind == "sequence":
        return (Distribution(kind="sequence", blocks=_sequence(rest, reading)),) * 3
    if kind not in _DEFAULT_PARAMETER:
        raise reading.error("formats_fio.values.distribution", hint=nearest(kind, _KINDS), found=repr(kind))
    parameters = rest.split(":") if colon else []
    if len(parameters) > 2 and reading.strict:
        reading.note("trap", say("formats_fio.values.behind_center", found=repr(text.strip())))
        parameters = parameters[:2]
    if len(parameters) > 2 or not all(part.strip() for part in parameters):
        raise reading.error("formats_fio.values.distribution_form", found=repr(text), kind=kind)
    numbers_ = [_decimal(part, reading) for part in parameters]
    parameter = numbers_[0] if numbers_ else _DEFAULT_PARAMETER[kind]
    if kind == "normal" and parameter == 0:
        parameter = _BELL_PERCENT
    center = numbers_[1] if len(numbers_) == 2 else None
    _check_distribution(kind, parameter, center, reading)
    return (Distribution(kind=kind, parameter=parameter, center=center),) * 3  # type: ignore[arg-type]  # checked above


def _check_distribution(kind: str, parameter: float, center: float | None, reading: Reading) -> None:
    if kind == "zipf" and (parameter < 0 or parameter == 1):
        raise reading.error("formats_fio.values.zipf", parameter=f"{parameter:g}")
    if kind == "pareto" and not 0 < parameter < 1:
        raise reading.error("formats_fio.values.pareto", parameter=f"{parameter:g}")
    if kind == "normal" and not 0 < parameter < 100:
        raise reading.error("formats_fio.values.normal", parameter=f"{parameter:g}")
    if center is not None and not 0 <= center <= 1:
        raise reading.error("formats_fio.values.center", center=f"{center:g}")


def _sequence(text: str, reading: Reading) -> tuple[int, ...]:
    """Read `2,0,1`: numbers of blocks."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d{1,10}", part) for part in parts):
        raise reading.error("formats_fio.values.sequence", found=repr(text))
    if len(parts) > MAX_SEQUENCE:
        raise reading.error("formats_fio.values.sequence_long", values=len(parts), most=MAX_SEQUENCE)
    return tuple(int(part) for part in parts)


def _decimal(text: str, reading: Reading) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < 1e15:
        raise reading.error("formats_fio.values.decimal", found=repr(text.strip()))
    return value


def _zones(text: str, reading: Reading, *, absolute: bool) -> tuple[tuple[float, float], ...]:
    """Read `60/10:30/20:10/70`: access percent / size; empty sizes share what is left."""

    def number(value: str, inner: Reading) -> float:
        return float(numbers.size(value, inner)) if absolute else _percent(value, inner)

    entries = _shares(text, reading, number)
    if not all(left for left, _ in entries):
        raise reading.error("formats_fio.values.zone_shares", found=repr(text))
    access = _fill_rest([_percent(left, reading) for left, _ in entries], reading)
    sizes = [size for _, size in entries]
    if absolute:
        if any(not size for size in sizes):
            raise reading.error("formats_fio.values.zone_sizes", found=repr(text))
        filled = [float(size or 0) for size in sizes]
    else:
        filled = _fill_rest(sizes, reading)
    return tuple(zip(access, filled, strict=True))


def _fill_rest(percents: Sequence[float | None], reading: Reading) -> list[float]:
    percent_sum = sum(p for p in percents if p is not None)
    missing = sum(p is None for p in percents)
    if percent_sum > 100 or (not missing and abs(percent_sum - 100) > 1e-6):
        raise reading.error("formats_fio.values.zones_sum", percent_sum=f"{percent_sum:g}")
    return [(100 - percent_sum) / missing if p is None else p for p in percents]


def file_service(text: str, reading: Reading) -> FileService:
    """Read `random:8`."""
    kind, _, number = text.strip().partition(":")
    if kind in ("zipf", "pareto", "normal", "gauss"):
        raise reading.error("formats_fio.values.file_service_unsupported", kind=kind)
    if kind not in ("random", "roundrobin", "sequential"):
        raise reading.error(
            "formats_fio.values.file_service",
            hint=nearest(kind, ("random", "roundrobin", "sequential")),
            found=repr(kind),
        )
    every = numbers.integer(number, reading, 1, 2**31) if number.strip() else None
    return FileService(kind=kind, every=every)  # type: ignore[arg-type]  # checked above


def name_list(text: str, reading: Reading) -> tuple[str, ...]:
    r"""Read `a:b:c`, where `\:` is a colon."""
    parts = [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", text.strip())]
    names = tuple(part for part in parts if part)
    if not names:
        raise reading.error("formats_fio.values.no_name")
    return names


def size_pair(text: str, reading: Reading) -> tuple[int, int]:
    """Read `1m` or `1m-2m`."""
    low, separator, high = text.strip().partition("-")
    smallest = numbers.size(low, reading)
    largest = numbers.size(high, reading) if separator else smallest
    if smallest > largest:
        raise reading.error("formats_fio.values.range_falls", found=repr(text.strip()))
    return smallest, largest


def delay(text: str, reading: Reading) -> tuple[int, int]:
    """Read `5` or `5-10` seconds, or with units. Nanoseconds."""
    low, separator, high = text.strip().partition("-")
    first = numbers.time_ns(low, reading, numbers.SECOND_NS)
    second = numbers.time_ns(high, reading, numbers.SECOND_NS) if separator else first
    if first > second:
        raise reading.error("formats_fio.values.range_falls", found=repr(text.strip()))
    return first, second


MAX_CPUS: Final = 4096


def cpu_list(text: str, reading: Reading) -> tuple[int, ...]:
    """Read `0-3,8`."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:\s*-\s*(\d{1,4}))?\s*", part)
        if match is None or int(match[2] or match[1]) >= MAX_CPUS:
            raise reading.error("formats_fio.values.cpus", found=repr(text.strip()))
        cpus.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    if not cpus:
        raise reading.error("formats_fio.values.no_cpu", found=repr(text.strip()))
    return tuple(sorted(cpus))


def cpu_mask(text: str, reading: Reading) -> tuple[int, ...]:
    """Read a bit mask of CPUs."""
    mask = numbers.integer(text, reading, 1, 2**63 - 1)
    return tuple(bit for bit in range(63) if mask >> bit & 1)


_PATTERN_PART = re.compile(
    r"""0[xX](?P<hex>[0-9a-fA-F]+)(?=0[xX]|[^0-9a-fA-FxX]|\Z)|"(?P<text>[^"]*)"|'(?P<file>[^']+)'"""
    r"""|(?P<offset>%o)|(?P<number>-?\d+?)(?=0[xX]|["'%-]|\Z)"""
)


def pattern(text: str, reading: Reading) -> tuple[int, ...]:
    """Read a pattern that is the same everywhere. Bytes."""
    pattern_bytes, offsets = pattern_with_offsets(text, reading)
    if offsets:
        raise reading.error("formats_fio.values.pattern_offset")
    return pattern_bytes


def pattern_with_offsets(text: str, reading: Reading) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Read `0xdeadbeef`, `"abcd"`, `12`, `'file'`, `%o` or several of them one after the other.

    Gives the bytes, and where in them the 8 bytes of an offset stand.
    """
    body, result, position = text.strip(), bytearray(), 0
    offsets: list[int] = []
    while position < len(body):
        match = _PATTERN_PART.match(body, position)
        if match is None:
            raise reading.error("formats_fio.values.pattern", found=repr(body))
        if match["hex"]:
            digits = match["hex"]
            result += bytes.fromhex("0" * (len(digits) % 2) + digits)
        elif match["text"] is not None:
            result += match["text"].encode()
        elif match["offset"]:
            offsets.append(len(result))
            result += bytes(8)
        elif match["file"] is not None:
            result += _pattern_file(match["file"], MAX_PATTERN_BYTES - len(result), reading)
        else:
            value = int(match["number"][:20])
            if not -(2**31) <= value < 2**32:
                raise reading.error("formats_fio.values.pattern_number", found=match["number"][:20])
            unsigned = value & 0xFFFFFFFF
            result += unsigned.to_bytes(max(1, (unsigned.bit_length() + 7) // 8), "little")
        position = match.end()
    if not 1 <= len(result) <= MAX_PATTERN_BYTES:
        raise reading.error("formats_fio.values.pattern_length", entries=len(result), most=MAX_PATTERN_BYTES)
    return tuple(result), tuple(offsets)


def _pattern_file(name: str, most_bytes: int, reading: Reading) -> bytes:
    """Return a file, or the start of one that is longer than a pattern may be."""
    most_bytes = max(most_bytes, 0)
    try:
        content = input_file.start(name, most_bytes + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise reading.error("formats_fio.values.pattern_file", found=repr(name), reason=reason) from None
    if len(content) > most_bytes:
        text = say("formats_fio.values.pattern_file_long", name=repr(name), most=f"{most_bytes:,}")
        reading.note("trap", text)
    return content[:most_bytes]


def error_numbers(text: str, reading: Reading) -> tuple[int, ...]:
    """Read `EIO:28`."""
    errnos: list[int] = []
    for part in (p.strip() for p in text.split(":")):
        if not part:
            continue
        number = getattr(errno, part, None) if part.startswith("E") else None
        if number is None and re.fullmatch(r"-?\d{1,4}", part):
            number = abs(int(part))
        if not isinstance(number, int) or number == 0:
            raise reading.error(
                "formats_fio.values.error_name",
                hint=nearest(part, tuple(errno.errorcode.values())),
                found=repr(part),
            )
        errnos.append(number)
    return tuple(errnos)


def percentiles(text: str, reading: Reading) -> tuple[float, ...]:
    """Read `50:90:99.9`."""
    percents = sorted({_percent(part, reading) for part in text.split(":") if part.strip()})
    if not 1 <= len(percents) <= 20:
        raise reading.error("formats_fio.values.percentiles", percents=len(percents))
    return tuple(percents)


def amount_or_none(text: str, reading: Reading, *, over_is_all: bool = False) -> Amount | None:
    """Read bytes or a percentage; 0 bytes is the same as not asked for."""
    value = numbers.amount(text, reading, over_is_all=over_is_all)
    return None if value.bytes == 0 else value
