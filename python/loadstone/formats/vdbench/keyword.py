"""Keywords of an entity: abbreviations, what each sets, what is told or refused.

Knows how a table of keywords is searched and how the values of an entity are collected. Knows no
keyword by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone.errors import RefusedError
from loadstone.formats.quote import UNSHOWN
from loadstone.messages.suggest import nearest
from loadstone.workload.model import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.errors import Where
    from loadstone.formats.vdbench.grammar import Parameter
    from loadstone.formats.vdbench.values import Reader


@dataclass(frozen=True, slots=True)
class Keyword:
    """A row of a table: what `name=` does. Rows are searched in order, as vdbench does.

    `read` and `field`: it sets a field. `harmless`: why it changes nothing here. `refused`: why it
    is not done, and what to do instead.
    """

    name: str
    read: Reader | None = None
    field: str = ""
    exact: bool = False
    """It must not be abbreviated."""
    harmless: str = ""
    refused: str = ""

    @property
    def target(self) -> str:
        """Field that is set."""
        return self.field or self.name


@dataclass(slots=True)
class Draft:
    """An entity while it is read: values by field, and where each was written."""

    values: dict[str, Any] = field(default_factory=dict)
    at: dict[str, Where] = field(default_factory=dict)

    def copy(self) -> Draft:
        """Return one that starts with these values: a default's."""
        return Draft(dict(self.values), dict(self.at))


class Table:
    """The keywords of one kind of entity."""

    def __init__(self, what: str, rows: Sequence[Keyword]) -> None:
        self.what = what
        """What the entity is called in messages."""
        self.rows = tuple(rows)

    def find(self, word: str) -> Keyword | None:
        """Return the first row that a word means."""
        for row in self.rows:
            if row.name == word or (not row.exact and row.name.startswith(word)):
                return row
        return None

    def apply(self, parameter: Parameter, draft: Draft, notes: list[Note]) -> Keyword:
        """Put a parameter's value into a draft. Raises InputError for an unknown keyword."""
        row = self.find(parameter.keyword)
        if row is None:
            shown = UNSHOWN if parameter.where.option is None else repr(parameter.keyword)
            raise parameter.error(
                "formats_vdbench.keyword.unknown",
                hint=nearest(parameter.keyword, [row.name for row in self.rows if not row.refused]),
                shown=shown,
                what=self.what,
            )
        if row.refused:
            raise RefusedError(f"{row.name}= {row.refused}", where=parameter.where)
        if row.harmless:
            note = Note(where=parameter.where, text=f"{row.name}= {row.harmless}", kind="harmless")
            notes.append(note)
        if row.read is not None:
            draft.values[row.target] = row.read(parameter)
            draft.at[row.target] = parameter.where
        return row
