"""Experiments that go on where what layouts stand on, or what other hosts see, is another one by then."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from loadstone import exitcodes
from loadstone.api.experimenting import PlannedExperiment, checked, plan_experiment
from loadstone.api.on_hosts import given_hosts
from loadstone.bundle import experiment as on_disk
from loadstone.control.layout import build
from loadstone.errors import RunError
from loadstone.experiment import target_record
from loadstone.experiment.known_targets import KnownTargets
from loadstone.experiment.machine_state import Machine, order_of
from loadstone.experiment.read_file import parse
from loadstone.experiment.run import ExperimentMeans, run_experiment
from loadstone.hosts.study_runs import RunsOnHosts
from loadstone.plan.safety.guard import Consent
from tests.e2e.program import needs_engine, run
from tests.experiment.conftest import READS, SIZE
from tests.experiment.test_target_watch import FILE, attach_again
from tests.hosts.test_run import hosts_file
from tests.support.devices import attached, call, empty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadstone.study.controller import Next

RESUME = ("--no-report", "--no-calibration")
MOUNTED = (
    """title = "Mounted"
repeats = 2
runtime = "300ms"
size = "1m"
targets = ["{{file}}"]

[layouts.usual]
manager = "mount"
source = "{device}"

[layouts.noatime]
manager = "mount"
source = "{device}"
mount_options = ["noatime"]

"""
    + READS
    + """
[[factors]]
name = "layout"
kind = "layout"
levels = ["usual", "noatime"]
"""
)
BUILT = (
    """title = "Built"
repeats = 2
runtime = "300ms"
size = "1m"
targets = ["{{file}}"]
devices = [{devices}]

[layouts.one]
manager = "btrfs"
raid = "0"

[layouts.other]
manager = "btrfs"
raid = "jbod"

"""
    + READS
    + """
[[factors]]
name = "layout"
kind = "layout"
levels = ["one", "other"]
"""
)


def stop_after_the_first(
    file: Path, text: str, maker_of: Callable[[PlannedExperiment], RunsOnHosts | None] = lambda _: None
) -> Path:
    """Return the directory of an experiment that ended before its second run."""
    needs_engine()
    file.write_text(text)
    out = file.parent / "out"

    @contextlib.contextmanager
    def around(_: Next) -> Iterator[None]:
        if list(out.glob("runs/*")):
            raise KeyboardInterrupt
        yield

    planned = plan_experiment(file)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(
            planned.prepared,
            out_dir=out,
            request={},
            consent=Consent(),
            means=ExperimentMeans(around=around, elsewhere=maker_of(planned)),
            calibration=False,
        )
    return out


@pytest.mark.in_turn
@pytest.mark.root
def test_resume_refuses_another_file_system_under_a_layout_that_mounts_it(
    device: str, tmp_path: Path
) -> None:
    """Nothing was recorded of what a layout mounts as it is, so runs on both counted for the same effects."""
    call("mkfs.ext4", "-q", device)
    out = stop_after_the_first(tmp_path / "x.toml", MOUNTED.format(device=device))
    before = {one.layout: one for one in on_disk.read(out).targets}
    assert before.keys() == {"usual", "noatime"}
    assert {one.path for one in before.values()} == {device}
    assert all("ext4 UUID=" in one.file_system for one in before.values())

    call("mkfs.ext4", "-q", "-F", device)
    documents = {one.name: one.read_bytes() for one in out.glob("*.json")}
    done = run("experiment", "resume", out, *RESUME, cwd=tmp_path)
    assert done.code == exitcodes.USAGE
    words = " ".join(done.err.split())
    assert (
        f"not what the experiment so far was measured on: {device}: its file system was ext4 UUID=" in words
    )
    assert f"--other-target {device}" in words
    assert {one.name: one.read_bytes() for one in out.glob("*.json")} == documents

    done = run("experiment", "resume", out, *RESUME, "--other-target", device, cwd=tmp_path)
    assert done.code == exitcodes.DONE, done.err
    after = {one.layout: one for one in on_disk.read(out).targets}
    assert after["usual"].file_system == after["noatime"].file_system != before["usual"].file_system


@pytest.mark.in_turn
@pytest.mark.root
def test_resume_goes_on_with_the_file_system_that_a_layout_mounted_before(
    device: str, tmp_path: Path
) -> None:
    """Its device may have been attached again, under the same name."""
    call("mkfs.ext4", "-q", device)
    out = stop_after_the_first(tmp_path / "x.toml", MOUNTED.format(device=device))
    attach_again(device, tmp_path / "disk")
    done = run("experiment", "resume", out, *RESUME, cwd=tmp_path)
    assert done.code == exitcodes.DONE, done.err
    assert len(list((out / "runs").iterdir())) == 4


@pytest.mark.in_turn
@pytest.mark.root
def test_a_file_system_made_anew_between_two_runs_on_its_layout_is_noticed(
    device: str, tmp_path: Path
) -> None:
    call("mkfs.ext4", "-q", device)
    known = KnownTargets()
    machine = Machine(parse(MOUNTED.format(device=device).encode(), "x.toml"), "ls0badcafe", where=tmp_path)
    machine.stood = known.stood
    known.lost = machine.lose
    try:
        for _ in range(2):
            machine.stand("usual")
            machine.take_down()
        assert [(one.layout, one.path) for one in known.now] == [("usual", device)]
        call("mkfs.ext4", "-q", "-F", device)
        with pytest.raises(RunError, match="is not the target that the experiment began with"):
            machine.stand("usual")
    finally:
        machine.end()
    assert machine.lost is not None
    assert not machine.still_changed


@pytest.mark.root
def test_what_is_new_at_each_mount_is_no_other_target(tmp_path: Path) -> None:
    call("mount", "-t", "tmpfs", "x", str(tmp_path))
    try:
        assert target_record.on_layout("memory", "x", str(tmp_path)) == ()
    finally:
        call("umount", str(tmp_path))


@pytest.mark.in_turn
@pytest.mark.root
@pytest.mark.parametrize("manager", ["btrfs", "lvm"])
def test_resume_refuses_another_device_under_a_layout_that_is_built(tmp_path: Path, manager: str) -> None:
    """The layout is new each time; its devices have to be the same."""
    images = [empty(tmp_path / f"image{number}", 160 << 20) for number in range(3)]
    with attached(images[0]) as one, attached(images[1]) as other:
        listed = f'"{one}", "{other}"'
        text = BUILT.format(devices=listed).replace("btrfs", manager)
        if why := build.why_not(order_of(parse(text.encode(), "x.toml"), "one", "ls0badcafe")):
            pytest.skip(why)
        out = stop_after_the_first(tmp_path / "x.toml", text)
        assert [target.path for target in on_disk.read(out).targets] == [one, other]
        attach_again(other, images[2])
        # What btrfs left of the layout before is asked for anew.
        resume = [*RESUME, "--i-accept-data-loss", one, "--i-accept-data-loss", other]
        done = run("experiment", "resume", out, *resume, cwd=tmp_path)
        assert done.code == exitcodes.USAGE
        words = " ".join(done.err.split())
        assert f"{other}: it was loop device from byte 0 of {images[1]}" in words
        assert f"and is loop device from byte 0 of {images[2]}" in words
        assert f"{one}: " not in words
        attach_again(other, images[1])
        done = run("experiment", "resume", out, *resume, cwd=tmp_path)
        assert done.code == exitcodes.DONE, done.err


@pytest.fixture
def on_hosts(device: str, tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the directory of an experiment on two hosts that ended after its first run, and its hosts."""
    hosts = ("--hosts", str(hosts_file(tmp_path)))

    def maker(planned: PlannedExperiment) -> RunsOnHosts:
        made = checked(planned, given_hosts(hosts[1], divide=False), calibration=False)
        assert isinstance(made, RunsOnHosts)
        return made

    return stop_after_the_first(tmp_path / "x.toml", FILE.format(target=device), maker), hosts


@pytest.mark.in_turn
@pytest.mark.root
def test_resume_on_hosts_refuses_what_is_another_target_there(
    device: str, on_hosts: tuple[Path, tuple[str, ...]], tmp_path: Path
) -> None:
    """Nothing was recorded of targets on other hosts."""
    out, hosts = on_hosts
    before = on_disk.read(out).targets
    assert [(one.host, one.path, one.size_bytes) for one in before] == [
        (name, device, SIZE) for name in ("h1", "h2")
    ]
    assert all(str(tmp_path / "disk") in one.device for one in before)
    attach_again(device, empty(tmp_path / "other", SIZE))
    documents = {one.name: one.read_bytes() for one in out.glob("*.json")}
    done = run("experiment", "resume", out, *RESUME, *hosts, cwd=tmp_path)
    assert done.code == exitcodes.USAGE
    words = " ".join(done.err.split())
    for name in ("h1", "h2"):
        assert f"{name}:{device}: it was loop device from byte 0 of {tmp_path / 'disk'}" in words
        assert f"--other-target {name}:{device}" in words
    assert {one.name: one.read_bytes() for one in out.glob("*.json")} == documents

    agreed = [word for name in ("h1", "h2") for word in ("--other-target", f"{name}:{device}")]
    done = run("experiment", "resume", out, *RESUME, *hosts, *agreed, cwd=tmp_path)
    assert done.code == exitcodes.DONE, done.err
    assert all(str(tmp_path / "other") in one.device for one in on_disk.read(out).targets)


@pytest.mark.in_turn
@pytest.mark.root
def test_resume_refuses_other_hosts_and_goes_on_with_the_same(
    device: str, on_hosts: tuple[Path, tuple[str, ...]], tmp_path: Path
) -> None:
    """It went on with any hosts, and with none."""
    out, hosts = on_hosts
    assert str(tmp_path / "disk") in on_disk.read(out).targets[0].device
    done = run("experiment", "resume", out, *RESUME, cwd=tmp_path)
    assert done.code == exitcodes.USAGE
    refusal = "the experiment so far was measured from h1, h2, and would go on from"
    assert f"{refusal} this host" in " ".join(done.err.split())
    hosts_file(tmp_path, 3)
    done = run("experiment", "resume", out, *RESUME, *hosts, cwd=tmp_path)
    assert done.code == exitcodes.USAGE
    assert f"{refusal} h1, h2, h3" in " ".join(done.err.split())
    hosts_file(tmp_path, 2)
    attach_again(device, tmp_path / "disk")
    done = run("experiment", "resume", out, *RESUME, *hosts, cwd=tmp_path)
    assert done.code == exitcodes.DONE, done.err
    assert len(list((out / "runs").iterdir())) == 4
