"""Every file the program writes for somebody: results, reports, exports, logs.

Knows over what an output may be written: nothing, an empty file, or what Loadstone wrote there
itself and nobody changed. It says which by a mark: an extended attribute with the file's inode
and the digest of its content, or beside the file where the file system has no attributes.
A file appears whole or not at all, by link or rename; only a stream grows where it is.
Knows no format. Bundles and the files under test are made elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import re
import secrets
import stat
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from blake3 import blake3

from loadstone import file_kind
from loadstone.errors import InputError, LoadstoneError, RefusedError, system_error_number
from loadstone.messages import make_error, say
from loadstone.plan.safety import writable
from loadstone.plan.safety.in_use import Snapshot, file_uses
from loadstone.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Buffer

MARK: Final = "user.loadstone.output"
_BESIDE: Final = ".loadstone-output-"
_ASIDE: Final = re.compile(re.escape(_BESIDE) + "[0-9a-f]{16}")
_SWALLOW: Final = frozenset({(1, 3), (1, 5), (1, 7)})
"""/dev/null, /dev/zero and /dev/full (Linux Documentation/admin-guide/devices.txt)."""
_OWN_DESCRIPTOR: Final = re.compile(r"/(?:dev/fd|proc/self/fd|proc/thread-self/fd)/(\d+)\Z")
_STANDARD: Final = {"/dev/stdout": 1, "/dev/stderr": 2}
_PIECE_BYTES: Final = 1 << 20
MOST_OPEN: Final = 200
"""Files that are kept open until all appear together; more have names that nobody looks for."""
REMEDIES: Final = {
    errno.ENOENT: "no_directory",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "file_size",
    errno.ENAMETOOLONG: "long_name",
}


def write(path: Path, content: str | bytes, *, known: Callable[[Path], bool] | None = None) -> None:
    """Write a file whole; text is made printable. `known` tells by its content what may be replaced, too.

    Raises RefusedError for what may not be replaced, InputError when it fails.
    """
    with opened(path, known=known) as file:
        file.write(printable(content).encode() if isinstance(content, str) else content)


def check(path: Path) -> None:
    """Raise what `opened` would raise for the place, before there is anything to write."""
    with naming_file(path):
        if (straight := _straight(path)) is not None:
            straight.close()
            return
        place = _Place(path)
        place.judge()
        with _New(place):
            pass  # There can be a file: the directory may be read-only, or full.


def directory(path: Path) -> None:
    """Make a directory for several files. Raises InputError when there can be none."""
    batch = _BATCH.get()
    with naming_file(path):
        missing = [one for one in (path, *path.parents) if not one.exists()]
        if batch is not None:
            batch.directories += reversed(missing)
        path.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Let the files that are opened within appear when the block is left: all of them, or none.

    After an error the directories go, too, that were made within.
    """
    batch = _Batch()
    token = _BATCH.set(batch)
    try:
        yield
        batch.keep()
    except BaseException:
        batch.undo()
        raise
    finally:
        _BATCH.reset(token)


@contextlib.contextmanager
def opened(path: Path, *, known: Callable[[Path], bool] | None = None) -> Iterator[IO[bytes]]:
    """Write a file that appears whole when the block is left, and not at all after an error."""
    with naming_file(path):
        if (straight := _straight(path)) is not None:
            with straight as file:
                yield file
            return
        place = _Place(path)
        place.judge(known)
        with contextlib.ExitStack() as stack:
            new = stack.enter_context(_New(place))
            yield new.file
            batch = _BATCH.get()
            if batch is None:
                new.keep()
            else:
                batch.add(new)
                stack.pop_all()


@contextlib.contextmanager
def stream(path: Path) -> Iterator[IO[str]]:
    """Write text to a file that is there from the start and grows as it is flushed."""
    with naming_file(path):
        raw = _straight(path) or _Stream(GrowingFile(path))
        file = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors="surrogateescape")
        try:
            yield file
            file.flush()
        finally:
            # Closed here and not by the interpreter: what cannot be written any more is told once.
            with contextlib.suppress(OSError):
                file.close()


class _Place:
    """A name in a directory, links followed, and what stands there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        real = Path(os.path.realpath(path.parent, strict=True)) / path.name
        self._follows = real.is_symlink()
        if self._follows:
            real = Path(os.path.realpath(real))
            if not real.exists():
                raise make_error(RefusedError, "output.dangling", path=path, real=real)
        self.real = real
        if self.real.name in ("", ".."):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        self.status = self.look()

    def look(self) -> os.stat_result | None:
        """Look at what stands there now; None: nothing."""
        try:
            return self.real.lstat()
        except FileNotFoundError:
            return None

    def judge(self, known: Callable[[Path], bool] | None = None) -> None:
        """Raise RefusedError when an output may not stand here."""
        shown = f"{self.path} (a link to {self.real})" if self._follows else str(self.path)
        status = self.status
        if status is not None and not stat.S_ISREG(status.st_mode):
            kind = file_kind.words(status.st_mode)
            raise make_error(RefusedError, "output.no_file", path=shown, kind=kind)
        if (reason := _no_place(self.real.parent)) is not None:
            raise make_error(RefusedError, "output.no_place", path=shown, reason=reason)
        if status is None:
            return
        if (names := self._names(status)) > 1:
            raise make_error(RefusedError, "output.hard_links", path=shown, names=names)
        if used := file_uses(self.real, Snapshot()):
            raise make_error(RefusedError, "output.in_use", path=shown, use=used[0])
        if status.st_size and not self.is_ours() and not (known is not None and known(self.real)):
            if self._mark() is not None:
                raise make_error(RefusedError, "output.edited", path=shown)
            raise make_error(RefusedError, "output.foreign", path=shown)

    def _names(self, status: os.stat_result) -> int:
        """Return how many names it has, without those by which a program that was killed had set it aside."""
        if status.st_nlink < 2:
            return status.st_nlink
        with contextlib.suppress(OSError), os.scandir(self.real.parent) as entries:
            aside = [one for one in entries if _ASIDE.fullmatch(one.name) and one.inode() == status.st_ino]
            return status.st_nlink - len(aside)
        return status.st_nlink

    def is_ours(self) -> bool:
        """Whether the mark says that what is there is what we wrote."""
        status, mark = self.status, self._mark()
        if status is None or mark is None:
            return False
        return mark == _mark(status.st_ino, _digest(self.real))

    def _mark(self) -> bytes | None:
        with contextlib.suppress(OSError):
            return os.getxattr(self.real, MARK, follow_symlinks=False)
        return self.mark_beside()

    def mark_beside(self) -> bytes | None:
        """Return the mark that stands beside the file, where it has no attributes."""
        with contextlib.suppress(OSError):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            with os.fdopen(os.open(self.beside, flags), "rb") as file:
                return file.read(256)
        return None

    @property
    def beside(self) -> Path:
        """Name of the file with the mark where there are no attributes; short whatever the name is."""
        return self.real.with_name(_BESIDE + blake3(os.fsencode(self.real.name)).hexdigest()[:16])

    def unchanged(self) -> bool:
        """Whether there still stands what was judged."""
        return self._is_as_judged(self.look())

    def stands_at(self, name: Path) -> bool:
        """Whether what was judged has this name now."""
        return self._is_as_judged(name.lstat())

    def _is_as_judged(self, now: os.stat_result | None) -> bool:
        then = self.status
        if now is None or then is None:
            return now is then
        return (now.st_ino, now.st_dev, now.st_size, now.st_mtime_ns) == (
            then.st_ino,
            then.st_dev,
            then.st_size,
            then.st_mtime_ns,
        )

    def put_mark(self, descriptor: int, digest: str) -> None:
        """Mark the file that is open, or beside it."""
        text = _mark(os.fstat(descriptor).st_ino, digest)
        try:
            os.setxattr(descriptor, MARK, text)
        except OSError:
            with contextlib.suppress(OSError):
                self._put_beside(text)

    def put_back_beside(self, before: bytes | None, written: tuple[int, int] | None) -> None:
        """Make the mark beside what it was before that of a file was written there."""
        now = self.mark_beside()
        if now == before or now is None or written is None or not now.startswith(b"1 %d " % written[1]):
            return
        if before is None:
            self.beside.unlink()
        else:
            self._put_beside(before)

    def _put_beside(self, text: bytes) -> None:
        self.beside.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(self.beside, flags, 0o644), "wb") as file:
            file.write(text)


class _New:
    """A file without a name, or with one nobody looks for, until it is kept."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._name: Path | None = None
        self._older: Path | None = None
        """Where the file is meanwhile that this one replaced."""
        self._older_mark: bytes | None = None
        """Its mark, where that stands beside it."""
        self._identity: tuple[int, int] | None = None
        try:
            descriptor = os.open(place.real.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
                raise
            descriptor = self._named()
        self.file: IO[bytes] = os.fdopen(descriptor, "w+b")

    def _named(self) -> int:
        self._name = self._unused_name()
        return os.open(self._name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def _unused_name(self) -> Path:
        return self._place.real.with_name(_BESIDE + secrets.token_hex(8))

    def __enter__(self) -> _New:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        for name in (self._name, self._older):
            if name is not None:
                with contextlib.suppress(OSError):
                    name.unlink()

    def keep(self) -> None:
        """Give the file its name. Raises RefusedError when somebody put something there meanwhile."""
        try:
            self.finish()
            self.appear()
        except BaseException:
            self.disappear()
            raise

    @property
    def replaces(self) -> bool:
        """Whether a file stands where it goes."""
        return self._place.status is not None

    @property
    def path(self) -> Path:
        """Where it goes."""
        return self._place.path

    def finish(self) -> None:
        """Make it as it will be, all but its name."""
        place = self._place
        self.file.flush()
        if not place.unchanged():
            raise make_error(RefusedError, "output.meanwhile", path=place.path)
        descriptor = self.file.fileno()
        status = os.fstat(descriptor)
        self._identity = status.st_dev, status.st_ino
        if place.status is not None:
            os.fchmod(descriptor, stat.S_IMODE(place.status.st_mode) & 0o777)
        self._older_mark = place.mark_beside()
        place.put_mark(descriptor, _digest(f"/proc/self/fd/{descriptor}"))

    def park(self) -> None:
        """Give it a name that nobody looks for."""
        if self._name is None:
            name = self._unused_name()
            self._linked(name)
            self._name = name

    def appear(self) -> None:
        """Give it the name that it is to have."""
        place = self._place
        if place.status is None and self._linked(place.real):
            return
        self.park()
        if self._name is not None:
            self._name.replace(place.real)
            self._name = None

    def set_older_aside(self) -> None:
        """Give the file that this one replaces another name, until it is known that this one stays."""
        place, aside = self._place, self._unused_name()
        try:
            os.link(place.real, aside, follow_symlinks=False)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
                raise
            place.real.rename(aside)
        self._older = aside
        if not place.stands_at(aside):
            raise make_error(RefusedError, "output.meanwhile", path=place.path)

    def disappear(self) -> None:
        """Take back its name, and give it to the file that had it."""
        place, older, self._older = self._place, self._older, None
        with contextlib.suppress(OSError):
            now = place.look()
            number = None if now is None else (now.st_dev, now.st_ino)
            if older is None:
                if number is not None and number == self._identity:
                    place.real.unlink()
            elif number in (None, self._identity):
                older.rename(place.real)
            elif number == (older.lstat().st_dev, older.lstat().st_ino):
                older.unlink()  # Its own name was not taken away.
        with contextlib.suppress(OSError):
            place.put_back_beside(self._older_mark, self._identity)

    def _linked(self, name: Path) -> bool:
        """Link it, which fails where anything stands; False on file systems without links."""
        try:
            if self._name is None:
                # Only with a directory's descriptor Python calls linkat(2), which follows /proc's links.
                parent = os.open(name.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    os.link(f"/proc/self/fd/{self.file.fileno()}", name, src_dir_fd=parent)
                finally:
                    os.close(parent)
            else:
                os.link(self._name, name)
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EOPNOTSUPP) and self._name is not None:
                return False
            raise
        return True


class _Batch:
    """Files that appear together, and the directories that were made for them."""

    def __init__(self) -> None:
        self.directories: list[Path] = []
        self._files: list[_New] = []

    def add(self, new: _New) -> None:
        """Take over a file whose content is written."""
        new.finish()
        if len(self._files) >= MOST_OPEN:
            new.park()
            new.file.close()
        self._files.append(new)

    def keep(self) -> None:
        """Give all files their names; a file that is replaced stays aside until all have theirs."""
        for new in self._files:
            if new.replaces:
                with naming_file(new.path):
                    new.park()  # What can fail for want of space fails now.
        for new in sorted(self._files, key=lambda one: one.replaces):
            with naming_file(new.path):
                if new.replaces:
                    new.set_older_aside()
                new.appear()
        self._close()

    def undo(self) -> None:
        """Leave nothing of what was made."""
        for new in self._files:
            new.disappear()
        self._close()
        for made_directory in reversed(self.directories):
            with contextlib.suppress(OSError):
                made_directory.rmdir()

    def _close(self) -> None:
        for new in self._files:
            new.__exit__()


_BATCH: Final[ContextVar[_Batch | None]] = ContextVar("batch", default=None)


class GrowingFile:
    """A file that is there from the start, and marked anew after each part, so that it is ours if we die."""

    def __init__(self, path: Path) -> None:
        with naming_file(path):
            self._place = _Place(path)
            self._place.judge()
            with _New(self._place) as new:
                new.keep()
                self._inode = os.fstat(new.file.fileno()).st_ino
        self._digest = blake3()
        self._bytes = 0

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._place.path

    @property
    def written(self) -> int:
        """Bytes in it."""
        return self._bytes

    def append(self, content: bytes | memoryview) -> None:
        """Write at the end. Raises RefusedError when somebody else has changed the file."""
        with naming_file(self._place.path):
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with io.FileIO(os.open(self._place.real, flags), "ab") as file:
                status = os.fstat(file.fileno())
                if (status.st_ino, status.st_size) != (self._inode, self._bytes):
                    raise make_error(RefusedError, "output.meanwhile", path=self._place.path)
                rest = memoryview(content)
                try:
                    while rest:
                        count = file.write(rest)
                        self._digest.update(rest[:count])
                        self._bytes += count
                        rest = rest[count:]
                finally:
                    self._place.put_mark(file.fileno(), self._digest.hexdigest())


@contextlib.contextmanager
def settled(file: GrowingFile) -> Iterator[IO[bytes]]:
    """Make a growing file what is written here: add to what begins so, write anew what does not."""
    with contextlib.ExitStack() as stack, naming_file(file.path):
        writer = stack.enter_context(io.BufferedWriter(_Settling(file, stack), _PIECE_BYTES))
        yield writer


class _Settling(io.RawIOBase):
    """What a growing file is to be; what is there already is compared and not written again."""

    def __init__(self, file: GrowingFile, stack: contextlib.ExitStack) -> None:
        self._file = file
        self._stack = stack
        self._there = stack.enter_context(file.path.open("rb"))
        self._same = 0
        self._left = file.written
        self._anew: IO[bytes] | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        content = memoryview(data)
        length = content.nbytes
        if self._left and self._anew is None:
            part = content[: self._left]
            if self._there.read(len(part)) == part:
                self._same += len(part)
                self._left -= len(part)
                content = content[len(part) :]
            else:
                self._begin_anew()
        if self._anew is not None:
            self._anew.write(content)
        elif content:
            self._file.append(content)
        return length

    def close(self) -> None:
        if not self.closed and self._left and self._anew is None:
            self._begin_anew()
        super().close()

    def _begin_anew(self) -> None:
        self._anew = self._stack.enter_context(opened(self._file.path))
        self._there.seek(0)
        rest = self._same
        while rest and (part := self._there.read(min(rest, _PIECE_BYTES))):
            self._anew.write(part)
            rest -= len(part)


class _Stream(io.RawIOBase):
    """A growing file as something to write to."""

    def __init__(self, file: GrowingFile) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        content = memoryview(data)
        self._file.append(content)
        return content.nbytes


def _no_place(directory: Path) -> str | None:
    """Say why no file of ours may be made in a directory, None where one may."""
    if (reason := writable.forbidden(directory)) is not None:
        return reason
    within = (directory, *directory.parents)
    # Of memory: a mistyped device would become a file there.
    in_dev = Path("/dev") in within and Path("/dev/shm") not in within  # noqa: S108 - only compared
    return say("output.place.device") if in_dev else None


def _descriptor(path: Path) -> int | None:
    """Return the number of a descriptor of ours that a path means, as /dev/stdout does."""
    text = os.path.normpath(path)
    match = _OWN_DESCRIPTOR.fullmatch(text)
    return int(match[1]) if match else _STANDARD.get(text)


def _straight(path: Path) -> io.FileIO | None:
    """Open what is written as it is: our own descriptors, and devices that swallow everything."""
    number = _descriptor(path)
    if number is not None:
        if stat.S_ISBLK(os.fstat(number).st_mode):
            raise make_error(RefusedError, "output.no_file", path=path, kind="a block device")
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, say("output.reads_only"))
        return io.FileIO(os.dup(number), "wb")
    try:
        status = path.stat()
    except OSError:
        return None
    known = (os.major(status.st_rdev), os.minor(status.st_rdev))
    return io.FileIO(path, "wb") if stat.S_ISCHR(status.st_mode) and known in _SWALLOW else None


@contextlib.contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Say of what the system refuses which file it was and what to do. Raises InputError."""
    try:
        yield
    except BrokenPipeError:
        raise  # Whoever read it has gone; `cli.main` knows what to do.
    except LoadstoneError:
        raise
    except Exception as error:
        # A library that writes the file has errors of its own: they tell the system's number.
        number = system_error_number(error)
        if number is None and not isinstance(error, OSError):
            raise
        reason = getattr(error, "strerror", None) or (os.strerror(number) if number else str(error))
        hint = say(f"output.remedy.{REMEDIES.get(number or 0, 'other')}")
        raise make_error(InputError, "output.not_written", hint=hint, path=path, reason=reason) from error


def _mark(inode: int, digest: str) -> bytes:
    return f"1 {inode} {digest}".encode()


def _digest(path: Path | str) -> str:
    return blake3().update_mmap(path).hexdigest()
