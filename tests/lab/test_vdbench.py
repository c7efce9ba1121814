"""The comparison with a real vdbench: what it draws, and what it takes for a difference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from lab.vdbench import compare, draw

from loadstone.formats import vdbench

if TYPE_CHECKING:
    from pathlib import Path


def test_files_are_drawn_again_alike_and_all_are_read() -> None:
    drawn = draw.drawn(1, 48, "/place")
    assert [one.text for one in draw.drawn(1, 48, "/place")] == [one.text for one in drawn]
    assert draw.drawn(2, 48, "/place") != drawn
    assert {one.kind for one in drawn if not one.apart}.isdisjoint(draw.APART)
    assert 12 <= sum(one.apart for one in drawn) <= 24
    for one in drawn:
        file = vdbench.read([vdbench.ParameterText(one.text.encode())])
        assert file.on_files is one.on_files
        assert vdbench.expand(file)


ROW = "10:00:03.000 11/22/2026-10:00:03-UTC rd1  avg_2-3 {rate} {rate} {reads} 4096 "
HEAD = "         tod               timestamp Run Interval reqrate rate read% bytes/io "


def pages(
    path: Path, rate: str, reads: str, head: str = "Nov 22, 2026    interval        i/o"
) -> compare.VdbenchDirectory:
    path.mkdir()
    (path / "flatfile.html").write_text(f"<pre>\n{HEAD}\n{ROW.format(rate=rate, reads=reads)}\n")
    (path / "summary.html").write_text(f"<pre>\n{head}\n10:00:03.000 1 100\n")
    (path / "config.html").write_text("")
    return compare.read(path)


@pytest.mark.parametrize(
    ("rate", "reads", "head", "text"),
    [
        ("110", "52", "Dec 01, 2027    interval        i/o", ""),
        ("300", "50", "Nov 22, 2026    interval        i/o", "asked for 100.0, ours 300.0"),
        ("100", "95", "Nov 22, 2026    interval        i/o", "50 % reads, ours 95 %"),
        ("100", "50", "Nov 22, 2026    interval   i/o", "is missing"),
    ],
)
def test_noise_is_none_and_a_difference_is_told(
    tmp_path: Path, rate: str, reads: str, head: str, text: str
) -> None:
    found = compare.VdbenchDifference()
    real, ours = pages(tmp_path / "real", "100", "50"), pages(tmp_path / "ours", rate, reads, head)
    if not text:
        ours.rows[0]["reqrate"] = "100"
    compare.differences(real, ours, 100.0, found)
    told = " ".join([*found.files, *found.headers, *found.columns, *found.mixes])
    assert (text in told) if text else not told


def test_what_the_documents_name_is_known_and_nothing_else(tmp_path: Path) -> None:
    found = compare.VdbenchDifference()
    real, ours = pages(tmp_path / "real", "100", "50"), pages(tmp_path / "ours", "100", "50")
    size = "Anchor size: anchor=ANCHOR: dirs: 2; files: 16; bytes: "
    table = "min(ms) <     max(ms)"
    left = {"logfile": frozenset((f"{size}256.000k (1)",)), "wd1.histogram": frozenset[str]()}
    right = {"logfile": frozenset((f"{size} 64.000k (2)",)), "wd1.histogram": frozenset((table,))}
    real = replace(real, names=frozenset(left), headers=left)
    ours = replace(ours, names=frozenset((*right, "wd1")), headers=right)
    compare.differences(real, ours, 100.0, found)
    assert found.files == []
    assert len(found.known) == 1
    assert len(found.headers) == 3
    ended = replace(real, rows=[*real.rows, {**real.rows[0], "Interval": "avg_2-1"}])
    known = compare.VdbenchDifference()
    compare.differences(ended, ours, 100.0, known, sizes=True)
    assert known.headers == []
    assert len(known.known) == 3


def test_a_table_of_slaves_is_a_known_difference(tmp_path: Path) -> None:
    difference = compare.VdbenchDifference()
    real, ours = pages(tmp_path / "real", "100", "50"), pages(tmp_path / "ours", "100", "50")
    table = frozenset({"Slave:              rate  1024**2"})
    real = replace(real, headers={**real.headers, "summary": real.headers["summary"] | table})
    compare.differences(real, ours, 100.0, difference)
    assert difference.headers == []
    assert difference.known == ["summary: a table of slaves"]
