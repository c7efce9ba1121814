"""The watched hosts of a Case, as the rules about the storage's own side look at them.

Knows which part of a run a host was watched for, and how the answers on several hosts become one.
Judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from loadstone.analysis import watched
from loadstone.audit import monitor_readings
from loadstone.audit.rule import Answer, CannotTell, Clear, NotMine, cannot_tell
from loadstone.verdict import Chart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.analysis.measurement import Measurement
    from loadstone.analysis.watched import Track
    from loadstone.audit.case import Case, Moved

LEAST_SHARE: Final = 0.5
"""A host that was watched for less of the time may have done anything in the rest."""
LEAST_S: Final = 2.0
DISK_BUSY_PERCENT: Final = 90.0
"""A disk that is busy for more of the time always has something to do."""
IN_STEP: Final = 0.3
"""A disk that carries the load moves its bytes in the same seconds, but for this share of them."""
CARRIES_ALL: Final = 0.9
LEAST_CARRIED: Final = 0.01
"""Of the load: one disk of a stripe over a hundred."""
KNOWS_MOST: Final = ("ssh", "local", "http", "snmp")
"""Ways to watch a machine, the one that tells most first: a shell knows what lies on what."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One host, in the time of one phase."""

    name: str
    kind: str
    facts: Mapping[str, Any]
    rows: pl.DataFrame
    same_host: bool = False
    tracks: dict[str, Track] = field(default_factory=dict)
    client_disks: frozenset[str] = frozenset()
    """The load generator's way to it, where it is the same machine: they are not the storage's."""

    @property
    def seconds(self) -> float:
        """The time that its rows stand for."""
        return watched.sum_s(self.rows)

    @property
    def _loops_unclear(self) -> bool:
        """Whether loop devices that nobody says the place of moved more than the disks beside them."""
        if "boot_id" in self.facts:
            return False
        sums = {True: 0.0, False: 0.0}
        for disk in self.things("disk"):
            columns = (f"disk.{disk}.{op}_bytes" for op in ("read", "write"))
            sums[disk.startswith("loop")] += monitor_readings.total(self.rows, *columns) or 0.0
        return sums[True] > sums[False]

    @property
    def machine(self) -> tuple[Any, ...]:
        """What tells machines apart; a host that does not say who it is is its own."""
        identity = (self.facts.get("host"), self.facts.get("memory_bytes"))
        return identity if None not in identity else (self.name,)

    def track(self, key: str) -> Track | None:
        """Return a quantity, None where the host does not tell it."""
        return self.tracks.get(key)

    def things(self, group: str) -> list[str]:
        """Return the names that a group has columns of."""
        parts = (name.split(".") for name in self.rows.columns if name.startswith(f"{group}."))
        return list(dict.fromkeys(".".join(one[1:-1]) for one in parts if len(one) >= 3))

    @property
    def lowest_disks(self) -> list[str]:
        """The disks below which there are no others."""
        disks = watched.lowest_disks(self.things("disk"), self.facts)
        return [name for name in disks if name not in self.client_disks]

    @property
    def disks_use(self) -> dict[str, Track]:
        """How much of the time the lowest disks were busy, in percent, the busiest first."""
        tracks = {disk: self.track(f"disk_{disk}_busy_percent") for disk in self.lowest_disks}
        known = [(disk, track) for disk, track in tracks.items() if track is not None]
        return dict(sorted(known, key=lambda one: -one[1].mean.value))

    def moved(self, what: str, disks: Sequence[str] | None = None) -> float | None:
        """Return what disks did of something in all rows, or all the lowest; None where that is not known."""
        if self._loops_unclear:
            return None
        of = self.lowest_disks if disks is None else disks
        return monitor_readings.total(self.rows, *(f"disk.{disk}.{what}" for disk in of))


def of_phase(
    measurement: Measurement, bounds_ns: tuple[int, int], client_disks: frozenset[str]
) -> tuple[Watched, ...]:
    """Return every watched host in the time of a phase."""
    hosts = []
    for host in watched.hosts(measurement.bundle):
        rows = watched.within(host.rows, bounds_ns)
        tracks = {one.key: one for one in watched.tracks(rows, host.facts)}
        disks_of_job = client_disks if host.same_host else frozenset[str]()
        hosts.append(Watched(host.name, host.kind, host.facts, rows, host.same_host, tracks, disks_of_job))
    return tuple(hosts)


def busy_disk(case: Case) -> str | None:
    """Return the disk of a watched host that always had something to do, as a layer; None: none had."""
    for host in case.watched:
        for disk, track in host.disks_use.items():
            if track.mean.value >= DISK_BUSY_PERCENT:
                return f"disk {disk} of {host.name}"
    return None


def each(case: Case, judge: Callable[[Case, Watched], Answer]) -> Answer:
    """Return the findings on all machines, or else clear where one could be looked at.

    A machine that is watched in several ways is one: the way that knows most of it and can tell speaks.
    """
    by_machine: dict[tuple[Any, ...], list[Watched]] = {}
    for host in sorted(case.watched, key=lambda one: KNOWS_MOST.index(one.kind)):
        by_machine.setdefault(host.machine, []).append(host)
    answers = [_of_machine(case, hosts, judge) for hosts in by_machine.values()]
    findings = tuple(one for answer in answers if isinstance(answer, tuple) for one in answer)
    if findings:
        return findings
    return next((one for kind in (Clear, CannotTell) for one in answers if isinstance(one, kind)), NotMine())


def _of_machine(case: Case, hosts: Sequence[Watched], judge: Callable[[Case, Watched], Answer]) -> Answer:
    answers = [_of_host(case, host, judge) for host in hosts]
    judged = [one for one in answers if isinstance(one, tuple | Clear)]
    missing = [one for one in answers if isinstance(one, CannotTell)]
    return next(iter([*judged, *missing]), NotMine())


def _of_host(case: Case, host: Watched, judge: Callable[[Case, Watched], Answer]) -> Answer:
    if host.rows.height == 0 or host.seconds < LEAST_S:
        return cannot_tell("audit.watched.short", host=host.name, seen_s=host.seconds)
    if case.seconds and host.seconds < LEAST_SHARE * case.seconds:
        return cannot_tell("audit.watched.gap", host=host.name, seen_s=host.seconds, whole_s=case.seconds)
    return judge(case, host)


def asked(case: Case, host: Watched, op: str) -> Moved | None:
    """Return what the load did of an operation in the seconds of a host's rows."""
    if case.series is None:
        return None
    of_op = case.series.filter(pl.col("op") == op)
    return monitor_readings.moved_in(of_op, monitor_readings.stretches(host.rows))


def in_step(case: Case, host: Watched, op: str) -> list[str] | None:
    """Return the lowest disks that did an operation in the seconds of the load, and carry all of it.

    None where it cannot be told which ones carry it: a cache writes later, and all at once. What other
    disks did is somebody else's, or comes later.
    """
    if case.series is None:
        return None
    disks, carried = [], 0.0
    load_bytes = monitor_readings.load_bytes(case.series, host.rows, op)
    for disk in host.lowest_disks:
        column = f"disk.{disk}.{op}_bytes"
        if column not in host.rows.columns:
            continue
        moved = host.rows[column].fill_null(0).to_numpy().astype(np.float64)
        share = moved.sum() / load_bytes.sum() if load_bytes.sum() else 0.0
        if share >= LEAST_CARRIED and np.abs(moved - share * load_bytes).sum() <= IN_STEP * moved.sum():
            disks.append(disk)
            carried += share
    return disks if carried >= CARRIES_ALL else None


def chart(track: Track, y: str, level: float, level_name: str) -> Chart:
    """Return a quantity over time against what it is held to."""
    points = tuple(
        (round(float(end) / 1e9, 3), float(value))
        for end, value in zip(track.end_ns, track.values, strict=True)
    )
    return Chart(title=track.name, x="time, s", y=y, points=points, level=level, level_name=level_name)
