"""The program started as a process, without the second of CPU time that an interpreter's start takes.

`Started` is a `subprocess.Popen` of `python -m loadstone WORDS`. The process is forked off
a server that has imported the program and done nothing with it, and then becomes a child of this
process: it has its own pid, group, directory, environment, files and exit, and runs `main` from its
first line. What asks for more than that (a `preexec_fn`, files to pass on, another interpreter's
environment) starts an interpreter, and so does everything with `LOADSTONE_TESTS_COLD=1`.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import functools
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.support import drawing

COMMAND = (sys.executable, "-m", "loadstone")
OTHER_INTERPRETER = ("PYTHON", "LD_", "MALLOC_", "POLARS_", "OPENBLAS_", "LC_", "LANG", "TZ")
"""What an interpreter or a library reads when it starts."""
PR_SET_CHILD_SUBREAPER = 36


_ONE_AT_A_TIME = threading.Lock()
"""A coordinator starts the agents of its hosts in threads, and each answer is to one request."""


class StartedProgram(subprocess.Popen[str]):
    """`loadstone WORDS` as a process of its own."""

    def __init__(self, words: list[str], **given: Any) -> None:
        self._words = words
        super().__init__([*COMMAND, *words], **given)

    def _execute_child(self, *given: Any) -> None:
        names = list(inspect.signature(subprocess.Popen._execute_child).parameters)[1:]  # type: ignore[attr-defined]
        asked = dict(zip(names, given, strict=True))
        if _cold(asked):
            super()._execute_child(*given)  # type: ignore[misc] # no name of the library's types
            return
        streams = [
            given if given != -1 else standard
            for standard, given in enumerate((asked["p2cread"], asked["c2pwrite"], asked["errwrite"]))
        ]
        environment = asked["env"] if asked["env"] is not None else os.environ
        self.pid = _fork(
            {
                "words": self._words,
                "cwd": os.fspath(asked["cwd"] or Path.cwd()),
                "environment": {str(name): str(value) for name, value in environment.items()},
                "group": asked.get("process_group", -1),
                "session": bool(asked["start_new_session"]),
            },
            streams,
        )
        self._child_created = True
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(asked[end] for end in ends))  # type: ignore[attr-defined]


def run(words: list[str], **given: Any) -> subprocess.CompletedProcess[str]:
    """Do as `subprocess.run` does; text, and both streams are captured."""
    timeout, stdin = given.pop("timeout", None), given.pop("input", None)
    given.setdefault("stdin", subprocess.DEVNULL if stdin is None else subprocess.PIPE)
    with StartedProgram(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **given) as process:
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _cold(asked: dict[str, Any]) -> bool:
    if os.environ.get("LOADSTONE_TESTS_COLD") or asked["preexec_fn"] or asked["pass_fds"]:
        return True
    given = asked["env"]
    changed = (
        []
        if given is None
        else [n for n in given.keys() | os.environ.keys() if given.get(n) != os.environ.get(n)]
    )
    return any(name.startswith(OTHER_INTERPRETER) for name in changed)


def _fork(asked: dict[str, Any], streams: list[int]) -> int:
    with _ONE_AT_A_TIME:
        return _forked(_server(), asked, streams)


def _forked(server: socket.socket, asked: dict[str, Any], streams: list[int]) -> int:
    _adopt(orphans=True)
    try:
        body = json.dumps(asked).encode()
        passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
        server.sendmsg([len(body).to_bytes(4)], passed)
        server.sendall(body)
        answer = server.recv(4)
    finally:
        _adopt(orphans=False)
    pid = int.from_bytes(answer)
    if not pid:
        raise OSError("the program could not be forked")
    return pid


def drawing_address() -> str:
    """Where charts of this process and all it starts are drawn: an abstract name, which leaves no file."""
    return f"\0loadstone-tests-draw-{os.getpid()}"


def draws_together() -> None:
    """Have this process draw its charts where the programs do that it starts."""
    if not os.environ.get("LOADSTONE_TESTS_COLD"):

        def address() -> str:
            with _ONE_AT_A_TIME:
                _server()
            return drawing_address()

        drawing.draw_by(address)


@functools.cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair()
    draws = socket.socket(socket.AF_UNIX)
    draws.bind(drawing_address())
    draws.listen()
    passed = [theirs.fileno(), draws.fileno()]
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm", *map(str, passed)],
        pass_fds=passed,
        # Whatever directory the test that asks first is in.
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "_RJEM_MALLOC_CONF": "background_thread:false"},
        process_group=0,
    )
    theirs.close()
    draws.close()

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def _adopt(*, orphans: bool) -> None:
    """A process whose parent ended becomes a child of this one, while `orphans`."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(orphans), 0, 0, 0)
