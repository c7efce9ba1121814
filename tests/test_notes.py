"""What many jobs are told is told once, with how many they are."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from loadstone.notes import once, place


@dataclass(frozen=True)
class SaidNote:
    kind: str
    text: str
    where: int


def test_the_first_of_those_that_say_the_same_stands_for_all() -> None:
    said = [
        SaidNote("info", "a", 1),
        SaidNote("trap", "a", 2),
        SaidNote("info", "b", 3),
        SaidNote("info", "a", 4),
    ]
    assert once(said) == [(said[0], 1), (said[1], 0), (said[2], 0)]
    assert once([]) == []


@pytest.mark.parametrize(
    ("where", "others", "told"),
    [(None, 3, ""), ("a.fio:3", 0, "a.fio:3: "), ("a.fio:3", 2, "a.fio:3 and 2 more: ")],
)
def test_a_place_says_how_many_others_there_are(where: str | None, others: int, told: str) -> None:
    assert place(where, others) == told
