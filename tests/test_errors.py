from __future__ import annotations

import pytest

from loadstone.errors import MOST_TOLD, InputError, SeveralMistakesError, raise_all


def test_of_many_mistakes_the_first_are_told_and_how_many_more_there_are() -> None:
    with pytest.raises(SeveralMistakesError) as raised:
        raise_all([InputError(f"wrong {number}") for number in range(MOST_TOLD + 3)])
    assert [one.message for one in raised.value.errors] == [
        *(f"wrong {number}" for number in range(MOST_TOLD)),
        "3 more mistakes are not listed",
    ]
    with pytest.raises(SeveralMistakesError) as few:
        raise_all([InputError("a"), InputError("b")])
    assert len(few.value.errors) == 2
