"""Where a curve ends: a load that asked for more than the storage does says nothing against the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from loadstone.api.comparing import Comparison
from loadstone.comparison.compare import beside
from loadstone.comparison.side import side
from loadstone.messages import say
from loadstone.report.comparison import words
from loadstone.verdict import Cause, Verdict
from tests.comparison.test_compare import study

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.comparison.side import Side
    from loadstone.verdict import RuleName

RATES: Final = [None, 30.0, 60.0, 90.0, 100.0, 110.0]
REACHED: Final = [1000.0, 300.0, 600.0, 900.0, 960.0, 940.0]


def broken_by(*rules: RuleName) -> Verdict:
    causes = tuple(
        Cause(
            rule=rule, confidence=0.95, effect="not_valid", layer=None, text=f"{rule}.", evidence={},
            advice="", about=None,
        )
        for rule in rules
    )  # fmt: skip
    return Verdict(
        kind="not_valid", limited_by=None, confidence=0.95, sentences="not valid", causes=causes,
        missing=(), checked=(), advice=(),
    )  # fmt: skip


def with_broken(one: Side, broken: dict[float | None, tuple[RuleName, ...]]) -> Side:
    phases = [
        replace(phase, verdict=broken_by(*broken[rate]))
        if (rate := phase.factors["rate_percent"]) in broken
        else phase
        for phase in one.phases
    ]
    return replace(one, phases=tuple(phases))


@pytest.fixture(scope="module")
def curve_sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    folder: Path = tmp_path_factory.mktemp("curves")
    return (
        side(study(folder / "before", REACHED, rates=RATES)),
        side(study(folder / "after", [1.001 * one for one in REACHED], rates=RATES)),
    )


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("broken", "beyond"),
    [
        ({110.0: ("rate_not_reached",)}, 1),
        ({100.0: ("rate_not_reached",), 110.0: ("rate_not_reached",)}, 2),
        # What it was asked for is not all that is wrong with it.
        ({110.0: ("rate_not_reached", "io_errors")}, 0),
        ({110.0: ("io_errors",)}, 0),
        # Storage that keeps up with more kept up with less: something else disturbed it.
        ({90.0: ("rate_not_reached",)}, 0),
        # Nothing is left that is a curve, or its rates are shares of a maximum that is none.
        (dict.fromkeys(RATES[2:], ("rate_not_reached",)), 0),
        ({None: ("io_errors",), 110.0: ("rate_not_reached",)}, 0),
        # It does its maximum, and not 60 % of it.
        (dict.fromkeys((60.0, 90.0, 100.0, 110.0), ("rate_not_reached",)), 0),
    ],
)
def test_only_the_end_of_a_curve_is_beyond_saturation(
    curve_sides: tuple[Side, Side], broken: dict[float | None, tuple[RuleName, ...]], beyond: int
) -> None:
    """A curve whose highest load was not held made its side not valid, so that no gate on curves passed."""
    before, after = curve_sides[0], with_broken(curve_sides[1], broken)
    assert len(after.beyond) == beyond
    assert (after.verdict == "not_valid") == (beyond == 0)
    comparison = Comparison(beside((before, after)))
    assert comparison.decide(detect=0.6).outcome == ("passed" if beyond else "not_valid")
    document = comparison.document(gated=True)
    assert document["sides"][1]["beyond"] == beyond
    assert document["sides"][0]["beyond"] == 0
    assert sum(document["sides"][1]["counts"].values()) == len(RATES) - beyond
    # Every one of them is struck, with its reason.
    assert len(document["excluded"]) == len(broken)
    told = [one["why"] == say("comparison.curve.beyond") for one in document["excluded"]]
    assert sum(told) == beyond


def test_the_answer_counts_loads_beyond_saturation(curve_sides: tuple[Side, Side]) -> None:
    after = with_broken(curve_sides[1], {110.0: ("rate_not_reached",)})
    assert words.counts(after).endswith("1 load beyond saturation; 6 phases in all)")


@pytest.mark.in_turn
def test_a_load_that_is_no_curve_s_is_not_valid_where_its_rate_was_not_reached(tmp_path: Path) -> None:
    one = side(study(tmp_path / "one", [1000.0, 1001.0]))
    last = replace(one.phases[1], verdict=broken_by("rate_not_reached"))
    assert replace(one, phases=(one.phases[0], last)).verdict == "not_valid"
