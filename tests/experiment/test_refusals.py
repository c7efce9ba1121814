"""What an experiment is refused for says what would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError
from loadstone.experiment.prepared import prepare, why_refused

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
