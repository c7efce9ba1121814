"""Programs that set something, and what is left of them when their parent is killed.

Knows that a kill of this process leaves its child running: what it builds would appear after it was
taken down. A program dies with its parent (prctl(2), PR_SET_PDEATHSIG), and who puts back what it did
waits until it is gone: it holds a lock (flock(2)) for as long as it lives.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import os
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from loadstone import own_directory
from loadstone.errors import RefusedError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None)
LOOK_S: Final = 0.05
SETTLE_S: Final = 30
"""So long what a killed process started is waited for."""
MOST_SAID_BYTES: Final = 1 << 20


def folder() -> Path:
    """Return where the locks are: they need not outlive a boot."""
    if os.geteuid() == 0:
        return Path("/run/loadstone")
    return Path(tempfile.gettempdir()) / f"loadstone-{os.geteuid()}"


def run(
    command: Sequence[str],
    lock: str | None = None,
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program that does not outlive this process; `lock`: the name under which it is waited for.

    What it says goes to files in memory: a program that it leaves in the background would hold a pipe open.
    One that takes too long, or during which somebody asks for the end, is killed with all that it started:
    what is left of it would hold up what puts it back.
    """
    with contextlib.ExitStack() as stack:
        lock_files: tuple[int, ...] = ()
        if lock is not None:
            file = _opened(lock)
            stack.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_SH)
            lock_files = (file,)
        out, err = (stack.enter_context(os.fdopen(os.memfd_create(name), "w+b")) for name in ("out", "err"))
        with subprocess.Popen(
            command,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call of a library that is there
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=env,
            pass_fds=lock_files,
            process_group=0,
        ) as started:
            try:
                code = started.wait(timeout)
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(started.pid, signal.SIGKILL)
                raise
        output_texts = (_first_output(one) for one in (out, err))
        return subprocess.CompletedProcess(command, code, *output_texts)


def _first_output(file: BinaryIO) -> str:
    file.seek(0)
    return file.read(MOST_SAID_BYTES).decode(errors="replace")


def wait_until_gone(lock: str, patience_s: float) -> bool:
    """Wait until no program of this name is left, and tell whether none is."""
    if not (folder() / f"{lock}.lock").exists():
        return True
    file = _opened(lock)
    try:
        until_s = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until_s:
                    return False
                time.sleep(LOOK_S)
            else:
                return True
    finally:
        os.close(file)


def lock_of(kind: str, subject: str) -> str:
    """Return the name under which the program that sets one thing is waited for."""
    return f"{kind}-{hashlib.sha256(subject.encode()).hexdigest()[:16]}"


def settle(lock: str, what: str) -> None:
    """Wait until what a killed process left has ended: it might still set what is read now."""
    if not wait_until_gone(lock, SETTLE_S):
        raise make_error(RefusedError, "control.commands.still_set", what=what)
    forget(lock)


def forget(lock: str) -> None:
    """Remove a lock that nobody will ask for again."""
    name = f"{lock}.lock"
    if not (folder() / name).exists():
        return
    with _place() as place, contextlib.suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=place, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and not status.st_size:
            os.unlink(name, dir_fd=place)


def _opened(lock: str) -> int:
    with _place() as place:
        name = f"{lock}.lock"
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=place)


def _place() -> contextlib.AbstractContextManager[int]:
    is_root = os.geteuid() == 0
    remedy = say("program.own_directory.in_run") if is_root else say("program.own_directory.in_tmpdir")
    return own_directory.opened(folder(), remedy)


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
