"""A finding of one of several hosts names that host, everywhere it is told."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console

from loadstone.audit.judge import as_found, judge
from loadstone.audit.rule import Finding, Rule
from loadstone.report.verdict import words
from tests.audit.cases import run

if TYPE_CHECKING:
    from loadstone.verdict import Audited

LIMIT = Rule(
    "own_limit",
    "?",
    "test",
    lambda of: (
        Finding("limited", 0.9, "ja reached its rate.", {"done_iops": 500.0}, "ask for more", job="ja"),
    ),
)


def text_of(audited: Audited) -> str:
    written = io.StringIO()
    words.terminal(audited, Console(file=written, width=200))
    return written.getvalue()


def test_the_job_of_a_host_is_named_with_it() -> None:
    assert [one.about for one in as_found(replace(run(), of_host="h1"), (LIMIT,)).causes] == ["h1: ja"]
    assert [one.about for one in as_found(run(), (LIMIT,)).causes] == ["ja"]


def test_findings_of_one_rule_are_a_line_that_names_the_first_and_counts_the_others() -> None:
    hosts = [replace(run(), name=name, of_host=name) for name in ("h1", "h2", "h3")]
    audited = judge(hosts, (LIMIT,))
    lines = [line for line in text_of(audited).splitlines() if "own_limit" in line]
    assert len(lines) == 1
    assert lines[0].endswith(": h1: ja: done 500 IOPS; 2 more like it")
    (card,) = words.page(audited, lambda _: "")["causes"]
    assert (card["about"], [one["about"] for one in card["more"]]) == ("h1: ja", ["h2: ja", "h3: ja"])
