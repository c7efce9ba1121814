"""Numbers for people: as many digits as they carry, three at most without an error, and a unit that fits.

Knows how a value is written. Knows no analysis. What is not known is written as a dash.
"""

from __future__ import annotations

import math
from typing import Final, Protocol


class Estimated(Protocol):
    """A value with one standard error, when that is known."""

    @property
    def value(self) -> float:
        """The value."""

    @property
    def error(self) -> float | None:
        """One standard error."""


NONE: Final = "–"
THIN: Final = "\N{NO-BREAK SPACE}"
LEAST_ERROR: Final = 0.001
"""Of the smallest unit: nobody measures less."""

MAX_DIGITS: Final = 4
"""Of a value with an error, however small that is: more would not be read."""

_TIME: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BINARY: Final = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_DECIMAL: Final = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_COUNT: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_Steps = tuple[tuple[float, str], ...]
_STEPS_OF: Final[dict[str, tuple[_Steps, str]]] = {
    "time": (_TIME, ""),
    "binary": (_BINARY, "/s"),
    "count": (_COUNT, ""),
}


def digits(value: float) -> str:
    """Three significant digits without an exponent; a small value is written as a bound, not as zero."""
    size = abs(value)
    if 0 < size < 0.0005:
        return "<0.001" if value > 0 else ">-0.001"
    if size >= 99.95 or value == 0:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995:
        return f"{value:.2f}"
    return f"{value:.3f}"


def percent(value: float) -> str:
    """Percents with the digits that tell something: two below 10, none of what is next to nothing."""
    size = abs(value)
    if 0 < size < 0.1:
        return f"<0.1{THIN}%" if value > 0 else f">-0.1{THIN}%"
    text = (
        f"{value:.0f}" if size >= 9.95 or value == 0 else f"{value:.1f}" if size >= 0.95 else f"{value:.2g}"
    )
    return f"{text.removesuffix('.0')}{THIN}%"


def change(share: float, places: int) -> str:
    """Write a change in percent without its unit: `+12`; a fall to something is none to nothing, -100."""
    text = f"{share * 100:+.{places}f}"
    if share > -1 and float(text) == -100:
        return change(share, places + 1) if share > -0.9999 else ">-99.99"
    return text if float(text) else text.lstrip("-+")


def _scaled(value: float, steps: _Steps) -> tuple[float, str]:
    # 0.9995 so that 999.96 becomes 1.00 of the next unit and not 1000 of this one.
    return next(((size, unit) for size, unit in steps if abs(value) >= size * 0.9995), steps[-1])


def _with_unit(value: float, steps: _Steps, suffix: str = "") -> str:
    size, unit = _scaled(value, steps)
    exact = size == 1.0 and float(value).is_integer()
    text = f"{value:.0f}" if exact else digits(value / size)
    return f"{text}{THIN}{unit}{suffix}".removesuffix(THIN)


def duration(value_ns: float | None) -> str:
    """Nanoseconds, as `123 µs`."""
    return NONE if value_ns is None else _with_unit(value_ns, _TIME)


def seconds(value_s: float | None) -> str:
    """Seconds of a run: `12.3 s`, `4 min 10 s`."""
    if value_s is None:
        return NONE
    if value_s < 120:
        return _with_unit(value_s * 1e9, _TIME)
    minutes, rest = divmod(round(value_s), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{number}{THIN}{unit}" for number, unit in parts if number)


def whole_seconds(value_s: float) -> str:
    """Write time that is left, without decimals, which would only flicker."""
    rounded = max(1, round(value_s))
    return seconds(rounded) if rounded >= 120 else f"{rounded}{THIN}s"


def size(value_bytes: float | None) -> str:
    """Bytes, as `1.50 GiB`."""
    return NONE if value_bytes is None else _with_unit(value_bytes, _BINARY)


def bandwidth(value: float | None) -> str:
    """Bytes per second, as `100 MiB/s`."""
    return NONE if value is None else _with_unit(value, _BINARY, "/s")


def bandwidth_decimal(value: float | None) -> str:
    """Bytes per second in powers of 1000, as `105 MB/s`."""
    return NONE if value is None else _with_unit(value, _DECIMAL, "/s")


def count(value: float | None) -> str:
    """Write a number of things, as `12.3k`."""
    if value is None:
        return NONE
    scale, unit = _scaled(value, _COUNT)
    exact = scale == 1.0 and float(value).is_integer()
    return f"{value:.0f}" if exact else f"{digits(value / scale)}{unit}"


def with_error(estimate: Estimated | None, steps_of: str) -> str:
    """Write an estimate and its standard error in one unit: `12.34k ± 0.12k`, `102 ± 4 µs`.

    The error has two digits where its first three are below 355 and else one (Particle Data
    Group, Review of Particle Physics, section 5.3), and the value ends where the error ends.
    `steps_of`: `time`, `binary` (bytes per second) or `count`.
    """
    return _written(estimate, steps_of, error=True)


def figure(estimate: Estimated | None, steps_of: str) -> str:
    """Write an estimate where its error has no room, with the digits that it has beside its error."""
    return _written(estimate, steps_of, error=False)


def error(value: float, steps_of: str) -> str:
    """Write an error by itself, with one or two digits as beside its value: nobody knows the third one."""
    steps, suffix = _STEPS_OF[steps_of]
    scale, unit = _scaled(value, steps)
    text = _to_the_error(value / scale, value / scale)[1] if value else digits(value)
    if 0 < value / scale < LEAST_ERROR:
        text = f"<{LEAST_ERROR:g}"  # Of a rate that was asked for and held to the last I/O.
    return text + (unit if steps_of == "count" else f"{THIN}{unit}{suffix}")


def _written(estimate: Estimated | None, steps_of: str, *, error: bool) -> str:
    if estimate is None:
        return NONE
    steps, suffix = _STEPS_OF[steps_of]
    scale, unit = _scaled(estimate.value, steps)
    if estimate.error:
        # What its error rounds to 1000 of this unit is 1.00 of the next one.
        rounded = float(_to_the_error(estimate.value / scale, estimate.error / scale)[0]) * scale
        scale, unit = _scaled(max(abs(estimate.value), abs(rounded)), steps)
    unit = unit + suffix if steps_of == "count" else f"{THIN}{unit}{suffix}"
    value = estimate.value / scale
    if not estimate.error:
        return digits(value) + unit
    text, error_text = _to_the_error(value, estimate.error / scale)
    # A prefix alone stands at both numbers; a unit after both.
    own = unit if steps_of == "count" else ""
    return f"{text}{own}{THIN}±{THIN}{error_text}{unit}" if error else f"{text}{unit}"


def _to_the_error(value: float, error: float) -> tuple[str, str]:
    """Return both with the places the error carries, at most `MAX_DIGITS` digits of the value."""
    power = math.floor(math.log10(error))
    leading = error / 10.0**power
    places = (1 if leading < 3.55 else 0) - power
    # Of the larger of the two, so that a value near zero is not written to the last atom.
    most = MAX_DIGITS - 1 - math.floor(math.log10(max(abs(value), error)))
    places = min(places, most)
    text, error_text = (f"{round(one, places):.{max(0, places)}f}" for one in (value, error))
    small = 10.0**-places
    return text, f"<{small:.{max(0, places)}f}" if error < small / 2 else error_text
