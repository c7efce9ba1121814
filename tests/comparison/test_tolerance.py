"""What a gate lets pass, and which regression it must be able to see then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.api.comparing import least_detected
from loadstone.cli.verbs.compare import compare as verb
from loadstone.errors import InputError

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
