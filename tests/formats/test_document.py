from __future__ import annotations

import os
from pathlib import Path

from loadstone.formats.fio.document import page

DOCUMENT = Path(__file__).parents[2] / "docs" / "fio-options.md"


def test_the_table_of_options_is_fresh() -> None:
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        DOCUMENT.write_text(page(), encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == page(), "run `make docs`"
