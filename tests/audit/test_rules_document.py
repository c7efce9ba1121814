"""docs/rules.md is written from the table of rules."""

from __future__ import annotations

import os
from pathlib import Path

from loadstone.audit.judge import EXPLAINED_BY
from loadstone.audit.rules import RULES

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
HEAD = """\
# What a verdict rests on

Each result is put before these rules. One answers with findings, *clear* (it looked and found
nothing), *cannot tell* (and why), or not at all when the result is of another sort. A finding has a
confidence: how often one made this way is right ([verdicts.md](verdicts.md) holds that against
labelled runs). Its effect is one of

- *not valid*: the number does not measure the storage;
- *limited*: something other than the medium set the number;
- *suspect*: it may be either. It lowers the confidence of the verdict; at 85 % confidence or more the
  verdict is *cannot tell*;
- *note*: worth knowing, decides nothing.

A finding decides nothing either when a rule of its last column found the reason for it.

Titles lead in reports and on the terminal. Scripts use the id, which never changes.

| finding | id | asks | basis | gives way to |
|---|---|---|---|---|
"""


def made() -> str:
    rows = []
    for rule in RULES:
        reasons = ", ".join(f"`{name}`" for name in EXPLAINED_BY.get(rule.name, ())) or "–"
        rows.append(f"| {rule.title} | `{rule.name}` | {rule.asks} | {rule.basis} | {reasons} |")
    return HEAD + "\n".join(rows) + "\n"


def test_the_page_is_fresh() -> None:
    page = made()
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        PAGE.write_text(page)
    assert page == PAGE.read_text(), "docs/rules.md is stale: run `make docs`"
