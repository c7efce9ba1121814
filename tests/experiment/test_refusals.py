"""What an experiment is refused for says what would do, and what changes no target is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.control.all_controls import Controls
from loadstone.control.control_kind import Setting
from loadstone.errors import InputError, LoadstoneError, each
from loadstone.experiment import elsewhere
from loadstone.experiment.announce import announce, check_levels, prepared_or_all_mistakes
from loadstone.experiment.announcement_lines import lines
from loadstone.experiment.prepared import ReadOptionsOfExperiment, prepare, why_refused

if TYPE_CHECKING:
    from pathlib import Path

FRACTION = """title = "Fraction"
design = "fraction"
repeats = 4
runtime = "2s"
ramp = "300ms"

[budget]
time = "20s"

[[patterns]]
name = "read"
options = {{ ioengine = "null", rw = "randread", bs = "4k", size = "1m" }}

[[factors]]
name = "{name}"
{what}
levels = [{levels}]

[[factors]]
name = "jobs"
option = "numjobs"
levels = [1, 2]
"""
DEPTHS = FRACTION.format(name="depth", what='option = "iodepth"', levels="1, 8")


def written(folder: Path, text: str) -> Path:
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


def test_a_budget_that_is_too_small_for_a_fraction_is_refused_with_one_that_is_not(tmp_path: Path) -> None:
    """It said how many combinations are needed, and not in what time."""
    with pytest.raises(InputError) as refused:
        prepare(written(tmp_path, DEPTHS))
    assert "has room for 1 combination with 4 repeats: the main effects need 3, about 52" in str(
        refused.value
    )
    prepare(written(tmp_path, DEPTHS.replace('"20s"', '"52s"')))


def test_levels_are_only_offered_to_be_left_out_where_others_are_left_to_vary(tmp_path: Path) -> None:
    """Without them one combination would have been measured, and nothing told."""
    whole = FRACTION.replace('design = "fraction"', "").format(
        name="none", what='control = "sysctl"\nsubject = "vm.no_such_thing"', levels="1, 2"
    )
    alone = whole[: whole.index('\n[[factors]]\nname = "jobs"')]
    hints = []
    for text in (whole, alone):
        refused = why_refused(prepare(written(tmp_path, text)))
        assert refused is not None
        hints.append(refused.hint)
    assert hints[0] == "--leave-out-unset measures the others"
    assert "nothing would be varied" in str(hints[1])


@pytest.mark.parametrize(
    ("option", "levels", "rules"),
    [
        ("direct", "1, 0", ("page_cache_read", "writeback_absorbed")),
        ("invalidate", "1, 0", ("page_cache_read", "writeback_absorbed")),
        ("fsync", "0, 1", ("writeback_absorbed",)),
        ("iodepth", "1, 8", ()),
    ],
)
def test_buffered_runs_of_a_factor_that_varies_direct_are_what_is_studied(
    tmp_path: Path, option: str, levels: str, rules: tuple[str, ...]
) -> None:
    """They were left out as served by the page cache, and direct had "no significant effect"."""
    whole = FRACTION.format(name="it", what=f'option = "{option}"', levels=levels)
    text = whole.replace('design = "fraction"', "").replace("randread", "randrw").replace("null", "psync")
    text = text.replace("[budget]", f'targets = ["{tmp_path / "data"}"]\n\n[budget]')
    assert prepare(written(tmp_path, text)).document.studied == rules


ELSEWHERE = """title = "Elsewhere"
repeats = 2
targets = ["{target}"]

[[patterns]]
name = "read"
options = {{ ioengine = "psync", rw = "randread", bs = "4k", size = "1m", runtime = 1, time_based = 1 }}

[[factors]]
name = "read-ahead"
control = "read_ahead_kb"
subject = "/dev/{disk}"
levels = ["as is", 64]
"""


@pytest.mark.parametrize(("disk", "warns"), [("sdc", True), ("sdb", False)])
@pytest.mark.in_turn
def test_a_setting_of_a_disk_that_no_target_is_on_is_told_before_and_by_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: str, warns: bool
) -> None:
    """The answer was that the scheduler has no significant effect: it was that of another device."""
    monkeypatch.setattr(elsewhere, "_disks", lambda _: {"sdb", "sdb1"})
    monkeypatch.setattr(Controls, "meant", lambda _, control, subject: [Setting(control, subject[5:])])
    prepared = prepare(written(tmp_path, ELSEWHERE.format(target=tmp_path / "data", disk=disk)))
    words = (
        f"read_ahead_kb of /dev/{disk}: no target is on it, as far as this host shows; they are on sdb, sdb1"
    )
    assert (f"WITHOUT EFFECT ON A TARGET: {words}" in lines(announce(prepared))) is warns
    shown: list[str] = []
    check_levels(prepared, shown.append)
    assert shown == ([words] if warns else [])


def test_options_of_a_mount_that_no_target_is_on_are_told(tmp_path: Path) -> None:
    # Before the place of the target is in it, which may have such a number.
    text = ELSEWHERE.replace('"read_ahead_kb"', '"mount_options"').replace("64", '"noatime"')
    text = text.format(target=tmp_path / "data", disk="x").replace("/dev/x", "/proc")
    (told_line,) = elsewhere.elsewhere(prepare(written(tmp_path, text)).whole, [str(tmp_path / "data")])
    assert told_line.startswith("mount_options of /proc: no target is in that file system; they are in /")


@pytest.mark.in_turn
def test_levels_behind_a_misspelt_control_are_told_in_the_same_round(tmp_path: Path) -> None:
    """They came in a second round, after the name of the control had been put right."""
    text = ELSEWHERE.format(target=tmp_path / "data", disk="x")
    text = text.replace('"read_ahead_kb"', '"sysctrl"').replace("/dev/x", "vm.swappiness")
    with pytest.raises(LoadstoneError) as mistakes:
        prepared_or_all_mistakes(written(tmp_path, text.replace("64]", '"ten"]')), ReadOptionsOfExperiment())
    messages = [one.message for one in each(mistakes.value)]
    assert messages[0] == "there is no control 'sysctrl'"
    assert "read-ahead = ten: sysctl of vm.swappiness takes a whole number, found 'ten'" in messages[1]
    assert len(messages) == 2


def test_levels_behind_a_misspelt_subject_are_told_in_the_same_round(tmp_path: Path) -> None:
    """They are held against the subject that is meant: correcting its name was a round of its own."""
    whole = FRACTION.replace('design = "fraction"', "").format(
        name="swap", what='control = "sysctl"\nsubject = "vm.swapiness"', levels='60, "plenty"'
    )
    text = str(why_refused(prepare(written(tmp_path, whole))))
    assert "swap = 60: sysctl: this kernel has no vm.swapiness" in text
    assert "sysctl of vm.swappiness takes a whole number, found 'plenty'" in text
    assert "found '60'" not in text
