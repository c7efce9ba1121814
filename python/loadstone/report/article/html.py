"""An article as one HTML file that needs nothing else.

Knows the template. What is said, the blocks know.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import jinja2

from loadstone.version import __version__

if TYPE_CHECKING:
    from loadstone.report.article.blocks import Article


def html(article: Article) -> str:
    """Return the page."""
    files = resources.files("loadstone.report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((files / "article" / "article.html").read_text())
    styles = [(files / name).read_text() for name in ("page.css", "path_diagram.css")]
    return template.render(style="\n".join(styles), version=__version__, article=article)
