"""Uses that no list of this host's shows under the target's own name: how each is staged.

Knows mounts, loop devices, namespaces and descriptors; every function makes one situation and returns
the target. Knows no verb and no expectation.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from lab.safety.contents import call, put

if TYPE_CHECKING:
    import contextlib

MIB = 1 << 20
MINE = b"mine" * 2048
_READ_ONLY, _PRIVATE, _NEW_MOUNTS = 1, 1 << 18 | 1 << 14, 0x20000
"""MS_RDONLY, MS_PRIVATE with MS_REC, and CLONE_NEWNS."""


def empty(path: Path, size: int = 64 * MIB) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def loop(stack: contextlib.ExitStack, path: Path, *options: str) -> Path:
    device = Path(call("losetup", "--find", "--show", *options, path))
    stack.callback(call, "losetup", "--detach", device)
    return device


def with_files(stack: contextlib.ExitStack, device: Path, point: Path, *, elsewhere: bool = False) -> None:
    """Mount an ext2 with a file in it, here or in a mount namespace of its own."""
    call("mkfs.ext2", "-q", "-F", device)
    point.mkdir()
    call("mount", device, point)
    (point / "notes").write_bytes(MINE)
    call("umount", point)
    if not elsewhere:
        # What a file system does by itself would look like damage.
        call("mount", "-o", "ro,noatime", device, point)
        stack.callback(point.rmdir)
        stack.callback(call, "umount", point)
        return
    script = f"mount --make-rprivate / && mount -o ro,noatime {device} {point} && echo 1; read x"
    _keep_running(stack, "unshare", "--mount", "sh", "-c", script)


def over_a_mounted_loop(folder: Path, stack: contextlib.ExitStack) -> Path:
    lower = loop(stack, empty(folder / "image"))
    upper = loop(stack, lower)
    with_files(stack, lower, folder / "mounted")
    return upper


def mounted_elsewhere(folder: Path, stack: contextlib.ExitStack) -> Path:
    device = loop(stack, empty(folder / "image"))
    with_files(stack, device, folder / "point", elsewhere=True)
    return device


def beside_one_mounted_elsewhere(folder: Path, stack: contextlib.ExitStack) -> Path:
    image = empty(folder / "image")
    first, second = loop(stack, image), loop(stack, image)
    with_files(stack, first, folder / "point", elsewhere=True)
    return second


def node_of_a_mounted_device(folder: Path, stack: contextlib.ExitStack) -> Path:
    device = loop(stack, empty(folder / "image"))
    with_files(stack, device, folder / "mounted")
    node = Path(f"/dev/loadstone-lab-{os.getpid()}")
    os.mknod(node, 0o60600, device.stat().st_rdev)
    stack.callback(node.unlink)
    return node


def disk_of_a_written_partition(folder: Path, stack: contextlib.ExitStack) -> Path:
    device = loop(stack, empty(folder / "image"))
    call("sfdisk", "-q", "--no-reread", device, text="label: dos\n2048,65536\n")
    first = Path(f"{device}p1")
    if not first.is_block_device():  # Where nobody has read the table by now.
        call("partx", "-a", device)
    stack.callback(call, "partx", "-d", device)
    lines = f"import sys; f = open('{first}', 'r+b'); print(1, flush=True); sys.stdin.read()"
    _keep_running(stack, sys.executable, "-c", lines)
    return device


def sent_descriptor(folder: Path, stack: contextlib.ExitStack) -> Path:
    path = folder / "file"
    path.write_bytes(MINE)
    ours, theirs = socket.socketpair()
    stack.enter_context(ours)
    stack.enter_context(theirs)
    with path.open("r+b") as file:
        socket.send_fds(ours, [b"x"], [file.fileno()])
    return path


def accounting(folder: Path, stack: contextlib.ExitStack) -> Path:
    """The kernel itself writes there; it changes by itself."""
    path = folder / "file"
    path.write_bytes(MINE)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.acct(os.fsencode(path)) != 0:
        raise OSError(ctypes.get_errno(), "no process accounting")
    stack.callback(libc.acct, None)
    return path


def lease(folder: Path, stack: contextlib.ExitStack) -> Path:
    path = folder / "file"
    path.write_bytes(MINE)
    lines = f"import fcntl, os, signal, sys; f = os.open({str(path)!r}, os.O_RDONLY)"
    lines += "; signal.signal(signal.SIGIO, signal.SIG_IGN); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)"
    _keep_running(stack, sys.executable, "-c", f"{lines}; print(1, flush=True); sys.stdin.read()")
    return path


def overlay(folder: Path, stack: contextlib.ExitStack) -> Path:
    """The upper file of an overlay; a process has it open by the overlay's name."""
    for name in ("lower", "upper", "work", "merged"):
        (folder / name).mkdir()
    options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
    call("mount", "-t", "overlay", "overlay", "-o", options, folder / "merged")
    stack.callback(call, "umount", folder / "merged")
    (folder / "merged" / "file").write_bytes(MINE)
    lines = f"import sys; f = open('{folder}/merged/file', 'r+b'); print(1, flush=True); sys.stdin.read()"
    _keep_running(stack, sys.executable, "-c", lines)
    return folder / "upper" / "file"


def mounted_without_a_loop(_: Path, stack: contextlib.ExitStack) -> Path:
    """An erofs that the kernel reads from its file by itself, as those of containers (Linux 6.12)."""
    image, point = _erofs(stack)
    _mounted_by_itself(image, point, b"", stack)
    return image


def mounted_and_renamed(_: Path, stack: contextlib.ExitStack) -> Path:
    """The same under another name by now: the list of mounts has the old one."""
    image, point = _erofs(stack)
    _mounted_by_itself(image, point, b"", stack)
    return image.rename(image.with_name("renamed"))


def unmounted_lazily(_: Path, stack: contextlib.ExitStack) -> Path:
    """The same, in no list of mounts any more; a process still reads a file in it."""
    image, point = _erofs(stack)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(image), os.fsencode(point), b"erofs", _READ_ONLY, b""):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(image))
    lines = f"import sys; f = open('{point}/notes', 'rb'); print(1, flush=True); sys.stdin.read()"
    _keep_running(stack, sys.executable, "-c", lines)
    call("umount", "--lazy", point)
    return image


def read_by_a_process(folder: Path, stack: contextlib.ExitStack) -> Path:
    """As the base of a disk image is by an emulator, and a database by those who only look at it."""
    path = folder / "file"
    path.write_bytes(MINE)
    lines = f"import sys; f = open('{path}', 'rb'); print(1, flush=True); sys.stdin.read()"
    _keep_running(stack, sys.executable, "-c", lines)
    return path


def data_of_a_mounted_image(_: Path, stack: contextlib.ExitStack) -> Path:
    """The file that a mounted erofs has its data in (`device=`), which the list of mounts does not name."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
    data = folder / "data"
    image, point = _erofs(stack, "--chunksize=4096", f"--blobdev={data}")
    _mounted_by_itself(image, point, f"device={data}".encode(), stack)
    return data


def _mounted_by_itself(image: Path, point: Path, options: bytes, stack: contextlib.ExitStack) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(image), os.fsencode(point), b"erofs", _READ_ONLY, options):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(image))
    stack.callback(call, "umount", point)


def mounted_without_a_loop_elsewhere(_: Path, stack: contextlib.ExitStack) -> Path:
    """The same in a mount namespace of its own."""
    image, point = _erofs(stack)
    lines = (
        "import ctypes, sys; libc = ctypes.CDLL(None); "
        f"libc.unshare({_NEW_MOUNTS}); libc.mount(b'none', b'/', None, {_PRIVATE}, None); "
        f"done = libc.mount(b'{image}', b'{point}', b'erofs', {_READ_ONLY}, b''); "
        "print(1 if done == 0 else 0, flush=True); sys.stdin.read()"
    )
    _keep_running(stack, sys.executable, "-c", lines)
    return image


def _erofs(stack: contextlib.ExitStack, *options: str) -> tuple[Path, Path]:
    # A file in memory is none that it can be mounted from.
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
    image, point, content = folder / "image", folder / "mounted", folder / "content"
    point.mkdir()
    content.mkdir()
    (content / "notes").write_bytes(MINE * 16)
    call("mkfs.erofs", *options, image, content)
    return image, point


def below_mounts(folder: Path, stack: contextlib.ExitStack) -> Path:
    """A file that bindfs shows of what mergerfs shows; a process has it open where it lies."""
    for name in ("first", "second", "merged", "shown"):
        (folder / name).mkdir()
    (folder / "second" / "file").write_bytes(MINE)
    call("mergerfs", f"{folder}/first:{folder}/second", folder / "merged")
    # Lazily: bindfs lets go of what it shows a moment after its own mount is gone.
    stack.callback(call, "umount", "--lazy", folder / "merged")
    call("bindfs", folder / "merged", folder / "shown")
    stack.callback(call, "umount", "--lazy", folder / "shown")
    lines = f"import sys; f = open('{folder}/second/file', 'r+b'); print(1, flush=True); sys.stdin.read()"
    _keep_running(stack, sys.executable, "-c", lines)
    return folder / "shown" / "file"


def mounted_over(folder: Path, stack: contextlib.ExitStack) -> Path:
    """An empty file, over whose name somebody's is mounted."""
    path, image = folder / "file", folder / "mine"
    path.touch()
    image.write_bytes(MINE)
    call("mount", "--bind", image, path)
    stack.callback(call, "umount", path)
    return path


def unsynced(folder: Path, stack: contextlib.ExitStack) -> Path:
    """A loop device whose content is in its page cache, and a hole in the file below."""
    device = loop(stack, empty(folder / "image"))
    put(device, (40 * MIB, MINE))
    return device


def growing(folder: Path, stack: contextlib.ExitStack) -> Path:
    """What `btrfs send > FILE` and `rsync --inplace` look like: empty so far, and being written."""
    path = folder / "stream"
    lines = f"import sys; f = open({str(path)!r}, 'wb'); print(1, flush=True); sys.stdin.read()"
    _keep_running(stack, sys.executable, "-c", lines)
    return path


def _keep_running(stack: contextlib.ExitStack, *command: str) -> None:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    stack.callback(process.wait)
    stack.callback(process.stdout.close)
    stack.callback(process.stdin.close)
    if process.stdout.readline() != b"1\n":
        raise RuntimeError(f"{command[0]} did not stage it")
