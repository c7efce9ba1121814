"""What a gate lets pass, and which regression it must be able to see then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.api.comparing import Comparison, least_detected
from loadstone.cli.verbs.compare import compare as verb
from loadstone.comparison.compare import compare
from loadstone.errors import InputError
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("tolerance", "detect"), [(0.0, 0.05), (0.1, 0.2), (0.6, 0.8), (0.9, 0.95)])
def test_a_gate_asks_for_no_regression_that_cannot_be(tolerance: float, detect: float) -> None:
    """With `--tolerance 60%` a gate said that a regression of 120 % in IOPS would be found."""
    assert least_detected(tolerance) == pytest.approx(detect)


def test_a_tolerance_of_all_is_refused(tmp_path: Path) -> None:
    """With 100 % nothing a rate can do was a regression, and the gate passed."""
    with pytest.raises(InputError, match="less than 100%"):
        verb(tmp_path, tmp_path, gate=True, tolerance="100%")
    sides = [
        runs.make(tmp_path / name, MadeJob("a", {"read": 1000.0}), seconds=10.0, seed=seed).path
        for seed, name in enumerate("ab")
    ]
    with pytest.raises(InputError, match="tolerance: found 100%, expected less than 100%"):
        Comparison(compare(sides)).gate(tolerance=1.0)
