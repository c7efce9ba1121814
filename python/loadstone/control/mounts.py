"""Options of a file system that is mounted.

Knows mount(8)'s `remount`, /proc/self/mountinfo and how an option that was not there before is taken
away again. What comes of it is read back, so an option without a known opposite is told.
"""

from __future__ import annotations

import os
import shutil
from typing import Final

from loadstone.control import orphans
from loadstone.control.control_kind import Control
from loadstone.errors import RefusedError
from loadstone.messages import make_error
from loadstone.path.mounts import Mount, mounts

PATIENCE_S: Final = 120
DEFAULTS: Final = {
    ("ext4", "commit"): "commit=5",
    ("ext4", "max_batch_time"): "max_batch_time=15000",
    ("ext4", "min_batch_time"): "min_batch_time=0",
    ("ext4", "stripe"): "stripe=0",
    ("btrfs", "commit"): "commit=30",
    ("btrfs", "compress"): "compress=no",
    ("btrfs", "compress-force"): "compress=no",
    ("btrfs", "thread_pool"): "thread_pool=0",
    ("xfs", "allocsize"): "allocsize=64k",
}
"""What takes an option with a value away: its default (ext4(5), btrfs(5), xfs(5))."""
UNSHOWN: Final = frozenset(
    {"atime", "diratime", "strictatime", "suid", "dev", "exec", "async"}
    | {"barrier", "delalloc", "datacow", "datasum", "nodiscard", "nolazytime"}
    | set(DEFAULTS.values())
)
"""Options that are the default, which the kernel does not show."""
ATIMES: Final = {"noatime", "relatime", "nodiratime"}


class MountOptions(Control):
    """The options of a mount: `noatime,commit=30` are added, or take the place of their opposites."""

    name, title, source = "mount_options", "mount options", "mount(8)"
    by_program = True

    def subjects(self) -> list[str]:
        """Return the mount points of block devices and network file systems."""
        every = [
            mount.point for mount in mounts() if mount.source.startswith("/dev/") or ":/" in mount.source
        ]
        return list(dict.fromkeys(every)) if shutil.which("mount") else []

    def read(self, subject: str) -> str | None:
        """Return the mount's options and, after a bar, those of its file system."""
        mount = self._mount(subject)
        return None if mount is None else f"{mount.options}|{mount.super_options}"

    def write(self, subject: str, value: str) -> None:
        """Remount with options added, or as it was (a value with a bar, as `read` gives it)."""
        mount = self._mount(subject)
        if mount is None:
            raise make_error(RefusedError, "control.mount.not_mounted", subject=subject)
        options = _difference(mount, value) if "|" in value else value
        if not options:
            return
        command = ["mount", "-o", f"remount,{options}", subject]
        environment = os.environ | {"LC_ALL": "C"}
        lock = orphans.lock_of(self.name, subject)
        done = orphans.run(command, lock, timeout=PATIENCE_S, env=environment)
        orphans.forget(lock)
        if done.returncode != 0:
            words = " ".join((done.stderr or done.stdout).split()) or f"mount ended with {done.returncode}"
            raise make_error(
                RefusedError, "control.mount.failed", subject=subject, options=options, reason=words
            )

    def agrees(self, requested: str, value: str) -> bool:
        """Return whether all options asked for are there; defaults are not shown by the kernel."""
        if "|" in requested:
            return [set(part.split(",")) for part in requested.split("|")] == [
                set(part.split(",")) for part in value.split("|")
            ]
        options = set(value.replace("|", ",").split(","))
        return all(
            option in options or (option in UNSHOWN and _opposite(option) not in options)
            for option in requested.split(",")
        )

    def identity(self, subject: str) -> str:
        """Return the file system's device number."""
        mount = self._mount(subject)
        return "" if mount is None else f"{os.major(mount.device)}:{os.minor(mount.device)}"

    @staticmethod
    def _mount(subject: str) -> Mount | None:
        # The last one covers those before it.
        return next((mount for mount in reversed(mounts()) if mount.point == subject), None)


def _difference(mount: Mount, before: str) -> str:
    """Return the options that make a mount what it was."""
    flags, _, own = before.partition("|")
    wanted: list[str] = []
    for was, now in ((flags, mount.options), (own, mount.super_options)):
        present_options = now.split(",")
        wanted += [option for option in was.split(",") if option not in present_options]
        keys = {option.partition("=")[0] for option in was.split(",")}
        gone = [option for option in present_options if option not in was.split(",")]
        wanted += [
            _away(mount.kind, option)
            for option in gone
            if ("=" not in option or option.partition("=")[0] not in keys) and option not in ATIMES
        ]
        if ATIMES & (set(was.split(",")) ^ set(present_options)):
            wanted += _atime(set(was.split(",")))
    return ",".join(dict.fromkeys(option for option in wanted if option))


def _atime(flags: set[str]) -> list[str]:
    """Return all three flags on access times: a remount keeps a flag that is not given."""
    first = [] if "noatime" in flags else ["atime", "relatime" if "relatime" in flags else "strictatime"]
    return [*first, "nodiratime" if "nodiratime" in flags else "diratime"]


def _away(kind: str, option: str) -> str:
    """Return what takes an option away."""
    key, equals, _ = option.partition("=")
    return DEFAULTS.get((kind, key), "") if equals else _opposite(option)


def _opposite(option: str) -> str:
    pairs = {"ro": "rw", "rw": "ro", "sync": "async", "async": "sync"}
    if option in pairs:
        return pairs[option]
    return option.removeprefix("no") if option.startswith("no") else f"no{option}"
