"""What other programs on this host's processors can take from a load.

Whatever serves I/O here (the generator, the kernel's workers, a server in user space) gets a fair share of
the processors while somebody waits for one. Knows the monitors' rows; judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.bundle.table_rows import rows_where

if TYPE_CHECKING:
    import polars as pl

    from loadstone.bundle.read import Bundle

WAITING: Final = "pressure.cpu.some_ns"
RUNNABLE: Final = "tasks.runnable"
TURN_NS: Final = 40e6
"""An I/O passes from thread to thread (generator, kernel, servers). All of them together wait at most about
so long for each task before them. 36 honest runs on real parts had 11 to 22 tasks ready on 2 CPUs (seeds
13801 to 13934). The longest time without an end of an I/O was up to 35 ms for each task. With 20 ms five of
the runs were accused."""


@dataclass(frozen=True, slots=True)
class Contention:
    """`waiting`: share of the time in which a task waited for a CPU; `runnable`: tasks that stood ready."""

    waiting: float
    runnable: float
    cpus: int

    @property
    def share(self) -> float:
        """The part of a rate that others can take: all but a fair share, while somebody waits."""
        return self.waiting * (1 - min(1.0, self.cpus / max(1.0, self.runnable)))

    @property
    def wait_ns(self) -> float:
        """How long an I/O may stand still for it."""
        return TURN_NS * max(0.0, self.runnable / self.cpus - 1)


def contention(rows: pl.DataFrame | None, cpus: int | None) -> Contention | None:
    """Return it over the time of these rows; None where it was not watched."""
    if rows is None or not cpus or not {WAITING, RUNNABLE, "dt_ns"} <= set(rows.columns):
        return None
    known = rows_where(rows, (rows[WAITING].is_not_null() & rows[RUNNABLE].is_not_null()).to_numpy())
    length_ns = float(known["dt_ns"].sum())
    if not length_ns:
        return None
    waiting = min(1.0, float(known[WAITING].sum()) / length_ns)
    return Contention(waiting, float(known[RUNNABLE].mean()), cpus)  # type: ignore[arg-type] # not empty


def of_bundle(bundle: Bundle) -> Contention | None:
    """Return it over a whole run; of several hosts that of the one with most of it."""
    parts = [bundle] if bundle.hosts is None else [bundle.of_host(one) for one in bundle.hosts.hosts]
    contentions = [
        contention(one.host(), one.environment.get("host", {}).get("cpu", {}).get("online"))
        for one in parts
        if one is not None
    ]
    return max((one for one in contentions if one is not None), key=lambda one: one.share, default=None)
