"""All that is wrong in a document of TOML at once: what is wrong is repaired or left out, and the rest read.

A model tells only some mistakes in one look: what goes together is looked at where each value is right.
So a misspelt key or word is put right, what cannot be put right is left out, and the rest is looked at
again. Knows models and documents. Knows no file and no line: a mistake has the keys that lead to it.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

Keys = tuple[str | int, ...]

MOST_LOOKS: Final = 25
"""No document of ours has so many mistakes one behind another."""
SCALARS: Final = ("bool", "int", "float", "str")
"""Parts of pydantic's places where a value may be any of these."""
KEY: Final = "[key]"
"""The last part of a place, where a name that the document chose is wrong."""
LOCATED: Final = "located"


@dataclass(frozen=True, slots=True)
class RuleMistake:
    """What is wrong between several values, where, and on what of the document the conclusion rests."""

    text: str
    loc: Keys
    rests_on: tuple[str, ...] = ()
    """Not concluded where something of these was left out."""


def located(mistakes: Iterable[RuleMistake]) -> None:
    """Raise what a model's rule found, all together; without any nothing."""
    every = tuple(mistakes)
    if every:
        raise PydanticCustomError(LOCATED, "{text}", {"text": every[0].text, "mistakes": every})


@dataclass(frozen=True, slots=True)
class TomlMistake:
    """One mistake."""

    loc: Keys
    """As the document has it."""
    kind: str
    """Pydantic's, or `located`."""
    error: ErrorDetails
    """As pydantic has it; of a value that may be of several kinds the first."""
    rule: RuleMistake | None = None
    """Where it is one between values."""


@dataclass(slots=True)
class RepairedDocument:
    """A document read as far as it can be."""

    document: dict[str, Any]
    stand_in: Callable[[dict[str, Any], Keys], Any]
    """What stands in the document in the place of something that is left out; `None`: nothing."""
    fields: Callable[[Keys], Iterable[str]]
    """Return the keys that the table at a place takes."""
    tables: tuple[str, ...] = ()
    """Parts of pydantic's places where a value may be a table instead of a scalar: names of models."""
    mistakes: list[TomlMistake] = field(default_factory=list)
    left_out: set[Keys] = field(default_factory=set)
    """Places of what was left out."""
    doubted: set[Keys] = field(default_factory=set)
    """Places whose value is not known, for a reason that is told already."""
    _names: dict[Keys, str] = field(default_factory=dict)
    """Of keys that were put right: how the document has them."""

    def read(self, model: type[BaseModel]) -> BaseModel | None:
        """Return the model of what is right; None where nothing is left of it."""
        self.document = copy.deepcopy(self.document)
        for _ in range(MOST_LOOKS):
            try:
                return model.model_validate(self.document)
            except ValidationError as error:
                mistakes = list(self._mistakes(error))
                for one in mistakes:
                    if not self._follows(one):
                        self.mistakes.append(self._as_written(one))
                wrong = {_unit(self.document, one.loc) for one in mistakes if not self._put_right(one)}
                for unit in sorted(wrong, key=_order, reverse=True):
                    self._leave_out(unit)
        return None

    def is_left_out(self, *names: str) -> bool:
        """Return whether something below one of these keys was left out."""
        return any(str(loc[0]) in names for loc in self.left_out | self.doubted if loc)

    def _mistakes(self, error: ValidationError) -> Iterator[TomlMistake]:
        """Return each mistake once: of a value that may be of several kinds the kind that it looks like."""
        every = error.errors(include_url=False)
        meant = set(self._meant(every))
        as_scalar: set[Keys] = set()
        for one in every:
            loc, kind = tuple(one["loc"]), str(one["type"])
            at = next((n for n, part in enumerate(loc) if part in (*SCALARS, *self.tables)), None)
            place = tuple(part for part in loc if part not in (*SCALARS, *self.tables, KEY))
            is_table = at is not None and isinstance(_at(self.document, loc[:at]), dict)
            if at is not None and (loc[at] in self.tables) is not is_table:
                continue
            if not self._is_there(place, kind, one) or (kind == "missing" and place in meant):
                continue
            if at is not None and loc[at] in SCALARS:
                # It could be any of these: which one was meant is not known.
                if place not in as_scalar:
                    yield TomlMistake(place, "scalar", one)
                as_scalar.add(place)
                continue
            rules: tuple[RuleMistake, ...] = one.get("ctx", {}).get("mistakes", ())
            for rule in rules:
                yield TomlMistake((*place, *rule.loc), LOCATED, one, rule)
            if not rules:
                yield TomlMistake(place, kind, one)

    def _meant(self, every: Iterable[ErrorDetails]) -> Iterator[Keys]:
        """Return the keys that are missing because they are misspelt."""
        for one in every:
            loc = tuple(part for part in one["loc"] if part not in self.tables)
            if one["type"] == "extra_forbidden" and (close := near(str(loc[-1]), self.fields(loc[:-1]))):
                yield (*loc[:-1], close)

    def _is_there(self, place: Keys, kind: str, error: ErrorDetails) -> bool:
        """Return whether the document has what an error is about, and it is not of something inside of it."""
        if kind == "missing":
            return True
        table = _at(self.document, place[:-1]) if place else None
        if isinstance(table, dict) and place[-1] not in table:
            return False
        whole = _at(self.document, place)
        # A list is told to be too short where its values are wrong.
        return (
            kind != "too_short"
            or not isinstance(whole, list | dict)
            or len(whole) < error["ctx"]["min_length"]
        )

    def _follows(self, mistake: TomlMistake) -> bool:
        """Return whether a mistake is there only because of another that is told."""
        loc = mistake.loc
        if any(loc[: len(one)] == one or one[: len(loc)] == loc for one in self.doubted):
            return True
        if mistake.rule is not None and self.is_left_out(*mistake.rule.rests_on):
            return True
        short = mistake.kind in ("too_short", "missing", "value_error", LOCATED)
        return short and any(one[: len(loc)] == loc for one in self.left_out)

    def _as_written(self, mistake: TomlMistake) -> TomlMistake:
        loc = tuple(self._names.get(mistake.loc[: at + 1], part) for at, part in enumerate(mistake.loc))
        return TomlMistake(loc, mistake.kind, mistake.error, mistake.rule)

    def _put_right(self, mistake: TomlMistake) -> bool:
        """Put a misspelt key or word right, and leave out a key that is none; return whether that was it."""
        loc, kind = mistake.loc, mistake.kind
        table = _at(self.document, loc[:-1]) if loc else None
        word = _at(table, loc[-1:])
        if kind == "extra_forbidden" and isinstance(table, dict) and loc[-1] in table:
            key = str(loc[-1])
            close = near(key, self.fields(loc[:-1]))
            content = table.pop(key)
            if close is not None and close not in table:
                table[close] = content
                self._names[*loc[:-1], close] = key
            else:
                self.left_out.add(loc)
            return True
        if kind == "literal_error" and isinstance(table, dict | list) and isinstance(word, str):
            close = near(word, re.findall(r"'([^']+)'", str(mistake.error["ctx"]["expected"])))
            if close is not None:
                table[loc[-1]] = close  # type: ignore[index] # a key of a table, or a number of a list
                return True
        return False

    def _leave_out(self, unit: Keys) -> None:
        """Put what stands in for something wrong in its place, or nothing."""
        table = _at(self.document, unit[:-1]) if unit else None
        if isinstance(table, dict | list):
            # What stands in may be wrong itself beside the rest.
            instead = None if unit in self.left_out else self.stand_in(self.document, unit)
            if instead is not None:
                table[unit[-1]] = instead  # type: ignore[index] # a key of a table, or a number of a list
            elif isinstance(table, dict):
                table.pop(unit[-1], None)
            elif isinstance(unit[-1], int) and unit[-1] < len(table):
                del table[unit[-1]]
        self.left_out.add(unit)


def near(name: str, valid: Iterable[str]) -> str | None:
    """Return the name that was meant, where one alone is near."""
    hint = nearest(name, valid, limit=0) or ""
    close = re.findall(r"'([^']+)'", hint)
    return close[0] if len(close) == 1 else None


def _unit(document: Any, loc: Keys) -> Keys:
    """Return what is left out as a whole: a table of several, a value of a list, or a key."""
    whole = document.get(loc[0]) if loc else None
    if len(loc) < 2:
        return loc
    if isinstance(whole, list) or (isinstance(whole, dict) and isinstance(whole.get(loc[1]), dict)):
        return loc[:2]
    return loc[:2] if isinstance(whole, dict) else loc[:1]


def _order(loc: Keys) -> tuple[tuple[int, int | str], ...]:
    """Return what sorts places, so that the last of a list is left out first."""
    return tuple((1, f"{part:09d}") if isinstance(part, int) else (0, part) for part in loc)


def _at(document: Any, loc: Keys) -> Any:
    for part in loc:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return None
    return document
