"""How a piece of evidence is written beside its sentence."""

from __future__ import annotations

import pytest

from loadstone.report.pictures import chart_images
from loadstone.report.verdict.words import chart, different_advice, evidence
from loadstone.verdict import BYTES_PER_S, Cause, Chart


def cause(text: str, **told: float | str) -> Cause:
    return Cause(
        rule="foreign_load",
        confidence=0.9,
        effect="limited",
        layer=None,
        text=text,
        evidence=told,
        advice="",
        chart=None,
        about=None,
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("loop0 moved 30.0 MiB/s while the job asked for 10.0 MiB/s.", "20.0\N{NO-BREAK SPACE}MiB/s"),
        ("200 MB/s are 95 % of what the link carries.", "21.0\N{NO-BREAK SPACE}MB/s"),
    ],
)
def test_a_bandwidth_has_the_unit_of_the_sentence_beside_it(text: str, written: str) -> None:
    assert evidence(cause(text, foreign_bytes_per_s=20 * 2**20)) == [("from others", written)]


def test_every_other_piece_has_the_unit_of_its_name_and_no_raw_number() -> None:
    told = evidence(
        cause("", step_at_s=2.5, fastest_ns=12_345.6, scatter_share=0.00123, device="loop0", ios=1e6 / 3)
    )
    assert [value.replace("\N{NO-BREAK SPACE}", " ") for _, value in told] == [
        "2.50 s",
        "12.3 µs",
        "0.123 %",
        "loop0",
        "333k",
    ]


def test_a_chart_of_evidence_is_in_the_unit_of_its_sentence_and_its_level_stands_beside_the_line() -> None:
    above = tuple((float(at), (200 + at) * 2**20) for at in range(9))
    told = Chart(title="reads", x="s", y=BYTES_PER_S, points=above, level=100 * 2**20, level_name="asked")
    spec = chart(told)
    line, rule, *words = spec["layer"]
    assert line["encoding"]["y"]["title"] == "MiB/s"
    assert [row["y"] for row in line["data"]["values"]][:2] == [200, 201]
    assert rule["data"]["values"] == [{"y": 100, "name": "asked"}]
    assert {word["mark"]["dy"] > 0 for word in words} == {True}
    below = chart(told.model_copy(update={"level": 400 * 2**20}))
    assert below["layer"][-1]["mark"]["dy"] < 0
    assert "MiB/s" in chart_images.svg(spec)


def test_advice_that_a_longer_one_gives_too_is_shown_once() -> None:
    """A page said *run longer, with a ramp* and, below it, *run longer*."""
    ramp, longer = "run longer, with a ramp (ramp_time)", "run longer"
    assert different_advice([ramp, longer, "runs apart"]) == [ramp, "runs apart"]
    assert different_advice([longer, "run longest"]) == [longer, "run longest"]
