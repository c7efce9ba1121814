"""How often a comparison is right, on pairs with a known difference that are drawn from a seed."""

from __future__ import annotations

import numpy as np
import pytest
from lab.comparisons import PairOutcome, calibration, pair, table


def check(found: list[PairOutcome], *, false: float, off: float) -> None:
    """Hold what was said of pairs against what they are."""
    assert not any(one.green_invalid for one in found)
    assert all(one.gate == "not_valid" for one in found if one.invalid)
    alike = [one for one in found if one.difference == 0]
    for way in ("better", "worse"):
        assert sum(getattr(one, way) for one in alike) <= false * len(alike), way
    slower = [one for one in found if one.difference >= 0.05]
    assert not any(one.better for one in slower)
    assert sum(one.gate == "passed" for one in slower) <= 0.05 * len(slower)
    tests = [test for of_runs in calibration(found).values() for test in of_runs]
    stated, seen = (float(np.mean([test[at] for test in tests])) for at in (0, 1))
    assert abs(stated - seen) < off


def test_eighty_pairs_are_judged_as_they_are() -> None:
    # Of so few a false one in either direction may be there; two of some 16 may not.
    check([pair(7_000_000 + at) for at in range(80)], false=0.1, off=0.15)


def test_a_phase_that_is_not_valid_takes_no_part_and_no_pass() -> None:
    found = [pair(at, invalid=True) for at in range(12)]
    assert {one.gate for one in found} == {"not_valid"}
    assert not any(one.green_invalid for one in found)


def test_the_page_has_a_line_for_each_difference() -> None:
    lines = table([pair(at) for at in range(12)]).splitlines()
    assert sum(line.startswith("| ") and " % |" in line for line in lines) >= 3


@pytest.mark.nightly
def test_a_thousand_pairs_are_judged_as_they_are() -> None:
    # 2.5 % in either direction is what is promised; of 200 pairs chance adds up to 2.2 %.
    check([pair(7_000_000 + at) for at in range(1000)], false=0.047, off=0.05)
