"""Settings of devices and file systems that no target is on: what they change is not what is measured.

Knows what lies under targets, as far as this host shows it. Refuses nothing: a target may be served from
a device of this host through a program, which nobody sees.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.control import block
from loadstone.control.all_controls import Controls
from loadstone.experiment.file import VOLUME
from loadstone.messages import say
from loadstone.path.mounts import mount_of
from loadstone.path.underlying import under_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from loadstone.experiment.file import ExperimentFile

OF_DISKS = frozenset(control.name for control in block.CONTROLS)


def elsewhere(whole: ExperimentFile, targets: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each setting of a disk or file system that none of the targets is on.

    `targets`: paths of the runs that could be planned; those on a layout are on its `devices`.
    """
    paths = [Path(one) for one in (*targets, *whole.devices)]
    devices = {name for path in paths for name in _disks(path)}
    points = dict.fromkeys(mount.point for path in paths if (mount := mount_of(path)) is not None)
    for control, subject in dict.fromkeys(_subjects(whole)):
        if control in OF_DISKS and devices:
            disks = {one.subject for one in Controls().meant(control, subject)}
            if disks and not disks & devices:
                yield say(
                    "experiment.elsewhere.disk",
                    control=control,
                    subject=subject,
                    devices=", ".join(sorted(devices)),
                )
        elif control in ("mount_options", "fill_level") and points and not whole.layouts:
            mount = mount_of(Path(subject))
            if mount is not None and mount.point not in points:
                yield say(
                    "experiment.elsewhere.mount", control=control, subject=subject, points=", ".join(points)
                )


def _disks(path: Path) -> set[str]:
    """Return the disks and devices that carry a path, or the directory that it will be in."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return {name for device in under_path(path) for name in (device.name, device.disk().name)}


def _subjects(whole: ExperimentFile) -> Iterator[tuple[str, str]]:
    for factor in whole.factors:
        if factor.control and factor.subject and VOLUME not in factor.subject:
            yield factor.control, factor.subject
        elif factor.what == "fill_level" and factor.of and VOLUME not in factor.of:
            yield "fill_level", factor.of
    for setting in whole.settings:
        if setting.subject and VOLUME not in setting.subject:
            yield setting.control, setting.subject
