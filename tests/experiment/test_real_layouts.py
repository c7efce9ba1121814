"""Layouts, fill levels, groups and states of targets on this very host."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.control import change_journal, orphans
from loadstone.control.changes import Changes, restore
from loadstone.control.fill import FILE as FILL_FILE
from loadstone.control.fill import used_percent
from loadstone.control.layout import build, steps
from loadstone.control.layout.description import LayoutDescription, LayoutOrder
from loadstone.control.own_group import OwnGroup
from loadstone.control.remote import RemoteFile
from loadstone.errors import InputError, RefusedError, RunError
from loadstone.experiment import allocation
from loadstone.experiment.levels import Asked
from loadstone.experiment.machine_state import Machine, order_of
from loadstone.experiment.prepared import ReadOptionsOfExperiment, prepare
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.path.block import BlockDevice
from loadstone.path.mounts import mounts
from loadstone.plan.resolve import resolve
from loadstone.plan.safety import guard, signatures
from tests.support.devices import attached, empty

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.plan.model import Plan

PROGRAMS = ("losetup", "mkfs.btrfs", "mkfs.ext4", "mount", "wipefs", "blkid")


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[list[str]]:
    """Two loop devices that are gone afterwards."""
    if os.geteuid() != 0 or not all(map(shutil.which, PROGRAMS)):
        pytest.skip(f"needs root and {', '.join(PROGRAMS)}")
    images = [empty(tmp_path / f"image{number}", 150 << 20) for number in range(2)]
    with attached(images[0]) as one, attached(images[1]) as other:
        yield [one, other]


def order(devices: list[str], base: Path, **what: Any) -> LayoutOrder:
    made = LayoutOrder(
        label="ls0badcafe",
        name="x",
        devices=tuple(devices),
        identities=tuple(build.identity_of(one) for one in devices),
        description=LayoutDescription.model_validate(what),
        base=str(base / "mounts"),
    )
    if why := build.why_not(made):
        pytest.skip(why)
    return made


def signature(device: str) -> str:
    return subprocess.run(["blkid", "-p", device], capture_output=True, text=True, check=False).stdout


def mounted(made: LayoutOrder) -> list[str]:
    return [one.point for one in mounts() if one.point in made.volumes]


@pytest.mark.root
@pytest.mark.parametrize("what", [{"manager": "btrfs", "raid": "1"}, {"filesystem": "ext4"}])
@pytest.mark.in_turn
def test_a_layout_stands_and_goes_without_a_trace(
    devices: list[str], tmp_path: Path, what: dict[str, Any]
) -> None:
    made = order(devices, tmp_path, **what)
    with Changes(where=tmp_path / "state") as changes:
        changes.make("layout", "x", build.order_text("build", made), build.order_text("take down", made))
        assert mounted(made) == made.volumes
        for volume in made.volumes:
            (Path(volume) / "file").write_text("x")
    assert not mounted(made)
    assert [signature(one) for one in devices] == ["", ""]
    assert not Path(made.base).exists()


@pytest.mark.root
@pytest.mark.in_turn
@pytest.mark.parametrize("what", [
    {"manager": "btrfs", "raid": "1"},
    {"filesystem": "ext4"},
    {"filesystem": "ext4", "mkfs_options": ["-b", "4096", "-g", "1024"]},
    {"filesystem": "ext4", "mkfs_options": ["-b", "1024", "-O", "^sparse_super,^resize_inode"]},
    {"filesystem": "ext4", "mkfs_options": ["-b", "1024", "-O", "^resize_inode,sparse_super2"]},
    {"filesystem": "xfs", "mkfs_options": ["-d", "agcount=3"]},
])  # fmt: skip
def test_no_copy_of_a_superblock_stays_when_a_layout_is_taken_down(
    tmp_path: Path, what: dict[str, Any]
) -> None:
    """wipefs clears a part of the first one; btrfs has one at 64 MiB, groups of ext4 and XFS have theirs."""
    images = [empty(tmp_path / f"image{number}", 310 << 20) for number in range(2)]
    if os.geteuid() != 0 or not all(map(shutil.which, PROGRAMS)):
        pytest.skip(f"needs root and {', '.join(PROGRAMS)}")
    with attached(images[0]) as one, attached(images[1]) as other:
        made = order([one, other], tmp_path, **what)
        with Changes(where=tmp_path / "state") as changes:
            changes.make("layout", "x", build.order_text("build", made), build.order_text("take down", made))
            places = labelled_superblocks(images[0], made.label)
            assert len(places) > 1
        assert [labelled_superblocks(image, made.label) for image in images] == [[], []]
        content = images[0].read_bytes()
        # wipefs leaves the first one but for its magic number.
        assert {content[at : at + 512] for at in places} == {bytes(512)}


def labelled_superblocks(image: Path, label: str) -> list[int]:
    """Where superblocks with the label are, found in all that is on a device."""
    content, name = image.read_bytes(), label.encode() + b"\0"
    magics = ((0x12B, 64, b"_BHRfS_M"), (120, 56, b"\x53\xef"), (108, 0, b"XFSB"))
    places = [match.start() for match in re.finditer(re.escape(name), content)]
    return [
        start
        for place in places
        for back, ahead, magic in magics
        # What a journal has of one stands anywhere.
        if (start := place - back) % 512 == 0 and content.startswith(magic, start + ahead)
    ]


@pytest.mark.root
def test_what_wipefs_leaves_of_a_pool_is_cleared_too(devices: list[str], tmp_path: Path) -> None:
    """It leaves three uberblocks, so the next experiment was asked for consent to lose a "ZFS member"."""
    if shutil.which("blkdiscard") is None:
        pytest.skip("needs blkdiscard (package util-linux)")
    size_bytes = 150 << 20
    with Path(devices[0]).open("r+b") as device:
        for label in (0, 256 << 10, size_bytes - (512 << 10), size_bytes - (256 << 10)):
            for number in range(8):
                device.seek(label + (128 << 10) + (number << 12))
                device.write((0x00BAB10C).to_bytes(8, "little"))
    assert any("zfs" in one.name.casefold() for one in signatures.read(Path(devices[0])))
    made = order(devices[:1], tmp_path / "base", manager="zfs", raid="jbod")
    for step in steps.taking_down(made):
        if step.wipes is not None:
            subprocess.run(step.command, check=True, capture_output=True)
    assert signatures.read(Path(devices[0])) == []


@pytest.mark.root
@pytest.mark.in_turn
def test_a_layout_that_was_left_is_taken_down_by_restore_and_nothing_else(
    devices: list[str], tmp_path: Path
) -> None:
    made, where = order(devices[:1], tmp_path, filesystem="ext4"), tmp_path / "state"
    child = os.fork()
    if child == 0:
        changes = Changes(where=where)
        changes.make("layout", "x", build.order_text("build", made), build.order_text("take down", made))
        os._exit(0)
    os.waitpid(child, 0)
    assert mounted(made)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "precious", devices[1]], check=True)
    (done,) = restore(where=where)
    assert done.is_well
    assert str(done) == "layout of x: put back to nothing"
    assert not mounted(made)
    assert signature(devices[0]) == ""
    assert "precious" in signature(devices[1])


@pytest.mark.root
@pytest.mark.parametrize("identity", [None, "loop9:0"])
def test_a_device_that_carries_nothing_of_ours_is_let_be(
    devices: list[str], tmp_path: Path, identity: str | None
) -> None:
    """Another disk got its name at a boot, or its user took the layout down by hand and has it again."""
    made = order(devices[:1], tmp_path, filesystem="ext4")
    if identity is not None:
        made = made.model_copy(update={"identities": (identity,)})
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "precious", devices[0]], check=True)
    build.take_down(made)
    assert "precious" in signature(devices[0])


@pytest.mark.root
def test_the_number_of_a_disk_holds_for_one_boot(devices: list[str]) -> None:
    assert build.identity_of(devices[0]).startswith(build.BOOT_ID.read_text().strip())


TWO_LAYOUTS = """title = "x"
repeats = 1
runtime = "1s"
size = "1m"
devices = ["{device}"]
targets = ["{{file}}"]

[layouts.each]
filesystem = "ext4"

[layouts.bare]
filesystem = "none"

[[patterns]]
name = "read"
options = { ioengine = "psync", rw = "randread", bs = "4k" }

[[factors]]
name = "layout"
kind = "layout"
levels = ["each", "bare"]
"""


def machine_of(devices: list[str], folder: Path) -> Machine:
    """Return the machine of an experiment with a layout `each` and a `bare` one on the first device."""
    path = folder / "x.toml"
    path.write_text(TWO_LAYOUTS.replace("{device}", devices[0]).replace("{{file}}", "{file}"))
    prepared = prepare(path, ReadOptionsOfExperiment())
    machine = Machine(prepared.varied, prepared.label, where=folder / "state")
    machine.agreed = {devices[0]: build.SeenDevice.of(devices[0])}
    return machine


@pytest.mark.root
@pytest.mark.in_turn
def test_a_device_that_somebody_took_since_it_was_agreed_on_is_not_built_on(
    devices: list[str], tmp_path: Path
) -> None:
    machine = machine_of(devices, tmp_path)
    asked = Asked(layout="each")
    with machine.around(asked, None, lambda _: None):
        assert "ext4" in signature(devices[0])
    machine.end()
    assert signature(devices[0]) == ""
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "precious", devices[0]], check=True)
    with (
        pytest.raises(RefusedError, match="it has ext4 precious"),
        machine.around(asked, None, lambda _: None),
    ):
        pass
    machine.end()
    assert "precious" in signature(devices[0])
    machine.agreed = {devices[0]: build.SeenDevice("another", frozenset())}
    with (
        pytest.raises(RefusedError, match="another device"),
        machine.around(asked, None, lambda _: None),
    ):
        pass
    assert "precious" in signature(devices[0])


def mounted_elsewhere() -> subprocess.Popen[bytes]:
    """Start a process whose own mount namespace has what is mounted now."""
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo there; exec sleep 600"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"there\n"
    holder.stdout.close()
    return holder


@pytest.mark.root
@pytest.mark.in_turn
def test_what_another_mount_namespace_holds_is_named_and_nothing_is_built_on_it(
    devices: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was said that somebody else had put our own file system there, and once more without a reason."""
    monkeypatch.setattr(build, "FREE_S", 0.0)
    monkeypatch.setattr(build, "HELD_S", 0.0)
    machine = machine_of(devices, tmp_path)
    with machine.around(Asked(layout="each"), None, lambda _: None):
        holder = mounted_elsewhere()
    named = f"mounted in the mount namespace of process {holder.pid} (sleep): end that"
    try:
        with (
            pytest.raises(RunError, match=re.escape(named)),
            machine.around(Asked(layout="bare"), None, lambda _: None),
        ):
            pass
    finally:
        holder.kill()
        holder.wait()
    machine.end()
    (left,) = machine.still_changed
    assert (left.control, left.subject, left.outcome) == ("layout", "each", "failed")
    assert named in left.why
    assert "ext4" in signature(devices[0])
    monkeypatch.undo()
    build.take_down(order_of(machine.whole, "each", machine.label))
    assert signature(devices[0]) == ""


@pytest.mark.root
@pytest.mark.in_turn
def test_what_another_mount_namespace_holds_for_a_while_is_waited_for_and_told(
    devices: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that began while a layout was mounted ended the experiment, however soon it went."""
    monkeypatch.setattr(build, "FREE_S", 0.0)
    machine, lines = machine_of(devices, tmp_path), list[str]()
    with machine.around(Asked(layout="each"), None, lambda _: None):
        holder = mounted_elsewhere()

    def tell(line: str) -> None:
        lines.append(line)
        if line.startswith("waiting"):
            holder.kill()
            holder.wait()

    machine.tell = tell
    with machine.around(Asked(layout="bare"), None, lambda _: None):
        assert signature(devices[0]) == ""
    machine.end()
    assert machine.still_changed == []
    (line,) = (one for one in lines if one.startswith("waiting"))
    assert f"process {holder.pid} (sleep) ends" in line
    # A host that is busy has waited for a second of it by then.
    assert re.search(r"(10\smin|9\smin \d+\ss) at most$", line)


@pytest.mark.in_turn
@pytest.mark.root
def test_ctrl_c_ends_the_wait_for_another_mount_namespace(
    devices: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "FREE_S", 0.0)
    machine = machine_of(devices, tmp_path)
    with machine.around(Asked(layout="each"), None, lambda _: None):
        holder = mounted_elsewhere()
    # Kept for later while things are put back: it must not take effect here.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    machine.tell = lambda line: signal.raise_signal(signal.SIGINT) if line.startswith("waiting") else None
    try:
        machine.take_down()
    finally:
        signal.signal(signal.SIGINT, before)
        holder.kill()
        holder.wait()
    (left,) = machine.still_changed
    assert (left.control, left.outcome) == ("layout", "failed")
    build.take_down(order_of(machine.whole, "each", machine.label))
    assert signature(devices[0]) == ""


@pytest.mark.root
@pytest.mark.in_turn
def test_a_file_system_is_filled_and_emptied(devices: list[str], tmp_path: Path) -> None:
    made = order(devices[:1], tmp_path, filesystem="ext4")
    with Changes(where=tmp_path / "state") as changes:
        changes.make("layout", "x", build.order_text("build", made), build.order_text("take down", made))
        before = used_percent(made.volumes[0])
        with Changes(where=tmp_path / "state") as own:
            own.set("fill_level", made.volumes[0], "70%")
            assert used_percent(made.volumes[0]) == pytest.approx(70, abs=2)
            # What a run writes there is nobody else's setting.
            (Path(made.volumes[0]) / "data").write_bytes(bytes(10 << 20))
            assert used_percent(made.volumes[0]) > 75
        (Path(made.volumes[0]) / "data").unlink()
        assert used_percent(made.volumes[0]) == pytest.approx(before, abs=1)
        with (
            Changes(where=tmp_path / "state") as own,
            pytest.raises(RefusedError, match="found 'full'"),
        ):
            own.set("fill_level", made.volumes[0], "full")


@pytest.mark.in_turn
@pytest.mark.root
def test_btrfs_is_as_full_as_was_asked_for_each_time(devices: list[str], tmp_path: Path) -> None:
    """It tells what is used when it commits: what was filled after it had been emptied was 3 % full."""
    made = order(devices, tmp_path, manager="btrfs", raid="0")
    with Changes(where=tmp_path / "state") as changes:
        changes.make("layout", "x", build.order_text("build", made), build.order_text("take down", made))
        (volume,) = made.volumes
        for percent in (60, 30, 60, 45, 60):
            with Changes(where=tmp_path / "fill") as fills:
                fills.set("fill_level", volume, f"{percent}%")
                assert abs(used_percent(volume) - percent) <= 2
            assert used_percent(volume) < 10


@pytest.mark.root
@pytest.mark.in_turn
def test_a_fill_on_a_file_system_that_is_not_mounted_after_a_reboot_is_not_called_restored(
    devices: list[str], tmp_path: Path
) -> None:
    where, folder = tmp_path / "state", tmp_path / "volume"
    folder.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-F", devices[0]], check=True)
    subprocess.run(["mount", devices[0], folder], check=True)
    try:
        child = os.fork()
        if child == 0:
            Changes(where=where).set("fill_level", str(folder), "70%")
            os._exit(0)
        os.waitpid(child, 0)
        subprocess.run(["umount", folder], check=True)
        (record,) = where.glob("*.jsonl")
        record.write_bytes(record.read_bytes().replace(change_journal.boot_id().encode(), b"the boot before"))
        (left,) = restore(where=where)
        assert (left.is_well, left.outcome) == (False, "failed")
        assert f"is not mounted at {folder}" in str(left)
        assert record.exists()
        subprocess.run(["mount", devices[0], folder], check=True)
        (done,) = restore(where=where)
        assert done.outcome == "restored"
        assert not (folder / FILL_FILE).exists()
        assert not record.exists()
    finally:
        subprocess.run(["umount", "-q", folder], check=False)


@pytest.mark.root
@pytest.mark.in_turn
def test_a_fill_on_a_layout_that_a_reboot_took_is_gone_with_it(devices: list[str], tmp_path: Path) -> None:
    made, where = order(devices[:1], tmp_path, filesystem="ext4"), tmp_path / "state"
    child = os.fork()
    if child == 0:
        changes = Changes(where=where)
        changes.make("layout", "x", build.order_text("build", made), build.order_text("take down", made))
        Changes(where=where).set("fill_level", made.volumes[0], "70%")
        os._exit(0)
    os.waitpid(child, 0)
    subprocess.run(["umount", made.volumes[0]], check=True)
    Path(made.volumes[0]).rmdir()
    for record in where.glob("*.jsonl"):
        record.write_bytes(record.read_bytes().replace(change_journal.boot_id().encode(), b"the boot before"))
    assert sorted(one.outcome for one in restore(where=where)) == ["gone", "restored"]
    assert signature(devices[0]) == ""
    assert not (orphans.folder() / f"{made.label}.lock").exists()


@pytest.mark.root
def test_a_group_limits_the_load_alone_for_a_while(tmp_path: Path) -> None:
    """Loadstone in the group used 35 times the CPU of the load, and 0.0059 of its IOPS were left."""
    limits = (
        {"memory.limit_in_bytes": "2G"} if Path("/sys/fs/cgroup/memory").exists() else {"memory.max": "2G"}
    )
    if why := OwnGroup().why_not(limits):
        pytest.skip(why)
    code = (
        "import subprocess, sys\nfrom pathlib import Path\nfrom loadstone import engine_groups\n"
        "from loadstone.control.changes import Changes\n"
        "def count():\n"
        " child = subprocess.check_output(engine_groups.inside(['cat', '/proc/self/cgroup']), text=True)\n"
        " own = Path('/proc/self/cgroup').read_text()\n"
        " print(*('loadstone-test' in one for one in (own, child, ''.join(engine_groups.lines()))))\n"
        "with Changes(where=Path(sys.argv[1])) as c:\n"
        " c.set('cgroup', 'loadstone-test', sys.argv[2])\n count()\ncount()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "state"), json.dumps(limits)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split("\n")[:2] == ["False True True", "False False False"], done.stderr
    assert not list(Path("/sys/fs/cgroup").glob("**/loadstone-test"))


def plan(path: Path, rw: str = "randwrite") -> Plan:
    text = f"[x]\nfilename={path}\nrw={rw}\nbs=4k\nsize=1m\n"
    return resolve(read_jobfiles([TextSource(text)])).plan


@pytest.mark.parametrize(
    ("state", "size", "allocated"),
    [("later pass", 1 << 20, 1 << 20), ("holes", 1 << 20, 1 << 19), ("preallocated", 1 << 20, 1 << 20)],
)
@pytest.mark.in_turn
def test_a_target_is_brought_into_its_state(tmp_path: Path, state: str, size: int, allocated: int) -> None:
    consent, path = guard.Consent(), tmp_path / "data"
    allocation.prepare(plan(path), state, consent, lambda: False)
    status = path.stat()
    assert status.st_size == size
    assert status.st_blocks * 512 == pytest.approx(allocated, abs=64 << 10)
    # What was made here is ours, so it needs no consent when it is made again, or run on.
    guard.secure(plan(path), consent)
    allocation.prepare(plan(path), "first pass", consent, lambda: False)
    assert not path.exists()


def test_room_that_cannot_be_allocated_is_not_written_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On vfat and NFS 3 a preallocated file was one that is written: posix_fallocate(3) does that."""

    def refuse(*_: object) -> int:
        ctypes.set_errno(errno.EOPNOTSUPP)
        return -1

    monkeypatch.setattr(allocation._LIBC, "fallocate", refuse)
    with pytest.raises(RunError, match="cannot be made 'preallocated': Operation not supported"):
        allocation.prepare(plan(tmp_path / "data"), "preallocated", guard.Consent(), lambda: False)


def test_a_file_system_without_holes_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = allocation._write
    # As vfat has it: what was skipped is there, full of zeros.
    monkeypatch.setattr(allocation, "_write", lambda file, size, give_up, **_: write(file, size, give_up))
    target = plan(tmp_path / "data")
    with pytest.raises(RunError, match="cannot be made 'holes': its file system keeps no holes"):
        allocation.prepare(target, "holes", guard.Consent(), lambda: False)


def test_what_is_somebody_elses_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(1 << 20))
    with pytest.raises(RefusedError, match="would destroy existing data"):
        allocation.prepare(plan(path), "first pass", guard.Consent(), lambda: False)
    assert path.stat().st_size == 1 << 20


@pytest.mark.in_turn
def test_states_that_would_mean_nothing_are_told(tmp_path: Path) -> None:
    assert "only reads" in (allocation.why_not(plan(tmp_path / "x", "randread"), "first pass") or "")
    # It was measured as a first pass, on a file that had been written whole.
    assert "also reads" in (allocation.why_not(plan(tmp_path / "x", "randrw"), "first pass") or "")
    assert allocation.why_not(plan(tmp_path / "x", "randrw"), "later pass") is None
    assert "is a file" in (allocation.why_not(plan(tmp_path / "x"), "trimmed") or "")


@pytest.mark.root
def test_a_device_that_takes_no_discards_is_told_before(
    devices: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trimmed = plan(Path(devices[0]))
    assert allocation.why_not(trimmed, "trimmed") is None
    attribute = BlockDevice.attribute
    monkeypatch.setattr(
        BlockDevice, "attribute", lambda self, name: "0" if "discard" in name else attribute(self, name)
    )
    assert "takes no discards" in (allocation.why_not(trimmed, "trimmed") or "")
    assert allocation.why_not(trimmed, "later pass") is None


@pytest.mark.parametrize(
    "subject", ["-oProxyCommand=x:/proc/sys/vm/x", "host:/etc/passwd", "host:/proc/sys/vm/../../x", "host"]
)
def test_only_settings_of_another_host_are_touched(subject: str) -> None:
    with pytest.raises((RefusedError, InputError)):
        RemoteFile().resolve(subject)
