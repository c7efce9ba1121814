"""Articles as pages, as Markdown and on paper."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from importlib import resources
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import RunError
from loadstone.report.article import paper
from loadstone.report.article.elements import (
    Article,
    ArticleTable,
    Bullets,
    Diagram,
    Drawings,
    Facts,
    Heading,
    Paragraph,
    TableCell,
    Typed,
    VerdictLine,
    Verdicts,
    drawing,
)
from loadstone.report.article.files import as_file
from loadstone.report.pictures import chart_images
from loadstone.report.pictures.charts import base
from loadstone.report.pictures.forest import forest

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.report.article.elements import Block

HOSTILE = "</b>|#strong[x] *a* `b` \x1b[31m"
WROTE = ArticleTable(
    ["pattern", "IOPS"],
    [
        [TableCell("4k random read")],
        ["IOPS", TableCell("100", kind="better", below="+12 % ▲", strong=True)],
        ["other", TableCell("7", struck=True)],
    ],
)


def article(*more: str) -> Article:
    blocks: list[Block] = [
        Paragraph("It is faster.", "answer"),
        Verdicts([VerdictLine("2 runs", "not_valid", "1 not valid", "the page cache answered")]),
        Facts([("On", "/dev/sda")]),
        WROTE,
        Heading("Charts alone"),
        Drawings([]),
        Heading("Words"),
        Bullets([HOSTILE, *more]),
        Typed("[global]\n```\n", HOSTILE),
    ]
    return Article("Loadstone study", HOSTILE, blocks, "complete")


def test_markdown_has_everything_but_charts_and_no_heading_over_nothing() -> None:
    text = as_file(article(), ".md")
    assert isinstance(text, str)
    assert "**It is faster.**" in text
    assert "| IOPS | **100** (**+12 % ▲**) |" in text
    assert "| other | ~~7~~ |" in text
    assert "| **4k random read** |  |" in text
    assert "## Words" in text
    assert "## Charts alone" not in text
    assert "\x1b" not in text
    assert "&lt;/b>" in text
    assert "````\n[global]\n```\n````" in text


def test_markdown_ends_a_sentence_that_is_told_with_one_full_stop() -> None:
    """An experiment tells its choice in a sentence, and what that costs followed after `..`."""
    lines = [
        VerdictLine("most IOPS", "measures_storage", "Keep it.", "It also changes latency."),
        VerdictLine("2 runs", "not_valid", "1 not valid", "the page cache answered"),
        VerdictLine("least", "cannot_tell", "No choice."),
    ]
    text = as_file(Article("x", "y", [Verdicts(lines)]), ".md")
    assert isinstance(text, str)
    assert "- **most IOPS**: Keep it. It also changes latency.\n" in text
    assert "- **2 runs**: 1 not valid. the page cache answered\n" in text
    assert "- **least**: No choice.\n" in text


def test_a_page_has_no_tag_of_what_was_measured() -> None:
    html = as_file(article(), ".html")
    assert isinstance(html, str)
    assert "</b>|#strong" not in html
    assert 'class="better"' in html
    assert "<s>7</s>" in html


def on_paper(folder: Path, content: Article, form: str = "-layout") -> str:
    """What `pdftotext` reads in the PDF of an article."""
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext (package poppler-utils)")
    pytest.importorskip("typst")
    (folder / "a.pdf").write_bytes(paper.pdf(content))
    command = ["pdftotext", form, str(folder / "a.pdf"), "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.in_turn
def test_paper_is_a4_with_text_and_heads_that_repeat(tmp_path: Path) -> None:
    long = ArticleTable(["name of the row", "value"], [[f"row {n}", str(n)] for n in range(120)])
    made = article("a line at the end")
    chart = base("a chart", [{"x": 1}]) | {"mark": "point", "encoding": {"x": {"field": "x"}}}
    whole = Article(made.kicker, made.title, [*made.blocks, long, Drawings([drawing(chart)])])
    written = as_file(whole, ".pdf")
    assert isinstance(written, bytes)
    assert written.startswith(b"%PDF")
    text = on_paper(tmp_path, whole)
    assert "It is faster." in text
    assert "#strong[x] *a* `b` \\x1b[31m" in text
    assert "row 119" in text
    # The table begins on the first page and has its head on every one.
    assert text.count("name of the row") == text.count("\f") >= 2


def test_without_the_typesetter_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(RunError, match="not installed") as caught:
        paper.pdf(Article(kicker="", title="t", status="", footer="", blocks=()))
    assert caught.value.hint is not None
    assert "loadstone[pdf]" in caught.value.hint


def test_an_interval_without_bounds_is_drawn_as_far_as_an_axis_reaches() -> None:
    rows = [{"line": "4k random read: IOPS", "at": 1.2, "low": 0.0, "high": math.inf, "kind": "same"}]
    spec = forest("Change", rows, {"same": ("#888", "circle")})
    (row,) = spec["data"]["values"]
    assert (row["low"], row["high"]) == (pytest.approx(0.01), pytest.approx(120))
    svg = chart_images.svg(spec)
    assert "NaN" not in svg
    assert "4k random read: IOPS" in svg


@pytest.mark.in_turn
def test_a_chart_of_many_rows_is_whole_on_paper(tmp_path: Path) -> None:
    rows = [
        {"line": f"pattern {at}: IOPS", "at": 1.1, "low": 1.0, "high": 1.2, "kind": "same"}
        for at in range(60)
    ]
    tall = drawing(forest("Change", rows, {"same": ("#888", "circle")}))
    told = on_paper(tmp_path, Article("A comparison", "a", [Drawings([tall], 1)]), "-bbox")
    height = float(re.findall(r'<page [^>]*height="([0-9.]+)"', told)[0])
    ends = [float(one) for one in re.findall(r'<word [^>]*yMax="([0-9.]+)">59:', told)]
    assert ends
    assert all(end < height for end in ends)
    assert max(float(one) for one in re.findall(r'yMax="([0-9.]+)"', told)) < height


def test_a_rate_is_not_broken_within_its_unit_on_paper(tmp_path: Path) -> None:
    rows = [["rr read", "4.8k ± 1.6k", "600 ± 200 MiB/s", "940 ± 310 µs", "9.76 ms", "2 of 2", "cannot tell"]]
    heads = ["pattern", "IOPS", "bandwidth", "latency mean", "p99", "valid runs", "verdict"]
    made = Article("A study", "a", [ArticleTable(heads, rows, matrix=True)])
    told = on_paper(tmp_path, made)
    assert any("600 ± 200 MiB/s" in line and "rr read" in line for line in told.splitlines()), told


def test_long_mount_options_stay_within_their_column_on_paper(tmp_path: Path) -> None:
    """Options of four layouts were printed over each other: a list without spaces was one word."""
    options = "rw,nodatasum,nodatacow,ssd,discard=async,space_cache=v2,subvolid=5"
    table = ArticleTable(["", "a", "b", "c", "d"], [["file system options", *[options] * 4]])
    boxes = on_paper(tmp_path, Article("A comparison", "a", [table]), "-bbox")
    words = re.findall(r'xMin="([\d.]+)".*xMax="([\d.]+)".*>(.*)</word>', boxes)
    assert sum("nodatasum" in word for *_, word in words) == 4
    assert max(float(right) - float(left) for left, right, _ in words) < 595 / 5
    assert "regex" not in boxes


def test_a_change_stands_beside_its_value_on_paper_where_there_is_room(tmp_path: Path) -> None:
    row: list[TableCell | str] = [
        "IOPS",
        "100",
        TableCell("150", below="+50 % (+45 to +55) ▲", kind="better"),
    ]
    made = Article("A comparison", "a", [ArticleTable(["pattern", "a", "b"], [row], matrix=True)])
    told = on_paper(tmp_path, made)
    assert any("150" in line and "+50 %" in line for line in told.splitlines()), told


def test_a_pattern_is_never_the_last_line_of_a_page(tmp_path: Path) -> None:
    rows: list[list[TableCell | str]] = []
    for at in range(60):
        rows += [[TableCell(f"pattern {at}")], ["IOPS", "100"], ["mean", "100"], ["p99", "100"]]
    made = Article("A comparison", "a", [ArticleTable(["pattern", "b"], rows, matrix=True)])
    told = on_paper(tmp_path, made)
    pages = [
        [line for line in page.splitlines() if line.strip()] for page in told.split("\f") if page.strip()
    ]
    assert len(pages) > 2
    above_foot = [page[-2] for page in pages]
    assert not [line for line in above_foot if re.match(r"\s*pattern \d", line)]


def test_a_browser_prints_a_change_no_larger_than_its_figure() -> None:
    css = (resources.files("loadstone.report") / "page.css").read_text()
    (printed,) = (line for line in css.splitlines() if line.startswith("@media print { .matrix {"))
    sizes = {
        name: float(size)
        for name, size in re.findall(r"(\.matrix[ .a-z]*) \{ font-size: ([0-9.]+)pt", printed)
    }
    assert sizes[".matrix .change"] < sizes[".matrix"]


@pytest.mark.in_turn
def test_on_a_page_the_names_of_many_changes_stand_beside_them_and_on_a_phone_above() -> None:
    rows = [
        {"line": f"4k random read {at}: latency mean", "at": 1.1, "low": 1.0, "high": 1.2, "kind": "same"}
        for at in range(18)
    ]
    looks = {"same": ("#888", "circle")}
    wide, narrow = forest("Change", rows, looks), forest("Change", rows, looks, narrow=True)
    assert (wide["width"], narrow["width"]) == (700, 480)
    # Both stand on the first page of paper: the matrix of as many rows, and the chart.
    assert wide["height"] == 90 + 17 * 18
    axis = wide["layer"][1]["encoding"]["y"]["axis"]
    assert axis["minExtent"] > 6.5 * len("4k random read 17: latency mean")
    assert narrow["layer"][1]["encoding"]["y"]["axis"] is None
    # Names that would take the place of the chart stand above their rows everywhere.
    long = [row | {"line": f"{row['line']} of a side with a long name, on its file system"} for row in rows]
    above = forest("Change", long, looks)
    assert above["layer"][1]["encoding"]["y"]["axis"] is None
    # As wide as the page: a picture for a phone, made as large, had letters of twice the size.
    assert above["width"] == 700
    html = as_file(Article("k", "t", [Drawings([drawing(wide, narrow)], 1)]), ".html")
    assert isinstance(html, str)
    assert re.findall(r'<figure[^>]*class="(\w+)"', html) == ["wide", "narrow"]


def test_the_last_label_of_an_axis_of_changes_is_not_cut() -> None:
    """`+400 %` at the right end of it lost its last letter."""
    row = {"line": "4k read: IOPS", "at": 1.2, "low": 0.2, "high": 4.9, "kind": "same"}
    picture = drawing(forest("Change", [row], {"same": ("#888", "circle")})).svg
    labels = re.findall(r'<text text-anchor="(\w+)"[^>]*>([^<]* %)</text>', picture)
    assert labels[-1] == ("end", "+400 %")


def test_a_diagram_is_words_in_markdown_and_has_one_title_on_paper(tmp_path: Path) -> None:
    """The Markdown of a study had `As run 1 saw it.` below the heading of its data path, and no path."""
    chart = base("Data path", [{"x": 1}]) | {"mark": "point", "encoding": {"x": {"field": "x"}}}
    block = Diagram("<b>drawn</b>", [drawing(chart)], [("disk vda", "15 % busy"), ("adapter virtio1", "")])
    whole = Article("Loadstone study", "a", [Heading("Data path"), block])
    text = as_file(whole, ".md")
    assert isinstance(text, str)
    assert "## Data path\n\n- disk vda: 15 % busy\n- adapter virtio1\n" in text
    (figure,) = block.figures
    assert ">Data path<" in figure.svg
    assert ">Data path<" not in figure.untitled_svg
    assert on_paper(tmp_path, whole).count("Data path") == 1


@pytest.mark.in_turn
def test_a_heading_and_its_first_words_do_not_end_a_page(tmp_path: Path) -> None:
    """`Latency distributions` and what its points are stood below a page, and its charts on the next."""
    chart = base("a", [{"x": 1}]) | {"mark": "point", "encoding": {"x": {"field": "x"}}}
    below = []
    for lines in range(36, 48, 2):
        blocks: list[Block] = [Paragraph(f"line {at}") for at in range(lines)]
        blocks += [Heading("Distributions"), Paragraph("Points", "soft"), Drawings([drawing(chart)], 2)]
        told = on_paper(tmp_path, Article("k", "t", blocks), "-bbox")
        below.append(842 - max(float(y) for y in re.findall(r'yMax="([0-9.]+)">Points<', told)))
    # On A4: the margin, and the half of a chart as wide as half of the page.
    assert min(below) > 45 + 70, below
