"""Targets that something detaches, replaces or remounts while an experiment lasts, on loop devices."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone import exitcodes
from loadstone.bundle import experiment as on_disk
from loadstone.errors import RunError
from loadstone.experiment.levels import Asked
from loadstone.experiment.machine_state import Machine
from loadstone.experiment.observe import observations
from loadstone.experiment.prepared import prepare
from loadstone.experiment.read_file import parse
from loadstone.experiment.run import ExperimentMeans, ExperimentOutcome, open_stopped, run_experiment
from loadstone.experiment.target_watch import TargetWatch
from loadstone.plan.safety.guard import Consent
from tests.e2e.program import needs_engine
from tests.experiment.conftest import READS, SIZE
from tests.support.devices import call, empty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.study.controller import Next

FILE = (
    """title = "Depth"
repeats = 2
runtime = "300ms"
size = "1m"
targets = ["{target}"]

"""
    + READS
    + """
[[factors]]
name = "pace"
option = "rate_iops"
levels = [50, 100]
"""
)


ON_A_LAYOUT = (
    """title = "x"
targets = ["{{file}}"]
devices = ["{device}"]

[layouts.one]

[layouts.other]
filesystem = "none"

"""
    + READS
    + """
[[factors]]
name = "layout"
kind = "layout"
levels = ["one", "other"]
"""
)


def attach_again(device: str, backing: Path) -> None:
    call("losetup", "--detach", device)
    call("losetup", device, str(backing))


def changes_of(target: str, change: Callable[[], object]) -> list[str]:
    watch = TargetWatch((target,))
    watch.begin()
    assert list(watch.changed()) == []
    change()
    return [why for _, why in watch.changed()]


@pytest.mark.in_turn
def test_a_device_that_is_detached_or_another_one_is_noticed(device: str, tmp_path: Path) -> None:
    other = empty(tmp_path / "other", SIZE)
    assert changes_of(device, lambda: attach_again(device, other)) == [
        "another device has its name, or it was attached again"
    ]
    call("truncate", "--size", str(2 * SIZE), str(other))
    assert changes_of(device, lambda: call("losetup", "--set-capacity", device)) == [
        "its size was 16,777,216 bytes and is 33,554,432 bytes"
    ]
    assert changes_of(device, lambda: call("losetup", "--detach", device)) == ["it is detached"]
    call("losetup", device, str(other))


@pytest.mark.in_turn
def test_a_mount_that_is_gone_or_another_one_is_noticed(device: str, point: Path) -> None:
    target = str(point / "data")
    assert changes_of(target, lambda: call("mount", "-o", "remount,noatime", str(point))) == [
        f"{point} was remounted: relatime became noatime"
    ]
    assert changes_of(target, lambda: call("mount", "-t", "tmpfs", "x", str(point))) == [
        f"tmpfs of x is mounted at {point}"
    ]
    call("umount", str(point))

    def mount_again() -> None:
        call("umount", str(point))
        call("mount", "-o", "noatime", device, str(point))

    assert changes_of(target, mount_again) == [f"{point} was mounted again"]
    (gone,) = changes_of(target, lambda: call("umount", str(point)))
    assert gone.startswith(f"{point} is not mounted any more, so it would be on ")
    call("mount", device, str(point))


@pytest.mark.in_turn
def test_a_file_that_is_gone_or_another_one_is_noticed_and_what_a_run_makes_is_not(tmp_path: Path) -> None:
    target, other = tmp_path / "data", tmp_path / "other"
    assert changes_of(str(target), target.touch) == ["something else made it"]
    other.touch()
    assert changes_of(str(target), lambda: other.rename(target)) == ["another file has its name"]
    watch = TargetWatch((str(target),))
    watch.begin()
    target.unlink()
    watch.ran()
    assert list(watch.changed()) == []


def test_another_file_under_the_number_of_the_first_is_noticed(point: Path) -> None:
    """Ext4 gives the number of a file that was removed to the next one."""
    target = point / "data"
    target.touch()
    number = target.stat().st_ino

    def replace() -> None:
        target.unlink()
        target.touch()

    assert changes_of(str(target), replace) == ["another file has its name"]
    assert target.stat().st_ino == number


@pytest.mark.in_turn
def test_a_layout_that_something_took_away_is_noticed_and_what_is_left_of_it_goes(
    device: str, tmp_path: Path
) -> None:
    """The next run's file lay where the volume had been mounted."""
    whole = parse(ON_A_LAYOUT.format(device=device).encode(), "x.toml")
    machine = Machine(whole, "ls0badca1e", where=tmp_path / "state")
    wanted = Asked(layout="one")
    try:
        for _ in range(2):
            with machine.around(wanted, None, lambda _: None):
                (volume,) = machine.volumes("one")
                (Path(volume) / "data").touch()
        call("umount", volume)
        with (
            pytest.raises(RunError, match=f"{volume} is not the target .*{volume} is not mounted any more"),
            machine.around(wanted, None, lambda _: None),
        ):
            pass
    finally:
        machine.end()
    assert machine.lost is not None
    assert machine.still_changed == []
    assert not Path(volume).exists()


@dataclass
class Meddling:
    """Whoever does something to the target: while the first run lasts, or after it."""

    out: Path
    work: Callable[[], None]
    during: bool

    def begin(self, *_: object) -> None:
        """Want to see nothing."""

    def end(self, *_: object) -> None:
        """Do it once a run is over."""
        if not self.during and len(list(self.out.glob("runs/*"))) == 1:
            self.work()

    @contextlib.contextmanager
    def around(self, _: Next) -> Iterator[None]:
        """Do it before what was set for a run is put back."""
        yield
        if self.during and len(list(self.out.glob("runs/*"))) == 1:
            self.work()

    def run(self, path: Path) -> ExperimentOutcome:
        prepared = prepare(path)
        return run_experiment(
            prepared,
            out_dir=self.out,
            request={},
            consent=Consent(),
            means=ExperimentMeans(progress=self, around=self.around),
            calibration=False,
            stopped=open_stopped(self.out, prepared) if self.out.exists() else None,
        )


@pytest.mark.in_turn
@pytest.mark.parametrize("during", [False, True])
def test_no_run_is_begun_on_another_target_and_one_that_lost_its_own_is_done_again(
    device: str, tmp_path: Path, *, during: bool
) -> None:
    """Runs went on on whatever had the device's name by then, and counted."""
    needs_engine()
    path, out = tmp_path / "x.toml", tmp_path / "out"
    path.write_text(FILE.format(target=device))
    meddling = Meddling(out, lambda: attach_again(device, tmp_path / "disk"), during)
    outcome = meddling.run(path)
    why = "another device has its name, or it was attached again"
    assert outcome.exit_code == exitcodes.FAILED
    assert f"{device} is not the target that the experiment began with: {why}" in str(outcome.study.error)
    assert f"{device} is not the target" in (outcome.document.ended_because or "")
    assert [one.status for one in outcome.study.study.points] == ["complete", "failed"]
    (row,) = observations(out).rows
    assert ((row.invalid or "") == f"target of {device}: {why}") is during

    outcome = meddling.run(path)
    assert (outcome.exit_code, outcome.study.study.status) == (exitcodes.DONE, "complete")
    # So short a run may be not valid for itself.
    assert [why in (one.invalid or "") for one in observations(out).rows] == [False] * 4
    done_again = [one.name for one in on_disk.read(out).attempts if one.why]
    assert done_again == ([f"{row.run} (attempt 1)"] if during else [])


@pytest.mark.in_turn
def test_the_last_run_that_loses_its_target_ends_with_1(device: str, tmp_path: Path) -> None:
    needs_engine()
    path, out = tmp_path / "x.toml", tmp_path / "out"
    without_factors = FILE.partition("[[factors]]")[0].replace("repeats = 2", "repeats = 1")
    path.write_text(without_factors.format(target=device))
    outcome = Meddling(out, lambda: attach_again(device, tmp_path / "disk"), during=True).run(path)
    assert (outcome.exit_code, outcome.study.study.status) == (exitcodes.FAILED, "complete")
    assert [(one.invalid or "").partition(": ")[0] for one in observations(out).rows] == [
        f"target of {device}"
    ]
