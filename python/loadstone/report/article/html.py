"""An article as one HTML file that needs nothing else.

Knows the template. What is said, the blocks know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.report import templates

if TYPE_CHECKING:
    from loadstone.report.article.elements import Article


def html(article: Article) -> str:
    """Return the page."""
    styles = ("page.css", "run/path_diagram.css")
    return templates.render("article/article.html", styles, article=article)
