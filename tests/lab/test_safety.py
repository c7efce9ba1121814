"""docs/safety.md is what `make safety` writes, and a few of its trials again."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab.safety import __main__ as program
from lab.safety import page, trial, trials

from lab import parts
from tests.e2e.program import needs_engine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "safety.md"
ROWS = [
    tuple(cell.strip() for cell in line.strip("|\n ").split(" | "))
    for line in PAGE.read_text().partition("## Every case tried")[2].splitlines()
    if line.startswith("| ") and not line.startswith("| target")
]


def test_the_words_are_those_of_the_program() -> None:
    assert PAGE.read_text().startswith(page.TEXT)
    assert program.PAGE == PAGE


def test_the_table_has_a_line_for_every_trial_and_no_other() -> None:
    assert len(ROWS) >= 150
    assert [row[:3] for row in ROWS] == [tuple(key) for key in trials.listed()]


def test_nothing_in_the_table_was_lost_without_consent() -> None:
    for target, holds, verb, happened, intact, *_ in ROWS:
        assert "wrong" not in happened, (target, holds, verb)
        if intact == "no":
            assert verb.endswith((", with consent", "LOADSTONE_FIO_OVERWRITE=1")), (target, holds, verb)


@pytest.mark.root
@pytest.mark.parametrize(
    ("target", "holds"),
    [
        ("file", "a random key"),
        ("block device", "XFS, only its backup superblocks"),
        ("file", "the same, 4 bytes changed, times set back"),
        ("tree", "one with a hard link to a file elsewhere"),
        ("file of the kernel's", "/proc/self/oom_score_adj"),
    ],
)
def test_some_of_them_again(target: str, holds: str) -> None:
    needs_engine()
    if (why := parts.missing()) is not None:
        pytest.skip(why)
    case = next(one for one in trials.cases() if (one.target, one.holds) == (target, holds))
    rows = list(trials.tried(case))
    assert [row for row in rows if not row.right] == []
    assert all(row.happened in (trial.ASKED, trial.REFUSED, trial.READ) for row in rows)
