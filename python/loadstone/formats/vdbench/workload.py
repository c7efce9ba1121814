"""Workload definitions: `wd=`.

Knows the keywords and vdbench's defaults. Does not know which SDs there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from loadstone.formats.vdbench import entity_values
from loadstone.formats.vdbench.entity_values import ONE_SIZE, RANDOM, Seek, Sizes
from loadstone.formats.vdbench.keyword import Keyword, Table
from loadstone.formats.vdbench.values import name, names, number, numbers, percent, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.errors import Where
    from loadstone.formats.vdbench.entity_values import Span
    from loadstone.formats.vdbench.grammar import Parameter


class Streams(NamedTuple):
    """Walks side by side; `sized`: a size was said, too, which vdbench 5.04.07 never looks at."""

    parts: int
    sized: bool


@dataclass(frozen=True, slots=True)
class WorkloadDefinition:
    """What I/O is done, and on which SDs. `skew` None: an equal part of what the others leave."""

    name: str
    where: Where
    at: Mapping[str, Where]
    sds: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ("*",)
    rdpct: int = 100
    xfersize: Sizes = ONE_SIZE
    seekpct: Seek = RANDOM
    rhpct: float = 0.0
    whpct: float = 0.0
    skew: float | None = None
    range: Span | None = None
    hotband: Span | None = None
    stride: tuple[int, int] | None = None
    iorate: float | None = None
    priority: int | None = None
    streams: Streams | None = None
    openflags: tuple[str, ...] | None = None
    threads: int = 0
    """Of joined SDs; elsewhere threads are those of each SD."""


def _reads(parameter: Parameter) -> int:
    return int(percent(parameter))


def _writes(parameter: Parameter) -> int:
    return 100 - int(percent(parameter))


def _skew(parameter: Parameter) -> float | None:
    return percent(parameter) or None


def _stride(parameter: Parameter) -> tuple[int, int]:
    bounds = [number.value for number in numbers(parameter)]
    if len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1]:
        raise parameter.error("formats_vdbench.workload.stride", found=repr(parameter.text))
    return int(bounds[0]), int(bounds[1])


def _streams(parameter: Parameter) -> Streams:
    if len(parameter.pieces) != 2:
        return Streams(whole(parameter, least=2), sized=False)
    number(replace(parameter, pieces=parameter.pieces[1:]))
    return Streams(whole(replace(parameter, pieces=parameter.pieces[:1]), least=2), sized=True)


def _priority(parameter: Parameter) -> int:
    return whole(parameter, least=1)


WD: Final = Table(
    "workload definition (wd=)",
    [
        Keyword("sd", names, "sds", exact=True),
        Keyword("skew", _skew),
        Keyword("xfersize", entity_values.sizes),
        Keyword("readpct", _reads, "rdpct"),
        Keyword("rdpct", _reads),
        Keyword("writepct", _writes, "rdpct"),
        Keyword("wrpct", _writes, "rdpct"),
        Keyword("range", entity_values.span),
        Keyword("hotband", entity_values.span),
        Keyword("seekpct", entity_values.seek),
        Keyword("stride", _stride),
        Keyword("priority", _priority),
        Keyword("iorate", entity_values.positive),
        Keyword("rhpct", percent),
        Keyword("whpct", percent),
        Keyword("host", names, "hosts"),
        Keyword("hd", names, "hosts", exact=True),
        Keyword("openflags", entity_values.flags),
        Keyword("user", name, exact=True, refused="is not supported: it loads a Java class"),
        Keyword("threads", entity_values.threads),
        Keyword("streams", _streams),
    ],
)
