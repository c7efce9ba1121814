"""Watched hosts: what each did over the time of the load, quantity by quantity.

Knows the columns of a watched host's rows, and how rates, shares and levels follow from them, each
with its error. A group of counters that was told over another time than its row has its own
`GROUP.dt_ns`. Judges nothing; what was not told is missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np
import polars as pl

from loadstone import units
from loadstone.analysis.document import ResultWatched, ResultWatchedQuantity, ResultWatchGap
from loadstone.analysis.estimate import ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.measurement import Measurement
    from loadstone.bundle.read import Bundle

WatchKind = Literal["ssh", "snmp", "http", "local"]
Unit = Literal["percent", "bytes_per_s", "bytes", "per_s", "count", "celsius"]
Lane = Literal["cpu", "disks", "network", "memory", "other"]

SLACK_NS: Final = 20_000_000
SLIVER: Final = 0.2
"""Of the usual time between two looks."""
FAR_OFF_NS: Final = 100_000_000
"""A clock that is further off than this puts a second's row beside the wrong second of a log."""
MOST_CORES: Final = 4096
MOST_NAMED: Final = 64
"""Of more disks or interfaces those that did most have quantities of their own."""
LOOPBACK: Final = ("lo", "lo0")
OVER_OTHERS: Final = ("dm-", "md", "zd", "drbd", "bcache")
"""Devices that have others below them, where the host does not say which."""
PARTS: Final = tuple(re.compile(one) for one in (r"(?<=\D)\d+$", r"(?<=\d)p\d+$", r"(?<=\d)c\d+(?=n\d+$)"))
"""What the name of a part has more than its disk's: sda1, nvme0n1p1, and the path nvme0c1n1 of nvme0n1.

da10 is no part of da1."""
MEMORY_DISKS: Final = ("zram", "ram", "fd", "sr", "cd")
CPU_KINDS: Final = {"user": "user", "system": "system", "irq": "irq", "iowait": "I/O wait", "steal": "stolen"}
MEMORY: Final = {
    "memory.cached_bytes": ("memory_cache_bytes", "memory cache"),
    "memory.dirty_bytes": ("memory_dirty_bytes", "dirty memory"),
    "memory.available_bytes": ("memory_available_bytes", "memory available"),
    "memory.free_bytes": ("memory_free_bytes", "memory free"),
    "zfs.arc.size_bytes": ("zfs_arc_bytes", "ZFS ARC"),
}
RATES: Final = {
    "nfsd.calls": "NFS calls",
    "nfsd.reads": "NFS reads",
    "nfsd.writes": "NFS writes",
    "nfsd.commits": "NFS commits",
    "zfs.zil.commits": "ZFS log commits",
}


@dataclass(frozen=True, slots=True)
class WatchedHost:
    """A host that was watched, and all rows it told."""

    name: str
    kind: str
    url: str
    interval_ns: int
    facts: Mapping[str, Any]
    rows: pl.DataFrame
    account: Mapping[str, Any] | None
    """How watching went, and what it cost; None in a run that did not end."""

    @property
    def same_host(self) -> bool:
        """Whether it is the very machine that made the load."""
        return bool(self.facts.get("same_host"))

    @property
    def gaps(self) -> Sequence[Mapping[str, Any]]:
        """Times without rows, and why."""
        gaps: Sequence[Mapping[str, Any]] = (self.account or {}).get("gaps", ())
        return gaps


@dataclass(frozen=True, slots=True)
class Track:
    """One quantity over time: `numerators` over `denominators`, one of each for every row that has it."""

    key: str
    name: str
    unit: Unit
    lane: Lane
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    numerators: NDArray[np.float64]
    denominators: NDArray[np.float64]
    total: bool = False
    """It is of the host as a whole: a lane shows it first."""

    @property
    def values(self) -> NDArray[np.float64]:
        """What each row says."""
        return self.numerators / self.denominators

    @property
    def mean(self) -> Estimate:
        """Over all rows, weighed by their time."""
        strata = np.zeros(len(self.numerators), dtype=np.int64)
        estimate = ratio(self.numerators, self.denominators, strata, self.unit)
        assert estimate is not None  # noqa: S101 - a track has rows, and their time is above zero
        return estimate

    @property
    def most(self) -> float:
        """The largest of the rows."""
        return float(self.values.max())


def hosts(bundle: Bundle) -> list[WatchedHost]:
    """Return every host that was watched, in the order it was given."""
    watches = {str(one["name"]): one for one in bundle.events if one.get("type") == "watch"}
    ends = {str(one["name"]): one for one in bundle.events if one.get("type") == "watch_end"}
    return [
        WatchedHost(
            name,
            str(one["kind"]),
            str(one["url"]),
            int(one["interval_ns"]),
            dict(one.get("facts") or {}),
            bundle.watched(name),
            ends.get(name),
        )
        for name, one in watches.items()
    ]


def within(rows: pl.DataFrame, bounds_ns: tuple[int, int]) -> pl.DataFrame:
    """Return the rows of which most lies in a time."""
    middle = pl.col("t_ns") - pl.col("dt_ns") // 2
    return rows.filter((middle >= bounds_ns[0] - SLACK_NS) & (middle <= bounds_ns[1] + SLACK_NS))


def tracks(rows: pl.DataFrame, facts: Mapping[str, Any]) -> list[Track]:
    """Return all quantities that rows tell, the most general first."""
    if rows.height == 0:
        return []
    # The look that ends a run may follow the one before at once: its rates are the timer's, not the host's.
    of = _Columns(rows.filter(pl.col("dt_ns") >= SLIVER * pl.col("dt_ns").median()))
    all_tracks = [
        *_cpu(of),
        *_group(of, facts),
        *_disks(of, facts),
        *_net(of, facts),
        *_memory(of),
        *_others(of),
    ]
    return [one for one in all_tracks if one is not None]


class _Columns:
    """The rows as numbers, column by column; NaN where a row does not tell."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.names = rows.columns
        self._rows = rows
        self.end_ns = rows["t_ns"].to_numpy()
        self.dt_ns = rows["dt_ns"].to_numpy().astype(np.float64)

    def __contains__(self, name: str) -> bool:
        return name in self._rows.columns

    def get(self, name: str) -> NDArray[np.float64]:
        """Return a column, NaN where the host did not report it."""
        if name not in self._rows.columns:
            return np.full(len(self.dt_ns), np.nan)
        return self._rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()

    def sum(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return the sum of columns, NaN where none of them is told."""
        if not names:
            return np.full(len(self.dt_ns), np.nan)
        table = np.array([self.get(name) for name in names])
        return np.where(np.isnan(table).all(axis=0), np.nan, np.nansum(table, axis=0))

    def lengths(self, group: str) -> NDArray[np.float64]:
        """Return the time that a group's counters stand for, row by row."""
        own = self.get(f"{group}.dt_ns")
        return np.where(np.isnan(own), self.dt_ns, own)

    def track(  # noqa: PLR0917 - the same for every quantity
        self,
        key: str,
        name: str,
        unit: Unit,
        lane: Lane,
        numerators: NDArray[np.float64],
        denominators: NDArray[np.float64],
        *,
        lengths_ns: NDArray[np.float64] | None = None,
        total: bool = False,
    ) -> Track | None:
        """Return a track of the rows that tell it; None where none does."""
        known = np.isfinite(numerators) & np.isfinite(denominators) & (denominators > 0)
        if not known.any():
            return None
        length = self.dt_ns if lengths_ns is None else lengths_ns
        end = self.end_ns[known]
        start = end - length[known].astype(np.int64)
        return Track(key, name, unit, lane, start, end, numerators[known], denominators[known], total)

    def rate(
        self,
        key: str,
        name: str,
        unit: Unit,
        lane: Lane,
        columns: Sequence[str],
        *,
        scale: float = 1.0,
        total: bool = False,
    ) -> Track | None:
        """Return counters of a group over its time, per second."""
        if not columns:
            return None
        lengths = self.lengths(columns[0].partition(".")[0])
        return self.track(
            key, name, unit, lane, self.sum(columns) * scale, lengths / 1e9, lengths_ns=lengths, total=total
        )

    def level(
        self,
        key: str,
        name: str,
        unit: Unit,
        lane: Lane,
        column: str,
        *,
        scale: float = 1.0,
        total: bool = False,
    ) -> Track | None:
        """Return a level, weighed by time."""
        value = self.get(column)
        return self.track(
            key,
            name,
            unit,
            lane,
            value * scale * self.dt_ns,
            np.where(np.isnan(value), np.nan, self.dt_ns),
            total=total,
        )

    def things(self, group: str) -> list[str]:
        """Return the names that a group has columns of: `sda` of `disk.sda.reads`."""
        parts = (name.split(".") for name in self.names if name.startswith(f"{group}."))
        return list(dict.fromkeys(".".join(one[1:-1]) for one in parts if len(one) >= 3))


def _cpu(of: _Columns) -> Iterator[Track | None]:
    every = [name for name in of.names if name.startswith("cpu.all.") and name.endswith("_ns")]
    whole, lengths = of.sum(every), of.lengths("cpu")
    idle = of.sum([name for name in ("cpu.all.idle_ns", "cpu.all.iowait_ns") if name in of])
    yield of.track(
        "cpu_percent", "CPU", "percent", "cpu", 100 * (whole - idle), whole, lengths_ns=lengths, total=True
    )
    for kind, name in CPU_KINDS.items():
        column = f"cpu.all.{kind}_ns"
        yield of.track(
            f"cpu_{kind}_percent",
            f"CPU {name}",
            "percent",
            "cpu",
            100 * of.get(column),
            whole,
            lengths_ns=lengths,
        )
    cores = [name for name in of.things("cpu") if name != "all"][:MOST_CORES]
    busiest: Track | None = None
    for core in cores:
        kinds = [name for name in of.names if name.startswith(f"cpu.{core}.") and name.endswith("_ns")]
        time = of.sum(kinds)
        rest = of.sum([name for name in kinds if name.rpartition(".")[2] in ("idle_ns", "iowait_ns")])
        one = of.track("busiest_core_percent", f"core {core}", "percent", "cpu", 100 * (time - rest), time)
        if one is not None and (busiest is None or one.mean.value > busiest.mean.value):
            busiest = one
    yield busiest
    levels = [name for name in of.names if name.startswith("processor.") and name.endswith(".busy_percent")]
    if levels:
        yield of.track(
            "cpu_minute_percent", "CPU, mean of a minute", "percent", "cpu",
            of.sum(levels) / len(levels) * of.dt_ns, of.dt_ns, total=True,
        )  # fmt: skip
    yield of.level("load_one", "load average", "count", "cpu", "load.one_milli", scale=1e-3)


def _group(of: _Columns, facts: Mapping[str, Any]) -> Iterator[Track | None]:
    limit = facts.get("cpu_limit")
    if limit:
        yield of.track(
            "cpu_of_limit_percent", "CPU, of its limit", "percent", "cpu", 100 * of.get("group.used_ns"),
            of.dt_ns * float(limit),
        )  # fmt: skip
    yield of.track(
        "cpu_throttled_percent", "periods at the CPU limit", "percent", "cpu",
        100 * of.get("group.throttled_count"), of.get("group.periods_count"),
    )  # fmt: skip


def lowest_disks(names: Sequence[str], facts: Mapping[str, Any]) -> list[str]:
    """Return the disks below which there are no others, so that a byte counts once for each copy."""
    disks: Mapping[str, Mapping[str, Any]] = facts.get("disks") or {}
    says = "boot_id" in facts  # Linux' own shell, which was asked what lies below each device.
    lowest = []
    for name in names:
        above = bool(disks.get(name, {}).get("over")) if says else name.startswith(OVER_OTHERS)
        # A partition is part of a disk that is told, too.
        part = any(pattern.sub("", name) in names for pattern in PARTS if pattern.search(name))
        if not above and not part and not name.startswith((*MEMORY_DISKS, "zd")):
            lowest.append(name)
    others = [name for name in lowest if not name.startswith("loop")]
    # Where nobody says what a loop device lies on, it is taken to lie on the disks beside it.
    return lowest if says or not others else others


def _disks(of: _Columns, facts: Mapping[str, Any]) -> Iterator[Track | None]:
    names = of.things("disk")
    lowest = lowest_disks(names, facts)
    for op in ("read", "write"):
        columns = [name for disk in lowest if (name := f"disk.{disk}.{op}_bytes") in of]
        yield of.rate(f"disks_{op}_bytes_per_s", f"disks {op}", "bytes_per_s", "disks", columns, total=True)
        columns = [name for disk in lowest if (name := f"disk.{disk}.{op}s") in of]
        yield of.rate(f"disks_{op}s_per_s", f"disks {op}s", "per_s", "disks", columns, total=True)
    trims = [name for disk in lowest if (name := f"disk.{disk}.trim_bytes") in of]
    yield of.rate("disks_trim_bytes_per_s", "disks trim", "bytes_per_s", "disks", trims)
    for disk in _those_that_did_most(of, "disk", names):
        prefix = f"disk.{disk}"
        yield of.rate(
            f"disk_{disk}_busy_percent", f"{disk} busy", "percent", "disks", [f"{prefix}.busy_ns"], scale=1e-7
        )
        for op in ("read", "write"):
            yield of.rate(
                f"disk_{disk}_{op}_bytes_per_s",
                f"{disk} {op}",
                "bytes_per_s",
                "disks",
                [f"{prefix}.{op}_bytes"],
            )
            yield of.rate(f"disk_{disk}_{op}s_per_s", f"{disk} {op}s", "per_s", "disks", [f"{prefix}.{op}s"])
        yield of.rate(
            f"disk_{disk}_queue", f"{disk} queue", "count", "disks", [f"{prefix}.queue_time_ns"], scale=1e-9
        )


def _those_that_did_most(of: _Columns, group: str, names: Sequence[str]) -> list[str]:
    def moved(name: str) -> float:
        return float(
            np.nansum(
                [
                    np.nansum(of.get(one))
                    for one in of.names
                    if one.startswith(f"{group}.{name}.") and one.endswith("_bytes")
                ]
            )
        )

    amounts = {name: moved(name) for name in names}
    most = sorted(names, key=lambda name: -amounts[name])[:MOST_NAMED]
    return [name for name in names if name in most and amounts[name] > 0]


def link_bits_per_s(facts: Mapping[str, Any], name: str) -> int | None:
    """Return what an interface carries: what its queue lets through, or else the link's rate."""
    link = (facts.get("links") or {}).get(name, {})
    rates = [int(one) for one in (link.get("shaped_bits_per_s"), link.get("bits_per_s")) if one]
    return min(rates) if rates else None


def _net(of: _Columns, facts: Mapping[str, Any]) -> Iterator[Track | None]:
    names = [name for name in of.things("net") if name not in LOOPBACK]
    for direction, words in (("rx", "received"), ("tx", "sent")):
        columns = [name for one in names if (name := f"net.{one}.{direction}_bytes") in of]
        yield of.rate(
            f"net_{direction}_bytes_per_s", f"network {words}", "bytes_per_s", "network", columns, total=True
        )
    for one in _those_that_did_most(of, "net", names):
        bits_per_s = link_bits_per_s(facts, one)
        for direction, words in (("rx", "received"), ("tx", "sent")):
            column = f"net.{one}.{direction}_bytes"
            yield of.rate(
                f"net_{one}_{direction}_bytes_per_s", f"{one} {words}", "bytes_per_s", "network", [column]
            )
            if bits_per_s:
                key, name = f"net_{one}_{direction}_used_percent", f"{one} used, {words}"
                yield of.rate(key, name, "percent", "network", [column], scale=800 / bits_per_s)


def _memory(of: _Columns) -> Iterator[Track | None]:
    for column, (key, name) in MEMORY.items():
        shown = key in ("memory_cache_bytes", "memory_dirty_bytes", "zfs_arc_bytes")
        yield of.level(key, name, "bytes", "memory", column, total=shown)
    hits, misses = of.get("zfs.arc.hits"), of.get("zfs.arc.misses")
    yield of.track("zfs_arc_hit_percent", "ZFS ARC hits", "percent", "memory", 100 * hits, hits + misses)
    for cache in of.things("cache"):
        hits, misses = of.get(f"cache.{cache}.read_hits"), of.get(f"cache.{cache}.read_misses")
        yield of.track(
            f"cache_{cache}_hit_percent", f"{cache} read hits", "percent", "memory", 100 * hits, hits + misses
        )
        yield of.level(
            f"cache_{cache}_dirty_bytes", f"{cache} dirty", "bytes", "memory", f"cache.{cache}.dirty_bytes"
        )


def _others(of: _Columns) -> Iterator[Track | None]:
    yield of.level("nfsd_threads", "NFS threads", "count", "other", "nfsd.threads")
    for column, name in RATES.items():
        yield of.rate(
            f"{column.replace('.', '_')}_per_s", name, "per_s", "other", [column] if column in of else []
        )
    for pool in (name for name in of.things("zfs") if name.startswith("pool-")):
        for op in ("read", "write"):
            column = f"zfs.{pool}.{op}_bytes"
            key = f"zfs_{pool}_{op}_bytes_per_s"
            yield of.rate(
                key,
                f"{pool.removeprefix('pool-')} {op}",
                "bytes_per_s",
                "other",
                [column] if column in of else [],
            )
    for sensor in of.things("temperature")[:MOST_NAMED]:
        yield of.level(
            f"temperature_{sensor}_celsius",
            f"{sensor}",
            "celsius",
            "other",
            f"temperature.{sensor}.millicelsius",
            scale=1e-3,
        )


def notes(bundle: Bundle) -> list[str]:
    """Return what is to be said of how watching went."""
    lines = []
    for host in hosts(bundle):
        for gap in host.gaps:
            until = f"{gap['to_ns'] / 1e9:.0f} s" if gap.get("to_ns") is not None else "the end"
            lines.append(
                f"{host.name} was not watched from {gap['from_ns'] / 1e9:.0f} s to {until}: {gap['why']}"
            )
        if host.rows.height == 0 and not host.gaps:
            lines.append(f"{host.name} gave no rates: the run was shorter than two samples")
        account = host.account or {}
        offset_ns, error_ns = account.get("clock_offset_ns"), account.get("clock_error_ns")
        if offset_ns is not None and error_ns is not None and abs(offset_ns) > error_ns + FAR_OFF_NS:
            direction = "ahead" if offset_ns > 0 else "behind"
            lines.append(
                f"the clock of {host.name} is {units.duration(abs(offset_ns))} {direction} (known to "
                f"{units.duration(error_ns)}): times in its logs differ, those of its rows do not"
            )
    return lines


def span_ns(measurement: Measurement) -> tuple[int, int]:
    """Return from when the first stream was past its ramp until the last one ended."""
    ran = [(ramp_end, end) for start, ramp_end, end in measurement.spans if end > start]
    return (min(one[0] for one in ran), max(one[1] for one in ran)) if ran else (0, 0)


def document(measurement: Measurement) -> dict[str, ResultWatched]:
    """Return every watched host over the time of the load, as it stands in the result."""
    bounds = span_ns(measurement)
    return {host.name: _told(host, bounds) for host in hosts(measurement.bundle)}


def _told(host: WatchedHost, bounds_ns: tuple[int, int]) -> ResultWatched:
    rows = within(host.rows, bounds_ns)
    account = host.account or {}
    seconds = float(account.get("seconds") or 0.0)
    offset_ns, error_ns = account.get("clock_offset_ns"), account.get("clock_error_ns")
    aligned_ns, there_ns = account.get("aligned_within_ns"), account.get("there_cpu_ns")
    return ResultWatched(
        kind=cast("WatchKind", host.kind),
        url=host.url,
        host=host.facts.get("host"),
        system=host.facts.get("system"),
        same_host=host.facts.get("same_host"),
        seconds=sum_s(rows),
        rows=rows.height,
        gaps=[
            ResultWatchGap(
                from_s=gap["from_ns"] / 1e9,
                to_s=gap["to_ns"] / 1e9 if gap.get("to_ns") is not None else None,
                why=gap["why"],
            )
            for gap in host.gaps
        ],
        clock_offset_s=None if offset_ns is None else offset_ns / 1e9,
        clock_error_s=None if error_ns is None else error_ns / 1e9,
        aligned_within_s=None if aligned_ns is None else aligned_ns / 1e9,
        cpu_share_here=account["cpu_ns"] / 1e9 / seconds if seconds else None,
        cpu_share_there=there_ns / 1e9 / seconds if seconds and there_ns is not None else None,
        quantities={
            one.key: ResultWatchedQuantity(
                name=one.name, unit=one.unit, mean=one.mean.value, mean_error=one.mean.error, max=one.most
            )
            for one in tracks(rows, host.facts)
        },
    )


def sum_s(rows: pl.DataFrame) -> float:
    """Return the time that rows stand for."""
    return float(rows["dt_ns"].sum()) / 1e9 if rows.height else 0.0
