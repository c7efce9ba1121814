"""Who comes to the targets of a run while they are written.

The kernel tells of every open of them (inotify(7)), so nobody is looked for until somebody comes. A loop
device, a mount, swap and a program all begin with an open. Who only looks, or is gone by the second
look, ends nothing (`foreign_writers` knows whether it wrote). Knows files and block devices; of trees the
engine looks at each file itself.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Final

from loadstone.plan.model import TargetKind
from loadstone.plan.safety import in_use
from loadstone.plan.safety.held import held_as_checked
from loadstone.plan.safety.in_use import Snapshot
from loadstone.plan.safety.use import UseKind

if TYPE_CHECKING:
    from collections.abc import Container

    from loadstone.plan.model import Target
    from loadstone.plan.safety.run_targets import RunTargets

MOST_TARGETS: Final = 1000
"""A user has 8,192 watches on small hosts (fs.inotify.max_user_watches)."""
AGAIN_S: Final = 0.5
"""From a look that finds a use to the one that confirms it."""
LONGEST_S: Final = 16.0
"""Longest time from a look to the next: some programs open a file all the time, and only read."""
_IN_OPEN: Final = 0x20
_EVENTS_BYTES: Final = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)

TargetUse = tuple[str, str]
"""The path of a target, and the sentence that says how it is used."""


class Newcomers:
    """Watches what a run writes. Touches no target but in `attend` and `look`, which a child calls."""

    def __init__(self, run_targets: RunTargets, shared: Container[str] = (), *, long_layout: bool) -> None:
        """`shared`: paths that other hosts of the run have open for writing, too.

        `long_layout`: files were laid out since the check, for hours perhaps, so that somebody may have come.
        """
        targets = [run_targets.plan.targets[index] for index in sorted(run_targets.written)]
        self._targets: list[Target] = [
            one for one in targets if one.kind in (TargetKind.FILE, TargetKind.BLOCK)
        ][:MOST_TARGETS]
        self._shared = shared
        self._descriptor = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC) if self._targets else -1
        self._came = long_layout
        self._wait_s = AGAIN_S
        self._not_before_s = 0.0
        self._before: frozenset[TargetUse] = frozenset()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a child must keep open that calls `attend`."""
        return () if self._descriptor < 0 else (self._descriptor,)

    def attend(self) -> None:
        """Have the kernel tell of opens from now on."""
        for target in self._targets if self.descriptors else ():
            with held_as_checked(target) as path:
                if path is not None:
                    _libc.inotify_add_watch(self._descriptor, os.fsencode(path), _IN_OPEN)

    def is_due(self, now_s: float) -> bool:
        """Whether it is time to `look`."""
        if not self.descriptors:
            return False
        try:
            while os.read(self._descriptor, _EVENTS_BYTES):
                self._came = True
        except OSError:
            pass  # No more of them.
        return self._came and now_s >= self._not_before_s

    def look(self, engine: int) -> frozenset[TargetUse]:
        """Return how others than the engine use the targets."""
        host, uses = Snapshot(), set[TargetUse]()
        for target in self._targets:
            with held_as_checked(target) as path:
                if path is None:
                    continue
                for use in (use for key in in_use.keys(path, host) for use in host.file_uses.get(key, [])):
                    others = target.path in self._shared and use.kind is UseKind.OPEN
                    if not (others or use.process == engine):
                        uses.add((target.path, use.text))
        return frozenset(uses)

    def judge(self, uses: frozenset[TargetUse], now_s: float) -> TargetUse | None:
        """Return a use that was there at the last look, too."""
        confirmed = uses & self._before
        self._before, self._came = uses, bool(uses)
        self._wait_s = AGAIN_S if uses else min(2 * self._wait_s, LONGEST_S)
        self._not_before_s = now_s + self._wait_s
        return min(confirmed, default=None)

    def close(self) -> None:
        """Watch no longer."""
        if self.descriptors:
            os.close(self._descriptor)
            self._descriptor = -1
