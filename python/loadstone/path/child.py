"""Work in a child process that can be left behind.

A system call on storage that has stopped answering may never come back, and nothing ends it: not
a signal, not a time limit. Whatever touches a target is done in a child, so that it is the child
that waits. Knows processes and pipes; does not know what the work is.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import os
import pickle
import signal
import sys
import time
import warnings
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING, Any, Final, TypeVar

from loadstone import process_state
from loadstone.errors import RunError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

SILENT_S: Final = 20.0
"""A child that did nothing for so long waits for something that does not answer: the longest that
disks take to spin up, and paths to fail over, is below that."""
LOOK_S: Final = 0.25
PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)

_left: list[int] = []
"""Children that were killed and had not ended when we last looked."""
_to_parent: Connection | None = None
"""In a child: the way to the parent."""


class NoAnswerError(RunError):
    """What was touched did not answer in time."""


def run_in_child(
    work: Callable[[], T],
    *,
    doing: str,
    silent_s: float | None = None,
    give_up: Callable[[], bool] = lambda: False,
    keep: Iterable[int] = (),
) -> T:
    """Do `work` in a child and return what it returns, or raise what it raises.

    What the system refused it of a file, as where a target vanishes meanwhile, is raised as `RunError`.

    It sees all that this process sees, and changes nothing in this process. Raises `NoAnswerError`
    once it did nothing for `silent_s`, and as soon as `give_up` says so; the child is then killed
    and not waited for. `doing` begins the message: "looking at /dev/sdb". Nothing of the terminal
    is open in the child; `ask_parent` asks through this process. Of descriptors only `keep` stay open.
    """
    if _to_parent is not None:
        return work()
    _reap()
    try:
        parent_end, child_end = Pipe()
    except OSError as error:
        raise make_error(RunError, "path.child.no_files", doing=doing, reason=error.strerror) from error
    try:
        pid = _fork()
    except OSError as error:
        parent_end.close()
        child_end.close()
        raise make_error(RunError, "path.child.not_started", doing=doing, reason=error.strerror) from error
    if pid == 0:
        _serve(work, child_end, doing, keep)
    child_end.close()
    child = _Child(pid, parent_end)
    try:
        answer: T = child.answer(doing, SILENT_S if silent_s is None else silent_s, give_up)
        return answer
    finally:
        parent_end.close()
        child.end()


def ask_parent(question: Callable[..., T], *words: Any) -> T:
    """Call a function that speaks with the user; from within `run_in_child` in the parent."""
    if _to_parent is None:
        return question(*words)
    _to_parent.send(("ask", _questions.index(question), words))
    done, value = _to_parent.recv()
    if not done:
        raise value
    answer: T = value
    return answer


_questions: list[Callable[..., Any]] = []
"""What `ask_parent` may call: put here before the fork, as functions do not travel."""


@contextlib.contextmanager
def answering(*questions: Callable[..., Any]) -> Any:
    """Let children that are made meanwhile ask these questions."""
    before = list(_questions)
    _questions.extend(questions)
    try:
        yield
    finally:
        _questions[:] = before


def _fork() -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # From 3.12 on Python warns of a fork beside threads. Ours (monitors, the screen) hold no
        # lock the child takes: it makes system calls and answers through a pipe of its own.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _serve(work: Callable[[], object], parent: Connection, doing: str, keep: Iterable[int]) -> None:
    """Do the work and leave, whatever happens: nothing of the parent's may be run here."""
    global _to_parent  # noqa: PLW0603 # one per process, set where the process begins
    code = 1
    # A look for garbage among the parent's objects would copy every page that is shared with it.
    gc.freeze()
    try:
        try:
            _let_go({parent.fileno(), *keep})
            _to_parent = parent
            answer: tuple[str, Any] = ("done", work())
        except OSError as error:
            answer = ("raised", error if error.filename is None else _refused(doing, error))
        except BaseException as error:  # noqa: BLE001 # whatever it is, it is the parent's
            answer = ("raised", error)
        parent.send_bytes(_pickled(answer))
        code = 0
    finally:
        os._exit(code)


def _refused(doing: str, error: OSError) -> RunError:
    reason = f"{error.filename}: {error.strerror or error}"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return make_error(RunError, "path.child.no_files", doing=doing, reason=reason)
    return make_error(RunError, "path.child.refused", doing=doing, reason=reason)


def _let_go(keep: set[int]) -> None:
    """Hold nothing that somebody waits for: neither the terminal nor an engine's pipes."""
    os.setsid()
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for asking in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(asking, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 # a Path per descriptor has no use
        number = int(name)
        if number > 2 and number not in keep:
            with contextlib.suppress(OSError):
                os.close(number)


def _pickled(answer: tuple[str, Any]) -> bytes:
    try:
        pickled = pickle.dumps(answer)
        if answer[0] == "raised":
            pickle.loads(pickled)  # noqa: S301 # our own: an error may be taken apart and not put together
    except Exception as error:  # noqa: BLE001 # what cannot travel is told in words
        cause = answer[1] if answer[0] == "raised" else error
        return pickle.dumps(("raised", RunError(f"{type(cause).__name__}: {cause}")))
    return pickled


class _Child:
    """A child as its parent sees it."""

    def __init__(self, pid: int, way: Connection) -> None:
        self._pid = pid
        self._way = way
        self._is_over = False

    def answer(self, doing: str, silent_s: float, give_up: Callable[[], bool]) -> Any:
        progress, since_s = process_state.progress(self._pid), time.monotonic()
        while True:
            if self._way.poll(LOOK_S):
                try:
                    kind, *contents = pickle.loads(self._way.recv_bytes())  # noqa: S301 # from our own child
                except (EOFError, ConnectionError):
                    raise make_error(RunError, "path.child.ended", doing=doing, ending=self._how()) from None
                if kind == "ask":
                    self._way.send(_reply(contents[0], contents[1]))
                    since_s = time.monotonic()
                    continue
                if kind == "raised":
                    raise contents[0]
                return contents[0]
            now = process_state.progress(self._pid)
            # On a host with too much to do a child that would run is no storage that hangs.
            if now != progress or process_state.state(self._pid) == process_state.WANTS_CPU:
                progress, since_s = now, time.monotonic()
            waited_s = time.monotonic() - since_s
            if waited_s >= silent_s or give_up():
                self.end()
                key = "path.child.left_behind" if self._pid in _left else "path.child.no_answer"
                message = say(key, doing=doing, waited=f"{waited_s:.0f}", process=self._pid)
                raise NoAnswerError(message, hint=say("path.child.no_answer_hint"))

    def end(self) -> None:
        """Kill it unless it has ended; leave it behind where it waits in the kernel."""
        if self._is_over:
            return
        self._is_over = True
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
        if not process_state.killed_ends(self._pid):
            _left.append(self._pid)

    def _how(self) -> str:
        self._is_over = True
        with contextlib.suppress(OSError):
            _, status = os.waitpid(self._pid, 0)
            if os.WIFSIGNALED(status):
                return say("path.child.killed", signal=signal.Signals(os.WTERMSIG(status)).name)
        return say("path.child.silent")


def _reply(number: int, words: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, _questions[number](*words)
    except Exception as error:  # noqa: BLE001 # raised again where it was asked
        return False, error


def _reap() -> None:
    for pid in list(_left):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            _left.remove(pid)
