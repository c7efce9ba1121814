"""Experiments that go on where a target's name means another device, file system or file by then."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone import exitcodes
from loadstone.api.experimenting import PlannedExperiment
from loadstone.bundle import experiment as on_disk
from loadstone.bundle.experiment import ExperimentTarget
from loadstone.errors import RefusedError
from loadstone.experiment import target_record
from loadstone.experiment.prepared import prepare
from loadstone.experiment.run import ExperimentMeans, open_stopped, run_experiment
from loadstone.path.mounts import Mount
from loadstone.plan.safety import marker
from loadstone.plan.safety.guard import Consent
from tests.e2e.program import needs_engine, run
from tests.experiment.conftest import SIZE
from tests.experiment.test_target_watch import FILE, attach_again
from tests.support.devices import attached, call, empty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.study.controller import Next


def changes_of(target: str | Path, change: Callable[[], object], *, killed: bool = False) -> list[str]:
    before = target_record.looked_at([str(target)])
    assert list(target_record.others(before, target_record.looked_at([str(target)]), killed=killed)) == []
    change()
    now = target_record.looked_at([str(target)])
    # As it is read from a file.
    recorded = [ExperimentTarget.model_validate_json(one.model_dump_json()) for one in before]
    return [why for _, why in target_record.others(recorded, now, killed=killed)]


@pytest.mark.in_turn
def test_a_loop_device_of_another_file_is_another_one_and_of_the_same_it_is_not(
    device: str, tmp_path: Path
) -> None:
    other = empty(tmp_path / "other", SIZE)
    assert changes_of(device, lambda: attach_again(device, tmp_path / "disk")) == []
    (why,) = changes_of(device, lambda: attach_again(device, other))
    assert f"{tmp_path / 'disk'} (" in why
    assert f" and is loop device from byte 0 of {other} (" in why
    call("truncate", "--size", str(2 * SIZE), str(other))
    assert changes_of(device, lambda: call("losetup", "--set-capacity", device)) == [
        "its size was 16,777,216 bytes and is 33,554,432 bytes"
    ]
    (why,) = changes_of(device, lambda: call("losetup", "--detach", device))
    assert "and is " in why
    call("losetup", "--offset", "1048576", device, str(other))
    (why,) = changes_of(device, lambda: attach_again(device, other))
    assert "from byte 1048576" in why


def test_a_file_that_was_replaced_behind_a_loop_device_makes_it_another_one(
    device: str, tmp_path: Path
) -> None:
    """By a copy of the same name, size and content."""

    def replace() -> None:
        call("losetup", "--detach", device)
        call("cp", str(tmp_path / "disk"), str(tmp_path / "copy"))
        (tmp_path / "copy").rename(tmp_path / "disk")
        call("losetup", device, str(tmp_path / "disk"))

    (why,) = changes_of(device, replace)
    assert why.count(f"{tmp_path / 'disk'} (number") == 2


@pytest.mark.in_turn
def test_a_file_that_was_replaced_is_another_one_also_under_the_same_number(point: Path) -> None:
    """Ext4 gives the number of a file that was removed to the next one."""
    target = point / "data"
    target.write_bytes(b"x")
    number = target.stat().st_ino

    def replace() -> None:
        target.unlink()
        target.write_bytes(b"x")

    assert changes_of(target, replace) == ["another file has its name"]
    assert target.stat().st_ino == number
    assert changes_of(target, target.unlink) == ["it is not there any more"]


@pytest.mark.in_turn
def test_a_file_that_a_killed_run_made_is_its_own_and_a_stranger_s_is_not(point: Path) -> None:
    target = point / "data"
    assert changes_of(target, target.touch, killed=True) == ["something else made it"]
    target.unlink()

    def make() -> None:
        target.touch()
        assert marker.write(target, marker.Mark("writing"))

    assert changes_of(target, make, killed=True) == []
    target.unlink()
    assert changes_of(target, make) == ["something else made it"]


@pytest.mark.in_turn
def test_a_file_system_mounted_again_is_the_same_and_another_one_or_a_copy_is_not(
    device: str, point: Path, tmp_path: Path
) -> None:
    target = str(point / "data")
    Path(target).touch()
    copy = tmp_path / "copy"

    def mount_again(*options: str) -> None:
        call("umount", str(point))
        call("mount", *options, device, str(point))

    assert changes_of(target, mount_again) == []
    assert changes_of(target, lambda: mount_again("-o", "noatime")) == [
        f"{point} was remounted: relatime became noatime"
    ]
    call("umount", str(point))
    (why,) = changes_of(target, lambda: call("mount", device, str(point)))
    assert why.endswith(f" and lies on that at {point}")
    call("umount", str(point))
    call("cp", "--sparse=always", str(tmp_path / "disk"), str(copy))
    call("mount", device, str(point))
    with attached(copy) as second:

        def mount_copy() -> None:
            call("umount", str(point))
            call("mount", second, str(point))

        (why,) = changes_of(target, mount_copy)
        assert why.startswith("its file system was ext4 UUID=")
        assert str(copy) in why
        call("umount", str(point))
        call("mount", device, str(point))


def test_an_nfs_server_of_another_address_is_another_one() -> None:
    """As two sessions recorded them: the same export, file number and options."""
    mounts = [
        Mount(0, "/", "/mnt", "nfs4", "nas:/exp", "rw", f"rw,vers=4.2,addr={address}")
        for address in ("10.0.0.5", "10.0.0.6")
    ]
    one, other = (target_record._file_system(mount)[0] for mount in mounts)
    assert (one, other) == ("nfs4 of 10.0.0.5:/exp", "nfs4 of 10.0.0.6:/exp")


@pytest.mark.in_turn
def test_what_names_nothing_for_good_is_known_until_the_host_is_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("mount", "-t", "tmpfs", "x", str(tmp_path))
    try:
        target = tmp_path / "data"
        target.touch()
        assert changes_of(target, lambda: None) == []
        boot = Path(f"{tmp_path}.boot")
        boot.write_text("another\n")
        (why,) = changes_of(target, lambda: monkeypatch.setattr(target_record, "BOOT_ID", boot))
        assert "is one until the host is started anew, and so was tmpfs" in why
    finally:
        call("umount", str(tmp_path))


@pytest.fixture
def stopped(device: str, tmp_path: Path) -> Path:
    """Return the directory of an experiment that ended after its first run."""
    needs_engine()
    (tmp_path / "x.toml").write_text(FILE.format(target=device))
    prepared = prepare(tmp_path / "x.toml")

    @contextlib.contextmanager
    def around(_: Next) -> Iterator[None]:
        if list((tmp_path / "out").glob("runs/*")):
            raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        run_experiment(
            prepared,
            out_dir=tmp_path / "out",
            request={},
            consent=Consent(),
            means=ExperimentMeans(around=around),
            calibration=False,
        )
    return tmp_path / "out"


@pytest.mark.in_turn
def test_resume_refuses_another_device_and_goes_on_with_consent(
    device: str, stopped: Path, tmp_path: Path
) -> None:
    """It went on: its runs on one device and those on another counted for the same effects."""
    (target,) = on_disk.read(stopped).targets
    assert (target.path, target.size_bytes) == (device, SIZE)
    other = empty(tmp_path / "other", SIZE)
    attach_again(device, other)
    before = {one.name: one.read_bytes() for one in stopped.glob("*.json")}
    resume = ("experiment", "resume", stopped, "--no-report", "--no-calibration")

    done = run(*resume, cwd=tmp_path)
    assert done.code == exitcodes.USAGE
    words = " ".join(done.err.split())
    assert f"not what the experiment so far was measured on: {device}: it was loop device" in words
    assert f"--other-target {device}" in words
    assert {one.name: one.read_bytes() for one in stopped.glob("*.json")} == before
    planned = run("experiment", "plan", stopped, "--json", cwd=tmp_path)
    (line,) = planned.document()["needs_consent"]
    assert (line["device"], line["consent"]) == (device, "needed")
    refused = " ".join(planned.err.split())
    assert planned.code == exitcodes.USAGE
    assert refused.startswith("loadstone: not what")
    assert words.endswith(refused)  # Before it stands what the plan has among its lines.
    agreed = run("experiment", "plan", stopped, "--other-target", device, cwd=tmp_path)
    assert (agreed.code, agreed.err) == (exitcodes.DONE, "")
    mistyped = run("experiment", "plan", stopped, "--other-target", "/dev/nothing", cwd=tmp_path)
    assert (mistyped.code, "/dev/nothing" in mistyped.err) == (exitcodes.USAGE, True)

    done = run(*resume, "--other-target", device, cwd=tmp_path)
    assert done.code == exitcodes.DONE, done.err
    (target,) = on_disk.read(stopped).targets
    assert str(other) in target.device


@pytest.mark.in_turn
def test_consent_to_another_target_without_effect_is_refused(
    device: str, stopped: Path, tmp_path: Path
) -> None:
    done = run("experiment", "resume", stopped, "--other-target", device, cwd=tmp_path)
    assert done.code == exitcodes.USAGE
    assert "so this has no effect" in done.err
    done = run("experiment", "run", "x.toml", "--other-target", device, cwd=tmp_path)
    assert done.code == exitcodes.USAGE
    assert "--other-target" in done.err


@pytest.mark.in_turn
def test_what_is_typed_on_a_terminal_agrees_to_one_target(device: str, stopped: Path, tmp_path: Path) -> None:
    attach_again(device, empty(tmp_path / "other", SIZE))
    asked: list[str] = []

    def ask(path: str, evidence: list[str]) -> str:
        asked.extend((path, *evidence))
        return "yes"

    prepared = prepare(tmp_path / "x.toml")
    with pytest.raises(RefusedError, match="not what the experiment so far was measured on"):
        run_experiment(
            prepared,
            out_dir=stopped,
            request={},
            consent=Consent(),
            means=ExperimentMeans(other_targets=Consent(ask=ask)),
            stopped=open_stopped(stopped, prepared),
        )
    assert asked[0] == device
    assert not PlannedExperiment(prepared, open_stopped(stopped, prepared)).refused
