"""What an experiment keeps to itself while it lasts: its settings, its targets, its directory.

Knows what its runs change and use, and by which names others would. Between two runs all is as it was, and
another experiment that found it so would measure this one's runs. Claims nothing itself.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from loadstone.control.model import Setting
from loadstone.errors import LoadstoneError
from loadstone.experiment.prepared import VOLUME
from loadstone.plan.model import TargetKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from loadstone.control.table import Controls
    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.plan.resolve import Resolution
    from loadstone.study.controller import Next

STORED: Final = (TargetKind.FILE, TargetKind.BLOCK, TargetKind.NVME, TargetKind.TREE)
"""Kinds of targets that two experiments cannot share."""


def things(paths: Iterable[str]) -> list[Setting]:
    """Return claims of files, devices and directories themselves, whatever they are called."""
    return [Setting("", one) for one in dict.fromkeys(map(os.path.realpath, paths))]


def settings(prepared: PreparedExperiment, controls: Controls) -> list[Setting]:
    """Return every setting that some run makes, with those that the kernel resets with it."""
    found: dict[Setting, None] = {}
    for control, subject in _asked(prepared):
        if VOLUME in subject:
            continue  # It comes with the layout, whose devices are claimed.
        kind = controls.named(control)
        try:
            names = kind.resolve(subject)
        except LoadstoneError:
            continue  # The run that sets it will be refused with the reason.
        for name in names:
            found |= dict.fromkeys((Setting(control, name), *kind.companions(name)))
    drops = (drop for run in prepared.document.runs for drop in prepared.asked(run).drops)
    return list(found | dict.fromkeys(Setting("page_cache", drop.host or "") for drop in drops))


def _asked(prepared: PreparedExperiment) -> Iterator[tuple[str, str]]:
    for one in prepared.whole.settings:
        yield one.control, one.subject
    for run in prepared.document.runs:
        asked = prepared.asked(run)
        yield from ((one.control, one.subject) for one in asked.settings)
        yield from (("command", pair.name) for pair in asked.commands)


def targets(prepared: PreparedExperiment, resolve: Callable[[Next], Resolution]) -> Sequence[str]:
    """Return what the runs read and write, as far as it is there before a layout is built."""
    first = [one for one in prepared.known if prepared.runs[one.name].block == 0]
    plans = [resolve(one).plan for one in first]
    return [one.path for plan in plans for one in plan.targets if one.kind in STORED]
