"""What was changed on this machine and is not put back yet, on disk before it is changed.

Knows one file of JSON lines for each process that changes something, in a directory that outlives
it and a reboot: `/var/lib/loadstone/changes` for root, `$XDG_STATE_HOME/loadstone/changes` else,
`$LOADSTONE_STATE/changes` where that is set. A record names its process so that nobody is taken for
it (proc_pid_stat(5), starttime). Does not set anything.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ConfigDict, TypeAdapter

from loadstone import crash_note, own_directory
from loadstone.control.control_kind import Setting
from loadstone.errors import RefusedError
from loadstone.frozen_model import FrozenModel
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
SUFFIX: Final = ".jsonl"
PART: Final = ".part"
_STEM: Final = re.compile(r"\d+-\d+")
_BEGINS: Final = b'{"begin"'


@dataclass(slots=True)
class Change:
    """One setting that was, or was about to be, changed."""

    number: int
    setting: Setting
    identity: str
    before: str
    asked: str
    beside: list[tuple[Setting, str]] = field(default_factory=list)
    """What the kernel resets with it, and the values before."""
    after: str | None = None
    """What was read after it was set; None: nobody came to read it."""
    over: bool = False
    """It is put back, or there is nothing left to put back."""


@dataclass(slots=True)
class Record:
    """What one process changed."""

    path: Path
    boot_id: str
    pid: int
    start_ticks: int | None
    pid_namespace: str
    command: list[str]
    claims: set[Setting] = field(default_factory=set)
    """What it keeps to itself, changed or not."""
    changes: list[Change] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    """Lines that cannot be read, from 1; nobody knows what they changed."""

    def open_changes(self) -> list[Change]:
        """Return what is not put back, the last first."""
        return [change for change in reversed(self.changes) if not change.over]

    def changed(self) -> set[Setting]:
        """Return what is not put back, with what the kernel reset with it."""
        return {
            one
            for change in self.open_changes()
            for one in (change.setting, *(item for item, _ in change.beside))
        }

    def is_alive(self) -> bool:
        """Return whether its process is, as far as can be told: of another namespace it counts as alive."""
        if self.boot_id != boot_id():
            return False
        return self.pid_namespace != _namespace() or _start_ticks(self.pid) == self.start_ticks


def boot_id() -> str:
    """Return what tells this boot from any other."""
    return BOOT_ID.read_text().strip()


def folder() -> Path:
    """Return the directory of the journals."""
    if chosen := os.environ.get("LOADSTONE_STATE"):
        return Path(chosen) / "changes"
    if os.geteuid() == 0:
        return Path("/var/lib/loadstone/changes")
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "loadstone" / "changes"


class ChangeJournal:
    """This process's own record.

    `step` is called before every operation on the file; a test ends the process there.
    """

    def __init__(self, where: Path, step: Callable[[str], None] = lambda _: None) -> None:
        self._step = step
        self.changes: list[Change] = []
        self.damaged: list[int] = []
        make(where)
        stem = f"{time.time_ns()}-{os.getpid()}"
        part, self.path = where / f"{stem}{PART}", where / f"{stem}{SUFFIX}"
        try:
            self._file = os.open(part, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._write({"begin": _self()})
            part.rename(self.path)
            _sync_folder(where)
        except (OSError, RefusedError) as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise error if isinstance(error, RefusedError) else _unwritable(where, error) from None

    def claim(self, settings: Iterable[Setting]) -> None:
        """Write down what nobody else may change or use until this record is closed."""
        self._write({"claim": [[one.control, one.subject] for one in settings]})

    def intend(self, change: Change) -> None:
        """Write down a change before it is made."""
        self._write(
            {
                "change": change.number,
                "control": change.setting.control,
                "subject": change.setting.subject,
                "identity": change.identity,
                "before": change.before,
                "asked": change.asked,
                "beside": [[item.control, item.subject, value] for item, value in change.beside],
            }
        )
        self.changes.append(change)
        self._note()

    def made(self, change: Change, after: str | None) -> None:
        """Write down what was read after it."""
        change.after = after
        self._write({"made": change.number, "after": after})

    def over(self, change: Change) -> None:
        """Write down that it is put back; where that cannot be written, `restore` looks at it again."""
        change.over = True
        with contextlib.suppress(RefusedError):
            self._write({"over": change.number})
        self._note()

    def close(self) -> None:
        """Remove the record where everything is put back, and known."""
        self._step("close")
        if not self.damaged and all(change.over for change in self.changes):
            self.path.unlink(missing_ok=True)
            _sync_folder(self.path.parent)
        os.close(self._file)

    def _note(self) -> None:
        """Let whoever waits for this process know whether anything is left to put back."""
        crash_note.change_settings(not all(change.over for change in self.changes))

    def _write(self, line: dict[str, Any]) -> None:
        self._step("write")
        rest, end = memoryview(json.dumps(line).encode() + b"\n"), os.fstat(self._file).st_size
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
            self._step("fsync")
            os.fsync(self._file)
        except OSError as error:
            # The next line must not be added to half of this one.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, end)
            raise _unwritable(self.path.parent, error) from None


class LeftChanges(ChangeJournal):
    """The record of a process that is gone, taken over."""

    def __init__(self, record: Record, step: Callable[[str], None] = lambda _: None) -> None:
        self._step = step
        self.path = record.path
        self.changes = record.changes
        self.damaged = record.damaged
        self.record = record
        self._file = os.open(record.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        if record.boot_id:  # Else nothing tells that it is a journal.
            # What was cut off was never done; what follows must not be added to it.
            os.ftruncate(self._file, record.path.read_bytes().rfind(b"\n") + 1)
        self._note()


@contextlib.contextmanager
def left_behind(where: Path, step: Callable[[str], None] = lambda _: None) -> Iterator[list[LeftChanges]]:
    """Take over the records of processes that are gone, the newest first, while the block lasts."""
    if not _is_there(where):
        yield []
        return
    with exclusive(where):
        for part in _named(where, PART):
            # Of a process that was killed before it changed anything: records are begun under this lock.
            if _is_unbegun(part):
                part.unlink(missing_ok=True)
        records = [LeftChanges(record, step) for record in reversed(waiting(where))]
        try:
            yield records
        finally:
            for one in records:
                one.close()


@contextlib.contextmanager
def exclusive(where: Path) -> Iterator[None]:
    """Keep others from beginning or taking over anything while the block lasts."""
    with own_directory.opened(where, say("program.own_directory.in_state")) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def held(where: Path) -> list[Record]:
    """Return the records of processes that are alive, this one's among them."""
    return [record for record in _records(where) if record.is_alive()]


def waiting(where: Path) -> list[Record]:
    """Return the records of processes that are gone, the oldest first."""
    return [record for record in _records(where) if not record.is_alive()]


def _records(where: Path) -> list[Record]:
    if not _is_there(where):
        return []
    records = []
    for path in _named(where, SUFFIX):
        with contextlib.suppress(FileNotFoundError):
            records.append(read(path))
    return records


def _named(where: Path, suffix: str) -> list[Path]:
    """Return the files that have names as journals have; what else lies in the directory is somebody's."""
    with os.scandir(where) as entries:
        files = [Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
    return sorted(path for path in files if path.suffix == suffix and _STEM.fullmatch(path.stem))


def _is_unbegun(part: Path) -> bool:
    """Tell whether a file holds the first line of a journal, or less of it."""
    with part.open("rb") as file:
        first = file.read(len(_BEGINS))
    return _BEGINS.startswith(first)


class _Line(FrozenModel):
    model_config = ConfigDict(strict=True)


class _Process(_Line):
    boot_id: str
    pid: int
    start_ticks: int | None
    pid_namespace: str
    command: list[str]


class _Begun(_Line):
    begin: _Process


class _Claimed(_Line):
    claim: list[tuple[str, str]]


class _Intended(_Line):
    change: int
    control: str
    subject: str
    identity: str
    before: str
    asked: str
    beside: list[tuple[str, str, str]]


class _Made(_Line):
    made: int
    after: str | None


class _Over(_Line):
    over: int


_Later = _Claimed | _Intended | _Made | _Over
_LATER: Final[TypeAdapter[_Later]] = TypeAdapter(_Later)
"""What a line may say after the first."""


def read(path: Path) -> Record:
    """Read a record; a last line that was cut off was about nothing that happened.

    Of a record that does not say whose it is no change is read: its process may be alive.
    """
    *lines, _cut_off = path.read_bytes().split(b"\n")
    try:
        begin = _Begun.model_validate_json(lines[0] if lines else b"").begin
    except ValueError:
        return Record(path, boot_id="", pid=0, start_ticks=None, pid_namespace="", command=[], damaged=[1])
    record = Record(path, **begin.model_dump())
    for number, line in enumerate(lines[1:], start=2):
        try:
            _take(record, _LATER.validate_json(line))
        except (ValueError, LookupError):
            record.damaged.append(number)
    return record


def _take(record: Record, line: _Later) -> None:
    """Add what a line says. Raises LookupError where it is about no change of this record."""
    if isinstance(line, _Claimed):
        record.claims |= {Setting(control, subject) for control, subject in line.claim}
        return
    if isinstance(line, _Intended):
        record.changes.append(
            Change(
                number=line.change,
                setting=Setting(line.control, line.subject),
                identity=line.identity,
                before=line.before,
                asked=line.asked,
                beside=[(Setting(control, subject), value) for control, subject, value in line.beside],
            )
        )
        return
    number = line.made if isinstance(line, _Made) else line.over
    change = {change.number: change for change in record.changes}[number]
    if isinstance(line, _Made):
        change.after = line.after
    else:
        change.over = True


def _self() -> dict[str, Any]:
    return {
        "boot_id": boot_id(),
        "pid": os.getpid(),
        "start_ticks": _start_ticks(os.getpid()),
        "pid_namespace": _namespace(),
        "command": sys.argv,
    }


def _start_ticks(pid: int) -> int | None:
    """Return when a process began, in clock ticks since boot; None where there is none."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, *fields = line.rpartition(")")[2].split()
    return None if state in ("Z", "X") else int(fields[18])


def _namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def make(where: Path) -> None:
    """Make the directory of the journals, for nobody else: what is put back is read from there.

    Raises RefusedError.
    """
    own_directory.make(where, say("program.own_directory.in_state"))


def _is_there(where: Path) -> bool:
    return own_directory.is_there(where, say("program.own_directory.in_state"))


def _sync_folder(where: Path) -> None:
    file = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _unwritable(where: Path, error: OSError) -> RefusedError:
    return make_error(RefusedError, "control.journal.not_written", directory=where, reason=error.strerror)
