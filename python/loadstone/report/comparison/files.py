"""A comparison written to a file: a page, Markdown or PDF, by the ending of its name.

Knows which ending means what. Draws nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import output
from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.report.article import paper
from loadstone.report.comparison import page, text
from loadstone.report.comparison.article import article

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.comparison.compare import ComparisonTable

ENDINGS: Final = (".html", ".md", ".pdf")


def check_ending(path: Path, *, any_ending: bool = False) -> None:
    """Raise `InputError` for an ending that says nothing; with `any_ending` it is a page then."""
    if path.suffix.lower() not in ENDINGS and not any_ending:
        found = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
        raise make_error(
            InputError, "report.files.comparison", path=path, found=found, endings=", ".join(ENDINGS)
        )


def write(comparison: ComparisonTable, path: Path) -> None:
    """Write the comparison."""
    kind = path.suffix.lower()
    if kind == ".md":
        output.write(path, text.markdown(comparison))
    elif kind == ".pdf":
        output.write(path, paper.pdf(article(comparison)))
    else:
        output.write(path, page.page(comparison))
