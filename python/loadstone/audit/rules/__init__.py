"""The rules, one to a file: this table is all that knows them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rules import io_errors, littles_law

if TYPE_CHECKING:
    from loadstone.audit.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    io_errors.RULE,
    littles_law.RULE,
)
