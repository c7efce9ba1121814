"""Bad input is answered with what was expected, a limit, the nearest name or a remedy."""

from __future__ import annotations

import ast
import re
from typing import Final

from loadstone import messages
from tests.test_messages import called, code, keys_of

SPEAKS: Final = {"make_error": 1, "error": 0, "refusal": 0, "wrong": 0}
"""What raises an error by a key, and as which of its arguments."""
PARTS: Final = frozenset(("ValueError", "DamagedError"))
"""Errors that become the reason in another one, which has the remedy."""
ANSWERED: Final = re.compile(
    r"expected|\{(?:nearest|known|most|least|limit|max_|readable)|between \d|\b(?:above|less than) [\d{]"
    r"|\b(?:at most|at least|more than|must|needs?|needed|one of|a multiple of|nothing may follow)\b"
    r"|\b(?:add|use|leave|choose|write|give|allow|move it) |there are \{|it is for "
)
WITHOUT: Final = {
    "cli.fio.argument_missing": "fio's own text",
    "cli.fio.no_file": "fio's own text",
    "program.helper.closed": "only where the program ends already",
}


SENT: Final = re.compile(r"\b(?:check|look at|look into|see)\b")
"""Words of a hint that sends somebody to look."""
NAMED: Final = re.compile(r"[{`=/\d(]|--|\b[A-Z]{3,}\b|loadstone")
"""A command, a file, an option, a value of the message, or examples."""


def unanswered() -> dict[str, str]:
    """Every message of an error that has neither a hint nor one of these words, with where it is raised."""
    texts = messages.templates()
    places: dict[str, str] = {}
    for place, node in code():
        if not isinstance(node, ast.Call) or called(node) not in SPEAKS:
            continue
        at = SPEAKS[called(node)]
        if len(node.args) <= at or any(one.arg == "hint" for one in node.keywords):
            continue
        if called(node) == "make_error" and ast.unparse(node.args[0]) in PARTS:
            continue
        for key in keys_of(node.args[at]):
            # What a reader of Iometer's files expects is put behind "expected".
            if f"{key}_hint" in texts or ".expected." in key:
                continue
            if key in texts and not ANSWERED.search(texts[key]):
                places[key] = f"{place}:{node.lineno}"
    return places


def test_every_refusal_says_what_was_expected_or_what_to_do() -> None:
    places = unanswered()
    assert {key: at for key, at in places.items() if key not in WITHOUT} == {}
    assert WITHOUT.keys() == places.keys()


def test_a_hint_that_sends_somebody_to_look_names_a_command_or_a_place() -> None:
    vague = [
        (key, text)
        for key, text in messages.templates().items()
        # Advice of the audit is of a storage that it does not know.
        if key.endswith(("_hint", ".hint")) and not key.startswith("audit.")
        if SENT.search(text) and not NAMED.search(text)
    ]
    assert vague == []
