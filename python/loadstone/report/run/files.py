"""The report of a run written to a file: a page, Markdown, PDF, or all charts as one picture.

Knows which ending means what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import output
from loadstone.report.article.files import as_file, ending_of
from loadstone.report.run import page
from loadstone.report.run.article import article

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadstone.analysis.summary import Summary
    from loadstone.verdict import Audited

FORMATS: Final = (".html", ".md", ".pdf", ".svg", ".png")


def write(summary: Summary, path: Path, audit: Callable[[], Audited] | None = None) -> None:
    """Write the report, with the verdict that `audit` finds.

    Raises `InputError` for another ending, for a path that cannot be written, and for a
    picture of a run with nothing to draw.
    """
    output.write(path, _content(summary, path, audit, ending_of(path, "run", FORMATS)))


def _content(summary: Summary, path: Path, audit: Callable[[], Audited] | None, kind: str) -> str | bytes:
    if kind == ".html":
        return page.render(summary, audit)
    audited = audit() if audit is not None else None
    if kind in (".md", ".pdf"):
        return as_file(article(summary, audited), kind)
    return page.picture(summary, audited, kind, path)
