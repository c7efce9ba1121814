"""A file is in use by device and inode: whatever its name, whoever holds it and however."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lab.safety import stacks

from loadstone.cli.main import main
from loadstone.errors import RefusedError
from loadstone.messages import say
from loadstone.path import mounts
from loadstone.path.block import BlockDevice
from loadstone.plan.safety import guard, in_use, kernel_exports, open_files
from loadstone.plan.safety.use import Use, UseKind
from tests.support.devices import attached, call

from . import test_trees
from .plans import plan, target
from .test_devices import backing, loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["backing", "loop"]

HOLD = {
    "open for writing": "f = os.open(path, os.O_WRONLY)",
    "mapped for writing": "f = os.open(path, os.O_RDWR); m = mmap.mmap(f, 4096); os.closerange(3, 99)",
    "locked (FLOCK)": "f = os.open(path, os.O_RDONLY); fcntl.flock(f, fcntl.LOCK_SH)",
    "locked (POSIX)": "f = os.open(path, os.O_RDONLY); fcntl.lockf(f, fcntl.LOCK_SH)",
    "locked (OFDLCK)": "f = os.open(path, os.O_RDONLY); "
    "fcntl.fcntl(f, 37, struct.pack('hhlli', fcntl.F_RDLCK, 0, 0, 0, 0))",
    "a lease": "f = os.open(path, os.O_RDONLY); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)",
}
HARMLESS = {
    "open for reading": "f = os.open(path, os.O_RDONLY)",
    "mapped for reading": "f = os.open(path, os.O_RDONLY); m = mmap.mmap(f, 4096, access=mmap.ACCESS_READ)",
    "mapped privately": "f = os.open(path, os.O_RDONLY); m = mmap.mmap(f, 4096, access=mmap.ACCESS_COPY)",
}

REGISTERED = (
    "import ctypes; call = ctypes.CDLL(None).syscall; f = os.open({where}, os.O_RDWR); "
    "ring = call(425, 4, ctypes.create_string_buffer(120)); "
    "assert ring >= 0 and call(427, ring, 2, (ctypes.c_int * 1)(f), 1) == 0; os.close(f)"
)
"""io_uring_setup, IORING_REGISTER_FILES: the ring alone keeps it open."""
ELSEWHERE = (
    "import ctypes; c = ctypes.CDLL(None); assert c.unshare(0x20000) == 0; "
    "assert c.mount(0, b'/', 0, 0x44000, 0) == 0 and c.mount(b't', b'/dev', b'tmpfs', 0, 0) == 0; "
    "os.mknod('/dev/lun', 0o60600, {number}); "
) + REGISTERED.replace("{where}", "'/dev/lun'")
"""By another name in a mount namespace of its own."""


@contextlib.contextmanager
def holding(path: Path, how: str) -> Iterator[int]:
    code = f"import fcntl, mmap, os, struct, sys; path = {str(path)!r}; {how}"
    code += "; print(1, flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"1\n"
        yield process.pid
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(60)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "database"
    path.write_bytes(bytes(8192))
    return path


def uses(path: Path) -> list[str]:
    return in_use.file_uses(path, in_use.Snapshot())


@pytest.mark.parametrize("how", HOLD)
def test_a_file_held_by_another_process_is_in_use(how: str, database: Path) -> None:
    with holding(database, HOLD[how]) as pid:
        found = uses(database)
        assert any(how in one for one in found), found
        assert any(f"process {pid}" in one or "OFDLCK" in one for one in found)
    assert uses(database) == []


@pytest.mark.parametrize("how", HARMLESS)
def test_reading_a_file_is_no_use_that_forbids_to_write(how: str, database: Path) -> None:
    with holding(database, HARMLESS[how]):
        assert uses(database) == []


@pytest.mark.in_turn
@pytest.mark.parametrize("how", HARMLESS)
def test_consent_is_none_to_change_what_somebody_else_reads(how: str, database: Path) -> None:
    """The base of a disk image, which an idle emulator has open and does not write."""
    consent = guard.Consent(frozenset({str(database)}))
    made = plan(target(str(database), size_bytes=8192))
    with holding(database, HARMLESS[how]) as pid:
        guard.secure(made, guard.NONE)  # All zeros: nothing is lost.
        database.write_bytes(b"base" * 2048)
        for content in (True, False):
            with pytest.raises(RefusedError, match=rf"process {pid} .* has it open to read it"):
                guard.secure(made, consent, content=content)
    guard.secure(made, consent)
    with database.open("rb"):
        guard.secure(made, consent)


@pytest.mark.root
def test_what_only_the_kernel_shows_as_open_need_not_be_of_the_erofs_that_is_mounted(
    database: Path, tmp_path: Path
) -> None:
    """A test beside this one had mounted an erofs: any descriptor on its way was said to be of it."""
    with contextlib.ExitStack() as stack:
        mounted_file(stacks.mounted_and_renamed, tmp_path, stack)
        test_consent_is_none_to_change_what_only_the_kernel_shows_as_open(database)


def test_consent_is_none_to_change_what_only_the_kernel_shows_as_open(database: Path) -> None:
    """A descriptor on its way through a socket is in no process."""
    database.write_bytes(b"base" * 2048)
    consent = guard.Consent(frozenset({str(database)}))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with database.open("rb") as file:
            socket.send_fds(ours, [b"x"], [file.fileno()])
        with pytest.raises(RefusedError, match="the kernel, or a process outside /proc, has it open"):
            guard.secure(plan(target(str(database), size_bytes=8192)), consent)


def test_who_has_a_file_open_for_a_moment_is_no_reader_of_it(database: Path) -> None:
    """A scanner of opened files: the kernel told of it, and the run was refused."""
    database.write_bytes(b"base" * 2048)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with database.open("rb") as file:
            socket.send_fds(ours, [b"x"], [file.fileno()])
        gone = threading.Timer(0.1, lambda: os.close(socket.recv_fds(theirs, 1, 1)[1][0]))
        gone.start()
        guard.secure(plan(target(str(database), size_bytes=8192)), guard.Consent(frozenset({str(database)})))
        gone.join()


def test_a_tree_of_which_somebody_reads_a_file_is_not_changed_with_consent(tmp_path: Path) -> None:
    made = test_trees.plan(test_trees.tree(tmp_path / "t"), "write")
    consent = guard.Consent(frozenset({str(tmp_path / "t")}))
    read = tmp_path / "t" / "vdb.1_1.dir" / "vdb_f0001.file"
    why = rf"{read}: process \d+ .* has it open to read it"
    with holding(read, HARMLESS["mapped for reading"]), pytest.raises(RefusedError, match=why):
        guard.secure(made, consent)
    guard.secure(made, consent)


def test_clients_of_servers_refuse_leases_without_any_other_user(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS 4 and SMB give a lease only with a delegation of their server: that is no user of the file."""
    mount = mounts.mount_of(database)
    assert mount is not None
    with database.open("r+b"):
        assert in_use.is_open_for_writing(database)
        for kind in ("nfs4", "cifs"):
            monkeypatch.setattr(in_use, "mount_of", lambda _, kind=kind: replace(mount, kind=kind))
            assert not in_use.is_open_for_writing(database)


def test_processes_are_not_looked_at_for_a_file_that_the_kernel_knows_nobody_has_open(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among 900 processes that took a second, three times for each page that was written."""
    looks = []
    users = open_files.users

    def counted() -> dict[open_files.Key, list[Use]]:
        looks.append(users())
        return looks[-1]

    monkeypatch.setattr(open_files, "users", counted)
    assert uses(database) == []
    assert not looks
    with database.open("rb"):
        assert uses(database) == []
    assert len(looks) == 1


def test_our_own_descriptors_and_locks_do_not_count(database: Path) -> None:
    with database.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert uses(database) == []


def test_a_file_is_known_by_any_of_its_names(database: Path) -> None:
    other = database.with_name("other")
    other.hardlink_to(database)
    with holding(database, HOLD["open for writing"]):
        database.unlink()
        assert any("open for writing" in one for one in uses(other))


def test_a_tree_with_a_file_in_use_names_it(database: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    inside = tree / "vdb.1_1.dir"
    inside.mkdir(parents=True)
    for number in range(3):
        (inside / f"vdb_f000{number}.file").touch()
    assert in_use.tree_uses(tree, in_use.Snapshot()) == []
    linked = inside / "vdb_f0009.file"
    linked.hardlink_to(database)
    with holding(database, HOLD["mapped for writing"]):
        found = in_use.tree_uses(tree, in_use.Snapshot())
    assert [one.split(":")[0] for one in found] == [str(linked)]


def test_a_tree_with_a_file_in_use_is_not_changed_whatever_the_user_says(tmp_path: Path) -> None:
    made = test_trees.plan(test_trees.tree(tmp_path / "t"), "write")
    consent = guard.Consent(frozenset({str(tmp_path / "t")}))
    guard.secure(made, consent)
    held = tmp_path / "t" / "vdb.1_1.dir" / "vdb_f0001.file"
    why = rf"{held}: process \d+ .* has it mapped for writing"
    with holding(held, HOLD["mapped for writing"]), pytest.raises(RefusedError, match=why):
        guard.secure(made, consent)


@pytest.mark.parametrize("how", HOLD)
def test_the_drop_in_writes_no_file_that_is_in_use(
    how: str, database: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOADSTONE_FIO_OVERWRITE", "1")
    monkeypatch.setenv("LOADSTONE_ACCEPT_DATA_LOSS", str(database))
    with holding(database, HOLD[how]):
        assert main(["fio", "--name=a", "--rw=write", f"--filename={database}", "--size=8k"]) == 1
    said = capfd.readouterr()
    assert how in said.err
    assert "in use" in said.err
    assert database.read_bytes() == bytes(8192)


@pytest.mark.root
@pytest.mark.parametrize("change", ["nothing", "renamed", "removed", "replaced", "parent removed"])
def test_what_backs_a_loop_device_is_known_without_its_name(
    change: str, loop: str, backing: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.hardlink_to(backing)
    if change == "renamed":
        backing.rename(tmp_path / "renamed")
    elif change != "nothing":
        backing.unlink()
    if change == "replaced":
        backing.write_bytes(b"innocent")
    assert uses(other) == [f"it backs {Path(loop).name}"]
    if change == "replaced":
        assert uses(backing) == []


@pytest.mark.root
def test_a_loop_device_over_a_loop_device_is_known_by_number(loop: str) -> None:
    with attached(Path(loop)) as upper:
        device = BlockDevice.of_name(Path(upper).name)
        assert device is not None
        assert device.backing() == (0, Path(loop).stat().st_rdev)


@pytest.mark.root
def test_a_loop_device_whose_file_somebody_else_writes_is_in_use(loop: str, backing: Path) -> None:
    with holding(backing, HOLD["open for writing"]) as pid:
        found = in_use.device_uses(Path(loop), in_use.Snapshot())
    assert f"the file behind {Path(loop).name}: process {pid} (python) has it open for writing" in [
        one.replace("python3", "python") for one in found
    ]


@pytest.mark.root
def test_a_bind_mount_and_both_sides_of_an_overlay_are_one_file(database: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    names = ("upper", "lower", "work", "merged", "bound")
    upper, lower, work, merged, bound = (tmp_path / name for name in names)
    for one in (upper, lower, work, merged, bound):
        one.mkdir()
    for layer in (upper, lower):
        (layer / f"in-{layer.name}").write_bytes(bytes(8192))
    with contextlib.ExitStack() as stack:
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        for words in (("-t", "overlay", "none", "-o", options, merged), ("--bind", tmp_path, bound)):
            done = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"mounting is not possible here: {done.stderr}")
            stack.callback(call, "umount", str(words[-1]))
        sides = [(bound / database.name, database)]
        for layer in (upper, lower):
            sides += [(merged / f"in-{layer.name}", layer / f"in-{layer.name}")]
        for one, other in [*sides, *(pair[::-1] for pair in sides)]:
            if one.parent == merged and other.parent == lower:
                continue  # Written through the overlay it becomes a file of the upper layer.
            with holding(one, HOLD["open for writing"]):
                assert any("open for writing" in told for told in uses(other)), (one, other)


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[tuple[Path, Path, Path]]:
    """A directory, mergerfs of it, and bindfs of that."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("bindfs", "mergerfs"))):
        pytest.skip("needs root, bindfs and mergerfs")
    lower, other, merged, top = places = [tmp_path / name for name in ("lower", "other", "merged", "top")]
    for one in places:
        one.mkdir()
    (lower / "tree" / "deep").mkdir(parents=True)
    (lower / "tree" / "deep" / "file").write_bytes(bytes(8192))
    with contextlib.ExitStack() as stack:
        for words in (("mergerfs", f"{lower}:{other}", merged), ("bindfs", merged, top)):
            done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"no mount in user space: {done.stderr}")
            # A server lets go of what it shows a moment after its own mount is gone.
            stack.callback(call, "umount", "--lazy", str(words[-1]))
        yield lower, merged, top


@pytest.mark.root
def test_a_file_below_mounts_in_user_space_is_known_to_be_used(shown: tuple[Path, Path, Path]) -> None:
    """A process that had the lower file open did not show above: the run wrote beside it."""
    name = Path("tree/deep/file")
    for held in shown:
        with holding(held / name, HOLD["open for writing"]):
            for looked_at in shown:
                found = uses(looked_at / name)
                assert any("open for writing" in one for one in found), (held, looked_at)
    lower, *above = shown
    with holding(lower / name, HOLD["locked (FLOCK)"]) as pid:
        for one in above:
            (told,) = uses(one / name)
            assert told.startswith(f"below its mount, as {lower / name}: process {pid} (")
            assert told.endswith("it locked (FLOCK)")
            (told,) = in_use.tree_uses(one / "tree", in_use.Snapshot())
            assert told.startswith(f"{lower / name}: process {pid} (")


@pytest.mark.root
def test_what_the_servers_of_its_mounts_hold_for_us_is_no_use_by_others(
    shown: tuple[Path, Path, Path],
) -> None:
    """They have the lower file open as long as we have it open above, and a moment longer."""
    _, merged, top = shown
    name = Path("tree/deep/file")
    for one in (merged, top):
        with (one / name).open("r+b"):
            assert uses(one / name) == []
            assert in_use.tree_uses(one / "tree", in_use.Snapshot()) == []
        assert uses(one / name) == []
        assert in_use.tree_uses(one / "tree", in_use.Snapshot()) == []


@pytest.mark.root
def test_another_mount_namespace_makes_no_difference(database: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a mount namespace needs root")
    script = f"mount -t tmpfs none /mnt 2>/dev/null; exec 9>>{database}; echo 1; read x"
    words = ["unshare", "--mount", "sh", "-c", script]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        if process.stdout.readline() != b"1\n":
            pytest.skip("no mount namespaces here")
        assert any("open for writing" in one for one in uses(database))
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(60)


def mounted_file(
    make: Callable[[Path, contextlib.ExitStack], Path], place: Path, stack: contextlib.ExitStack
) -> Path:
    """Return the file of an erofs that is mounted until the stack ends, where that can be."""
    if os.geteuid() != 0 or shutil.which("mkfs.erofs") is None:
        pytest.skip("needs root and mkfs.erofs")
    try:
        return make(place, stack)
    except (OSError, RuntimeError) as error:
        pytest.skip(f"no erofs is mounted from a file here: {error}")


@pytest.mark.root
@pytest.mark.parametrize("here", [True, False])
def test_a_file_that_is_mounted_without_a_loop_device_is_in_use(tmp_path: Path, here: bool) -> None:
    """An erofs of a container: neither a process nor a loop device has its file."""
    make = stacks.mounted_without_a_loop if here else stacks.mounted_without_a_loop_elsewhere
    with contextlib.ExitStack() as stack:
        image = mounted_file(make, tmp_path, stack)
        where = "" if here else " in another mount namespace"
        assert uses(image) == [f"it is mounted at {image.parent}/mounted (erofs){where}"]
        with pytest.raises(RefusedError, match="it is mounted at"):
            guard.secure(plan(target(str(image))), guard.Consent(frozenset({str(image)})))
    assert uses(image) == []


@pytest.mark.in_turn
@pytest.mark.root
@pytest.mark.parametrize("make", [stacks.mounted_and_renamed, stacks.data_of_a_mounted_image])
def test_a_file_of_a_mounted_image_is_in_use_by_a_name_that_no_mount_tells(
    tmp_path: Path, make: Callable[[Path, contextlib.ExitStack], Path]
) -> None:
    """Renamed since it was mounted, or named as `device=` of another: the kernel alone has it open."""
    with contextlib.ExitStack() as stack:
        file = mounted_file(make, tmp_path, stack)
        use = "the kernel, or a process outside /proc, has it open, as a mounted erofs has its files"
        assert uses(file) == [use]
        with pytest.raises(RefusedError, match="mounted erofs"):
            guard.secure(plan(target(str(file))), guard.Consent(frozenset({str(file)})))
        assert in_use.tree_uses(file.parent, in_use.Snapshot())[:1] == [f"{file}: {use}"]
        with file.open("rb"):
            assert uses(file) == []  # Who reads it may be that process: only readers are told.
        stranger = file.with_name("stranger")
        stranger.write_bytes(b"x")
        assert uses(stranger) == []
    assert uses(file) == []


@pytest.mark.root
@pytest.mark.parametrize("make", [stacks.unmounted_lazily, stacks.mounted_and_renamed])
def test_an_image_that_the_kernel_still_reads_is_not_changed_with_consent(
    tmp_path: Path, make: Callable[[Path, contextlib.ExitStack], Path]
) -> None:
    """Unmounted lazily it is in no list; a process that reads the image, too, hid the kernel's use."""
    with contextlib.ExitStack() as stack:
        file = mounted_file(make, tmp_path, stack)
        consent, made = guard.Consent(frozenset({str(file)})), plan(target(str(file)))
        with pytest.raises(RefusedError, match="has it open"):
            guard.secure(made, consent)
        with holding(file, HARMLESS["open for reading"]), pytest.raises(RefusedError, match="to read it"):
            guard.secure(made, consent)


@pytest.mark.root
def test_a_swap_file_is_known_without_its_name(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("swap needs root")
    swap, other = tmp_path / "swap", tmp_path / "other"
    swap.write_bytes(bytes(1 << 20))
    swap.chmod(0o600)
    other.hardlink_to(swap)
    call("mkswap", str(swap))
    try:
        call("swapon", str(swap))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"swap is not possible here: {error.stderr.strip()}")
    try:
        assert uses(swap) == [f"it is used as swap ({swap})"]
        assert uses(other) == [f"it is used as swap ({swap})"]
        # In another root the name of /proc/swaps leads nowhere.
        host = in_use.Snapshot()
        host.__dict__["swaps"] = []
        assert in_use.file_uses(other, host) == ["it is used as swap"]
    finally:
        call("swapoff", str(swap))
    assert uses(swap) == []


def test_what_the_kernel_serves_is_told(tmp_path: Path) -> None:
    """The layout of configfs as the kernel makes it, in a directory."""
    files = {
        "target/core/fileio_0/disk/enable": "1",
        "target/core/fileio_0/disk/info": "ACTIVATED  TCM FILEIO ID: 0  File: /srv/disk.img  Size: 1024",
        "target/core/iblock_0/raw/enable": "1",
        "target/core/iblock_0/raw/info": "Status: ACTIVATED",
        "target/core/iblock_0/raw/udev_path": "/dev/sdb\n",
        "target/core/iblock_0/off/enable": "0",
        "target/core/iblock_0/off/udev_path": "/dev/sdc",
        "nvmet/subsystems/nqn.a/namespaces/1/enable": "1",
        "nvmet/subsystems/nqn.a/namespaces/1/device_path": "/dev/sdd",
        "usb_gadget/g1/functions/mass_storage.0/lun.0/file": "/srv/stick.img",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert kernel_exports.exported(tmp_path) == [
        (Path("/srv/disk.img"), "the SCSI target serves it (fileio_0/disk)"),
        (Path("/dev/sdb"), "the SCSI target serves it (iblock_0/raw)"),
        (Path("/dev/sdd"), "the NVMe target serves it (nqn.a)"),
        (Path("/srv/stick.img"), "the USB gadget serves it"),
    ]


def test_what_a_client_of_the_nfs_server_has_open_is_told(tmp_path: Path) -> None:
    """The text of nfsd4_show_open in fs/nfsd/nfs4state.c."""
    states = tmp_path / "fs" / "nfsd" / "clients" / "4" / "states"
    states.parent.mkdir(parents=True)
    line = '- 0x01: { type: open, access: %s, deny: --, superblock: "fd:10:%d", filename: "a" }\n'
    states.write_text(line % ("rw", 13649) + line % ("r-", 7))
    key = (os.makedev(0xFD, 0x10), 13649)
    assert open_files.users(tmp_path) == {
        key: [Use(UseKind.SERVED, "a client of the NFS server has it open")]
    }


def test_a_writer_that_no_process_shows_is_found(database: Path) -> None:
    """What is on its way through a socket, or kept by io_uring or the kernel, is in no /proc/PID/fd."""
    if not in_use.is_open_for_writing(database):
        with database.open("r+b"):
            if not in_use.is_open_for_writing(database):
                pytest.skip("this file system gives no leases")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with database.open("r+b") as file:
            socket.send_fds(ours, [b"x"], [file.fileno()])
        assert uses(database) == ["a process outside /proc has it open for writing"]
        with pytest.raises(RefusedError, match="outside /proc"):
            guard.secure(plan(target(str(database))), guard.Consent(frozenset({str(database)})))
    assert uses(database) == []


@pytest.mark.root
@pytest.mark.parametrize("how", [REGISTERED.format(where="path"), ELSEWHERE])
def test_a_device_that_only_a_ring_of_another_process_keeps_is_in_use(loop: str, how: str) -> None:
    device = Path(loop)
    number = device.stat().st_rdev
    try:
        with holding(device, how.replace("{number}", str(number))) as pid:
            found = in_use.device_uses(device, in_use.Snapshot())
            shown = (Path("/proc") / str(pid) / "fdinfo").iterdir()
            kept = "".join(one.read_text() for one in shown)
    except AssertionError:
        pytest.skip("no io_uring here")
    if "0: /dev/" not in kept:
        pytest.skip("this kernel does not name what rings keep")
    use = f"process {pid} (python) has it registered with io_uring, perhaps to write it"
    assert found == [f"{device.name}: {use}"]
    assert in_use.device_uses(device, in_use.Snapshot()) == []


@pytest.mark.root
def test_process_accounting_is_found(database: Path) -> None:
    """The kernel writes there by itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    if Path("/proc/sys/kernel/acct").exists() is False or libc.acct(os.fsencode(database)) != 0:
        pytest.skip("no process accounting here")
    try:
        assert uses(database) == ["a process outside /proc has it open for writing"]
    finally:
        libc.acct(None)
    assert uses(database) == []


def test_who_opens_a_file_while_it_is_asked_after_ends_nobody(database: Path) -> None:
    """A broken lease is a signal that would end the process: another one opens the file all the while."""
    loop = "while 1: os.close(os.open(path, os.O_WRONLY))"
    code = f"import os; path = {str(database)!r}; print(1, flush=True)\n{loop}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            seen = {in_use.is_open_for_writing(database) for _ in range(3000)}
        finally:
            process.kill()
    assert seen


def _as_another_user(look: Callable[[], bool]) -> bool:
    """Look as an ordinary user does, who sees nothing of root's processes."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            code = 0 if look() else 1
        except Exception:  # noqa: BLE001 # it must not go on as the test
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1)
    return code == 0


@pytest.mark.root
def test_another_users_file_needs_consent_where_its_users_cannot_be_seen() -> None:
    if os.geteuid():
        pytest.skip("needs root")
    hidden = say("refusals.target.hidden_use")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        place = Path(name)
        place.chmod(0o777)
        theirs, own, anchor = place / "theirs", place / "own", place / "tree"
        for path in (theirs, own, anchor / "vdb_f0001.file"):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(bytes(8192))
            path.chmod(0o666)
        os.chown(own, 65534, 65534)

        def asked(path: Path) -> bool:
            finding = guard.examine(plan(target(path, size_bytes=8192)).targets[0], in_use.Snapshot())
            return finding.needs_consent == [hidden]

        assert not asked(theirs), "root sees all"
        assert _as_another_user(lambda: asked(theirs))
        assert not _as_another_user(lambda: asked(own))
        assert _as_another_user(lambda: in_use.is_use_hidden_below(anchor))
        assert not in_use.is_use_hidden_below(anchor)
