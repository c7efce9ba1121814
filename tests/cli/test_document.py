"""docs/cli.md is what the program says of itself."""

from __future__ import annotations

import os
from pathlib import Path

from loadstone import exitcodes
from loadstone.cli import help_page, reference_page
from loadstone.workload.catalogue import docs_page as workloads

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_fresh() -> None:
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        (DOCS / "cli.md").write_text(reference_page.page())
    assert (DOCS / "cli.md").read_text() == reference_page.page(), "docs/cli.md is stale: run `make docs`"


def test_the_pages_of_help_are_fresh() -> None:
    """Written down, so that `--help` needs no parser of arguments to find out what there is to say."""
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        help_page.FILE.write_text(reference_page.helps())
    assert help_page.FILE.read_text() == reference_page.helps(), "help.json is stale: run `make docs`"


def test_the_list_of_workloads_is_fresh() -> None:
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        (DOCS / "workloads.md").write_text(workloads.page())
    assert (DOCS / "workloads.md").read_text() == workloads.page(), "run `make docs`"


def test_every_exit_code_is_documented() -> None:
    page = (DOCS / "exit-codes.md").read_text()
    codes = [value for name, value in vars(exitcodes).items() if name.isupper()]
    assert len(codes) == 6
    for code in codes:
        assert f"| {code} |" in page
