"""What an experiment keeps to itself while it lasts: its settings, its targets, its directory.

Knows what its runs change and use, and by which names others would. Between two runs all is as it was, and
another experiment that found it so would measure this one's runs. Claims nothing itself.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.control.control_kind import Setting
from loadstone.control.fill import FillLevel
from loadstone.experiment.file import VOLUME
from loadstone.messages import say
from loadstone.path.block import BlockDevice
from loadstone.path.child import run_in_child
from loadstone.plan.model import TargetKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from loadstone.control.all_controls import Controls
    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.plan.model import Plan
    from loadstone.plan.resolve import Resolution
    from loadstone.study.controller import Next

STORED: Final = (TargetKind.FILE, TargetKind.BLOCK, TargetKind.NVME, TargetKind.TREE)
"""Kinds of targets that two experiments cannot share."""


def things(paths: Iterable[str]) -> list[Setting]:
    """Return claims of files, devices and directories themselves, whatever they are called.

    A device takes with it what it stands on: a partition its disk, a loop device its file. So two that
    share a disk are one claim: what one of them does, the other would measure.
    """
    names: dict[str, None] = {}
    for path in dict.fromkeys(map(os.path.realpath, paths)):
        names[path] = None
        with contextlib.suppress(OSError):  # What is not there yet has a name only.
            names |= dict.fromkeys(_identities(Path(path).stat()))
    return [Setting("", one) for one in names]


def _identities(status: os.stat_result) -> Iterator[str]:
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        yield _file(status.st_dev, status.st_ino)
    elif stat.S_ISBLK(status.st_mode):
        yield from stack(BlockDevice.of_number(status.st_rdev))


def stack(device: BlockDevice | None) -> Iterator[str]:
    """Name a device and what it is made of, down to disks and to files behind loop devices."""
    if device is None:
        return
    yield str(device.node)
    for lower in (device.disk(), *device.slaves()):
        if lower != device:
            yield from stack(lower)
    backing = device.backing()
    if backing is not None and backing[0]:
        yield _file(*backing)
    elif backing is not None:
        yield from stack(BlockDevice.of_number(backing[1]))


def _file(device: int, inode: int) -> str:
    return f"inode {inode} of device {os.major(device)}:{os.minor(device)}"


def _file_system(device: int) -> str:
    """Name what is filled, in whichever of its directories."""
    return f"file system {os.major(device)}:{os.minor(device)}"


def settings(prepared: PreparedExperiment, controls: Controls) -> list[Setting]:
    """Return every setting that some run makes, with those that the kernel resets with it."""
    claims: dict[Setting, None] = {}
    for control, subject in _set_controls(prepared):
        if VOLUME in subject:
            continue  # It comes with the layout, whose devices are claimed.
        # What means nothing here is refused by the run that sets it, with the reason.
        claims |= dict.fromkeys((*controls.meant(control, subject), *controls.reset_by(control, subject)))
        if control == FillLevel.name:
            with contextlib.suppress(OSError):  # The run that fills it says that it is not there.
                claims[Setting("", _file_system(Path(subject).stat().st_dev))] = None
    drops = (drop for run in prepared.document.runs for drop in prepared.asked(run).drops)
    return list(claims | dict.fromkeys(Setting("page_cache", drop.host or "") for drop in drops))


def _set_controls(prepared: PreparedExperiment) -> Iterator[tuple[str, str]]:
    for one in prepared.whole.settings:
        yield one.control, one.subject
    for run in prepared.document.runs:
        conditions = prepared.asked(run)
        yield from ((one.control, one.subject) for one in conditions.settings)
        yield from (("command", pair.name) for pair in conditions.commands)


def targets(prepared: PreparedExperiment, resolve: Callable[[Next], Resolution]) -> Sequence[str]:
    """Return what the runs read and write, as far as it is there before a layout is built."""
    first = [one for one in prepared.known if prepared.runs[one.name].block == 0]
    looking = say("path.child.looking.targets")
    return run_in_child(lambda: stored([resolve(one).plan for one in first]), doing=looking)


def stored(plans: Iterable[Plan]) -> list[str]:
    """Return the targets of Plans that keep what is written, by all their names."""
    used = [one for plan in plans for one in plan.targets if one.kind in STORED]
    return [one.path for one in used] + [one.namesake.path for one in used if one.namesake is not None]
