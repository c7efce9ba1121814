"""Consent to lose data: given on the command line, or typed when asked.

Knows how to ask. What needs consent is decided by `plan.guard`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.cli import talk
from loadstone.plan.guard import Consent

if TYPE_CHECKING:
    from collections.abc import Iterable


def consent(paths: Iterable[str]) -> Consent:
    """Return the consent given by `--i-accept-data-loss`, asking for the rest on a terminal."""
    return Consent(frozenset(paths), _ask if talk.on_terminal() else None)


def _ask(path: str, evidence: list[str]) -> str:
    out = talk.console()
    out.print(f"{path} would be overwritten:", markup=False, style="bold red")
    for reason in evidence:
        out.print(f"  {reason}", markup=False)
    out.print(
        f"Type {path} to accept the loss of what is there, or press Enter to stop: ", markup=False, end=""
    )
    try:
        return input()
    except EOFError:
        return ""
