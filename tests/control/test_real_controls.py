"""The controls on this very host: a loop device with a file system, kernel parameters, idle states."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.control.all_controls import Controls
from loadstone.control.control_kind import Setting
from tests.support import devices
from tests.support.devices import attached, empty

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("host_settings")]

CHANGE = """
import sys, time
from loadstone.control.changes import Changes
disk, point = sys.argv[1:]
with Changes() as changes:
    changes.set("io_scheduler", disk, "bfq")
    changes.set("nr_requests", disk, "33")
    changes.set("read_ahead_kb", disk, "64")
    changes.set("write_cache", disk, "write through")
    changes.set("mount_options", point, "noatime,nodiratime,commit=17,nobarrier")
    changes.set("sysctl", "vm.page-cluster", "1")
    print("changed", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Return a loop device and where its ext4 is mounted."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("losetup", "mkfs.ext4", "mount", "umount"))):
        pytest.skip("needs root, losetup, mkfs.ext4 and mount")
    image, point = empty(tmp_path / "image", 64 << 20), tmp_path / "a point"
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    with attached(image) as device, devices.mounted(device, point):
        yield device, point


def values(device: str, point: Path) -> dict[str, str | None]:
    """Read all that is changed below, and what the kernel resets with it."""
    controls, disk = Controls(), device.removeprefix("/dev/")
    of_disk = ("io_scheduler", "nr_requests", "read_ahead_kb", "write_cache", "wbt_lat_usec")
    read = {name: controls.named(name).read(disk) for name in of_disk}
    tunables = [
        name for name in controls.named("scheduler_tunable").subjects() if name.startswith(f"{disk}/")
    ]
    read |= {name: controls.named("scheduler_tunable").read(name) for name in tunables}
    read["mount"] = controls.named("mount_options").read(str(point))
    read["page-cluster"] = controls.named("sysctl").read("vm.page-cluster")
    return read


@pytest.mark.in_turn
@pytest.mark.parametrize("scheduler", ["none", "mq-deadline"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_program_that_is_killed_or_interrupted_leaves_nothing_changed(
    mounted: tuple[str, Path], tmp_path: Path, how: signal.Signals, scheduler: str
) -> None:
    device, point = mounted
    queue = Path("/sys/block") / Path(device).name / "queue"
    if scheduler not in (queue / "scheduler").read_text():
        pytest.skip(f"this kernel has no {scheduler}")
    (queue / "scheduler").write_text(scheduler)
    (queue / "nr_requests").write_text("100")
    before = values(device, point)
    environment = os.environ | {"LOADSTONE_STATE": str(tmp_path / "state")}
    child = subprocess.Popen(
        [sys.executable, "-c", CHANGE, device, str(point)], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "changed\n"
    changed = values(device, point)
    assert (changed["io_scheduler"], changed["nr_requests"]) == ("bfq", "33")
    assert changed["mount"] == "rw,noatime,nodiratime|rw,nobarrier,commit=17"
    restore = [sys.executable, "-m", "loadstone", "restore"]
    if how is signal.SIGKILL:
        alive = subprocess.run(restore, capture_output=True, text=True, check=False, env=environment)
        assert (alive.returncode, alive.stdout) == (1, "")
        assert f"refused: process {child.pid} is alive and will put back" in alive.stderr
        assert values(device, point) == changed
    child.send_signal(how)
    child.wait()
    child.stdout.close()
    if how is signal.SIGKILL:
        shown = subprocess.run(
            [*restore, "--dry-run", "--json"], capture_output=True, text=True, check=True, env=environment
        )
        assert len(json.loads(shown.stdout)["changed"]) == 6
        done = subprocess.run(restore, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stdout
        assert f"io_scheduler of {Path(device).name}: put back to {scheduler}" in done.stdout
    assert values(device, point) == before


def test_a_device_that_is_detached_takes_its_settings_along(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not shutil.which("losetup"):
        pytest.skip("needs root and losetup")
    environment = os.environ | {"LOADSTONE_STATE": str(tmp_path / "state")}
    text = "from loadstone.control.changes import Changes; import os, sys\n"
    text += "Changes().set('read_ahead_kb', sys.argv[1], '64'); os._exit(0)"
    with attached(empty(tmp_path / "image", 1 << 20)) as device:
        subprocess.run([sys.executable, "-c", text, device], check=True, env=environment)
    deadline = time.monotonic() + 10
    while (Path("/sys/block") / Path(device).name / "loop").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    restore = [sys.executable, "-m", "loadstone", "restore"]
    done = subprocess.run(restore, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].endswith(
        ("has its name now, and was not changed", "put back to 2560")
    )


KILLED_AFTER = """
import os, signal, sys
from loadstone.control.changes import Changes
words = iter(sys.argv[1:])
changes = Changes()
for control, subject, value in zip(words, words, words):
    changes.set(control, subject, value)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_and_restored(settings: list[tuple[str, str, str]], state: Path) -> None:
    """Set these on this machine in a process that is killed, and see them put back."""
    controls = Controls()
    before = [controls.named(control).read(subject) for control, subject, _ in settings]
    environment = os.environ | {"LOADSTONE_STATE": str(state)}
    words = [word for one in settings for word in one]
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER, *words], check=False, env=environment)
    changed = [controls.named(control).read(subject) for control, subject, _ in settings]
    restore = [sys.executable, "-m", "loadstone", "restore"]
    done = subprocess.run(restore, capture_output=True, text=True, check=False, env=environment)
    assert killed.returncode == -signal.SIGKILL
    assert changed == [value for *_, value in settings]
    assert done.returncode == 0, done.stdout
    assert [controls.named(control).read(subject) for control, subject, _ in settings] == before


def others(control: str, subject: str) -> list[tuple[str, str, str]]:
    """Return a setting of the control to a value that it does not have; none where it cannot be set here."""
    kind = Controls().named(control)
    now = kind.read(subject) if subject in kind.subjects() else None
    value = next((one for one in kind.choices(subject) if one != now), None)
    return [] if now is None or value is None else [(control, subject, value)]


@pytest.mark.serial
@pytest.mark.parametrize(("control", "subject"), [("transparent_huge_pages", ""), ("idle_states", "cpu0")])
def test_a_setting_of_the_host_is_put_back_after_a_kill(control: str, subject: str, tmp_path: Path) -> None:
    settings = others(control, subject)
    if os.geteuid() != 0 or not settings:
        pytest.skip(f"needs root, and a host that has {control}")
    killed_and_restored(settings, tmp_path)


def test_every_setting_of_a_queue_is_put_back_after_a_kill(mounted: tuple[str, Path], tmp_path: Path) -> None:
    disk = mounted[0].removeprefix("/dev/")
    settings = [*others("nomerges", disk), *others("rq_affinity", disk)]
    sectors = Controls().named("max_sectors_kb").read(disk)
    if sectors is not None:
        settings.append(("max_sectors_kb", disk, str(int(sectors) // 2)))
    if not settings:
        pytest.skip("this kernel's loop devices have no such setting")
    killed_and_restored(settings, tmp_path)


@pytest.mark.in_turn
@pytest.mark.parametrize("control", ["write_cache", "max_sectors_kb"])
def test_a_short_read_ahead_is_put_back_with_what_the_kernel_raises_it_with(
    mounted: tuple[str, Path], tmp_path: Path, control: str
) -> None:
    """A disk with 16 KiB had 128 after an experiment that varied one of these."""
    disk, ahead = mounted[0].removeprefix("/dev/"), Controls().named("read_ahead_kb")
    kind = Controls().named(control)
    now = kind.read(disk)
    if now is None:
        pytest.skip(f"this kernel's loop devices have no {control}")
    value = str(int(now) // 2) if now.isdigit() else next(one for one in kind.choices(disk) if one != now)
    ahead.write(disk, "16")
    killed_and_restored([(control, disk, value)], tmp_path)
    assert ahead.read(disk) == "16"
    # Of both together the one that raises the other is set first.
    assert Controls().reset_by(control, disk) == [Setting("read_ahead_kb", disk)]
    killed_and_restored([(control, disk, value), ("read_ahead_kb", disk, "64")], tmp_path)
    assert ahead.read(disk) == "16"


def test_a_remount_that_outlives_the_kill_is_waited_for(mounted: tuple[str, Path], tmp_path: Path) -> None:
    """The kernel goes on with a remount although mount(8) was killed: here something else does, later."""
    point, begun = mounted[1], tmp_path / "begun"
    slow = tmp_path / "bin" / "mount"
    slow.parent.mkdir()
    slow.write_text(
        f'#!/bin/sh\nsetsid sh -c \'sleep 2; {shutil.which("mount")} "$@"\' sh "$@" &\ntouch {begun}\nwait\n'
    )
    slow.chmod(0o755)
    before = Controls().named("mount_options").read(str(point))
    environment = os.environ | {"LOADSTONE_STATE": str(tmp_path / "state")}
    words = [sys.executable, "-c", KILLED_AFTER, "mount_options", str(point), "noatime"]
    child = subprocess.Popen(words, env=environment | {"PATH": f"{slow.parent}:{environment['PATH']}"})
    deadline = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    child.kill()
    child.wait()
    restore = [sys.executable, "-m", "loadstone", "restore"]
    done = subprocess.run(restore, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout
    assert f"mount_options of {point}: put back to" in done.stdout
    assert Controls().named("mount_options").read(str(point)) == before
