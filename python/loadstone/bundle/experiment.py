"""`experiment.json`: what an experiment's study was to do, and what it did to the machine.

Stands beside `study.json` in the directory of the study, written anew before and after each run, by
rename. Knows names and fields only: what a run measured is in its bundle, and whether it ended well
in `study.json`, under the same name.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field, ValidationError

from loadstone.bundle import members, seal
from loadstone.bundle.study import write_sealed
from loadstone.errors import BundleError
from loadstone.frozen_model import FrozenModel
from loadstone.messages import make_error

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 1
FILE: Final = "experiment.json"

Design = Literal["full", "one_at_a_time", "fraction"]


class DesignFactor(FrozenModel):
    """What is varied on purpose. `levels` as in the file; the others are held against the first."""

    name: str
    kind: str
    """`option`, `parameter`, `control`, `layout`, `allocation`, ...: the key of the file that names it."""
    meaning: str = ""
    """In words for people: `CPU frequency governor`, `iodepth of the job file`."""
    levels: tuple[str, ...]


class DesignPattern(FrozenModel):
    """A workload: a row of the matrix."""

    name: str
    meaning: str = ""
    """What it does, in a line."""


class UnsetLevel(FrozenModel):
    """A level of the file that cannot be set here; no run has it."""

    factor: str
    level: str
    why: str


class MachineSetting(FrozenModel):
    """One setting of the machine during one run."""

    control: str
    """Its name in `loadstone controls`, or `layout`, `page_cache`, `allocation`, `command`, ..."""
    subject: str
    """Of what: `sda`, `policy0`; empty: the host."""
    before: str
    """Its value before; empty where there is none to read, as of a command."""
    asked: str
    after: str | None = None
    """What was read after it was set; None: there is nothing to read."""
    outcome: (
        Literal[
            "restored",
            "unchanged",
            "rebooted",
            "gone",
            "changed_by_others",
            "not_held",
            "failed",
            "kept",
            "none",
        ]
        | None
    ) = None
    """What became of it after the run; `kept`: for the next run, which wants the same; `none`: there is
    nothing to put back (a page cache that was dropped). `not_held`: it is for all runs, and somebody else
    changed it during this one. None: nobody came to put it back."""
    why: str = ""
    """Why it could not be put back."""

    @property
    def is_still_changed(self) -> bool:
        """Whether the machine is not as it was before."""
        return self.outcome in ("changed_by_others", "failed", None)


class ExperimentRun(FrozenModel):
    """One run, planned or done, in the order in which the runs are done."""

    name: str
    """Name of the study's point."""
    block: int
    """Number of the block (one pass over all combinations), from 0."""
    pattern: str
    levels: dict[str, str]
    """Level of every factor."""
    started: str | None = None
    """ISO 8601, UTC, of its last attempt; None: it has not begun."""
    settings: tuple[MachineSetting, ...] = ()
    """What was set for it, in order."""


class ExperimentAttempt(FrozenModel):
    """A run that was begun, and is done again: nothing rests on it."""

    name: str
    """Name of the study's point."""
    run: str
    """Name of the run that it was an attempt of."""
    started: str
    """ISO 8601, UTC."""
    settings: tuple[MachineSetting, ...] = ()
    """What was set for it, in order."""
    why: str = ""
    """What somebody else changed while it lasted, or why it is not valid; empty: it did not complete."""
    rule: str = ""
    """Of its verdict, which found a reason outside the load; empty: it is done again for another reason."""


class ExperimentAim(FrozenModel):
    """What is wanted; `limit_at_most` is in the unit of the metric's name."""

    metric: str
    larger_is_better: bool
    limit_metric: str | None = None
    limit_at_most: float | None = None


class ExperimentBudget(FrozenModel):
    """What the whole may take; None: no limit."""

    time_s: float | None = None
    written_bytes: int | None = None


class ExperimentSession(FrozenModel):
    """What one session took: an experiment that is gone on with has several."""

    began: str
    """ISO 8601, UTC."""
    took_s: float
    """Until it was last written down."""
    beside_bytes: int = 0
    """Written beside the runs: targets prepared, file systems filled, layouts built and synchronised."""
    system: str | None = None
    """Name and kernel of the host that its runs are of; None: other hosts made them."""


class ExperimentTarget(FrozenModel):
    """What a path of a target meant, by names that hold over a reboot. What does not apply is empty."""

    path: str
    """Of a device or file; of what a layout mounts: as the file names its source."""
    host: str = ""
    """The host that sees it; empty: this one."""
    layout: str = ""
    """The layout that mounts it, of which it is the file system."""
    boot: str = ""
    """The start of the host that the names hold for; empty: they outlive it."""
    device: str = ""
    """Its own name (WWN, serial number), or what it is made of."""
    size_bytes: int = 0
    """Of a device."""
    point: str = ""
    """Where its file system is mounted."""
    file_system: str = ""
    """Kind, UUID and device, or server."""
    options: tuple[str, ...] = ()
    """Of the mount."""
    file: str = ""
    """Its number, or the server's handle; empty: it is not there."""
    born_ns: int | None = None
    """When the file was made; None: the file system does not tell."""
    marked: bool = False
    """Whether the file has the mark of a run that wrote it."""

    @property
    def name(self) -> str:
        """Return how people name it, one on another host as `HOST:PATH`."""
        return f"{self.host}:{self.path}" if self.host else self.path


class ExperimentDocument(FrozenModel):
    """`experiment.json`."""

    format: int = FORMAT
    title: str
    question: str = ""
    file: str
    """The experiment's file, as the user named it; its bytes are under `input/`."""
    file_blake3: str
    factors: tuple[DesignFactor, ...]
    patterns: tuple[DesignPattern, ...]
    design: Design
    combinations: int
    """Of levels, that are measured with each pattern."""
    full_combinations: int
    """Of levels, that there are."""
    aliased: tuple[tuple[str, str], ...] = ()
    """Effects that the fraction cannot tell apart, as pairs of names (`a`, `b:c`)."""
    mixed: tuple[tuple[str, str, float], ...] = ()
    """Main effects that the fraction mixes with a part of an interaction, and that part (0 to 1)."""
    order: Literal["random", "given"]
    seed: int
    """Draws the order within each block."""
    rarely: tuple[str, ...] = ()
    """Factors whose level changes rarely: within a block all runs of a level follow each other."""
    blocks: int
    """Passes over all combinations."""
    metrics: tuple[str, ...]
    """Asked for, the first is what the answer is about."""
    aims: tuple[ExperimentAim, ...] = ()
    budget: ExperimentBudget = Field(default_factory=ExperimentBudget)
    studied: tuple[str, ...] = ()
    """Rules of the verdict that say what is studied on purpose: their findings exclude no run."""
    unset_levels: tuple[UnsetLevel, ...] = ()
    runs: tuple[ExperimentRun, ...]
    attempts: tuple[ExperimentAttempt, ...] = ()
    """Of runs that were done again, or are to be, in the order in which that was noticed."""
    settings: tuple[MachineSetting, ...] = ()
    """What was set for several runs at once (layouts), in order."""
    targets: tuple[ExperimentTarget, ...] = ()
    """As the last run left them, the devices of layouts, and what layouts mount; of files on a layout nothing
    is recorded."""
    sessions: tuple[ExperimentSession, ...] = ()
    """In order; the budget holds for all of them together."""
    ended_because: str | None = None
    """Why it ended before its last run, in words."""

    @property
    def still_changed(self) -> list[MachineSetting]:
        """Return what is not as it was before the experiment, once that is over."""
        every = [*self.settings, *(one for run in self.runs for one in run.settings)]
        return [one for one in every if one.is_still_changed]


def is_experiment(path: Path) -> bool:
    """Tell an experiment's study from any other."""
    return os.path.lexists(path / FILE)


def read(path: Path) -> ExperimentDocument:
    """Read `experiment.json` of a study's directory. Raises `BundleError` for what is none."""
    if not is_experiment(path):
        if not path.is_dir():
            raise make_error(BundleError, "bundle.experiment.not_there", path=path)
        raise make_error(BundleError, "bundle.experiment.none", path=path, file=FILE)
    document = members.table(path, FILE)
    if seal.own_difference(document, FILE, required=True):
        raise make_error(BundleError, "bundle.experiment.changed", path=path / FILE)
    try:
        return ExperimentDocument.model_validate(
            {name: value for name, value in document.items() if name != seal.DIGEST}
        )
    except ValidationError as error:
        raise members.malformed(path / FILE, error) from error


def write(path: Path, experiment: ExperimentDocument) -> None:
    """Write `experiment.json` whole or not at all. Raises `BundleError`."""
    write_sealed(path, FILE, experiment)
