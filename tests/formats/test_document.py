from __future__ import annotations

import os
from pathlib import Path

from loadstone.formats.fio.option_page import page
from loadstone.formats.vdbench import keyword_page as vdbench

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = DOCS / "fio-options.md"
KEYWORDS = DOCS / "vdbench-keywords.md"


def test_the_table_of_options_is_fresh() -> None:
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        DOCUMENT.write_text(page(), encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_the_table_of_keywords_is_fresh() -> None:
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        KEYWORDS.write_text(vdbench.page(), encoding="utf-8")
    assert KEYWORDS.read_text(encoding="utf-8") == vdbench.page(), "run `make docs`"
