"""One renderer for the charts of all programs that a worker of the tests starts, and of its own.

The renderer holds a JavaScript engine, and to start it takes half a second of CPU time for each page. So
one process draws with the real one, a chart for each connection, and the others ask it. With
`LOADSTONE_TESTS_COLD=1` each program has its own, as it has for users.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import vl_convert

from loadstone.report.pictures import chart_images, drawer

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

PR_SET_PDEATHSIG = 1


def fork_off(listening: socket.socket) -> None:
    """Draw for whoever connects, in a process that ends with this one."""
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        while True:
            # Who asked may have been killed meanwhile.
            with contextlib.suppress(OSError, EOFError), listening.accept()[0] as client:
                _draw(client)


def _draw(client: socket.socket) -> None:
    with client.makefile("rwb") as stream:
        name, words, named = pickle.load(stream)
        try:
            answer = True, getattr(vl_convert, name)(*words, **named)
        except ValueError as error:
            answer = False, error
        pickle.dump(answer, stream)


def draw_by(address: Callable[[], str]) -> None:
    """Have this process draw at `address`; the charts of a page beside what else is done for it, as ever."""
    setattr(chart_images, "vl_convert", _Renderer(address))  # noqa: B010 # another type than a module
    setattr(drawer, "Helpers", _Beside)  # noqa: B010 # another type
    setattr(chart_images, "begin", lambda: None)  # noqa: B010 # the renderer has begun


class _Renderer:
    """What `vl_convert` is to a program: its functions."""

    def __init__(self, address: Callable[[], str]) -> None:
        self._address = address

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(*words: Any, **named: Any) -> Any:
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(self._address())
                with server.makefile("rwb") as stream:
                    pickle.dump((name, words, named), stream)
                    stream.flush()
                    drawn, answer = pickle.load(stream)
            if not drawn:
                raise answer
            return answer

        return ask


class _Beside:
    """`loadstone.helpers.Helpers` with a thread in the place of a process: it only waits for the renderer."""

    def __init__(self, most: int) -> None:
        self._threads = ThreadPoolExecutor(most)

    def do(self, work: Callable[..., Any], *words: Any) -> Future[Any]:
        return self._threads.submit(work, *words)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
