"""Words of pages are in the catalogue of messages: headings, titles of charts, heads of tables."""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING, Final

import pytest

from loadstone.report.table_heads import TERM, table_heads
from tests.test_messages import PACKAGE, plain, walked

if TYPE_CHECKING:
    from pathlib import Path

REPORTS_BESIDE: Final = {
    **dict.fromkeys(
        ("report/fio/", "report/vdbench/", "report/iometer.py"), "of the programs they stand for"
    ),
    **dict.fromkeys(
        ("report/experiment/document.py", "report/comparison/document.py"),
        "what a field of a document is, which its schema has",
    ),
}
"""Files of the room of reports whose words are not in the catalogue, and why."""
NO_WORDS: Final = frozenset(
    (
        *("Helvetica, Arial, sans-serif", "loadstone rerun X", "fio's outputs have"),
        *("target of stage", "host of stage", "order in time", "not explained", "measures the storage. "),
        "a phase of unknown jobs cannot be probed",
        *("bold red", "bold green", "bold yellow", "bold bright_black", "strike red"),
    )
)
"""A font, a command, styles, names in documents, what is looked for in a text, and what no run comes to."""
WORDS_OF_A_PAGE: Final = re.compile(r"(?<![\w/.#<-])[A-Z][a-z]{2,}|[a-z]{2,} [a-z(]")
"""A word that begins a title, or two words."""


@functools.cache
def in_reports() -> list[tuple[str, str]]:
    """Every text of reports, the live page and probes that stands in their code, with its place."""
    return [
        (f"{file.relative_to(PACKAGE)}:{node.lineno}", text)
        for room in ("report", "cli/display", "probe")
        for file in sorted((PACKAGE / room).rglob("*.py"))
        for node in walked(ast.parse(file.read_text()))
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if WORDS_OF_A_PAGE.search(text := plain(node, "X")) and text not in NO_WORDS
    ]


EXPRESSION: Final = re.compile(r"\{[%{#].*?[%}#]\}", re.DOTALL)
MARKUP: Final = re.compile(r"<(style|code)>.*?</\1>|<[^<>]*>|&\w+;", re.DOTALL)
TO_A_READER: Final = re.compile(r"(?:aria-label|data-label|alt|title)=\"([^\"]*)\"")


def in_page(template: str) -> list[str]:
    """The words of a page's template that are in its own text, or in what its tags say to a reader."""
    text = EXPRESSION.sub("", template)
    every = [*TO_A_READER.findall(text), MARKUP.sub(" ", text)]
    words = [one for part in every for one in re.findall(r"[^\W\d_]{2,}", part)]
    return [one for one in words if one != "Loadstone" and not TERM.fullmatch(one)]


@pytest.mark.in_turn
def test_words_of_reports_are_in_the_catalogue_or_their_file_has_a_reason() -> None:
    assert [(at, text) for at, text in in_reports() if not at.startswith(tuple(REPORTS_BESIDE))] == []
    places = [at for at, _ in in_reports()]
    assert [one for one in REPORTS_BESIDE if not any(at.startswith(one) for at in places)] == []


@pytest.mark.parametrize(
    "page", sorted((PACKAGE / "report").rglob("*.html")), ids=lambda page: f"{page.parent.name}/{page.name}"
)
def test_words_of_a_page_are_in_the_catalogue(page: Path) -> None:
    assert in_page(page.read_text()) == []


def test_words_of_a_page_are_found_in_its_text_and_in_what_its_tags_say() -> None:
    page = '<h2 class="soft">Rates {{ x }}</h2>{% if y %}<td data-label="late by">&nbsp;{{ say("a.b") }}</td>'
    assert in_page(page) == ["late", "by", "Rates"]
    assert in_page('<style>td { color: red }</style><p>{{ say("report.page.run") }} · Loadstone</p>') == []


@pytest.mark.parametrize(
    ("text", "is_found"),
    [("What was found", True), ("Rates", True), ("valid runs", True), ("IOPS", False), ("page.css", False)],
)
def test_a_heading_is_told_from_a_name(text: str, *, is_found: bool) -> None:
    assert bool(WORDS_OF_A_PAGE.search(text)) is is_found


def test_a_term_needs_no_message_and_a_head_has_one() -> None:
    assert table_heads("job", "IOPS", "p99.9", "", "latency_mean") == (
        "job",
        "IOPS",
        "p99.9",
        "",
        "latency mean",
    )
    with pytest.raises(KeyError, match="no_such_head"):
        table_heads("no_such_head")
