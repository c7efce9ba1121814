"""Consent to lose data: given on the command line, or typed when asked.

Knows how to ask. What needs consent is decided by `plan.guard`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from loadstone import Consent, exitcodes
from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE
from loadstone.errors import Where
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadstone.errors import LoadstoneError


QUIET_S: Final = 2.0
EVERY_S: Final = 5.0


def consent(paths: Iterable[str]) -> Consent:
    """Return the consent given by `--i-accept-data-loss`, asking for the rest on a terminal."""
    return Consent(frozenset(paths), _ask if console.on_terminal() else None, tell=_Looking())


def consent_without_asking(paths: Iterable[str]) -> Consent:
    """Return the same where nothing runs: nobody is asked to type anything."""
    return Consent(frozenset(paths), tell=_Looking())


def would_end(refusal: LoadstoneError | None) -> int:
    """Say why what was printed would not run, and return the exit code."""
    from loadstone.cli.main import show

    if refusal is None:
        return exitcodes.DONE
    show(refusal)
    return exitcodes.USAGE


def other_targets(paths: Iterable[str]) -> Consent:
    """Return the consent given by `--other-target`, asking for the rest on a terminal."""
    return Consent(
        frozenset(paths),
        _ask_for_another if console.on_terminal() else None,
        remedy=lambda needed: " ".join(f"--other-target {path}" for path in needed),
        where=Where(COMMAND_LINE, option="--other-target"),
    )


def _ask_for_another(path: str, evidence: list[str]) -> str:
    return _typed(
        say("experiment.target.another_question", path=path),
        evidence,
        say("experiment.target.another_type", path=path),
    )


class _Looking:
    """Says how far a look has come that takes more than two seconds, now and then."""

    def __init__(self) -> None:
        self._path = ""
        self._next_s = 0.0

    def __call__(self, path: str, share: float) -> None:
        now_s = time.monotonic()
        if path != self._path:
            self._path, self._next_s = path, now_s + QUIET_S
        elif now_s >= self._next_s:
            self._next_s = now_s + EVERY_S
            console.say(say("cli.consent.looking", path=path, share=f"{share:.0%}"))


def _ask(path: str, evidence: list[str]) -> str:
    return _typed(say("cli.consent.overwritten", path=path), evidence, say("cli.consent.type", path=path))


def _typed(question: str, evidence: list[str], prompt: str) -> str:
    out = console.console()
    out.print(question, markup=False, style="bold red")
    for reason in evidence:
        out.print(f"  {reason}", markup=False)
    out.print(prompt, markup=False, end="")
    try:
        return input()
    except EOFError:
        return ""
