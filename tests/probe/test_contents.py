"""What lies at places that a run read: zeros, data, or nothing that can be told."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from loadstone.explanations.readings import Probed, Tried
from loadstone.explanations.weigh import weigh
from loadstone.path import child
from loadstone.probe import contents
from tests.probe.test_arms import MIB, base

if TYPE_CHECKING:
    from pathlib import Path

READS: dict[str, object] = {"rw": "randread", "bs": "4k", "iodepth": 8, "size": 8 * MIB}


def looked(path: Path, written: int, options: dict[str, object] | None = None) -> Tried | None:
    """Look at a file of 8 MiB of which so many MiB, from its beginning, were written."""
    made = base(path, options or READS, size=8 * MIB)
    with (path / "target").open("r+b") as file:
        file.write(os.urandom(written * MIB))
    return contents.look(made)


@pytest.mark.parametrize(("written", "share"), [(0, 1.0), (8, 0.0), (4, 0.5)])
@pytest.mark.in_turn
def test_the_share_of_blocks_that_hold_nothing_but_zeros(tmp_path: Path, written: int, share: float) -> None:
    seen = looked(tmp_path, written)
    assert seen is not None
    (reading,) = seen.readings
    assert reading.value == pytest.approx(share, abs=0.2)
    assert (reading.count, seen.written_bytes) == (contents.BLOCKS, 0)
    assert f"{reading.value:.0%}" in seen.result


@pytest.mark.in_turn
def test_a_job_that_writes_the_same_again_or_reads_nothing_is_not_looked_at(tmp_path: Path) -> None:
    assert looked(tmp_path, 8, {**READS, "rw": "randwrite", "refill_buffers": 1}) is None
    assert looked(tmp_path, 8, {**READS, "rw": "randrw", "zero_buffers": 1}) is None


@pytest.mark.in_turn
def test_a_target_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    made = base(tmp_path, READS, size=8 * MIB)
    (tmp_path / "target").unlink()
    assert contents.look(made) is None


@pytest.mark.in_turn
def test_a_target_that_does_not_answer_is_left_to_the_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = base(tmp_path, READS, size=8 * MIB)
    monkeypatch.setattr(child, "SILENT_S", 0.5)
    monkeypatch.setattr(contents, "_zeros", lambda *_: time.sleep(30))
    assert contents.look(made) is None


def test_zeros_speak_for_blocks_never_written_whoever_else_is_busy(tmp_path: Path) -> None:
    made = base(tmp_path, READS, size=8 * MIB)

    def chance(zeros: int, taken: float | None = None) -> float:
        probed = Probed(
            stage=0, budget_s=20.0, tried=(contents.tried(zeros, 64, 0.1),), left_out=(), ended=""
        ).beside_others(taken)
        return next(
            one.probability for one in weigh(made.facts, probed) if one.explanation.name == "unwritten"
        )

    before = next(one.probability for one in weigh(made.facts) if one.explanation.name == "unwritten")
    assert chance(64) > 2 * before
    assert chance(0) < before / 3
    assert chance(64, 0.8) == chance(64)
