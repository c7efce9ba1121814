"""The report of a run written to a file: a page, Markdown, PDF, or all charts as one picture.

Knows which ending means what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import output
from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.report.article.files import as_file
from loadstone.report.run import page
from loadstone.report.run.article import article

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.analysis.summary import Summary
    from loadstone.verdict import Audited

FORMATS: Final = (".html", ".md", ".pdf", ".svg", ".png")


def write(summary: Summary, path: Path, audited: Audited | None = None) -> None:
    """Write the report.

    Raises `InputError` for another ending, for a path that cannot be written, and for a
    picture of a run with nothing to draw.
    """
    kind = path.suffix.lower()
    if kind not in FORMATS:
        found = f"ends in {kind!r}" if kind else "has no ending"
        raise make_error(InputError, "report.files.run", path=path, found=found, endings=", ".join(FORMATS))
    output.write(path, _content(summary, path, audited, kind))


def _content(summary: Summary, path: Path, audited: Audited | None, kind: str) -> str | bytes:
    if kind == ".html":
        return page.render(summary, audited)
    if kind in (".md", ".pdf"):
        return as_file(article(summary, audited), kind)
    return page.picture(summary, audited, kind, path)
