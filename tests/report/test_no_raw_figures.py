"""No page and no terminal line shows a number as a computer writes it: with an exponent, or ten digits.

Runs are drawn whose figures are very small, very large, or next to nothing.
"""

from __future__ import annotations

import contextlib
import random
import re
from functools import partial
from typing import TYPE_CHECKING

import pytest

from loadstone import units
from loadstone.analysis.summary import summarise
from loadstone.api.results import open_bundle
from loadstone.audit.run import audit
from loadstone.bundle.read import Bundle
from loadstone.comparison.compare import compare
from loadstone.errors import InputError
from loadstone.messages import WRITERS, say
from loadstone.report.article.markdown import markdown
from loadstone.report.comparison import text
from loadstone.report.run import page
from loadstone.report.run.article import article
from loadstone.screen import Screen
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path

RAW = re.compile(r"(?<![\w./#-])\d+(?:\.\d+)?e[-+]?\d+\b|(?<![\w./#:-])\d+\.\d{5,}|\bnan\b|(?<!\w)-?inf\b")
"""An exponent, more than four decimals, or no number at all."""
UNSEEN = re.compile(r"<svg.*?</svg>|<style.*?</style>|<pre.*?</pre>|<[^>]*>", re.DOTALL)
LABELS = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)


def raw(told: str) -> list[str]:
    """What a reader would see that is written as a computer does; of charts their labels."""
    charts = re.findall(r"<svg.*?</svg>", told, re.DOTALL)
    labels = [label for chart in charts for label in LABELS.findall(chart)]
    return [found[0] for part in (UNSEEN.sub(" ", told), *labels) for found in RAW.finditer(part)]


def drawn(chance: random.Random) -> list[MadeJob]:
    """One to four jobs, from one I/O in the whole run to far more than any device does."""
    return [
        MadeJob(
            f"job-{at}",
            {chance.choice(["read", "write"]): 10 ** chance.uniform(0, 3.5)},
            median_ns=10 ** chance.uniform(2, 9),
            block_bytes=chance.choice([512, 4096, 1 << 20]),
            paced=chance.random() < 0.5,
            errors=chance.choice([0, 0, 3]),
            stage=chance.choice([0, 0, at]),
            iodepth=chance.choice([1, 128]),
        )
        for at in range(chance.randint(1, 4))
    ]


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(3))
def test_no_page_shows_a_raw_figure(tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(seed)
    sides = []
    for name in ("before", "after"):
        jobs = drawn(chance)
        stages = sorted({job.stage for job in jobs})
        for job in jobs:
            job.stage = stages.index(job.stage)
        sides.append(runs.make(tmp_path / name, *jobs, seed=seed, seconds=chance.choice([2.0, 5.0])).path)
    for path in sides:
        made = summarise(Bundle.open(path))
        assert raw(page.render(made, partial(audit, made))) == []
        assert raw(markdown(article(made, audit(made)))) == []
        open_bundle(path).print(Screen(highlight=False))
        assert raw(capsys.readouterr().out) == []
    with contextlib.suppress(InputError):  # What was drawn need not have anything in common.
        assert raw(text.markdown(compare(sides))) == []


@pytest.mark.parametrize("ending", [ending for ending, _ in WRITERS])
@pytest.mark.parametrize("power", range(-12, 16))
def test_no_value_in_a_message_is_written_raw(ending: str, power: int) -> None:
    write = dict(WRITERS)[ending]
    for value in (10.0**power, 3.3337777 * 10.0**power):
        assert raw(write(value)) == [], value


def test_what_is_next_to_nothing_is_told_as_less_than_a_tenth_of_a_percent() -> None:
    assert units.percent(0) == "0\N{NO-BREAK SPACE}%"
    assert units.percent(5e-05) == "<0.1\N{NO-BREAK SPACE}%"
    assert units.percent(0.25) == "0.25\N{NO-BREAK SPACE}%"
    assert units.percent(9.96) == "10\N{NO-BREAK SPACE}%"
    told = say("report.generator.ceiling", ceiling_share=5e-7, ceiling_iops=1e7, user_ns=20.0, monitors="")
    assert "less than 0.1 % of the engine's ceiling" in told
