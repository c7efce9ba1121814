"""A control group's limits are told as they stand in an experiment's file."""

from __future__ import annotations

import pytest

from loadstone.control.own_group import in_words


@pytest.mark.parametrize(
    ("value", "said"),
    [("as is", "as is"), ('{"memory.max": "256M", "pids.max": "9"}', "memory.max = 256M, pids.max = 9")],
)
def test_limits_are_no_json(value: str, said: str) -> None:
    assert in_words(value) == said
