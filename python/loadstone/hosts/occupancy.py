"""Who uses a host as a load generator now: one coordinator at a time.

Knows a directory of records, one for each agent, each locked as long as its process lives:
`/tmp/loadstone-agents`, or `$LOADSTONE_STATE/agents` where that is set. Agents of one run may share a
machine; network namespaces count as hosts of their own. Any user may have put something there: nothing is
removed that is no record, and no link is followed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone import own_directory
from loadstone.errors import RefusedError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY: Final = Path("/tmp/loadstone-agents")  # noqa: S108 # a place that every user of a host finds
_NAME: Final = re.compile(r"\d+-.+\.json")
_FIELDS: Final = {"run", "by", "pid", "since_s", "network"}
_MOST_BYTES: Final = 1 << 16
_LATEST_S: Final = 1 << 36
_TURN_S: Final = 10.0
"""Who has the turn looks at some small files."""
_LOOK_S: Final = 0.05
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Occupancy:
    """This agent's record, held as long as it is open."""

    path: Path
    descriptor: int

    def release(self) -> None:
        """Leave the host to others."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def folder() -> Path:
    """Return the directory of the records."""
    chosen = os.environ.get("LOADSTONE_STATE")
    return Path(chosen) / "agents" if chosen else DIRECTORY


def occupy(run: str, by: str) -> Occupancy:
    """Take the host for a run. Raises `RefusedError` while another run has it."""
    directory = folder()
    try:
        with _opened(directory) as place, _turn(place, directory):
            for other in _others(place):
                if other["run"] != run and other["network"] == _network():
                    raise RefusedError(
                        say("hosts.occupied.refusal", since=_since(other), by=str(other["by"])),
                        hint=say("hosts.occupied.hint", pid=str(other["pid"])),
                    )
            return _new_record(place, directory / f"{os.getpid()}-{run}.json", run, by)
    except OSError as error:
        raise make_error(
            RefusedError, "hosts.occupied.unusable", directory=directory, reason=error.strerror
        ) from error


def _new_record(place: int, path: Path, run: str, by: str) -> Occupancy:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path.name, flags, 0o644, dir_fd=place)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    record = {"run": run, "by": by, "pid": os.getpid(), "since_s": time.time(), "network": _network()}
    os.write(descriptor, json.dumps(record).encode())
    return Occupancy(path, descriptor)


def _opened(directory: Path) -> contextlib.AbstractContextManager[int]:
    """Open the directory of the records, and make it for all users where it is missing."""
    return own_directory.opened(directory, say("program.own_directory.in_state"), for_all=True)


def _since(record: dict[str, Any]) -> str:
    """Say when a host was taken; with its day, where that was not today."""
    then, now = time.localtime(record["since_s"]), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == now[:3] else "%Y-%m-%d %H:%M:%S", then)


@contextlib.contextmanager
def _turn(place: int, directory: Path) -> Iterator[None]:
    """Let one process at a time look and take. Raises `RefusedError` where somebody does not let go."""
    try:
        descriptor = os.open(".turn", _READ, dir_fd=place)
    except FileNotFoundError:
        descriptor = os.open(".turn", _READ | os.O_CREAT, 0o644, dir_fd=place)
    try:
        until_s = time.monotonic() + _TURN_S
        while not _locked(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > until_s:
                raise make_error(RefusedError, "hosts.occupied.turn", path=directory / ".turn")
            time.sleep(_LOOK_S)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _others(place: int) -> Iterator[dict[str, Any]]:
    """Yield the records that a living process holds; those of processes that are gone are removed."""
    for name in os.listdir(place):
        if _NAME.fullmatch(name) is None:
            continue
        try:
            descriptor = os.open(name, _READ, dir_fd=place)
        except OSError:
            continue
        try:
            content = _content(descriptor)
            record = _record(content)
            if not _locked(descriptor, fcntl.LOCK_SH):
                if record is not None:
                    yield record
            elif record is not None or content == b"":
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=place)
        finally:
            os.close(descriptor)


def _content(descriptor: int) -> bytes | None:
    """Return what a file holds; None of what is no file."""
    with contextlib.suppress(OSError):
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.read(descriptor, _MOST_BYTES)
    return None


def _record(content: bytes | None) -> dict[str, Any] | None:
    """Return the record in a file; None for anything else."""
    with contextlib.suppress(ValueError):
        record = json.loads(content or b"")
        if isinstance(record, dict) and record.keys() == _FIELDS and _is_time(record["since_s"]):
            return record
    return None


def _is_time(value: object) -> bool:
    return isinstance(value, float | int) and 0 <= value < _LATEST_S


def _network() -> str:
    try:
        return os.readlink("/proc/self/ns/net")  # noqa: PTH115 # a link of procfs
    except OSError:
        return ""
