"""Who uses a host as a load generator now: one coordinator at a time.

Knows a directory of records, one for each agent, each locked as long as its process lives:
`/tmp/loadstone-agents`, or `$LOADSTONE_STATE/agents` where that is set. Agents of one run may share a
machine; network namespaces count as hosts of their own.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import RefusedError
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY: Final = Path("/tmp/loadstone-agents")  # noqa: S108 # a place that every user of a host finds


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
    with contextlib.suppress(OSError):
        directory.mkdir(mode=0o1777, parents=True, exist_ok=True)
        directory.chmod(0o1777)
    with _turn(directory):
        for other in _others(directory):
            if other.get("run") != run and other.get("network") == _network():
                raise RefusedError(
                    say("hosts.occupied.refusal", since=_since(other), by=str(other.get("by"))),
                    hint=say("hosts.occupied.hint", pid=str(other.get("pid"))),
                )
        path = directory / f"{os.getpid()}-{run}.json"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        record = {"run": run, "by": by, "pid": os.getpid(), "since_s": time.time(), "network": _network()}
        os.write(descriptor, json.dumps(record).encode())
    return Occupancy(path, descriptor)


def _since(record: dict[str, Any]) -> str:
    """Say when a host was taken; with its day, where that was not today."""
    then, now = time.localtime(float(record.get("since_s", 0))), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == now[:3] else "%Y-%m-%d %H:%M:%S", then)


@contextlib.contextmanager
def _turn(directory: Path) -> Iterator[None]:
    """Let one process at a time look and take."""
    descriptor = os.open(directory / ".turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _others(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the records that a living process holds; the others are removed."""
    for path in directory.glob("*.json"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            with contextlib.suppress(OSError, ValueError):
                record = json.loads(path.read_bytes())
                if isinstance(record, dict):
                    yield record
        else:
            with contextlib.suppress(OSError):
                path.unlink()
        finally:
            os.close(descriptor)


def _network() -> str:
    try:
        return os.readlink("/proc/self/ns/net")  # noqa: PTH115 # a link of procfs
    except OSError:
        return ""
