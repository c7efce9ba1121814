"""A Polars whose indices have 64 bits: `polars[rtcompat]` for CPUs without AVX2, and `polars[rt64]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from loadstone.analysis.summary import summarise
from loadstone.analysis.tail import beyond
from loadstone.bundle.read import Bundle
from loadstone.bundle.sums import grouped
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def as_with_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lengths that come from Polars be as wide as they are there: NumPy takes none of them."""
    repeat = np.repeat

    def wide(values: Any, repeats: Any, *more: Any) -> Any:
        wanted = np.asarray(repeats)
        return repeat(values, wanted.astype(np.uint64) if wanted.dtype.kind == "u" else wanted, *more)

    monkeypatch.setattr(np, "repeat", wide)


def test_histograms_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    as_with_64_bits(monkeypatch)
    rows = pl.DataFrame({"cell": [1, 1, 2], "lat_bucket": [[3, 4], [4], []], "lat_count": [[1, 2], [5], []]})
    assert [(key, used.tolist(), sums.tolist()) for key, used, sums in grouped(rows, "lat", ["cell"])] == [
        ((1,), [3, 4], [1, 7])
    ]


def test_the_share_beyond_a_limit_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs.make(tmp_path / "b", runs.MadeJob(ops_hz={"read": 500.0}), seconds=3)
    measurement = summarise(Bundle.open(tmp_path / "b")).measurement
    as_with_64_bits(monkeypatch)
    (share,) = beyond(measurement, [1])
    assert share is not None
    assert share.value == 1.0
