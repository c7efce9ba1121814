"""Levels that cannot be set are said before the first run, whatever it takes to find that out."""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.bundle.experiment import ExperimentRun
from loadstone.control.fill import FILE as FILL_FILE
from loadstone.control.fill import FillLevel, missing_bytes
from loadstone.errors import InputError, RefusedError, RunError, Where
from loadstone.experiment.announce import announce
from loadstone.experiment.announcement_lines import lines
from loadstone.experiment.levels import Asked, WantedSetting
from loadstone.experiment.machine_state import Machine
from loadstone.experiment.prepared import ReadOptionsOfExperiment, prepare
from loadstone.experiment.read_file import parse
from loadstone.experiment.rehearsal import Rehearsal
from loadstone.experiment.run import ExperimentMeans, run_experiment
from loadstone.path.mounts import mounts
from loadstone.plan.safety.guard import Consent
from tests.control import machine as files
from tests.support.devices import attached, empty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.experiment.prepared import PreparedExperiment

BEGINNING = 'title = "x"\nrepeats = 2\nruntime = "1s"\nsize = "1m"\n'
PATTERN = '\n[[patterns]]\nname = "p"\noptions = { ioengine = "null", rw = "randread", bs = "4k" }\n'
ON_FILES = PATTERN.replace("null", "psync")
PROGRAMS = ("losetup", "mkfs.ext4", "mount", "wipefs")


def factor(name: str, text: str) -> str:
    return f'\n[[factors]]\nname = "{name}"\n{text}\n'


def prepared_of(folder: Path, text: str) -> PreparedExperiment:
    path = folder / "x.toml"
    path.write_text(text)
    return prepare(path, ReadOptionsOfExperiment(allow_exec=True))


def refused(
    machine: Machine, runs: Sequence[ExperimentRun], look: Callable[[str], None] = lambda _: None
) -> dict[tuple[str, str], str]:
    """Hold a rehearsal; return why each level was refused."""
    first = [run for run in runs if run.block == 0]
    rehearsal = Rehearsal(machine, first, lambda one: Where("x.toml", option=one.control), look)
    return {(one.factor, one.level): one.why for one in rehearsal.hold()}


def machine_of(prepared: PreparedExperiment, folder: Path) -> Machine:
    return Machine(prepared.varied, prepared.label, where=folder / "state")


def command(name: str, do: str, undo: str) -> str:
    return f'{{ name = "{name}", do = "{do}", undo = "{undo}" }}'


@pytest.mark.in_turn
def test_a_command_that_fails_is_said_before_and_what_it_did_is_undone(tmp_path: Path) -> None:
    good = command("good", f"echo x >> {tmp_path}/good", f"echo y >> {tmp_path}/good")
    bad = command("bad", f"touch {tmp_path}/bad; echo no such array >&2; exit 3", f"rm {tmp_path}/bad")
    levels = f'kind = "command"\nlevels = ["as is", {good}, {bad}]'
    prepared = prepared_of(tmp_path, BEGINNING + PATTERN + factor("mode", levels))
    why = refused(machine_of(prepared, tmp_path), prepared.document.runs)
    assert list(why) == [("mode", "bad")]
    assert "no such array" in why["mode", "bad"]
    assert (tmp_path / "good").read_text() == "x\ny\n"
    assert not (tmp_path / "bad").exists()
    assert not list((tmp_path / "state").glob("*"))


@pytest.mark.in_turn
def test_a_command_that_cannot_be_undone_ends_it_before_the_first_run(tmp_path: Path) -> None:
    levels = f'kind = "command"\nlevels = ["as is", {command("on", "true", "exit 4")}]'
    prepared = prepared_of(tmp_path, BEGINNING + PATTERN + factor("mode", levels))
    with pytest.raises(RunError, match="command of mode=on: NOT undone"):
        refused(machine_of(prepared, tmp_path), prepared.document.runs)
    assert list((tmp_path / "state").glob("*.jsonl"))


def test_a_fill_that_is_not_taken_is_said_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = FillLevel.write

    def full(self: FillLevel, subject: str, value: str) -> None:
        if "%" not in value:
            return write(self, subject, value)
        (Path(subject) / FILL_FILE).touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FillLevel, "write", full)
    levels = f'kind = "fill_level"\nof = "{tmp_path}"\nlevels = ["as is", "99%"]'
    prepared = prepared_of(tmp_path, BEGINNING + PATTERN + factor("full", levels))
    why = refused(machine_of(prepared, tmp_path), prepared.document.runs)
    assert list(why) == [("full", "99%")]
    assert "No space left on device" in why["full", "99%"]
    assert not (tmp_path / FILL_FILE).exists()


def test_a_fill_beyond_the_budget_is_not_tried(tmp_path: Path) -> None:
    levels = f'kind = "fill_level"\nof = "{tmp_path}"\nlevels = ["as is", "99%"]'
    prepared = prepared_of(tmp_path, BEGINNING + PATTERN + factor("full", levels))
    machine = machine_of(prepared, tmp_path)
    machine.ledger.limits = machine.ledger.limits.model_copy(update={"written_bytes": 1})
    assert refused(machine, prepared.document.runs) == {}
    assert machine.ledger.beside_bytes == 0


SCHEDULERS = 'control = "io_scheduler"\nsubject = "sda"\nlevels = ["none", "mq-deadline"]'
LENGTHS = 'control = "nr_requests"\nsubject = "sda"\nlevels = ["as is", 300]'


@pytest.mark.parametrize("order", ["scheduler first", "length first"])
def test_a_level_is_tried_with_what_resets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """The length of a queue was not tried at all where the scheduler is varied as well."""
    controls = files.make(tmp_path / "host")
    before = files.snapshot(tmp_path / "host")
    kind, queue = controls.named("nr_requests"), tmp_path / "host/sys/block/sda/queue"
    write = kind.write

    def as_the_kernel(subject: str, value: str) -> None:
        if int(value) > 256 and "[none]" in (queue / "scheduler").read_text():
            raise OSError(22, "Invalid argument")
        write(subject, value)

    monkeypatch.setattr(kind, "write", as_the_kernel)
    parts = [factor("scheduler", SCHEDULERS), factor("length", LENGTHS)]
    text = BEGINNING + PATTERN + "".join(parts if order == "scheduler first" else reversed(parts))
    whole = parse(text.encode(), "x.toml")
    runs = [
        ExperimentRun(name=f"{one}{other}", block=0, pattern="p", levels={"scheduler": one, "length": other})
        for one, other in product(("none", "mq-deadline"), ("as is", "300"))
    ]
    machine = Machine(whole, "ls00000000", controls=controls, where=tmp_path / "state")
    why = refused(machine, runs)
    assert list(why) == [("length", "300")]
    assert why["length", "300"].startswith(
        "with scheduler = none: nr_requests of sda: '300' was not accepted"
    )
    assert {name: text.strip() for name, text in files.snapshot(tmp_path / "host").items()} == {
        name: text.strip() for name, text in before.items()
    }


def test_what_is_of_a_volume_needs_a_layout(tmp_path: Path) -> None:
    levels = 'control = "mount_options"\nsubject = "{volume}"\nlevels = ["as is", "noatime"]'
    with pytest.raises(InputError, match="stand for volumes of a layout") as told:
        prepared_of(tmp_path, BEGINNING + PATTERN + factor("mount", levels))
    assert told.value.where is not None
    assert told.value.where.line == (BEGINNING + PATTERN).count("\n") + 5


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[list[str]]:
    """Two loop devices that are gone afterwards."""
    if os.geteuid() != 0 or not all(map(shutil.which, PROGRAMS)):
        pytest.skip(f"needs root and {', '.join(PROGRAMS)}")
    images = [empty(tmp_path / f"image{number}", 64 << 20) for number in range(2)]
    with attached(images[0]) as one, attached(images[1]) as other:
        yield [one, other]


def on_layouts(devices: list[str], layouts: dict[str, str], factors: str, settings: str = "") -> str:
    named = "".join(f'\n[layouts."{name}"]\n{text}\n' for name, text in layouts.items())
    listed = ", ".join(f'"{one}"' for one in devices)
    levels = ", ".join(f'"{one}"' for one in layouts)
    head = f'{BEGINNING}devices = [{listed}]\ntargets = ["{{file}}"]\n'
    return (
        head + named + ON_FILES + settings
        + factor("layout", f'kind = "layout"\nlevels = [{levels}]') + factors
    )  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.root
def test_a_plan_tells_what_the_rehearsal_takes_and_how_often_layouts_are_built(
    devices: list[str], tmp_path: Path
) -> None:
    """Its time was that of the runs alone, and nothing was said of what fills a file system."""
    layouts = {"each": 'filesystem = "ext4"', "second": 'filesystem = "ext4"\nmkfs_options = ["-m", "0"]'}
    full = factor("full", f'kind = "fill_level"\nof = "{tmp_path}"\nlevels = ["as is", "99%"]')
    mode = factor("mode", f'kind = "command"\nlevels = ["as is", {command("on", "true", "true")}]')
    prepared = prepared_of(tmp_path, on_layouts(devices, layouts, full + mode))
    announcement = announce(prepared)
    size, missing = announcement.rehearsal, missing_bytes(str(tmp_path), "99%")
    assert (size.layouts, size.commands) == (2, 1)
    # In each block the runs of a layout follow each other.
    assert 3 <= announcement.built <= 4
    runs_s = 16 * 3.0
    assert announcement.length_s == pytest.approx(runs_s + (2 + announcement.built) * 2.0 + size.levels * 0.1)
    assert announcement.filled_bytes == pytest.approx(missing * (1 + 8), rel=0.1)
    told = "\n".join(lines(announcement))
    assert f"to build 2 layouts once and set {size.levels} levels once before the first run" in told
    assert "without the time that commands take" in told
    assert "allocated to fill file systems, all times together: " in told


@pytest.mark.in_turn
@pytest.mark.root
def test_a_layout_that_cannot_be_built_is_said_before(devices: list[str], tmp_path: Path) -> None:
    layouts = {"each": 'filesystem = "ext4"', "odd": 'filesystem = "ext4"\nmkfs_options = ["-O", "odd"]'}
    prepared = prepared_of(tmp_path, on_layouts(devices, layouts, ""))
    machine, layouts_seen = machine_of(prepared, tmp_path), list[str]()
    why = refused(machine, prepared.document.runs, layouts_seen.append)
    assert list(why) == [("layout", "odd")]
    assert "Invalid filesystem option set: odd" in why["layout", "odd"]
    assert layouts_seen == ["each"]
    assert machine.for_all == []
    done = subprocess.run(["blkid", "-p", *devices], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.in_turn
@pytest.mark.root
def test_what_is_of_a_volume_is_tried_on_each_layout(devices: list[str], tmp_path: Path) -> None:
    layouts = {"each": 'filesystem = "ext4"', "second": 'filesystem = "ext4"\nmkfs_options = ["-m", "0"]'}
    levels = 'control = "mount_options"\nsubject = "{volume}"\nlevels = ["as is", "noatime", "commit=odd"]'
    prepared = prepared_of(tmp_path, on_layouts(devices, layouts, factor("mount", levels)))
    why = refused(machine_of(prepared, tmp_path), prepared.document.runs)
    assert list(why) == [("mount", "commit=odd")]
    assert why["mount", "commit=odd"].startswith(("with layout each: ", "with layout second: "))


@pytest.mark.in_turn
@pytest.mark.root
def test_a_setting_of_a_volume_is_of_each(devices: list[str], tmp_path: Path) -> None:
    """Only the first volume of several had it; and one for all runs was set on no volume at all."""
    setting = '\n[[settings]]\ncontrol = "mount_options"\nsubject = "{volume}"\nvalue = "commit=17"\n'
    levels = 'control = "mount_options"\nsubject = "{volume}"\nlevels = ["as is", "noatime"]'
    layouts = {"each": 'filesystem = "ext4"', "second": 'filesystem = "ext4"\nmkfs_options = ["-m", "0"]'}
    text = on_layouts(devices, layouts, factor("mount", levels))
    machine = machine_of(prepared_of(tmp_path, text), tmp_path)
    wanted = Asked(layout="each", settings=(WantedSetting("mount_options", "{volume}", "noatime"),))
    with machine.around(wanted, None, lambda _: None):
        options = [one.options for one in mounts() if one.point in machine.volumes("each")]
        assert ["noatime" in one.split(",") for one in options] == [True, True]
    machine.end()
    text = on_layouts(devices, layouts, "", setting)
    machine = machine_of(prepared_of(tmp_path, text), tmp_path)
    machine.begin()
    with machine.around(Asked(layout="each"), None, lambda _: None):
        options = [one.super_options for one in mounts() if one.point in machine.volumes("each")]
        assert ["commit=17" in one.split(",") for one in options] == [True, True]
    machine.end()
    assert not machine.still_changed
    wrong = prepared_of(tmp_path, text.replace("commit=17", "commit=odd"))
    with pytest.raises(RefusedError, match=r"cannot be set here: .*commit=odd") as told:
        refused(machine_of(wrong, tmp_path), wrong.document.runs)
    assert told.value.where == Where("x.toml", option="mount_options")
    assert not [one for one in mounts() if one.point in machine_of(wrong, tmp_path).volumes("each")]


@pytest.mark.root
@pytest.mark.in_turn
def test_a_device_that_is_none_is_told_with_its_line(devices: list[str], tmp_path: Path) -> None:
    """`/dev/loop976 is not a block device` was all, without the file."""
    layouts = {"each": 'filesystem = "ext4"', "bare": 'filesystem = "none"'}
    text = on_layouts([devices[0], str(tmp_path / "none")], layouts, "")
    prepared = prepared_of(tmp_path, text)
    with pytest.raises(RefusedError, match="none is not a block device") as told:
        run_experiment(prepared, out_dir=tmp_path / "out", request={}, consent=Consent(), calibration=False)
    line = BEGINNING.count("\n") + 1
    assert told.value.where == Where(str(tmp_path / "x.toml"), line, "devices")
    assert not (tmp_path / "out").exists()


@pytest.mark.in_turn
@pytest.mark.root
def test_nothing_is_lost_for_a_mistyped_path(devices: list[str], tmp_path: Path) -> None:
    """The layouts were built before somebody was told that a consent has no effect."""
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "precious", devices[0]], check=True)
    layouts = {"each": 'filesystem = "ext4"', "bare": 'filesystem = "none"'}
    prepared = prepared_of(tmp_path, on_layouts(devices, layouts, ""))
    with pytest.raises(InputError, match="'/dev/sdzz' is not a target of this run"):
        run_experiment(
            prepared,
            out_dir=tmp_path / "out",
            request={},
            consent=Consent(paths=frozenset({*devices, "/dev/sdzz"})),
            means=ExperimentMeans(machine=lambda _, __: machine_of(prepared, tmp_path)),
            calibration=False,
        )
    done = subprocess.run(["blkid", "-p", devices[0]], capture_output=True, text=True, check=False)
    assert "precious" in done.stdout
