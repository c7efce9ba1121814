"""Which run of how many a study says it is at."""

from __future__ import annotations

import pytest

from loadstone.cli.running.several_runs import _of


@pytest.mark.parametrize(
    ("number", "expected", "certain", "most", "said"),
    [
        (3, 12, 12, 12, "run 3 of 12:"),
        (3, 7, 1, 19, "run 3 of 7, at most 19:"),
        (8, 7, 1, 19, "run 8 of at most 19:"),
        (1, None, 4, 10, "run 1 of 4 to 10:"),
        (5, None, 1, 49, "run 5 of at most 49:"),
        (5, None, 4, None, "run 5 of at least 5:"),
        (2, None, 4, None, "run 2 of at least 4:"),
    ],
)
def test_progress_counts_the_truth(
    number: int, expected: int | None, certain: int, most: int | None, said: str
) -> None:
    assert _of(number, expected, certain, most) == said
