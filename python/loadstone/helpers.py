"""Helpers: work done beside this process, by processes that import what they need themselves.

What keeps the interpreter for long (hundreds of runs to read, charts to draw) is done by as many of
these as there are CPUs. They are programs of their own: a fork does not survive the threads of
libraries, and `multiprocessing` would run the program again that a user called us from. Knows
processes and pipes; does not know what the work is.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from loadstone.errors import RunError
from loadstone.garbage import collect_from_now_on
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from io import BufferedWriter

T = TypeVar("T")

PROGRAM: Final = "import sys; sys.path[:] = sys.argv[1:]; from loadstone.helpers import serve; serve()"
PROTOCOL: Final = pickle.HIGHEST_PROTOCOL
OWN: Final = {"POLARS_MAX_THREADS": "1"}
"""Of their environment: each of them is one CPU's work."""


def cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


class Helpers:
    """Processes for work, at most so many at a time; none is started before there is work for it.

    To be used in a `with` statement, at whose end they are closed.
    """

    def __init__(self, most: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(most or cpus(), "helper")
        self._own = threading.local()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._closed = False
        self._starting = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, whatever they do."""
        with self._starting:
            self._closed = True
            for process in self._processes:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            with contextlib.suppress(OSError):
                process.communicate()

    def do(self, work: Callable[..., T], *words: Any) -> Future[T]:
        """Have `work(*words)` done: a function of a module, and what can be pickled.

        The future raises what the work raises, and `RunError` where its process was killed.
        """
        return self._threads.submit(self._done, work, words)

    def _done(self, work: Callable[..., T], words: tuple[Any, ...]) -> T:
        if not hasattr(self._own, "process"):
            self._own.process = self._start()
        process = self._own.process
        try:
            process.stdin.write(pickle.dumps((work, words), PROTOCOL))
            process.stdin.flush()
            done, answer = pickle.load(process.stdout)  # noqa: S301 # from our own program
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            code = process.wait()
            raise make_error(RunError, "program.helper.ended", code=code) from error
        if not done:
            raise answer
        result: T = answer
        return result

    def _start(self) -> subprocess.Popen[bytes]:
        with self._starting:
            if self._closed:
                raise make_error(RunError, "program.helper.closed")
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **OWN},
                # Ctrl-C is for the one who started them: it ends them.
                process_group=0,
            )
            self._processes.append(process)
        return process


def serve() -> None:
    """Do what standard input asks for, and answer on standard output, until nobody asks any more."""
    gc.disable()
    answers = os.fdopen(os.dup(1), "wb")
    # What a library prints must not come between.
    os.dup2(2, 1)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            work, words = pickle.load(sys.stdin.buffer)  # noqa: S301 # from the program that started us
            _answer(work, words, answers)
            if not gc.isenabled():
                collect_from_now_on()


def _answer(work: Callable[..., object], words: tuple[Any, ...], answers: BufferedWriter) -> None:
    try:
        pickled = pickle.dumps((True, work(*words)), PROTOCOL)
    except Exception as error:  # noqa: BLE001 # whatever it is, it is the asker's
        pickled = pickle.dumps((False, error))
    answers.write(pickled)
    answers.flush()
