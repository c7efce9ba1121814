"""What is drawn from a long list: enough for every value, the same in every process, another every day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import draw

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LIST = """
import pytest
@pytest.mark.drawn(9)
@pytest.mark.parametrize("colour", ["red", "green", "blue"])
@pytest.mark.parametrize("size", range(7))
def test_a_list(colour, size):
    pass
@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", range(8))
def test_more_than_may_be_kept(name):
    pass
@pytest.mark.parametrize("number", range(5))
def test_all_of_them(number):
    pass
"""


TURNS = """
import pytest
pytestmark = pytest.mark.in_turn
def test_one(): pass
@pytest.mark.parametrize("number", range(8))
def test_eight(number): pass
def test_two(): pass
"""


def kept(items: Sequence[pytest.Item]) -> list[str]:
    draw.leave_out(items)
    return [item.name for item in items if item.get_closest_marker("nightly") is None]


def collected(request: pytest.FixtureRequest, file: Path) -> list[pytest.Item]:
    """The tests of a file, as this very session collects them."""
    module = pytest.Module.from_parent(request.session, path=file)
    return list(request.session.genitems(module))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
def test_every_value_is_drawn_where_there_is_room_and_so_many_cases(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lists_to_draw_from.py"
    file.write_text(LIST)
    monkeypatch.syspath_prepend(tmp_path)
    found: dict[str, list[str]] = {}
    for number in ("1", "1 ", "2"):
        monkeypatch.setenv(draw.VARIABLE, number.strip())
        found[number] = kept(collected(request, file))
    assert found["1"] == found["1 "] != found["2"]
    for names in found.values():
        listed = [name for name in names if name.startswith("test_a_list")]
        assert len(listed) == 9
        assert len(names) == 9 + 3 + 5
        values = {value for name in listed for value in name.partition("[")[2][:-1].split("-")}
        assert values == {"red", "green", "blue", *map(str, range(7))}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
def test_a_round_of_days_runs_each_test_that_takes_turns_once(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "in_turn_here.py"
    file.write_text(TURNS)
    monkeypatch.syspath_prepend(tmp_path)
    days = []
    for day in range(331, 331 + draw.TURNS + 1):
        monkeypatch.setenv(draw.VARIABLE, str(day))
        days.append(kept(collected(request, file)))
    *each, again = days
    assert each[0] == again
    assert sorted(len(one) for one in each) == [0] * (draw.TURNS - 10) + [1] * 10
    every = ["test_one", *(f"test_eight[{number}]" for number in range(8)), "test_two"]
    assert sorted(name for one in each for name in one) == sorted(every)
