"""fio's published examples issue the same I/O under Loadstone as under fio.

Which, and how they are cut, is in `examples`. They are read where the host has them; nothing
of them is kept here.
"""

from __future__ import annotations

import math
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.equivalence import examples
from tests.equivalence.test_same_as_fio import IoLog, assert_shares_agree, in_order, run_fio, run_ours

DOCUMENT = Path(__file__).parents[2] / "docs" / "fio-examples.md"
NO_FIO = shutil.which("fio") is None
NO_EXAMPLES = not examples.PLACE.is_dir()


def assert_same(cut: examples.Cut, theirs: IoLog, ours: IoLog) -> None:
    """Compare the logs of one job."""
    largest = max(theirs.size)
    if cut.drawn:
        assert abs(ours.bytes - theirs.bytes) <= 4 * largest
    elif not cut.timed:
        assert ours.bytes == theirs.bytes
    assert set(ours.size) == set(theirs.size)
    assert_shares_agree("direction", Counter(theirs.direction), Counter(ours.direction))
    assert_shares_agree("size", Counter(theirs.size), Counter(ours.size))
    assert_shares_agree("priority", Counter(theirs.priority), Counter(ours.priority))
    if cut.spread:
        slack = 0.05 * (theirs.end - min(theirs.offset)) if cut.drawn else 0
        assert abs(ours.end - theirs.end) <= slack
        assert abs(min(ours.offset) - min(theirs.offset)) <= slack
    if not (cut.drawn or cut.timed):
        assert len(set(ours.offset)) == len(set(theirs.offset))
    if not cut.ordered or (cut.timed and len(set(theirs.direction)) > 1):
        return  # Reads and writes of the page cache come back in another order.
    # A handful of I/Os is in sequence by chance, or out of it by the order of completion.
    chance = 0.05 + 2 / math.sqrt(len(theirs))
    if theirs.share_in_sequence() > 0.5:
        # Several in flight: the order of completion is the device's, and may put theirs out of sequence.
        assert ours.share_in_sequence() >= theirs.share_in_sequence() - chance
    else:
        assert ours.share_in_sequence() <= theirs.share_in_sequence() + chance


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.skipif(NO_FIO, reason="fio is not installed: nothing to compare with")
@pytest.mark.skipif(NO_EXAMPLES, reason=f"{examples.PLACE}: install the package fio-examples")
@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", sorted(examples.APPLY))
def test_an_example_issues_the_same_io(name: str, tmp_path: Path) -> None:
    path = examples.PLACE / f"{name}.fio"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    cut = examples.APPLY[name]
    job = tmp_path / "cut.fio"
    job.write_text(examples.cut(path.read_text(), cut.changes))
    theirs = run_fio(job, tmp_path / "fio")
    ours = run_ours(job, tmp_path / "loadstone")
    assert theirs
    assert theirs.keys() == ours.keys()
    for one, other in zip(in_order(theirs), in_order(ours), strict=True):
        assert_same(cut, one, other)


@pytest.mark.skipif(NO_EXAMPLES, reason=f"{examples.PLACE}: install the package fio-examples")
def test_every_example_is_compared_or_has_a_reason() -> None:
    there = {path.stem for path in examples.PLACE.glob("*.fio")}
    assert there <= examples.APPLY.keys() | examples.WHY_NOT.keys()
    assert not examples.APPLY.keys() & examples.WHY_NOT.keys()


def test_the_table_in_the_documents_is_fresh() -> None:
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        DOCUMENT.write_text(examples.document())
    assert DOCUMENT.read_text() == examples.document()
