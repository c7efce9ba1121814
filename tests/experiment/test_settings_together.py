"""Settings of one run that touch each other: what resets another, and one thing under two names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.bundle.experiment import ExperimentRun, MachineSetting
from loadstone.control.commands import CommandPair
from loadstone.control.control_kind import Setting
from loadstone.errors import RunError
from loadstone.experiment.attempts import not_held
from loadstone.experiment.levels import asked
from loadstone.experiment.machine_state import Machine
from loadstone.experiment.read_file import parse
from tests.control import machine as files

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.experiment.file import ExperimentFile

BEGINNING = 'title = "x"\ntargets = ["x"]\n[[patterns]]\nname = "p"\noptions = { rw = "read" }\n'
LENGTH = '[[factors]]\nname = "length"\ncontrol = "nr_requests"\nsubject = "sda"\nlevels = ["as is", 32]\n'
SCHEDULER = (
    '[[factors]]\nname = "scheduler"\ncontrol = "io_scheduler"\nsubject = "sda"\nlevels = ["none", "bfq"]\n'
)
FOR_ALL = '[[settings]]\ncontrol = "nr_requests"\nsubject = "sda"\nvalue = 32\n'


def queue(folder: Path) -> dict[str, str]:
    """Return what matters of the queue."""
    place = folder / "sys/block/sda/queue"
    return {name: (place / name).read_text().strip() for name in ("scheduler", "nr_requests")}


def texts(folder: Path) -> dict[str, str]:
    """Return every file of the machine, its last line end aside."""
    return {name: text.strip() for name, text in files.snapshot(folder).items()}


def seen(folder: Path, whole: ExperimentFile, levels: dict[str, str]) -> dict[str, str]:
    """Set a machine of files for one run, look, and put it back."""
    controls = files.make(folder)
    before = texts(folder)
    machine = Machine(whole, "ls00000000", controls=controls, where=folder / "state")
    try:
        machine.begin()
        with machine.around(asked(whole, levels, "p"), None, lambda _: None):
            found = queue(folder)
    finally:
        machine.end()
    assert texts(folder) == before
    assert not machine.still_changed
    return found


@pytest.mark.parametrize("factors", [LENGTH + SCHEDULER, SCHEDULER + LENGTH])
def test_the_scheduler_does_not_take_the_length_of_the_queue_away(tmp_path: Path, factors: str) -> None:
    whole = parse((BEGINNING + factors).encode(), "x.toml")
    found = seen(tmp_path, whole, {"length": "32", "scheduler": "bfq"})
    assert found == {"scheduler": "none mq-deadline [bfq]", "nr_requests": "32"}


def test_what_is_for_all_runs_outlives_a_scheduler_that_resets_it(tmp_path: Path) -> None:
    whole = parse((BEGINNING + SCHEDULER + FOR_ALL).encode(), "x.toml")
    found = seen(tmp_path, whole, {"scheduler": "bfq"})
    assert found == {"scheduler": "none mq-deadline [bfq]", "nr_requests": "32"}


def test_a_setting_that_another_undoes_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = parse((BEGINNING + LENGTH + SCHEDULER).encode(), "x.toml")
    # As if nobody knew that the kernel does this.
    monkeypatch.setattr(files.KernelScheduler, "companions", lambda _self, _subject: [])
    with pytest.raises(RunError, match="nr_requests of sda was set to '32', but another setting"):
        seen(tmp_path, whole, {"length": "32", "scheduler": "bfq"})


def test_one_thing_has_one_setting_whatever_it_is_called(tmp_path: Path) -> None:
    controls = files.make(tmp_path)
    sda = Setting("nr_requests", "sda")
    assert controls.meant("nr_requests", "sda") == controls.meant("nr_requests", "/dev/sda") == [sda]
    assert sda in controls.reset_by("io_scheduler", "/dev/sda")
    assert controls.meant("nr_requests", "sdz") == []
    assert CommandPair.name in controls
    assert "governer" not in controls


def test_a_setting_of_the_host_is_named_without_an_of() -> None:
    """*Dirty_limit of : something else set it*, it said, and *could not be put back (dirty_limit of )*."""
    changed = MachineSetting(
        control="dirty_limit", subject="", before="20%", asked="33m", outcome="not_held", why="set to 77"
    )
    run = ExperimentRun(name="r", block=0, pattern="p", levels={}, settings=(changed,))
    assert not_held(run) == "dirty_limit: set to 77"
