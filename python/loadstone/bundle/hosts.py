"""A run on several hosts, as it is on disk: one bundle made of theirs.

Its `plan.json` is the Plans of all hosts after each other; `hosts.json` says which units, cells,
streams and targets are whose, and how each host's clock lies to the run's. Its tables are those of
the hosts' own bundles below `hosts/`, read with that in mind. Knows names and numbers only.
"""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from loadstone.frozen_model import FrozenModel

FORMAT: Final = 1
HOSTS: Final = "hosts.json"
FOLDER: Final = "hosts"


class HostPart(FrozenModel):
    """One host of the run. Of what is not known there is None."""

    name: str
    bundle: str | None
    """Directory of its bundle, relative to the run's; None: it did not come."""
    status: str
    """As of a bundle, or `lost`."""
    error: str | None = None
    """What went wrong, or where its bundle was left."""
    host_name: str | None = None
    """What it calls itself."""
    kernel: str | None = None
    """Boot id of its kernel: hosts that are containers of one machine have the same."""
    shift_ns: int = 0
    """Its origin on the run's clock."""
    start_skew_ns: int | None = None
    """Its first I/O after the first I/O of all."""
    clock_offset_ns: int | None = None
    """Its wall clock minus the coordinator's."""
    clock_error_ns: int | None = None
    """Bound of the error of both."""
    agent_cpu_share: float | None = None
    """What its agent took of one CPU while the load ran."""
    first_unit: int = 0
    first_cell: int = 0
    first_stream: int = 0
    first_worker: int = 0
    targets: tuple[int, ...] = ()
    """By its own number of a target: the run's."""
    units: int = 0
    cells: int = 0
    streams: int = 0


class SharedSeen(FrozenModel):
    """A target that several hosts see."""

    identity: str
    paths: dict[str, str]
    """By host."""
    written: bool
    divided: bool


class HostsRecord(FrozenModel):
    """`hosts.json`."""

    format: int = FORMAT
    hosts: tuple[HostPart, ...]
    on_loss: str = "stop"
    shared: tuple[SharedSeen, ...] = ()
    events: tuple[dict[str, Any], ...] = ()
    """What happened between the hosts: `at_s` since the coordinator began, `host`, `text`."""

    def of_unit(self, unit: int) -> int | None:
        """Return the number of the host that a unit belongs to."""
        return next(
            (at for at, one in enumerate(self.hosts) if one.first_unit <= unit < one.first_unit + one.units),
            None,
        )


def shifted_samples(piece: pl.DataFrame, part: HostPart, interval_ns: int) -> pl.DataFrame:
    """Return a host's samples on the run's clock, with the run's cells; null where that is out of range."""
    moved = {
        "cell": _number("cell") + part.first_cell,
        "interval": (_number("interval") + round(part.shift_ns / interval_ns)).clip(0),
        "start_ns": (_number("start_ns") + part.shift_ns).clip(0),
        "end_ns": (_number("end_ns") + part.shift_ns).clip(0),
    }
    return _moved(piece, moved)


def shifted_ios(piece: pl.DataFrame, part: HostPart) -> pl.DataFrame:
    """Return a host's I/Os on the run's clock, with the run's streams and targets; as `shifted_samples`."""
    targets = dict(enumerate(part.targets))
    moved = {
        "t_ns": (_number("t_ns") + part.shift_ns).clip(0),
        "stream": _number("stream") + part.first_stream,
        "target": pl.col("target").replace_strict(targets, default=None),
    }
    return _moved(piece, moved)


def _number(name: str) -> pl.Expr:
    """Return a column to be added to: in its own type a sum that is too large would begin again at 0."""
    return pl.col(name).cast(pl.Int64, strict=False)


def _moved(piece: pl.DataFrame, moved: dict[str, pl.Expr]) -> pl.DataFrame:
    known = {name: expression for name, expression in moved.items() if name in piece.columns}
    return piece.with_columns(
        **{name: expression.cast(piece.schema[name], strict=False) for name, expression in known.items()}
    )
