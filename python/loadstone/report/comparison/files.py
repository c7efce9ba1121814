"""A comparison written to a file: a page, Markdown or PDF, by the ending of its name.

Knows which ending means what. Draws nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone import output
from loadstone.report.article import paper
from loadstone.report.article.files import ending_of
from loadstone.report.comparison import page, text
from loadstone.report.comparison.article import article

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.comparison.compare import ComparisonTable


def check_ending(path: Path, *, any_ending: bool = False) -> None:
    """Raise `InputError` for an ending that says nothing; with `any_ending` it is a page then."""
    if not any_ending:
        ending_of(path, "comparison")


def write(comparison: ComparisonTable, path: Path) -> None:
    """Write the comparison."""
    kind = path.suffix.lower()
    if kind == ".md":
        output.write(path, text.markdown(comparison))
    elif kind == ".pdf":
        output.write(path, paper.pdf(article(comparison)))
    else:
        output.write(path, page.page(comparison))
