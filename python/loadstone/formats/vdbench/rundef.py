"""Run definitions: `rd=`.

Knows the keywords, the forms of rates, and which keywords make loops in the order they are
written. Does not know what a run does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from loadstone.formats.vdbench import entity_values, filesystem
from loadstone.formats.vdbench.general import command
from loadstone.formats.vdbench.grammar import DASH
from loadstone.formats.vdbench.keyword import Keyword, Table
from loadstone.formats.vdbench.values import Number, choice, names, numbers, seconds, texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.errors import Where
    from loadstone.formats.vdbench.grammar import Parameter
    from loadstone.formats.vdbench.values import Reader

DEFAULT_ELAPSED_S: Final = 30
DEFAULT_POINTS: Final = (10.0, 50.0, 70.0, 80.0, 90.0, 100.0)
PROCESSES: Final = ("exponential", "uniform", "deterministic")
RATE: Final = "iorate"
"""The loop over rates, always the innermost."""


class IoRate(NamedTuple):
    """A rate: as fast as it goes, that and a curve of shares of it, a number, or a percentage.

    A percentage is one of what the run before reached.
    """

    kind: Literal["max", "curve", "number", "percent"]
    value: float = 0.0

    def __str__(self) -> str:
        if self.kind == "number":
            return f"{self.value:g}"
        return f"{self.value:g}%" if self.kind == "percent" else self.kind


LoopValue = Number | IoRate | str
MULTIPLES: Final = 100
"""Below this `maxdata=` is a multiple of the SDs' size."""


class Loop(NamedTuple):
    """What one keyword loops over."""

    values: tuple[LoopValue, ...]
    where: Where


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How I/Os of a stated rate arrive."""

    kind: str = PROCESSES[0]
    variable: bool = False
    """The rate is a list of rates and seconds."""
    spike: bool = False


@dataclass(frozen=True, slots=True)
class MaxData:
    """End after so many bytes, or after so many times the SDs' size."""

    amount: float
    of: Literal["all", "read", "write"]

    @property
    def is_multiple(self) -> bool:
        """Whether it counts the SDs' size, not bytes."""
        return self.amount < MULTIPLES


@dataclass(frozen=True, slots=True)
class RunDefinition:
    """One `rd=`: which workloads, how fast, how long, and what is looped over."""

    name: str
    where: Where
    at: Mapping[str, Where]
    wds: tuple[str, ...] = ()
    sds: tuple[str, ...] | None = None
    fwds: tuple[str, ...] = ()
    fsds: tuple[str, ...] | None = None
    iorate: tuple[IoRate, ...] = ()
    fwdrate: tuple[IoRate, ...] = ()
    curve: tuple[float, ...] = DEFAULT_POINTS
    stopcurve: float | None = None
    elapsed: int = DEFAULT_ELAPSED_S
    interval: int = 1
    warmup: int = 0
    pause: int = 0
    arrivals: Arrivals = Arrivals()
    maxdata: tuple[MaxData, ...] = ()
    openflags: tuple[str, ...] | None = None
    startcmd: str | None = None
    endcmd: str | None = None
    operations: tuple[str, ...] = ()
    format: tuple[str, ...] = ("no",)
    loops: Mapping[str, Loop] = field(default_factory=dict)


def rates(parameter: Parameter) -> tuple[IoRate, ...]:
    """Read `iorate=`: max, curve, numbers and percentages."""
    words = [word.lower() for word in texts(parameter)]
    if words in (["max"], ["curve"]):
        return (IoRate("max") if words == ["max"] else IoRate("curve"),)
    if "max" in words and DASH not in words:
        each = [None if word == "max" else numbers(_only(parameter, word))[0] for word in words]
        return tuple(IoRate("max") if one is None else _rate(parameter, one) for one in each)
    if not parameter.listed and words[0][:1].isalpha():
        raise parameter.error("formats_vdbench.rundef.rates", found=repr(parameter.text[:40]))
    return tuple(_rate(parameter, one) for one in numbers(parameter))


def _only(parameter: Parameter, word: str) -> Parameter:
    return type(parameter)(parameter.keyword, word, (word,), listed=False, where=parameter.where)


def _rate(parameter: Parameter, number: Number) -> IoRate:
    if number.value < 0 or number.value > 1e9:
        raise parameter.error("formats_vdbench.rundef.rate", value=f"{number.value:g}")
    return IoRate("percent" if number.percent else "number", number.value)


def _points(parameter: Parameter) -> tuple[float, ...]:
    percents = [int(number.value) for number in numbers(parameter)]
    if any(not 0 < value <= 10_000 for value in percents):
        raise parameter.error("formats_vdbench.rundef.point", found=",".join(map(str, percents)))
    if len(set(percents)) != len(percents):
        raise parameter.error("formats_vdbench.rundef.point_twice")
    return tuple(float(value) for value in percents)


def _arrivals(parameter: Parameter) -> Arrivals:
    kind, variable, spike = "exponential", False, False
    for word in texts(parameter):
        arrival = choice(parameter, word, (*PROCESSES, "variable", "spike"))
        if arrival in PROCESSES:
            kind = arrival
        else:
            variable, spike = True, spike or arrival == "spike"
    return Arrivals(kind, variable, spike)


def _max_data(of: Literal["all", "read", "write"]) -> Reader:
    def read(parameter: Parameter) -> MaxData:
        return MaxData(entity_values.positive(parameter), of)

    return read


def _hits(parameter: Parameter) -> tuple[LoopValue, ...]:
    return tuple(Number(_share(parameter, one)) for one in numbers(parameter))


def _share(parameter: Parameter, number: Number) -> float:
    if not 0 <= number.value <= 100:
        raise parameter.error("formats_vdbench.rundef.share", value=f"{number.value:g}")
    return number.value


def _seeks(parameter: Parameter) -> tuple[LoopValue, ...]:
    if not parameter.listed and parameter.text == "-1":
        return (Number(-1.0),)
    return _hits(parameter)


def _transfer_sizes(parameter: Parameter) -> tuple[LoopValue, ...]:
    sizes = numbers(parameter)
    for one in sizes:
        if one.value <= 0 or one.value % entity_values.SECTOR_BYTES or one.percent or one.value >= 2**31:
            raise parameter.error(
                "formats_vdbench.rundef.transfer_sizes",
                value=f"{one.value:g}",
                sector=entity_values.SECTOR_BYTES,
            )
    return sizes


def _counts(parameter: Parameter) -> tuple[LoopValue, ...]:
    counts = tuple(Number(float(int(one.value))) for one in numbers(parameter))
    if any(not 0 <= one.value < 2**31 for one in counts):
        raise parameter.error("formats_vdbench.rundef.counts", found=repr(parameter.text[:40]))
    return counts


def _threads(parameter: Parameter) -> tuple[LoopValue, ...]:
    counts = _counts(parameter)
    if any(isinstance(one, Number) and one.value > entity_values.MAX_THREADS for one in counts):
        raise parameter.error("formats_vdbench.rundef.threads", most=entity_values.MAX_THREADS)
    # A count of 0 is raised to 1, as vdbench does.
    return tuple(Number(max(1.0, one.value)) for one in counts if isinstance(one, Number))


def _areas(parameter: Parameter) -> tuple[LoopValue, ...]:
    areas = numbers(parameter)
    if any(one.value < 0 for one in areas):
        raise parameter.error("formats_vdbench.filesystem.sizes", found=repr(parameter.text[:40]))
    return areas


def _ratios(parameter: Parameter) -> tuple[LoopValue, ...]:
    ratios = numbers(parameter)
    if any(not 1 <= one.value <= 25 for one in ratios):
        raise parameter.error("formats_vdbench.rundef.ratios", found=repr(parameter.text[:40]))
    return ratios


def _percents_as_ratios(parameter: Parameter) -> tuple[LoopValue, ...]:
    if any(not 4 <= one.value <= 100 for one in numbers(parameter)):
        raise parameter.error("formats_vdbench.rundef.percents", found=repr(parameter.text[:40]))
    return tuple(Number(round(100 / one.value, 3)) for one in numbers(parameter))


def _operations(parameter: Parameter) -> tuple[LoopValue, ...]:
    return filesystem.operations(parameter)


_LOOPS: Final = (
    ("xfersize", _transfer_sizes, "xfersize"),
    ("threads", _threads, "threads"),
    ("rdpct", _hits, "rdpct"),
    ("rhpct", _hits, "rhpct"),
    ("whpct", _hits, "whpct"),
    ("seekpct", _seeks, "seekpct"),
    ("hitarea", _areas, "hitarea"),
    ("compratio", _ratios, "compratio"),
    ("compression", _percents_as_ratios, "compratio"),
    ("depth", _counts, "depth"),
    ("width", _counts, "width"),
    ("files", _counts, "files"),
    ("sizes", _areas, "sizes"),
    ("totalsize", _areas, "totalsize"),
    ("wss", _areas, "wss"),
    ("workingsetsize", _areas, "wss"),
)
"""Keyword (also with `for` before it), reader, name of the loop; searched in this order."""

_LOOP: Final = "loop:"
"""Begins the field of a keyword that loops."""

RD: Final = Table(
    "run definition (rd=)",
    [
        Keyword("wd", names, "wds", exact=True),
        Keyword("sd", names, "sds", exact=True),
        Keyword("fsd", names, "fsds", exact=True),
        Keyword("iorate", rates),
        Keyword("maxdata", _max_data("all"), "maxdata:all", exact=True),
        Keyword("maxdataread", _max_data("read"), "maxdata:read", exact=True),
        Keyword("maxdatawritten", _max_data("write"), "maxdata:write", exact=True),
        Keyword("curve", _points),
        Keyword("stopcurve", entity_values.positive),
        Keyword("elapsed", seconds),
        Keyword("interval", seconds),
        Keyword("warmup", seconds),
        Keyword(
            "replay", exact=True, refused="is not supported: traces are not replayed from parameter files"
        ),
        Keyword("pause", seconds),
        *(Keyword(f"for{word}", reader, _LOOP + loop) for word, reader, loop in _LOOPS),
        Keyword("foroperations", _operations, _LOOP + "operations"),
        *(Keyword(word, reader, _LOOP + loop) for word, reader, loop in _LOOPS),
        Keyword("distribution", _arrivals, "arrivals"),
        Keyword("startcmd", command),
        Keyword("start_cmd", command, "startcmd"),
        Keyword("endcmd", command),
        Keyword("end_cmd", command, "endcmd"),
        Keyword("fwd", names, "fwds", exact=True),
        Keyword("fwdrate", rates),
        Keyword("operations", filesystem.operations),
        Keyword("format", filesystem.formats),
        Keyword("openflags", entity_values.flags),
        Keyword("mount", refused="is not supported: mount before the run, or with startcmd="),
    ],
)


def loop_of(row: Keyword) -> str | None:
    """Return the name of the loop a keyword makes, None when it makes none."""
    return row.field.removeprefix(_LOOP) if row.field.startswith(_LOOP) else None
