"""A finding of one of several hosts names that host, everywhere it is told."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console

from loadstone.audit.case import OpMeasurement
from loadstone.audit.judge import as_found, judge
from loadstone.audit.rule import Clear, Finding, NotMine, Rule
from loadstone.report.verdict import words
from tests.audit.cases import run

if TYPE_CHECKING:
    from loadstone.audit.case import Case
    from loadstone.audit.rule import Answer
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
    assert lines[0].endswith(": h1: ja: reached 500 IOPS; 2 more like it")
    (card,) = words.page(audited, lambda _: "")["causes"]
    assert (card["about"], [one["about"] for one in card["more"]]) == ("h1: ja", ["h2: ja", "h3: ja"])


def test_a_doubt_about_one_host_stays_with_it_where_a_finding_decides_on_all() -> None:
    """Regression: the storage's full link limited the sum, one client had a stall, and nobody could tell."""

    def stalled(of: Case) -> Answer:
        return (Finding("suspect", 0.9, "It stood still.", {}, "see"),) if of.of_host == "h2" else Clear()

    def full(of: Case) -> Answer:
        return NotMine() if of.of_host else (Finding("limited", 0.9, "Full.", {}, "more", layer="link"),)

    rules = (Rule("time_structure", "?", "test", stalled), Rule("storage_link", "?", "test", full))
    of_all = replace(run(), name="the sum of all hosts")
    own = [replace(run(), name=name, of_host=name) for name in ("h1", "h2")]
    assert judge([of_all, *own], rules).verdict.kind == "cannot_tell"
    decided = judge([of_all, *(replace(one, sum_decided=True) for one in own)], rules)
    assert (decided.verdict.kind, decided.verdict.limited_by) == ("limited", "link")
    assert [one.verdict.kind for one in decided.phases] == ["limited", "cannot_tell", "cannot_tell"]
    # What was not measured at all is no doubt.
    nothing = replace(own[1], total=OpMeasurement(), sum_decided=True)
    assert judge([of_all, own[0], nothing], rules).verdict.kind == "cannot_tell"
