"""What the targets of an experiment stand on: whether it is detached, replaced or remounted while that lasts.

Knows devices, mounts and files by what no other one in their place has. Sets nothing, and does not decide
what becomes of a run.
"""

from __future__ import annotations

import contextlib
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.control.layout.build import identity_of
from loadstone.control.mounts import MountOptions
from loadstone.errors import RunError
from loadstone.messages import say
from loadstone.path import inode
from loadstone.path.block import BlockDevice
from loadstone.path.child import run_in_child
from loadstone.path.mounts import mount_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

LOOKING: Final = "looking at the targets of the experiment"


@dataclass(frozen=True, slots=True)
class TargetIdentity:
    """A target at one moment. What does not apply is empty: a device has no mount, a file no size."""

    device: str = ""
    """A number that no other disk gets."""
    size_bytes: int = 0
    point: str = ""
    source: str = ""
    """Kind and source of the file system."""
    mount: int = 0
    """A number that no other mount gets."""
    options: frozenset[str] = frozenset()
    file: tuple[int, int, int | None] | None = None
    """Device, inode and birth, which tells two apart that had one inode; None: it is not there."""

    @classmethod
    def of(cls, path: str) -> TargetIdentity:
        """Look at a device, a file, or where one will be."""
        try:
            status = Path(path).stat()
        except OSError:
            status = None
        if status is not None and stat.S_ISBLK(status.st_mode):
            device = BlockDevice.of_number(status.st_rdev)
            return cls(identity_of(path) or path, 0 if device is None else device.size_bytes)
        mount = mount_of(Path(path))
        file = None if status is None else (status.st_dev, status.st_ino, inode.steady_birth_of(path))
        if mount is None:
            return cls(file=file)
        options = MountOptions().read(mount.point) or ""
        return cls(
            point=mount.point,
            source=f"{mount.kind} of {mount.source}",
            mount=inode.mount_number(mount.point) or 0,
            options=frozenset(options.replace("|", ",").split(",")),
            file=file,
        )

    def change(self, now: TargetIdentity, *, file: bool = True) -> str | None:
        """Return what became of it; None: nothing. `file`: look also whether it is the same file."""
        if self.device or now.device:
            return self._change_of_device(now)
        if (why := self._change_of_mount(now)) is not None or not file or now.file == self.file:
            return why
        if now.file is None:
            return say("experiment.target.gone")
        return say("experiment.target.new" if self.file is None else "experiment.target.other_file")

    def _change_of_device(self, now: TargetIdentity) -> str | None:
        if not now.device:
            return say("experiment.target.gone")
        if self.size_bytes and not now.size_bytes:
            return say("experiment.target.detached")
        if self.device != now.device:
            return say("experiment.target.other_device")
        if self.size_bytes != now.size_bytes:
            # In full: rounded, two sizes may read the same.
            sizes = [f"{one.size_bytes:,} bytes" for one in (self, now)]
            return say("experiment.target.size", before=sizes[0], now=sizes[1])
        return None

    def _change_of_mount(self, now: TargetIdentity) -> str | None:
        if self.point != now.point and self.point.startswith(now.point):
            return say("experiment.target.unmounted", point=self.point, now=now.point)
        if (self.point, self.source) != (now.point, now.source):
            return say("experiment.target.other_mount", point=now.point, now=now.source)
        if self.mount != now.mount:
            return say("experiment.target.mounted_again", point=now.point)
        if self.options != now.options:
            came, went = sorted(now.options - self.options), sorted(self.options - now.options)
            before, after = ",".join(went) or "-", ",".join(came) or "-"
            return say("experiment.target.remounted", point=now.point, before=before, now=after)
        return None


def seen(paths: Iterable[str]) -> dict[str, TargetIdentity]:
    """Look at all of them, in a child: one that does not answer is left behind. Raises RunError."""
    every = list(dict.fromkeys(paths))
    looked_at: dict[str, TargetIdentity] = {}
    if every:
        looked_at = run_in_child(lambda: {one: TargetIdentity.of(one) for one in every}, doing=LOOKING)
    return looked_at


@dataclass(slots=True)
class TargetWatch:
    """Targets as they are to be between two runs. `commands`: those of runs may put others in their place."""

    paths: tuple[str, ...] = ()
    commands: bool = False
    look: Callable[[Iterable[str]], Mapping[str, TargetIdentity]] = seen
    _expected: dict[str, TargetIdentity] = field(default_factory=dict)
    _volumes: tuple[str, ...] = ()

    def begin(self) -> None:
        """Take what is there now for what it is to be, where nothing was taken yet."""
        self._expected |= self.look(one for one in self.paths if one not in self._expected)

    def stand(self, volumes: Iterable[str]) -> None:
        """Hold the devices and volumes of a layout, which stands, to what they are now."""
        self._volumes = tuple(dict.fromkeys(one for one in volumes if one not in self._expected))
        self._expected |= self.look(self._volumes)

    def gone(self) -> None:
        """Forget those of the layout, which was taken down."""
        for one in self._volumes:
            del self._expected[one]
        self._volumes = ()

    def now(self) -> dict[str, TargetIdentity]:
        """Return all of them as they are now."""
        return dict(self.look(self._expected))

    def changed(self) -> Iterator[tuple[str, str]]:
        """Yield each that is not what it is to be, and why."""
        yield from _changes(self._expected, self.now(), file=True)

    def changed_since(self, before: Mapping[str, TargetIdentity]) -> Iterator[tuple[str, str]]:
        """Yield each whose device or mount changed; its file is what a run may make anew."""
        yield from _changes(before, self.now(), file=False)

    def ran(self) -> None:
        """Take what a run may have changed for given, now that what was set for it is put back."""
        looked_at: dict[str, TargetIdentity] = {}
        with contextlib.suppress(RunError):  # What does not answer is told before the next run.
            looked_at = self.now()
        for path, target in looked_at.items():
            expected = self._expected[path]
            self._expected[path] = target if self.commands else replace(expected, file=target.file)


def _changes(
    before: Mapping[str, TargetIdentity], now: Mapping[str, TargetIdentity], *, file: bool
) -> Iterator[tuple[str, str]]:
    for path, target in before.items():
        why = target.change(now[path], file=file)
        if why is not None:
            yield path, why
