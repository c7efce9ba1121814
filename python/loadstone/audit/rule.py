"""What a rule is and what it may answer.

A rule looks at a Case and answers with findings, with 'clear' (it looked and found nothing),
with 'cannot tell: missing X', or with 'not my business' when the Case is of another sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loadstone.messages import say, title

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.audit.case import Case
    from loadstone.messages import Value
    from loadstone.verdict import Chart, Effect, RuleName


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a number, or limits it.

    `confidence` is how often a finding made this way is right, 0 to 1. `evidence` holds what the
    sentence rests on; names carry units (`asked_bytes`, `device_bytes_per_s`). `job`: whose.
    """

    effect: Effect
    confidence: float
    text: str
    evidence: dict[str, float | int | str]
    advice: str
    layer: str | None = None
    job: str | None = None
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class Clear:
    """The rule looked and found nothing."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """What is missing, and what would supply it. `essential`: without it the number is not credible."""

    missing: str
    remedy: str
    essential: bool = False


def cannot_tell(key: str, /, *, essential: bool = False, **values: Value) -> CannotTell:
    """Return what is missing, in the catalogue's words."""
    return CannotTell(say(f"{key}.missing", **values), say(f"{key}.remedy", **values), essential)


@dataclass(frozen=True, slots=True)
class NotMine:
    """The rule has nothing to say about a Case like this (no reads, no rotating medium)."""


Answer = tuple[Finding, ...] | Clear | CannotTell | NotMine

Scope = Literal["one host", "all hosts", "either"]
"""What a rule looks at: the load of one host, that of all hosts of a run together, or whichever there is."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `basis` is the source of its condition."""

    name: RuleName
    asks: str
    basis: str
    judge: Callable[[Case], Answer]
    scope: Scope = "one host"

    def looks_at(self, case: Case) -> bool:
        """Return whether it can say anything about a case of that sort."""
        return self.scope in ("either", "all hosts" if case.source == "hosts" else "one host")

    @property
    def title(self) -> str:
        """What the rule finds, in a few words for people."""
        return title(self.name)
