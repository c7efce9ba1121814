"""Managers, their workers and the workers' targets.

Knows the section MANAGER LIST in all its ages. Knows no access specification but its name,
and no target but its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError, Where
from loadstone.formats.iometer.lines import number, plain
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from loadstone.formats.iometer.lines import IcfLines, Pair

END_KEY: Final = "end manager list"
MANAGER_KEY: Final = "manager id,manager name"
_SHORT_SETTINGS: Final = "number of outstanding ios,test connection rate,transactions per connection"
_SETTINGS: Final = f"{_SHORT_SETTINGS},use fixed seed,fixed seed value"
_SHORT_DISK: Final = "disk maximum size,starting sector"
_DISK: Final = f"{_SHORT_DISK},data pattern"
_RANDOM_DATA_DISK: Final = f"{_SHORT_DISK},use random data"
_DISK_KEYS: Final = (_SHORT_DISK, _DISK, _RANDOM_DATA_DISK)
_SETTING_KEYS: Final = (_SHORT_SETTINGS, _SETTINGS)
_NETWORK_KEYS: Final = ("local network interface", "vi outstanding ios", "target manager id,manager name")
_WORKER_KEYS: Final = (
    "default target settings for worker",
    "assigned access specs",
    "target assignments",
    "end worker",
)
KEYS: Final = (
    MANAGER_KEY,
    "manager network address",
    "worker",
    "worker type",
    *_WORKER_KEYS,
    *_SETTING_KEYS,
    *_DISK_KEYS,
    *_NETWORK_KEYS,
    "target",
    "target type",
)
MAX_TRANSACTIONS: Final = 2**31 - 1
DATA_PATTERNS: Final = ("repeating bytes", "pseudo random", "full random")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a worker uses each of its targets."""

    outstanding_ios: int = 1
    transactions_per_connection: int | None = None
    """I/Os between an open of the target and its close; None: it stays open."""
    seed: int | None = None
    """None: another one in each run."""
    max_sectors: int = 0
    """0: all there is."""
    start_sector: int = 0
    data_pattern: int | None = None
    """Place in `DATA_PATTERNS`; None in files older than that."""


@dataclass(frozen=True, slots=True)
class IometerTarget:
    """A drive by the name Iometer has for it, and how it is used where it has its own settings."""

    name: str
    where: Where
    settings: Settings | None = None


@dataclass(slots=True)
class IometerWorker:
    """A thread of a manager."""

    name: str
    where: Where
    settings: Settings = field(default_factory=Settings)
    specs: list[tuple[str, Where]] = field(default_factory=list)
    """Names of its access specifications, in the order they are run."""
    targets: list[IometerTarget] = field(default_factory=list)


@dataclass(slots=True)
class Manager:
    """A host that generates load."""

    number: int
    name: str
    address: str
    where: Where
    workers: list[IometerWorker] = field(default_factory=list)


def read_managers(lines: IcfLines) -> list[Manager]:
    """Read the section up to its end."""
    managers: list[Manager] = []
    while True:
        pair = lines.pair("MANAGER LIST")
        if pair.key == END_KEY:
            return managers
        if pair.key != MANAGER_KEY:
            raise lines.unknown(pair, "MANAGER LIST", (MANAGER_KEY, END_KEY))
        text, _, name = pair.value.partition(",")
        at = number(text.strip())
        if at is None:
            raise pair.wrong("formats_iometer.expected.numbered_name")
        # Programs that write configurations leave the name out; its number is one, too.
        manager = Manager(at, name.strip() or str(at), "", pair.where)
        managers.append(manager)
        _read_manager(lines, manager)


def _read_manager(lines: IcfLines, manager: Manager) -> None:
    inside = f"manager {manager.name!r}"
    while True:
        pair = lines.pair(inside)
        if pair.key == "end manager":
            return
        if pair.key == "manager network address":
            manager.address = pair.value
        elif pair.key == "worker":
            manager.workers.append(_read_worker(lines, pair))
        else:
            raise lines.unknown(pair, inside, ("manager network address", "worker", "end manager"))


def _read_worker(lines: IcfLines, named: Pair) -> IometerWorker:
    worker = IometerWorker(named.value or "Worker", named.where)
    inside = f"worker {worker.name!r}"
    while True:
        line = lines.peek()
        key = plain(line.text) if line is not None and line.is_key else ""
        if key == "assigned access specs":
            lines.take()
            worker.specs += list(lines.values(inside))
            _end(lines, "end assigned access specs", inside)
        elif key == "default target settings for worker":
            lines.take()
            worker.settings = _read_settings(lines, inside, key, worker.settings)
        elif key == "target assignments":
            lines.take()
            _read_targets(lines, worker, inside)
        else:
            pair = lines.pair(inside)
            if pair.key == "end worker":
                return worker
            if pair.key != "worker type":
                raise lines.unknown(pair, inside, (*_WORKER_KEYS, "worker type"))
            _only_disks(pair, inside)


def _only_disks(pair: Pair, inside: str) -> None:
    kind = pair.fields()[0].upper()
    if kind == "NETWORK":
        raise make_error(RefusedError, "formats_iometer.managers.network", where=pair.where, inside=inside)
    if kind != "DISK":
        raise pair.wrong("formats_iometer.expected.disk", hint=nearest(kind, ("DISK", "NETWORK")))


def _end(lines: IcfLines, wanted: str, inside: str) -> None:
    line = lines.take()
    if line is None or not line.is_key or plain(line.text) != wanted:
        shown = "the end of the file" if line is None else repr(line.text[:60])
        raise make_error(
            InputError,
            "formats_iometer.managers.found",
            where=lines.where(line),
            found=shown,
            inside=inside,
            expected=wanted,
        )


def _read_targets(lines: IcfLines, worker: IometerWorker, inside: str) -> None:
    while True:
        pair = lines.pair(inside)
        if pair.key == "end target assignments":
            return
        if pair.key != "target":
            raise lines.unknown(pair, f"the targets of {inside}", ("target", "end target assignments"))
        if not pair.value:
            raise pair.wrong("formats_iometer.expected.target_name")
        worker.targets.append(_read_target(lines, pair, worker.settings))


def _read_target(lines: IcfLines, named: Pair, settings: Settings) -> IometerTarget:
    inside = f"target {named.value!r}"
    own: Settings | None = None
    while True:
        line = lines.peek()
        key = plain(line.text) if line is not None and line.is_key else ""
        if key in _SETTING_KEYS or key in _DISK_KEYS:
            own = _setting(lines.pair(inside), own or settings, inside)
            continue
        pair = lines.pair(inside)
        if pair.key == "end target":
            return IometerTarget(named.value, named.where, own)
        if pair.key != "target type":
            raise lines.unknown(pair, inside, ("target type", "end target", _SETTINGS, _DISK))
        _only_disks(pair, inside)


def _read_settings(lines: IcfLines, inside: str, section: str, settings: Settings) -> Settings:
    while True:
        pair = lines.pair(inside)
        if pair.key == f"end {section}":
            return settings
        if pair.key not in (*_SETTING_KEYS, *_DISK_KEYS):
            raise lines.unknown(pair, inside, (*_SETTING_KEYS, *_DISK_KEYS))
        settings = _setting(pair, settings, inside)


def _setting(pair: Pair, settings: Settings, inside: str) -> Settings:
    if pair.key in _DISK_KEYS:
        return _disk(pair, settings)
    fields = pair.fields()
    if len(fields) != (5 if pair.key == _SETTINGS else 3):
        raise pair.wrong(
            "formats_iometer.expected.values", values=5 if pair.key == _SETTINGS else 3, key=pair.key
        )
    depth, rate = number(fields[0]), fields[1].upper()
    if depth is None or not 1 <= depth <= 2**20:
        raise pair.wrong("formats_iometer.expected.outstanding")
    if rate not in ("ENABLED", "DISABLED"):
        raise pair.wrong("formats_iometer.expected.connection_rate")
    ios = _transactions(pair, fields[2], inside) if rate == "ENABLED" else None
    seed = None
    if pair.key == _SETTINGS:
        if fields[3].upper() not in ("ENABLED", "DISABLED"):
            raise pair.wrong("formats_iometer.expected.fixed_seed")
        seed = number(fields[4])
        if seed is None:
            raise pair.wrong("formats_iometer.expected.seed")
        seed = seed if fields[3].upper() == "ENABLED" else None
    return replace(settings, outstanding_ios=depth, transactions_per_connection=ios, seed=seed)


def _transactions(pair: Pair, field: str, inside: str) -> int:
    """Return how many transactions a connection has; a transaction is an I/O."""
    ios = number(field)
    if ios is None or ios > MAX_TRANSACTIONS:
        raise pair.wrong("formats_iometer.expected.transactions", most=MAX_TRANSACTIONS)
    if not ios:
        raise make_error(
            RefusedError, "formats_iometer.managers.no_transactions", where=pair.where, inside=inside
        )
    return ios


def _disk(pair: Pair, settings: Settings) -> Settings:
    names = ["maximum size", "starting sector"]
    if pair.key != _SHORT_DISK:
        names.append("data pattern")
    values = pair.numbers(", ".join(names))
    pattern = values[2] if len(values) > 2 else None
    if pair.key == _RANDOM_DATA_DISK and pattern is not None:
        pattern = 2 if pattern else 1
    if pattern is not None and pattern >= len(DATA_PATTERNS):
        known = ", ".join(f"{at} ({name})" for at, name in enumerate(DATA_PATTERNS))
        raise pair.wrong("formats_iometer.expected.data_pattern", known=known)
    if (values[0] + values[1]) * 512 >= 2**63:
        raise pair.wrong("formats_iometer.expected.sectors")
    return replace(settings, max_sectors=values[0], start_sector=values[1], data_pattern=pattern)
