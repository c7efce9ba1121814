"""The server behind `started`: it has imported the program, and forks one off when asked to.

It has compiled the templates of pages and read the messages, too. It never runs the program itself, has
one thread, and ends when the process that started it does.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
from pathlib import Path
from typing import IO, Any, TextIO

import loadstone
from loadstone import messages
from loadstone.cli import main, start
from loadstone.report import templates
from tests.support import drawing

ONLY_LOADED = (
    "polars",
    "polars._utils.parquet",
    "numpy",
    "numpy.ma",
    "jinja2",
    "cyclopts",
    "rich",
    "rich._emoji_codes",
    "rich.console",
    "rich.table",
    "vl_convert",
    "pydantic",
)
IDLE_THREADS = {"polars-ooc-clea"}
"""Started by an import, and needed by nothing that the program does."""
WITH_DISTRIBUTED = "loadstone.hosts.dask_worker"
"""A worker's own module: it needs a package that need not be installed, and that starts threads."""
SIZE_BYTES = 12


def load() -> None:
    """Import every module of the program, and run nothing of it."""
    for name in ONLY_LOADED:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(loadstone.__path__, "loadstone."):
        if not module.name.endswith("__main__") and module.name != WITH_DISTRIBUTED:
            importlib.import_module(module.name)
    report = Path(templates.__file__).parent
    for page in report.rglob("*.html"):
        templates._environment().get_template(page.relative_to(report).as_posix())
    messages.templates()
    names = {thread.read_text().strip() for thread in Path("/proc/self/task").glob("*/comm")}
    if unknown := names - {Path("/proc/self/comm").read_text().strip()} - IDLE_THREADS:
        raise RuntimeError(f"an import starts threads, which do not outlive a fork: {', '.join(unknown)}")
    gc.collect()
    gc.freeze()


def serve(client: socket.socket) -> None:
    """Answer each request with the pid of a process that becomes the program."""
    while True:
        asked = _request(client)
        if asked is None:
            return
        request, streams = asked
        heard, tell = os.pipe()
        between = os.fork()
        if between == 0:
            _become(request, streams, tell)
        os.close(tell)
        pid = os.read(heard, 4)
        os.close(heard)
        for stream in streams:
            os.close(stream)
        # Its parent has ended, and it has another one, before anybody hears of it.
        os.waitpid(between, 0)
        client.sendall(pid)


def _request(client: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    size, passed, _, _ = client.recvmsg(4, socket.CMSG_SPACE(SIZE_BYTES))
    if not size:
        return None
    streams = array.array("i")
    for _, _, data in passed:
        streams.frombytes(data)
    wanted, body = int.from_bytes(size), b""
    while len(body) < wanted:
        body += client.recv(wanted - len(body))
    return json.loads(body), list(streams)


def _become(request: dict[str, Any], streams: list[int], tell: int) -> None:
    """In the process between: fork the program and end, so that who asked becomes its parent."""
    here = os.getpid()
    pid = os.fork()
    if pid:
        if request["group"] == 0 and not request["session"]:
            os.setpgid(pid, pid)
        os.write(tell, pid.to_bytes(4))
        os._exit(0)
    while os.getppid() == here:
        os.sched_yield()
    raise _Program(request, streams)


class _Program(BaseException):
    """Leaves the server's frames behind."""


def program(request: dict[str, Any], streams: list[int]) -> int:
    """Be what `python -m loadstone` is when it has started."""
    if request["session"]:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    with contextlib.suppress(OSError):  # Removed meanwhile: then it is the program's to say so.
        os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        opened = _stream(number, getattr(sys, name))
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)
    sys.argv = [str(Path(main.__file__)), *request["words"]]
    return start.main()


def _stream(number: int, before: TextIO) -> IO[str]:
    """Open a standard stream as the interpreter did for the server."""
    lines = 1 if number == 2 or os.isatty(number) else -1
    mode = "w" if number else "r"
    return os.fdopen(number, mode, lines, before.encoding, before.errors, None, closefd=False)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load()
    connection, draws = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    drawing.fork_off(draws)
    drawing.draw_by(draws.getsockname().decode)
    draws.close()
    try:
        serve(connection)
    except _Program as started:
        begin = started.args
    else:
        sys.exit(0)
    sys.exit(program(*begin))
