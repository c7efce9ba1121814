"""General parameters, and host and replay definitions: what stands before any storage.

Knows their keywords. Does not know which of them a run can honour together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.errors import RefusedError
from loadstone.formats.vdbench import entity_values
from loadstone.formats.vdbench.keyword import Keyword, Table
from loadstone.formats.vdbench.values import (
    HOUR_S,
    MINUTE_S,
    choice,
    name,
    number,
    percent,
    texts,
    whole,
    yes,
)
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.errors import Where
    from loadstone.formats.vdbench.grammar import Parameter

_VALIDATIONS: Final = ("no", "yes", "read_after_write", "no_preread", "time")
_JOURNALS: Final = ("no", "yes", "recover", "noflush", "maponly", "only", "skip_read_all", "ignore_pending")
MAX_LOOPS: Final = 10_000
MAX_CLIENTS: Final = 1000
MAX_BUCKETS: Final = 64


@dataclass(frozen=True, slots=True)
class RunListLoop:
    """The whole run list again: `times`, or until `seconds` have gone by."""

    times: int = 1
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class General:
    """What holds for all runs."""

    at: Mapping[str, Where] = field(default_factory=dict)
    compratio: float | None = None
    dedupratio: float | None = None
    pattern: str | None = None
    """File whose bytes are written."""
    dedupunit: int | None = None
    formatsds: bool = False
    formatxfersize: int = 128 << 10
    histogram: tuple[str, ...] = ()
    loop: RunListLoop = RunListLoop()
    startcmd: str | None = None
    endcmd: str | None = None
    validate: tuple[str, ...] = ()
    """Empty: data is not verified."""
    journal: bool = False
    concatenatesds: bool = False
    """The SDs of a workload are one."""

    @property
    def verified_at(self) -> Where | None:
        """Where it says that data is verified; a journal is one of verified writes. None: it is not."""
        word = "validate" if self.validate else "journal" if self.journal else None
        return None if word is None else self.at[word]


@dataclass(frozen=True, slots=True)
class LoadHost:
    """A host that generates load. `system` None: the label is its name."""

    name: str
    where: Where
    at: Mapping[str, Where]
    system: str | None = None
    clients: int = 1

    @property
    def is_local(self) -> bool:
        """Whether it is this machine."""
        return (self.system or self.name) in ("localhost", "127.0.0.1")


def _ratio(parameter: Parameter) -> float:
    value = number(parameter).value
    if not 1 <= value <= 25:
        raise parameter.error("formats_vdbench.general.ratio", found=repr(parameter.text))
    return value


def _percent_as_ratio(parameter: Parameter) -> float:
    value = percent(parameter)
    if value < 4:
        raise parameter.error("formats_vdbench.general.percent_as_ratio", found=repr(parameter.text))
    return 100 / value


def _loop(parameter: Parameter) -> RunListLoop:
    word = name(parameter).lower()
    unit = {"s": 1, "m": MINUTE_S, "h": HOUR_S}.get(word[-1])
    digits = word if unit is None else word[:-1]
    if not digits.isascii() or not digits.isdigit() or not 0 < int(digits[:12]) <= MAX_LOOPS * HOUR_S:
        raise parameter.error("formats_vdbench.general.loop", found=repr(word[:40]))
    return RunListLoop(times=int(digits)) if unit is None else RunListLoop(0, int(digits) * unit)


def command(parameter: Parameter) -> str:
    """Read a command; where its output goes and who runs it are accepted and leave it as it is."""
    first, *rest = texts(parameter)
    for word in rest:
        choice(parameter, word, ("cons", "sum", "log", "master", "slave"))
    if not first.strip():
        raise parameter.error("formats_vdbench.general.command")
    return first


def _validate(parameter: Parameter) -> tuple[str, ...]:
    words = tuple(choice(parameter, word, _VALIDATIONS) for word in texts(parameter))
    return () if "no" in words else words


def _journal(parameter: Parameter) -> bool:
    words = [choice(parameter, word, _JOURNALS) for word in texts(parameter)]
    if "no" in words:
        return False
    for word in words:
        if word == "maponly":
            raise make_error(RefusedError, "formats_vdbench.general.maponly", where=parameter.where)
        if word not in ("yes", "noflush"):
            raise make_error(
                RefusedError, "formats_vdbench.general.journal", where=parameter.where, word=word
            )
    return True


def _histogram(parameter: Parameter) -> tuple[str, ...]:
    words = tuple(word.lower() for word in texts(parameter))
    bounds = [word for word in words if word not in ("default", "suppress")]
    for word in bounds:
        if not word[:-1].isdigit() or word[-1] not in "ums":
            raise parameter.error("formats_vdbench.general.bounds", found=repr(word[:40]))
    if len(bounds) > MAX_BUCKETS:
        raise parameter.error("formats_vdbench.general.bounds_many", bounds=len(bounds), most=MAX_BUCKETS)
    ordered = [bucket_us(word) for word in bounds]
    if ordered != sorted(set(ordered)):
        raise parameter.error("formats_vdbench.general.bounds_fall")
    return tuple(word for word in words if word != "default")


def bucket_us(word: str) -> int:
    """Return a bound such as 500u, 2m or 1s in microseconds."""
    return int(word[:-1]) * {"u": 1, "m": 1000, "s": 1_000_000}[word[-1]]


def _data_errors(parameter: Parameter) -> int:
    if any(not word.isdigit() for word in texts(parameter)):
        raise parameter.error("formats_vdbench.general.data_errors")
    return whole(parameter, least=1)


_FIRST_ERROR: Final = "changes nothing: a run ends at its first error, whatever the number"

GENERAL: Final = Table(
    "general section",
    [
        Keyword("compression", _percent_as_ratio, "compratio", exact=True),
        Keyword("compratio", _ratio),
        Keyword("compressionseed", harmless="changes nothing: the data of a run is made from its own seed"),
        Keyword("dedupratio", _ratio, exact=True),
        Keyword("dedupunit", entity_values.some_sectors, exact=True),
        Keyword("dedupsets", exact=True, harmless="changes nothing: repeats are drawn, not kept in sets"),
        Keyword("deduphotsets", exact=True, refused="is not supported: there are no sets of equal blocks"),
        Keyword("dedupflipflop", exact=True, refused="is not supported: there are no sets of equal blocks"),
        Keyword(
            "dedup", exact=True, refused="is not supported in this form: write dedupratio= and dedupunit="
        ),
        Keyword("port", harmless="changes nothing: there are no Java processes to talk to"),
        Keyword("pattern", name),
        Keyword("data_errors", _data_errors, harmless=_FIRST_ERROR),
        Keyword("dataerrors", _data_errors, "data_errors", harmless=_FIRST_ERROR),
        Keyword("swat", refused="is no longer supported, as in vdbench"),
        Keyword("validate", _validate),
        Keyword("journal", _journal, exact=True),
        Keyword("startcmd", command, exact=True),
        Keyword("start_cmd", command, "startcmd", exact=True),
        Keyword("endcmd", command, exact=True),
        Keyword("end_cmd", command, "endcmd", exact=True),
        Keyword("heartbeat_error", exact=True, harmless="changes nothing: there are no slaves"),
        Keyword("debug", exact=True, harmless="changes nothing: it is vdbench's own debugging"),
        Keyword("unix2windows", refused="is not supported on Linux"),
        Keyword("formatxfersize", entity_values.some_sectors),
        Keyword("create_anchors", yes),
        Keyword("formatsds", yes),
        Keyword("report", harmless="changes nothing: `loadstone export` writes every report"),
        Keyword("report_run_totals", harmless="changes nothing: the study adds its runs up"),
        Keyword("histogram", _histogram),
        Keyword("psrset", refused="is for Solaris: pin the process with taskset"),
        Keyword("auxreport", refused="is not supported: it loads Java classes"),
        Keyword("monitor", refused="is not supported: end a run with Ctrl-C"),
        Keyword("concatenatesds", yes),
        Keyword("messagescan", harmless="changes nothing: system messages are not scanned"),
        Keyword("abort_failed_skew", refused="is not supported: the report shows the skew that was reached"),
        Keyword("misc", refused="is not supported: its content is vdbench's own"),
        Keyword("pattern_buffer", exact=True, harmless="changes nothing: there is no buffer of patterns"),
        Keyword("showlba", exact=True, refused="is not supported: no list of addresses is written"),
        Keyword("ios_per_jvm", harmless="changes nothing: there are no Java processes"),
        Keyword("fwd_thread_adjust", harmless="changes nothing: threads are never rounded"),
        Keyword("timeout", harmless="changes nothing: I/O that does not come back is always told"),
        Keyword("loop", _loop, exact=True),
    ],
)

HOST: Final = Table(
    "host definition (hd=)",
    [
        Keyword("system", name),
        Keyword("vdbench", harmless="changes nothing: nothing is started from there"),
        Keyword("shell", harmless="changes nothing: --hosts says how a host is reached"),
        Keyword("user", harmless="changes nothing: --hosts says how a host is reached"),
        Keyword("jvms", harmless="changes nothing: one process generates all load"),
        Keyword("clients", lambda parameter: whole(parameter, least=1, most=MAX_CLIENTS)),
        Keyword("mount", refused="is not supported: mount before the run, or with startcmd="),
        Keyword("master", harmless="changes nothing: one process generates all load"),
    ],
)

REPLAY: Final = Table("replay group (rg=)", [Keyword("devices", refused="is not supported: replay is not")])
