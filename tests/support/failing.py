"""One verb again and again, each time with another of its operations failing; a line of JSON for each.

    python -m tests.support.failing KIND FIRST STEP MOST WORDS...
    python -m tests.support.failing KIND places MOST WORDS...

In a process of its own, because it forks for each run and no library may have threads then. What the
coordinator does is counted over all its processes: opens, directories, renames, removals and spawns
by Python's audit events, writes and fsyncs of descriptors by name, allocations as calls of our own
functions. *change* is every system call that changes a file, libraries' too: `failing_calls.c`, which
is preloaded (`preloaded`). Ends with the first run in which nothing was left to fail.

*places* is for verbs with hundreds of operations, most of them of one loop. A place is who called whom
for it, line by line. Of each place the first operation fails, and one in the middle of the run.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import importlib
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

COUNT: Final = struct.Struct("<Q")
PLACE: Final = struct.Struct("<I")
MOST_PLACES: Final = 16_000
NEVER: Final = 1 << 60
KINDS: Final = {
    "open": ({"open"}, errno.EMFILE),
    "mkdir": ({"os.mkdir"}, errno.ENOSPC),
    "rename": ({"os.rename"}, errno.EIO),
    "remove": ({"os.remove", "os.rmdir"}, errno.EPERM),
    "spawn": ({"subprocess.Popen", "os.fork", "os.posix_spawn"}, errno.EAGAIN),
    "list": ({"os.listdir", "os.scandir"}, errno.EIO),
    "attribute": ({"os.setxattr", "os.getxattr", "os.truncate", "os.chmod", "os.link"}, errno.ENOTSUP),
    "write": (set[str](), errno.ENOSPC),
    "fsync": (set[str](), errno.EIO),
    "allocation": (set[str](), 0),
    "change": (set[str](), errno.ENOSPC),
}
OURS: Final = f"{os.sep}loadstone{os.sep}"
LIBRARIES: Final = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
PATIENCE_S: Final = 300.0
"""What does not end by then hangs: on a host that is busy, imports alone take a minute."""
MADE: Final = "../made/b"
"""A bundle that is there before, for verbs that read one."""
MADE_AGAIN: Final = "../again/b"
JOURNALED: Final = "../written/b"
"""One of a run that wrote and noted what."""
MAKES: Final = {
    MADE: ["run", "r.fio", "--out", "b", "--no-report", "--no-calibration"],
    MADE_AGAIN: ["run", "r.fio", "--out", "b", "--no-report", "--no-calibration"],
    JOURNALED: ["run", "w.fio", "--out", "b", "--no-report", "--no-calibration", "--journal"],
}
WRITES: Final = "[w]\nrw=randwrite\nbs=4k\nsize=1m\nfilename=written\nverify=crc32c\ndo_verify=0\n"
TREE: Final = """fsd=f,anchor={place}/anchor,depth=1,width=2,files=4,size=8k
fwd=w,fsd=f,operation=write,xfersize=4k
rd=r,fwd=w,fwdrate=50,format=yes,elapsed=2,interval=1
"""
HOSTS: Final = """[defaults]
launch = "local"
[[host]]
name = "a"
directory = "{place}/of-a"
[[host]]
name = "b"
directory = "{place}/of-b"
"""
EXPERIMENT: Final = """title = "Block size"
repeats = 2
runtime = "300ms"
size = "1m"
targets = ["{place}/data"]

[[patterns]]
name = "read"
options = { rw = "randread" }

[[factors]]
name = "block size"
option = "bs"
levels = ["4k", "8k"]
"""


class FailingOperation:
    """Fails the Nth operation of a kind, or the Nth at a place. The count is shared with children."""

    def __init__(self, kind: str, at: int, place: int | None = None) -> None:
        self.events, self.number = KINDS[kind]
        self.kind = kind
        self.at = at
        self.place = place
        self.page = mmap.mmap(-1, COUNT.size + MOST_PLACES * PLACE.size)

    @property
    def count(self) -> int:
        return int(COUNT.unpack_from(self.page)[0])

    def places(self) -> list[int]:
        """Of each operation that was counted, in order."""
        known = min(self.count, MOST_PLACES)
        return [PLACE.unpack_from(self.page, COUNT.size + PLACE.size * index)[0] for index in range(known)]

    def passed(self) -> None:
        """Count one; raise if it is the one."""
        looks = self.place is not None or self.at == NEVER
        place = _place_now() if looks else 0
        if self.place not in (None, place):
            return
        count = self.count + 1
        COUNT.pack_into(self.page, 0, count)
        if count <= MOST_PLACES:
            PLACE.pack_into(self.page, COUNT.size + PLACE.size * (count - 1), place)
        if count == self.at:
            if not self.number:
                raise MemoryError
            raise OSError(self.number, os.strerror(self.number))

    def install(self) -> None:
        """From now on."""
        if self.kind == "change":
            calls = ctypes.CDLL(None)
            page = ctypes.addressof(ctypes.c_uint64.from_buffer(self.page))
            calls.failing_arm(ctypes.c_void_p(page), ctypes.c_uint64(self.at), self.number)
        elif self.events:
            sys.addaudithook(self._audited)
        elif self.kind == "allocation":
            sys.setprofile(self._called)
        else:
            original: Callable[..., Any] = getattr(os, self.kind)

            def failing(*words: Any) -> Any:
                # What tells how this very test goes is not part of it.
                if self.kind == "fsync" or words[0] > 2:
                    self.passed()
                return original(*words)

            setattr(os, self.kind, failing)

    def _audited(self, event: str, words: tuple[Any, ...]) -> None:
        if event not in self.events:
            return
        name = words[0] if words and isinstance(words[0], str | bytes) else ""
        place = os.fsdecode(name)
        if event != "subprocess.Popen" and place.startswith(("/proc", "/sys", "/dev", *LIBRARIES)):
            return
        if OURS in place and place.endswith((".py", ".pyc", ".toml", ".html", ".css", ".js")):
            return
        if OURS in place and "__pycache__" in place:
            return
        self.passed()

    def _called(self, frame: FrameType, event: str, _argument: object) -> None:
        # What this file calls itself nobody in the program could answer for.
        from_here = frame.f_back is not None and frame.f_back.f_code.co_filename == __file__
        if event == "call" and OURS in frame.f_code.co_filename and not from_here:
            self.passed()


def _place_now() -> int:
    """Who of the program called whom for what is done now, as one number."""
    lines = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if OURS in frame.f_code.co_filename:
            lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    return zlib.crc32("\n".join(lines).encode())


def preloaded(place: Path) -> dict[str, str]:
    """Compile what *change* needs into a directory; return the variable that preloads it.

    Raises FileNotFoundError where there is no C compiler.
    """
    library = place / "failing_calls.so"
    source = Path(__file__).with_name("failing_calls.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}


def once(
    fault: FailingOperation | None, words: list[str], place: Path, after: Callable[[], None] | None = None
) -> int:
    """Run the verb in a child below `place`; return its exit code, negative for a signal."""
    place.mkdir()
    (place / "r.fio").write_text(
        "[r]\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime=300ms\nfilename=data\n"
    )
    (place / "data").write_bytes(bytes(1 << 20))
    (place / "h.fio").write_text((place / "r.fio").read_text().replace("=data", f"={place}/data"))
    for name, text in (("hosts.toml", HOSTS), ("x.toml", EXPERIMENT), ("t.parm", TREE), ("w.fio", WRITES)):
        (place / name).write_text(text.replace("{place}", str(place)))
    pid = os.fork()
    if pid == 0:
        _as_program(fault, words, place, after)
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise TimeoutError


def _as_program(
    fault: FailingOperation | None, words: list[str], place: Path, after: Callable[[], None] | None
) -> None:
    code = 70
    try:
        os.chdir(place)
        for number, name in ((1, "out"), (2, "err")):
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        from loadstone import uncaught  # noqa: PLC0415 - as below
        from loadstone.cli.main import main  # noqa: PLC0415 # `preload` finds what to import first

        uncaught.install()

        if fault is not None:
            fault.install()
        try:
            code = main(words)
        except BaseException:  # noqa: BLE001 # as the interpreter does
            sys.setprofile(None)
            sys.excepthook(*sys.exc_info())
        sys.setprofile(None)
        if fault is not None and fault.kind == "change":
            ctypes.CDLL(None).failing_disarm()
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        if after is not None:
            after()
    finally:
        os._exit(code)


def orphans(place: Path) -> list[str]:
    """Processes that still work below `place` a moment after the end."""
    end_s = time.monotonic() + 5.0
    while True:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (
                    str((process / "cwd").readlink()).startswith(str(place))
                    and int(process.name) != os.getpid()
                ):
                    found.append((process / "cmdline").read_text().replace("\0", " "))
        if not found or time.monotonic() > end_s:
            return found
        time.sleep(0.05)


def preload(words: list[str], place: Path) -> None:
    """Import what a run imports, so that no run has to."""
    names = place / "names"

    def note() -> None:
        names.write_text("\n".join(sys.modules))

    once(None, words, place / "first", note)
    for name in names.read_text().split("\n"):
        if name.split(".")[0] in (
            "loadstone",
            "polars",
            "pyarrow",
            "numpy",
            "scipy",
            "rich",
            "blake3",
            "cyclopts",
        ):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def told(fault: FailingOperation, place: Path, code: int) -> dict[str, Any]:
    """What is to be known of a run."""
    return {
        "n": fault.at,
        "fired": fault.count >= fault.at,
        "code": code,
        "out": (place / "out").read_text(errors="replace"),
        "err": (place / "err").read_text(errors="replace"),
        "orphans": orphans(place),
    }


def one_by_one(kind: str, first: int, step: int, most: int) -> Iterator[FailingOperation]:
    """Every `step`th operation, from the `first` on."""
    for index in range(most):
        yield FailingOperation(kind, first + index * step)


def at_places(kind: str, most: int, verb: list[str], place: Path) -> Iterator[FailingOperation]:
    """The first operation of each place and one in the middle; none in the last run."""
    all_of_them = FailingOperation(kind, NEVER)
    once(all_of_them, verb, place / "counted")
    shutil.rmtree(place / "counted")
    for where, count in list(Counter(all_of_them.places()).items())[:most]:
        for at in sorted({1, (count + 1) // 2}):
            yield FailingOperation(kind, at, where)
    yield FailingOperation(kind, NEVER)


def main(words: list[str]) -> None:
    kind, *words = words
    by_place = words[0] == "places"
    numbers, verb = (words[1:2], words[2:]) if by_place else (words[:3], words[3:])
    place = Path.cwd() / "runs"
    place.mkdir()
    for bundle, makes in MAKES.items():
        if bundle in verb:
            once(None, makes, place / bundle.split("/")[1])
    preload(verb, place)
    most = [int(number) for number in numbers]
    faults = at_places(kind, most[0], verb, place) if by_place else one_by_one(kind, *most)
    for number, fault in enumerate(faults):
        here = place / str(number)
        try:
            code = once(fault, verb, here)
        except TimeoutError:
            code = 124
        document = told(fault, here, code) | {"run": number, "last": fault.at == NEVER or not by_place}
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()
        if not document["fired"] and not by_place:
            return
        if sys.stdin.readline().strip() != "go":
            return
        shutil.rmtree(here, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
