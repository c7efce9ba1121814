"""What the named workloads really do, I/O by I/O, against what they are defined as.

The definitions stand here a second time, from their sources and not from the catalogue: sizes
with their shares, shares of reads, of random addresses and of each stream, hot zones, rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
import scipy

from loadstone.workload import catalogue
from loadstone.workload.placement import Amount
from tests.support.realised import P_VALUE, agrees, realised

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Sizes = Mapping[float, float]
    """KiB to share."""

READ, WRITE = 0, 1
SUBTREE_BYTES = 1 << 21
"""64 leaves of 8 blocks of 4 KiB."""
WHOLE = 1 << 44
"""So large that no random I/O begins where another ends but by a rare chance."""


@dataclass(frozen=True)
class StreamMix:
    """A stream. `share`: its part of the I/Os of the workload; `sizes` of reads, and of writes."""

    read: float
    sizes: Sizes
    random: float = 100
    share: float = 100
    writes: Sizes | None = None
    zones: tuple[tuple[float, float], ...] = ()
    """(share of I/Os, share of the range), from its beginning."""
    part: tuple[float, float] = (0, 100)
    """From and to which percent of the target."""
    hz: tuple[float, float] | None = None
    """Reads and writes a second, of all its clones."""
    poisson: bool = False
    walks: bool = False
    """Comes back to where it was: see `tests/plan/test_reuse.py`."""


def only(read: float, kib: float, random: float = 100) -> dict[str, StreamMix]:
    return {"": StreamMix(read, {kib: 100}, random)}


HOT = ((95, 5), (4, 10), (1, 85))
FILE_SERVER: Sizes = {0.5: 10, 1: 5, 2: 5, 4: 60, 8: 2, 16: 4, 32: 4, 64: 10}
WEB_SERVER: Sizes = {0.5: 22, 1: 15, 2: 8, 4: 23, 8: 15, 16: 2, 32: 6, 64: 7, 128: 1, 512: 1}
JESD: Sizes = {0.5: 4, 1: 1, 1.5: 1, 2: 1, 2.5: 1, 3: 1, 3.5: 1, 4: 67, 8: 10, 16: 7, 32: 3, 64: 3}
SMIX: Sizes = {4: 40, 8: 24, 16: 20, 32: 8, 64: 8}
DESKTOP_READS: Sizes = {4: 60, 8: 10, 16: 15, 32: 15}
DESKTOP_WRITES: Sizes = {4: 70, 8: 15, 16: 10, 32: 5}
PURE: dict[str, tuple[float, Sizes, Sizes]] = {
    "oracle": (
        83.14,
        {4: 4.5, 8: 41.05, 16: 29.84, 32: 1.23, 56: 1.39, 128: 15.19, 252: 5.23, 420: 0.18, 1004: 1.39},
        {4: 22.1, 8: 37.3, 16: 19.12, 32: 5.35, 56: 4.68, 120: 7.65, 236: 3.34, 408: 0.15, 944: 0.31},
    ),
    "sql": (
        68.42,
        {4: 2.39, 8: 53.57, 16: 4.84, 28: 2.64, 64: 28.75, 120: 1.79, 220: 1.41, 492: 4.24, 524: 0.37},
        {
            4: 27.85,
            8: 35.24,
            16: 4.82,
            28: 2.58,
            64: 26.35,
            116: 0.6,
            244: 1.28,
            488: 0.38,
            536: 0.89,
            1032: 0.01,
        },
    ),
    "vdi": (
        59.44,
        {4: 39.35, 8: 9.37, 16: 16.47, 32: 10.37, 64: 12.86, 116: 5.45, 220: 3.33, 472: 1.96, 984: 0.84},
        {
            4: 61.11,
            8: 13.05,
            16: 8.41,
            28: 3.46,
            60: 9.31,
            104: 1.05,
            240: 2.91,
            372: 0.33,
            876: 0.33,
            2028: 0.04,
        },
    ),
    "vsi": (
        57.40,
        {4: 25.68, 8: 26.33, 16: 6.4, 32: 7.52, 60: 10.52, 128: 9.82, 252: 7.31, 504: 6.19, 984: 0.23},
        {4: 59.63, 8: 14.81, 16: 8.97, 32: 6.13, 60: 5.35, 100: 1.63, 212: 1.39, 432: 1.95, 920: 0.14},
    ),
}


def pure(name: str) -> dict[str, StreamMix]:
    read, reads, writes = PURE[name]
    return {
        "reads": StreamMix(100, reads, 80, read),
        "writes": StreamMix(0, {}, 80, 100 - read, writes, part=(50, 100)),
    }


def desktops(shares: tuple[int, int, int, int], *, linked: bool) -> dict[str, StreamMix]:
    zones = ((90.0, 5.0), (10.0, 95.0)) if linked else ()
    made = {
        "random-reads": StreamMix(100, DESKTOP_READS, 100, shares[0], zones=zones),
        "sequential-reads": StreamMix(100, {64: 100}, 0, shares[1]),
        "random-writes": StreamMix(0, {}, 100, shares[2], DESKTOP_WRITES),
        "sequential-writes": StreamMix(0, {}, 0, shares[3], {64: 100}),
    }
    return {name: mix for name, mix in made.items() if mix.share}


def spc(bsu: int) -> dict[str, StreamMix]:
    """Zones as parts of the target: ASU 1 and 2 have 45 % each, ASU 3 has 10 %."""

    def hz(share: float, read: float) -> tuple[float, float]:
        return 50 * bsu * share * read / 100, 50 * bsu * share * (100 - read) / 100

    def zone(start: float, size: float, low: float, length: float) -> tuple[float, float]:
        return start + size * low / 100, start + size * (low + length) / 100

    four = {4.0: 100.0}
    return {
        "asu1-1": StreamMix(50, four, part=zone(0, 45, 0, 100), hz=hz(0.035, 50), poisson=True),
        "asu1-2": StreamMix(50, four, part=zone(0, 45, 15, 5), hz=hz(0.281, 50), poisson=True, walks=True),
        "asu1-3": StreamMix(100, SMIX, 0, part=zone(0, 45, 20, 50), hz=hz(0.07, 100), poisson=True),
        "asu1-4": StreamMix(50, four, part=zone(0, 45, 70, 5), hz=hz(0.21, 50), poisson=True, walks=True),
        "asu2-1": StreamMix(30, four, part=zone(45, 45, 0, 100), hz=hz(0.018, 30), poisson=True),
        "asu2-2": StreamMix(30, four, part=zone(45, 45, 47, 5), hz=hz(0.07, 30), poisson=True, walks=True),
        "asu2-3": StreamMix(100, SMIX, 0, part=zone(45, 45, 20, 50), hz=hz(0.035, 100), poisson=True),
        "asu3-1": StreamMix(0, {}, 0, writes=SMIX, part=(90, 100), hz=hz(0.281, 0), poisson=True),
    }


DEFINED: dict[str, dict[str, StreamMix]] = {
    "storagereview-sql-like": only(97, 8),
    "storagereview-sql-90-10-like": only(90, 8),
    "storagereview-sql-80-20-like": only(80, 8),
    "storagereview-oracle-90-10-like": only(90, 8),
    "storagereview-oracle-80-20-like": only(80, 8),
    "storagereview-oracle-like": {
        "tables": StreamMix(80, {8: 100}, 100, 99),
        "log": StreamMix(1, {64: 100}, 0, 1),
    },
    "storagereview-vdi-full-clone-boot-like": desktops((70, 20, 10, 0), linked=False),
    "storagereview-vdi-full-clone-initial-login-like": desktops((45, 15, 30, 10), linked=False),
    "storagereview-vdi-full-clone-monday-login-like": desktops((50, 15, 27, 8), linked=False),
    "storagereview-vdi-linked-clone-boot-like": desktops((70, 20, 10, 0), linked=True),
    "storagereview-vdi-linked-clone-initial-login-like": desktops((45, 15, 30, 10), linked=True),
    "storagereview-vdi-linked-clone-monday-login-like": desktops((50, 15, 27, 8), linked=True),
    "iometer-file-server": {"": StreamMix(80, FILE_SERVER)},
    "iometer-web-server": {"": StreamMix(100, WEB_SERVER)},
    "iometer-database": only(67, 8),
    "iometer-workstation": only(80, 8, 80),
    "iometer-mail": only(68, 32),
    "iometer-exchange-4k": only(67, 4),
    "iometer-os-drive": only(70, 8),
    "iometer-decision-support": only(100, 1024),
    "iometer-file-server-8k": only(90, 8, 75),
    "iometer-web-file-server": {"": StreamMix(95, {4: 34, 8: 33, 64: 33}, 75)},
    "iometer-video-on-demand": only(100, 512),
    "iometer-media-streaming": only(98, 64, 0),
    "iometer-os-paging": only(90, 64, 0),
    "iometer-web-log": only(0, 8, 0),
    "iometer-sql-log": only(0, 64, 0),
    "iometer-max-throughput-read": only(100, 32, 0),
    "iometer-max-throughput-mixed": only(50, 32, 0),
    "iometer-real-life": only(65, 8, 60),
    "iometer-random-8k": only(70, 8),
    "iometer-vdi-steady": only(20, 4, 80),
    **{f"pure-{name}-like": pure(name) for name in PURE},
    "jesd219-like": {"": StreamMix(40, JESD, zones=((50, 5), (30, 15), (20, 80)))},
    "vmfleet-peak": only(100, 4),
    "vmfleet-general": {"": StreamMix(100, {4: 100}, zones=HOT)},
    "vmfleet-vdi": {
        "writer": StreamMix(0, {32: 100}, 20, hz=(0, 24)),
        "reader": StreamMix(100, {8: 100}, 80, hz=(24, 0)),
    },
    "vmfleet-sql": {
        "oltp": StreamMix(70, {8: 100}, zones=HOT, part=(50, 100), hz=(4200, 1800)),
        "log": StreamMix(0, {32: 100}, 0, part=(0, 50), hz=(0, 300)),
    },
    "spc-1-like": spc(10),
}
NOT_MIXES = {"four-corners", "snia-pts-cross-stimulus-recovery-like", "storagereview-four-corners-like"}
"""Corners of one size and direction each; the scenarios of VOSTOK are held to their job files."""


def test_every_workload_is_defined_here() -> None:
    named = {name for name in catalogue.names() if not catalogue.load(name).is_procedure}
    assert {name for name in named if not name.startswith("vostok")} == set(DEFINED) | NOT_MIXES


@pytest.mark.in_turn
@pytest.mark.drawn(14)
@pytest.mark.parametrize("name", DEFINED)
def test_a_workload_is_what_it_is_defined_as(name: str, tmp_path: Path) -> None:
    mixes = DEFINED[name]
    paced = any(mix.hz for mix in mixes.values())
    seconds = 60.0 if paced else 0.0
    clones = {"vms": "1", "threads": "1"} if name.startswith("vmfleet") and not paced else {}
    known = {parameter.name for parameter in catalogue.load(name).parameters}
    given = {key: value for key, value in clones.items() if key in known}
    workload = catalogue.load(name).workload(given)
    assert set(mixes) == {""} or set(mixes) == {job.name for job in workload.jobs}
    ios = realised(workload, tmp_path, size=Amount(bytes=WHOLE), ops=20_000, seconds=seconds)
    for job, mix in mixes.items():
        mine = ios if not job else ios.filter(pl.col("job") == job)
        assert agrees(_by_size(mine), _wanted(mix)), (job, _by_size(mine))
        _check_addresses(mine, mix, sequential_jobs=not job)
        if mix.hz is not None:
            _check_rate(mine, mix, seconds)
    if any(mix.share != 100 for mix in mixes.values()):
        # Streams stop at their count, so shares hold while all of them run.
        together = ios.filter(
            pl.col("start_ns") < ios.group_by("job").agg(pl.col("start_ns").max())["start_ns"].min()
        )
        counts = dict(together.group_by("job").len().iter_rows())
        whole = sum(counts.values())
        for job, mix in mixes.items():
            assert 100 * counts[job] / whole == pytest.approx(mix.share, abs=0.5), counts


def _by_size(ios: pl.DataFrame) -> dict[tuple[int, int], int]:
    return {(op, size): count for op, size, count in ios.group_by("op", "bytes").len().iter_rows()}


def _wanted(mix: StreamMix) -> dict[tuple[int, int], float]:
    wanted: dict[tuple[int, int], float] = {}
    for op, share, sizes in (
        (READ, mix.read, mix.sizes),
        (WRITE, 100 - mix.read, mix.sizes if mix.writes is None else mix.writes),
    ):
        whole = sum(sizes.values()) or 1
        wanted |= {(op, round(kib * 1024)): share * part / whole for kib, part in sizes.items()}
    return wanted


def _check_addresses(ios: pl.DataFrame, mix: StreamMix, *, sequential_jobs: bool) -> None:
    low, high = (WHOLE * percent / 100 for percent in mix.part)
    assert ios["offset"].min() >= low - 4096  # type: ignore[operator]  # offsets are integers
    assert (ios["offset"] + ios["bytes"]).max() <= high + 4096  # type: ignore[operator]  # as above
    if mix.zones:
        places = (ios["offset"].to_numpy() - low) / (high - low) * 100
        edges = np.cumsum([size for _, size in mix.zones])
        zones = np.searchsorted(edges, places, side="right")
        found = dict(zip(*(part.tolist() for part in np.unique(zones, return_counts=True)), strict=True))
        assert agrees(found, {at: share for at, (share, _) in enumerate(mix.zones)}), found
        return
    if mix.walks:
        # At least those that stay in the smallest subtree: 0.56 + 0.44 0.56 / 2 + ... = 0.718.
        steps = [part["offset"].cast(pl.Int64).diff().drop_nulls().abs() for part in _in_order(ios)]
        assert 0.70 < float(np.mean(pl.concat(steps).to_numpy() < SUBTREE_BYTES)) < 0.9
        return
    # An I/O that begins where one before it ended is sequential: of any operation where they
    # share a position, else of its own.
    parts = [ios] if sequential_jobs else ios.partition_by("op")
    follows = sum(_followers(part) for part in parts)
    assert 100 * follows / ios.height == pytest.approx(100 - mix.random, abs=2.0)


def _in_order(ios: pl.DataFrame) -> list[pl.DataFrame]:
    return ios.sort("start_ns", "t_ns").partition_by("stream")


def _followers(ios: pl.DataFrame) -> int:
    """Count I/Os that begin where another of the same stream ends."""
    found = 0
    for part in ios.partition_by("stream"):
        ends = set((part["offset"] + part["bytes"]).to_list())
        found += sum(offset in ends for offset in part["offset"].to_list())
    return found


def _check_rate(ios: pl.DataFrame, mix: StreamMix, seconds: float) -> None:
    assert mix.hz is not None
    for op, hz in zip((READ, WRITE), mix.hz, strict=True):
        due = np.sort(ios.filter(pl.col("op") == op)["start_ns"].to_numpy()) / 1e9
        if not hz:
            assert not len(due)
            continue
        deviation = (hz * seconds) ** 0.5 if mix.poisson else 2 + 0.01 * hz * seconds
        assert abs(len(due) - hz * seconds) < 5 * deviation
        if mix.poisson:
            gaps = np.diff(due)
            assert scipy.stats.kstest(gaps, "expon", args=(0, 1 / hz)).pvalue > P_VALUE
