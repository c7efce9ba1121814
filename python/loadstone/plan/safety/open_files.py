"""Who has which file or device open, mapped or locked; to write it, or also only to read it.

Knows /proc/PID/fd, maps and map_files, what rings of io_uring keep, /proc/locks and the states of nfsd's
clients (proc(5), Linux io_uring/fdinfo.c, fs/locks.c and fs/nfsd/nfs4state.c), and `Key`: what a file is
by, whatever its name and whatever mount namespace it was opened in. Judges nothing.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.path import inode
from loadstone.plan.safety.use import Use, UseKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROC: Final = Path("/proc")
PATIENCE_S: Final = 4.0
"""For the mappings of one process: they are read in microseconds, or not at all."""
Key = tuple[int, int]
"""What a file is by: (0, `st_rdev`) for a block device, else (`st_dev`, `st_ino`)."""

_SHARED: Final = re.compile(r"^(\S+) .w.s \S+ ([0-9a-f]+):([0-9a-f]+) ([1-9]\d*) (.*)$", re.MULTILINE)
"""A shared mapping that may be written: its addresses, the file's device, inode and name."""
_OF_A_FILE: Final = re.compile(r"^(\S+) \S{4} \S+ ([0-9a-f]+):([0-9a-f]+) ([1-9]\d*) (.*)$", re.MULTILINE)
"""Any mapping of a file."""
_FLAGS: Final = re.compile(r"^flags:\s*([0-7]+)", re.MULTILINE)
"""How a descriptor was opened, in its fdinfo."""
_LOCK: Final = re.compile(
    r"^\d+:\s+(?:-> )?(\S+)\s+\S+\s+(\S+)\s+(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ", re.MULTILINE
)
_RING: Final = "anon_inode:[io_uring]"
_REGISTERED: Final = re.compile(r"^ *\d+: (/dev/\S+)$", re.MULTILINE)
"""A device that a ring keeps. Older kernels print the last part of its name, which may be any file's."""
RING_LOOKS: Final = 20
"""A ring that is busy shows nothing of what it keeps, for microseconds."""
_NFS_OPEN: Final = re.compile(r'access: \S*w\S*,.*superblock: "([0-9a-f]+):([0-9a-f]+):(\d+)"')


def key_of(path: Path | str) -> Key | None:
    """Key of a block device or regular file; `None` for anything else, or nothing.

    Asks the kernel alone: what others have open may lie on a server or daemon that does not answer.
    """
    try:
        numbers = inode.type_and_numbers(str(path))
        if numbers is None:
            return key_of_status(os.stat(path))  # noqa: PTH116 # of /proc's links by text
    except OSError:
        return None
    return _key_of(*numbers)


def key_of_status(status: os.stat_result) -> Key | None:
    """Key of what `stat(2)` told of."""
    return _key_of(status.st_mode, status.st_dev, status.st_ino, status.st_rdev)


def _key_of(mode: int, device: int, number: int, itself: int) -> Key | None:
    if stat.S_ISBLK(mode):
        return (0, itself)
    return (device, number) if stat.S_ISREG(mode) else None


def users(proc: Path = PROC) -> dict[Key, list[Use]]:
    """Return for each file or device that others use who and how."""
    uses: dict[Key, list[Use]] = {}
    others = [one for one in proc.iterdir() if one.name.isdecimal() and int(one.name) != os.getpid()]
    for process, mapped in zip(others, _mapped_by(others, _SHARED), strict=True):
        written = _open_for_writing(process)
        for key in written:
            uses.setdefault(key, []).append(_use(process, UseKind.OPEN, "plan.held.written"))
        for key in mapped - written:
            uses.setdefault(key, []).append(_use(process, UseKind.MAPPED, "plan.held.mapped"))
        for key in _registered(process) - written:
            uses.setdefault(key, []).append(_use(process, UseKind.OPEN, "plan.held.registered"))
    for key, use in [*_locked(proc), *_open_over_nfs(proc)]:
        uses.setdefault(key, []).append(use)
    return uses


def _use(process: Path, kind: UseKind, message: str) -> Use:
    return Use(kind, say(message, process=name_of(process)), int(process.name))


def ours(proc: Path = PROC) -> set[Key]:
    """Return what this process has open or mapped for writing."""
    return _open_for_writing(proc / "self") | _mapped(proc / "self", _SHARED)


def readers(proc: Path = PROC) -> dict[Key, list[Use]]:
    """Return for each regular file that processes, this one too, have open or mapped at all, which do."""
    uses: dict[Key, list[Use]] = {}
    processes = [one for one in proc.iterdir() if one.name.isdecimal()]
    for process, mapped in zip(processes, _mapped_by(processes, _OF_A_FILE), strict=True):
        # A program maps hundreds of libraries: it is named once.
        use = _use(process, UseKind.READ, "plan.held.read")
        for key in _open_at_all(process) | mapped:
            uses.setdefault(key, []).append(use)
    return uses


def _open_at_all(process: Path) -> set[Key]:
    keys: set[Key] = set()
    for number in _descriptors(process):
        with contextlib.suppress(OSError):
            key = key_of(f"{process}/fd/{number}")
            # What is only held by its name (O_PATH) is not open.
            if key is not None and key[0] and key not in keys and not _flags(process, number) & os.O_PATH:
                keys.add(key)
    return keys


def _descriptors(process: Path) -> list[str]:
    """Return the descriptors of a process as /proc names them; none of one that cannot be looked at."""
    with contextlib.suppress(OSError):
        return os.listdir(f"{process}/fd")  # noqa: PTH208 # a Path per descriptor takes longer than the kernel
    return []


def _flags(process: Path, number: str) -> int:
    """Return how a descriptor was opened (open(2)), `O_PATH` where that is unknown. Raises OSError."""
    match = _FLAGS.search(_read(f"{process}/fdinfo/{number}"))
    return os.O_PATH if match is None else int(match[1], 8)


def _read(path: str) -> str:
    """Return what the kernel tells in a file of /proc. Raises OSError."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 # a Path takes longer than the kernel
        return file.readall().decode(errors="replace")


def name_of(process: Path) -> str:
    """Say which process a directory of /proc is."""
    try:
        name = (process / "comm").read_text(errors="replace").strip()
    except OSError:
        name = "already gone"
    return f"process {process.name} ({name})"


def _open_for_writing(process: Path) -> set[Key]:
    keys: set[Key] = set()
    for number in _descriptors(process):
        with contextlib.suppress(OSError):
            key = key_of(f"{process}/fd/{number}")
            if key is not None and key not in keys and _flags(process, number) & os.O_ACCMODE != os.O_RDONLY:
                keys.add(key)
    return keys


def _registered(process: Path) -> set[Key]:
    """Return the devices that rings of a process keep open, also after it closed them.

    The kernel does not say whether to write them. Of files it gives no lease (`in_use.is_open_for_writing`).
    """
    keys: set[Key] = set()
    for number in _descriptors(process):
        with contextlib.suppress(OSError):
            if os.readlink(f"{process}/fd/{number}") == _RING:  # noqa: PTH115 # as `_descriptors`
                names = _REGISTERED.findall(_kept_by(process / "fdinfo" / number))
                devices = (key_of(_seen_by(process, name)) for name in names)
                keys.update(key for key in devices if key is not None and key[0] == 0)
    return keys


def _kept_by(ring: Path) -> str:
    """Read what a ring tells, again while it is busy."""
    text = ""
    for _ in range(RING_LOOKS):
        text = ring.read_text(errors="replace")
        if "UserFiles:" in text:
            break
        time.sleep(0.001)
    return text


def _seen_by(process: Path, name: str) -> Path:
    """Return the way to what a process calls by a name of its own mount namespace."""
    own = Path(name)
    try:
        is_shared = (process / "ns" / "mnt").readlink() == (PROC / "self" / "ns" / "mnt").readlink()
    except OSError:
        return own
    return own if is_shared else process / "root" / own.relative_to("/")


def _mapped_by(processes: Sequence[Path], lines: re.Pattern[str]) -> Iterator[set[Key]]:
    """Yield what each process has mapped by such lines of `maps`; nothing of one that cannot be looked at.

    Where a fault waits for storage that does not answer, and another thread wants to change the mappings,
    whoever reads them waits too. Of what such a process has mapped and closed the kernel tells all the
    same that it is open for writing, if it is a file (`in_use.is_open_for_writing`).
    """
    answers: queue.SimpleQueue[set[Key]] | None = None
    for number in range(len(processes)):
        if answers is None:
            answers = _looked_at(processes[number:], lines)
        keys: set[Key] = set()
        try:
            keys = answers.get(timeout=PATIENCE_S)
        except queue.Empty:
            answers = None
        yield keys


def _looked_at(processes: Sequence[Path], lines: re.Pattern[str]) -> queue.SimpleQueue[set[Key]]:
    """Look at the mappings of one process after the other in a thread.

    One that is stuck stays behind, and ends with this process: its wait can be killed.
    """
    answers: queue.SimpleQueue[set[Key]] = queue.SimpleQueue()

    def look() -> None:
        for process in processes:
            answers.put(_mapped(process, lines))

    threading.Thread(target=look, name="mappings", daemon=True).start()
    return answers


def _mapped(process: Path, lines: re.Pattern[str]) -> set[Key]:
    """Return what is mapped by such lines of `maps`, also after it was closed."""
    keys: set[Key] = set()
    with contextlib.suppress(OSError):
        # A library is mapped in five parts, whose lines have the same device, inode and name.
        parts: dict[tuple[str, ...], list[str]] = {}
        for match in lines.finditer(_read(f"{process}/maps")):
            parts.setdefault(match.group(2, 3, 4, 5), []).append(match[1])
        for (major, minor, number, _), places in parts.items():
            # The link knows btrfs' and overlayfs' own device numbers; without privilege the line has to do.
            linked = (key_of(f"{process}/map_files/{place}") for place in places)
            key = next((one for one in linked if one is not None), None)
            keys.add(key or (os.makedev(int(major, 16), int(minor, 16)), int(number)))
    return keys


def _locked(proc: Path) -> list[tuple[Key, Use]]:
    """Locks of others: flock(2), fcntl(2) and those of an open file description, and leases."""
    try:
        text = (proc / "locks").read_text(errors="replace")
    except OSError:
        return []
    locks = []
    for match in _LOCK.finditer(text):
        kind, process = match[1], int(match[3])
        if process == os.getpid():
            continue
        who = name_of(proc / str(process)) if process > 0 else say("plan.held.other_process")
        if kind in {"LEASE", "DELEG"}:
            text_of_lock = say("plan.held.leased", process=who)
        else:
            text_of_lock = say("plan.held.locked", process=who, kind=kind)
        use = Use(UseKind.LOCKED, text_of_lock, process if process > 0 else None)
        locks.append((_key(match[4], match[5], match[6]), use))
    return locks


def _open_over_nfs(proc: Path) -> list[tuple[Key, Use]]:
    """Return what clients of this host's NFS server have open for writing."""
    uses: list[tuple[Key, Use]] = []
    use = Use(UseKind.SERVED, say("plan.held.nfs_client"))
    for states in (proc / "fs" / "nfsd" / "clients").glob("*/states"):
        with contextlib.suppress(OSError):
            opened = _NFS_OPEN.finditer(states.read_text(errors="replace"))
            uses += [(_key(*match.groups()), use) for match in opened]
    return uses


def _key(major: str, minor: str, inode: str) -> Key:
    return (os.makedev(int(major, 16), int(minor, 16)), int(inode))
