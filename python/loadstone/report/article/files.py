"""An article written to a file: a page, Markdown or PDF, by the ending of its name.

Knows which ending means what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.report.article.html import html
from loadstone.report.article.markdown import markdown
from loadstone.report.article.paper import pdf

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.report.article.blocks import Article

ENDINGS: Final = (".html", ".md", ".pdf")


def as_file(article: Article, ending: str) -> str | bytes:
    """Return what the file holds."""
    write: dict[str, Callable[[Article], str | bytes]] = {".html": html, ".md": markdown, ".pdf": pdf}
    return write[ending](article)
