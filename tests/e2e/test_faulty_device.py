"""A real block device that damages data: everything is found, rightly named, and nothing invented."""

from __future__ import annotations

import pytest
from lab.faults import trial
from lab.faults.__main__ import right

from lab import parts

SIZE_BYTES = 6 << 20
SHARE = 0.05


@pytest.fixture(autouse=True)
def staged() -> None:
    why = parts.missing() or (None if trial.has_plugin() else "nbdkit has no Python plugin")
    if why is not None:
        pytest.skip(why)


@pytest.mark.in_turn
@pytest.mark.root
@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", trial.KINDS)
def test_all_damage_is_found_and_named(kind: str) -> None:
    one = trial.loadstone(kind, SIZE_BYTES, SHARE)
    assert len(one.injected) > 40
    assert one.exit_code == 1
    assert right(one), (one.found, len(one.damaged))
