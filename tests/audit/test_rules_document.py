"""docs/rules.md is written from the table of rules."""

from __future__ import annotations

import os
from pathlib import Path

from loadstone.audit.rules import RULES

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
HEAD = """\
# What a verdict rests on

Each result is put before these rules. One answers with findings, *clear* (it looked and found
nothing), *cannot tell* (and what is missing), or not at all when the result is of another sort. A
finding has a confidence: how often one made this way is right ([verdicts.md](verdicts.md) holds
that against labelled runs). Its effect is one of

- *not valid*: the number is not the storage's at work;
- *limited*: it is, and something else than the medium set it;
- *suspect*: it may be either; the verdict is less sure for it, and one that is 85 % sure leaves
  nobody able to tell;
- *note*: worth knowing, decides nothing.

A finding decides nothing either when a rule of its last column found the reason for it.

| rule | asks | basis | gives way to |
|---|---|---|---|
"""


def made() -> str:
    rows = []
    for rule in RULES:
        reasons = ", ".join(f"`{name}`" for name in rule.explained_by) or "–"
        rows.append(f"| `{rule.name}` | {rule.asks} | {rule.basis} | {reasons} |")
    return HEAD + "\n".join(rows) + "\n"


def test_the_page_is_fresh() -> None:
    page = made()
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        PAGE.write_text(page)
    assert page == PAGE.read_text(), "docs/rules.md is stale: run `make docs`"
