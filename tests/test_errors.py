from __future__ import annotations

import pytest

from loadstone.cli.main import show
from loadstone.errors import MOST_TOLD, InputError, SeveralMistakesError, raise_all


def test_of_many_mistakes_the_first_are_told_and_how_many_more_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SeveralMistakesError) as raised:
        raise_all([InputError(f"wrong {number}") for number in range(MOST_TOLD + 3)])
    assert len(raised.value.errors) == MOST_TOLD + 3
    show(raised.value)
    assert capsys.readouterr().err.splitlines() == [
        *(f"loadstone: wrong {number}" for number in range(MOST_TOLD)),
        "loadstone: 3 more mistakes are not listed",
        "hint: fix those above, and try again",
    ]


def test_mistakes_of_several_places_are_one_list_and_the_same_one_counts_once() -> None:
    with pytest.raises(SeveralMistakesError) as inner:
        raise_all([InputError("a"), InputError("b")])
    with pytest.raises(SeveralMistakesError) as outer:
        raise_all([inner.value, InputError("a"), InputError("c")])
    assert [one.message for one in outer.value.errors] == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"^a$") as one:
        raise_all([InputError("a"), InputError("a")])
    assert not isinstance(one.value, SeveralMistakesError)
