"""The test's setup: times, how results are recorded, and how a test cycles.

Knows the section TEST SETUP in all its ages. Knows no worker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError, Where
from loadstone.formats.iometer.lines import number
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.formats.iometer.lines import IcfLines, Pair

TEST_TYPES: Final = (
    "NORMAL",
    "CYCLE_TARGETS",
    "CYCLE_WORKERS",
    "INCREMENT_TARGETS_PARALLEL",
    "INCREMENT_TARGETS_SERIAL",
    "CYCLE_WORKERS_AND_TARGETS",
    "CYCLE_OUTSTANDING_IOS",
    "CYCLE_OUTSTANDING_IOS_AND_TARGETS",
)
"""In the order of the numbers that old files have in their place."""
RECORDED: Final = ("ALL", "NO_TARGETS", "NO_WORKERS", "NO_MANAGERS", "NONE")
"""The same."""
STEPS: Final = ("LINEAR", "EXPONENTIAL")
"""The same."""
CPUS: Final = "NUMBER_OF_CPUS"
SECOND_NS: Final = 1_000_000_000

KEYS: Final = (
    "test description",
    "run time",
    "ramp up time (s)",
    "default disk workers to spawn",
    "default network workers to spawn",
    "default workers to spawn",
    "record results",
    "worker cycling",
    "disk cycling",
    "queue depth cycling",
    "test type",
    "end test setup",
)
_RAMP: Final = "ramp up time"


@dataclass(frozen=True, slots=True)
class Cycling:
    """From `start` on by adding or multiplying; `end` only where the file has one."""

    start: int = 1
    step: int = 1
    exponential: bool = False
    end: int | None = None
    where: Where | None = None


@dataclass(slots=True)
class Setup:
    """What the section says; what it does not say is as a new Iometer has it."""

    description: str = ""
    run_ns: int = 0
    """0: until someone stops it."""
    ramp_ns: int = 0
    disk_workers: int | None = None
    """None: one for each CPU."""
    recorded: str = "ALL"
    workers: Cycling = field(default_factory=Cycling)
    targets: Cycling = field(default_factory=Cycling)
    depth: Cycling = field(default_factory=lambda: Cycling(1, 2, exponential=True, end=32))
    test_type: str = "NORMAL"
    where: dict[str, Where] = field(default_factory=dict)
    """Key to where its value stands."""

    def at(self, key: str, fallback: Where) -> Where:
        """Return where the value of a key stands."""
        return self.where.get(key, fallback)


def read_setup(lines: IcfLines) -> Setup:
    """Read the section up to its end; files before 1999 end it with the next section."""
    setup = Setup()
    while True:
        line = lines.peek()
        if line is not None and line.is_key and line.text.upper().startswith(_OTHER_SECTIONS):
            return setup
        pair = lines.pair("TEST SETUP")
        if pair.key == "end test setup":
            return setup
        key = _RAMP if pair.key.startswith(_RAMP) else pair.key
        if key not in _READERS:
            raise lines.unknown(pair, "TEST SETUP", KEYS)
        setup.where[key] = pair.where
        _READERS[key](setup, pair)


_OTHER_SECTIONS: Final = ("'RESULTS DISPLAY", "'ACCESS SPECIFICATIONS", "'MANAGER LIST")


def _run_time(setup: Setup, pair: Pair) -> None:
    hours, minutes, seconds = pair.numbers("hours, minutes, seconds")
    setup.run_ns = ((hours * 60 + minutes) * 60 + seconds) * SECOND_NS
    if setup.run_ns >= 2**63:
        raise pair.wrong("formats_iometer.expected.time")


def _ramp_up_time(setup: Setup, pair: Pair) -> None:
    setup.ramp_ns = pair.numbers("seconds")[0] * SECOND_NS
    if setup.ramp_ns >= 2**63:
        raise pair.wrong("formats_iometer.expected.time")


def _default_workers(setup: Setup, pair: Pair) -> None:
    # In the files that have this key 0 stood for one worker for each CPU.
    setup.disk_workers = _workers(pair) or None


def _network_workers(_setup: Setup, pair: Pair) -> None:
    _workers(pair)  # For a network, which workers without a manager list have none of.


def _workers(pair: Pair) -> int | None:
    if pair.value.upper() == CPUS:
        return None
    count = number(pair.value)
    if count is None:
        raise pair.wrong("formats_iometer.expected.workers", cpus=CPUS)
    return count


def _word_or_number(pair: Pair, words: tuple[str, ...]) -> str:
    at = number(pair.value)
    if at is None:
        return pair.one_of(words)
    if at >= len(words):
        raise pair.wrong(
            "formats_iometer.expected.word_or_number", most=len(words) - 1, words=", ".join(words)
        )
    return words[at]


def _cycling(pair: Pair, names: str) -> Cycling:
    words = pair.value.replace(",", " ").split()
    wanted = names.split(", ")
    values = [number(word) for word in words[:-1]]
    kind = words[-1].upper() if words else ""
    if len(values) != len(wanted) or None in values or kind not in (*STEPS, "0", "1"):
        raise pair.wrong("formats_iometer.expected.cycling", names=names, example=_example(wanted))
    by_name = dict(zip(wanted, (value or 0 for value in values), strict=True))
    return Cycling(
        start=by_name["start"],
        step=by_name["step"],
        exponential=kind in ("EXPONENTIAL", "1"),
        end=by_name.get("end"),
        where=pair.where,
    )


def _example(names: list[str]) -> str:
    return "1 32 2 EXPONENTIAL" if "end" in names else "1 1 LINEAR"


def check_cycling(cycling: Cycling, what: str, fallback: Where) -> None:
    """Refuse a cycle that would never begin or never end."""
    where = cycling.where or fallback
    if cycling.start < 1:
        raise make_error(
            InputError, "formats_iometer.setup.cycling_start", where=where, what=what, start=cycling.start
        )
    if cycling.step < 1:
        raise make_error(
            InputError, "formats_iometer.setup.cycling_step", where=where, what=what, step=cycling.step
        )


def _into(field: str, read: Callable[[Pair], Any]) -> Callable[[Setup, Pair], None]:
    return lambda setup, pair: setattr(setup, field, read(pair))


_READERS: Final = {
    "test description": _into("description", lambda pair: pair.value),
    "run time": _run_time,
    _RAMP: _ramp_up_time,
    "default disk workers to spawn": _into("disk_workers", _workers),
    "default network workers to spawn": _network_workers,
    "default workers to spawn": _default_workers,
    "record results": _into("recorded", lambda pair: _word_or_number(pair, RECORDED)),
    "worker cycling": _into("workers", lambda pair: _cycling(pair, "start, step")),
    "disk cycling": _into("targets", lambda pair: _cycling(pair, "start, step")),
    "queue depth cycling": _into("depth", lambda pair: _cycling(pair, "start, end, step")),
    "test type": _into("test_type", lambda pair: _word_or_number(pair, TEST_TYPES)),
}
