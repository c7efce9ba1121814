"""The sections of a run's page that are blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from loadstone import units
from loadstone.analysis.series import series as series_of_run
from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle
from loadstone.report.article.elements import ArticleTable, Heading
from loadstone.report.run import page
from loadstone.report.run.sections import SECTIONS, latency_parts, slowest_windows
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.analysis.summary import Summary


def summary(path: Path, *jobs: MadeJob, seconds: float) -> Summary:
    return summarise(Bundle.open(runs.make(path, *jobs, seconds=seconds).path))


def rows(blocks: object) -> list[list[str]]:
    assert isinstance(blocks, list)
    (table,) = (one for one in blocks if isinstance(one, ArticleTable))
    assert all(len(row) == len(table.headings) for row in table.rows)
    return [[cell.text for cell in row] for row in table.cells]


@pytest.mark.in_turn
def test_each_section_stands_on_the_page_or_has_nothing_to_say(tmp_path: Path) -> None:
    made = summary(tmp_path / "b", MadeJob(), seconds=3)
    html = page.render(made)
    for section in SECTIONS:
        for block in section(made):
            assert not isinstance(block, Heading) or f"<h2>{block.text}</h2>" in html
    assert "<h2>Latency in parts</h2>" in html


def test_latency_has_its_parts_and_the_job_is_named_once(tmp_path: Path) -> None:
    found = rows(latency_parts.section(summary(tmp_path / "b", MadeJob("a"), seconds=3)))
    assert found[0][:2] == ["a read", "lat"]
    assert {row[0] for row in found[1:]} == {""}


def test_an_even_run_has_no_slowest_seconds(tmp_path: Path) -> None:
    assert slowest_windows.section(summary(tmp_path / "b", MadeJob(), seconds=12)) == []


def test_a_short_run_has_none_either(tmp_path: Path) -> None:
    assert slowest_windows.section(summary(tmp_path / "b", MadeJob(), seconds=3)) == []


def test_slow_seconds_are_named_slowest_first_with_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = summary(tmp_path / "b", MadeJob("a"), seconds=14)
    whole = series_of_run

    def slowed(*given: Any, **named: Any) -> pl.DataFrame:
        """Take most of the I/Os out of the fourth and the seventh second."""
        table = whole(*given, **named)
        second = pl.col("start_ns") // 1_000_000_000
        factor = pl.when(second == 3).then(0.5).when(second == 6).then(0.25).otherwise(1.0)
        return table.with_columns((pl.col("iops") * factor).alias("iops"))

    monkeypatch.setattr(slowest_windows, "series", slowed)
    found = rows(slowest_windows.section(made))
    assert [row[0] for row in found] == ["a read", ""]
    assert [row[2] for row in found] == [units.seconds(6.0), units.seconds(3.0)]
    assert [float(row[4].split()[0]) for row in found] == [pytest.approx(25, abs=4), pytest.approx(50, abs=6)]
    assert made.started is not None
