"""An article written to a file: a page, Markdown or PDF, by the ending of its name.

Knows which ending means what, and says so of one that means nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError
from loadstone.messages import make_error, say
from loadstone.report import templates
from loadstone.report.article.markdown import markdown
from loadstone.report.article.paper import pdf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from loadstone.report.article.elements import Article

ENDINGS: Final = (".html", ".md", ".pdf")


def ending_of(path: Path, report: str, endings: Sequence[str] = ENDINGS) -> str:
    """Return what a file's name ends in. Raises `InputError` where no such `report` is written to it."""
    ending = path.suffix.lower()
    if ending not in endings:
        description = (
            say("report.files.ends_in", ending=f"{ending!r}") if ending else say("report.files.no_ending")
        )
        raise make_error(
            InputError, f"report.files.{report}", path=path, found=description, endings=", ".join(endings)
        )
    return ending


def html(article: Article) -> str:
    """Return the page, which needs no other file."""
    styles = ("page.css", "run/path_diagram.css")
    return templates.render("article/article.html", styles, article=article)


def as_file(article: Article, ending: str) -> str | bytes:
    """Return what the file holds."""
    write: dict[str, Callable[[Article], str | bytes]] = {".html": html, ".md": markdown, ".pdf": pdf}
    return write[ending](article)
