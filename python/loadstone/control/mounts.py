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
from loadstone.messages import make_error, say
from loadstone.path.mounts import Mount, mounts

PATIENCE_S: Final = 120
ROUNDS: Final = 3
"""An option may reset another: the compression of btrfs ends nodatasum."""
DEFAULTS: Final = {
    ("ext4", "commit"): "commit=5",
    ("ext4", "data_err"): "data_err=ignore",
    ("ext4", "errors"): "errors=continue",
    ("ext4", "init_itable"): "init_itable=10",
    ("ext4", "inode_readahead_blks"): "inode_readahead_blks=32",
    ("ext4", "max_batch_time"): "max_batch_time=15000",
    ("ext4", "max_dir_size_kb"): "max_dir_size_kb=0",
    ("ext4", "min_batch_time"): "min_batch_time=0",
    ("ext4", "resgid"): "resgid=0",
    ("ext4", "resuid"): "resuid=0",
    ("ext4", "stripe"): "stripe=0",
    ("btrfs", "commit"): "commit=30",
    ("btrfs", "compress"): "compress=no",
    ("btrfs", "compress-force"): "compress=no",
    ("btrfs", "fatal_errors"): "fatal_errors=bug",
    ("btrfs", "max_inline"): "max_inline=2048",
    ("btrfs", "metadata_ratio"): "metadata_ratio=0",
}
"""What takes an option with a value away: its default (ext4(5), btrfs(5))."""
UNSHOWN_OF: Final = {
    "ext4": {"acl", "auto_da_alloc", "barrier", "block_validity", "data=ordered", "delalloc"}
    | {"dioread_nolock", "nodiscard", "user_xattr"},
    "btrfs": {"acl", "barrier", "datacow", "datasum", "nodiscard", "treelog"},
    "xfs": {"nodiscard"},
}
UNSHOWN: Final = (
    frozenset({"diratime", "suid", "dev", "exec", "async", "nolazytime"})
    .union(*UNSHOWN_OF.values())
    .union(DEFAULTS.values())
)
"""Options that are the default, which the kernel does not show."""
ONE_WAY: Final = {
    "ext4": {"abort", "delalloc", "journal_async_commit", "no_prefetch_block_bitmaps"},
    "btrfs": {"skip_balance", "user_subvol_rm_allowed"},
}
"""What a remount sets and none takes away."""
SAME: Final = {"barrier=0": "nobarrier", "barrier=1": "barrier", "discard=sync": "discard"}
"""What the kernel shows by another word."""
OPPOSITES: Final = {
    "ro": "rw", "rw": "ro", "sync": "async", "async": "sync", "inode32": "inode64", "inode64": "inode32",
}  # fmt: skip
QUOTAS: Final = frozenset({"quota", "usrquota", "grpquota", "prjquota"})
"""Of ext4, which takes all of them away by one word."""
SOLID_STATE: Final = frozenset({"ssd", "nossd", "ssd_spread"})
ATIMES: Final = {"noatime", "relatime", "nodiratime"}
THREADS: Final = "thread_pool"
"""btrfs shows its number only where it is not that of the CPUs that are online."""


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
        return None if mount is None else f"{mount.options}|{_of_file_system(mount)}"

    def write(self, subject: str, value: str) -> None:
        """Remount with options added, or as it was (a value with a bar, as `read` gives it)."""
        mount = self._mount(subject)
        if mount is None:
            raise make_error(RefusedError, "control.mount.not_mounted", subject=subject)
        if "|" not in value:
            self._remount(subject, value)
            return
        for _ in range(ROUNDS):
            mount = self._mount(subject)
            if mount is None or not (options := _difference(mount, value)):
                return
            self._remount(subject, options)

    def _remount(self, subject: str, options: str) -> None:
        command = ["mount", "-o", f"remount,{options}", subject]
        environment = os.environ | {"LC_ALL": "C"}
        lock = orphans.lock_of(self.name, subject)
        done = orphans.run(command, lock, timeout=PATIENCE_S, env=environment)
        orphans.forget(lock)
        if done.returncode != 0:
            words = " ".join((done.stderr or done.stdout).split())
            words = words or say("control.mount.ended", code=done.returncode)
            raise make_error(
                RefusedError, "control.mount.failed", subject=subject, options=options, reason=words
            )

    def agrees(self, requested: str, value: str) -> bool:
        """Return whether all options asked for are there; defaults are not shown by the kernel."""
        if "|" in requested:
            return [set(part.split(",")) for part in requested.split("|")] == [
                set(part.split(",")) for part in value.split("|")
            ]
        present_options = set(value.replace("|", ",").split(","))
        return all(_in_force(option, present_options) for option in requested.split(","))

    def refuses(self, subject: str, value: str) -> str:
        """Return which option it does not have, or no remount takes away again; empty: none is known."""
        mount = self._mount(subject)
        if mount is None:
            return ""
        present_options = {*mount.options.split(","), *_of_file_system(mount).split(",")}
        for option in value.split(","):
            if _of_another(mount.kind, option):
                return say("control.mount.of_another", option=option, filesystem=mount.kind)
            if not _in_force(option, present_options) and _stays(mount.kind, option, present_options):
                return say("control.mount.stays", option=option, filesystem=mount.kind)
        return ""

    def identity(self, subject: str) -> str:
        """Return the file system's device number."""
        mount = self._mount(subject)
        return "" if mount is None else f"{os.major(mount.device)}:{os.minor(mount.device)}"

    @staticmethod
    def _mount(subject: str) -> Mount | None:
        # The last one covers those before it.
        return next((mount for mount in reversed(mounts()) if mount.point == subject), None)


def _of_file_system(mount: Mount) -> str:
    """Return the options of its file system, with the threads of btrfs whether they are shown or not.

    It does not show the number that it would take now. A CPU that went offline meanwhile, as in another
    experiment, changed what was shown of a mount that nobody had touched.
    """
    if mount.kind != "btrfs" or any(_key(one) == THREADS for one in mount.super_options.split(",")):
        return mount.super_options
    return f"{mount.super_options},{THREADS}={min(os.sysconf('SC_NPROCESSORS_ONLN') + 2, 8)}"


def _key(option: str) -> str:
    return option.partition("=")[0]


def _in_force(option: str, present_options: set[str]) -> bool:
    """Return whether an option is shown, or is a default that nothing shown speaks against."""
    option = SAME.get(option, option)
    if option in present_options:
        return True
    if option in ("atime", "strictatime"):
        return not present_options & ({"noatime"} if option == "atime" else {"noatime", "relatime"})
    # zstd is shown with its level.
    if any(one.startswith(f"{option}:" if "=" in option else f"{option}=zlib:") for one in present_options):
        return _key(option).startswith("compress")
    if option not in UNSHOWN:
        return False
    keys = {_key(one) for one in present_options}
    if option == DEFAULTS["btrfs", "compress"]:
        return not keys & {"compress", "compress-force"}
    return _key(option if "=" in option else _opposite(option)) not in keys


def _stays(kind: str, option: str, present_options: set[str]) -> bool:
    """Return whether no remount is known that makes the mount what it was without this option."""
    keys = {_key(one) for one in present_options}
    if "=" in option:
        return _key(option) not in keys and SAME.get(option, option) == option and not _away(kind, option)
    # Without any of these three btrfs decided itself, and cannot be told to.
    undecided = kind == "btrfs" and option in SOLID_STATE and not keys & SOLID_STATE
    return undecided or option in ONE_WAY.get(kind, ())


def _of_another(kind: str, option: str) -> bool:
    """Return whether this is a default of other file systems: what is not shown would count as set."""
    own, others = UNSHOWN_OF.get(kind, set()), set().union(*UNSHOWN_OF.values())
    if kind not in UNSHOWN_OF or "=" not in option:
        return kind in UNSHOWN_OF and option in others - own
    kinds = {name for name, key in DEFAULTS if key == _key(option)}
    return option in others - own or (bool(kinds) and kind not in kinds)


def _difference(mount: Mount, before: str) -> str:
    """Return the options that make a mount what it was: what goes first, as `compress=no` ends all of it."""
    flags, _, own = before.partition("|")
    options: list[str] = []
    for was, now in ((flags.split(","), mount.options), (own.split(","), _of_file_system(mount))):
        present_options = now.split(",")
        keys = {_key(option) for option in was}
        gone = [option for option in present_options if option not in was]
        options += [
            _away(mount.kind, option) for option in gone if _key(option) not in keys and option not in ATIMES
        ]
        options += [option for option in was if option not in present_options]
        if ATIMES & (set(was) ^ set(present_options)):
            options += _atime(set(was))
    return ",".join(dict.fromkeys(option for option in options if option))


def _atime(flags: set[str]) -> list[str]:
    """Return all three flags on access times: a remount keeps a flag that is not given."""
    first = [] if "noatime" in flags else ["atime", "relatime" if "relatime" in flags else "strictatime"]
    return [*first, "nodiratime" if "nodiratime" in flags else "diratime"]


def _away(kind: str, option: str) -> str:
    """Return what takes an option away; empty: nothing is known that does."""
    if option.startswith("mb_optimize_scan="):
        return "mb_optimize_scan=0" if option.endswith("1") else "mb_optimize_scan=1"
    if kind == "ext4" and option in QUOTAS:
        return "noquota"
    return DEFAULTS.get((kind, _key(option)), "") if "=" in option else _opposite(option)


def _opposite(option: str) -> str:
    if option in OPPOSITES:
        return OPPOSITES[option]
    prefix = next((one for one in ("no_", "no") if option.startswith(one)), "")
    return option.removeprefix(prefix) if prefix else f"no{option}"
